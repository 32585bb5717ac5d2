"""What was said in a chat before it had a memory: rows of any source -> plain past messages.

A past message reads like an event (`PastEvent`), so that it is cleaned the one way that there is.
"""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from types import SimpleNamespace
from typing import Any

from .scope import ChatKind


class PartType(StrEnum):
    """What a message is made of; the values are AstrBot's."""

    PLAIN = "Plain"
    AT = "At"
    REPLY = "Reply"
    IMAGE = "Image"
    RECORD = "Record"
    VIDEO = "Video"
    FILE = "File"
    FORWARD = "Forward"


@dataclass(frozen=True)
class Part:
    """A component of a message, with the names that AstrBot's components have.

    Attributes:
        type: What it is.
        text: Of a plain one.
        qq: Whom it mentions.
        name: Of the person or of the file.
        id: Of the message that it replies to.
        sender_id: Who said that.
        sender_nickname: Their name.
        message_str: What was said.
        chain: The components of that, which are not followed.
    """

    type: PartType
    text: str = ""
    qq: str = ""
    name: str = ""
    id: str = ""
    sender_id: str = ""
    sender_nickname: str = ""
    message_str: str = ""
    chain: tuple[Part, ...] = ()


@dataclass(frozen=True)
class Place:
    """The chat of a history, in the platform's own ids.

    Attributes:
        platform: The adapter's name.
        instance: AstrBot's id of the adapter.
        kind: Private or group chat.
        umo: AstrBot's `unified_msg_origin`.
        session_id: Its last part.
        group_id: The group, or empty.
        self_id: The bot.
        person_id: Whoever asks; in a private chat the only person there is.
        person_name: Their name.
        wake_prefixes: What messages for the bot begin with.
        needs_prefix: Messages in a private chat, too.
        commands: What commands are called, without a prefix.
    """

    platform: str
    instance: str
    kind: ChatKind
    umo: str = field(repr=False)
    session_id: str = field(repr=False)
    group_id: str = field(repr=False)
    self_id: str = field(repr=False)
    person_id: str = field(repr=False)
    person_name: str = field(repr=False)
    wake_prefixes: tuple[str, ...] = ()
    needs_prefix: bool = False
    commands: frozenset[str] = frozenset()


@dataclass(frozen=True)
class PastMessage:
    """A message of a history.

    Attributes:
        sender_id: The platform's id of who said it.
        sender_name: Their name, empty where it is not told.
        parts: Its components.
        time: Unix seconds; None where it is not told.
        latest: It was not said after that (Unix seconds), where `time` is not exact.
        message_id: The platform's id, empty where there is none.
        is_bot: The bot said it.
        key: Tells it from every other message of its chat, also when it is read again.
    """

    sender_id: str = field(repr=False)
    sender_name: str = field(repr=False)
    parts: tuple[Part, ...] = field(repr=False)
    time: float | None
    latest: float | None = None
    message_id: str = field(default="", repr=False)
    is_bot: bool = False
    key: str = field(default="", repr=False)

    @property
    def words(self) -> str:
        """Its plain text alone."""
        plain = (part.text for part in self.parts if part.type is PartType.PLAIN)
        return "".join(plain).strip()

    def mentions(self, person_id: str) -> bool:
        """Whether it @-mentions somebody."""
        return any(p.type is PartType.AT and p.qq == person_id for p in self.parts)


class PastEvent:
    """A past message with the methods of an event of AstrBot that a reader of events uses.

    Args:
        place: Its chat.
        message: The message.
    """

    def __init__(self, place: Place, message: PastMessage) -> None:
        self._place = place
        self.message = message
        self.unified_msg_origin = place.umo
        self.session_id = place.session_id
        self.message_obj = SimpleNamespace(raw_message=None)
        typed = _typed(message.parts, place.self_id)
        prefix = next((one for one in place.wake_prefixes if one and typed.startswith(one)), "")
        self.has_prefix = bool(prefix)
        self.message_str = typed.removeprefix(prefix).strip()

    @property
    def is_to_bot(self) -> bool:
        """Whether AstrBot takes it for a message to the bot."""
        bot, parts = self._place.self_id, self.message.parts
        is_private = self._place.kind == "private" and not self._place.needs_prefix
        return (
            is_private
            or self.has_prefix
            or self.message.mentions(bot)
            or any(p.type is PartType.REPLY and p.sender_id == bot for p in parts)
        )

    @property
    def is_command(self) -> bool:
        """Whether a plugin answers it in the model's place."""
        text = " ".join(self.message_str.split()).lower()
        return any(text == one or text.startswith(f"{one} ") for one in self._place.commands)

    def get_platform_name(self) -> str:
        """The adapter's name."""
        return self._place.platform

    def get_sender_id(self) -> str:
        """The platform's id of who said it."""
        return self.message.sender_id

    def get_sender_name(self) -> str:
        """Their name."""
        return self.message.sender_name

    def get_group_id(self) -> str:
        """The group, or empty."""
        return self._place.group_id

    def get_self_id(self) -> str:
        """The bot."""
        return self._place.self_id

    def get_messages(self) -> list[Part]:
        """The components."""
        return list(self.message.parts)


def from_onebot(entry: Mapping[str, Any], place: Place) -> PastMessage | None:
    """A message of OneBot's history; None where it is none of this chat, or no message."""
    sender = entry.get("sender") if isinstance(entry.get("sender"), dict) else {}
    assert isinstance(sender, dict)
    sender_id = str(entry.get("user_id") or sender.get("user_id") or "")
    group_id = str(entry.get("group_id") or "")
    time = entry.get("time")
    is_time = isinstance(time, int | float) and time > 0
    if not sender_id or not is_time or (group_id and group_id != place.group_id):
        return None
    segments = entry.get("message")
    parts = tuple(_onebot_parts(_segments(segments)))
    message = PastMessage(
        sender_id=sender_id,
        sender_name=str(sender.get("card") or sender.get("nickname") or ""),
        parts=parts,
        time=float(time or 0),
        message_id=str(entry.get("message_id") or ""),
        is_bot=sender_id == place.self_id or entry.get("post_type") == "message_sent",
    )
    return replace(message, key=_key(message)) if parts else None


def from_row(row: Any, place: Place) -> PastMessage | None:
    """A row of AstrBot's message history; None where it holds nothing that was said."""
    content = row.content if isinstance(row.content, dict) else {}
    parts = tuple(_row_parts(content.get("message")))
    created = row.created_at
    if not parts or not isinstance(created, datetime):
        return None
    told_id, name = str(row.sender_id or ""), str(row.sender_name or "")
    is_bot = content.get("type") == "bot" or told_id in {place.self_id, "bot"}
    if place.kind == "private":  # the page's own name for the person is not always the sender's id
        told_id = place.person_id
    if created.tzinfo is None:
        created = created.replace(tzinfo=UTC)
    message = PastMessage(
        sender_id=place.self_id if is_bot else told_id,
        sender_name="" if is_bot else name,
        parts=parts,
        time=created.timestamp(),
        is_bot=is_bot,
    )
    return replace(message, key=_key(message))


def from_conversation(conversation: Any, place: Place, zone: tzinfo | None) -> list[PastMessage]:
    """The messages of one conversation of a private chat, in order.

    Most have no time of their own; they have that of the message before, the first one that of
    the conversation.
    """
    try:
        rows = json.loads(conversation.history or "[]")
    except (TypeError, ValueError):
        return []
    time, latest = float(conversation.created_at or 0), float(conversation.updated_at or 0)
    seen: Counter[str] = Counter()
    messages: list[PastMessage] = []
    for role, texts, said_at in _spoken(rows, zone):
        time = said_at or time
        is_bot = role == "assistant"
        seen[texts] += 1
        messages.append(
            PastMessage(
                sender_id=place.self_id if is_bot else place.person_id,
                sender_name="" if is_bot else place.person_name,
                parts=(Part(PartType.PLAIN, text=texts),),
                time=time or None,
                latest=None if said_at else max(latest, time),
                is_bot=is_bot,
                key="\n".join((str(conversation.cid), role, texts, str(seen[texts]))),
            )
        )
    return messages


def resolve(messages: Sequence[PastMessage]) -> list[PastMessage]:
    """The same messages, with what others of them tell: who was mentioned, what was quoted.

    A quotation of what is not there is left out.
    """
    names = {one.sender_id: one.sender_name for one in messages if one.sender_name}
    by_id = {one.message_id: one for one in messages if one.message_id}
    by_words = {one.words: one for one in messages}

    def resolved(part: Part) -> Part | None:
        if part.type is PartType.AT:
            return replace(part, name=part.name or names.get(part.qq, ""))
        if part.type is not PartType.REPLY:
            return part
        quoted = by_id.get(part.id) or (
            by_words.get(part.message_str) if part.message_str else None
        )
        if quoted is None:
            return None
        return replace(
            part,
            sender_id=quoted.sender_id,
            sender_nickname=quoted.sender_name,
            message_str=quoted.words,
        )

    return [
        replace(one, parts=tuple(p for part in one.parts if (p := resolved(part))))
        for one in messages
    ]


def _key(message: PastMessage) -> str:
    """Not the platform's id: some give the same message another one after a restart."""
    return "\n".join((message.sender_id, f"{message.time:.0f}", repr(message.parts)))


def _typed(parts: Iterable[Part], self_id: str) -> str:
    """The text as AstrBot would have told it, with mentions of others but not of the bot."""
    typed = "".join(
        f" @{part.name}({part.qq}) " if part.type is PartType.AT else part.text
        for part in parts
        if part.type is PartType.PLAIN
        or (part.type is PartType.AT and part.qq not in {self_id, "all"})
    )
    return typed.strip()


_CQ_CODE = re.compile(r"\[CQ:(?P<type>[\w-]+)(?P<data>(?:,[^\[\],]*)*)\]")


def _segments(message: Any) -> list[Mapping[str, Any]]:
    """OneBot's segments, also from the form with codes in a text."""
    if isinstance(message, list):
        return [one for one in message if isinstance(one, dict)]
    if not isinstance(message, str):
        return []
    found: list[Mapping[str, Any]] = []
    end = 0
    for code in _CQ_CODE.finditer(message):
        found.append(_text_segment(message[end : code.start()]))
        pairs = (one.partition("=") for one in code["data"].split(",") if one)
        data = {name: html.unescape(value) for name, _, value in pairs}
        found.append({"type": code["type"], "data": data})
        end = code.end()
    return [*found, _text_segment(message[end:])]


def _text_segment(coded: str) -> Mapping[str, Any]:
    return {"type": "text", "data": {"text": html.unescape(coded)}}


_MEDIA = {
    "image": PartType.IMAGE,
    "record": PartType.RECORD,
    "video": PartType.VIDEO,
    "forward": PartType.FORWARD,
}


def _onebot_parts(segments: Iterable[Mapping[str, Any]]) -> Iterator[Part]:
    for segment in segments:
        kind, data = segment.get("type"), segment.get("data")
        data = data if isinstance(data, dict) else {}
        if kind == "text" and data.get("text"):
            yield Part(PartType.PLAIN, text=str(data["text"]))
        elif kind == "at":
            yield Part(PartType.AT, qq=str(data.get("qq") or ""), name=str(data.get("name") or ""))
        elif kind == "reply":
            yield Part(PartType.REPLY, id=str(data.get("id") or ""))
        elif kind == "file":
            name = data.get("file_name") or data.get("name") or data.get("file") or ""
            yield Part(PartType.FILE, name=str(name))
        elif kind in _MEDIA:
            yield Part(_MEDIA[str(kind)])


_ROW_MEDIA = {f"[{kind.value}]": kind for kind in PartType}


def _row_parts(parts: Any) -> Iterator[Part]:
    for part in parts if isinstance(parts, list) else ():
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "plain" and (text := str(part.get("text") or "")):
            media = _ROW_MEDIA.get(text.strip())
            yield Part(media) if media else Part(PartType.PLAIN, text=text)
        elif kind == "at":
            yield Part(
                PartType.AT, qq=str(part.get("user_id") or ""), name=str(part.get("name") or "")
            )
        elif kind == "reply":
            text = str(part.get("text") or part.get("selected_text") or "").strip()
            yield Part(PartType.REPLY, message_str=text)
        elif kind == "file":
            yield Part(PartType.FILE, name=str(part.get("filename") or ""))
        elif kind in _MEDIA:
            yield Part(_MEDIA[kind])


_NO_SPEECH = re.compile(
    r"\s*(?:<(?:system_reminder|Quoted Message|image_caption|attachment)>"
    r"|\[(?:Image(?: \d+)?|File Attachment):"
    r"|Our previous history conversation summary:"
    r"|Acknowledged the summary of our previous conversation history)"
)
_NOW = re.compile(r"Current datetime: (\d{4}-\d\d-\d\d \d\d:\d\d)")


def _spoken(rows: Any, zone: tzinfo | None) -> Iterator[tuple[str, str, float | None]]:
    """Who said what in a conversation, and when, where AstrBot told the model."""
    for row in rows if isinstance(rows, list) else ():
        role = row.get("role") if isinstance(row, dict) else None
        if role not in {"user", "assistant"} or (role == "assistant" and row.get("tool_calls")):
            continue
        texts = list(_texts(row.get("content")))
        told = (found for text in texts if (found := _NOW.search(text)))
        said_at = next((_moment(found[1], zone) for found in told), None)
        # What follows the first text is AstrBot's, whatever it looks like.
        said = [text for text in texts[:1] if not _NO_SPEECH.match(text)]
        if said and said[0].strip():
            yield role, said[0].strip(), said_at


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and part.get("type") == "text":
            yield str(part.get("text") or "")


def _moment(text: str, zone: tzinfo | None) -> float | None:
    try:
        local = datetime.strptime(text, "%Y-%m-%d %H:%M")  # noqa: DTZ007 - the zone is set below
    except ValueError:
        return None
    return (local.replace(tzinfo=zone) if zone else local.astimezone()).timestamp()
