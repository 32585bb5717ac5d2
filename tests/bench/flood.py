"""Many messages a second in a group that nobody says to the bot, and which of them are kept."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from bench.world import Bot

RATE = 50.0
"""Messages a second."""
PEOPLE = 40
FIRST_PERSON = 60000
OUTBOX = "outbox.db"

_WORDS = (
    "周末有人一起去爬山吗",
    "我觉得东门那家面馆更好吃",
    "明天下午三点开会，别忘了带电脑",
    "昨天的电影结尾我没看懂",
    "谁有上次拍的照片，发我一份",
    "猫又把杯子推下去了，第三个了",
    "高铁票已经抢到了，周五晚上走",
    "这个版本修好了登录的问题",
)
_NUMBERED = re.compile(r"第(\d+)句：")


class Flood:
    """What the members of groups say among themselves; each message has a number of its own.

    Attributes:
        sent: When each message was sent (`time.time()`), by number.
    """

    def __init__(self, bot: Bot) -> None:
        """Describe it.

        Args:
            bot: Who is in the groups.
        """
        self.sent: dict[int, float] = {}
        self._onebot = bot.astrbot.onebot
        self._numbers = itertools.count(1)

    async def run(self, group: int) -> None:
        """Talk in a group until it is cancelled, without a pause that was not made up for."""
        began = time.monotonic()
        for count in itertools.count():
            await asyncio.sleep(max(0.0, began + count / RATE - time.monotonic()))
            number = next(self._numbers)
            text = f"第{number}句：{_WORDS[number % len(_WORDS)]}"
            who = FIRST_PERSON + number % PEOPLE
            self.sent[number] = time.time()
            await self._onebot.group(group, who, text, at=False)

    @contextlib.asynccontextmanager
    async def going_on(self, group: int) -> AsyncIterator[None]:
        """Talk in a group meanwhile."""
        talking = asyncio.create_task(self.run(group))
        try:
            yield
        finally:
            talking.cancel()
            await asyncio.gather(talking, return_exceptions=True)


def kept(bot: Bot) -> set[int]:
    """Return the numbers of the messages that Hindsight was given or that are on disk."""
    delivered = (one.body.decode() for one in bot.line.stored)
    texts = [*delivered, *_on_disk(bot.astrbot.plugin_data_dir)]
    return {int(number) for text in texts for number in _NUMBERED.findall(text)}


def _on_disk(folder: Path) -> Iterator[str]:
    """Every text that waits in the outbox, or in a file beside it."""
    with contextlib.closing(sqlite3.connect(folder / OUTBOX)) as database:
        yield from (lines for (lines,) in database.execute("SELECT lines FROM turns"))
    for path in folder.glob("late-*"):
        yield path.read_text("utf-8")
