"""Commands that change what is stored."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .clock import Clock
from .command_types import ChatRequest, Command, Free, PersonKey
from .confirmations import Confirmations, confirm
from .delivery import Delivery
from .forgetting import Forgetting, still_to_do
from .hindsight_types import AccessRefusedError, RetryLaterError
from .memory import ChatMemory
from .numbered import LIST_CHARS, NumberedLists
from .scope import Scope, ScopeState

MAX_REMEMBERED = 5
"""So many of the memories made of one sentence are shown."""


class Correcting:
    """Remembers and forgets.

    Args:
        memory: The recall and retain flow.
        state: Salt and switches.
        delivery: Takes what cannot be stored at once.
        lists: Which number means which memory.
        clock: The time.
        members_may_manage: A setting.
    """

    def __init__(
        self,
        memory: ChatMemory,
        state: ScopeState,
        delivery: Delivery,
        lists: NumberedLists,
        clock: Clock,
        *,
        members_may_manage: bool,
    ) -> None:
        self._memory = memory
        self._state = state
        self._delivery = delivery
        self._lists = lists
        self._forgetting = Forgetting(memory, lists, members_may_manage=members_may_manage)
        self._forgetme_codes = Confirmations[PersonKey, str](clock)
        self._wipe_codes = Confirmations[PersonKey, str](clock)

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
            request.scope, texts, caller.speaker, request.argument, caller.now
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

    async def _forgetme(self, request: ChatRequest) -> str:
        pseudonym = request.caller.speaker.pseudonym
        if question := confirm(request, self._forgetme_codes, "forgetme", pseudonym):
            return Free(question)
        removed = await request.stored.eraser.remove_person(request.scope, pseudonym)
        self._forgotten(request.scope)
        number = removed.lines + removed.waiting
        said = [request.texts("removed" if number else "removed_nothing", number=number)]
        if removed.failure and not number:
            said = []
        return "\n".join([*said, *still_to_do(request.texts, removed)])

    async def _wipe(self, request: ChatRequest) -> str:
        if question := confirm(request, self._wipe_codes, "wipe", request.scope.chat):
            return Free(question)
        self._forgotten(request.scope)
        try:
            removed = await request.stored.eraser.wipe(request.scope)
        finally:
            self._forgotten(request.scope)  # also what was recalled meanwhile
        said = [request.texts("wiped")] if removed.is_done else []
        return "\n".join([*said, *still_to_do(request.texts, removed)])

    def _forgotten(self, scope: Scope) -> None:
        """Drops what the plugin still holds of a chat in memory."""
        self._memory.forget_chat(scope)
        self._lists.forget_chat(scope.chat)
