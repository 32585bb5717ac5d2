"""Measured values, their targets, and the numbers in between."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

P95 = 95


def p50(values: Sequence[float]) -> float:
    """Return the median."""
    return statistics.median(values)


def p95(values: Sequence[float]) -> float:
    """Return the value that 95 % do not exceed (of few values: the largest)."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * P95 // 100) - 1)]


@dataclass(frozen=True)
class Target:
    """What a value is to keep to.

    Attributes:
        limit: The limit, in the unit of the line.
        column: The column that it holds for.
        text: What the table says, such as `≤ 1.05 x bare`.
        inclusive: Whether the limit itself is still good.
    """

    limit: float
    column: str
    text: str
    inclusive: bool = False

    def met(self, value: float) -> bool:
        """Tell whether a value keeps to it."""
        return value <= self.limit if self.inclusive else value < self.limit


@dataclass(frozen=True)
class Line:
    """One thing that was measured, for one or more columns.

    Attributes:
        key: Its short name.
        name: What it is, in words.
        unit: Of all values.
        values: By column.
        digits: Decimals that the table shows.
        target: What one of the values is to keep to.
    """

    key: str
    name: str
    unit: str
    values: Mapping[str, float]
    digits: int = 1
    target: Target | None = None

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without a target."""
        if self.target is None:
            return None
        return self.target.met(self.values[self.target.column])


@dataclass(frozen=True)
class Section:
    """What one row of the benchmark has found.

    Attributes:
        key: The row's name on the command line.
        title: What it is about.
        columns: What is compared.
        lines: What was measured.
        notes: What a reader must know.
    """

    key: str
    title: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = field(default=())

    def line(self, key: str) -> Line:
        """Return a line by its short name."""
        return next(line for line in self.lines if line.key == key)

    def value(self, key: str, column: str | None = None) -> float:
        """Return a measured value; of the first column if none is told."""
        return self.line(key).values[column or self.columns[0]]
