"""Who has ever been seen in a chat: keyed hashes on disk, names in memory alone.

So a pseudonym is its owner's for good, and somebody's number is recognised in any later text
without being kept anywhere. The disk never holds up a reply for longer than `WAIT_SECONDS`; where
it fails, people are known until the next start, and what could not be written is tried again.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from logging import Logger
from pathlib import Path
from typing import Any

from .recent import Recent
from .scope import SHORT_PSEUDONYM, UNKNOWN_PERSON, Hasher, Scope

DATABASE_FILE = "people.db"
WAIT_SECONDS = 1.0
MAX_ROSTERS = 1000
"""Chats whose people are held in memory; others are read again when somebody speaks there."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS people (
    chat TEXT NOT NULL, person TEXT NOT NULL, pseudonym TEXT NOT NULL,
    PRIMARY KEY (chat, person)
) WITHOUT ROWID;
"""
_BROKEN = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class Roster:
    """The people of one chat.

    Args:
        hasher: Makes their hashes.
        scope: The chat.
    """

    def __init__(self, hasher: Hasher, scope: Scope) -> None:
        self._hasher = hasher
        self._scope = scope
        self._pseudonyms: dict[str, str] = {}
        self._taken: set[str] = {UNKNOWN_PERSON}
        self._names: Recent[str, str] = Recent()
        self._unsaved: set[str] = set()
        self.is_read = False

    def pseudonym(self, person_id: str) -> str:
        """`#` and six hex digits, or more where another has the same six; always the same."""
        digest = self._digest(person_id)
        if not digest:
            return UNKNOWN_PERSON
        if digest not in self._pseudonyms:
            self._pseudonyms[digest] = self._free(digest)
            self._taken.add(self._pseudonyms[digest])
            self._unsaved.add(digest)
        return self._pseudonyms[digest]

    def knows(self, person_id: str) -> bool:
        """Whether this is the id of somebody who was seen here."""
        return self._digest(person_id) in self._pseudonyms

    def is_taken(self, pseudonym: str) -> bool:
        """Whether it is somebody's, or begins with somebody's."""
        lengths = range(SHORT_PSEUDONYM + 1, len(pseudonym) + 1)
        return any(pseudonym[:length] in self._taken for length in lengths)

    def name(self, person_id: str) -> str:
        """The name that somebody had when last seen, empty if that was before the start."""
        return self._names.get(self._digest(person_id), "")

    def names(self) -> dict[str, str]:
        """The names that people had when last seen, by pseudonym."""
        known = self._pseudonyms
        return {known[digest]: name for digest, name in self._names.items() if digest in known}

    def note(self, person_id: str, name: str) -> None:
        """Notes a cleaned name."""
        self._names.put(self._digest(person_id), name)

    def learn(self, rows: Iterable[tuple[str, str]]) -> None:
        """Takes over what is on disk, which counts more than what was found out meanwhile."""
        self.is_read = True
        for digest, pseudonym in rows:
            self._pseudonyms[digest] = pseudonym
            self._taken.add(pseudonym)
            self._unsaved.discard(digest)

    def unsaved(self) -> list[tuple[str, str]]:
        """Hashes and pseudonyms that are not on disk yet."""
        return [(digest, self._pseudonyms[digest]) for digest in self._unsaved]

    def saved(self, rows: Iterable[tuple[str, str]]) -> None:
        """Notes what is on disk now."""
        self._unsaved.difference_update(digest for digest, _ in rows)

    def _free(self, digest: str) -> str:
        every = (f"#{digest[:length]}" for length in range(SHORT_PSEUDONYM, len(digest), 2))
        return next((one for one in every if one not in self._taken), f"#{digest}")

    def _digest(self, person_id: str) -> str:
        return self._hasher.person(self._scope, person_id)


class People:
    """The people of all chats.

    Args:
        folder: AstrBot's data directory of the plugin.
        hasher: Makes hashes, or None while memory is off.
        logger: Gets what operators should know.
        connect: Opens the database.
        wait: How long the disk may take, in seconds.

    Attributes:
        is_failing: The disk does not keep people at present.
    """

    def __init__(
        self,
        folder: Path,
        hasher: Hasher | None,
        logger: Logger,
        *,
        connect: Callable[[Path], sqlite3.Connection] | None = None,
        wait: float = WAIT_SECONDS,
    ) -> None:
        self._path = folder / DATABASE_FILE
        self._hasher = hasher
        self._logger = logger
        self._connect = connect or _connect
        self._wait = wait
        self._db: sqlite3.Connection | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="hindsight-people")
        self._stalled: asyncio.Future[Any] | None = None
        self._rosters: Recent[str, Roster] = Recent()
        self._is_closed = False
        self.is_failing = False

    def roster(self, scope: Scope) -> Roster:
        """The people of a chat, as far as they are known at this moment."""
        assert self._hasher is not None  # a scope came from it
        roster = self._rosters.get(scope.room) or Roster(self._hasher, scope)
        self._rosters.put(scope.room, roster)
        while len(self._rosters) > MAX_ROSTERS:
            self._rosters.popitem(last=False)
        return roster

    async def meet(self, scope: Scope, ids: Iterable[str]) -> None:
        """Gets a chat's people ready, and keeps those who are new.

        Args:
            scope: The chat.
            ids: Raw ids of everybody in a message.
        """
        roster = self.roster(scope)
        if not roster.is_read:
            rows = await self._on_disk(lambda: self._read(scope.room))
            if rows is not None:
                roster.learn(rows)
        for person_id in ids:
            roster.pseudonym(person_id)
        new = roster.unsaved()
        if new and roster.is_read and await self._on_disk(lambda: self._write(scope.room, new)):
            roster.saved(new)

    async def aclose(self) -> None:
        """Closes the database; a disk that stalls is not waited for."""
        if self._is_closed:
            return
        self._is_closed = True  # first of all: nothing may open it again meanwhile
        job = asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        job.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._thread.shutdown(wait=False)
        await asyncio.wait({job}, timeout=self._wait)

    async def _on_disk[Result](self, work: Callable[[], Result]) -> Result | None:
        """What the disk answers; None where it fails, or does not answer in time."""
        if self._is_closed or (self._stalled and not self._stalled.done()):
            return None
        job = asyncio.get_running_loop().run_in_executor(self._thread, work)
        try:
            async with asyncio.timeout(self._wait):
                result = await asyncio.shield(job)
        except (TimeoutError, sqlite3.Error, OSError) as error:
            if not job.done():
                job.add_done_callback(lambda late: late.cancelled() or late.exception())
                self._stalled = job
            if not self.is_failing:
                self._logger.error("%s cannot be used: %r", DATABASE_FILE, error)  # noqa: TRY400
            self.is_failing = True
            return None
        self.is_failing = False
        return result

    def _read(self, chat: str) -> list[tuple[str, str]]:
        rows = self._open().execute("SELECT person, pseudonym FROM people WHERE chat = ?", (chat,))
        return [(str(person), str(pseudonym)) for person, pseudonym in rows]

    def _write(self, chat: str, rows: Iterable[tuple[str, str]]) -> bool:
        db = self._open()
        with db:
            for person, pseudonym in rows:
                values = (chat, person, pseudonym)
                db.execute("INSERT OR IGNORE INTO people VALUES (?, ?, ?)", values)
        return True

    def _open(self) -> sqlite3.Connection:
        """The database; one that is damaged is put aside for a new one."""
        if self._db is None:
            try:
                self._db = self._opened()
            except sqlite3.DatabaseError as error:
                if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _BROKEN:
                    raise
                self._path.replace(self._path.with_suffix(".damaged"))
                self._db = self._opened()
        return self._db

    def _opened(self) -> sqlite3.Connection:
        db = self._connect(self._path)
        try:
            self._path.chmod(0o600)
            db.executescript(_SCHEMA)
        except (sqlite3.Error, OSError):
            db.close()
            raise
        return db

    def _close(self) -> None:
        if self._db:
            self._db.close()
            self._db = None


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, check_same_thread=False)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
    except sqlite3.Error:
        db.close()
        raise
    return db
