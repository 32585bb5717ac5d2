"""Turns on disk until Hindsight has them, and the wishes to erase until they are done.

Here is what the rest of the plugin may ask of the outbox's file, each a transaction; what its
tables hold is in `windows`, `wishes`, `withdrawn`, `batches` and `counters`.
"""

from __future__ import annotations

import asyncio
import functools
import sqlite3
import uuid
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Concatenate

from . import batches, counters, edits, windows, wishes, withdrawn
from .batches import Batch
from .late import LateTurn, late_files, new_late_path, read_late, write_late
from .outbox_file import DATABASE_FILE, Connect, connect, sync_log
from .outbox_thread import Transactions
from .transcript import Document, TurnRecord, group_turns
from .windows import Window

MAX_WINDOWS = 200_000
"""Sealed windows and those set aside beyond this number push the oldest out."""
UNREADABLE = "unreadable"
"""Why a window is set aside of which the file holds no sense."""


@dataclass(frozen=True)
class Added:
    """Where a turn went.

    Attributes:
        document_id: Its window's.
        sealed: Whether that window is now ready to be sent.
        is_listened: Whether its chat listens.
    """

    document_id: str
    sealed: bool
    is_listened: bool = False


@dataclass(frozen=True)
class OutboxFigures:
    """What status shows.

    Attributes:
        open_turns: Turns in windows that are not sealed yet.
        waiting: Sealed windows.
        importing: Windows of imports, which wait behind them.
        aside: Reasons of the windows that cannot be sent, with numbers.
        sent: Windows delivered, ever.
        sent_chars: Characters delivered, ever.
        sent_chars_today: Characters delivered on the day asked for.
        dropped: Windows given up for age or number, ever.
        withdrawn: Messages that were withdrawn and therefore taken out, ever.
        moved_aside: Name of the corrupt database that this run replaced, or empty.
    """

    open_turns: int = 0
    waiting: int = 0
    importing: int = 0
    aside: dict[str, int] = field(default_factory=dict)
    sent: int = 0
    sent_chars: int = 0
    sent_chars_today: int = 0
    dropped: int = 0
    withdrawn: int = 0
    moved_aside: str = ""


def _transaction[**Given, Result](
    method: Callable[Concatenate[Outbox, sqlite3.Connection, Given], Result],
) -> Callable[Concatenate[Outbox, Given], Coroutine[Any, Any, Result]]:
    """Makes a method one transaction on the outbox's thread: all of it happens, or nothing."""

    @functools.wraps(method)
    async def run(self: Outbox, /, *args: Given.args, **named: Given.kwargs) -> Result:
        return await self._transactions.run(lambda db: method(self, db, *args, **named))

    return run


def _part[**Given, Result](
    function: Callable[Concatenate[sqlite3.Connection, Given], Result],
) -> Callable[Concatenate[Outbox, Given], Coroutine[Any, Any, Result]]:
    """Makes a transaction of a function that leaves the number of windows as it is."""

    @functools.wraps(function)
    def run(
        _: Outbox, db: sqlite3.Connection, /, *args: Given.args, **named: Given.kwargs
    ) -> Result:
        return function(db, *args, **named)

    return _transaction(run)


def _edit[**Given, Result](
    function: Callable[Concatenate[sqlite3.Connection, Given], Result],
) -> Callable[Concatenate[Outbox, Given], Coroutine[Any, Any, Result]]:
    """Makes a transaction of a function that drops windows, or adds some."""

    def run(
        self: Outbox, db: sqlite3.Connection, /, *args: Given.args, **named: Given.kwargs
    ) -> Result:
        result = function(db, *args, **named)
        self._count(db)
        self._drop_surplus(db)
        return result

    return _transaction(run)


class Outbox:
    """The durable queue.

    Every method raises `sqlite3.Error` or `OSError` where the disk does not do what it should
    (full, read-only), and has then changed nothing. A corrupt database is moved aside and
    replaced by an empty one; that of a later version is refused (`NewerFileError`).

    Args:
        folder: AstrBot's data directory of the plugin.
        every_n_turns: Turns that fill a window.
        connect: The seam for tests that need a failing disk.
        sync: The same for the wait until the disk has everything.
        now: Seconds that never jump.
    """

    def __init__(
        self,
        folder: Path,
        *,
        every_n_turns: int,
        now: Callable[[], float],
        connect: Connect = connect,
        sync: Callable[[Path], None] = sync_log,
    ) -> None:
        self._folder = folder
        self._every_n_turns = every_n_turns
        self._now = now
        self._transactions = Transactions(
            folder / DATABASE_FILE, self._begin, connect=connect, sync=sync
        )
        self._waiting = 0
        self._aside = 0
        self._taken: set[Path] = set()

    # --- The queue ----------------------------------------------------------------------------

    @_transaction
    def add(self, db: sqlite3.Connection, turns: Sequence[TurnRecord]) -> list[Added]:
        """Commits turns, each to its chat's open window, but those that are erased already."""
        stand = (_as_wished(db, turn) for turn in turns)
        return [self._add(db, turn) for turn in stand if turn]

    @_transaction
    def seal(self, db: sqlite3.Connection, document_ids: Collection[str] | None = None) -> None:
        """Makes open windows ready to be sent: these, or all."""
        self._count_sealed(db, windows.seal(db, document_ids))

    @_transaction
    def queue(self, db: sqlite3.Connection, turn: TurnRecord) -> Window | None:
        """Puts a turn in the queue as a window of its own; None where it is erased already."""
        stands = _as_wished(db, turn)
        if stands is None:
            return None
        document_id = windows.insert(db, "sealed", turn.chat, turn.header, [stands.lines])
        self._count_sealed(db, 1)
        withdrawn.note(db, stands, document_id)
        return windows.find(db, document_id)

    @_transaction
    def queue_again(self, db: sqlite3.Connection, chat: str, document: Document) -> bool:
        """Queues a document that was sent, under its own id and another operation id.

        Returns:
            False where it waits already, or something of it is to be erased.
        """
        pending = wishes.pending_of(db, chat)
        document_id = document.document_id
        if windows.has(db, document_id) or (pending and pending.concerns(document_id)):
            return False
        ids = document_id, str(uuid.uuid4())
        windows.insert(db, "sealed", chat, document.header, group_turns(document.lines), ids)
        self._count_sealed(db, 1)
        return True

    @_transaction
    def take_in_late(self, db: sqlite3.Connection, late: Sequence[LateTurn]) -> None:
        """Makes sealed windows of turns, those left out that are there already.

        They may have been taken in before, or be those which their file is a copy of.
        """
        for one in late:
            is_there = windows.has(db, one.document_id) or windows.has_turn(db, one.turn)
            if not is_there and (turn := _as_wished(db, one.turn)):
                ids = one.document_id, one.operation_id
                windows.insert(db, "sealed", turn.chat, turn.header, [turn.lines], ids)
                self._count_sealed(db, 1)
                withdrawn.note(db, turn, one.document_id)

    @_transaction
    def add_batch(self, db: sqlite3.Connection, batch: Batch) -> int:
        """Puts an import in the queue, behind all else; returns how many windows there are.

        What is erased meanwhile, or was brought already, is left out.
        """
        new = batches.new_windows(db, batch)
        for window in new:
            # A new operation each time: the server runs one only once, whatever became of it.
            ids = (window.document_id, str(uuid.uuid4()))
            turns = [turn.lines for turn in window.turns]
            windows.insert(db, "import", batch.chat, window.header, turns, ids)
        self._count_sealed(db, len(new))
        if new:
            batches.note_batch(db, batch.chat, new)
        return len(new)

    async def next_window(
        self, *, excluding: Collection[str] = (), skipping: Collection[str] = ()
    ) -> Window | None:
        """The oldest sealed window that may be sent; those of a chat that is erased may not.

        Args:
            excluding: Hashes of chats.
            skipping: Document ids of windows.
        """
        if self._transactions.is_open and not self._waiting:
            return None  # known without a trip to the thread, and asked after every turn
        return await self._next_window(excluding, skipping)

    @_transaction
    def delivered(self, db: sqlite3.Connection, window: Window, *, day: str) -> int:
        """Forgets a window that Hindsight has, and counts it.

        Args:
            db: The database.
            window: What was sent.
            day: The local date, for the daily figure.

        Returns:
            Characters delivered on that day.
        """
        if self._take_out(db, window):
            turns, chars = len(window.turns), window.chars
            counters.count_delivery(db, turns=turns, chars=chars, day=day)
        return counters.sent_chars(db, day=day)

    @_transaction
    def take_back(self, db: sqlite3.Connection, window: Window) -> None:
        """Takes a window out of the queue that the server will never have."""
        self._take_out(db, window)

    @_transaction
    def set_aside(self, db: sqlite3.Connection, window: Window, reason: str) -> None:
        """Keeps a window that cannot be sent, with the reason, out of delivery."""
        for row_id in windows.sealed_rows(db, window.document_id):
            self._set_aside(db, row_id, reason)

    @_transaction
    def retry_aside(self, db: sqlite3.Connection) -> int:
        """Puts the windows that were set aside back, as young as new ones; returns how many."""
        number = windows.retry_aside(db)
        self._aside -= number
        self._count_sealed(db, number)
        return number

    renew_operation = _part(windows.renew_operation)
    """Gives a window another operation id, where nothing would be run under its own."""

    @_transaction
    def windows_of(self, db: sqlite3.Connection, chat: str) -> list[Window]:
        """All windows of a chat that wait, in order, as far as they can be read."""
        return [window for _, _, window in windows.of_chat(db, chat) if window]

    @_transaction
    def age(self, db: sqlite3.Connection, seconds: float, *, limit: float) -> int:
        """Lets the waiting windows grow older and drops those beyond the limit.

        Age is time during which the plugin ran, so a clock that jumps drops nothing.

        Args:
            db: The database.
            seconds: Running time since the last call.
            limit: Age in seconds at which a window is given up.

        Returns:
            How many were dropped.
        """
        counters.count_up(db, "uptime", seconds)
        number = windows.drop_older(db, counters.value(db, "uptime") - limit)
        self._waiting -= number
        if number:
            counters.count_up(db, "dropped", number)
        return number

    # --- What must vanish ---------------------------------------------------------------------

    wish = _part(wishes.note)
    """Notes what must vanish."""
    note_documents = _part(wishes.note_documents)
    """Adds documents to an erasure."""
    cut_off = _part(wishes.cut_off)
    """Keeps what a person has begun to say before from being stored."""
    end_wish = _part(wishes.end_wish)
    """Lets a chat be sent again; documents that were noted are still to go."""
    end_erasure = _part(wishes.end)
    """Forgets documents that have vanished for good."""
    erasures = _part(wishes.pending)
    """Erasures that are not complete."""
    held = _part(wishes.held)
    """The erasure that keeps a chat from being sent, if there is one."""
    drop_chat = _edit(edits.drop_chat)
    """Drops all windows of a chat, and notes what must vanish with what may have been sent."""
    edit_chat = _edit(edits.edit_chat)
    """Edits the lines of all waiting windows of a chat, and of documents that are stored."""
    replace_documents = _edit(edits.replace_documents)
    """Notes stored documents for erasure, and queues what stays of each as a new one."""
    withdraw = _edit(edits.withdraw)
    """Takes the lines of a message, and the answer to it, out of what waits."""
    forget_messages = _part(withdrawn.forget_old)
    """Forgets which lines messages became that nobody can withdraw any more."""

    # --- Imports ------------------------------------------------------------------------------

    import_facts = _part(batches.facts)
    """What is known of a chat's imports."""
    import_progress = _part(batches.progress)
    """How far a chat's latest import is, or those of which their chats are not yet told."""
    set_import_phase = _part(batches.set_phase)
    """Notes how far an import is."""
    end_import = _edit(edits.end_import)
    """Drops what waits of an import and, where it is undone, notes its documents for erasure."""
    leave_out = _part(batches.leave_out)
    """Keeps a time from being imported."""
    end_silence = _part(batches.end_silence)
    """Ends a time that must not be imported, and whose end was not known."""

    # --- Figures ------------------------------------------------------------------------------

    sent_chars = _part(counters.sent_chars)
    """Characters delivered on a local date."""
    saved_calls = _part(counters.saved_calls)
    """How many times less the server had to extract, as turns went together; ever."""

    @_transaction
    def figures(self, db: sqlite3.Connection, *, day: str) -> OutboxFigures:
        """The numbers for status; `day` is the local date."""
        importing = windows.count_importing(db)
        return OutboxFigures(
            open_turns=windows.count_open_turns(db),
            waiting=self._waiting - importing,
            importing=importing,
            aside=windows.count_aside(db),
            sent=int(counters.value(db, "sent")),
            sent_chars=int(counters.value(db, "sent_chars")),
            sent_chars_today=counters.sent_chars(db, day=day),
            dropped=int(counters.value(db, "dropped")),
            withdrawn=int(counters.value(db, "withdrawn")),
            moved_aside=self._transactions.moved_aside,
        )

    # --- Files beside the database, see `late` ------------------------------------------------

    async def take_in_files(self) -> None:
        """Takes in what closed instances have left beside the file; see `late`."""
        for path in await asyncio.to_thread(late_files, self._folder):
            if path in self._taken:
                continue
            try:
                late = await asyncio.to_thread(read_late, path)
            except FileNotFoundError:  # another instance has taken it in
                continue
            except ValueError:
                path.replace(path.with_suffix(".unreadable"))
                continue
            await self.take_in_late(late)
            self._taken.add(path)  # if it cannot be deleted, it must not come again and again
            await asyncio.to_thread(path.unlink, missing_ok=True)

    async def leave(self, turns: Sequence[TurnRecord]) -> None:
        """Keeps turns beside the file, for whichever instance runs; also when this is closed.

        Raises:
            OSError: The folder cannot be written to.
        """
        await asyncio.to_thread(write_late, new_late_path(self._folder), turns)

    async def copy(self, turn: TurnRecord) -> Path:
        """Keeps a turn beside the file that is on its way into it, in case the process is killed.

        Returns:
            The copy, which the next instance takes in unless `drop_copies` comes before.

        Raises:
            OSError: The folder cannot be written to.
        """
        path = new_late_path(self._folder)
        self._taken.add(path)
        await asyncio.to_thread(write_late, path, [turn], in_haste=True)
        return path

    async def drop_copies(self, paths: Collection[Path]) -> None:
        """Deletes copies of what is on disk now.

        Raises:
            OSError: The folder cannot be written to.
        """
        await asyncio.to_thread(_delete, paths)
        self._taken -= set(paths)

    # --- The file -----------------------------------------------------------------------------

    async def sync(self) -> None:
        """Waits until a power cut cannot take back what is committed; keeps no commit waiting."""
        await self._transactions.sync()

    async def aclose(self) -> None:
        """Closes the files and ends the threads; a second call does nothing."""
        await self._transactions.aclose()

    def _begin(self, db: sqlite3.Connection) -> None:
        """Reads what must be known of a file that was just opened."""
        wishes.forget_earlier_boots(db, self._now())
        self._count(db)

    def _add(self, db: sqlite3.Connection, turn: TurnRecord) -> Added:
        document_id = windows.add_turn(db, turn)
        withdrawn.note(db, turn, document_id)
        sealed = turn.urgent or windows.is_full(
            db, document_id, every_n_turns=self._every_n_turns, is_listened=turn.is_listened
        )
        if sealed:
            self._count_sealed(db, windows.seal(db, [document_id]))
        return Added(document_id, sealed, turn.is_listened)

    @_transaction
    def _next_window(
        self, db: sqlite3.Connection, excluding: Collection[str], skipping: Collection[str]
    ) -> Window | None:
        while found := windows.next_row(db, excluding, skipping):
            row_id, window = found
            if window:
                return window
            self._set_aside(db, row_id, UNREADABLE)
        return None

    def _take_out(self, db: sqlite3.Connection, window: Window) -> bool:
        """Takes a sealed window out of the queue; False where there is none of its id."""
        number = windows.take_out(db, window.document_id)
        self._waiting -= number
        return bool(number)

    def _set_aside(self, db: sqlite3.Connection, row_id: int, reason: str) -> None:
        windows.set_aside(db, row_id, reason)
        self._waiting -= 1
        self._aside += 1

    def _count(self, db: sqlite3.Connection) -> None:
        """Counts what waits and what is set aside."""
        self._waiting, self._aside = windows.count(db)

    def _count_sealed(self, db: sqlite3.Connection, number: int) -> None:
        """Counts newly sealed windows."""
        self._waiting += number
        self._drop_surplus(db)

    def _drop_surplus(self, db: sqlite3.Connection) -> None:
        """Drops the oldest windows beyond the bound."""
        if (surplus := self._waiting + self._aside - MAX_WINDOWS) > 0:
            windows.drop_oldest(db, surplus)
            self._count(db)
            counters.count_up(db, "dropped", surplus)


def outbox_exists(folder: Path) -> bool:
    """Whether an earlier run left an outbox in this folder."""
    return (folder / DATABASE_FILE).exists()


def _as_wished(db: sqlite3.Connection, turn: TurnRecord) -> TurnRecord | None:
    """A turn as it may be stored; None where nothing of it may."""
    if wishes.is_cut_off(db, turn):
        return None
    if withdrawn.is_withdrawn(db, turn.lines):
        counters.count_up(db, "withdrawn", 1)
    lines = withdrawn.as_it_stands(db, turn)
    if lines == turn.lines:
        return turn
    return replace(turn, lines=lines) if lines else None


def _delete(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
