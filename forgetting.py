"""`forget`: what somebody means, whether they may, what goes with it, and what else tells it."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from .archive import SourceLine
from .arguments import ALL_WORDS, Target, folded, targets
from .cleaning import neutralise, shorten
from .command_types import ChatRequest
from .commands_seeing import PAGE_LINES, RECALL_SECONDS
from .entries import one_each, related, tells
from .erasure import Removed
from .hindsight_types import HindsightError, RecalledMemory
from .memory import ChatMemory
from .numbered import LIST_CHARS, Numbered, NumberedLists
from .query import build_query
from .scope import Scope
from .texts import Texts
from .transcript import Line

MAX_ALSO = 5
"""So many lines are offered that tell of the same."""
MAX_SHOWN = 4
"""So many forgotten lines are shown."""
MAX_MENU = 8
MAX_QUERY_CHARS = 30

_EVERYTHING = ALL_WORDS | {"everything", "一切"}
_MYSELF = frozenset({"me", "myself", "我", "我自己", "about me", "关于我"})


@dataclass(frozen=True)
class _Meant:
    """What a number of a list means now.

    Attributes:
        number: The number.
        lines: The lines it stands on, with the bot's answers to them.
        rest: How many more documents it stands on.
        is_conclusion: It was made from several things that were said.
    """

    number: int
    lines: list[SourceLine]
    rest: int
    is_conclusion: bool

    @property
    def said(self) -> list[SourceLine]:
        """What people said of it, with which the answers go; else all."""
        return [line for line in self.lines if Line(line.text).pseudonym] or self.lines

    @property
    def is_one_matter(self) -> bool:
        """One thing that was said, with the answer to it; or an answer alone."""
        return len(self.said) == 1 and len({line.pseudonym for line in self.lines}) == 1


@dataclass(frozen=True)
class _Wish(ChatRequest):
    """A `forget` that was typed.

    Attributes:
        own: The caller's pseudonyms.
        may_all: May forget what others said.
    """

    own: frozenset[str]
    may_all: bool

    def may_forget(self, line: SourceLine) -> bool:
        """One's own lines concern oneself; another's are for those who may decide."""
        return self.may_all or line.pseudonym in self.own


Pseudonyms = Callable[[ChatRequest, Scope], Awaitable[Sequence[str]]]


class Forgetting:
    """Takes memories out of what is stored.

    Args:
        memory: The recall and retain flow.
        lists: Which number means which memory.
        pseudonyms: Tells those of the caller in a memory.
        members_may_manage: A setting.
    """

    def __init__(
        self,
        memory: ChatMemory,
        lists: NumberedLists,
        pseudonyms: Pseudonyms,
        *,
        members_may_manage: bool,
    ) -> None:
        self._memory = memory
        self._lists = lists
        self._pseudonyms = pseudonyms
        self._members_may_manage = members_may_manage

    async def answer(self, request: ChatRequest) -> str:
        """The answer to `forget`: only numbers of what was shown erase something."""
        texts, typed = request.texts, folded(request.argument)
        if not re.search(r"\w", typed):
            return texts("forget_usage")
        if typed in _EVERYTHING:
            return texts("forget_everything")
        if typed in _MYSELF:
            return texts("forget_myself")
        first, _, last = typed.rpartition(" ")
        is_whole = last in ALL_WORDS and bool(targets(first))
        wanted = targets(first if is_whole else typed)
        if wanted is None:
            return await self._search(request)
        return await self._forget(await self._wish(request), wanted, is_whole=is_whole)

    async def lines_of(self, request: ChatRequest, typed: str) -> list[SourceLine] | str:
        """The lines of people that a number means, if the caller may change them, or a sentence."""
        wish, wanted = await self._wish(request), targets(folded(typed))
        if not wanted or len({one.number for one in wanted}) != 1:
            return request.texts("correct_usage")
        meant = await self._meant(wish, wanted[0].number)
        if isinstance(meant, str):
            return meant
        letters = {one.letter for one in wanted} - {""}
        lines, refusal = self._chosen(
            wish, meant, letters, is_whole=False, menu=("correct_lines", "correct_lines")
        )
        said = [line for line in lines if Line(line.text).pseudonym] or lines
        return said or "\n".join(refusal)

    async def _wish(self, request: ChatRequest) -> _Wish:
        caller, scope = request.caller, request.scope
        own: set[str] = set()
        if caller.person_id:
            own = {caller.speaker.pseudonym, *await self._pseudonyms(request, scope)}
        may_all = caller.is_manager or self._members_may_manage
        return _Wish(
            caller, request.argument, scope, request.reached, own=frozenset(own), may_all=may_all
        )

    async def _search(self, request: ChatRequest) -> str:
        """Shows what a text may mean, to be chosen from."""
        texts, archive = request.texts, request.stored.archive
        found = one_each(await archive.everything(request.scope, request.argument))
        if not found:
            found = await self._near(request, request.argument)
        said = shorten(neutralise(request.argument), MAX_QUERY_CHARS)
        if not found:
            return texts("recall_nothing", text=said)
        part = found[:PAGE_LINES]
        shown = self._lists.lines(request.caller, part, among=found)
        title = texts("forget_found" if len(found) == 1 else "forget_which", number=len(found))
        return "\n".join([title, *shown])

    async def _near(self, request: ChatRequest, text: str) -> list[RecalledMemory]:
        """What a recall finds that has to do with a text."""
        query = build_query(text)
        if not query:
            return []
        async with asyncio.timeout(RECALL_SECONDS):
            found = await self._memory.search(request.scope, query, request.caller.now)
        near = zip(found, related(found, query), strict=True)
        return [memory for memory, is_near in near if is_near and memory.memory_id]

    async def _forget(self, request: _Wish, wanted: Sequence[Target], *, is_whole: bool) -> str:
        said: list[str] = []
        chosen: list[SourceLine] = []
        for number in dict.fromkeys(one.number for one in wanted):
            meant = await self._meant(request, number)
            if isinstance(meant, str):
                said.append(meant)
                continue
            letters = {one.letter for one in wanted if one.number == number} - {""}
            lines, refusal = self._chosen(request, meant, letters, is_whole=is_whole)
            chosen += await request.stored.archive.with_answers(request.scope, lines)
            said += refusal
        if chosen:
            said = [*await self._erase(request, list(dict.fromkeys(chosen))), *said]
        return "\n".join(said)

    async def _meant(self, request: _Wish, number: int) -> _Meant | str:
        """The lines behind a number, or a sentence where there are none."""
        texts, scope, archive = request.texts, request.scope, request.stored.archive
        entry = self._lists.get(request.caller, number)
        if entry is None:
            return texts("number_unknown", number=number)
        if entry.is_gone:
            return texts("number_gone", number=number)
        memory_id = entry.memory.memory_id
        memory = await archive.memory(scope, memory_id) if memory_id else None
        lines, rest = await archive.sources(scope, memory) if memory else ([], 0)
        if lines:
            lines = await archive.with_answers(scope, lines)
        elif entry.lines:
            lines = await archive.find_lines(scope, entry.lines)
        if not lines:
            return texts("forget_no_source" if memory else "number_gone", number=number)
        return _Meant(number, lines, rest, entry.memory.kind == "observation")

    def _chosen(
        self,
        request: _Wish,
        meant: _Meant,
        letters: Collection[str],
        *,
        is_whole: bool,
        menu: tuple[str, str] = ("forget_lines", "forget_own_lines"),
    ) -> tuple[list[SourceLine], list[str]]:
        """The lines that are to go; or why none do, or what there is to choose from."""
        texts = request.texts
        lettered = {chr(ord("a") + n): line for n, line in enumerate(meant.said[:MAX_MENU])}
        if letters:
            lines = [line for letter, line in lettered.items() if letter in letters]
        elif is_whole or meant.is_one_matter:
            lines = meant.lines
        else:
            lines = []
        others = [line for line in lines or meant.lines if not request.may_forget(line)]
        if lines and not others:
            more = [texts("forget_more", number=meant.number)] if meant.rest else []
            return lines, more
        mine = [letter for letter, line in lettered.items() if request.may_forget(line)]
        if others and (lines or not mine):
            whose = texts("list_separator").join(self._whose(request, others))
            refusal = [texts("forget_not_yours", number=meant.number, names=whose)]
            if not mine or letters:
                return [], refusal
            return [], [*refusal, *self._menu(request, meant, lettered, mine, menu)]
        return [], self._menu(request, meant, lettered, mine, menu)

    def _menu(
        self,
        request: _Wish,
        meant: _Meant,
        lettered: dict[str, SourceLine],
        letters: Sequence[str],
        menu: tuple[str, str],
    ) -> list[str]:
        view = self._lists.view(request.caller, ())
        number, last = meant.number, letters[-1]
        key = menu[0] if len(letters) == len(meant.said) else menu[1]
        return [
            request.texts(key, number=number, letter=last),
            *(f"{number}{one}. {view.line(lettered[one].text, LIST_CHARS)}" for one in letters),
        ]

    async def _erase(self, request: _Wish, chosen: list[SourceLine]) -> list[str]:
        texts, caller, scope = request.texts, request.caller, request.scope
        also = await self._also(request, chosen)
        await self.keep_numbers(request, chosen)
        removed = await request.stored.eraser.remove_lines(scope, chosen)
        self._memory.forget_chat(scope)
        self._lists.replace(caller, chosen, None)
        if not (removed.lines or removed.waiting or removed.failure or removed.unfinished):
            return [texts("forgotten_nothing")]
        view = self._lists.view(caller, ())
        lines = [f"- {view.line(line.text, LIST_CHARS)}" for line in chosen[:MAX_SHOWN]]
        hidden = len(chosen) - len(lines)
        more = [texts("forgotten_more", number=hidden)] if hidden > 0 else []
        offer: list[str] = []
        if also:
            numbers = self._lists.add(caller, [_numbered(line) for line in also])
            shown = zip(numbers, also, strict=True)
            typed = ",".join(map(str, numbers))
            offer = [
                texts("forget_also"),
                *(f"{number}. {view.line(line.text, LIST_CHARS)}" for number, line in shown),
                texts("forget_also_how", numbers=typed),
            ]
        return [texts("forgotten"), *lines, *more, *still_to_do(texts, removed), *offer]

    async def _also(self, request: _Wish, chosen: Sequence[SourceLine]) -> list[SourceLine]:
        """Other lines that tell of the same, as far as somebody may forget them."""
        said = [Line(line.text) for line in chosen]
        words = [line.words for line in said if line.pseudonym] or [line.words for line in said]
        gone, found = {line.text for line in chosen}, dict[str, SourceLine]()
        archive = request.stored.archive
        with contextlib.suppress(HindsightError, TimeoutError):  # it is forgotten all the same
            async with asyncio.timeout(RECALL_SECONDS):
                query = build_query(" ".join(words))
                memories = (
                    await self._memory.search(request.scope, query, request.caller.now)
                    if query
                    else []
                )
                for memory in memories:
                    if len(found) >= MAX_ALSO or not tells(memory.text, words):
                        continue
                    lines = [SourceLine("", 0, memory.text, _owner(memory.text))]
                    if memory.memory_id:
                        lines, _ = await archive.sources(request.scope, memory)
                    for line in lines:
                        is_new = line.text not in gone and tells(Line(line.text).words, words)
                        if is_new and request.may_forget(line):
                            found.setdefault(line.text, line)
        return list(found.values())[:MAX_ALSO]

    async def keep_numbers(self, request: ChatRequest, chosen: Sequence[SourceLine]) -> None:
        """Notes on which lines those numbers stand whose documents are written anew now."""
        archive, scope, caller = request.stored.archive, request.scope, request.caller
        documents = {line.document_id for line in chosen} - {""}
        made = set[str]()
        for document_id in documents:
            made |= await archive.memory_ids(scope, document_id)
        for number, entry in self._lists.numbers(caller).items():
            touched = {entry.memory.memory_id, *entry.memory.sources} & made
            if touched and not entry.lines and not entry.is_gone:
                lines, _ = await archive.sources(scope, entry.memory)
                lines = await archive.with_answers(scope, lines)
                self._lists.change(caller, number, lines=tuple(lines))

    def _whose(self, request: _Wish, lines: Sequence[SourceLine]) -> list[str]:
        texts = request.texts
        memories = [_numbered(line).memory for line in lines]
        names = self._lists.view(request.caller, memories).names
        owners = dict.fromkeys(line.pseudonym for line in lines)
        return [names.shown(one) if one else texts("name_bot") for one in owners]


def still_to_do(texts: Texts, removed: Removed) -> Iterator[str]:
    """Sentences about what is not done yet, and what could not be looked at."""
    if removed.failure:
        yield texts("erasure_failed", reason=texts(removed.failure))
    elif removed.unfinished:
        yield texts("removed_unfinished", number=removed.unfinished)
    elif not removed.is_done:
        yield texts("wipe_goes_on")
    if removed.is_unchecked:
        yield texts("erasure_unchecked")


def _numbered(line: SourceLine) -> Numbered:
    """A stored line as something that has a number."""
    at = Line(line.text).at
    memory = RecalledMemory("", line.text, "world", at, frozenset(), None)
    return Numbered(memory, (line,))


def _owner(text: str) -> str:
    line = Line(text)
    return line.pseudonym or line.answered
