"""Many private chats write at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rig.model import memory_blocks
from rig.polling import eventually

from bench.chat import sentence
from bench.figures import Line, Section, Target, p50, p95
from bench.process import Usage
from bench.world import Bot, Kind, World

FIRST_USER = 50000
FACTOR = 1.15
WAIT_SECONDS = 180.0

COLUMNS: tuple[Kind, ...] = ("none", "plugin")


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


async def measure(world: World) -> Section:
    """Let the crowd write to the bot without memory, then to the one with the plugin."""
    bots = await world.bots(*COLUMNS)
    found = {bot.kind: await _crowd(world, bot) for bot in bots}
    return _section(world, found)


async def _crowd(world: World, bot: Bot) -> Measured:
    """The first round is not measured: there each chat's conversation is made."""
    measured = Measured(Usage.of(bot.astrbot.pid))
    for number in range(1 + world.options.rounds):
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
        await onebot.private(who, f"{sentence(number)}（{bot.kind} {who}）")
    await eventually(lambda: len(onebot.sent) >= seen + chats, WAIT_SECONDS, "all replies")
    return sent, {reply.target_id: reply.at for reply in onebot.sent[seen:]}


async def _delivered(bot: Bot) -> None:
    """Wait until the turns have been sent, so that the next round finds the bot at rest."""
    if bot.kind == "none":
        return

    def settled() -> bool:
        retains = bot.line.proxy.matching("/memories", "POST")
        last = max((one.answered_at or time.time() for one in retains), default=0.0)
        return time.time() - last > QUIET_SECONDS

    await asyncio.sleep(IDLE_SECONDS)
    await eventually(settled, WAIT_SECONDS, "the turns at Hindsight", interval=0.5)


IDLE_SECONDS = 9.0
"""A little more than the plugin waits for a further turn of the same chat."""

QUIET_SECONDS = 3.0


# --- The figures ----------------------------------------------------------------------------------


def _section(world: World, found: dict[Kind, Measured]) -> Section:
    chats, rounds = world.options.chats, world.options.rounds
    middle = _values(found, lambda one: p50(one.replies))
    whole = _values(found, lambda one: p50(one.rounds))
    lines = (
        _line("reply_p50", "message -> reply, p50", middle, _within(middle)),
        _line("reply_p95", "message -> reply, p95", _values(found, lambda one: p95(one.replies))),
        _line("round", "until the last reply", whole, _within(whole)),
        _line("cpu", "CPU time of AstrBot a round", _values(found, lambda one: p50(one.cpu))),
        _memory("rss", "memory of AstrBot afterwards", found, lambda one: one.afterwards.rss),
        _memory(
            "growth", "growth over all rounds", found, lambda one: one.afterwards.rss - one.before.rss
        ),
    )
    notes = (
        f"{rounds} rounds of {chats} messages after one that is not measured.",
        f"With the plugin {found['plugin'].blocks} of {rounds * chats} model requests carried a"
        " memory block. All servers share this machine's cores.",
    )
    return Section("crowd", f"{chats} private chats at once", COLUMNS, lines, notes)


def _values(
    found: dict[Kind, Measured], value: Callable[[Measured], float]
) -> dict[str, float]:
    return {kind: value(one) for kind, one in found.items()}


def _within(values: dict[str, float]) -> Target:
    return Target(values["none"] * FACTOR, "plugin", f"≤ {FACTOR} x none", inclusive=True)


def _line(key: str, name: str, values: dict[str, float], target: Target | None = None) -> Line:
    return Line(key, name, "s", values, digits=2, target=target)


def _memory(
    key: str, name: str, found: dict[Kind, Measured], value: Callable[[Measured], float]
) -> Line:
    return Line(key, name, "MiB", _values(found, value))
