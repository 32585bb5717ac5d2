"""A OneBot v11 client: the QQ side of AstrBot, over its reverse WebSocket.

It connects, and connects again whenever the connection is lost, as real clients do. A test sends
messages of made-up people through it and awaits what the bot sends back.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import websockets

from rig.polling import PATIENCE

SELF_ID = 10001
TOKEN = "onebot-token"
ANONYMOUS_ID = 80000000
RECONNECT_SECONDS = 0.2

Kind = Literal["private", "group"]
Role = Literal["member", "admin", "owner"]
Segment = dict[str, Any]
Params = dict[str, Any]


def text_segment(text: str) -> Segment:
    """Return a segment of plain text."""
    return {"type": "text", "data": {"text": text}}


def at_segment(user_id: int) -> Segment:
    """Return a segment that mentions somebody."""
    return {"type": "at", "data": {"qq": str(user_id)}}


def reply_segment(message_id: int) -> Segment:
    """Return a segment that quotes a message."""
    return {"type": "reply", "data": {"id": str(message_id)}}


def forward_segment(forward_id: str) -> Segment:
    """Return a segment that holds a merged-forward message; see `OneBot.store_forward`."""
    return {"type": "forward", "data": {"id": forward_id}}


@dataclass(frozen=True)
class Sent:
    """A message that the bot sent.

    Attributes:
        at: When it came (`time.time()`).
        target_kind: The kind of chat that it went to.
        target_id: The group or the user that it went to.
        text: Its text; segments of other types stand as `[type]`.
        segments: Its segments.
        params: All parameters of the action.
        message_id: The id that it was given, to be quoted by.
    """

    at: float
    target_kind: Kind
    target_id: int
    text: str
    segments: list[Segment]
    params: Params
    message_id: int

    @property
    def target(self) -> tuple[Kind, int]:
        """The chat that it went to."""
        return self.target_kind, self.target_id


@dataclass
class _Person:
    """What the client answers when it is asked about somebody."""

    nickname: str
    card: str = ""
    role: Role = "member"


@dataclass
class _World:
    """What exists beyond the connection: people, messages and merged-forward messages."""

    people: dict[tuple[int | None, int], _Person] = field(default_factory=dict)
    messages: dict[int, Params] = field(default_factory=dict)
    forwards: dict[str, list[Params]] = field(default_factory=dict)

    def person(self, group_id: int | None, user_id: int) -> _Person:
        known = self.people.get((group_id, user_id)) or self.people.get((None, user_id))
        return known or _Person(f"nick{user_id}")


class OneBot:
    """One OneBot client, that is, one bot account.

    Attributes:
        self_id: The bot's own number.
        actions: Every action that AstrBot called, oldest first.
        sent: Every message that the bot sent, oldest first.
    """

    def __init__(
        self, url: str, *, token: str = TOKEN, self_id: int = SELF_ID, name: str = "小助手"
    ) -> None:
        """Make it; `connect` connects it.

        Args:
            url: AstrBot's reverse WebSocket endpoint.
            token: The access token.
            self_id: The bot's own number.
            name: The bot's own nickname.
        """
        self.self_id = self_id
        self.actions: list[tuple[str, Params]] = []
        self.sent: list[Sent] = []
        self._url = url
        self._headers = {
            "X-Self-ID": str(self_id),
            "X-Client-Role": "Universal",
            "Authorization": f"Bearer {token}",
        }
        self._world = _World()
        self._world.people[None, self_id] = _Person(name)
        self._ids = itertools.count(1000)
        self._unread: list[Sent] = []
        self._arrived = asyncio.Condition()
        self._socket: websockets.ClientConnection | None = None
        self._online = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    # --- The connection ---------------------------------------------------------------------------

    async def connect(self, timeout: float = PATIENCE) -> OneBot:
        """Connect, and stay connected until `close`.

        Args:
            timeout: Seconds until giving up the first time.

        Returns:
            The client itself.

        Raises:
            AssertionError: If it could not connect in time.
        """
        if self._task is None:
            self._task = asyncio.create_task(self._stay_connected())
        await self._wait_online(timeout)
        return self

    async def close(self) -> None:
        """Disconnect for good."""
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _wait_online(self, timeout: float) -> None:
        try:
            await asyncio.wait_for(self._online.wait(), timeout)
        except TimeoutError:
            raise AssertionError(f"no connection to {self._url} within {timeout:g} s") from None

    async def _stay_connected(self) -> None:
        while True:
            with contextlib.suppress(OSError, websockets.WebSocketException):
                await self._connect_once()
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _connect_once(self) -> None:
        connection = websockets.connect(
            self._url, additional_headers=self._headers, proxy=None, max_size=None
        )
        async with connection as self._socket:
            try:
                await self._write(
                    {
                        "post_type": "meta_event",
                        "meta_event_type": "lifecycle",
                        "sub_type": "connect",
                    }
                )
                self._online.set()
                async for frame in self._socket:
                    await self._answer(json.loads(frame))
            finally:
                self._online.clear()

    async def emit(self, event: Params) -> None:
        """Send an event as it is; time and self id are added."""
        await self._wait_online(PATIENCE)
        await self._write(event)

    async def _write(self, event: Params) -> None:
        assert self._socket is not None
        stamped = {"time": int(time.time()), "self_id": self.self_id, **event}
        await self._socket.send(json.dumps(stamped, ensure_ascii=False))

    # --- What people send -------------------------------------------------------------------------

    async def private(
        self,
        user_id: int,
        content: str | Sequence[Segment],
        *,
        nickname: str | None = None,
        quote: int | None = None,
    ) -> int:
        """Let somebody send the bot a direct message.

        Args:
            user_id: Who.
            content: The text, or the segments.
            nickname: Their nickname.
            quote: The id of the message that it quotes.

        Returns:
            The id of the message.
        """
        person = self._introduce(None, user_id, nickname)
        event = {"message_type": "private", "sub_type": "friend", "user_id": user_id}
        return await self._say(event, person, self._segments(content, False, quote))

    async def group(
        self,
        group_id: int,
        user_id: int,
        content: str | Sequence[Segment],
        *,
        at: bool = True,
        nickname: str | None = None,
        card: str | None = None,
        role: Role = "member",
        anonymous: str | None = None,
        quote: int | None = None,
    ) -> int:
        """Let somebody send a message to a group.

        Args:
            group_id: Which group.
            user_id: Who.
            content: The text, or the segments.
            at: Whether the message begins with a mention of the bot.
            nickname: Their nickname.
            card: Their name in this group.
            role: Their role in this group.
            anonymous: Send it anonymously under this name; all such share one user id then.
            quote: The id of the message that it quotes.

        Returns:
            The id of the message.
        """
        event: Params = {
            "message_type": "group",
            "sub_type": "normal",
            "group_id": group_id,
            "group_name": f"group{group_id}",
            "anonymous": None,
        }
        if anonymous is not None:
            flag = {"id": user_id, "name": anonymous, "flag": f"flag{user_id}"}
            event |= {"sub_type": "anonymous", "anonymous": flag}
            user_id, nickname, card = ANONYMOUS_ID, anonymous, ""
        event["user_id"] = user_id
        person = self._introduce(group_id, user_id, nickname, card, role)
        return await self._say(event, person, self._segments(content, at, quote))

    async def notice(
        self, notice_type: str, *, user_id: int, group_id: int | None = None, **fields: Any
    ) -> None:
        """Let something happen that is not a message, such as a poke or a recall.

        Args:
            notice_type: OneBot's name of it, such as `group_recall`.
            user_id: Who did it.
            group_id: In which group.
            fields: OneBot's further fields, such as `sub_type` and `target_id`.
        """
        event = {"post_type": "notice", "notice_type": notice_type, "user_id": user_id, **fields}
        await self.emit(event if group_id is None else {**event, "group_id": group_id})

    def seed(
        self,
        group_id: int | None,
        user_id: int,
        content: str | Sequence[Segment],
        *,
        time: float,
        name: str = "",
        friend: int = 0,
    ) -> int:
        """Have something in the platform's history that AstrBot has never seen.

        Args:
            group_id: In which group; None is a private chat.
            user_id: Who said it, `self_id` for the bot.
            content: The text, or the segments.
            time: When.
            name: Their name.
            friend: Whose private chat it is, where that is not told by `user_id`.

        Returns:
            The id of the message.
        """
        segments = [text_segment(content)] if isinstance(content, str) else list(content)
        where = {"group_id": group_id} if group_id else {"target_id": friend or user_id}
        message_id = next(self._ids)
        self._world.messages[message_id] = {
            "time": int(time),
            "self_id": self.self_id,
            "message_type": "group" if group_id else "private",
            "message_id": message_id,
            "user_id": user_id,
            "message": segments,
            "raw_message": _text_of(segments),
            "sender": {"user_id": user_id, "nickname": name, "card": ""},
            **where,
        }
        return message_id

    def store_forward(self, forward_id: str, lines: Sequence[tuple[int, str, str]]) -> Segment:
        """Make a merged-forward message that AstrBot can fetch.

        Args:
            forward_id: Its id.
            lines: User id, nickname and text of each message in it.

        Returns:
            The segment that stands for it.
        """
        self._world.forwards[forward_id] = [
            {
                "type": "node",
                "time": int(time.time()),
                "sender": {"user_id": user_id, "nickname": nickname},
                "message": [text_segment(text)],
            }
            for user_id, nickname, text in lines
        ]
        return forward_segment(forward_id)

    def _introduce(
        self,
        group_id: int | None,
        user_id: int,
        nickname: str | None = None,
        card: str | None = None,
        role: Role = "member",
    ) -> _Person:
        known = self._world.person(group_id, user_id)
        person = _Person(
            known.nickname if nickname is None else nickname,
            known.card if card is None else card,
            role,
        )
        self._world.people[group_id, user_id] = person
        return person

    def _segments(
        self, content: str | Sequence[Segment], at: bool, quote: int | None
    ) -> list[Segment]:
        quoting = [reply_segment(quote)] if quote is not None else []
        mention = [at_segment(self.self_id)] if at else []
        if not isinstance(content, str):
            return [*quoting, *mention, *content]
        text = f" {content}" if at else content
        return [*quoting, *mention, *([text_segment(text)] if content else [])]

    async def _say(self, event: Params, person: _Person, segments: list[Segment]) -> int:
        message_id = next(self._ids)
        event = {
            "post_type": "message",
            "message_id": message_id,
            "message": segments,
            "raw_message": _text_of(segments),
            "font": 0,
            "sender": {
                "user_id": event["user_id"],
                "nickname": person.nickname,
                "card": person.card,
                "role": person.role,
            },
            **event,
        }
        self._world.messages[message_id] = {
            "time": int(time.time()),
            "self_id": self.self_id,
            **event,
        }
        await self.emit(event)
        return message_id

    # --- What the bot sends -----------------------------------------------------------------------

    async def reply(
        self, timeout: float = PATIENCE, *, target: tuple[Kind, int] | None = None
    ) -> Sent:
        """Await the next message of the bot that nobody has taken yet.

        Args:
            timeout: Seconds until giving up.
            target: Take only what goes to this chat, such as `("group", 70001)`.

        Returns:
            The message.

        Raises:
            AssertionError: If there was none in time.
        """
        try:
            async with asyncio.timeout(timeout), self._arrived:
                while True:
                    for sent in self._unread:
                        if target in (None, sent.target):
                            self._unread.remove(sent)
                            return sent
                    await self._arrived.wait()
        except TimeoutError:
            where = f" to {target[0]} {target[1]}" if target else ""
            raise AssertionError(f"the bot sent nothing{where} within {timeout:g} s") from None

    async def ask_private(
        self,
        user_id: int,
        content: str | Sequence[Segment],
        *,
        timeout: float = PATIENCE,
        **how: Any,
    ) -> str:
        """Send a direct message and return the text of the first answer in that chat.

        Args:
            user_id: Who asks.
            content: The text, or the segments.
            timeout: Seconds until giving up.
            how: More for `private`.

        Returns:
            The answer's text.
        """
        self.discard(("private", user_id))
        await self.private(user_id, content, **how)
        return (await self.reply(timeout, target=("private", user_id))).text

    async def ask_group(
        self,
        group_id: int,
        user_id: int,
        content: str | Sequence[Segment],
        *,
        timeout: float = PATIENCE,
        **how: Any,
    ) -> str:
        """Send a message to a group and return the text of the first answer in it.

        Args:
            group_id: Which group.
            user_id: Who asks.
            content: The text, or the segments.
            timeout: Seconds until giving up.
            how: More for `group`.

        Returns:
            The answer's text.
        """
        self.discard(("group", group_id))
        await self.group(group_id, user_id, content, **how)
        return (await self.reply(timeout, target=("group", group_id))).text

    def rename(self, name: str) -> None:
        """Give the bot another nickname."""
        self._introduce(None, self.self_id, name)

    def take(self, target: tuple[Kind, int]) -> list[Sent]:
        """Take all that the bot sent to a chat and nobody has taken yet."""
        taken = [sent for sent in self._unread if sent.target == target]
        self.discard(target)
        return taken

    def discard(self, target: tuple[Kind, int] | None = None) -> None:
        """Forget what the bot sent and nobody has taken, to one chat or to all."""
        self._unread = [sent for sent in self._unread if target not in (None, sent.target)]

    async def silent(self, seconds: float, *, target: tuple[Kind, int] | None = None) -> bool:
        """Tell whether the bot sends nothing for a while; what it sends stays to be taken."""
        known = len(self.sent)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._arrived:
                await self._arrived.wait_for(lambda: self._has_sent(known, target))
        return not self._has_sent(known, target)

    def _has_sent(self, known: int, target: tuple[Kind, int] | None) -> bool:
        return any(target in (None, sent.target) for sent in self.sent[known:])

    # --- What AstrBot asks ------------------------------------------------------------------------

    async def _answer(self, call: Params) -> None:
        action, params = call.get("action", ""), call.get("params") or {}
        self.actions.append((action, params))
        if action.startswith("send_"):
            data: Any = await self._take(action, params)
        else:
            data = self._look_up(action, params)
        failed = data is None
        answer = {
            "status": "failed" if failed else "ok",
            "retcode": 1404 if failed else 0,
            "data": data,
            "echo": call.get("echo"),
        }
        assert self._socket is not None
        await self._socket.send(json.dumps(answer, ensure_ascii=False))

    async def _take(self, action: str, params: Params) -> Params:
        segments = _sent_segments(params)
        kind: Kind = "group" if "group_id" in params and "private" not in action else "private"
        sent = Sent(
            at=time.time(),
            target_kind=kind,
            target_id=int(params["group_id" if kind == "group" else "user_id"]),
            text=_text_of(segments),
            segments=segments,
            params=params,
            message_id=next(self._ids),
        )
        self._world.messages[sent.message_id] = self._own_message(sent)
        async with self._arrived:
            self.sent.append(sent)
            self._unread.append(sent)
            self._arrived.notify_all()
        return {"message_id": sent.message_id, "forward_id": str(sent.message_id)}

    def _own_message(self, sent: Sent) -> Params:
        me = self._world.person(None, self.self_id)
        is_group = sent.target_kind == "group"
        where = {"group_id" if is_group else "target_id": sent.target_id}
        return {
            "time": int(sent.at),
            "self_id": self.self_id,
            "message_type": sent.target_kind,
            "message_id": sent.message_id,
            "user_id": self.self_id,
            "message": sent.segments,
            "raw_message": sent.text,
            "sender": {"user_id": self.self_id, "nickname": me.nickname, "card": ""},
            **where,
        }

    def _look_up(self, action: str, params: Params) -> Params | list[Params] | None:
        """Return what an asking action is answered with; None for 'there is no such thing'."""
        lookups: dict[str, Callable[[Params], Params | list[Params] | None]] = {
            "get_login_info": lambda _: self._stranger({"user_id": self.self_id}),
            "get_stranger_info": self._stranger,
            "get_group_member_info": self._member,
            "get_group_member_list": self._members,
            "get_group_info": self._group_info,
            "get_friend_list": lambda _: [],
            "get_group_list": lambda _: [],
            "get_msg": lambda wanted: self._world.messages.get(_id_in(wanted)),
            "get_forward_msg": self._forward,
            "get_group_msg_history": self._history,
            "get_friend_msg_history": self._history,
            "get_status": lambda _: {"online": True, "good": True},
            "get_version_info": lambda _: {"app_name": "rig", "protocol_version": "v11"},
        }
        look_up = lookups.get(action)
        return look_up(params) if look_up else {}

    def _history(self, params: Params) -> Params | None:
        """One page like NapCat's: it ends with the message that is asked for, else with the newest.

        Nothing found is an error there.
        """
        group_id, friend = params.get("group_id"), params.get("user_id")

        def is_here(message: Params) -> bool:
            if group_id:
                return message.get("group_id") == int(group_id)
            whose = message.get("target_id") or message["user_id"]
            return not message.get("group_id") and whose == int(friend or 0)

        found = sorted(filter(is_here, self._world.messages.values()), key=_said_at)
        anchor = params.get("message_seq")
        if anchor:
            ids = [message["message_id"] for message in found]
            found = found[: ids.index(anchor) + 1] if anchor in ids else []
        page = found[-int(params.get("count") or 20) :]
        page = [{**one, "message_seq": one["message_id"]} for one in page]
        return {"messages": page} if page else None

    def _stranger(self, params: Params) -> Params:
        user_id = int(params["user_id"])
        person = self._world.person(None, user_id)
        return {"user_id": user_id, "nickname": person.nickname, "nick": person.nickname}

    def _member(self, params: Params) -> Params:
        group_id, user_id = int(params["group_id"]), int(params["user_id"])
        person = self._world.person(group_id, user_id)
        return {
            "group_id": group_id,
            "user_id": user_id,
            "nickname": person.nickname,
            "card": person.card,
            "role": person.role,
        }

    def _members(self, params: Params) -> list[Params]:
        group_id = int(params["group_id"])
        members = [user for group, user in self._world.people if group == group_id]
        return [self._member({"group_id": group_id, "user_id": user}) for user in members]

    def _group_info(self, params: Params) -> Params:
        group_id = int(params["group_id"])
        return {
            "group_id": group_id,
            "group_name": f"group{group_id}",
            "member_count": len(self._members(params)),
            "max_member_count": 200,
        }

    def _forward(self, params: Params) -> Params | None:
        forward_id = str(params.get("message_id") or params.get("id"))
        nodes = self._world.forwards.get(forward_id)
        return None if nodes is None else {"messages": nodes}


def _said_at(message: Params) -> tuple[int, int]:
    return message["time"], message["message_id"]


def _id_in(params: Params) -> int:
    return int(params.get("message_id") or params.get("id") or 0)


def _sent_segments(params: Params) -> list[Segment]:
    message = params.get("message")
    if message is None:
        nodes = params.get("messages") or []
        return [segment for node in nodes for segment in node["data"].get("content", [])]
    return [text_segment(message)] if isinstance(message, str) else message


def _text_of(segments: Sequence[Segment]) -> str:
    return "".join(
        segment["data"].get("text", "") if segment["type"] == "text" else f"[{segment['type']}]"
        for segment in segments
    )
