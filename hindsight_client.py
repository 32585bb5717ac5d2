"""Hindsight's REST API over one shared `httpx.AsyncClient`.

Errors are named for what the caller can do about them:

    HindsightError
    ├── RetryLaterError        unreachable, overloaded, broken answer: the same again, later
    ├── AccessRefusedError     401, 402, 403: nothing goes until key or account are repaired
    └── RequestRejectedError   400, 409, 413, 422, …: never accepted as it is
        └── QueryTooLongError  Hindsight up to 0.10 refuses what 1.x shortens by itself
"""

from __future__ import annotations

import email.utils
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import httpx

VERSION = "v0.1.0"
"""The plugin's version, the same as in `metadata.yaml`."""

USER_AGENT = f"astrbot_plugin_hindsight_memory/{VERSION.removeprefix('v')}"
"""A name of our own: the CDN in front of Hindsight Cloud has refused default client names."""

KEEPALIVE_SECONDS = 600.0
"""httpx drops an idle connection after 5 s, so that nearly every turn would pay TCP and TLS."""

MAX_CONNECTIONS = 64
REQUEST_TIMEOUT_SECONDS = 30.0
CONNECT_TIMEOUT_SECONDS = 10.0
MAX_RETRY_AFTER_SECONDS = 600.0

_DROPPED = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)
"""What httpx raises when the server had closed the idle connection that a request went out on."""


class HindsightError(Exception):
    """A call failed.

    Attributes:
        reason: A short English code such as `unauthorized`, the key of its sentence in `texts`.
        status: The HTTP status, or None where there was no answer.
    """

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(f"{reason} ({status})" if status else reason)
        self.reason = reason
        self.status = status


class RetryLaterError(HindsightError):
    """The same request may succeed later.

    Attributes:
        after_seconds: What the server asked to wait, capped, or None.
    """

    def __init__(
        self, reason: str, status: int | None = None, after_seconds: float | None = None
    ) -> None:
        super().__init__(reason, status)
        self.after_seconds = after_seconds


class AccessRefusedError(HindsightError):
    """Key or account are refused: no request succeeds until that is repaired."""


class RequestRejectedError(HindsightError):
    """The server will never accept this very request."""


class QueryTooLongError(RequestRejectedError):
    """A recall query has too many tokens for this server."""


@dataclass(frozen=True)
class RecalledMemory:
    """One result of a recall.

    Attributes:
        memory_id: Hindsight's id.
        text: What is remembered.
        kind: `world`, `experience` or `observation`.
        mentioned_at: When it was said, aware, or None.
        tags: Tags of the memory, in no particular order.
        score: Relevance, comparable only within one recall, or None.
        speakers: Pseudonyms of those who speak in its source, where the source is known.
    """

    memory_id: str
    text: str
    kind: str
    mentioned_at: datetime | None
    tags: frozenset[str]
    score: float | None
    speakers: tuple[str, ...] = ()


@dataclass(frozen=True)
class RetainItem:
    """One document to be stored.

    Attributes:
        content: Lines of a conversation.
        document_id: Unique for ever, so that sending it again is harmless.
        context: Who is speaking to whom, for the extraction.
        timestamp: ISO 8601 with offset.
        metadata: Strings only; anything else makes the server refuse the whole request.
        tags: All four tags of the chat.
    """

    content: str
    document_id: str
    context: str
    timestamp: str
    metadata: Mapping[str, str]
    tags: Sequence[str]

    def body(self) -> dict[str, Any]:
        """The JSON of this item; `combined` keeps one pool of observations per chat."""
        return {
            "content": self.content,
            "document_id": self.document_id,
            "context": self.context,
            "timestamp": self.timestamp,
            "metadata": dict(self.metadata),
            "tags": _strict(self.tags),
            "observation_scopes": "combined",
        }


@dataclass(frozen=True)
class Health:
    """What a check of the connection found.

    Attributes:
        bank_exists: False until the first retain has made the bank.
        version: Hindsight's version, or empty if the server does not tell.
        seconds: Duration of one small request.
    """

    bank_exists: bool
    version: str = ""
    seconds: float = 0.0


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
        clock: Seconds, for durations and nothing else.
        transport: The seam for tests.
    """

    def __init__(
        self,
        *,
        api_base: str,
        api_key: str,
        bank_id: str,
        clock: Callable[[], float],
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._bank = f"/v1/default/banks/{quote(bank_id, safe='')}"
        self._clock = clock
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
    ) -> list[RecalledMemory]:
        """Finds the memories that carry all the tags, best first.

        Args:
            query: At least one word character, or the server answers 422.
            tags: Not empty; an empty list would mean the whole bank.
            budget: `low`, `mid` or `high`.
            max_tokens: Bound on the tokens of all results' texts.
            query_timestamp: ISO 8601 with offset, the anchor for words like yesterday.

        Returns:
            The memories, none for a bank that does not exist yet (404 on Hindsight 1.x).

        Raises:
            HindsightError: As the module's docstring says.
            ValueError: No tags were given.
        """
        body = {
            "query": query,
            "prefer_observations": True,
            "budget": budget,
            "max_tokens": max_tokens,
            "query_timestamp": query_timestamp,
            "include": {"entities": None},
            "tags": _strict(tags),
            "tags_match": "all_strict",
        }
        path = f"{self._bank}/memories/recall"
        answer = await self._request("POST", path, json=body, missing_is_empty=True)
        results = answer.content.get("results") or []
        if not isinstance(results, list):
            raise RetryLaterError("bad_answer", answer.status)
        wanted = frozenset(tags)
        return [m for m in map(_memory, results) if m and wanted <= m.tags]

    async def retain(self, item: RetainItem, *, operation_id: str) -> None:
        """Hands one document over; 200 means queued on the server.

        Args:
            item: What to store.
            operation_id: A UUID; a second request with the same one changes nothing.

        Raises:
            HindsightError: As the module's docstring says.
            ValueError: The item has no tags.
        """
        body = {"items": [item.body()], "async": True, "operation_id": operation_id}
        await self._request("POST", f"{self._bank}/memories", json=body)

    async def check(self) -> Health:
        """Asks for one tag: proves address, key and bank with the cheapest request there is.

        Raises:
            HindsightError: As the module's docstring says.
        """
        started = self._clock()
        answer = await self._request(
            "GET", f"{self._bank}/tags", params={"limit": 1}, missing_is_empty=True
        )
        return Health(bank_exists=answer.status != 404, seconds=self._clock() - started)

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
    ) -> _Answer:
        """Sends one request and translates whatever comes back."""
        request = self._http.build_request(method, path, json=json, params=params)
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
        if missing_is_empty and _is_missing_bank(response):
            return _Answer(404)
        if response.status_code != 200:
            raise _error(response)
        return _Answer(200, _content(response))


def _strict(tags: Sequence[str]) -> list[str]:
    """Raises ValueError for tags that would select more than one chat."""
    if isinstance(tags, str) or not tags or not all(tags):
        raise ValueError("a request without tags would reach the whole bank")
    return list(tags)


def _memory(raw: Any) -> RecalledMemory | None:
    """Reads one result; None where it has no text."""
    if not isinstance(raw, dict) or not isinstance(raw.get("text"), str):
        return None
    score = _dict(raw.get("scores")).get("final")
    tags = raw.get("tags")
    return RecalledMemory(
        memory_id=str(raw.get("id") or ""),
        text=raw["text"],
        kind=str(raw.get("type") or "world"),
        mentioned_at=_time(raw.get("mentioned_at")),
        tags=frozenset(map(str, tags)) if isinstance(tags, list) else frozenset(),
        score=float(score) if isinstance(score, int | float) else None,
        speakers=tuple(str(_dict(raw.get("metadata")).get("speakers") or "").split()),
    )


def _dict(raw: Any) -> Mapping[str, Any]:
    return raw if isinstance(raw, dict) else {}


def _time(raw: Any) -> datetime | None:
    """Reads an ISO time; one without offset is UTC, as everywhere in Hindsight."""
    try:
        moment = datetime.fromisoformat(raw)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _is_missing_bank(response: httpx.Response) -> bool:
    """Whether this is 1.x's `Bank '…' not found`, and not the 404 of a wrong address."""
    if response.status_code != 404 or "json" not in response.headers.get("content-type", ""):
        return False
    try:
        detail = _dict(response.json()).get("detail")
    except ValueError:
        return False
    return isinstance(detail, str) and detail.startswith("Bank ")


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
