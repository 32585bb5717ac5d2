"""Answers that fit on a telephone: what is longer is cut, and goes on where somebody asks."""

from __future__ import annotations

from dataclasses import dataclass

from .clock import Clock
from .command_types import Caller, PersonKey
from .memory import ChatMemory
from .recent import Recent
from .scope import Scope

MAX_LINES = 12
MAX_CHARS = 600
_ROOM = 40
"""Characters of the line that says how it goes on."""


@dataclass(frozen=True)
class _Rest:
    text: str
    at: float


class LongAnswers:
    """Keeps, for each person in each chat, what the last answer had no room for.

    Args:
        memory: Tells when something of a chat was forgotten: it must not be shown after that.
        clock: The time.
    """

    def __init__(self, memory: ChatMemory, clock: Clock) -> None:
        self._memory = memory
        self._clock = clock
        self._rests: Recent[PersonKey, _Rest] = Recent()

    def first(self, caller: Caller, answer: str) -> str:
        """As much of an answer as fits; the rest takes the place of any other."""
        self._rests.pop(caller.key, None)
        part, rest = cut(answer)
        if not rest:
            return part
        self._rests.put(caller.key, _Rest(rest, self._clock.monotonic()))
        return f"{part}\n{caller.texts('more')}"

    def next(self, caller: Caller) -> str:
        """The rest of the last answer, itself cut by `first`; empty where there is none."""
        rest = self._rests.pop(caller.key, None)
        if rest is None:
            return ""
        scope = caller.scope
        if isinstance(scope, Scope) and self._memory.forgotten_at(scope) >= rest.at:
            return ""
        return rest.text


def fits(text: str) -> bool:
    """Whether an answer can be read at one glance."""
    return len(text) <= MAX_CHARS and text.count("\n") < MAX_LINES


def cut(text: str) -> tuple[str, str]:
    """As much as fits beside a line that says how it goes on, and the rest, at a line's end."""
    if fits(text):
        return text, ""
    room, lines, taken = MAX_CHARS - _ROOM, text.split("\n"), 0
    while taken < MAX_LINES - 1 and taken < len(lines) and len(lines[taken]) + 1 <= room:
        room -= len(lines[taken]) + 1
        taken += 1
    if not taken:
        return lines[0][:room], "\n".join([lines[0][room:], *lines[1:]])
    return "\n".join(lines[:taken]), "\n".join(lines[taken:])
