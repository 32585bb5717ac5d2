"""The model behind a Hindsight server in tests: deterministic, offline, standard library only.

Run as a script, it serves an OpenAI-compatible interface on loopback:

* `POST /v1/embeddings`: vectors of hashed character n-grams. Texts that share words or characters
  are near each other; there is no understanding.
* `POST /v1/chat/completions`: what Hindsight asks of its model. Each line of a stored text becomes
  one fact with its speaker's label; facts become observations; reflect searches, then answers with
  what it found; a profile page lists what is known.

and for the tests:

* `PUT /control`: change some of `Control`'s fields.
* `GET /calls`, `DELETE /calls`: the chat calls so far, to read or to forget.
"""

from __future__ import annotations

import argparse
import base64
import dataclasses
import hashlib
import json
import math
import re
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

DIMENSIONS = 384
IN_COMMON = 0.7
"""What all embeddings have in common, beside what is each one's own."""
LONGEST_FACT = 400
LONGEST_QUERY = 200
MOST_QUOTED = 8
NOTHING_KNOWN = "Nothing is known about that."
ASSISTANTS = ("assistant", "bot", "ai", "助手", "机器人")

_LABELLED = re.compile(
    r"""^\s*
    (?P<speaker>[^:：(（\[]{1,80}?)       # a name, perhaps with a pseudonym: 小明#3fa2c1
    \s*(?:[(（][^)）]*[)）]\s*)*          # a time or the like in brackets
    (?::\s|：)\s*(?P<said>\S.*)$""",
    re.VERBOSE,
)
# Hindsight 1.x says "the following chunk" and "Content:", 0.9 the other words.
_EXTRACTION = re.compile(
    r"Extract facts from the following (?:text )?chunk.*?\n(?:Content|Text):\n(.*)", re.DOTALL
)
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_NEW_FACT = re.compile(rf"^\s*-?\s*\[({_UUID})\] (.*)$", re.MULTILINE)
_OBSERVATION = re.compile(rf'"id":\s*"({_UUID})",\s*"text":\s*("(?:[^"\\]|\\.)*")')
_FACT_DATES = re.compile(r"\s*\((?:occurred_start|occurred_end|mentioned_at)=[^()]*\)\s*$")
_PAGE_FACT = re.compile(r"^- \[[^\]]*\] (.*)$", re.MULTILINE)
_PAGE = re.compile(r"## CURRENT DOCUMENT.*?```json\n(.*?)\n```", re.DOTALL)


@dataclasses.dataclass
class Control:
    """How the model behaves; `PUT /control` changes it.

    Attributes:
        mode: `create` makes one observation of each new fact; `greedy` merges all new facts into
            the first observation that it is shown, whosever it is.
        fault: An HTTP status to fail with, or `garbage` for an answer that makes no sense.
        times: How many chat calls the fault strikes; None for all.
        delay: Seconds before each chat answer; whoever waits goes on when something is changed.
        involving: A fact tells its speaker apart from its words too, as Hindsight asks for; then
            its text ends with it. Otherwise the fact is the line itself.
    """

    mode: str = "create"
    fault: int | str | None = None
    times: int | None = None
    delay: float = 0.0
    involving: bool = True

    def take_fault(self) -> int | str | None:
        """Return the fault that strikes the next call, and count it."""
        if self.fault is None or self.times == 0:
            return None
        if self.times is not None:
            self.times -= 1
        return self.fault


class Line(NamedTuple):
    """A line of a stored text."""

    speaker: str
    text: str


class Reply(NamedTuple):
    """An answer of the model: text, or the call of a tool."""

    kind: str
    text: str = ""
    tool: str = ""
    arguments: dict[str, Any] | None = None


# Embeddings


def embed(text: str) -> list[float]:
    """Return the vector of a text: signed counts of hashed words and character n-grams.

    All have something in common, so that no two are opposed: Hindsight leaves out what is, and a
    search is to find all that there is, best first.
    """
    vector = [0.0] * (DIMENSIONS - 1)
    for piece in _pieces(text) or ["<empty>"]:
        digest = hashlib.blake2b(piece.encode("utf-8", "replace"), digest_size=8).digest()
        position = int.from_bytes(digest[:4], "little") % len(vector)
        vector[position] += 1.0 if digest[4] & 1 else -1.0
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    vector.append(length * IN_COMMON)
    length = math.hypot(*vector)
    return [value / length for value in vector]


def _pieces(text: str) -> list[str]:
    pieces = []
    for word in re.findall(r"\w+", text.lower()):
        pieces.append(word)
        for size in (2, 3, 4):
            pieces += [word[start : start + size] for start in range(len(word) - size + 1)]
        pieces += [char for char in word if "\u4e00" <= char <= "\u9fff"]
    return pieces


# Facts of a stored text


def extract_facts(content: str, *, involving: bool = True) -> dict[str, Any]:
    """Make one fact of each line of a stored text."""
    facts = [_fact(line) for line in _turns(content) or _lines(content)]
    return {"facts": facts if involving else [{**fact, "who": "N/A"} for fact in facts]}


def _turns(content: str) -> list[Line]:
    """Read a text that is a JSON array of turns; empty if it is none."""
    try:
        turns = json.loads(content)
    except ValueError:
        return []
    if not isinstance(turns, list) or not all(isinstance(turn, dict) for turn in turns):
        return []
    return [_turn(turn) for turn in turns if isinstance(turn.get("content"), str)]


def _turn(turn: dict[str, Any]) -> Line:
    speaker = turn.get("name") or turn.get("role") or ""
    said = " ".join(turn["content"].split())
    return Line(speaker, f"{speaker}: {said}" if speaker else said)


def _lines(content: str) -> list[Line]:
    """Read a text line by line; a line without a label belongs to the speaker above it."""
    lines = []
    speaker = ""
    for raw in filter(None, map(str.strip, content.splitlines())):
        if labelled := _LABELLED.match(raw):
            speaker = labelled["speaker"].strip()
            lines.append(Line(speaker, raw))
        else:
            lines.append(Line(speaker, f"{speaker}: {raw}" if speaker else raw))
    return lines


def _fact(line: Line) -> dict[str, Any]:
    name = line.speaker.partition("#")[0].strip().lower()
    names = re.findall(r"\b[A-Z][a-z]{2,}\b", line.text)
    return {
        "what": line.text[:LONGEST_FACT],
        "when": "N/A",
        "where": "N/A",
        "who": line.speaker or "N/A",
        "why": "N/A",
        "fact_kind": "conversation",
        "fact_type": "assistant" if name in ASSISTANTS else "world",
        "occurred_start": None,
        "occurred_end": None,
        "entities": list(dict.fromkeys(filter(None, [line.speaker, *names])))[:5],
        "causal_relations": None,
    }


# Observations


def consolidate(prompt: str, mode: str) -> dict[str, Any]:
    """Turn the new facts of a consolidation prompt into observations."""
    new, _, existing = prompt.partition("### Existing observations")
    facts = _NEW_FACT.findall(new.partition("### New facts")[2])
    observations = _OBSERVATION.findall(existing)
    if mode == "greedy" and observations and facts:
        return {"creates": [], "updates": [_merged(observations[0], facts)], "deletes": []}
    creates = [
        {"text": f"Observation: {_plain(text)}", "source_fact_ids": [id_], "reason": "new"}
        for id_, text in facts
    ]
    return {"creates": creates, "updates": [], "deletes": []}


def _merged(observation: tuple[str, str], facts: list[tuple[str, str]]) -> dict[str, Any]:
    text = json.loads(observation[1])
    return {
        "observation_id": observation[0],
        "current_text": text,
        "text": " || ".join([text, *(_plain(fact) for _, fact in facts)]),
        "source_fact_ids": [id_ for id_, _ in facts],
        "reason": "merged",
    }


def _plain(fact: str) -> str:
    return _FACT_DATES.sub("", fact).partition(" | ")[0].strip()


# Reflect and profile pages


def next_tool(request: dict[str, Any]) -> Reply:
    """Decide which tool a reflect calls next: the one it is told to, else the one that ends it.

    Hindsight tells by `tool_choice`, or by offering a single tool.
    """
    tools = {tool["function"]["name"]: tool["function"] for tool in request["tools"]}
    choice = request.get("tool_choice")
    forced = choice.get("function", {}).get("name") if isinstance(choice, dict) else None
    endings = [name for name in ("answer_ready", "done") if name in tools]
    name = forced or (endings or list(tools))[0]
    found = _found(request["messages"])
    if name == "answer_ready":
        arguments: dict[str, Any] = {"answer_found": bool(found)}
    elif name == "done":
        arguments = _final_answer(tools["done"], found)
    else:
        question = _texts(request["messages"], "user")[0]
        arguments = {"reason": "to answer the question", "query": question[:LONGEST_QUERY]}
    return Reply("reflect", tool=name, arguments=arguments)


def _found(messages: list[dict[str, Any]]) -> dict[str, str]:
    """Return id and text of all that the tools have found so far."""
    found: dict[str, str] = {}
    for result in _texts(messages, "tool"):
        try:
            _collect(json.loads(result), found)
        except ValueError:
            continue
    return dict(list(found.items())[:MOST_QUOTED])


def _collect(value: Any, found: dict[str, str]) -> None:
    if isinstance(value, dict):
        if isinstance(value.get("id"), str) and isinstance(value.get("text"), str):
            found.setdefault(value["id"], value["text"])
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            _collect(item, found)


def _final_answer(tool: dict[str, Any], found: dict[str, str]) -> dict[str, Any]:
    wanted = tool["parameters"]["properties"]
    texts = list(dict.fromkeys(found.values()))
    arguments: dict[str, Any] = {"answer_found": bool(found), "memory_ids": list(found)}
    if "document" in wanted:
        arguments["document"] = {
            "sections": [{"heading": "Known", "level": 2, "blocks": texts or [NOTHING_KNOWN]}]
        }
    else:
        arguments["answer"] = f"From memory: {' / '.join(texts)}" if texts else NOTHING_KNOWN
    if "directive_compliance" in wanted:
        arguments["directive_compliance"] = "All directives are followed."
    return arguments


def edit_page(prompt: str) -> dict[str, Any]:
    """Add the new facts of a page's refresh to the page."""
    facts = _PAGE_FACT.findall(prompt.partition("## SUPPORTING FACTS")[2])
    page = _PAGE.search(prompt)
    sections = json.loads(page[1]).get("sections", []) if page else []
    if not sections:
        added = {"op": "add_section", "heading": "Known", "level": 2, "blocks": facts}
        return {"operations": [added] if facts else []}
    first = sections[0]["id"]
    return {"operations": [{"op": "append_block", "section_id": first, "text": f} for f in facts]}


# The interface


def reply_to(request: dict[str, Any], control: Control) -> Reply:
    """Answer a chat request by what its prompt is for."""
    if request.get("tools"):
        return next_tool(request)
    system = "\n".join(_texts(request["messages"], "system", "developer"))
    prompt = "\n".join(_texts(request["messages"], "user"))
    if "memory consolidation system" in system:
        return _json_reply("consolidation", consolidate(prompt, control.mode))
    if "reconcile long-term memory observations" in prompt:
        return _json_reply("dedup", {"action": "keep", "text": "", "reason": "distinct"})
    if extraction := _EXTRACTION.search(prompt):
        facts = extract_facts(extraction[1].strip(), involving=control.involving)
        return _json_reply("extraction", facts)
    if '{"operations":' in system:
        return _json_reply("page", edit_page(prompt))
    return Reply("other", text="ok")


def _json_reply(kind: str, answer: dict[str, Any]) -> Reply:
    return Reply(kind, text=json.dumps(answer, ensure_ascii=False))


def _texts(messages: list[dict[str, Any]], *roles: str) -> list[str]:
    return [_text(message.get("content")) for message in messages if message.get("role") in roles]


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content or ""


def _completion(reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if reply.tool:
        call = {"name": reply.tool, "arguments": json.dumps(reply.arguments, ensure_ascii=False)}
        message = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": call}],
        }
    finish = "tool_calls" if reply.tool else "stop"
    return {
        "id": "stub",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": "stub",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
    }


def _embeddings(request: dict[str, Any]) -> dict[str, Any]:
    texts = request["input"] if isinstance(request["input"], list) else [request["input"]]
    packed = request.get("encoding_format") == "base64"
    data = []
    for index, text in enumerate(texts):
        vector: Any = embed(str(text))
        if packed:
            vector = base64.b64encode(struct.pack(f"<{DIMENSIONS}f", *vector)).decode("ascii")
        data.append({"object": "embedding", "index": index, "embedding": vector})
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "data": data, "model": "stub", "usage": usage}


class ModelServer(ThreadingHTTPServer):
    """The HTTP server, with the state that the tests control."""

    daemon_threads = True

    def __init__(self, port: int, control: Control) -> None:
        """Listen on a loopback port."""
        super().__init__(("127.0.0.1", port), Handler)
        self.control = control
        self.calls: list[dict[str, Any]] = []
        self.lock = threading.Lock()
        self.changed = threading.Event()


class Handler(BaseHTTPRequestHandler):
    """One client connection."""

    server: ModelServer
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body leave in one piece
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Answer the list of calls, or of models."""
        if self.path == "/calls":
            with self.server.lock:
                self._send(list(self.server.calls))
        else:
            self._send({"object": "list", "data": [{"id": "stub", "object": "model"}]})

    def do_DELETE(self) -> None:
        """Forget the calls."""
        with self.server.lock:
            self.server.calls.clear()
        self._send({})

    def do_PUT(self) -> None:
        """Change how the model behaves."""
        changes = self._body()
        with self.server.lock:
            self.server.control = dataclasses.replace(self.server.control, **changes)
            self.server.changed.set()
            self.server.changed = threading.Event()
            self._send(dataclasses.asdict(self.server.control))

    def do_POST(self) -> None:
        """Answer an embedding or a chat request."""
        request = self._body()
        if self.path.endswith("/embeddings"):
            self._send(_embeddings(request))
        else:
            self._chat(request)

    def _chat(self, request: dict[str, Any]) -> None:
        with self.server.lock:
            control = self.server.control
            changed = self.server.changed
            fault = control.take_fault()
        changed.wait(control.delay)
        reply = reply_to(request, control)
        self._note(request, reply, fault)
        if isinstance(fault, int):
            error = {"message": "failure on request", "type": "server_error"}
            self._send({"error": error}, fault)
        elif fault is not None:
            self._send(_completion(Reply("garbage", text="I'd rather not.")))
        else:
            self._send(_completion(reply))

    def _note(self, request: dict[str, Any], reply: Reply, fault: int | str | None) -> None:
        call = {
            "at": time.time(),
            "kind": reply.kind,
            "fault": fault,
            "messages": request["messages"],
            "text": reply.text,
            "tool": reply.tool,
            "arguments": reply.arguments,
        }
        with self.server.lock:
            self.server.calls.append(call)

    def _body(self) -> dict[str, Any]:
        length = int(self.headers.get("content-length", 0))
        body: dict[str, Any] = json.loads(self.rfile.read(length) or b"{}")
        return body

    def _send(self, answer: Any, status: int = 200) -> None:
        body = json.dumps(answer, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, *args: Any) -> None:
        """Stay quiet; `GET /calls` is the log."""


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description="A deterministic model for a Hindsight server.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--mode", choices=("create", "greedy"), default="create")
    options = parser.parse_args()
    ModelServer(options.port, Control(mode=options.mode)).serve_forever()


if __name__ == "__main__":
    main()
