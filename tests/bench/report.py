"""The table and the JSON file."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.figures import Line, Section
from bench.options import Options

MISSING = "-"


def table(sections: Sequence[Section]) -> str:
    """Return all sections as text, one table each, and a last line that counts the targets."""
    verdicts = [line.met for section in sections for line in section.lines]
    counted = f"targets: {verdicts.count(True)} OK, {verdicts.count(False)} MISSED"
    return "\n\n".join([*map(_section, sections), counted])


def all_met(sections: Sequence[Section]) -> bool:
    """Tell whether no target was missed."""
    return all(line.met is not False for section in sections for line in section.lines)


def _section(section: Section) -> str:
    head = ("", *section.columns, "", "target", "")
    rows = [head, *(_cells(line, section.columns) for line in section.lines)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(head))]
    texts = [section.title, *(_aligned(row, widths) for row in rows)]
    return "\n".join([*texts, *(f"  {note}" for note in section.notes)])


def _cells(line: Line, columns: Sequence[str]) -> tuple[str, ...]:
    values = (
        f"{line.values[column]:,.{line.digits}f}" if column in line.values else MISSING
        for column in columns
    )
    verdict = {None: "", True: "OK", False: "MISSED"}[line.met]
    return (line.name, *values, line.unit, line.target.text if line.target else "", verdict)


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    """Texts to the left, values to the right."""
    last_value = len(row) - 4
    cells = [
        cell.rjust(width) if 0 < at <= last_value else cell.ljust(width)
        for at, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return ("  " + "  ".join(cells)).rstrip()


def as_json(
    sections: Sequence[Section], options: Options, versions: dict[str, str]
) -> dict[str, Any]:
    """Return everything as JSON values.

    Args:
        sections: What was found.
        options: What was asked for.
        versions: Versions of the servers.
    """
    return {
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "machine": {
            "system": platform.platform(),
            "python": platform.python_version(),
            "cores": os.cpu_count(),
        },
        "versions": versions,
        "options": asdict(options),
        "sections": [
            {**asdict(section), "lines": [_line(line) for line in section.lines]}
            for section in sections
        ],
    }


def _line(line: Line) -> dict[str, Any]:
    return {**asdict(line), "met": line.met}


def write(file: Path, content: dict[str, Any]) -> None:
    """Write the JSON file, with its folder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", "utf-8")
