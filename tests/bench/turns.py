"""What memory adds to an ordinary turn, compared with other ways to do it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import httpx
from rig.model import memory_blocks
from rig.polling import PATIENCE, eventually
from rig.proxy import Recorded

from bench.chat import Reply, say, sentence
from bench.figures import Line, Section, Target, p50, p95
from bench.line import Line as Way
from bench.line import Traffic
from bench.world import Bot, Kind, World

USERS: dict[Kind, int] = {"none": 41001, "plugin": 41002, "official": 41003}
BARE = "bare"
FIRST_TURNS = 5
"""Turns in quick succession that give each chat something to remember; they fill a window."""

BEFORE_FACTOR = 1.05
AFTER_MS = 5.0

_MS = 1000.0


@dataclass
class Measured:
    """What one chat has found.

    Attributes:
        replies: The times of the measured turns.
        traffic: What passed in each of them, up to the next message.
    """

    replies: list[Reply] = field(default_factory=list)
    traffic: list[Traffic] = field(default_factory=list)

    def before(self, quantile: Callable[[Sequence[float]], float]) -> float:
        """Milliseconds before the model is asked."""
        return quantile([reply.before for reply in self.replies]) * _MS

    def after(self, quantile: Callable[[Sequence[float]], float]) -> float:
        """Milliseconds from the model's answer to the reply."""
        return quantile([reply.after for reply in self.replies]) * _MS


async def measure(world: World) -> Section:
    """Run a chat with each kind of memory, all at the same time, on a line each."""
    kinds: list[Kind] = ["none", "plugin"]
    if world.options.official:
        kinds.append("official")
    bots = await world.bots(*kinds)
    await asyncio.gather(*(_first_turns(world, bot) for bot in bots))
    world.model.clear()
    bare_way = await world.line()
    offset = world.options.pause / (len(bots) + 1)
    async with asyncio.TaskGroup() as group:
        chats = [group.create_task(_chat(world, bot, at * offset)) for at, bot in enumerate(bots)]
        plugin = bots[kinds.index("plugin")]
        bare = group.create_task(_bare_recalls(world, plugin.line, bare_way, len(bots) * offset))
    found = {str(kind): chat.result() for kind, chat in zip(kinds, chats, strict=True)}
    own = world.model.requests_with(f"（{USERS['plugin']}）")
    blocks = sum(bool(memory_blocks(body)) for body in own)
    return _section(found, bare.result(), warm_up=world.options.warm_up, blocks=blocks)


async def _first_turns(world: World, bot: Bot) -> None:
    """Give a chat something to remember, and wait until Hindsight has it."""
    who = USERS[bot.kind]
    for number in range(FIRST_TURNS):
        await say(bot, world.model, who, f"{sentence(number)}（{who} 起初）")
    if bot.kind != "none":
        what = f"the first turns of {bot.kind} at Hindsight"
        await eventually(lambda: bot.line.stored, PATIENCE, what)


async def _chat(world: World, bot: Bot, offset: float) -> Measured:
    """One person chats with a bot; the first turns are not measured."""
    options = world.options
    measured = Measured()
    who = USERS[bot.kind]
    await asyncio.sleep(offset)
    for number in range(options.warm_up + options.turns):
        earlier = bot.line.traffic
        reply = await say(bot, world.model, who, f"{sentence(number)}（{who}）")
        await asyncio.sleep(options.pause)
        if number >= options.warm_up:
            measured.replies.append(reply)
            measured.traffic.append(bot.line.traffic.since(earlier))
    return measured


async def _bare_recalls(world: World, plugin: Way, way: Way, offset: float) -> Measured:
    """Send the plugin's own recalls again over a warm connection, with the same pauses."""
    options = world.options
    measured = Measured()
    limits = httpx.Limits(keepalive_expiry=None)
    tls = world.client_tls()
    async with httpx.AsyncClient(base_url=way.url, verify=tls, limits=limits, timeout=30) as client:
        await asyncio.sleep(offset)
        for number in range(options.warm_up + options.turns):
            request = plugin.proxy.matching("/recall")[-1]
            earlier = way.traffic
            seconds = await _repeat(client, request)
            await asyncio.sleep(options.pause)
            if number >= options.warm_up:
                measured.replies.append(Reply(seconds, 0.0))
                measured.traffic.append(way.traffic.since(earlier))
    return measured


async def _repeat(client: httpx.AsyncClient, request: Recorded) -> float:
    headers = {name: request.headers[name] for name in ("authorization", "content-type")}
    started = time.time()
    response = await client.post(request.path, content=request.body, headers=headers)
    response.raise_for_status()
    return time.time() - started


# --- The figures ----------------------------------------------------------------------------------


def _section(found: dict[str, Measured], bare: Measured, *, warm_up: int, blocks: int) -> Section:
    base = found["none"]
    added = {kind: one for kind, one in found.items() if kind != "none"}
    before_50 = {kind: one.before(p50) - base.before(p50) for kind, one in added.items()}
    before_95 = {kind: one.before(p95) - base.before(p95) for kind, one in added.items()}
    after_50 = {kind: one.after(p50) - base.after(p50) for kind, one in added.items()}
    after_95 = {kind: one.after(p95) - base.after(p95) for kind, one in added.items()}
    limit = bare.before(p50) * BEFORE_FACTOR
    everyone = {**found, BARE: bare}
    lines = (
        _milliseconds("base_before", "message -> model, p50", {"none": base.before(p50)}),
        _milliseconds("base_after", "model -> reply, p50", {"none": base.after(p50)}),
        _milliseconds(
            "before_p50",
            "added before the model, p50",
            {**before_50, BARE: bare.before(p50)},
            Target(limit, "plugin", f"≤ {BEFORE_FACTOR} x bare", inclusive=True),
        ),
        _milliseconds(
            "before_p95", "added before the model, p95", {**before_95, BARE: bare.before(p95)}
        ),
        _milliseconds(
            "after_p50",
            "added after the answer, p50",
            after_50,
            Target(AFTER_MS, "plugin", f"< {AFTER_MS:g} ms"),
        ),
        _milliseconds("after_p95", "added after the answer, p95", after_95),
        Line("requests", "HTTP requests a turn", "", _each(everyone, "requests"), digits=2),
        Line(
            "connections",
            "connections opened",
            "",
            {name: float(_total(one, "connections")) for name, one in everyone.items()},
            digits=0,
            target=Target(0, "plugin", "none", inclusive=True),
        ),
        Line("bytes", "bytes a turn", "B", _each(everyone, "size"), digits=0),
    )
    turns = len(base.replies)
    notes = (
        f"{turns} turns of each chat, after {warm_up} that are not measured; so p95 is of {turns}"
        f" values. With the plugin {blocks} of {turns + warm_up} had a memory block.",
        "added: difference to the chat without memory. connections: in all measured turns.",
        "bare: the plugin's own recalls, repeated over a warm httpx connection outside AstrBot.",
    )
    columns = ("none", "plugin", BARE, *(["official"] if "official" in found else []))
    return Section("turns", "Ordinary turns", columns, lines, notes)


def _milliseconds(
    key: str, name: str, values: dict[str, float], target: Target | None = None
) -> Line:
    return Line(key, name, "ms", values, target=target)


def _each(found: dict[str, Measured], attribute: str) -> dict[str, float]:
    return {name: _total(one, attribute) / len(one.traffic) for name, one in found.items()}


def _total(measured: Measured, attribute: str) -> int:
    return sum(getattr(traffic, attribute) for traffic in measured.traffic)
