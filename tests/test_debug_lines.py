"""At debug level the log has a line for each recall, retain and skip, and no word of anybody."""

from __future__ import annotations

import logging
import re
from typing import Any

import httpx
import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.scope import Skip
from commands_case import TEA, CommandsCase
from support import LogRecords, reply

WORDS = "我最喜欢喝的是什么茶呢"


class DebugLinesTest(CommandsCase):
    def build(self, **config: Any) -> None:
        super().build(**config)
        self.records = LogRecords()
        self.memory._logger = self.client._logger = self.records.logger

    def lines(self) -> list[str]:
        return self.records.lines(logging.DEBUG)

    def expect_lines(self, *patterns: str) -> None:
        digits = self.scope().chat[:8]
        self.assertEqual(len(self.lines()), len(patterns), self.lines())
        for line, pattern in zip(self.lines(), patterns, strict=True):
            self.assertRegex(line, pattern.replace("CHAT", digits) + "$")
        text = "\n".join(self.lines())
        for secret in ("茶", "20001", "70001", "hsk_key", self.scope().chat[:9], "小明"):
            self.assertNotIn(secret, text)
        self.assertEqual(self.records.lines(logging.INFO), [])

    async def test_recall(self) -> None:
        self.bank.store(self.scope(), TEA)
        await self.recall()
        self.expect_lines(r"recall CHAT: 1 memories, 0 left out, \d+ ms")

    async def test_recall_that_fails(self) -> None:
        self.bank.fail(reply(503))
        await self.recall()
        self.expect_lines(r"recall CHAT: 0 memories, 0 left out, \d+ ms, overloaded")

    async def test_retain(self) -> None:
        await self.memory.remember([self.message(WORDS)], "绿茶", self.clock.local())
        await self.delivery.flush()
        self.expect_lines(r"retain CHAT: 1 turns, \d+ characters, \d+ ms")

    async def test_retain_that_fails(self) -> None:
        self.bank.fail(httpx.ConnectError("20001"))
        await self.memory.remember([self.message(WORDS)], "绿茶", self.clock.local())
        await self.delivery.flush()
        self.expect_lines(r"retain CHAT: 1 turns, \d+ characters, \d+ ms, unreachable")

    async def test_retain_of_a_command(self) -> None:
        await self.ask("remember 我喜欢喝茶")
        self.expect_lines(r"retain CHAT: 1 turns, \d+ characters, \d+ ms")

    async def test_skips(self) -> None:
        self.memory.skip(Skip.CHAT_OFF, self.scope())
        self.memory.skip(Skip.DENIED, Skip.DENIED)
        self.assertIsNone(self.memory.start_recall(self.message("？！")))
        self.expect_lines("skip CHAT: chat_off", "skip -: denied", "skip CHAT: no_words")

    async def test_turns_that_are_not_stored(self) -> None:
        said = [self.message(WORDS)]
        await self.memory.remember(said, "绿茶", self.clock.local())
        await self.memory.remember(said, "绿茶", self.clock.local())
        private = [self.message("别记我说喜欢喝茶", private_to_speaker=True)]
        await self.memory.remember(private, "好", self.clock.local())
        self.state.switch(self.scope(), on=False)
        await self.memory.remember([self.message("喜欢喝茶")], "好", self.clock.local())
        before = [r"skip CHAT: not stored, repeated", r"skip CHAT: not stored, opted_out"]
        self.expect_lines(*before, r"skip CHAT: not stored, chat_off")

    async def test_nothing_above_debug_level(self) -> None:
        self.bank.store(self.scope(), TEA)
        await self.recall()
        self.assertTrue(all(r.levelno == logging.DEBUG for r in self.records.records))
        self.assertTrue(re.match(r"recall [0-9a-f]{8}:", self.lines()[0]))
