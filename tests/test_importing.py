"""A chat's past comes into its memory as it would have been stored live, once, and goes again."""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.commands_importing import CODE_SECONDS
from astrbot_plugin_hindsight_memory.importing import CHECK_SECONDS, MAX_COUNT, WINDOW_LINES
from astrbot_plugin_hindsight_memory.texts import Texts
from astrbot_plugin_hindsight_memory.transcript import Line, document_prefix
from commands_case import LANGUAGES, CommandsCase
from fake_past import (
    BOT,
    PLACE,
    PRIVATE,
    FakePast,
    at,
    entry,
    reply_to,
    row,
    talk,
    text,
)
from support import reply, turn_of, until

DAY = 86_400.0
FIVE = (
    ("30001", "小明"),
    ("30002", "小红"),
    ("30003", "小明"),
    ("30004", "小李"),
    ("30005", "小王"),
)
"""Two of them have the same name."""
CODE = re.compile(r"import (\d{4})")


def plain(words: str) -> dict[str, Any]:
    """A part of a row that is text."""
    return {"type": "plain", "text": words}


class ImportCase(CommandsCase):
    """`ask` has a chat whose past is told by `past`."""

    def build(self, **config: Any) -> None:
        super().build(**{"commands": {"per_minute": 600}} | config)
        if self.state.hasher and not self.settings.problems:
            self.past = self.past_of()

    def past_of(self, *, private: bool = False) -> FakePast:
        scope = self.private_scope() if private else self.scope()
        place = PRIVATE if private else PLACE
        return FakePast(self.state, self.people, self.settings, scope, place)

    def caller(self, scope: Any = None, **changes: Any) -> Any:
        return super().caller(scope, **{"past": self.past, "is_admin": True} | changes)

    async def answers(self, words: str, caller: Any = None) -> list[str]:
        """The last one: a busy machine is told first that it takes longer."""
        return (await super().answers(words, caller))[-1:]

    def ago(self, days: float) -> float:
        return self.clock.wall - days * DAY

    async def code(self, words: str = "import", **changes: Any) -> str:
        """The code under a dry run."""
        answer = await self.ask(words, **changes)
        found = CODE.search(answer)
        assert found, answer
        return found[1]

    async def run_import(self, words: str = "import", **changes: Any) -> str:
        return await self.ask(f"import {await self.code(words, **changes)}", **changes)

    def lines(self) -> list[Line]:
        """All lines in the bank, in the order of time."""
        documents = self.bank.documents.values()
        found = [Line(t) for d in documents for t in d["original_text"].splitlines()]
        return sorted(found, key=lambda line: str(line.at))

    def words(self) -> list[str]:
        return [line.words for line in self.lines()]

    def writes(self) -> list[str]:
        return [r.method for r in self.bank.requests if r.method not in {"GET", "HEAD"}]

    async def restart(self, **config: Any) -> None:
        """A kill and a start: nothing of the memory is left, all of the disk."""
        await self.delivery.aclose()
        await self.people.aclose()
        self.build(**config)
        await self.delivery.start()


class DryRunTest(ImportCase):
    async def test_it_says_all_and_does_nothing(self) -> None:
        self.past.entries = talk(FIVE, 100, start=self.ago(3))
        for language in LANGUAGES:
            answer = await self.ask("import", language=language)
            for part in ("2027-01-12", "100", "小红#", "小王#", str(100 // WINDOW_LINES)):
                self.assertIn(part, answer)
            self.assertIn(Texts(language)("source_onebot"), answer)
            self.assertLessEqual(len(answer.splitlines()), 12)
        self.assertEqual(self.writes(), [])
        self.assertNotIn("茶", str(self.bank.bodies))
        await self.send()
        self.assertEqual(self.bank.documents, {})
        self.assertEqual((await self.outbox.figures(day="")).importing, 0)

    async def test_days_under_the_daily_limit(self) -> None:
        self.past.entries = talk(FIVE, 100, start=self.ago(3))
        self.assertIn(Texts("zh")("import_no_limit"), await self.ask("import"))
        self.build(retain={"daily_chars": 1000})
        self.past.entries = talk(FIVE, 100, start=self.ago(3))
        found = re.search(
            r"(\d+) 字，分[^\n]*\n[^\n]*\n[^\n]*大约要 (\d+) 天", await self.ask("import")
        )
        assert found
        self.assertEqual(int(found[2]), -(-int(found[1]) // 1000))

    async def test_count_and_days_are_arguments(self) -> None:
        self.past.entries = [
            entry("30001", self.ago(100), "一百天前"),
            entry(BOT, self.ago(100) + 1, "好"),
            entry("30001", self.ago(40), "四十天前"),
            entry(BOT, self.ago(40) + 1, "好"),
            entry("30001", self.ago(5), "五天前"),
            entry(BOT, self.ago(5) + 1, "好"),
            entry("30001", self.ago(2), "两天前"),
            entry(BOT, self.ago(2) + 1, "好"),
        ]
        for words, number in {
            "import": 4,
            "import 2": 2,
            "import 3d": 2,
            "import 60 天": 6,
            "导入 5000 400D": 8,
            "import 400天 6": 6,
            "import 999999 1000d": 8,
        }.items():
            with self.subTest(words):
                self.assertIn(f"共 {number} 行", await self.ask(words))
        usage = Texts("zh")("import_usage", count=MAX_COUNT, days=31)
        for words in ("import x", "import 0", "import 7dd", "import 0d", "import -5"):
            with self.subTest(words):
                self.assertEqual(await self.ask(words), usage)

    async def test_code_is_for_one_person_and_a_minute(self) -> None:
        self.past.entries = talk(FIVE, 20, start=self.ago(3))
        code = await self.code()
        no_code = Texts("zh")("import_no_code")
        other: dict[str, Any] = {"speaker": self.message().speaker.__class__("小红", "#9b1c22")}
        self.assertEqual(await self.ask(f"import {code}", **other), no_code)
        self.clock.now += CODE_SECONDS + 1
        self.assertEqual(await self.ask(f"import {code}"), no_code)
        code = await self.code()
        self.assertIn(Texts("zh")("import_started", windows=1), await self.ask(f"import {code}"))
        self.assertNotIn("开始", await self.ask(f"import {code}"))

    async def test_nothing_to_read(self) -> None:
        await self.expect("import", "import_no_source")
        await self.expect("import", "import_no_source", past=None)
        self.past.entries = [entry("30001", self.ago(1), text("随便聊聊"))]
        self.assertIn("没有可以导入的内容", await self.ask("import"))
        for words in ("import status", "import stop", "import undo"):
            await self.expect(words, "import_none")

    async def test_rights(self) -> None:
        self.past.entries = talk(FIVE, 20, start=self.ago(3))
        for words in ("import", "import status", "import stop", "import undo", "import 5001"):
            member: dict[str, Any] = {"is_admin": False, "is_manager": False}
            await self.expect(words, "needs_trusted", **member)
            private: dict[str, Any] = {
                "is_admin": False,
                "is_manager": True,
                "scope": self.private_scope(),
            }
            await self.expect(words, "needs_trusted", **private)
        await self.code(is_admin=False, is_manager=True)
        await self.code(is_admin=True, is_manager=False)
        self.build(commands={"members_may_manage": True, "per_minute": 600})
        await self.expect("import", "needs_trusted", is_admin=False, is_manager=False)

    async def test_limited_and_off(self) -> None:
        self.build(commands={"per_minute": 1})
        self.past.entries = talk(FIVE, 20, start=self.ago(3))
        await self.code()
        self.assertEqual(await self.ask("import"), Texts("zh")("too_often", number=1, seconds=60))
        self.clock.now += 61
        await self.ask("off")
        self.assertNotRegex(await self.ask("import"), CODE)


class TalkCase(ImportCase):
    """Five people have talked to the bot.

    Attributes:
        number: How many messages there are, the bot's included.
    """

    number = 200

    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.past.entries = talk(FIVE, self.number, start=self.ago(20))

    async def live_pseudonyms(self) -> dict[str, str]:
        """How each person is written who speaks now."""
        roster = self.people.roster(self.scope())
        await self.people.meet(self.scope(), [one for one, _ in FIVE])
        return {person: roster.pseudonym(person) for person, _ in FIVE}

    async def check_complete(self) -> None:
        live = await self.live_pseudonyms()
        self.assertEqual(len(set(live.values())), 5)
        lines = self.lines()
        self.assertEqual(len(lines), self.number)
        for n in range(self.number // 2):
            person, name = FIVE[n % 5]
            said, answer = lines[2 * n], lines[2 * n + 1]
            self.assertEqual(said.label, f"{name}{live[person]}")
            self.assertIn(f"第{n}件事", said.words)
            self.assertEqual(answer.words, f"记下第{n}件事了")
            at_time = self.ago(20) + n * 60.0
            assert said.at and answer.at
            self.assertEqual(said.at.timestamp(), int(at_time))

    async def finish_erasing(self) -> None:
        """The background looks for what is written late, and finds nothing to delete."""
        assert self.eraser
        task = asyncio.create_task(self.eraser.run())
        for _ in range(300):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class ThousandTest(TalkCase):
    number = 1000

    async def test_everybody_is_written_as_live_and_everything_once(self) -> None:
        started = await self.run_import()
        self.assertEqual(started, Texts("zh")("import_started", windows=50))
        await self.send()
        await self.check_complete()
        for document in self.bank.documents.values():
            self.assertTrue(document["id"].startswith(document_prefix(self.scope().chat)))
            lines = document["original_text"].splitlines()
            self.assertEqual(len(lines), WINDOW_LINES)
            first = Line(lines[0]).at
            assert first
            self.assertEqual(document["retain_params"]["event_date"], first.isoformat())
            self.assertEqual(document["tags"], list(self.scope().tags))
        ids = {person for person, _ in FIVE} | {BOT, PLACE.group_id}
        self.assertFalse([one for one in ids if one in str(self.bank.bodies)])

    async def test_killed_in_the_middle(self) -> None:
        await self.run_import()
        for _ in range(5):
            await self.delivery.step()
            await self.delivery.settle()
        self.assertTrue(0 < len(self.bank.documents) < 50, len(self.bank.documents))
        await self.restart()
        await self.send()
        await self.check_complete()

    async def test_undo_leaves_what_was_said_live(self) -> None:
        self.bank.store(self.scope(), "小明#3fa2c1 (2027-01-15T00:00:00+00:00): 现在的话")
        await self.send()
        before = copy.deepcopy((self.bank.documents, self.bank.memories))
        await self.run_import()
        await self.send()
        self.assertGreater(len(self.bank.documents), len(before[0]))
        for language in LANGUAGES:
            answer = await self.ask("import undo", language=language)
            self.assertIn(
                Texts(language)("import_undone", windows=50, lines=1000)
                if language == "zh"
                else Texts(language)("import_none"),
                answer,
            )
        await self.send()
        self.assertEqual((self.bank.documents, self.bank.memories), before)


class TalkTest(TalkCase):
    async def test_two_codes_at_once_are_one_import(self) -> None:
        ann = await self.code()
        ben: dict[str, Any] = {"speaker": self.message().speaker.__class__("小红", "#9b1c22")}
        other = await self.code(**ben)
        await self.ask(f"import {ann}")
        await self.send()
        before = copy.deepcopy(self.bank.documents)
        answer = await self.ask(f"import {other}", **ben)
        self.assertEqual(answer, Texts("zh")("import_nothing_new"))
        await self.send()
        self.assertEqual(self.bank.documents, before)

    async def test_more_of_it_later_brings_only_the_rest(self) -> None:
        await self.run_import("import 133")
        await self.send()
        some = len(self.lines())
        self.assertLess(some, 140)
        await self.run_import()
        await self.send()
        self.assertGreaterEqual(len(self.lines()), 199)
        self.assertEqual(len(set(map(str, self.words()))), len(self.words()))

    async def test_killed_while_the_answer_is_on_its_way(self) -> None:
        await self.run_import()
        self.bank.gate.clear()
        await self.delivery.step()
        await until(lambda: self.bank.waiting)
        self.bank.gate.set()
        await self.restart()
        await self.send()
        await self.check_complete()

    async def test_undo_in_the_middle_and_again_from_the_start(self) -> None:
        await self.run_import()
        for _ in range(2):
            await self.delivery.step()
            await self.delivery.settle()
        await self.ask("import undo")
        await self.send()
        self.assertEqual(self.bank.documents, {})
        await self.run_import()
        await self.send()
        await self.finish_erasing()
        await self.check_complete()

    async def test_stopped_and_gone_on_with(self) -> None:
        await self.run_import()
        for _ in range(2):
            await self.delivery.step()
            await self.delivery.settle()
        some = len(self.bank.documents)
        self.assertIn("已停止", await self.ask("import stop"))
        await self.send()
        self.assertEqual(len(self.bank.documents), some)
        self.assertIn("已停止", await self.ask("import status"))
        await self.run_import()
        await self.send()
        await self.finish_erasing()
        await self.check_complete()

    async def test_undo_after_stop(self) -> None:
        await self.run_import()
        await self.delivery.step()
        await self.delivery.settle()
        await self.ask("import stop")
        await self.ask("import undo")
        await self.send()
        self.assertEqual(self.bank.documents, {})

    async def test_undo_finds_what_was_rewritten(self) -> None:
        await self.run_import()
        await self.send()
        live = await self.live_pseudonyms()
        speaker = self.message().speaker.__class__("小红", live["30002"])
        await self.confirmed("forgetme", speaker=speaker)
        await self.send()
        self.assertEqual(len(self.lines()), 160)
        await self.ask("import undo")
        await self.send()
        self.assertEqual(self.bank.documents, {})

    async def test_twice_is_once(self) -> None:
        await self.run_import()
        await self.send()
        before = copy.deepcopy(self.bank.documents)
        for words in ("import", "import 5000 365d", "import 7d"):
            self.assertIn("没有可以导入的内容", await self.ask(words))
        await self.send()
        self.assertEqual(self.bank.documents, before)

    async def test_every_second_request_is_one_too_many(self) -> None:
        await self.run_import()
        counter = itertools.count()
        answer = self.bank.otherwise

        def limited(request: Any) -> Any:
            is_retain = request.method == "POST" and request.url.path.endswith("/memories")
            if is_retain and next(counter) % 2:
                return reply(429, {"detail": "slow down"}, retry_after="3")
            return answer(request)

        self.bank.otherwise = limited
        for _ in range(400):
            self.clock.now += 3
            await self.delivery.step()
            await self.delivery.settle()
        await self.check_complete()


class QueueTest(ImportCase):
    async def test_what_is_said_now_goes_first(self) -> None:
        self.past.entries = talk(FIVE, 200, start=self.ago(3))
        await self.run_import()
        await self.delivery.step()
        await self.delivery.settle()
        await self.delivery.add(turn_of("b" * 32, "现在", urgent=True))
        await self.delivery.step()
        await self.delivery.settle()
        self.assertIn("现在", "".join(self.bank.contents[-2:]))
        self.assertLess(len(self.bank.documents), 10)

    async def test_daily_limit_holds(self) -> None:
        self.build(retain={"daily_chars": 3000})
        self.past.entries = talk(FIVE, 200, start=self.ago(3))
        await self.run_import()
        await self.send()
        first = len(self.bank.documents)
        self.assertTrue(0 < first < 10)
        for day in range(5, 20):
            self.clock.day = f"2026-03-{day:02}"
            await self.send()
        self.assertEqual(len(self.bank.documents), 10)

    async def test_a_slow_import_never_grows_too_old(self) -> None:
        self.past.entries = talk(FIVE, 40, start=self.ago(3))
        await self.run_import()
        await self.outbox.age(30 * DAY, limit=14 * DAY)
        await self.send()
        self.assertEqual(len(self.lines()), 40)

    async def test_progress_and_its_end_in_the_chat(self) -> None:
        self.past.entries = talk(FIVE, 100, start=self.ago(3))
        assert self.importer
        task = asyncio.create_task(self.importer.run())
        await self.run_import()
        shown = "正在导入过去的记录：0/5"
        self.assertIn(shown, await self.status_all())
        self.assertIn(shown, await self.ask("import status"))
        self.assertIn(shown, await self.ask("import"))
        await self.send()
        await until(lambda: self.past.said)
        self.clock.now += CHECK_SECONDS
        for _ in range(100):
            await asyncio.sleep(0)
        self.assertEqual(len(self.past.said), 1)
        told = Texts("zh")("import_is_arrived", sent=5, windows=5, lines=100)
        self.assertEqual(self.past.said, [told])
        self.assertNotIn("正在导入", await self.status_all())
        task.cancel()

    async def test_end_after_a_restart_is_told_when_the_chat_speaks(self) -> None:
        self.past.entries = talk(FIVE, 100, start=self.ago(3))
        await self.run_import()
        await self.restart()
        await self.send()
        assert self.importer
        importer = self.importer
        task = asyncio.create_task(importer.run())

        await until(lambda: importer._untold)
        self.assertEqual(self.past.said, [])
        importer.met(self.other_scope().chat, Texts("zh"), self.past.say)
        importer.met(self.scope().chat, Texts("zh"), self.past.say)
        await until(lambda: self.past.said)
        importer.met(self.scope().chat, Texts("zh"), self.past.say)
        for _ in range(50):
            await asyncio.sleep(0)
        self.assertEqual(len(self.past.said), 1)
        task.cancel()

    async def test_no_raw_id_on_disk(self) -> None:
        self.past.entries = talk(FIVE, 100, start=self.ago(3))
        await self.run_import()
        await self.outbox.sync()
        for path in self.folder.iterdir():
            content = path.read_bytes()
            for raw in (*(person for person, _ in FIVE), PLACE.umo, BOT):
                self.assertNotIn(raw.encode(), content, path.name)


class ErasedTest(ImportCase):
    """What is erased does not come back, whenever that is."""

    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.past.entries = talk(FIVE, 100, start=self.ago(3))
        roster = self.people.roster(self.scope())
        await self.people.meet(self.scope(), [one for one, _ in FIVE])
        self.ben = self.message().speaker.__class__("小红", roster.pseudonym("30002"))

    def moments(self) -> dict[str, Callable[[Any], Any]]:
        """When somebody may change their mind."""

        async def before(change: Any) -> None:
            await change()
            answer = await self.ask("import")
            if found := CODE.search(answer):
                await self.ask(f"import {found[1]}")

        async def between(change: Any) -> None:
            code = await self.code()
            await change()
            await self.ask(f"import {code}")

        async def queued(change: Any) -> None:
            await self.run_import()
            await change()

        async def half(change: Any) -> None:
            await self.run_import()
            await self.delivery.step()
            await self.delivery.settle()
            await change()

        async def after(change: Any) -> None:
            await self.run_import()
            await self.send()
            await change()

        return {one.__name__: one for one in (before, between, queued, half, after)}

    async def check(self, change: Callable[[], Any], expected: int) -> None:
        for name in self.moments():
            with self.subTest(name):
                await self.asyncSetUp()
                self.clock.wall += 10
                await self.moments()[name](change)
                await self.send()
                answer = await self.ask("import 5000 90d")
                if found := CODE.search(answer):
                    await self.ask(f"import {found[1]}")
                    await self.send()
                self.assertEqual(len(self.lines()), expected)
                self.assertFalse([w for w in self.words() if expected and "小红" in w])

    async def test_forgetme(self) -> None:
        await self.check(lambda: self.confirmed("forgetme", speaker=self.ben), 80)

    async def test_wipe(self) -> None:
        async def wipe() -> None:
            found = re.search(r"wipe (\d{4})", await self.ask("wipe"))
            assert found
            await self.ask(f"wipe {found[1]}")

        await self.check(wipe, 0)

    async def test_opted_out(self) -> None:
        for moment in ("before", "between"):
            await self.asyncSetUp()
            optout: dict[str, Any] = {"speaker": self.ben, "person_id": "30002"}
            await self.moments()[moment](lambda: self.ask("optout", **optout))
            if moment == "between":  # shown anew, since it would bring something else
                self.assertEqual(self.bank.documents, {})
                await self.run_import()
            await self.send()
            self.assertEqual(len(self.lines()), 80)

    async def test_switched_off_between(self) -> None:
        code = await self.code()
        await self.ask("off")
        await self.ask(f"import {code}")
        await self.send()
        self.assertEqual(self.bank.documents, {})

    async def test_what_was_said_while_off_paused_or_opted_out(self) -> None:
        times = [one["time"] for one in self.past.entries or ()]
        now = self.clock.wall
        for change, back, kept in (
            ("off", "on", 60),
            ("pause 19", "", 60),
            ("optout", "optin", 84),
        ):
            with self.subTest(change):
                await self.asyncSetUp()
                person: dict[str, Any] = {"speaker": self.ben, "person_id": "30002"}
                self.clock.wall = times[40] + 0.9  # a line tells whole seconds
                await self.ask(change, **person)
                self.clock.wall = times[80] - 1.0
                if back:
                    await self.ask(back, **person)
                self.clock.wall = now
                await self.run_import("import 5000 90d")
                await self.send()
                self.assertEqual(len(self.lines()), kept)

    async def test_forgotten_first_line_does_not_come_back(self) -> None:
        first = self.past.entries[40]["time"]  # type: ignore[index]
        moment = datetime.fromtimestamp(first, UTC).isoformat()
        self.bank.store(
            self.scope(),
            f"小明#{'3fa2c1'} ({moment}): 我最早的一句话是秘密",
            f"小李#9b1c22 ({datetime.fromtimestamp(first + 9000, UTC).isoformat()}): 后来的话",
        )
        said = entry("30001", first, "我最早的一句话是秘密")
        self.past.entries[40:40] = [said, entry(BOT, first, "好")]  # type: ignore[index]
        await self.ask("list")
        await self.ask("forget 我最早的一句话是秘密")
        await self.ask("forget 1")
        await self.send()
        self.assertEqual(self.words(), ["后来的话"])
        await self.run_import()
        await self.send()
        self.assertNotIn("秘密", "".join(self.words()))
        self.assertEqual(len(self.lines()), 41)


class WhatIsTakenTest(ImportCase):
    async def imported(self, *entries: dict[str, Any], words: str = "import") -> list[str]:
        self.past.entries = list(entries)
        found = CODE.search(await self.ask(words))
        if found:
            await self.ask(f"import {found[1]}")
        await self.send()
        return [f"{line.label.partition('#')[0]}: {line.words}" for line in self.lines()]

    async def test_only_what_was_for_the_bot_and_its_answers(self) -> None:
        start = self.ago(2)
        question = entry("30001", start + 20, "问题", name="小明")
        lines = await self.imported(
            entry("30001", start, text("随便聊聊"), name="小明"),
            entry(BOT, start + 5, "插件自己说的话"),
            entry("30002", start + 10, text("没人理的话"), name="小红"),
            question,
            entry("30002", start + 21, at("30001"), text("你们在说什么"), name="小红"),
            entry(BOT, start + 25, "回答"),
            entry("30002", start + 30, text("/带前缀的问题"), name="小红"),
            entry(BOT, start + 31, "前缀的回答"),
            entry("30002", start + 60, reply_to({"message_id": 0}), text("引用丢了"), name="小红"),
        )
        self.assertEqual(
            lines,
            ["小明: 问题", "助手: 回答", "小红: 带前缀的问题", "助手: 前缀的回答"],
        )

    async def test_reply_to_the_bot(self) -> None:
        start = self.ago(2)
        answer = entry(BOT, start + 1, "第一个回答")
        lines = await self.imported(
            entry("30001", start, "问题", name="小明"),
            answer,
            entry("30002", start + 30, reply_to(answer), text("那第二个呢"), name="小红"),
            entry(BOT, start + 31, "第二个回答"),
        )
        self.assertEqual(len(lines), 4)
        self.assertIn("那第二个呢", lines[2])
        self.assertIn("第一个回答", lines[2])

    async def test_commands_and_their_answers_are_left_out(self) -> None:
        start = self.ago(2)
        lines = await self.imported(
            entry("30001", start, text("/hindsight list"), name="小明"),
            entry(BOT, start + 1, "1. 一条记忆"),
            entry("30001", start + 20, at(BOT), text(" 天气  今天 杭州"), name="小明"),
            entry(BOT, start + 21, "晴"),
            entry("30001", start + 60, text("/hindsighted 是个词"), name="小明"),
            entry(BOT, start + 61, "好"),
        )
        self.assertEqual(lines, ["小明: hindsighted 是个词", "助手: 好"])

    async def test_answers_go_to_whom_they_are_for(self) -> None:
        start = self.ago(2)
        ann, ben = (
            entry("30001", start, "甲", name="小明"),
            entry("30002", start + 1, "乙", name="小红"),
        )
        await self.imported(
            ann,
            ben,
            entry(BOT, start + 10, reply_to(ben), text("给乙")),
            entry(BOT, start + 20, at("30001"), text("给甲")),
            entry(BOT, start + 22, text("还有给甲的")),
            entry("30003", start + 30, "没有回答的", name="小李"),
            entry("30001", start + 5000, "丙", name="小明"),
            entry(BOT, start + 5001, "给丙"),
        )
        by_document = [d["original_text"] for d in self.bank.documents.values()]
        (document,) = by_document
        owners = [Line(one).words for one in document.splitlines()]
        self.assertEqual(owners, ["甲", "给甲 还有给甲的", "乙", "给乙", "丙", "给丙"])

    async def test_everything_where_the_group_listens(self) -> None:
        assert self.importer
        self.state.listen(self.scope(), on=True)
        start = self.ago(2)
        lines = await self.imported(
            entry("30001", start, text("随便聊聊"), name="小明"),
            entry("30002", start + 10, "问题", name="小红"),
            entry(BOT, start + 11, "回答"),
            entry("30002", start + 12, text("/reset"), name="小红"),
            entry(BOT, start + 13, "已重置"),
        )
        self.assertEqual(lines, ["小明: 随便聊聊", "小红: 问题", "助手: 回答"])

    async def test_cleaned_like_a_live_turn(self) -> None:
        self.build(privacy={"redact_contacts": True, "redact_secrets": True})
        start = self.ago(2)
        lines = await self.imported(
            entry(
                "30001",
                start,
                at(BOT),
                at("30002"),
                text("的号码是 30002，密码：Abc123456"),
                name="小明",
            ),
            entry(BOT, start + 1, "30001 说了 sk-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
            entry("30002", start + 9, text("路过"), name="小红"),
        )
        self.assertEqual(len(lines), 2)
        for raw in ("30001", "30002", "Abc123456", "sk-proj"):
            self.assertNotIn(raw, "".join(lines))
        self.assertIn("小红#", lines[0])

    async def test_said_twice_within_the_hour_is_stored_once(self) -> None:
        start, long = self.ago(2), "我想知道明天的会议几点开始"
        lines = await self.imported(
            entry("30001", start, long, name="小明"),
            entry(BOT, start + 1, "三点"),
            entry("30001", start + 100, long, name="小明"),
            entry(BOT, start + 101, "三点"),
            entry("30001", start + 8000, long, name="小明"),
            entry(BOT, start + 8001, "三点"),
        )
        self.assertEqual(len(lines), 4)

    async def test_only_what_is_older_than_the_first_stored_line(self) -> None:
        start = self.ago(2)
        moment = datetime.fromtimestamp(start + 103, UTC).isoformat()
        roster = self.people.roster(self.scope())
        await self.people.meet(self.scope(), ["30001"])
        self.bank.store(self.scope(), f"小明{roster.pseudonym('30001')} ({moment}): 第一句存下的话")
        lines = await self.imported(
            entry("30001", start, "以前的话", name="小明"),
            entry(BOT, start + 1, "好"),
            entry("30001", start + 100, "第一句存下的话", name="小明"),  # heard three seconds later
            entry(BOT, start + 102, "好的"),
            entry("30001", start + 200, "以后的话", name="小明"),
            entry(BOT, start + 201, "行"),
        )
        self.assertEqual(lines, ["小明: 以前的话", "助手: 好", "小明: 第一句存下的话"])

    async def test_what_waits_here_is_stored_too(self) -> None:
        start = self.ago(2)
        record = self.memory.record(
            self.scope(),
            Texts("zh"),
            self.message().speaker,
            "排队的话",
            self.clock.moment(start + 50),
        )
        await self.delivery.add(record)
        self.past.entries = [
            entry("30001", start, "以前", name="小明"),
            entry(BOT, start + 1, "好"),
            entry("30001", start + 100, "以后", name="小明"),
            entry(BOT, start + 101, "好"),
        ]
        self.assertIn("共 2 行", await self.ask("import"))

    async def test_private_chat_with_several_messages_before_the_answer(self) -> None:
        self.past = self.past_of(private=True)
        start = self.ago(2)
        self.past.entries = [
            entry("20001", start, "在吗", group=None, name="小明"),
            entry("20001", start + 3, "我想问个事", group=None, name="小明"),
            entry(BOT, start + 9, "请说", group=None),
        ]
        await self.run_import(scope=self.private_scope())
        await self.send()
        self.assertEqual(self.words(), ["在吗", "我想问个事", "请说"])
        self.assertEqual(self.past.asked[0]["action"], "get_friend_msg_history")
        self.assertEqual(self.past.asked[0]["user_id"], 20001)


class SourceTest(ImportCase):
    async def check_paging(self, order: Callable[[Any], Any], page: int) -> None:
        self.past.entries = talk(FIVE, 90, start=self.ago(3))
        self.past.order, self.past.page = order, page
        self.assertIn("读到 90 条", await self.ask("import"))

    async def test_onebot_by_pages_in_any_order(self) -> None:
        for order in (list, lambda page: list(reversed(list(page)))):
            for page in (7, 20, 100):
                await self.check_paging(order, page)
        asked = self.past.asked[0]
        self.assertEqual((asked["self_id"], asked["group_id"]), (int(BOT), int(PLACE.group_id)))

    async def test_a_platform_that_gives_the_newest_again_ends_it(self) -> None:
        entries = talk(FIVE, 90, start=self.ago(3))

        async def newest(action: str, params: Any) -> Any:
            return {"messages": entries[-20:]}

        self.past.onebot = newest  # type: ignore[method-assign]
        self.assertIn("读到 20 条", await self.ask("import"))

    async def test_damaged_entries_are_passed_over(self) -> None:
        good = talk(FIVE, 2, start=self.ago(3))
        bad: list[Any] = [{}, {"message_id": 5}, {"message_id": 6, "time": "x"}, "x", None]
        odd = {**good[0], "message_id": 99999, "message": 5}
        elsewhere = {**good[0], "message_id": 99998, "group_id": 1}

        async def answer(action: str, params: Any) -> Any:
            return (
                {"messages": [*bad, odd, elsewhere, *good]} if "message_seq" not in params else {}
            )

        self.past.onebot = answer  # type: ignore[method-assign]
        self.assertIn("共 2 行", await self.ask("import"))

    async def test_codes_in_a_text(self) -> None:
        start = self.ago(3)
        coded = entry("30001", start, "x", name="小明")
        coded["message"] = f"[CQ:at,qq={BOT}] 我爱&#91;茶&#93;&amp;咖啡[CQ:image,file=a.png]"
        self.past.entries = [coded, entry(BOT, start + 1, "好")]
        await self.run_import()
        await self.send()
        self.assertIn("我爱[茶]&咖啡", self.words()[0])
        self.assertNotIn("CQ", self.words()[0])

    async def test_message_history_of_the_web_chat(self) -> None:
        self.past = self.past_of(private=True)
        session = "webchat!admin!11-22"
        umo = f"webchat:FriendMessage:{session}"
        self.past.place = replace(
            PRIVATE,
            platform="webchat",
            umo=umo,
            session_id="webchat!admin!11-22",
            self_id="webchat",
        )
        created = datetime.fromtimestamp(self.ago(2), UTC).replace(tzinfo=None)
        said = plain("网页里的话")
        self.past.stored_rows = [
            row("user", created, said, sender="admin"),
            row("bot", created, {"type": "think", "text": "想"}, plain("回答")),
            row("user", created, plain("/reset"), sender="admin"),
            row("bot", created, plain("已重置")),
        ]
        await self.run_import(scope=self.private_scope())
        await self.send()
        self.assertEqual(self.words(), ["网页里的话", "回答"])
        self.assertEqual(self.past.asked[0], {"platform_id": "webchat", "user_id": "11-22"})
        self.assertEqual(self.lines()[0].at, datetime.fromtimestamp(int(self.ago(2)), UTC))

    async def test_message_history_of_a_group(self) -> None:
        created = datetime.fromtimestamp(self.ago(2), UTC).replace(tzinfo=None)
        mention = {"type": "at", "user_id": BOT, "name": "助手"}
        self.past.stored_rows = [
            row("user", created, plain("闲聊"), sender="30002", name="小红"),
            row(
                "user",
                created,
                mention,
                plain(" 问题"),
                sender="30001",
                name="小明",
            ),
            row("bot", created, plain("回答"), sender=BOT, name="bot"),
            row(
                "user",
                created,
                {"type": "reply", "message_id": "1", "sender_name": "bot", "text": "回答"},
                plain("[Image]"),
                plain("再说说"),
                sender="30002",
                name="小红",
            ),
            row("bot", created, plain("好的"), sender=BOT, name="bot"),
        ]
        await self.run_import()
        await self.send()
        words = self.words()
        self.assertEqual(len(words), 4)
        self.assertIn("再说说", "".join(words))
        self.assertNotIn("闲聊", "".join(words))
        self.assertEqual(self.past.asked[1], {"platform_id": "bot", "user_id": PLACE.umo})

    def conversation(self, *rows: dict[str, Any], created: float, updated: float) -> Any:
        history = json.dumps(rows, ensure_ascii=False)
        return SimpleNamespace(
            history=history, cid=f"c{created}", created_at=created, updated_at=updated
        )

    async def test_conversations(self) -> None:
        self.past = self.past_of(private=True)
        start = self.ago(2)

        def part(words: str) -> dict[str, Any]:
            return {"type": "text", "text": words}

        reminder = "<system_reminder>Current datetime: {} (UTC), Weekday: Monday</system_reminder>"
        told = reminder.format(datetime.fromtimestamp(start + 600, UTC).strftime("%Y-%m-%d %H:%M"))
        self.past.talks = [
            self.conversation(
                {"role": "user", "content": "Our previous history conversation summary: 摘要"},
                {
                    "role": "assistant",
                    "content": "Acknowledged the summary of our previous conversation history.",
                },
                {"role": "_checkpoint", "content": {"id": "1"}},
                {
                    "role": "user",
                    "content": [
                        part("第一句"),
                        part("<image_caption>图</image_caption>"),
                        part(told),
                    ],
                },
                {"role": "assistant", "content": [part("先查查")], "tool_calls": [{"id": "1"}]},
                {"role": "tool", "tool_call_id": "1", "content": "工具"},
                {"role": "assistant", "content": [part("第一个回答")]},
                {"role": "user", "content": [part("<attachment>"), part("[Image 1: 猫]")]},
                {"role": "user", "content": "第二句"},
                {"role": "assistant", "content": "第二个回答"},
                created=start,
                updated=start + 3600,
            ),
            SimpleNamespace(history="{", cid="bad", created_at=start, updated_at=start),
        ]
        answer = await self.ask("import", scope=self.private_scope())
        self.assertIn(Texts("zh")("source_conversations"), answer)
        await self.run_import(scope=self.private_scope())
        await self.send()
        self.assertEqual(self.words(), ["第一句", "第一个回答", "第二句", "第二个回答"])
        first = self.lines()[0].at
        assert first
        self.assertEqual(first.timestamp() // 60, (start + 600) // 60)

    async def test_conversation_that_may_be_younger_is_left_out(self) -> None:
        self.past = self.past_of(private=True)
        start = self.ago(2)
        moment = datetime.fromtimestamp(start + 50, UTC).isoformat()
        self.bank.store(self.private_scope(), f"小明#3fa2c1 ({moment}): 存下的")
        rows = ({"role": "user", "content": "不知道几时"}, {"role": "assistant", "content": "嗯"})
        self.past.talks = [self.conversation(*rows, created=start, updated=start + 100)]
        self.assertIn("没有可以导入的内容", await self.ask("import", scope=self.private_scope()))

    async def test_group_has_no_conversations(self) -> None:
        rows = ({"role": "user", "content": "谁说的"}, {"role": "assistant", "content": "嗯"})
        self.past.talks = [self.conversation(*rows, created=1.0, updated=2.0)]
        await self.expect("import 5000 3650d", "import_no_source")
