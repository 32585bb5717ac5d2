"""What was erased stays so, whatever goes on at the same time; the rest stays, once."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import sqlite3
from typing import Any
from unittest import mock

import httpx
import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.archive import SourceLine
from astrbot_plugin_hindsight_memory.erasure import LATE_ROUNDS, Removed
from astrbot_plugin_hindsight_memory.texts import Language, Texts
from astrbot_plugin_hindsight_memory.transcript import Message, TurnRecord
from commands_case import BEN, CAT, CAT_ANSWER, LANGUAGES, TEA, CommandsCase
from support import ANN, NOW, reply, until

ABOUT_TEA = "我最喜欢喝的是绿茶"


class ErasureCase(CommandsCase):
    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.addAsyncCleanup(self.no_background)
        self.background: asyncio.Task[None] | None = None

    async def no_background(self) -> None:
        if self.background:
            self.background.cancel()
            await asyncio.gather(self.background, return_exceptions=True)
            self.background = None

    async def reload(self) -> None:
        """As after a kill: only the disk is left."""
        await self.no_background()
        await self.delivery.aclose()
        self.build()
        await self.delivery.start()

    async def in_the_end(self) -> None:
        """The background has nothing left to do, and everything is delivered."""
        assert self.eraser
        self.background = self.background or asyncio.create_task(self.eraser.run())
        async with asyncio.timeout(30):
            while await self.outbox.erasures():  # noqa: ASYNC110 - no waiting for time
                await asyncio.sleep(0)
        await self.delivery.flush()
        await self.send()

    def texts(self) -> list[str]:
        return self.bank.texts(self.scope())

    def text(self) -> str:
        return "\n".join(self.texts())

    async def remove(self, document_id: str, text: str) -> Removed:
        assert self.eraser
        return await self.eraser.remove_lines(self.scope(), [SourceLine(document_id, 0, text)])

    async def wipe(self) -> Removed:
        assert self.eraser
        return await self.eraser.wipe(self.scope())

    async def forget_person(self) -> Removed:
        assert self.eraser
        return await self.eraser.remove_person(self.scope(), ANN.pseudonym)

    def begun(self, words: str = ABOUT_TEA, **changes: Any) -> Message:
        """A message that came now; a moment passes."""
        message = self.message(words, began=self.clock.now, **changes)
        self.clock.now += 14.0
        return message

    async def say(self, *texts: str, urgent: bool = True) -> None:
        record = self.memory.record(self.scope(), Texts("zh"), ANN, texts[0], NOW)
        await self.delivery.add(dataclasses.replace(record, urgent=urgent))


class OutageTest(ErasureCase):
    """Whatever happens at the deletion: each kept line once, the erased one nowhere."""

    async def test_of_forget_and_forgetme(self) -> None:
        for erase in ("line", "person"):
            for fault in ("outage", "cancel", "lost"):
                with self.subTest(erase=erase, fault=fault):
                    self.bank.documents.clear()
                    document = self.bank.store(self.scope(), TEA, CAT, CAT_ANSWER)
                    await self.delete_badly(erase, fault, document)
                    await self.reload()
                    await self.send()
                    await self.reload()
                    await self.in_the_end()
                    self.assertEqual(self.texts(), [f"{CAT}\n{CAT_ANSWER}"])
                    await self.no_background()

    async def delete_badly(self, erase: str, fault: str, document: str) -> None:
        work = self.remove(document, TEA) if erase == "line" else self.forget_person()
        if fault == "cancel":
            with (
                mock.patch.object(
                    self.client, "delete_document", side_effect=asyncio.CancelledError
                ),
                self.assertRaises(asyncio.CancelledError),
            ):
                await work
            return

        def lost() -> httpx.Response:
            self.bank.documents.pop(document, None)
            return reply(503)

        answer = lost if fault == "lost" else lambda: reply(503)
        self.bank.fail(answer, "documents/", "DELETE")
        removed = await work
        self.bank.heal()
        self.assertEqual((removed.is_done, removed.failure), (False, "overloaded"))

    async def test_forget_twice_during_an_outage(self) -> None:
        document = self.bank.store(self.scope(), TEA, CAT, CAT_ANSWER)
        self.bank.fail(lambda: reply(503), "documents/", "DELETE")
        for text in (TEA, CAT, TEA):
            await self.remove(document, text)
        self.bank.heal()
        await self.in_the_end()
        self.assertEqual(len(self.texts()), 1)
        self.assertNotIn("绿茶", self.text())
        self.assertNotIn("我养了一只猫", self.text())
        self.assertIn("猫很可爱", self.text())

    async def test_drop_without_its_note_does_not_happen(self) -> None:
        await self.say("我喜欢喝绿茶")
        await self.send()
        for erase in (self.wipe, self.forget_person):
            await self.say("我喜欢喝绿茶")
            self.disk.fault, self.disk.only = sqlite3.SQLITE_FULL, "INTO erasures"
            with self.assertRaises(sqlite3.Error):
                await erase()
            self.disk.fault = None
            self.assertEqual(len(await self.outbox.windows_of(self.scope().chat)), 1)
            await self.send()
        self.assertEqual(len(self.texts()), 3)
        self.assertEqual(await self.outbox.erasures(), [])

    async def test_start_with_a_failing_disk_erases_nothing_that_was_said_since(self) -> None:
        """The wish and its hold are one: what cannot be read is neither erased nor sent."""
        self.bank.store(self.scope(), TEA)
        self.bank.fail(lambda: reply(503), "documents")
        await self.wipe()
        await self.reload()
        self.disk.fault = sqlite3.SQLITE_IOERR
        await self.say("我养了一只猫")
        await self.send()
        self.assertEqual(self.bank.contents, [])
        self.disk.fault = None
        self.bank.heal()
        await self.send()
        self.assertEqual(self.bank.contents, [], "nothing before the old is gone")
        await self.in_the_end()
        self.assertIn("我养了一只猫", self.text())
        self.assertEqual(len(self.texts()), 1)

    async def test_wipe_that_is_cancelled_while_it_begins(self) -> None:
        self.bank.store(self.scope(), TEA)
        reached, go_on = self.disk.stall()
        wiping = asyncio.create_task(self.wipe())
        await reached()
        wiping.cancel()
        go_on()
        await asyncio.gather(wiping, return_exceptions=True)
        await self.in_the_end()
        await self.say("我养了一只猫")
        await self.send()
        self.assertIn("我养了一只猫", self.text())


class RunningTurnTest(ErasureCase):
    """What people began to say before is not stored afterwards."""

    async def test_turn_that_runs_while_it_is_erased(self) -> None:
        for erase in (self.wipe, self.forget_person):
            first, second = self.begun(), self.begun("还有，我也喜欢红茶")
            other = self.begun("我对花生过敏，记一下吧", speaker=BEN)
            await erase()
            self.memory.forget_chat(self.scope())
            self.clock.now += 1.0
            await self.memory.remember([first, second], "好的", NOW)
            await self.memory.remember([other], "记下了", NOW)
            await self.in_the_end()
            self.assertNotIn("茶", self.text())
            expected = 1 if erase == self.forget_person else 0
            self.assertEqual(self.text().count("花生"), expected)
            await self.no_background()
        later = self.begun("我现在喜欢喝咖啡了")
        await self.memory.remember([later], "好的", NOW)
        await self.in_the_end()
        self.assertIn("咖啡", self.text())

    async def test_over_a_reload(self) -> None:
        before = self.begun()
        await self.wipe()
        await self.reload()
        await self.memory.remember([before], "好的", NOW)
        await self.in_the_end()
        self.assertEqual(self.texts(), [])

    async def test_tool_of_a_turn_that_runs_while_it_is_erased(self) -> None:
        for erase in (self.wipe, self.forget_person):
            began = self.begun().began
            await erase()
            self.clock.now += 1.0
            await self.tools.answer("remember", self.caller(began=began), "小明喜欢喝茶")
            await self.in_the_end()
            self.assertEqual(self.texts(), [])
            await self.no_background()

    async def test_optout_while_the_bot_works(self) -> None:
        before = self.begun()
        await self.ask("optout")
        await self.ask("optin")
        await self.memory.remember([before], "好的", NOW)
        await self.memory.remember([self.begun("我现在喜欢喝咖啡了")], "好的", NOW)
        await self.delivery.flush()
        self.assertNotIn("茶", self.text())
        self.assertIn("咖啡", self.text())

    async def test_turns_in_memory_are_covered(self) -> None:
        for erase in (self.wipe, self.forget_person):
            self.disk.fault = sqlite3.SQLITE_FULL
            await self.memory.remember([self.begun()], "好的", NOW)
            self.assertEqual(self.delivery.state.unsaved, 1)
            self.memory.forget_chat(self.scope())
            self.disk.fault = None
            removed = await erase()
            self.assertTrue(removed.waiting)
            await self.in_the_end()
            self.assertEqual(self.texts(), [])
            await self.no_background()

    async def test_turns_in_memory_are_exported(self) -> None:
        assert self.archive
        await self.memory.remember([self.begun()], "好的", NOW)
        with mock.patch.object(self.outbox, "add", side_effect=sqlite3.OperationalError):
            await self.memory.remember([self.begun("我对花生过敏，记一下吧")], "好的", NOW)
        path = self.folder / "export.jsonl"
        await self.archive.export(self.scope(), path)
        text = path.read_text("utf-8")
        self.assertIn("绿茶", text)
        self.assertIn("花生", text)


class RememberTest(ErasureCase):
    def record(self) -> TurnRecord:
        return self.memory.record(self.scope(), Texts("zh"), ANN, ABOUT_TEA, NOW)

    async def test_lost_answer_is_repeated_as_the_same_document(self) -> None:
        """Over a reload too: the id was on disk before anything was sent."""

        def lost() -> httpx.Response:
            request = self.bank.requests[-1]
            self.bank.heal()
            self.bank.otherwise(request)
            return reply(504)

        self.bank.fail(lost, "memories", "POST")
        answer = await self.ask(f"remember {ABOUT_TEA}")
        texts = Texts("zh")
        self.assertEqual(answer, texts("remember_later", reason=texts("server_error")))
        await self.reload()
        await self.send()
        self.assertEqual(self.text().count(ABOUT_TEA), 1)
        ids = {body["items"][0]["document_id"] for body in self.bank.bodies if "items" in body}
        self.assertEqual(len(ids), 1)

    async def test_late_answer(self) -> None:
        self.bank.gate.clear()
        asking = asyncio.create_task(self.ask(f"remember {ABOUT_TEA}"))
        await until(lambda: self.bank.waiting)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        self.bank.gate.set()
        await self.send()
        self.assertEqual(self.text().count(ABOUT_TEA), 1)

    async def test_under_way_while_everything_is_erased(self) -> None:
        assert self.archive
        self.bank.gate.clear()
        remembering = asyncio.create_task(self.archive.remember(self.scope(), self.record()))
        await until(lambda: self.bank.waiting)
        wiping = asyncio.create_task(self.wipe())
        for _ in range(20):
            await asyncio.sleep(0)
        self.assertFalse(wiping.done())
        self.bank.gate.set()
        await asyncio.gather(remembering, wiping)
        await self.in_the_end()
        self.assertEqual(self.texts(), [])

    async def test_refused_while_everything_is_being_erased(self) -> None:
        self.bank.fail(lambda: reply(503), "documents")
        await self.wipe()
        self.bank.heal()
        for language in LANGUAGES:
            texts = Texts(language)
            self.assertEqual(
                await self.ask(f"remember {ABOUT_TEA}", language=language), texts("erasing")
            )
            self.assertIn(texts("status_erasing"), await self.ask("status", language=language))
        await self.in_the_end()
        self.assertEqual(self.texts(), [])
        self.assertNotIn(Texts("zh")("status_erasing"), await self.ask("status"))


class ServerTest(ErasureCase):
    async def test_key_that_may_not_see_the_queue(self) -> None:
        """What is stored is deleted all the same, and the chat goes on."""
        self.bank.fail(lambda: reply(403), "operations")
        asked: tuple[tuple[str, Language], ...] = (("forgetme", "zh"), ("wipe", "en"))
        for command, language in asked:
            self.bank.store(self.scope(), TEA)
            answer = await self.confirmed(command, language=language)
            self.assertIn(Texts(language)("erasure_unchecked"), answer)
            self.assertEqual(self.texts(), [])
        self.clock.now += 1.0
        await self.say("我养了一只猫")
        await self.send()
        self.assertIn("我养了一只猫", self.text())

    async def test_watch_after_a_wipe_of_many_queued_retains(self) -> None:
        """It lists once a round and deletes what is there, not all that could be."""
        self.bank.slow = True
        for n in range(200):
            self.bank.take(self.item(n), f"o{n}", at_once=False)
        late = dict(list(self.bank.queue.items())[:3])
        await self.wipe()
        self.bank.requests.clear()
        self.bank.queue.update({k: {**v, "status": "pending"} for k, v in late.items()})
        for name in late:
            self.bank.write_one(name)
        await self.in_the_end()
        self.assertEqual(self.texts(), [])
        self.assertEqual(len(self.bank.asked("DELETE", "documents/")), len(late))
        self.assertLess(len(self.bank.requests), 12 * LATE_ROUNDS)

    def item(self, number: int) -> dict[str, Any]:
        return {
            "content": TEA,
            "document_id": f"{self.scope().chat[:24]}-{number}",
            "context": "",
            "timestamp": "2026-01-02T03:04:05+08:00",
            "metadata": {},
            "tags": list(self.scope().tags),
        }

    async def test_records_of_operations_go_with_their_documents(self) -> None:
        """They keep the whole text, and the server can be told to run them again."""
        for erase in ("line", "person", "wipe"):
            with self.subTest(erase):
                self.bank.records.clear()
                await self.say("我喜欢喝绿茶")
                await self.send()
                (document,) = self.bank.documents
                line = self.bank.documents[document]["original_text"]
                self.assertEqual(len(self.bank.records), 1)
                if erase == "line":
                    await self.remove(document, line)
                else:
                    await (self.wipe() if erase == "wipe" else self.forget_person())
                self.assertEqual(self.bank.records, {})
                self.clock.now += 1.0

    async def test_records_are_looked_for_once_in_a_long_list(self) -> None:
        await self.say("我喜欢喝绿茶")
        await self.send()
        (document,) = self.bank.documents
        (record,) = self.bank.records.items()
        others = {
            f"other-{n}": {"status": "completed", "item": self.item(n) | {"document_id": f"x{n}"}}
            for n in range(2000)
        }
        self.bank.records = {record[0]: record[1], "its batch": {**record[1]}, **others}
        await self.remove(document, self.bank.documents[document]["original_text"])
        self.assertEqual(self.bank.records, others)
        self.assertLess(len(self.bank.asked("GET", "operations")), 10)
        await self.in_the_end()
        self.assertLess(len(self.bank.asked("GET", "operations")), 3 * LATE_ROUNDS)

    async def test_server_without_such_a_deletion(self) -> None:
        for status in (404, 405):
            await self.say("我喜欢喝绿茶")
            await self.send()
            self.bank.fail(functools.partial(reply, status, {"detail": "no"}), "/delete")
            removed = await self.forget_person()
            self.assertTrue(removed.is_done, removed)
            self.assertEqual(self.texts(), [])
            self.clock.now += 1.0

    async def test_late_document_is_gone_through_for_whoever_asked(self) -> None:
        """What the server was still working on holds others' lines too."""
        self.bank.slow = True
        record = self.memory.record(self.scope(), Texts("zh"), ANN, ABOUT_TEA, NOW)
        theirs = self.memory.record(self.scope(), Texts("zh"), BEN, "我养了一只猫", NOW)
        await self.delivery.add(dataclasses.replace(record, urgent=False))
        await self.delivery.add(theirs)
        await self.send()
        removed = await self.forget_person()
        self.assertEqual((removed.unfinished, removed.is_done), (1, False))
        self.bank.slow = False
        self.bank.drain()
        await self.in_the_end()
        self.assertEqual(len(self.texts()), 1)
        self.assertNotIn("绿茶", self.text())
        self.assertIn("我养了一只猫", self.text())

    async def test_profile_that_is_made_during_a_wipe(self) -> None:
        """It is made before or after, not from what is being erased."""
        self.bank.store(self.scope(), TEA)
        self.bank.gate.clear()
        asking = asyncio.create_task(self.ask("profile"))
        await until(lambda: self.bank.waiting)
        wiping = asyncio.create_task(self.wipe())
        for _ in range(20):
            await asyncio.sleep(0)
        self.bank.gate.set()
        await asyncio.gather(asking, wiping)
        self.assertEqual(self.bank.profiles, {})


class AnswerTest(ErasureCase):
    async def test_same_short_answer_to_two_questions(self) -> None:
        for answer in ("喝茶吗？", "喝咖啡吗？"):
            await self.memory.remember([self.begun("是的")], answer, NOW)
        await self.delivery.flush()
        self.assertEqual(self.text().count("是的"), 2)
