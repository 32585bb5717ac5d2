"""What people type behind a command: numbers, spans of time, pages. Pure."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

MAX_DIGITS = 9
"""A longer number is none that could be meant, and Python refuses to read a very long one."""
MAX_NUMBERS = 100
"""So many are read of one range."""

ALL_WORDS = frozenset({"all", "全部", "所有"})

_NUMERALS = "零一二三四五六七八九"
_DIGIT = {numeral: value for value, numeral in enumerate(_NUMERALS)} | {"两": 2, "〇": 0}
_COUNT = r"(?:[0-9]+|[零〇一二两三四五六七八九十百]+)"
_TARGET = re.compile(
    rf"(?:#|№|no\.?|第)?(?P<first>{_COUNT})(?P<letters>[a-z]*)(?:条|个|句|行)?"
    rf"(?:\s*(?:-|~|到|至|to)\s*(?:#|第)?(?P<last>{_COUNT})(?:条|个|句|行)?)?",
)
_BETWEEN = re.compile(r"\s*(?:[,、;]|和|与|及|跟|\band\b|\s)\s*")
_ENDS = " .。!?:)"
_PAGE = re.compile(
    rf"(?:第\s*(?P<zh>{_COUNT})\s*页?|(?P<bare>{_COUNT})\s*页|(?:page|p)\.?\s*(?P<en>[0-9]+))"
)
_UNITS = (
    (r"(?:个)?(?:小时|钟头)|hours?|hrs?|h", 60.0),
    (r"天|日|days?|d", 24 * 60.0),
    (r"(?:个)?(?:星期|礼拜)|周|weeks?|w", 7 * 24 * 60.0),
    (r"分钟?|minutes?|mins?|m", 1.0),
    (r"秒钟?|seconds?|secs?|s", 1 / 60),
    (r"刻钟?|quarters?", 15.0),
)
_AMOUNT = rf"(?P<amount>[0-9]+(?:\.[0-9]+)?|{_COUNT}|半|an?|half(?: an?)?)"
_SPANS = tuple(
    (re.compile(rf"{_AMOUNT}\s*(?P<half>(?:个)?半)?\s*(?:{unit})(?P<after>半)?(?![a-z])"), minutes)
    for unit, minutes in _UNITS
)


@dataclass(frozen=True)
class Target:
    """Something of a numbered list that somebody means.

    Attributes:
        number: Its number.
        letter: One of the parts below it, or empty.
    """

    number: int
    letter: str = ""


def folded(text: str) -> str:
    """What was typed, in one width and case: ２，３ is 2,3."""
    return " ".join(unicodedata.normalize("NFKC", text).lower().split())


def whole_number(text: str) -> int | None:
    """A whole number in digits or as a Chinese numeral, or None where the text is none."""
    text = folded(text)
    if re.fullmatch(r"[0-9]+", text):
        return int(text) if len(text) <= MAX_DIGITS else None
    return _numeral(text)


def targets(text: str) -> list[Target] | None:
    """Numbers of a list: 2,3 or 1 2 or #1 or 第一条 or 2-4 or 3a; None where it is other text."""
    rest, found = folded(text).rstrip(_ENDS), list[Target]()
    while rest:
        match = _TARGET.match(rest)
        if match is None or (rest[match.end() :] and not _BETWEEN.match(rest, match.end())):
            return None
        first = whole_number(match["first"])
        last = whole_number(match["last"]) if match["last"] else first
        if first is None or last is None:
            return None
        if match["last"]:
            found += [Target(n) for n in range(first, min(last, first + MAX_NUMBERS) + 1)]
        else:
            found += [Target(first, letter) for letter in match["letters"] or [""]]
        rest = rest[match.end() :]
        rest = rest[between.end() :] if (between := _BETWEEN.match(rest)) else rest
    return list(dict.fromkeys(found)) or None


def page_number(text: str) -> int | None:
    """The number of a page: 第2页, 第二页, 2页, page 2; None where it is other text."""
    if not (match := _PAGE.fullmatch(folded(text))):
        return None
    return whole_number(match["zh"] or match["bare"] or match["en"])


def minutes(text: str) -> float | None:
    """A span of time in minutes: 30, 30分钟, 半小时, 一个半小时, 2h, 1h30m; None for other text."""
    text = folded(text)
    if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", text):
        return float(text[:MAX_DIGITS])
    if (plain := whole_number(text)) is not None:
        return float(plain)
    total, rest = 0.0, text
    while rest:
        for span, unit in _SPANS:
            if match := span.match(rest):
                halves = 0.5 if match["half"] or match["after"] else 0.0
                total += (_amount(match["amount"]) + halves) * unit
                rest = rest[match.end() :].lstrip(" ,零又和")
                break
        else:
            return None
    return total or (0.0 if text else None)


def _amount(text: str) -> float:
    if text == "半" or text.startswith("half"):
        return 0.5
    if text in {"a", "an"}:
        return 1.0
    if re.fullmatch(r"[0-9.]+", text):
        return float(text[:MAX_DIGITS])
    return float(_numeral(text) or 0)


def _numeral(text: str) -> int | None:
    """A Chinese numeral below a thousand: 十二, 二十, 一百零五."""
    if not re.fullmatch("[零〇一二两三四五六七八九十百]{1,7}", text):
        return None
    total, digit = 0, None
    for character in text:
        if character in "十百":
            total += (1 if digit is None else digit) * (10 if character == "十" else 100)
            digit = None
        elif digit is None or digit == 0:
            digit = _DIGIT[character]
        else:
            return None  # 二三: a telephone number, a year
    return total + (digit or 0)


def paged(text: str, asked: str) -> tuple[str, int]:
    """What is looked for, and which page of it.

    Args:
        text: 车, or 车 第2页; 车 2 is a page of what was asked before, else it is a text.
        asked: What was asked before.
    """
    if (page := page_number(text)) is not None:
        return asked, page
    words = text.split()
    for size in (1, 2):  # 第2页, page 2
        before, last = " ".join(words[:-size]), " ".join(words[-size:])
        if before and (page := page_number(last)) is not None:
            return before, page
    if len(words) > 1 and " ".join(words[:-1]) == asked and re.fullmatch("[0-9]{1,3}", words[-1]):
        return asked, int(words[-1])
    return " ".join(words), 1
