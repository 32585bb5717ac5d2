"""Fills an outbox, or measures one that is full; prints what it found as JSON.

    python -m bench.outbox_probe fill FOLDER WINDOWS
    python -m bench.outbox_probe measure FOLDER

Half of the windows belong to one chat, as after a long outage in a busy group.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import httpx
import plugin  # noqa: F401 - makes the plugin importable
from astrbot_plugin_hindsight_memory.clock import Clock
from astrbot_plugin_hindsight_memory.delivery import Delivery
from astrbot_plugin_hindsight_memory.hindsight_client import HindsightClient
from astrbot_plugin_hindsight_memory.outbox import Outbox
from astrbot_plugin_hindsight_memory.outbox_file import DATABASE_FILE
from astrbot_plugin_hindsight_memory.transcript import Header, Line, TurnRecord

from bench.figures import p50, p95
from bench.process import Usage

CHATS = 1000
BATCH = 2000
QUEUED = 500
EVERY_N_TURNS = 5

_MS = 1000.0
_MIB = 2.0**20


def turn(chat: str, number: int, *, urgent: bool = False) -> TurnRecord:
    """Return a turn of usual size; an urgent one fills its window alone."""
    header = Header(
        tags=("scope:private", "platform:aiocqhttp", f"sender:{chat}", f"umo:{chat}"),
        context="机器人「小助手」与一个人的私聊。",
        timestamp="2026-03-04T12:30:05+08:00",
        metadata={"plugin": "bench", "kind": "private", "platform": "aiocqhttp"},
    )
    lines = (
        Line(f"小明#3fa2c1 (2026-03-04T12:30:05+08:00): 第{number}次说的话" + "啊" * 30),
        Line(f"小助手 (2026-03-04T12:30:09+08:00): 第{number}次的回答" + "好" * 80),
    )
    return TurnRecord(chat, header, lines, urgent=urgent)


def chat_name(number: int) -> str:
    """Return a chat: every second window is of the same one."""
    return f"{number % CHATS if number % 2 else 0:032x}"


async def fill(folder: Path, windows: int) -> dict[str, float]:
    """Make sealed windows of one turn each."""
    outbox = Outbox(folder, every_n_turns=EVERY_N_TURNS, now=time.monotonic)
    for first in range(0, windows, BATCH):
        numbers = range(first, min(first + BATCH, windows))
        await outbox.add([turn(chat_name(number), number, urgent=True) for number in numbers])
    await outbox.aclose()
    return {"size": (folder / DATABASE_FILE).stat().st_size / _MIB}


async def measure(folder: Path) -> dict[str, float]:
    """Start on a full outbox while Hindsight is away, and queue more turns."""
    with tempfile.TemporaryDirectory() as empty:  # loads what an empty outbox needs too
        _, *_ = await _run(Path(empty), turns=5)
    before = Usage.of(os.getpid())
    start, timings = await _run(folder, turns=QUEUED)
    peak = Usage.of(os.getpid()).peak
    return {
        "start": start,
        "queue_p50": p50(timings) * _MS,
        "queue_p95": p95(timings) * _MS,
        "growth": peak - before.rss,
    }


async def _run(folder: Path, turns: int) -> tuple[float, list[float]]:
    """Return the seconds of the start and of each turn that was queued."""
    client = _unreachable()
    started = time.perf_counter()
    delivery = Delivery(
        Outbox(folder, every_n_turns=EVERY_N_TURNS, now=time.monotonic),
        client,
        idle_seconds=8.0,
        daily_chars=0,
        clock=Clock(),
        random=random.random,
        logger=logging.getLogger("bench"),
    )
    await delivery.start()
    await delivery.step()
    start = time.perf_counter() - started
    running = asyncio.create_task(delivery.run())
    timings = [await _timed_add(delivery, number) for number in range(turns)]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await delivery.aclose()
    await client.aclose()
    return start, timings


async def _timed_add(delivery: Delivery, number: int) -> float:
    started = time.perf_counter()
    await delivery.add(turn(chat_name(number), number))
    return time.perf_counter() - started


def _unreachable() -> HindsightClient:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("nobody is there", request=request)

    return HindsightClient(
        api_base="http://hindsight.invalid",
        api_key="hsk_bench",
        bank_id="bench",
        clock=Clock(),
        transport=httpx.MockTransport(refuse),
    )


def main() -> None:
    """Do what the command line says."""
    logging.disable()
    what, folder, *rest = sys.argv[1:]
    work = fill(Path(folder), int(rest[0])) if what == "fill" else measure(Path(folder))
    print(json.dumps(asyncio.run(work)))


if __name__ == "__main__":
    main()
