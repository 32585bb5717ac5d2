"""Work in the background that goes on for ever; what ends by a fault is begun again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from logging import Logger
from typing import Any

from .clock import Clock

PAUSE_SECONDS = 10.0
"""Before work that ended is begun again."""

Work = Callable[[], Coroutine[Any, Any, None]]


class Workers:
    """Keeps work going until it is closed.

    Args:
        clock: The time.
        logger: Gets each fault with its traceback.

    Attributes:
        faults: How often each work has ended by a fault, by name; status shows it.
    """

    def __init__(self, clock: Clock, logger: Logger) -> None:
        self._clock = clock
        self._logger = logger
        self._tasks: set[asyncio.Task[None]] = set()
        self.faults: Counter[str] = Counter()

    def start(self, name: str, work: Work) -> None:
        """Begins work that ends by cancellation only."""
        task = asyncio.create_task(self._keep(name, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        """Cancels all work and waits for its end."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _keep(self, name: str, work: Work) -> None:
        while True:
            running = asyncio.create_task(work())
            try:
                await asyncio.wait({running})
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
            error = None if running.cancelled() else running.exception()
            self.faults[name] += 1
            self._logger.error("%s ended and is begun again", name, exc_info=error)
            await self._clock.sleep(PAUSE_SECONDS)
