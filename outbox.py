"""Turns on disk until Hindsight has them.

A *window* is a run of turns of one chat that becomes one document. It is `open` while turns are
added, `sealed` when it is to be sent, and `aside` when the server refused it for good. Its
document id and operation id are fixed when the window is made, before anything is sent, so that
sending it again is harmless: delivery is at least once, the effect exactly once.

SQLite calls block, so all of them run on one thread of the outbox's own.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
import uuid
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from .hindsight_types import RetainItem
from .transcript import (
    Header,
    Line,
    TurnLines,
    TurnRecord,
    build_item,
    count_chars,
    group_turns,
    new_document_id,
)

DATABASE_FILE = "outbox.db"
MAX_WINDOW_CHARS = 6000
"""A window is sealed at this size; Hindsight extracts facts from chunks of 3000 characters."""
MAX_WINDOWS = 200_000
"""Sealed windows beyond this number push the oldest out."""

_T = TypeVar("_T")
_PRIMARY_CODE = 0xFF
_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}

_SELECT_WINDOW = "SELECT id, chat, document_id, operation_id, header, chars FROM windows"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS windows (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    position REAL NOT NULL,
    state TEXT NOT NULL,
    chat TEXT NOT NULL,
    document_id TEXT NOT NULL,
    operation_id TEXT NOT NULL,
    header TEXT NOT NULL,
    turns INTEGER NOT NULL,
    chars INTEGER NOT NULL,
    uptime REAL NOT NULL,
    tried INTEGER NOT NULL DEFAULT 0,
    reason TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS windows_by_state ON windows (state, position, id, chat);
CREATE INDEX IF NOT EXISTS windows_by_chat ON windows (chat, state);
CREATE TABLE IF NOT EXISTS turns (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    window INTEGER NOT NULL REFERENCES windows (id) ON DELETE CASCADE,
    lines TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS turns_by_window ON turns (window);
CREATE TABLE IF NOT EXISTS erasures (
    chat TEXT PRIMARY KEY, tags TEXT NOT NULL, profile TEXT NOT NULL, documents TEXT NOT NULL,
    whole INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS figures (name TEXT PRIMARY KEY, value REAL NOT NULL);
"""


@dataclass(frozen=True)
class Window:
    """A window that is to be sent.

    Attributes:
        window_id: Its row.
        chat: The chat's hash.
        document_id: Unique for ever.
        operation_id: Makes a repeated request harmless.
        header: See `TurnRecord`.
        turns: The lines of each turn.
        chars: Characters of all lines.
    """

    window_id: int
    chat: str
    document_id: str
    operation_id: str
    header: Header
    turns: tuple[TurnLines, ...]
    chars: int

    @property
    def item(self) -> RetainItem:
        """Its document, the same each time it is built."""
        return build_item(self.document_id, self.header, self.turns)


@dataclass(frozen=True)
class Added:
    """Where a turn went.

    Attributes:
        window_id: Its window.
        sealed: Whether that window is now ready to be sent.
    """

    window_id: int
    sealed: bool


@dataclass(frozen=True)
class Erasure:
    """What must yet vanish from the server; kept on disk until it has.

    Attributes:
        chat: The chat's hash.
        tags: The chat's four tags.
        profile: The id of its mental model.
        documents: Ids of documents that a queued retain may still write.
        whole: Everything of the chat must go, and nothing of it is delivered until then.
    """

    chat: str
    tags: tuple[str, ...]
    profile: str
    documents: tuple[str, ...]
    whole: bool


@dataclass(frozen=True)
class OutboxFigures:
    """What status shows.

    Attributes:
        open_turns: Turns in windows that are not sealed yet.
        waiting: Sealed windows.
        aside: Reasons of the windows that the server refused for good, with numbers.
        sent: Windows delivered, ever.
        sent_chars: Characters delivered, ever.
        sent_chars_today: Characters delivered on the day asked for.
        dropped: Windows given up for age or number, ever.
        moved_aside: Name of the corrupt database that this run replaced, or empty.
    """

    open_turns: int = 0
    waiting: int = 0
    aside: dict[str, int] = field(default_factory=dict)
    sent: int = 0
    sent_chars: int = 0
    sent_chars_today: int = 0
    dropped: int = 0
    moved_aside: str = ""


class Outbox:
    """The durable queue.

    Every method raises `sqlite3.Error` or `OSError` where the disk does not do what it should
    (full, read-only), and has then changed nothing. A corrupt database is moved aside and
    replaced by an empty one.

    Args:
        folder: AstrBot's data directory of the plugin.
        every_n_turns: Turns that fill a window.
        connect: The seam for tests that need a failing disk.
    """

    def __init__(
        self,
        folder: Path,
        *,
        every_n_turns: int,
        connect: Callable[[Path], sqlite3.Connection] | None = None,
    ) -> None:
        self._path = folder / DATABASE_FILE
        self._every_n_turns = every_n_turns
        self._connect = connect or _connect
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hindsight-outbox")
        self._disk_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hindsight-disk")
        self._connection: sqlite3.Connection | None = None
        self._waiting = 0
        self._moved_aside = ""
        self._closed = False

    async def add(self, turns: Sequence[TurnRecord]) -> list[Added]:
        """Commits turns, all or none, each to its chat's open window."""
        return await self._run(lambda db: [self._add(db, turn) for turn in turns])

    async def seal(self, window_ids: Collection[int] | None = None) -> None:
        """Makes open windows ready to be sent: these, or all."""
        await self._run(lambda db: self._seal(db, window_ids))

    async def next_window(self, *, excluding: Collection[str] = ()) -> Window | None:
        """The oldest sealed window of a chat that is not excluded."""
        if self._connection and not self._waiting:
            return None  # known without a trip to the thread, and asked after every turn
        return await self._run(lambda db: _next_window(db, excluding))

    async def delivered(self, window: Window, *, day: str) -> None:
        """Forgets a window that Hindsight has, and counts it.

        Args:
            window: What was sent.
            day: The local date, for the daily figure.
        """
        await self._run(lambda db: self._delivered(db, window, day))

    async def set_aside(self, window: Window, reason: str) -> None:
        """Keeps a window that the server refuses, with the reason, out of delivery."""
        await self._run(lambda db: self._set_aside(db, window, reason))

    async def retry_aside(self) -> int:
        """Puts the windows that were set aside back into delivery; returns how many."""
        return await self._run(self._retry_aside)

    async def renew_operation(self, window: Window) -> None:
        """Gives a window another operation id, where the server says its own is taken."""
        await self._run(
            lambda db: db.execute(
                "UPDATE windows SET operation_id = ? WHERE id = ?",
                (str(uuid.uuid4()), window.window_id),
            )
        )

    async def mark_tried(self, window: Window) -> None:
        """Notes that a window may have reached the server."""
        await self._run(
            lambda db: db.execute(
                "UPDATE windows SET tried = 1 WHERE id = ? AND tried = 0", (window.window_id,)
            )
        )

    async def add_window(self, chat: str, header: Header, turns: Sequence[TurnLines]) -> str:
        """Puts a whole window in the queue, ready to be sent; returns its document id."""
        return await self._run(lambda db: self._add_window(db, chat, header, turns))

    async def remove_document(self, document_id: str) -> None:
        """Takes the window of a document out of the queue again."""
        await self._run(lambda db: self._remove_document(db, document_id))

    async def drop_chat(self, chat: str) -> tuple[int, list[str]]:
        """Drops all windows of a chat.

        Returns:
            How many turns they held, and the document ids of those that were tried.
        """
        return await self._run(lambda db: self._drop_chat(db, chat))

    async def edit_chat(
        self, chat: str, edit: Callable[[Sequence[Line]], list[Line]]
    ) -> tuple[int, list[str]]:
        """Edits the lines of all waiting windows of a chat.

        Args:
            chat: The chat's hash.
            edit: Takes the lines of a window and returns those that stay.

        Returns:
            How many lines went, and the document ids of changed windows that were tried; such
            windows have got new ids.
        """
        return await self._run(lambda db: self._edit_chat(db, chat, edit))

    async def windows(self, chat: str) -> list[Window]:
        """All windows of a chat that wait, in order."""
        return await self._run(lambda db: _windows_of(db, chat))

    async def keep_erasure(self, erasure: Erasure) -> None:
        """Keeps an erasure on disk, in the place of an earlier one of that chat."""
        await self._run(lambda db: _keep_erasure(db, erasure))

    async def end_erasure(self, chat: str) -> None:
        """Forgets an erasure that is complete."""
        await self._run(lambda db: db.execute("DELETE FROM erasures WHERE chat = ?", (chat,)))

    async def erasures(self) -> list[Erasure]:
        """Erasures that are not complete."""
        return await self._run(_erasures)

    async def split(self, window: Window) -> bool:
        """Makes two windows of one that is too large; False where it holds a single line."""
        return await self._run(lambda db: self._split(db, window))

    async def age(self, seconds: float, *, limit: float) -> int:
        """Lets the waiting windows grow older and drops those beyond the limit.

        Age is time during which the plugin ran, so a clock that jumps drops nothing.

        Args:
            seconds: Running time since the last call.
            limit: Age in seconds at which a window is given up.

        Returns:
            How many were dropped.
        """
        return await self._run(lambda db: self._age(db, seconds, limit))

    async def sync(self) -> None:
        """Has the disk write down what is committed, so that a power cut cannot take it back.

        In WAL mode with `synchronous = NORMAL` SQLite waits for the disk at a checkpoint only. A
        passive one in another thread and connection keeps no commit waiting.
        """
        if self._closed:
            raise sqlite3.ProgrammingError("the outbox is closed")
        await asyncio.get_running_loop().run_in_executor(self._disk_thread, self._checkpoint)

    async def figures(self, *, day: str) -> OutboxFigures:
        """The numbers for status; `day` is the local date."""
        return await self._run(lambda db: self._figures(db, day))

    async def aclose(self) -> None:
        """Closes the files and ends the thread; a second call does nothing."""
        await asyncio.get_running_loop().run_in_executor(None, self._close)

    def _close(self) -> None:
        if not self._closed:
            self._closed = True
            self._thread.submit(self._disconnect)
            self._thread.shutdown()
            self._disk_thread.shutdown()

    def _disconnect(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None

    def _checkpoint(self) -> None:
        with contextlib.closing(self._connect(self._path)) as db:
            db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    async def _run(self, action: Callable[[sqlite3.Connection], _T]) -> _T:
        """Runs one transaction on the outbox's thread."""
        if self._closed:
            raise sqlite3.ProgrammingError("the outbox is closed")
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, self._transaction, action
        )

    def _transaction(self, action: Callable[[sqlite3.Connection], _T]) -> _T:
        try:
            with self._opened() as db:
                return action(db)
        except sqlite3.Error as error:
            # The next transaction opens the database anew and counts again what is in it.
            self._disconnect()
            if getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE not in _CORRUPT:
                raise
            self._move_aside()
            with self._opened() as db:
                return action(db)

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            connection = self._connect(self._path)
            try:
                connection.executescript(_SCHEMA)
                self._waiting = _count(connection, "sealed")
            except sqlite3.Error:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _move_aside(self) -> None:
        """Renames a corrupt database and its helpers, so that nothing of it is lost."""
        number = 1
        while (target := self._path.with_suffix(f".corrupt-{number}.db")).exists():
            number += 1
        for suffix in ("-wal", "-shm"):
            helper = self._path.with_name(self._path.name + suffix)
            if helper.exists():
                helper.replace(target.with_name(target.name + suffix))
        self._path.replace(target)
        self._moved_aside = target.name

    def _add(self, db: sqlite3.Connection, turn: TurnRecord) -> Added:
        row = db.execute(
            "SELECT id, turns, chars FROM windows WHERE chat = ? AND state = 'open'", (turn.chat,)
        ).fetchone()
        window_id, turns, chars = row or (0, 0, 0)
        turns, chars = turns + 1, chars + turn.chars
        sealed = turn.urgent or turns >= self._every_n_turns or chars >= MAX_WINDOW_CHARS
        state = "sealed" if sealed else "open"
        if row:
            db.execute(
                "UPDATE windows SET turns = ?, chars = ?, state = ? WHERE id = ?",
                (turns, chars, state, window_id),
            )
            _insert_turns(db, window_id, [turn.lines])
        else:
            window_id = _insert_window(db, state, turn.chat, turn.header, [turn.lines])
        if sealed:
            self._count_sealed(db, 1)
        return Added(window_id, sealed)

    def _count_sealed(self, db: sqlite3.Connection, number: int) -> None:
        """Counts newly sealed windows and drops the oldest beyond the bound."""
        self._waiting += number
        if (surplus := self._waiting - MAX_WINDOWS) > 0:
            cursor = db.execute(
                "DELETE FROM windows WHERE id IN (SELECT id FROM windows WHERE state = 'sealed'"
                " ORDER BY position, id LIMIT ?)",
                (surplus,),
            )
            self._count_dropped(db, cursor.rowcount)

    def _count_dropped(self, db: sqlite3.Connection, number: int) -> None:
        if number:
            self._waiting -= number
            _count_up(db, "dropped", number)

    def _seal(self, db: sqlite3.Connection, window_ids: Collection[int] | None) -> None:
        if window_ids is None:
            cursor = db.execute("UPDATE windows SET state = 'sealed' WHERE state = 'open'")
            number = cursor.rowcount
        else:
            number = sum(
                db.execute(
                    "UPDATE windows SET state = 'sealed' WHERE id = ? AND state = 'open'", (one,)
                ).rowcount
                for one in window_ids
            )
        self._count_sealed(db, number)

    def _delivered(self, db: sqlite3.Connection, window: Window, day: str) -> None:
        if self._remove(db, window):
            db.execute(
                "DELETE FROM figures WHERE name LIKE 'chars:%' AND name <> ?", (f"chars:{day}",)
            )
            for name, value in (
                ("sent", 1),
                ("sent_chars", window.chars),
                (f"chars:{day}", window.chars),
            ):
                _count_up(db, name, value)

    def _remove(self, db: sqlite3.Connection, window: Window) -> bool:
        removed = db.execute("DELETE FROM windows WHERE id = ?", (window.window_id,)).rowcount
        self._waiting -= removed
        return bool(removed)

    def _set_aside(self, db: sqlite3.Connection, window: Window, reason: str) -> None:
        self._waiting -= db.execute(
            "UPDATE windows SET state = 'aside', reason = ? WHERE id = ? AND state = 'sealed'",
            (reason, window.window_id),
        ).rowcount

    def _retry_aside(self, db: sqlite3.Connection) -> int:
        number = db.execute(
            "UPDATE windows SET state = 'sealed', reason = '' WHERE state = 'aside'"
        ).rowcount
        self._count_sealed(db, number)
        return number

    def _add_window(
        self,
        db: sqlite3.Connection,
        chat: str,
        header: Header,
        turns: Sequence[TurnLines],
    ) -> str:
        window_id = _insert_window(db, "sealed", chat, header, turns)
        self._count_sealed(db, 1)
        row = db.execute("SELECT document_id FROM windows WHERE id = ?", (window_id,)).fetchone()
        return str(row[0])

    def _remove_document(self, db: sqlite3.Connection, document_id: str) -> None:
        db.execute("DELETE FROM windows WHERE document_id = ?", (document_id,))
        self._waiting = _count(db, "sealed")

    def _drop_chat(self, db: sqlite3.Connection, chat: str) -> tuple[int, list[str]]:
        rows = db.execute(
            "SELECT turns, tried, document_id FROM windows WHERE chat = ?", (chat,)
        ).fetchall()
        db.execute("DELETE FROM windows WHERE chat = ?", (chat,))
        self._waiting = _count(db, "sealed")
        return sum(row[0] for row in rows), [row[2] for row in rows if row[1]]

    def _edit_chat(
        self, db: sqlite3.Connection, chat: str, edit: Callable[[Sequence[Line]], list[Line]]
    ) -> tuple[int, list[str]]:
        removed, tried = 0, []
        for window in _windows_of(db, chat):
            lines = [line for turn in window.turns for line in turn]
            kept = edit(lines)
            if len(kept) == len(lines):
                continue
            removed += len(lines) - len(kept)
            if _was_tried(db, window):
                tried.append(window.document_id)
            if kept:
                _rewrite_window(db, window, group_turns(kept))
            else:
                self._remove_document(db, window.document_id)
        return removed, tried

    def _split(self, db: sqlite3.Connection, window: Window) -> bool:
        parts: list[TurnLines] = list(window.turns)
        if len(parts) == 1:
            parts = [(line,) for line in parts[0]]
        if len(parts) == 1:
            return False
        position = db.execute(
            "SELECT position FROM windows WHERE id = ?", (window.window_id,)
        ).fetchone()
        if position and self._remove(db, window):
            middle = len(parts) // 2
            chat, header, place = window.chat, window.header, position[0]
            _insert_window(db, "sealed", chat, header, parts[:middle], place)
            after = _position_after(db, place)
            _insert_window(db, "sealed", chat, header, parts[middle:], after)
            self._count_sealed(db, 2)
        return True

    def _age(self, db: sqlite3.Connection, seconds: float, limit: float) -> int:
        _count_up(db, "uptime", seconds)
        oldest = _figure(db, "uptime") - limit
        cursor = db.execute("DELETE FROM windows WHERE state = 'sealed' AND uptime < ?", (oldest,))
        self._count_dropped(db, cursor.rowcount)
        return cursor.rowcount

    def _figures(self, db: sqlite3.Connection, day: str) -> OutboxFigures:
        return OutboxFigures(
            open_turns=db.execute(
                "SELECT COALESCE(SUM(turns), 0) FROM windows WHERE state = 'open'"
            ).fetchone()[0],
            waiting=self._waiting,
            aside=dict(
                db.execute(
                    "SELECT reason, COUNT(*) FROM windows WHERE state = 'aside' GROUP BY reason"
                )
            ),
            sent=int(_figure(db, "sent")),
            sent_chars=int(_figure(db, "sent_chars")),
            sent_chars_today=int(_figure(db, f"chars:{day}")),
            dropped=int(_figure(db, "dropped")),
            moved_aside=self._moved_aside,
        )


def outbox_exists(folder: Path) -> bool:
    """Whether an earlier run left an outbox in this folder."""
    return (folder / DATABASE_FILE).exists()


def _connect(path: Path) -> sqlite3.Connection:
    """Opens the database for its owner only; WAL survives a kill at any moment."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    db = sqlite3.connect(path, check_same_thread=False)
    try:
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
            db.execute(f"PRAGMA {pragma}")
    except sqlite3.Error:
        db.close()
        raise
    return db


def _insert_window(
    db: sqlite3.Connection,
    state: str,
    chat: str,
    header: Header,
    turns: Sequence[TurnLines],
    position: float | None = None,
) -> int:
    """Writes a window with its turns; without a position it stands in the order of the ids."""
    cursor = db.execute(
        "INSERT INTO windows (position, state, chat, document_id, operation_id, header, turns,"
        " chars, uptime) VALUES ("
        "COALESCE(?, (SELECT seq + 1 FROM sqlite_sequence WHERE name = 'windows'), 1),"
        " ?, ?, ?, ?, ?, ?, ?,"
        " COALESCE((SELECT value FROM figures WHERE name = 'uptime'), 0))",
        (
            position,
            state,
            chat,
            new_document_id(chat),
            str(uuid.uuid4()),
            json.dumps(header.to_json(), ensure_ascii=False),
            len(turns),
            count_chars(turns),
        ),
    )
    window_id = cursor.lastrowid or 0
    _insert_turns(db, window_id, turns)
    return window_id


def _rewrite_window(db: sqlite3.Connection, window: Window, turns: Sequence[TurnLines]) -> None:
    """Gives a window other turns, and new ids: what was sent under the old ones is another."""
    db.execute("DELETE FROM turns WHERE window = ?", (window.window_id,))
    db.execute(
        "UPDATE windows SET document_id = ?, operation_id = ?, tried = 0, turns = ?, chars = ?"
        " WHERE id = ?",
        (
            new_document_id(window.chat),
            str(uuid.uuid4()),
            len(turns),
            count_chars(turns),
            window.window_id,
        ),
    )
    _insert_turns(db, window.window_id, turns)


def _was_tried(db: sqlite3.Connection, window: Window) -> bool:
    row = db.execute("SELECT tried FROM windows WHERE id = ?", (window.window_id,)).fetchone()
    return bool(row[0])


def _keep_erasure(db: sqlite3.Connection, erasure: Erasure) -> None:
    db.execute(
        "INSERT OR REPLACE INTO erasures (chat, tags, profile, documents, whole)"
        " VALUES (?, ?, ?, ?, ?)",
        (
            erasure.chat,
            json.dumps(erasure.tags),
            erasure.profile,
            json.dumps(erasure.documents),
            int(erasure.whole),
        ),
    )


def _erasures(db: sqlite3.Connection) -> list[Erasure]:
    return [
        Erasure(chat, tuple(json.loads(tags)), profile, tuple(json.loads(documents)), bool(whole))
        for chat, tags, profile, documents, whole in db.execute(
            "SELECT chat, tags, profile, documents, whole FROM erasures"
        )
    ]


def _position_after(db: sqlite3.Connection, position: float) -> float:
    """A place between a window and the one that follows it."""
    row = db.execute("SELECT MIN(position) FROM windows WHERE position > ?", (position,)).fetchone()
    following = position // 1 + 1 if row[0] is None else min(row[0], position // 1 + 1)
    return (position + float(following)) / 2


def _insert_turns(db: sqlite3.Connection, window_id: int, turns: Iterable[TurnLines]) -> None:
    for lines in turns:
        text = json.dumps([line.text for line in lines], ensure_ascii=False)
        db.execute("INSERT INTO turns (window, lines) VALUES (?, ?)", (window_id, text))


def _next_window(db: sqlite3.Connection, excluding: Collection[str]) -> Window | None:
    found = db.execute(
        "SELECT id FROM windows INDEXED BY windows_by_state WHERE state = 'sealed'"
        " AND chat NOT IN (SELECT value FROM json_each(?)) ORDER BY position, id LIMIT 1",
        (json.dumps(list(excluding)),),
    ).fetchone()
    if found is None:
        return None
    return _window(db, db.execute(f"{_SELECT_WINDOW} WHERE id = ?", found).fetchone())


def _windows_of(db: sqlite3.Connection, chat: str) -> list[Window]:
    rows = db.execute(f"{_SELECT_WINDOW} WHERE chat = ? ORDER BY position, id", (chat,)).fetchall()
    return [_window(db, row) for row in rows]


def _window(db: sqlite3.Connection, row: tuple[Any, ...]) -> Window:
    window_id, chat, document_id, operation_id, header, chars = row
    turns = tuple(
        tuple(map(_line, json.loads(lines)))
        for (lines,) in db.execute(
            "SELECT lines FROM turns WHERE window = ? ORDER BY id", (window_id,)
        )
    )
    return Window(
        window_id,
        chat,
        document_id,
        operation_id,
        Header.from_json(json.loads(header)),
        turns,
        chars,
    )


def _line(stored: str | dict[str, str]) -> Line:
    """A line from its row; v0.1.0 wrote the pseudonym beside the text."""
    return Line(stored if isinstance(stored, str) else stored["text"])


def _count(db: sqlite3.Connection, state: str) -> int:
    row = db.execute("SELECT COUNT(*) FROM windows WHERE state = ?", (state,)).fetchone()
    return int(row[0])


def _figure(db: sqlite3.Connection, name: str) -> float:
    row = db.execute("SELECT value FROM figures WHERE name = ?", (name,)).fetchone()
    return float(row[0]) if row else 0.0


def _count_up(db: sqlite3.Connection, name: str, value: float) -> None:
    db.execute(
        "INSERT INTO figures (name, value) VALUES (?, ?)"
        " ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
        (name, value),
    )
