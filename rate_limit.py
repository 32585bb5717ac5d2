"""How often somebody may ask something of the server."""

from __future__ import annotations

import math
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
        uses = self._current(key)
        if len(uses) >= self.per_minute:
            return False
        uses.append(self._clock.monotonic())
        return True

    def give_back(self, key: Key) -> None:
        """Takes the last use back, which cost nothing."""
        if uses := self._uses.get(key):
            uses.pop()

    def seconds(self, key: Key) -> int:
        """In how many seconds there is a use again; 0 is now."""
        uses = self._current(key)
        if len(uses) < self.per_minute:
            return 0
        return math.ceil(uses[0] + MINUTE_SECONDS - self._clock.monotonic())

    def _current(self, key: Key) -> deque[float]:
        """The uses of this minute."""
        uses = self._uses.get(key, deque())
        self._uses.put(key, uses)
        while uses and uses[0] <= self._clock.monotonic() - MINUTE_SECONDS:
            uses.popleft()
        return uses
