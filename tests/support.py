"""What several unit tests share: a scripted Hindsight, a clock, and builders of plain values."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import plugin
from astrbot_plugin_hindsight_memory import clock
from astrbot_plugin_hindsight_memory.archive import Archive
from astrbot_plugin_hindsight_memory.delivery import Delivery
from astrbot_plugin_hindsight_memory.erasure import Eraser
from astrbot_plugin_hindsight_memory.hindsight_client import HindsightClient
from astrbot_plugin_hindsight_memory.hindsight_types import RecalledMemory
from astrbot_plugin_hindsight_memory.outbox import Outbox
from astrbot_plugin_hindsight_memory.outbox_file import sync_log
from astrbot_plugin_hindsight_memory.scope import Hasher, Origin, Scope, Skip
from astrbot_plugin_hindsight_memory.settings import Settings, load_settings
from astrbot_plugin_hindsight_memory.texts import Texts
from astrbot_plugin_hindsight_memory.transcript import Header, Line, Message, Speaker, TurnRecord

SCHEMA: dict[str, Any] = json.loads((plugin.CHECKOUT / "_conf_schema.json").read_text("utf-8"))
NOW = datetime(2026, 3, 4, 12, 30, 5, tzinfo=UTC)
HASHER = Hasher(bytes(32))
ANN = Speaker("小明", "#3fa2c1")
WAIT_SECONDS = 10.0


def private_origin(sender: str = "20001", **changes: Any) -> Origin:
    values = {
        "platform": "aiocqhttp",
        "kind": "private",
        "umo": f"bot:FriendMessage:{sender}",
        "sender_id": sender,
        "group_id": "",
    }
    return Origin(**values | changes)


def group_origin(group: str = "70001", sender: str = "20001", **changes: Any) -> Origin:
    values = {
        "platform": "aiocqhttp",
        "kind": "group",
        "umo": f"bot:GroupMessage:{group}",
        "sender_id": sender,
        "group_id": group,
    }
    return Origin(**values | changes)


def scope_of(origin: Origin, hasher: Hasher = HASHER) -> Scope:
    scope = hasher.scope(origin)
    assert not isinstance(scope, Skip), scope
    return scope


def make_settings(**config: Any) -> Settings:
    return load_settings({"api_key": "hsk_key", "bank_id": "bot", **config}, SCHEMA)


def memory_of(text: str, **changes: Any) -> RecalledMemory:
    values: dict[str, Any] = {
        "memory_id": "m",
        "text": text,
        "kind": "world",
        "mentioned_at": NOW,
        "tags": frozenset(),
        "score": None,
    }
    return RecalledMemory(**values | changes)


def delivery_of(outbox: Outbox, client: HindsightClient | None, clock: Clock) -> Delivery:
    return Delivery(
        outbox,
        client,
        idle_seconds=8,
        daily_chars=0,
        clock=clock,
        random=lambda: 1.0,
        logger=LogRecords().logger,
    )


def archive_of(
    client: HindsightClient, outbox: Outbox, delivery: Delivery, clock: Clock
) -> tuple[Archive, Eraser]:
    """What reads and what erases, as a start wires them."""
    archive = Archive(
        client, outbox, delivery, clock=clock, profile_id=lambda scope: f"p{scope.chat[:8]}"
    )
    return archive, Eraser(client, archive, outbox, delivery, clock=clock)


def message_of(scope: Scope, words: str, **changes: Any) -> Message:
    values: dict[str, Any] = {
        "scope": scope,
        "speaker": ANN,
        "raw": words,
        "words": words,
        "quoted": "",
        "stored": words,
        "at": NOW,
        "texts": Texts("zh"),
        "bot": Speaker("助手"),
    }
    return Message(**values | changes)


def turn_of(chat: str = "a" * 32, text: str = "hello", *, urgent: bool = False) -> TurnRecord:
    at = "2026-03-04T12:30:05+00:00"
    header = Header(("t1", "t2", "t3", chat), "a chat", at, {"plugin": "p"})
    lines = (Line(f"Ann#0a0b0c ({at}): {text}"), Line(f"Bot ({at}): yes"))
    return TurnRecord(chat, header, lines, urgent)


class Clock(clock.Clock):
    """Time that passes only when told to, and at once where somebody sleeps.

    Attributes:
        now: Monotonic seconds.
        wall: Unix seconds.
        day: The local date.
        sleeper: What happens while somebody sleeps.
        is_patient: Whoever waits for work waits until it is done, else not at all.
    """

    def __init__(self, now: float = 1000.0) -> None:
        super().__init__(UTC)
        self.now = now
        self.wall = 1_800_000_000.0
        self.day = "2026-03-04"
        self.sleeper: Callable[[float], Awaitable[None]] = self._pass
        self.is_patient = True

    def __call__(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def unix(self) -> float:
        return self.wall

    def local(self) -> datetime:
        return NOW

    def today(self) -> str:
        return self.day

    async def sleep(self, seconds: float) -> None:
        await self.sleeper(seconds)

    async def wait(self, work: asyncio.Future[Any], seconds: float) -> bool:
        return await super().wait(work, WAIT_SECONDS if self.is_patient else 0.0)

    async def _pass(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


async def until(predicate: Callable[[], Any]) -> None:
    """Lets other tasks run until something is true; fails where that never happens."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not predicate():  # noqa: ASYNC110 - one turn of the loop, no waiting for time
            await asyncio.sleep(0)


Answer = httpx.Response | Exception


async def deliver_all(delivery: Delivery, server: FakeServer) -> None:
    """Delivers until nothing more is sent at this moment."""
    await delivery.settle()
    sent = -1
    while sent != len(server.requests):
        sent = len(server.requests)
        await delivery.step()
        await delivery.settle()


def reply(status: int = 200, content: Any = None, **headers: str) -> httpx.Response:
    """An answer with JSON."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, json={} if content is None else content, headers=named)


class FakeServer:
    """Answers like Hindsight as far as a test scripts it.

    Attributes:
        requests: What has arrived.
        script: The next answers; when it is empty, `otherwise` answers.
        otherwise: Makes the answers that no script holds.
        gate: Cleared, it keeps every request waiting.
        waiting: Requests that wait at the gate.
        cancelled: Requests that were given up while they waited.
    """

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []
        self.script: deque[Answer] = deque()
        self.otherwise: Callable[[httpx.Request], Answer] = lambda _: reply()
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = 0
        self.cancelled = 0

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(request.content) for request in self.requests if request.content]

    @property
    def contents(self) -> list[str]:
        """The stored texts, in the order of arrival."""
        return [body["items"][0]["content"] for body in self.bodies if "items" in body]

    def client(self, **changes: Any) -> HindsightClient:
        values = {"api_base": "http://hindsight.test", "api_key": "hsk_key", "bank_id": "bot"}
        transport = httpx.MockTransport(self._handle)
        return HindsightClient(**values | {"clock": Clock()} | changes, transport=transport)

    async def _handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.script.popleft() if self.script else self.otherwise(request)
        self.waiting += 1
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.waiting -= 1
        if isinstance(answer, Exception):
            raise answer
        return answer


def recall_results(*texts: str, scope: Scope) -> dict[str, Any]:
    """The JSON of a recall whose results belong to a scope."""
    return {
        "results": [
            {"id": str(n), "text": text, "type": "world", "tags": list(scope.tags)}
            for n, text in enumerate(texts)
        ]
    }


class LogRecords(logging.Handler):
    """A logger whose records a test can count."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []
        self.logger = logging.Logger("test")  # noqa: LOG001 - one of its own for each test
        self.logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def lines(self, level: int) -> list[str]:
        return [r.getMessage() for r in self.records if r.levelno == level]


class Disk:
    """A disk for the outbox that can be told to fail or to stall.

    Attributes:
        fault: The SQLite error code that statements fail with, or None.
        only: Statements that the fault is limited to: a part of their text.
        heals: Opening the database anew ends the fault.
    """

    def __init__(self) -> None:
        self.fault: int | None = None
        self.only = ""
        self.heals = False
        self._opened = False
        self._stall: tuple[threading.Event, threading.Event] | None = None

    def connect(self, path: Path) -> sqlite3.Connection:
        if self.heals and self._opened:
            self.fault = None
        self._opened = True
        factory: Any = functools.partial(_Connection, disk=self)
        db: sqlite3.Connection = sqlite3.connect(path, check_same_thread=False, factory=factory)
        try:
            db.execute("PRAGMA foreign_keys = ON")
            db.execute("PRAGMA synchronous = OFF")  # no test cuts the power
        except sqlite3.Error:
            db.close()
            raise
        return db

    def sync(self, path: Path) -> None:
        """Waits for the disk like the plugin, as the statement `sync the log`."""
        self.touch("sync the log")
        sync_log(path)

    def stall(self) -> tuple[Callable[[], Awaitable[bool]], Callable[[], None]]:
        """Makes the next statement wait.

        Returns:
            One function to await until it waits, another to let it go on.
        """
        reached, go_on = threading.Event(), threading.Event()
        self._stall = reached, go_on
        return functools.partial(asyncio.to_thread, reached.wait, WAIT_SECONDS), go_on.set

    def touch(self, statement: str) -> None:
        if self._stall:
            (reached, go_on), self._stall = self._stall, None
            reached.set()
            go_on.wait(WAIT_SECONDS)
        if self.fault is not None and self.only in statement:
            error = sqlite3.OperationalError("the disk of this test")
            error.sqlite_errorcode = self.fault
            raise error


class _Connection(sqlite3.Connection):
    def __init__(self, *arguments: Any, disk: Disk, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._disk = disk

    def execute(self, statement: str, parameters: Any = (), /) -> sqlite3.Cursor:
        self._disk.touch(statement)
        return super().execute(statement, parameters)


def leaves(schema: Mapping[str, Any] = SCHEMA, path: str = "") -> dict[str, Mapping[str, Any]]:
    """Every value of the settings page by its dotted path."""
    found: dict[str, Mapping[str, Any]] = {}
    for name, meta in schema.items():
        if meta["type"] == "object":
            found |= leaves(meta["items"], f"{path}{name}.")
        else:
            found[path + name] = meta
    return found
