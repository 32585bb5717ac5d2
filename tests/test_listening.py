"""What is said in a group that listens is remembered once, in order, and only where it may be."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import json
import sqlite3
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.events import (
    EventReader,
    is_from_bot,
    message_id_of,
    origin_of,
    said_at,
)
from astrbot_plugin_hindsight_memory.intake import LISTENED_IDLE_SECONDS
from astrbot_plugin_hindsight_memory.listening import (
    HEAR_SECONDS,
    READ_AT_ONCE,
    Heard,
    Listening,
    is_noise,
)
from astrbot_plugin_hindsight_memory.people import Roster
from astrbot_plugin_hindsight_memory.scope import STATE_FILE, ScopeState
from astrbot_plugin_hindsight_memory.texts import Texts
from astrbot_plugin_hindsight_memory.transcript import Line, Message, in_order, owners
from astrbot_plugin_hindsight_memory.windows import LISTENED_LINES
from commands_case import LANGUAGES
from fake_events import ANN as ANN_ID
from fake_events import BEN as BEN_ID
from fake_events import BOT, FakeEvent, at, part, quote
from support import NOW, group_origin, private_origin, scope_of
from test_erasure import ErasureCase

GROUP = "70001"
OTHER_BOT = "90009002"
NAMES = {ANN_ID: "小明", BEN_ID: "小红"}


class ListeningCase(ErasureCase):
    """Ann and Ben talk in a group that listens."""

    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.numbers = itertools.count(1)
        self.clock.wall = NOW.timestamp() + 100_000.0
        self.state.listen(self.scope(), on=True)

    def build(self, **config: Any) -> None:
        super().build(**config)
        self.listening = Listening(self.memory, self.read, self.clock)

    def event(self, words: str = "", *parts: Any, number: int = 0, **changes: Any) -> FakeEvent:
        """Somebody says something, a second after what was said before."""
        number = number or next(self.numbers)
        sender = changes.setdefault("sender_id", ANN_ID)
        event = FakeEvent(words, *parts, group_id=GROUP, **changes)
        event.sender_name = changes.get("sender_name", NAMES.get(sender, "路人"))
        shown = [{"type": one.type.value.lower(), "data": {"qq": "1"}} for one in parts]
        raw = {
            "post_type": "message",
            "time": int(NOW.timestamp()) + number,
            "message": [{"type": "text", "data": {"text": words}}, *shown],
        }
        event.message_obj = SimpleNamespace(raw_message=raw, message_id=f"m{number}")
        return event

    def hear(
        self, event: FakeEvent, *, is_called: bool = False, seconds: float = HEAR_SECONDS
    ) -> None:
        self.clock.now += seconds
        when = said_at(event, NOW + timedelta(days=1))
        self.listening.hear(event, self.scope(), when, is_called=is_called)

    async def read(self, heard: Heard) -> Message:
        assert self.state.hasher
        reader = EventReader(
            heard.event,
            heard.scope,
            Roster(self.state.hasher, heard.scope),
            Texts("zh"),
            privacy=self.settings.privacy,
            opted_out=lambda one: self.state.is_opted_out(heard.scope, one),
        )
        return dataclasses.replace(
            reader.message(heard.at), began=heard.began, key=self.key(heard.event)
        )

    def key(self, event: FakeEvent) -> str:
        assert self.state.hasher
        return self.state.hasher.message(origin_of(event), message_id_of(event))

    async def turn(self, event: FakeEvent, answer: str, seconds: float = 5) -> None:
        """The bot answers what was said so many seconds later."""
        when = said_at(event, NOW + timedelta(days=1))
        heard = Heard(event, self.scope(), when, self.clock.now, 0.0, None)
        message = await self.read(heard)
        await self.memory.remember([message], answer, when + timedelta(seconds=seconds))

    async def say(self, *texts: str, **changes: Any) -> None:
        for words in texts:
            self.hear(self.event(words, **changes))
        await self.listening.flush()

    async def lines(self) -> list[Line]:
        """What waits."""
        found = await self.delivery.waiting(self.scope().chat)
        return [line for document in found for line in document.lines]

    async def words(self) -> list[str]:
        return [line.words for line in await self.lines()]


class WhatIsHeardTest(ListeningCase):
    async def test_people_by_their_names_and_numbers_at_their_times(self) -> None:
        await self.say("今天去爬山吗")
        await self.say("我带水果", sender_id=BEN_ID)
        lines = await self.lines()
        self.assertEqual([line.words for line in lines], ["今天去爬山吗", "我带水果"])
        self.assertRegex(lines[0].text, r"^小明#[0-9a-f]{6} \(2026-03-04T12:30:06\+00:00\): ")
        self.assertNotEqual(lines[0].pseudonym, lines[1].pseudonym)
        self.assertNotIn(ANN_ID, lines[0].text)

    async def test_in_the_order_in_which_they_came(self) -> None:
        """The same second, and heard the wrong way round."""
        events = [self.event(f"第{n}句话", number=7, created_at=float(n)) for n in (3, 1, 2)]
        for event in events:
            self.hear(event)
        await self.listening.flush()
        self.assertEqual(await self.words(), ["第1句话", "第2句话", "第3句话"])

    async def test_in_the_order_in_which_they_came_over_several_flushes(self) -> None:
        """The same second; what came first is heard last, behind a line of the second before."""
        self.hear(self.event("前一秒的话", number=6, created_at=900.0))
        for n in (3, 5, 1, 4, 2):
            self.hear(self.event(f"第{n}句话", number=7, created_at=float(n)))
            await self.listening.flush()
        expected = ["前一秒的话", *(f"第{n}句话" for n in range(1, 6))]
        self.assertEqual(await self.words(), expected)

    async def test_turn_of_one_second_stands_where_its_parts_came(self) -> None:
        def event(hundredth: int, words: str = "", **changes: Any) -> FakeEvent:
            created = NOW.timestamp() + 7 + hundredth / 100
            words = words or f"第{hundredth}句话"
            return self.event(words, number=7, created_at=created, **changes)

        asked = event(30, "山有多高", sender_id=BEN_ID)
        self.hear(asked, is_called=True)
        for hundredth in (10, 20, 40, 50):
            self.hear(event(hundredth))
        await self.listening.flush()
        await self.turn(asked, "一千米", seconds=0.6)
        for hundredth in (70, 45, 65):
            self.hear(event(hundredth))
            await self.listening.flush()
        lines = await self.lines()
        said = ["第10句话", "第20句话", "山有多高", "第40句话", "第45句话", "第50句话", "一千米"]
        self.assertEqual([line.words for line in lines], [*said, "第65句话", "第70句话"])
        self.assertEqual(lines[6].answered, lines[2].pseudonym)

    async def test_left_out(self) -> None:
        joined = self.event("")
        joined.message_obj.raw_message["post_type"] = "notice"
        robot = self.event("我是管家", sender_id="2854196310")
        discord = self.event("beep boop", platform="discord")
        discord.message_obj.raw_message = SimpleNamespace(author=SimpleNamespace(bot=True))
        telegram = self.event("beep boop", platform="telegram")
        user = SimpleNamespace(is_bot=True)
        telegram.message_obj.raw_message = SimpleNamespace(message=SimpleNamespace(from_user=user))
        command = self.event("draw a cat")
        command.extras["handlers_parsed_params"] = {"x": {}}
        own = self.event("我来回答", sender_id=BOT)
        for event in (joined, robot, discord, telegram, command, own, self.event("/weather 上海")):
            self.hear(event)
        await self.say("哦", "？？？", "……", "哈哈哈哈", "👍", "")
        await self.say("你叫我吗", "真的")
        self.assertEqual(await self.words(), ["你叫我吗", "真的"])

    def test_numbers_of_qq_robots(self) -> None:
        """Those that the OneBot implementations document, and their neighbours."""
        bounds = (
            (66600000, 66600000),
            (2854196301, 2854216399),
            (3328144510, 3328144510),
            (3889000000, 3889999999),
            (4010000000, 4019999999),
        )
        for first, last in bounds:
            for number in (first, last):
                self.assertTrue(is_from_bot(self.event("我是管家", sender_id=str(number))), number)
            for number in (first - 1, last + 1):
                self.assertFalse(is_from_bot(self.event("我是人", sender_id=str(number))), number)
        telegram = self.event("hello", sender_id="66600000", platform="telegram")
        self.assertFalse(is_from_bot(telegram))

    def test_noise(self) -> None:
        for text in ("", "1", "嗯", "嗯嗯嗯", "!!!", "👍👍", "( ´ ▽ ` )", "哈哈！"):
            self.assertTrue(is_noise(text), text)
        for text in ("好的", "66", "[图片]", "ok", "[语音]", "去？不"):
            self.assertFalse(is_noise(text), text)

    async def test_pictures_voice_and_quotations_as_marks(self) -> None:
        self.hear(self.event("", part("Image")))
        self.hear(self.event("", part("Record")))
        self.hear(self.event("同意", quote(BEN_ID, "小红", "周六去")))
        await self.listening.flush()
        first, second, third = await self.words()
        self.assertEqual((first, second), ("[图片]", "[语音]"))
        self.assertRegex(third, r"\[引用 小红#[0-9a-f]{6}: 周六去\] 同意")

    async def test_opted_out_people_are_left_out_entirely(self) -> None:
        self.state.opt(self.scope(), BEN_ID, out=True, everywhere=False)
        await self.say("我是小红，我怕黑", sender_id=BEN_ID)
        self.hear(self.event("你说呢", at(BEN_ID, "小红")))
        await self.listening.flush()
        self.assertEqual(len(await self.words()), 1)
        self.assertNotIn("怕黑", "".join(await self.words()))
        self.assertNotIn("小红", "".join(await self.words()))

    async def test_what_calls_the_bot_is_not_heard(self) -> None:
        self.hear(self.event("你好呀小助手"), is_called=True)
        await self.listening.flush()
        self.assertEqual(await self.words(), [])

    async def test_what_was_just_heard_is_recalled(self) -> None:
        await self.say("周六早上八点在东门集合")
        self.assertIn("东门集合", await self.recall("周六早上在哪里集合呢"))


class WindowTest(ListeningCase):
    """Thirty lines, or ten minutes of quiet; turns stand in them."""

    async def test_full_at_thirty_lines(self) -> None:
        await self.say(*(f"第{n}句话在这里" for n in range(LISTENED_LINES - 1)))
        await self.send()
        self.assertEqual(self.bank.contents, [], "nothing is sent before it is full")
        await self.say("最后一句话", "下一批的话")
        await self.send()
        (content,) = self.bank.contents
        self.assertEqual(len(content.splitlines()), LISTENED_LINES)
        self.assertNotIn("下一批的话", content)

    async def test_sent_after_ten_minutes_of_quiet(self) -> None:
        await self.say("今天去爬山吗")
        for passed, number in ((LISTENED_IDLE_SECONDS - 1.0, 0), (2.0, 1)):
            self.clock.now += passed
            await self.send()
            self.assertEqual(len(self.bank.contents), number)

    async def test_turn_stands_in_its_place(self) -> None:
        await self.say("今天去爬山吗")
        asked = self.event("山有多高", sender_id=BEN_ID)
        self.hear(asked, is_called=True)
        await self.say("我查一下", "好像很高")
        await self.turn(asked, "一千米")
        await self.say("那还好", number=20)
        lines = await self.lines()
        self.assertEqual(
            [line.words for line in lines],
            ["今天去爬山吗", "山有多高", "我查一下", "好像很高", "一千米", "那还好"],
        )
        self.assertEqual(lines[4].answered, lines[1].pseudonym, "it names whom it answers")
        self.assertEqual(len(await self.outbox.windows_of(self.scope().chat)), 1)

    async def test_turn_alone_needs_no_name(self) -> None:
        asked = self.event("山有多高")
        self.hear(asked, is_called=True)
        await self.turn(asked, "一千米", seconds=0)
        await self.say("那还好", sender_id=BEN_ID)
        lines = await self.lines()
        self.assertEqual(lines[1].answered, "")
        self.assertEqual(owners(lines)[1], lines[0].pseudonym)

    async def test_line_that_became_a_turn_after_it_was_heard(self) -> None:
        """The bot may answer uncalled."""
        for fills in (0, LISTENED_LINES):
            with self.subTest(fills=fills):
                event = self.event(f"有人知道{fills}路车吗")
                self.hear(event)
                await self.say(*(f"第{n}句话在这里" for n in range(fills)))
                await self.turn(event, f"{fills}路车在东门", seconds=60)
                words = await self.words()
                self.assertEqual(words.count(f"有人知道{fills}路车吗"), 1)
                self.assertEqual(words.count(f"{fills}路车在东门"), 1)

    async def test_thirty_lines_count_turns_too_and_five_turns_are_not_enough(self) -> None:
        for number in range(LISTENED_LINES // 2 - 1):
            await self.turn(self.event(f"第{number}个问题是什么"), f"第{number}个答案")
        await self.send()
        self.assertEqual(self.bank.contents, [])
        await self.turn(self.event("最后一个问题是什么"), "最后一个答案")
        await self.send()
        self.assertEqual(len(self.bank.contents), 1)

    async def test_killed(self) -> None:
        """What was flushed is there after the start; what was not is the last second."""
        await self.say("今天去爬山吗")
        self.hear(self.event("这一秒的话"))
        await self.reload()
        await self.send()
        self.assertEqual([line.count("\n") for line in self.bank.contents], [0])
        self.assertIn("今天去爬山吗", self.bank.contents[0])

    async def test_reload_in_the_middle_of_a_flush_loses_nothing(self) -> None:
        said = [f"第{n}句话在这里" for n in range(READ_AT_ONCE + 2)]
        for words in said:
            self.hear(self.event(words))
        flushing = asyncio.create_task(self.listening.flush())
        await asyncio.sleep(0)
        flushing.cancel()
        await asyncio.gather(flushing, return_exceptions=True)
        self.assertEqual(await self.words(), [], "it was in the middle")
        await self.listening.flush()
        self.assertEqual(await self.words(), said)

    async def test_reload_while_a_line_is_read_loses_nothing(self) -> None:
        read, gate = self.read, asyncio.Event()

        async def slow(heard: Heard) -> Message:
            await gate.wait()
            return await read(heard)

        self.listening = Listening(self.memory, slow, self.clock)
        for words in ("今天去爬山吗", "去东山吧"):
            self.hear(self.event(words))
        flushing = asyncio.create_task(self.listening.flush())
        await asyncio.sleep(0)
        flushing.cancel()
        await asyncio.gather(flushing, return_exceptions=True)
        gate.set()
        await self.listening.flush()
        self.assertEqual(await self.words(), ["今天去爬山吗", "去东山吧"])

    async def test_flush_ends_however_much_comes_meanwhile(self) -> None:
        numbers = itertools.count()
        read = self.read

        async def busy(heard: Heard) -> Message:
            self.hear(self.event(f"接着是第{next(numbers)}句话"))
            return await read(heard)

        self.listening = Listening(self.memory, busy, self.clock)
        self.hear(self.event("今天去爬山吗"))
        for number in range(1, 3):
            await self.listening.flush()
            self.assertEqual(len(await self.words()), number)

    async def test_one_write_a_second(self) -> None:
        """Fifty lines cost one transaction."""
        commits: list[int] = []
        add = self.outbox.add

        async def counted(turns: Any) -> Any:
            commits.append(len(turns))
            return await add(turns)

        self.outbox.add = counted  # type: ignore[method-assign]
        await self.say(*(f"第{n}句话在这里" for n in range(50)))
        self.assertEqual(commits, [50])

    async def test_disk_that_fails_pushes_no_turn_out(self) -> None:
        self.disk.fault = sqlite3.SQLITE_FULL
        await self.turn(self.event("山有多高"), "一千米")
        await self.say(*(f"第{n}句话在这里" for n in range(1200)))
        self.disk.fault = None
        await self.delivery.step()
        await self.delivery.flush()
        sent = "\n".join(self.bank.contents)
        for words in ("山有多高", "第1199句话在这里"):
            self.assertTrue(words in sent, words)

    def test_order_keeps_owners(self) -> None:
        when = "(2026-03-04T12:30:{:02}+00:00)"
        lines = [
            Line(f"小红#9b1c22 {when.format(3)}: 我查一下"),
            Line(f"小明#3fa2c1 {when.format(1)}: 山有多高"),
            Line(f"助手 {when.format(5)}: 一千米"),
            Line("没有时间的一行"),
        ]
        placed = in_order(lines)
        self.assertEqual([one.words for one in placed][1:], ["山有多高", "我查一下", "一千米"])
        self.assertEqual(placed[-1].answered, "#3fa2c1")


class TwoAccountsCase(ListeningCase):
    """Two accounts of the bot are in the group."""

    def both(self, words: str, **changes: Any) -> tuple[FakeEvent, FakeEvent]:
        number = changes.pop("number", 0) or next(self.numbers)
        first, second = (
            self.event(words, number=number, self_id=one, **changes) for one in (BOT, OTHER_BOT)
        )
        second.message_obj.message_id = f"other{number}"
        return first, second


class TwoAccountsTest(TwoAccountsCase):
    """Each line once, whichever account hears it first."""

    async def test_heard_by_both(self) -> None:
        for words in ("今天去爬山吗", "去东山吧"):
            for event in self.both(words):
                self.hear(event)
        twice = [event for _ in range(2) for event in self.both("一样的话说两次", number=50)]
        for number, event in enumerate(sorted(twice, key=lambda one: one.self_id)):
            event.message_obj.message_id = f"m50-{number}"
            self.hear(event)
        await self.listening.flush()
        self.assertEqual(
            await self.words(), ["今天去爬山吗", "去东山吧", "一样的话说两次", "一样的话说两次"]
        )

    async def test_one_is_called(self) -> None:
        for is_first in (True, False):
            called, other = self.both(f"小助手，山有多高{is_first}")
            other.message_str = f"@小助手({BOT}) 山有多高"
            order = (called, other) if is_first else (other, called)
            for event in order:
                self.hear(event, is_called=event is called)
            await self.listening.flush()
            self.assertEqual(await self.words(), [])

    async def test_answer_of_one_that_the_other_hears(self) -> None:
        for event in self.both("今天去爬山吗"):
            self.hear(event)
        self.hear(self.event("我来回答", sender_id=BOT, self_id=OTHER_BOT))
        await self.listening.flush()
        self.assertEqual(await self.words(), ["今天去爬山吗"])

    async def test_withdrawn(self) -> None:
        assert self.eraser
        first, second = self.both("说错了的话")
        for event in (first, second):
            self.hear(event)
        await self.listening.flush()
        for event in (second, first):
            await self.eraser.withdraw(self.scope(), self.key(event))
        self.assertEqual(await self.words(), [])


class SwitchTest(ListeningCase):
    """Whoever says no meanwhile is obeyed, also for what was heard and is not on disk."""

    async def test_off_pause_and_listen_off(self) -> None:
        for command in ("off", "pause 5", "listen off"):
            with self.subTest(command=command):
                self.hear(self.event("今天去爬山吗"))
                await self.ask(command)
                await self.listening.flush()
                await self.say("明天去爬山吗")
                self.assertEqual(await self.words(), [])
                self.state.switch(self.scope(), on=True)
                self.state.listen(self.scope(), on=True)
        await self.say("后天去爬山吗")
        self.assertEqual(await self.words(), ["后天去爬山吗"])

    async def test_erased_while_it_waits_to_be_written(self) -> None:
        assert self.eraser
        pseudonym = (await self.read_one()).speaker.pseudonym
        for command in ("optout", "forgetme", "wipe"):
            with self.subTest(command=command):
                self.hear(self.event("我怕黑"))
                self.hear(self.event("我不怕", sender_id=BEN_ID))
                self.clock.now += 1.0
                await self.erase(command, pseudonym)
                await self.listening.flush()
                expected = [] if command == "wipe" else ["我不怕"]
                self.assertEqual(await self.words(), expected)
                await self.eraser.wipe(self.scope())
                self.state.opt(self.scope(), ANN_ID, out=False, everywhere=False)

    async def read_one(self) -> Message:
        event = self.event("我怕黑")
        return await self.read(Heard(event, self.scope(), NOW, 0.0, 0.0, None))

    async def erase(self, command: str, pseudonym: str) -> None:
        assert self.eraser
        if command == "optout":
            await self.eraser.cut_off(self.scope(), pseudonym)
        elif command == "forgetme":
            await self.eraser.remove_person(self.scope(), pseudonym)
        else:
            await self.eraser.wipe(self.scope())

    async def test_forgetme_and_withdrawn_in_windows_and_documents(self) -> None:
        assert self.eraser
        for sealed in (False, True):
            with self.subTest(sealed=sealed):
                mine, theirs = self.event("我怕黑"), self.event("我不怕", sender_id=BEN_ID)
                wrong = self.event("说错了的话", sender_id=BEN_ID)
                for event in (mine, theirs, wrong):
                    self.hear(event)
                await self.listening.flush()
                if sealed:
                    await self.outbox.seal()
                    await self.send()
                await self.eraser.withdraw(self.scope(), self.key(wrong))
                pseudonym = (await self.read_one()).speaker.pseudonym
                await self.eraser.remove_person(self.scope(), pseudonym)
                await self.in_the_end()
                text = self.text()
                self.assertEqual(text.count("我不怕"), 1 + sealed)
                self.assertNotIn("我怕黑", text)
                self.assertNotIn("说错了的话", text)
                await self.no_background()

    async def test_withdrawn_within_the_second(self) -> None:
        assert self.eraser
        wrong = self.event("说错了的话")
        self.hear(wrong)
        self.clock.now += 1.0
        self.memory.forget_chat(self.scope())
        await self.eraser.withdraw(self.scope(), self.key(wrong))
        await self.listening.flush()
        self.assertEqual(await self.words(), [])
        self.assertNotIn("说错了", await self.recall("刚才谁说错了什么话"))


class CommandTest(ListeningCase):
    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.state.listen(self.scope(), on=False)

    async def test_on_says_once_what_it_means(self) -> None:
        for language in LANGUAGES:
            texts = Texts(language)
            told = await self.ask("listen on", language=language)
            self.assertEqual(told, texts("listen_on"))
            for word in ("optout", "forgetme", "listen off"):
                self.assertIn(word, told)
            again = await self.ask("旁听 开", language=language)
            self.assertEqual(again, texts("listen_is_on"))
            self.assertTrue(self.state.listens(self.scope()))
            for words in ("status", "status all"):
                shown = await self.ask(words, language=language, is_admin=True)
                self.assertIn(texts("status_listening"), shown)
            self.assertEqual(await self.ask("listen OFF", language=language), texts("listen_off"))
            self.assertFalse(self.state.listens(self.scope()))
            self.assertNotIn(texts("status_listening"), await self.ask("status"))
            self.assertIn("listen", await self.ask("help", language=language))

    async def test_usage_and_private_chats(self) -> None:
        for words in ("listen", "listen x"):
            self.assertIn("off", await self.ask(words, language="en"))
        await self.expect("listen on", "listen_groups_only", self.private_scope())
        self.assertFalse(self.state.listens(self.private_scope()))

    async def test_refused_where_each_member_has_a_session(self) -> None:
        for language in LANGUAGES:
            told = await self.ask("listen on", language=language, has_own_session=True)
            self.assertEqual(told, Texts(language)("listen_isolated"))
            self.assertIn("unique_session", told)
        self.assertFalse(self.state.listens(self.scope()))
        self.state.listen(self.scope(), on=True)
        await self.expect("listen off", "listen_off", has_own_session=True)
        self.assertFalse(self.state.listens(self.scope()))

    async def test_members_may_not(self) -> None:
        await self.expect("listen on", "needs_managers", is_manager=False)
        self.assertFalse(self.state.listens(self.scope()))

    async def test_on_where_the_memory_is_off(self) -> None:
        await self.ask("off")
        told = await self.ask("listen on")
        self.assertIn(Texts("zh")("listen_on"), told)
        self.assertIn(self.status.no_memory(self.scope(), Texts("zh")), told)

    async def test_what_it_costs(self) -> None:
        self.state.listen(self.scope(), on=True)
        await self.say("今天去爬山吗", "去东山吧")
        chars = sum(len(line.text) + 1 for line in await self.lines())
        for language in LANGUAGES:
            self.clock.now += 61
            line = Texts(language)("stats_heard", lines=2, chars=chars)
            self.assertIn(line, await self.ask("stats", language=language))

    async def test_kept_over_a_start_and_only_for_this_group(self) -> None:
        self.state.listen(self.scope(), on=True)
        state = ScopeState.load(self.folder)
        self.assertTrue(state.listens(self.scope()))
        assert state.hasher
        others = scope_of(group_origin("70002"), state.hasher), self.private_scope()
        self.assertFalse(any(map(state.listens, others)))
        self.assertNotIn(GROUP, (self.folder / STATE_FILE).read_text("utf-8"))

    async def test_state_of_an_earlier_version_and_a_broken_one(self) -> None:
        path = self.folder / STATE_FILE
        content = json.loads(path.read_text("utf-8"))
        content.pop("listening", None)
        path.write_text(json.dumps(content), "utf-8")
        state = ScopeState.load(self.folder)
        self.assertIsNone(state.fault)
        self.assertFalse(state.listens(self.scope()))
        path.write_text(json.dumps({**content, "listening": "all"}), "utf-8")
        self.assertIsNotNone(ScopeState.load(self.folder).fault)

    def test_private_origin_is_no_group(self) -> None:
        assert self.state.hasher
        self.assertEqual(scope_of(private_origin(), self.state.hasher).kind, "private")


class RunTest(TwoAccountsCase):
    """What was heard is put on disk within a second."""

    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.asleep, self.go_on = asyncio.Event(), asyncio.Event()
        self.clock.sleeper = self.sleep
        self.running = asyncio.create_task(self.listening.run())

    async def asyncTearDown(self) -> None:
        self.running.cancel()
        await asyncio.gather(self.running, return_exceptions=True)
        await super().asyncTearDown()

    async def sleep(self, seconds: float) -> None:
        """Sleeps until it is told to go on."""
        wakes_at = self.clock.now + seconds
        self.asleep.set()
        await self.go_on.wait()
        self.go_on.clear()
        self.clock.now = wakes_at

    async def flushed(self) -> list[str]:
        """What is on disk after one flush, with something left that waits for the next one."""
        await self.asleep.wait()
        self.asleep.clear()
        self.go_on.set()
        await self.asleep.wait()
        return await self.words()

    async def test_each_message_within_a_second(self) -> None:
        self.hear(self.event("今天去爬山吗"))
        await self.asleep.wait()
        self.hear(self.event("去东山吧"), seconds=HEAR_SECONDS / 2)
        self.assertEqual(await self.words(), [])
        self.assertEqual(await self.flushed(), ["今天去爬山吗"])
        self.hear(self.event("东山太远"), seconds=HEAR_SECONDS / 2)
        self.assertEqual(await self.flushed(), ["今天去爬山吗", "去东山吧"])
        self.assertLess(2 * HEAR_SECONDS, 1.0, "reading and writing take time, too")

    async def test_call_that_is_heard_after_the_other_account_has_heard_it(self) -> None:
        called, other = self.both("小助手，山有多高")
        other.message_str = f"@小助手({BOT}) 山有多高"
        self.hear(self.event("今天去爬山吗", self_id=OTHER_BOT))
        await self.asleep.wait()
        self.hear(other, seconds=HEAR_SECONDS / 2)
        self.assertEqual(await self.flushed(), ["今天去爬山吗"])
        self.hear(called, is_called=True, seconds=HEAR_SECONDS / 4)
        self.hear(self.event("我查一下"), seconds=HEAR_SECONDS / 4)
        self.assertEqual(await self.flushed(), ["今天去爬山吗"])
