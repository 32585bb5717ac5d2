"""The hooks of an instance that has ended, while AstrBot reloads.

AstrBot drops a plugin's hooks before it has the next instance's. A turn of that moment is answered
like any other, and would be seen by nobody.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, MutableMapping
from dataclasses import replace
from typing import Any

from .transcript import PLUGIN

BRIDGE = f"{PLUGIN}_bridge"
"""The module that AstrBot takes the bridge's hooks for."""


class Bridge:
    """Registers hooks under another name, which AstrBot does not drop.

    Args:
        plugin: The instance that has ended.
        module: The plugin's module.
        stars: AstrBot's plugins, by module.
        registry: AstrBot's handlers.
    """

    def __init__(
        self, plugin: Any, module: str, stars: MutableMapping[str, Any], registry: Any
    ) -> None:
        self._plugin = plugin
        self._module = module
        self._stars = stars
        self._registry = registry
        self._hooks: list[Any] = []

    def open(self, hooks: Iterable[Any]) -> bool:
        """Registers hooks; does nothing, and tells so, where AstrBot knows no such plugin."""
        if (metadata := self._stars.get(self._module)) is None:
            return False
        self._hooks = [
            replace(
                hook,
                handler_module_path=BRIDGE,
                handler_full_name=f"{BRIDGE}_{hook.handler_name}",
                handler=functools.partial(self._call, hook.handler_name),
            )
            for hook in hooks
        ]
        self._stars[BRIDGE] = metadata
        for hook in self._hooks:
            self._registry.append(hook)
        return True

    def close(self) -> None:
        """Takes the hooks away."""
        for hook in self._hooks:
            self._registry.remove(hook)
        if not self._registry.get_handlers_by_module_name(BRIDGE):
            self._stars.pop(BRIDGE, None)

    async def _call(self, name: str, event: Any, *arguments: Any) -> None:
        """Calls a hook of the instance while none is registered, be it this or another one."""
        if getattr(self._stars.get(self._module), "star_cls", None) is None:
            await getattr(self._plugin, name)(event, *arguments)
