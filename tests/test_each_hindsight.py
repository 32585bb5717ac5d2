"""What the client makes of the answers of both Hindsights, as `record.py` took them from servers.

These are the calls whose answers differ from one release to the next, or are easily misread.
"""

from __future__ import annotations

import unittest
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.hindsight_bank import RETAIN
from astrbot_plugin_hindsight_memory.hindsight_types import (
    RecalledMemory,
    RecallOptions,
    RequestRejectedError,
)
from test_older_hindsight import CAT, PEANUTS, TAGS, WHEN, RecordedTest, item

SET = frozenset(TAGS)
NEW_TAGS = (*TAGS[:3], "umo:u2")
AT = datetime.fromisoformat(WHEN)


class Unknown(RecallOptions):
    """Asks for what no server knows."""

    def body(self) -> dict[str, Any]:
        body = super().body()
        floors = {**body.get("min_scores", {}), "unheard_of": 0.5}
        return {**body, "min_scores": floors, "unheard_of": {"semantic": 0}}


class OlderTest(RecordedTest):
    model = "stub"

    async def test_failed_retain_is_found_retried_and_forgotten(self) -> None:
        if self.source:
            await self.source.failing(429)
        await self.client.retain(item("d-1", PEANUTS), operation_id=self.operation_id)
        await self.settled()
        (failed,) = await self.client.operations("failed", kind=RETAIN)
        self.assertEqual((failed.document_id, failed.failure), ("d-1", "model_limited"))
        self.assertEqual((failed.kind, failed.status), (RETAIN, "failed"))
        whole = await self.client.operation(self.operation_id)
        assert whole
        self.assertEqual((whole.status, whole.children), ("failed", (failed.operation_id,)))
        if self.source:
            await self.source.failing(None)
        self.assertTrue(await self.client.retry_operation(failed.operation_id))
        await self.settled()
        self.assertEqual(await self.client.documents(TAGS), ["d-1"])
        self.assertFalse(await self.client.retry_operation(failed.operation_id))
        self.assertEqual(await self.client.operations("failed", kind=RETAIN), [])
        self.assertTrue(await self.client.forget_operation(failed.operation_id))
        self.assertFalse(await self.client.forget_operation(failed.operation_id))
        self.assertFalse(await self.client.retry_operation(failed.operation_id))
        self.assertIsNone(await self.client.operation(failed.operation_id))

    async def test_queued_retain_cannot_be_forgotten(self) -> None:
        if self.source:
            await self.source.failing(500)
        await self.client.retain(item("d-1", PEANUTS), operation_id=self.operation_id)
        with self.assertRaises(RequestRejectedError):
            await self.client.forget_operation(self.operation_id)
        if self.source:
            await self.source.failing(None)

    async def ask(self, options: RecallOptions) -> dict[str, RecalledMemory]:
        found = await self.client.recall(
            "花生过敏",
            tags=TAGS,
            budget="mid",
            max_tokens=1024,
            query_timestamp=WHEN,
            options=options,
        )
        for memory in found:
            self.assertIsNone(memory.reranker)
            self.assertIsNotNone(memory.semantic)
        return {memory.kind: memory for memory in found}

    async def made_of(self, document_id: str) -> list[RecalledMemory]:
        """All memories of the chat are listed, as for `memories_by_id`."""
        listed = [memory async for memory in self.client._all_memories(TAGS)]
        return [memory for memory in listed if memory.document_id == document_id]

    async def test_all_that_can_be_asked_for(self) -> None:
        await self.stored(item("d-1", PEANUTS))
        window = (AT - timedelta(days=1), AT + timedelta(days=1))
        options = RecallOptions(min_semantic=-1.0, window=window, chunk_tokens=500)
        found = await self.ask(replace(options, with_sources=True))
        (fact,) = await self.made_of("d-1")
        self.assertEqual(found["observation"].sources, (fact.memory_id,))
        self.assertEqual(found["observation"].chunk, PEANUTS)

    async def test_what_is_asked_besides_hides_nothing(self) -> None:
        """A window is a hint, and a key that a server does not know is passed over."""
        await self.stored(item("d-1", PEANUTS), item("d-2", CAT))
        plain = await self.recall("花生过敏")
        day = timedelta(days=1)
        found = [await self.recall("花生过敏", budget=budget) for budget in ("low", "high")]
        for options in (
            RecallOptions(window=(AT - day, AT + day)),
            RecallOptions(window=(AT + day, AT + 2 * day)),
            Unknown(),
            Unknown(window=(AT - day, AT + day), min_semantic=-1.0),
        ):
            found.append(await self.recall("花生过敏", options=options))
        ids = {memory.memory_id for memory in plain}
        self.assertEqual(len(ids), len(plain))
        for memories in found:
            self.assertEqual({memory.memory_id for memory in memories}, ids)

    async def test_only_what_is_alike(self) -> None:
        await self.stored(item("d-1", PEANUTS))
        self.assertEqual(await self.ask(RecallOptions(min_semantic=0.999)), {})
        found = await self.ask(RecallOptions(with_sources=True))
        self.assertEqual(len(found["observation"].sources), 1)
        self.assertEqual(found["observation"].chunk, "")

    async def test_words_of_a_fact(self) -> None:
        await self.stored(item("d-0", CAT))
        await self.client.configure({"enable_auto_consolidation": False})
        await self.stored(item("d-1", PEANUTS))
        found = await self.client.recall(
            "花生过敏",
            tags=TAGS,
            budget="mid",
            max_tokens=1024,
            query_timestamp=WHEN,
            options=RecallOptions(chunk_tokens=500),
        )
        chunks = {memory.document_id: memory.chunk for memory in found}
        self.assertEqual(chunks["d-1"], PEANUTS)

    async def test_lists_of_much(self) -> None:
        await self.stored(item("d-1", PEANUTS), item("d-2", CAT))
        page = await self.client.document_page(TAGS)
        self.assertEqual((page.total, page.length), (2, 2))
        document = next(one for one in page.documents if one.document_id == "d-1")
        self.assertEqual(document.metadata, item("d-1").metadata)
        self.assertEqual((datetime.fromisoformat(document.timestamp), document.tags), (AT, SET))
        (cat,) = await self.made_of("d-2")
        self.assertIn("团子", cat.text)
        self.assertEqual(await self.client.memories_by_id(TAGS, [cat.memory_id]), [cat])

    async def test_other_tags(self) -> None:
        await self.stored(item("d-1", PEANUTS))
        self.assertTrue(await self.client.retag_document("d-1", NEW_TAGS))
        self.assertFalse(await self.client.retag_document("d-2", NEW_TAGS))
        self.assertEqual(await self.client.documents(TAGS), [])
        self.assertEqual(await self.client.documents(NEW_TAGS), ["d-1"])
        await self.settled()
        self.assertEqual((await self.client.memories(TAGS)).total, 0)
        self.assertEqual((await self.client.memories(NEW_TAGS)).total, 2)

    async def test_whole_bank(self) -> None:
        await self.stored(item("d-1", PEANUTS), item("d-2", CAT))
        stats = await self.client.stats(refresh=True)
        self.assertEqual(stats.documents, 2)
        self.assertEqual((stats.pending_consolidation, stats.failed_consolidation), (0, 0))
        self.assertEqual(set(await self.client.tags("scope:*")), {"scope:group"})
        scopes = await self.client.observation_scopes()
        self.assertEqual(set(scopes), {SET})
        self.assertEqual(await self.client.document_scopes(), Counter({SET: 2}))
        self.assertEqual(await self.client.untagged_memories(), 0)
        self.assertEqual(await self.client.recover_consolidation(), 0)
        await self.client.consolidate()
        use = await self.client.model_use()
        assert use
        self.assertGreater(min(use.calls, use.input_tokens, use.output_tokens), 0)
        self.assertEqual(use.errors, 0)

    async def test_bank_that_is_not_there_has_no_figures(self) -> None:
        self.assertEqual((await self.client.stats()).documents, 0)
        self.assertEqual(await self.client.tags(), {})
        self.assertEqual(await self.client.observation_scopes(), Counter())
        self.assertEqual(await self.client.document_scopes(), Counter())
        self.assertEqual(await self.client.untagged_memories(), 0)
        self.assertEqual(await self.client.operations(), [])
        self.assertIsNone(await self.client.operation(self.operation_id))
        self.assertFalse(await self.client.forget_operation(self.operation_id))
        self.assertIsNone(await self.client.model_use())


class NewerTest(OlderTest):
    release = "1.1"


if __name__ == "__main__":
    unittest.main()
