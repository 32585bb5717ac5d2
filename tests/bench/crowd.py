"""Many private chats write at once.

A recall costs the server CPU time, which here it takes from the bot: both share this machine. So
there is a column in which the recalls are answered by a recorded answer, as from a server that
has cores of its own: what that column costs is what the plugin costs.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from rig.faults import Fault, Status
from rig.model import memory_blocks
from rig.polling import eventually
from rig.proxy import Recorded

from bench.chat import say, sentence, until_recalled
from bench.figures import Line, Section, Target, p50, p95
from bench.line import HTTP_OK
from bench.process import Usage
from bench.world import Bot, World

FIRST_USER = 50000
FACTOR = 1.15
WAIT_SECONDS = 180.0
IDLE_SECONDS = 9.0
"""A little more than the plugin waits for a further turn of the same chat."""

QUIET_SECONDS = 3.0

NONE, PLUGIN, RECORDED = "none", "plugin", "recorded"
COLUMNS = (NONE, RECORDED, PLUGIN)


@dataclass(frozen=True)
class Take:
    """One round of the crowd with one bot.

    Attributes:
        column: Whose.
        replies: Seconds from each message to its reply.
        whole: Seconds from the first message to the last reply.
        cpu: CPU seconds of AstrBot, up to the last reply.
        hindsight: CPU seconds of Hindsight, without its database.
        blocks: Model requests with a memory block.
    """

    column: str
    replies: tuple[float, ...]
    whole: float
    cpu: float
    hindsight: float
    blocks: int

    @property
    def middle(self) -> float:
        """The median of the replies."""
        return p50(self.replies)


@dataclass(frozen=True)
class Column:
    """Whose turn it is.

    Attributes:
        bot: To whom the crowd writes.
        fault: What happens on its way to Hindsight, if anything.
    """

    bot: Bot
    fault: Fault | None = None


class RecordedAnswers(Fault):
    """Answers each recall by what another recall has found, under the tags that were asked for."""

    def __init__(self, results: list[dict[str, Any]]) -> None:
        """Take the results to answer with."""
        super().__init__(Status(HTTP_OK), match="/recall")
        self._results = results

    def strikes(self, request: Recorded) -> bool:
        """Make the answer, where it is a recall."""
        if not super().strikes(request):
            return False
        results = [{**one, "tags": request.json["tags"]} for one in self._results]
        self.kind = Status(HTTP_OK, {"results": results})
        return True


async def measure(world: World) -> Section:
    """Let the crowd write to the bot without memory and to the one with the plugin.

    The bots take turns, so that whatever else the machine does strikes both, and so that a chat's
    history, which costs AstrBot time, is of the same length with both.
    """
    plain, bot = await world.bots("none", "plugin")
    before = [Usage.of(one.astrbot.pid).rss for one in (plain, bot)]
    recorded = RecordedAnswers(await some_results(world, bot))
    columns = {NONE: Column(plain), RECORDED: Column(bot, recorded), PLUGIN: Column(bot)}
    order = [NONE, RECORDED, NONE, PLUGIN]
    takes = [
        await _take(world, name, columns[name], number)
        for number in range(1 + world.options.rounds)
        for name in order
    ]
    takes.append(await _take(world, NONE, columns[NONE], 1 + world.options.rounds))
    after = [Usage.of(one.astrbot.pid).rss for one in (plain, bot)]
    return _section(world, takes[len(order) :], before, after)


async def some_results(world: World, bot: Bot) -> list[dict[str, Any]]:
    """Chat with the plugin until a recall finds something, and return it."""
    numbers = itertools.count()

    async def found() -> list[dict[str, Any]]:
        await say(bot, world.model, FIRST_USER - 1, f"{sentence(next(numbers))}（先说）")
        answered = [one for one in bot.line.proxy.matching("/recall") if one.status == HTTP_OK]
        return list(answered[-1].response_json.get("results", ())) if answered else []

    return await eventually(found, WAIT_SECONDS, "a recall that finds something", interval=1.0)


async def _take(world: World, name: str, column: Column, number: int) -> Take:
    bot, server = column.bot, world.hindsight
    bot.line.proxy.fault = column.fault
    if bot.kind == "plugin":
        await until_recalled(bot, world.model, FIRST_USER - 1, within=WAIT_SECONDS, pause=1)
    world.model.clear()
    cpu, hindsight = Usage.of(bot.astrbot.pid).cpu, Usage.of(server.pid).cpu
    sent, replied = await _round(bot, world.options.chats, number)
    take = Take(
        name,
        tuple(replied[who] - sent[who] for who in sent),
        max(replied.values()) - min(sent.values()),
        Usage.of(bot.astrbot.pid).cpu - cpu,
        Usage.of(server.pid).cpu - hindsight,
        sum(bool(memory_blocks(body)) for body in world.model.requests),
    )
    await _delivered(bot)
    return take


async def _round(bot: Bot, chats: int, number: int) -> tuple[dict[int, float], dict[int, float]]:
    """Send one message for each user at once; return when each was sent and answered."""
    onebot = bot.astrbot.onebot
    onebot.discard()
    seen = len(onebot.sent)
    sent = {}
    for who in range(FIRST_USER, FIRST_USER + chats):
        sent[who] = time.time()
        await onebot.private(who, f"{sentence(number)}（{who} {time.time():.3f}）")
    await eventually(lambda: len(onebot.sent) >= seen + chats, WAIT_SECONDS, "all replies")
    return sent, {reply.target_id: reply.at for reply in onebot.sent[seen:]}


async def _delivered(bot: Bot) -> None:
    """Wait until the turns have been sent, so that the next round finds the bot at rest."""
    if bot.kind == "none":
        return

    def settled() -> bool:
        return time.time() - max(one.at for one in bot.line.stored) > QUIET_SECONDS

    await asyncio.sleep(IDLE_SECONDS)
    await eventually(settled, WAIT_SECONDS, "the turns at Hindsight", interval=0.5)


# --- The figures ----------------------------------------------------------------------------------


def multiple(takes: Sequence[Take], column: str, value: Callable[[Take], float]) -> float:
    """Return how many times as much the rounds of a column take as those without memory.

    A round is compared with those without memory just before and after it, because the speed of
    a machine that is shared changes from minute to minute.

    Args:
        takes: In the order that they were taken in; those without memory stand at both sides.
        column: Which column.
        value: What to compare.
    """
    own = [at for at, take in enumerate(takes) if take.column == column]
    around = [takes[at + side] for at in own for side in (-1, 1)]
    return mean([value(takes[at]) for at in own]) / mean([value(take) for take in around])


def _section(
    world: World, takes: Sequence[Take], before: Sequence[float], after: Sequence[float]
) -> Section:
    chats, rounds = world.options.chats, world.options.rounds
    by = {name: [take for take in takes if take.column == name] for name in COLUMNS}
    replies = {name: [s for take in by[name] for s in take.replies] for name in COLUMNS}
    blocks = {name: sum(take.blocks for take in by[name]) for name in COLUMNS}
    lines = (
        _seconds("reply_p50", "message -> reply, p50", {n: p50(replies[n]) for n in COLUMNS}),
        *_multiples("reply", takes, lambda take: take.middle),
        _seconds("reply_p95", "message -> reply, p95", {n: p95(replies[n]) for n in COLUMNS}),
        _seconds("whole", "until the last reply", _medians(by, lambda take: take.whole)),
        *_multiples("whole", takes, lambda take: take.whole),
        _seconds("cpu", "CPU time of AstrBot a round", _medians(by, lambda take: take.cpu)),
        _seconds("hindsight", "CPU time of Hindsight", _medians(by, lambda take: take.hindsight)),
        _memory("rss", "memory of AstrBot afterwards", after),
        _memory(
            "growth", "growth over all rounds", [b - a for a, b in zip(before, after, strict=True)]
        ),
    )
    notes = (
        f"{rounds} rounds of {chats} messages after one that is not measured; the bots take turns,"
        " and a multiple is that of the rounds of none just before and after.",
        "recorded: recalls are answered without the server, as if it had cores of its own.",
        f"plugin: the server shares this machine's {os.cpu_count()} cores; how many recalls"
        " it answers in time is up to it.",
        f"Of {rounds * chats} model requests {blocks[RECORDED]} (recorded) and {blocks[PLUGIN]}"
        " (plugin) carried a memory block.",
    )
    return Section("crowd", f"{chats} private chats at once", COLUMNS, lines, notes)


def _medians(by: Mapping[str, Sequence[Take]], value: Callable[[Take], float]) -> dict[str, float]:
    return {name: p50([value(take) for take in takes]) for name, takes in by.items()}


def _seconds(key: str, name: str, values: dict[str, float]) -> Line:
    return Line(key, name, "s", values, digits=2)


def _multiples(key: str, takes: Sequence[Take], value: Callable[[Take], float]) -> Iterator[Line]:
    """A line has one target, so two columns with one each need two lines."""
    for column in (RECORDED, PLUGIN):
        values = {column: multiple(takes, column, value)}
        target = Target(FACTOR, column, f"≤ {FACTOR}", inclusive=True)
        yield Line(
            f"{key}_{column}", "... as a multiple", "x none", values, digits=2, target=target
        )


def _memory(key: str, name: str, values: Sequence[float]) -> Line:
    """Of a process; the recorded answers go to the same one as the others."""
    return Line(key, name, "MiB", dict(zip((NONE, PLUGIN), values, strict=True)))
