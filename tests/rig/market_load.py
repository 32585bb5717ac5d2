"""Loads a plugin as the plugin market's check does; runs in AstrBot's own environment.

    python -P market_load.py ROOT PLUGIN RESULT

There is no bot around it: what AstrBot hands to the plugin is inert. Every attempt to connect to
something fails and is written down.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import socket
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, NoReturn, Self

SETTLE_SECONDS = 1.0
"""How long background tasks of the plugin may go on, to see whether they connect."""


class Inert:
    """Stands for anything: it can be called, awaited and asked for more, and is false and empty."""

    def __getattr__(self, _: str) -> Self:
        return self

    def __call__(self, *_: Any, **__: Any) -> Self:
        """Return itself."""
        return self

    def __await__(self) -> Generator[Any, Any, Self]:
        yield from ()
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __bool__(self) -> bool:
        return False


class InertContext(Inert):
    """What a plugin gets as its context; only the list of plugins is real."""

    _star_manager = None

    def get_all_stars(self) -> list[Any]:
        """Return the plugins that are loaded."""
        return list(importlib.import_module("astrbot.core.star.star").star_registry)

    def get_registered_star(self, name: str) -> Any:
        """Return a plugin by name, or None."""
        return next((star for star in self.get_all_stars() if star.name == name), None)


def forbid_connections() -> list[str]:
    """Make every connection fail, and return the list that the attempts go to."""
    attempts: list[str] = []

    def refuse(_: socket.socket, address: object) -> NoReturn:
        attempts.append(str(address))
        raise ConnectionRefusedError(f"no network here, not even {address}")

    for name in ("connect", "connect_ex", "sendto"):
        setattr(socket.socket, name, refuse)
    return attempts


async def load(plugin: str) -> dict[str, Any]:
    """Load a plugin, and stop it again."""
    attempts = forbid_connections()
    context = InertContext()
    manager = importlib.import_module("astrbot.core.star.star_manager").PluginManager(context, {})
    loaded, error = await manager.load(specified_dir_name=plugin)
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    if tasks:
        await asyncio.wait(tasks, timeout=SETTLE_SECONDS)
    stars = context.get_all_stars()
    for star in stars:
        if star.star_cls is not None:
            await star.star_cls.terminate()
    return {
        "loaded": loaded,
        "error": error,
        "names": [star.name for star in stars],
        "connections": attempts,
    }


def main() -> None:
    """Do what the command line says."""
    root, plugin, result = sys.argv[1:]
    os.environ.update(ASTRBOT_ROOT=root, TESTING="true")
    sys.path.insert(0, root)
    Path(result).write_text(json.dumps(asyncio.run(load(plugin))), "utf-8")


if __name__ == "__main__":
    main()
