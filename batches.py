"""Imports as they stand in the outbox's file: which windows came of which, and what none may hold.

All functions are parts of the outbox's transactions, like those of `wishes`. Windows of an import
wait in a state of their own, behind all others, and whatever their documents are called later,
the import they came of is known.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from .transcript import Header, Line, TurnLines, TurnRecord, document_prefix
from .wishes import is_cut_off

IMPORT_MARK = "import-"
"""What follows the chat in the ids of documents that an import made."""


@dataclass(frozen=True)
class PastTurn:
    """A turn that was said before.

    Attributes:
        key: A hash that tells it from all others of its chat.
        lines: What was said.
    """

    key: str
    lines: TurnLines


@dataclass(frozen=True)
class PastWindow:
    """A window of an import.

    Attributes:
        document_id: The same for the same turns.
        header: What they have in common.
        turns: In order.
    """

    document_id: str
    header: Header
    turns: tuple[PastTurn, ...]


@dataclass(frozen=True)
class Batch:
    """What one import brings.

    Attributes:
        chat: The chat's hash.
        windows: In order.
        began: When it was read, in monotonic seconds: what is erased after that covers it.
    """

    chat: str
    windows: tuple[PastWindow, ...]
    began: float


@dataclass(frozen=True)
class Silence:
    """A time of which nothing is to be remembered.

    Attributes:
        person: Whose words; empty for everybody's.
        since: Unix seconds.
        until: Unix seconds.
    """

    person: str
    since: float
    until: float


@dataclass(frozen=True)
class ImportFacts:
    """What is known of a chat's imports.

    Attributes:
        documents: Ids of what they have made.
        messages: Keys of what they have brought.
        stored_since: No line that was not imported was older (Unix seconds), as far as known.
        silences: What none may bring.
        number: How many have come to an end before their time.
    """

    documents: frozenset[str] = frozenset()
    messages: frozenset[str] = frozenset()
    stored_since: float = math.inf
    silences: tuple[Silence, ...] = ()
    number: int = 0


Phase = Literal["running", "arrived", "told", "stopped", "undone"]


@dataclass(frozen=True)
class Progress:
    """How far an import is.

    Attributes:
        chat: The chat's hash.
        batch: Its number.
        phase: `arrived` until the chat was told of it.
        windows: All of its windows.
        lines: All of its lines.
        left: Windows that wait.
        aside: Windows that cannot be sent.
    """

    chat: str
    batch: int
    phase: Phase
    windows: int
    lines: int
    left: int
    aside: int


def new_windows(db: sqlite3.Connection, batch: Batch) -> list[PastWindow]:
    """The windows of a batch, without what is erased meanwhile or was brought already."""
    known = _messages(db, batch.chat)
    silences = _silences(db, batch.chat)
    found: list[PastWindow] = []
    for window in batch.windows:
        turns = tuple(
            turn
            for turn in window.turns
            if turn.key not in known
            and not is_cut_off(
                db, TurnRecord(batch.chat, window.header, turn.lines, began=batch.began)
            )
            and not is_silent(turn.lines, silences)
        )
        if turns:
            found.append(PastWindow(window.document_id, window.header, turns))
    return found


def note_batch(db: sqlite3.Connection, chat: str, windows: Sequence[PastWindow]) -> None:
    """Notes what an import has put in the queue."""
    lines = sum(len(turn.lines) for window in windows for turn in window.turns)
    row = (chat, len(windows), lines)
    added = db.execute(
        "INSERT INTO batches (chat, state, windows, lines) VALUES (?, 'running', ?, ?)", row
    )
    for window in windows:
        db.execute(
            "INSERT INTO batch_documents VALUES (?, ?)", (window.document_id, added.lastrowid)
        )
        db.executemany(
            "INSERT INTO batch_messages VALUES (?, ?, ?)",
            [(chat, turn.key, window.document_id) for turn in window.turns],
        )


def facts(db: sqlite3.Connection, chat: str) -> ImportFacts:
    """What is known of a chat's imports."""
    since = db.execute("SELECT at FROM stored_since WHERE chat = ?", (chat,)).fetchone()
    documents = db.execute(
        "SELECT document_id FROM batch_documents JOIN batches USING (batch) WHERE chat = ?", (chat,)
    )
    number = db.execute(
        "SELECT COUNT(*) FROM batches WHERE chat = ? AND state IN ('stopped', 'undone')", (chat,)
    ).fetchone()
    return ImportFacts(
        documents=frozenset(one for (one,) in documents),
        messages=frozenset(_messages(db, chat)),
        stored_since=since[0] if since else math.inf,
        silences=tuple(_silences(db, chat)),
        number=number[0],
    )


def progress(db: sqlite3.Connection, chat: str = "") -> list[Progress]:
    """How far imports are: those that are not told of yet, or the latest one of a chat."""
    which = (
        "chat = ? AND state <> 'undone' ORDER BY batch DESC LIMIT 1"
        if chat
        else "? = '' AND state IN ('running', 'arrived') ORDER BY batch"
    )
    rows = db.execute(
        f"SELECT chat, batch, state, windows, lines FROM batches WHERE {which}",  # noqa: S608
        (chat,),
    ).fetchall()
    found: list[Progress] = []
    for chat_hash, batch, state, windows, lines in rows:
        waiting = dict(
            db.execute(
                "SELECT windows.state, COUNT(*) FROM batch_documents JOIN windows"
                " USING (document_id) WHERE batch = ? GROUP BY windows.state",
                (batch,),
            ).fetchall()
        )
        aside = waiting.pop("aside", 0)
        left = sum(waiting.values())
        found.append(Progress(chat_hash, batch, state, windows, lines, left, aside))
    return found


def set_phase(db: sqlite3.Connection, batch: int, phase: Phase) -> None:
    """Notes how far an import is, unless it has ended before."""
    db.execute(
        "UPDATE batches SET state = ? WHERE batch = ? AND state NOT IN ('stopped', 'undone')",
        (phase, batch),
    )


def end(db: sqlite3.Connection, batch: int, phase: Phase, document_ids: Iterable[str]) -> None:
    """Ends an import, and forgets documents, so that another one may bring the same again."""
    db.execute("UPDATE batches SET state = ? WHERE batch = ?", (phase, batch))
    for one in document_ids:
        db.execute("DELETE FROM batch_documents WHERE document_id = ?", (one,))
        db.execute("DELETE FROM batch_messages WHERE document_id = ?", (one,))


def documents_of(db: sqlite3.Connection, batch: int) -> list[str]:
    """Ids of what an import has made, as they are at present."""
    rows = db.execute("SELECT document_id FROM batch_documents WHERE batch = ?", (batch,))
    return [one for (one,) in rows]


def changed(
    db: sqlite3.Connection, chat: str, old_id: str, new_id: str, lines: Sequence[Line]
) -> None:
    """Notes that a document is edited, and under which id it goes on.

    What was not imported tells since when lines are stored here, also once they are gone.
    """
    found = db.execute(
        "UPDATE batch_documents SET document_id = ? WHERE document_id = ?", (new_id, old_id)
    ).rowcount
    if found:
        db.execute(
            "UPDATE batch_messages SET document_id = ? WHERE document_id = ?", (new_id, old_id)
        )
        return
    times = [line.at.timestamp() for line in lines if line.at]
    if times and not old_id.startswith(document_prefix(chat) + IMPORT_MARK):
        db.execute(
            "INSERT INTO stored_since VALUES (?, ?)"
            " ON CONFLICT (chat) DO UPDATE SET at = MIN(at, excluded.at)",
            (chat, min(times)),
        )


def leave_out(db: sqlite3.Connection, chat: str, silence: Silence) -> None:
    """Keeps a time from being imported."""
    if silence.until > silence.since:
        db.execute(
            "INSERT INTO left_out VALUES (?, ?, ?, ?) ON CONFLICT (chat, person, since)"
            " DO UPDATE SET until = MAX(until, excluded.until)",
            (chat, silence.person, silence.since, silence.until),
        )


def end_silence(db: sqlite3.Connection, chat: str, now: float) -> None:
    """Ends a silence of everybody whose end was not known."""
    db.execute(
        "UPDATE left_out SET until = ? WHERE chat = ? AND person = '' AND until = ?",
        (now, chat, math.inf),
    )


def wiped(db: sqlite3.Connection, chat: str) -> None:
    """Notes that nothing of a chat's imports is there any more."""
    for (batch,) in db.execute("SELECT batch FROM batches WHERE chat = ?", (chat,)).fetchall():
        end(db, batch, "undone", documents_of(db, batch))
    db.execute("DELETE FROM batch_messages WHERE chat = ?", (chat,))
    db.execute("DELETE FROM stored_since WHERE chat = ?", (chat,))


def is_silent(lines: TurnLines, silences: Iterable[Silence]) -> bool:
    """Whether a turn was said at a time of which nothing is to be remembered."""
    first = lines[0]
    at = first.at.timestamp() if first.at else 0.0
    speakers = {"", *(line.pseudonym or line.answered for line in lines)}
    # A line tells whole seconds, and in doubt it is left out.
    return any(s.person in speakers and s.since < at + 1.0 and at < s.until for s in silences)


def _messages(db: sqlite3.Connection, chat: str) -> set[str]:
    rows = db.execute("SELECT message FROM batch_messages WHERE chat = ?", (chat,))
    return {one for (one,) in rows}


def _silences(db: sqlite3.Connection, chat: str) -> list[Silence]:
    rows = db.execute("SELECT person, since, until FROM left_out WHERE chat = ?", (chat,))
    return [Silence(*row) for row in rows]
