"""Runs tests in processes of their own, watches the time, shows the output and counts."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from rig.venvs import print_line

CHECKOUT = Path(__file__).resolve().parents[3]
TESTS = CHECKOUT / "tests"
LIMIT_SECONDS = 1800.0
GRACE_SECONDS = 60.0
DRAIN_SECONDS = 5.0

Report = Callable[[str], None]
Places = asyncio.Semaphore | None
"""Where a job waits for its turn, and shows its output when it has ended; where there are none, one
runs after another and shows what it prints as it comes."""

_OUTCOMES = ("passed", "failed", "skipped")
_FAILURES = ("failures", "errors", "unexpected successes")
_NUMBER = re.compile(r"(\w[a-z ]*)=(\d+)")
_SUMMARY = re.compile(r"^Ran (\d+) tests? in .*\n\n(?:OK|FAILED|NO TESTS RAN)(.*)$", re.MULTILINE)
_UNSEEN = re.compile(r"Exception (?:ignored (?:in|while)|in thread)\b")
"""An error that no test sees: of a finalizer, of a coroutine never awaited, of a thread."""


class Counts(Counter[str]):
    """How many tests passed, failed and were skipped; an error is a failure."""

    def __str__(self) -> str:
        """Say it in one line."""
        return ", ".join(f"{self[outcome]} {outcome}" for outcome in _OUTCOMES)

    @property
    def good(self) -> bool:
        """Whether something was tested, and nothing failed or was left out."""
        return [outcome for outcome in _OUTCOMES if self[outcome]] == ["passed"]

    def check(self, good: bool, trouble: str = "") -> None:
        """Count one test more, and say what is wrong if it failed."""
        self["passed" if good else "failed"] += 1
        if trouble and not good:
            print_line(f"FAILED: {trouble}")

    @classmethod
    def of(cls, output: str) -> Self:
        """Return what `unittest` has printed at its end, and errors that no test has seen.

        Each subtest that fails is a failure.
        """
        found = cls(failed=len(_UNSEEN.findall(output)))
        for ran, details in _SUMMARY.findall(output)[-1:]:
            numbers = {what: int(number) for what, number in _NUMBER.findall(details)}
            failed = sum(numbers.get(what, 0) for what in _FAILURES)
            skipped = numbers.get("skipped", 0)
            passed = max(0, int(ran) - failed - skipped)
            found.update(passed=passed, failed=failed, skipped=skipped)
        return found


@dataclass(frozen=True)
class Job:
    """Some tests that run in one process.

    Attributes:
        title: What stands above their output.
        python: What to run `-m unittest` with.
        where: How `unittest` finds them.
        env: Further environment variables.
    """

    title: str
    python: Sequence[str]
    where: Sequence[str]
    env: Mapping[str, str]


async def run_job(job: Job, report: Report) -> Counts:
    """Run a job; `report` gets each line of its output as it comes.

    A process that did not end as it should counts as one more failure.
    """
    started = time.monotonic()
    command = [*job.python, "-m", "unittest", "discover", *job.where]
    process = await start(command, **job.env, PYTHONUNBUFFERED="1")
    lines: list[str] = []
    reading = asyncio.create_task(_read(process, lines, report))
    try:
        async with asyncio.timeout(LIMIT_SECONDS):
            await process.wait()
        trouble = ""
    except TimeoutError:
        trouble = f"still ran after {LIMIT_SECONDS:g} s; where it was is above"
    finally:
        await _end(process)
        # Something that the tests have left behind may hold the pipe open.
        await asyncio.wait([reading], timeout=DRAIN_SECONDS)
        reading.cancel()
    counts = Counts.of("\n".join(lines))
    if not counts.total() or (process.returncode and not counts["failed"]):
        trouble = trouble or f"ended with exit code {process.returncode}, see above"
    if trouble:
        report(f"FAILED: {job.title}: {trouble}")
        counts["failed"] += 1
    report(f"{job.title}: {counts} ({time.monotonic() - started:.0f} s)")
    return counts


async def start(command: Sequence[str], **env: str) -> asyncio.subprocess.Process:
    """Start a process in the checkout, its output in one pipe."""
    return await asyncio.create_subprocess_exec(
        *command,
        cwd=CHECKOUT,
        env={**os.environ, **env},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=2**24,
        start_new_session=True,
    )


async def _read(process: asyncio.subprocess.Process, lines: list[str], report: Report) -> None:
    assert process.stdout is not None
    async for line in process.stdout:
        lines.append(line.decode("utf-8", "replace").rstrip("\n"))
        report(lines[-1])


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a process that still runs: in order if it can, so that its servers end too.

    An interrupted test tells where it was.
    """
    for number in (signal.SIGINT, signal.SIGKILL):
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), GRACE_SECONDS)


async def run_jobs(jobs: Sequence[Job], places: Places, tally: Counts) -> None:
    """Run several jobs and count their tests."""

    async def run(job: Job, places: asyncio.Semaphore) -> None:
        async with places:
            heading = f"\n===== {job.title} ====="
            print_line(f"... {job.title} started")
            lines = [heading]
            try:
                tally.update(await run_job(job, lines.append))
            finally:
                print_line("\n".join(lines))

    if places is None:
        for job in jobs:
            print_line(f"\n===== {job.title} =====")
            tally.update(await run_job(job, print_line))
        return
    async with asyncio.TaskGroup() as group:
        for job in jobs:
            group.create_task(run(job, places))
