"""Which days a question names: 5月6号, 昨天, 上周三, May 6th, last Friday. Pure.

A day without a year is the last one that has been. Only what has been can be remembered, so a day
to come is none.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo

_DIGITS = {character: number for number, character in enumerate("〇一二三四五六七八九")}
_DIGITS |= {"零": 0, "两": 2}
_NUMBER = "[0-9]{1,2}|[一二两三四五六七八九十]{1,3}"
_WEEKDAY = "一二三四五六日"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:,? (?P<year>[0-9]{4}))?"
_HOLIDAYS = {"元旦": (1, 1, 1), "五一": (5, 1, 5), "国庆": (10, 1, 7), "圣诞": (12, 25, 1)}
"""Days that have names: month, day, and how many there are of it."""

_AGO = {"天": 1, "日": 1, "周": 7, "星期": 7, "礼拜": 7, "day": 1, "week": 7}
_WORDS = {
    "大前天": 3, "前天": 2, "前晚": 2, "昨天": 1, "昨日": 1, "昨晚": 1,
    "the day before yesterday": 2, "yesterday": 1, "last night": 1,
}  # fmt: skip
"""Not today, of which most is still in the conversation, and which is mostly not asked about."""


@dataclass(frozen=True)
class Days:
    """Days that a question names.

    Attributes:
        first: The first one.
        last: The last one.
        start: Where the expression begins in the question.
        end: Where it ends.
    """

    first: date
    last: date
    start: int
    end: int

    def set_apart(self, question: str) -> str:
        """The question with blanks around the days, where Hindsight would overlook them."""
        before, behind = question[: self.start], question[self.end :]
        left = " " if before[-1:].isalnum() else ""
        right = " " if behind[:1].isalnum() else ""
        return f"{before}{left}{question[self.start : self.end]}{right}{behind}"

    def window(self, timezone: tzinfo | None) -> tuple[datetime, datetime]:
        """Their first and last moment, local and aware."""
        first, last = datetime.combine(self.first, time.min), datetime.combine(self.last, time.max)
        if timezone is None:
            return first.astimezone(), last.astimezone()
        return first.replace(tzinfo=timezone), last.replace(tzinfo=timezone)


def days_named(question: str, today: date) -> Days | None:
    """The first days that a question names and that have been; None where it names none."""
    for pattern, reader in _FORMS:
        for found in pattern.finditer(question):
            try:
                span = reader(found, today)
            except (ValueError, OverflowError, KeyError):  # 2月30号, 十十月, before the calendar
                continue
            if span and span[0] <= today:
                return Days(span[0], min(span[1], today), *found.span())
    return None


Span = tuple[date, date]
Reader = Callable[[re.Match[str], date], Span | None]


def _calendar_day(found: re.Match[str], today: date) -> Span:
    parts = found.groupdict()
    month = parts.get("month") or ""
    number = _MONTHS.index(month[:3].lower()) + 1 if month.isascii() and month.isalpha() else None
    return _single(_latest(number or _number(month), _number(parts["day"]), parts["year"], today))


def _iso_day(found: re.Match[str], _: date) -> Span:
    return _single(date(int(found["year"]), int(found["month"]), int(found["day"])))


def _day_of_month(found: re.Match[str], today: date) -> Span:
    day, before = _number(found["day"]), found["before"]
    month = today.replace(day=1)
    if before or day > today.day:
        month = (month - timedelta(days=1)).replace(day=1)
    return _single(month.replace(day=day))


def _word(found: re.Match[str], today: date) -> Span:
    return _single(today - timedelta(days=_WORDS[found[0].lower()]))


def _ago(found: re.Match[str], today: date) -> Span:
    number = found["number"].lower()
    count = 1 if number in {"a", "one"} else _number(number)
    return _single(today - timedelta(days=count * _AGO[found["unit"].lower()]))


def _weekday(found: re.Match[str], today: date) -> Span:
    name = found["weekday"].lower().replace("天", "日")
    number = _WEEKDAY.index(name) if name in _WEEKDAY else _WEEKDAYS.index(name[:3])
    monday = today - timedelta(days=today.weekday())
    if not found["english"]:
        weeks = {"上上": 2, "上": 1}.get(found["which"].removesuffix("个"), 0)
        return _single(monday + timedelta(days=number - 7 * weeks))
    return _single(today - timedelta(days=(today.weekday() - number - 1) % 7 + 1))


def _week(found: re.Match[str], today: date) -> Span:
    monday = today - timedelta(days=today.weekday() + 7)
    first = 5 if "末" in found[0] or "weekend" in found[0].lower() else 0
    return monday + timedelta(days=first), monday + timedelta(days=6)


def _last_month(_: re.Match[str], today: date) -> Span:
    last = today.replace(day=1) - timedelta(days=1)
    return last.replace(day=1), last


def _month(found: re.Match[str], today: date) -> Span:
    name = found["month"]
    number = _MONTHS.index(name[:3].lower()) + 1 if name.isascii() and name.isalpha() else None
    first = _latest(number or _number(name), 1, None, today)
    return first, first.replace(day=calendar.monthrange(first.year, first.month)[1])


def _holiday(found: re.Match[str], today: date) -> Span:
    month, day, number = _HOLIDAYS[found[0]]
    first = _latest(month, day, None, today)
    return first, first + timedelta(days=number - 1)


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_FORMS: tuple[tuple[re.Pattern[str], Reader], ...] = (
    (
        _compiled(r"\b(?P<year>[0-9]{4})[-/.](?P<month>[0-9]{1,2})[-/.](?P<day>[0-9]{1,2})\b"),
        _iso_day,
    ),
    (
        _compiled(
            rf"(?:(?P<year>[0-9]{{4}}) ?年 ?)?(?P<month>{_NUMBER}) ?月 ?(?P<day>{_NUMBER}) ?[日号]"
        ),
        _calendar_day,
    ),
    (_compiled(rf"\b{_MONTH} {_DAY}\b{_YEAR}"), _calendar_day),
    (_compiled(rf"\b{_DAY} (?:of )?{_MONTH}\b{_YEAR}"), _calendar_day),
    (_compiled("|".join(_WORDS)), _word),
    (_compiled(rf"(?P<number>{_NUMBER}) ?个?(?P<unit>天|日|周|星期|礼拜)(?:以|之)?前"), _ago),
    (_compiled(r"\b(?P<number>[0-9]{1,2}|a|one) (?P<unit>day|week)s? ago\b"), _ago),
    (
        _compiled(
            r"(?P<which>上上个?|上个?|这个?|本)(?P<english>)(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])"
        ),
        _weekday,
    ),
    (
        _compiled(
            r"\b(?P<which>)(?P<english>last|on|this past) "
            r"(?P<weekday>(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b"
        ),
        _weekday,
    ),
    (_compiled(r"上个?(?:周末|周|星期|礼拜)|\blast (?:weekend|week)\b"), _week),
    (
        _compiled(
            rf"(?:(?P<before>上个?月) ?|(?<![月第0-9]))(?P<day>{_NUMBER}) ?号(?![楼线院店门])"
        ),
        _day_of_month,
    ),
    (_compiled(r"上个?月|\blast month\b"), _last_month),
    (_compiled("|".join(_HOLIDAYS)), _holiday),
    (_compiled(rf"(?<![0-9个])(?P<month>{_NUMBER})月份?"), _month),
    (_compiled(rf"\bin {_MONTH}\b"), _month),
)
"""What names days, the surest form first."""


def _single(day: date) -> Span:
    return day, day


def _latest(month: int, day: int, year: str | None, today: date) -> date:
    """A day of a year, else the last one that has been."""
    if year:
        return date(int(year), month, day)
    for one in range(today.year, today.year - 8, -1):  # a leap day is at most eight years back
        try:
            found = date(one, month, day)
        except ValueError:
            continue
        if found <= today:
            return found
    raise ValueError("no such day")


def _number(text: str) -> int:
    """A number in figures, or in Chinese characters up to 九十九."""
    if text.isdecimal():
        return int(text)
    tens, ten, ones = text.rpartition("十")
    if not ten:
        return int("".join(str(_DIGITS[character]) for character in text))
    return (_DIGITS[tens] if tens else 1) * 10 + (_DIGITS[ones] if ones else 0)
