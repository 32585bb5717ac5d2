"""A chat's past as a OneBot platform and AstrBot tell it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.events import EventReader, ids_of
from astrbot_plugin_hindsight_memory.history import PastEvent, Place
from astrbot_plugin_hindsight_memory.people import People
from astrbot_plugin_hindsight_memory.scope import Scope, ScopeState
from astrbot_plugin_hindsight_memory.settings import Settings
from astrbot_plugin_hindsight_memory.texts import Texts

BOT, GROUP = "90009001", "70001"
PLACE = Place(
    platform="aiocqhttp",
    instance="bot",
    kind="group",
    umo=f"bot:GroupMessage:{GROUP}",
    session_id=GROUP,
    group_id=GROUP,
    self_id=BOT,
    person_id="20001",
    person_name="小明",
    wake_prefixes=("/",),
    commands=frozenset({"hindsight", "reset", "天气 今天"}),
)
PRIVATE = replace(
    PLACE, kind="private", umo="bot:FriendMessage:20001", session_id="20001", group_id=""
)
_numbers = itertools.count(1)


def text(words: str) -> dict[str, Any]:
    """A segment of plain text."""
    return {"type": "text", "data": {"text": words}}


def at(person: str) -> dict[str, Any]:
    """A segment that mentions somebody."""
    return {"type": "at", "data": {"qq": person}}


def reply_to(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A segment that quotes a message."""
    return {"type": "reply", "data": {"id": str(entry["message_id"])}}


def entry(
    person: str,
    time: float,
    *segments: Any,
    name: str = "",
    group: str | None = GROUP,
) -> dict[str, Any]:
    """A message as OneBot's history has it; a text alone is one for the bot."""
    number = next(_numbers)
    if segments and isinstance(segments[0], str):
        mention = [] if person == BOT or group is None else [at(BOT)]
        segments = (*mention, text(segments[0]))
    made = {
        "self_id": int(BOT),
        "user_id": int(person),
        "time": int(time),
        "message_id": number,
        "message_seq": number,
        "sender": {
            "user_id": int(person),
            "nickname": "助手" if person == BOT else name,
            "card": "",
        },
        "message": list(segments),
        "post_type": "message_sent" if person == BOT else "message",
    }
    return made if group is None else {**made, "group_id": int(group)}


def talk(
    people: Sequence[tuple[str, str]], number: int, *, start: float, step: float = 60.0
) -> list[dict[str, Any]]:
    """So many messages, half of them the bot's answers; each person says things of their own."""
    found: list[dict[str, Any]] = []
    for n in range(number // 2):
        person, name = people[n % len(people)]
        at_time = start + n * step
        found.append(entry(person, at_time, f"我是{name}，第{n}件事是茶{n}", name=name))
        found.append(entry(BOT, at_time + 5, f"记下第{n}件事了"))
    return found


def row(kind: str, created: Any, *parts: dict[str, Any], sender: str = "", name: str = "") -> Any:
    """A row of AstrBot's message history."""
    content = {"type": kind, "message": list(parts)}
    return SimpleNamespace(content=content, created_at=created, sender_id=sender, sender_name=name)


class FakePast:
    """What the importer is handed.

    Attributes:
        place: The chat.
        entries: OneBot's history, None where the platform has none.
        stored_rows: AstrBot's message history.
        talks: Conversations with the model.
        asked: Parameters of each question to OneBot.
        said: What was said in the chat.
        page: How many entries OneBot gives at once.
    """

    def __init__(
        self, state: ScopeState, people: People, settings: Settings, scope: Scope, place: Place
    ) -> None:
        self._state, self._people = state, people
        self._settings, self._scope = settings, scope
        self.place = place
        self.host = self
        self.entries: list[dict[str, Any]] | None = None
        self.stored_rows: list[Any] = []
        self.talks: list[Any] = []
        self.asked: list[Mapping[str, Any]] = []
        self.said: list[str] = []
        self.page = 20
        self.order: Callable[[Iterable[Any]], list[Any]] = list

    async def reader(self, event: PastEvent) -> EventReader:
        """Reads a past message."""
        await self._people.meet(self._scope, ids_of(event))
        return EventReader(
            event,
            self._scope,
            self._people.roster(self._scope),
            Texts("zh"),
            privacy=self._settings.privacy,
            opted_out=lambda one: self._state.is_opted_out(self._scope, one),
        )

    async def say(self, text: str) -> None:
        """Notes what the chat is told."""
        self.said.append(text)

    async def onebot(self, action: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Like NapCat: the page ends with the message asked for."""
        self.asked.append({"action": action, **params})
        if self.entries is None:
            return None
        anchor = params.get("message_seq")
        ids = [one["message_id"] for one in self.entries]
        if anchor is not None and anchor not in ids:
            return None
        end = len(ids) if anchor is None else ids.index(anchor) + 1
        return {"messages": self.order(self.entries[max(end - self.page, 0) : end])}

    async def rows(self, platform_id: str, user_id: str, page: int) -> Sequence[Any] | None:
        """A page of the message history."""
        self.asked.append({"platform_id": platform_id, "user_id": user_id})
        end = len(self.stored_rows) - (page - 1) * self.page
        return self.stored_rows[max(end - self.page, 0) : max(end, 0)]

    async def conversations(self, umo: str) -> Sequence[Any] | None:
        """The conversations."""
        self.asked.append({"umo": umo})
        return self.talks
