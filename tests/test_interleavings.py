"""Whatever happens at once, each kept line stands once in the end, and an erased one nowhere.

Random interleavings of turns, `remember`, `forget`, `forgetme`, `wipe`, outages, slow models, late
writers, reloads and kills, over a bank in memory and a real file. Each run makes the same ones.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import tempfile
import unittest
from collections import Counter
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory import outbox_thread
from astrbot_plugin_hindsight_memory.archive import SourceLine
from astrbot_plugin_hindsight_memory.erasure import BACKGROUND_PAUSE_SECONDS
from astrbot_plugin_hindsight_memory.hindsight_types import (
    HindsightError,
    RequestRejectedError,
    RetryLaterError,
)
from astrbot_plugin_hindsight_memory.outbox import Outbox
from astrbot_plugin_hindsight_memory.outbox_file import connect
from astrbot_plugin_hindsight_memory.transcript import (
    Header,
    Line,
    Speaker,
    TurnRecord,
    Utterance,
    turn_lines,
)
from fake_bank import FakeBank
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from support import NOW, Clock, archive_of, deliver_all, delivery_of, group_origin, reply, scope_of

STANDARD_EXAMPLES = 1000
EXAMPLES = int(os.environ.get("PROPERTY_EXAMPLES", STANDARD_EXAMPLES))
STEPS = 14
PEOPLE = (Speaker("小明", "#3fa2c1"), Speaker("小红", "#9b1c22"))
BOT = Speaker("助手")
SCOPES = (scope_of(group_origin()), scope_of(group_origin("70002")))

chats = st.integers(0, len(SCOPES) - 1)
people = st.sampled_from(PEOPLE)


@dataclass
class Expected:
    """What one turn must be in the end.

    Attributes:
        chat: Number of its chat.
        person: Whose it is.
        words: Of each line.
        erased: Words that are to be nowhere.
        unsure: Words that may be there once or not: nothing was promised before a kill.
    """

    chat: int
    person: Speaker
    words: tuple[str, ...]
    erased: set[str] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)


def words_of(line: str) -> str:
    return Line(line).words


def hasty(path: Path) -> sqlite3.Connection:
    """The file as it is, but nothing waits for the disk: no power cut happens here."""
    db = connect(path)
    db.execute("PRAGMA synchronous = OFF")
    return db


class AtOnce(ThreadPoolExecutor):
    """Does what it is given before anything else happens, so that each run is the same."""

    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(work(*args, **named))
        except BaseException as error:  # noqa: BLE001 - as an executor does
            future.set_exception(error)
        return future


class Interleavings(RuleBasedStateMachine):
    """One bot with two chats of two people each."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.loop.set_default_executor(AtOnce())
        self.folder = tempfile.TemporaryDirectory()
        self.clock = Clock()
        self.clock.sleeper = self.sleep
        self.rest = asyncio.Event()
        self.bank = FakeBank()
        self.bank.slow = True
        self.said: list[Expected] = []
        self.running: list[tuple[Expected, TurnRecord]] = []
        self.tasks: list[asyncio.Task[Any]] = []
        self.number = 0
        self.erasing: Counter[int] = Counter()
        self.run(self.open())

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    async def open(self) -> None:
        """The parts as they are after a start."""
        self.client = self.bank.client(clock=self.clock)
        folder = Path(self.folder.name)
        with mock.patch.object(outbox_thread, "ThreadPoolExecutor", AtOnce):
            self.outbox = Outbox(
                folder,
                every_n_turns=2,
                connect=hasty,
                sync=lambda _: None,
                now=self.clock.monotonic,
            )
        self.delivery = delivery_of(self.outbox, self.client, self.clock)
        self.archive, self.eraser = archive_of(self.client, self.outbox, self.delivery, self.clock)
        await self.delivery.start()
        self.background = asyncio.create_task(self.eraser.run())

    async def close(self) -> None:
        """All objects go, as they would in a kill: what is not on disk is lost."""
        for task in (self.background, *self.tasks):
            task.cancel()
        await asyncio.gather(self.background, *self.tasks, return_exceptions=True)
        self.tasks.clear()
        await self.delivery.aclose()
        await self.client.aclose()

    async def sleep(self, seconds: float) -> None:
        """The background waits until it is let go on."""
        self.clock.now += seconds
        if seconds == BACKGROUND_PAUSE_SECONDS:
            await self.rest.wait()
        await asyncio.sleep(0)

    async def some_time(self) -> None:
        self.clock.now += 1.0
        for _ in range(20):
            await asyncio.sleep(0)

    # --- What people do ------------------------------------------------------------------------

    def new(self, chat: int, person: Speaker) -> tuple[Expected, TurnRecord]:
        self.number += 1
        question, answer = f"问题{self.number}。", f"回答{self.number}。"
        scope = SCOPES[chat]
        said = [Utterance(person, NOW, question), Utterance(BOT, NOW, answer)]
        header = Header(scope.tags, "一个群", NOW.isoformat(), {"plugin": "p"})
        began, self.clock.now = self.clock.now, self.clock.now + 1.0
        record = TurnRecord(scope.chat, header, turn_lines(said, person), began=began)
        expected = Expected(chat, person, (question, answer))
        if self.erasing[chat]:  # before or after that: it depends on when the command gets its turn
            expected.unsure.update(expected.words)
        return expected, record

    @rule(chat=chats, person=people, urgent=st.booleans())
    def turn(self, chat: int, person: Speaker, urgent: bool) -> None:
        expected, record = self.new(chat, person)
        self.said.append(expected)
        self.run(self.delivery.add(replace(record, urgent=urgent)))

    @rule(chat=chats, person=people)
    def turn_begins(self, chat: int, person: Speaker) -> None:
        """Its answer comes later, maybe after an erasure or a reload."""
        self.running.append(self.new(chat, person))

    @rule()
    def turns_end(self) -> None:
        for expected, record in self.running:
            self.said.append(expected)
            self.run(self.delivery.add(record))
        self.running.clear()

    @rule(chat=chats, person=people)
    def remember(self, chat: int, person: Speaker) -> None:
        expected, record = self.new(chat, person)
        record = replace(record, lines=record.lines[:1])
        expected.words = expected.words[:1]
        self.said.append(expected)

        expected.unsure.update(expected.words)

        async def run() -> None:
            try:
                await self.archive.remember(SCOPES[chat], record)
            except RetryLaterError:
                pass  # it is in the queue
            except RequestRejectedError:
                return  # refused while everything is being erased
            if not self.erasing[chat]:
                expected.unsure.clear()

        self.start(run())

    @rule(chat=chats, number=st.integers(0, 9))
    def forget(self, chat: int, number: int) -> None:
        """Any line of any document that is stored."""
        ours = [d for d in self.bank.documents.values() if SCOPES[chat].chat[:24] in d["id"]]
        lines = [(d["id"], text) for d in ours for text in d["original_text"].splitlines()]
        if not lines:
            return
        document_id, text = lines[number % len(lines)]
        words = words_of(text)
        one = next(expected for expected in self.said if words in expected.words)
        one.unsure.add(words)

        async def run() -> None:
            chosen = [SourceLine(document_id, 0, text)]
            removed = await self.eraser.remove_lines(SCOPES[chat], chosen)
            if removed.lines or removed.waiting:
                one.erased.add(words)

        self.start(run())

    @rule(chat=chats, person=people)
    def forgetme(self, chat: int, person: Speaker) -> None:
        self.erase(chat, person, self.eraser.remove_person(SCOPES[chat], person.pseudonym))

    @rule(chat=chats)
    def wipe(self, chat: int) -> None:
        self.erase(chat, None, self.eraser.wipe(SCOPES[chat]))

    def erase(self, chat: int, person: Speaker | None, work: Coroutine[Any, Any, Any]) -> None:
        covered = [one for one, _ in self.running if one.chat == chat]
        covered += [one for one in self.said if one.chat == chat]
        covered = [one for one in covered if person in {None, one.person}]
        for one in covered:
            one.unsure.update(one.words)
        self.erasing[chat] += 1

        async def run() -> None:
            try:
                await work
            finally:
                self.erasing[chat] -= 1
            for one in covered:
                one.erased.update(one.words)

        self.start(run())

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        """Lets a command begin; it may still be at work when the next thing happens."""

        async def begin() -> None:
            self.tasks.append(asyncio.create_task(work))
            await self.settled()

        self.run(begin())

    async def settled(self) -> None:
        for _ in range(5):
            await self.some_time()

    # --- What happens meanwhile ----------------------------------------------------------------

    @rule(number=st.integers(0, 3))
    def server_writes(self, number: int) -> None:
        """Late and in any order, also what was cancelled while the model was at it."""
        if self.bank.queue:
            waiting = list(self.bank.queue)
            self.bank.write_one(waiting[number % len(waiting)])

    @rule()
    def model_is_at_it(self) -> None:
        self.bank.running.update(self.bank.queue)

    @rule()
    def cancelled_one_is_written(self) -> None:
        for entry in self.bank.records.values():
            if entry["status"] == "cancelled":
                self.bank._write(entry["item"])

    @rule()
    def background_round(self) -> None:
        self.rest.set()
        self.run(self.settled())
        self.rest.clear()

    @rule()
    def deliver(self) -> None:
        self.clock.now += 200.0

        async def run() -> None:
            await self.delivery.step()
            await self.some_time()

        self.run(run())

    @rule(part=st.sampled_from(["documents", "memories", "operations", "documents/", ""]))
    def outage(self, part: str) -> None:
        self.bank.fail(lambda: reply(503), part)

    @rule()
    def answer_is_lost(self) -> None:
        """The server does what it is asked, and nobody hears of it."""

        def lost() -> Any:
            request = self.bank.requests[-1]
            self.bank.heal()
            self.bank.otherwise(request)
            return reply(502)

        self.bank.fail(lost)

    @rule()
    def server_is_well(self) -> None:
        self.bank.heal()

    @rule()
    def server_is_slow(self) -> None:
        """What is asked from now on is done, but the answers come later."""
        self.bank.gate.clear()

    @rule()
    def server_answers(self) -> None:
        self.bank.gate.set()
        self.run(self.settled())

    @rule()
    def kill(self) -> None:
        async def run() -> None:
            await self.close()
            await self.open()

        self.run(run())

    # --- What must hold ------------------------------------------------------------------------

    async def in_the_end(self) -> None:
        """Everything becomes well, and all that waits is done."""
        self.bank.heal()
        self.bank.gate.set()
        self.rest.set()
        for expected, record in self.running:
            self.said.append(expected)
            await self.delivery.add(record)
        for _ in range(200):
            self.bank.drain()
            self.clock.now += 1000.0
            await self.delivery.flush()
            await deliver_all(self.delivery, self.bank)
            await self.settled()
            is_idle = all(task.done() for task in self.tasks) and not self.bank.queue
            waiting = any([await self.outbox.windows_of(scope.chat) for scope in SCOPES])
            if is_idle and not waiting and not await self.outbox.erasures():
                return
        raise AssertionError("it never comes to an end")

    def teardown(self) -> None:
        try:
            self.run(self.in_the_end())
            texts = "\n".join(d["original_text"] for d in self.bank.documents.values())
            found = Counter(map(words_of, texts.splitlines()))
            for one in self.said:
                for words in one.words:
                    allowed = {0} if words in one.erased else {0, 1} if words in one.unsure else {1}
                    assert found[words] in allowed, f"{words} stands {found[words]} times"
            for task in self.tasks:
                if not task.cancelled():
                    assert isinstance(task.exception(), HindsightError | None), task
        finally:
            self.run(self.close())
            self.loop.close()
            self.folder.cleanup()


class InterleavingsTest(unittest.TestCase):
    def test_each_kept_line_once_and_no_erased_one(self) -> None:
        run_state_machine_as_test(
            Interleavings,
            settings=settings(
                max_examples=EXAMPLES,
                stateful_step_count=STEPS,
                derandomize=EXAMPLES == STANDARD_EXAMPLES,
                database=None,
                deadline=None,
            ),
        )


if __name__ == "__main__":
    unittest.main()
