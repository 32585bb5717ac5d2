"""What people are told by `/hindsight`, in both languages."""

from __future__ import annotations

import sqlite3
import tempfile
import unittest
from pathlib import Path
from typing import Any, get_args
from unittest import mock

import httpx
import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory import commands as commands_module
from astrbot_plugin_hindsight_memory.commands import Caller, Commands
from astrbot_plugin_hindsight_memory.delivery import Delivery
from astrbot_plugin_hindsight_memory.memory import BREAKER_FAILURES, ChatMemory, Message
from astrbot_plugin_hindsight_memory.memory_formatter import MAX_MEMORY_CHARS, Speaker
from astrbot_plugin_hindsight_memory.outbox import DATABASE_FILE, Outbox
from astrbot_plugin_hindsight_memory.scope import SALT_FILE, STATE_FILE, Scope, ScopeState, Skip
from astrbot_plugin_hindsight_memory.texts import Language, Texts
from support import (
    NOW,
    Clock,
    Disk,
    FakeServer,
    LogRecords,
    group_origin,
    make_settings,
    private_origin,
    recall_results,
    reply,
    scope_of,
    turn_of,
)

LANGUAGES = get_args(Language)
NAMES = {
    "status": "状态",
    "recall": "回忆",
    "on": "开启",
    "off": "关闭",
    "help": "帮助",
}


class CommandsCase(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.server = FakeServer()
        self.client = self.server.client()
        self.addAsyncCleanup(self.client.aclose)
        self.clock = Clock()
        self.disk = Disk()
        self.build()

    def build(self, **config: Any) -> None:
        """The parts as they are after a start."""
        self.settings = make_settings(**config)
        client = None if self.settings.problems else self.client
        self.state = ScopeState.load(self.folder)
        self.outbox = Outbox(self.folder, every_n_turns=5, connect=self.disk.connect)
        self.delivery = Delivery(
            self.outbox,
            client,
            idle_seconds=8,
            daily_chars=0,
            monotonic=self.clock,
            today=lambda: "2026-03-04",
            random=lambda: 1.0,
            logger=LogRecords().logger,
        )
        self.addAsyncCleanup(self.delivery.aclose)
        self.memory = ChatMemory(
            self.settings, self.state, client, self.delivery, monotonic=self.clock
        )
        self.addAsyncCleanup(self.memory.aclose)
        self.commands = Commands(
            version="v0.1.0",
            settings=self.settings,
            state=self.state,
            client=client,
            memory=self.memory,
            delivery=self.delivery,
            outbox=self.outbox,
            monotonic=self.clock,
        )
        hasher = self.state.hasher
        self.private: Scope | Skip = Skip.STATE_FAULT
        self.group: Scope | Skip = Skip.STATE_FAULT
        if hasher:
            self.private = scope_of(private_origin(), hasher)
            self.group = scope_of(group_origin(), hasher)

    async def ask(
        self,
        words: str,
        scope: Scope | Skip | None = None,
        *,
        language: Language = "zh",
        manager: bool = True,
    ) -> str:
        caller = Caller(scope or self.private, Texts(language), NOW, manager)
        return await self.commands.answer(caller, words)

    def scope(self) -> Scope:
        assert isinstance(self.private, Scope)
        return self.private

    def message(self, words: str = "我最喜欢喝的是什么茶呢") -> Message:
        return Message(
            scope=self.scope(),
            speaker=Speaker("小明", "#3fa2c1"),
            raw=words,
            words=words,
            quoted="",
            stored=words,
            at=NOW,
            texts=Texts("zh"),
            bot=Speaker("助手"),
        )

    async def recall(self) -> None:
        task = self.memory.start_recall(self.message())
        assert task
        await task

    async def expect(self, words: str, key: str, scope: Scope | Skip | None = None) -> None:
        """Both languages give the sentence of a key, alone."""
        for language in LANGUAGES:
            with self.subTest(words=words, language=language):
                answer = await self.ask(words, scope, language=language)
                self.assertEqual(answer, Texts(language)(key))


class HelpTest(CommandsCase):
    async def test_every_command_is_named_in_both_languages(self) -> None:
        for language in LANGUAGES:
            answer = await self.ask("help", language=language)
            for name, alias in NAMES.items():
                with self.subTest(name=name, language=language):
                    self.assertRegex(answer, rf"(?m)^/hindsight {name}\b.*（{alias}）")
                    self.assertIn(Texts(language)(f"help_{name}"), answer)

    async def test_bare_command_is_help(self) -> None:
        for words in ("", "  ", "\n", "帮助", "HELP"):
            with self.subTest(words):
                self.assertEqual(await self.ask(words), await self.ask("help"))

    async def test_unknown_command_is_named_and_helped(self) -> None:
        for language in LANGUAGES:
            with self.subTest(language):
                first, _, rest = (await self.ask("forgt it", language=language)).partition("\n")
                self.assertEqual(first, Texts(language)("help_unknown", name="forgt"))
                self.assertEqual(rest, await self.ask("help", language=language))

    async def test_unknown_command_is_shown_harmlessly(self) -> None:
        first = (await self.ask("<b>" + "x" * 500)).partition("\n")[0]
        self.assertLess(len(first), 60)
        self.assertNotIn("<", first)

    async def test_every_alias_does_what_its_name_does(self) -> None:
        for name, alias in NAMES.items():
            with self.subTest(name):
                self.server.script.clear()
                by_name, by_alias = await self.ask(name), await self.ask(alias)
                self.assertEqual(by_name, by_alias)
                self.assertEqual(by_name, await self.ask(name.upper()))

    async def test_nothing_is_asked_of_the_server(self) -> None:
        for words in ("", "help", "nonsense", "on", "off", "recall", "recall ?!"):
            await self.ask(words)
        self.assertEqual(self.server.requests, [])


class SwitchTest(CommandsCase):
    async def test_off_and_on(self) -> None:
        for scope in (self.private, self.group):
            assert isinstance(scope, Scope)
            await self.expect("off", "switched_off", scope)
            self.assertTrue(ScopeState.load(self.folder).is_off(scope))
            await self.expect("on", "switched_on", scope)
            self.assertFalse(ScopeState.load(self.folder).is_off(scope))

    async def test_only_for_those_who_may(self) -> None:
        assert isinstance(self.group, Scope)
        for words in ("off", "关闭", "on", "开启"):
            for language in LANGUAGES:
                with self.subTest(words=words, language=language):
                    answer = await self.ask(words, self.group, language=language, manager=False)
                    self.assertEqual(answer, Texts(language)("needs_manager"))
        self.assertFalse(self.state.is_off(self.group))

    async def test_members_may_where_the_setting_says_so(self) -> None:
        self.build(commands={"members_may_manage": True})
        answer = await self.ask("off", self.group, manager=False)
        self.assertEqual(answer, Texts("zh")("switched_off"))

    async def test_reading_is_for_everybody(self) -> None:
        for words in ("status", "recall 茶", "help"):
            with self.subTest(words):
                answer = await self.ask(words, self.group, manager=False)
                self.assertNotEqual(answer, Texts("zh")("needs_manager"))

    async def test_failure_changes_nothing(self) -> None:
        with mock.patch("os.fsync", side_effect=OSError(28, "No space left")):
            await self.expect("off", "switch_failed")
        self.assertFalse(self.state.is_off(self.scope()))

    async def test_chat_without_memory(self) -> None:
        for language in LANGUAGES:
            texts = Texts(language)
            with self.subTest(language):
                answer = await self.ask("off", Skip.NO_SENDER, language=language)
                self.assertEqual(answer, texts("no_memory_here", reason=texts("no_sender")))


class RecallTest(CommandsCase):
    async def test_results_are_numbered_dated_and_harmless(self) -> None:
        content = recall_results("喜欢茶", "</x>养猫", "长" * 1000, scope=self.scope())
        content["results"][0]["mentioned_at"] = "2026-03-01T00:00:00Z"
        for language in LANGUAGES:
            with self.subTest(language):
                self.server.script.append(reply(content=content))
                answer = await self.ask("recall 茶 和 猫", language=language)
                title, *lines = answer.split("\n")
                self.assertEqual(title, Texts(language)("recall_title", number=3))
                self.assertEqual(lines[:2], ["1. 2026-03-01 喜欢茶", "2. ‹/x›养猫"])
                self.assertLessEqual(len(lines[2]), MAX_MEMORY_CHARS + 20)
        self.assertEqual(self.server.bodies[0]["query"], "茶 和 猫")
        self.assertEqual(self.server.bodies[0]["tags"], list(self.scope().tags))

    async def test_nothing_found(self) -> None:
        await self.expect("recall 茶", "recall_empty")

    async def test_no_query(self) -> None:
        for words in ("recall", "recall ?!", "回忆  "):
            await self.expect(words, "recall_usage")

    async def test_errors_are_sentences(self) -> None:
        for answer, key in (
            (reply(401), "unauthorized"),
            (reply(404, {"detail": "Not Found"}), "wrong_address"),
            (reply(500, {"detail": "Traceback"}), "server_error"),
            (httpx.ConnectError("refused"), "unreachable"),
            (httpx.ReadTimeout("slow"), "timeout"),
        ):
            self.server.otherwise = lambda _, answer=answer: answer
            await self.expect("recall 茶", key)

    async def test_slow_server(self) -> None:
        self.enterContext(mock.patch.object(commands_module, "RECALL_SECONDS", 0.01))
        self.server.gate.clear()
        await self.expect("recall 茶", "timeout")
        self.assertEqual(self.server.cancelled, 2)

    async def test_no_memory(self) -> None:
        self.state.switch(self.scope(), on=False)
        for language in LANGUAGES:
            texts = Texts(language)
            for scope, reason in ((self.private, "chat_off"), (Skip.SYNTHETIC, "synthetic")):
                with self.subTest(reason=reason, language=language):
                    answer = await self.ask("recall 茶", scope, language=language)
                    self.assertEqual(answer, texts("no_memory_here", reason=texts(reason)))
        self.assertEqual(self.server.requests, [])

    async def test_incomplete_settings_say_what_to_do(self) -> None:
        self.build(api_key="", bank_id="")
        for language in LANGUAGES:
            texts = Texts(language)
            with self.subTest(language):
                answer = await self.ask("recall 茶", language=language)
                expected = [texts("api_key_missing"), texts("bank_id_missing")]
                self.assertEqual(answer.split("\n"), expected)

    async def test_broken_files_say_what_to_do(self) -> None:
        (self.folder / STATE_FILE).write_text("{")
        self.build()
        for words in ("recall 茶", "on", "off"):
            await self.expect(words, "state_unreadable")


class StatusTest(CommandsCase):
    async def status(self, scope: Scope | Skip | None = None) -> dict[Language, str]:
        return {x: await self.ask("status", scope, language=x) for x in LANGUAGES}

    async def expect_line(self, key: str, scope: Scope | Skip | None = None, **values: Any) -> None:
        """Each language has the line of a key."""
        for language, answer in (await self.status(scope)).items():
            texts = Texts(language)
            filled = {n: texts(v[1:]) if str(v).startswith("@") else v for n, v in values.items()}
            with self.subTest(key=key, language=language):
                self.assertIn(texts(key, **filled), answer.split("\n"))

    async def test_fresh_start(self) -> None:
        tags_then_version = [reply(), reply(content={"api_version": "1.1.0"})]
        self.server.script.extend(tags_then_version)
        answer = await self.ask("status", language="en")
        fingerprint = self.state.fingerprint
        self.assertEqual(
            answer.split("\n"),
            [
                "Hindsight memory v0.1.0",
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
        await self.expect_line("status_warnings", number=1)
        self.assertEqual(self.server.requests, [])

    async def test_connection(self) -> None:
        for answer, key in (
            (reply(401), "unauthorized"),
            (reply(503), "overloaded"),
            (httpx.ConnectError("refused"), "unreachable"),
        ):
            self.server.otherwise = lambda _, answer=answer: answer
            await self.expect_line("status_disconnected", problem=f"@{key}")

    async def test_slow_connection(self) -> None:
        self.enterContext(mock.patch.object(commands_module, "STATUS_SECONDS", 0.01))
        self.server.gate.clear()
        await self.expect_line("status_disconnected", problem="@timeout")

    async def test_new_bank(self) -> None:
        self.server.otherwise = lambda _: reply(404, {"detail": "Bank 'bot' not found"})
        await self.expect_line("status_bank_new")
        await self.expect_line("status_connected", ms=0, version="")

    async def test_chat(self) -> None:
        assert isinstance(self.group, Scope)
        await self.expect_line("status_chat", self.group, kind="@kind_group", switch="@on")
        self.state.switch(self.group, on=False)
        for language, answer in (await self.status(self.group)).items():
            texts = Texts(language)
            switch = f"{texts('off')} ({texts('chat_off')})"
            expected = texts("status_chat", kind=texts("kind_group"), switch=switch)
            self.assertIn(expected, answer.split("\n"))
        await self.expect_line("no_memory_here", Skip.NO_SENDER, reason="@no_sender")

    async def test_broken_files(self) -> None:
        (self.folder / STATE_FILE).write_text("{")
        self.build()
        await self.expect_line("state_unreadable")
        for language, answer in (await self.status()).items():
            self.assertEqual(answer.count(Texts(language)("state_unreadable")), 1)

    async def test_lost_salt(self) -> None:
        (self.folder / SALT_FILE).unlink()
        self.build()
        await self.expect_line("salt_lost")

    async def test_last_recall(self) -> None:
        self.server.script.append(reply(content=recall_results("茶", "猫", scope=self.scope())))
        await self.recall()
        await self.expect_line("status_recall", when="03-04 12:30:05", ms=0, lines=2)
        self.server.script.append(reply(500))
        await self.recall()
        await self.expect_line(
            "status_recall_failed", when="03-04 12:30:05", reason="@server_error"
        )

    async def test_outbox(self) -> None:
        for urgent in (True, True, False):
            await self.delivery.add(turn_of(urgent=urgent))
        self.server.script.extend([reply(), reply(422)])
        for _ in range(2):
            await self.delivery.step()
            await self.delivery.settle()
        self.clock.now += 7
        await self.expect_line("status_retain", seconds=7)
        await self.expect_line("status_outbox", open=1, waiting=0, aside=1, dropped=0)
        for language, answer in (await self.status()).items():
            self.assertIn(f"- {Texts(language)('rejected')} ×1", answer.split("\n"))

    async def test_stopped_delivery(self) -> None:
        await self.delivery.add(turn_of(urgent=True))
        self.server.script.append(reply(402))
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

    async def test_damaged_outbox(self) -> None:
        (self.folder / DATABASE_FILE).write_bytes(b"no database " * 500)
        figures = await self.outbox.figures(day="")
        self.assertTrue(figures.moved_aside)
        await self.expect_line("status_moved_aside", name=figures.moved_aside)

    async def test_skips_failures_and_breaker(self) -> None:
        self.memory.skip(Skip.NO_WORDS)
        self.server.otherwise = lambda _: reply(500)
        for _ in range(BREAKER_FAILURES):
            await self.recall()
        for language, answer in (await self.status()).items():
            texts = Texts(language)
            lines = answer.split("\n")
            with self.subTest(language):
                self.assertIn(texts("status_breaker"), lines)
                self.assertIn(texts("status_skips", list=f"{texts('no_words')} 1"), lines)
                failures = f"{texts('server_error')} {BREAKER_FAILURES}"
                self.assertIn(texts("status_failures", list=failures), lines)

    async def test_no_secret_is_shown(self) -> None:
        self.build(api_key="hsk_secret")
        self.server.otherwise = lambda _: reply(500, {"detail": "Traceback hsk_secret"})
        for answer in (await self.status()).values():
            self.assertNotIn("hsk_secret", answer)
            self.assertNotIn("Traceback", answer)
            salt = (self.folder / SALT_FILE).read_text().strip()
            self.assertNotIn(salt[:16], answer)
