"""Every answer of a server, and every silence, becomes a result or an error with a name."""

from __future__ import annotations

import asyncio
import json
import unittest
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any
from unittest import mock
from urllib.parse import quote

import httpx
import plugin
import yaml
from astrbot_plugin_hindsight_memory.hindsight_bank import LONG_PAGE, MAX_OPERATIONS, PAGE_SIZE
from astrbot_plugin_hindsight_memory.hindsight_client import (
    MAX_LISTED,
    MAX_RECALLS,
    HindsightClient,
)
from astrbot_plugin_hindsight_memory.hindsight_http import (
    KEEPALIVE_SECONDS,
    MAX_RETRY_AFTER_SECONDS,
    VERSION,
)
from astrbot_plugin_hindsight_memory.hindsight_types import (
    NO_OPTIONS,
    AccessRefusedError,
    HindsightError,
    ListedDocument,
    Operation,
    QueryTooLongError,
    RecalledMemory,
    RecallOptions,
    RequestRejectedError,
    RetainItem,
    RetryLaterError,
    StoredDocument,
)
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from support import Clock, FakeServer, private_origin, recall_results, reply, scope_of, until

SCOPE = scope_of(private_origin())
WHEN = datetime(2026, 3, 4, tzinfo=UTC)
NO_TAGS: tuple[Any, ...] = ((), [], "", "scope:private", [""], ["scope:private", ""])


def item(**changes: Any) -> RetainItem:
    values = {
        "content": "Ann#0a0b0c (t): hi",
        "document_id": "d-1",
        "context": "a chat",
        "timestamp": "2026-03-04T12:30:05+00:00",
        "metadata": {"turns": "1"},
        "tags": SCOPE.tags,
    }
    return RetainItem(**values | changes)


class ClientCase(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.server = FakeServer()
        self.client = self.open()

    def open(self, **changes: Any) -> HindsightClient:
        client = self.server.client(**changes)
        self.addAsyncCleanup(client.aclose)
        return client

    async def recall(
        self,
        tags: Any = SCOPE.tags,
        options: RecallOptions = NO_OPTIONS,
        deadline: float | None = None,
    ) -> list[RecalledMemory]:
        return await self.client.recall(
            "tea",
            tags=tags,
            budget="mid",
            max_tokens=1024,
            query_timestamp="2026-03-04T12:30:05Z",
            options=options,
            deadline=deadline,
        )

    async def retain(self) -> None:
        await self.client.retain(item(), operation_id="op")

    async def failure(self, *answers: Any, call: Any = None) -> HindsightError:
        self.server.script.extend(answers)
        with self.assertRaises(HindsightError) as caught:
            await (call or self.recall)()
        self.assertFalse(self.server.script, "not every answer was asked for")
        return caught.exception


class RequestTest(ClientCase):
    async def test_recall(self) -> None:
        await self.recall()
        (request,) = self.server.requests
        self.assertEqual(request.method, "POST")
        self.assertEqual(
            str(request.url), "http://hindsight.test/v1/default/banks/bot/memories/recall"
        )
        self.assertEqual(
            json.loads(request.content),
            {
                "query": "tea",
                "prefer_observations": True,
                "budget": "mid",
                "max_tokens": 1024,
                "query_timestamp": "2026-03-04T12:30:05Z",
                "include": {"entities": None},
                "tags": list(SCOPE.tags),
                "tags_match": "all_strict",
            },
        )

    async def test_recall_with_all_that_can_be_said(self) -> None:
        east = timezone(timedelta(hours=8))
        options = RecallOptions(
            min_semantic=0.0,
            window=(datetime(2026, 3, 3, tzinfo=east), datetime(2026, 3, 4, tzinfo=east)),
            chunk_tokens=500,
            with_sources=True,
        )
        await self.recall(options=options)
        (body,) = self.server.bodies
        self.assertEqual(
            body["include"],
            {"entities": None, "chunks": {"max_tokens": 500}, "source_facts": {"max_tokens": 4096}},
        )
        self.assertEqual(body["min_scores"], {"semantic": 0.0})
        self.assertEqual(
            body["temporal_window"],
            {"start": "2026-03-03T00:00:00+08:00", "end": "2026-03-04T00:00:00+08:00"},
        )
        self.assertEqual((body["tags"], body["tags_match"]), (list(SCOPE.tags), "all_strict"))

    async def test_retain(self) -> None:
        await self.retain()
        (request,) = self.server.requests
        self.assertEqual(request.method, "POST")
        self.assertEqual(str(request.url), "http://hindsight.test/v1/default/banks/bot/memories")
        self.assertEqual(
            json.loads(request.content),
            {
                "items": [
                    {
                        "content": "Ann#0a0b0c (t): hi",
                        "document_id": "d-1",
                        "context": "a chat",
                        "timestamp": "2026-03-04T12:30:05+00:00",
                        "metadata": {"turns": "1"},
                        "tags": list(SCOPE.tags),
                        "observation_scopes": "combined",
                    }
                ],
                "async": True,
                "operation_id": "op",
            },
        )

    async def test_headers(self) -> None:
        await self.recall()
        headers = self.server.requests[0].headers
        self.assertEqual(headers["authorization"], "Bearer hsk_key")
        self.assertEqual(
            headers["user-agent"], f"astrbot_plugin_hindsight_memory/{VERSION.lstrip('v')}"
        )

    def test_version_is_that_of_the_metadata(self) -> None:
        metadata = yaml.safe_load((plugin.CHECKOUT / "metadata.yaml").read_text("utf-8"))
        self.assertEqual(metadata["version"], VERSION)

    async def test_bank_id_is_quoted(self) -> None:
        for bank in ("a b", "机器人", "a:b", "a?b#c", "100%", "a%2Fb", "a+b", "a\\b", "a&b=c"):
            with self.subTest(bank):
                self.client = self.open(bank_id=bank)
                await self.recall()
                path = self.server.requests[-1].url.raw_path.decode("ascii")
                expected = f"/v1/default/banks/{quote(bank, safe='')}/memories/recall"
                self.assertEqual(path, expected)

    async def test_address_below_a_path(self) -> None:
        self.client = self.open(api_base="https://host.test/under/path")
        await self.recall()
        url = str(self.server.requests[0].url)
        self.assertEqual(url, "https://host.test/under/path/v1/default/banks/bot/memories/recall")


class IsolationTest(ClientCase):
    """Without tags a request would reach the whole bank, so none is ever sent."""

    async def test_recall_without_tags_sends_nothing(self) -> None:
        for tags in NO_TAGS:
            with self.subTest(tags=tags):
                with self.assertRaises(ValueError):
                    await self.recall(tags)
                self.assertEqual(self.server.requests, [])

    async def test_retain_without_tags_sends_nothing(self) -> None:
        for tags in NO_TAGS:
            with self.subTest(tags=tags):
                with self.assertRaises(ValueError):
                    await self.client.retain(item(tags=tags), operation_id="op")
                self.assertEqual(self.server.requests, [])

    async def test_results_that_lack_a_tag_are_dropped(self) -> None:
        tags = list(SCOPE.tags)
        other = list(scope_of(private_origin("2")).tags)
        results = [
            {"text": "ours", "tags": tags},
            {"text": "ours, in another order", "tags": tags[::-1]},
            {"text": "with one more", "tags": [*tags, "more"]},
            {"text": "three of four", "tags": tags[:3]},
            {"text": "someone else's", "tags": other},
            {"text": "no tags", "tags": []},
            {"text": "null", "tags": None},
            {"text": "missing"},
        ]
        self.server.script.append(reply(content={"results": results}))
        texts = [memory.text for memory in await self.recall()]
        self.assertEqual(texts, ["ours", "ours, in another order", "with one more"])


class ResultTest(ClientCase):
    async def recalled(self, **raw: Any) -> list[RecalledMemory]:
        result = {"text": "tea", "tags": list(SCOPE.tags), **raw}
        self.server.script.append(reply(content={"results": [result]}))
        return await self.recall()

    async def test_order_is_kept(self) -> None:
        self.server.script.append(reply(content=recall_results("b", "a", "c", scope=SCOPE)))
        self.assertEqual([memory.text for memory in await self.recall()], ["b", "a", "c"])

    async def test_fields(self) -> None:
        (memory,) = await self.recalled(
            id="m1",
            type="observation",
            mentioned_at="2026-03-04T12:30:05+08:00",
            scores={"final": 0.5},
        )
        self.assertEqual((memory.memory_id, memory.kind, memory.score), ("m1", "observation", 0.5))
        self.assertEqual(memory.mentioned_at, datetime(2026, 3, 4, 4, 30, 5, tzinfo=UTC))

    async def test_what_it_was_found_by(self) -> None:
        (memory,) = await self.recalled(scores={"final": 1, "semantic": 0.75, "reranker": 0})
        self.assertEqual((memory.score, memory.semantic, memory.reranker), (1.0, 0.75, 0.0))
        for scores in ({}, None, {"semantic": None, "reranker": "high"}, {"semantic": True}):
            with self.subTest(scores=scores):
                (memory,) = await self.recalled(scores=scores)
                self.assertEqual((memory.semantic, memory.reranker), (None, None))

    async def test_number_that_is_none(self) -> None:
        body = f'{{"results": [{{"text": "tea", "tags": {json.dumps(SCOPE.tags)}, SCORES}}]}}'
        body = body.replace("SCORES", '"scores": {"final": NaN, "semantic": Infinity}')
        self.server.script.append(httpx.Response(200, text=body))
        (memory,) = await self.recall()
        self.assertEqual((memory.score, memory.semantic), (None, None))

    async def test_what_it_stands_on(self) -> None:
        (memory,) = await self.recalled(
            source_fact_ids=["a", "b"],
        )
        self.assertEqual(memory.sources, ("a", "b"))

    async def test_each_memory_gets_its_own_chunk_and_nobody_elses(self) -> None:
        tags = list(SCOPE.tags)
        results = [
            {"text": "tea", "tags": tags, "chunk_id": "c1"},
            {"text": "no room for it", "tags": tags, "chunk_id": "c2"},
            {"text": "broken", "tags": tags, "chunk_id": "c4"},
            {"text": "conclusion", "tags": tags, "chunk_id": None},
        ]
        chunks = {"c1": {"text": "words"}, "c3": {"text": "of others"}, "c4": 5, "": {"text": "x"}}
        self.server.script.append(reply(content={"results": results, "chunks": chunks}))
        found = await self.recall()
        self.assertEqual([memory.chunk for memory in found], ["words", "", "", ""])
        self.assertEqual([memory.chunk_id for memory in found], ["c1", "c2", "c4", ""])

    async def test_a_conclusion_gets_the_chunk_of_a_source_of_this_chat(self) -> None:
        ours, theirs = list(SCOPE.tags), list(scope_of(private_origin("2")).tags)
        facts = {
            "f1": {"id": "f1", "text": "secret", "tags": theirs, "chunk_id": "c1"},
            "f2": {"id": "f2", "text": "no chunk", "tags": ours, "chunk_id": None},
            "f3": {"id": "f3", "text": "tea", "tags": ours, "chunk_id": "c3"},
            "f4": "broken",
        }
        result = {"text": "drinks tea", "tags": ours, "source_fact_ids": ["f1", "f2", "f4", "f3"]}
        chunks = {"c1": {"text": "words of others"}, "c3": {"text": "words"}}
        content = {"results": [result], "source_facts": facts, "chunks": chunks}
        self.server.script.append(reply(content=content))
        (memory,) = await self.recall()
        self.assertEqual(memory.chunk, "words")

    async def test_only_ids_of_sources(self) -> None:
        await self.recall(options=RecallOptions(with_sources=True))
        include = self.server.bodies[0]["include"]
        self.assertEqual(include, {"entities": None, "source_facts": {"max_tokens": 0}})

    async def test_what_is_missing(self) -> None:
        (memory,) = await self.recalled(scores=None, type=None)
        self.assertEqual((memory.kind, memory.score), ("world", None))
        self.assertIsNone(memory.mentioned_at)

    async def test_times(self) -> None:
        for raw, expected in (
            ("2026-03-04T12:30:05", datetime(2026, 3, 4, 12, 30, 5, tzinfo=UTC)),
            ("2026-03-04T12:30:05Z", datetime(2026, 3, 4, 12, 30, 5, tzinfo=UTC)),
            ("yesterday", None),
            ("", None),
            (5, None),
        ):
            with self.subTest(raw=raw):
                (memory,) = await self.recalled(mentioned_at=raw)
                self.assertEqual(memory.mentioned_at, expected)

    async def test_no_results(self) -> None:
        contents: tuple[dict[str, Any], ...] = ({}, {"results": None}, {"results": []})
        for content in contents:
            with self.subTest(content=content):
                self.server.script.append(reply(content=content))
                self.assertEqual(await self.recall(), [])

    async def test_malformed_results_are_no_crash(self) -> None:
        """Whatever a broken server puts there: nothing of it, or a named error."""
        tags = list(SCOPE.tags)
        for results in (
            ["text"],
            [None],
            [{"tags": tags}],
            [{"text": 5, "tags": tags}],
            [{"text": "a", "tags": 5}],
            [{"text": "a", "tags": [tags]}],
            {"text": "a"},
            "text",
            5,
            True,
        ):
            with self.subTest(results=results):
                self.server.script.append(reply(content={"results": results}))
                try:
                    memories = await self.recall()
                except RetryLaterError as error:
                    self.assertEqual(error.reason, "bad_answer")
                else:
                    self.assertEqual(memories, [])

    async def test_malformed_score_does_not_cost_the_memory(self) -> None:
        for scores in ([], [0.5], "high", 5):
            with self.subTest(scores=scores):
                try:
                    memories = await self.recalled(scores=scores)
                except RetryLaterError as error:
                    self.assertEqual(error.reason, "bad_answer")
                else:
                    self.assertEqual([memory.text for memory in memories], ["tea"])


class StatusTest(ClientCase):
    TABLE = (
        (201, RetryLaterError, "wrong_address"),
        (204, RetryLaterError, "wrong_address"),
        (301, RetryLaterError, "wrong_address"),
        (302, RetryLaterError, "wrong_address"),
        (400, RequestRejectedError, "rejected"),
        (401, AccessRefusedError, "unauthorized"),
        (402, AccessRefusedError, "payment_required"),
        (403, AccessRefusedError, "forbidden"),
        (404, RetryLaterError, "wrong_address"),
        (405, RetryLaterError, "wrong_address"),
        (408, RetryLaterError, "timeout"),
        (409, RequestRejectedError, "rejected"),
        (413, RequestRejectedError, "too_large"),
        (418, RequestRejectedError, "rejected"),
        (422, RequestRejectedError, "rejected"),
        (425, RetryLaterError, "server_error"),
        (429, RetryLaterError, "rate_limited"),
        (500, RetryLaterError, "server_error"),
        (502, RetryLaterError, "server_error"),
        (503, RetryLaterError, "overloaded"),
        (504, RetryLaterError, "server_error"),
        (529, RetryLaterError, "server_error"),
    )

    async def test_each_status_has_its_error(self) -> None:
        for status, kind, reason in self.TABLE:
            for call in (self.recall, self.retain, self.client.check):
                with self.subTest(status=status, call=call.__name__):
                    answer = reply(status, {"detail": "no"}, location="https://other.test/")
                    error = await self.failure(answer, call=call)
                    self.assertIs(type(error), kind)
                    self.assertEqual((error.reason, error.status), (reason, status))

    async def test_server_without_a_model(self) -> None:
        """It says so with another status for each call."""
        for status in (400, 500):
            answer = reply(status, {"detail": "This operation requires an LLM provider."})
            error = await self.failure(answer)
            self.assertIsInstance(error, RequestRejectedError)
            self.assertEqual((error.reason, error.status), ("no_model", status))

    async def test_redirects_are_not_followed(self) -> None:
        """The key would go to whoever is named there."""
        await self.failure(reply(307, location="https://other.test/"))
        self.assertEqual(len(self.server.requests), 1)

    async def test_query_too_long(self) -> None:
        answer = reply(400, {"detail": "Query too long: 600 tokens exceeds maximum of 500"})
        error = await self.failure(answer)
        self.assertIsInstance(error, QueryTooLongError)
        self.assertEqual(error.reason, "query_too_long")

    async def test_message_of_an_error_holds_no_body(self) -> None:
        error = await self.failure(reply(500, {"detail": "secret hsk_key"}))
        self.assertEqual(str(error), "server_error (500)")

    async def test_answers_that_are_not_hindsights(self) -> None:
        for body in (b"<html>Sign in</html>", b"", b'{"results": [', b"[]", b"null", b"\xff{}"):
            for call in (self.recall, self.retain, self.client.check):
                with self.subTest(body=body, call=call.__name__):
                    error = await self.failure(httpx.Response(200, content=body), call=call)
                    self.assertIsInstance(error, RetryLaterError)
                    self.assertEqual(error.reason, "bad_answer")


class MissingBankTest(ClientCase):
    """404 means an empty bank only where Hindsight says so."""

    async def test_bank_that_does_not_exist_yet(self) -> None:
        missing = reply(404, {"detail": "Bank 'bot' not found"})
        self.server.script.extend([missing, missing])
        self.assertEqual(await self.recall(), [])
        self.assertFalse((await self.client.check()).bank_exists)

    async def test_bank_that_does_not_exist_is_no_success_for_a_retain(self) -> None:
        error = await self.failure(reply(404, {"detail": "Bank 'bot' not found"}), call=self.retain)
        self.assertIsInstance(error, RetryLaterError)

    async def test_404_of_something_else(self) -> None:
        path = "/v1/default/banks/bot/memories/recall"
        for name, body in {
            "router": '{"detail":"Not Found"}',
            "broken JSON": "{",
            "page": "<html>404 Not Found</html>",
            "page that names the path": f"<pre>Cannot POST {path}</pre>",
            "JSON that names the path": json.dumps({"error": "Not Found", "path": path}),
            "text that names the path": f"404 page not found: {path}",
        }.items():
            for call in (self.recall, self.client.check):
                with self.subTest(name, call=call.__name__):
                    kind = "application/json" if "{" in body else "text/html"
                    answer = httpx.Response(404, text=body, headers={"content-type": kind})
                    error = await self.failure(answer, call=call)
                    self.assertEqual(error.reason, "wrong_address")


class ListsTest(ClientCase):
    """Lists and single things, and what a careless server adds to them."""

    def only(self) -> httpx.Request:
        (request,) = self.server.requests
        return request

    async def test_memories(self) -> None:
        tags = list(SCOPE.tags)
        items = [
            {
                "id": "m1",
                "text": "tea",
                "fact_type": "world",
                "tags": tags,
                "document_id": "d1",
                "metadata": {"speakers": "#00000a #00000b"},
                "source_memory_ids": ["s1", 2],
            },
            {"id": "m2", "text": "someone else's", "tags": tags[:3]},
            {"id": "m3", "tags": tags},
            "text",
        ]
        self.server.script.append(reply(content={"items": items, "total": 7}))
        page = await self.client.memories(tags, text="te a", offset=20, limit=10)
        self.assertEqual([m.memory_id for m in page.memories], ["m1"])
        (memory,) = page.memories
        self.assertEqual((page.total, memory.kind, memory.document_id), (7, "world", "d1"))
        self.assertEqual(memory.speakers, ("#00000a", "#00000b"))
        self.assertEqual(memory.sources, ("s1", "2"))
        self.assertEqual(self.only().url.path, "/v1/default/banks/bot/memories/list")
        query = self.only().url.params
        self.assertEqual((query.get_list("tags"), query["tags_match"]), (tags, "all_strict"))
        self.assertEqual((query["q"], query["offset"], query["limit"]), ("te a", "20", "10"))
        self.assertNotIn("document_id", query)

    async def test_memories_of_one_document(self) -> None:
        self.server.script.append(reply(content={"items": [], "total": None}))
        page = await self.client.memories(SCOPE.tags, document_id="d1")
        self.assertEqual((page.memories, page.total), ((), 0))
        self.assertEqual(self.only().url.params["document_id"], "d1")
        self.assertNotIn("q", self.only().url.params)

    async def test_documents(self) -> None:
        items = [
            {"id": "d1", "tags": list(SCOPE.tags)},
            {"id": "d2", "tags": []},
            {"id": "d3"},
            None,
        ]
        self.server.script.append(reply(content={"items": items}))
        self.assertEqual(await self.client.documents(SCOPE.tags, offset=100), ["d1"])
        self.assertEqual(self.only().url.params["tags_match"], "all_strict")
        self.assertEqual(self.only().url.params["offset"], "100")

    async def test_page_of_documents(self) -> None:
        items = [
            {
                "id": "d1",
                "tags": list(SCOPE.tags),
                "created_at": "2026-03-05T00:00:00Z",
                "retain_params": {"event_date": "2026-03-04T20:30:05+08:00"},
                "document_metadata": {"turns": 1},
            },
            {"id": "d2", "tags": []},
            {"tags": list(SCOPE.tags)},
            None,
        ]
        self.server.script.append(reply(content={"items": items, "total": 9}))
        page = await self.client.document_page(SCOPE.tags, offset=3, limit=4)
        self.assertEqual((page.total, page.length), (9, 4))
        (document,) = page.documents
        self.assertEqual(
            document,
            ListedDocument(
                "d1",
                frozenset(SCOPE.tags),
                "2026-03-04T20:30:05+08:00",
                datetime(2026, 3, 5, tzinfo=UTC),
                {"turns": "1"},
            ),
        )
        query = self.only().url.params
        self.assertEqual((query["offset"], query["limit"]), ("3", "4"))

    def row(self, memory_id: str, hour: int = 0, **more: Any) -> dict[str, Any]:
        when = f"2026-03-04T{hour:02}:00:00Z"
        tags = list(SCOPE.tags)
        return {"id": memory_id, "text": "tea", "tags": tags, "mentioned_at": when, **more}

    async def test_many_memories_in_few_requests(self) -> None:
        rows = [self.row(str(n), document_id=f"d{n % 500}") for n in range(3 * LONG_PAGE)]
        rows[7]["tags"] = []
        self.server.otherwise = lambda request: reply(
            content={"items": rows[int(request.url.params["offset"]) :][:LONG_PAGE]}
        )
        wanted = [str(n) for n in range(0, 2 * LONG_PAGE, 5)]
        found = await self.client.memories_by_id(SCOPE.tags, [*wanted, "7"])
        self.assertEqual({memory.memory_id for memory in found}, set(wanted))
        self.server.requests.clear()
        await self.client.memories_by_id(SCOPE.tags, wanted)
        self.assertEqual(len(self.server.requests), 2)

    async def test_no_ids_no_request(self) -> None:
        self.assertEqual(await self.client.memories_by_id(SCOPE.tags, []), [])
        self.assertEqual(self.server.requests, [])

    async def test_very_many_memories_are_bounded(self) -> None:
        rows = [self.row(str(n)) for n in range(LONG_PAGE)]
        self.server.otherwise = lambda _: reply(content={"items": rows})
        await self.client.memories_by_id(SCOPE.tags, ["x"])
        self.assertEqual(len(self.server.requests), MAX_LISTED // LONG_PAGE)
        self.assertLess(MAX_LISTED // LONG_PAGE, 10)

    async def test_without_tags_nothing_is_sent(self) -> None:
        for tags in NO_TAGS:
            for call in (
                lambda: self.client.memories(tags),
                lambda: self.client.documents(tags),
                lambda: self.client.document_page(tags),
                lambda: self.client.memories_by_id(tags, ["m"]),
                lambda: self.client.retag_document("d", tags),
                lambda: self.client.reflect("tea", tags),
                lambda: self.client.create_profile("p", tags, "who"),
                lambda: self.client.retain_now(item(tags=tags)),
            ):
                with self.subTest(tags=tags), self.assertRaises(ValueError):
                    await call()
        self.assertEqual(self.server.requests, [])

    async def test_list_that_is_none(self) -> None:
        for call in (
            lambda: self.client.memories(SCOPE.tags),
            lambda: self.client.documents(SCOPE.tags),
            lambda: self.client.operations("pending"),
        ):
            for content in ({}, {"items": 5, "operations": {}}):
                error = await self.failure(reply(content=content), call=call)
                self.assertEqual(error.reason, "bad_answer")

    async def test_bank_that_does_not_exist_yet_is_empty(self) -> None:
        self.server.otherwise = lambda _: reply(404, {"detail": "Bank 'bot' not found"})
        self.assertEqual((await self.client.memories(SCOPE.tags)).memories, ())
        self.assertEqual(await self.client.documents(SCOPE.tags), [])
        self.assertEqual(await self.client.operations("pending"), [])
        self.assertEqual(await self.client.config(), {})

    async def test_operations_on_all_pages(self) -> None:
        rows = [
            {"id": f"o{n}", "document_id": None if n else "d", "status": "pending"}
            for n in range(PAGE_SIZE)
        ]
        pages = [{"operations": rows}, {"operations": [*rows[:1], "text"]}]
        self.server.script.extend(reply(content=page) for page in pages)
        found = await self.client.operations("pending")
        self.assertEqual(len(found), PAGE_SIZE + 1)
        self.assertEqual(found[0], Operation("o0", "d", "pending"))
        self.assertEqual(found[1].document_id, "")
        offsets = [request.url.params["offset"] for request in self.server.requests]
        self.assertEqual(offsets, ["0", str(PAGE_SIZE)])

    async def test_operations_are_bounded(self) -> None:
        rows = [{"id": "o"} for _ in range(PAGE_SIZE)]
        self.server.otherwise = lambda _: reply(content={"operations": rows})
        await self.client.operations("pending")
        self.assertEqual(len(self.server.requests), MAX_OPERATIONS // PAGE_SIZE)


class ThingsTest(ClientCase):
    MISSING = reply(404, {"detail": "Document 'x' not found"})

    def request(self) -> tuple[str, str]:
        request = self.server.requests[-1]
        return request.method, request.url.raw_path.decode().removeprefix("/v1/default/banks/bot/")

    async def test_document(self) -> None:
        content = {
            "original_text": "a\nb",
            "tags": ["t"],
            "retain_params": {"context": "c", "event_date": "2026-01-02T00:00:00+08:00"},
            "document_metadata": {"turns": 3},
            "created_at": "later",
        }
        self.server.script.append(reply(content=content))
        document = await self.client.document("a/b 茶")
        self.assertEqual(self.request(), ("GET", "documents/a%2Fb%20%E8%8C%B6"))
        self.assertEqual(
            document,
            StoredDocument(
                "a/b 茶",
                "a\nb",
                "c",
                "2026-01-02T00:00:00+08:00",
                {"turns": "3"},
                frozenset(["t"]),
            ),
        )

    async def test_document_of_which_little_is_known(self) -> None:
        content: dict[str, Any] = {
            "created_at": "2026-01-02",
            "retain_params": None,
            "document_metadata": [],
        }
        self.server.script.append(reply(content=content))
        document = await self.client.document("d")
        self.assertEqual(document, StoredDocument("d", "", "", "2026-01-02", {}, frozenset()))

    async def test_other_tags(self) -> None:
        self.assertTrue(await self.client.retag_document("d/1", SCOPE.tags))
        self.assertEqual(self.request(), ("PATCH", "documents/d%2F1"))
        self.assertEqual(self.server.bodies, [{"tags": list(SCOPE.tags)}])

    async def test_what_is_gone(self) -> None:
        self.server.otherwise = lambda _: self.MISSING
        self.assertIsNone(await self.client.document("d"))
        self.assertIsNone(await self.client.memory("m"))
        self.assertIsNone(await self.client.profile("p"))
        self.assertFalse(await self.client.delete_document("d"))
        self.assertFalse(await self.client.retag_document("d", SCOPE.tags))
        await self.client.delete_profile("p")
        await self.client.cancel(Operation("o", "d", "pending"))

    async def test_404_of_something_else_is_not_gone(self) -> None:
        for call in (
            lambda: self.client.document("d"),
            lambda: self.client.delete_document("d"),
            lambda: self.client.memory("m"),
        ):
            error = await self.failure(reply(404, {"detail": "Not Found"}), call=call)
            self.assertEqual(error.reason, "wrong_address")

    async def test_deletions_and_ids_are_quoted(self) -> None:
        self.assertTrue(await self.client.delete_document("../x"))
        self.assertEqual(self.request(), ("DELETE", "documents/..%2Fx"))
        await self.client.delete_profile("p/?")
        self.assertEqual(self.request(), ("DELETE", "mental-models/p%2F%3F"))
        await self.client.memory("m#1")
        self.assertEqual(self.request(), ("GET", "memories/m%231"))
        await self.client.cancel(Operation("o/", "d", "pending"))
        self.assertEqual(self.request(), ("DELETE", "operations/o%2F"))

    async def test_operation_that_has_ended_is_no_error(self) -> None:
        self.server.script.extend([reply(409), reply(400)])
        for _ in range(2):
            await self.client.cancel(Operation("o", "d", "pending"))
        operation = Operation("o", "d", "pending")
        await self.failure(reply(500), call=lambda: self.client.cancel(operation))

    async def test_profile(self) -> None:
        for content, text in (({"content": "tea"}, "tea"), ({"content": None}, ""), ({}, "")):
            self.server.script.append(reply(content=content))
            self.assertEqual(await self.client.profile("p"), text)
        await self.client.create_profile("p", SCOPE.tags, "who")
        self.assertEqual(self.request(), ("POST", "mental-models"))
        body = self.server.bodies[-1]
        self.assertEqual((body["id"], body["source_query"]), ("p", "who"))
        self.assertEqual(body["tags"], list(SCOPE.tags))

    async def test_config(self) -> None:
        self.server.script.append(reply(content={"config": {"a": 1}}))
        self.assertEqual(await self.client.config(), {"a": 1})
        await self.client.configure({"a": 2})
        self.assertEqual(self.request(), ("PATCH", "config"))
        self.assertEqual(self.server.bodies[-1], {"updates": {"a": 2}})

    async def test_retain_now(self) -> None:
        await self.client.retain_now(item())
        body = self.server.bodies[-1]
        self.assertFalse(body["async"])
        self.assertNotIn("operation_id", body)
        self.assertEqual(body["items"], [item().body()])

    async def test_reflect(self) -> None:
        ours, theirs = list(SCOPE.tags), list(scope_of(private_origin("2")).tags)
        basis = [{"text": "tea", "tags": ours}, {"text": "secret", "tags": theirs}, {"tags": ours}]
        for content, text, memories in (
            ({"text": "yes", "based_on": {"memories": basis}}, "yes", ["tea"]),
            ({"text": None, "based_on": None}, "", []),
            ({"based_on": {"memories": None}}, "", []),
        ):
            self.server.script.append(reply(content=content))
            answer = await self.client.reflect("tea?", SCOPE.tags)
            self.assertEqual((answer.text, [m.text for m in answer.memories]), (text, memories))
        self.assertEqual(
            self.server.bodies[0],
            {
                "query": "tea?",
                "tags": ours,
                "tags_match": "all_strict",
                "include": {"facts": {}},
                "exclude_mental_models": True,
            },
        )


class RetryAfterTest(ClientCase):
    NOW = datetime(2026, 3, 4, 12, 0, 0, tzinfo=UTC)

    async def after(self, value: str | None, status: int = 429, **headers: str) -> float | None:
        if value is not None:
            headers["retry_after"] = value
        error = await self.failure(reply(status, **headers), call=self.client.check)
        self.assertIsInstance(error, RetryLaterError)
        assert isinstance(error, RetryLaterError)
        return error.after_seconds

    async def test_seconds(self) -> None:
        for value, expected in (
            ("0", 0.0),
            ("7", 7.0),
            (" 7 ", 7.0),
            ("86400", MAX_RETRY_AFTER_SECONDS),
            ("9" * 400, MAX_RETRY_AFTER_SECONDS),
        ):
            for status in (429, 503, 500):
                with self.subTest(value=value[:10], status=status):
                    self.assertEqual(await self.after(value, status), expected)

    async def test_date_counts_from_the_servers_own_clock(self) -> None:
        for value, expected in (
            (datetime(2026, 3, 4, 12, 0, 30, tzinfo=UTC), 30.0),
            (datetime(2026, 3, 4, 11, 0, 0, tzinfo=UTC), 0.0),
            (datetime(2026, 3, 5, 12, 0, 0, tzinfo=UTC), MAX_RETRY_AFTER_SECONDS),
        ):
            with self.subTest(value=value):
                date = format_datetime(self.NOW, usegmt=True)
                given_date = format_datetime(value, usegmt=True)
                self.assertEqual(await self.after(given_date, date=date), expected)

    async def test_date_without_a_date_header(self) -> None:
        self.assertEqual(
            await self.after("Wed, 04 Mar 2099 12:00:00 -0000"), MAX_RETRY_AFTER_SECONDS
        )
        self.assertEqual(await self.after("Wed, 04 Mar 2009 12:00:00 GMT"), 0.0)

    async def test_date_beside_a_broken_date_header(self) -> None:
        value = "Wed, 04 Mar 2099 12:00:00 GMT"
        self.assertEqual(await self.after(value, date="now"), MAX_RETRY_AFTER_SECONDS)

    async def test_garbage_is_none(self) -> None:
        for value in (
            None,
            "",
            "soon",
            "-5",
            "1.5",
            "nan",
            "Wed, 99 Mar 2026",
            "Wed, 04 Mar 99999 12:00:00 GMT",
            "Wed, 04 Mar 2026 12:00:00 +9999999999999999999999",
        ):
            with self.subTest(value=value):
                self.assertIsNone(await self.after(value))


class PatienceTest(ClientCase):
    """A recall that the server has asked to wait with is not sent before its time."""

    def setUp(self) -> None:
        super().setUp()
        self.clock = Clock()
        self.client = self.open(clock=self.clock)

    async def test_no_recall_before_the_time(self) -> None:
        for status, reason in ((429, "rate_limited"), (503, "overloaded"), (500, "server_error")):
            with self.subTest(status=status):
                self.server.requests.clear()
                error = await self.failure(reply(status, retry_after="30"))
                self.assertFalse(error.local)
                self.clock.now += 10
                error = await self.failure()
                assert isinstance(error, RetryLaterError)
                self.assertEqual((error.reason, error.status), (reason, status))
                self.assertEqual(error.after_seconds, 20)
                self.assertTrue(error.local)
                self.assertEqual(len(self.server.requests), 1)
                self.clock.now += 20
                await self.recall()
                self.assertEqual(len(self.server.requests), 2)

    async def test_other_requests_go_on(self) -> None:
        await self.failure(reply(429, retry_after="30"))
        await self.retain()
        await self.client.check()

    async def test_without_a_time_the_next_one_is_sent(self) -> None:
        for answer in (reply(429), reply(503, retry_after="0"), httpx.ConnectError("refused")):
            await self.failure(answer)
            await self.recall()

    async def test_what_another_request_was_told_does_not_hold_recalls_back(self) -> None:
        await self.failure(reply(429, retry_after="30"), call=self.retain)
        await self.recall()

    async def test_those_in_line_are_held_back_too(self) -> None:
        self.server.gate.clear()
        self.server.otherwise = lambda _: reply(503, retry_after="9")
        recalls = [asyncio.create_task(self.recall()) for _ in range(MAX_RECALLS + 5)]
        await until(lambda: self.server.waiting == MAX_RECALLS)
        self.server.gate.set()
        errors = await asyncio.gather(*recalls, return_exceptions=True)
        self.assertEqual(len(self.server.requests), MAX_RECALLS)
        local = [error for error in errors if isinstance(error, RetryLaterError) and error.local]
        self.assertEqual(len(local), 5)


class DeadlineTest(ClientCase):
    """Whose fault it is that the time ran out."""

    async def soon(self) -> float:
        return asyncio.get_running_loop().time() + 0.01

    async def test_a_server_that_does_not_answer(self) -> None:
        self.server.gate.clear()
        self.addCleanup(self.server.gate.set)
        deadline = await self.soon()
        error = await self.failure(call=lambda: self.recall(deadline=deadline))
        self.assertIsInstance(error, RetryLaterError)
        self.assertEqual((error.reason, error.local), ("deadline", False))
        self.assertEqual(self.server.cancelled, 1)

    async def test_a_line_that_does_not_move(self) -> None:
        self.server.gate.clear()
        others = [asyncio.create_task(self.recall()) for _ in range(MAX_RECALLS)]
        await until(lambda: self.server.waiting == MAX_RECALLS)
        deadline = await self.soon()
        error = await self.failure(call=lambda: self.recall(deadline=deadline))
        self.assertEqual((error.reason, error.local), ("busy_here", True))
        self.assertEqual(len(self.server.requests), MAX_RECALLS)
        self.server.gate.set()
        await asyncio.gather(*others)
        await self.recall()

    async def test_a_line_that_left_the_server_no_time(self) -> None:
        now = 0.0
        self.server.gate.clear()
        self.addCleanup(self.server.gate.set)
        for waited, asked, reason in ((4.9, 0.2, "busy_here"), (0.1, 5.0, "deadline")):
            loop = asyncio.get_running_loop()
            with self.subTest(waited=waited), mock.patch.object(loop, "time", lambda: now):
                self.server.requests.clear()
                others = [asyncio.create_task(self.recall()) for _ in range(MAX_RECALLS)]
                await until(lambda: self.server.waiting == MAX_RECALLS)
                late = asyncio.create_task(self.recall(deadline=now + 5.0))
                for _ in range(10):
                    await asyncio.sleep(0)
                now += waited
                others[0].cancel()
                await until(lambda: len(self.server.requests) == MAX_RECALLS + 1)
                now += asked
                with self.assertRaises(RetryLaterError) as caught:
                    await late
                self.assertEqual(caught.exception.reason, reason)
                for other in others:
                    other.cancel()
                await asyncio.wait(others)

    async def test_cancelled_from_outside_is_no_deadline(self) -> None:
        self.server.gate.clear()
        self.addCleanup(self.server.gate.set)
        deadline = asyncio.get_running_loop().time() + 60
        recall = asyncio.create_task(self.recall(deadline=deadline))
        await until(lambda: self.server.waiting)
        recall.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await recall


class ClosedTest(ClientCase):
    async def test_a_request_after_the_end_has_a_name(self) -> None:
        await self.client.aclose()
        for call in (self.recall, self.retain, self.client.check):
            error = await self.failure(call=call)
            self.assertIsInstance(error, RetryLaterError)
            self.assertEqual((error.reason, error.local), ("closing", True))

    async def test_a_request_that_the_end_interrupts(self) -> None:
        async def closes(request: httpx.Request) -> httpx.Response:
            await self.client.aclose()
            raise httpx.ReadError("closed")

        self.client = HindsightClient(
            api_base="http://hindsight.test",
            api_key="hsk_key",
            bank_id="bot",
            clock=Clock(),
            transport=httpx.MockTransport(closes),
        )
        self.assertEqual((await self.failure(call=self.client.check)).reason, "closing")

    async def test_other_errors_are_not_hidden(self) -> None:
        self.server.script.append(RuntimeError("a fault of ours"))
        with self.assertRaises(RuntimeError):
            await self.client.check()


class HeaderFuzzTest(unittest.TestCase):
    @hypothesis_settings(database=None, deadline=None)
    @given(value=st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40))
    def test_no_header_breaks_the_translation(self, value: str) -> None:
        error = asyncio.run(self.error_after(value))
        self.assertTrue(
            error.after_seconds is None or 0 <= error.after_seconds <= MAX_RETRY_AFTER_SECONDS
        )

    async def error_after(self, value: str) -> RetryLaterError:
        server = FakeServer()
        server.script.append(reply(429, retry_after=value))
        client = server.client()
        try:
            with self.assertRaises(RetryLaterError) as caught:
                await client.check()
        finally:
            await client.aclose()
        return caught.exception


class ConnectionTest(ClientCase):
    async def test_dropped_connection_is_tried_once_more(self) -> None:
        for error in (
            httpx.RemoteProtocolError("dropped"),
            httpx.ReadError("dropped"),
            httpx.WriteError("dropped"),
        ):
            with self.subTest(error=error):
                self.server.requests.clear()
                self.server.script.extend([error, reply()])
                await self.retain()
                first, second = self.server.requests
                self.assertEqual(first.content, second.content)

    async def test_dropped_twice_is_unreachable(self) -> None:
        dropped = httpx.RemoteProtocolError("dropped")
        error = await self.failure(dropped, dropped)
        self.assertIsInstance(error, RetryLaterError)
        self.assertEqual((error.reason, error.status), ("unreachable", None))
        self.assertEqual(len(self.server.requests), 2)

    async def test_other_faults_are_not_repeated(self) -> None:
        for fault, reason in (
            (httpx.ConnectError("refused"), "unreachable"),
            (httpx.ProxyError("proxy"), "proxy_error"),
            (httpx.DecodingError("gzip"), "unreachable"),
            (httpx.ConnectTimeout("slow"), "timeout"),
            (httpx.ReadTimeout("slow"), "timeout"),
            (httpx.WriteTimeout("slow"), "timeout"),
            (httpx.PoolTimeout("busy"), "timeout"),
        ):
            with self.subTest(fault=fault):
                self.server.requests.clear()
                error = await self.failure(fault)
                self.assertIsInstance(error, RetryLaterError)
                self.assertEqual(error.reason, reason)
                self.assertEqual(len(self.server.requests), 1)

    def test_idle_connections_end_before_a_router_forgets_them(self) -> None:
        self.assertTrue(60 < KEEPALIVE_SECONDS < 300)

    async def test_timeout_after_a_drop(self) -> None:
        error = await self.failure(httpx.ReadError("dropped"), httpx.ReadTimeout("slow"))
        self.assertEqual(error.reason, "timeout")


class CrowdTest(ClientCase):
    """Many chats write at once: the pool, which slows down with its queue, gets a few of them."""

    async def asyncSetUp(self) -> None:
        self.server.gate.clear()
        self.recalls = [asyncio.create_task(self.recall()) for _ in range(3 * MAX_RECALLS)]
        self.addCleanup(self.server.gate.set)
        await until(lambda: self.server.waiting == MAX_RECALLS)
        for _ in range(100):
            await asyncio.sleep(0)

    async def test_all_are_answered_and_few_at_a_time(self) -> None:
        self.assertEqual(self.server.waiting, MAX_RECALLS)
        self.server.gate.set()
        self.assertEqual(await asyncio.gather(*self.recalls), [[]] * 3 * MAX_RECALLS)
        self.assertEqual(len(self.server.requests), 3 * MAX_RECALLS)

    async def test_what_is_given_up_makes_room_for_the_next(self) -> None:
        under_way, waiting = self.recalls[0], self.recalls[MAX_RECALLS]
        for recall in (waiting, under_way):
            recall.cancel()
        await until(lambda: len(self.server.requests) == MAX_RECALLS + 1)
        self.server.gate.set()
        await asyncio.wait(self.recalls)
        self.assertEqual([r for r in self.recalls if r.cancelled()], [under_way, waiting])
        self.assertEqual(len(self.server.requests), 3 * MAX_RECALLS - 1)

    async def test_other_requests_do_not_wait_for_them(self) -> None:
        retain = asyncio.create_task(self.retain())
        await until(lambda: self.server.waiting == MAX_RECALLS + 1)
        self.server.gate.set()
        await asyncio.gather(retain, *self.recalls)


class CheckTest(ClientCase):
    async def test_asks_for_one_tag_and_takes_the_time(self) -> None:
        class Passing(Clock):
            def monotonic(self) -> float:
                self.now += 0.25
                return self.now

        self.client = self.open(clock=Passing())
        health = await self.client.check()
        self.assertEqual((health.bank_exists, health.seconds), (True, 0.25))
        (request,) = self.server.requests
        self.assertEqual(request.method, "GET")
        self.assertEqual(
            str(request.url), "http://hindsight.test/v1/default/banks/bot/tags?limit=1"
        )

    async def test_version_from_either_place(self) -> None:
        told = reply(content={"api_version": "1.1.0"})
        cases: tuple[tuple[list[httpx.Response | Exception], str, list[str]], ...] = (
            ([told], "1.1.0", ["/v1/version"]),
            ([reply(404), told], "1.1.0", ["/v1/version", "/version"]),
            ([reply(), told], "1.1.0", ["/v1/version", "/version"]),
            ([httpx.ConnectError("refused"), reply(500)], "", ["/v1/version", "/version"]),
            ([httpx.Response(200, text="<html>"), reply()], "", ["/v1/version", "/version"]),
        )
        for answers, version, paths in cases:
            with self.subTest(answers=answers):
                self.server.requests.clear()
                self.server.script.extend(answers)
                self.assertEqual(await self.client.version(), version)
                self.assertEqual([r.url.path for r in self.server.requests], paths)
