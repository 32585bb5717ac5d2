"""The tables and the JSON file of the benchmark of recall."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

from bench.dialogue import SORTS
from bench.figures import p50
from bench.recall_run import SIDES, Options, Outcome, Run, Side

TOTAL = "total"
FIGURES: dict[str, tuple[str, int]] = {
    "all": ("all evidence %", 1),
    "any": ("any evidence %", 1),
    "tokens": ("tokens", 0),
    "most_tokens": ("most tokens", 0),
    "lines": ("lines", 1),
    "requests": ("requests", 2),
    "ms": ("p50 ms", 1),
    "injected": ("injected tokens", 0),
    "failed": ("failed", 0),
}
"""What is told of each group of questions: its heading and decimals."""

Figures = dict[str, float]


def figures(sides: Sequence[Side]) -> Figures:
    """What holds of several questions: shares in percent, means, and sums of tokens."""

    def mean(value: Callable[[Side], float]) -> float:
        return sum(map(value, sides)) / len(sides)

    return {
        "all": 100 * mean(lambda side: side.all),
        "any": 100 * mean(lambda side: side.any),
        "tokens": mean(lambda side: side.tokens),
        "most_tokens": max(side.tokens for side in sides),
        "lines": mean(lambda side: side.lines),
        "requests": mean(lambda side: side.requests),
        "ms": 1000 * p50([side.seconds for side in sides]),
        "injected": sum(side.tokens for side in sides),
        "failed": sum(bool(side.failure) for side in sides),
    }


def groups(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    """Outcomes by language, by what the questions are about, and all."""
    found: dict[str, list[Outcome]] = {}
    for language in ("zh", "en"):
        found[language] = [one for one in outcomes if one.chat.language == language]
    for sort in SORTS[1:]:
        found[sort] = [one for one in outcomes if one.question.sort == sort]
    return {name: members for name, members in found.items() if members} | {TOTAL: [*outcomes]}


def summary(outcomes: Sequence[Outcome]) -> dict[str, dict[str, Figures]]:
    """For each group of questions: the figures of each side, and `ratio`, block by bare."""
    found: dict[str, dict[str, Figures]] = {}
    for name, members in groups(outcomes).items():
        block, bare = (figures([one.sides[side] for one in members]) for side in SIDES)
        ratio = {key: block[key] / bare[key] for key in FIGURES if bare[key]}
        found[name] = {"questions": {"": len(members)}, "block": block, "bare": bare}
        found[name]["ratio"] = ratio
    return found


def by_budget(run: Run) -> dict[int, list[Outcome]]:
    """Outcomes by `max_tokens`."""
    budgets = dict.fromkeys(one.max_tokens for one in run.outcomes)
    return {at: [one for one in run.outcomes if one.max_tokens == at] for at in budgets}


def table(run: Run, options: Options) -> str:
    """Return everything as text."""
    how = "with observations" if options.observations else "without observations"
    parts = []
    for max_tokens, outcomes in by_budget(run).items():
        rows = [("", *(heading for heading, _ in FIGURES.values())), *_rows(summary(outcomes))]
        widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
        parts.append(f"max_tokens {max_tokens}, {how}, {run.embeddings} embeddings")
        parts += [_aligned(row, widths) for row in rows] + [""]
    if run.embeddings == "hashed":
        parts.append("HASHED embeddings had to be used: compare these figures with no others.")
    return "\n".join(parts).rstrip()


def _rows(found: dict[str, dict[str, Figures]]) -> Iterator[tuple[str, ...]]:
    for name, group in found.items():
        number = group["questions"][""]
        for side in SIDES:
            values = (f"{group[side][key]:,.{digits}f}" for key, (_, digits) in FIGURES.items())
            yield (f"{name} ({number:.0f}) {side}", *values)
        ratios = (f"{group['ratio'][key]:.2f}" if key in group["ratio"] else "-" for key in FIGURES)
        yield (f"{name} block / bare", *ratios)


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = (
        cell.rjust(width) if at else cell.ljust(width)
        for at, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join([first, *rest])


def as_json(run: Run, options: Options, data: str) -> dict[str, Any]:
    """Return everything as JSON values.

    Args:
        run: What was found.
        options: What was asked for.
        data: The name of the dialogues.
    """
    return {
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "data": data,
        "observations": options.observations,
        "embeddings": run.embeddings,
        "loading_seconds": round(run.loading, 1),
        "budgets": [
            {
                "max_tokens": max_tokens,
                "groups": {name: _flat(group) for name, group in summary(outcomes).items()},
                "questions": [_question(one) for one in outcomes],
            }
            for max_tokens, outcomes in by_budget(run).items()
        ],
    }


def _flat(group: dict[str, Figures]) -> dict[str, Any]:
    return {**group, "questions": int(group["questions"][""])}


def _question(outcome: Outcome) -> dict[str, Any]:
    sides = {side: _answer(found) for side, found in outcome.sides.items()}
    question = outcome.question
    return {"chat": outcome.chat.name, "words": question.words, "sort": question.sort, **sides}


def _answer(side: Side) -> dict[str, Any]:
    return {
        "all": side.all,
        "any": side.any,
        "met": list(side.met),
        "tokens": side.tokens,
        "lines": side.lines,
        "requests": side.requests,
        "ms": round(1000 * side.seconds, 2),
        "failure": side.failure,
    }
