"""Counts that outlive the process, as they stand in the outbox's file.

All functions are parts of the outbox's transactions, like those of `wishes`.
"""

from __future__ import annotations

import sqlite3


def value(db: sqlite3.Connection, name: str) -> float:
    """A count; 0 where nothing was counted."""
    row = db.execute("SELECT value FROM figures WHERE name = ?", (name,)).fetchone()
    return float(row[0]) if row else 0.0


def count_up(db: sqlite3.Connection, name: str, number: float) -> None:
    """Adds to a count."""
    db.execute(
        "INSERT INTO figures (name, value) VALUES (?, ?)"
        " ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
        (name, number),
    )


def sent_chars(db: sqlite3.Connection, *, day: str) -> int:
    """Characters delivered on a local date."""
    return int(value(db, f"chars:{day}"))


def saved_calls(db: sqlite3.Connection) -> int:
    """How many times less the server had to extract, as turns went together; ever."""
    return int(value(db, "saved_calls"))


def count_delivery(db: sqlite3.Connection, *, turns: int, chars: int, day: str) -> None:
    """Counts a window that was delivered on a local date; of other dates nothing is kept."""
    today = f"chars:{day}"
    db.execute("DELETE FROM figures WHERE name LIKE 'chars:%' AND name <> ?", (today,))
    count_up(db, "sent", 1)
    count_up(db, "sent_chars", chars)
    count_up(db, today, chars)
    count_up(db, "saved_calls", turns - 1)
