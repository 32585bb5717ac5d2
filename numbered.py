"""Which number means which memory to whom."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from .archive import SourceLine
from .command_types import Caller, PersonKey
from .entries import Names, View
from .hindsight_types import RecalledMemory
from .recent import Recent
from .scope import Scope

LIST_CHARS = 68
"""So much of each memory is shown in a list."""


@dataclass(frozen=True)
class Numbered:
    """What has a number.

    Attributes:
        memory: The memory.
        lines: The stored lines it stands on, where they are known: a document that is written
            anew makes memories with other ids.
        is_gone: It was forgotten since.
    """

    memory: RecalledMemory
    lines: tuple[SourceLine, ...] = ()
    is_gone: bool = False


class NumberedLists:
    """Remembers, for each person in each chat, the numbers of what was shown last.

    Args:
        names: The names of people who were seen in a chat, by pseudonym.
    """

    def __init__(self, names: Callable[[Scope], Mapping[str, str]] = lambda _: {}) -> None:
        self._names = names
        self._shown: Recent[PersonKey, dict[int, Numbered]] = Recent()
        self._asked: Recent[PersonKey, str] = Recent()

    def view(self, caller: Caller, memories: Iterable[RecalledMemory]) -> View:
        """How memories are shown to somebody."""
        scope = caller.scope
        known = self._names(scope) if isinstance(scope, Scope) else {}
        known = {**known, caller.speaker.pseudonym: caller.speaker.name}
        is_group = isinstance(scope, Scope) and scope.kind == "group"
        return View(caller.texts, caller.now, Names.of(memories, known), is_group)

    def lines(
        self,
        caller: Caller,
        memories: Sequence[RecalledMemory],
        *,
        first: int = 1,
        among: Iterable[RecalledMemory] = (),
        limit: int = LIST_CHARS,
    ) -> list[str]:
        """A line for each memory, whose number is understood from then on.

        Args:
            caller: Who sees them.
            memories: What is shown.
            first: The number of the first; from 1 a new list begins, else one goes on.
            among: All of which these are some: two people in it may have one name.
            limit: So many characters of each.
        """
        view = self.view(caller, [*memories, *among])
        before = {} if first == 1 else self._shown.get(_key(caller), {})
        now = {n: Numbered(memory) for n, memory in enumerate(memories, start=first)}
        self._shown.put(_key(caller), {**before, **now})
        return [f"{n}. {view.shown(one.memory, limit)}" for n, one in now.items()]

    def add(self, caller: Caller, found: Sequence[Numbered]) -> list[int]:
        """Gives more of what is shown numbers behind the last one."""
        shown = self._shown.get(_key(caller), {})
        first = max(shown, default=0) + 1
        more = dict(enumerate(found, start=first))
        self._shown.put(_key(caller), {**shown, **more})
        return list(more)

    def get(self, caller: Caller, number: int) -> Numbered | None:
        """What a number means to somebody; None where it was not shown to them."""
        return self._shown.get(_key(caller), {}).get(number)

    def numbers(self, caller: Caller) -> dict[int, Numbered]:
        """All that has numbers for somebody."""
        return dict(self._shown.get(_key(caller), {}))

    def replace(self, caller: Caller, old: Iterable[SourceLine], new: SourceLine | None) -> None:
        """Notes that lines are gone, or that another stands in their place."""
        gone = {line.text for line in old}
        for number, entry in self.numbers(caller).items():
            left = [line for line in entry.lines if line.text not in gone]
            if new and len(left) < len(entry.lines):
                left.append(new)
            if tuple(left) != entry.lines:
                self.change(caller, number, lines=tuple(left), is_gone=not left)

    def change(self, caller: Caller, number: int, **changes: object) -> None:
        """Notes something about what a number means."""
        shown = self._shown.get(_key(caller), {})
        if number in shown:
            shown[number] = replace(shown[number], **changes)  # type: ignore[arg-type]

    def ask(self, caller: Caller, query: str) -> None:
        """Notes what the pages are of that somebody looks at."""
        self._asked.put(_key(caller), query)

    def asked(self, caller: Caller) -> str:
        """What somebody looks at the pages of."""
        return self._asked.get(_key(caller), "")

    def forget_chat(self, chat: str) -> None:
        """Drops the numbers of everybody in a chat's memory, see `Scope.chat`."""
        for table in (self._shown, self._asked):
            for key in [key for key in table if key[0] == chat]:
                del table[key]


def _key(caller: Caller) -> PersonKey:
    """Somebody in the memory that is seen: another persona's has other numbers."""
    scope = caller.scope
    return (scope.chat, caller.speaker.pseudonym) if isinstance(scope, Scope) else caller.key
