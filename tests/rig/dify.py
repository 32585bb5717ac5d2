"""As much of Dify's API on loopback as AstrBot's Dify runner asks for."""

from __future__ import annotations

import json
from typing import Any, Self

from aiohttp import web

from rig.ports import LOOPBACK

API_KEY = "app-stub"


class DifyStub:
    """A chat application of Dify; use it with `async with`.

    Attributes:
        requests: The body of each chat request, oldest first.
    """

    def __init__(self) -> None:
        """Make it; `start` opens the port."""
        self.requests: list[dict[str, Any]] = []
        self._runner: web.AppRunner | None = None
        self._port = 0

    async def __aenter__(self) -> Self:
        """Listen on a free port."""
        app = web.Application()
        app.router.add_post("/v1/chat-messages", self._chat)
        self._runner = web.AppRunner(app, shutdown_timeout=0.5)
        await self._runner.setup()
        await web.TCPSite(self._runner, LOOPBACK, 0).start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the port."""
        if self._runner:
            await self._runner.cleanup()

    @property
    def settings(self) -> dict[str, Any]:
        """What makes AstrBot (4.28 and later) use it, to be merged into the configuration."""
        config = {"dify_api_key": API_KEY, "dify_api_base": f"http://{LOOPBACK}:{self._port}/v1"}
        return {"agent_runner": {"runner_type": "dify", "config": config}}

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in _events(f"Dify：{body['query']}"):
            data = json.dumps(event | {"conversation_id": "c1"}, ensure_ascii=False)
            await response.write(f"data: {data}\n\n".encode())
        return response


def _events(answer: str) -> list[dict[str, Any]]:
    half = len(answer) // 2
    pieces = [{"event": "message", "answer": part} for part in (answer[:half], answer[half:])]
    return [*pieces, {"event": "message_end"}]
