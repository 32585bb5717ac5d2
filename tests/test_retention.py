"""What is too old goes, with all that stands on it; what does not tell its age stays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.retention import BATCH
from astrbot_plugin_hindsight_memory.scope import Scope
from astrbot_plugin_hindsight_memory.texts import Texts
from commands_case import CAT, LANGUAGES, TEA, CommandsCase
from support import reply

KEEP_DAYS = 30


class RetentionTest(CommandsCase):
    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.build(retain={"keep_days": KEEP_DAYS})
        self.client.skew_seconds = 0.0
        await self.recall()  # the chat is met

    def at(self, days: float) -> str:
        """A time so many days ago."""
        return (datetime.fromtimestamp(self.clock.wall, UTC) - timedelta(days=days)).isoformat()

    def line(self, text: str, days: float) -> str:
        return f"小明#3fa2c1 ({self.at(days)}): {text}"

    def store(self, text: str, days: float, *more: str, scope: Scope | None = None) -> str:
        document_id = self.bank.store(scope or self.scope(), self.line(text, days), *more)
        self.bank.documents[document_id]["retain_params"]["event_date"] = self.at(days)
        return document_id

    async def expire(self) -> None:
        assert self.retention
        await self.retention.step()

    async def test_older_ones_go_and_younger_ones_stay(self) -> None:
        old, young = self.store("旧", KEEP_DAYS + 0.1), self.store("新", KEEP_DAYS - 0.1)
        self.bank.profiles[self.profile_id()] = "旧"
        await self.expire()
        self.assertEqual(list(self.bank.documents), [young])
        self.assertEqual(self.bank.profiles, {})
        self.assertNotIn(old, str(self.bank.memories))
        for language in LANGUAGES:
            values = {"days": KEEP_DAYS, "documents": 1}
            said = Texts(language)("status_expired", **values)
            self.assertIn(said, await self.status_all(language))

    async def test_records_of_what_goes_go_too(self) -> None:
        item = {"document_id": self.store("旧", 40), "content": "旧", "tags": [], "timestamp": ""}
        self.bank.records["done"] = {"status": "completed", "item": item}
        await self.expire()
        self.assertEqual(self.bank.records, {})

    async def test_failed_ones_that_were_never_stored_go(self) -> None:
        prefix = self.scope().chat[:24]
        for name, days in (("old", 40), ("young", 3)):
            item = {"document_id": f"{prefix}-{name}", "content": "x", "tags": [], "timestamp": ""}
            record = {"status": "failed", "item": item, "created_at": self.at(days)}
            self.bank.records[name] = record
        await self.expire()
        self.assertEqual(list(self.bank.records), ["young"])

    async def test_long_document_stays_until_its_last_line_is_old(self) -> None:
        self.store("旧", KEEP_DAYS + 5, self.line("新", KEEP_DAYS - 5))
        await self.expire()
        self.assertEqual(len(self.bank.documents), 1)

    async def test_unknown_time_stays(self) -> None:
        for params in ({}, {"event_date": None}, {"event_date": "long ago"}):
            document_id = self.store("旧", 99)
            self.bank.documents[document_id]["retain_params"] = params
        await self.expire()
        self.assertEqual(len(self.bank.documents), 3)

    async def test_other_chats_that_were_not_met_stay(self) -> None:
        self.store("旧", 99, scope=self.other_scope())
        await self.expire()
        self.assertEqual(len(self.bank.documents), 1)

    async def test_once_a_day_for_each_chat(self) -> None:
        await self.expire()
        self.store("旧", 99)
        await self.expire()
        self.assertEqual(len(self.bank.documents), 1)
        self.clock.day = "2026-03-05"
        await self.expire()
        self.assertEqual(self.bank.documents, {})

    async def test_older_server_is_told_of(self) -> None:
        self.store("旧", 99)
        self.bank.version = "0.9.2"
        await self.expire()
        self.assertEqual(len(self.bank.documents), 1)
        for language in LANGUAGES:
            texts = Texts(language)
            said = texts("status_expiry_stopped", reason=texts("expiry_needs_newer"))
            self.assertIn(said, await self.status_all(language))

    async def test_clock_that_is_years_wrong_erases_nothing(self) -> None:
        self.store("新", 3)
        self.client.skew_seconds = -400 * 86400.0
        self.clock.wall += 400 * 86400
        await self.expire()
        self.assertEqual(len(self.bank.documents), 1)
        self.assertIn(Texts("zh")("expiry_clock"), await self.status_all())

    async def test_outage_in_the_middle_is_made_up_for(self) -> None:
        self.store("旧", 99)
        self.bank.fail(reply(503), "documents", "DELETE")
        await self.expire()
        self.assertIn(Texts("zh")("overloaded"), await self.status_all())
        self.bank.heal()
        await self.delivery.aclose()
        self.build(retain={"keep_days": KEEP_DAYS})  # as after a kill: the wish is on disk
        await self.all_erased()
        self.assertEqual(self.bank.documents, {})

    async def test_many(self) -> None:
        for number in range(BATCH + 5):
            self.store(str(number), 99)
        young = self.store("新", 1)
        await self.expire()
        self.assertEqual(list(self.bank.documents), [young])

    async def test_for_ever_by_default(self) -> None:
        self.build()
        self.assertIsNone(self.retention)
        self.assertNotIn("到期", await self.status_all())


class BotAnswersTest(CommandsCase):
    async def said(self) -> str:
        await self.memory.remember([self.message("我养了一只猫")], "猫很可爱", self.clock.local())
        await self.delivery.flush()
        return "\n".join(self.bank.texts(self.scope()))

    async def test_stored_by_default(self) -> None:
        self.assertIn("猫很可爱", await self.said())

    async def test_only_what_people_say(self) -> None:
        self.build(retain={"bot_answers": False}, tools={"remember": True, "recall": True})
        self.assertRegex(await self.said(), r"^小明#3fa2c1 \([^)]*\): 我养了一只猫$")
        self.assertEqual([spec.name for spec in self.tools.specs], ["recall"])
        self.assertNotIn("猫很可爱", await self.recall("我养了什么宠物呢"))

    async def test_nothing_is_stored_of_an_answer_alone(self) -> None:
        self.build(retain={"bot_answers": False})
        message = self.message("", stored="")
        await self.memory.remember([message], "早上好", self.clock.local())
        await self.delivery.flush()
        self.assertEqual(self.bank.documents, {})


class CostsTest(CommandsCase):
    async def test_for_admins_only(self) -> None:
        self.bank.used = 12, 3400
        self.bank.store(self.scope(), TEA, CAT)
        await self.recall()
        for number in range(3):
            said = [self.message(f"我最喜欢喝的茶是第{number}种龙井")]
            await self.memory.remember(said, "好的", self.clock.local())
        await self.delivery.flush()
        for language in LANGUAGES:
            texts = Texts(language)
            answer = await self.ask("stats", language=language, is_admin=True)
            values = {"calls": 12, "errors": 0, "input": 3400, "output": 0}
            self.assertIn(texts("stats_model", **values), answer.splitlines())
            self.assertIn(texts("stats_saved", calls=2), answer.splitlines())
            tokens = round(self.memory.figures.tokens)
            self.assertGreater(tokens, 50)
            self.assertIn(texts("stats_injected", tokens=tokens), answer.splitlines())
            others = await self.ask("stats", language=language)
            self.assertNotIn("token", others)

    async def test_silent_where_nobody_counts_or_tells(self) -> None:
        for fault in (None, reply(403), reply(404), reply(503)):
            if fault:
                self.bank.fail(fault, "llm-requests")
            self.clock.now += 61
            self.assertNotIn("token", await self.ask("stats", is_admin=True))
