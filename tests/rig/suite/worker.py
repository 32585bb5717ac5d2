"""Runs the tests of one folder in a process of its own and writes down how many passed.

    python -m rig.suite.worker FOLDER PATTERN COUNTS [--strict]

On SIGUSR1 it tells where it is: the stacks of its threads and of its asyncio tasks.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import faulthandler
import gc
import signal
import sys
import threading
import traceback
import unittest
from collections import Counter
from pathlib import Path
from typing import Any, Literal, override

from rig.suite.counts import Counts

Outcome = Literal["passed", "failed", "skipped"]

_WEIGHT: dict[Outcome, int] = {"passed": 0, "skipped": 1, "failed": 2}


class Result(unittest.TextTestResult):
    """Prints a line for each test, and keeps one outcome for each: the worst."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """See `unittest.TextTestResult`."""
        super().__init__(*args, **kwargs)
        self._outcomes: dict[str, Outcome] = {}

    @property
    def counts(self) -> Counts:
        """The outcomes so far."""
        return Counts(**Counter[str](self._outcomes.values()))

    def _note(self, test: Any, outcome: Outcome) -> None:
        name = test.id()
        before = self._outcomes.get(name, outcome)
        self._outcomes[name] = max(before, outcome, key=lambda one: _WEIGHT[one])

    @override
    def addSuccess(self, test: Any) -> None:
        super().addSuccess(test)
        self._note(test, "passed")

    @override
    def addExpectedFailure(self, test: Any, err: Any) -> None:
        super().addExpectedFailure(test, err)
        self._note(test, "passed")

    @override
    def addUnexpectedSuccess(self, test: Any) -> None:
        super().addUnexpectedSuccess(test)
        self._note(test, "failed")

    @override
    def addFailure(self, test: Any, err: Any) -> None:
        super().addFailure(test, err)
        self._note(test, "failed")

    @override
    def addError(self, test: Any, err: Any) -> None:
        super().addError(test, err)
        self._note(test, "failed")

    @override
    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._note(test, "failed")

    @override
    def addSkip(self, test: Any, reason: str) -> None:
        super().addSkip(test, reason)
        self._note(getattr(test, "test_case", test), "skipped")


class Strays:
    """Errors that no test sees: of finalizers, of coroutines never awaited, of threads."""

    def __init__(self) -> None:
        """Begin to watch."""
        self.number = 0
        sys.unraisablehook = self._unraisable
        threading.excepthook = self._of_thread

    def _unraisable(self, found: Any) -> None:
        self.number += 1
        print(f"error in {found.object!r}: {found.err_msg or 'ignored'}", file=sys.stderr)
        traceback.print_exception(found.exc_type, found.exc_value, found.exc_traceback)

    def _of_thread(self, found: threading.ExceptHookArgs) -> None:
        self.number += 1
        threading.__excepthook__(found)


def run(folder: str, pattern: str, file: Path, *, strict: bool) -> bool:
    """Run tests and write down the counts, also when it is interrupted.

    Args:
        folder: Where they are.
        pattern: The names of their files.
        file: Gets the counts.
        strict: Whether an error that no test sees counts as a failure.

    Returns:
        Whether nothing failed.
    """
    strays = Strays() if strict else None
    suite = unittest.defaultTestLoader.discover(folder, pattern, folder)
    results: list[Result] = []

    def make(*args: Any, **kwargs: Any) -> Result:
        results.append(Result(*args, **kwargs))
        return results[-1]

    try:
        unittest.TextTestRunner(sys.stdout, verbosity=2, resultclass=make).run(suite)
    finally:
        gc.collect()
        counts = results[0].counts + Counts(failed=strays.number if strays else 0)
        counts.write(file)
    return not counts.failed


def _tell(*_: object) -> None:
    faulthandler.dump_traceback()
    with contextlib.suppress(RuntimeError):  # no event loop is running
        for task in asyncio.all_tasks():
            task.print_stack()


def main() -> int:
    """Do what the command line says and return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("pattern")
    parser.add_argument("counts", type=Path)
    parser.add_argument("--strict", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGUSR1, _tell)
    for number in (signal.SIGINT, signal.SIGTERM):  # end in order, with what was started
        signal.signal(number, signal.default_int_handler)
    good = run(options.folder, options.pattern, options.counts, strict=options.strict)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
