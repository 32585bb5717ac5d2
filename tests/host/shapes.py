"""Every shape of message that AstrBot's adapters make, and what must become of it.

Each is made by the adapter itself from what its platform sends. Where that holds objects of a
connected client (Discord), they are stand-ins with the attributes that the adapter reads.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from unittest import mock

import botpy.message
import dingtalk_stream
import discord
import lark_oapi
import telegram
from aiocqhttp import Event as OneBotEvent
from host import Host
from wechatpy import messages as weixin_messages
from wechatpy.enterprise import messages as wecom_messages

BOT = "90009000900"
OTHER = "60006000600"
BOT_NAME = "小助手"
HELLO = "你好"
NOBODY = "skip no_sender"


@dataclass(frozen=True)
class Said:
    """What somebody says.

    Attributes:
        sender: Their id; digits, since some platforms know nothing else.
        name: Their name, where the platform tells it.
        chat: The id of the group, or of whatever the platform has for a chat.
        text: Their words.
    """

    sender: str = "30405060708"
    name: str = "小明"
    chat: str = "70405060708"
    text: str = HELLO


Make = Callable[[Host, Said], Awaitable[Any]]


@dataclass(frozen=True)
class Shape:
    """A row of the table.

    Attributes:
        name: What it is.
        platform: The adapter's name.
        make: Makes the event.
        kind: The kind of chat; `skip` and a reason where there is no memory.
        stored: The stored text; `{other}` and the like stand for labels.
        named: Whether the platform tells the sender's name.
        words: What is said, if not just hello.
        unsure: Reads must ask for the umo whatever the settings say.
        isolated: `unique_session` gives each sender a session.
        names_others: The platform tells the name of somebody who is mentioned.
    """

    name: str
    platform: str
    make: Make
    kind: str
    stored: str = HELLO
    named: bool = True
    words: str = HELLO
    unsure: bool = False
    isolated: bool = False
    names_others: bool = True


# --- OneBot ---------------------------------------------------------------------------------------

PEOPLE = {OTHER: "小红", BOT: BOT_NAME}


async def _onebot_call(action: str, **params: Any) -> dict[str, Any]:
    if action == "get_msg":
        return _onebot_message(Said(OTHER, "小红", text="昨天的话"), "group")
    return {"card": PEOPLE[str(params["user_id"])], "user_id": params["user_id"]}


def _onebot_message(said: Said, kind: str, **changes: Any) -> dict[str, Any]:
    return {
        "post_type": "message",
        "message_type": kind,
        "self_id": int(BOT),
        "user_id": int(said.sender),
        "group_id": int(said.chat),
        "message_id": 1,
        "message": [{"type": "text", "data": {"text": said.text}}],
        "sender": {"user_id": int(said.sender), "nickname": said.name, "card": ""},
        "time": int(time.time()),
        **changes,
    }


def onebot(kind: str, *, before: list[dict[str, Any]] | None = None, **changes: Any) -> Make:
    """A OneBot message, with segments before its text."""

    async def make(host: Host, said: Said) -> Any:
        payload = _onebot_message(said, kind, **changes)
        payload["message"] = [*(before or ()), *payload["message"]]
        return await _from_onebot(host, payload)

    return make


def onebot_happening(post_type: str, *, group: bool, **fields: Any) -> Make:
    """A OneBot notice or request."""

    async def make(host: Host, said: Said) -> Any:
        payload = {
            "post_type": post_type,
            f"{post_type}_type": "any",
            "self_id": int(BOT),
            "user_id": int(said.sender),
            **fields,
        }
        return await _from_onebot(
            host, {**payload, "group_id": int(said.chat)} if group else payload
        )

    return make


async def onebot_anonymous(host: Host, said: Said) -> Any:
    """A message by somebody who hides in a group."""
    anonymous = {"id": int(said.sender), "name": said.name, "flag": "f"}
    hidden = Said("80000000", said.name, said.chat, said.text)
    payload = _onebot_message(hidden, "group", sub_type="anonymous", anonymous=anonymous)
    return await _from_onebot(host, payload)


async def _from_onebot(host: Host, payload: dict[str, Any]) -> Any:
    adapter = host.adapter("aiocqhttp")
    adapter.bot.call_action = _onebot_call
    event = OneBotEvent.from_payload(payload)
    await adapter.handle_msg(await adapter.convert_message(event))
    return host.event_of(adapter)


def at(person: str) -> dict[str, Any]:
    """A OneBot segment that mentions somebody."""
    return {"type": "at", "data": {"qq": person}}


# --- QQ's own interface ---------------------------------------------------------------------------


def qq(platform: str, handler: str, cls: type, data: Callable[[Said], dict[str, Any]]) -> Make:
    """A message of QQ's official interface, given to the handler that botpy would call."""

    async def make(host: Host, said: Said) -> Any:
        adapter = host.adapter(platform)
        message = cls(None, "event", {"id": "m1", "content": said.text, **data(said)})
        await getattr(adapter.client, handler)(message)
        return host.event_of(adapter)

    return make


def qq_shapes(platform: str) -> list[Shape]:
    """The shapes that both of QQ's adapters have."""
    message = botpy.message

    def guild(said: Said) -> dict[str, Any]:
        author = {"id": said.sender, "username": said.name}
        bot = {"id": BOT, "username": BOT_NAME}
        return {"author": author, "channel_id": said.chat, "guild_id": "8", "mentions": [bot]}

    def group(said: Said) -> dict[str, Any]:
        author = {"id": said.sender, "member_openid": said.sender}
        return {"author": author, "group_openid": said.chat}

    def c2c(said: Said) -> dict[str, Any]:
        return {"author": {"user_openid": said.sender}}

    at_bot = "on_group_at_message_create", message.GroupMessage, group
    in_guild = "on_at_message_create", message.Message, guild
    direct = "on_direct_message_create", message.DirectMessage, guild
    return [
        Shape("group", platform, qq(platform, *at_bot), "group", named=False, isolated=True),
        Shape(
            "group with a mention",
            platform,
            qq(platform, *at_bot),
            "group",
            named=False,
            isolated=True,
            words=f'<qqbot-at-user id="{OTHER}" /> <@!{OTHER}> 在吗',
            stored="@{other} @{other} 在吗",
            names_others=False,
        ),
        Shape(
            "C2C",
            platform,
            qq(platform, "on_c2c_message_create", message.C2CMessage, c2c),
            "private",
            named=False,
        ),
        Shape(
            "guild",
            platform,
            qq(platform, *in_guild),
            "group",
            isolated=True,
            words=f"<@!{BOT}> 你好",
        ),
        Shape("guild DM", platform, qq(platform, *direct), "private"),
    ]


# --- Telegram -------------------------------------------------------------------------------------


def telegram_message(kind: str, **changes: Any) -> Make:
    """A message in Telegram; mentions are `entities`."""

    async def make(host: Host, said: Said) -> Any:
        adapter = host.adapter("telegram")
        update = telegram.Update(1, message=_telegram(said, kind, **changes))
        bot = SimpleNamespace(username="helper_bot", id=int(BOT))
        await adapter.message_handler(update, SimpleNamespace(bot=bot))
        return host.event_of(adapter)

    return make


def _telegram(said: Said, kind: str, **changes: Any) -> telegram.Message:
    chat = said.sender if kind == "private" else said.chat
    user = telegram.User(int(said.sender), said.name, is_bot=False, username=said.name)
    return telegram.Message(
        1,
        datetime.now(UTC),
        telegram.Chat(int(chat), kind),
        from_user=user,
        text=said.text,
        **changes,
    )


TELEGRAM_REPLY = _telegram(Said(OTHER, "hong", text="昨天的话"), "supergroup")
TELEGRAM_MENTION = [telegram.MessageEntity("mention", 0, 10)]

# --- Discord --------------------------------------------------------------------------------------


def discord_message(*, guild: bool) -> Make:
    """A message in a server's channel, or in a direct one, whose id is its own."""

    async def make(host: Host, said: Said) -> Any:
        adapter = host.adapter("discord")
        adapter.bot_self_id = BOT
        adapter.client = SimpleNamespace(user=SimpleNamespace(id=int(BOT)))
        other = SimpleNamespace(id=int(OTHER), display_name="小红", bot=False)
        message = mock.Mock(
            spec=discord.Message,
            content=said.text,
            author=SimpleNamespace(id=int(said.sender), display_name=said.name),
            channel=SimpleNamespace(
                id=int(said.chat),
                guild=SimpleNamespace(name="server") if guild else None,
                name="general",
            ),
            guild=None,
            attachments=[],
            reference=None,
            mentions=[other],
            role_mentions=[],
        )
        abm = await adapter.convert_message({"message": message, "bot_id": BOT})
        await adapter.handle_msg(abm)
        return host.event_of(adapter)

    return make


# --- Lark -----------------------------------------------------------------------------------------


def lark(chat_type: str) -> Make:
    """A message in Lark, in which `@_user_1` stands for somebody else."""

    async def make(host: Host, said: Said) -> Any:
        adapter = host.adapter("lark")
        adapter.bot_open_id = BOT
        adapter._user_name_cache = {said.sender: (said.name, time.time() + 60)}
        mention = {"key": "@_user_1", "id": {"open_id": OTHER}, "name": "小红"}
        message = {
            "message_id": "m1",
            "create_time": "1700000000000",
            "chat_id": said.chat,
            "chat_type": chat_type,
            "message_type": "text",
            "content": json.dumps({"text": said.text}),
            "mentions": [mention],
        }
        sender = {"sender_id": {"open_id": said.sender}, "sender_type": "user"}
        data = {"event": {"message": message, "sender": sender}}
        module = lark_oapi.api.im.v1
        sp = f"{type(adapter).__module__}.sp"
        with mock.patch(sp, mock.AsyncMock(), create=True):
            await adapter.convert_msg(module.P2ImMessageReceiveV1(data))
        return host.event_of(adapter)

    return make


# --- WeCom and WeChat -----------------------------------------------------------------------------


async def wecom(host: Host, said: Said) -> Any:
    """A message in WeCom, whose names are ids."""
    adapter = host.adapter("wecom")
    message = wecom_messages.TextMessage(_weixin(said))
    await adapter.convert_message(message)
    return host.event_of(adapter)


async def wecom_customer(host: Host, said: Said) -> Any:
    """A message in WeCom's customer service."""
    adapter = host.adapter("wecom")
    message = {
        "msgtype": "text",
        "external_userid": said.sender,
        "open_kfid": BOT,
        "msgid": "m1",
        "text": {"content": said.text},
    }
    await adapter.convert_wechat_kf_message(message)
    return host.event_of(adapter)


def wecom_bot(chattype: str, *, tells_chat: bool = True, tells_sender: bool = True) -> Make:
    """A message to WeCom's AI bot."""

    async def make(host: Host, said: Said) -> Any:
        adapter = host.adapter("wecom_ai_bot")
        data: dict[str, Any] = {
            "msgtype": "text",
            "chattype": chattype,
            "text": {"content": said.text},
        }
        if tells_sender:
            data["from"] = {"userid": said.sender}
        if chattype == "group" and tells_chat:
            data["chatid"] = said.chat
        session = adapter._extract_session_id(data)
        await adapter.handle_msg(
            await adapter.convert_message({"message_data": data, "session_id": session})
        )
        return host.event_of(adapter)

    return make


async def weixin_official(host: Host, said: Said) -> Any:
    """A message to an official account."""
    adapter = host.adapter("weixin_official_account")
    adapter.user_buffer[said.sender] = {}
    adapter.server.user_buffer[said.sender] = {}
    await adapter.convert_message(weixin_messages.TextMessage(_weixin(said)))
    return host.event_of(adapter)


def _weixin(said: Said) -> dict[str, Any]:
    return {
        "MsgId": 1,
        "FromUserName": said.sender,
        "ToUserName": BOT,
        "AgentID": BOT,
        "CreateTime": "1700000000",
        "Content": said.text,
    }


async def weixin_oc(host: Host, said: Said) -> Any:
    """A message to a personal WeChat account."""
    adapter = host.adapter("weixin_oc")
    item = {"type": 1, "text_item": {"text": said.text}}
    await adapter._handle_inbound_message(
        {"from_user_id": said.sender, "message_id": "m1", "item_list": [item]}
    )
    return host.event_of(adapter)


# --- The others -----------------------------------------------------------------------------------


async def webchat(host: Host, said: Said) -> Any:
    """A message in AstrBot's own web page."""
    adapter = host.adapter("webchat")
    payload = {"message_id": "m1", "message": [{"type": "plain", "text": said.text}]}
    await adapter.handle_msg(await adapter.convert_message((said.sender, said.chat, payload)))
    return host.event_of(adapter)


def dingtalk(conversation_type: str, **changes: Any) -> Make:
    """A message in DingTalk."""

    async def make(host: Host, said: Said) -> Any:
        adapter = host.adapter("dingtalk")
        data = {
            "conversationId": said.chat,
            "conversationType": conversation_type,
            "createAt": 1700000000000,
            "senderId": f"$:LWCP_v1:${said.sender}",
            "senderNick": said.name,
            "chatbotUserId": f"$:LWCP_v1:${BOT}",
            "atUsers": [{"dingtalkId": f"$:LWCP_v1:${person}"} for person in (BOT, OTHER)],
            "msgId": "m1",
            "msgtype": "text",
            "text": {"content": said.text},
            **changes,
        }
        message = dingtalk_stream.ChatbotMessage.from_dict(data)
        with mock.patch.object(adapter, "_remember_sender_binding", mock.AsyncMock()):
            await adapter.handle_msg(await adapter.convert_msg(message))
        return host.event_of(adapter)

    return make


def slack(*, direct: bool, lookup: bool = True) -> Make:
    """A message in Slack; without its look-ups the adapter takes any channel for a group."""

    async def make(host: Host, said: Said) -> Any:
        adapter = host.adapter("slack")
        adapter.bot_self_id = BOT
        names = {said.sender: said.name, **PEOPLE}

        async def users_info(user: str) -> dict[str, Any]:
            return {"user": {"real_name": names[user]}}

        async def conversations_info(channel: str) -> dict[str, Any]:
            if not lookup:
                raise OSError
            return {"channel": {"id": channel, "is_im": direct}}

        adapter.web_client = SimpleNamespace(
            users_info=users_info, conversations_info=conversations_info
        )
        message = {"user": said.sender, "channel": said.chat, "text": said.text, "ts": "1.0"}
        await adapter.handle_msg(await adapter.convert_message(message))
        return host.event_of(adapter)

    return make


def kook(channel_type: str, mention: str = "") -> Make:
    """A message in KOOK; a broadcast is neither private nor of a group."""

    async def make(host: Host, said: Said) -> Any:
        adapter = host.adapter("kook")
        adapter.client._bot_id = BOT
        event = _kook_event(adapter, said, channel_type, mention)
        await adapter.handle_msg(await adapter.convert_message(event))
        await adapter.client.http_client.close()
        return host.event_of(adapter)

    return make


def _kook_event(adapter: Any, said: Said, channel_type: str, mention: str) -> Any:
    module = __import__(type(adapter).__module__, fromlist=["KookMessageEventData"])
    author = {
        "id": said.sender,
        "username": said.name,
        "identify_num": "1",
        "nickname": said.name,
        "bot": False,
        "online": True,
        "status": 1,
    }
    spoken = f"@小红 {said.text}" if mention else said.text
    kmarkdown = {
        "raw_content": spoken,
        "mention_part": [{"id": mention, "username": "小红", "full_name": "小红", "avatar": ""}]
        if mention
        else [],
        "mention_role_part": [],
    }
    data = {
        "channel_type": channel_type,
        "type": 9,
        "target_id": said.chat,
        "author_id": said.sender,
        "content": f"(met){mention}(met) {said.text}" if mention else said.text,
        "msg_id": "m1",
        "msg_timestamp": 1700000000000,
        "nonce": "",
        "from_type": 1,
        "extra": {"type": 9, "author": author, "kmarkdown": kmarkdown},
    }
    return module.KookMessageEventData.from_dict(data)


def line(source_type: str, *, tells_sender: bool = True) -> Make:
    """A message in LINE, which tells no names."""

    async def make(host: Host, said: Said) -> Any:
        adapter = host.adapter("line")
        adapter.destination = BOT
        source: dict[str, Any] = {"type": source_type}
        if tells_sender:
            source["userId"] = said.sender
        if source_type != "user":
            source[f"{source_type}Id"] = said.chat
        event = {
            "type": "message",
            "source": source,
            "timestamp": 1700000000000,
            "message": {"id": "m1", "type": "text", "text": said.text},
        }
        await adapter.handle_msg(await adapter.convert_message(event))
        return host.event_of(adapter)

    return make


def mattermost(channel_type: str) -> Make:
    """A message in Mattermost, whose direct channels have ids of their own."""

    async def make(host: Host, said: Said) -> Any:
        adapter = host.adapter("mattermost")
        adapter.bot_self_id, adapter.bot_username = BOT, "helper"
        adapter._mention_pattern = adapter._build_mention_pattern("helper")
        post = {"channel_id": said.chat, "user_id": said.sender, "message": said.text, "id": "m1"}
        data = {"channel_type": channel_type, "sender_name": f"@{said.name}"}
        await adapter.handle_msg(await adapter.convert_message(post=post, data=data))
        return host.event_of(adapter)

    return make


def satori(*, guild: bool, sender: Callable[[str], Any] = str) -> Make:
    """A message by Satori; platforms without guilds have groups that look private."""

    async def make(host: Host, said: Said) -> Any:
        adapter = host.adapter("satori")
        body = {
            "type": "message-created",
            "message": {"id": "m1", "content": said.text},
            "user": {"id": sender(said.sender), "name": said.name},
            "channel": {"id": f"c:{said.chat}"},
            "guild": {"id": said.chat} if guild else None,
            "login": {"user": {"id": BOT}},
        }
        await adapter.handle_event(body)
        return host.event_of(adapter)

    return make


def misskey(kind: str) -> Make:
    """A chat, a room's message or a public note in Misskey."""

    async def make(host: Host, said: Said) -> Any:
        adapter = host.adapter("misskey")
        adapter.bot_self_id, adapter._bot_username = BOT, "helper"
        user = {"id": said.sender, "name": said.name, "username": "ming"}
        if kind == "note":
            note = {"id": "n1", "text": f"@helper {said.text}", "user": user, "mentions": [BOT]}
            await adapter._handle_notification({"type": "mention", "note": note})
        else:
            data = {"id": "m1", "text": said.text, "fromUser": user, "fromUserId": said.sender}
            room = {"toRoomId": said.chat} if kind == "room" else {}
            await adapter._handle_chat_message(data | room)
        return host.event_of(adapter)

    return make


async def cron(host: Host, said: Said) -> Any:
    """AstrBot waking itself for a group."""
    return host.cron_event(f"bot1:GroupMessage:{said.chat}", said.text)


# --- The table ------------------------------------------------------------------------------------

SHAPES = [
    Shape("private", "aiocqhttp", onebot("private", sub_type="friend"), "private"),
    Shape("temporary session", "aiocqhttp", onebot("private", sub_type="group"), "private"),
    Shape("group", "aiocqhttp", onebot("group"), "group", isolated=True),
    Shape(
        "group with mentions",
        "aiocqhttp",
        onebot("group", before=[at(BOT), at(OTHER)]),
        "group",
        stored="@{other} 你好",
        isolated=True,
    ),
    Shape(
        "group with a quotation",
        "aiocqhttp",
        onebot("group", before=[{"type": "reply", "data": {"id": "1"}}]),
        "group",
        stored="[引用 {other}: 昨天的话] 你好",
        isolated=True,
    ),
    Shape(
        "group with attachments",
        "aiocqhttp",
        onebot(
            "group",
            before=[
                {"type": "image", "data": {"file": "http://127.0.0.1/a.png"}},
                {"type": "record", "data": {"file": "http://127.0.0.1/a.amr"}},
                {"type": "file", "data": {"url": "http://127.0.0.1/a", "name": "账单.pdf"}},
                {"type": "forward", "data": {"id": "f1"}},
            ],
        ),
        "group",
        stored="[图片] [语音] [文件 账单.pdf] [转发的聊天记录] 你好",
        isolated=True,
    ),
    Shape("anonymous", "aiocqhttp", onebot_anonymous, "group", isolated=True),
    Shape(
        "group notice",
        "aiocqhttp",
        onebot_happening("notice", group=True, sub_type="poke", target_id=int(BOT)),
        "group",
        stored="",
        named=False,
        isolated=True,
    ),
    Shape(
        "private notice",
        "aiocqhttp",
        onebot_happening("notice", group=False),
        "private",
        stored="",
        named=False,
    ),
    Shape(
        "group request",
        "aiocqhttp",
        onebot_happening("request", group=True),
        "group",
        stored="",
        named=False,
        isolated=True,
    ),
    *qq_shapes("qq_official"),
    *qq_shapes("qq_official_webhook"),
    Shape("private", "telegram", telegram_message("private"), "private"),
    Shape("group", "telegram", telegram_message("supergroup"), "group"),
    Shape(
        "topic",
        "telegram",
        telegram_message("supergroup", is_topic_message=True, message_thread_id=77),
        "group",
    ),
    Shape(
        "group with a mention",
        "telegram",
        telegram_message("supergroup", entities=TELEGRAM_MENTION),
        "group",
        words="@hong_hong 在吗",
        stored="@{hong_hong} 在吗",
    ),
    Shape(
        "group with a quotation",
        "telegram",
        telegram_message("supergroup", reply_to_message=TELEGRAM_REPLY),
        "group",
        stored="[引用 {hong}: 昨天的话] 你好",
    ),
    Shape("direct", "discord", discord_message(guild=False), "private"),
    Shape("channel", "discord", discord_message(guild=True), "group"),
    Shape(
        "channel with mentions",
        "discord",
        discord_message(guild=True),
        "group",
        words=f"<@{BOT}> <@{OTHER}> <@!{OTHER}> 在吗",
        stored="@{other} @{other} 在吗",
    ),
    Shape("private", "lark", lark("p2p"), "private"),
    Shape("group", "lark", lark("group"), "group", named=False, isolated=True),
    Shape(
        "group with a mention",
        "lark",
        lark("group"),
        "group",
        words="@_user_1 在吗",
        stored="@小红 在吗",
        named=False,
        isolated=True,
    ),
    Shape("private", "wecom", wecom, "private", named=False),
    Shape("customer service", "wecom", wecom_customer, "private", named=False),
    Shape("single", "wecom_ai_bot", wecom_bot("single"), "private", named=False),
    Shape(
        "single, nobody told",
        "wecom_ai_bot",
        wecom_bot("single", tells_sender=False),
        NOBODY,
    ),
    Shape("group", "wecom_ai_bot", wecom_bot("group"), "group", named=False),
    Shape(
        "group, nobody told",
        "wecom_ai_bot",
        wecom_bot("group", tells_sender=False),
        "group",
        named=False,
    ),
    Shape(
        "group without its id",
        "wecom_ai_bot",
        wecom_bot("group", tells_chat=False),
        "private",
        named=False,
        unsure=True,
    ),
    Shape("private", "weixin_official_account", weixin_official, "private", named=False),
    Shape("private", "weixin_oc", weixin_oc, "private", named=False),
    Shape("private", "webchat", webchat, "private", named=False),
    Shape("private", "dingtalk", dingtalk("1"), "private"),
    Shape("private, nobody told", "dingtalk", dingtalk("1", senderId=""), NOBODY),
    Shape("group", "dingtalk", dingtalk("2"), "group", isolated=True),
    Shape(
        "group, nobody told",
        "dingtalk",
        dingtalk("2", senderId=None),
        "group",
        isolated=True,
    ),
    Shape("direct", "slack", slack(direct=True), "private"),
    Shape("channel", "slack", slack(direct=False), "group", isolated=True),
    Shape(
        "channel with a mention",
        "slack",
        slack(direct=False),
        "group",
        words=f"<@{OTHER}> 在吗",
        stored="@{other} 在吗",
        isolated=True,
    ),
    Shape("look-up failed", "slack", slack(direct=True, lookup=False), "group", isolated=True),
    Shape("private", "kook", kook("PERSON"), "private"),
    Shape("channel", "kook", kook("GROUP"), "group"),
    Shape("channel with a mention", "kook", kook("GROUP", OTHER), "group", stored="@小红 你好"),
    Shape("broadcast", "kook", kook("BROADCAST"), "private", unsure=True),
    Shape("user", "line", line("user"), "private", named=False),
    Shape("group", "line", line("group"), "group", named=False),
    Shape("room", "line", line("room"), "group", named=False),
    Shape("group, nobody told", "line", line("group", tells_sender=False), "group", named=False),
    Shape("direct", "mattermost", mattermost("D"), "private"),
    Shape("group of a few", "mattermost", mattermost("G"), "group"),
    Shape("channel", "mattermost", mattermost("O"), "group"),
    Shape("guild", "satori", satori(guild=True), "group"),
    Shape("without a guild", "satori", satori(guild=False), "private", unsure=True),
    Shape("sender is a number", "satori", satori(guild=False, sender=int), NOBODY),
    Shape(
        "guild with a mention",
        "satori",
        satori(guild=True),
        "group",
        words=f'<at id="{OTHER}" name="小红"/> 在吗',
        stored="在吗",
    ),
    Shape("chat", "misskey", misskey("chat"), "private"),
    Shape("room", "misskey", misskey("room"), "group", isolated=True),
    Shape("note", "misskey", misskey("note"), "private", unsure=True),
    Shape("scheduled task", "cron", cron, "skip synthetic"),
]


def shapes(host: Host) -> list[Shape]:
    """The table for an AstrBot."""
    return SHAPES if host.version >= (4, 28) else [_formerly(one) for one in SHAPES]


def _formerly(shape: Shape) -> Shape:
    """A row as it is on AstrBot 4.24: less is told."""
    if (shape.platform, shape.name) == ("lark", "private"):
        return replace(shape, named=False)
    if (shape.platform, shape.kind) == ("wecom_ai_bot", "group"):
        nobody = shape.name == "group, nobody told"
        return replace(shape, kind=NOBODY if nobody else "private", unsure=not nobody)
    return shape
