"""Commands that change what is stored."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace

from .bindings import Bindings
from .cleaning import as_said
from .clock import Clock
from .codes import Codes, confirm, takes_all
from .command_types import ChatRequest, Command, Free, first_word
from .erasure import Removed
from .forgetting import Forgetting, still_to_do
from .hindsight_types import AccessRefusedError, RetryLaterError
from .memory import ChatMemory
from .numbered import LIST_CHARS, NumberedLists
from .people import People
from .scope import Scope, ScopeState
from .sharing import Sharing
from .transcript import Line

MAX_REMEMBERED = 5
"""So many of the memories made of one sentence are shown."""


class Correcting:
    """Remembers, forgets and corrects.

    Args:
        memory: The recall and retain flow.
        state: Salt and switches.
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
        self._lists = lists
        self._bindings = bindings
        self._people = people
        self._sharing = sharing
        self._separate_personas = separate_personas
        self._forgetting = Forgetting(
            memory, lists, self._pseudonyms, members_may_manage=members_may_manage
        )
        self._forgetme_codes = Codes[tuple[str, ...]](clock)
        self._wipe_codes = Codes[tuple[str, ...]](clock)

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
                section="mine",
            ),
            Command(
                "forget",
                "忘记",
                self._forgetting.answer,
                has_argument=True,
                needs="stored",
                section="mine",
            ),
            Command(
                "correct",
                "更正",
                self._correct,
                has_argument=True,
                needs="stored",
                is_limited=True,
                section="mine",
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
            return Free(texts("remember_usage"))
        if self._state.is_opted_out(request.scope, caller.person_id):
            return Free(texts("remember_opted_out"))
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
        if not memories:
            return texts("remembered_nothing")
        view = self._lists.view(caller, memories)
        lines = [f"- {view.shown(one, LIST_CHARS)}" for one in memories[:MAX_REMEMBERED]]
        return "\n".join([texts("remembered"), *lines])

    async def _correct(self, request: ChatRequest) -> str:
        """Puts other words in the place of what a memory stands on."""
        texts = request.texts
        if self._state.is_opted_out(request.scope, request.caller.person_id):
            return Free(texts("remember_opted_out"))
        what, words = first_word(request.argument)
        if not re.search(r"\w", words):
            return Free(texts("correct_usage"))
        lines = await self._forgetting.lines_of(request, what)
        if isinstance(lines, str):
            return lines
        words = as_said(words, texts)
        await self._forgetting.keep_numbers(request, lines)
        removed = await request.stored.eraser.correct(request.scope, lines, words)
        if not (removed.documents or removed.waiting or removed.failure):
            return texts("forget_no_source", number=what)
        self._memory.forget_chat(request.scope)
        said = Line(lines[0].text).saying(words).text
        self._lists.replace(request.caller, lines, replace(lines[0], text=said))
        view = self._lists.view(request.caller, ())
        old = [f"- {view.line(line.text, LIST_CHARS)}" for line in lines]
        new = f"+ {view.line(said, LIST_CHARS)}"
        return "\n".join([texts("corrected"), *old, new, *still_to_do(texts, removed)])

    async def _forgetme(self, request: ChatRequest) -> str:
        covered = self._covered(request)
        plan = tuple(one.chat for one in covered)
        if question := confirm(request, self._forgetme_codes, "forgetme", plan):
            return Free(question)
        await self._sharing.end(request.scope)
        removed = Removed()
        for scope in covered:
            for pseudonym in await self._pseudonyms(request, scope):
                removed += await request.stored.eraser.remove_person(scope, pseudonym)
                self._forgotten(scope)
        number = removed.lines + removed.waiting
        said = [request.texts("removed" if number else "removed_nothing", number=number)]
        if not number and (removed.failure or not removed.is_done):
            said = []
        return "\n".join([*said, *still_to_do(request.texts, removed)])

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

    def _covered(self, request: ChatRequest) -> list[Scope]:
        """What is erased: the persona's memory or everybody's, wherever the chat has documents.

        Without the setting there is no persona in force, so what personas had goes too.
        """
        scope = request.scope
        if takes_all(request) or not self._separate_personas:
            return self._bindings.memories(scope)
        return [scope, *([scope.own] if scope.own else [])]

    async def _wipe(self, request: ChatRequest) -> str:
        covered = self._covered(request)
        plan = tuple(one.chat for one in covered)
        if question := confirm(request, self._wipe_codes, "wipe", plan):
            return Free(question)
        await self._sharing.end(request.scope)
        removed = await self._wiped(request, covered)
        said = [request.texts("wiped")] if removed.is_done else []
        return "\n".join([*said, *still_to_do(request.texts, removed)])

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

    def _forgotten(self, scope: Scope) -> None:
        """Drops what the plugin still holds of a chat in memory."""
        self._memory.forget_chat(scope)
        self._lists.forget_chat(scope.chat)
