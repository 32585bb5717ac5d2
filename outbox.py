"""Turns on disk until Hindsight has them, and the wishes to erase until they are done.

A *window* is a run of turns of one chat that becomes one document. It is `open` while turns are
added, `sealed` when it is to be sent, `import` when it is to be sent behind all that are sealed,
and `aside` when it cannot be sent. Its document id and
operation id are fixed when the window is made, before anything is sent, so that sending it again
is harmless: delivery is at least once, the effect exactly once. Windows are addressed by their
document id, so that an answer about one of a damaged file reaches none of the file after it.

SQLite calls block, so all of them run on one thread of the outbox's own.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import sqlite3
import time
import uuid
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Concatenate

from . import batches, wishes, withdrawn
from .batches import Batch, ImportFacts, Phase, Progress, Silence
from .hindsight_types import RetainItem
from .late import LateTurn, late_files, new_late_path, read_late, write_late
from .outbox_file import (
    DATABASE_FILE,
    Connect,
    connect,
    is_corrupt,
    move_aside,
    prepare,
    sync_log,
)
from .transcript import (
    Document,
    Header,
    Line,
    TurnLines,
    TurnRecord,
    build_item,
    count_chars,
    group_turns,
    in_order,
    new_document_id,
)
from .wishes import Edited, Erasure, number_gone

Edit = Callable[[Sequence[Line]], list[Line]]

MAX_WINDOW_CHARS = 6000
"""A window is sealed at this size; Hindsight extracts facts from chunks of 3000 characters."""
LISTENED_LINES = 30
"""A window of a chat that listens is sealed at so many lines, whoever said them."""
MAX_WINDOWS = 200_000
"""Sealed windows and those set aside beyond this number push the oldest out."""

UNREADABLE = "unreadable"
"""Why a window is set aside of which the file holds no sense."""

_SELECT_WINDOW = "SELECT id, chat, document_id, operation_id, header, chars FROM windows"


@dataclass(frozen=True)
class Window:
    """A window that is to be sent.

    Attributes:
        chat: The chat's hash.
        document_id: Unique for ever.
        operation_id: Makes a repeated request harmless.
        header: See `TurnRecord`.
        turns: The lines of each turn.
        chars: Characters of all lines.
    """

    chat: str
    document_id: str
    operation_id: str
    header: Header
    turns: tuple[TurnLines, ...]
    chars: int

    @property
    def item(self) -> RetainItem:
        """Its document as it is sent, the same each time it is built."""
        return build_item(self.document_id, self.header, self.turns)

    @property
    def document(self) -> Document:
        """Its document as it is read."""
        lines = tuple(line for turn in self.turns for line in turn)
        return Document(self.document_id, self.header, lines)


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
        return await self._run(lambda db: method(self, db, *args, **named))

    return run


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
        connect: Connect = connect,
        sync: Callable[[Path], None] = sync_log,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._path = folder / DATABASE_FILE
        self._every_n_turns = every_n_turns
        self._connect = connect
        self._now = now
        self._sync = sync
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hindsight-outbox")
        self._disk_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hindsight-disk")
        self._connection: sqlite3.Connection | None = None
        self._waiting = 0
        self._aside = 0
        self._taken: set[Path] = set()
        self._moved_aside = ""
        self._closed = False

    @_transaction
    def add(self, db: sqlite3.Connection, turns: Sequence[TurnRecord]) -> list[Added]:
        """Commits turns, each to its chat's open window, but those that are erased already."""
        stand = (self._as_wished(db, turn) for turn in turns)
        return [self._add(db, turn) for turn in stand if turn]

    @_transaction
    def seal(self, db: sqlite3.Connection, document_ids: Collection[str] | None = None) -> None:
        """Makes open windows ready to be sent: these, or all."""
        sealed = "UPDATE windows SET state = 'sealed' WHERE state = 'open'"
        if document_ids is None:
            number = db.execute(sealed).rowcount
        else:
            these = f"{sealed} AND document_id = ?"
            number = sum(db.execute(these, (one,)).rowcount for one in document_ids)
        self._count_sealed(db, number)

    async def next_window(
        self, *, excluding: Collection[str] = (), skipping: Collection[str] = ()
    ) -> Window | None:
        """The oldest sealed window that may be sent; those of a chat that is erased may not.

        Args:
            excluding: Hashes of chats.
            skipping: Document ids of windows.
        """
        if self._connection and not self._waiting:
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
        if self._remove(db, window.document_id):
            today = f"chars:{day}"
            db.execute("DELETE FROM figures WHERE name LIKE 'chars:%' AND name <> ?", (today,))
            for name, value in (
                ("sent", 1),
                ("sent_chars", window.chars),
                (today, window.chars),
                ("saved_calls", len(window.turns) - 1),
            ):
                _count_up(db, name, value)
        return int(_figure(db, f"chars:{day}"))

    @_transaction
    def sent_chars(self, db: sqlite3.Connection, *, day: str) -> int:
        """Characters delivered on a local date."""
        return int(_figure(db, f"chars:{day}"))

    @_transaction
    def saved_calls(self, db: sqlite3.Connection) -> int:
        """How many times less the server had to extract, as turns went together; ever."""
        return int(_figure(db, "saved_calls"))

    @_transaction
    def set_aside(self, db: sqlite3.Connection, window: Window, reason: str) -> None:
        """Keeps a window that cannot be sent, with the reason, out of delivery."""
        for (row_id,) in db.execute(
            "SELECT id FROM windows WHERE document_id = ? AND state IN ('sealed', 'import')",
            (window.document_id,),
        ).fetchall():
            self._set_aside(db, row_id, reason)

    @_transaction
    def retry_aside(self, db: sqlite3.Connection) -> int:
        """Puts the windows that were set aside back, as young as new ones; returns how many."""
        number = db.execute(
            "UPDATE windows SET state = 'sealed', reason = '',"
            " uptime = COALESCE((SELECT value FROM figures WHERE name = 'uptime'), 0)"
            " WHERE state = 'aside'"
        ).rowcount
        self._aside -= number
        self._count_sealed(db, number)
        return number

    @_transaction
    def renew_operation(self, db: sqlite3.Connection, window: Window) -> None:
        """Gives a window another operation id, where nothing would be run under its own."""
        db.execute(
            "UPDATE windows SET operation_id = ? WHERE document_id = ?",
            (str(uuid.uuid4()), window.document_id),
        )

    @_transaction
    def take_in_late(self, db: sqlite3.Connection, late: Sequence[LateTurn]) -> None:
        """Makes sealed windows of turns, those left out that are there already."""
        for one in late:
            if not _has(db, one) and (turn := self._as_wished(db, one.turn)):
                ids = one.document_id, one.operation_id
                _insert_window(db, "sealed", turn.chat, turn.header, [turn.lines], ids)
                withdrawn.note(db, turn, one.document_id)
                self._count_sealed(db, 1)

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

    @_transaction
    def windows(self, db: sqlite3.Connection, chat: str) -> list[Window]:
        """All windows of a chat that wait, in order, as far as they can be read."""
        return [window for _, _, window in _windows_of(db, chat) if window]

    @_transaction
    def queue(self, db: sqlite3.Connection, turn: TurnRecord) -> Window | None:
        """Puts a turn in the queue as a window of its own; None where it is erased already."""
        stands = self._as_wished(db, turn)
        if stands is None:
            return None
        document_id = _insert_window(db, "sealed", turn.chat, turn.header, [stands.lines])
        withdrawn.note(db, stands, document_id)
        self._count_sealed(db, 1)
        row = db.execute(f"{_SELECT_WINDOW} WHERE document_id = ?", (document_id,)).fetchone()
        return _window(db, row)

    @_transaction
    def queue_again(self, db: sqlite3.Connection, chat: str, document: Document) -> bool:
        """Queues a document that was sent, under its own id and another operation id.

        Returns:
            False where it waits already, or something of it is to be erased.
        """
        pending = next((one for one in wishes.pending(db) if one.chat == chat), None)
        document_id = document.document_id
        waits = "SELECT 1 FROM windows WHERE document_id = ?"
        if db.execute(waits, (document_id,)).fetchone() or (
            pending and pending.concerns(document_id)
        ):
            return False
        ids = document_id, str(uuid.uuid4())
        _insert_window(db, "sealed", chat, document.header, group_turns(document.lines), ids)
        self._count_sealed(db, 1)
        return True

    @_transaction
    def wish(self, db: sqlite3.Connection, erasure: Erasure) -> None:
        """Notes what must vanish."""
        wishes.note(db, erasure)

    @_transaction
    def take_back(self, db: sqlite3.Connection, window: Window) -> None:
        """Takes a window out of the queue that the server will never have."""
        self._remove(db, window.document_id)

    @_transaction
    def drop_chat(self, db: sqlite3.Connection, erasure: Erasure) -> int:
        """Drops all windows of a chat, and notes what must vanish with what may have been sent.

        Returns:
            How many turns they held.
        """
        turns = 0
        sent: list[str] = []
        for number, state, document_id in db.execute(
            "SELECT turns, state, document_id FROM windows WHERE chat = ?", (erasure.chat,)
        ):
            turns += number
            sent += [document_id] if state != "open" else []
        db.execute("DELETE FROM windows WHERE chat = ?", (erasure.chat,))
        self._count(db)
        self._note(db, erasure, sent)
        batches.wiped(db, erasure.chat)
        return turns

    @_transaction
    def edit_chat(
        self, db: sqlite3.Connection, erasure: Erasure, edit: Edit, documents: Sequence[Document]
    ) -> Edited:
        """Edits the lines of all waiting windows of a chat, and of documents that are stored.

        Changed windows that may have been sent get new ids, and the old ones are noted for
        erasure with whatever the erasure names. What cannot be read is dropped: it may be theirs.

        Args:
            db: The database.
            erasure: What must vanish.
            edit: Takes lines and returns those that stay.
            documents: See `replace_documents`.
        """
        return self._edit(db, erasure, edit, documents)

    @_transaction
    def withdraw(
        self, db: sqlite3.Connection, erasure: Erasure, message: str, *, at: float
    ) -> None:
        """Takes the lines of a message, and the answer to it, out of what waits.

        Those that may be stored already are noted for erasure; one that comes later is not taken.

        Args:
            db: The database.
            erasure: Of its chat.
            message: Which one, see `withdrawn`.
            at: When it was withdrawn, in Unix seconds.
        """
        found = withdrawn.withdraw(db, erasure.chat, message, at)
        if found:
            unsent = "SELECT document_id FROM windows WHERE chat = ? AND state = 'open'"
            unsent_ids = {one for (one,) in db.execute(unsent, (erasure.chat,))}
            lines = {line: place for line, place in found.items() if place not in unsent_ids}
            edit = functools.partial(withdrawn.without, erasure.chat, found)
            self._edit(db, replace(erasure, lines=lines), edit, ())
            _count_up(db, "withdrawn", 1)

    def _edit(
        self, db: sqlite3.Connection, erasure: Erasure, edit: Edit, documents: Sequence[Document]
    ) -> Edited:
        removed = 0
        sent: list[str] = []
        for row_id, state, window in _windows_of(db, erasure.chat):
            lines = [line for turn in window.turns for line in turn] if window else []
            kept = edit(lines)
            if window and kept == lines:
                continue
            removed += number_gone(lines, kept)
            sent += [window.document_id] if window and state != "open" else []
            if window and kept:
                new_id = _rewrite_window(db, row_id, state, window, group_turns(kept))
                batches.changed(db, erasure.chat, window.document_id, new_id, lines)
            else:
                db.execute("DELETE FROM windows WHERE id = ?", (row_id,))
        self._count(db)
        if sent or erasure.is_held:
            self._note(db, erasure, sent)
        return replace(self._replace(db, erasure, edit, documents), waiting=removed)

    @_transaction
    def replace_documents(
        self, db: sqlite3.Connection, erasure: Erasure, edit: Edit, documents: Sequence[Document]
    ) -> Edited:
        """Notes stored documents for erasure, and queues what stays of each as a new one.

        What is noted already stays as it is: what stays of it is queued, or was. While everything
        of the chat is to vanish, nothing is queued; while people are, not their lines.
        """
        return self._replace(db, erasure, edit, documents)

    def _replace(
        self, db: sqlite3.Connection, erasure: Erasure, edit: Edit, documents: Sequence[Document]
    ) -> Edited:
        noted = wishes.documents(db, erasure.chat)
        pending = next((one for one in wishes.pending(db) if one.chat == erasure.chat), erasure)
        replaced: list[str] = []
        lines = 0
        for document in documents:
            kept = edit(document.lines)
            if document.document_id in noted or kept == list(document.lines):
                continue
            lines += number_gone(document.lines, kept)
            replaced.append(document.document_id)
            stays = [] if pending.whole else pending.staying(kept)
            new_id = ""
            if stays:
                turns = group_turns(stays)
                new_id = _insert_window(db, "sealed", erasure.chat, document.header, turns)
                self._count_sealed(db, 1)
            batches.changed(db, erasure.chat, document.document_id, new_id, document.lines)
        if replaced:
            self._note(db, erasure, replaced)
        return Edited(lines=lines, documents=len(replaced))

    def _note(self, db: sqlite3.Connection, erasure: Erasure, document_ids: Sequence[str]) -> None:
        """Notes what must vanish, and that no import may bring it back."""
        wishes.note(db, erasure, document_ids)
        for person in ("",) if erasure.whole else erasure.people:
            batches.leave_out(db, erasure.chat, Silence(person, 0.0, erasure.said_before))

    @_transaction
    def add_batch(self, db: sqlite3.Connection, batch: Batch) -> int:
        """Puts an import in the queue, behind all else; returns how many windows there are.

        What is erased meanwhile, or was brought already, is left out.
        """
        windows = batches.new_windows(db, batch)
        for window in windows:
            # A new operation each time: the server runs one only once, whatever became of it.
            ids = (window.document_id, str(uuid.uuid4()))
            turns = [turn.lines for turn in window.turns]
            _insert_window(db, "import", batch.chat, window.header, turns, ids)
        if windows:
            batches.note_batch(db, batch.chat, windows)
            self._count_sealed(db, len(windows))
        return len(windows)

    @_transaction
    def import_facts(self, db: sqlite3.Connection, chat: str) -> ImportFacts:
        """What is known of a chat's imports."""
        return batches.facts(db, chat)

    @_transaction
    def import_progress(self, db: sqlite3.Connection, chat: str = "") -> list[Progress]:
        """How far a chat's latest import is, or those of which their chats are not yet told."""
        return batches.progress(db, chat)

    @_transaction
    def set_import_phase(self, db: sqlite3.Connection, batch: int, phase: Phase) -> None:
        """Notes how far an import is."""
        batches.set_phase(db, batch, phase)

    @_transaction
    def end_import(
        self, db: sqlite3.Connection, erasure: Erasure, batch: int, phase: Phase
    ) -> Edited:
        """Drops what waits of an import and, where it is undone, notes its documents for erasure.

        What waits may have been sent already, so it is noted, too.
        """
        ids = batches.documents_of(db, batch)
        turns, waiting = 0, []
        for one in ids:
            row = db.execute("SELECT turns FROM windows WHERE document_id = ?", (one,)).fetchone()
            if row:
                turns += row[0]
                waiting.append(one)
                db.execute("DELETE FROM windows WHERE document_id = ?", (one,))
        self._count(db)
        gone = ids if phase == "undone" else waiting
        batches.end(db, batch, phase, gone)
        if gone:
            wishes.note(db, erasure, gone)
        return Edited(waiting=turns, documents=len(gone) - len(waiting))

    @_transaction
    def leave_out(self, db: sqlite3.Connection, chat: str, silence: Silence) -> None:
        """Keeps a time from being imported."""
        batches.leave_out(db, chat, silence)

    @_transaction
    def end_silence(self, db: sqlite3.Connection, chat: str, now: float) -> None:
        """Ends a time that must not be imported, and whose end was not known."""
        batches.end_silence(db, chat, now)

    @_transaction
    def note_documents(
        self, db: sqlite3.Connection, chat: str, document_ids: Collection[str]
    ) -> None:
        """Adds documents to an erasure."""
        wishes.note_documents(db, chat, document_ids)

    @_transaction
    def cut_off(self, db: sqlite3.Connection, chat: str, person: str, at: float) -> None:
        """Keeps what a person has begun to say before from being stored."""
        wishes.cut_off(db, chat, person, at)

    @_transaction
    def end_wish(self, db: sqlite3.Connection, chat: str, lines: Collection[str] = ()) -> None:
        """Lets a chat be sent again; documents that were noted are still to go.

        Args:
            db: The database.
            chat: The chat's hash.
            lines: Keys of the single lines that are gone.
        """
        wishes.end_wish(db, chat, lines)

    @_transaction
    def end_erasure(self, db: sqlite3.Connection, chat: str) -> None:
        """Forgets documents that have vanished for good."""
        wishes.end(db, chat)

    @_transaction
    def erasures(self, db: sqlite3.Connection) -> list[Erasure]:
        """Erasures that are not complete."""
        return wishes.pending(db)

    @_transaction
    def held(self, db: sqlite3.Connection, chat: str) -> Erasure | None:
        """The erasure that keeps a chat from being sent, if there is one."""
        found = (one for one in wishes.pending(db) if one.chat == chat and one.is_held)
        return next(found, None)

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
        _count_up(db, "uptime", seconds)
        oldest = _figure(db, "uptime") - limit
        number = db.execute(
            "DELETE FROM windows WHERE state = 'sealed' AND uptime < ?", (oldest,)
        ).rowcount
        self._waiting -= number
        if number:
            _count_up(db, "dropped", number)
        return number

    @_transaction
    def forget_messages(self, db: sqlite3.Connection, now: float) -> None:
        """Forgets which lines messages became that nobody can withdraw any more."""
        withdrawn.forget_old(db, now)

    @_transaction
    def figures(self, db: sqlite3.Connection, *, day: str) -> OutboxFigures:
        """The numbers for status; `day` is the local date."""
        importing = db.execute("SELECT COUNT(*) FROM windows WHERE state = 'import'").fetchone()[0]
        return OutboxFigures(
            open_turns=db.execute(
                "SELECT COALESCE(SUM(turns), 0) FROM windows WHERE state = 'open'"
            ).fetchone()[0],
            waiting=self._waiting - importing,
            importing=importing,
            aside=dict(
                db.execute(
                    "SELECT reason, COUNT(*) FROM windows WHERE state = 'aside' GROUP BY reason"
                )
            ),
            sent=int(_figure(db, "sent")),
            sent_chars=int(_figure(db, "sent_chars")),
            sent_chars_today=int(_figure(db, f"chars:{day}")),
            dropped=int(_figure(db, "dropped")),
            withdrawn=int(_figure(db, "withdrawn")),
            moved_aside=self._moved_aside,
        )

    async def sync(self) -> None:
        """Waits until a power cut cannot take back what is committed; keeps no commit waiting."""
        self._check_open()
        await asyncio.get_running_loop().run_in_executor(self._disk_thread, self._sync, self._path)

    async def aclose(self) -> None:
        """Closes the files and ends the threads; a second call does nothing."""
        if self._closed:
            return
        # At once and in this thread: whatever comes later must not open the file again.
        self._closed = True
        self._thread.submit(self._disconnect)
        await asyncio.get_running_loop().run_in_executor(None, self._end_threads)

    def _end_threads(self) -> None:
        self._thread.shutdown()
        self._disk_thread.shutdown()

    def _disconnect(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None

    def _check_open(self) -> None:
        if self._closed:
            raise sqlite3.ProgrammingError("the outbox is closed")

    async def _run[Result](self, action: Callable[[sqlite3.Connection], Result]) -> Result:
        self._check_open()
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, self._transact, action
        )

    def _transact[Result](self, action: Callable[[sqlite3.Connection], Result]) -> Result:
        try:
            return self._attempt(action)
        except sqlite3.Error as error:
            if not is_corrupt(error):
                raise
            self._moved_aside = move_aside(self._path)
            return self._attempt(action)

    def _attempt[Result](self, action: Callable[[sqlite3.Connection], Result]) -> Result:
        try:
            with self._opened() as db:
                db.execute("BEGIN IMMEDIATE")
                return action(db)
        except BaseException:
            # The next transaction opens the database anew and counts again what is in it.
            self._disconnect()
            raise

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            db = self._connect(self._path)
            try:
                prepare(db)
                with db:
                    wishes.forget_earlier_boots(db, self._now())
                self._count(db)
            except BaseException:
                db.close()
                raise
            self._connection = db
        return self._connection

    def _as_wished(self, db: sqlite3.Connection, turn: TurnRecord) -> TurnRecord | None:
        """A turn as it may be stored; None where nothing of it may."""
        if wishes.is_cut_off(db, turn):
            return None
        if withdrawn.is_withdrawn(db, turn.lines):
            _count_up(db, "withdrawn", 1)
        lines = withdrawn.as_it_stands(db, turn)
        if lines == turn.lines:
            return turn
        return replace(turn, lines=lines) if lines else None

    def _add(self, db: sqlite3.Connection, turn: TurnRecord) -> Added:
        row = db.execute(
            "SELECT id, document_id FROM windows WHERE chat = ? AND state = 'open'", (turn.chat,)
        ).fetchone()
        if row:
            row_id, document_id = row
            _append(db, row_id, turn)
        else:
            document_id = _insert_window(db, "open", turn.chat, turn.header, [turn.lines])
        withdrawn.note(db, turn, document_id)
        sealed = turn.urgent or self._is_full(db, document_id, is_listened=turn.is_listened)
        if sealed:
            db.execute("UPDATE windows SET state = 'sealed' WHERE document_id = ?", (document_id,))
            self._count_sealed(db, 1)
        return Added(document_id, sealed, turn.is_listened)

    def _is_full(self, db: sqlite3.Connection, document_id: str, *, is_listened: bool) -> bool:
        row_id, turns, chars = db.execute(
            "SELECT id, turns, chars FROM windows WHERE document_id = ?", (document_id,)
        ).fetchone()
        if chars >= MAX_WINDOW_CHARS:
            return True
        if is_listened:
            return _number_of_lines(db, row_id) >= LISTENED_LINES
        return bool(turns >= self._every_n_turns)

    @_transaction
    def _next_window(
        self, db: sqlite3.Connection, excluding: Collection[str], skipping: Collection[str]
    ) -> Window | None:
        while found := _next_row(db, excluding, skipping):
            if window := _window(db, found):
                return window
            self._set_aside(db, found[0], UNREADABLE)
        return None

    def _remove(self, db: sqlite3.Connection, document_id: str) -> bool:
        """Takes a sealed window out of the queue; False where there is none of this id."""
        removed = db.execute(
            "DELETE FROM windows WHERE document_id = ? AND state IN ('sealed', 'import')",
            (document_id,),
        ).rowcount
        self._waiting -= removed
        return bool(removed)

    def _set_aside(self, db: sqlite3.Connection, row_id: int, reason: str) -> None:
        db.execute("UPDATE windows SET state = 'aside', reason = ? WHERE id = ?", (reason, row_id))
        self._waiting -= 1
        self._aside += 1

    def _count(self, db: sqlite3.Connection) -> None:
        """Counts what waits and what is set aside."""
        numbers = dict(
            db.execute("SELECT state, COUNT(*) FROM windows WHERE state <> 'open' GROUP BY state")
        )
        self._waiting = numbers.get("sealed", 0) + numbers.get("import", 0)
        self._aside = numbers.get("aside", 0)

    def _count_sealed(self, db: sqlite3.Connection, number: int) -> None:
        """Counts newly sealed windows and drops the oldest beyond the bound."""
        self._waiting += number
        if (surplus := self._waiting + self._aside - MAX_WINDOWS) > 0:
            db.execute(
                "DELETE FROM windows WHERE id IN (SELECT id FROM windows WHERE state <> 'open'"
                " ORDER BY id LIMIT ?)",
                (surplus,),
            )
            self._count(db)
            _count_up(db, "dropped", surplus)


def outbox_exists(folder: Path) -> bool:
    """Whether an earlier run left an outbox in this folder."""
    return (folder / DATABASE_FILE).exists()


def _delete(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _has(db: sqlite3.Connection, late: LateTurn) -> bool:
    """Whether a turn is there: taken in before, or as that which its file is a copy of."""
    row = db.execute(
        "SELECT 1 FROM windows WHERE document_id = ? UNION ALL"
        " SELECT 1 FROM windows JOIN turns ON turns.window = windows.id"
        " WHERE windows.chat = ? AND turns.lines = ?",
        (late.document_id, late.turn.chat, _stored(late.turn.lines)),
    ).fetchone()
    return row is not None


def _insert_window(
    db: sqlite3.Connection,
    state: str,
    chat: str,
    header: Header,
    turns: Sequence[TurnLines],
    ids: tuple[str, str] | None = None,
) -> str:
    """Writes a window with its turns; returns its document id."""
    document_id, operation_id = ids or (new_document_id(chat), str(uuid.uuid4()))
    cursor = db.execute(
        "INSERT INTO windows (state, chat, document_id, operation_id, header, turns, chars, uptime)"
        " VALUES (?, ?, ?, ?, ?, ?, ?,"
        " COALESCE((SELECT value FROM figures WHERE name = 'uptime'), 0))",
        (
            state,
            chat,
            document_id,
            operation_id,
            _json(header.to_json()),
            len(turns),
            count_chars(turns),
        ),
    )
    _insert_turns(db, cursor.lastrowid or 0, turns)
    withdrawn.moved(db, chat, [line for lines in turns for line in lines], document_id)
    return document_id


def _rewrite_window(
    db: sqlite3.Connection,
    row_id: int,
    state: str,
    window: Window,
    turns: Sequence[TurnLines],
) -> str:
    """Gives a window other turns, and new ids where the old ones may stand for what was sent.

    Returns:
        Its document id.
    """
    is_new = state == "open"
    document_id = window.document_id if is_new else new_document_id(window.chat)
    db.execute("DELETE FROM turns WHERE window = ?", (row_id,))
    db.execute(
        "UPDATE windows SET document_id = ?, operation_id = ?, turns = ?, chars = ? WHERE id = ?",
        (
            document_id,
            window.operation_id if is_new else str(uuid.uuid4()),
            len(turns),
            count_chars(turns),
            row_id,
        ),
    )
    _insert_turns(db, row_id, turns)
    withdrawn.moved(db, window.chat, [line for lines in turns for line in lines], document_id)
    return document_id


def _append(db: sqlite3.Connection, row_id: int, turn: TurnRecord) -> None:
    """Adds a turn to an open window: at its end, or in its place where the chat listens."""
    last = _last_line(db, row_id) if turn.is_listened else None
    db.execute(
        "UPDATE windows SET turns = turns + 1, chars = chars + ? WHERE id = ?",
        (turn.chars, row_id),
    )
    _insert_turns(db, row_id, [turn.lines])
    if last is None or not turn.lines[0].is_before(last):
        return
    window = _window(db, db.execute(f"{_SELECT_WINDOW} WHERE id = ?", (row_id,)).fetchone())
    if window:
        lines = in_order(window.document.lines)
        _rewrite_window(db, row_id, "open", window, group_turns(lines))


def _last_line(db: sqlite3.Connection, row_id: int) -> Line | None:
    """The last line of a window, if it can be read."""
    order = "SELECT lines FROM turns WHERE window = ? ORDER BY id DESC LIMIT 1"
    row = db.execute(order, (row_id,)).fetchone()
    with contextlib.suppress(ValueError, TypeError, KeyError, IndexError):
        return _line(json.loads(row[0])[-1])
    return None


def _number_of_lines(db: sqlite3.Connection, row_id: int) -> int:
    """How many lines a window has, as far as they can be read."""
    count = "SELECT SUM(json_array_length(lines)) FROM turns WHERE window = ? AND json_valid(lines)"
    return int(db.execute(count, (row_id,)).fetchone()[0] or 0)


def _insert_turns(db: sqlite3.Connection, row_id: int, turns: Iterable[TurnLines]) -> None:
    for lines in turns:
        db.execute("INSERT INTO turns (window, lines) VALUES (?, ?)", (row_id, _stored(lines)))


def _stored(lines: TurnLines) -> str:
    """The lines of a turn as they stand in their row."""
    return _json([{"text": one.text, "came": one.came} if one.came else one.text for one in lines])


def _json(content: Any) -> str:
    """JSON that every file takes: half a character must not keep all turns from the disk."""
    return json.dumps(content, ensure_ascii=False).encode("utf-8", "replace").decode("utf-8")


_Row = tuple[int, str, str, str, str, int]


def _next_row(
    db: sqlite3.Connection, excluding: Collection[str], skipping: Collection[str]
) -> _Row | None:
    for state in ("sealed", "import"):
        found = db.execute(
            "SELECT id FROM windows INDEXED BY windows_by_state WHERE state = ?"
            " AND chat NOT IN (SELECT value FROM json_each(?))"
            " AND chat NOT IN (SELECT chat FROM held_chats)"
            " AND document_id NOT IN (SELECT value FROM json_each(?)) ORDER BY id LIMIT 1",
            (state, json.dumps(list(excluding)), json.dumps(list(skipping))),
        ).fetchone()
        if found:
            break
    else:
        return None
    row: _Row = db.execute(f"{_SELECT_WINDOW} WHERE id = ?", found).fetchone()
    return row


def _windows_of(db: sqlite3.Connection, chat: str) -> list[tuple[int, str, Window | None]]:
    """Row, state and window of everything of a chat; no window where it cannot be read."""
    states = dict(
        db.execute("SELECT id, state FROM windows WHERE chat = ? ORDER BY id", (chat,)).fetchall()
    )
    rows = [db.execute(f"{_SELECT_WINDOW} WHERE id = ?", (one,)).fetchone() for one in states]
    return [(row[0], states[row[0]], _window(db, row)) for row in rows]


def _window(db: sqlite3.Connection, row: _Row) -> Window | None:
    """The window of a row; None where it is not one that could be sent."""
    row_id, chat, document_id, operation_id, header, chars = row
    rows = db.execute("SELECT lines FROM turns WHERE window = ? ORDER BY id", (row_id,)).fetchall()
    try:
        turns = tuple(tuple(map(_line, json.loads(lines))) for (lines,) in rows)
        content = Header.from_json(json.loads(header))
        window = Window(chat, document_id, operation_id, content, turns, chars)
        json.dumps(window.item.body())
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return window if turns and document_id else None


def _line(stored: str | dict[str, Any]) -> Line:
    """A line from its row; v0.1.0 wrote the pseudonym beside the text."""
    if isinstance(stored, str):
        return Line(stored)
    return Line(stored["text"], came=float(stored.get("came", 0.0)))


def _figure(db: sqlite3.Connection, name: str) -> float:
    row = db.execute("SELECT value FROM figures WHERE name = ?", (name,)).fetchone()
    return float(row[0]) if row else 0.0


def _count_up(db: sqlite3.Connection, name: str, value: float) -> None:
    db.execute(
        "INSERT INTO figures (name, value) VALUES (?, ?)"
        " ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
        (name, value),
    )
