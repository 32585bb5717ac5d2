"""The plugin loads without bot, provider and network, as the plugin market's check asks."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

from rig import venvs
from rig.astrbot import PLUGIN, copy_plugin
from rig.market import load_as_market
from rig.stack import CHECKOUT

CALLING = "import socket\nsocket.create_connection(('127.0.0.1', 9), 1)\n"


class MarketCheckTest(unittest.TestCase):
    """Our own equivalent of the market's load check."""

    def check(self, venv: str) -> None:
        result = load_as_market(venvs.ensure(venv), CHECKOUT)
        self.assertTrue(result.loaded, result.error)
        self.assertIsNone(result.error, result.output)
        self.assertIn(PLUGIN, result.names)
        self.assertEqual(result.connections, [])
        self.assertNotIn("Traceback", result.output)

    def test_newest_astrbot(self) -> None:
        self.check("astrbot-latest")

    def test_oldest_astrbot(self) -> None:
        self.check("astrbot-minimum")

    def test_check_sees_a_plugin_that_connects(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            plugin = Path(folder) / PLUGIN
            copy_plugin(CHECKOUT, plugin)
            main = plugin / "main.py"
            main.write_text(main.read_text("utf-8") + CALLING, "utf-8")
            result = load_as_market(venvs.ensure("astrbot-latest"), plugin)
        self.assertFalse(result.loaded)
        self.assertIn("127.0.0.1", str(result.connections))


if __name__ == "__main__":
    unittest.main()
