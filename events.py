"""AstrBot's events -> plain values.

Message components are told apart by their `type`, whose values are the same in every AstrBot
since 4.24.1, so nothing of AstrBot is imported here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from .cleaning import (
    MIN_ID_CHARS,
    Cleaner,
    Known,
    as_said,
    clean_text,
    neutralise,
    shorten,
)
from .people import Roster
from .scope import NO_SENDER, MessageKind, Origin, Scope
from .settings import PrivacySettings
from .texts import Texts
from .transcript import Message, Speaker

MAX_QUOTE_CHARS = 120
MAX_REPLY_CHARS = 2000
MAX_GROUP_NAME_CHARS = 30
LONG_NUMBER = r"(?<![0-9A-Za-z])-?[0-9]{6,}(?![0-9A-Za-z])"
_KINDS: dict[str, MessageKind] = {"FriendMessage": "private", "GroupMessage": "group"}
_MANAGER_ROLES = {"owner", "admin"}
_ANONYMOUS_IDS = {"80000000"}
"""OneBot gives all anonymous members of all groups this one id."""
_SHARED_IDS = {
    "aiocqhttp": frozenset(_ANONYMOUS_IDS),
    "telegram": frozenset({"1087968824", "136817688", "777000"}),
}
"""Ids that many people share: Telegram's are anonymous administrators, channels that write in a
group, and what is forwarded out of a channel."""


_QQ_ROBOTS = (
    range(66_600_000, 66_600_001),
    range(2_854_196_301, 2_854_216_400),
    range(3_328_144_510, 3_328_144_511),
    range(3_889_000_000, 3_890_000_000),
    range(4_010_000_000, 4_020_000_000),
)
"""The numbers that QQ gives to its own robots, as NapCat and LLBot document the answer to their
action `get_robot_uin_range`; other people's bots have ordinary numbers."""


def origin_of(event: Any) -> Origin:
    """Where an event comes from; see AstrBot's `AstrMessageEvent`."""
    return Origin(
        platform=str(event.get_platform_name()),
        kind=_KINDS.get(event.get_message_type().value, "other"),
        umo=str(event.unified_msg_origin),
        sender_id=str(event.get_sender_id() or ""),
        group_id=str(event.get_group_id() or ""),
    )


def group_name_of(event: Any) -> str:
    """What an event's group is called, cleaned; empty where the platform does not tell."""
    name = getattr(getattr(event.message_obj, "group", None), "group_name", None)
    shown = neutralise(name) if isinstance(name, str) and name != "N/A" else ""
    return shorten(shown, MAX_GROUP_NAME_CHARS)


def locale_of(event: Any) -> str:
    """The language of the person's page, which only WebChat tells (AstrBot 4.29 and later)."""
    locale = event.get_extra("locale")
    return locale if isinstance(locale, str) else ""


def person_id_of(event: Any) -> str:
    """The platform's id of the sender; empty where it is nobody's own."""
    sender = str(event.get_sender_id() or "")
    raw = getattr(event.message_obj, "raw_message", None)
    is_anonymous = isinstance(raw, dict) and raw.get("sub_type") == "anonymous"
    is_anonymous = is_anonymous or bool(getattr(raw, "webhook_id", None))  # Discord's bridges
    shared = _SHARED_IDS.get(event.get_platform_name(), frozenset())
    return "" if is_anonymous or sender in shared or sender in NO_SENDER else sender


def has_own_session(event: Any) -> bool:
    """Whether a group's member has a session of their own, where AstrBot isolates sessions.

    It then puts the sender into the event's session, and leaves the adapter's on the message.
    """
    session, sender = str(event.session_id), str(event.get_sender_id() or "")
    shared = str(getattr(event.message_obj, "session_id", session))
    is_group = event.get_message_type().value == "GroupMessage"
    return is_group and bool(sender) and session != shared and sender in session


def is_manager(event: Any) -> bool:
    """Whether the sender may decide for everybody in this chat.

    In a private chat that is the person, in a group a bot admin, or its owner or administrator
    where the platform tells: OneBot does, in the raw message.
    """
    if event.is_admin() or not event.get_group_id():
        return True
    raw = getattr(event.message_obj, "raw_message", None)
    sender = raw.get("sender") if isinstance(raw, dict) else None
    return isinstance(sender, dict) and sender.get("role") in _MANAGER_ROLES


def message_id_of(event: Any) -> str:
    """What the platform calls a message; empty where it never tells that one was withdrawn."""
    if event.get_platform_name() != "aiocqhttp":
        return ""
    return str(getattr(event.message_obj, "message_id", ""))


def withdrawn_id_of(event: Any) -> str:
    """What the platform calls the message of which an event tells that it was withdrawn.

    OneBot alone does, in a notice whose sender is the message's, whoever has withdrawn it.
    """
    raw = getattr(event.message_obj, "raw_message", None)
    if not isinstance(raw, dict) or raw.get("post_type") != "notice":
        return ""
    is_told = raw.get("notice_type") in {"group_recall", "friend_recall"}
    return str(raw.get("message_id") or "") if is_told else ""


def said_at(event: Any, now: datetime) -> datetime:
    """When a message was said, as far as the platform tells (OneBot does), never after `now`."""
    raw = getattr(event.message_obj, "raw_message", None)
    told = raw.get("time") if isinstance(raw, dict) else None
    if not isinstance(told, int | float) or not 0 < told < now.timestamp():
        return now
    return datetime.fromtimestamp(told, now.tzinfo)


def came_at(event: Any) -> float:
    """When AstrBot was told of a message, in Unix seconds; 0 for one of the past."""
    return float(getattr(event, "created_at", 0.0))


def likeness(event: Any, chat: str) -> Hashable:
    """What a message has in common with itself as another account of the bot is told of it.

    None on platforms where a chat has only one account; OneBot's adapter takes several.
    """
    raw = getattr(event.message_obj, "raw_message", None)
    if event.get_platform_name() != "aiocqhttp" or not isinstance(raw, dict):
        return None
    parts = raw.get("message")
    parts = parts if isinstance(parts, list) else [{"data": {"text": parts}}]
    shown = tuple((str(one.get("type")), *_words_in(one.get("data"))) for one in parts)
    return chat, str(event.get_sender_id()), raw.get("time"), shown


def _words_in(data: Any) -> tuple[str, ...]:
    """What a part of a message says; its other values differ from account to account."""
    return tuple(str(data.get(key)) for key in ("text", "qq")) if isinstance(data, dict) else ()


def is_command(event: Any) -> bool:
    """Whether a message is a command: of AstrBot or of a plugin, or another bot's."""
    text = (event.message_str or "").lstrip()
    return bool(event.get_extra("handlers_parsed_params")) or bool(re.match(r"/\w", text))


def is_from_bot(event: Any) -> bool:
    """Whether a message comes from a bot, as far as the platform tells, or is none at all."""
    raw = getattr(event.message_obj, "raw_message", None)
    if isinstance(raw, dict):
        sender = raw.get("sender")
        is_robot = isinstance(sender, dict) and bool(sender.get("is_robot"))
        is_qq = event.get_platform_name() == "aiocqhttp"
        is_notice = raw.get("post_type", "message") != "message"
        return is_robot or is_notice or (is_qq and _is_qq_robot(str(event.get_sender_id() or "")))
    for holder in (raw, getattr(raw, "message", None)):
        author = getattr(holder, "author", None) or getattr(holder, "from_user", None)
        if getattr(author, "bot", None) is True or getattr(author, "is_bot", None) is True:
            return True
    return False


def _is_qq_robot(person_id: str) -> bool:
    return person_id.isdecimal() and any(int(person_id) in range_ for range_ in _QQ_ROBOTS)


def mentioned_name(event: Any) -> str:
    """The name by which a message mentions the bot, or an empty text."""
    self_id = str(event.get_self_id() or "")
    return next(
        (
            component.name
            for component in event.get_messages() or ()
            if component.type == "At" and str(component.qq) == self_id and component.name
        ),
        "",
    )


class EventReader:
    """Reads one event's people and words.

    Args:
        event: An AstrBot message event.
        scope: Its chat.
        roster: The people of this chat.
        texts: The wording in the language of the chat.
        bot_name: What the bot is called in this chat, or an empty text.
        wake_prefix: What a message begins with for the model to be asked; no word of the person.
        privacy: What is taken out of texts.
        opted_out: Tells whether a person (raw id) wants to be neither stored nor named.
        quotes_bot: What the bot has said may be stored where somebody quotes it.
    """

    def __init__(
        self,
        event: Any,
        scope: Scope,
        roster: Roster,
        texts: Texts,
        *,
        bot_name: str = "",
        wake_prefix: str = "",
        privacy: PrivacySettings,
        opted_out: Callable[[str], bool],
        quotes_bot: bool = True,
    ) -> None:
        self._quotes_bot = quotes_bot
        self._event = event
        self._scope = scope
        self._roster = roster
        self._texts = texts
        self._wake_prefix = wake_prefix
        self._opted_out = opted_out
        self._self_id = str(event.get_self_id() or "")
        self._sender_id = str(event.get_sender_id() or "")
        self._components = list(event.get_messages() or ())
        self._everybody = list(_everybody(event))
        self._names = Cleaner(texts, privacy, self._nameless())
        self._bot = self.bot_speaker(mentioned_name(event) or bot_name)
        self._people = dict(self._named_people())
        self._cleaner = Cleaner(texts, privacy, self._known())

    def message(self, now: datetime) -> Message:
        """The message as plain values, without a raw id or a secret in any of them."""
        raw = (self._event.message_str or "").strip().removeprefix(self._wake_prefix).strip()
        words = self.clean(raw)
        marks = list(self._marks(self._components))
        return Message(
            scope=self._scope,
            speaker=self._people[self._sender_id],
            raw=raw,
            words=words,
            quoted=self._quoted_words(),
            stored=" ".join([*marks, as_said(words, self._texts)]).strip(),
            at=now,
            texts=self._texts,
            bot=self._bot,
            private_to_speaker=self._opted_out(self._sender_id),
            came=came_at(self._event),
        )

    def clean(self, text: str) -> str:
        """What may be kept of a text: one line, no block of ours, no secrets, no ids."""
        return self._cleaner.clean(text)

    def said(self, text: str) -> str:
        """The same, as it stands in a stored line."""
        return as_said(self.clean(text), self._texts)

    def bot_speaker(self, name: str) -> Speaker:
        """The bot by its own name, else by the general word for it; it never has a pseudonym."""
        return Speaker(self._name(name, "name_bot"))

    def _named_people(self) -> Iterator[tuple[str, Speaker]]:
        """Everybody in the event by raw id, the sender last, since that name is the surest."""
        for person_id, name in self._everybody:
            yield person_id, self._speaker(person_id, name)

    def _speaker(self, person_id: str, name: str | None) -> Speaker:
        if person_id and person_id == self._self_id:
            return self._bot
        fallback = "name_anonymous" if person_id in _ANONYMOUS_IDS else "name_user"
        shown = self._name(name, fallback)
        if shown == self._texts(fallback):
            shown = self._roster.name(person_id) or shown
        else:
            self._roster.note(person_id, shown)
        return Speaker(shown, self._roster.pseudonym(person_id))

    def _name(self, name: str | None, fallback: str) -> str:
        """A display name without anybody's raw id; some adapters put it there."""
        shown = name or ""
        if len(shown) >= MIN_ID_CHARS and any(i.startswith(shown) for i, _ in self._everybody):
            shown = ""  # Lark and LINE take the beginning of the id for a name
        return self._names.name(shown, self._texts(fallback))

    def _nameless(self) -> Known:
        """What names may hold: no id at all, a space instead."""
        ids = [*self._chat_names(), self._self_id, *dict(self._everybody)]
        return Known(
            labels=dict.fromkeys(ids, " "),
            names={},
            hidden=(),
            label_of=lambda one: " " if self._roster.knows(one) else "",
            person=lambda _: " ",
            is_taken=self._roster.is_taken,
        )

    def _known(self) -> Known:
        """What texts may hold."""
        labels = self._chat_names()
        labels |= {person_id: self._label(person_id) for person_id in self._people}
        labels[self._self_id] = self._bot.name
        names = self._names_in_texts()
        return Known(
            labels=labels,
            names=names,
            hidden=self._names_to_hide(names),
            label_of=lambda one: self._label(one) if self._roster.knows(one) else "",
            person=self._label,
            is_taken=self._roster.is_taken,
        )

    def _chat_names(self) -> dict[str, str]:
        """What to write for the ids of the chat and for the long numbers they are made of.

        `-1001234567890#77` is a topic of Telegram's group -1001234567890, which is 1234567890 in
        its links.
        """
        event, chat = self._event, self._texts("name_chat")
        group = str(event.get_group_id() or "")
        names = {str(event.unified_msg_origin): chat, str(event.session_id): chat}
        parts = dict.fromkeys(_long_numbers(" ".join(names)), chat)
        own = dict.fromkeys([*_long_numbers(group), group], self._texts("name_group"))
        return parts | names | own

    def _names_in_texts(self) -> dict[str, set[str]]:
        """By raw id, the names as they stand in texts, not cleaned of what names may not have."""
        names: dict[str, set[str]] = {}
        for person_id, name in self._everybody:
            names.setdefault(person_id, set()).add(clean_text(name or ""))
        return names

    def _names_to_hide(self, names: Mapping[str, Collection[str]]) -> list[str]:
        """Names of those who want not to be named, the longest first."""
        hidden = {name for one, own in names.items() if self._is_hidden(one) for name in own}
        return sorted(filter(None, hidden), key=len, reverse=True)

    def _is_hidden(self, person_id: str) -> bool:
        """Whether somebody else than the speaker wants not to be named."""
        return person_id != self._sender_id and self._opted_out(person_id)

    def _label(self, person_id: str) -> str:
        """How a person is written, who may be none of those that the event names."""
        if self._is_hidden(person_id):
            return self._texts("mark_opted_out")
        who = self._people.get(person_id) or self._speaker(person_id, None)
        return who.label

    def _marks(self, components: Iterable[Any]) -> Iterator[str]:
        """A short plain marker for everything in a message that is no text."""
        for component in components:
            if component.type == "Reply":
                yield self._quote(component)
            elif component.type == "File":
                name = self._cleaner.clean(component.name or "", within=True)
                yield self._texts("mark_file", name=shorten(name, MAX_QUOTE_CHARS))
            elif (key := f"mark_{component.type.value.lower()}") in MARKS:
                yield self._texts(key)

    def _quote(self, reply: Any) -> str:
        person_id = _replied_to(reply)
        if self._opted_out(person_id):
            return self._texts("mark_reply", name=self._texts("mark_opted_out"), text="…")
        words = self._cleaner.clean(_reply_text(reply), within=True)
        text = " ".join([*self._marks(reply.chain or ()), words]).strip()
        if not self._quotes_bot and person_id in {"", self._self_id}:
            text = "…" if text else ""
        if not person_id and not text:
            return self._texts("mark_reply_lost")
        who = self._speaker(person_id, reply.sender_nickname)
        return self._texts("mark_reply", name=who.label, text=shorten(text, MAX_QUOTE_CHARS))

    def _quoted_words(self) -> str:
        """The text of what the message replies to, as far as it may be used."""
        replies = [one for one in self._components if one.type == "Reply"]
        usable = [one for one in replies if not self._opted_out(_replied_to(one))]
        return " ".join(self.clean(_reply_text(one)) for one in usable)


def ids_of(event: Any) -> list[str]:
    """The raw ids of everybody in an event but the bot, for `People.meet`."""
    self_id = str(event.get_self_id() or "")
    return [person_id for person_id, _ in _everybody(event) if person_id != self_id]


def _everybody(event: Any) -> Iterator[tuple[str, str | None]]:
    """Raw ids and names of everybody whom an event names."""
    yield from _listed(event)
    yield from _mentioned(event.get_messages() or ())
    yield str(event.get_sender_id() or ""), event.get_sender_name()


def _replied_to(reply: Any) -> str:
    """The raw id of whoever is quoted, empty where the platform did not tell."""
    person_id = str(reply.sender_id or "")
    return "" if person_id == "0" else person_id


def _reply_text(reply: Any) -> str:
    return (reply.message_str or "")[:MAX_REPLY_CHARS]


def _long_numbers(text: str) -> Iterator[str]:
    """Long numbers in a composite id, also without what Telegram puts before a group's."""
    for number in re.findall(LONG_NUMBER, text):
        yield from {number, number.lstrip("-"), number.removeprefix("-100")}


MARKS = {"mark_image", "mark_record", "mark_video", "mark_forward", "mark_node", "mark_nodes"}


def _listed(event: Any) -> Iterator[tuple[str, str | None]]:
    """Raw ids and names of those whom Discord and QQ list beside a message's text."""
    raw = getattr(event.message_obj, "raw_message", None)
    for person in getattr(raw, "mentions", None) or ():
        if isinstance(person.id, int | str):
            name = getattr(person, "display_name", None) or getattr(person, "username", None)
            yield str(person.id), name


def _mentioned(components: Iterable[Any]) -> Iterator[tuple[str, str | None]]:
    """Raw ids and names of everybody who is @-mentioned, quoted or forwarded."""
    for component in components:
        if component.type == "At" and str(component.qq) != "all":
            yield str(component.qq), component.name
        elif component.type == "Reply":
            yield _replied_to(component), component.sender_nickname
            yield from _mentioned(component.chain or ())
        elif component.type == "Node":
            yield str(component.uin or ""), component.name
            yield from _mentioned(component.content or ())
        elif component.type == "Nodes":
            yield from _mentioned(component.nodes or ())
