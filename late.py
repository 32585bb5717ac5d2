"""Turns that cannot go into the outbox: files beside it, which the next instance takes in.

AstrBot replaces a plugin while models are still at work for the old one; and a disk may be too
busy for the outbox while a reply waits. Each file is written as a whole and needs no lock; its
turns have their ids already, so that taking them in twice changes nothing.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .scope import write_private
from .transcript import Header, Line, TurnRecord, new_document_id

_PATTERN = "late-*.json"


@dataclass(frozen=True)
class LateTurn:
    """A turn that goes into the outbox as a window of its own.

    Attributes:
        document_id: Of its window.
        operation_id: Of its window.
        turn: What was said.
    """

    document_id: str
    operation_id: str
    turn: TurnRecord


def new_late_path(folder: Path) -> Path:
    """Where a new file may be written."""
    return folder / f"late-{uuid.uuid4()}.json"


def write_late(path: Path, turns: Sequence[TurnRecord], *, in_haste: bool = False) -> None:
    """Keeps turns for the next instance that looks.

    Args:
        path: See `new_late_path`.
        turns: What to keep.
        in_haste: Does not wait for the disk: it survives a kill, but not a power cut.

    Raises:
        OSError: The folder cannot be written to.
    """
    rows = [
        {
            "document_id": new_document_id(turn.chat),
            "operation_id": str(uuid.uuid4()),
            "chat": turn.chat,
            "header": turn.header.to_json(),
            "lines": [line.text for line in turn.lines],
            "messages": [line.message for line in turn.lines],
            "came": [line.came for line in turn.lines],
            "began": turn.began,
        }
        for turn in turns
    ]
    if in_haste:
        part = path.with_suffix(".part")
        part.touch(0o600)
        part.write_text(json.dumps(rows), "utf-8")
        part.replace(path)
    else:
        write_private(path, json.dumps(rows))


def late_files(folder: Path) -> list[Path]:
    """The files that wait, oldest first."""
    return sorted(folder.glob(_PATTERN), key=_written_at)


def read_late(path: Path) -> list[LateTurn]:
    """The turns of a file.

    Raises:
        ValueError: It is damaged.
    """
    try:
        return [_late_turn(row) for row in json.loads(path.read_text("utf-8"))]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("not turns of this version") from error


def _written_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # another instance has taken it in
        return 0.0


def _late_turn(row: dict[str, Any]) -> LateTurn:
    number = len(row["lines"])  # an earlier version's has nothing but the lines
    messages, came = row.get("messages") or [""] * number, row.get("came") or [0.0] * number
    lines = tuple(Line(*one) for one in zip(row["lines"], messages, came, strict=True))
    header, began = Header.from_json(row["header"]), float(row["began"])
    turn = TurnRecord(row["chat"], header, lines, urgent=True, began=began)
    return LateTurn(row["document_id"], row["operation_id"], turn)
