"""One message to a bot, and how long the parts of its reply took."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from rig.model import ModelStub
from rig.onebot import Kind

from bench.line import HTTP_OK
from bench.world import Bot

REPLY_SECONDS = 180.0

_SENTENCES = (
    "我最近在准备一次去云南的旅行",
    "周末想和朋友去爬山",
    "家里的猫又把花瓶打翻了",
    "我在学做川菜，今天试了麻婆豆腐",
    "下个月打算换一台新电脑",
    "公司的项目终于要上线了",
    "我妹妹考上了心仪的大学",
    "昨晚看了一部老电影，很喜欢",
)


@dataclass(frozen=True)
class Reply:
    """The times of one message, in seconds.

    Attributes:
        before: From the message to the request at the model.
        after: From there, where it is answered at once, to the reply.
    """

    before: float
    after: float

    @property
    def whole(self) -> float:
        """From the message to the reply."""
        return self.before + self.after


def sentence(number: int) -> str:
    """Return the words of a chat's message; no two of a chat are the same."""
    return f"第{number}轮：{_SENTENCES[number % len(_SENTENCES)]}"


async def say(bot: Bot, model: ModelStub, who: int, text: str) -> Reply:
    """Send a private message and await the reply.

    Args:
        bot: To whom.
        model: The model that the bot asks.
        who: The user's number.
        text: The words; no other message that is under way has the same.
    """
    onebot = bot.astrbot.onebot
    target: tuple[Kind, int] = ("private", who)
    onebot.discard(target)
    seen = len(model.requests)
    started = time.time()
    await onebot.private(who, text)
    reply = await onebot.reply(REPLY_SECONDS, target=target)
    asked = next(body for body in model.requests[seen:] if text in str(body["messages"][-1]))
    return Reply(asked["received_at"] - started, reply.at - asked["received_at"])


async def until_recalled(
    bot: Bot, model: ModelStub, who: int, *, within: float, pause: float
) -> float:
    """Chat until a recall is answered, as it is not while the plugin's breaker is open.

    Args:
        bot: With whom.
        model: The model that the bot asks.
        who: The user's number.
        within: Seconds until giving up.
        pause: Seconds between two messages.

    Returns:
        Seconds from now to that recall.

    Raises:
        AssertionError: If there was none in time.
    """
    began = time.time()
    number = 0
    while time.time() < began + within:
        await say(bot, model, who, f"{sentence(number)}（{who} 等待）")
        for request in bot.line.proxy.matching("/recall"):
            if request.at >= began and request.status == HTTP_OK:
                return request.at - began
        number += 1
        await asyncio.sleep(pause)
    raise AssertionError(f"no recall was answered within {within:g} s")
