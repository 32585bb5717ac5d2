"""The plugin loads without bot, provider and network, as the plugin market's check asks."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

from rig import venvs
from rig.astrbot import PLUGIN, copy_plugin
from rig.market import Loaded, load_as_market
from rig.stack import CHECKOUT

CALLING = "import socket\nsocket.create_connection(('127.0.0.1', 9), 1)\n"


class MarketCheckTest(unittest.TestCase):
    """Our own equivalent of the market's load check."""

    def check(self, venv: str) -> None:
        result = load_as_market(venvs.ensure(venv), CHECKOUT)
        self.assertTrue(result.loaded, result)
        self.assertIsNone(result.error, result.output)
        self.assertIn(PLUGIN, result.names)
        self.assertEqual(result.connections, [])
        self.assertNotIn("Traceback", result.output)

    def test_newest_astrbot(self) -> None:
        self.check("astrbot-latest")

    def test_oldest_astrbot(self) -> None:
        self.check("astrbot-minimum")

    def spoiled(self, name: str, code: str) -> Loaded:
        """Loads the plugin after a change that the check must find."""
        with tempfile.TemporaryDirectory() as folder:
            plugin = Path(folder) / PLUGIN
            copy_plugin(CHECKOUT, plugin)
            path = plugin / name
            path.write_text(path.read_text("utf-8") + code, "utf-8")
            return load_as_market(venvs.ensure("astrbot-latest"), plugin)

    def test_check_sees_a_plugin_that_connects(self) -> None:
        result = self.spoiled("main.py", CALLING)
        self.assertFalse(result.loaded)
        self.assertIn("127.0.0.1", str(result.connections))

    def test_check_sees_a_plugin_that_breaks(self) -> None:
        result = self.spoiled("settings.py", "\nraise RuntimeError('broken on purpose')\n")
        self.assertFalse(result.loaded)
        self.assertIn("broken on purpose", str(result.error) + result.output)


if __name__ == "__main__":
    unittest.main()
