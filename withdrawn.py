"""Which message became which lines, for as long as somebody may withdraw it.

All functions are parts of the outbox's transactions. Messages are keyed hashes of what the platform
calls them; lines are hashes too, so that a stored line can be told without its words being kept.
Where a line stands is noted anew each time it is put into a window.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence

from .transcript import Line, TurnLines, TurnRecord, keep, owners

KEEP_SECONDS = 7 * 24 * 3600.0
"""So long after it was said a message can be told."""
KEY_DIGITS = 16

_MARK = ""
"""Stands for the line of a message that was withdrawn, whether or not it was stored."""


def line_key(chat: str, owner: str, line: Line) -> str:
    """What tells a line of a chat from all others, however the bot's is labelled.

    Args:
        chat: The chat's hash.
        owner: The pseudonym of whose the line is.
        line: The line.
    """
    by = "person" if line.pseudonym else "bot"
    text = "\0".join((chat, by, owner, str(line.at), line.words))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:KEY_DIGITS]


def without(chat: str, gone: Collection[str], lines: Sequence[Line]) -> list[Line]:
    """Lines without those that have one of these keys."""
    return keep(lines, lambda line, owner: line_key(chat, owner, line) not in gone)


def note(db: sqlite3.Connection, turn: TurnRecord, document_id: str) -> None:
    """Notes which lines a turn's messages have become; the bot's answer belongs to each."""
    messages = [line.message for line in turn.lines if line.message]
    if not messages:
        return
    for line, owner in zip(turn.lines, owners(turn.lines), strict=True):
        key, at = line_key(turn.chat, owner, line), line.at.timestamp() if line.at else 0.0
        whose = [line.message] if line.pseudonym or line.message else messages
        db.executemany(
            "INSERT OR IGNORE INTO said (message, line, chat, document_id, at)"
            " VALUES (?, ?, ?, ?, ?)",
            [(message, key, turn.chat, document_id, at) for message in whose if message],
        )


def moved(db: sqlite3.Connection, chat: str, lines: Sequence[Line], document_id: str) -> None:
    """Notes where lines stand now."""
    db.executemany(
        "UPDATE said SET document_id = ? WHERE line = ?",
        [
            (document_id, line_key(chat, owner, line))
            for line, owner in zip(lines, owners(lines), strict=True)
        ],
    )


def as_it_stands(db: sqlite3.Connection, turn: TurnRecord) -> TurnLines:
    """The lines of a turn that are to be stored.

    Not what was withdrawn meanwhile, nor the bot's answer to it; not what is stored already.
    """
    messages = {line.message for line in turn.lines if line.message}
    rows = db.execute(
        "SELECT message, line FROM said WHERE message IN (SELECT value FROM json_each(?))",
        (json.dumps(list(messages)),),
    ).fetchall()
    if not rows:
        return turn.lines
    gone = {message for message, line in rows if line == _MARK}
    stored = {line for _, line in rows if line != _MARK}

    def stays(line: Line, owner: str) -> bool:
        is_withdrawn = line.message in gone or (gone and not line.pseudonym)
        return not is_withdrawn and line_key(turn.chat, owner, line) not in stored

    return tuple(keep(turn.lines, stays))


def is_withdrawn(db: sqlite3.Connection, lines: Iterable[Line]) -> bool:
    """Whether somebody has withdrawn one of the messages that these lines were made of."""
    messages = [line.message for line in lines if line.message]
    row = db.execute(
        "SELECT 1 FROM said WHERE line = ? AND message IN (SELECT value FROM json_each(?))",
        (_MARK, json.dumps(messages)),
    ).fetchone()
    return row is not None


def withdraw(db: sqlite3.Connection, chat: str, message: str, at: float) -> dict[str, str]:
    """Notes that a message was withdrawn, which keeps it from being stored from now on.

    Args:
        db: The database.
        chat: The chat's hash.
        message: Which message.
        at: When, in Unix seconds.

    Returns:
        The keys of its lines that are stored, and of the bot's answers, with their documents.
    """
    found = db.execute(
        "DELETE FROM said WHERE message = ? AND chat = ? AND line <> ? RETURNING line, document_id",
        (message, chat, _MARK),
    ).fetchall()
    db.execute(
        "INSERT OR IGNORE INTO said (message, line, chat, document_id, at) VALUES (?, ?, ?, '', ?)",
        (message, _MARK, chat, at),
    )
    return dict(found)


def forget_old(db: sqlite3.Connection, now: float) -> None:
    """Forgets the messages that nobody can withdraw any more; `now` is in Unix seconds."""
    db.execute("DELETE FROM said WHERE at < ?", (now - KEEP_SECONDS,))
