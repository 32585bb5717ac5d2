"""What is said in a group that listens, without calling the bot.

Whoever hands a message over waits for nothing: it is put in a buffer, and again and again what has
been there for `HEAR_SECONDS` is read and put on disk in one go. So a kill takes the last second, no
more, and what is heard out of order has found its place by then.

Two accounts of the bot in one group are told of each message once each; what one has heard, the
other has not. A message that calls either of them becomes a turn, and is not heard.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from .clock import Clock
from .events import came_at, is_command, is_from_bot, likeness
from .memory import ChatMemory
from .scope import Scope
from .transcript import Message

HEAR_SECONDS = 0.4
"""Between two flushes, and so long each message waits for one: AstrBot works on events side by
side, so that an older message, or the call that makes a turn of it, may be heard after it. Twice
this is less than a second, the rest of which is for reading and writing on a busy machine."""
READ_AT_ONCE = 5
"""So many messages, of less than half a millisecond each, hold the event loop in one go: on one
that is busy each further turn of it takes long, and what is not on disk yet waits that long."""
MAX_BUFFERED = 5000
"""Of more, which a second does not bring, the oldest are given up."""
LIKENESS_SECONDS = 120.0
"""So long after the first account the second one may hear of a message."""


@dataclass(frozen=True)
class Heard:
    """A message that was heard.

    Attributes:
        event: AstrBot's event.
        scope: Its chat.
        at: When it was said, aware, in the local timezone.
        began: When it was heard, in seconds of the monotonic clock.
        came: When AstrBot was told of it, in Unix seconds.
        likeness: What it has in common with the same message as another account heard it; None
            where the platform tells too little.
    """

    event: Any = field(repr=False)
    scope: Scope
    at: datetime
    began: float
    came: float
    likeness: Hashable = field(repr=False)


class Listening:
    """Collects what is heard.

    Args:
        memory: The recall and retain flow.
        read: Reads a message; None where it is not to be remembered.
        clock: The time.
    """

    def __init__(
        self,
        memory: ChatMemory,
        read: Callable[[Heard], Awaitable[Message | None]],
        clock: Clock,
    ) -> None:
        self._memory = memory
        self._read = read
        self._clock = clock
        self._buffer: deque[Heard] = deque(maxlen=MAX_BUFFERED)
        self._messages: list[Message] = []
        self._accounts: set[str] = set()
        self._times: OrderedDict[Hashable, tuple[float, Counter[str]]] = OrderedDict()
        self._flushing = asyncio.Lock()
        self._wake = asyncio.Event()

    def hear(self, event: Any, scope: Scope, at: datetime, *, is_called: bool) -> None:
        """Takes a message, if it is one to be heard.

        Args:
            event: AstrBot's event.
            scope: Its chat.
            at: When it was said, aware, in the local timezone.
            is_called: It is meant for the bot.
        """
        account = str(event.get_self_id() or "")
        self._accounts.add(account)
        look = likeness(event, scope.chat)
        is_known = look is not None and self._is_known(look, account)
        if is_called and is_known:
            self._unhear(look)
        if is_called or is_known or not self._is_meant_for_all(event):
            return
        now = self._clock.monotonic()
        self._buffer.append(Heard(event, scope, at, now, came_at(event), look))
        self._wake.set()

    async def run(self) -> None:
        """Flushes for ever; ends by cancellation, and leaves what is not flushed."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self._clock.sleep(HEAR_SECONDS)
            await self.flush(until=self._clock.monotonic() - HEAR_SECONDS)
            if self._buffer:
                self._wake.set()

    async def flush(self, *, until: float = math.inf) -> None:
        """Reads what was heard, a few messages at a time, and puts it on disk.

        Args:
            until: Only what was heard by then, in seconds of the monotonic clock.
        """
        async with self._flushing:
            in_order = sorted(self._buffer, key=lambda one: (one.began > until, one.at, one.came))
            self._buffer = deque(in_order, maxlen=MAX_BUFFERED)
            ready = sum(one.began <= until for one in in_order)
            for number in range(1, ready + 1):  # what comes meanwhile is for the next
                if self._buffer and self._buffer[0].began <= until:
                    await self._read_oldest()
                if number % READ_AT_ONCE == 0:
                    await asyncio.sleep(0)
            messages, self._messages = self._messages, []
            await self._memory.hear(messages)

    async def _read_oldest(self) -> None:
        heard = self._buffer.popleft()
        try:
            message = await self._read(heard)
        except asyncio.CancelledError:
            self._buffer.appendleft(heard)
            raise
        if message and not is_noise(message.stored):
            self._messages.append(message)

    def _is_meant_for_all(self, event: Any) -> bool:
        sender = str(event.get_sender_id() or "")
        return not (sender in self._accounts or is_from_bot(event) or is_command(event))

    def _is_known(self, look: Hashable, account: str) -> bool:
        """Whether another account has heard this; the same words said twice are two messages."""
        now = self._clock.monotonic()
        while self._times and next(iter(self._times.values()))[0] < now - LIKENESS_SECONDS:
            self._times.popitem(last=False)
        _, times = self._times.setdefault(look, (now, Counter()))
        before = max(times.values(), default=0)
        times[account] += 1
        return times[account] <= before

    def _unhear(self, look: Hashable) -> None:
        """Takes out what another account has heard of a message that calls this one."""
        for heard in self._buffer:
            if heard.likeness == look:
                self._buffer.remove(heard)
                return


def is_noise(text: str) -> bool:
    """Whether a line says nothing: one character, however often, that is no number; or signs.

    What has a mark in it, such as that of a picture, says something.
    """
    letters = [character for character in text if character.isalnum()]
    return len(letters) < 2 or (len(set(letters)) == 1 and not letters[0].isdecimal())
