"""What an outage of Hindsight costs, and how soon its end is noticed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rig.faults import BlackHole, Kind, Refuse

from bench.chat import say, sentence, until_recalled
from bench.figures import Line, Section, Target, p50, p95
from bench.line import HTTP_OK
from bench.world import Bot, World

USERS = {"refused": 42001, "black hole": 42002}
BYSTANDER = 42003
POLL_SECONDS = 0.5
DEADLINES = 3
SLACK_DEADLINES = 0.75
"""Three deadlines of 4 s are to end under 15 s."""

SETTLED_AFTER = 10
"""Messages after which nothing is to be noticed any more."""

SETTLED_MS = 20.0
BREAKER_SECONDS = 15.0
"""The breaker's first pause; each further one is twice as long as the one before."""

HEALTHY_SECONDS = 120.0
"""Before an outage the breaker is closed at the latest after this."""

_MS = 1000.0


@dataclass
class Outage:
    """One outage as seen from two chats that go on at the same time.

    Attributes:
        replies: Seconds from each message to its reply, with the plugin.
        plain: The same without memory.
        seconds: How long it lasted.
        answered: Recalls that were answered all the same; any would make the figures void.
        noticed: Seconds from its end to the first recall that was answered, or None.
    """

    replies: list[float] = field(default_factory=list)
    plain: list[float] = field(default_factory=list)
    seconds: float = 0.0
    answered: int = 0
    noticed: float | None = None

    @property
    def total(self) -> float:
        """Seconds that all messages together took longer than without memory."""
        return sum(self.replies) - sum(self.plain)

    def settled(self, quantile: Callable[[Sequence[float]], float]) -> float:
        """Milliseconds that a message takes longer once the outage is known."""
        with_memory, without = self.replies[SETTLED_AFTER:], self.plain[SETTLED_AFTER:]
        return (quantile(with_memory) - quantile(without)) * _MS


async def measure(world: World) -> Section:
    """Run both outages one after the other."""
    plain, bot = await world.bots("none", "plugin")
    kinds: dict[str, Kind] = {"refused": Refuse(), "black hole": BlackHole()}
    found = {name: await _outage(world, plain, bot, name, kind) for name, kind in kinds.items()}
    return _section(world, found)


async def _outage(world: World, plain: Bot, bot: Bot, name: str, kind: Kind) -> Outage:
    options, who = world.options, USERS[name]
    outage = Outage()
    await _recalled(world, bot, HEALTHY_SECONDS)
    bot.line.proxy.fault = kind
    earlier, began = _answered(bot), time.monotonic()
    for number in range(options.outage_messages):
        for one, replies in ((plain, outage.plain), (bot, outage.replies)):
            text = f"{sentence(number)}（{name} {one.kind}）"
            replies.append((await say(one, world.model, who, text)).whole)
            await asyncio.sleep(options.outage_pause / 2)
    outage.seconds = time.monotonic() - began
    outage.answered = _answered(bot) - earlier
    bot.line.proxy.fault = None
    if options.recovery:
        within = 2 * (outage.seconds + BREAKER_SECONDS)
        outage.noticed = await _recalled(world, bot, within)
    return outage


def _answered(bot: Bot) -> int:
    return sum(one.status == HTTP_OK for one in bot.line.proxy.matching("/recall"))


async def _recalled(world: World, bot: Bot, within: float) -> float:
    """Have somebody else chat until it is over, so that the measured chats stay equally long."""
    return await until_recalled(bot, world.model, BYSTANDER, within=within, pause=POLL_SECONDS)


# --- The figures ----------------------------------------------------------------------------------


def _section(world: World, found: dict[str, Outage]) -> Section:
    limit = world.options.deadline * (DEADLINES + SLACK_DEADLINES)
    totals = {name: outage.total for name, outage in found.items()}
    slow = {name: outage.settled(p95) for name, outage in found.items()}
    after = f"extra of a message after the {SETTLED_AFTER}th"
    lines = [
        Line(
            "total",
            f"extra of {world.options.outage_messages} messages together",
            "s",
            totals,
            digits=2,
            target=Target(limit, _worst(totals), f"< {limit:g} s"),
        ),
        Line("settled_p50", f"{after}, p50", "ms", {n: o.settled(p50) for n, o in found.items()}),
        Line(
            "settled_p95",
            f"{after}, p95",
            "ms",
            slow,
            target=Target(SETTLED_MS, _worst(slow), f"< {SETTLED_MS:g} ms"),
        ),
        Line("settled_max", f"{after}, worst", "ms", {n: o.settled(max) for n, o in found.items()}),
    ]
    answered = {name: float(one.answered) for name, one in found.items()}
    lines.append(
        Line(
            "answered",
            "recalls answered meanwhile",
            "",
            answered,
            digits=0,
            target=Target(0, _worst(answered), "none", inclusive=True),
        )
    )
    noticed = {name: one.noticed for name, one in found.items() if one.noticed is not None}
    if noticed:
        lines.append(_noticed(found, noticed))
    lasted = " and ".join(f"{one.seconds:.0f} s ({name})" for name, one in found.items())
    notes = (
        "extra: compared with a chat without memory that goes on at the same time.",
        f"The outages lasted {lasted}; the breaker may notice the end as long again plus"
        f" {BREAKER_SECONDS:g} s later.",
    )
    return Section("outage", "Hindsight is away", tuple(found), tuple(lines), notes)


def _worst(values: dict[str, float]) -> str:
    return max(values, key=lambda name: values[name])


def _noticed(found: dict[str, Outage], noticed: dict[str, float]) -> Line:
    """The pauses double, so the last one is no longer than the outage and the first pause."""
    limits = {name: found[name].seconds + BREAKER_SECONDS for name in noticed}
    tightest = _worst({name: noticed[name] - limits[name] for name in noticed})
    target = Target(limits[tightest], tightest, f"< {limits[tightest]:.0f} s")
    return Line("noticed", "its end is noticed after", "s", noticed, target=target)
