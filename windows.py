"""Windows, as they stand in the outbox's file.

A *window* is a run of turns of one chat that becomes one document. It is `open` while turns are
added, `sealed` when it is to be sent, `import` when it is to be sent behind all that are sealed,
and `aside` when it cannot be sent. Its document id and operation id are fixed when the window is
made, before anything is sent, so that sending it again is harmless: delivery is at least once, the
effect exactly once. Windows are addressed by their document id, so that an answer about one of a
damaged file reaches none of the file after it.

All functions are parts of the outbox's transactions, like those of `wishes`.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from . import withdrawn
from .hindsight_types import RetainItem
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

MAX_WINDOW_CHARS = 6000
"""A window is sealed at this size; Hindsight extracts facts from chunks of 3000 characters."""
LISTENED_LINES = 30
"""A window of a chat that listens is sealed at so many lines, whoever said them."""

State = Literal["open", "sealed", "import", "aside"]


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


def insert(
    db: sqlite3.Connection,
    state: State,
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


def rewrite(
    db: sqlite3.Connection,
    row_id: int,
    state: State,
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


def add_turn(db: sqlite3.Connection, turn: TurnRecord) -> str:
    """Puts a turn in its chat's open window, or in a new one; returns the document id."""
    row = db.execute(
        "SELECT id, document_id FROM windows WHERE chat = ? AND state = 'open'", (turn.chat,)
    ).fetchone()
    if row is None:
        return insert(db, "open", turn.chat, turn.header, [turn.lines])
    row_id, document_id = row
    _append(db, row_id, turn)
    return str(document_id)


def is_full(
    db: sqlite3.Connection, document_id: str, *, every_n_turns: int, is_listened: bool
) -> bool:
    """Whether an open window is to be sealed.

    Args:
        db: The database.
        document_id: The window's.
        every_n_turns: Turns that fill it.
        is_listened: Its chat listens; then lines are counted.
    """
    row_id, turns, chars = db.execute(
        "SELECT id, turns, chars FROM windows WHERE document_id = ?", (document_id,)
    ).fetchone()
    if chars >= MAX_WINDOW_CHARS:
        return True
    if is_listened:
        return _number_of_lines(db, row_id) >= LISTENED_LINES
    return bool(turns >= every_n_turns)


def seal(db: sqlite3.Connection, document_ids: Collection[str] | None = None) -> int:
    """Makes open windows ready to be sent: these, or all; returns how many."""
    sealed = "UPDATE windows SET state = 'sealed' WHERE state = 'open'"
    if document_ids is None:
        return db.execute(sealed).rowcount
    these = f"{sealed} AND document_id = ?"
    return sum(db.execute(these, (one,)).rowcount for one in document_ids)


def next_row(
    db: sqlite3.Connection, excluding: Collection[str], skipping: Collection[str]
) -> tuple[int, Window | None] | None:
    """The oldest window that may be sent, and its row.

    Args:
        db: The database.
        excluding: Hashes of chats.
        skipping: Document ids of windows.

    Returns:
        No window where the row cannot be read, and None where there is no row.
    """
    for state in ("sealed", "import"):
        found = db.execute(
            "SELECT id FROM windows INDEXED BY windows_by_state WHERE state = ?"
            " AND chat NOT IN (SELECT value FROM json_each(?))"
            " AND chat NOT IN (SELECT chat FROM held_chats)"
            " AND document_id NOT IN (SELECT value FROM json_each(?)) ORDER BY id LIMIT 1",
            (state, json.dumps(list(excluding)), json.dumps(list(skipping))),
        ).fetchone()
        if found:
            return found[0], _in_row(db, found[0])
    return None


def of_chat(db: sqlite3.Connection, chat: str) -> list[tuple[int, State, Window | None]]:
    """Row, state and window of everything of a chat; no window where it cannot be read."""
    rows = db.execute("SELECT id, state FROM windows WHERE chat = ? ORDER BY id", (chat,))
    return [(row_id, state, _in_row(db, row_id)) for row_id, state in rows.fetchall()]


def find(db: sqlite3.Connection, document_id: str) -> Window | None:
    """The window of a document; None where there is none, or it cannot be read."""
    row = db.execute("SELECT id FROM windows WHERE document_id = ?", (document_id,)).fetchone()
    return _in_row(db, row[0]) if row else None


def has(db: sqlite3.Connection, document_id: str) -> bool:
    """Whether a document waits."""
    row = db.execute("SELECT 1 FROM windows WHERE document_id = ?", (document_id,)).fetchone()
    return row is not None


def has_turn(db: sqlite3.Connection, turn: TurnRecord) -> bool:
    """Whether a turn waits, in whichever window."""
    row = db.execute(
        "SELECT 1 FROM windows JOIN turns ON turns.window = windows.id"
        " WHERE windows.chat = ? AND turns.lines = ?",
        (turn.chat, _stored(turn.lines)),
    ).fetchone()
    return row is not None


def open_ids(db: sqlite3.Connection, chat: str) -> set[str]:
    """The document ids of a chat that stand for nothing that was sent."""
    rows = db.execute("SELECT document_id FROM windows WHERE chat = ? AND state = 'open'", (chat,))
    return {one for (one,) in rows}


def renew_operation(db: sqlite3.Connection, window: Window) -> None:
    """Gives a window another operation id, where nothing would be run under its own."""
    db.execute(
        "UPDATE windows SET operation_id = ? WHERE document_id = ?",
        (str(uuid.uuid4()), window.document_id),
    )


def set_aside(db: sqlite3.Connection, row_id: int, reason: str) -> None:
    """Keeps a window out of delivery."""
    db.execute("UPDATE windows SET state = 'aside', reason = ? WHERE id = ?", (reason, row_id))


def sealed_rows(db: sqlite3.Connection, document_id: str) -> list[int]:
    """The rows of a document that are to be sent."""
    rows = db.execute(
        "SELECT id FROM windows WHERE document_id = ? AND state IN ('sealed', 'import')",
        (document_id,),
    )
    return [row_id for (row_id,) in rows.fetchall()]


def retry_aside(db: sqlite3.Connection) -> int:
    """Puts the windows that were set aside back, as young as new ones; returns how many."""
    return db.execute(
        "UPDATE windows SET state = 'sealed', reason = '',"
        " uptime = COALESCE((SELECT value FROM figures WHERE name = 'uptime'), 0)"
        " WHERE state = 'aside'"
    ).rowcount


def take_out(db: sqlite3.Connection, document_id: str) -> int:
    """Takes a document that is to be sent out of the queue; returns how many windows it had."""
    return db.execute(
        "DELETE FROM windows WHERE document_id = ? AND state IN ('sealed', 'import')",
        (document_id,),
    ).rowcount


def drop_row(db: sqlite3.Connection, row_id: int) -> None:
    """Drops a window."""
    db.execute("DELETE FROM windows WHERE id = ?", (row_id,))


def drop(db: sqlite3.Connection, document_id: str) -> int | None:
    """Drops a document that waits; returns the number of its turns, None where there is none."""
    row = db.execute("SELECT turns FROM windows WHERE document_id = ?", (document_id,)).fetchone()
    db.execute("DELETE FROM windows WHERE document_id = ?", (document_id,))
    return row[0] if row else None


def drop_chat(db: sqlite3.Connection, chat: str) -> tuple[int, list[str]]:
    """Drops all windows of a chat.

    Returns:
        How many turns they held, and the document ids of those that may have been sent.
    """
    turns = 0
    sent: list[str] = []
    for number, state, document_id in db.execute(
        "SELECT turns, state, document_id FROM windows WHERE chat = ?", (chat,)
    ):
        turns += number
        sent += [document_id] if state != "open" else []
    db.execute("DELETE FROM windows WHERE chat = ?", (chat,))
    return turns, sent


def drop_older(db: sqlite3.Connection, uptime: float) -> int:
    """Drops what was to be sent and is older than this; returns how many."""
    return db.execute(
        "DELETE FROM windows WHERE state = 'sealed' AND uptime < ?", (uptime,)
    ).rowcount


def drop_oldest(db: sqlite3.Connection, number: int) -> None:
    """Drops the oldest windows that are not open."""
    db.execute(
        "DELETE FROM windows WHERE id IN (SELECT id FROM windows WHERE state <> 'open'"
        " ORDER BY id LIMIT ?)",
        (number,),
    )


def count(db: sqlite3.Connection) -> tuple[int, int]:
    """How many windows are to be sent, and how many are set aside."""
    numbers = dict(
        db.execute("SELECT state, COUNT(*) FROM windows WHERE state <> 'open' GROUP BY state")
    )
    return numbers.get("sealed", 0) + numbers.get("import", 0), numbers.get("aside", 0)


def count_importing(db: sqlite3.Connection) -> int:
    """How many windows of imports are to be sent."""
    number: int = db.execute("SELECT COUNT(*) FROM windows WHERE state = 'import'").fetchone()[0]
    return number


def count_open_turns(db: sqlite3.Connection) -> int:
    """How many turns are in windows that are not sealed yet."""
    number: int = db.execute(
        "SELECT COALESCE(SUM(turns), 0) FROM windows WHERE state = 'open'"
    ).fetchone()[0]
    return number


def count_aside(db: sqlite3.Connection) -> dict[str, int]:
    """How many windows are set aside, by reason."""
    return dict(
        db.execute("SELECT reason, COUNT(*) FROM windows WHERE state = 'aside' GROUP BY reason")
    )


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
    if window := _in_row(db, row_id):
        lines = in_order(window.document.lines)
        rewrite(db, row_id, "open", window, group_turns(lines))


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


def _in_row(db: sqlite3.Connection, row_id: int) -> Window | None:
    """The window of a row; None where it is not one that could be sent."""
    chat, document_id, operation_id, header, chars = db.execute(
        "SELECT chat, document_id, operation_id, header, chars FROM windows WHERE id = ?", (row_id,)
    ).fetchone()
    stored = _stored_turns(db, row_id)
    try:
        turns = tuple(tuple(map(_line, json.loads(lines))) for lines in stored)
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


def _stored_turns(db: sqlite3.Connection, row_id: int) -> list[str]:
    rows = db.execute("SELECT lines FROM turns WHERE window = ? ORDER BY id", (row_id,))
    return [lines for (lines,) in rows.fetchall()]


def _insert_turns(db: sqlite3.Connection, row_id: int, turns: Iterable[TurnLines]) -> None:
    for lines in turns:
        db.execute("INSERT INTO turns (window, lines) VALUES (?, ?)", (row_id, _stored(lines)))


def _stored(lines: TurnLines) -> str:
    """The lines of a turn as they stand in their row."""
    return _json([{"text": one.text, "came": one.came} if one.came else one.text for one in lines])


def _json(content: Any) -> str:
    """JSON that every file takes: half a character must not keep all turns from the disk."""
    return json.dumps(content, ensure_ascii=False).encode("utf-8", "replace").decode("utf-8")
