"""Starts test processes, watches their time and shows their output."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rig.suite.counts import Counts, Tally

CHECKOUT = Path(__file__).resolve().parents[3]
TESTS = CHECKOUT / "tests"
LIMIT_SECONDS = 1800.0
GRACE_SECONDS = 30.0
DRAIN_SECONDS = 2.0

Report = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """Some tests that run in one process.

    Attributes:
        title: What stands above their output.
        folder: Where they are.
        pattern: The names of their files.
        python: What to run `-m rig.suite.worker` with.
        options: More options for the worker.
        limit: Seconds that they may take.
    """

    title: str
    folder: Path
    pattern: str
    python: tuple[str, ...] = (sys.executable,)
    options: tuple[str, ...] = ()
    limit: float = LIMIT_SECONDS


async def run_job(job: Job, report: Report) -> Counts:
    """Run a job.

    Args:
        job: What to run.
        report: Gets each line of the output as it comes.

    Returns:
        The counts; a process that did not end as it should counts as one more failure.
    """
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rig-suite-") as folder:
        file = Path(folder) / "counts.json"
        where = ["-m", "rig.suite.worker", str(job.folder), job.pattern, str(file)]
        process = await _start([*job.python, *where, *job.options])
        reading = asyncio.create_task(_pass_on(process, report))
        try:
            in_time = await _watch(process, job.limit, report)
        finally:
            await _end(process)
            # Something that the tests have left behind may hold the pipe open.
            await asyncio.wait([reading], timeout=DRAIN_SECONDS)
            reading.cancel()
        counts = Counts.read(file)
    trouble = _trouble(process.returncode, counts, in_time=in_time)
    if trouble:
        report(f"FAILED: {job.title}: {trouble}")
        counts = (counts or Counts()) + Counts(failed=1)
    assert counts is not None
    report(f"{job.title}: {counts} ({time.monotonic() - started:.0f} s)")
    return counts


def _trouble(code: int | None, counts: Counts | None, *, in_time: bool) -> str | None:
    """Return how a process ended badly, apart from tests that failed."""
    if not in_time:
        return "took too long"
    if counts is None or code != bool(counts.failed):
        return f"ended with exit code {code}"
    if counts == Counts():
        return "found no tests"
    return None


async def _start(command: Sequence[str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *command,
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(TESTS), "PYTHONUNBUFFERED": "1"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=2**24,
        start_new_session=True,
    )


async def _pass_on(process: asyncio.subprocess.Process, report: Report) -> None:
    assert process.stdout is not None
    async for line in process.stdout:
        report(line.decode("utf-8", "replace").rstrip("\n"))


async def _watch(process: asyncio.subprocess.Process, limit: float, report: Report) -> bool:
    """Wait for the end; when that takes too long, have the process tell where it is."""
    try:
        await asyncio.wait_for(process.wait(), limit)
    except TimeoutError:
        report(f"still running after {limit:g} s; this is where it is:")
        _signal(process, signal.SIGUSR1)
        return False
    return True


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a process that still runs: in order if it can, so that its servers end too."""
    if process.returncode is not None:
        return
    _signal(process, signal.SIGINT)
    try:
        await asyncio.wait_for(process.wait(), GRACE_SECONDS)
    except TimeoutError:
        _signal(process, signal.SIGKILL)
        await process.wait()


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)


async def run_jobs(jobs: Sequence[Job], workers: int, tally: Tally, report: Report) -> None:
    """Run several jobs, a few at a time.

    Args:
        jobs: What to run.
        workers: How many run at once. With more than one, the output of each is shown in one
            piece when it has ended.
        tally: Gets the counts.
        report: Gets the output.
    """
    if workers == 1 or len(jobs) == 1:
        for job in jobs:
            report(_heading(job))
            tally.add(await run_job(job, report))
        return
    limit = asyncio.Semaphore(workers)

    async def run(job: Job) -> None:
        async with limit:
            report(f"... {job.title} started")
            lines = [_heading(job)]
            try:
                tally.add(await run_job(job, lines.append))
            finally:
                report("\n".join(lines))

    async with asyncio.TaskGroup() as group:
        for job in jobs:
            group.create_task(run(job))


def _heading(job: Job) -> str:
    return f"\n===== {job.title} ====="
