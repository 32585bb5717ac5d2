"""How many tests passed, failed and were skipped."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True)
class Counts:
    """Outcomes of tests; an error counts as a failure."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Counts) -> Counts:
        """Add up."""
        return Counts(
            self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped
        )

    def __str__(self) -> str:
        """Say it in one line."""
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"

    @property
    def good(self) -> bool:
        """Whether something was tested, and nothing failed or was left out."""
        return self.passed > 0 and not self.failed and not self.skipped

    @classmethod
    def read(cls, file: Path) -> Self | None:
        """Return what `write` has written; None if it has not come to that."""
        try:
            return cls(**json.loads(file.read_text("utf-8")))
        except (OSError, ValueError):
            return None

    def write(self, file: Path) -> None:
        """Write it down for another process."""
        file.write_text(json.dumps(asdict(self)), "utf-8")


class Tally:
    """Counts that grow while the tests run, so that an early end does not lose them."""

    def __init__(self) -> None:
        """Begin at zero."""
        self.counts = Counts()

    def add(self, counts: Counts) -> None:
        """Add up."""
        self.counts += counts
