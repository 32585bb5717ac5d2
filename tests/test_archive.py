"""What is stored of one chat is seen, corrected and erased, and nothing of any other."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from typing import Any
from unittest import mock

import httpx
import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.archive import MAX_SOURCES, SourceLine
from astrbot_plugin_hindsight_memory.erasure import (
    BACKGROUND_PAUSE_SECONDS,
    WIPE_PAUSE_SECONDS,
    WIPE_SECONDS,
    Removed,
)
from astrbot_plugin_hindsight_memory.hindsight_types import (
    RecalledMemory,
    RequestRejectedError,
    RetryLaterError,
)
from astrbot_plugin_hindsight_memory.outbox import Outbox
from astrbot_plugin_hindsight_memory.scope import Scope
from astrbot_plugin_hindsight_memory.texts import Texts
from astrbot_plugin_hindsight_memory.transcript import Header, Line, TurnRecord
from astrbot_plugin_hindsight_memory.wishes import Erasure
from fake_bank import BankCase
from support import (
    WAIT_SECONDS,
    archive_of,
    deliver_all,
    delivery_of,
    group_origin,
    private_origin,
    reply,
    scope_of,
    until,
)

AT = "(2026-01-02T03:04:05+08:00)"
TEA = f"小明#3fa2c1 {AT}: 我喜欢喝绿茶"
TEA_ANSWER = f"助手 {AT}: 好，绿茶不错"
CAT = f"小红#9b1c22 {AT}: 我养了一只猫"
CAT_ANSWER = f"助手 {AT}: 猫很可爱"
ABOUT_ANN = f"小红#9b1c22 {AT}: 小明#3fa2c1 说他喜欢喝绿茶"
ANN, BEN = "#3fa2c1", "#9b1c22"


def turn(scope: Scope, *texts: str, urgent: bool = True) -> TurnRecord:
    header = Header(scope.tags, "一个群", "2026-03-04T12:30:05+00:00", {"plugin": "p"})
    return TurnRecord(scope.chat, header, tuple(map(Line, texts)), urgent)


class ArchiveCase(BankCase):
    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.on_sleep: list[Callable[[], None]] = []
        self.slept: list[float] = []
        self.pause_ends = asyncio.Event()
        self.pause_ends.set()
        self.scope, self.other = scope_of(group_origin()), scope_of(group_origin("70002"))
        self.open()
        self.addAsyncCleanup(self.close)

    def open(self) -> None:
        """The parts as they are after a start."""
        self.outbox = Outbox(
            self.folder, every_n_turns=5, connect=self.disk.connect, now=self.clock
        )
        self.delivery = delivery_of(self.outbox, self.client, self.clock)
        self.archive, self.eraser = archive_of(self.client, self.outbox, self.delivery, self.clock)
        self.clock.sleeper = self.sleep

    async def close(self) -> None:
        await self.delivery.aclose()

    async def sleep(self, seconds: float) -> None:
        """Time passes at once; what is to happen meanwhile happens one by one."""
        self.slept.append(seconds)
        self.clock.now += seconds
        if self.on_sleep:
            self.on_sleep.pop(0)()
        if seconds == BACKGROUND_PAUSE_SECONDS:
            await self.pause_ends.wait()
        await asyncio.sleep(0)

    async def send(self) -> None:
        """Delivers what may be delivered."""
        await deliver_all(self.delivery, self.bank)

    async def background(self, predicate: Callable[[], Any] | None = None) -> None:
        """Lets the background work until something is true, or until it has nothing to do."""
        running = asyncio.create_task(self.eraser.run())
        try:
            if predicate:
                await until(predicate)
            async with asyncio.timeout(WAIT_SECONDS):
                while not predicate and await self.outbox.erasures():  # noqa: ASYNC110
                    await asyncio.sleep(0)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    def fact(self, document_id: str, number: int = 0) -> RecalledMemory:
        raw = self.bank.memories[f"{document_id}.{number}"]
        return RecalledMemory(
            raw["id"], raw["text"], "world", None, frozenset(raw["tags"]), None, (), document_id
        )

    def observation(self, memory_id: str) -> RecalledMemory:
        tags = frozenset(self.scope.tags)
        return RecalledMemory(memory_id, "结论", "observation", None, tags, None)

    def queued(self, scope: Scope, name: str, *, status: str = "pending") -> str:
        """Puts a retain of a chat in the server's queue; returns its document's id."""
        document_id = f"{scope.chat[:24]}-{name}"
        item = {
            "content": TEA,
            "document_id": document_id,
            "context": "",
            "timestamp": "2026-01-02T03:04:05+08:00",
            "metadata": {},
            "tags": list(scope.tags),
        }
        self.bank.queue[name] = {"status": status, "item": item}
        return document_id


class SeeingTest(ArchiveCase):
    async def test_nothing_of_another_chat_even_if_the_server_lists_it(self) -> None:
        self.bank.store(self.scope, TEA)
        self.bank.store(self.other, CAT)
        self.bank.careless = True
        page = await self.archive.page(self.scope, offset=0, limit=10)
        self.assertEqual([m.text for m in page.memories], ["我喜欢喝绿茶"])
        self.assertEqual(await self.archive.count_documents(self.scope), 1)

    async def test_forged_ids_name_nothing(self) -> None:
        theirs = self.bank.store(self.other, CAT)
        for memory_id in (f"{theirs}.0", "nothing", "../../other/memories/1"):
            with self.subTest(memory_id):
                self.assertIsNone(await self.archive.memory(self.scope, memory_id))
        self.assertIsNotNone(await self.archive.memory(self.other, f"{theirs}.0"))

    async def test_basis(self) -> None:
        ours, theirs = self.bank.store(self.scope, TEA, CAT), self.bank.store(self.other, TEA)
        fact = self.fact(ours)
        self.assertEqual(await self.archive.basis(self.scope, fact), [fact])
        one = self.bank.conclude(self.scope, "爱茶", f"{ours}.0", f"{theirs}.0", f"{ours}.1", "x")
        found = await self.archive.basis(self.scope, self.observation(one))
        self.assertEqual([m.memory_id for m in found], [f"{ours}.0", f"{ours}.1"])
        self.assertEqual(await self.archive.basis(self.scope, self.observation("gone")), [])
        foreign = self.bank.conclude(self.other, "爱茶", f"{theirs}.0", memory_id="o2")
        self.assertEqual(await self.archive.basis(self.scope, self.observation(foreign)), [])

    async def test_source_lines(self) -> None:
        first = self.bank.store(self.scope, TEA, TEA_ANSWER, CAT, CAT_ANSWER)
        lines = (await self.archive.sources(self.scope, self.fact(first, 2)))[0]
        self.assertEqual(lines, [SourceLine(first, 2, CAT, BEN)])
        answer = (await self.archive.sources(self.scope, self.fact(first, 3)))[0]
        self.assertEqual(answer[0].pseudonym, BEN, "an answer belongs to whom it answers")

    async def test_source_lines_of_a_conclusion(self) -> None:
        first, second = self.bank.store(self.scope, TEA, CAT), self.bank.store(self.scope, CAT)
        one = self.bank.conclude(self.scope, "养猫", f"{first}.1", f"{second}.0")
        lines = (await self.archive.sources(self.scope, self.observation(one)))[0]
        self.assertEqual([(x.document_id, x.index) for x in lines], [(first, 1), (second, 0)])

    async def test_source_lines_of_a_fact_in_other_words(self) -> None:
        document = self.bank.store(self.scope, TEA, CAT, CAT_ANSWER)
        self.bank.memories[f"{document}.0"]["text"] = "小明#3fa2c1 喜欢喝绿茶"
        lines = (await self.archive.sources(self.scope, self.fact(document)))[0]
        self.assertEqual([line.text for line in lines], [TEA])
        self.bank.memories[f"{document}.0"]["text"] = "zzz"
        self.assertEqual((await self.archive.sources(self.scope, self.fact(document)))[0], [])

    async def test_conclusion_that_stands_on_many_takes_few_requests(self) -> None:
        for each_its_own in (True, False):
            self.bank.documents.clear()
            self.bank.memories.clear()
            if each_its_own:
                facts = [f"{self.bank.store(self.scope, TEA)}.0" for _ in range(200)]
            else:
                document = self.bank.store(self.scope, *[f"{TEA}{n}" for n in range(200)])
                facts = [f"{document}.{n}" for n in range(200)]
            one = self.bank.conclude(self.scope, "爱茶", *facts)
            self.bank.requests.clear()
            memory = await self.archive.memory(self.scope, one)
            assert memory
            lines, rest = await self.archive.sources(self.scope, memory)
            self.assertLessEqual(len(self.bank.requests), 10)
            expected = (MAX_SOURCES, 200 - MAX_SOURCES) if each_its_own else (200, 0)
            self.assertEqual((len(lines), rest), expected)
            self.bank.requests.clear()
            self.assertEqual(len(await self.archive.basis(self.scope, memory)), 200)
            self.assertLessEqual(len(self.bank.requests), 10)

    async def test_document_of_another_chat_is_no_source(self) -> None:
        theirs = self.bank.store(self.other, CAT)
        self.assertEqual((await self.archive.sources(self.scope, self.fact(theirs)))[0], [])

    async def test_what_somebody_says_is_nobody_elses_line(self) -> None:
        """A beginning of a line within the words belongs to the words."""
        quoting = f"助手 {AT}: 他说 小明#3fa2c1 {AT}: 我喜欢喝绿茶"
        document = self.bank.store(self.scope, CAT, quoting)
        (line,) = (await self.archive.sources(self.scope, self.fact(document, 1)))[0]
        self.assertEqual(line.pseudonym, BEN)
        await self.eraser.remove_person(self.scope, ANN)
        self.assertIn(document, self.bank.documents)

    async def test_counting_documents_turns_pages(self) -> None:
        for _ in range(120):
            self.bank.store(self.scope, TEA)
        self.bank.store(self.other, CAT)
        self.assertEqual(await self.archive.count_documents(self.scope), 120)


class RemoveLinesTest(ArchiveCase):
    async def remove(self, document_id: str, *indexes: int) -> Removed:
        lines = self.bank.documents[document_id]["original_text"].splitlines()
        chosen = [SourceLine(document_id, index, lines[index]) for index in indexes]
        return await self.eraser.remove_lines(self.scope, chosen)

    async def test_the_rest_is_stored_as_it_was_under_a_new_id(self) -> None:
        metadata = {"plugin": "p", "kind": "group", "turns": "2", "speakers": f"{ANN} {BEN}"}
        old = self.bank.store(self.scope, TEA, TEA_ANSWER, CAT, CAT_ANSWER, metadata=metadata)
        before = self.bank.documents[old]
        removed = await self.remove(old, 0, 1)
        self.assertEqual(removed, Removed(lines=2, documents=1))
        self.assertEqual(self.bank.documents, {})
        await self.send()
        ((new, document),) = self.bank.documents.items()
        self.assertNotEqual(new, old)
        self.assertTrue(new.startswith(self.scope.chat[:24]))
        self.assertEqual(document["original_text"], f"{CAT}\n{CAT_ANSWER}")
        self.assertEqual(document["retain_params"], before["retain_params"])
        self.assertEqual(document["tags"], list(self.scope.tags))
        self.assertEqual(
            document["document_metadata"],
            {"plugin": "p", "kind": "group", "turns": "1", "speakers": BEN},
        )

    async def test_profile_goes_too(self) -> None:
        document = self.bank.store(self.scope, TEA, CAT)
        self.bank.profiles = {f"p{self.scope.chat[:8]}": "爱茶", f"p{self.other.chat[:8]}": "爱猫"}
        await self.remove(document, 0)
        self.assertEqual(list(self.bank.profiles.values()), ["爱猫"])

    async def test_nothing_left_nothing_stored(self) -> None:
        document = self.bank.store(self.scope, TEA, CAT)
        self.assertEqual(await self.remove(document, 0, 1), Removed(lines=2, documents=1))
        await self.send()
        self.assertEqual(self.bank.documents, {})
        self.assertEqual(await self.outbox.windows_of(self.scope.chat), [])

    async def test_several_documents(self) -> None:
        first, second = self.bank.store(self.scope, TEA, CAT), self.bank.store(self.scope, TEA)
        lines = [SourceLine(first, 0, TEA), SourceLine(second, 0, TEA)]
        removed = await self.eraser.remove_lines(self.scope, lines)
        self.assertEqual(removed, Removed(lines=2, documents=2))
        await self.send()
        self.assertEqual(self.bank.texts(self.scope), [CAT])

    async def test_failed_deletion_is_completed_in_the_background(self) -> None:
        document = self.bank.store(self.scope, TEA, CAT)
        self.bank.fail(lambda: reply(503), "documents/", "DELETE")
        for _ in range(2):  # a second try does not queue what stays once more
            removed = await self.remove(document, 0)
            self.assertEqual((removed.is_done, removed.failure), (False, "overloaded"))
        self.bank.heal()
        await self.background(lambda: document not in self.bank.documents)
        await self.send()
        self.assertEqual(self.bank.texts(self.scope), [CAT])

    async def test_documents_of_others_and_missing_ones_stay_as_they_are(self) -> None:
        theirs = self.bank.store(self.other, CAT, TEA)
        before = json.dumps(self.bank.documents)
        for document_id in (theirs, "gone", ""):
            removed = await self.eraser.remove_lines(
                self.scope, [SourceLine(document_id, 0, CAT, BEN)]
            )
            self.assertEqual(removed, Removed())
        self.assertEqual(json.dumps(self.bank.documents), before)
        self.assertEqual(self.bank.asked("DELETE", "documents"), [])

    async def test_nothing_is_sent_meanwhile(self) -> None:
        document = self.bank.store(self.scope, TEA, CAT)
        await self.delivery.add(turn(self.scope, CAT))
        await self.delivery.add(turn(self.other, CAT))
        self.bank.gate.clear()
        removing = asyncio.create_task(self.remove(document, 0))
        await until(lambda: self.bank.waiting)
        await self.delivery.step()
        await until(lambda: self.bank.waiting == 2)
        self.assertEqual(len(self.bank.contents), 1, "the other chat goes on")
        self.bank.gate.set()
        await removing
        await self.send()
        self.assertEqual(self.bank.contents, [CAT, CAT, CAT])


class RemovePersonTest(ArchiveCase):
    async def test_their_lines_and_the_answers_go_everything_else_stays(self) -> None:
        mixed = self.bank.store(self.scope, TEA, TEA_ANSWER, CAT, CAT_ANSWER, TEA, TEA_ANSWER)
        others = self.bank.store(self.scope, ABOUT_ANN, CAT_ANSWER)
        own = self.bank.store(self.scope, TEA)
        theirs = self.bank.store(self.other, TEA)
        removed = await self.eraser.remove_person(self.scope, ANN)
        self.assertEqual(removed, Removed(lines=5, documents=2))
        await self.send()
        kept = [f"{ABOUT_ANN}\n{CAT_ANSWER}", f"{CAT}\n{CAT_ANSWER}"]
        self.assertEqual(self.bank.texts(self.scope), kept)
        for untouched in (others, theirs):
            self.assertIn(untouched, self.bank.documents)
        for gone in (mixed, own):
            self.assertNotIn(gone, self.bank.documents)

    async def test_profile_goes_too(self) -> None:
        self.bank.profiles = {f"p{self.scope.chat[:8]}": "爱茶"}
        await self.eraser.remove_person(self.scope, ANN)
        self.assertEqual(self.bank.profiles, {})

    async def test_waiting_windows(self) -> None:
        for urgent in (True, False):
            await self.delivery.add(
                turn(self.scope, TEA, TEA_ANSWER, CAT, CAT_ANSWER, urgent=urgent)
            )
        await self.delivery.add(turn(self.other, TEA))
        removed = await self.eraser.remove_person(self.scope, ANN)
        self.assertEqual(removed, Removed(waiting=4))
        await self.delivery.flush()
        self.assertEqual(self.bank.texts(self.scope), [f"{CAT}\n{CAT_ANSWER}"] * 2)
        self.assertEqual(self.bank.texts(self.other), [TEA])

    async def test_window_that_may_have_arrived_gets_new_ids(self) -> None:
        """What arrived under the old id is deleted, not written again beside the new one."""
        await self.delivery.add(turn(self.scope, TEA, CAT))
        self.bank.script.append(httpx.ReadTimeout("slow"))
        await self.send()
        (window,) = await self.outbox.windows_of(self.scope.chat)
        self.bank.store(self.scope, TEA, CAT, document_id=window.document_id)
        await self.eraser.remove_person(self.scope, ANN)
        self.assertEqual(self.bank.documents, {})
        self.clock.now += 1000
        await self.send()
        ((new, document),) = self.bank.documents.items()
        self.assertNotEqual(new, window.document_id)
        self.assertEqual(document["original_text"], CAT)

    async def test_request_under_way_is_called_back(self) -> None:
        await self.delivery.add(turn(self.scope, TEA, CAT))
        self.bank.gate.clear()
        await self.delivery.step()
        await until(lambda: self.bank.waiting)
        removing = asyncio.create_task(self.eraser.remove_person(self.scope, ANN))
        await until(lambda: self.bank.cancelled)
        self.bank.gate.set()
        await removing
        self.bank.documents.clear()
        await self.send()
        self.assertEqual(self.bank.contents[-1], CAT)
        first, last = (body["items"][0] for body in (self.bank.bodies[0], self.bank.bodies[-1]))
        self.assertNotEqual(first["document_id"], last["document_id"])

    async def test_what_the_server_is_still_working_on_is_told(self) -> None:
        self.queued(self.scope, "a")
        self.queued(self.scope, "b", status="processing")
        self.queued(self.other, "c")
        removed = await self.eraser.remove_person(self.scope, ANN)
        self.assertEqual(removed.unfinished, 2)
        self.assertEqual(len(self.bank.queue), 3)

    async def test_two_people_at_the_same_time(self) -> None:
        """Neither brings back what the other takes out."""
        third = f"小刚#abc123 {AT}: 我在学吉他"
        for _ in range(3):
            self.bank.store(self.scope, TEA, CAT, third)
        await asyncio.gather(
            self.eraser.remove_person(self.scope, ANN),
            self.eraser.remove_person(self.scope, BEN),
        )
        await self.send()
        self.assertEqual(self.bank.texts(self.scope), [third] * 3)

    async def test_failure_is_made_up_for_in_the_background(self) -> None:
        """Also after a restart; until then nothing is delivered that would have to be read too."""
        self.bank.store(self.scope, TEA, CAT)
        self.bank.fail(lambda: reply(500), "operations")
        removed = await self.eraser.remove_person(self.scope, ANN)
        self.assertEqual((removed.is_done, removed.failure), (False, "server_error"))
        await self.close()
        self.open()
        await self.delivery.add(turn(self.scope, TEA))
        await self.delivery.add(turn(self.other, CAT))
        self.bank.heal()
        await self.send()
        self.assertEqual(self.bank.contents, [CAT])
        await self.background()
        await self.send()
        self.assertEqual(set(self.bank.texts(self.scope)), {CAT, TEA}, "the later TEA stays")


class WipeTest(ArchiveCase):
    async def wipe(self) -> Removed:
        return await self.eraser.wipe(self.scope)

    async def erasures(self) -> list[Erasure]:
        return await self.outbox.erasures()

    async def fail_wipe(self) -> None:
        """A wipe that the server does not let be done."""
        self.bank.fail(lambda: reply(503), "documents")
        removed = await self.wipe()
        self.assertEqual((removed.is_done, removed.failure), (False, "overloaded"))

    async def test_everything_of_this_chat_and_nothing_else(self) -> None:
        for _ in range(150):
            self.bank.store(self.scope, TEA)
        self.bank.store(self.other, CAT)
        self.bank.profiles = {f"p{self.scope.chat[:8]}": "爱茶", f"p{self.other.chat[:8]}": "爱猫"}
        for scope, urgent in ((self.scope, True), (self.scope, False), (self.other, True)):
            await self.delivery.add(turn(scope, CAT, urgent=urgent))
        before = json.dumps(self.bank.documents[f"{self.other.chat[:24]}-150"])
        self.assertEqual(await self.wipe(), Removed(documents=150, waiting=2))
        self.assertEqual(self.bank.texts(self.scope), [])
        after = json.dumps(self.bank.documents[f"{self.other.chat[:24]}-150"])
        self.assertEqual(after, before)
        self.assertEqual(list(self.bank.profiles.values()), ["爱猫"])
        self.assertEqual(await self.outbox.windows_of(self.scope.chat), [])
        self.assertEqual(len(await self.outbox.windows_of(self.other.chat)), 1)
        self.assertEqual(self.slept, [WIPE_PAUSE_SECONDS] * 3)

    async def test_empty_chat(self) -> None:
        self.assertEqual(await self.wipe(), Removed())

    async def test_queued_retains_are_cancelled(self) -> None:
        for n in range(120):
            self.queued(self.scope, f"q{n}")
        self.queued(self.scope, "running", status="processing")
        self.queued(self.other, "other")
        self.bank.queue["nameless"] = {"status": "pending", "item": {"document_id": ""}}
        self.assertEqual(await self.wipe(), Removed())
        self.assertEqual(set(self.bank.queue), {"other", "nameless"})

    async def test_late_writer_after_the_first_clean_round(self) -> None:
        self.bank.store(self.scope, TEA)
        late = self.queued(self.scope, "late", status="processing")
        queue, self.bank.queue = self.bank.queue, {}

        def write() -> None:
            self.bank.queue = queue
            self.bank.drain()

        self.on_sleep = [lambda: None, write]
        self.assertEqual(await self.wipe(), Removed(documents=2))
        self.assertNotIn(late, self.bank.documents)
        self.assertEqual(self.bank.texts(self.scope), [])

    async def test_cancelled_retain_that_writes_after_the_wipe(self) -> None:
        """The document is known, so the background deletes it, and what came after it stays."""
        late = self.queued(self.scope, "late", status="processing")
        queue = dict(self.bank.queue)
        await self.wipe()
        self.bank.queue = queue
        self.bank.drain()
        self.bank.store(self.scope, CAT, document_id="after the wipe")
        (erasure,) = await self.erasures()
        self.assertEqual((erasure.whole, erasure.documents), (False, (late,)))
        await self.background()
        self.assertNotIn(late, self.bank.documents)
        self.assertEqual(self.bank.texts(self.scope), [CAT])

    async def test_cancelled_retain_is_watched_for_some_time(self) -> None:
        """Also where the background has been waiting for something to do."""
        late = self.queued(self.scope, "late", status="processing")
        queue = dict(self.bank.queue)
        self.pause_ends.clear()
        running = asyncio.create_task(self.eraser.run())
        self.addCleanup(running.cancel)
        await asyncio.sleep(0)
        await self.wipe()
        await until(lambda: BACKGROUND_PAUSE_SECONDS in self.slept)
        self.bank.queue = queue
        self.bank.drain()
        self.pause_ends.set()
        await until(lambda: late not in self.bank.documents)

    async def test_background_ends_when_all_is_gone(self) -> None:
        await self.wipe()
        await self.background()
        requests = len(self.bank.requests)
        await self.eraser.wipe(self.other)  # wakes it
        await self.background()
        self.assertGreater(len(self.bank.requests), requests)

    async def test_new_turns_wait_and_are_delivered_afterwards(self) -> None:
        self.bank.store(self.scope, TEA)
        await self.delivery.add(turn(self.scope, TEA))
        self.bank.gate.clear()
        wiping = asyncio.create_task(self.wipe())
        await until(lambda: self.bank.waiting)
        await self.delivery.add(turn(self.scope, CAT))
        await self.delivery.add(turn(self.other, CAT_ANSWER))
        await self.delivery.step()
        await until(lambda: self.bank.waiting == 2)
        self.bank.gate.set()
        self.assertEqual(await wiping, Removed(documents=1, waiting=1))
        await self.send()
        self.assertEqual(self.bank.contents, [CAT_ANSWER, CAT])
        await self.background()
        self.assertEqual(self.bank.texts(self.scope), [CAT])

    async def test_background_takes_nothing_that_was_said_after_the_wipe(self) -> None:
        """It waits for its turn while a command is at work, and then looks again."""
        self.bank.store(self.scope, TEA)
        self.bank.gate.clear()
        wiping = asyncio.create_task(self.wipe())
        await until(lambda: self.bank.waiting)
        read = self.enterContext(
            mock.patch.object(self.outbox, "erasures", wraps=self.outbox.erasures)
        )
        running = asyncio.create_task(self.eraser.run())
        self.addCleanup(running.cancel)
        await until(lambda: read.await_count)
        self.bank.gate.set()
        await wiping
        await self.delivery.add(turn(self.scope, CAT))
        await self.send()
        await self.background()
        self.assertEqual(self.bank.texts(self.scope), [CAT])

    async def test_server_failure_stays_on_disk_and_nothing_is_delivered(self) -> None:
        self.bank.store(self.scope, TEA)
        await self.fail_wipe()
        (erasure,) = await self.erasures()
        self.assertEqual(
            erasure,
            Erasure(self.scope.chat, self.scope.tags, f"p{self.scope.chat[:8]}", (), whole=True),
        )
        self.bank.heal()
        await self.delivery.add(turn(self.scope, CAT))
        await self.delivery.add(turn(self.other, CAT))
        await self.send()
        self.assertEqual((self.bank.texts(self.scope), self.bank.texts(self.other)), ([TEA], [CAT]))

    async def test_goes_on_after_a_restart(self) -> None:
        self.bank.store(self.scope, TEA)
        await self.fail_wipe()
        await self.delivery.add(turn(self.scope, CAT))
        await self.close()
        self.open()
        await self.delivery.start()
        await self.delivery.add(turn(self.other, CAT))
        await self.send()
        self.assertEqual(self.bank.texts(self.other), [CAT])
        # The server fails some more rounds before it answers.
        self.on_sleep = [lambda: None] * 3 + [self.bank.heal]
        await self.background()
        self.assertEqual(self.bank.texts(self.scope), [])
        await self.send()
        self.assertEqual(self.bank.texts(self.scope), [CAT])

    async def test_chat_that_is_being_erased_is_not_let_go_by_other_commands(self) -> None:
        self.bank.store(self.scope, TEA, CAT)
        await self.fail_wipe()
        self.bank.heal()
        await self.delivery.add(turn(self.scope, CAT))
        await self.eraser.remove_person(self.scope, ANN)
        await self.send()
        self.assertEqual(self.bank.contents, [])
        await self.background()
        await self.send()
        self.assertEqual(self.bank.texts(self.scope), [CAT], "only what was said after the wipe")

    async def test_nothing_is_stored_or_summed_up_meanwhile(self) -> None:
        await self.fail_wipe()
        self.bank.heal()
        with self.assertRaises(RetryLaterError):
            await self.archive.profile(self.scope, Texts("zh"))
        self.assertEqual(self.bank.created, [])
        with self.assertRaises(RequestRejectedError) as caught:
            await self.archive.remember(self.scope, turn(self.scope, TEA))
        self.assertTrue(Texts("en")(caught.exception.reason))
        self.assertEqual(self.bank.contents, [])

    async def test_after_two_minutes_it_goes_on_in_the_background(self) -> None:
        def fill() -> None:
            self.bank.store(self.scope, TEA)
            self.clock.now += WIPE_SECONDS / 4
            self.on_sleep.append(fill)

        fill()
        removed = await self.wipe()
        self.assertEqual((removed.is_done, removed.failure), (False, ""))
        self.on_sleep.clear()
        (erasure,) = await self.erasures()
        self.assertTrue(erasure.whole)
        await self.background()
        self.assertEqual(self.bank.documents, {})

    async def test_second_wipe_keeps_watching_for_the_first_ones_late_writers(self) -> None:
        late = self.queued(self.scope, "late", status="processing")
        await self.wipe()
        await self.wipe()
        (erasure,) = await self.erasures()
        self.assertEqual(erasure.documents, (late,))

    async def test_window_that_may_have_arrived_is_watched_for(self) -> None:
        await self.delivery.add(turn(self.scope, TEA))
        self.bank.script.append(httpx.ReadTimeout("slow"))
        await self.send()
        (window,) = await self.outbox.windows_of(self.scope.chat)
        await self.wipe()
        self.bank.store(self.scope, TEA, document_id=window.document_id)
        await self.background()
        self.assertEqual(self.bank.documents, {})

    async def test_watching_for_late_writers_holds_nothing_back(self) -> None:
        self.queued(self.scope, "late")
        await self.wipe()
        await self.eraser.wipe(self.other)
        await self.close()
        self.open()
        await self.delivery.add(turn(self.scope, CAT))
        await self.send()
        self.assertEqual(self.bank.texts(self.scope), [CAT])
        await self.background()
        self.assertEqual(self.bank.texts(self.scope), [CAT])

    async def test_operation_that_cannot_be_cancelled(self) -> None:
        self.queued(self.scope, "stubborn", status="processing")
        self.bank.running.add("stubborn")
        self.on_sleep = [lambda: None, self.bank.drain]
        self.assertTrue((await self.wipe()).is_done)
        self.assertEqual(self.bank.documents, {})

    async def test_full_disk_lets_the_delivery_go_on(self) -> None:
        self.disk.fault, self.disk.only = sqlite3.SQLITE_FULL, "INSERT INTO erasures"
        with self.assertRaises(sqlite3.Error):
            await self.wipe()
        self.disk.fault = None
        await self.delivery.add(turn(self.scope, CAT))
        await self.send()
        self.assertEqual(self.bank.contents, [CAT])

    async def test_failing_disk_ends_neither_start_nor_background(self) -> None:
        self.bank.store(self.scope, TEA)
        await self.fail_wipe()
        self.bank.heal()
        await self.close()
        self.open()
        self.disk.fault = sqlite3.SQLITE_IOERR

        def heal_disk() -> None:
            self.disk.fault = None

        self.on_sleep = [lambda: None, lambda: None, heal_disk]
        await self.background(lambda: not self.bank.documents)

    async def test_disk_that_fails_in_a_round(self) -> None:
        await self.fail_wipe()
        self.bank.heal()
        self.disk.fault, self.disk.only = sqlite3.SQLITE_FULL, "UPDATE erasures"
        rounds = len(self.slept)
        await self.background(lambda: len(self.slept) > rounds + 3)
        self.disk.fault = None
        self.assertTrue((await self.erasures())[0].whole)


class ExportTest(ArchiveCase):
    async def export(self, name: str = "export.jsonl") -> tuple[tuple[int, int], list[Any]]:
        path = self.folder / name
        figures = await self.archive.export(self.scope, path)
        return figures, [json.loads(line) for line in path.read_text("utf-8").splitlines()]

    async def test_content(self) -> None:
        document = self.bank.store(self.scope, TEA)
        self.bank.store(self.other, CAT)
        self.bank.conclude(self.scope, "爱茶")
        await self.delivery.add(turn(self.scope, CAT))
        figures, rows = await self.export()
        self.assertEqual(figures, (1, 2))
        self.assertEqual(
            rows,
            [
                {
                    "type": "document",
                    "id": document,
                    "timestamp": "2026-01-02T03:04:05+08:00",
                    "context": "一个群",
                    "text": TEA,
                },
                {
                    "type": "memory",
                    "id": f"{document}.0",
                    "kind": "world",
                    "date": "2026-01-02T03:04:05+08:00",
                    "document": document,
                    "text": "我喜欢喝绿茶",
                },
                {
                    "type": "memory",
                    "id": "o1",
                    "kind": "observation",
                    "date": "",
                    "document": "",
                    "text": "爱茶",
                },
                {"type": "waiting", "timestamp": "2026-03-04T12:30:05+00:00", "text": CAT},
            ],
        )

    async def test_more_than_one_page(self) -> None:
        for _ in range(130):
            self.bank.store(self.scope, TEA)
        figures, rows = await self.export()
        self.assertEqual((figures, len(rows)), ((130, 130), 260))

    async def test_document_that_vanishes_meanwhile(self) -> None:
        self.bank.store(self.scope, TEA)
        self.bank.fail(lambda: reply(404, {"detail": "Document 'x' not found"}), "documents/")
        self.assertEqual((await self.export())[0], (0, 1))

    async def test_only_the_owner_may_read_it_and_nothing_is_overwritten(self) -> None:
        self.bank.store(self.scope, TEA)
        self.bank.store(self.scope, TEA)
        await self.export()
        path = self.folder / "export.jsonl"
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        with self.assertRaises(FileExistsError):
            await self.export()


class RememberTest(ArchiveCase):
    async def test_stored_at_once_and_read_back(self) -> None:
        record = turn(self.scope, TEA)
        found = await self.archive.remember(self.scope, record)
        self.assertEqual([m.text for m in found], ["我喜欢喝绿茶"])
        body = self.bank.bodies[0]
        self.assertFalse(body["async"])
        self.assertEqual(body["items"][0]["tags"], list(self.scope.tags))
        self.assertEqual(body["items"][0]["metadata"]["speakers"], ANN)
        self.assertTrue(body["items"][0]["document_id"].startswith(self.scope.chat[:24]))

    async def test_failure_is_raised(self) -> None:
        self.bank.fail(lambda: reply(422), method="POST")
        with self.assertRaises(RequestRejectedError):
            await self.archive.remember(self.scope, turn(self.scope, TEA))


class ProfileTest(ArchiveCase):
    async def test_made_on_first_use_then_read(self) -> None:
        for scope in (self.scope, scope_of(private_origin())):
            with self.subTest(scope.kind):
                profile_id = f"p{scope.chat[:8]}"
                self.assertEqual(await self.archive.profile(scope, Texts("zh")), "")
                body = self.bank.created[-1]
                self.assertEqual((body["id"], body["tags"]), (profile_id, list(scope.tags)))
                self.assertEqual(body["source_query"], Texts("zh")(f"profile_query_{scope.kind}"))
                self.assertTrue(body["trigger"]["refresh_after_consolidation"])
                self.assertEqual(await self.archive.profile(scope, Texts("zh")), "")
                self.bank.profiles[profile_id] = "爱茶"
                self.assertEqual(await self.archive.profile(scope, Texts("zh")), "爱茶")
        self.assertEqual(len(self.bank.created), 2)

    async def test_server_without_a_model_keeps_no_empty_one(self) -> None:
        for detail, reason, deleted in (
            ("requires an LLM provider", "no_model", 1),
            ("another", "rejected", 0),
        ):
            answer = reply(400, {"detail": detail})
            self.bank.requests.clear()
            self.bank.fail(answer, "mental-models", "POST")
            with self.assertRaises(RequestRejectedError) as caught:
                await self.archive.profile(self.scope, Texts("zh"))
            self.assertEqual(caught.exception.reason, reason)
            self.assertEqual(len(self.bank.asked("DELETE", "mental-models")), deleted)

    async def test_deleted(self) -> None:
        self.bank.profiles = {f"p{self.scope.chat[:8]}": "爱茶"}
        await self.archive.delete_profile(self.scope)
        await self.archive.delete_profile(self.scope)
        self.assertEqual(self.bank.profiles, {})


class UnsureDeletionTest(ArchiveCase):
    """Where nobody knows whether a document is gone, what stays of it must not be lost."""

    async def rest_is_kept(self) -> None:
        (window,) = await self.outbox.windows_of(self.scope.chat)
        self.assertEqual([line.text for turn in window.turns for line in turn], [CAT])

    async def test_cancelled_while_deleting(self) -> None:
        document = self.bank.store(self.scope, TEA, CAT)
        with (
            mock.patch.object(self.client, "delete_document", side_effect=asyncio.CancelledError),
            self.assertRaises(asyncio.CancelledError),
        ):
            await self.eraser.remove_lines(self.scope, [SourceLine(document, 0, TEA)])
        await self.rest_is_kept()

    async def test_answer_to_the_deletion_is_lost(self) -> None:
        document = self.bank.store(self.scope, TEA, CAT)

        def deleted_without_an_answer() -> Any:
            self.bank.documents.pop(document, None)
            return reply(503)

        self.bank.fail(deleted_without_an_answer, "documents/", "DELETE")
        removed = await self.eraser.remove_lines(self.scope, [SourceLine(document, 0, TEA)])
        self.assertEqual(removed.failure, "overloaded")
        await self.rest_is_kept()
