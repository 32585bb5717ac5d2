"""Transactions on the outbox's file, on a thread of their own, since SQLite calls block."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .outbox_file import Connect, is_corrupt, move_aside, prepare


class Transactions:
    """Runs transactions.

    Args:
        path: The database's file.
        begin: Is done whenever the file was opened, before anything else.
        connect: See `Outbox`.
        sync: See `Outbox`.

    Attributes:
        moved_aside: Name of the corrupt database that this run replaced, or empty.
    """

    def __init__(
        self,
        path: Path,
        begin: Callable[[sqlite3.Connection], None],
        *,
        connect: Connect,
        sync: Callable[[Path], None],
    ) -> None:
        self._path = path
        self._begin = begin
        self._connect = connect
        self._sync = sync
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hindsight-outbox")
        self._disk_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hindsight-disk")
        self._connection: sqlite3.Connection | None = None
        self._closed = False
        self.moved_aside = ""

    @property
    def is_open(self) -> bool:
        """Whether the file is open, so that what `begin` has read in it is known."""
        return self._connection is not None

    async def run[Result](self, action: Callable[[sqlite3.Connection], Result]) -> Result:
        """Runs one transaction: all of it happens, or nothing.

        Raises:
            sqlite3.Error, OSError: See `Outbox`.
        """
        self._check_open()
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, self._transact, action
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

    def _transact[Result](self, action: Callable[[sqlite3.Connection], Result]) -> Result:
        try:
            return self._attempt(action)
        except sqlite3.Error as error:
            if not is_corrupt(error):
                raise
            self.moved_aside = move_aside(self._path)
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
                    self._begin(db)
            except BaseException:
                db.close()
                raise
            self._connection = db
        return self._connection
