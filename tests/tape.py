"""Exchanges with a real server, kept in a file and played back without it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx

Exchange = dict[str, Any]

IGNORED = "x-ignored-params"


def file_of(release: str, test: str) -> Path:
    """The file of one test's exchanges with one release of Hindsight."""
    return Path(__file__).with_name("fixtures") / f"hindsight-{release}" / f"{test}.json"


def asked(request: httpx.Request) -> Exchange:
    """What makes a request the one that was recorded."""
    return {
        "request": f"{request.method} {request.url.raw_path.decode()}",
        "body": json.loads(request.content) if request.content else None,
    }


class Recorder(httpx.AsyncBaseTransport):
    """Lets requests through and keeps what was said."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self._server = httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._server.handle_async_request(request)
        await response.aread()
        answer = {"status": response.status_code, "answer": json.loads(response.content)}
        if names := response.headers.get(IGNORED):
            answer["ignored"] = names
        self.exchanges.append(asked(request) | answer)
        return response

    def save(self, release: str, test: str) -> None:
        file = file_of(release, test)
        file.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.exchanges, ensure_ascii=False, indent=1)
        file.write_text(f"{text}\n", "utf-8")

    async def aclose(self) -> None:
        await self._server.aclose()


class Player(httpx.AsyncBaseTransport):
    """Answers as recorded; a request that was not recorded is an error."""

    def __init__(self, release: str, test: str) -> None:
        self.left: list[Exchange] = json.loads(file_of(release, test).read_text("utf-8"))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        exchange = self.left.pop(0) if self.left else {}
        recorded = {"request": exchange.get("request"), "body": exchange.get("body")}
        if recorded != asked(request):
            raise AssertionError(f"recorded was {recorded}, asked is {asked(request)}")
        headers = {IGNORED: exchange["ignored"]} if "ignored" in exchange else {}
        return httpx.Response(exchange["status"], json=exchange["answer"], headers=headers)
