"""The whole suite from start to end."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Collection, Coroutine
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from rig import venvs
from rig.chromium import MissingBrowser, find_browser
from rig.signals import stopping_on_signals
from rig.suite.checks import run_checks
from rig.suite.jobs import CHECKOUT, TESTS, Counts, Job, Places, run_jobs, start

HOST_VENVS = ("astrbot-latest", "astrbot-minimum")
LONG = ("test_durability", "test_rights", "test_remembers")
"""Live modules that are begun first, as they take longest."""

LEAST_COVERAGE = 95
"""Percent of lines and branches of the plugin's modules, all but the border to AstrBot."""

_MISSING = (venvs.MissingPython, venvs.InstallFailed, MissingBrowser)


def run_suite(options: argparse.Namespace) -> int:
    """Run what the command line selects; the last line printed holds the counts.

    Args:
        options: `checks`, `unit`, `browser` (all bool), `live` (a pattern or None) and `jobs`.

    Returns:
        The exit code.
    """
    tally = Counts()
    try:
        asyncio.run(_run(options, tally))
    except asyncio.CancelledError:
        tally.check(False, "stopped before the end")
    venvs.print_line(f"\n{tally}")
    return 0 if tally.good else 1


async def _run(options: argparse.Namespace, tally: Counts) -> None:
    """Run what is wanted, side by side; what the live tests need is installed meanwhile.

    Modules that need the machine for themselves come last.
    """
    live = {folder: _modules(folder, options) for folder in ("live", "host", "browser")}
    alone = [file for file in live["live"] if runs_alone(file)]
    places = asyncio.Semaphore(options.jobs) if options.jobs > 1 else None
    works: list[Coroutine[Any, Any, None]] = []
    if options.unit:
        works.append(_unit(places, tally))
    if options.checks:
        works.append(run_checks(places, tally))
    if options.live is not None:
        works.append(_live(live, alone, places, tally))
    with stopping_on_signals():
        if places:
            async with asyncio.TaskGroup() as group:
                for work in works:
                    group.create_task(_or_count(work, tally))
        else:
            for work in works:
                await _or_count(work, tally)
        await run_jobs([_live_job(file, sys.executable) for file in alone], None, tally)


async def _or_count(work: Coroutine[Any, Any, None], tally: Counts) -> None:
    """Do a part of the work; what this machine lacks for it counts as a failure."""
    try:
        await work
    except _MISSING as error:
        tally.check(False, str(error))


# --- Unit tests -----------------------------------------------------------------------------------


async def _unit(places: Places, tally: Counts) -> None:
    """Run the unit tests with what the README names, and measure the plugin's coverage.

    Every warning is an error. The running Python measures; each other one there is runs them as
    anybody does by hand, and the running one too if it is alone.
    """
    own = sys.version_info[:2]
    versions = [one for one in venvs.find_pythons() if one != own] or [own]
    with tempfile.TemporaryDirectory(prefix="rig-coverage-") as folder:
        data = f"--data-file={folder}/coverage"
        measuring = ("-m", "coverage", "run", "--branch", data, f"--include={CHECKOUT}/*.py")
        jobs = [_unit_job(sys.executable, *measuring)]
        for version in versions:
            jobs.append(_unit_job(str(await asyncio.to_thread(venvs.ensure, "plain", version))))
        await run_jobs(jobs, places, tally)
        coverage = ("-m", "coverage", "report", data, f"--fail-under={LEAST_COVERAGE}")
        process = await start([sys.executable, *coverage])
        output, _ = await process.communicate()
        venvs.print_line(output.decode())
        tally.check(process.returncode == 0, "the unit tests cover too little")


def _unit_job(python: str, *measuring: str) -> Job:
    title = f"unit tests in {Path(python).parent.parent.name}"
    return Job(title, (python, "-W", "error", *measuring), ("-s", "tests"), {})


# --- Live tests -----------------------------------------------------------------------------------


def _modules(folder: str, options: argparse.Namespace) -> list[Path]:
    """Return the modules of a folder that are wanted."""
    if options.live is None or (folder == "browser" and not options.browser):
        return []
    files = sorted((TESTS / folder).glob("test_*.py"))
    return [one for one in files if options.live in one.stem or fnmatch(one.name, options.live)]


def _install(live: dict[str, list[Path]]) -> dict[str, str]:
    """Make the environments that the live tests need, and return the Python of each."""
    if not any(live.values()):
        return {}
    if live["browser"]:
        find_browser()
    needed = [*HOST_VENVS, "hindsight", *(["browser"] if live["browser"] else [])]
    return {name: str(python) for name, python in venvs.ensure_many(needed).items()}


async def _live(
    live: dict[str, list[Path]],
    alone: Collection[Path],
    places: Places,
    tally: Counts,
) -> None:
    """Run the live tests, each module in a process of its own, those that take long first.

    Those in `host` run inside of both versions of AstrBot, those in `browser` beside what drives a
    browser.
    """
    pythons = await asyncio.to_thread(_install, live)
    beside = sorted(
        (file for file in live["live"] if file not in alone),
        key=lambda file: file.stem not in LONG,
    )
    jobs = [_live_job(file, sys.executable) for file in beside]
    for name in HOST_VENVS:
        jobs += [_live_job(file, pythons[name], f" in {name}") for file in live["host"]]
    jobs += [_live_job(file, pythons["browser"]) for file in live["browser"]]
    if not jobs and not alone:
        tally.check(False, "no live test module is called so; some need --browser")
    await run_jobs(jobs, places, tally)


def runs_alone(file: Path) -> bool:
    """Whether a module's tests need the machine for themselves: it says `ALONE = True`."""
    return "\nALONE = True\n" in file.read_text("utf-8")


def _live_job(file: Path, python: str, where: str = "") -> Job:
    title = f"{file.parent.name}/{file.name}{where}"
    folder = str(file.parent)
    env = {"PYTHONPATH": str(TESTS)}
    return Job(title, (python,), ("-v", "-s", folder, "-p", file.name, "-t", folder), env)
