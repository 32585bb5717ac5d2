"""Measure whether the model gets to read what is needed to answer a question.

    python3 tests/bench/recall.py                                  the project's own dialogues
    python3 tests/bench/recall.py --data FILE --observations       others (see `bench.dialogue`)
    python3 tests/bench/recall.py --chats 2 --questions 5          a quick look
    python3 tests/bench/recall.py --lines 3000                     all of it in one large chat
    python3 tests/bench/recall.py --keep FOLDER                    keeps what was stored ...
    python3 tests/bench/recall.py --keep FOLDER --loaded           ... to ask again in seconds

Dialogues are played through the plugin's own modules, with their own dates, into a real Hindsight
with real multilingual embeddings, whose stub model makes one fact of each line. Then each question
is asked through the ordinary recall, and once more by one bare recall. The same function decides
for both what is found. Whatever Python starts this: everything is installed below `.cache`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)

from rig import venvs  # noqa: E402 - found by the line above

OWN = Path(__file__).resolve().parent.parent / "fixtures" / "recall.json"
STOPPED = 130


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="tests/bench/recall.py",
        description="Measure what evidence the model gets to read, on a real Hindsight.",
    )
    parser.add_argument("--data", type=Path, default=OWN, help="the dialogues (the project's own)")
    parser.add_argument("--max-tokens", type=int, nargs="+", default=[1024], metavar="N")
    parser.add_argument("--observations", action="store_true", help="let the server draw them")
    parser.add_argument("--chats", type=int, metavar="N", help="at most so many chats")
    parser.add_argument("--questions", type=int, metavar="N", help="at most so many of each chat")
    parser.add_argument("--lines", type=int, metavar="N", help="in one chat of so many lines")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write all figures there")
    parser.add_argument("--api-base", metavar="URL", help="a Hindsight that runs already")
    parser.add_argument("--api-key", default="", help="its key")
    parser.add_argument("--bank", help="its bank, empty; it is not deleted")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the database there")
    parser.add_argument("--loaded", action="store_true", help="the bank holds the dialogues")
    given = parser.parse_args(arguments)
    if given.api_base and not given.bank:
        parser.error("--api-base needs --bank, an empty one: what is played there stays there")
    return given


def main() -> int:
    """Run the benchmark and return the exit code."""
    given = parse(sys.argv[1:])
    return venvs.run_in("tools", lambda: _run(given))


def _run(given: argparse.Namespace) -> int:
    from bench import dialogue, recall_report, recall_run, report  # noqa: PLC0415 - see `main`
    from bench.player import Server  # noqa: PLC0415

    server = None
    if given.api_base:
        server = Server(given.api_base.rstrip("/"), given.api_key, given.bank)
    chats = dialogue.load(given.data, chats=given.chats, questions=given.questions)
    options = recall_run.Options(
        chats=dialogue.crowded(chats, given.lines) if given.lines else chats,
        max_tokens=given.max_tokens,
        observations=given.observations,
        server=server,
        loaded=given.loaded,
        keep=given.keep,
    )
    try:
        found = asyncio.run(recall_run.stoppable(options))
    except asyncio.CancelledError:
        print("stopped by a signal; nothing is written")
        return STOPPED
    except recall_run.NotEmptyError as error:
        print(error)
        return 1
    print(f"\n{recall_report.table(found, options)}")
    if given.json:
        report.write(given.json, recall_report.as_json(found, options, given.data.name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
