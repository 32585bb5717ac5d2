"""Waiting for something with a deadline, instead of sleeping and hoping."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, overload

PATIENCE = 180.0
"""Seconds for what comes at once on an idle machine: no test passes or fails by a short time."""


def wait_for[T](predicate: Callable[[], T], timeout: float, what: str, interval: float = 0.05) -> T:
    """Do as `eventually` does, where no event loop runs."""
    deadline = time.monotonic() + timeout
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise AssertionError(_too_late(what, timeout, value))
        time.sleep(interval)


@overload
async def eventually[T](
    function: Callable[[], Awaitable[T]], timeout: float, what: str, interval: float = 0.05
) -> T: ...


@overload
async def eventually[T](
    function: Callable[[], T], timeout: float, what: str, interval: float = 0.05
) -> T: ...


async def eventually(
    function: Callable[[], Any], timeout: float, what: str, interval: float = 0.05
) -> Any:
    """Call a function, or await a coroutine function, until it returns something true.

    Args:
        function: What to call; an awaitable result is awaited.
        timeout: Seconds until giving up. A call that hangs counts too.
        what: What is awaited, for the message when it does not come.
        interval: Seconds between two calls.

    Returns:
        The first true value.

    Raises:
        AssertionError: If there was none in time.
    """
    value: Any = None
    try:
        async with asyncio.timeout(timeout) as limit:
            while True:
                result = function()
                value = await result if inspect.isawaitable(result) else result
                if value:
                    return value
                await asyncio.sleep(interval)
    except TimeoutError:
        if not limit.expired():
            raise
        raise AssertionError(_too_late(what, timeout, value)) from None


def _too_late(what: str, timeout: float, value: object) -> str:
    return f"{what}: not within {timeout:g} s (last value: {value!r})"
