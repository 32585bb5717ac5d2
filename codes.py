"""What is done only when somebody types the code that they were just shown."""

from __future__ import annotations

import secrets

from .clock import Clock
from .command_types import PersonKey
from .recent import Recent

CODE_SECONDS = 60.0


class Codes[Plan]:
    """One plan for each person in each chat, for a minute.

    Args:
        clock: The time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._plans: Recent[PersonKey, tuple[str, float, Plan]] = Recent()

    def ask(self, key: PersonKey, plan: Plan) -> str:
        """Notes a plan in the place of the one before, and makes its code."""
        code = f"{secrets.randbelow(10_000):04}"
        self._plans.put(key, (code, self._clock.monotonic() + CODE_SECONDS, plan))
        return code

    def take(self, key: PersonKey, code: str) -> Plan | None:
        """The plan of a code, once; None where it is another code, or came too late."""
        if (found := self._plans.pop(key, None)) is None:
            return None
        wanted, until, plan = found
        return plan if code == wanted and self._clock.monotonic() <= until else None
