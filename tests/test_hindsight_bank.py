"""The calls about a whole bank: its queue, its figures, and whose tags it holds."""

from __future__ import annotations

import logging
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.hindsight_bank import LONG_PAGE, RETAIN
from astrbot_plugin_hindsight_memory.hindsight_types import BankStats, ModelUse, Operation
from support import LogRecords, reply
from test_hindsight_client import ClientCase

MISSING = {"detail": "Bank 'bot' not found"}
LIMITED = (
    "RuntimeError: Fact extraction failed: 1/1 chunks failed: RateLimitError: Error code: 429 - "
    "{'error': 'slow down'}\n  File \"/app/x.py\", line 401"
)


class BankCase(ClientCase):
    def asked(self) -> tuple[str, str]:
        request = self.server.requests[-1]
        return request.method, request.url.raw_path.decode().removeprefix("/v1/default/banks/bot/")


class OperationsTest(BankCase):
    async def test_failed_retains(self) -> None:
        row = {
            "id": "o1",
            "task_type": "retain",
            "document_id": "d1",
            "status": "failed",
            "error_message": LIMITED,
            "created_at": "2026-03-04T12:30:05+00:00",
        }
        self.server.script.append(reply(content={"operations": [row]}))
        (operation,) = await self.client.operations("failed", kind=RETAIN)
        when = datetime(2026, 3, 4, 12, 30, 5, tzinfo=UTC)
        self.assertEqual(
            operation, Operation("o1", "d1", "failed", "retain", "model_limited", when)
        )
        query = self.server.requests[0].url.params
        self.assertEqual((query["status"], query["type"]), ("failed", "retain"))

    async def test_of_any_status_and_kind(self) -> None:
        self.server.script.append(reply(content={"operations": []}))
        await self.client.operations()
        self.assertEqual(self.asked(), ("GET", "operations?limit=100&offset=0"))

    async def test_why_it_failed_in_a_word_and_never_its_traceback(self) -> None:
        for message, failure in (
            (LIMITED, "model_limited"),
            ("ProviderAuthError: bad key\nTraceback", "model_refused"),
            ("RuntimeError: AuthenticationError: Error code: 401 - no", "model_refused"),
            ("Error code: 402 - pay", "model_refused"),
            ("Error code: 500 - broken", "extraction_failed"),
            ("JSONDecodeError: line 429", "extraction_failed"),
            (5, "extraction_failed"),
            (None, ""),
            ("", ""),
        ):
            with self.subTest(message=message):
                row = {"id": "o", "error_message": message}
                self.server.script.append(reply(content={"operations": [row]}))
                (operation,) = await self.client.operations()
                self.assertEqual(operation.failure, failure)

    async def test_one_with_its_children(self) -> None:
        content = {
            "operation_id": "o1",
            "status": "failed",
            "operation_type": "batch_retain",
            "child_operations": [{"operation_id": "c1"}, {"operation_id": None}, "text"],
        }
        self.server.script.append(reply(content=content))
        operation = await self.client.operation("o/1")
        self.assertEqual(operation, Operation("o1", "", "failed", "batch_retain", children=("c1",)))
        self.assertEqual(self.asked(), ("GET", "operations/o%2F1"))

    async def test_one_that_is_unknown(self) -> None:
        for answer in (
            reply(content={"operation_id": "o", "status": "not_found"}),
            reply(404, MISSING),
        ):
            self.server.script.append(answer)
            self.assertIsNone(await self.client.operation("o"))

    async def test_forget(self) -> None:
        self.assertTrue(await self.client.forget_operation("o/1"))
        self.assertEqual(self.asked(), ("DELETE", "operations/o%2F1/delete"))

    async def test_nothing_to_forget_or_a_server_that_cannot(self) -> None:
        gone = reply(404, {"detail": "Operation o not found for bank bot"})
        for answer in (gone, reply(404, {"detail": "Not Found"}), reply(405)):
            self.server.script.append(answer)
            self.assertFalse(await self.client.forget_operation("o"))

    async def test_what_has_not_ended_cannot_be_forgotten(self) -> None:
        error = await self.failure(reply(409), call=lambda: self.client.forget_operation("o"))
        self.assertEqual((error.reason, error.status), ("rejected", 409))

    async def test_other_faults_of_forgetting_are_told(self) -> None:
        for status, reason in ((403, "forbidden"), (500, "server_error")):
            error = await self.failure(
                reply(status), call=lambda: self.client.forget_operation("o")
            )
            self.assertEqual(error.reason, reason)

    async def test_retry(self) -> None:
        self.assertTrue(await self.client.retry_operation("o"))
        self.assertEqual(self.asked(), ("POST", "operations/o/retry"))
        for answer in (reply(404, {"detail": "Operation o not found"}), reply(409), reply(405)):
            self.server.script.append(answer)
            self.assertFalse(await self.client.retry_operation("o"))


class FiguresTest(BankCase):
    async def test_stats(self) -> None:
        content = {
            "total_documents": 3,
            "total_nodes": 9,
            "pending_consolidation": 4,
            "failed_consolidation": 5,
        }
        self.server.script.append(reply(content=content))
        self.assertEqual(await self.client.stats(refresh=True), BankStats(3, 9, 4, 5))
        self.assertEqual(self.asked(), ("GET", "stats?refresh=true"))

    async def test_stats_of_which_little_is_told(self) -> None:
        for answer in (
            reply(404, MISSING),
            reply(
                content={
                    "total_nodes": None,
                    "pending_consolidation": "many",
                    "total_documents": -1,
                }
            ),
        ):
            self.server.script.append(answer)
            self.assertEqual(await self.client.stats(), BankStats())

    async def test_consolidation(self) -> None:
        await self.client.consolidate()
        self.assertEqual(self.asked(), ("POST", "consolidate"))
        self.server.script.append(reply(content={"retried_count": 2}))
        self.assertEqual(await self.client.recover_consolidation(), 2)
        self.assertEqual(self.asked(), ("POST", "consolidation/recover"))

    async def test_model_use(self) -> None:
        buckets = [
            {
                "total": 3,
                "statuses": {"success": 2, "error": 1},
                "tokens": {"input": 9, "output": 1},
            },
            {"total": 1, "statuses": None, "tokens": {"input": 1, "output": None}},
            "text",
        ]
        self.server.script.append(reply(content={"buckets": buckets}))
        self.assertEqual(await self.client.model_use("7d"), ModelUse(4, 1, 10, 1))
        self.assertEqual(self.asked(), ("GET", "llm-requests/stats?period=7d&call_type=llm"))

    async def test_model_use_is_unknown(self) -> None:
        for answer in (
            reply(content={"buckets": []}),
            reply(content={}),
            reply(403),
            reply(404, {"detail": "Not Found"}),
            reply(404, MISSING),
            reply(405),
        ):
            self.server.script.append(answer)
            self.assertIsNone(await self.client.model_use())
        for status in (401, 500):
            await self.failure(reply(status), call=self.client.model_use)


class TagsTest(BankCase):
    async def test_tags(self) -> None:
        items = [{"tag": "scope:a", "count": 2}, {"tag": "scope:b"}]
        self.server.script.append(reply(content={"items": items}))
        self.assertEqual(await self.client.tags("scope:*"), {"scope:a": 2, "scope:b": 0})
        self.assertEqual(self.server.requests[0].url.params["q"], "scope:*")

    async def test_scopes_of_conclusions(self) -> None:
        rows = [{"tags": ["b", "a"], "count": 2}, {"tags": [], "count": 1}]
        self.server.script.append(reply(content={"scopes": rows}))
        expected = Counter({frozenset(["a", "b"]): 2, frozenset(): 1})
        self.assertEqual(await self.client.observation_scopes(), expected)

    async def test_scopes_that_all_come_at_once(self) -> None:
        """Such a server gives the same answer whatever page is asked for."""
        rows = [{"tags": [str(n)], "count": 1} for n in range(LONG_PAGE)]
        answer = reply(content={"scopes": rows}, x_ignored_params="limit, offset")
        self.server.otherwise = lambda _: answer
        self.assertEqual(len(await self.client.observation_scopes()), LONG_PAGE)
        self.assertEqual(len(self.server.requests), 1)

    async def test_scopes_of_documents_on_all_pages(self) -> None:
        rows: list[dict[str, Any]] = [{"id": str(n), "tags": ["a"]} for n in range(LONG_PAGE)]
        pages = [{"items": rows}, {"items": [{"id": "x", "tags": []}, {"id": "y"}]}]
        self.server.script.extend(reply(content=page) for page in pages)
        expected = Counter({frozenset(["a"]): LONG_PAGE, frozenset(): 2})
        self.assertEqual(await self.client.document_scopes(), expected)

    async def test_untagged_memories(self) -> None:
        self.server.script.append(reply(content={"items": [{"text": "x"}], "total": 7}))
        self.assertEqual(await self.client.untagged_memories(), 7)
        self.assertEqual(self.asked(), ("GET", "memories/list?tags_match=exact&limit=1"))

    async def test_bank_that_does_not_exist_yet(self) -> None:
        self.server.otherwise = lambda _: reply(404, MISSING)
        self.assertEqual(await self.client.tags(), {})
        self.assertEqual(await self.client.observation_scopes(), Counter())
        self.assertEqual(await self.client.document_scopes(), Counter())
        self.assertEqual(await self.client.untagged_memories(), 0)
        self.assertEqual(await self.client.recover_consolidation(), 0)


class HeadersTest(BankCase):
    async def test_what_the_server_does_not_know_is_logged_once_each(self) -> None:
        log = LogRecords()
        self.client = self.open(logger=log.logger)
        for names in ("a, b", "b", "", "c,a"):
            self.server.script.append(reply(x_ignored_params=names))
            await self.client.check()
        self.assertEqual(
            [line.split()[5] for line in log.lines(logging.INFO)], ["'a'", "'b'", "'c'"]
        )

    async def test_clock_of_the_server(self) -> None:
        self.assertIsNone(self.client.skew_seconds)
        date = "Fri, 15 Jan 2027 08:01:30 GMT"
        for answer in (reply(date=date), reply(date="soon"), reply()):
            self.server.script.append(answer)
            await self.client.check()
            self.assertEqual(self.client.skew_seconds, 90.0)

    async def test_clock_of_a_server_that_fails(self) -> None:
        await self.failure(reply(500, date="Fri, 15 Jan 2027 07:59:00 GMT"))
        self.assertEqual(self.client.skew_seconds, -60.0)
