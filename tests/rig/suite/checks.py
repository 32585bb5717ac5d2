"""Lint, format, types, and code that stands in two places."""

from __future__ import annotations

import contextlib
import os
import sys

from rig.suite.jobs import CHECKOUT, TESTS, Counts, Places, start
from rig.venvs import print_line

PACKAGE = "astrbot_plugin_hindsight_memory"
DUPLICATE_LINES = 6
"""So many lines alike in two files are one too many; imports, comments and docstrings are free."""

_TYPES = CHECKOUT / ".cache" / "types"


def _commands() -> dict[str, list[str]]:
    """Return the checks by name."""
    mypy = ["mypy", "--cache-dir", str(_TYPES / ".mypy_cache")]
    plugin = [f"--module={PACKAGE}.{file.stem}" for file in sorted(CHECKOUT.glob("*.py"))]
    tests = [f"--module={file.stem}" for file in sorted(TESTS.glob("*.py"))]
    sources = [
        str(file.relative_to(CHECKOUT))
        for pattern in ("*.py", "tests/**/*.py", "tools/**/*.py")
        for file in sorted(CHECKOUT.glob(pattern))
    ]
    similarity = f"--min-similarity-lines={DUPLICATE_LINES}"
    return {
        "lint": ["ruff", "check", "."],
        "format": ["ruff", "format", "--check", "."],
        "types of the plugin": [*mypy, *plugin],
        "types of the unit tests": [*mypy, *tests],
        "types of the rig": [*mypy, "--package", "rig", "--package", "bench"],
        "duplicates": [
            *("pylint", "--disable=all", "--enable=duplicate-code", similarity, *sources)
        ],
    }


def _link_package() -> None:
    """Make the checkout importable under the plugin's name, whatever its folder is called.

    The modules import each other relatively, so a type checker must see them in a package.
    """
    link = _TYPES / PACKAGE
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink() or link.resolve() != CHECKOUT:
        link.unlink(missing_ok=True)
        link.symlink_to(CHECKOUT, target_is_directory=True)


async def run_checks(places: Places, tally: Counts) -> None:
    """Run all checks in one of the places; each counts as one test."""
    _link_package()
    env = {
        "MYPYPATH": os.pathsep.join(map(str, (_TYPES, TESTS))),
        "PYLINTHOME": str(_TYPES / ".pylint"),
    }
    async with places or contextlib.nullcontext():
        for name, command in _commands().items():
            process = await start([sys.executable, "-m", *command], **env)
            output, _ = await process.communicate()
            print_line(f"\n===== {name} =====\n{output.decode('utf-8', 'replace').rstrip()}")
            tally.check(process.returncode == 0)
