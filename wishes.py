"""Wishes to erase, as they stand in the outbox's file until the server agrees with them.

All functions are parts of the outbox's transactions, so that a wish is written together with what
it changes in the queue.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from . import withdrawn
from .transcript import Line, TurnRecord, document_prefix, owners, without_person

CUTOFF_SECONDS = 24 * 3600.0
"""No turn takes longer."""

_SELECT_ERASURE = "SELECT chat, tags, profile, whole FROM erasures"


@dataclass(frozen=True)
class Erasure:
    """What must yet vanish from the server; kept on disk until it has.

    Attributes:
        chat: The chat's hash.
        tags: The chat's four tags.
        profile: The id of its mental model.
        documents: Ids of documents that are to go, or that a queued retain may still write.
        people: Pseudonyms of those whose words are to go from everything of the chat.
        lines: Keys of single lines that are to go, see `withdrawn`, with the document of each.
        whole: Everything of the chat must go.
        at: When it was wished, in seconds of the monotonic clock: what people have begun to say
            before is not stored afterwards. 0 concerns nobody.
        said_before: The same in Unix seconds, for what is imported.
    """

    chat: str
    tags: tuple[str, ...]
    profile: str
    documents: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    whole: bool = False
    at: float = 0.0
    lines: Mapping[str, str] = field(default_factory=dict)
    said_before: float = 0.0

    @property
    def is_held(self) -> bool:
        """Whether nothing of the chat is sent until the server agrees."""
        return self.whole or bool(self.people) or bool(self.lines)

    def is_useless(self, document_id: str) -> bool:
        """Whether a document of this id has nothing that may stay."""
        is_ours = document_id.startswith(document_prefix(self.chat))
        return document_id in self.documents or (self.whole and is_ours)

    def concerns(self, document_id: str) -> bool:
        """Whether a document of this id may hold what is to go."""
        is_ours = document_id.startswith(document_prefix(self.chat))
        return document_id in self.documents or (self.is_held and is_ours)

    def may_stand_in(self, document_id: str) -> bool:
        """Whether a stored document may hold lines that are to go."""
        return bool(self.people) or document_id in self.lines.values()

    def staying(self, lines: Sequence[Line]) -> list[Line]:
        """The lines that stay when these people and lines go."""
        kept = withdrawn.without(self.chat, self.lines, lines) if self.lines else list(lines)
        for person in self.people:
            kept = without_person(kept, person)
        return kept


@dataclass(frozen=True)
class Edited:
    """What an edit has taken out.

    Attributes:
        waiting: Lines of what waits here.
        lines: Lines of documents.
        documents: Documents that are to go, as far as they stay under another id.
    """

    waiting: int = 0
    lines: int = 0
    documents: int = 0


def number_gone(lines: Iterable[Line], kept: Iterable[Line]) -> int:
    """How many lines an edit took out, or put others in the place of."""
    return (Counter(lines) - Counter(kept)).total()


def note(db: sqlite3.Connection, erasure: Erasure, document_ids: Iterable[str] = ()) -> None:
    """Adds to what must vanish of a chat."""
    db.execute(
        "INSERT INTO erasures (chat, tags, profile, whole) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (chat) DO UPDATE SET whole = MAX(whole, excluded.whole)",
        (erasure.chat, json.dumps(erasure.tags), erasure.profile, int(erasure.whole)),
    )
    db.executemany(
        "INSERT OR IGNORE INTO erased_people (chat, person) VALUES (?, ?)",
        [(erasure.chat, one) for one in erasure.people],
    )
    db.executemany(
        "INSERT OR IGNORE INTO erased_lines (chat, line, document_id) VALUES (?, ?, ?)",
        [(erasure.chat, line, place) for line, place in erasure.lines.items()],
    )
    note_documents(db, erasure.chat, [*erasure.documents, *document_ids])
    for person in ("",) if erasure.whole else erasure.people:
        cut_off(db, erasure.chat, person, erasure.at)


def note_documents(db: sqlite3.Connection, chat: str, document_ids: Iterable[str]) -> None:
    """Adds documents to the erasure of a chat."""
    db.executemany(
        "INSERT OR IGNORE INTO erased_documents (chat, document_id) VALUES (?, ?)",
        [(chat, one) for one in document_ids],
    )


def cut_off(db: sqlite3.Connection, chat: str, person: str, at: float) -> None:
    """Keeps what a person, or everybody (empty), has begun to say before from being stored."""
    db.execute("DELETE FROM cutoffs WHERE at < ?", (at - CUTOFF_SECONDS,))
    db.execute("INSERT OR REPLACE INTO cutoffs VALUES (?, ?, ?)", (chat, person, at))


def is_cut_off(db: sqlite3.Connection, turn: TurnRecord) -> bool:
    """Whether a turn began before what it says was erased."""
    people = ["", *owners(turn.lines)[-1:]]
    row = db.execute(
        "SELECT 1 FROM cutoffs WHERE chat = ? AND at > ?"
        " AND person IN (SELECT value FROM json_each(?))",
        (turn.chat, turn.began, json.dumps(people)),
    ).fetchone()
    return row is not None


def forget_earlier_boots(db: sqlite3.Connection, now: float) -> None:
    """Drops the times of another start of the machine, which mean nothing in this one."""
    db.execute("DELETE FROM cutoffs WHERE at > ?", (now,))


def pending(db: sqlite3.Connection) -> list[Erasure]:
    """Erasures that are not complete."""
    rows = db.execute(f"{_SELECT_ERASURE} ORDER BY rowid").fetchall()
    return [_erasure(db, *row) for row in rows]


def pending_of(db: sqlite3.Connection, chat: str) -> Erasure | None:
    """The erasure of a chat that is not complete, if there is one."""
    row = db.execute(f"{_SELECT_ERASURE} WHERE chat = ?", (chat,)).fetchone()
    return _erasure(db, *row) if row else None


def held(db: sqlite3.Connection, chat: str) -> Erasure | None:
    """The erasure that keeps a chat from being sent, if there is one."""
    erasure = pending_of(db, chat)
    return erasure if erasure and erasure.is_held else None


def documents(db: sqlite3.Connection, chat: str) -> set[str]:
    """Ids of the documents of a chat that are to go."""
    return _column(db, "SELECT document_id FROM erased_documents WHERE chat = ?", chat)


def end_wish(db: sqlite3.Connection, chat: str, lines: Iterable[str] = ()) -> None:
    """Lets a chat be sent again, unless more lines are to go than these.

    Documents that were noted are still to go.
    """
    db.execute("UPDATE erasures SET whole = 0 WHERE chat = ?", (chat,))
    db.execute("DELETE FROM erased_people WHERE chat = ?", (chat,))
    db.executemany(
        "DELETE FROM erased_lines WHERE chat = ? AND line = ?", [(chat, one) for one in lines]
    )
    db.execute(
        "DELETE FROM erasures WHERE chat = ? AND chat NOT IN (SELECT chat FROM held_chats)"
        " AND chat NOT IN (SELECT chat FROM erased_documents)",
        (chat,),
    )


def end(db: sqlite3.Connection, chat: str) -> None:
    """Forgets the documents of a chat, of which nothing has been seen for long."""
    db.execute("DELETE FROM erased_documents WHERE chat = ?", (chat,))
    db.execute(
        "DELETE FROM erasures WHERE chat = ? AND chat NOT IN (SELECT chat FROM held_chats)", (chat,)
    )


def _erasure(db: sqlite3.Connection, chat: str, tags: str, profile: str, whole: int) -> Erasure:
    return Erasure(
        chat,
        tuple(json.loads(tags)),
        profile,
        tuple(sorted(documents(db, chat))),
        tuple(sorted(_column(db, "SELECT person FROM erased_people WHERE chat = ?", chat))),
        bool(whole),
        lines=dict(
            db.execute("SELECT line, document_id FROM erased_lines WHERE chat = ?", (chat,))
        ),
    )


def _column(db: sqlite3.Connection, query: str, chat: str) -> set[str]:
    return {value for (value,) in db.execute(query, (chat,))}
