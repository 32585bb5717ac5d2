"""Numbers, spans of time and pages, as people type them."""

from __future__ import annotations

import unittest

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.arguments import (
    Target,
    minutes,
    page_number,
    paged,
    targets,
    whole_number,
)


def numbers(text: str) -> list[str] | None:
    found = targets(text)
    return None if found is None else [f"{one.number}{one.letter}" for one in found]


class TargetsTest(unittest.TestCase):
    def test_numbers(self) -> None:
        for text, expected in (
            ("2", "2"),
            ("２", "2"),
            ("#1", "1"),
            ("No.3", "3"),
            ("第一条", "1"),
            ("第 十二 条", None),
            ("十二", "12"),
            ("两个", "2"),
            ("一百零五", "105"),
            ("2.", "2"),
            ("2,3", "2 3"),
            ("2，3", "2 3"),
            ("2、3和5", "2 3 5"),
            ("1 2", "1 2"),
            ("1 and 2", "1 2"),
            ("第1条 第2条", "1 2"),
            ("2-4", "2 3 4"),
            ("2~4", "2 3 4"),
            ("2到4", "2 3 4"),
            ("第2条到第4条", "2 3 4"),
            ("3a", "3a"),
            ("3ab, 4", "3a 3b 4"),
            ("2 2 2", "2"),
        ):
            with self.subTest(text):
                self.assertEqual(numbers(text), expected.split() if expected else None)

    def test_other_texts(self) -> None:
        for text in (
            "",
            "猫",
            "1 月去旅行",
            "12月",
            "5月6号",
            "一只猫",
            "二三",
            "-1",
            "1.5",
            "٣",
            "猫 2",
        ):
            with self.subTest(text):
                self.assertIsNone(targets(text))

    def test_long_numbers_and_ranges_cost_nothing(self) -> None:
        self.assertIsNone(targets("9" * 5000))
        self.assertLess(len(targets("1-999999999") or ()), 200)
        self.assertEqual(targets("4-2"), None)
        self.assertEqual(targets("7"), [Target(7)])


class MinutesTest(unittest.TestCase):
    def test_spans(self) -> None:
        for text, expected in (
            ("30", 30),
            ("30分钟", 30),
            ("30 min", 30),
            ("３０分", 30),
            ("半小时", 30),
            ("半个小时", 30),
            ("一小时", 60),
            ("一个半小时", 90),
            ("1小时半", 90),
            ("2个半小时", 150),
            ("两小时", 120),
            ("1小时30分", 90),
            ("1h30m", 90),
            ("2h", 120),
            ("1.5h", 90),
            ("half an hour", 30),
            ("an hour", 60),
            ("2 hours", 120),
            ("一刻钟", 15),
            ("半天", 720),
            ("1天", 1440),
            ("一周", 10080),
            ("90秒", 1.5),
            ("十分钟", 10),
            ("99999999", 99999999),
            ("0", 0),
        ):
            with self.subTest(text):
                self.assertEqual(minutes(text), expected)

    def test_other_texts(self) -> None:
        for text in ("", "soon", "-5", "5 apples", "明天", "下午三点", "h", "30分钟吧"):
            with self.subTest(text):
                self.assertIsNone(minutes(text))


class PageTest(unittest.TestCase):
    def test_pages(self) -> None:
        for text, expected in (
            ("第2页", 2),
            ("第二页", 2),
            ("第 2 页", 2),
            ("2页", 2),
            ("page 2", 2),
            ("p2", 2),
            ("2", None),
            ("火星", None),
        ):
            with self.subTest(text):
                self.assertEqual(page_number(text), expected)

    def test_page_of_a_text(self) -> None:
        for text, asked, expected in (
            ("车", "", ("车", 1)),
            ("车 2", "车", ("车", 2)),
            ("车 2", "猫", ("车 2", 1)),
            ("iPhone 15", "", ("iPhone 15", 1)),
            ("车 第2页", "", ("车", 2)),
            ("my car page 3", "", ("my car", 3)),
            ("第2页", "车", ("车", 2)),
        ):
            with self.subTest(text):
                self.assertEqual(paged(text, asked), expected)

    def test_whole_numbers(self) -> None:
        for text, expected in (("12", 12), ("十", 10), ("x", None), ("9" * 10, None), ("", None)):
            self.assertEqual(whole_number(text), expected)
