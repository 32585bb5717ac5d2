"""Background work goes on whatever ends it."""

from __future__ import annotations

import asyncio
import logging
import unittest

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.workers import PAUSE_SECONDS, Workers
from support import Clock, LogRecords, until


class WorkersTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.clock = Clock()
        self.log = LogRecords()
        self.workers = Workers(self.clock, self.log.logger)
        self.addAsyncCleanup(self.workers.aclose)
        self.begun = 0
        self.cancelled = 0

    async def work(self) -> None:
        """Fails, ends, is cancelled by somebody, then goes on for ever."""
        self.begun += 1
        if self.begun == 1:
            raise ZeroDivisionError("unforeseen")
        if self.begun == 3:
            raise asyncio.CancelledError
        if self.begun > 3:
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled += 1

    async def test_whatever_ends_is_begun_again_logged_and_counted(self) -> None:
        self.workers.start("delivery", self.work)
        await until(lambda: self.begun == 4)
        self.assertEqual(self.workers.faults, {"delivery": 3})
        self.assertEqual(self.clock.now, Clock().now + 3 * PAUSE_SECONDS)
        self.assertEqual(len(self.log.lines(logging.ERROR)), 3)
        fault = self.log.records[0].exc_info
        assert fault
        self.assertIs(fault[0], ZeroDivisionError)

    async def test_closing_ends_the_work(self) -> None:
        self.begun = 3
        self.workers.start("delivery", self.work)
        await until(lambda: self.begun == 4)
        await self.workers.aclose()
        self.assertEqual(self.cancelled, 1)
        self.assertEqual(self.workers.faults, {})
        self.assertEqual(self.log.records, [])
