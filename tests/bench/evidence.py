"""What counts as found, and how long a text really is; the same for whatever is compared."""

from __future__ import annotations

import json
import subprocess
import unicodedata
from collections.abc import Sequence
from pathlib import Path

COMPARED = 60
"""So many characters at the beginning of a piece of evidence must stand in a text."""

Needs = Sequence[Sequence[str]]

_COUNT = """
import json, sys, toktok
print(json.dumps(toktok.batch_count(json.load(sys.stdin), "o200k_base")))
"""


def clean(text: str) -> str:
    """Letters and digits alone, in one form: quotation marks and line breaks are no evidence."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


def met(needs: Needs, text: str) -> list[bool]:
    """For each piece of evidence whether one of its texts stands in a text.

    Args:
        needs: For each piece the texts that hold it.
        text: Where it may stand, each text on one line.
    """
    lines = [clean(line) for line in text.splitlines()]
    return [any(_stands(clean(one)[:COMPARED], lines) for one in texts) for texts in needs]


def _stands(evidence: str, lines: Sequence[str]) -> bool:
    return bool(evidence) and any(evidence in line for line in lines)


def count_tokens(python: Path, texts: Sequence[str]) -> list[int]:
    """Count o200k tokens with the counter of the Hindsight that a Python has installed."""
    command = [str(python), "-c", _COUNT]
    given = json.dumps(list(texts))
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    counts: list[int] = json.loads(done.stdout)
    return counts
