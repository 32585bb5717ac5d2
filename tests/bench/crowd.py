"""Many private chats write at once.

A recall costs the server CPU time, which here it takes from the bot: both share this machine. So
there is a column in which the recalls are answered by a recorded answer, as from a server that
has cores of its own.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
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


@dataclass
class Column:
    """One bot, and what has been found with it over all rounds.

    Attributes:
        bot: To whom the crowd writes.
        fault: What happens on its way to Hindsight, if anything.
        before: What the process had used before.
        replies: Seconds from each message to its reply.
        rounds: Seconds from the first message of a round to its last reply.
        cpu: CPU seconds that each round took, up to its last reply.
        blocks: Model requests with a memory block.
    """

    bot: Bot
    fault: Fault | None = None
    before: Usage = field(init=False)
    replies: list[float] = field(default_factory=list)
    rounds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    blocks: int = 0

    def __post_init__(self) -> None:
        """Look at the process."""
        self.before = Usage.of(self.bot.astrbot.pid)


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
    recorded = RecordedAnswers(await _results(world, bot))
    columns = {NONE: Column(plain), RECORDED: Column(bot, recorded), PLUGIN: Column(bot)}
    for number in range(1 + world.options.rounds):
        for name in (NONE, RECORDED, NONE, PLUGIN):
            await _take_turn(world, columns[name], number)
    return _section(world, columns)


async def _results(world: World, bot: Bot) -> list[dict[str, Any]]:
    """Chat until a recall finds something, and return it."""
    numbers = itertools.count()

    async def found() -> list[dict[str, Any]]:
        await say(bot, world.model, FIRST_USER - 1, f"{sentence(next(numbers))}（先说）")
        answer = bot.line.proxy.matching("/recall")[-1].response_json
        return list(answer.get("results", ()))

    return await eventually(found, WAIT_SECONDS, "a recall that finds something", interval=1.0)


async def _take_turn(world: World, column: Column, number: int) -> None:
    """The first round is not measured: there each chat's conversation is made."""
    bot = column.bot
    bot.line.proxy.fault = column.fault
    if bot.kind == "plugin":
        await until_recalled(bot, world.model, FIRST_USER - 1, within=WAIT_SECONDS, pause=1)
    world.model.clear()
    cpu = Usage.of(bot.astrbot.pid).cpu
    sent, replied = await _round(bot, world.options.chats, number)
    if number:
        column.cpu.append(Usage.of(bot.astrbot.pid).cpu - cpu)
        column.replies += [replied[who] - sent[who] for who in sent]
        column.rounds.append(max(replied.values()) - min(sent.values()))
        column.blocks += sum(bool(memory_blocks(body)) for body in world.model.requests)
    await _delivered(bot)


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


def _section(world: World, found: dict[str, Column]) -> Section:
    chats, rounds = world.options.chats, world.options.rounds
    middle = _values(found, lambda one: p50(one.replies))
    whole = _values(found, lambda one: p50(one.rounds))
    rss = _values(found, lambda one: Usage.of(one.bot.astrbot.pid).rss)
    growth = {name: rss[name] - one.before.rss for name, one in found.items()}
    lines = (
        _line(
            "reply_p50", "message -> reply, p50", _but(middle, RECORDED), _within(middle, PLUGIN)
        ),
        _line("recorded_p50", "... recorded", _but(middle, PLUGIN), _within(middle, RECORDED)),
        _line("reply_p95", "message -> reply, p95", _values(found, lambda one: p95(one.replies))),
        _line("round", "until the last reply", _but(whole, RECORDED), _within(whole, PLUGIN)),
        _line("recorded_round", "... recorded", _but(whole, PLUGIN), _within(whole, RECORDED)),
        _line("cpu", "CPU time of AstrBot a round", _values(found, lambda one: p50(one.cpu))),
        _memory("rss", "memory of AstrBot afterwards", rss),
        _memory("growth", "growth over all rounds", growth),
    )
    notes = (
        f"{rounds} rounds of {chats} messages after one that is not measured; the bots take turns.",
        f"plugin: all servers share this machine's {os.cpu_count()} cores; recorded: recalls are"
        " answered without the server.",
        f"Of {rounds * chats} model requests {found[RECORDED].blocks} (recorded) and"
        f" {found[PLUGIN].blocks} (plugin) carried a memory block.",
    )
    return Section("crowd", f"{chats} private chats at once", COLUMNS, lines, notes)


def _values(found: dict[str, Column], value: Callable[[Column], float]) -> dict[str, float]:
    return {kind: value(one) for kind, one in found.items()}


def _but(values: dict[str, float], column: str) -> dict[str, float]:
    """Leave a column out: a line has one target, so two columns with one each need two lines."""
    return {name: value for name, value in values.items() if name != column}


def _within(values: dict[str, float], column: str) -> Target:
    return Target(values[NONE] * FACTOR, column, f"≤ {FACTOR} x none", inclusive=True)


def _line(key: str, name: str, values: dict[str, float], target: Target | None = None) -> Line:
    return Line(key, name, "s", values, digits=2, target=target)


def _memory(key: str, name: str, values: dict[str, float]) -> Line:
    """Of a process, and the recorded answers go to the same one as the others."""
    return Line(key, name, "MiB", _but(values, RECORDED))
