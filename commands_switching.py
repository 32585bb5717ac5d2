"""Commands that say from whom and for how long nothing is remembered."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from .bindings import Bindings
from .command_types import ALL_WORDS, ChatRequest, Command, whole_number
from .hindsight_types import HindsightError
from .memory import ChatMemory
from .scope import ScopeState
from .sharing import Sharing

MAX_PAUSE_MINUTES = 7 * 24 * 60


class Switching:
    """Switches of a chat and of a person.

    Args:
        memory: The recall and retain flow.
        state: Where the switches are.
        bindings: Knows all memories of a chat.
        sharing: Ends with the memory of a private chat.
    """

    def __init__(
        self, memory: ChatMemory, state: ScopeState, bindings: Bindings, sharing: Sharing
    ) -> None:
        self._sharing = sharing
        self._memory = memory
        self._state = state
        self._bindings = bindings

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
            Command("off", "关闭", self._off, rights="managers"),
        )

    async def _optout(self, request: ChatRequest) -> str:
        texts, argument = request.texts, request.argument.lower()
        everywhere = argument in ALL_WORDS
        if argument and not everywhere:
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
        await self._opt(request, out=False, everywhere=False)
        return request.texts("opted_in")

    async def _opt(self, request: ChatRequest, *, out: bool, everywhere: bool) -> None:
        person = request.caller.person_id
        self._sharing.withdraw(request.scope)
        await asyncio.to_thread(
            self._state.opt, request.scope, person, out=out, everywhere=everywhere
        )

    async def _pause(self, request: ChatRequest) -> str:
        minutes = whole_number(request.argument) or 0
        if not 0 < minutes <= MAX_PAUSE_MINUTES:
            return request.texts("pause_usage", number=MAX_PAUSE_MINUTES)
        await asyncio.to_thread(self._state.pause, request.scope, minutes * 60.0)
        return request.texts("paused_for", number=minutes)

    async def _on(self, request: ChatRequest) -> str:
        await asyncio.to_thread(self._state.switch, request.scope, on=True)
        return request.texts("switched_on")

    async def _off(self, request: ChatRequest) -> str:
        self._sharing.withdraw(request.scope)
        await asyncio.to_thread(self._state.switch, request.scope, on=False)
        return request.texts("switched_off")
