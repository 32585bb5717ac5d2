"""The playground from start to end."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

from rig.dashboard import PASSWORD, USERNAME
from rig.hindsight import HindsightFailedError
from rig.playground.cast import cast
from rig.playground.scene import Account, Scene
from rig.playground.show import Show, perform, summary
from rig.playground.talk import talk
from rig.playground.words import Words
from rig.postgres import PostgresFailedError
from rig.signals import stopping_on_signals
from rig.venvs import InstallFailed, MissingPython, ensure_many, print_line

FAILED = 1
INTERRUPTED = 130

_REFUSALS = (
    InstallFailed,
    MissingPython,
    HindsightFailedError,
    PostgresFailedError,
    AssertionError,
)
"""What can go wrong for a reason that the person can read."""


def play(options: argparse.Namespace) -> int:
    """Run the playground.

    Args:
        options: `account` (None or an address, a key and a bank), `lang`, `raw` and `webui`.

    Returns:
        The exit code.
    """
    words = Words(options.lang)
    try:
        # Here and not in the event loop: Ctrl-C ends an installation in the main thread only.
        ensure_many(Scene.needed(is_local=options.account is None), report=print_line)
        return asyncio.run(_run(options, words))
    except (asyncio.CancelledError, KeyboardInterrupt):
        print_line(words("stopped"))
        return INTERRUPTED
    except _REFUSALS as error:
        print_line(words("failed_start", error=error))
        return FAILED


async def _run(options: argparse.Namespace, words: Words) -> int:
    account = Account(*options.account) if options.account else None
    with stopping_on_signals():
        started = time.monotonic()
        print_line(words("starting", where=account.api_base if account else words("here")))
        async with Scene(cast(options.lang), account, print_line) as scene:
            print_line(words("started", seconds=time.monotonic() - started))
            print_line(words("friend"))
            if scene.makeshift:
                print_line(words("makeshift"))
            show = Show(scene, print_line, raw=options.raw)
            wrong = await perform(show)
            print_line(f"\n{summary(scene, wrong)}")
            await _stay(show, webui=options.webui)
            print_line(words("stopping"))
    return FAILED if wrong else 0


async def _stay(show: Show, *, webui: bool) -> None:
    """Let the person go on, until they quit or press Ctrl-C."""
    words = show.scene.words
    if webui:
        url = show.scene.bot.dashboard.url
        print_line(words("dashboard", url=url, user=USERNAME, password=PASSWORD))
    try:
        if sys.stdin.isatty():
            await talk(show)
        elif webui:
            await asyncio.Event().wait()
    except asyncio.CancelledError:
        # Ctrl-C is the ordinary way to end this part.
        task = asyncio.current_task()
        assert task is not None
        task.uncancel()
        print_line("")
