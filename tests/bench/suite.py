"""The rows one after the other."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path

from rig import venvs
from rig.signals import stopping_on_signals

from bench import crowd, listening, local, outage, report, turns
from bench.figures import Section
from bench.options import Options
from bench.world import CHECKOUT, World

RESULTS = CHECKOUT / ".cache" / "bench"
STOPPED = 130
BUSY = 0.75
"""A load average per core above this leaves no room for honest figures."""

_LIVE: dict[str, Callable[[World], Awaitable[Section]]] = {
    "turns": turns.measure,
    "crowd": crowd.measure,
    "outage": outage.measure,
    "listening": listening.measure,
}
_LOCAL: dict[str, Callable[[Options], Awaitable[Section]]] = {
    "outbox": local.outbox,
    "state": local.state,
}

Report = Callable[[str], None]


async def measure(
    options: Options, say: Report = venvs.print_line
) -> tuple[list[Section], dict[str, str]]:
    """Measure the rows that are asked for.

    Args:
        options: Which, and how thoroughly.
        say: Gets a line when a row starts.

    Returns:
        What was found, in the order of the rows, and the versions of the bots.
    """
    sections = []
    for name in (name for name in options.rows if name in _LOCAL):
        say(f"... {name}")
        sections.append(await _LOCAL[name](options))
    live = [name for name in options.rows if name in _LIVE]
    if not live:
        return sections, {}
    async with World(options) as world:
        for name in live:
            say(f"... {name}")
            world.model.clear()
            sections.append(await _LIVE[name](world))
        versions = world.versions
    return sorted(sections, key=lambda section: options.rows.index(section.key)), versions


def run(options: Options, file: Path | None) -> int:
    """Measure, show the table and write the JSON file; return the exit code.

    Args:
        options: What to measure.
        file: Where the JSON goes; None for a file of its own below the checkout's cache.
    """
    now = datetime.now().astimezone()
    file = file or RESULTS / f"{now:%Y-%m-%d_%H-%M-%S}.json"
    _warn_if_busy()
    try:
        sections, versions = asyncio.run(_stoppable(options))
    except asyncio.CancelledError:
        print("stopped by a signal; nothing is written")
        return STOPPED
    report.write(file, report.as_json(sections, options, versions))
    print(f"\n{report.table(sections)}\n\nwritten to {file}")
    return 0 if report.all_met(sections) else 1


async def _stoppable(options: Options) -> tuple[list[Section], dict[str, str]]:
    with stopping_on_signals():
        return await measure(options)


def _warn_if_busy() -> None:
    if not hasattr(os, "getloadavg"):
        return
    load = os.getloadavg()[0]
    if load > BUSY * (os.cpu_count() or 1):
        print(f"this machine is busy (load average {load:.1f}): expect worse figures")
