"""What `status`, `stats` and the bug report show."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
from typing import Any
from unittest import mock

import httpx
import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory import people as people_module
from astrbot_plugin_hindsight_memory import status as status_module
from astrbot_plugin_hindsight_memory.breaker import BREAKER_FAILURES
from astrbot_plugin_hindsight_memory.hindsight_http import VERSION
from astrbot_plugin_hindsight_memory.memory import MemoryFigures
from astrbot_plugin_hindsight_memory.outbox_file import DATABASE_FILE
from astrbot_plugin_hindsight_memory.scope import SALT_FILE, STATE_FILE, Scope, Skip
from astrbot_plugin_hindsight_memory.texts import Language, Texts
from commands_case import CAT, LANGUAGES, TEA, CommandsCase
from support import NOW, recall_results, reply, turn_of


class StatusTest(CommandsCase):
    async def shown(self, scope: Scope | Skip | None = None) -> dict[Language, str]:
        scope = scope or self.private
        return {language: await self.whole(scope, language) for language in LANGUAGES}

    async def whole(self, scope: Scope | Skip, language: Language) -> str:
        """All of it, however long."""
        parts = [await self.ask("status all", scope, language=language, is_admin=True)]
        more = f"\n{Texts(language)('more')}"
        while parts[-1].endswith(more):
            parts[-1] = parts[-1].removesuffix(more)
            parts.append(await self.ask("more", scope, language=language, is_admin=True))
        return "\n".join(parts)

    async def expect_line(self, key: str, scope: Scope | Skip | None = None, **values: Any) -> None:
        """Each language has the line of a key."""
        for language, answer in (await self.shown(scope)).items():
            texts = Texts(language)
            filled: dict[str, Any] = {
                n: texts(v[1:]) if str(v).startswith("@") else v for n, v in values.items()
            }
            if "when" in filled:
                filled["when"] = texts.date(filled["when"], NOW)
            with self.subTest(key=key, language=language):
                self.assertIn(texts(key, **filled), answer.split("\n"))

    async def test_fresh_start(self) -> None:
        tags_then_version = [reply(), reply(content={"api_version": "1.1.0"})]
        self.bank.script.extend(tags_then_version)
        answer = await self.ask("status all", self.private, language="en", is_admin=True)
        fingerprint = self.state.fingerprint
        self.assertEqual(
            answer.split("\n"),
            [
                f"Hindsight memory {VERSION} (the whole bot)",
                "Settings: complete (bank: bot)",
                "Connection: fine, 0 ms, Hindsight 1.1.0",
                "This chat: private, memory on",
                "Last recall: none since the start",
                "Last retain: none since the start",
                "Outbox: 0 turns gathering, 0 windows waiting, 0 set aside, 0 given up",
                f"Salt fingerprint: {fingerprint}",
            ],
        )

    async def test_settings(self) -> None:
        self.build(api_key="", language="fr")
        await self.expect_line("status_problem", problem="@api_key_missing")
        await self.expect_line("status_replaced", list="language=auto")
        self.assertEqual(self.bank.requests, [])

    async def test_changed_settings(self) -> None:
        self.build(
            enable_group_memory=False,
            recall={"timeout_seconds": 0.5},
            retain={"every_n_turns": 99},
            privacy={"allow_chats": ["10086", "20001"]},
            tools={"recall": True},
        )
        lines = (await self.shown())["zh"].split("\n")
        self.assertIn(
            "改过的设置：enable_group_memory=关闭，recall.timeout_seconds=0.5，"
            "retain.every_n_turns=20，privacy.allow_chats=2，tools.recall=开启",
            lines,
        )
        await self.expect_line("status_replaced", list="retain.every_n_turns=20")

    async def test_connection(self) -> None:
        for answer, key in (
            (reply(401), "unauthorized"),
            (reply(503), "overloaded"),
            (httpx.ConnectError("refused"), "unreachable"),
        ):
            self.bank.fail(answer)
            await self.expect_line("status_disconnected", problem=f"@{key}")

    async def test_the_way_to_the_server(self) -> None:
        """What works all the same, but should be known, is told with its variable."""
        table: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
            (
                "http_proxy",
                "http://127.0.0.1:7890",
                "proxy_used",
                {"proxy": "http://127.0.0.1:7890"},
            ),
            ("http_proxy", "socks://127.0.0.1:7891", "proxy_unusable", {}),
        )
        for variable, value, key, more in table:
            with mock.patch.dict(os.environ, {variable: value}):
                self.client = self.bank.client(api_base="http://example.com")
            self.addAsyncCleanup(self.client.aclose)
            self.build()
            await self.expect_line(key, variable=variable, **more)
            await self.expect_line("plain_http")

    async def test_slow_connection(self) -> None:
        self.enterContext(mock.patch.object(status_module, "STATUS_SECONDS", 0.01))
        self.bank.gate.clear()
        await self.expect_line("status_disconnected", problem="@timeout")

    async def test_new_bank(self) -> None:
        self.bank.otherwise = lambda _: reply(404, {"detail": "Bank 'bot' not found"})
        await self.expect_line("status_bank_new")
        await self.expect_line("status_connected", ms=0, version="")

    async def test_chat(self) -> None:
        assert isinstance(self.group, Scope)
        await self.expect_line("status_chat", self.group, kind="@kind_group", switch="@on")
        self.state.switch(self.group, on=False)
        for language, answer in (await self.shown(self.group)).items():
            texts = Texts(language)
            switch = texts("entry", text=texts("off"), about=texts("chat_off"))
            expected = texts("status_chat", kind=texts("kind_group"), switch=switch)
            self.assertIn(expected, answer.split("\n"))
        await self.expect_line("no_memory_here", Skip.NO_SENDER, reason="@no_sender")

    async def test_broken_files(self) -> None:
        (self.folder / STATE_FILE).write_text("{")
        self.build()
        await self.expect_line("state_unreadable")
        for language, answer in (await self.shown()).items():
            self.assertEqual(answer.count(Texts(language)("state_unreadable")), 1)

    async def test_lost_salt(self) -> None:
        (self.folder / SALT_FILE).unlink()
        self.build()
        await self.expect_line("salt_lost")

    async def test_pause(self) -> None:
        self.state.pause(self.scope(), 60)
        for language, answer in (await self.shown(self.group)).items():
            texts = Texts(language)
            switch = texts("entry", text=texts("off"), about=texts("paused"))
            expected = texts("status_chat", kind=texts("kind_group"), switch=switch)
            self.assertIn(expected, answer.split("\n"))

    async def test_last_recall(self) -> None:
        self.bank.script.append(
            reply(content=recall_results("茶", "猫", scope=self.private_scope()))
        )
        await self.recall(scope=self.private_scope())
        await self.expect_line("status_recall", when=NOW, ms=0, lines=2)
        self.bank.script.append(reply(500))
        await self.recall(scope=self.private_scope())
        await self.expect_line("status_recall_failed", when=NOW, reason="@server_error")

    async def test_outbox(self) -> None:
        for urgent in (True, True, False):
            await self.delivery.add(turn_of(urgent=urgent))
        self.bank.script.extend([reply(), reply(422)])
        for _ in range(2):
            await self.delivery.step()
            await self.delivery.settle()
        self.clock.now += 7
        for language, answer in (await self.shown()).items():
            texts = Texts(language)
            ago = texts("span_seconds", number=7)
            self.assertIn(texts("status_retain", ago=ago), answer.split("\n"))
        await self.expect_line("status_outbox", open=1, waiting=0, aside=1, dropped=0)
        for language, answer in (await self.shown()).items():
            self.assertIn(f"- {Texts(language)('rejected')} ×1", answer.split("\n"))

    async def test_stopped_delivery(self) -> None:
        await self.delivery.add(turn_of(urgent=True))
        self.bank.script.append(reply(402))
        await self.delivery.step()
        await self.delivery.settle()
        await self.expect_line("status_stopped", reason="@payment_required")

    async def test_full_disk(self) -> None:
        self.disk.fault = sqlite3.SQLITE_FULL
        await self.delivery.add(turn_of())
        await self.expect_line("disk")
        self.disk.fault, self.disk.only = sqlite3.SQLITE_FULL, "INSERT"
        await self.delivery.add(turn_of())
        await self.expect_line("status_unsaved", unsaved=2, lost=0)
        await self.expect_line("status_stopped", reason="@disk")

    async def test_unsaved_turns_are_told_while_the_disk_fails(self) -> None:
        self.disk.fault = sqlite3.SQLITE_FULL
        await self.delivery.add(turn_of())
        await self.expect_line("status_unsaved", unsaved=1, lost=0)

    async def test_disk_that_hangs(self) -> None:
        await self.delivery.add(turn_of())
        self.enterContext(mock.patch.object(status_module, "STATUS_SECONDS", 0.0))
        reached, go_on = self.disk.stall()
        hanging = asyncio.create_task(self.outbox.figures(day=self.clock.today()))
        self.assertTrue(await reached())
        await self.expect_line("disk")
        go_on()
        await hanging

    async def test_file_of_a_later_version(self) -> None:
        with contextlib.closing(sqlite3.connect(self.folder / DATABASE_FILE)) as db:
            db.execute("PRAGMA user_version = 99")
        await self.delivery.add(turn_of())
        await self.expect_line("newer_file")

    async def test_damaged_outbox(self) -> None:
        (self.folder / DATABASE_FILE).write_bytes(b"no database " * 500)
        figures = await self.outbox.figures(day="")
        self.assertTrue(figures.moved_aside)
        await self.expect_line("status_moved_aside", name=figures.moved_aside)

    async def test_people_that_the_disk_does_not_keep(self) -> None:
        in_the_way = self.folder / people_module.DATABASE_FILE
        in_the_way.mkdir()
        for is_failing in (True, False):
            await self.people.meet(self.scope(), ["20001"])
            with self.subTest(is_failing=is_failing):
                report = json.loads(await self.status.report())
                self.assertEqual(report["people_failing"], is_failing)
                for language, answer in (await self.shown()).items():
                    line = Texts(language)("status_people")
                    self.assertEqual(line in answer.split("\n"), is_failing)
            if is_failing:
                in_the_way.rmdir()

    async def test_skips_failures_and_breaker(self) -> None:
        self.memory.skip(Skip.NO_WORDS, self.private)
        self.bank.otherwise = lambda _: reply(500)
        for _ in range(BREAKER_FAILURES):
            await self.recall(scope=self.private_scope())
        for language, answer in (await self.shown()).items():
            texts = Texts(language)
            lines = answer.split("\n")
            with self.subTest(language):
                self.assertIn(texts("status_breaker"), lines)
                self.assertIn(texts("status_skips", list=f"{texts('no_words')} 1"), lines)
                failures = f"{texts('server_error')} {BREAKER_FAILURES}"
                self.assertIn(texts("status_failures", list=failures), lines)

    async def test_work_that_was_begun_again(self) -> None:
        self.workers.faults["delivery"] += 2
        for language, answer in (await self.shown()).items():
            texts = Texts(language)
            told = texts("count", what=texts("worker_delivery"), number=2)
            self.assertIn(texts("status_workers", list=told), answer.split("\n"))
        self.assertEqual(json.loads(await self.status.report())["workers"], {"delivery": 2})

    async def test_no_secret_is_shown(self) -> None:
        self.build(api_key="hsk_secret")
        self.bank.otherwise = lambda _: reply(500, {"detail": "Traceback hsk_secret"})
        for answer in (await self.shown()).values():
            self.assertNotIn("hsk_secret", answer)
            self.assertNotIn("Traceback", answer)
            salt = (self.folder / SALT_FILE).read_text().strip()
            self.assertNotIn(salt[:16], answer)


class StatsTest(CommandsCase):
    async def lines(
        self, language: Language = "zh", scope: Scope | Skip | None = None
    ) -> list[str]:
        return (await self.ask("stats", scope, language=language)).split("\n")

    async def test_all_figures(self) -> None:
        def slow(milliseconds: int) -> Any:
            def answer(_: httpx.Request) -> httpx.Response:
                self.clock.now += milliseconds / 1000
                return reply(content=recall_results("茶", scope=self.scope()))

            return answer

        answering = self.bank.otherwise
        for milliseconds in (100, 200, 300, 900):
            self.bank.otherwise = slow(milliseconds)
            await self.recall()
        self.bank.otherwise = answering
        for _ in range(2):
            said = self.message("我喜欢喝绿茶，不喜欢喝咖啡")
            await self.memory.remember([said], "好的", said.at)
        self.bank.store(self.scope(), TEA, CAT)
        self.bank.store(self.other_scope(), CAT)
        await self.delivery.flush()
        figures = await self.outbox.figures(day=self.clock.today())
        for language in LANGUAGES:
            texts = Texts(language)
            with self.subTest(language):
                self.assertEqual(
                    await self.lines(language),
                    [
                        texts("stats_flow", turns=1, recalls=4, lines=4, repeated=1),
                        texts(
                            "stats_retained",
                            windows=1,
                            chars=figures.sent_chars,
                            today=figures.sent_chars,
                        ),
                        texts("stats_times", p50=200, p95=900),
                        texts("stats_server", memories=4, documents=2),
                    ],
                )

    async def test_before_anything_has_happened(self) -> None:
        for language in LANGUAGES:
            texts = Texts(language)
            first, second, third = await self.lines(language)
            self.assertEqual(first, texts("stats_flow", turns=0, recalls=0, lines=0, repeated=0))
            self.assertEqual(second, texts("stats_retained", windows=0, chars=0, today=0))
            self.assertEqual(third, texts("stats_server", memories=0, documents=0))

    async def test_server_that_fails(self) -> None:
        for answer, key in ((reply(401), "unauthorized"), (reply(503), "overloaded")):
            self.bank.fail(answer)
            for language in LANGUAGES:
                texts = Texts(language)
                with self.subTest(key=key, language=language):
                    failed = texts("stats_server_failed", reason=texts(key))
                    self.assertEqual((await self.lines(language))[-1], failed)

    async def test_server_that_is_slow(self) -> None:
        self.enterContext(mock.patch.object(status_module, "STATUS_SECONDS", 0.01))
        self.bank.gate.clear()
        texts = Texts("zh")
        failed = texts("stats_server_failed", reason=texts("timeout"))
        self.assertEqual((await self.lines())[-1], failed)

    async def test_where_there_is_no_chat_or_no_server(self) -> None:
        self.assertEqual(len(await self.lines(scope=Skip.NO_SENDER)), 2)
        self.assertEqual(self.bank.requests, [])
        self.build(api_key="")
        self.assertEqual(len(await self.lines()), 2)

    async def test_full_disk(self) -> None:
        self.disk.fault = sqlite3.SQLITE_FULL
        expected = Texts("zh")("stats_retained", windows=0, chars=0, today=0)
        self.assertEqual((await self.lines())[1], expected)


class PercentileTest(CommandsCase):
    async def test_share_of_the_latest(self) -> None:
        for timings, share, expected in (
            ([], 0.5, 0.0),
            ([3.0], 0.5, 3.0),
            ([3.0], 0.95, 3.0),
            ([9.0, 1.0], 0.5, 1.0),
            ([3.0, 1.0, 2.0], 0.5, 2.0),
            ([float(n) for n in range(1, 101)], 0.5, 50.0),
            ([float(n) for n in range(1, 101)], 0.95, 95.0),
            ([float(n) for n in range(1, 101)], 1.0, 100.0),
            ([float(n) for n in range(1, 101)], 0.0, 1.0),
        ):
            with self.subTest(number=len(timings), share=share):
                figures = MemoryFigures()
                figures.timings.extend(timings)
                self.assertEqual(figures.percentile(share), expected)


class ReportTest(CommandsCase):
    async def report(self) -> str:
        return await self.ask("stats json", is_admin=True)

    async def test_nothing_in_it_names_anybody(self) -> None:
        chats = {"allow_chats": ["70001", "bot:GroupMessage:70001"], "deny_chats": ["10086"]}
        self.build(
            api_base="https://own.example",
            api_key="hsk_secret",
            bank_id="my-own-bank",
            privacy=chats,
            language="hsk_secret",
        )
        await self.memory.remember([self.message("我的秘密是绿茶")], "好的", self.message().at)
        await self.recall("我的秘密是什么呢")
        report = await self.report()
        salt = (self.folder / SALT_FILE).read_text().strip()
        for secret in (
            *("hsk_secret", "my-own-bank", "70001", "10086", "GroupMessage", "20001", "秘密"),
            *(self.scope().chat, self.scope().tags[2], salt, "小明", "3fa2c1", "own.example"),
        ):
            with self.subTest(secret):
                self.assertNotIn(secret, report)
        content = json.loads(report)
        self.assertEqual(content["settings"]["privacy"]["allow_chats"], 2)
        self.assertEqual(content["settings"]["privacy"]["deny_chats"], 1)
        self.assertEqual(content["settings"]["replaced"], ["language"])
        self.assertEqual(content["settings"]["api_base"], "own")

    async def test_what_a_maintainer_wants_to_know(self) -> None:
        self.memory.skip(Skip.NO_WORDS, self.private)
        await self.recall()
        await self.delivery.add(turn_of())
        content = json.loads(await self.report())
        self.assertEqual(content["plugin"], VERSION)
        self.assertEqual((content["astrbot"], content["hindsight"]), ("4.29.3", "1.1.0"))
        self.assertEqual(content["settings"]["recall"]["max_tokens"], 512)
        self.assertEqual(content["skips"], {"no_words": 1})
        self.assertEqual((content["recalls"], content["breaker"]), (1, "closed"))
        self.assertEqual(content["outbox"]["open_turns"], 1)
        self.assertEqual(content["delivery"]["stopped"], "")
        self.assertIsNone(content["state_fault"])

    async def test_only_for_admins_of_the_bot(self) -> None:
        for scope in (self.group, self.private, Skip.NO_SENDER):
            for words in ("stats json", "统计 JSON"):
                await self.expect(words, "needs_admins", scope)

    async def test_broken_plugin_has_a_report_too(self) -> None:
        (self.folder / STATE_FILE).write_text("{")
        self.build(api_key="")
        content = json.loads(await self.ask("stats json", Skip.STATE_FAULT, is_admin=True))
        self.assertEqual(content["state_fault"], "state_unreadable")
        self.assertEqual(
            (content["hindsight"], content["settings"]["problems"]), ("", ["api_key_missing"])
        )

    async def test_slow_server_has_no_version(self) -> None:
        self.enterContext(mock.patch.object(status_module, "STATUS_SECONDS", 0.01))
        self.bank.gate.clear()
        self.assertEqual(json.loads(await self.report())["hindsight"], "")
