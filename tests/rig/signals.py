"""Stopping in order when a signal says so."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterator

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def stopping_on_signals() -> Iterator[None]:
    """Let the first signal cancel the running task; more of them do not disturb its clean-up.

    This works also where signals were ignored by whoever started the process, as shells do for
    background jobs.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    signalled = False

    def stop() -> None:
        nonlocal signalled
        if not signalled:
            signalled = True
            task.cancel()

    for number in _SIGNALS:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
