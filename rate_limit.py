"""How often somebody may ask something of the server."""

from __future__ import annotations

from collections import deque

from .clock import Clock
from .recent import Recent

MINUTE_SECONDS = 60.0


class RateLimit[Key]:
    """So many uses a minute for each key.

    Args:
        per_minute: So many.
        clock: The time.
    """

    def __init__(self, per_minute: int, clock: Clock) -> None:
        self.per_minute = per_minute
        self._clock = clock
        self._uses: Recent[Key, deque[float]] = Recent()

    def may_use(self, key: Key) -> bool:
        """Counts one use; False where it is one too many this minute."""
        now = self._clock.monotonic()
        uses = self._uses.get(key, deque())
        self._uses.put(key, uses)
        while uses and uses[0] <= now - MINUTE_SECONDS:
            uses.popleft()
        if len(uses) >= self.per_minute:
            return False
        uses.append(now)
        return True
