"""Hindsight's REST API over one shared `httpx.AsyncClient`.

Every call may raise the errors of `hindsight_types`, and where it takes tags a ValueError for none
of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import httpx

from .clock import Clock
from .hindsight_types import (
    NO_OPTIONS,
    AccessRefusedError,
    Health,
    HindsightError,
    MemoryPage,
    Operation,
    QueryTooLongError,
    RecalledMemory,
    RecallOptions,
    Reflection,
    RequestRejectedError,
    RetainItem,
    RetryLaterError,
    StoredDocument,
    strict_tags,
)

VERSION = "v0.1.0"
"""The plugin's version, the same as in `metadata.yaml`."""

USER_AGENT = f"astrbot_plugin_hindsight_memory/{VERSION.removeprefix('v')}"
"""A name of our own: the CDN in front of Hindsight Cloud has refused default client names."""

KEEPALIVE_SECONDS = 600.0
"""httpx drops an idle connection after 5 s, so that nearly every turn would pay TCP and TLS."""

MAX_CONNECTIONS = 32
MAX_RECALLS = 16
"""So many recalls run at once; further ones wait before the connection pool, not in it.

At the begin and end of each request httpcore 1.0.9 polls every idle connection, and compares each
of them and of the waiting requests with all others. When 200 chats write at once, that took three
quarters of the plugin's CPU time, which the replies then lacked.
"""

REQUEST_TIMEOUT_SECONDS = 30.0
CONNECT_TIMEOUT_SECONDS = 10.0
MAX_RETRY_AFTER_SECONDS = 600.0

PAGE_SIZE = 100
MAX_OPERATIONS = 5000
REFLECT_SECONDS = 90.0
PROFILE_TOKENS = 512
PROFILE_REFRESH_SECONDS = 600

PROFILE_PENDING = "Generating content..."
"""What Hindsight 0.9 gives as the text of a mental model that it is still making."""

_MISSING = ("Bank ", "Document ", "Mental model ", "Memory ", "Operation ")
"""How Hindsight's own sentences about a missing thing begin (1.1.0)."""

_NO_MODEL = "requires an LLM provider"
"""What Hindsight says where it has no model: with 400 to a reflect, with 500 to a profile."""

_DROPPED = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)
"""What httpx raises when the server had closed the idle connection that a request went out on."""


@dataclass(frozen=True)
class _Answer:
    """An answer that was no error: its status and its JSON."""

    status: int
    content: Mapping[str, Any] = field(default_factory=dict)


class HindsightClient:
    """The calls that the plugin makes, all within one bank.

    Args:
        api_base: Address without `/v1`.
        api_key: Sent as a bearer token.
        bank_id: Any text; it is quoted for the URL.
        clock: For durations and nothing else.
        transport: The seam for tests.
    """

    def __init__(
        self,
        *,
        api_base: str,
        api_key: str,
        bank_id: str,
        clock: Clock,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._bank = f"/v1/default/banks/{quote(bank_id, safe='')}"
        self._clock = clock
        self._recalls = asyncio.Semaphore(MAX_RECALLS)
        self._http = httpx.AsyncClient(
            base_url=api_base,
            headers={"Authorization": f"Bearer {api_key}", "User-Agent": USER_AGENT},
            timeout=httpx.Timeout(REQUEST_TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS),
            limits=httpx.Limits(
                max_connections=MAX_CONNECTIONS,
                max_keepalive_connections=MAX_CONNECTIONS,
                keepalive_expiry=KEEPALIVE_SECONDS,
            ),
            transport=transport,
        )

    async def aclose(self) -> None:
        """Closes all connections."""
        await self._http.aclose()

    async def recall(
        self,
        query: str,
        *,
        tags: Sequence[str],
        budget: str,
        max_tokens: int,
        query_timestamp: str,
        options: RecallOptions = NO_OPTIONS,
    ) -> list[RecalledMemory]:
        """Finds the memories that carry all the tags, best first.

        Args:
            query: At least one word character, or the server answers 422.
            tags: Not empty; an empty list would mean the whole bank.
            budget: `low`, `mid` or `high`.
            max_tokens: Bound on the tokens of all results' texts.
            query_timestamp: ISO 8601 with offset, the anchor for words like yesterday.
            options: What else there is to say.

        Returns:
            The memories, none for a bank that does not exist yet (404 on Hindsight 1.x).
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
        path = f"{self._bank}/memories/recall"
        async with self._recalls:
            answer = await self._request("POST", path, json=body, missing_is_empty=True)
        results = answer.content.get("results") or []
        if not isinstance(results, list):
            raise RetryLaterError("bad_answer", answer.status)
        wanted, chunks = frozenset(tags), _dict(answer.content.get("chunks"))
        found = [m for m in map(_memory, results) if m and wanted <= m.tags]
        return [_with_chunk(memory, chunks) for memory in found]

    async def retain(self, item: RetainItem, *, operation_id: str) -> None:
        """Hands one document over; 200 means queued on the server.

        Args:
            item: What to store.
            operation_id: A UUID; a second request with the same one changes nothing.
        """
        body = {"items": [item.body()], "async": True, "operation_id": operation_id}
        await self._request("POST", f"{self._bank}/memories", json=body)

    async def retain_now(self, item: RetainItem) -> None:
        """Stores one document and waits until the server has extracted what it holds."""
        body = {"items": [item.body()], "async": False}
        await self._request("POST", f"{self._bank}/memories", json=body)

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
            limit: At most so many, up to 100.
        """
        query = {**_listing(tags, offset, limit), "q": text, "document_id": document_id}
        answer = await self._request(
            "GET",
            f"{self._bank}/memories/list",
            params={key: value for key, value in query.items() if value != ""},
            missing_is_empty=True,
        )
        wanted = frozenset(tags)
        found = tuple(m for m in map(_memory, _items(answer, "items")) if m and wanted <= m.tags)
        return MemoryPage(found, int(answer.content.get("total") or len(found)))

    async def memory(self, memory_id: str) -> RecalledMemory | None:
        """One memory, or None if there is none of this id; the caller checks its tags."""
        path = f"{self._bank}/memories/{quote(memory_id, safe='')}"
        answer = await self._request("GET", path, missing_is_empty=True)
        return _memory(answer.content)

    async def documents(self, tags: Sequence[str], *, offset: int = 0) -> list[str]:
        """Ids of one page of the documents that carry all the tags."""
        answer = await self._request(
            "GET",
            f"{self._bank}/documents",
            params=_listing(tags, offset, PAGE_SIZE),
            missing_is_empty=True,
        )
        wanted = frozenset(tags)
        return [
            str(item["id"])
            for item in _items(answer, "items")
            if isinstance(item, dict) and wanted <= _tags(item)
        ]

    async def document(self, document_id: str) -> StoredDocument | None:
        """One document, or None if it is gone; the caller checks its tags."""
        answer = await self._request("GET", self._document(document_id), missing_is_empty=True)
        if answer.status == 404:
            return None
        content, params = answer.content, _dict(answer.content.get("retain_params"))
        return StoredDocument(
            document_id=document_id,
            text=str(content.get("original_text") or ""),
            context=str(params.get("context") or ""),
            timestamp=str(params.get("event_date") or content.get("created_at") or ""),
            metadata={k: str(v) for k, v in _dict(content.get("document_metadata")).items()},
            tags=_tags(content),
        )

    async def delete_document(self, document_id: str) -> bool:
        """Deletes a document with its memories; False if it was gone already."""
        answer = await self._request("DELETE", self._document(document_id), missing_is_empty=True)
        return answer.status != 404

    async def operations(self, status: str) -> list[Operation]:
        """The retains of the whole bank that have this status, as far as the server lists them."""
        found: list[Operation] = []
        for offset in range(0, MAX_OPERATIONS, PAGE_SIZE):
            answer = await self._request(
                "GET",
                f"{self._bank}/operations",
                params={"status": status, "limit": PAGE_SIZE, "offset": offset},
                missing_is_empty=True,
            )
            page = [item for item in _items(answer, "operations") if isinstance(item, dict)]
            found += [
                Operation(str(item.get("id")), str(item.get("document_id") or ""), status)
                for item in page
            ]
            if len(page) < PAGE_SIZE:
                break
        return found

    async def cancel(self, operation: Operation) -> None:
        """Cancels an operation; one that has ended meanwhile is no error."""
        path = f"{self._bank}/operations/{quote(operation.operation_id, safe='')}"
        with contextlib.suppress(RequestRejectedError):
            await self._request("DELETE", path, missing_is_empty=True)

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
        basis = _list(_dict(answer.content.get("based_on")).get("memories"))
        wanted = frozenset(tags)
        memories = [memory for memory in map(_memory, basis) if memory]
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

    async def config(self) -> Mapping[str, Any]:
        """The bank's settings."""
        answer = await self._request("GET", f"{self._bank}/config", missing_is_empty=True)
        return _dict(answer.content.get("config"))

    async def configure(self, updates: Mapping[str, Any]) -> None:
        """Changes settings of the bank."""
        await self._request("PATCH", f"{self._bank}/config", json={"updates": dict(updates)})

    def _document(self, document_id: str) -> str:
        return f"{self._bank}/documents/{quote(document_id, safe='')}"

    def _profile(self, profile_id: str) -> str:
        return f"{self._bank}/mental-models/{quote(profile_id, safe='')}"

    async def check(self) -> Health:
        """Asks for one tag: proves address, key and bank with the cheapest request there is."""
        started = self._clock.monotonic()
        answer = await self._request(
            "GET", f"{self._bank}/tags", params={"limit": 1}, missing_is_empty=True
        )
        return Health(bank_exists=answer.status != 404, seconds=self._clock.monotonic() - started)

    async def version(self) -> str:
        """The server's version, or an empty text if it does not tell."""
        for path in ("/v1/version", "/version"):
            try:
                answer = await self._request("GET", path)
            except HindsightError:
                continue
            if version := answer.content.get("api_version"):
                return str(version)
        return ""

    async def _request(
        self,
        method: str,
        path: str,
        *,
        json: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        missing_is_empty: bool = False,
        seconds: float = REQUEST_TIMEOUT_SECONDS,
    ) -> _Answer:
        """Sends one request and translates whatever comes back."""
        timeout = httpx.Timeout(seconds, connect=CONNECT_TIMEOUT_SECONDS)
        request = self._http.build_request(method, path, json=json, params=params, timeout=timeout)
        try:
            try:
                response = await self._http.send(request)
            except _DROPPED:
                # The server closes idle connections; nothing of an answer had come, and each
                # request of ours is safe to repeat.
                response = await self._http.send(request)
        except httpx.TimeoutException as error:
            raise RetryLaterError("timeout") from error
        except httpx.HTTPError as error:
            raise RetryLaterError("unreachable") from error
        if missing_is_empty and _is_missing(response):
            return _Answer(404)
        if response.status_code != 200:
            raise _error(response)
        return _Answer(200, _content(response))


def _memory(raw: Any) -> RecalledMemory | None:
    """Reads one result; None where it has no text."""
    if not isinstance(raw, Mapping) or not isinstance(raw.get("text"), str):
        return None
    scores = _dict(raw.get("scores"))
    sources = raw.get("source_fact_ids") or raw.get("source_memory_ids")
    return RecalledMemory(
        memory_id=str(raw.get("id") or ""),
        text=raw["text"],
        kind=str(raw.get("type") or raw.get("fact_type") or "world"),
        mentioned_at=_time(raw.get("mentioned_at")),
        tags=_tags(raw),
        score=_number(scores.get("final")),
        speakers=tuple(str(_dict(raw.get("metadata")).get("speakers") or "").split()),
        document_id=str(raw.get("document_id") or ""),
        sources=tuple(map(str, _list(sources))),
        semantic=_number(scores.get("semantic")),
        reranker=_number(scores.get("reranker")),
        occurred_start=_time(raw.get("occurred_start")),
        occurred_end=_time(raw.get("occurred_end")),
        chunk_id=str(raw.get("chunk_id") or ""),
    )


def _with_chunk(memory: RecalledMemory, chunks: Mapping[str, Any]) -> RecalledMemory:
    """A memory with the words that it was made from.

    Only its own: which other chunks an answer holds is not limited to the chat on every server.
    """
    text = _dict(chunks.get(memory.chunk_id)).get("text") if memory.chunk_id else None
    return replace(memory, chunk=text) if isinstance(text, str) else memory


def _number(raw: Any) -> float | None:
    """A finite number, or None for anything else."""
    is_number = isinstance(raw, int | float) and not isinstance(raw, bool)
    return float(raw) if is_number and math.isfinite(raw) else None


def _items(answer: _Answer, key: str) -> list[Any]:
    """The rows of a list; raises RetryLaterError where the answer has none."""
    if answer.status != 404 and not isinstance(answer.content.get(key), list):
        raise RetryLaterError("bad_answer", answer.status)
    return _list(answer.content.get(key))


def _listing(tags: Sequence[str], offset: int, limit: int) -> dict[str, Any]:
    """The query of a list that reaches one chat only."""
    return {"tags": strict_tags(tags), "tags_match": "all_strict", "limit": limit, "offset": offset}


def _tags(raw: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(map(str, _list(raw.get("tags"))))


def _list(raw: Any) -> list[Any]:
    return raw if isinstance(raw, list) else []


def _dict(raw: Any) -> Mapping[str, Any]:
    return raw if isinstance(raw, dict) else {}


def _time(raw: Any) -> datetime | None:
    """Reads an ISO time; one without offset is UTC, as everywhere in Hindsight."""
    try:
        moment = datetime.fromisoformat(raw)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _is_missing(response: httpx.Response) -> bool:
    """Whether this is Hindsight's `Bank '…' not found` or the like, not that of a wrong address."""
    if response.status_code != 404 or "json" not in response.headers.get("content-type", ""):
        return False
    try:
        detail = _dict(response.json()).get("detail")
    except ValueError:
        return False
    return isinstance(detail, str) and detail.startswith(_MISSING)


def _content(response: httpx.Response) -> Mapping[str, Any]:
    try:
        content = response.json()
    except ValueError as error:
        raise RetryLaterError("bad_answer", response.status_code) from error
    if not isinstance(content, dict):
        raise RetryLaterError("bad_answer", response.status_code)
    return content


_ACCESS = {401: "unauthorized", 402: "payment_required", 403: "forbidden"}
_NOT_HINDSIGHT = {404, 405}
"""All paths of the client exist in Hindsight: without them, something else is answering there."""

_BUSY = {408: "timeout", 425: "server_error", 429: "rate_limited", 503: "overloaded"}


def _error(response: httpx.Response) -> HindsightError:
    """Names what an error status means for the caller."""
    status = response.status_code
    if _NO_MODEL in response.text:
        return RequestRejectedError("no_model", status)
    if reason := _ACCESS.get(status):
        return AccessRefusedError(reason, status)
    if status in _BUSY or status >= 500:
        return RetryLaterError(_BUSY.get(status, "server_error"), status, _retry_after(response))
    if status < 400 or status in _NOT_HINDSIGHT:
        return RetryLaterError("wrong_address", status)
    if status == 400 and "query too long" in response.text.lower():
        return QueryTooLongError("query_too_long", status)
    return RequestRejectedError("too_large" if status == 413 else "rejected", status)


def _retry_after(response: httpx.Response) -> float | None:
    """Reads `Retry-After` in seconds or as a date, capped; None where there is none."""
    text = response.headers.get("retry-after", "").strip()
    if text.isdecimal():
        seconds = float(text)
    elif moment := _http_date(text):
        seconds = (
            moment - (_http_date(response.headers.get("date", "")) or _now())
        ).total_seconds()
    else:
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER_SECONDS)


def _http_date(text: str) -> datetime | None:
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _now() -> datetime:
    return datetime.now(UTC)
