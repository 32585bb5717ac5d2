"""Exchanges with a real server, kept in a file and played back without it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx

Exchange = dict[str, Any]

FOLDER = Path(__file__).with_name("fixtures") / "hindsight-0.9"


def file_of(test: str) -> Path:
    """The file of one test's exchanges."""
    return FOLDER / f"{test}.json"


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
        self.exchanges.append(asked(request) | answer)
        return response

    def save(self, test: str) -> None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.exchanges, ensure_ascii=False, indent=1)
        file_of(test).write_text(f"{text}\n", "utf-8")

    async def aclose(self) -> None:
        await self._server.aclose()


class Player(httpx.AsyncBaseTransport):
    """Answers as recorded; a request that was not recorded is an error."""

    def __init__(self, test: str) -> None:
        self.left: list[Exchange] = json.loads(file_of(test).read_text("utf-8"))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        exchange = self.left.pop(0) if self.left else {}
        recorded = {"request": exchange.get("request"), "body": exchange.get("body")}
        if recorded != asked(request):
            raise AssertionError(f"recorded was {recorded}, asked is {asked(request)}")
        return httpx.Response(exchange["status"], json=exchange["answer"])
