"""What happens to a window after each answer, each silence and each fault of the disk."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import sqlite3
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory import delivery as delivery_module
from astrbot_plugin_hindsight_memory import intake as intake_module
from astrbot_plugin_hindsight_memory.delivery import (
    ACCESS_BASE_SECONDS,
    ACCESS_CAP_SECONDS,
    AGE_EVERY_SECONDS,
    BACKOFF_CAP_SECONDS,
    CONCURRENCY,
    MAX_AGE_SECONDS,
    MAX_OWN_FAILURES,
    STEP_SECONDS,
    Delivery,
)
from astrbot_plugin_hindsight_memory.intake import LATE_SECONDS, SYNC_SECONDS
from astrbot_plugin_hindsight_memory.late import late_files
from astrbot_plugin_hindsight_memory.outbox import Outbox, OutboxFigures
from astrbot_plugin_hindsight_memory.outbox_file import DATABASE_FILE, VERSION
from astrbot_plugin_hindsight_memory.transcript import TurnRecord
from astrbot_plugin_hindsight_memory.wishes import Erasure
from support import Answer, Clock, Disk, FakeServer, LogRecords, deliver_all, reply, turn_of, until

A, B, C, D = ("a" * 32, "b" * 32, "c" * 32, "d" * 32)
IDLE = 8.0


class DeliveryCase(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.server = FakeServer()
        self.clock = Clock()
        self.disk = Disk()
        self.log = LogRecords()
        self.jitter = 1.0
        self.sync_after(0.0)  # at the next step, which is then due for nothing else

    def sync_after(self, seconds: float) -> None:
        self.enterContext(mock.patch.object(intake_module, "SYNC_SECONDS", seconds))

    async def asyncSetUp(self) -> None:
        self.client = self.server.client()
        self.addAsyncCleanup(self.client.aclose)
        self.delivery = self.open()
        self.addAsyncCleanup(self.close)

    def open(self, *, configured: bool = True, daily_chars: int = 0) -> Delivery:
        self.outbox = Outbox(
            self.folder,
            every_n_turns=3,
            connect=self.disk.connect,
            sync=self.disk.sync,
            now=self.clock,
        )
        return Delivery(
            self.outbox,
            self.client if configured else None,
            idle_seconds=IDLE,
            daily_chars=daily_chars,
            clock=self.clock,
            random=lambda: self.jitter,
            logger=self.log.logger,
        )

    async def close(self) -> None:
        await self.delivery.aclose()

    async def reopen(self, **named: Any) -> None:
        await self.close()
        self.delivery = self.open(**named)

    async def reopen_with(self, **changes: Any) -> None:
        """Reopens as AstrBot does once the settings of the connection are saved."""
        self.client = self.server.client(**changes)
        self.addAsyncCleanup(self.client.aclose)
        await self.reopen()

    async def add(self, *texts: str, chat: str = A, urgent: bool = True) -> None:
        for text in texts:
            await self.delivery.add(turn_of(chat, text, urgent=urgent))

    def no_copies(self) -> None:
        """Not even a file beside the outbox can be written."""
        self.enterContext(mock.patch.object(self.outbox, "copy", side_effect=OSError("full")))

    async def copied(self, number: int) -> None:
        """So many turns have a file beside the outbox."""
        await until(lambda: len(self.delivery._intake._copies) == number)

    @staticmethod
    def refusal(status: int, _: httpx.Request) -> httpx.Response:
        return reply(status)

    async def step(self, seconds: float = 0.0) -> float:
        """Lets what is under way end, then time pass, then everything that is due happen."""
        await self.delivery.settle()
        self.clock.now += seconds
        await self.delivery.step()
        await self.delivery.settle()
        return await self.delivery.step()

    async def all_steps(self) -> None:
        """Steps until nothing more is sent at this moment."""
        await deliver_all(self.delivery, self.server)

    async def figures(self) -> OutboxFigures:
        return await self.outbox.figures(day=self.clock.day)

    def said(self) -> list[str]:
        """What arrived, by the question of each first line."""
        return [content.partition("\n")[0].rpartition(": ")[2] for content in self.server.contents]


class SendingTest(DeliveryCase):
    async def test_hurried_chat_does_not_wait_for_quiet(self) -> None:
        for chat in (A, B):
            await self.delivery.add(turn_of(chat))
        self.delivery.hurry(A)
        await deliver_all(self.delivery, self.server)
        self.assertEqual(len(self.server.contents), 1)
        self.assertTrue(self.server.bodies[0]["items"][0]["document_id"].startswith(A[:24]))
        self.clock.now += IDLE
        await deliver_all(self.delivery, self.server)
        self.assertEqual(len(self.server.contents), 2)

    async def test_document(self) -> None:
        await self.add("1", "2", "3", urgent=False)
        await self.step()
        (body,) = self.server.bodies
        (item,) = body["items"]
        self.assertEqual(
            item["content"],
            "\n".join(line.text for n in "123" for line in turn_of(text=n).lines),
        )
        self.assertEqual(item["tags"], ["t1", "t2", "t3", A])
        self.assertEqual(
            (item["context"], item["timestamp"]), ("a chat", "2026-03-04T12:30:05+00:00")
        )
        self.assertEqual(item["metadata"], {"plugin": "p", "turns": "3", "speakers": "#0a0b0c"})
        self.assertTrue(item["document_id"].startswith(A[:24] + "-"))
        self.assertEqual((await self.figures()).sent, 1)

    async def test_quiet_seals_a_window(self) -> None:
        await self.add("1", urgent=False)
        self.assertEqual(await self.delivery.step(), IDLE)
        await self.step(IDLE - 1)
        self.assertEqual(self.said(), [])
        await self.add("2", urgent=False)  # begins the quiet anew
        await self.step(IDLE - 1)
        self.assertEqual(self.said(), [])
        await self.step(1)
        self.assertEqual(self.said(), ["1"])

    async def test_earlier_run_left_windows_open(self) -> None:
        await self.add("1", urgent=False)
        await self.reopen()
        await self.delivery.start()
        await self.step()
        self.assertEqual(self.said(), ["1"])

    async def test_without_settings_turns_are_kept(self) -> None:
        await self.reopen(configured=False)
        await self.add("1")
        self.assertEqual(await self.step(1000), STEP_SECONDS)
        await self.delivery.flush()
        self.assertEqual((await self.figures()).waiting, 1)
        await self.reopen()
        await self.step()
        self.assertEqual(self.said(), ["1"])

    async def test_what_was_queued_for_another_server_goes_to_the_one_set_now(self) -> None:
        old, self.server.otherwise = self.server, lambda _: reply(503)
        await self.add("1", "2")
        await self.add("3", chat=B, urgent=False)
        await self.step()
        self.server = FakeServer()
        await self.reopen_with(api_base="http://other.test")
        await self.delivery.start()
        await self.all_steps()
        self.assertEqual(sorted(self.said()), ["1", "2", "3"])
        self.assertEqual({one.url.host for one in self.server.requests}, {"other.test"})
        self.assertEqual(len(old.requests), 1)
        figures = await self.figures()
        self.assertEqual((figures.waiting, figures.open_turns), (0, 0))

    async def test_two_at_a_time_and_one_of_each_chat(self) -> None:
        self.server.gate.clear()
        await self.add("a1", "a2")
        for chat, text in ((B, "b1"), (C, "c1")):
            await self.add(text, chat=chat)
        for _ in range(3):
            await self.delivery.step()
        await until(lambda: self.server.waiting == CONCURRENCY)
        await self.delivery.step()
        self.assertEqual(self.said(), ["a1", "b1"])
        self.server.gate.set()
        await self.all_steps()
        self.assertEqual(sorted(self.said()), ["a1", "a2", "b1", "c1"])
        self.assertLess(self.said().index("a1"), self.said().index("a2"))

    async def test_last_delivery_is_told(self) -> None:
        self.assertIsNone(self.delivery.state.last_sent_at)
        await self.add("1")
        await self.step(5)
        self.assertEqual(self.delivery.state.last_sent_at, self.clock.now)

    async def test_same_ids_on_every_try(self) -> None:
        self.server.script.extend([reply(500), httpx.ReadTimeout("slow"), reply()])
        await self.add("1")
        for _ in range(3):
            await self.step(BACKOFF_CAP_SECONDS)
        first, *others = self.server.bodies
        self.assertEqual(others, [first, first])


class BackoffTest(DeliveryCase):
    FAULTS = (
        (httpx.ConnectError("refused"), "unreachable"),
        (httpx.ReadTimeout("slow"), "timeout"),
        (reply(408), "timeout"),
        (reply(404), "wrong_address"),
        (reply(429), "rate_limited"),
        (reply(500), "server_error"),
        (reply(503), "overloaded"),
        (httpx.Response(200, text="<html>"), "bad_answer"),
    )

    async def test_every_passing_fault_is_tried_again(self) -> None:
        for fault, reason in self.FAULTS:
            with self.subTest(fault=fault):
                self.server.requests.clear()
                self.server.script.extend([fault])
                await self.add("1")
                await self.step()
                self.assertEqual(self.delivery.state.stopped, reason)
                self.assertEqual((await self.figures()).waiting, 1)
                await self.step(0.5)
                self.assertEqual(len(self.said()), 1)
                await self.step(0.5)
                self.assertEqual(len(self.said()), 2)
                self.assertEqual(self.delivery.state.stopped, "")
                self.assertEqual((await self.figures()).waiting, 0)

    async def test_pauses_double_up_to_a_cap(self) -> None:
        self.server.otherwise = lambda _: reply(500)
        await self.add("1")
        await self.step()
        for tries, pause in enumerate((1, 2, 4, 8, 16, 32, 64, 120, 120, 120), start=1):
            with self.subTest(pause=pause):
                await self.step(pause - 0.5)
                self.assertEqual(len(self.server.requests), tries)
                await self.step(0.5)
                self.assertEqual(len(self.server.requests), tries + 1)

    async def test_jitter(self) -> None:
        self.jitter = 0.25
        self.server.script.extend([reply(500), reply(500)])
        await self.add("1")
        self.assertEqual(await self.step(), 0.25)
        self.assertEqual(await self.step(0.25), 0.5)

    async def test_the_servers_own_pause_counts(self) -> None:
        self.server.script.append(reply(429, retry_after="20"))
        await self.add("1")
        await self.step()
        await self.step(19.9)
        self.assertEqual(len(self.server.requests), 1)
        await self.step(0.2)
        self.assertEqual(len(self.server.requests), 2)

    async def test_a_failing_server_holds_all_chats_and_is_tried_with_one(self) -> None:
        self.server.script.append(reply(500))
        await self.add("a")
        await self.step()
        for chat in (B, C, D):
            await self.add(chat[0], chat=chat)
        await self.delivery.step()
        self.assertEqual(self.said(), ["a"])
        self.server.gate.clear()
        self.clock.now += 1
        await self.delivery.step()
        await until(lambda: self.server.waiting)
        await self.delivery.step()
        self.assertEqual(len(self.server.requests), 2)
        self.server.gate.set()
        await self.all_steps()
        self.assertEqual((await self.figures()).sent, 4)

    async def test_one_line_when_it_stops_and_one_when_it_goes_on(self) -> None:
        self.server.script.extend([reply(500)] * 5)
        await self.add("1")
        for _ in range(5):
            await self.step(BACKOFF_CAP_SECONDS)
        self.assertEqual(len(self.log.lines(logging.WARNING)), 1)
        self.assertEqual(self.log.lines(logging.INFO), [])
        for n in range(3):
            await self.add(str(n))
            await self.step(BACKOFF_CAP_SECONDS)
        self.assertEqual(len(self.log.records), 2)
        self.assertEqual(len(self.log.lines(logging.INFO)), 1)

    async def test_pauses_begin_anew_after_a_success(self) -> None:
        self.server.script.extend([reply(500), reply(503), reply(429)])
        await self.add("1")
        for pause in (0, 1, 2, 4):
            await self.step(pause)
        self.assertEqual((await self.figures()).sent, 1)
        self.server.script.append(reply(500))
        await self.add("2")
        await self.step()
        self.assertEqual(self.delivery.state.stopped, "server_error")
        await self.step(1)
        self.assertEqual((await self.figures()).sent, 2)


class RefusedTest(DeliveryCase):
    async def test_access_pauses_everything_and_recovers_by_itself(self) -> None:
        for status, reason in (
            (401, "unauthorized"),
            (402, "payment_required"),
            (403, "forbidden"),
        ):
            with self.subTest(status):
                self.server.requests.clear()
                self.server.script.extend([reply(status)] * (2 if status == 403 else 1))
                await self.add("1")
                await self.step()
                await self.add("2", chat=B)
                await self.step(ACCESS_BASE_SECONDS - 1)
                self.assertEqual(self.delivery.state.stopped, reason)
                self.assertEqual(self.said(), ["1"])
                self.assertEqual((await self.figures()).waiting, 2)
                await self.step(1)
                await self.all_steps()
                self.assertEqual(sorted(self.said()), ["1", "1", "2"])
                self.assertEqual(self.delivery.state.stopped, "")

    async def test_another_key_is_tried_at_once(self) -> None:
        self.server.script.append(reply(401))
        await self.add("1")
        await self.step()
        self.assertEqual(self.delivery.state.stopped, "unauthorized")
        await self.reopen_with(api_key="hsk_another")
        await self.step()
        self.assertEqual(self.said(), ["1", "1"])
        keys = [one.headers["authorization"] for one in self.server.requests]
        self.assertEqual(keys, ["Bearer hsk_key", "Bearer hsk_another"])
        self.assertEqual((await self.figures()).waiting, 0)

    async def test_access_is_tried_ever_more_rarely(self) -> None:
        self.server.otherwise = lambda _: reply(401)
        await self.add("1")
        await self.step()
        for _ in range(10):
            await self.step(ACCESS_CAP_SECONDS)
        self.assertEqual(len(self.server.requests), 11)
        await self.step(ACCESS_CAP_SECONDS - 1)
        self.assertEqual(len(self.server.requests), 11)

    async def test_rejected_window_is_set_aside_and_the_rest_goes_on(self) -> None:
        for status, reason in ((400, "rejected"), (422, "rejected")):
            with self.subTest(status):
                self.server.requests.clear()
                self.server.script.append(reply(status, {"detail": "secret"}))
                await self.add("bad", "good")
                await self.all_steps()
                self.assertEqual(self.said(), ["bad", "good"])
                self.assertEqual((await self.figures()).aside, {reason: 1})
                self.assertEqual(self.delivery.state.stopped, "")
                self.assertEqual(await self.delivery.retry_aside(), 1)
                await self.all_steps()
                self.assertEqual(self.said(), ["bad", "good", "bad"])
                self.assertEqual((await self.figures()).aside, {})
        self.assertNotIn("secret", str(self.log.lines(logging.WARNING)))

    async def test_a_rejection_shows_that_the_server_is_back(self) -> None:
        self.server.script.extend([reply(503), reply(422)])
        await self.add("1")
        await self.step()
        await self.step(1)
        self.assertEqual((await self.figures()).aside, {"rejected": 1})
        self.assertEqual(self.delivery.state.stopped, "")

    async def test_conflict_gets_another_operation(self) -> None:
        self.server.script.append(reply(409))
        await self.add("1")
        await self.step()
        self.assertEqual(len(self.server.requests), 1)
        await self.step(1)
        first, second = self.server.bodies
        self.assertNotEqual(first["operation_id"], second["operation_id"])
        self.assertEqual(first["items"], second["items"])
        self.assertEqual((await self.figures()).sent, 1)

    async def test_conflict_holds_no_other_chat(self) -> None:
        self.server.script.append(reply(409))
        await self.add("1")
        await self.step()
        await self.add("2", chat=B)
        await self.all_steps()
        self.assertEqual(self.said(), ["1", "2"])

    async def test_too_large_is_set_aside(self) -> None:
        self.server.script.append(reply(413))
        await self.add("1", "2")
        await self.all_steps()
        self.assertEqual((await self.figures()).aside, {"too_large": 1})
        self.assertEqual(self.said(), ["1", "2"])

    async def test_a_window_that_cannot_be_sent_is_not_tried_without_pause(self) -> None:
        """An unforeseen error must neither spin nor fill the log."""
        self.server.otherwise = lambda _: ZeroDivisionError("unforeseen")
        await self.add("1")
        for _ in range(5):
            await self.step()
        self.assertLessEqual(len(self.server.requests), 1)
        self.assertEqual(
            (await self.figures()).waiting + sum((await self.figures()).aside.values()), 1
        )


class AloneTest(DeliveryCase):
    """A window that fails for itself keeps no other waiting."""

    def refuse(self, text: str, answer: Callable[[], Answer]) -> None:
        """Answers so to every window that holds a text, and well to everything else."""
        self.server.otherwise = lambda request: (
            answer() if f": {text}".encode() in request.content else reply()
        )

    def tries(self, text: str) -> int:
        return self.said().count(text)

    async def long(self, seconds: float, *, pause: float) -> None:
        """Lets much time pass, with a step now and then."""
        for _ in range(int(seconds / pause)):
            await self.step(pause)

    async def test_firewall_that_dislikes_one_text(self) -> None:
        self.refuse("bad", lambda: httpx.Response(403, text="<html>blocked</html>"))
        await self.add("bad", "after")
        await self.add("b", chat=B)
        await self.all_steps()
        self.assertEqual(sorted(self.said()), ["after", "b", "bad"])
        self.assertEqual(self.delivery.state.stopped, "")
        await self.long(10 * ACCESS_CAP_SECONDS, pause=300)
        self.assertEqual(self.tries("bad"), MAX_OWN_FAILURES)
        figures = await self.figures()
        self.assertEqual((figures.aside, figures.sent), ({"forbidden": 1}, 2))
        await self.add("c", chat=C)
        await self.all_steps()
        self.assertEqual(self.tries("c"), 1)

    async def test_refused_account_is_not_a_windows_own_fault(self) -> None:
        """Nothing is set aside while the account is refused, however long that takes."""
        for status in (401, 402, 403):
            with self.subTest(status):
                self.server.otherwise = functools.partial(self.refusal, status)
                await self.add("1", "2")
                await self.long(20 * ACCESS_CAP_SECONDS, pause=ACCESS_CAP_SECONDS)
                self.assertEqual((await self.figures()).aside, {})
                self.server.otherwise = lambda _: reply()
                await self.step(ACCESS_CAP_SECONDS)
                await self.all_steps()
                self.assertEqual((await self.figures()).waiting, 0)

    async def test_one_window_that_the_server_fails_at(self) -> None:
        for answer in (
            lambda: reply(503, retry_after="30"),
            lambda: reply(429, retry_after="30"),
            lambda: reply(500),
            lambda: httpx.ReadTimeout("slow"),
            lambda: httpx.Response(200, text="<html>"),
        ):
            with self.subTest(answer=answer()):
                self.server.requests.clear()
                self.refuse("bad", answer)
                await self.add("bad", "after")
                await self.add("b", chat=B)
                await self.step(0)
                await self.step(30)
                await self.all_steps()
                self.assertEqual((self.tries("after"), self.tries("b")), (1, 1))
                for number in range(40):
                    await self.add(f"n{number}", chat=C)
                    await self.step(120)
                self.assertEqual((await self.figures()).waiting, 0)
                self.assertEqual(self.tries("n39"), 1)
                self.assertLessEqual(self.tries("bad"), MAX_OWN_FAILURES + 2)
                self.assertEqual(sum((await self.figures()).aside.values()), 1)
                self.server.otherwise = lambda _: reply()
                await self.delivery.retry_aside()
                await self.all_steps()

    async def test_two_bad_windows_starve_no_third(self) -> None:
        self.server.otherwise = lambda request: (
            reply(503) if b": bad" in request.content else reply()
        )
        await self.add("bad1", "good1", "bad2", "good2")
        for _ in range(6):
            await self.step(BACKOFF_CAP_SECONDS)
        self.assertEqual((self.tries("good1"), self.tries("good2")), (1, 1))

    async def test_an_outage_sets_nothing_aside(self) -> None:
        """Failures count as a window's own only while others pass."""
        await self.add("1", "2", "3")
        self.server.otherwise = lambda _: reply(503)
        await self.long(3600, pause=120)
        self.server.otherwise = lambda _: reply()
        await self.step(BACKOFF_CAP_SECONDS)
        await self.all_steps()
        figures = await self.figures()
        self.assertEqual((figures.sent, figures.aside), (3, {}))

    async def test_conflict_for_ever(self) -> None:
        self.refuse("bad", lambda: reply(409))
        await self.add("bad")
        await self.add("b", chat=B)
        for _ in range(100):
            self.clock.now += 1
            await self.delivery.step()
            await self.delivery.settle()
        self.assertLess(self.tries("bad"), MAX_OWN_FAILURES)
        await self.long(3600, pause=300)
        self.assertEqual((self.tries("bad"), self.tries("b")), (MAX_OWN_FAILURES, 1))
        ids = [body["operation_id"] for body in self.server.bodies]
        self.assertEqual(len(set(ids)), len(ids))
        self.assertEqual(sum((await self.figures()).aside.values()), 1)

    async def test_aside_windows_get_all_tries_again(self) -> None:
        self.refuse("bad", lambda: reply(409))
        await self.add("bad")
        await self.long(3600, pause=300)
        self.assertEqual(await self.delivery.retry_aside(), 1)
        await self.long(3600, pause=300)
        self.assertEqual(self.tries("bad"), 2 * MAX_OWN_FAILURES)

    async def test_retain_that_failed_on_the_server_gets_another_operation(self) -> None:
        """The answer was lost, and the server never runs an operation of this id again."""
        failed: list[str] = []

        def answer(request: httpx.Request) -> Answer:
            if request.method == "GET":
                operation = request.url.path.rpartition("/")[2]
                status = "failed" if operation in failed else "pending"
                return reply(content={"operation_id": operation, "status": status})
            operation = json.loads(request.content)["operation_id"]
            if not failed:
                failed.append(operation)
                return httpx.ReadTimeout("slow")
            return reply()

        self.server.otherwise = answer
        await self.add("1")
        for _ in range(3):
            await self.step(BACKOFF_CAP_SECONDS)
        first, second, third = self.server.bodies
        self.assertEqual(first, second)
        self.assertNotEqual(third["operation_id"], first["operation_id"])
        self.assertEqual(third["items"], first["items"])
        self.assertEqual((await self.figures()).sent, 1)

    async def test_operation_that_cannot_be_read(self) -> None:
        self.server.script.extend([httpx.ReadTimeout("slow"), reply(), reply(500)])
        await self.add("1")
        await self.step()
        await self.step(1)
        self.assertEqual((await self.figures()).sent, 1)


class DailyCapTest(DeliveryCase):
    async def test_rest_follows_the_next_day(self) -> None:
        await self.reopen(daily_chars=1)
        await self.add("1", "2", "3")
        await self.all_steps()
        self.assertEqual(self.said(), ["1"])
        self.assertEqual(self.delivery.state.stopped, "daily_cap")
        await self.delivery.flush()
        self.assertEqual(self.said(), ["1"])
        self.clock.day = "2026-03-05"
        await self.all_steps()
        self.assertEqual(self.said(), ["1", "2"])
        self.assertEqual((await self.figures()).waiting, 1)

    async def test_counts_over_a_restart_and_reads_the_figure_once(self) -> None:
        await self.reopen(daily_chars=100)
        await self.add("1")
        await self.all_steps()
        await self.reopen(daily_chars=100)
        reads = self.enterContext(
            mock.patch.object(self.outbox, "sent_chars", wraps=self.outbox.sent_chars)
        )
        await self.add("2", "3", "4")
        await self.all_steps()
        self.assertEqual(self.said(), ["1", "2"])
        self.assertEqual(reads.call_count, 1)


class AgeTest(DeliveryCase):
    async def test_windows_that_waited_too_long_are_given_up(self) -> None:
        self.server.otherwise = lambda _: reply(500)
        await self.add("old")
        await self.step(MAX_AGE_SECONDS / 2)
        await self.add("young", chat=B)
        await self.step(AGE_EVERY_SECONDS - 1)
        self.assertEqual((await self.figures()).dropped, 0)
        await self.step(MAX_AGE_SECONDS / 2 + 1)
        figures = await self.figures()
        self.assertEqual((figures.dropped, figures.waiting), (1, 1))
        self.assertTrue([x for x in self.log.lines(logging.WARNING) if "1 windows" in x])


class SyncTest(DeliveryCase):
    async def test_disk_has_a_turn_a_second_after_its_commit(self) -> None:
        self.sync_after(SYNC_SECONDS)
        synced = self.enterContext(mock.patch.object(self.outbox, "sync", wraps=self.outbox.sync))
        await self.add("1", urgent=False)
        self.assertLessEqual(await self.delivery.step(), SYNC_SECONDS)
        self.clock.now += SYNC_SECONDS / 2
        await self.add("2", urgent=False)
        await self.delivery.step()
        synced.assert_not_called()
        self.clock.now += SYNC_SECONDS / 2
        self.assertGreater(await self.delivery.step(), SYNC_SECONDS)
        synced.assert_called_once()

    async def test_what_becomes_due_during_a_step_is_due_at_once(self) -> None:
        await self.add("1", urgent=False)

        async def slowly() -> None:
            self.clock.now += IDLE

        with mock.patch.object(self.outbox, "sync", slowly):
            self.assertEqual(await self.delivery.step(), 0.0)

    async def test_what_is_committed_during_a_sync_is_due_for_the_next(self) -> None:
        self.sync_after(SYNC_SECONDS)
        await self.add("1", urgent=False)
        syncs: list[float] = []

        async def slowly() -> None:
            syncs.append(self.clock.now)
            if len(syncs) == 1:
                await self.add("2", urgent=False)

        with mock.patch.object(self.outbox, "sync", slowly):
            for _ in range(3):
                self.clock.now += SYNC_SECONDS
                await self.delivery.step()
        self.assertEqual(len(syncs), 2)

    async def test_disk_that_cannot_sync_keeps_nothing_from_being_sent(self) -> None:
        self.disk.fault, self.disk.only = sqlite3.SQLITE_FULL, "sync the log"
        for text in ("1", "2"):
            await self.add(text)
            await self.step(SYNC_SECONDS)
        self.assertEqual(self.said(), ["1", "2"])

    async def test_disk_that_fails_is_asked_again(self) -> None:
        self.sync_after(SYNC_SECONDS)
        await self.add("1", urgent=False)
        self.disk.fault, self.disk.only = sqlite3.SQLITE_IOERR, "sync the log"
        self.clock.now += SYNC_SECONDS
        for _ in range(2):
            self.assertEqual(await self.delivery.step(), SYNC_SECONDS)
            self.assertEqual(self.delivery.state.stopped, "disk")
            self.clock.now += SYNC_SECONDS
        self.assertEqual(len(self.log.lines(logging.ERROR)), 1)
        self.disk.fault = None
        await self.delivery.step()
        self.assertEqual(self.delivery.state.stopped, "")

    async def test_a_sync_does_not_hide_another_fault_of_the_disk(self) -> None:
        self.sync_after(SYNC_SECONDS)
        await self.add("1", urgent=False)
        self.disk.fault, self.disk.only = sqlite3.SQLITE_FULL, "INSERT INTO turns"
        self.clock.now += SYNC_SECONDS
        await self.add("2", urgent=False)
        await self.delivery.step()
        self.assertEqual(self.delivery.state.stopped, "disk")


class DiskTest(DeliveryCase):
    def break_disk(self) -> None:
        self.disk.fault, self.disk.only = sqlite3.SQLITE_FULL, ""

    async def test_turns_wait_in_memory_and_go_to_disk_later_in_order(self) -> None:
        await self.add("0")
        await self.step()
        self.break_disk()
        await self.add("1", "2")
        state = self.delivery.state
        self.assertEqual((state.stopped, state.unsaved, state.lost), ("disk", 2, 0))
        self.assertLessEqual(await self.delivery.step(), 1.0)
        self.disk.fault = None
        await self.step()
        await self.all_steps()
        self.assertEqual(self.said(), ["0", "1", "2"])
        self.assertEqual(self.delivery.state.stopped, "")
        self.assertEqual(self.delivery.state.unsaved, 0)
        self.assertEqual(len(self.log.lines(logging.ERROR)), 1)
        self.assertEqual(len(self.log.lines(logging.INFO)), 1)

    async def test_memory_is_bounded_and_the_loss_is_counted(self) -> None:
        self.enterContext(mock.patch.object(intake_module, "MAX_UNSAVED_TURNS", 2))
        self.break_disk()
        await self.add("1", "2", "3")
        self.assertEqual((self.delivery.state.unsaved, self.delivery.state.lost), (2, 1))
        self.disk.fault = None
        await self.all_steps()
        self.assertEqual(self.said(), ["2", "3"])

    async def test_disk_that_fails_everywhere_raises_nowhere(self) -> None:
        self.break_disk()
        await self.delivery.start()
        await self.delivery.flush()
        await self.delivery.step()
        self.assertEqual(self.delivery.state.stopped, "disk")

    async def test_disk_that_fails_after_the_answer(self) -> None:
        """The window stays, is sent again later, and does so with the same ids."""
        await self.add("1")
        self.disk.fault, self.disk.only = sqlite3.SQLITE_FULL, "DELETE FROM windows"
        await self.step()
        self.assertEqual(self.delivery.state.stopped, "disk")
        await self.step()
        self.assertEqual(len(self.server.requests), 1)
        self.disk.fault = None
        await self.step(BACKOFF_CAP_SECONDS)
        first, second = self.server.bodies
        self.assertEqual(first, second)
        self.assertEqual((await self.figures()).sent, 1)

    async def test_whatever_succeeds_shows_that_the_disk_is_well(self) -> None:
        await self.reopen(configured=False)
        self.break_disk()
        await self.delivery.start()
        self.assertEqual(self.delivery.state.stopped, "disk")
        self.disk.fault = None
        self.assertGreater(await self.delivery.step(), 1.0)
        self.assertEqual(self.delivery.state.stopped, "")
        self.assertEqual(len(self.log.lines(logging.INFO)), 1)

    async def test_full_disk_that_takes_some_things_is_full(self) -> None:
        """No line in the log each second."""
        self.disk.fault, self.disk.only = sqlite3.SQLITE_FULL, "INSERT INTO turns"
        await self.add("1")
        for _ in range(5):
            await self.step(AGE_EVERY_SECONDS)
        self.assertEqual(self.delivery.state.stopped, "disk")
        self.assertEqual(len(self.log.records), 1)

    async def test_seal_that_failed_at_the_start_is_tried_again(self) -> None:
        await self.add("1", urgent=False)
        await self.reopen()
        self.disk.fault, self.disk.only = sqlite3.SQLITE_BUSY, "UPDATE windows"
        await self.delivery.start()
        self.disk.fault = None
        await self.step()
        self.assertEqual(self.said(), ["1"])

    async def test_disk_that_hangs_keeps_no_reply_waiting(self) -> None:
        await self.add("0", urgent=False)
        self.clock.is_patient = False
        reached, go_on = self.disk.stall()
        for text in "123":
            await self.add(text)
        self.assertTrue(await reached())
        state = self.delivery.state
        self.assertEqual((state.stopped, state.unsaved, state.lost), ("disk", 3, 0))
        go_on()
        await self.step()
        await self.all_steps()
        self.assertEqual(self.said(), ["0", "2", "3"])  # the first two share a window
        self.assertIn(": 1\n", self.server.contents[0])
        self.assertEqual((self.delivery.state.stopped, self.delivery.state.unsaved), ("", 0))

    async def test_kill_while_the_disk_hangs_takes_no_answered_turn(self) -> None:
        self.clock.is_patient = False
        reached, go_on = self.disk.stall()
        await self.add("1", "2")
        self.assertTrue(await reached())
        self.clock.is_patient = True
        await until(lambda: len(late_files(self.folder)) == 2)
        killed, self.disk = self.delivery, Disk()
        self.delivery = self.open()  # in another process
        await self.all_steps()
        self.assertEqual(sorted(self.said()), ["1", "2"])
        go_on()
        await killed.aclose()

    async def test_copies_go_once_the_disk_has_the_turns(self) -> None:
        self.clock.is_patient = False
        reached, go_on = self.disk.stall()
        await self.add("1")
        self.assertTrue(await reached())
        await until(lambda: late_files(self.folder))
        go_on()
        await self.step()
        await self.all_steps()
        self.assertEqual(late_files(self.folder), [])
        await self.reopen()
        await self.all_steps()
        self.assertEqual(self.said(), ["1"])

    async def test_copy_that_is_written_after_the_commit_goes(self) -> None:
        self.clock.is_patient = False
        written = asyncio.Event()
        copy = self.outbox.copy

        async def slow(turn: TurnRecord) -> Path:
            await written.wait()
            return await copy(turn)

        with mock.patch.object(self.outbox, "copy", slow):
            await self.add("1")
            await self.step()
            written.set()
            self.clock.is_patient = True
            await self.close()
        self.assertEqual(late_files(self.folder), [])

    async def test_erased_while_the_disk_hangs(self) -> None:
        self.clock.is_patient = False
        self.break_disk()
        reached, go_on = self.disk.stall()
        await self.add("1", "2")
        self.assertTrue(await reached())
        await until(lambda: len(late_files(self.folder)) == 2)
        go_on()
        self.clock.is_patient = True
        await self.delivery.step()  # which the disk refuses
        self.disk.fault = None
        wish = Erasure(A, ("t1", "t2", "t3", A), "profile", whole=True, at=2000.0)
        self.assertEqual(await self.delivery.drop_chat(wish), 2)
        await until(lambda: not late_files(self.folder))

    async def test_overflow_during_a_commit_is_counted(self) -> None:
        self.no_copies()
        self.enterContext(mock.patch.object(intake_module, "MAX_UNSAVED_TURNS", 3))
        self.clock.is_patient = False
        reached, go_on = self.disk.stall()
        await self.add("1")
        self.assertTrue(await reached())
        await self.add("2", "3", "4", "5")
        self.assertEqual((self.delivery.state.unsaved, self.delivery.state.lost), (3, 2))
        go_on()
        await self.step()
        await self.all_steps()
        self.assertEqual(self.said(), ["1", "4", "5"])
        self.assertEqual(len([x for x in self.log.lines(logging.ERROR) if "lost" in x]), 1)

    async def test_overflow_of_what_has_copies_is_found_by_the_next_instance(self) -> None:
        self.enterContext(mock.patch.object(intake_module, "MAX_UNSAVED_TURNS", 2))
        self.clock.is_patient = False
        reached, go_on = self.disk.stall()
        for number in range(1, 5):
            await self.add(str(number))
            await self.copied(min(number, 2))
        self.assertTrue(await reached())
        self.clock.is_patient = True
        self.assertEqual(self.delivery.state.lost, 0)
        go_on()
        await self.reopen()
        await self.all_steps()
        self.assertEqual(sorted(self.said()), ["1", "2", "3", "4"])

    async def test_overflow_when_a_commit_fails_is_counted(self) -> None:
        self.no_copies()
        self.enterContext(mock.patch.object(intake_module, "MAX_UNSAVED_TURNS", 3))
        self.clock.is_patient = False
        self.break_disk()
        reached, go_on = self.disk.stall()
        await self.add("1", "2")
        self.assertTrue(await reached())
        await self.add("3", "4")
        go_on()
        self.clock.is_patient = True
        await self.step()
        self.disk.fault = None
        await self.step()
        await self.all_steps()
        self.assertEqual(self.said()[-1], "4")
        self.assertEqual(len(self.said()) + self.delivery.state.lost, 4)

    async def test_disk_that_works_again_is_told(self) -> None:
        await self.add("1")
        self.disk.fault, self.disk.only = sqlite3.SQLITE_FULL, "DELETE FROM windows"
        await self.step()
        self.disk.fault = None
        await self.step(BACKOFF_CAP_SECONDS)
        self.assertEqual(self.delivery.state.stopped, "")

    async def test_turns_that_come_together_share_a_commit(self) -> None:
        reached, go_on = self.disk.stall()
        adding = [asyncio.create_task(self.add("1"))]
        await reached()
        adding += [asyncio.create_task(self.add(str(n), urgent=False)) for n in (2, 3, 4)]
        await until(lambda: self.delivery.state.unsaved == 4)
        commits = []
        add = self.outbox.add

        async def counted(turns: Any) -> Any:
            commits.append(len(turns))
            return await add(turns)

        with mock.patch.object(self.outbox, "add", counted):
            go_on()
            await asyncio.gather(*adding)
        self.assertEqual(commits, [3])
        await self.delivery.flush()
        self.assertEqual(self.said(), ["1", "2"])

    async def test_cancelled_save_doubles_nothing(self) -> None:
        """Whoever waits for the commit may be cancelled; the commit happens all the same."""
        await self.add("0")
        reached, go_on = self.disk.stall()
        adding = asyncio.create_task(self.add("1"))
        await reached()
        adding.cancel()
        await asyncio.sleep(0)
        go_on()
        await asyncio.gather(adding, return_exceptions=True)
        await self.delivery.flush()
        self.assertEqual(self.said(), ["0", "1"])


class EraseTest(DeliveryCase):
    """What waits in memory, on disk or in a file is within reach of erasing and exporting."""

    WISH = Erasure(A, ("t1", "t2", "t3", A), "profile")

    async def everywhere(self) -> None:
        """Turns in a sealed window, an open one, a late file, and memory."""
        await self.add("sealed")
        await self.add("open", urgent=False)
        await self.outbox.leave([turn_of(A, "late"), turn_of(B, "late")])
        self.disk.fault, self.disk.only = sqlite3.SQLITE_FULL, "INSERT INTO turns"
        await self.add("memory")
        await self.add("memory", chat=B)
        self.disk.fault = None

    async def waiting(self, chat: str = A) -> list[str]:
        return [one.lines[0].words for one in await self.delivery.waiting(chat)]

    async def test_shown(self) -> None:
        await self.everywhere()
        self.assertEqual(await self.waiting(), ["sealed", "open", "late", "memory"])
        self.assertEqual(await self.waiting(B), ["late", "memory"])

    async def test_dropped(self) -> None:
        await self.everywhere()
        self.assertEqual(await self.delivery.drop_chat(self.WISH), 4)
        self.assertEqual(await self.waiting(), [])
        await self.all_steps()
        self.assertEqual(self.said(), ["late", "memory"])

    async def test_edited(self) -> None:
        await self.everywhere()
        await self.delivery.edit_chat(self.WISH, lambda lines: [lines[0]])
        edited = await self.delivery.edit_chat(self.WISH, list)
        self.assertEqual(edited.waiting, 0)
        self.assertEqual({len(one.lines) for one in await self.delivery.waiting(A)}, {1})
        self.assertEqual({len(one.lines) for one in await self.delivery.waiting(B)}, {2})
        edited = await self.delivery.edit_chat(self.WISH, lambda _: [])
        self.assertEqual(edited.waiting, 4)
        self.assertEqual(await self.waiting(), [])

    async def test_dropped_while_a_commit_is_under_way(self) -> None:
        self.clock.is_patient = False
        reached, go_on = self.disk.stall()
        await self.add("1", "2")
        self.assertTrue(await reached())
        dropping = asyncio.create_task(self.delivery.drop_chat(self.WISH))
        await asyncio.sleep(0)
        go_on()
        self.assertEqual(await dropping, 2)
        await self.all_steps()
        self.assertEqual(self.said(), [])

    async def test_failing_disk_takes_what_is_in_memory_all_the_same(self) -> None:
        self.disk.fault = sqlite3.SQLITE_FULL
        await self.add("1")
        with self.assertRaises(sqlite3.Error):
            await self.delivery.drop_chat(self.WISH)
        self.disk.fault = None
        await self.all_steps()
        self.assertEqual(self.said(), [])


class LateTest(DeliveryCase):
    """An instance that AstrBot has closed still gets answers."""

    async def test_next_instance_sends_what_a_closed_one_gets(self) -> None:
        closed = self.delivery
        await self.reopen()
        await closed.add(turn_of(A, "1"))
        await self.step()
        self.assertEqual(self.said(), ["1"])
        await closed.add(turn_of(A, "2"))  # it looks again now and then
        await self.step(LATE_SECONDS)
        self.assertEqual(self.said(), ["1", "2"])
        self.assertEqual((await self.figures()).waiting, 0)

    async def test_what_is_not_on_disk_at_the_end(self) -> None:
        self.disk.fault = sqlite3.SQLITE_BUSY
        await self.add("1", "2")
        await self.close()
        self.disk.fault = None
        self.delivery = self.open()
        await self.all_steps()
        self.assertEqual(self.said(), ["1", "2"])
        self.assertEqual(self.delivery.state.lost, 0)

    async def test_loss_at_the_end_is_counted_and_logged(self) -> None:
        self.disk.fault = sqlite3.SQLITE_BUSY
        await self.add("1", "2")
        with mock.patch.object(self.outbox, "leave", side_effect=OSError("full")):
            await self.close()
        self.assertEqual(self.delivery.state.lost, 2)
        self.assertIn("lost turns that neither disk nor memory took: 2", self.errors())

    async def test_disk_that_hangs_at_the_end_does_not_keep_the_bot(self) -> None:
        self.no_copies()
        reached, go_on = self.disk.stall()
        self.clock.is_patient = False
        await self.add("1")
        self.assertTrue(await reached())
        await self.add("2")
        hangs = asyncio.Event()

        async def leave(_: Any) -> None:
            await hangs.wait()

        with mock.patch.object(self.outbox, "leave", leave):
            await self.close()
        self.assertIn("1 turns were not on disk at the end", self.errors())
        self.assertEqual(self.delivery.state.lost, 1)
        self.clock.is_patient = True
        go_on()
        hangs.set()
        # What hung has been written.
        await asyncio.to_thread(self.outbox._transactions._thread.shutdown)
        self.delivery = self.open()
        await self.all_steps()
        self.assertEqual(self.said(), ["1"])

    async def test_file_of_a_later_version_is_left_alone_and_nothing_is_lost(self) -> None:
        await self.add("1")
        await self.close()
        path = self.folder / DATABASE_FILE
        db = sqlite3.connect(path)
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
        db.close()
        before = path.read_bytes()
        self.delivery = self.open()
        await self.delivery.start()
        await self.add("2", "3")
        await self.step()
        state = self.delivery.state
        self.assertEqual((state.stopped, state.unsaved, state.lost), ("newer_file", 0, 0))
        await self.close()
        self.assertEqual(path.read_bytes(), before)
        db = sqlite3.connect(path)
        db.execute(f"PRAGMA user_version = {VERSION}")
        db.close()
        self.delivery = self.open()
        await self.all_steps()
        self.assertEqual(self.said(), ["1", "2", "3"])

    def errors(self) -> list[str]:
        return self.log.lines(logging.ERROR)


class FlushTest(DeliveryCase):
    async def test_sends_everything_also_what_is_open(self) -> None:
        await self.add("a1", "a2", "a3", "a4", urgent=False)
        for chat in (B, C, D):
            await self.add(chat[0], chat=chat, urgent=False)
        await self.delivery.flush()
        self.assertEqual(sorted(self.said()), ["a1", "a4", "b", "c", "d"])
        self.assertEqual((await self.figures()).sent, 5)

    async def test_gives_up_at_the_first_failure(self) -> None:
        self.server.otherwise = lambda _: reply(500)
        await self.add("1", "2", urgent=True)
        await self.delivery.flush()
        self.assertEqual(len(self.server.requests), 1)
        self.assertEqual((await self.figures()).waiting, 2)

    async def test_waits_for_what_is_under_way(self) -> None:
        self.server.gate.clear()
        await self.add("1")
        await self.delivery.step()
        await until(lambda: self.server.waiting)
        flushing = asyncio.create_task(self.delivery.flush())
        self.server.gate.set()
        await flushing
        self.assertEqual(self.said(), ["1"])
        self.assertEqual((await self.figures()).sent, 1)

    async def test_goes_on_where_a_request_ends_while_it_looks_for_more(self) -> None:
        """The next window of that chat was passed over, as the one before was on its way."""
        self.server.gate.clear()
        await self.add("1", "2")
        await self.delivery.step()
        await until(lambda: self.server.waiting)
        look = self.outbox.next_window

        async def slowly(**how: Any) -> Any:
            found = await look(**how)
            self.server.gate.set()
            await self.delivery.settle()
            return found

        with mock.patch.object(self.outbox, "next_window", slowly):
            await self.delivery.flush()
        self.assertEqual(self.said(), ["1", "2"])


class PauseTest(DeliveryCase):
    """A chat whose documents are being changed waits; the others do not."""

    async def test_one_chat_waits(self) -> None:
        async with self.delivery.held(A):
            await self.add("a")
            await self.add("b", chat=B)
            await self.all_steps()
            await self.delivery.flush()
            self.assertEqual(self.said(), ["b"])
        await self.all_steps()
        self.assertEqual(self.said(), ["b", "a"])

    async def test_running_delivery_goes_on_at_once(self) -> None:
        running = asyncio.create_task(self.delivery.run())
        self.addCleanup(running.cancel)
        async with self.delivery.held(A):
            await self.add("a")
            await self.add("b", chat=B)
            await until(lambda: self.said() == ["b"])
        await until(lambda: self.said() == ["b", "a"])

    async def test_request_under_way_is_called_back(self) -> None:
        self.server.gate.clear()
        await self.add("a")
        await self.delivery.step()
        await until(lambda: self.server.waiting)
        async with self.delivery.held(A):
            self.assertEqual(self.server.cancelled, 1)
        self.server.gate.set()
        self.assertEqual(len(await self.outbox.windows_of(A)), 1)
        self.assertEqual(self.log.records, [])

    async def test_held_by_two_until_both_have_ended(self) -> None:
        await self.add("a")
        async with self.delivery.held(A):
            async with self.delivery.held(A):
                pass
            await self.all_steps()
            self.assertEqual(self.said(), [])
        await self.all_steps()
        self.assertEqual(self.said(), ["a"])

    async def test_cancelled_while_it_calls_back_holds_nothing(self) -> None:
        self.server.gate.clear()
        await self.add("a")
        await self.delivery.step()
        await until(lambda: self.server.waiting)

        async def hold() -> None:
            async with self.delivery.held(A):
                self.fail("never held")

        holding = asyncio.create_task(hold())
        await asyncio.sleep(0)
        holding.cancel()
        await asyncio.gather(holding, return_exceptions=True)
        self.server.gate.set()
        await self.all_steps()
        self.assertEqual(self.said(), ["a", "a"])

    async def test_paused_while_the_queue_is_read(self) -> None:
        await self.add("a")
        next_window = self.outbox.next_window

        async def slow(**named: Any) -> Any:
            window = await next_window(**named)
            await holding.enter_async_context(self.delivery.held(A))
            return window

        async with contextlib.AsyncExitStack() as holding:
            with mock.patch.object(self.outbox, "next_window", slow):
                await self.all_steps()
            self.assertEqual(self.said(), [])


class StoppingTest(DeliveryCase):
    async def test_cancelled_request_is_sent_again_by_the_next_run(self) -> None:
        self.server.gate.clear()
        await self.add("1")
        await self.delivery.step()
        await until(lambda: self.server.waiting)
        await self.reopen()
        self.assertEqual(self.server.cancelled, 1)
        self.server.gate.set()
        await self.delivery.start()
        await self.step()
        first, second = self.server.bodies
        self.assertEqual(first, second)
        self.assertEqual(self.log.records, [])

    async def test_run_sends_what_is_added_and_ends_by_cancellation(self) -> None:
        running = asyncio.create_task(self.delivery.run())
        for n in range(3):
            await self.add(str(n))
        await until(lambda: self.delivery.state.last_sent_at and len(self.server.requests) == 3)
        running.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await running
        self.assertEqual(self.said(), ["0", "1", "2"])

    async def test_run_steps_by_itself_when_time_has_passed(self) -> None:
        self.enterContext(mock.patch.object(delivery_module, "STEP_SECONDS", 0.0))
        await self.reopen(daily_chars=1)
        await self.add("1", "2")
        running = asyncio.create_task(self.delivery.run())
        self.addCleanup(running.cancel)
        await until(lambda: self.delivery.state.stopped == "daily_cap")
        self.clock.day = "2026-03-05"
        await until(lambda: self.said() == ["1", "2"])

    async def test_run_goes_on_when_a_pause_has_passed(self) -> None:
        self.jitter = 0.0
        self.server.script.extend([reply(500), reply(500)])
        running = asyncio.create_task(self.delivery.run())
        self.addCleanup(running.cancel)
        await self.add("1")
        await until(lambda: self.delivery.state.last_sent_at)
        self.assertEqual(self.said(), ["1", "1", "1"])
