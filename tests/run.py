"""Run all tests, and count them.

    python3 tests/run.py                  unit and live tests
    python3 tests/run.py --unit           unit tests only
    python3 tests/run.py --live recall    live tests only, those of modules named so
    python3 tests/run.py --checks         lint, format and types too
    python3 tests/run.py --browser        the settings page in a browser too; needs a Chromium

Whatever Python starts this: a newer one is looked for, and everything is installed below `.cache`.
The last line says how many passed, failed and were skipped. A skipped test is a failure.
"""

from __future__ import annotations

import argparse
import sys

from rig import venvs


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="tests/run.py", description="Run the tests.")
    parser.add_argument("--unit", action="store_true", help="run the unit tests only")
    parser.add_argument(
        "--live",
        nargs="?",
        const="*",
        metavar="PATTERN",
        help="run the live tests only, all of them or those in modules whose name matches",
    )
    parser.add_argument("--checks", action="store_true", help="check lint, format and types too")
    parser.add_argument("--browser", action="store_true", help="test in a browser too")
    parser.add_argument(
        "--jobs",
        type=int,
        default=3,
        help="how many things run at once; 1 shows what they print as it comes",
    )
    options = parser.parse_args(arguments)
    if not options.unit and options.live is None:
        options.unit, options.live = True, "*"
    return options


def main() -> int:
    """Run the tests and return the exit code."""
    options = parse(sys.argv[1:])
    try:
        venvs.reexec_in("tools")
    except (venvs.MissingPython, venvs.InstallFailed) as error:
        print(f"FAILED: {error}\n\n0 passed, 1 failed, 0 skipped")
        return 1
    except KeyboardInterrupt:
        return 130
    from rig.suite.main import run_suite  # noqa: PLC0415 - needs what was just installed

    return run_suite(options)


if __name__ == "__main__":
    sys.exit(main())
