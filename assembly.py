"""All parts of the plugin, wired together; for the bot and for the tests."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from logging import Logger
from pathlib import Path

from .archive import Archive
from .bindings import Bindings
from .clock import Clock
from .command_types import CommandSet, PersonKey, Stored
from .commands import Commands
from .commands_correcting import Correcting
from .commands_exporting import Exporting
from .commands_importing import Importing
from .commands_listening import ListeningSwitch
from .commands_operating import Operating
from .commands_rebinding import Rebinding
from .commands_seeing import Seeing
from .commands_sharing import SharingCommands
from .commands_switching import Switching
from .commands_testing import Testing
from .costs import Costs
from .delivery import Delivery
from .erasure import Eraser
from .failures import FailureWatch
from .handover import Work
from .hindsight_client import HindsightClient
from .importing import Importer
from .memory import ChatMemory
from .model_tools import ModelTools
from .numbered import NumberedLists
from .outbox import Outbox, outbox_exists
from .people import People
from .rate_limit import RateLimit
from .rebinding import Rebinder
from .retention import Retention
from .scope import ScopeState
from .selftest import SelfTest
from .settings import Settings
from .sharing import Sharing
from .status import Status
from .texts import Texts
from .withdrawals import Withdrawals
from .workers import Work as Job
from .workers import Workers


@dataclass(frozen=True)
class Parts:
    """The parts that are used from outside.

    Attributes:
        state: Salt and switches.
        bindings: Finds the memory of each message.
        sharing: Which private chats are read in groups.
        client: Hindsight, or None while the settings do not allow any request.
        stored: What is there with a client and a salt only.
        outbox: The turns that wait.
        delivery: The sending of turns.
        failures: What the server has failed on, None without a server.
        retention: Erases what is too old; None without a server, or where everything stays.
        memory: The recall and retain flow.
        people: Who was seen in each chat.
        status: Figures of all parts.
        importer: Brings chats' pasts into their memories; None without a client and a salt.
        commands: What `/hindsight` answers.
        tools: What the model's tools answer.
        withdrawals: Forgets messages that were withdrawn.
        work: Commands and tools under way.
        workers: The work in the background.
    """

    state: ScopeState
    bindings: Bindings
    sharing: Sharing
    client: HindsightClient | None
    stored: Stored | None
    outbox: Outbox
    delivery: Delivery
    failures: FailureWatch | None
    retention: Retention | None
    memory: ChatMemory
    people: People
    status: Status
    importer: Importer | None
    commands: Commands
    tools: ModelTools
    withdrawals: Withdrawals
    work: Work
    workers: Workers

    @property
    def jobs(self) -> dict[str, Job]:
        """What goes on in the background for ever, by the names that `workers` knows it by."""
        eraser = self.stored.eraser if self.stored else None
        jobs = {
            "eraser": eraser,
            "delivery": self.delivery,
            "import": self.importer,
            "failures": self.failures,
            "retention": self.retention,
        }
        return {name: one.run for name, one in jobs.items() if one}


def open_client(settings: Settings, clock: Clock, logger: Logger) -> HindsightClient | None:
    """The client for these settings; None where they do not allow any request."""
    if settings.problems:
        return None
    client = HindsightClient(
        api_base=settings.api_base,
        api_key=settings.api_key,
        bank_id=settings.bank_id,
        clock=clock,
        logger=logger,
    )
    for notice in client.notices:
        logger.info("Hindsight: %s", Texts("en")(notice.key, **notice.values))
    return client


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
    running_bots: Callable[[], Collection[str]] = frozenset,
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
        running_bots: The ids of the bots that run.
    """
    state = state or ScopeState.load(folder, had_data=outbox_exists(folder), now=clock.unix)
    client = client or open_client(settings, clock, logger)
    outbox = outbox or Outbox(
        folder, every_n_turns=settings.retain.every_n_turns, now=clock.monotonic
    )
    delivery = Delivery(
        outbox,
        client,
        idle_seconds=settings.retain.idle_seconds,
        daily_chars=settings.retain.daily_chars,
        clock=clock,
        random=jitter,
        logger=logger,
    )
    stored = _stored(client, state, outbox, delivery, clock)
    archive = stored.archive if stored else None
    importer = (
        Importer(
            stored.archive,
            stored.eraser,
            outbox,
            delivery,
            state,
            clock=clock,
            logger=logger,
            listens=state.listens,
            bot_answers=settings.retain.bot_answers,
        )
        if stored
        else None
    )
    bindings = Bindings(state, clock)
    sharing = Sharing(state, bindings, settings, clock)
    memory = ChatMemory(
        settings,
        state,
        client,
        delivery,
        clock=clock,
        logger=logger,
        read_profile=archive.profile if archive else None,
        sharing=sharing,
    )
    failures = _failures(stored, state, outbox, delivery, clock, logger)
    retention = None
    if stored and (days := settings.retain.keep_days):
        retention = Retention(
            stored.client, stored.archive, stored.eraser, memory.met.values, days, clock
        )
    workers = Workers(clock, logger)
    people = People(folder, state.hasher, logger)
    status = Status(
        settings=settings,
        state=state,
        client=client,
        memory=memory,
        delivery=delivery,
        outbox=outbox,
        archive=archive,
        failures=failures,
        retention=retention,
        people=people,
        workers=workers,
        clock=clock,
        host=host,
    )
    limit = RateLimit[PersonKey](settings.commands.per_minute, clock)
    may_manage = settings.commands.members_may_manage
    costs = Costs(client, memory, outbox)
    lists, work = NumberedLists(lambda scope: people.roster(scope).names()), Work()
    rebinder = None
    if stored:
        rebinder = Rebinder(stored.client, stored.archive, outbox, state, bindings, clock)
    sets: tuple[CommandSet, ...] = (
        Seeing(memory, status, costs, lists, match_umo=settings.recall.match_umo),
        Correcting(
            memory,
            state,
            lists,
            clock,
            bindings,
            people,
            sharing,
            members_may_manage=may_manage,
            separate_personas=settings.separate_personas,
        ),
        Switching(memory, state, bindings, outbox, clock, sharing),
        ListeningSwitch(memory, state, status),
        Exporting(memory, folder),
        SharingCommands(sharing, state),
        Operating(delivery, failures),
        Testing(_selftest(stored, state, failures, clock), state, status),
        Importing(importer, memory, status, clock, daily_chars=settings.retain.daily_chars),
        Rebinding(bindings, rebinder, memory, status, clock, running_bots),
    )
    commands = Commands(
        [command for one in sets for command in one.commands],
        stored=stored,
        memory=memory,
        status=status,
        limit=limit,
        work=work,
        clock=clock,
        members_may_manage=may_manage,
        separate_personas=settings.separate_personas,
    )
    may_remember = settings.tools.remember and settings.retain.bot_answers
    offered = replace(settings.tools, remember=may_remember)
    tools = ModelTools(
        offered,
        settings.recall.max_tokens,
        memory,
        state,
        delivery,
        status,
        limit,
        work,
    )
    return Parts(
        state,
        bindings,
        sharing,
        client,
        stored,
        outbox,
        delivery,
        failures,
        retention,
        memory,
        people,
        status,
        importer,
        commands,
        tools,
        Withdrawals(bindings, state, memory, stored.eraser if stored else None),
        work,
        workers,
    )


def _failures(
    stored: Stored | None,
    state: ScopeState,
    outbox: Outbox,
    delivery: Delivery,
    clock: Clock,
    logger: Logger,
) -> FailureWatch | None:
    if stored is None or state.hasher is None:
        return None
    return FailureWatch(
        stored.client,
        state.hasher,
        stored.archive,
        outbox,
        delivery,
        clock=clock,
        logger=logger,
    )


def _selftest(
    stored: Stored | None, state: ScopeState, failures: FailureWatch | None, clock: Clock
) -> SelfTest | None:
    if stored is None or state.hasher is None or failures is None:
        return None
    return SelfTest(stored.client, state.hasher, stored.archive, stored.eraser, failures, clock)


def _stored(
    client: HindsightClient | None,
    state: ScopeState,
    outbox: Outbox,
    delivery: Delivery,
    clock: Clock,
) -> Stored | None:
    """What reads and what erases; nothing of it without a client or a salt."""
    hasher = state.hasher
    if client is None or hasher is None:
        return None
    archive = Archive(
        client,
        outbox,
        delivery,
        clock=clock,
        profile_id=lambda scope: hasher.digest("profile", scope.chat),
    )
    return Stored(client, archive, Eraser(client, archive, outbox, delivery, clock=clock))
