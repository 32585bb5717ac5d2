"""One message to a bot, and how long the parts of its reply took."""

from __future__ import annotations

import time
from dataclasses import dataclass

from rig.model import ModelStub

from bench.world import Bot

REPLY_SECONDS = 90.0

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
    target = ("private", who)
    onebot.discard(target)
    seen = len(model.requests)
    started = time.time()
    await onebot.private(who, text)
    reply = await onebot.reply(REPLY_SECONDS, target=target)
    asked = next(body for body in model.requests[seen:] if text in str(body["messages"][-1]))
    return Reply(asked["received_at"] - started, reply.at - asked["received_at"])
