"""What an outage of Hindsight costs, and how soon its end is noticed."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from rig.faults import BlackHole, Kind, Refuse

from bench.chat import say, sentence
from bench.figures import Line, Section, Target, p50, p95
from bench.world import Bot, World

USERS = {"refused": 42001, "black hole": 42002}
BASELINE_USER = 42003
BASELINE_MESSAGES = 20
DEADLINES = 3
SLACK_DEADLINES = 0.75
"""Three deadlines of 4 s are to end under 15 s."""

SETTLED_AFTER = 10
"""Messages after which nothing is to be noticed any more."""

SETTLED_MS = 20.0
BREAKER_SECONDS = 15.0
"""The breaker's first pause; each further one is twice as long as the one before."""

_MS = 1000.0


@dataclass(frozen=True)
class Outage:
    """One outage as seen from the chat.

    Attributes:
        extra: Seconds that each message took longer than without memory.
        seconds: How long it lasted.
        noticed: Seconds from its end to the first recall that was answered, or None.
    """

    extra: list[float]
    seconds: float
    noticed: float | None


async def measure(world: World) -> Section:
    """Run a baseline, then both outages one after the other."""
    plain, bot = await world.bots("none", "plugin")
    base = await _baseline(world, plain)
    kinds: dict[str, Kind] = {"refused": Refuse(), "black hole": BlackHole()}
    found = {name: await _outage(world, bot, name, kind, base) for name, kind in kinds.items()}
    return _section(world, found, base)


async def _baseline(world: World, plain: Bot) -> float:
    replies = [
        (await say(plain, world.model, BASELINE_USER, f"{sentence(number)}（无）")).whole
        for number in range(BASELINE_MESSAGES)
    ]
    return p50(replies)


async def _outage(world: World, bot: Bot, name: str, kind: Kind, base: float) -> Outage:
    options = world.options
    who = USERS[name]
    await say(bot, world.model, who, f"{sentence(0)}（{name} 之前）")
    bot.line.proxy.fault = kind
    began = time.monotonic()
    extra = []
    for number in range(options.outage_messages):
        reply = await say(bot, world.model, who, f"{sentence(number)}（{name}）")
        extra.append(reply.whole - base)
        await asyncio.sleep(options.outage_pause)
    lasted = time.monotonic() - began
    bot.line.proxy.fault = None
    noticed = await _recovery(world, bot, who, lasted) if options.recovery else None
    return Outage(extra, lasted, noticed)


async def _recovery(world: World, bot: Bot, who: int, lasted: float) -> float:
    """Go on chatting until a recall is answered; give up long after it should have been."""
    ended = time.time()
    monotonic_end = time.monotonic() + 2 * (lasted + BREAKER_SECONDS)
    number = 0
    while time.monotonic() < monotonic_end:
        await say(bot, world.model, who, f"{sentence(number)}（{who} 之后）")
        for request in bot.line.proxy.matching("/recall"):
            if request.at >= ended and request.status == 200:
                return request.at - ended
        number += 1
        await asyncio.sleep(world.options.outage_pause)
    return time.time() - ended


# --- The figures ----------------------------------------------------------------------------------


def _section(world: World, found: dict[str, Outage], base: float) -> Section:
    columns = tuple(found)
    limit = world.options.deadline * (DEADLINES + SLACK_DEADLINES)
    totals = {name: sum(outage.extra) for name, outage in found.items()}
    settled = {
        name: [seconds * _MS for seconds in outage.extra[SETTLED_AFTER:]]
        for name, outage in found.items()
    }
    worst = max(columns, key=lambda name: totals[name])
    slowest = max(columns, key=lambda name: p95(settled[name]))
    after = f"extra of a message after the {SETTLED_AFTER}th"
    lines = [
        Line(
            "total",
            f"extra of {world.options.outage_messages} messages together",
            "s",
            totals,
            digits=2,
            target=Target(limit, worst, f"< {limit:g} s"),
        ),
        Line("settled_p50", f"{after}, p50", "ms", {n: p50(v) for n, v in settled.items()}),
        Line(
            "settled_p95",
            f"{after}, p95",
            "ms",
            {n: p95(v) for n, v in settled.items()},
            target=Target(SETTLED_MS, slowest, f"< {SETTLED_MS:g} ms"),
        ),
        Line("settled_max", f"{after}, the worst", "ms", {n: max(v) for n, v in settled.items()}),
    ]
    noticed = {name: one.noticed for name, one in found.items() if one.noticed is not None}
    if noticed:
        lines.append(_noticed(found, noticed))
    notes = (
        f"extra: longer than the median of {BASELINE_MESSAGES} messages without memory,"
        f" {base * _MS:.0f} ms.",
        "The outages lasted "
        + " and ".join(f"{outage.seconds:.0f} s ({name})" for name, outage in found.items())
        + f"; the breaker may notice the end as long again plus {BREAKER_SECONDS:g} s later.",
    )
    return Section("outage", "Hindsight is away", columns, tuple(lines), notes)


def _noticed(found: dict[str, Outage], noticed: dict[str, float]) -> Line:
    """The pauses double, so the last one is no longer than the outage and the first pause."""
    limits = {name: found[name].seconds + BREAKER_SECONDS for name in noticed}
    tightest = max(noticed, key=lambda name: noticed[name] - limits[name])
    target = Target(limits[tightest], tightest, f"< {limits[tightest]:.0f} s")
    return Line("noticed", "its end is noticed after", "s", noticed, target=target)
