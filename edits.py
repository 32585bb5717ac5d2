"""What must vanish from the queue: windows, wishes and imports changed together.

All functions are parts of the outbox's transactions, like those of `wishes`.
"""

from __future__ import annotations

import functools
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace

from . import batches, counters, windows, wishes, withdrawn
from .batches import Phase, Silence
from .transcript import Document, Line, group_turns
from .wishes import Edited, Erasure, number_gone

Edit = Callable[[Sequence[Line]], list[Line]]
"""Takes lines and returns those that stay."""


def drop_chat(db: sqlite3.Connection, erasure: Erasure) -> int:
    """Drops all windows of a chat, and notes what must vanish with what may have been sent.

    Returns:
        How many turns they held.
    """
    turns, sent = windows.drop_chat(db, erasure.chat)
    _note(db, erasure, sent)
    batches.wiped(db, erasure.chat)
    return turns


def edit_chat(
    db: sqlite3.Connection, erasure: Erasure, edit: Edit, documents: Sequence[Document]
) -> Edited:
    """Edits the lines of all waiting windows of a chat, and of documents that are stored.

    Changed windows that may have been sent get new ids, and the old ones are noted for
    erasure with whatever the erasure names. What cannot be read is dropped: it may be theirs.

    Args:
        db: The database.
        erasure: What must vanish.
        edit: Which lines stay.
        documents: See `replace_documents`.
    """
    removed = 0
    sent: list[str] = []
    for row_id, state, window in windows.of_chat(db, erasure.chat):
        lines = list(window.document.lines) if window else []
        kept = edit(lines)
        if window and kept == lines:
            continue
        removed += number_gone(lines, kept)
        sent += [window.document_id] if window and state != "open" else []
        if window and kept:
            new_id = windows.rewrite(db, row_id, state, window, group_turns(kept))
            batches.changed(db, erasure.chat, window.document_id, new_id, lines)
        else:
            windows.drop_row(db, row_id)
    if sent or erasure.is_held:
        _note(db, erasure, sent)
    return replace(replace_documents(db, erasure, edit, documents), waiting=removed)


def withdraw(db: sqlite3.Connection, erasure: Erasure, message: str, *, at: float) -> None:
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
        unsent = windows.open_ids(db, erasure.chat)
        lines = {line: place for line, place in found.items() if place not in unsent}
        edit = functools.partial(withdrawn.without, erasure.chat, found)
        edit_chat(db, replace(erasure, lines=lines), edit, ())
        counters.count_up(db, "withdrawn", 1)


def replace_documents(
    db: sqlite3.Connection, erasure: Erasure, edit: Edit, documents: Sequence[Document]
) -> Edited:
    """Notes stored documents for erasure, and queues what stays of each as a new one.

    What is noted already stays as it is: what stays of it is queued, or was. While everything
    of the chat is to vanish, nothing is queued; while people are, not their lines.
    """
    noted = wishes.documents(db, erasure.chat)
    pending = wishes.pending_of(db, erasure.chat) or erasure
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
            new_id = windows.insert(db, "sealed", erasure.chat, document.header, turns)
        batches.changed(db, erasure.chat, document.document_id, new_id, document.lines)
    if replaced:
        _note(db, erasure, replaced)
    return Edited(lines=lines, documents=len(replaced))


def end_import(db: sqlite3.Connection, erasure: Erasure, batch: int, phase: Phase) -> Edited:
    """Drops what waits of an import and, where it is undone, notes its documents for erasure.

    What waits may have been sent already, so it is noted, too.
    """
    ids = batches.documents_of(db, batch)
    found = [(one, windows.drop(db, one)) for one in ids]
    waiting = {one: turns for one, turns in found if turns is not None}
    gone = ids if phase == "undone" else list(waiting)
    batches.end(db, batch, phase, gone)
    if gone:
        wishes.note(db, erasure, gone)
    return Edited(waiting=sum(waiting.values()), documents=len(gone) - len(waiting))


def _note(db: sqlite3.Connection, erasure: Erasure, document_ids: Sequence[str]) -> None:
    """Notes what must vanish, and that no import may bring it back."""
    wishes.note(db, erasure, document_ids)
    for person in ("",) if erasure.whole else erasure.people:
        batches.leave_out(db, erasure.chat, Silence(person, 0.0, erasure.said_before))
