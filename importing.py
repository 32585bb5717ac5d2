"""A chat's past, brought into its memory: what would come, and its way into the queue.

All of it is read and cleaned before anything is written, and then goes to the outbox at once. So
a kill leaves either nothing or a queue that is delivered after the restart.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from logging import Logger
from typing import Protocol

from .archive import Archive
from .batches import (
    IMPORT_MARK,
    Batch,
    ImportFacts,
    PastTurn,
    PastWindow,
    Phase,
    Progress,
    is_silent,
)
from .clock import Clock
from .delivery import Delivery
from .erasure import Eraser, Removed
from .events import EventReader
from .exchanges import Exchange, exchanges
from .history import PastEvent, Place
from .history_sources import Host, Span, read_history
from .intake import DISK_ERRORS
from .outbox import Outbox
from .recent import Recent
from .scope import Scope, ScopeState
from .texts import Texts
from .transcript import (
    Document,
    Header,
    Line,
    Message,
    Speaker,
    Utterance,
    count_chars,
    document_prefix,
    turn_lines,
)
from .windows import MAX_WINDOW_CHARS

MAX_COUNT = 5000
DEFAULT_DAYS = 31
MAX_DAYS = 3650
WINDOW_LINES = 20
DAY_SECONDS = 86_400.0
CHECK_SECONDS = 10.0
"""Between two looks at how far imports are."""
LOG_SECONDS = 60.0
LATE_SECONDS = 900.0
"""A live line's time is when the bot came to it, at most so long after it was said."""
REPEAT_SECONDS = 3600.0
MIN_REPEATED_BYTES = 24
BREATH = 4
"""So many messages are read before others have their turn."""


class Past(Protocol):
    """What AstrBot tells of the chat in which somebody asks for its past."""

    @property
    def place(self) -> Place:
        """The chat."""

    @property
    def host(self) -> Host:
        """Tells its history."""

    async def reader(self, event: PastEvent) -> EventReader:
        """Reads a past message as a live one would be read."""

    async def say(self, text: str) -> None:
        """Says something in the chat, later."""


@dataclass(frozen=True)
class Plan:
    """What an import would bring.

    Attributes:
        source: The key of the source's name; empty where no source knows the chat.
        until: Only what is older was looked for, aware.
        first: When the first line was said, or None where there is none.
        last: The same of the last line.
        messages: How many messages were read.
        lines: How many lines there would be.
        chars: Their characters.
        speakers: Who speaks, as they will be written.
        batch: What would be put in the queue.
        switches: The switches under which it was read, see `ScopeState.switches`.
    """

    source: str
    until: datetime
    first: datetime | None = None
    last: datetime | None = None
    messages: int = 0
    lines: int = 0
    chars: int = 0
    speakers: tuple[str, ...] = ()
    batch: Batch | None = field(default=None, repr=False)
    switches: object = field(default=None, repr=False)


@dataclass(frozen=True)
class _Limits:
    """What is left out of an import.

    Attributes:
        until: Nothing that is younger (Unix seconds).
        stored: Pseudonym and words of what is stored first, which the platform may have older.
        facts: What is known of earlier imports.
    """

    until: float
    stored: frozenset[tuple[str, str]]
    facts: ImportFacts


@dataclass(frozen=True)
class _Turn:
    """A turn with what tells its window.

    Attributes:
        past: Its key and lines.
        message: What was said first.
    """

    past: PastTurn
    message: Message


class Importer:
    """Brings chats' pasts into their memories.

    Args:
        archive: What is stored.
        eraser: Takes away what an import has brought.
        outbox: The queue.
        delivery: Sends it.
        state: Salt and switches.
        clock: The time.
        logger: Gets how far imports are.
        listens: Whether also what is not for the bot is remembered in a chat.
    """

    def __init__(
        self,
        archive: Archive,
        eraser: Eraser,
        outbox: Outbox,
        delivery: Delivery,
        state: ScopeState,
        *,
        clock: Clock,
        logger: Logger,
        listens: Callable[[Scope], bool] = lambda _: False,
        bot_answers: bool = True,
    ) -> None:
        self._bot_answers = bot_answers
        self._archive = archive
        self._eraser = eraser
        self._outbox = outbox
        self._delivery = delivery
        self._state = state
        self._clock = clock
        self._logger = logger
        self._listens = listens
        self._wake = asyncio.Event()
        self._untold: frozenset[str] = frozenset()
        self._say: Recent[str, tuple[Texts, Callable[[str], Awaitable[None]]]] = Recent()
        self._logged_at = -math.inf

    async def plan(self, scope: Scope, past: Past, texts: Texts, *, count: int, days: int) -> Plan:
        """Reads a chat's past; nothing is written and nothing of it leaves.

        Raises:
            HindsightError: It is not known what is stored already.
        """
        began, switches, now = self._clock.monotonic(), self._state.switches, self._clock.unix()
        limits = await self._limits(scope, now)
        until = self._clock.moment(limits.until)
        span = Span(count, now - days * DAY_SECONDS, limits.until)
        history = await read_history(past.host, past.place, span, until.tzinfo)
        if history is None:
            return Plan("", until)
        found = exchanges(past.place, history.messages, listens=self._listens(scope))
        turns = await self._turns(scope, past, found, limits)
        windows = list(self._windows(scope, texts, turns, limits.facts.number))
        lines = [line for turn in turns for line in turn.past.lines]
        labels = {line.pseudonym: line.label for line in lines if line.pseudonym}
        times = [at for line in lines if (at := line.at)]
        return Plan(
            history.source,
            until,
            first=min(times, default=None),
            last=max(times, default=None),
            messages=len(history.messages),
            lines=len(lines),
            chars=count_chars(turn.past.lines for turn in turns),
            speakers=tuple(labels.values()),
            batch=Batch(scope.chat, tuple(windows), began),
            switches=switches,
        )

    async def start(self, plan: Plan, past: Past, texts: Texts) -> int | None:
        """Puts what was planned in the queue; returns how many windows there are.

        None where somebody has switched something or opted out since it was read.
        """
        if plan.switches is not self._state.switches or plan.batch is None:
            return None
        number = await self._outbox.add_batch(plan.batch)
        self._say.put(plan.batch.chat, (texts, past.say))
        self._wake.set()
        self._delivery.wake()
        return number

    async def progress(self, scope: Scope) -> Progress | None:
        """How far the chat's latest import is; None where there is none."""
        return next(iter(await self._outbox.import_progress(scope.chat)), None)

    async def stop(self, scope: Scope, progress: Progress) -> Removed:
        """Drops what waits of an import; what has arrived stays."""
        return await self._eraser.end_import(scope, progress.batch, "stopped")

    async def undo(self, scope: Scope, progress: Progress) -> Removed:
        """Takes everything away that an import has brought."""
        return await self._eraser.end_import(scope, progress.batch, "undone")

    def met(self, chat: str, texts: Texts, say: Callable[[str], Awaitable[None]]) -> None:
        """A chat has spoken: where it is not yet told of its import, it can be told now.

        Only the chat's hash is on disk, so after a restart this is how it is found again.
        """
        if chat in self._untold and chat not in self._say:
            self._say.put(chat, (texts, say))
            self._wake.set()

    async def run(self) -> None:
        """Tells chats once when their imports have arrived; ends by cancellation."""
        while True:
            self._wake.clear()
            try:
                pending = await self._outbox.import_progress()
                for one in pending:
                    if not one.left:
                        await self._arrived(one)
                self._log(pending)
                self._untold = frozenset(one.chat for one in pending)
            except DISK_ERRORS:
                pending = []  # the delivery reports it
            if not any(one.left or one.chat in self._say for one in pending):
                await self._wake.wait()
            await self._clock.sleep(CHECK_SECONDS)

    async def _arrived(self, progress: Progress) -> None:
        """Notes it first: twice would be worse than not at all."""
        told = self._say.pop(progress.chat, None)
        phase: Phase = "told" if told else "arrived"
        if phase != progress.phase:
            await self._outbox.set_import_phase(progress.batch, phase)
        if told:
            texts, say = told
            await say(progress_text(texts, replace(progress, phase="told")))

    def _log(self, pending: Sequence[Progress]) -> None:
        now = self._clock.monotonic()
        if pending and now - self._logged_at >= LOG_SECONDS:
            self._logged_at = now
            left, windows = sum(p.left for p in pending), sum(p.windows for p in pending)
            self._logger.info("imports: %d of %d windows wait", left, windows)

    async def _limits(self, scope: Scope, now: float) -> _Limits:
        """Finds out what is stored already, and what must not come back."""
        facts = await self._outbox.import_facts(scope.chat)
        mark = document_prefix(scope.chat) + IMPORT_MARK

        def is_live(document_id: str) -> bool:
            return document_id not in facts.documents and not document_id.startswith(mark)

        waiting = await self._delivery.waiting(scope.chat)
        live = [one for one in waiting if is_live(one.document_id)]
        if stored := await self._archive.first_document(scope, is_live):
            live.append(stored)
        first = min(live, key=_said_at, default=None)
        until = min([now, facts.stored_since, *(map(_said_at, live))])
        lines: Iterable[Line] = first.lines if first else ()
        said = frozenset((line.pseudonym, line.words) for line in lines if line.pseudonym)
        return _Limits(until, said, facts)

    async def _turns(
        self, scope: Scope, past: Past, found: Sequence[Exchange], limits: _Limits
    ) -> list[_Turn]:
        """What may come of what was said."""
        turns: list[_Turn] = []
        said: dict[tuple[str, str], float] = {}
        for number, exchange in enumerate(found):
            if number % BREATH == 0:
                await self._clock.sleep(0)
            turn = await self._turn(scope, past, exchange)
            if turn and not self._is_left_out(turn, limits) and not _is_repeated(turn, said):
                turns.append(turn)
        return turns

    async def _turn(self, scope: Scope, past: Past, exchange: Exchange) -> _Turn | None:
        """A turn as it would have been stored; None where it would not."""
        said: list[Message] = []
        for event in exchange.said:
            reader = await past.reader(event)
            said.append(reader.message(self._clock.moment(event.message.time or 0.0)))
        first = said[0]
        answer = reader.said(exchange.text)
        if first.private_to_speaker or (exchange.answers and not answer):
            return None
        spoken = [one.utterance for one in said if one.stored]
        if answer and self._bot_answers:
            at = self._clock.moment(exchange.answers[0].time or first.at.timestamp())
            spoken.append(Utterance(first.bot, at, answer))
        if not spoken:
            return None
        hasher = self._state.hasher
        assert hasher is not None  # a scope came from it
        key = "\n".join(event.message.key for event in exchange.said)
        digest = hasher.digest("past", f"{scope.chat}\n{key}")
        return _Turn(PastTurn(digest, turn_lines(spoken, first.speaker)), first)

    def _is_left_out(self, turn: _Turn, limits: _Limits) -> bool:
        """Whether a turn is here already, or must not come back."""
        message = turn.message
        is_near = limits.until - message.at.timestamp() <= LATE_SECONDS
        is_stored = (message.speaker.pseudonym, message.stored) in limits.stored
        return (
            turn.past.key in limits.facts.messages
            or (is_near and is_stored)
            or is_silent(turn.past.lines, limits.facts.silences)
        )

    def _windows(
        self, scope: Scope, texts: Texts, turns: Sequence[_Turn], number: int
    ) -> Iterable[PastWindow]:
        """Turns as windows of so many lines, whose ids tell which turns they hold."""
        hasher = self._state.hasher
        assert hasher is not None  # a scope came from it
        for group in _groups(turns):
            first, last = group[0], group[-1]
            key = "\n".join((scope.chat, str(number), first.past.key, last.past.key))
            digest = hasher.digest("import", key)
            yield PastWindow(
                f"{document_prefix(scope.chat)}{IMPORT_MARK}{digest}",
                Header.of(scope, texts, first.message.at, first.message.bot or Speaker("")),
                tuple(turn.past for turn in group),
            )


def progress_text(texts: Texts, progress: Progress) -> str:
    """How far an import is, in words."""
    number = progress.windows - progress.left - progress.aside
    key = f"import_is_{progress.phase}" if progress.phase != "told" else "import_is_arrived"
    shown = texts(key, sent=number, windows=progress.windows, lines=progress.lines)
    aside = [texts("import_aside", number=progress.aside)] if progress.aside else []
    return "\n".join([shown, *aside])


def _groups(turns: Iterable[_Turn]) -> Iterable[list[_Turn]]:
    group: list[_Turn] = []
    lines = chars = 0
    for turn in turns:
        group.append(turn)
        lines, chars = lines + len(turn.past.lines), chars + count_chars([turn.past.lines])
        if lines >= WINDOW_LINES or chars >= MAX_WINDOW_CHARS:
            yield group
            group, lines, chars = [], 0, 0
    if group:
        yield group


def _is_repeated(turn: _Turn, said: dict[tuple[str, str], float]) -> bool:
    """Whether the same person had said the same within the hour; a live turn is left out then."""
    text, at = turn.message.stored, turn.message.at.timestamp()
    if len(text.encode()) < MIN_REPEATED_BYTES:
        return False
    key = (turn.message.speaker.pseudonym, text)
    is_repeated = at - said.get(key, -math.inf) < REPEAT_SECONDS
    if not is_repeated:
        said[key] = at
    return is_repeated


def _said_at(document: Document) -> float:
    """When the first line of a document was said (Unix seconds)."""
    times = [line.at.timestamp() for line in document.lines if line.at]
    if not times:  # none of its lines tells
        with contextlib.suppress(ValueError):
            times.append(datetime.fromisoformat(document.header.timestamp).timestamp())
    return min(times, default=math.inf)
