"""All parts of the plugin, wired together; for the bot and for the tests."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from logging import Logger
from pathlib import Path

from .archive import Archive
from .clock import Clock
from .commands import Commands
from .delivery import Delivery
from .erasure import Eraser
from .hindsight_client import HindsightClient
from .memory import ChatMemory
from .outbox import Outbox, outbox_exists
from .people import People
from .scope import ScopeState
from .settings import Settings
from .status import Status


@dataclass(frozen=True)
class Parts:
    """The parts that are used from outside.

    Attributes:
        settings: The settings.
        state: Salt and switches.
        client: Hindsight, or None while the settings do not allow any request.
        outbox: The turns that wait.
        delivery: The sending of turns.
        archive: What is stored, or None without a client.
        eraser: What must vanish, or None without a client.
        memory: The recall and retain flow.
        people: Who was seen in each chat.
        status: Figures of all parts.
        commands: What `/hindsight` answers.
    """

    settings: Settings
    state: ScopeState
    client: HindsightClient | None
    outbox: Outbox
    delivery: Delivery
    archive: Archive | None
    eraser: Eraser | None
    memory: ChatMemory
    people: People
    status: Status
    commands: Commands


def open_client(settings: Settings, clock: Clock) -> HindsightClient | None:
    """The client for these settings; None where they do not allow any request."""
    if settings.problems:
        return None
    return HindsightClient(
        api_base=settings.api_base,
        api_key=settings.api_key,
        bank_id=settings.bank_id,
        clock=clock,
    )


def assemble(
    settings: Settings,
    folder: Path,
    *,
    clock: Clock,
    logger: Logger,
    host: str,
    state: ScopeState | None = None,
    client: HindsightClient | None = None,
    outbox: Outbox | None = None,
    jitter: Callable[[], float] = random.random,
) -> Parts:
    """Wires the parts.

    Args:
        settings: The settings.
        folder: AstrBot's data directory of the plugin.
        clock: The time.
        logger: Gets what operators should know.
        host: AstrBot's version.
        state: Salt and switches, else read from the folder.
        client: Hindsight, else opened from the settings.
        outbox: The queue, else opened in the folder.
        jitter: Uniform in [0, 1).
    """
    state = state or ScopeState.load(folder, had_data=outbox_exists(folder), now=clock.unix)
    client = client or open_client(settings, clock)
    outbox = outbox or Outbox(folder, every_n_turns=settings.retain.every_n_turns)
    delivery = Delivery(
        outbox,
        client,
        idle_seconds=settings.retain.idle_seconds,
        daily_chars=settings.retain.daily_chars,
        clock=clock,
        random=jitter,
        logger=logger,
    )
    archive, eraser = _stored(client, state, outbox, delivery, clock)
    memory = ChatMemory(
        settings,
        state,
        client,
        delivery,
        clock=clock,
        read_profile=archive.profile if archive else None,
    )
    status = Status(
        settings=settings,
        state=state,
        client=client,
        memory=memory,
        delivery=delivery,
        outbox=outbox,
        archive=archive,
        clock=clock,
        host=host,
    )
    commands = Commands(
        settings=settings,
        state=state,
        client=client,
        memory=memory,
        delivery=delivery,
        archive=archive,
        eraser=eraser,
        status=status,
        folder=folder,
        clock=clock,
    )
    return Parts(
        settings,
        state,
        client,
        outbox,
        delivery,
        archive,
        eraser,
        memory,
        People(folder, state.hasher, logger),
        status,
        commands,
    )


def _stored(
    client: HindsightClient | None,
    state: ScopeState,
    outbox: Outbox,
    delivery: Delivery,
    clock: Clock,
) -> tuple[Archive, Eraser] | tuple[None, None]:
    """What reads and what erases; nothing of it without a client or a salt."""
    hasher = state.hasher
    if client is None or hasher is None:
        return None, None
    archive = Archive(
        client,
        outbox,
        delivery,
        profile_id=lambda scope: hasher.digest("profile", scope.chat),
    )
    return archive, Eraser(client, archive, outbox, delivery, clock=clock)
