"""Turns from the moment they are answered until the disk has them.

A turn waits in memory while the disk refuses or hangs, goes to disk in order once it can, and is
left beside the outbox by an instance that is closed. `erase` of what waits reaches all of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import sqlite3
from collections import deque
from collections.abc import Awaitable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import replace
from logging import Logger
from pathlib import Path
from typing import Any

from .clock import Clock
from .edits import Edit
from .outbox import Outbox
from .outbox_file import NewerFileError
from .transcript import Document, Line, TurnRecord, document_prefix
from .wishes import Edited, Erasure, number_gone

MAX_UNSAVED_TURNS = 1000
ADD_SECONDS = 0.15
"""A reply waits so long for the outbox at most, then for a copy beside it."""
COPY_SECONDS = 0.1
CLOSE_SECONDS = 5.0
"""The same for the end."""
SYNC_SECONDS = 1.0
"""The time after a commit until the disk is asked to have it; the commit itself does not wait."""
LISTENED_IDLE_SECONDS = 600.0
"""Quiet after which the open window of a chat that listens is sealed."""
LATE_SECONDS = 30.0
"""Between two looks for what closed instances have left."""
LOG_EVERY = 100
"""Turns lost between two lines in the log."""

DISK_ERRORS = (sqlite3.Error, OSError)


class Disk:
    """Whether the outbox can be written; one line in the log when it cannot and when it can.

    Args:
        logger: Gets the lines.
    """

    def __init__(self, logger: Logger) -> None:
        self._logger = logger
        self.fault = ""
        self.sync_fault = False

    def failed(self, error: Exception) -> None:
        """Notes a fault; it ends with whatever succeeds."""
        if not self.fault:
            self._logger.error("the outbox cannot be written, what is new waits: %s", error)
        self.fault = "newer_file" if isinstance(error, NewerFileError) else "disk"

    def recovered(self) -> None:
        """Notes that something was written."""
        if self.fault:
            self._logger.info("the outbox can be written again")
        self.fault = ""

    def sync_failed(self, error: Exception) -> None:
        """Notes that what is committed may not survive a power cut."""
        if not self.sync_fault:
            self._logger.error("the disk does not write down what is committed: %s", error)
        self.sync_fault = True


class Intake:
    """Takes turns, and keeps them until the outbox has them.

    Args:
        outbox: The queue.
        idle_seconds: Quiet after which a chat's open window is sealed.
        clock: The time.
        logger: Gets what is lost.
    """

    def __init__(
        self, outbox: Outbox, *, idle_seconds: float, clock: Clock, logger: Logger
    ) -> None:
        self._outbox = outbox
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._logger = logger
        self._unsaved: deque[TurnRecord] = deque()
        self._in_commit: list[TurnRecord] = []
        self._saving = asyncio.Lock()
        self._next_commit: asyncio.Task[None] | None = None
        self._work: set[asyncio.Task[None]] = set()
        self._copies: dict[int, Path] = {}  # by the identity of a turn that is in memory
        self._idle_at: dict[str, float] = {}
        self._must_seal = False
        self._sync_at: float | None = None
        self._late_at = clock.monotonic()
        self._closed = False
        self.disk = Disk(logger)
        self.lost = 0

    @property
    def unsaved(self) -> int:
        """Turns that are in memory only."""
        return len(self._unsaved) + len(self._in_commit)

    @property
    def due(self) -> list[float]:
        """When something is to be done, in monotonic seconds."""
        return [*self._idle_at.values(), *([] if self._sync_at is None else [self._sync_at])]

    async def add(self, turn: TurnRecord) -> None:
        """Puts a turn on disk; one that refuses or hangs gets it later, from memory.

        While it hangs a copy is left beside the outbox, which a kill cannot take.
        """
        if self._closed:
            await self._clock.wait(self._begin(self._leave([turn])), ADD_SECONDS)
            return
        self._unsaved.append(turn)
        self._bound()
        if not await self._clock.wait(self._commit_soon(), ADD_SECONDS):
            self.disk.failed(TimeoutError("the disk does not answer"))
            await self._clock.wait(self._begin(self._copy(turn)), COPY_SECONDS)

    async def add_heard(self, lines: Sequence[TurnRecord]) -> None:
        """Puts what was heard on disk, in one go; what the disk refuses it gets later."""
        if self._closed:
            await self._clock.wait(self._begin(self._leave(lines)), ADD_SECONDS)
            return
        self._unsaved.extend(lines)
        self._bound()
        await self._clock.wait(self._commit_soon(), ADD_SECONDS)

    async def save(self) -> None:
        """Moves turns from memory to disk; a cancelled caller does not leave it half done."""
        await asyncio.shield(self._commit_soon())

    def seal_all(self) -> None:
        """Has every open window sealed, as soon as the disk takes it."""
        self._must_seal = True

    def seal_chat(self, chat: str) -> None:
        """Has a chat's open window sealed at once, as if it had been quiet for long."""
        for document_id in self._idle_at:
            if document_id.startswith(document_prefix(chat)):
                self._idle_at[document_id] = -math.inf

    async def seal(self) -> None:
        """Seals the windows that were quiet for long, or all."""
        now = self._clock.monotonic()
        due = [one for one, at in self._idle_at.items() if self._must_seal or at <= now]
        if due or self._must_seal:
            await self.on_disk(self._outbox.seal(None if self._must_seal else due))
            self._must_seal = False
            for document_id in due:
                self._idle_at.pop(document_id, None)

    async def take_in(self) -> None:
        """Looks now and then for what closed instances have left."""
        if self._clock.monotonic() >= self._late_at:
            await self._outbox.take_in_files()
            self._late_at = self._clock.monotonic() + LATE_SECONDS

    async def sync(self) -> None:
        """Has the disk write down what was committed a second ago."""
        if self._sync_at is None or self._sync_at > self._clock.monotonic():
            return
        self._sync_at = None  # what is committed meanwhile is due a second later
        try:
            await self._outbox.sync()
        except DISK_ERRORS as error:
            self.disk.sync_failed(error)
            self._sync_at = self._clock.monotonic() + SYNC_SECONDS
        else:
            self.disk.sync_fault = False

    async def on_disk[Result](self, action: Awaitable[Result]) -> Result:
        """Awaits something that is written, and notes how that went.

        A success ends a fault only once no turn waits for the disk: a full one takes some things.

        Raises:
            sqlite3.Error, OSError: The disk failed.
        """
        try:
            result = await action
        except DISK_ERRORS as error:
            self.disk.failed(error)
            raise
        if not self.unsaved:
            self.disk.recovered()
        return result

    async def drop_chat(self, erasure: Erasure) -> int:
        """Drops all of a chat that waits, in memory too; see `Outbox.drop_chat`."""
        async with self._saving:
            kept = [turn for turn in self._unsaved if turn.chat != erasure.chat]
            dropped = len(self._unsaved) - len(kept)
            await self._keep(kept)
            await self._outbox.take_in_files()
            return dropped + await self._outbox.drop_chat(erasure)

    async def edit_chat(
        self, erasure: Erasure, edit: Edit, documents: Sequence[Document] = ()
    ) -> Edited:
        """Edits all of a chat that waits, in memory too; see `Outbox.edit_chat`."""
        async with self._saving:
            kept = list(_edited(self._unsaved, erasure.chat, edit))
            gone = number_gone(_lines(self._unsaved), _lines(kept))
            await self._keep(kept)
            await self._outbox.take_in_files()
            edited = await self._outbox.edit_chat(erasure, edit, documents)
            return replace(edited, waiting=edited.waiting + gone)

    async def withdraw(self, erasure: Erasure, message: str, at: float) -> None:
        """Takes a withdrawn message out of what waits; what is in memory only is not taken in.

        See `Outbox.withdraw`.
        """
        async with self._saving:
            await self._outbox.take_in_files()
            await self._outbox.withdraw(erasure, message, at=at)

    async def waiting(self, chat: str) -> list[Document]:
        """All of a chat that waits, in order; what is in memory only has no document id yet."""
        async with self._saving:
            unsaved = [Document("", t.header, t.lines) for t in self._unsaved if t.chat == chat]
            await self._outbox.take_in_files()
            windows = await self._outbox.windows_of(chat)
        return [*(window.document for window in windows), *unsaved]

    async def aclose(self) -> None:
        """Leaves what could not be saved beside the outbox; what comes later goes there too."""
        self._closed = True
        if self._work:
            await self._clock.wait(
                asyncio.gather(*self._work, return_exceptions=True), CLOSE_SECONDS
            )
        left = [turn for turn in self._unsaved if id(turn) not in self._copies]
        self._unsaved.clear()
        if left and not await self._clock.wait(self._begin(self._leave(left)), CLOSE_SECONDS):
            self._count_lost(len(left))
        if self._in_commit:
            self._logger.error("%d turns were not on disk at the end", len(self._in_commit))

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return task

    def _commit_soon(self) -> asyncio.Task[None]:
        """The commit that will take what is in memory now; it goes on whoever waits for it."""
        if self._next_commit is None:
            self._next_commit = self._begin(self._commit())
        return self._next_commit

    async def _commit(self) -> None:
        """Commits what is in memory, in order; turns that come meanwhile share the next one."""
        async with self._saving:
            self._next_commit = None
            self._in_commit = list(self._unsaved)
            self._unsaved.clear()
            try:
                await self._write(self._in_commit)
            finally:
                self._unsaved.extendleft(reversed(self._in_commit))
                self._in_commit = []
                self._bound()

    async def _write(self, turns: list[TurnRecord]) -> None:
        """Writes turns, which it takes out of the list once they are safe."""
        if not turns:
            return
        try:
            places = await self._outbox.add(turns)
        except NewerFileError as error:
            self.disk.failed(error)
            with contextlib.suppress(OSError):
                await self._outbox.leave(turns)
                await self._drop_copies(turns)
                turns.clear()
            return
        except DISK_ERRORS as error:
            self.disk.failed(error)
            return
        with contextlib.suppress(OSError):
            await self._drop_copies(turns)
        turns.clear()
        self.disk.recovered()
        now = self._clock.monotonic()
        if self._sync_at is None:
            self._sync_at = now + SYNC_SECONDS
        for place in places:
            self._idle_at.pop(place.document_id, None)
            if not place.sealed:
                seconds = LISTENED_IDLE_SECONDS if place.is_listened else self._idle_seconds
                self._idle_at[place.document_id] = now + seconds

    async def _keep(self, kept: Sequence[TurnRecord]) -> None:
        """Keeps these turns in memory, in the place of all that was there."""
        before, self._unsaved = self._unsaved, deque(kept)
        stay = {id(turn) for turn in kept}
        await self._drop_copies([turn for turn in before if id(turn) not in stay])

    async def _copy(self, turn: TurnRecord) -> None:
        """Keeps a turn that is not on disk yet from being lost by a kill."""
        with contextlib.suppress(OSError):  # then memory alone has it
            self._copies[id(turn)] = await self._outbox.copy(turn)
            if not any(one is turn for one in (*self._unsaved, *self._in_commit)):
                await self._drop_copies([turn])

    async def _drop_copies(self, turns: Iterable[TurnRecord]) -> None:
        """Deletes the copies of turns that are safe, or are to change."""
        if self._copies:
            found = [self._copies.pop(id(turn), None) for turn in turns]
            await self._outbox.drop_copies([path for path in found if path])

    async def _leave(self, turns: Sequence[TurnRecord]) -> None:
        """Leaves turns for the next instance."""
        try:
            await self._outbox.leave(turns)
        except OSError as error:
            self.disk.failed(error)
            self._count_lost(len(turns))

    def _bound(self) -> None:
        while self._unsaved and self.unsaved > MAX_UNSAVED_TURNS:
            if heard := next((one for one in self._unsaved if one.is_heard), None):
                self._unsaved.remove(heard)
                self._count_lost(1)
            elif self._copies.pop(id(self._unsaved.popleft()), None) is None:
                self._count_lost(1)  # of others the next instance finds the copy

    def _count_lost(self, number: int) -> None:
        before, self.lost = self.lost, self.lost + number
        if before == 0 or before // LOG_EVERY < self.lost // LOG_EVERY:
            self._logger.error("lost turns that neither disk nor memory took: %d", self.lost)


def _lines(turns: Iterable[TurnRecord]) -> list[Line]:
    return [line for turn in turns for line in turn.lines]


def _edited(turns: Iterable[TurnRecord], chat: str, edit: Edit) -> Iterator[TurnRecord]:
    """The same turns, those of a chat with the lines that stay, if any do."""
    for turn in turns:
        lines = tuple(edit(turn.lines)) if turn.chat == chat else turn.lines
        if lines:
            yield turn if lines == turn.lines else replace(turn, lines=lines)
