"""A group that listens while its members write without a pause.

A group that does not listen is flooded in turn with one that does, so that whatever else the
machine does strikes both; each time begins with a moment that is not measured, in which what was
heard before is put on disk. Recalls and retains are answered without the server, as from one that
has cores of its own: what is left is what the plugin costs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean, median

from rig.faults import Fault, Status

from bench import flood
from bench.chat import say, sentence, until_recalled
from bench.crowd import RecordedAnswers, some_results
from bench.figures import Line, Section, Target, p50, p95
from bench.flood import Flood
from bench.line import HTTP_OK
from bench.outage import HEALTHY_SECONDS
from bench.process import Usage
from bench.world import Bot, World

QUIET_GROUP, LISTENING_GROUP = 77001, 77002
OWNER = 59999
ASKER = 43001
SETTLE_SECONDS = 3.0
"""By then what was heard before is on disk, and what was to be sent is."""
SLICE_SECONDS = 10.0
ASK_SECONDS = 1.0
"""From one question to the next, in a private chat."""
KILL_AFTER_SECONDS = (14.0, 12.3, 13.7, 12.9, 13.5)
"""So long after the first message of a run it is killed: when what AstrBot itself does after its
start is over, and not always at the same moment."""

LOOP_MS = 1.0
FACTOR = 1.05
GROWTH_MIB = 20.0
LOST_SECONDS = 1.0

QUIET, LISTENING = "not listening", "listening"
COLUMNS = (QUIET, LISTENING)

_MS = 1000.0


@dataclass(frozen=True)
class Slice:
    """Some seconds of a flood.

    Attributes:
        messages: How many there were.
        loop: CPU seconds of AstrBot's event loop.
        cpu: CPU seconds of AstrBot.
        replies: Seconds from each question in another chat to its answer.
    """

    messages: int
    loop: float
    cpu: float
    replies: tuple[float, ...]


@dataclass(frozen=True)
class Killed:
    """What a kill has cost.

    Attributes:
        sent: Messages of the run.
        ages: How long before the kill those of them were sent that are gone, in seconds.
    """

    sent: int
    ages: tuple[float, ...]


async def measure(world: World) -> Section:
    """Flood the groups, then one of them for long, then kill the bot in the middle of it."""
    (bot,) = await world.bots("plugin")
    # A reply without a recall is faster, and an outage may have been measured just before.
    await until_recalled(bot, world.model, ASKER, within=HEALTHY_SECONDS, pause=ASK_SECONDS)
    recalls = RecordedAnswers(await some_results(world, bot))
    bot.line.proxy.set_faults(recalls, _stored())
    flooding = Flood(bot)
    talk = _Talk(world, bot)
    try:
        await _listen(bot)
        pairs = [await _pair(bot, flooding, talk) for _ in range(world.options.pairs)]
        growth = await _long(bot, flooding, talk, world.options.listening)
        kills = [await _kill(bot, flooding, number) for number in range(world.options.kills)]
    finally:
        bot.line.proxy.set_faults()
    return _section(world, pairs, growth, kills)


def _stored() -> Fault:
    """Take in whatever is sent, at once."""
    answer = Status(HTTP_OK, {"success": True, "async": True, "items_count": 1})
    return Fault(answer, match=lambda one: one.method == "POST" and one.path.endswith("/memories"))


async def _listen(bot: Bot) -> None:
    """Have one of the groups listen."""
    command = "/hindsight listen on"
    told = await bot.astrbot.onebot.ask_group(LISTENING_GROUP, OWNER, command, role="owner")
    assert "optout" in told, told


class _Talk:
    """A private chat that goes on meanwhile; each time it is another one, so that none is long."""

    def __init__(self, world: World, bot: Bot) -> None:
        self._world = world
        self._bot = bot
        self._who = ASKER

    async def begin(self) -> None:
        """Begin another one, with a first message that costs more than others."""
        self._who += 1
        await self._ask(0)

    async def run(self, seconds: float) -> list[float]:
        """Ask every second for some time.

        Returns:
            Seconds from each question to its answer.
        """
        began = time.monotonic()
        replies: list[float] = []
        for number in range(1, 1 + int(seconds / ASK_SECONDS)):
            await asyncio.sleep(max(0.0, began + (number - 1) * ASK_SECONDS - time.monotonic()))
            replies.append(await self._ask(number))
            if time.monotonic() > began + seconds:
                break
        return replies

    async def _ask(self, number: int) -> float:
        self._world.model.clear()
        text = f"{sentence(number)}（{self._who}）"
        return (await say(self._bot, self._world.model, self._who, text)).whole


async def _pair(bot: Bot, flooding: Flood, talk: _Talk) -> tuple[Slice, Slice]:
    """A time without listening, and one with it."""
    quiet = await _slice(bot, flooding, talk, QUIET_GROUP)
    return quiet, await _slice(bot, flooding, talk, LISTENING_GROUP)


async def _slice(bot: Bot, flooding: Flood, talk: _Talk, group: int) -> Slice:
    async with flooding.going_on(group):
        await talk.begin()
        await asyncio.sleep(SETTLE_SECONDS)
        before, sent = Usage.of(bot.astrbot.pid), len(flooding.sent)
        replies = await talk.run(SLICE_SECONDS)
        after = Usage.of(bot.astrbot.pid)
        messages = len(flooding.sent) - sent
    return Slice(messages, after.loop - before.loop, after.cpu - before.cpu, tuple(replies))


async def _long(bot: Bot, flooding: Flood, talk: _Talk, seconds: float) -> float:
    """Flood the group that listens without a break; return by how much memory has grown (MiB)."""
    before = Usage.of(bot.astrbot.pid).rss
    async with flooding.going_on(LISTENING_GROUP):
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            await talk.begin()
            await talk.run(min(left, SLICE_SECONDS))
    return Usage.of(bot.astrbot.pid).rss - before


async def _kill(bot: Bot, flooding: Flood, number: int) -> Killed:
    """Kill the bot in the middle of the flood, look for what is kept, and start it again."""
    first = len(flooding.sent)
    async with flooding.going_on(LISTENING_GROUP):
        await asyncio.sleep(KILL_AFTER_SECONDS[number % len(KILL_AFTER_SECONDS)])
        killed_at = time.time()
        bot.astrbot.kill()
    sent = {one: at for one, at in list(flooding.sent.items())[first:] if at <= killed_at}
    lost = sent.keys() - flood.kept(bot)
    await bot.astrbot.start()
    return Killed(len(sent), tuple(killed_at - sent[one] for one in lost))


# --- The figures ----------------------------------------------------------------------------------


def _section(
    world: World,
    pairs: Sequence[tuple[Slice, Slice]],
    growth: float,
    kills: Sequence[Killed],
) -> Section:
    seconds = f"memory growth in {world.options.listening:g} s"
    limit = Target(GROWTH_MIB, LISTENING, f"< {GROWTH_MIB:g} MiB")
    lines = (
        *_costs("loop", "event loop a message", pairs, lambda one: one.loop, LOOP_MS),
        *_costs("cpu", "CPU time of AstrBot a message", pairs, lambda one: one.cpu),
        *_replies(pairs),
        Line("growth", seconds, "MiB", {LISTENING: growth}, target=limit),
        *_losses(kills),
    )
    notes = (
        f"{flood.RATE:g} messages a second of {flood.PEOPLE} people;"
        f" {len(pairs)} times {SLICE_SECONDS:g} s of each, in turn.",
        "event loop: CPU time of AstrBot's main thread; what is added is the median of the pairs.",
        f"kill -9: {len(kills)} times, {sum(one.sent for one in kills)} messages;"
        " age: before the kill, of the oldest message that is neither on disk nor delivered.",
    )
    return Section("listening", "A flooded group that listens", COLUMNS, lines, notes)


def _costs(
    key: str,
    name: str,
    pairs: Sequence[tuple[Slice, Slice]],
    value: Callable[[Slice], float],
    limit: float | None = None,
) -> tuple[Line, Line]:
    """What a message costs, and how much of that is due to listening."""
    each = [tuple(value(one) / one.messages * _MS for one in pair) for pair in pairs]
    costs = {column: mean(one[at] for one in each) for at, column in enumerate(COLUMNS)}
    added = {LISTENING: median([heard - unheard for unheard, heard in each])}
    target = None if limit is None else Target(limit, LISTENING, f"< {limit:g} ms")
    return (
        Line(key, name, "ms", costs, digits=2),
        Line(f"{key}_added", "... added by listening", "ms", added, digits=2, target=target),
    )


def _replies(pairs: Sequence[tuple[Slice, Slice]]) -> tuple[Line, ...]:
    """How long others wait for the bot."""
    replies = {
        column: [seconds * _MS for pair in pairs for seconds in pair[at].replies]
        for at, column in enumerate(COLUMNS)
    }
    name = "reply in another chat"
    multiple = {LISTENING: p50(replies[LISTENING]) / p50(replies[QUIET])}
    target = Target(FACTOR, LISTENING, f"≤ {FACTOR}", inclusive=True)
    return (
        Line("reply_p50", f"{name}, p50", "ms", {n: p50(replies[n]) for n in COLUMNS}),
        Line("reply", "... as a multiple", f"x {QUIET}", multiple, digits=3, target=target),
        Line("reply_p95", f"{name}, p95", "ms", {n: p95(replies[n]) for n in COLUMNS}),
    )


def _losses(kills: Sequence[Killed]) -> tuple[Line, ...]:
    """What the kills have cost."""
    lost = float(sum(len(one.ages) for one in kills))
    late = float(sum(age > LOST_SECONDS for one in kills for age in one.ages))
    oldest = max((age for one in kills for age in one.ages), default=0.0)
    none = Target(0, LISTENING, "none", inclusive=True)
    unit = "messages"
    return (
        Line("lost", "lost by kill -9", unit, {LISTENING: lost}, digits=0),
        Line("late", "... said before the last second", unit, {LISTENING: late}, 0, none),
        Line("age", "... age of the oldest", "s", {LISTENING: oldest}, digits=2),
    )
