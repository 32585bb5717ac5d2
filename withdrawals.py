"""Messages that were withdrawn: taken out of every memory of their chat."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from .bindings import Bindings
from .clock import Clock
from .erasure import Eraser
from .intake import DISK_ERRORS
from .memory import ChatMemory
from .scope import Origin, ScopeState, Skip

WITHDRAW_TRIES = 600
WITHDRAW_PAUSE_SECONDS = 1.0
"""Between two tries while the disk fails."""


class Withdrawals:
    """Forgets messages.

    Args:
        bindings: Which memories a chat has.
        state: Has the salt.
        memory: Keeps what was just said.
        eraser: Takes out what is stored; None without a server or a salt.
    """

    def __init__(
        self, bindings: Bindings, state: ScopeState, memory: ChatMemory, eraser: Eraser | None
    ) -> None:
        self._bindings = bindings
        self._state = state
        self._memory = memory
        self._eraser = eraser

    async def withdraw(self, origin: Origin, message_id: str) -> None:
        """Takes a message, and the answer to it, out of all memories of its chat.

        Raises:
            sqlite3.Error, OSError: The disk failed.
        """
        scope, hasher = self._bindings.resolve(origin), self._state.hasher
        if hasher is None or isinstance(scope, Skip):
            return
        message = hasher.message(origin, message_id)
        for memory in self._bindings.memories(scope):
            self._memory.forget_chat(memory)
            if self._eraser:
                await self._eraser.withdraw(memory, message)


async def until_taken(take: Callable[[], Awaitable[None]], clock: Clock) -> bool:
    """Does what the disk must take again and again, for some minutes, until it does.

    Returns:
        Whether it did.
    """
    for _ in range(WITHDRAW_TRIES):
        try:
            await take()
        except DISK_ERRORS:
            await clock.sleep(WITHDRAW_PAUSE_SECONDS)
        else:
            return True
    return False
