"""A Hindsight that keeps what it is given, as far as the commands use it."""

from __future__ import annotations

import itertools
import json
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
from astrbot_plugin_hindsight_memory.scope import Scope
from support import Answer, Clock, Disk, FakeServer, reply

ROOT = "/v1/default/banks/bot/"
PAGE = 100


class FakeBank(FakeServer):
    """Answers from what is stored in it.

    Attributes:
        documents: By id, as `GET documents/{id}` returns them.
        memories: By id, as `GET memories/{id}` returns them.
        profiles: Texts of mental models by id; `created` are the bodies they were made from.
        queue: Retains that the server has taken and not yet written: operations and items.
        running: Operations in the queue that cancelling does not stop.
        slow: Retains wait in the queue until `drain` or `write_one`.
        records: Operations that have ended, by id, with the items they keep: what `queue` holds.
        version: What it says it is.
        secretive: Records do not tell what they hold.
        retries: Failed operations may be tried again.
        used: Model calls and their tokens; None where nobody counts.
        unconcluded: How many facts concluding failed for; `unread` are those that wait for it.
        config: The bank's settings.
        careless: Lists and recalls look at no tags.
        fault: Answers in the place of everything that `is_faulty` picks.
    """

    def __init__(self) -> None:
        super().__init__()
        self.documents: dict[str, dict[str, Any]] = {}
        self.memories: dict[str, dict[str, Any]] = {}
        self.profiles: dict[str, str] = {}
        self.created: list[dict[str, Any]] = []
        self.queue: dict[str, dict[str, Any]] = {}
        self.running: set[str] = set()
        self.slow = False
        self.records: dict[str, dict[str, Any]] = {}
        self.version = "1.1.0"
        self.secretive = False
        self.retries = True
        self.unconcluded = self.unread = 0
        self.used: tuple[int, int] | None = None
        self.config: dict[str, Any] = {}
        self.careless = False
        self.fault: Callable[[], Answer] | None = None
        self.is_faulty: Callable[[httpx.Request], bool] = lambda _: True
        self.reflection: dict[str, Any] = {"text": ""}
        self.otherwise = self._answer
        self._numbers = itertools.count()

    def store(
        self,
        scope: Scope,
        *lines: str,
        document_id: str = "",
        metadata: dict[str, str] | None = None,
    ) -> str:
        """Puts a document in the bank, with one memory per line; returns its id."""
        document_id = document_id or f"{scope.chat[:24]}-{next(self._numbers)}"
        self._write(
            {
                "content": "\n".join(lines),
                "document_id": document_id,
                "context": "一个群",
                "timestamp": "2026-01-02T03:04:05+08:00",
                "metadata": metadata or {"plugin": "p", "turns": "9", "speakers": "#000001"},
                "tags": list(scope.tags),
            }
        )
        return document_id

    def conclude(self, scope: Scope, text: str, *sources: str, memory_id: str = "o1") -> str:
        """Puts a conclusion in the bank; returns its id."""
        self.memories[memory_id] = {
            "id": memory_id,
            "text": text,
            "type": "observation",
            "tags": list(scope.tags),
            "source_memory_ids": list(sources),
        }
        return memory_id

    def texts(self, scope: Scope) -> list[str]:
        """What is stored of a chat."""
        own = [d for d in self.documents.values() if set(scope.tags) <= set(d["tags"])]
        return [document["original_text"] for document in own]

    def fail(self, answer: Answer | Callable[[], Answer], part: str = "", method: str = "") -> None:
        """Makes requests fail whose path holds a part, with a method where one is given."""
        self.fault = answer if callable(answer) else lambda: answer
        self.is_faulty = lambda r: part in r.url.path and method in {"", r.method}

    def heal(self) -> None:
        self.fault = None

    def drain(self) -> None:
        """Writes what is in the queue."""
        for operation_id in list(self.queue):
            self.write_one(operation_id)

    def write_one(self, operation_id: str) -> None:
        """Ends one operation of the queue."""
        entry = self.queue.pop(operation_id)
        self._write(entry["item"])
        self.records[operation_id] = entry | {"status": "completed"}

    def asked(self, method: str, part: str = "") -> list[str]:
        """Paths of the requests of a method, below the bank."""
        paths = [r.url.path.removeprefix(ROOT) for r in self.requests if r.method == method]
        return [path for path in paths if part in path]

    def _write(self, item: dict[str, Any]) -> None:
        document_id = item["document_id"]
        self.documents[document_id] = {
            "id": document_id,
            "original_text": item["content"],
            "tags": item["tags"],
            "retain_params": {"context": item["context"], "event_date": item["timestamp"]},
            "document_metadata": item["metadata"],
        }
        for number, line in enumerate(item["content"].splitlines()):
            memory_id = f"{document_id}.{number}"
            self.memories[memory_id] = {
                "id": memory_id,
                "text": line.partition("): ")[2] or line,
                "type": "world",
                "tags": item["tags"],
                "document_id": document_id,
                "mentioned_at": item["timestamp"],
                "metadata": item["metadata"],
            }

    def _answer(self, request: httpx.Request) -> Answer:
        if self.fault and self.is_faulty(request):
            return self.fault()
        path = unquote(request.url.raw_path.decode().partition("?")[0]).removeprefix(ROOT)
        name, _, rest = path.removeprefix("/v1/").partition("/")
        handler = getattr(self, f"_{request.method}_{name.replace('-', '_')}".lower(), None)
        return handler(request, rest) if handler else reply()

    def _matching(self, request: httpx.Request, rows: dict[str, Any]) -> list[Any]:
        """One page of what carries all the tags asked for."""
        query = request.url.params
        wanted = set() if self.careless else set(query.get_list("tags"))
        text, document = query.get("q", ""), query.get("document_id")
        found = [
            row
            for row in rows.values()
            if wanted <= set(row["tags"])
            and text in row.get("text", "")
            and document in {None, row.get("document_id")}
        ]
        return found[int(query.get("offset", 0)) :]

    def _page(self, request: httpx.Request, rows: dict[str, Any]) -> Answer:
        found = self._matching(request, rows)
        limit = int(request.url.params.get("limit", PAGE))
        total = len(found) + int(request.url.params.get("offset", 0))
        return reply(content={"items": found[:limit], "total": total})

    def _get_version(self, request: httpx.Request, rest: str) -> Answer:
        return reply(content={"api_version": self.version})

    def _get_documents(self, request: httpx.Request, document_id: str) -> Answer:
        if not document_id:
            return self._page(request, self.documents)
        return _found(self.documents.get(document_id), "Document")

    def _patch_documents(self, request: httpx.Request, document_id: str) -> Answer:
        if document := self.documents.get(document_id):
            document["tags"] = json.loads(request.content)["tags"]
            for memory in self.memories.values():
                if memory.get("document_id") == document_id:
                    memory["tags"] = document["tags"]
        return _found(document, "Document")

    def _delete_documents(self, request: httpx.Request, document_id: str) -> Answer:
        gone = self.documents.pop(document_id, None)
        self.memories = {
            k: m for k, m in self.memories.items() if m.get("document_id") != document_id
        }
        self.memories = {k: m for k, m in self.memories.items() if self._stands(m)}
        return _found(gone, "Document")

    def _stands(self, memory: dict[str, Any]) -> bool:
        """Whether a conclusion has a source left."""
        sources = memory.get("source_memory_ids")
        return not sources or not self.memories.keys().isdisjoint(sources)

    def _get_memories(self, request: httpx.Request, memory_id: str) -> Answer:
        if memory_id == "list" and request.url.params.get("tags_match") == "exact":
            untagged = {key: row for key, row in self.memories.items() if not row["tags"]}
            return self._page(request, untagged)
        if memory_id == "list":
            return self._page(request, self.memories)
        return _found(self.memories.get(memory_id), "Memory")

    def _post_memories(self, request: httpx.Request, rest: str) -> Answer:
        body = json.loads(request.content)
        if rest == "recall":
            wanted = set() if self.careless else set(body["tags"])
            rows = [m for m in self.memories.values() if wanted <= set(m["tags"])]
            return reply(content={"results": rows})
        for item in body["items"]:
            self.take(item, body.get("operation_id"), at_once=not (self.slow and body["async"]))
        return reply()

    def take(self, item: dict[str, Any], operation_id: str | None, *, at_once: bool) -> None:
        """Queues an item; a second request under the id of an operation changes nothing."""
        key = operation_id or f"retain-{len(self.records)}-{item['document_id']}"
        if key not in {*self.queue, *self.records}:
            self.queue[key] = {"status": "pending", "item": item}
            if at_once:
                self.write_one(key)

    def _get_operations(self, request: httpx.Request, rest: str) -> Answer:
        query = request.url.params
        offset, known = int(query.get("offset", 0)), {**self.queue, **self.records}
        if rest:
            return self._operation(rest, known.get(rest), query)
        rows = [
            {
                "id": key,
                "document_id": entry["item"]["document_id"],
                "status": entry["status"],
                "operation_type": entry.get("kind", "retain"),
                "error_message": entry.get("error"),
                "created_at": entry.get("created_at"),
            }
            for key, entry in known.items()
            if query.get("status") in {None, entry["status"]}
            and query.get("type") in {None, entry.get("kind", "retain")}
        ]
        return reply(content={"operations": rows[offset : offset + PAGE]})

    def _operation(
        self, key: str, entry: dict[str, Any] | None, query: httpx.QueryParams
    ) -> Answer:
        if entry is None:
            return reply(content={"operation_id": key, "status": "not_found"})
        is_told = "include_payload" in query and not self.secretive
        item = {**entry["item"], "event_date": entry["item"]["timestamp"]}
        payload = {"contents": [item]} if is_told else None
        content = {"operation_id": key, "status": entry["status"], "task_payload": payload}
        return reply(content=content)

    def fail_retains(self, error: str = "RuntimeError: Error code: 429 - slow down") -> None:
        """Ends what is in the queue as failed."""
        for key, entry in self.queue.items():
            self.records[key] = entry | {"status": "failed", "error": error}
        self.queue.clear()

    def _get_observations(self, request: httpx.Request, rest: str) -> Answer:
        tags = [m["tags"] for m in self.memories.values() if m["type"] == "observation"]
        return reply(content={"scopes": [{"tags": one, "count": 1} for one in tags]})

    def _get_llm_requests(self, request: httpx.Request, rest: str) -> Answer:
        if self.used is None:
            return reply(content={"buckets": []})
        calls, tokens = self.used
        bucket = {"total": calls, "tokens": {"input": tokens, "output": 0}}
        return reply(content={"buckets": [bucket]})

    def _get_stats(self, request: httpx.Request, rest: str) -> Answer:
        figures = {"failed_consolidation": self.unconcluded, "pending_consolidation": self.unread}
        return reply(content=figures)

    def _post_consolidation(self, request: httpx.Request, rest: str) -> Answer:
        number, self.unconcluded = self.unconcluded, 0
        return reply(content={"retried_count": number})

    def _delete_operations(self, request: httpx.Request, rest: str) -> Answer:
        operation_id, _, action = rest.partition("/")
        if action == "delete":
            if operation_id in self.queue:
                return reply(409, {"detail": "cannot be deleted"})
            gone = self.records.pop(operation_id, None)
            return (
                reply() if gone else reply(404, {"detail": f"Operation {operation_id} not found"})
            )
        if operation_id not in self.running and (entry := self.queue.pop(operation_id, None)):
            self.records[operation_id] = entry | {"status": "cancelled"}
        return reply()

    def _post_operations(self, request: httpx.Request, rest: str) -> Answer:
        operation_id = rest.partition("/")[0]
        entry = self.records.get(operation_id)
        if not self.retries:
            return reply(405)
        if entry is None:
            return reply(404, {"detail": f"Operation {operation_id} not found"})
        if entry["status"] != "failed":
            return reply(409, {"detail": "cannot be retried"})
        entry["status"] = "completed"
        self._write(entry["item"])
        return reply()

    def _get_mental_models(self, request: httpx.Request, profile_id: str) -> Answer:
        text = self.profiles.get(profile_id)
        return _found(None if text is None else {"content": text}, "Mental model")

    def _post_mental_models(self, request: httpx.Request, rest: str) -> Answer:
        body = json.loads(request.content)
        self.created.append(body)
        self.profiles[body["id"]] = ""
        return reply()

    def _delete_mental_models(self, request: httpx.Request, profile_id: str) -> Answer:
        return _found(self.profiles.pop(profile_id, None), "Mental model")

    def _get_config(self, request: httpx.Request, rest: str) -> Answer:
        return reply(content={"config": self.config})

    def _patch_config(self, request: httpx.Request, rest: str) -> Answer:
        self.config |= json.loads(request.content)["updates"]
        return reply()

    def _post_reflect(self, request: httpx.Request, rest: str) -> Answer:
        return reply(content=self.reflection)


def _found(row: Any, what: str) -> Answer:
    if row is None:
        return reply(404, {"detail": f"{what} not found"})
    return reply(content=row if isinstance(row, dict) else {})


class BankCase(unittest.IsolatedAsyncioTestCase):
    """Has a bank, a client of it, a data folder, and time that stands still."""

    async def asyncSetUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.bank = FakeBank()
        self.client = self.bank.client()
        self.addAsyncCleanup(self.client.aclose)
        self.clock = Clock()
        self.disk = Disk()
