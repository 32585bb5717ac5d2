"""The plugin in the benchmark of recall; nothing else of that benchmark knows its modules.

Turns and questions go the way of ordinary messages, without the host: an event is read, recalled
for, remembered, kept in the outbox and delivered, all with the default settings.
"""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import plugin
from astrbot_plugin_hindsight_memory.clock import Clock
from astrbot_plugin_hindsight_memory.delivery import Delivery
from astrbot_plugin_hindsight_memory.events import EventReader, origin_of
from astrbot_plugin_hindsight_memory.hindsight_client import HindsightClient
from astrbot_plugin_hindsight_memory.memory import ChatMemory
from astrbot_plugin_hindsight_memory.outbox import Outbox
from astrbot_plugin_hindsight_memory.people import Roster
from astrbot_plugin_hindsight_memory.scope import Hasher, Scope, ScopeState
from astrbot_plugin_hindsight_memory.settings import Settings, load_settings
from astrbot_plugin_hindsight_memory.texts import Texts
from astrbot_plugin_hindsight_memory.transcript import Message
from astrbot_plugin_hindsight_memory.wishes import Erasure
from rig.running import Running

from bench.dialogue import Chat, Question, Turn

PAUSE = 20.0
"""Seconds between two turns."""
NIGHT = 7200.0
"""Seconds between two days, and between two chats."""

KEEPALIVE = 600.0
PATIENCE = 15.0
"""The longest wait for a recall: a busy machine must not look like a memory without evidence."""

TRIES = 50
_DAY = "2026-01-01"
_HASHER = Hasher(bytes(32))
_ANSWERING = timedelta(seconds=5)


@dataclass(frozen=True)
class Block:
    """What the plugin put into the model's request for a question.

    Attributes:
        text: The block, empty if there was none.
        lines: How many memories stand in it.
        requests: How many requests that took.
        seconds: How long it took.
        failure: Why there is none, or empty.
    """

    text: str
    lines: int
    requests: int
    seconds: float
    failure: str = ""


@dataclass(frozen=True)
class Server:
    """Where a Hindsight is.

    Attributes:
        url: Its base address.
        api_key: Its key.
        bank: The bank.
    """

    url: str
    api_key: str
    bank: str


class Player(Running):
    """One installation of the plugin with a clock of its own; use it with `async with`."""

    def __init__(self, server: Server, folder: Path, *, max_tokens: int | None = None) -> None:
        """Describe it.

        Args:
            server: Where it remembers.
            folder: Its data folder, empty.
            max_tokens: The setting of that name; None for the default.
        """
        super().__init__()
        recall: dict[str, Any] = {"timeout_seconds": PATIENCE}
        if max_tokens is not None:
            recall["max_tokens"] = max_tokens
        self._server = server
        self._folder = folder
        self._settings = _settings(
            api_base=server.url, api_key=server.api_key, bank_id=server.bank, recall=recall
        )
        self._clock = _Clock()

    async def _start(self) -> None:
        retain = self._settings.retain
        self._wire = _Wire()
        client = HindsightClient(
            api_base=self._server.url,
            api_key=self._server.api_key,
            bank_id=self._server.bank,
            clock=self._clock,
            transport=self._wire,
        )
        self._exits.push_async_callback(client.aclose)
        self._outbox = Outbox(
            self._folder, every_n_turns=retain.every_n_turns, now=self._clock.monotonic
        )
        self._delivery = Delivery(
            self._outbox,
            client,
            idle_seconds=retain.idle_seconds,
            daily_chars=retain.daily_chars,
            clock=self._clock,
            random=random.random,
            logger=logging.getLogger("bench"),
        )
        self._exits.push_async_callback(self._delivery.aclose)
        state = ScopeState.load(self._folder)
        self._memory = ChatMemory(self._settings, state, client, self._delivery, clock=self._clock)
        self._exits.push_async_callback(self._memory.aclose)
        await self._delivery.start()

    async def play(self, chats: Iterable[Chat]) -> None:
        """Have everything said, remembered and delivered, one chat after the other."""
        for chat in chats:
            for turn, following in zip(chat.turns, [*chat.turns[1:], None], strict=True):
                await self._remember(chat, turn)
                same_day = following is not None and following.at.date() == turn.at.date()
                self._clock.now += PAUSE if same_day else NIGHT
                await self._delivery.step()
        await self._deliver()

    async def ask(self, chat: Chat, question: Question) -> Block:
        """Recall for a question as if it were the next message of its chat."""
        scope = scope_in(chat)
        self._memory.forget_chat(scope)  # what was asked before is no part of the dialogue
        if before := question.before:
            at = question.at - timedelta(seconds=PAUSE)
            turn = Turn(at, question.speaker, before.words, before.answer)
            await self._recall(_message(chat, turn.speaker, turn.words, turn.at))
            await self._remember(chat, turn)
            self._clock.now += PAUSE
        found = await self._recall(_message(chat, question.speaker, question.words, question.at))
        if before:
            await self._outbox.drop_chat(Erasure(scope.chat, scope.tags, profile=""))
        return found

    async def _recall(self, message: Message) -> Block:
        sent, started = self._wire.requests, time.perf_counter()
        task = self._memory.start_recall(message)
        text = (await task).block if task else ""
        seconds = time.perf_counter() - started
        report = self._memory.report(message.scope)
        failure = report.failure if task and report else "skipped"
        lines = report.lines if report else 0
        return Block(text, lines, self._wire.requests - sent, seconds, failure)

    async def _remember(self, chat: Chat, turn: Turn) -> None:
        """Remember a turn; one without an answer is somebody's line."""
        message = _message(chat, turn.speaker, turn.words, turn.at)
        await self._memory.remember([message], turn.answer, turn.at + _ANSWERING)

    async def _deliver(self) -> None:
        for _ in range(TRIES):
            await self._delivery.flush()
            if not (await self._outbox.figures(day=_DAY)).waiting:
                return
            self._clock.now += NIGHT
        raise AssertionError(f"the server does not take the turns: {self._delivery.state}")


class _Clock(Clock):
    """Time that passes as the dialogues say.

    Attributes:
        now: Monotonic seconds.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def today(self) -> str:
        return _DAY


class _Wire(httpx.AsyncHTTPTransport):
    """The way to the server; counts what is sent."""

    def __init__(self) -> None:
        super().__init__(limits=httpx.Limits(keepalive_expiry=KEEPALIVE))
        self.requests = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        return await super().handle_async_request(request)


class _Event:
    """What the plugin reads of a message, as a platform would deliver it, with made-up ids."""

    def __init__(self, chat: Chat, speaker: str, words: str) -> None:
        self.message_str = words
        self.message_obj = SimpleNamespace(raw_message=None)
        self._name = speaker
        self._person = f"1000{chat.number:04}{1 + chat.speakers.index(speaker):02}"
        self._group = f"7000{chat.number:04}" if chat.kind == "group" else ""
        self._kind = "GroupMessage" if self._group else "FriendMessage"
        self.session_id = self._group or self._person
        self.unified_msg_origin = f"bot:{self._kind}:{self.session_id}"

    def get_platform_name(self) -> str:
        return "aiocqhttp"

    def get_message_type(self) -> SimpleNamespace:
        return SimpleNamespace(value=self._kind)

    def get_sender_id(self) -> str:
        return self._person

    def get_sender_name(self) -> str:
        return self._name

    def get_group_id(self) -> str:
        return self._group

    def get_self_id(self) -> str:
        return "90009001"

    def get_messages(self) -> Sequence[Any]:
        return ()


def scope_in(chat: Chat) -> Scope:
    """The scope of a chat, the same in every run."""
    scope = _HASHER.scope(origin_of(_Event(chat, chat.turns[0].speaker, "")))
    assert isinstance(scope, Scope)
    return scope


def _message(chat: Chat, speaker: str, words: str, at: datetime) -> Message:
    """The message as the plugin reads it."""
    reader = EventReader(
        _Event(chat, speaker, words),
        scope_in(chat),
        Roster(_HASHER, scope_in(chat)),
        Texts(chat.language),
        privacy=_settings().privacy,
        opted_out=lambda _: False,
    )
    return reader.message(at)


def _settings(**changes: Any) -> Settings:
    """The default settings, but for these."""
    schema = json.loads((plugin.CHECKOUT / "_conf_schema.json").read_text("utf-8"))
    return load_settings(changes, schema)
