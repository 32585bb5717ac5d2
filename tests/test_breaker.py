"""The pauses between the questions whether the server answers again."""

from __future__ import annotations

import asyncio
import unittest

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.breaker import (
    BREAKER_FAILURES,
    BREAKER_MAX_PAUSE_SECONDS,
    BREAKER_PAUSE_SECONDS,
    Breaker,
)
from support import Clock, until


class BreakerTest(unittest.IsolatedAsyncioTestCase):
    """The pauses between probes, seen through the injected sleep."""

    async def asyncSetUp(self) -> None:
        self.pauses: list[float] = []
        self.answers: list[bool] = []
        clock = Clock()
        clock.sleeper = self.sleep
        self.breaker = Breaker(self.probe, clock)
        self.addAsyncCleanup(self.breaker.aclose)

    async def probe(self) -> bool:
        return self.answers.pop(0)

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0)

    async def open(self, *answers: bool) -> None:
        self.answers = [*answers]
        for _ in range(BREAKER_FAILURES):
            self.breaker.enter()
            self.breaker.failed()
        await until(lambda: self.breaker.state == "half_open")

    async def test_pauses_double_up_to_the_longest(self) -> None:
        await self.open(*[False] * 8, True)
        expected = [min(BREAKER_PAUSE_SECONDS * 2**n, BREAKER_MAX_PAUSE_SECONDS) for n in range(9)]
        self.assertEqual(self.pauses, expected)

    async def test_failed_trial_doubles_and_success_resets(self) -> None:
        await self.open(True)
        self.answers = [True, True]
        self.assertTrue(self.breaker.enter())
        self.breaker.failed()
        await until(lambda: self.breaker.state == "half_open")
        self.assertEqual(self.pauses, [BREAKER_PAUSE_SECONDS, BREAKER_PAUSE_SECONDS * 2])
        self.assertTrue(self.breaker.enter())
        self.breaker.succeeded()
        await self.open(True)
        self.assertEqual(self.pauses[2:], [BREAKER_PAUSE_SECONDS])

    async def test_late_failures_of_earlier_recalls_open_it_once(self) -> None:
        await self.open(True)
        self.breaker.failed()
        self.assertEqual(self.breaker.state, "half_open")
        self.assertEqual(len(self.pauses), 1)

    async def test_closing_ends_the_probe(self) -> None:
        asked = asyncio.Event()

        async def endless() -> bool:
            asked.set()
            return bool(await asyncio.get_running_loop().create_future())

        clock = Clock()
        clock.sleeper = self.sleep
        breaker = Breaker(endless, clock)
        for _ in range(BREAKER_FAILURES):
            breaker.failed()
        await asked.wait()
        await breaker.aclose()
        self.assertEqual(breaker.state, "open")
        self.assertEqual(len(asyncio.all_tasks()), 1)
