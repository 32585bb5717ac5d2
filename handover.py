"""What an instance that ends and the one that follows it owe each other.

A reload ends one instance and then makes another, while turns, commands and tools go on. What
has begun with the old instance is finished by it, by the new one, or ends with a sentence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from .clock import Clock

POLL_SECONDS = 0.05


class Work:
    """Commands and tools under way."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[str]] = set()
        self._is_over = False

    def start(self, work: Coroutine[Any, Any, str], *, ended: str) -> asyncio.Task[str]:
        """Starts a piece of work.

        Args:
            work: Gives the answer.
            ended: The answer where the instance ends before.
        """
        task = asyncio.create_task(self._do(work, ended))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def finish(self, seconds: float) -> None:
        """Lets what is under way end, and ends what takes longer."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        self._is_over = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _do(self, work: Coroutine[Any, Any, str], ended: str) -> str:
        try:
            return await work
        except asyncio.CancelledError:
            if not self._is_over:
                raise
            return ended


class Handover[Instance]:
    """How far an instance has ended, and which one follows it.

    Args:
        find: The instance that runs, other than this one, or None.
        clock: The time.

    Attributes:
        is_ending: Nothing is begun any more that takes long.
    """

    def __init__(self, find: Callable[[], Instance | None], clock: Clock) -> None:
        self._find = find
        self._clock = clock
        self._closed = asyncio.Event()
        self.is_ending = False

    @property
    def is_closed(self) -> bool:
        """Nothing can be sent or looked up any more."""
        return self._closed.is_set()

    def close(self) -> None:
        """Notes that all is closed."""
        self.is_ending = True
        self._closed.set()

    def successor(self) -> Instance | None:
        """The instance that has followed this one, if it runs already."""
        return self._find() if self.is_closed else None

    async def await_successor(self, seconds: float) -> Instance | None:
        """The instance that follows; None where none runs so long after this one has closed."""
        await self._closed.wait()
        await self.poll(lambda: self._find() is not None, seconds)
        return self._find()

    async def poll(self, is_so: Callable[[], bool], seconds: float) -> None:
        """Waits so long at most until something is so."""
        until = self._clock.monotonic() + seconds
        while not is_so() and self._clock.monotonic() < until:
            await self._clock.sleep(POLL_SECONDS)
