"""The command by which a group lets the bot listen."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from .command_types import ChatRequest, Command
from .memory import ChatMemory
from .scope import ScopeState, Skip
from .status import Status

_ON = {"on", "开", "开启"}
_OFF = {"off", "关", "关闭"}


class ListeningSwitch:
    """Switches listening on and off in a group.

    Args:
        memory: Tells whether the group has memory.
        state: Where the switches are.
        status: Says why there is no memory.
    """

    def __init__(self, memory: ChatMemory, state: ScopeState, status: Status) -> None:
        self._memory = memory
        self._state = state
        self._status = status

    @property
    def commands(self) -> Sequence[Command]:
        """Rows of the table."""
        return (Command("listen", "旁听", self._listen, has_argument=True, rights="managers"),)

    async def _listen(self, request: ChatRequest) -> str:
        texts, scope, word = request.texts, request.scope, request.argument.lower()
        if scope.kind != "group":
            return texts("listen_groups_only")
        if word in _ON and request.caller.has_own_session:
            return texts("listen_isolated")  # it would hear whoever typed this, and nobody else
        listens = self._state.listens(scope)
        if word in _ON and listens:
            return texts("listen_is_on")
        if word in _ON:
            return await self._begin(request)
        if word in _OFF:
            await asyncio.to_thread(self._state.listen, scope, on=False)
            return texts("listen_off")
        return texts("listen_usage", switch=texts("on" if listens else "off"))

    async def _begin(self, request: ChatRequest) -> str:
        """Says in the group what it means, which is said here and nowhere else."""
        texts, scope = request.texts, request.scope
        await asyncio.to_thread(self._state.listen, scope, on=True)
        told = texts("listen_on")
        if isinstance(self._memory.admit(scope), Skip):
            return f"{told}\n{self._status.no_memory(scope, texts)}"
        return told
