"""Commands that say from whom and for how long nothing is remembered."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Sequence

from .arguments import ALL_WORDS, folded, minutes
from .batches import Silence
from .bindings import Bindings
from .cleaning import neutralise, shorten
from .clock import Clock
from .command_types import ChatRequest, Command
from .hindsight_types import HindsightError
from .intake import DISK_ERRORS
from .memory import ChatMemory
from .outbox import Outbox
from .scope import ScopeState
from .sharing import Sharing

MAX_PAUSE_MINUTES = 7 * 24 * 60
WAIT_SECONDS = 1.0
"""A switch waits so long at most for what an import must know."""
MAX_SHOWN = 20

_HERE = frozenset({"", "here", "本群", "这里", "本聊天", "我"})


class Switching:
    """Switches of a chat and of a person.

    Args:
        memory: The recall and retain flow.
        state: Where the switches are.
        bindings: Knows all memories of a chat.
        outbox: Notes of which times nothing may be imported later.
        clock: The time.
        sharing: Ends with the memory of a private chat.
    """

    def __init__(
        self,
        memory: ChatMemory,
        state: ScopeState,
        bindings: Bindings,
        outbox: Outbox,
        clock: Clock,
        sharing: Sharing,
    ) -> None:
        self._sharing = sharing
        self._memory = memory
        self._bindings = bindings
        self._state = state
        self._outbox = outbox
        self._clock = clock

    @property
    def commands(self) -> Sequence[Command]:
        """Rows of the table."""
        return (
            Command(
                "optout",
                "退出",
                self._optout,
                has_argument=True,
                needs="stored",
                is_limited=True,
                is_personal=True,
            ),
            Command("optin", "加入", self._optin, needs="stored", is_personal=True),
            Command("pause", "暂停", self._pause, has_argument=True, rights="managers"),
            Command("on", "开启", self._on, rights="managers"),
            Command("off", "关闭", self._off, rights="managers", reads_argument=True),
        )

    async def _optout(self, request: ChatRequest) -> str:
        texts, argument = request.texts, folded(request.argument)
        everywhere = argument in ALL_WORDS
        if argument not in _HERE and not everywhere:
            return texts("optout_usage")
        pseudonym = request.caller.speaker.pseudonym
        memories = self._bindings.memories(request.scope)
        for one in memories:
            await request.stored.eraser.cut_off(one, pseudonym)
        await self._opt(request, out=True, everywhere=everywhere)
        done = texts("opted_out_everywhere" if everywhere else "opted_out_here")
        try:
            for one in memories:
                await request.stored.archive.delete_profile(one)
        except HindsightError as error:
            return f"{done}\n{texts('profile_kept', reason=texts(error.reason))}"
        finally:
            for one in memories:
                self._memory.forget_chat(one)
            if everywhere:
                self._memory.forget_talk()
        return done

    async def _optin(self, request: ChatRequest) -> str:
        was_out = self._state.is_opted_out(request.scope, request.caller.person_id)
        await self._opt(request, out=False, everywhere=False)
        pseudonym = request.caller.speaker.pseudonym
        await self._leave_out(request, Silence(pseudonym, 0.0, self._clock.unix()))
        return request.texts("opted_in" if was_out else "opted_in_already")

    async def _opt(self, request: ChatRequest, *, out: bool, everywhere: bool) -> None:
        person = request.caller.person_id
        self._sharing.withdraw(request.scope)
        await asyncio.to_thread(
            self._state.opt, request.scope, person, out=out, everywhere=everywhere
        )

    async def _pause(self, request: ChatRequest) -> str:
        texts, span = request.texts, minutes(request.argument)
        if span is None:
            return texts("pause_usage")
        if not 0 < span <= MAX_PAUSE_MINUTES:
            return texts("pause_bound", longest=texts.span(MAX_PAUSE_MINUTES))
        if self._state.is_off(request.scope):
            return texts("pause_while_off")
        whole = max(1, math.ceil(span))
        await asyncio.to_thread(self._state.pause, request.scope, whole * 60.0)
        now = self._clock.unix()
        await self._leave_out(request, Silence("", now, now + whole * 60.0))
        until = self._clock.local().timestamp() + whole * 60
        ends = request.caller.now.fromtimestamp(until, request.caller.now.tzinfo)
        return texts(
            "paused_for", span=texts.span(whole), until=texts.date(ends, request.caller.now)
        )

    async def _on(self, request: ChatRequest) -> str:
        was_off = self._state.is_off(request.scope) or self._state.is_paused(request.scope)
        await asyncio.to_thread(self._state.switch, request.scope, on=True)
        for one in self._bindings.memories(request.scope):
            await _written(self._outbox.end_silence(one.chat, self._clock.unix()))
        return request.texts("switched_on" if was_off else "switched_on_already")

    async def _off(self, request: ChatRequest) -> str:
        texts, argument = request.texts, request.argument
        if argument:
            span = minutes(argument)
            words = argument if span and span <= MAX_PAUSE_MINUTES else ""
            key = "off_or_pause" if words else "off_argument"
            return texts(key, words=shorten(neutralise(words), MAX_SHOWN))
        self._sharing.withdraw(request.scope)
        was_on = not self._state.is_off(request.scope)
        await asyncio.to_thread(self._state.switch, request.scope, on=False)
        if was_on:
            await self._leave_out(request, Silence("", self._clock.unix(), math.inf))
        return texts("switched_off")

    async def _leave_out(self, request: ChatRequest, silence: Silence) -> None:
        """Keeps what is said in a time from being imported later."""
        for one in self._bindings.memories(request.scope):
            await _written(self._outbox.leave_out(one.chat, silence))


async def _written(work: Awaitable[None]) -> None:
    """Waits a moment for the disk: no switch depends on the outbox."""
    with contextlib.suppress(*DISK_ERRORS):  # a time-out is one of them
        async with asyncio.timeout(WAIT_SECONDS):
            await work
