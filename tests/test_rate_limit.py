"""So many uses a minute."""

from __future__ import annotations

import unittest

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.rate_limit import RateLimit
from support import Clock


class RateLimitTest(unittest.TestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.limit = RateLimit[str](2, self.clock)

    def test_each_use_counts_for_a_minute(self) -> None:
        self.assertTrue(self.limit.may_use("a"))
        self.clock.now += 30
        self.assertTrue(self.limit.may_use("a"))
        self.assertFalse(self.limit.may_use("a"))
        self.clock.now += 30
        self.assertTrue(self.limit.may_use("a"))
        self.assertFalse(self.limit.may_use("a"))

    def test_what_was_refused_does_not_count(self) -> None:
        for _ in range(20):
            self.limit.may_use("a")
        self.clock.now += 60
        self.assertTrue(self.limit.may_use("a"))

    def test_what_is_given_back_does_not_count(self) -> None:
        for _ in range(20):
            self.assertTrue(self.limit.may_use("a"))
            self.limit.give_back("a")
        self.limit.give_back("b")

    def test_seconds_until_the_next(self) -> None:
        self.assertEqual(self.limit.seconds("a"), 0)
        self.limit.may_use("a")
        self.clock.now += 20.5
        self.limit.may_use("a")
        self.assertEqual(self.limit.seconds("a"), 40)
        self.clock.now += 39.5
        self.assertEqual(self.limit.seconds("a"), 0)

    def test_each_key_for_itself(self) -> None:
        self.assertEqual([self.limit.may_use(key) for key in "aabbab"], [True] * 4 + [False] * 2)
