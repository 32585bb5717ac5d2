"""The hooks of an instance that has ended, in a registry like AstrBot's."""

from __future__ import annotations

import unittest
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest import mock

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.bridge import BRIDGE, Bridge

MODULE = "plugins.memory.main"


@dataclass
class Hook:
    handler_name: str
    handler_module_path: str = MODULE
    handler_full_name: str = ""
    handler: Any = None


class Registry(list[Hook]):
    def get_handlers_by_module_name(self, name: str) -> list[Hook]:
        return [one for one in self if one.handler_module_path == name]


class BridgeTest(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.plugin = SimpleNamespace(inject=mock.AsyncMock())
        self.stars: dict[str, Any] = {MODULE: SimpleNamespace(star_cls=self.plugin)}
        self.registry = Registry()
        self.hooks = [Hook("inject")]

    def bridge(self) -> Bridge:
        return Bridge(self.plugin, MODULE, self.stars, self.registry)

    async def test_called_while_no_instance_is_registered(self) -> None:
        self.assertTrue(self.bridge().open(self.hooks))
        (hook,) = self.registry
        self.assertEqual((hook.handler_module_path, hook.handler_name), (BRIDGE, "inject"))
        await hook.handler("event", "request")
        self.plugin.inject.assert_not_awaited()
        del self.stars[MODULE]
        await hook.handler("event", "request")
        self.plugin.inject.assert_awaited_once_with("event", "request")

    async def test_two_bridges_at_once(self) -> None:
        first, second = self.bridge(), self.bridge()
        first.open(self.hooks)
        second.open(self.hooks)
        first.close()
        self.assertEqual(len(self.registry), 1)
        self.assertIn(BRIDGE, self.stars)
        second.close()
        self.assertEqual(self.registry, [])
        self.assertNotIn(BRIDGE, self.stars)

    async def test_plugin_that_astrbot_has_dropped(self) -> None:
        self.stars.clear()
        bridge = self.bridge()
        self.assertFalse(bridge.open(self.hooks))
        bridge.close()
        self.assertEqual((self.registry, self.stars), ([], {}))


if __name__ == "__main__":
    unittest.main()
