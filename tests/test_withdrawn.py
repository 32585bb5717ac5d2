"""A message that was withdrawn is forgotten with the answer to it; all else stands once."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory import withdrawn
from astrbot_plugin_hindsight_memory.events import message_id_of, origin_of, withdrawn_id_of
from astrbot_plugin_hindsight_memory.scope import Scope
from astrbot_plugin_hindsight_memory.texts import Texts
from astrbot_plugin_hindsight_memory.transcript import Message
from commands_case import BEN, LANGUAGES
from fake_events import ANN as ANN_ID
from fake_events import BOT, FakeEvent
from support import ANN, HASHER, NOW, reply
from test_erasure import ErasureCase

TEA, CAT, SEA, MINE = "我喜欢喝绿茶", "我养了一只猫", "我想去看海", "密码箱放在阁楼"


class WithdrawnCase(ErasureCase):
    number = 0
    talks = 0
    """Platforms give no id twice."""

    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.clock.wall = NOW.timestamp()

    def said(self, words: str, key: str = "", **changes: Any) -> Message:
        """Somebody says something; a second passes."""
        self.number += 1
        self.clock.now += 1.0
        at = NOW + timedelta(seconds=10 * self.number)
        values: dict[str, Any] = {"began": self.clock.now, "at": at, "key": key or self.key(words)}
        return self.message(words, **values | changes)

    def key(self, words: str) -> str:
        return f"{words} {self.talks}"

    async def answered(self, *turn: Message, answer: str = "") -> None:
        self.clock.now += 1.0
        at = turn[-1].at + timedelta(seconds=4)
        await self.memory.remember(turn, answer or f"答：{turn[0].words}", at)

    async def talk(self) -> None:
        self.talks += 1
        await self.answered(self.said(CAT, speaker=BEN))
        await self.answered(self.said(MINE))
        await self.answered(self.said(TEA))
        await self.answered(self.said(SEA, speaker=BEN))

    async def withdraw(self, key: str = "", scope: Scope | None = None) -> None:
        assert self.eraser
        self.clock.now += 1.0
        self.memory.forget_chat(scope or self.scope())
        await self.eraser.withdraw(scope or self.scope(), key or self.key(MINE))

    async def close_windows(self) -> None:
        await self.outbox.seal()
        await self.send()

    async def expect_gone(self, *stand: str, gone: str = MINE) -> None:
        """After everything is done, also by the next start: others' lines stand, once."""
        await self.in_the_end()
        await self.reload()
        await self.in_the_end()
        text = self.text()
        self.assertNotIn(gone, text)
        for words in stand or (CAT, TEA, SEA):
            self.assertEqual(text.count(f": {words}"), 1, text)
            self.assertEqual(text.count(f"答：{words}"), 1, text)

    async def counted(self) -> int:
        return (await self.outbox.figures(day="")).withdrawn


class MomentTest(WithdrawnCase):
    """Whenever it is withdrawn."""

    async def test_before_it_is_answered(self) -> None:
        mine = self.said(MINE)
        await self.withdraw()
        await self.answered(mine)
        await self.answered(self.said(TEA))
        self.assertNotIn(MINE, await self.recall("密码箱放在哪里呢"))
        await self.expect_gone(TEA)
        self.assertEqual(await self.counted(), 1)

    async def test_before_it_is_answered_and_the_bot_killed_between(self) -> None:
        mine = self.said(MINE)
        await self.withdraw()
        await self.reload()
        await self.answered(mine)
        await self.in_the_end()
        self.assertEqual(self.texts(), [])

    async def test_in_a_window_that_gathers(self) -> None:
        await self.talk()
        await self.withdraw()
        self.assertEqual(await self.outbox.erasures(), [], "the server has none of it")
        await self.expect_gone()

    async def test_in_a_window_that_waits_or_is_set_aside(self) -> None:
        for answer in (reply(503), reply(422)):
            with self.subTest(status=answer.status_code):
                self.bank.documents.clear()
                self.bank.fail(answer, "memories", "POST")
                await self.talk()
                await self.close_windows()
                await self.withdraw()
                self.bank.heal()
                await self.delivery.retry_aside()
                await self.expect_gone()

    async def test_in_a_document(self) -> None:
        for days in (0, 1):
            with self.subTest(days=days):
                self.bank.documents.clear()
                await self.talk()
                await self.close_windows()
                self.assertIn(MINE, self.text())
                await self.reload()
                self.clock.wall += days * 86_400.0 + 600.0
                await self.withdraw()
                await self.expect_gone()

    async def test_while_the_server_is_at_it(self) -> None:
        self.bank.slow = True
        await self.talk()
        await self.close_windows()
        self.bank.running.update(self.bank.queue)
        await self.withdraw()
        assert self.eraser
        await self.eraser._continue(self.scope().chat)
        self.assertEqual(self.texts(), [])
        self.bank.slow = False
        self.bank.drain()
        self.assertIn(MINE, self.text())
        await self.expect_gone()

    async def test_in_memory_while_the_disk_fails(self) -> None:
        self.disk.fault = sqlite3.SQLITE_FULL
        await self.talk()
        with self.assertRaises(sqlite3.Error):
            await self.withdraw()
        self.disk.fault = None
        await self.withdraw()
        await self.expect_gone()

    async def test_in_the_file_of_a_closed_instance(self) -> None:
        old = self.memory
        await self.delivery.aclose()
        await old.remember([self.said(MINE)], "答：好", NOW)
        await old.remember([self.said(TEA)], f"答：{TEA}", NOW)
        self.build()
        await self.withdraw()
        await self.expect_gone(TEA)

    async def test_after_other_things_were_erased_from_its_document(self) -> None:
        assert self.eraser
        await self.talk()
        await self.answered(self.said("我的鱼叫年糕", speaker=BEN))
        await self.close_windows()
        await self.eraser.remove_person(self.scope(), BEN.pseudonym)
        await self.in_the_end()
        self.assertIn(MINE, self.text())
        await self.no_background()
        await self.withdraw()
        await self.expect_gone(TEA)


class WhatGoesTest(WithdrawnCase):
    """The line and the answer to it, nothing more."""

    async def test_first_or_second_of_two_that_were_answered_together(self) -> None:
        for gone, stays in ((MINE, TEA), (TEA, MINE)):
            for late in (False, True):
                with self.subTest(gone=gone, late=late):
                    self.bank.documents.clear()
                    turn = [self.said(one, f"{one}{gone}{late}") for one in (MINE, TEA)]
                    if late:
                        await self.answered(*turn, answer="答：都记下了")
                    await self.withdraw(f"{gone}{gone}{late}")
                    if not late:
                        await self.answered(*turn, answer="答：都记下了")
                    await self.in_the_end()
                    text = self.text()
                    self.assertEqual((text.count(gone), text.count(stays)), (0, 1))
                    self.assertNotIn("都记下了", text)
                    await self.no_background()

    async def test_same_answer_to_another(self) -> None:
        for key, speaker in ((MINE, ANN), (CAT, BEN)):
            message = self.said(key, speaker=speaker, at=NOW)
            await self.answered(message, answer="好的")
        await self.withdraw()
        await self.in_the_end()
        self.assertIn(CAT, self.text())
        self.assertEqual(self.text().count("好的"), 1)

    async def test_same_words_again_are_remembered(self) -> None:
        for moment in ("before", "after"):
            words = f"{MINE}{moment}"
            first = self.said(words, words)
            if moment == "before":
                await self.withdraw(words)
            await self.answered(first)
            if moment == "after":
                await self.withdraw(words)
            await self.answered(self.said(words, f"again {moment}"))
            await self.in_the_end()
            self.assertEqual(self.text().count(f": {words}"), 1)
            await self.no_background()

    async def test_unknown_messages_and_other_chats(self) -> None:
        await self.talk()
        await self.withdraw("another")
        await self.withdraw(scope=self.other_scope())
        await self.in_the_end()
        self.assertEqual(self.text().count(f": {MINE}"), 1)
        self.assertEqual(await self.counted(), 0)
        self.assertEqual(self.bank.asked("DELETE", ""), [])

    async def test_what_was_to_be_remembered(self) -> None:
        await self.ask(f"remember {MINE}", message=self.key(MINE))
        await self.ask(f"remember {TEA}", message=TEA)
        await self.tools.answer("remember", self.caller(message=self.key(MINE)), f"他说{MINE}")
        await self.close_windows()
        self.assertEqual(self.text().count(MINE), 2)
        await self.withdraw()
        await self.in_the_end()
        self.assertNotIn(MINE, self.text())
        self.assertEqual(self.text().count(TEA), 1)

    async def test_what_is_held_in_memory(self) -> None:
        await self.answered(self.said(MINE))
        self.assertIn(MINE, await self.recall("密码箱放在哪里呢"))
        await self.withdraw()
        self.assertNotIn(MINE, await self.recall("密码箱放在哪里呢"))


class OutageTest(WithdrawnCase):
    """What cannot be done at once is done later."""

    async def test_outages_and_kills(self) -> None:
        faults: dict[str, Callable[[], Awaitable[None]]] = {
            "down": self.nothing,
            "killed": self.reload,
        }
        for name, then in faults.items():
            for part in ("documents", "operations", "memories"):
                with self.subTest(name=name, part=part):
                    self.bank.documents.clear()
                    await self.talk()
                    await self.close_windows()
                    self.bank.fail(lambda: reply(503), part)
                    await self.withdraw()
                    await then()
                    self.bank.heal()
                    await self.expect_gone()
                    await self.no_background()

    async def nothing(self) -> None:
        pass

    async def test_second_one_while_the_first_is_being_taken_out(self) -> None:
        """What is wished in the middle of a round is not done with it."""
        assert self.eraser
        await self.talk()
        await self.close_windows()
        await self.withdraw()
        delete, eraser = self.client.delete_document, self.eraser

        async def meanwhile(document_id: str) -> bool:
            self.client.delete_document = delete  # type: ignore[method-assign]
            await self.send()
            await eraser.withdraw(self.scope(), self.key(TEA))
            return await delete(document_id)

        self.client.delete_document = meanwhile  # type: ignore[method-assign]
        await self.in_the_end()
        self.assertEqual((self.text().count(MINE), self.text().count(TEA)), (0, 0))
        self.assertEqual((self.text().count(f": {CAT}"), self.text().count(f": {SEA}")), (1, 1))

    async def test_only_its_own_document_is_read(self) -> None:
        for number in range(20):
            self.bank.store(self.scope(), f"小红#9b1c22 (2026-01-02T03:04:05+08:00): 第{number}句")
        await self.talk()
        await self.close_windows()
        self.bank.requests.clear()
        await self.withdraw()
        await self.in_the_end()
        reads = [r for r in self.bank.asked("GET", "documents/") if "-" in r]
        self.assertEqual(len(set(reads)), 1)


class KeptTest(WithdrawnCase):
    async def test_ids_are_kept_for_seven_days(self) -> None:
        await self.talk()
        await self.close_windows()
        self.clock.wall = NOW.timestamp() + withdrawn.KEEP_SECONDS - 60.0
        await self.age()
        await self.withdraw()
        self.clock.wall += 600.0
        await self.age()
        await self.withdraw(self.key(TEA))
        await self.expect_gone(TEA)

    async def age(self) -> None:
        self.clock.now += 61.0
        await self.delivery.step()

    async def test_status(self) -> None:
        for language in LANGUAGES:
            await self.answered(self.said(MINE, f"k{language}"))
            await self.withdraw(f"k{language}")
            number = LANGUAGES.index(language) + 1
            line = Texts(language)("status_withdrawn", number=number)
            shown = await self.ask("status all", language=language, is_admin=True)
            self.assertIn(line, shown)


def notice(kind: str, **changes: Any) -> FakeEvent:
    values: dict[str, Any] = {"post_type": "notice", "notice_type": kind, "message_id": 77}
    event = FakeEvent(**changes)
    event.message_obj.raw_message = values
    event.message_obj.message_id = "a-made-up-one"
    return event


class EventsTest(WithdrawnCase):
    async def test_message_and_notice_have_the_same_key(self) -> None:
        for group in ("70007001", ""):
            said = FakeEvent("你好", group_id=group)
            said.message_obj.message_id = "77"
            for kind in ("group_recall", "friend_recall"):
                told = notice(kind, group_id=group)
                self.assertEqual(
                    HASHER.message(origin_of(said), message_id_of(said)),
                    HASHER.message(origin_of(told), withdrawn_id_of(told)),
                )
            for other in (notice("x", group_id=group, sender_id=BOT), FakeEvent(group_id="7")):
                self.assertNotEqual(
                    HASHER.message(origin_of(said), "77"), HASHER.message(origin_of(other), "77")
                )

    def test_what_is_no_notice(self) -> None:
        for event in (notice("notify"), FakeEvent("你好"), notice("group_increase")):
            self.assertEqual(withdrawn_id_of(event), "")
        shown = FakeEvent()
        shown.message_obj.raw_message = {"post_type": "message", "notice_type": "group_recall"}
        self.assertEqual(withdrawn_id_of(shown), "")

    def test_other_platforms_tell_nothing(self) -> None:
        event = FakeEvent("hi", platform="telegram")
        event.message_obj.message_id = "77"
        self.assertEqual(message_id_of(event), "")
        self.assertEqual(HASHER.message(origin_of(event), ""), "")

    def test_keys_hold_no_ids(self) -> None:
        event = FakeEvent("你好")
        self.assertNotIn(ANN_ID, HASHER.message(origin_of(event), "77"))
