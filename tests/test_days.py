"""Days that a question names, seen from Tuesday, 12 May 2026."""

from __future__ import annotations

import unittest
from datetime import UTC, date, datetime, timedelta, timezone

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.days import days_named

TODAY = date(2026, 5, 12)
EAST = timezone(timedelta(hours=8))


class DaysTest(unittest.TestCase):
    def test_days(self) -> None:
        for question, first, last in (
            ("5月6号我读了什么书", "05-06", "05-06"),
            ("五月六日那天呢", "05-06", "05-06"),
            ("十二月二十五号", "2025-12-25", "2025-12-25"),
            ("2026年3月4日", "03-04", "03-04"),
            ("2026-03-04 的会", "03-04", "03-04"),
            ("4月27号小明说了什么", "04-27", "04-27"),
            ("5月20号", "2025-05-20", "2025-05-20"),
            ("2月29号", "2024-02-29", "2024-02-29"),
            ("我昨天说了什么", "05-11", "05-11"),
            ("大前天呢", "05-09", "05-09"),
            ("三天前", "05-09", "05-09"),
            ("两周前", "04-28", "04-28"),
            ("上周三", "05-06", "05-06"),
            ("上上周日", "05-03", "05-03"),
            ("上周末去哪了", "05-09", "05-10"),
            ("上周", "05-04", "05-10"),
            ("上个月", "04-01", "04-30"),
            ("上个月3号", "04-03", "04-03"),
            ("27号那天", "04-27", "04-27"),
            ("五一去哪了", "05-01", "05-05"),
            ("三月份", "03-01", "03-31"),
            ("What did I do on May 6th?", "05-06", "05-06"),
            ("6 May 2025", "2025-05-06", "2025-05-06"),
            ("the 6th of May", "05-06", "05-06"),
            ("what did I say yesterday", "05-11", "05-11"),
            ("the day before yesterday", "05-10", "05-10"),
            ("last Friday", "05-08", "05-08"),
            ("last Tuesday", "05-05", "05-05"),
            ("3 days ago", "05-09", "05-09"),
            ("last week", "05-04", "05-10"),
            ("last month", "04-01", "04-30"),
            ("in March", "03-01", "03-31"),
        ):
            with self.subTest(question):
                found = days_named(question, TODAY)
                assert found
                days = [day if len(day) > 5 else f"2026-{day}" for day in (first, last)]
                self.assertEqual([found.first.isoformat(), found.last.isoformat()], days)

    def test_no_days(self) -> None:
        for question in (
            "",
            "我的猫叫什么",
            "明天去哪",
            "3个月",
            "10号线",
            "第一号",
            "我十一点到",
            "I may go",
            "see me in marseille",
            "March madness",
        ):
            with self.subTest(question):
                self.assertIsNone(days_named(question, TODAY))

    def test_days_that_no_calendar_has(self) -> None:
        for question in (
            "0000-00-00",
            "99月99号",
            "9999年1月1日",
            "99个星期前",
            "0月0号",
            "十十月十号",
        ):
            with self.subTest(question):
                days_named(question, date(1, 1, 5))
                days_named(question, TODAY)

    def test_set_apart(self) -> None:
        for question, expected in (
            ("4月27号小明说了什么", "4月27号 小明说了什么"),
            ("我昨天去哪了", "我 昨天 去哪了"),
            ("and yesterday?", "and yesterday?"),
        ):
            found = days_named(question, TODAY)
            assert found
            self.assertEqual(found.set_apart(question), expected)

    def test_window_is_local(self) -> None:
        found = days_named("昨天", TODAY)
        assert found
        start, end = found.window(EAST)
        self.assertEqual(start, datetime(2026, 5, 10, 16, tzinfo=UTC))
        self.assertEqual(end.date(), date(2026, 5, 11))
        self.assertEqual(end.utcoffset(), timedelta(hours=8))
