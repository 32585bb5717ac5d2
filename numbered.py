"""Memories as people see them: one line each, and which number means which."""

from __future__ import annotations

from collections.abc import Sequence

from .cleaning import neutralise
from .command_types import Caller, PersonKey
from .hindsight_types import RecalledMemory
from .memory_formatter import has_label, memory_date, memory_text
from .recent import Recent


class NumberedLists:
    """Remembers, for each person in each chat, the numbers of what was shown last."""

    def __init__(self) -> None:
        self._shown: Recent[PersonKey, dict[int, str]] = Recent()

    def put(self, caller: Caller, memories: Sequence[RecalledMemory], *, first: int = 1) -> None:
        """Notes what is shown to somebody, in the place of what was shown before."""
        shown = {number: m.memory_id for number, m in enumerate(memories, start=first)}
        self._shown.put(caller.key, shown)

    def lines(
        self, caller: Caller, memories: Sequence[RecalledMemory], *, first: int = 1
    ) -> list[str]:
        """A line for each memory, whose number is understood from then on."""
        self.put(caller, memories, first=first)
        return [numbered_line(caller, n, memory) for n, memory in enumerate(memories, start=first)]

    def memory_id(self, caller: Caller, number: int) -> str | None:
        """What a number means to somebody; None where it was not shown to them."""
        return self._shown.get(caller.key, {}).get(number)

    def forget_chat(self, chat: str) -> None:
        """Drops the numbers of everybody in a chat."""
        for key in [key for key in self._shown if key[0] == chat]:
            del self._shown[key]


def numbered_line(caller: Caller, number: int, memory: RecalledMemory) -> str:
    """A memory with its number and kind."""
    kind = caller.texts("kind_conclusion" if memory.kind == "observation" else "kind_fact")
    return f"{number}. [{kind}] {described(caller, memory)}"


def described(caller: Caller, memory: RecalledMemory) -> str:
    """A memory with its date, and its speaker where the text does not tell."""
    text = memory_text(memory, caller.texts) or neutralise(memory.text)
    who = memory.speakers[0] if len(memory.speakers) == 1 and not has_label(text) else ""
    date = memory_date(memory, caller.now.tzinfo)
    return " ".join(filter(None, [date, text, f"({neutralise(who)})" if who else ""]))
