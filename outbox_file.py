"""The outbox's database file: made once, opened, brought up to date, moved aside when damaged.

POSIX knows a process's locks on a file, not a descriptor's: whoever opens and closes the file
beside SQLite takes SQLite's locks away, and another process that reads it then deletes the log
with everything that is not in the database yet. So nothing here opens a file that is there.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

DATABASE_FILE = "outbox.db"

Connect = Callable[[Path], sqlite3.Connection]

_PRIMARY_CODE = 0xFF
_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}

_SCHEMA = """
CREATE TABLE windows (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    state TEXT NOT NULL,
    chat TEXT NOT NULL,
    document_id TEXT NOT NULL,
    operation_id TEXT NOT NULL,
    header TEXT NOT NULL,
    turns INTEGER NOT NULL,
    chars INTEGER NOT NULL,
    uptime REAL NOT NULL,
    reason TEXT NOT NULL DEFAULT ''
);
CREATE INDEX windows_by_state ON windows (state, id, chat);
CREATE INDEX windows_by_chat ON windows (chat, state);
CREATE INDEX windows_by_document ON windows (document_id);
CREATE TABLE turns (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    window INTEGER NOT NULL REFERENCES windows (id) ON DELETE CASCADE,
    lines TEXT NOT NULL
);
CREATE INDEX turns_by_window ON turns (window);
CREATE TABLE erasures (
    chat TEXT PRIMARY KEY, tags TEXT NOT NULL, profile TEXT NOT NULL, whole INTEGER NOT NULL
);
CREATE TABLE erased_documents (
    chat TEXT NOT NULL, document_id TEXT NOT NULL, PRIMARY KEY (chat, document_id)
) WITHOUT ROWID;
CREATE TABLE erased_people (
    chat TEXT NOT NULL, person TEXT NOT NULL, PRIMARY KEY (chat, person)
) WITHOUT ROWID;
CREATE TABLE cutoffs (
    chat TEXT NOT NULL, person TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (chat, person)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS figures (name TEXT PRIMARY KEY, value REAL NOT NULL);
CREATE TABLE batches (
    batch INTEGER PRIMARY KEY AUTOINCREMENT,
    chat TEXT NOT NULL,
    state TEXT NOT NULL,
    windows INTEGER NOT NULL,
    lines INTEGER NOT NULL
);
CREATE INDEX batches_by_chat ON batches (chat);
CREATE TABLE batch_documents (document_id TEXT PRIMARY KEY, batch INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX batch_documents_by_batch ON batch_documents (batch);
CREATE TABLE batch_messages (
    chat TEXT NOT NULL, message TEXT NOT NULL, document_id TEXT NOT NULL,
    PRIMARY KEY (chat, message)
) WITHOUT ROWID;
CREATE INDEX batch_messages_by_document ON batch_messages (document_id);
CREATE TABLE stored_since (chat TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE left_out (chat TEXT NOT NULL, person TEXT NOT NULL, since REAL NOT NULL,
    until REAL NOT NULL, PRIMARY KEY (chat, person, since)) WITHOUT ROWID;
CREATE TABLE said (
    message TEXT NOT NULL, line TEXT NOT NULL, chat TEXT NOT NULL, document_id TEXT NOT NULL,
    at REAL NOT NULL, PRIMARY KEY (message, line)
) WITHOUT ROWID;
CREATE INDEX said_by_line ON said (line);
CREATE INDEX said_by_time ON said (at);
CREATE TABLE erased_lines (
    chat TEXT NOT NULL, line TEXT NOT NULL, document_id TEXT NOT NULL, PRIMARY KEY (chat, line)
) WITHOUT ROWID;
CREATE VIEW held_chats AS
    SELECT chat FROM erasures WHERE whole UNION SELECT chat FROM erased_people
    UNION SELECT chat FROM erased_lines;
"""

VERSION = 1
"""Of the tables, as released; those of 0.1.0 have 0."""

_SET_OLD_TABLES_BY = """
DROP INDEX windows_by_state;
DROP INDEX windows_by_chat;
DROP INDEX turns_by_window;
ALTER TABLE windows RENAME TO old_windows;
ALTER TABLE turns RENAME TO old_turns;
ALTER TABLE erasures RENAME TO old_erasures;
"""
_COPY_OLD_TABLES = """
INSERT INTO windows (state, chat, document_id, operation_id, header, turns, chars, uptime, reason)
    SELECT state, chat, document_id, operation_id, header, turns, chars, uptime, reason
    FROM old_windows ORDER BY position, id;
INSERT INTO turns (window, lines)
    SELECT windows.id, old_turns.lines FROM old_turns
    JOIN old_windows ON old_windows.id = old_turns.window
    JOIN windows ON windows.document_id = old_windows.document_id ORDER BY old_turns.id;
INSERT INTO erasures (chat, tags, profile, whole)
    SELECT chat, tags, profile, whole FROM old_erasures;
INSERT OR IGNORE INTO erased_documents (chat, document_id)
    SELECT chat, value FROM old_erasures, json_each(old_erasures.documents);
DROP TABLE old_turns;
DROP TABLE old_windows;
DROP TABLE old_erasures;
"""


class NewerFileError(sqlite3.DatabaseError):
    """A later version of the plugin wrote this file; this one leaves it alone."""


def connect(path: Path) -> sqlite3.Connection:
    """Opens the database for its owner only; WAL survives a kill at any moment."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    db = sqlite3.connect(path, check_same_thread=False)
    try:
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
            db.execute(f"PRAGMA {pragma}")
    except sqlite3.Error:
        db.close()
        raise
    return db


def prepare(db: sqlite3.Connection) -> None:
    """Makes the tables, or brings those of an earlier version up to date.

    Raises:
        NewerFileError: They are a later version's.
    """
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise NewerFileError(f"{DATABASE_FILE} was written by a later version of the plugin")
    if version == VERSION:
        return
    row = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'windows'").fetchone()
    change = _SET_OLD_TABLES_BY + _SCHEMA + _COPY_OLD_TABLES if row else _SCHEMA
    db.executescript(f"BEGIN IMMEDIATE; {change} PRAGMA user_version = {VERSION}; COMMIT;")


def sync_log(path: Path) -> None:
    """Waits until the disk has what is committed.

    In WAL mode with `synchronous = NORMAL` SQLite itself waits at a checkpoint only. The log has
    no locks, so it may be opened here.
    """
    with contextlib.suppress(FileNotFoundError):  # nothing was committed since the database closed
        _sync(path.with_name(path.name + "-wal"), os.O_RDWR)
        if hasattr(os, "O_DIRECTORY"):
            _sync(path.parent, os.O_DIRECTORY)  # the log's name


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_corrupt(error: sqlite3.Error) -> bool:
    """Whether the file itself is damaged, rather than the disk unwilling."""
    return getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE in _CORRUPT


def move_aside(path: Path) -> str:
    """Renames a damaged database and its helpers, so that nothing of it is lost.

    Returns:
        The new name.
    """
    number = 1
    while (target := path.with_suffix(f".corrupt-{number}.db")).exists():
        number += 1
    for suffix in ("-wal", "-shm"):
        helper = path.with_name(path.name + suffix)
        if helper.exists():
            helper.replace(target.with_name(target.name + suffix))
    path.replace(target)
    return target.name
