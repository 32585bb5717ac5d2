"""Keeps recalls away from a server that does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal

from .clock import Clock

BREAKER_FAILURES = 3
BREAKER_PAUSE_SECONDS = 15.0
BREAKER_MAX_PAUSE_SECONDS = 300.0


class Breaker:
    """Keeps recalls away from a server that does not answer.

    Closed, all may pass. After `BREAKER_FAILURES` failures in a row it opens, and nothing passes.
    In the background, after a pause, a probe asks the server; once that succeeds, one recall may
    pass (half open). If it succeeds the breaker closes, else it opens for twice the pause.

    Args:
        probe: Tells whether the server answers; must end by itself and not raise.
        clock: The time.
    """

    def __init__(
        self,
        probe: Callable[[], Awaitable[bool]],
        clock: Clock,
    ) -> None:
        self._probe = probe
        self._clock = clock
        self._failures = 0
        self._pause = BREAKER_PAUSE_SECONDS
        self._task: asyncio.Task[None] | None = None
        self.state: Literal["closed", "open", "half_open", "trial"] = "closed"

    def enter(self) -> bool:
        """Whether a recall may be tried now; each True must be followed by one of the reports."""
        if self.state == "half_open":
            self.state = "trial"
            return True
        return self.state == "closed"

    def succeeded(self) -> None:
        """Reports a recall that the server answered."""
        self._failures = 0
        if self.state == "trial":
            self.state = "closed"
            self._pause = BREAKER_PAUSE_SECONDS

    def failed(self) -> None:
        """Reports a recall that failed for a reason that will hit the next one too."""
        self._failures += 1
        if self.state == "trial":
            self._pause = min(self._pause * 2, BREAKER_MAX_PAUSE_SECONDS)
            self._open()
        elif self.state == "closed" and self._failures >= BREAKER_FAILURES:
            self._open()

    def abandoned(self) -> None:
        """Reports a recall that was cancelled before it told anything."""
        if self.state == "trial":
            self.state = "half_open"

    async def aclose(self) -> None:
        """Ends the background probe."""
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _open(self) -> None:
        self.state = "open"
        self._task = asyncio.create_task(self._wait_for_server())

    async def _wait_for_server(self) -> None:
        while True:
            await self._clock.sleep(self._pause)
            if await self._probe():
                self.state = "half_open"
                return
            self._pause = min(self._pause * 2, BREAKER_MAX_PAUSE_SECONDS)
