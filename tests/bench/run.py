"""Measure what the memory costs the replies: a table, and a JSON file below `.cache/bench`.

    python3 tests/bench/run.py                     everything, about 45 minutes
    python3 tests/bench/run.py --quick             rough figures in four or five minutes
    python3 tests/bench/run.py --only turns state  some rows

The figures are only worth something on a machine that does nothing else. Whatever Python starts
this: a newer one is looked for, and everything is installed below `.cache`. The exit code is 0 if
every target was met, 1 if one was missed, 130 if it was stopped.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)

from rig import venvs  # noqa: E402 - found by the line above

from bench.options import ROWS, choose  # noqa: E402


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="tests/bench/run.py",
        description="Measure what the memory costs the replies, on a real AstrBot and Hindsight.",
        epilog=(
            "turns: time added to ordinary turns, requests, connections and bytes; compared with "
            "no plugin, with one bare recall, and with Hindsight's own client. "
            "crowd: 200 private chats at once. outage: Hindsight refuses or swallows requests. "
            "listening: 50 messages a second in a group that listens, and kill -9. "
            "outbox: 100,000 waiting windows. state: 10,000 chats in the state file."
        ),
    )
    parser.add_argument("--only", nargs="+", choices=ROWS, metavar="ROW", help=", ".join(ROWS))
    parser.add_argument(
        "--quick", action="store_true", help="rough figures in four or five minutes"
    )
    parser.add_argument("--turns", type=int, help="measured turns of each chat (15)")
    parser.add_argument("--rtt", type=float, help="round trip of the link in seconds (0.2)")
    parser.add_argument("--pause", type=float, help="seconds between turns (8)")
    parser.add_argument("--listening", type=float, help="seconds of listening (600)")
    parser.add_argument("--json", type=Path, metavar="PATH", help="where the JSON file goes")
    return parser.parse_args(arguments)


def main() -> int:
    """Run the benchmark and return the exit code."""
    given = parse(sys.argv[1:])

    def script() -> int:
        from bench import suite  # noqa: PLC0415 - needs what was just installed

        rows = tuple(row for row in ROWS if row in given.only) if given.only else None
        options = choose(
            quick=given.quick,
            rows=rows,
            turns=given.turns,
            rtt=given.rtt,
            pause=given.pause,
            listening=given.listening,
        )
        return suite.run(options, given.json)

    return venvs.run_in("tools", script)


if __name__ == "__main__":
    sys.exit(main())
