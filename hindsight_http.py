"""One shared connection to Hindsight: sends requests, and names whatever comes back."""

from __future__ import annotations

import email.utils
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from logging import Logger
from typing import Any
from urllib.parse import quote

import httpx

from .clock import Clock
from .hindsight_answers import as_dict, as_list
from .hindsight_types import (
    AccessRefusedError,
    HindsightError,
    QueryTooLongError,
    RequestRejectedError,
    RetryLaterError,
)
from .network import route_to

VERSION = "v0.2.0"
"""The plugin's version, the same as in `metadata.yaml`."""

USER_AGENT = f"astrbot_plugin_hindsight_memory/{VERSION.removeprefix('v')}"
"""A name of our own: the CDN in front of Hindsight Cloud has refused default client names."""

KEEPALIVE_SECONDS = 240.0
"""httpx drops an idle connection after 5 s, so that nearly every turn would pay TCP and TLS.

Routers forget one after 5 minutes, and what is sent on it then gets no answer at all.
"""

MAX_CONNECTIONS = 32
REQUEST_TIMEOUT_SECONDS = 30.0
CONNECT_TIMEOUT_SECONDS = 10.0
MAX_RETRY_AFTER_SECONDS = 600.0

_MISSING = ("Bank ", "Document ", "Mental model ", "Memory ", "Operation ")
"""How Hindsight's own sentences about a missing thing begin (1.1.0)."""

_NO_MODEL = "requires an LLM provider"
"""What Hindsight says where it has no model: with 400 to a reflect, with 500 to a profile."""

_DROPPED = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)
"""What httpx raises when the server had closed the idle connection that a request went out on."""

_PROXY_AUTHENTICATION = 407


@dataclass(frozen=True)
class Answer:
    """An answer that was no error.

    Attributes:
        status: 200, or 404 where what was asked for is missing.
        content: Its JSON.
        ignored: Names in the request that the server does not know.
    """

    status: int
    content: Mapping[str, Any] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()

    def rows(self, key: str) -> list[Any]:
        """The rows of a list; raises RetryLaterError where the answer has none."""
        rows = self.content.get(key)
        if self.status != 404 and not isinstance(rows, list):
            raise RetryLaterError("bad_answer", self.status)
        return as_list(rows)


class HindsightConnection:
    """One bank's address, and the connections to it.

    Args:
        api_base: Address without `/v1`.
        api_key: Sent as a bearer token.
        bank_id: Any text; it is quoted for the URL.
        clock: For durations and for the difference to the server's time.
        logger: Gets the names that the server does not know.
        transport: The seam for tests.

    Attributes:
        notices: What an operator should know of the way to the server.
        skew_seconds: How far the server's clock is ahead of ours; None until an answer told.
    """

    def __init__(
        self,
        *,
        api_base: str,
        api_key: str,
        bank_id: str,
        clock: Clock,
        logger: Logger | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._bank = f"/v1/default/banks/{quote(bank_id, safe='')}"
        self._clock = clock
        self._logger = logger
        self._ignored: set[str] = set()
        route = route_to(api_base)
        self._has_proxy = route.proxy is not None
        self.notices = route.notices
        self.skew_seconds: float | None = None
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
            proxy=None if transport else route.proxy,
            verify=route.tls,
            trust_env=False,
        )

    async def aclose(self) -> None:
        """Closes all connections."""
        await self._http.aclose()

    async def _request(
        self,
        method: str,
        path: str,
        *,
        json: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        missing_is_empty: bool = False,
        seconds: float = REQUEST_TIMEOUT_SECONDS,
    ) -> Answer:
        """Sends one request and translates whatever comes back."""
        timeout = httpx.Timeout(seconds, connect=CONNECT_TIMEOUT_SECONDS)
        request = self._http.build_request(method, path, json=json, params=params, timeout=timeout)
        response = await self._send(request)
        self._note_time(response)
        ignored = self._note_ignored(response)
        if missing_is_empty and _is_missing(response):
            return Answer(404, ignored=ignored)
        if response.status_code != 200:
            raise self._error(response)
        return Answer(200, _content(response), ignored)

    async def _request_if_known(self, method: str, path: str) -> bool:
        """Sends a request that not every server knows; whether it knows it and its object."""
        try:
            answer = await self._request(method, path, missing_is_empty=True)
        except RetryLaterError as error:
            if error.reason == "wrong_address":
                return False
            raise
        return answer.status != 404

    async def _send(self, request: httpx.Request) -> httpx.Response:
        try:
            try:
                return await self._http.send(request)
            except _DROPPED:
                # The server closes idle connections; nothing of an answer had come, and each
                # request of ours is safe to repeat.
                return await self._http.send(request)
        except httpx.TimeoutException as error:
            raise RetryLaterError("timeout") from error
        except httpx.HTTPError as error:
            raise RetryLaterError(self._unreachable(error)) from error
        except RuntimeError as error:
            if not self._http.is_closed:
                raise
            raise RetryLaterError("closing", local=True) from error

    def _unreachable(self, error: httpx.HTTPError) -> str:
        """Who could not be reached: a proxy is what connections are made to where there is one."""
        is_tls = isinstance(error.__context__, ssl.SSLError)
        by_proxy = self._has_proxy and isinstance(error, httpx.ConnectError) and not is_tls
        return "proxy_error" if by_proxy or isinstance(error, httpx.ProxyError) else "unreachable"

    def _note_time(self, response: httpx.Response) -> None:
        if moment := _http_date(response.headers.get("date", "")):
            self.skew_seconds = moment.timestamp() - self._clock.unix()

    def _note_ignored(self, response: httpx.Response) -> frozenset[str]:
        names = response.headers.get("x-ignored-params", "").split(",")
        ignored = frozenset(name.strip() for name in names if name.strip())
        for name in sorted(ignored - self._ignored):
            self._ignored.add(name)
            if self._logger:
                self._logger.info("this Hindsight does not know %r and ignores it", name[:50])
        return ignored

    def _error(self, response: httpx.Response) -> HindsightError:
        """Names what an error status means for the caller."""
        status = response.status_code
        if _NO_MODEL in response.text:
            return RequestRejectedError("no_model", status)
        if self._is_of_proxy(response):
            return RetryLaterError("proxy_error", status, _retry_after(response))
        if reason := _ACCESS.get(status):
            return AccessRefusedError(reason, status)
        if status in _BUSY or status >= 500:
            reason = _BUSY.get(status, "server_error")
            return RetryLaterError(reason, status, _retry_after(response))
        if status < 400 or status in _NOT_HINDSIGHT:
            return RetryLaterError("wrong_address", status)
        if status == 400 and "query too long" in response.text.lower():
            return QueryTooLongError("query_too_long", status)
        return RequestRejectedError("too_large" if status == 413 else "rejected", status)

    def _is_of_proxy(self, response: httpx.Response) -> bool:
        """Whether a proxy of ours answered in the server's place; Hindsight gives a `detail`."""
        if not self._has_proxy:
            return False
        status = response.status_code
        return status == _PROXY_AUTHENTICATION or (status >= 500 and _detail(response) is None)


_ACCESS = {401: "unauthorized", 402: "payment_required", 403: "forbidden"}
_NOT_HINDSIGHT = {404, 405}
"""All paths of the client exist in Hindsight: without them, something else is answering there."""

_BUSY = {408: "timeout", 425: "server_error", 429: "rate_limited", 503: "overloaded"}


def _is_missing(response: httpx.Response) -> bool:
    """Whether this is Hindsight's `Bank '…' not found` or the like, not that of a wrong address."""
    if response.status_code != 404 or "json" not in response.headers.get("content-type", ""):
        return False
    detail = _detail(response)
    return isinstance(detail, str) and detail.startswith(_MISSING)


def _detail(response: httpx.Response) -> Any:
    """What Hindsight says of an error; None where something else answered."""
    try:
        return as_dict(response.json()).get("detail")
    except ValueError:
        return None


def _content(response: httpx.Response) -> Mapping[str, Any]:
    try:
        content = response.json()
    except ValueError as error:
        raise RetryLaterError("bad_answer", response.status_code) from error
    if not isinstance(content, dict):
        raise RetryLaterError("bad_answer", response.status_code)
    return content


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
