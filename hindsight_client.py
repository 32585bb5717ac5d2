"""Hindsight's REST API as the plugin uses it: the calls within one chat.

Every call may raise the errors of `hindsight_types`, and where it takes tags a ValueError for none
of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from .hindsight_answers import (
    as_dict,
    as_list,
    read_count,
    read_document,
    read_listed,
    read_memory,
    read_payload,
    read_recall,
)
from .hindsight_bank import LONG_PAGE, PAGE_SIZE, HindsightBank
from .hindsight_http import Answer
from .hindsight_types import (
    NO_OPTIONS,
    SOURCE_TOKENS,
    DocumentPage,
    HindsightError,
    MemoryPage,
    RecalledMemory,
    RecallOptions,
    Reflection,
    RetainItem,
    RetryLaterError,
    StoredDocument,
    strict_tags,
)

MAX_RECALLS = 16
"""So many recalls run at once; further ones wait before the connection pool, not in it.

At the begin and end of each request httpcore 1.0.9 polls every idle connection, and compares each
of them and of the waiting requests with all others. When 200 chats write at once, that took three
quarters of the plugin's CPU time, which the replies then lacked.
"""

MAX_LISTED = 8000
REFLECT_SECONDS = 300.0
"""A model at work; so long the official client waits too."""
PROFILE_TOKENS = 512
PROFILE_REFRESH_SECONDS = 600

PROFILE_PENDING = "Generating content..."
"""What Hindsight 0.9 gives as the text of a mental model that it is still making."""


class HindsightClient(HindsightBank):
    """The calls that the plugin makes, all within one bank, with the arguments of a connection."""

    def __init__(self, **connection: Any) -> None:
        super().__init__(**connection)
        self._recalls = asyncio.Semaphore(MAX_RECALLS)
        self._recall_refusal = RetryLaterError("rate_limited")
        self._recall_again_at = -math.inf

    async def recall(
        self,
        query: str,
        *,
        tags: Sequence[str],
        budget: str,
        max_tokens: int,
        query_timestamp: str,
        options: RecallOptions = NO_OPTIONS,
        deadline: float | None = None,
    ) -> list[RecalledMemory]:
        """Finds the memories that carry all the tags, best first.

        Args:
            query: At least one word character, or the server answers 422.
            tags: Not empty; an empty list would mean the whole bank.
            budget: `low`, `mid` or `high`.
            max_tokens: Bound on the tokens of all results' texts.
            query_timestamp: ISO 8601 with offset, the anchor for words like yesterday.
            options: What else there is to say.
            deadline: When it is too late for an answer, in the time of the event loop.

        Returns:
            The memories, none for a bank that does not exist yet (404 on Hindsight 1.x).

        Raises:
            RetryLaterError: `deadline` or `busy_here` where the time ran out; `busy_here` where
                waiting for other recalls of ours took most of it. At once where the server has
                asked to wait and the time is not over.
        """
        body = {
            "query": query,
            "prefer_observations": True,
            "budget": budget,
            "max_tokens": max_tokens,
            "query_timestamp": query_timestamp,
            "tags": strict_tags(tags),
            "tags_match": "all_strict",
            **options.body(),
        }
        self._heed_refusal()
        async with self._recall_turn(deadline):
            self._heed_refusal()
            answer = await self._recall(body)
        if not isinstance(answer.content.get("results") or [], list):
            raise RetryLaterError("bad_answer", answer.status)
        return read_recall(answer.content, tags)

    async def _recall(self, body: Mapping[str, Any]) -> Answer:
        """Sends a recall, and keeps in mind how long the server wants to have none."""
        path = f"{self._bank}/memories/recall"
        try:
            return await self._request("POST", path, json=body, missing_is_empty=True)
        except RetryLaterError as error:
            if error.after_seconds:
                self._recall_refusal = error
                self._recall_again_at = self._clock.monotonic() + error.after_seconds
            raise

    def _heed_refusal(self) -> None:
        """Raises what the server answered before, while it wants to be left alone."""
        if (left := self._recall_again_at - self._clock.monotonic()) > 0:
            refusal = self._recall_refusal
            raise RetryLaterError(refusal.reason, refusal.status, left, local=True)

    @contextlib.asynccontextmanager
    async def _recall_turn(self, deadline: float | None) -> AsyncIterator[None]:
        """One of the recalls that may run at once, until the deadline.

        A wait for the others says nothing of the server, so where it took more of the time than
        was left to the server, that time is not held against it.
        """
        now = asyncio.get_running_loop().time
        began_at, turn_at = now(), math.inf
        try:
            async with asyncio.timeout_at(deadline), self._recalls:
                turn_at = now()
                yield
        except TimeoutError as error:
            is_local = turn_at - began_at > now() - turn_at
            reason = "busy_here" if is_local else "deadline"
            raise RetryLaterError(reason, local=is_local) from error

    async def retain(self, item: RetainItem, *, operation_id: str) -> None:
        """Hands one document over; 200 means queued on the server.

        Args:
            item: What to store.
            operation_id: A UUID; a second request with the same one changes nothing.
        """
        await self._retain(item, {"async": True, "operation_id": operation_id})

    async def retain_now(self, item: RetainItem) -> None:
        """Stores one document and waits until the server has extracted what it holds."""
        await self._retain(item, {"async": False})

    async def _retain(self, item: RetainItem, how: Mapping[str, Any]) -> None:
        """Sends a document; the log tells of which chat by the digits that its id begins with."""
        began_at, failure = self._clock.monotonic(), ", cancelled"
        try:
            body = {"items": [item.body()], **how}
            await self._request("POST", f"{self._bank}/memories", json=body)
            failure = ""
        except HindsightError as error:
            failure = f", {error.reason}"
            raise
        finally:
            if self._logger:
                self._logger.debug(
                    "retain %s: %s turns, %d characters, %d ms%s",
                    item.document_id[:8],
                    item.metadata.get("turns", "?"),
                    len(item.content),
                    (self._clock.monotonic() - began_at) * 1000,
                    failure,
                )

    async def memories(
        self,
        tags: Sequence[str],
        *,
        text: str = "",
        document_id: str = "",
        offset: int = 0,
        limit: int = PAGE_SIZE,
    ) -> MemoryPage:
        """Lists what carries all the tags, newest first.

        Args:
            tags: Not empty.
            text: Only memories with this text.
            document_id: Only memories of this document.
            offset: How many to pass over.
            limit: At most so many.
        """
        wanted = {"q": text, "document_id": document_id}
        chosen = {name: value for name, value in wanted.items() if value}
        return _memory_page(
            await self._listed("memories/list", tags, offset, limit, **chosen), tags
        )

    async def memories_by_id(
        self, tags: Sequence[str], memory_ids: Collection[str]
    ) -> list[RecalledMemory]:
        """Those of these memories that carry all the tags, in few requests however many they are.

        Beyond `MAX_LISTED` memories of a chat, the oldest are not looked at.
        """
        missing, found = set(memory_ids), []
        if missing:
            async for memory in self._all_memories(tags):
                if memory.memory_id in missing:
                    missing.discard(memory.memory_id)
                    found.append(memory)
                if not missing:
                    break
        return found

    async def memory(self, memory_id: str) -> RecalledMemory | None:
        """One memory, or None if there is none of this id; the caller checks its tags."""
        path = f"{self._bank}/memories/{quote(memory_id, safe='')}"
        answer = await self._request("GET", path, missing_is_empty=True)
        return read_memory(answer.content)

    async def documents(self, tags: Sequence[str], *, offset: int = 0) -> list[str]:
        """Ids of one page of the documents that carry all the tags."""
        page = await self.document_page(tags, offset=offset)
        return [document.document_id for document in page.documents]

    async def document_page(
        self, tags: Sequence[str], *, offset: int = 0, limit: int = PAGE_SIZE
    ) -> DocumentPage:
        """Lists the documents that carry all the tags, without their texts.

        Args:
            tags: Not empty.
            offset: How many to pass over.
            limit: At most so many.
        """
        answer = await self._listed("documents", tags, offset, limit)
        rows, wanted = answer.rows("items"), frozenset(tags)
        found = tuple(one for one in map(read_listed, rows) if one and wanted <= one.tags)
        total = read_count(answer.content.get("total")) or len(found)
        return DocumentPage(found, total, len(rows))

    async def document(self, document_id: str) -> StoredDocument | None:
        """One document, or None if it is gone; the caller checks its tags."""
        answer = await self._request("GET", self._document(document_id), missing_is_empty=True)
        return None if answer.status == 404 else read_document(document_id, answer.content)

    async def retained(self, operation_id: str) -> StoredDocument | None:
        """What a retain was to write, from its record; None where that does not tell.

        The caller checks its tags.
        """
        params = {"include_payload": "true"}
        path = self._operation(operation_id)
        answer = await self._request("GET", path, params=params, missing_is_empty=True)
        return read_payload(answer.content)

    async def found_anywhere(self, query: str, tags: Sequence[str]) -> set[str]:
        """Ids of the documents that a recall under these tags finds, whatever tags they carry.

        For the test of the server alone: what a chat is given is looked through once more.
        """
        body = {
            "query": query,
            "budget": "low",
            "max_tokens": SOURCE_TOKENS,
            "tags": strict_tags(tags),
            "tags_match": "all_strict",
            "include": {"entities": None},
        }
        path = f"{self._bank}/memories/recall"
        answer = await self._request("POST", path, json=body, missing_is_empty=True)
        found = [memory for memory in map(read_memory, answer.rows("results")) if memory]
        return {memory.document_id for memory in found if memory.document_id}

    async def retag_document(self, document_id: str, tags: Sequence[str]) -> bool:
        """Gives a document and its memories other tags; False if it is gone.

        Conclusions from them are deleted, and made again in the background.
        """
        answer = await self._request(
            "PATCH",
            self._document(document_id),
            json={"tags": strict_tags(tags)},
            missing_is_empty=True,
        )
        return answer.status != 404

    async def delete_document(self, document_id: str) -> bool:
        """Deletes a document with its memories; False if it was gone already."""
        answer = await self._request("DELETE", self._document(document_id), missing_is_empty=True)
        return answer.status != 404

    async def reflect(self, query: str, tags: Sequence[str]) -> Reflection:
        """Has the server's model answer a question from the memories with all the tags.

        Mental models are left out: the server finds them by the key's rights, not by the tags.
        """
        body = {
            "query": query,
            "tags": strict_tags(tags),
            "tags_match": "all_strict",
            "include": {"facts": {}},
            "exclude_mental_models": True,
        }
        answer = await self._request(
            "POST", f"{self._bank}/reflect", json=body, seconds=REFLECT_SECONDS
        )
        basis = as_list(as_dict(answer.content.get("based_on")).get("memories"))
        wanted = frozenset(tags)
        memories = [memory for memory in map(read_memory, basis) if memory]
        return Reflection(
            str(answer.content.get("text") or ""),
            tuple(m for m in memories if wanted <= m.tags),
        )

    async def create_profile(self, profile_id: str, tags: Sequence[str], source_query: str) -> None:
        """Makes a mental model of one chat, kept fresh by the server.

        Args:
            profile_id: Hex digits.
            tags: Of the chat; never empty, an untagged model would read the whole bank.
            source_query: What it is to tell.
        """
        body = {
            "id": profile_id,
            "name": profile_id,
            "source_query": source_query,
            "tags": strict_tags(tags),
            "max_tokens": PROFILE_TOKENS,
            "trigger": {
                "refresh_after_consolidation": True,
                "min_refresh_interval_seconds": PROFILE_REFRESH_SECONDS,
            },
        }
        await self._request("POST", f"{self._bank}/mental-models", json=body)

    async def profile(self, profile_id: str) -> str | None:
        """The text of a mental model, empty while it is being made; None if there is none."""
        answer = await self._request("GET", self._profile(profile_id), missing_is_empty=True)
        if answer.status == 404:
            return None
        text = str(answer.content.get("content") or "")
        return "" if text.strip() == PROFILE_PENDING else text

    async def delete_profile(self, profile_id: str) -> None:
        """Deletes a mental model, which would keep its text when its sources are gone."""
        await self._request("DELETE", self._profile(profile_id), missing_is_empty=True)

    async def _all_memories(self, tags: Sequence[str]) -> AsyncIterator[RecalledMemory]:
        for offset in range(0, MAX_LISTED, LONG_PAGE):
            answer = await self._listed("memories/list", tags, offset, LONG_PAGE)
            for memory in _memory_page(answer, tags).memories:
                yield memory
            if len(answer.rows("items")) < LONG_PAGE:
                break

    async def _listed(
        self, path: str, tags: Sequence[str], offset: int, limit: int, **query: str
    ) -> Answer:
        """A page of a list that reaches one chat only."""
        chat = {"tags": strict_tags(tags), "tags_match": "all_strict"}
        return await self._list(path, {**chat, "limit": limit, "offset": offset, **query})

    def _document(self, document_id: str) -> str:
        return f"{self._bank}/documents/{quote(document_id, safe='')}"

    def _profile(self, profile_id: str) -> str:
        return f"{self._bank}/mental-models/{quote(profile_id, safe='')}"


def _memory_page(answer: Answer, tags: Sequence[str]) -> MemoryPage:
    wanted = frozenset(tags)
    rows = map(read_memory, answer.rows("items"))
    found = tuple(memory for memory in rows if memory and wanted <= memory.tags)
    return MemoryPage(found, read_count(answer.content.get("total")) or len(found))
