"""The time, in one object, so that a test can hold all of it."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, tzinfo
from typing import Any


class Clock:
    """Where every part takes its time from.

    Args:
        timezone: AstrBot's configured timezone; None is the system's.
    """

    def __init__(self, timezone: tzinfo | None = None) -> None:
        self._timezone = timezone

    def monotonic(self) -> float:
        """Seconds that never jump."""
        return time.monotonic()

    def unix(self) -> float:
        """Seconds since 1970, for what is meant to end over restarts."""
        return time.time()

    def local(self) -> datetime:
        """The local time, aware."""
        return datetime.now(self._timezone) if self._timezone else datetime.now().astimezone()

    def moment(self, unix: float) -> datetime:
        """A time in the local timezone, aware."""
        moment = datetime.fromtimestamp(unix, UTC)
        return moment.astimezone(self._timezone)

    def today(self) -> str:
        """The local date, ISO."""
        return self.local().date().isoformat()

    async def sleep(self, seconds: float) -> None:
        """Waits."""
        await asyncio.sleep(seconds)

    async def wait(self, work: asyncio.Future[Any], seconds: float) -> bool:
        """Waits for work, which goes on also when nobody waits any longer; whether it is done."""
        done, _ = await asyncio.wait({work}, timeout=seconds)
        return bool(done)
