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
class Measured:
    """What one bot has found over all rounds.

    Attributes:
        replies: Seconds from each message to its reply.
        rounds: Seconds from the first message of a round to its last reply.
        cpu: CPU seconds that each round took, up to its last reply.
        blocks: Model requests with a memory block.
        before: What the process had used before.
        afterwards: And after all of it.
    """

    before: Usage
    replies: list[float] = field(default_factory=list)
    rounds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    blocks: int = 0
    afterwards: Usage = field(default_factory=Usage)


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
    """Let the crowd write to the bot without memory, then to the one with the plugin."""
    plain, bot = await world.bots("none", "plugin")
    found = {NONE: await _crowd(world, plain)}
    bot.line.proxy.fault = RecordedAnswers(await _results(world, bot))
    found[RECORDED] = await _crowd(world, bot)
    bot.line.proxy.fault = None
    found[PLUGIN] = await _crowd(world, bot)
    return _section(world, found)


async def _results(world: World, bot: Bot) -> list[dict[str, Any]]:
    """Chat until a recall finds something, and return it."""
    numbers = itertools.count()

    async def found() -> list[dict[str, Any]]:
        await say(bot, world.model, FIRST_USER - 1, f"{sentence(next(numbers))}（先说）")
        answer = bot.line.proxy.matching("/recall")[-1].response_json
        return list(answer.get("results", ()))

    return await eventually(found, WAIT_SECONDS, "a recall that finds something", interval=1.0)


async def _crowd(world: World, bot: Bot) -> Measured:
    """The first round is not measured: there each chat's conversation is made."""
    measured = Measured(Usage.of(bot.astrbot.pid))
    for number in range(1 + world.options.rounds):
        if bot.kind == "plugin":
            await until_recalled(bot, world.model, FIRST_USER - 1, within=WAIT_SECONDS, pause=1)
        world.model.clear()
        cpu = Usage.of(bot.astrbot.pid).cpu
        sent, replied = await _round(bot, world.options.chats, number)
        if number:
            measured.cpu.append(Usage.of(bot.astrbot.pid).cpu - cpu)
            measured.replies += [replied[who] - sent[who] for who in sent]
            measured.rounds.append(max(replied.values()) - min(sent.values()))
            measured.blocks += sum(bool(memory_blocks(body)) for body in world.model.requests)
        await _delivered(bot)
    measured.afterwards = Usage.of(bot.astrbot.pid)
    return measured


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


def _section(world: World, found: dict[str, Measured]) -> Section:
    chats, rounds = world.options.chats, world.options.rounds
    middle = _values(found, lambda one: p50(one.replies))
    whole = _values(found, lambda one: p50(one.rounds))
    lines = (
        _line(
            "reply_p50", "message -> reply, p50", _but(middle, RECORDED), _within(middle, PLUGIN)
        ),
        _line("recorded_p50", "... recorded", _but(middle, PLUGIN), _within(middle, RECORDED)),
        _line("reply_p95", "message -> reply, p95", _values(found, lambda one: p95(one.replies))),
        _line("round", "until the last reply", _but(whole, RECORDED), _within(whole, PLUGIN)),
        _line("recorded_round", "... recorded", _but(whole, PLUGIN), _within(whole, RECORDED)),
        _line("cpu", "CPU time of AstrBot a round", _values(found, lambda one: p50(one.cpu))),
        _memory("rss", "memory of AstrBot afterwards", found, lambda one: one.afterwards.rss),
        _memory(
            "growth",
            "growth over all rounds",
            found,
            lambda one: one.afterwards.rss - one.before.rss,
        ),
    )
    notes = (
        f"{rounds} rounds of {chats} messages after one that is not measured.",
        f"plugin: all servers share this machine's {os.cpu_count()} cores; recorded: recalls are"
        " answered without the server.",
        f"Of {rounds * chats} model requests {found[RECORDED].blocks} (recorded) and"
        f" {found[PLUGIN].blocks} (plugin) carried a memory block.",
    )
    return Section("crowd", f"{chats} private chats at once", COLUMNS, lines, notes)


def _values(found: dict[str, Measured], value: Callable[[Measured], float]) -> dict[str, float]:
    return {kind: value(one) for kind, one in found.items()}


def _but(values: dict[str, float], column: str) -> dict[str, float]:
    """Leave a column out: a line has one target, so two columns with one each need two lines."""
    return {name: value for name, value in values.items() if name != column}


def _within(values: dict[str, float], column: str) -> Target:
    return Target(values[NONE] * FACTOR, column, f"≤ {FACTOR} x none", inclusive=True)


def _line(key: str, name: str, values: dict[str, float], target: Target | None = None) -> Line:
    return Line(key, name, "s", values, digits=2, target=target)


def _memory(
    key: str, name: str, found: dict[str, Measured], value: Callable[[Measured], float]
) -> Line:
    return Line(key, name, "MiB", _values(found, value))
