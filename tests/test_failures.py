"""What the server fails on after it was taken: shown, tried again, never against an erasure."""

from __future__ import annotations

import asyncio
import logging
from unittest import mock

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.erasure import (
    BACKGROUND_PAUSE_SECONDS,
    LATE_ROUNDS,
    REST_SECONDS,
)
from astrbot_plugin_hindsight_memory.failures import CHECK_SECONDS, MAX_STALE, FailureWatch
from astrbot_plugin_hindsight_memory.scope import Hasher, Scope
from astrbot_plugin_hindsight_memory.texts import Texts
from astrbot_plugin_hindsight_memory.transcript import Header, Line, TurnRecord, new_document_id
from commands_case import AT, BEN, CAT, CAT_ANSWER, LANGUAGES, TEA, CommandsCase
from support import NOW, LogRecords, group_origin, reply, scope_of, until


class FailuresCase(CommandsCase):
    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.bank.slow = True

    def watch(self) -> FailureWatch:
        assert self.failures
        return self.failures

    async def failed(
        self, *lines: str, scope: Scope | None = None, error: str = "Error code: 429 - slow"
    ) -> str:
        """Has the server take lines and fail on them; returns the document's id."""
        scope = scope or self.scope()
        header = Header(scope.tags, "一个群", NOW.isoformat(), {"plugin": "p"})
        record = TurnRecord(scope.chat, header, tuple(map(Line, lines)), urgent=True)
        await self.delivery.add(record)
        await self.send()
        (entry,) = self.bank.queue.values()
        self.bank.fail_retains(error)
        document_id: str = entry["item"]["document_id"]
        return document_id

    def failures_on_record(self) -> list[str]:
        return [k for k, one in self.bank.records.items() if one["status"] == "failed"]

    async def passes(self, seconds: float) -> None:
        """Lets the background work for a time."""
        end = self.clock.now + seconds
        async with asyncio.timeout(60):
            while self.clock.now <= end:  # noqa: ASYNC110 - no waiting for time
                await asyncio.sleep(0)

    async def retry(self) -> str:
        return await self.ask("retry", is_admin=True)


class SeenTest(FailuresCase):
    async def test_status_tells_how_many_and_why(self) -> None:
        await self.failed(TEA)
        await self.failed(CAT, scope=self.other_scope(), error="ProviderAuthError: x\nTraceback")
        await self.watch().check()
        for language in LANGUAGES:
            texts = Texts(language)
            answer = await self.status_all(language)
            values = {"here": 1, "number": 2, "reason": texts("model_limited")}
            self.assertIn(texts("status_failed", **values), answer.splitlines())
            self.assertIn(texts("status_failed_retry"), answer.splitlines())
            self.assertNotIn("Traceback", answer)
            elsewhere = await self.status_all(language, self.private_scope())
            self.assertIn(texts("status_failed", **values | {"here": 0}).split("：")[0], elsewhere)

    async def test_status_tells_of_concluding(self) -> None:
        self.bank.unconcluded = 3
        await self.watch().check()
        self.assertIn(Texts("zh")("status_failed_facts", facts=3), await self.status_all())

    async def test_status_tells_of_concluding_that_failed_as_a_whole(self) -> None:
        texts = Texts("zh")
        item = {"document_id": None}
        failed = {"status": "failed", "kind": "consolidation", "error": "Error code: 401 - x"}
        self.bank.records = {"c": failed | {"item": item}}
        await self.watch().check()
        self.assertNotIn("没能归纳", await self.status_all())  # nothing waits for it any more
        self.bank.unread = 4
        await self.watch().check()
        said = f"{texts('status_failed_facts', facts=4)} {texts('model_refused')}"
        self.assertIn(said, await self.status_all())
        self.assertIn(texts("retried_facts", facts=4), await self.ask("retry", is_admin=True))
        self.assertIn("consolidate", self.bank.asked("POST"))
        later = {"d": failed | {"item": item, "status": "completed"}}
        self.bank.records = later | self.bank.records
        await self.watch().check()
        self.assertNotIn("没能归纳", await self.status_all())

    async def test_nothing_failed(self) -> None:
        await self.watch().check()
        self.assertNotIn("没能", await self.status_all())

    async def test_others_in_the_bank_are_none_of_ours(self) -> None:
        self.bank.records["x"] = {
            "status": "failed",
            "item": {"document_id": "notes-1", "content": "x", "tags": [], "timestamp": ""},
        }
        await self.watch().check()
        self.assertEqual(self.watch().found.retains, ())

    async def test_a_status_asks_for_none_of_it(self) -> None:
        await self.failed(TEA)
        await self.status_all()
        self.assertEqual(self.bank.asked("GET", "operations"), [])

    async def test_checked_at_the_start_and_after_deliveries_only(self) -> None:
        gate, naps = asyncio.Semaphore(0), 0

        async def sleeper(seconds: float) -> None:
            nonlocal naps
            naps += 1
            await gate.acquire()
            self.clock.now += seconds

        self.clock.sleeper = sleeper
        task = asyncio.create_task(self.watch().run())
        self.addCleanup(task.cancel)

        def checks() -> int:
            return len(self.bank.asked("GET", "stats"))

        async def minute() -> None:
            before = naps
            gate.release()
            await until(lambda: naps > before)

        async def minutes(number: int) -> None:
            for _ in range(number):
                await minute()

        await until(lambda: naps)
        self.assertEqual(checks(), 1)
        await minutes(10)
        self.assertEqual(checks(), 1)
        await self.failed(TEA)
        await minutes(1)
        self.assertEqual(checks(), 2)
        self.assertEqual(len(self.watch().found.retains), 1)
        await minutes(int(CHECK_SECONDS / 60) - 1)
        self.assertEqual(checks(), 2)
        await minutes(1)
        self.assertEqual(checks(), 3)

    async def test_logged_once_without_the_servers_words(self) -> None:
        records = LogRecords()
        self.watch()._logger = records.logger
        await self.failed(TEA, error="RuntimeError: secret path /srv")
        await self.watch().check()
        await self.watch().check()
        (line,) = records.lines(logging.WARNING)
        self.assertIn(Texts("en")("extraction_failed"), line)
        self.assertNotIn("/srv", line)


class RetryTest(FailuresCase):
    async def test_the_server_tries_again(self) -> None:
        document_id = await self.failed(TEA)
        answer = await self.retry()
        self.assertIn(Texts("zh")("retried_there", again=1, resent=0), answer)
        self.assertEqual(self.bank.documents[document_id]["original_text"], TEA)
        self.assertEqual(self.failures_on_record(), [])
        self.assertEqual((await self.watch().check()).retains, ())

    async def test_sent_again_where_the_server_does_not(self) -> None:
        document_id = await self.failed(TEA, CAT)
        old = self.failures_on_record()
        self.bank.retries = False
        answer = await self.retry()
        self.assertIn(Texts("zh")("retried_there", again=0, resent=1), answer)
        self.assertEqual(self.failures_on_record(), [])
        await self.send()
        self.bank.drain()
        self.assertEqual(self.bank.documents[document_id]["original_text"], f"{TEA}\n{CAT}")
        self.assertEqual(set(self.bank.documents[document_id]["tags"]), set(self.scope().tags))
        self.assertNotIn(old[0], self.bank.records)

    async def test_twice_is_once(self) -> None:
        await self.failed(TEA)
        self.bank.retries = False
        await self.retry()
        self.assertNotIn("1", (await self.retry()).replace("0", ""))
        await self.send()
        self.bank.drain()
        self.assertEqual(self.bank.texts(self.scope()), [TEA])

    async def test_resent_lines_survive_a_kill_before_the_record_is_gone(self) -> None:
        document_id = await self.failed(TEA)
        self.bank.retries = False
        self.bank.fail(reply(500), "/delete", "DELETE")
        self.assertIn(Texts("zh")("server_error"), await self.retry())
        self.bank.heal()
        await self.send()
        self.bank.drain()
        self.assertEqual(list(self.bank.documents), [document_id])
        self.assertEqual((await self.watch().check()).retains, ())  # it is stored after all
        self.assertEqual(self.failures_on_record(), [])

    async def test_stored_by_a_later_retain_is_no_failure(self) -> None:
        document_id = await self.failed(TEA)
        self.bank.store(self.scope(), CAT, document_id=document_id)
        await self.retry()
        self.assertEqual(self.bank.documents[document_id]["original_text"], CAT)
        self.assertEqual(self.failures_on_record(), [])

    async def test_nor_where_there_are_many(self) -> None:
        ids = [await self.failed(TEA) for _ in range(MAX_STALE + 2)]
        for one in ids:
            self.bank.store(self.scope(), CAT, document_id=one)
        self.bank.fail(lambda: reply(403), "/delete")
        await self.retry()
        self.assertEqual({*self.bank.texts(self.scope())}, {CAT})

    async def test_another_bots_failures_are_left_alone(self) -> None:
        other = scope_of(group_origin(), Hasher(b"x" * 32))
        await self.failed(TEA, scope=other)
        answer = await self.retry()
        self.assertIn(Texts("zh")("retried_left", number=1), answer)
        self.assertEqual(len(self.failures_on_record()), 1)
        self.assertEqual(self.bank.asked("POST", "operations"), [])

    async def test_record_that_does_not_tell_is_left_alone(self) -> None:
        await self.failed(TEA)
        self.bank.secretive = True
        self.assertIn(Texts("zh")("retried_left", number=1), await self.retry())
        self.assertEqual(len(self.failures_on_record()), 1)

    async def test_concluding_is_begun_again(self) -> None:
        self.bank.unconcluded = 2
        answer = await self.retry()
        self.assertIn(Texts("zh")("retried_facts", facts=2), answer)
        self.assertEqual(self.bank.asked("POST"), ["consolidation/recover", "consolidate"])

    async def test_server_that_cannot_be_asked(self) -> None:
        self.bank.fail(reply(503))
        reason = Texts("zh")("overloaded")
        self.assertIn(Texts("zh")("retry_failed", reason=reason), await self.retry())


class ErasedTest(FailuresCase):
    """Whatever was erased stays so, whoever tries the failures again."""

    async def retried_by_anybody(self) -> None:
        await self.retry()
        for key in self.failures_on_record():
            await self.client.retry_operation(key)
        await self.send()
        self.bank.drain()

    async def test_forgetme(self) -> None:
        await self.failed(TEA, CAT, CAT_ANSWER)
        await self.failed(CAT)
        await self.confirmed("forgetme", speaker=BEN, person_id="20002")
        await self.retried_by_anybody()
        self.assertEqual(self.bank.texts(self.scope()), [TEA])
        self.assertNotIn("猫", str(self.bank.records))

    async def test_forgetme_leaves_what_is_not_theirs(self) -> None:
        await self.failed(TEA)
        await self.confirmed("forgetme", speaker=BEN, person_id="20002")
        await self.retried_by_anybody()
        self.assertEqual(self.bank.texts(self.scope()), [TEA])

    async def test_wipe(self) -> None:
        await self.failed(TEA)
        await self.failed(CAT, scope=self.other_scope())
        self.enterContext(mock.patch("secrets.randbelow", lambda _: 7))
        await self.ask("wipe")
        await self.ask("wipe 0007")
        await self.retried_by_anybody()
        self.assertEqual(self.bank.texts(self.scope()), [])
        self.assertEqual(self.bank.texts(self.other_scope()), [CAT])

    async def test_key_that_may_not_delete_records(self) -> None:
        """As long as the server could run one again, it is known here that it must not."""
        await self.failed(TEA)
        self.enterContext(mock.patch("secrets.randbelow", lambda _: 7))
        self.bank.fail(lambda: reply(403), "/delete")
        await self.ask("wipe")
        await self.ask("wipe 0007")
        assert self.eraser
        background = asyncio.create_task(self.eraser.run())
        for _ in range(2):
            await self.passes(2 * LATE_ROUNDS * BACKGROUND_PAUSE_SECONDS)
            await self.retry()
            self.assertEqual(self.bank.texts(self.scope()), [])
        asked = len(self.bank.requests)
        await self.passes(0.9 * REST_SECONDS)
        self.assertLess(len(self.bank.requests) - asked, 20, "looked at once an hour")
        self.bank.heal()
        while await self.outbox.erasures():  # noqa: ASYNC110 - no waiting for time
            await asyncio.sleep(0)
        self.assertEqual(self.failures_on_record(), [])
        background.cancel()
        await asyncio.gather(background, return_exceptions=True)

    async def test_wish_that_waits_for_the_server(self) -> None:
        await self.failed(TEA)
        self.bank.fail(reply(503), "operations", "GET")
        await self.confirmed("forgetme")
        self.bank.heal()
        await self.retry()
        self.assertEqual(self.bank.texts(self.scope()), [])
        self.assertEqual(self.bank.asked("POST", "/retry"), [])

    async def test_retry_waits_for_what_changes_the_chat(self) -> None:
        await self.failed(TEA)
        assert self.archive
        async with self.archive.changing(self.scope().chat):
            task = asyncio.create_task(self.retry())
            await asyncio.sleep(0.05)
            self.assertEqual(self.bank.asked("POST", "/retry"), [])
        self.assertIn("1", await task)


class QueuedAgainTest(FailuresCase):
    async def test_not_while_it_waits(self) -> None:
        scope = self.scope()
        header = Header(scope.tags, "c", NOW.isoformat(), {})
        document_id = new_document_id(scope.chat)
        document = mock.Mock(document_id=document_id, header=header, lines=(Line(f"A {AT}: x"),))
        self.assertTrue(await self.outbox.queue_again(scope.chat, document))
        self.assertFalse(await self.outbox.queue_again(scope.chat, document))
