"""What is measured, and how thoroughly.

Standard library only, and it runs under Python 3.8 too, as `rig.venvs` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

ROWS = ("turns", "crowd", "outage", "listening", "outbox", "state")
"""All rows, in the order that they run in."""


@dataclass(frozen=True)
class Options:
    """One run of the benchmark.

    Attributes:
        rows: Which rows, of `ROWS`.
        turns: Measured turns of each chat.
        warm_up: Turns before them.
        rtt: Round-trip time of the link in seconds.
        pause: Seconds between a reply and the next message.
        official: Compare with Hindsight's own client too.
        deadline: The plugin's longest wait for a recall.
        outage_messages: Messages during each outage.
        outage_pause: Seconds between them.
        recovery: Wait until the end of an outage is noticed.
        chats: Private chats that write at once.
        rounds: How often they do.
        pairs: Times with and without listening that are compared.
        listening: Seconds of listening without a break.
        kills: How often the bot is killed while it listens.
        windows: Windows that wait in the outbox.
        known_chats: Chats in the state file.
    """

    rows: tuple[str, ...] = ROWS
    turns: int = 15
    warm_up: int = 2
    rtt: float = 0.2
    pause: float = 8.0
    official: bool = True
    deadline: float = 4.0
    outage_messages: int = 30
    outage_pause: float = 1.0
    recovery: bool = True
    chats: int = 200
    rounds: int = 10
    pairs: int = 15
    listening: float = 600.0
    kills: int = 5
    windows: int = 100_000
    known_chats: int = 10_000


@dataclass(frozen=True)
class Quick(Options):
    """A run of some minutes, to see that all is as it should be; its figures are rough.

    The pause is longer than the 5 s after which httpx gives up an idle connection by default.
    """

    turns: int = 3
    warm_up: int = 1
    pause: float = 6.0
    official: bool = False
    outage_messages: int = 20
    outage_pause: float = 0.1
    recovery: bool = False
    chats: int = 40
    rounds: int = 1
    pairs: int = 3
    listening: float = 20.0
    kills: int = 1
    windows: int = 10_000
    known_chats: int = 10_000


def choose(*, quick: bool, **changes: Any) -> Options:
    """Return what the command line asks for.

    Args:
        quick: Start from the quick run.
        changes: Attributes of `Options`; what is None keeps its default.
    """
    given = {name: value for name, value in changes.items() if value is not None}
    return Quick(**given) if quick else Options(**given)
