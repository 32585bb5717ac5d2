"""The help, and what somebody may have meant who typed what is no command."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable, Collection, Sequence

from .cleaning import neutralise, shorten
from .command_types import Caller, Command, Section, first_word
from .texts import Texts

SECTIONS: tuple[Section, ...] = ("seeing", "mine", "managing")
LIKENESS = 0.6
"""How much a typo has in common with what was meant."""
MAX_SHOWN = 30

SYNONYMS = {
    "delete": "forget", "remove": "forget", "erase": "forget", "删除": "忘记", "删掉": "忘记",
    "忘掉": "忘记", "search": "recall", "find": "recall", "搜索": "回忆", "查询": "回忆",
    "查找": "回忆", "clear": "wipe", "reset": "wipe", "清除": "清空", "重置": "清空",
    "save": "remember", "store": "remember", "note": "remember", "保存": "记住", "记下": "记住",
    "stop": "off", "disable": "off", "停止": "关闭", "关掉": "关闭", "start": "on",
    "enable": "on", "resume": "on", "打开": "开启", "恢复": "开启", "继续": "更多",
    "next": "more", "show": "list", "memories": "list", "记忆": "列表", "info": "status",
}  # fmt: skip
"""Other words for commands; they are only suggested, since nobody has read them anywhere."""

_SIGNS = " \t。，、！？；：…~.,!?;:/\\'\"“”‘’（）()"
_WIDE = re.compile(r"[\u3400-\u9fff]")


class Guide:
    """Knows all commands.

    Args:
        table: The commands, in the order of the help.
        may_use: Whether somebody may use a command where they are.
    """

    def __init__(
        self, table: Sequence[Command], may_use: Callable[[Caller, Command], bool]
    ) -> None:
        self._table = table
        self._may_use = may_use
        self._names = {name: one for one in table for name in (one.name, one.alias)}

    def find(self, name: str) -> Command | None:
        """The command that was typed: in any case and width, also with a question mark."""
        return self._names.get(_plain(name))

    def overview(self, caller: Caller) -> str:
        """All commands that somebody may use, one line for each kind."""
        texts = caller.texts
        lines = [texts("help_title")]
        for section in SECTIONS:
            usable = [
                one for one in self._table if one.shown_in == section and self._may_use(caller, one)
            ]
            if usable:
                names = [texts("help_name", name=one.name, alias=one.alias) for one in usable]
                list_of = texts("help_separator").join(names)
                lines.append(texts(f"help_{section}", list=list_of))
        return "\n".join([*lines, texts("help_how")])

    def about(self, caller: Caller, name: str) -> str:
        """One command with an example."""
        command = self.find(first_word(name)[0].removeprefix("/"))
        if command is None:
            return self.unknown(caller, name, asks_for_help=True)
        texts = caller.texts
        argument = f" {texts(f'arg_{command.name}')}" if command.has_argument else ""
        lines = [
            texts("help_line", name=command.name, argument=argument, alias=command.alias),
            texts(f"help_{command.name}"),
        ]
        if command.has_argument:
            example = texts(f"example_{command.name}")
            lines.append(texts("help_example", name=command.name, argument=example))
        if not self._may_use(caller, command):
            lines.append(texts(f"needs_{command.rights}"))
        return "\n".join(lines)

    def unknown(self, caller: Caller, words: str, *, asks_for_help: bool = False) -> str:
        """What may have been meant by words that are no command, with what to type."""
        name, rest = first_word(words)
        lines = [caller.texts("help_unknown", name=shorten(neutralise(name), MAX_SHOWN))]
        meant = self._meant(caller, name, rest)
        if meant and asks_for_help:
            meant = f"help {first_word(meant)[0]}"
        if meant:
            lines.append(caller.texts("help_meant", words=meant))
        return "\n".join([*lines, caller.texts("help_all")])

    def _meant(self, caller: Caller, name: str, rest: str) -> str:
        """The nearest command with the words that were meant for it, or an empty text."""
        usable = {n: one for n, one in self._names.items() if self._may_use(caller, one)}
        typed = _plain(name)
        behind = shorten(neutralise(rest), MAX_SHOWN)
        glued = [n for n in usable if _WIDE.search(n) and typed.startswith(n)]
        # 忘记我住在杭州 is about one thing that was said, not about everything.
        glued.sort(key=lambda n: (usable[n].has_argument and n != "忘记我", len(n)), reverse=True)
        if glued:
            said = typed.removeprefix(glued[0]).strip(_SIGNS)
            takes = said if usable[glued[0]].has_argument else ""
            return " ".join(filter(None, [glued[0], shorten(neutralise(takes), MAX_SHOWN), behind]))
        near = _nearest(typed, usable)
        takes_rest = near and usable[near].has_argument and behind
        return f"{near} {behind}" if takes_rest else near


def _nearest(typed: str, names: Collection[str]) -> str:
    """The name that is most like what was typed; empty where none is."""
    swapped = [name for name in names if sorted(name) == sorted(typed)]
    close = difflib.get_close_matches(typed, names, n=1, cutoff=LIKENESS)
    other = [SYNONYMS[typed]] if SYNONYMS.get(typed) in names else []
    within = [name for name in names if _WIDE.search(name) and name in typed]
    return next(iter([*swapped, *other, *close, *within]), "")


def takes_nothing(texts: Texts, command: Command) -> str:
    """Said where a word stands behind a command that takes none and would change something."""
    return texts("takes_nothing", name=command.name)


def _plain(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold().strip(_SIGNS)
