"""What the client makes of the answers of Hindsight 0.9, as `record.py` took them from a server."""

from __future__ import annotations

import unittest
import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar, Literal, Protocol

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.commands_operating import BANK_SETTINGS
from astrbot_plugin_hindsight_memory.hindsight_client import HindsightClient
from astrbot_plugin_hindsight_memory.hindsight_types import (
    NO_OPTIONS,
    AccessRefusedError,
    HindsightError,
    Operation,
    QueryTooLongError,
    RecalledMemory,
    RecallOptions,
    RequestRejectedError,
    RetainItem,
)
from support import Clock
from tape import Player, Recorder

TAGS = ("scope:group", "platform:aiocqhttp", "group:g1", "umo:u1")
WHEN = "2026-03-04T20:30:05+08:00"
PEANUTS = f"小明#3fa2c1 ({WHEN}): 我对花生过敏"
CAT = f"小红#aa11bb ({WHEN}): 我养了一只叫团子的猫"


def item(document_id: str, *lines: str) -> RetainItem:
    metadata = {"plugin": "test", "turns": "1", "speakers": "#3fa2c1"}
    return RetainItem("\n".join(lines), document_id, "QQ group chat", WHEN, metadata, TAGS)


class Source(Protocol):
    """The server that tests are recorded from."""

    url: str
    api_key: str

    async def settled(self, bank_id: str) -> None: ...

    async def written(self, bank_id: str, profile_id: str) -> None: ...

    async def failing(self, status: int | None) -> None: ...


class RecordedTest(unittest.IsolatedAsyncioTestCase):
    """Plays back what was recorded; with a `source` it records instead."""

    release: ClassVar[str] = "0.9"
    model: ClassVar[Literal["none", "stub"]] = "none"
    source: ClassVar[Source | None] = None

    async def asyncSetUp(self) -> None:
        self.bank_id = self._testMethodName
        self.operation_id = str(uuid.uuid5(uuid.NAMESPACE_URL, self.bank_id))
        self.tape = Recorder() if self.source else Player(self.release, self.bank_id)
        self.client = self.client_with(self.source.api_key if self.source else "hsk_key")
        self.addAsyncCleanup(self.client.aclose)

    def client_with(self, key: str) -> HindsightClient:
        url = self.source.url if self.source else "http://hindsight"
        return HindsightClient(
            api_base=url, api_key=key, bank_id=self.bank_id, clock=Clock(), transport=self.tape
        )

    async def asyncTearDown(self) -> None:
        if isinstance(self.tape, Recorder):
            self.tape.save(self.release, self.bank_id)
        else:
            self.assertEqual(self.tape.left, [])

    async def settled(self) -> None:
        """Awaits that the server has processed what it was given."""
        if self.source:
            await self.source.settled(self.bank_id)

    async def recall(
        self,
        query: str,
        tags: Sequence[str] = TAGS,
        budget: str = "mid",
        options: RecallOptions = NO_OPTIONS,
    ) -> list[RecalledMemory]:
        return await self.client.recall(
            query,
            tags=tags,
            budget=budget,
            max_tokens=1024,
            query_timestamp=WHEN,
            options=options,
        )

    async def stored(self, *items: RetainItem) -> None:
        for one in items:
            await self.client.retain_now(one)
        await self.settled()


class WithoutModelTest(RecordedTest):
    async def test_version(self) -> None:
        self.assertEqual(await self.client.version(), "0.9.2")

    async def test_bank_that_does_not_exist_yet(self) -> None:
        await self.client.check()
        self.assertEqual(await self.recall("花生"), [])
        self.assertEqual((await self.client.memories(TAGS)).total, 0)
        self.assertEqual(await self.client.documents(TAGS), [])
        self.assertEqual(await self.client.operations("pending"), [])
        self.assertIsNone(await self.client.document("d-1"))
        self.assertIsNone(await self.client.memory("6f1c2a5e-0000-4000-8000-000000000000"))
        self.assertIsNone(await self.client.profile("abc"))
        self.assertFalse(await self.client.delete_document("d-1"))
        await self.client.delete_profile("abc")

    async def test_wrong_key(self) -> None:
        client = self.client_with("hsk_wrong")
        self.addAsyncCleanup(client.aclose)
        with self.assertRaises(AccessRefusedError) as caught:
            await client.check()
        self.assertEqual(caught.exception.reason, "unauthorized")

    async def test_sent_twice_is_stored_once(self) -> None:
        for _ in range(2):
            await self.client.retain(item("d-1", PEANUTS), operation_id=self.operation_id)
            await self.settled()
        self.assertEqual(await self.client.documents(TAGS), ["d-1"])
        self.assertEqual((await self.client.memories(TAGS)).total, 1)

    async def test_recall(self) -> None:
        await self.stored(item("d-1", PEANUTS), item("d-2", CAT))
        found = {memory.document_id: memory for memory in await self.recall("花生过敏")}
        peanuts = found["d-1"]
        self.assertIn("我对花生过敏", peanuts.text)
        self.assertLessEqual(set(TAGS), peanuts.tags)
        self.assertEqual(peanuts.mentioned_at, datetime.fromisoformat(WHEN))
        self.assertEqual(await self.recall("花生过敏", (*TAGS[:3], "umo:u2")), [])

    async def test_documents_come_back_as_they_were(self) -> None:
        await self.stored(item("d-1", PEANUTS, CAT))
        document = await self.client.document("d-1")
        assert document is not None
        self.assertEqual(document.text, f"{PEANUTS}\n{CAT}")
        self.assertEqual(document.context, "QQ group chat")
        self.assertEqual(datetime.fromisoformat(document.timestamp), datetime.fromisoformat(WHEN))
        self.assertEqual(document.metadata, item("d-1").metadata)
        self.assertLessEqual(set(TAGS), document.tags)

    async def test_list_and_delete(self) -> None:
        await self.stored(item("d-1", PEANUTS), item("d-2", CAT))
        page = await self.client.memories(TAGS, text="团子")
        self.assertEqual([memory.document_id for memory in page.memories], ["d-2"])
        one = await self.client.memory(page.memories[0].memory_id)
        assert one is not None
        self.assertEqual((one.document_id, one.tags), ("d-2", page.memories[0].tags))
        self.assertTrue(await self.client.delete_document("d-2"))
        self.assertFalse(await self.client.delete_document("d-2"))
        self.assertEqual((await self.client.memories(TAGS)).total, 1)

    async def test_operations(self) -> None:
        await self.client.retain(item("d-1", PEANUTS), operation_id=self.operation_id)
        await self.settled()
        done = await self.client.operations("completed")
        self.assertIn("d-1", [operation.document_id for operation in done])
        await self.client.cancel(done[0])
        await self.client.cancel(Operation(self.operation_id, "d-1", "pending"))

    async def test_long_query(self) -> None:
        with self.assertRaises(QueryTooLongError):
            await self.recall("很长的问题" * 400)

    async def test_answer_without_a_model(self) -> None:
        await self.stored(item("d-1", PEANUTS))
        with self.assertRaises(HindsightError) as caught:
            await self.client.reflect("谁过敏？", TAGS)
        self.assertEqual(caught.exception.reason, "no_model")

    async def test_settings(self) -> None:
        await self.stored(item("d-1", PEANUTS))
        with self.assertRaises(RequestRejectedError):
            await self.client.configure(BANK_SETTINGS)
        mission = {"retain_mission": BANK_SETTINGS["retain_mission"]}
        await self.client.configure(mission)
        self.assertLessEqual(mission.items(), (await self.client.config()).items())


class WithModelTest(RecordedTest):
    model = "stub"

    async def test_conclusions(self) -> None:
        await self.stored(item("d-1", PEANUTS))
        memories = (await self.client.memories(TAGS)).memories
        facts = {memory.memory_id for memory in memories if memory.kind == "world"}
        (conclusion,) = [memory for memory in memories if memory.kind == "observation"]
        self.assertLessEqual(set(TAGS), conclusion.tags)
        whole = await self.client.memory(conclusion.memory_id)
        assert whole is not None
        self.assertEqual(set(whole.sources), facts)
        self.assertIn("花生", "".join(memory.text for memory in await self.recall("花生过敏")))

    async def test_reflect(self) -> None:
        await self.stored(item("d-1", PEANUTS))
        answer = await self.client.reflect("小明对花生过敏吗？", TAGS)
        self.assertIn("花生", answer.text)
        # What it stands on comes without tags, so it cannot be checked and is not shown.
        self.assertEqual(answer.memories, ())

    async def test_profile(self) -> None:
        await self.stored(item("d-1", PEANUTS))
        await self.client.create_profile("abc", TAGS, "谁说了什么？")
        self.assertEqual(await self.client.profile("abc"), "")
        if self.source:
            await self.source.written(self.bank_id, "abc")
        self.assertIn("花生", await self.client.profile("abc") or "")
        await self.client.delete_profile("abc")
        self.assertIsNone(await self.client.profile("abc"))


if __name__ == "__main__":
    unittest.main()
