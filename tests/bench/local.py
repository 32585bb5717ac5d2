"""The rows that need no server: a full outbox, and many chats in the state file."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from typing import Any

from bench.figures import Line, Section, Target
from bench.options import Options
from bench.world import CHECKOUT

START_SECONDS = 2.0
QUEUE_MS = 5.0
GROWTH_MIB = 50.0
COLUMNS = ("plugin",)

Found = dict[str, float]


async def outbox(options: Options) -> Section:
    """Fill an outbox, then open it in a new process and queue more."""
    with tempfile.TemporaryDirectory(prefix="bench-outbox-") as folder:
        filled = await _probe("bench.outbox_probe", "fill", folder, str(options.windows))
        found = await _probe("bench.outbox_probe", "measure", folder)
    lines = (
        _line(found, "start", "start", "s", START_SECONDS, digits=3),
        _line(found, "queue_p50", "queue one more turn, p50", "ms", digits=2),
        _line(found, "queue_p95", "queue one more turn, p95", "ms", QUEUE_MS, digits=2),
        _line(found, "growth", "memory growth", "MiB", GROWTH_MIB),
        _line(filled, "size", "size on disk", "MiB"),
    )
    notes = ("start: until turns can be queued and delivery has looked for work the first time.",)
    return Section("outbox", f"{options.windows:,} waiting windows", COLUMNS, lines, notes)


async def state(options: Options) -> Section:
    """Load a state file with many chats, half of them off, and ask it."""
    with tempfile.TemporaryDirectory(prefix="bench-state-") as folder:
        found = await _probe("bench.state_probe", folder, str(options.known_chats))
    lines = (
        _line(found, "load", "load", "ms"),
        _line(found, "is_off", "ask whether a chat is off", "µs", digits=2),
        _line(found, "switch", "switch one chat", "ms"),
        _line(found, "size", "size on disk", "KiB"),
    )
    return Section("state", f"{options.known_chats:,} known chats, half off", COLUMNS, lines)


def _line(
    found: Found, key: str, name: str, unit: str, limit: float | None = None, digits: int = 1
) -> Line:
    target = None if limit is None else Target(limit, COLUMNS[0], f"< {limit:g} {unit}")
    return Line(key, name, unit, {COLUMNS[0]: found[key]}, digits, target)


async def _probe(module: str, *arguments: str) -> Found:
    """Run a module that measures itself and return the JSON that it prints."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *arguments),
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / "tests")},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, f"{module} ended with code {process.returncode}"
    found: dict[str, Any] = json.loads(output)
    return {name: float(value) for name, value in found.items()}
