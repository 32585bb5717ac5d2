"""Events and message components in the shapes that AstrBot gives them, also from plain JSON."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from enum import StrEnum
from types import SimpleNamespace
from typing import Any

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.bot_names import BotNames
from astrbot_plugin_hindsight_memory.events import EventReader, origin_of
from astrbot_plugin_hindsight_memory.people import Roster
from astrbot_plugin_hindsight_memory.settings import PrivacySettings
from astrbot_plugin_hindsight_memory.texts import Texts
from support import HASHER, Clock, make_settings, scope_of

BOT, ANN, BEN, GROUP = "90009001", "10001001", "20002002", "70007001"


class Kind(StrEnum):
    Plain = "Plain"
    At = "At"
    Reply = "Reply"
    Image = "Image"
    Record = "Record"
    Video = "Video"
    File = "File"
    Forward = "Forward"
    Node = "Node"
    Nodes = "Nodes"
    Face = "Face"


def part(kind: str, **values: Any) -> Any:
    """A message component as AstrBot has it."""
    return SimpleNamespace(type=Kind(kind), **values)


def at(qq: Any, name: str | None = "") -> Any:
    return part("At", qq=qq, name=name)


def quote(sender: Any = BEN, name: str = "小红", text: str = "你好", chain: Any = ()) -> Any:
    return part("Reply", sender_id=sender, sender_nickname=name, message_str=text, chain=chain)


class FakeEvent:
    """What the plugin uses of AstrBot's events."""

    def __init__(self, words: str | None = "", *parts: Any, **changes: Any) -> None:
        self.message_str = words
        self.parts = parts
        self.group_id: str | None = GROUP
        self.sender_id: str | None = ANN
        self.sender_name: str | None = "小明"
        self.self_id = BOT
        self.platform = "aiocqhttp"
        self.admin = False
        self.extras: dict[str, Any] = {}
        self.message_obj: Any = SimpleNamespace(raw_message=None)
        self.__dict__ |= changes
        kind = "GroupMessage" if self.group_id else "FriendMessage"
        self.session_id = changes.get("session_id") or self.group_id or self.sender_id or ""
        self.unified_msg_origin = f"bot1:{kind}:{self.session_id}"
        self._kind = SimpleNamespace(value=kind)

    def get_platform_name(self) -> str:
        return self.platform

    def get_message_type(self) -> Any:
        return self._kind

    def get_sender_id(self) -> str | None:
        return self.sender_id

    def get_sender_name(self) -> str | None:
        return self.sender_name

    def get_group_id(self) -> str | None:
        return self.group_id

    def get_self_id(self) -> str:
        return self.self_id

    def get_messages(self) -> list[Any]:
        return list(self.parts)

    def get_extra(self, key: str) -> Any:
        return self.extras.get(key)

    def is_admin(self) -> bool:
        return self.admin


@functools.cache
def _privacy_settings(**privacy: bool) -> PrivacySettings:
    return make_settings(privacy=privacy).privacy


def reader_of(
    event: FakeEvent,
    language: Any = "zh",
    *,
    opted_out: Collection[str] = (),
    bot_names: BotNames | None = None,
    roster: Roster | None = None,
    quotes_bot: bool = True,
    **privacy: bool,
) -> EventReader:
    scope = scope_of(origin_of(event))
    return EventReader(
        event,
        scope,
        roster or Roster(HASHER, scope),
        Texts(language),
        bot_name=(bot_names or BotNames(Clock())).name(event),
        privacy=_privacy_settings(**privacy),
        opted_out=lambda person: person in opted_out,
        quotes_bot=quotes_bot,
    )


DEFAULTS: dict[str, dict[str, Any]] = {
    "At": {"qq": "", "name": ""},
    "Reply": {"sender_id": 0, "sender_nickname": "", "message_str": "", "chain": []},
    "File": {"name": ""},
    "Node": {"uin": "0", "name": "", "content": []},
    "Nodes": {"nodes": []},
}
"""What a component's fields are where the adapter fills nothing in."""


def part_from_json(values: Mapping[str, Any]) -> Any:
    """A component from its fields; components within it are made too."""
    fields = {**DEFAULTS.get(values["type"], {}), **values}
    for name in ("chain", "content", "nodes"):
        if name in fields:
            fields[name] = [part_from_json(one) for one in fields[name]]
    return part(fields.pop("type"), **fields)


def event_from_json(values: Mapping[str, Any]) -> FakeEvent:
    """An event from its words, its parts, and what differs from `FakeEvent`'s own values."""
    changes = {k: v for k, v in values.items() if k not in {"words", "parts", "at"}}
    parts = [part_from_json(one) for one in values.get("parts", ())]
    return FakeEvent(values.get("words", ""), *parts, **changes)
