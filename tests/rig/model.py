"""An OpenAI-compatible chat model on loopback that says what a test wants.

It lives in the event loop of the test. What it does depends on the user's own text, that is, the
first text part of the last user message:

    SAY:<text>              answers exactly the text up to the end of the line.
    TOOL:<name> {json}      calls the tool, with the text "let me check. " beside the call; then
                            answers "工具说：" and what the tool returned.
    ECHO_BLOCK              answers the memory block that it was given, verbatim, then "好的".
    ERR<status>             answers with this HTTP status. AstrBot tries again for a while after a
                            500; an ERR400 fails at once.
    HOLD                    answers the user only once `ModelStub.let_go` is called. Stands beside
                            another directive.

Everything else is answered "收到：" and the beginning of the text. `ModelStub.script` goes before
all of this.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from aiohttp import web

from rig.ports import LOOPBACK

Body = dict[str, Any]
Script = Callable[[Body], str | None]

MODEL = "stub-model"
INTERIM_TEXT = "let me check. "
ECHO_LENGTH = 60
TOOL_ECHO_LENGTH = 200
STREAM_CHUNKS = 3
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}

_BLOCK = re.compile(r"<hindsight_memory\b[^>]*>.*?</hindsight_memory>", re.DOTALL)
_SAY = re.compile(r"SAY:(.*)")
_ERROR = re.compile(r"ERR(\d{3})")
_TOOL = re.compile(r"TOOL:([\w-]+)\s*")


# --- Looking into a request -----------------------------------------------------------------------


def last_user_message(body: Body) -> dict[str, Any]:
    """Return the last message of role user, or an empty one."""
    users = (message for message in reversed(body["messages"]) if message["role"] == "user")
    return next(users, {"role": "user", "content": ""})


def texts(message: dict[str, Any]) -> list[str]:
    """Return a message's text parts; a plain string is one part."""
    content = message.get("content") or []
    if isinstance(content, str):
        return [content]
    return [part.get("text", "") for part in content if part.get("type") == "text"]


def user_text(body: Body) -> str:
    """Return the first text part of the last user message: the user's own words."""
    return next(iter(texts(last_user_message(body))), "")


def memory_blocks(body: Body) -> list[str]:
    """Return every `<hindsight_memory>` block in the last user message, tags included."""
    found = (_BLOCK.findall(text) for text in texts(last_user_message(body)))
    return [block for blocks in found for block in blocks]


def system_prompt(body: Body) -> str:
    """Return the text of all system messages."""
    system = [message for message in body["messages"] if message["role"] == "system"]
    return "\n".join(text for message in system for text in texts(message))


# --- Deciding on an answer ------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """What the model says in one turn.

    Attributes:
        text: The text.
        tool: Name and JSON arguments of the tool that it calls, if any.
        status: The HTTP status; other than 200 there is no answer but an error.
        is_held: It is given only once somebody says so.
    """

    text: str
    tool: tuple[str, str] | None = None
    status: int = 200
    is_held: bool = False


def decide(body: Body) -> Answer:
    """Return what the directives in a request ask for."""
    user = user_text(body)
    last = body["messages"][-1]
    if last["role"] == "tool":
        return Answer("工具说：" + "\n".join(texts(last))[:TOOL_ECHO_LENGTH])
    is_held = "HOLD" in user
    if error := _ERROR.search(user):
        return Answer("", status=int(error.group(1)), is_held=is_held)
    tool = _tool_call(user)
    if tool:
        return Answer(INTERIM_TEXT, tool=tool, is_held=is_held)
    return Answer(_text_for(user, body), is_held=is_held)


def _tool_call(text: str) -> tuple[str, str] | None:
    found = _TOOL.search(text)
    if not found:
        return None
    rest = text[found.end() :]
    arguments = json.JSONDecoder().raw_decode(rest)[0] if rest.startswith("{") else {}
    return found.group(1), json.dumps(arguments, ensure_ascii=False)


def _text_for(user: str, body: Body) -> str:
    if said := _SAY.search(user):
        return said.group(1)
    if "ECHO_BLOCK" in user:
        return "".join(memory_blocks(body)) + "好的"
    return "收到：" + user[:ECHO_LENGTH]


# --- The server -----------------------------------------------------------------------------------


class ModelStub:
    """The model's server.

    Attributes:
        requests: The body of each chat request, oldest first, with the time that it came under the
            added key `received_at` (`time.time()`).
        script: Called with each body; a text that it returns is the answer, None leaves it to the
            directives.
    """

    def __init__(self) -> None:
        """Make it; `start` opens the port."""
        self.requests: list[Body] = []
        self.script: Script | None = None
        self._go = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._port = 0

    @property
    def base_url(self) -> str:
        """The address to configure, with `/v1`."""
        return f"http://{LOOPBACK}:{self._port}/v1"

    async def start(self) -> Self:
        """Listen on a free port."""
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/v1/models", self._models)
        self._runner = web.AppRunner(app, shutdown_timeout=0.5)
        await self._runner.setup()
        await web.TCPSite(self._runner, LOOPBACK, self._port).start()
        self._port = self._runner.addresses[0][1]
        return self

    async def stop(self) -> None:
        """Close the port."""
        if self._runner:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def clear(self) -> None:
        """Forget the requests so far."""
        self.requests.clear()

    def let_go(self) -> None:
        """Give the answers that are held now."""
        self._go.set()
        self._go = asyncio.Event()

    def requests_with(self, text: str) -> list[Body]:
        """Return the requests whose user's own text contains something."""
        return [body for body in self.requests if text in user_text(body)]

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response(
            {"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "rig"}]}
        )

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body: Body = await request.json()
        self.requests.append({**body, "received_at": time.time()})
        answer = self._answer(body)
        if answer.is_held:
            await self._go.wait()
        if answer.status != 200:
            error = {"error": {"message": "the stub was told to fail", "type": "server_error"}}
            return web.json_response(error, status=answer.status)
        head = {
            "id": f"chatcmpl-{uuid.uuid4().hex[:12]}",
            "created": int(time.time()),
            "model": body.get("model", MODEL),
        }
        if body.get("stream"):
            return await _stream(request, head, answer)
        return web.json_response(_whole(head, answer))

    def _answer(self, body: Body) -> Answer:
        scripted = self.script(body) if self.script else None
        return decide(body) if scripted is None else Answer(scripted)


def _finish_reason(answer: Answer) -> str:
    return "tool_calls" if answer.tool else "stop"


def _tool_calls(answer: Answer) -> list[dict[str, Any]]:
    if answer.tool is None:
        return []
    name, arguments = answer.tool
    call_id = f"call_{uuid.uuid4().hex[:12]}"
    function = {"name": name, "arguments": arguments}
    return [{"index": 0, "id": call_id, "type": "function", "function": function}]


def _whole(head: dict[str, Any], answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text}
    if answer.tool:
        message["tool_calls"] = _tool_calls(answer)
    choice = {"index": 0, "message": message, "finish_reason": _finish_reason(answer)}
    return {**head, "object": "chat.completion", "choices": [choice], "usage": USAGE}


def _deltas(answer: Answer) -> list[dict[str, Any]]:
    size = max(1, -(-len(answer.text) // STREAM_CHUNKS))
    pieces = [answer.text[at : at + size] for at in range(0, len(answer.text), size)]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in pieces]
    if answer.tool:
        deltas.append({"tool_calls": _tool_calls(answer)})
    return deltas


async def _stream(request: web.Request, head: dict[str, Any], answer: Answer) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)

    async def send(delta: dict[str, Any], reason: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        chunk = {**head, "object": "chat.completion.chunk", "choices": [choice]}
        if reason:
            chunk["usage"] = USAGE
        data = json.dumps(chunk, ensure_ascii=False)
        await response.write(f"data: {data}\n\n".encode())

    for delta in _deltas(answer):
        await send(delta)
    await send({}, _finish_reason(answer))
    await response.write(b"data: [DONE]\n\n")
    return response
