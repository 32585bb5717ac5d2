"""Commands that change what is stored."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence

from .archive import SourceLine
from .bindings import Bindings
from .cleaning import as_said, neutralise
from .clock import Clock
from .codes import CODE_SECONDS, Codes
from .command_types import (
    ALL_WORDS,
    ChatRequest,
    Command,
    first_word,
    whole_number,
)
from .commands_seeing import PAGE_LINES
from .delivery import Delivery
from .erasure import Removed
from .hindsight_types import AccessRefusedError, RecalledMemory, RetryLaterError
from .memory import ChatMemory
from .numbered import NumberedLists, described
from .people import People
from .scope import Scope, ScopeState
from .sharing import Sharing
from .texts import Texts
from .transcript import Line

_CHOICE = re.compile(rf"(?:{'|'.join(ALL_WORDS)}|[0-9,，、\s]*)", re.IGNORECASE)
"""What may follow the number of a memory; anything else makes the whole a text."""


class Correcting:
    """Remembers, forgets and corrects.

    Args:
        memory: The recall and retain flow.
        state: Salt and switches.
        delivery: Takes what cannot be stored at once.
        lists: Which number means which memory.
        clock: The time.
        bindings: Knows all memories of a chat.
        people: Knows everybody's pseudonyms.
        sharing: Ends with the memory of a private chat.
        members_may_manage: A setting.
        separate_personas: A setting.
    """

    def __init__(
        self,
        memory: ChatMemory,
        state: ScopeState,
        delivery: Delivery,
        lists: NumberedLists,
        clock: Clock,
        bindings: Bindings,
        people: People,
        sharing: Sharing,
        *,
        members_may_manage: bool,
        separate_personas: bool,
    ) -> None:
        self._memory = memory
        self._state = state
        self._delivery = delivery
        self._lists = lists
        self._bindings = bindings
        self._people = people
        self._sharing = sharing
        self._members_may_manage = members_may_manage
        self._separate_personas = separate_personas
        self._codes: Codes[tuple[str, ...]] = Codes(clock)

    @property
    def commands(self) -> Sequence[Command]:
        """Rows of the table."""
        return (
            Command(
                "remember",
                "记住",
                self._remember,
                has_argument=True,
                needs="memory",
                is_limited=True,
            ),
            Command("forget", "忘记", self._forget, has_argument=True, needs="stored"),
            Command(
                "correct",
                "更正",
                self._correct,
                has_argument=True,
                needs="stored",
                is_limited=True,
            ),
            Command(
                "forgetme",
                "忘记我",
                self._forgetme,
                has_argument=True,
                needs="stored",
                is_limited=True,
                is_personal=True,
            ),
            Command(
                "wipe", "清空", self._wipe, has_argument=True, rights="managers", needs="stored"
            ),
        )

    async def _remember(self, request: ChatRequest) -> str:
        texts, caller = request.texts, request.caller
        if not re.search(r"\w", request.argument):
            return texts("remember_usage")
        if self._state.is_opted_out(request.scope, caller.person_id):
            return texts("remember_opted_out")
        record = self._memory.record(
            request.scope,
            texts,
            caller.speaker,
            request.argument,
            caller.now,
            message=caller.message,
        )
        try:
            memories = await request.stored.archive.remember(request.scope, record)
        except (RetryLaterError, AccessRefusedError) as error:
            return texts("remember_later", reason=texts(error.reason))
        lines = [f"- {described(caller, memory)}" for memory in memories]
        return "\n".join([texts("remembered", number=len(lines)), *lines])

    async def _forget(self, request: ChatRequest) -> str:
        texts = request.texts
        what, choice = first_word(request.argument)
        if not what:
            return texts("forget_usage")
        number = whole_number(what)
        if number is None or not _CHOICE.fullmatch(choice):
            return await self._forget_text(request)
        memory_id = self._lists.memory_id(request.caller, number)
        archive = request.stored.archive
        memory = await archive.memory(request.scope, memory_id) if memory_id else None
        if memory is None:
            return texts("forget_no_number", number=what)
        return await self._forget_memory(request, memory, number=what, choice=choice)

    async def _forget_text(self, request: ChatRequest) -> str:
        """Finds what a text means; several memories are shown to be chosen from."""
        texts = request.texts
        found = await request.stored.archive.page(
            request.scope, text=request.argument, offset=0, limit=PAGE_LINES
        )
        if not found.memories:
            return texts("recall_empty")
        shown = self._lists.lines(request.caller, found.memories)
        if len(found.memories) == 1:
            return await self._forget_memory(request, found.memories[0], number="1", choice="")
        return "\n".join([texts("forget_which"), *shown])

    async def _forget_memory(
        self, request: ChatRequest, memory: RecalledMemory, *, number: str, choice: str
    ) -> str:
        texts = request.texts
        lines, rest = await request.stored.archive.sources(request.scope, memory)
        if not lines:
            return texts("forget_no_source")
        chosen = _chosen(lines, choice)
        if not chosen:
            more = [texts("forget_more", number=rest)] if rest else []
            return "\n".join([texts("forget_lines", number=number), *_with_numbers(lines), *more])
        if not await self._may_forget(request, chosen):
            return texts("needs_managers")
        removed = await request.stored.eraser.remove_lines(request.scope, chosen)
        self._forgotten(request.scope)
        shown = [f"- {neutralise(line.text)}" for line in chosen]
        said = texts("forgotten", lines=removed.lines)
        more = [texts("forget_more", number=rest)] if rest else []
        return "\n".join([said, *shown, *more, *_still_to_do(texts, removed)])

    async def _correct(self, request: ChatRequest) -> str:
        """Puts other words in the place of what a memory stands on."""
        texts, archive = request.texts, request.stored.archive
        what, words = first_word(request.argument)
        number, _, choice = what.replace("：", ":").partition(":")
        digits = whole_number(number)
        if digits is None or not _CHOICE.fullmatch(choice) or not re.search(r"\w", words):
            return texts("correct_usage")
        if self._state.is_opted_out(request.scope, request.caller.person_id):
            return texts("remember_opted_out")
        memory_id = self._lists.memory_id(request.caller, digits)
        memory = await archive.memory(request.scope, memory_id) if memory_id else None
        if memory is None:
            return texts("forget_no_number", number=number)
        lines, rest = await archive.sources(request.scope, memory)
        if not lines:
            return texts("forget_no_source")
        chosen = _chosen(lines, choice)
        if not chosen:
            more = [texts("forget_more", number=rest)] if rest else []
            return "\n".join([texts("correct_lines", number=number), *_with_numbers(lines), *more])
        if not await self._may_forget(request, chosen):
            return texts("needs_managers")
        return await self._correct_lines(request, chosen, as_said(words, texts))

    async def _correct_lines(
        self, request: ChatRequest, lines: Sequence[SourceLine], words: str
    ) -> str:
        texts = request.texts
        removed = await request.stored.eraser.correct(request.scope, lines, words)
        if not removed.documents:
            return texts("forget_no_source")
        self._forgotten(request.scope)
        old = [f"- {neutralise(line.text)}" for line in lines]
        new = f"+ {neutralise(Line(lines[0].text).saying(words).text)}"
        return "\n".join([texts("corrected"), *old, new, *_still_to_do(texts, removed)])

    async def _may_forget(self, request: ChatRequest, lines: Iterable[SourceLine]) -> bool:
        """One's own lines concern oneself; another's are for those who may decide."""
        caller = request.caller
        if caller.is_manager or self._members_may_manage:
            return True
        own = {caller.speaker.pseudonym, *await self._pseudonyms(request, request.scope)}
        return bool(caller.person_id) and all(line.pseudonym in own for line in lines)

    def _forgotten(self, scope: Scope) -> None:
        """Drops what the plugin still holds of a chat in memory."""
        self._memory.forget_chat(scope)
        self._lists.forget_chat(scope.room)

    async def _forgetme(self, request: ChatRequest) -> str:
        argument = request.argument.lower()
        if argument and argument not in ALL_WORDS:
            return request.texts("forgetme_usage")
        await self._sharing.end(request.scope)
        removed = Removed()
        for scope in self._covered(request.scope, everything=bool(argument)):
            for pseudonym in await self._pseudonyms(request, scope):
                removed += await request.stored.eraser.remove_person(scope, pseudonym)
                self._forgotten(scope)
        return _removed_text(request.texts, removed)

    async def _pseudonyms(self, request: ChatRequest, scope: Scope) -> list[str]:
        """The caller's in a memory: one for each chat that its documents come from."""
        found: list[str] = []
        for room in self._bindings.rooms(scope):
            if room.room == request.scope.room:
                found.append(request.caller.speaker.pseudonym)
                continue
            await self._people.meet(room, ())
            found.append(self._people.roster(room).pseudonym(request.caller.person_id))
        return found

    def _covered(self, scope: Scope, *, everything: bool) -> list[Scope]:
        """What is erased: the persona's memory or everybody's, wherever the chat has documents.

        Without the setting there is no persona in force, so what personas had goes too.
        """
        if everything or not self._separate_personas:
            return self._bindings.memories(scope)
        return [scope, *([scope.own] if scope.own else [])]

    async def _wipe(self, request: ChatRequest) -> str:
        texts, key = request.texts, request.caller.key
        what, code = first_word(request.argument)
        everything = what.lower() in ALL_WORDS
        covered = self._covered(request.scope, everything=everything)
        names = tuple(one.chat for one in covered)
        code = code if everything else request.argument
        if self._codes.take(key, code) != names:
            code = self._codes.ask(key, names)
            shown = f"{what} {code}" if everything else code
            return texts("wipe_confirm", code=shown, seconds=round(CODE_SECONDS))
        await self._sharing.end(request.scope)
        removed = await self._wiped(request, covered)
        done = texts("wiped", documents=removed.documents, waiting=removed.waiting)
        return "\n".join([*([done] if removed.is_done else []), *_still_to_do(texts, removed)])

    async def _wiped(self, request: ChatRequest, covered: Sequence[Scope]) -> Removed:
        """Erases several memories at the same time, so that each wish is on disk at once."""
        for scope in covered:
            self._forgotten(scope)
        eraser = request.stored.eraser
        try:
            ended = await asyncio.gather(*map(eraser.wipe, covered), return_exceptions=True)
        finally:
            for scope in covered:
                self._forgotten(scope)  # also what was recalled meanwhile
        for one in ended:
            if isinstance(one, BaseException):
                raise one
        return sum((one for one in ended if isinstance(one, Removed)), start=Removed())


def _removed_text(texts: Texts, removed: Removed) -> str:
    text = texts(
        "removed", lines=removed.lines, documents=removed.documents, waiting=removed.waiting
    )
    return "\n".join([text, *_still_to_do(texts, removed)])


def _still_to_do(texts: Texts, removed: Removed) -> Iterator[str]:
    """Sentences about what is not done yet, and what could not be looked at."""
    if removed.failure:
        yield texts("erasure_failed", reason=texts(removed.failure))
    elif removed.unfinished:
        yield texts("removed_unfinished", number=removed.unfinished)
    elif not removed.is_done:
        yield texts("wipe_goes_on")
    if removed.is_unchecked:
        yield texts("erasure_unchecked")


def _with_numbers(lines: Sequence[SourceLine]) -> Iterator[str]:
    """Lines to choose from."""
    for number, line in enumerate(lines, start=1):
        yield f"{number}) {neutralise(line.text)}"


def _chosen(lines: Sequence[SourceLine], choice: str) -> list[SourceLine]:
    """The lines that somebody chose: a single one needs no choice; empty where it is unclear."""
    if choice.lower() in ALL_WORDS or (len(lines) == 1 and not choice):
        return list(lines)
    numbers = {whole_number(number) for number in re.findall(r"[0-9]+", choice)}
    return [line for n, line in enumerate(lines, start=1) if n in numbers]
