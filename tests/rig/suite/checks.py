"""Lint, format, types, and code that stands in two places."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable

from rig.suite.counts import Counts, Tally
from rig.suite.jobs import CHECKOUT, TESTS

PACKAGE = "astrbot_plugin_hindsight_memory"
BORDER = "main"
"""The one module that talks to AstrBot, which has no complete types."""

DUPLICATE_LINES = 6
"""So many lines alike in two files are one too many; imports, comments and docstrings are free."""

_TYPES = CHECKOUT / ".cache" / "types"


def _commands() -> dict[str, list[str]]:
    """Return the checks by name."""
    modules = sorted(file.stem for file in CHECKOUT.glob("*.py") if file.stem != BORDER)
    named = [part for module in modules for part in ("-m", f"{PACKAGE}.{module}")]
    cache = ["--cache-dir", str(_TYPES / ".mypy_cache")]
    return {
        "lint": ["ruff", "check", "."],
        "format": ["ruff", "format", "--check", "."],
        "types of the plugin": ["mypy", *cache, *named],
        "types of the rig": ["mypy", *cache, "--package", "rig", "--package", "bench"],
        "duplicates": [
            "pylint",
            "--disable=all",
            "--enable=duplicate-code",
            f"--min-similarity-lines={DUPLICATE_LINES}",
            *_sources(),
        ],
    }


def _sources() -> list[str]:
    files = [CHECKOUT.glob("*.py"), *((CHECKOUT / one).rglob("*.py") for one in ("tests", "tools"))]
    return sorted(str(file.relative_to(CHECKOUT)) for found in files for file in found)


def _link_package() -> None:
    """Make the checkout importable under the plugin's name, whatever its folder is called.

    The modules import each other relatively, so a type checker must see them in a package.
    """
    link = _TYPES / PACKAGE
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink() or link.resolve() != CHECKOUT:
        link.unlink(missing_ok=True)
        link.symlink_to(CHECKOUT, target_is_directory=True)


async def run_checks(tally: Tally, report: Callable[[str], None]) -> None:
    """Run all checks; each counts as one test.

    Args:
        tally: Gets the counts.
        report: Gets the output.
    """
    await asyncio.to_thread(_link_package)
    for name, command in _commands().items():
        report(f"\n===== {name} =====")
        good = await _succeeds(command, report)
        tally.add(Counts(passed=int(good), failed=int(not good)))


async def _succeeds(command: list[str], report: Callable[[str], None]) -> bool:
    process = await asyncio.create_subprocess_exec(
        *[sys.executable, "-m", *command],
        cwd=CHECKOUT,
        env={
            **os.environ,
            "MYPYPATH": os.pathsep.join(map(str, (_TYPES, TESTS))),
            "PYLINTHOME": str(_TYPES / ".pylint"),
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    report(output.decode("utf-8", "replace").rstrip())
    return process.returncode == 0
