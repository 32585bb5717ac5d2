"""The flow of one message: recall before the model call, remember after the answer.

Nothing here knows AstrBot. `main.py` hands in plain values and takes a block of text.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import math
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from logging import Logger
from typing import Any

from .breaker import Breaker
from .cleaning import as_said
from .clock import Clock
from .days import days_named
from .delivery import Delivery
from .hindsight_client import HindsightClient
from .hindsight_types import (
    HindsightError,
    QueryTooLongError,
    RecalledMemory,
    RecallOptions,
    RequestRejectedError,
)
from .intake import DISK_ERRORS
from .lately import LINE_SECONDS, Lately
from .memory_formatter import Block, build_block
from .query import asks_to_forget, asks_to_remember, build_query, halve_query
from .ranking import rank
from .recent import Recent
from .scope import Scope, ScopeState, Skip
from .settings import Settings
from .sharing import Sharing
from .texts import Texts
from .tokens import estimate_tokens
from .transcript import Header, Message, Speaker, TurnRecord, Utterance, turn_lines
from .turn import Recalled

ASKED_TOKENS = 4096
"""More than is shown: what the server ranks low may be what the question needs."""
PROBE_SECONDS = 10.0
MAX_TIMINGS = 500
REPEAT_SECONDS = 3600.0
MIN_REPEATED_BYTES = 24
"""Eight Chinese characters, or two dozen letters."""

SHOWN_DIGITS = 8
"""So much of a chat's hash stands in the log."""

PROFILE_SECONDS = 600.0
PROFILE_PENDING_SECONDS = 60.0
"""How soon a profile is read again that was still being made."""

ProfileReader = Callable[[Scope, Texts], Awaitable[str]]


@dataclass(frozen=True)
class RecallReport:
    """How the last recall of a chat went.

    Attributes:
        at: When it began.
        query: What was asked.
        seconds: How long it took.
        memories: What was injected.
        block: The injected text, empty if there was none.
        lines: How many memories stand in it.
        left_out: How many more were found that it had no room for.
        failure: The reason where it failed (`deadline` or one of `HindsightError`), or empty.
        private: What was injected of the private chat that the speaker shares.
        message: Whose that is, where there is something.
    """

    at: datetime
    query: str
    seconds: float = 0.0
    memories: tuple[RecalledMemory, ...] = ()
    block: str = ""
    lines: int = 0
    left_out: int = 0
    failure: str = ""
    private: tuple[RecalledMemory, ...] = field(default=(), repr=False)
    message: Message | None = field(default=None, repr=False)


@dataclass
class MemoryFigures:
    """What has happened since the start; status shows it.

    Attributes:
        skips: Messages answered without memory, by reason.
        failures: Failed recalls, by reason.
        recalls: Recalls that were answered.
        lines: Memories injected.
        tokens: What they cost, about.
        turns: Turns handed to the outbox.
        heard: Lines heard in groups that listen, handed to the outbox.
        heard_chars: Their characters.
        repeated: Turns left out because the same person had said the same within the hour.
        timings: Seconds of the latest recalls.
    """

    skips: Counter[Skip] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    recalls: int = 0
    lines: int = 0
    tokens: float = 0.0
    turns: int = 0
    heard: int = 0
    heard_chars: int = 0
    repeated: int = 0
    timings: deque[float] = field(default_factory=lambda: deque(maxlen=MAX_TIMINGS))

    def percentile(self, share: float) -> float:
        """The time, in seconds, that this share of the latest recalls took at most; 0 for none."""
        ordered = sorted(self.timings)
        return ordered[max(math.ceil(len(ordered) * share) - 1, 0)] if ordered else 0.0


class ChatMemory:
    """Recalls and remembers, for all chats.

    Args:
        settings: The settings.
        state: Salt and switches.
        client: Hindsight, or None while the settings do not allow any request.
        delivery: Where turns go.
        clock: The time.
        logger: Gets a line for each recall and skip, at debug level.
        read_profile: Reads a chat's profile, for the setting that adds it to the block.
        sharing: Which private chats are read in groups.

    Attributes:
        met: The chats that were spoken in since the start.
    """

    def __init__(
        self,
        settings: Settings,
        state: ScopeState,
        client: HindsightClient | None,
        delivery: Delivery,
        *,
        clock: Clock,
        logger: Logger | None = None,
        read_profile: ProfileReader | None = None,
        sharing: Sharing | None = None,
    ) -> None:
        self._sharing = sharing
        self._read_profile = read_profile
        self._settings = settings
        self._state = state
        self._client = client
        self._delivery = delivery
        self._clock = clock
        self._lately = Lately()
        self._reports: Recent[str, RecallReport] = Recent()
        self._skipped: Recent[str, Skip] = Recent()
        self._said: OrderedDict[tuple[str, str, int], float] = OrderedDict()
        self._profiles: Recent[str, tuple[str, float]] = Recent()
        self._forgotten_at: Recent[str, float] = Recent()
        self._running: set[asyncio.Task[Any]] = set()
        self._logger = logger or logging.getLogger(__name__)
        self.met: dict[str, Scope] = {}
        self.breaker = Breaker(self._probe, clock)
        self.figures = MemoryFigures()

    def admit(self, scope: Scope | Skip) -> Scope | Skip:
        """Decides whether a message of this chat has memory at all; costs no I/O."""
        if isinstance(scope, Skip):
            return scope
        if self._client is None:
            return Skip.NOT_CONFIGURED
        if scope.kind == "private" and not self._settings.enable_private_memory:
            return Skip.PRIVATE_DISABLED
        if scope.kind == "group" and not self._settings.enable_group_memory:
            return Skip.GROUP_DISABLED
        if self._state.is_off(scope):
            return Skip.CHAT_OFF
        return Skip.PAUSED if self._state.is_paused(scope) else scope

    def skip(self, reason: Skip, scope: Scope | Skip) -> None:
        """Counts a message that is answered without memory, and notes why for its chat."""
        self.figures.skips[reason] += 1
        self._log_skip(scope, reason)
        if isinstance(scope, Scope):
            self._skipped.put(scope.chat, reason)

    def report(self, scope: Scope) -> RecallReport | None:
        """The last recall of this chat since the start."""
        return self._reports.get(scope.chat)

    def skipped(self, scope: Scope) -> Skip | None:
        """Why nothing was recalled for the latest message of this chat, if so."""
        return self._skipped.get(scope.chat)

    def is_outdated(self, message: Message) -> bool:
        """Whether what was recalled for a message may hold what was forgotten after it came."""
        return self._forgotten_at.get(message.scope.chat, -math.inf) >= message.began

    def forgotten_at(self, scope: Scope) -> float:
        """When something of this chat was forgotten last, in monotonic seconds; -inf for never."""
        return self._forgotten_at.get(scope.chat, -math.inf)

    def may_show_private(self, message: Message) -> bool:
        """Whether lines of the private chat that was read for a message may be shown now.

        Not where it is no longer shared, or where something of it was forgotten since.
        """
        if self._sharing is None or message.shared is None:
            return False
        forgotten_at = self._forgotten_at.get(message.shared.scope.chat, -math.inf)
        return forgotten_at < message.began and self._sharing.is_shared(message.shared)

    def private_lines(self, report: RecallReport, person: Speaker) -> tuple[RecalledMemory, ...]:
        """What the last recall brought of a private chat, for its person alone."""
        message = report.message
        is_theirs = message and message.speaker.pseudonym == person.pseudonym
        return report.private if is_theirs and self.private_number(report) else ()

    def private_number(self, report: RecallReport) -> int:
        """How much the last recall brought of a private chat; that is all that others may know."""
        message = report.message
        return len(report.private) if message and self.may_show_private(message) else 0

    def start_recall(self, message: Message) -> asyncio.Task[Recalled] | None:
        """Begins to recall for a message.

        Returns:
            A task that ends within the deadline with the block to inject, if any; or None where
            nothing is recalled (counted).
        """
        self.met[message.scope.chat] = message.scope
        query = self._query(message)
        if not query:
            self.skip(Skip.NO_WORDS, message.scope)
            return None
        if self._client is None or not self.breaker.enter():
            self.skip(Skip.BREAKER_OPEN, message.scope)
            return None
        task = asyncio.create_task(self._recall(self._client, message, query))
        self._running.add(task)
        task.add_done_callback(self._recall_ended)
        return task

    async def remember(self, turn: Sequence[Message], answer: str, answered_at: datetime) -> None:
        """Puts a turn on disk; no network call is awaited.

        Args:
            turn: What was said, with what the same person added while the bot was working.
            answer: The bot's final words, one line, ids replaced; empty where they are not to be
                stored.
            answered_at: When, aware, in the local timezone.
        """
        first = turn[0]
        is_wanted = not self.is_outdated(first)
        reason = self._not_stored(turn, is_wanted=is_wanted)
        if reason:
            self._log_skip(first.scope, f"not stored, {reason}")
            return
        is_listened = self._state.listens(first.scope)
        said = self._utterances(turn, answer, answered_at)
        if not is_listened:  # its turns stand one behind the other
            said = [replace(one, came=0.0) for one in said]
        if not said:
            return
        self.met[first.scope.chat] = first.scope
        self.figures.turns += 1
        header = Header.of(first.scope, first.texts, first.at, first.bot)
        record = TurnRecord(
            first.scope.chat,
            header,
            turn_lines(said, first.speaker),
            urgent=any(asks_to_remember(message.words) for message in turn),
            began=first.began,
            is_listened=is_listened,
        )
        await self._delivery.add(record)
        if is_wanted and not self.is_outdated(first):
            self._lately.say(first.scope, said, self._clock.monotonic())

    def _utterances(
        self, turn: Sequence[Message], answer: str, answered_at: datetime
    ) -> list[Utterance]:
        """What is stored of a turn, with the answer where answers are stored."""
        said = [one.utterance for one in turn]
        if self._settings.retain.bot_answers:
            came = answered_at.timestamp()
            said.append(Utterance(turn[0].bot, answered_at, answer, came=came))
        return [one for one in said if one.text]

    async def hear(self, said: Sequence[Message]) -> None:
        """Puts on disk what was said in groups that listen, without calling the bot.

        What has come before somebody switched anything off is not put there after.
        """
        heard = [one for one in said if self._may_hear(one)]
        records: list[TurnRecord] = []
        for one in heard:
            line = one.utterance
            header = Header.of(one.scope, one.texts, one.at, one.bot)
            record = TurnRecord(
                one.scope.chat,
                header,
                (line.line,),
                began=one.began,
                is_listened=True,
                is_heard=True,
            )
            records.append(record)
            self.figures.heard += 1
            self.figures.heard_chars += record.chars
            if not self.is_outdated(one):
                self._lately.say(one.scope, [line], self._clock.monotonic())
        if records:
            await self._delivery.add_heard(records)

    def _may_hear(self, message: Message) -> bool:
        is_open = self._state.listens(message.scope) and not message.private_to_speaker
        return is_open and isinstance(self.admit(message.scope), Scope)

    def record(
        self,
        scope: Scope,
        texts: Texts,
        person: Speaker,
        text: str,
        at: datetime,
        *,
        by_bot: bool = False,
        message: str = "",
    ) -> TurnRecord:
        """One line that somebody wants to be remembered, as it will be stored.

        Args:
            scope: The chat.
            texts: The wording in the language of the chat.
            person: Whose line it is.
            text: One line, ids replaced.
            at: When, aware, in the local timezone.
            by_bot: The bot says it, in answer to that person.
            message: See `Message.key`.
        """
        bot = Speaker(texts("name_bot"))
        said = Utterance(bot if by_bot else person, at, as_said(text, texts), message)
        header = Header.of(scope, texts, at, bot)
        return TurnRecord(
            scope.chat,
            header,
            turn_lines([said], person),
            urgent=True,
            began=self._clock.monotonic(),
        )

    def hurry(self, scope: Scope) -> None:
        """Has what a chat has said sent at once: somebody reads, or begins anew."""
        self._delivery.hurry(scope.chat)

    def forget_chat(self, scope: Scope) -> None:
        """Drops what is held of a chat in memory: the talk, the last recall, the profile.

        What a recall or a reading of the profile that has begun will bring is dropped with it.
        """
        self._forgotten_at.put(scope.chat, self._clock.monotonic())
        for said in [key for key in self._said if key[0] == scope.chat]:
            del self._said[said]
        self._lately.forget(scope.chat)
        self._reports.pop(scope.chat, None)
        self._skipped.pop(scope.chat, None)
        self._profiles.pop(scope.chat, None)

    def forget_talk(self) -> None:
        """Drops what was just said in all chats, where somebody wants to be stored in none."""
        self._lately.forget_all()

    def _not_stored(self, turn: Sequence[Message], *, is_wanted: bool) -> str:
        """Why a turn is not stored, or empty; what is repeated is counted."""
        first = turn[0]
        admitted = self.admit(first.scope)
        if isinstance(admitted, Skip):
            return admitted
        if first.private_to_speaker:
            return "opted_out"
        if any(asks_to_forget(message.words) for message in turn):
            return "wish to forget"  # it would say once more what is to be forgotten
        if is_wanted and self._is_repeated(first, "\n".join(one.stored for one in turn)):
            self.figures.repeated += 1
            return "repeated"
        return ""

    def _log_skip(self, scope: Scope | Skip, reason: str) -> None:
        chat = scope.chat[:SHOWN_DIGITS] if isinstance(scope, Scope) else "-"
        self._logger.debug("skip %s: %s", chat, reason)

    def _is_repeated(self, first: Message, text: str) -> bool:
        """Whether this person said the same within the hour; if not, notes it.

        Only what is long enough to mean the same again counts: not a 是的 to another question.
        """
        now = self._clock.monotonic()
        while self._said and next(iter(self._said.values())) < now - REPEAT_SECONDS:
            self._said.popitem(last=False)
        if len(text.encode()) < MIN_REPEATED_BYTES:
            return False
        key = (first.scope.chat, first.speaker.pseudonym, hash(text))
        is_repeated = key in self._said
        self._said.setdefault(key, now)
        return is_repeated

    async def search(self, scope: Scope, query: str, now: datetime) -> list[RecalledMemory]:
        """Recalls for somebody who asks to see the result, all that was found, best first.

        Raises:
            HindsightError: The server did not answer as it should, or `timeout`.
        """
        assert self._client is not None
        found = await self._ask(self._client, scope, query, now)
        return self._ranked(scope, found, query, now)

    async def aclose(self) -> None:
        """Cancels what is running."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self.breaker.aclose()

    def _recall_ended(self, task: asyncio.Task[Recalled]) -> None:
        self._running.discard(task)
        if task.cancelled() or task.exception():
            self.breaker.abandoned()

    def _query(self, message: Message) -> str:
        """Builds the query, and keeps the words for what is asked next."""
        previous = self._lately.before(message)
        self._lately.ask(message)
        return build_query(message.words, previous=previous, quoted=message.quoted)

    def _waiting(self, scope: Scope) -> list[RecalledMemory]:
        """What was just said, or still waits here because nothing can be sent."""
        now, is_stuck = self._clock.monotonic(), self._delivery.state.stopped
        return self._lately.lines(scope, -math.inf if is_stuck else now - LINE_SECONDS)

    async def _recall(self, client: HindsightClient, message: Message, query: str) -> Recalled:
        """One recall under the deadline; every failure ends as an empty text, counted."""
        started = self._clock.monotonic()
        report, found = RecallReport(message.at, query), Recalled()
        deadline = asyncio.get_running_loop().time() + self._settings.recall.timeout_seconds
        try:
            memories, private = await self._ask_for(client, message, query, deadline)
        except RequestRejectedError as error:
            report = replace(report, failure=error.reason)
            self.breaker.succeeded()
        except HindsightError as error:
            report = replace(report, failure=error.reason)
            (self.breaker.abandoned if error.local else self.breaker.failed)()
        else:
            self.breaker.succeeded()
            report, found = self._with_block(report, message, memories, private)
        report = replace(report, seconds=self._clock.monotonic() - started)
        self._logger.debug(
            "recall %s: %d memories, %d left out, %d ms%s",
            message.scope.chat[:SHOWN_DIGITS],
            report.lines,
            report.left_out,
            report.seconds * 1000,
            f", {report.failure}" if report.failure else "",
        )
        if self.is_outdated(message):
            return Recalled()
        self._keep(message.scope, report)
        return found

    async def _ask_for(
        self, client: HindsightClient, message: Message, query: str, deadline: float
    ) -> tuple[list[RecalledMemory], list[RecalledMemory]]:
        """What the chat's memory has and, at the same time, what a shared private one has.

        The chat's decides whether the recall has failed; a private one that fails is left out.
        """
        scopes = [message.scope, *([message.shared.scope] if message.shared else [])]
        asked = [self._ask(client, one, query, message.at, deadline) for one in scopes]
        if len(asked) == 1:
            return await asked[0], []
        found, private = await asyncio.gather(*asked, return_exceptions=True)
        if isinstance(found, BaseException):
            raise found
        if isinstance(private, HindsightError):
            self.figures.failures[private.reason] += 1
            private = []
        if isinstance(private, BaseException):
            raise private
        return found, private

    async def _ask(
        self,
        client: HindsightClient,
        scope: Scope,
        query: str,
        now: datetime,
        deadline: float | None = None,
    ) -> list[RecalledMemory]:
        """One recall, and a second one with half the query where the server finds it too long."""
        recall = self._settings.recall
        days = days_named(query, now.date())
        options = RecallOptions(window=days.window(now.tzinfo) if days else None)

        async def ask(text: str) -> list[RecalledMemory]:
            memories = await client.recall(
                text,
                tags=scope.read_tags(match_umo=recall.match_umo),
                budget=recall.budget,
                max_tokens=max(recall.max_tokens, ASKED_TOKENS),
                query_timestamp=now.isoformat(timespec="seconds"),
                options=options,
                deadline=deadline,
            )
            return [m for m in memories if not recall.min_score or _reaches(m, recall.min_score)]

        try:
            return await ask(days.set_apart(query) if days else query)
        except QueryTooLongError:
            return await ask(halve_query(query))

    def _with_block(
        self,
        report: RecallReport,
        message: Message,
        memories: list[RecalledMemory],
        private: list[RecalledMemory],
    ) -> tuple[RecallReport, Recalled]:
        speaker = message.speaker
        ranked = self._ranked(
            message.scope, memories, report.query, message.at, asker=speaker.pseudonym
        )
        build = functools.partial(
            build_block,
            ranked,
            texts=message.texts,
            timezone=message.at.tzinfo,
            max_tokens=self._settings.recall.max_tokens,
            speaker=speaker if message.scope.kind == "group" else None,
            profile=self._profile(message),
            wishes_to_forget=asks_to_forget(message.words),
        )
        block = build()
        own = self._private(message, private, report.query)
        whole = build(private=own) if own else Block()
        report = replace(
            report,
            memories=block.shown,
            block=block.text,
            lines=len(block.shown),
            left_out=block.left_out,
            private=whole.private,
            message=message if whole.private else None,
        )
        return report, Recalled(block.text, whole.text if whole.private else "")

    def _private(
        self, message: Message, found: list[RecalledMemory], query: str
    ) -> list[RecalledMemory]:
        """What a shared private chat has, best first, its person under the number of here."""
        if message.shared is None or not self.may_show_private(message):
            return []
        speaker, theirs = message.speaker.pseudonym, message.shared.pseudonym
        ranked = self._ranked(message.shared.scope, found, query, message.at, asker=theirs)
        return [
            replace(
                memory,
                text=memory.text.replace(theirs, speaker),
                speakers=tuple(one.replace(theirs, speaker) for one in memory.speakers),
            )
            for memory in ranked
        ]

    def _ranked(
        self,
        scope: Scope,
        memories: Sequence[RecalledMemory],
        query: str,
        now: datetime,
        *,
        asker: str = "",
    ) -> list[RecalledMemory]:
        """What the server found and what waits here, best first."""
        days = days_named(query, now.date())
        window = days.window(now.tzinfo) if days else None
        return rank(memories, query, waiting=self._waiting(scope), asker=asker, window=window)

    def _keep(self, scope: Scope, report: RecallReport) -> None:
        self._skipped.pop(scope.chat, None)
        self._reports.put(scope.chat, report)
        if report.failure:
            self.figures.failures[report.failure] += 1
        else:
            self.figures.recalls += 1
            self.figures.lines += report.lines
            self.figures.tokens += estimate_tokens(report.block)
            self.figures.timings.append(report.seconds)

    def _profile(self, message: Message) -> str:
        """The chat's profile as last read; where that is long ago, it is read in the background."""
        if not self._settings.recall.include_profile or self._read_profile is None:
            return ""
        text, due_at = self._profiles.get(message.scope.chat, ("", -math.inf))
        if self._clock.monotonic() >= due_at:
            self._profiles.put(
                message.scope.chat, (text, self._clock.monotonic() + PROFILE_SECONDS)
            )
            task = asyncio.create_task(self._refresh_profile(self._read_profile, message))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        return text

    async def _refresh_profile(self, read: ProfileReader, message: Message) -> str:
        with contextlib.suppress(HindsightError, *DISK_ERRORS):
            text = await read(message.scope, message.texts)
            seconds = PROFILE_SECONDS if text else PROFILE_PENDING_SECONDS
            if not self.is_outdated(message):
                self._profiles.put(message.scope.chat, (text, self._clock.monotonic() + seconds))
        return ""

    async def _probe(self) -> bool:
        """Whether the server answers a cheap request."""
        assert self._client is not None
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                await self._client.check()
        except (HindsightError, TimeoutError):
            return False
        return True


def _reaches(memory: RecalledMemory, floor: float) -> bool:
    """Whether a memory is relevant enough; one without a score is not."""
    return memory.score is not None and memory.score >= floor
