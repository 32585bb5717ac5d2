"""What an instance that ends and its successor owe each other."""

from __future__ import annotations

import asyncio
import unittest

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.handover import Handover, Work
from support import Clock, until


class WorkTest(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.work = Work()
        self.gate = asyncio.Event()

    async def answer(self) -> str:
        await self.gate.wait()
        return "done"

    async def test_what_ends_in_time_keeps_its_answer(self) -> None:
        task = self.work.start(self.answer(), ended="ended")
        finishing = asyncio.create_task(self.work.finish(60))
        await asyncio.sleep(0)
        self.gate.set()
        await finishing
        self.assertEqual(await task, "done")

    async def test_what_takes_longer_ends_with_a_sentence(self) -> None:
        task = self.work.start(self.answer(), ended="ended")
        await self.work.finish(0)
        self.assertEqual(await task, "ended")

    async def test_what_begins_after_the_end_goes_on(self) -> None:
        await self.work.finish(0)
        task = self.work.start(self.answer(), ended="ended")
        self.gate.set()
        self.assertEqual(await task, "done")

    async def test_whoever_does_not_wait_any_more_gets_no_sentence(self) -> None:
        task = self.work.start(self.answer(), ended="ended")
        await asyncio.sleep(0)
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task

    async def test_failure_is_the_callers(self) -> None:
        async def fail() -> str:
            raise OSError("full")

        task = self.work.start(fail(), ended="ended")
        await self.work.finish(60)
        with self.assertRaises(OSError):
            await task


class HandoverTest(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.found: str | None = None
        self.clock = Clock()
        self.handover = Handover[str](lambda: self.found, self.clock)

    async def test_open_instance_has_no_successor(self) -> None:
        self.found = "another"
        self.assertIsNone(self.handover.successor())
        self.handover.is_ending = True
        self.assertIsNone(self.handover.successor())
        self.handover.close()
        self.assertEqual(self.handover.successor(), "another")

    async def test_waits_for_the_end_and_then_for_the_successor(self) -> None:
        waiting = asyncio.create_task(self.handover.await_successor(3))
        await asyncio.sleep(0)
        self.handover.close()
        await until(lambda: self.clock.now > 1001)
        self.assertFalse(waiting.done())
        self.found = "new"
        self.assertEqual(await waiting, "new")

    async def test_there_comes_none(self) -> None:
        self.handover.close()
        self.assertIsNone(await self.handover.await_successor(3))
        self.assertLess(self.clock.now, 1003.1)

    async def test_runs_already(self) -> None:
        self.found = "new"
        self.handover.close()
        self.assertEqual(await self.handover.await_successor(3), "new")
        self.assertEqual(self.clock.now, 1000)
