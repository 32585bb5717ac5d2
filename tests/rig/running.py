"""What starts and ends as a whole."""

from __future__ import annotations

import contextlib
from typing import Self


class Running:
    """Several parts that run together; use it with `async with`, or `start` and `stop`."""

    def __init__(self) -> None:
        """Have nothing running yet."""
        self._exits = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Start it."""
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        """Stop it."""
        await self.stop()

    async def start(self) -> Self:
        """Start every part; none is left running if one of them fails."""
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def stop(self) -> None:
        """Stop every part, the last one first."""
        await self._exits.aclose()

    async def _start(self) -> None:
        """Start the parts, and have `_exits` stop them."""
        raise NotImplementedError
