"""The whole suite from start to end."""

from __future__ import annotations

import argparse
import ast
import asyncio
import sys
import tempfile
from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path

from rig import venvs
from rig.chromium import MissingBrowser, find_browser
from rig.signals import stopping_on_signals
from rig.suite.checks import run_checks
from rig.suite.counts import Counts, Tally
from rig.suite.jobs import CHECKOUT, TESTS, Job, run_jobs

LIVE = TESTS / "live"
HOST = TESTS / "host"
BROWSER = TESTS / "browser"
HOST_VENVS = ("astrbot-latest", "astrbot-minimum")
LIVE_VENVS = (*HOST_VENVS, "hindsight")
ALONE = "ALONE"
LEAST_COVERAGE = 95
"""Percent of lines and branches of the plugin's modules, all but the border to AstrBot."""

report = venvs.print_line


def run_suite(options: argparse.Namespace) -> int:
    """Run what the command line selects; the last line printed holds the counts.

    Args:
        options: `checks`, `unit`, `browser` (all bool), `live` (a pattern or None) and `jobs`.

    Returns:
        The exit code.
    """
    tally = Tally()
    try:
        asyncio.run(_run(options, tally))
    except asyncio.CancelledError:
        report("stopped before the end")
        tally.add(Counts(failed=1))
    report(f"\n{tally.counts}")
    return 0 if tally.counts.good else 1


async def _run(options: argparse.Namespace, tally: Tally) -> None:
    with stopping_on_signals():
        if options.checks:
            await run_checks(tally, report)
        if options.unit:
            await _unit(options.jobs, tally)
        if options.live is not None:
            await _live(options, tally)


# --- Unit tests -----------------------------------------------------------------------------------


async def _unit(workers: int, tally: Tally) -> None:
    """Run the unit tests on every Python there is, and measure the plugin's coverage on one."""
    others = await asyncio.to_thread(_other_pythons, tally)
    with tempfile.TemporaryDirectory(prefix="rig-coverage-") as folder:
        data = f"--data-file={folder}/coverage"
        measured = f"--include={CHECKOUT}/*.py"
        jobs = [_unit_job(sys.executable, "-m", "coverage", "run", "--branch", data, measured)]
        jobs += [_unit_job(str(python)) for python in others]
        await run_jobs(jobs, workers, tally, report)
        least = f"--fail-under={LEAST_COVERAGE}"
        reporting = (sys.executable, "-m", "coverage", "report", data, least)
        process = await asyncio.create_subprocess_exec(*reporting, cwd=CHECKOUT)
        enough = await process.wait() == 0
        tally.add(Counts(passed=int(enough), failed=int(not enough)))


def _other_pythons(tally: Tally) -> list[Path]:
    """Return a Python with the tools for each version but the running one."""
    found = []
    for version, python in venvs.find_pythons().items():
        if version != sys.version_info[:2]:
            try:
                found.append(venvs.ensure("tools", python))
            except venvs.InstallFailed as error:
                _give_up(str(error), tally)
    return found


def _unit_job(python: str, *measuring: str) -> Job:
    """Return the unit tests, in which every warning is an error."""
    title = f"unit tests in {Path(python).parent.parent.name}"
    command = (python, "-W", "error", *measuring)
    return Job(title, TESTS, "test*.py", python=command, options=("--strict",))


def _give_up(reason: str, tally: Tally) -> None:
    report(f"FAILED: {reason}")
    tally.add(Counts(failed=1))


# --- Live tests -----------------------------------------------------------------------------------


async def _live(options: argparse.Namespace, tally: Tally) -> None:
    """Run the live tests, each module in a process of its own.

    Those in `host` run inside of AstrBot, those in `browser` beside what drives a browser.
    """
    modules = _modules(LIVE, options.live)
    hosted = _modules(HOST, options.live)
    browsed = _modules(BROWSER, options.live) if options.browser else []
    if not modules and not hosted and not browsed:
        _give_up(f"no live test module matches {options.live}; some need --browser", tally)
        return
    needed = [*LIVE_VENVS, "browser"] if browsed else LIVE_VENVS
    try:
        if browsed:
            find_browser()
        pythons = await asyncio.to_thread(venvs.ensure_many, needed, report=report)
    except (venvs.MissingPython, venvs.InstallFailed, MissingBrowser) as error:
        _give_up(str(error), tally)
        return
    alone = [file for file in modules if runs_alone(file)]
    together = [file for file in modules if file not in alone]
    jobs = [*_host_jobs(hosted, pythons), *_browser_jobs(browsed, pythons), *_jobs(together)]
    await run_jobs(jobs, options.jobs, tally, report)
    await run_jobs(_jobs(alone), 1, tally, report)


def _modules(folder: Path, pattern: str) -> list[Path]:
    return [file for file in sorted(folder.glob("test_*.py")) if _matches(file, pattern)]


def _matches(file: Path, pattern: str) -> bool:
    return pattern in file.stem or fnmatch(file.name, pattern) or fnmatch(file.stem, pattern)


def runs_alone(file: Path) -> bool:
    """Whether a module's tests need the machine for themselves.

    That is so if its name begins with `test_bench` or it says `ALONE = True`.
    """
    if file.stem.startswith("test_bench"):
        return True
    constants = {
        target.id: node.value
        for node in ast.parse(file.read_text("utf-8")).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    value = constants.get(ALONE)
    return isinstance(value, ast.Constant) and value.value is True


def _jobs(files: Iterable[Path]) -> list[Job]:
    return [Job(f"live/{file.name}", file.parent, file.name) for file in files]


def _browser_jobs(files: Iterable[Path], pythons: Mapping[str, Path]) -> list[Job]:
    return [
        Job(f"browser/{file.name}", file.parent, file.name, python=(str(pythons["browser"]),))
        for file in files
    ]


def _host_jobs(files: Iterable[Path], pythons: Mapping[str, Path]) -> list[Job]:
    """Return the jobs that import AstrBot itself, so each runs under both of its versions."""
    return [
        Job(f"host/{file.name} in {name}", file.parent, file.name, python=(str(pythons[name]),))
        for file in files
        for name in HOST_VENVS
    ]
