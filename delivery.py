"""Sends the outbox to Hindsight: when, in what order, and what to do about each answer.

Time comes from a monotonic clock only, so that a clock that is set back or forward changes
nothing. `step` does what is due now and says when to call it again; `run` does so for ever.
"""

from __future__ import annotations

import asyncio
import functools
import sqlite3
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from logging import Logger

from .clock import Clock
from .hindsight_client import HindsightClient
from .hindsight_types import (
    AccessRefusedError,
    HindsightError,
    RequestRejectedError,
    RetryLaterError,
)
from .outbox import Edit, Outbox, Window
from .transcript import Document, Line, TurnRecord
from .wishes import Edited, Erasure

CONCURRENCY = 2
BACKOFF_BASE_SECONDS = 1.0
BACKOFF_CAP_SECONDS = 120.0
ACCESS_BASE_SECONDS = 60.0
ACCESS_CAP_SECONDS = 900.0
AGE_EVERY_SECONDS = 60.0
MAX_AGE_SECONDS = 14 * 24 * 3600.0
MAX_UNSAVED_TURNS = 1000
SYNC_SECONDS = 1.0
"""The time after a commit until the disk is asked to have it; the commit itself does not wait."""

STEP_SECONDS = 30.0
"""The longest time between two steps; short enough to notice the next day for the daily cap."""

DISK_SECONDS = 1.0
"""Between two tries while the disk fails."""

LASTING = 3
"""So many failures in a row are worth a line in the log; single ones are ordinary."""

DISK_ERRORS = (sqlite3.Error, OSError)


@dataclass(frozen=True)
class DeliveryState:
    """What status shows of the delivery.

    Attributes:
        stopped: Why nothing is being delivered at the moment (a reason of `HindsightError`,
            `daily_cap` or `disk`), or empty.
        unsaved: Turns that wait in memory because the disk refused them.
        lost: Turns that did not fit into memory either.
        last_sent_at: Monotonic seconds of the last delivery, or None.
    """

    stopped: str = ""
    unsaved: int = 0
    lost: int = 0
    last_sent_at: float | None = None


@dataclass
class _Backoff:
    """Failures in a row and when the next try is due (monotonic seconds)."""

    failures: int = 0
    not_before: float = 0.0


@dataclass
class _Hold:
    """What keeps the whole delivery back."""

    reason: str = ""
    is_logged: bool = False
    backoff: _Backoff = field(default_factory=_Backoff)


class Delivery:
    """Takes turns, keeps them on disk, and hands them to Hindsight.

    Args:
        outbox: The queue; owned, and closed by `aclose`.
        client: Where to send, or None while the settings do not allow any request.
        idle_seconds: Quiet after which a chat's open window is sent.
        daily_chars: Characters a day after which delivery waits for the next day; 0 is no cap.
        clock: The time.
        random: Uniform in [0, 1), for the jitter.
        logger: Gets one line when delivery stops and one when it goes on.
    """

    def __init__(
        self,
        outbox: Outbox,
        client: HindsightClient | None,
        *,
        idle_seconds: float,
        daily_chars: int,
        clock: Clock,
        random: Callable[[], float],
        logger: Logger,
    ) -> None:
        self._outbox = outbox
        self._client = client
        self._idle_seconds = idle_seconds
        self._daily_chars = daily_chars
        self._clock = clock
        self._random = random
        self._logger = logger
        self._wake = asyncio.Event()
        self._idle_at: dict[str, float] = {}
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._chats: dict[str, _Backoff] = {}
        self._paused: set[str] = set()
        self._hold = _Hold()
        self._disk_fault = False
        self._capped = False
        self._unsaved: deque[TurnRecord] = deque()
        self._saving = asyncio.Lock()
        self._commits: set[asyncio.Task[None]] = set()
        self._lost = 0
        self._aged_at = clock.monotonic()
        self._sync_at: float | None = None
        self._sync_fault = False
        self._last_sent_at: float | None = None

    @property
    def state(self) -> DeliveryState:
        """A picture of this moment."""
        stopped = self._hold.reason
        if self._disk_fault or self._sync_fault:
            stopped = "disk"
        elif self._capped:
            stopped = "daily_cap"
        return DeliveryState(stopped, len(self._unsaved), self._lost, self._last_sent_at)

    async def add(self, turn: TurnRecord) -> None:
        """Puts a turn on disk; where the disk refuses, keeps it in memory and tries again."""
        self._unsaved.append(turn)
        if len(self._unsaved) > MAX_UNSAVED_TURNS:
            self._unsaved.popleft()
            self._lost += 1
        await self._save_turns()
        self._wake.set()

    async def start(self) -> None:
        """Makes windows that an earlier run left open ready to be sent."""
        try:
            await self._outbox.seal()
        except DISK_ERRORS as error:
            self._disk_failed(error)

    async def run(self) -> None:
        """Steps for ever; ends by cancellation."""
        while True:
            self._wake.clear()
            delay = await self.step()
            try:
                async with asyncio.timeout(delay):
                    await self._wake.wait()
            except TimeoutError:
                pass

    async def step(self) -> float:
        """Does what is due now.

        Returns:
            Seconds after which something may be due again; `add` and each answer come earlier.
        """
        try:
            await self._save_turns()
            await self._grow_older()
            await self._seal_idle()
            await self._start_sending()
            await self._sync()
        except DISK_ERRORS as error:
            self._disk_failed(error)
        return self._until_next()

    async def settle(self) -> None:
        """Waits until every request that is under way has its answer."""
        while self._sending:
            await asyncio.wait(list(self._sending.values()))

    async def flush(self) -> None:
        """Sends what there is, as far as that succeeds at once."""
        try:
            await self._save_turns()
            await self._outbox.seal()
            self._idle_at.clear()
            while self._client and not self._hold.reason and not self._capped:
                await self._start_sending()
                if not self._sending:
                    return
                await self.settle()
        except DISK_ERRORS as error:
            self._disk_failed(error)

    async def aclose(self) -> None:
        """Cancels requests under way, which the next run sends again, and closes the outbox."""
        tasks = list(self._sending.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, *self._commits, return_exceptions=True)
        await self._outbox.aclose()

    async def pause(self, chat: str) -> None:
        """Sends nothing of a chat until `resume`; a request under way is cancelled.

        Its window may have reached the server all the same.
        """
        self._paused.add(chat)
        if task := self._sending.get(chat):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def resume(self, chat: str) -> None:
        """Ends a pause."""
        self._paused.discard(chat)
        self._wake.set()

    def wake(self) -> None:
        """Looks at once for what may be sent."""
        self._wake.set()

    async def drop_chat(self, erasure: Erasure) -> int:
        """Drops all of a chat that waits, in memory too; see `Outbox.drop_chat`."""
        async with self._saving:
            await self._outbox.take_in_files()
            covered = [turn for turn in self._unsaved if turn.chat == erasure.chat]
            dropped = await self._outbox.drop_chat(erasure)
            self._unsaved = deque(turn for turn in self._unsaved if turn not in covered)
            return dropped + len(covered)

    async def edit_chat(
        self, erasure: Erasure, edit: Edit, documents: Sequence[Document] = ()
    ) -> Edited:
        """Edits all of a chat that waits, in memory too; see `Outbox.edit_chat`."""
        async with self._saving:
            await self._outbox.take_in_files()
            ours = [turn for turn in self._unsaved if turn.chat == erasure.chat]
            kept = [(turn, edit(turn.lines)) for turn in ours]
            edited = await self._outbox.edit_chat(erasure, edit, documents)
            self._unsaved = deque(_edited(self._unsaved, kept))
            gone = sum(len(turn.lines) - len(lines) for turn, lines in kept)
            return replace(edited, waiting=edited.waiting + gone)

    async def waiting(self, chat: str) -> list[Document]:
        """All of a chat that waits, in order; what is in memory only has no document id yet."""
        async with self._saving:
            unsaved = [turn for turn in self._unsaved if turn.chat == chat]
            await self._outbox.take_in_files()
            windows = await self._outbox.windows(chat)
        found = [
            Document(
                one.document_id, one.header, tuple(line for turn in one.turns for line in turn)
            )
            for one in windows
        ]
        return [*found, *(Document("", turn.header, turn.lines) for turn in unsaved)]

    async def retry_aside(self) -> int:
        """Sends the refused windows once more; returns how many there were."""
        number = await self._outbox.retry_aside()
        self._wake.set()
        return number

    async def _save_turns(self) -> None:
        """Moves turns from memory to disk; a cancelled caller does not leave it half done."""
        task = asyncio.create_task(self._commit_turns())
        self._commits.add(task)
        task.add_done_callback(self._commits.discard)
        await asyncio.shield(task)

    async def _commit_turns(self) -> None:
        """Commits what is in memory, in order; turns that come meanwhile share a commit."""
        async with self._saving:
            if not self._unsaved:
                return
            turns = list(self._unsaved)
            try:
                places = await self._outbox.add(turns)
            except DISK_ERRORS as error:
                self._disk_failed(error)
                return
            for _ in turns:
                self._unsaved.popleft()
        self._disk_recovered()
        if self._sync_at is None:
            self._sync_at = self._clock.monotonic() + SYNC_SECONDS
        for place in places:
            self._idle_at.pop(place.document_id, None)
            if not place.sealed:
                self._idle_at[place.document_id] = self._clock.monotonic() + self._idle_seconds

    def _disk_failed(self, error: Exception) -> None:
        if not self._disk_fault:
            self._logger.error("the outbox cannot be written, what is new waits: %s", error)
        self._disk_fault = True

    def _disk_recovered(self) -> None:
        if self._disk_fault:
            self._logger.info("the outbox can be written again")
        self._disk_fault = False

    async def _sync(self) -> None:
        if self._sync_at is None or self._sync_at > self._clock.monotonic():
            return
        self._sync_at = None  # what is committed meanwhile is due a second later
        try:
            await self._outbox.sync()
        except DISK_ERRORS as error:
            self._sync_failed(error)
        else:
            self._sync_fault = False

    def _sync_failed(self, error: Exception) -> None:
        if not self._sync_fault:
            self._logger.error("the disk does not write down what is committed: %s", error)
        self._sync_fault = True
        self._sync_at = self._clock.monotonic() + SYNC_SECONDS

    async def _grow_older(self) -> None:
        now = self._clock.monotonic()
        if now - self._aged_at < AGE_EVERY_SECONDS:
            return
        dropped = await self._outbox.age(now - self._aged_at, limit=MAX_AGE_SECONDS)
        self._aged_at = now
        if dropped:
            self._logger.warning("gave up %d windows that waited too long", dropped)

    async def _seal_idle(self) -> None:
        now = self._clock.monotonic()
        due = [document_id for document_id, at in self._idle_at.items() if at <= now]
        if due:
            await self._outbox.seal(due)
            self._disk_recovered()
            for document_id in due:
                self._idle_at.pop(document_id, None)

    async def _start_sending(self) -> None:
        """Starts requests until the limit is reached or nothing is due."""
        while self._client and len(self._sending) < self._room() and not await self._is_capped():
            now = self._clock.monotonic()
            waiting = {chat for chat, b in self._chats.items() if b.not_before > now}
            window = await self._outbox.next_window(
                excluding=waiting | self._paused | self._sending.keys()
            )
            if window is None:
                return
            if window.chat in self._paused:
                continue  # paused while the queue was read
            task = asyncio.create_task(self._send(self._client, window))
            self._sending[window.chat] = task
            task.add_done_callback(functools.partial(self._sent, window.chat))

    def _room(self) -> int:
        """How many requests may be under way: one while the server is failing, none while held."""
        if self._hold.backoff.not_before > self._clock.monotonic():
            return 0
        return 1 if self._hold.reason else CONCURRENCY

    async def _is_capped(self) -> bool:
        if not self._daily_chars:
            return False
        figures = await self._outbox.figures(day=self._clock.today())
        self._capped = figures.sent_chars_today >= self._daily_chars
        return self._capped

    def _sent(self, chat: str, task: asyncio.Task[None]) -> None:
        self._sending.pop(chat, None)
        self._wake.set()
        if not task.cancelled() and (error := task.exception()):
            self._logger.error("sending a window failed", exc_info=error)
            self._chats[chat] = _Backoff(1, self._clock.monotonic() + BACKOFF_CAP_SECONDS)

    async def _send(self, client: HindsightClient, window: Window) -> None:
        """Sends one window and does what its answer asks for."""
        try:
            try:
                await client.retain(window.item, operation_id=window.operation_id)
            except RetryLaterError as error:
                self._later(window, error)
            except AccessRefusedError as error:
                self._hold_back(error, ACCESS_BASE_SECONDS, ACCESS_CAP_SECONDS)
            except RequestRejectedError as error:
                await self._rejected(window, error)
            else:
                await self._outbox.delivered(window, day=self._clock.today())
                self._disk_recovered()
                self._last_sent_at = self._clock.monotonic()
                self._server_answers(window)
        except DISK_ERRORS as error:
            self._disk_failed(error)
            self._chats[window.chat] = _Backoff(1, self._clock.monotonic() + BACKOFF_CAP_SECONDS)

    def _later(self, window: Window, error: RetryLaterError) -> None:
        chat = self._chats.setdefault(window.chat, _Backoff())
        self._back_off(chat, BACKOFF_BASE_SECONDS, BACKOFF_CAP_SECONDS, error.after_seconds)
        self._hold_back(error, BACKOFF_BASE_SECONDS, BACKOFF_CAP_SECONDS, error.after_seconds)

    def _hold_back(
        self, error: HindsightError, base: float, cap: float, after_seconds: float | None = None
    ) -> None:
        self._hold.reason = error.reason
        self._back_off(self._hold.backoff, base, cap, after_seconds)
        lasting = isinstance(error, AccessRefusedError) or self._hold.backoff.failures >= LASTING
        if lasting and not self._hold.is_logged:
            self._logger.warning("delivery to Hindsight stopped, everything is kept: %s", error)
            self._hold.is_logged = True

    def _back_off(
        self, backoff: _Backoff, base: float, cap: float, after_seconds: float | None
    ) -> None:
        """Exponential, full jitter, and never before the server's own `Retry-After`."""
        limit = min(cap, base * 2.0 ** min(backoff.failures, 30))
        backoff.failures += 1
        delay = max(self._random() * limit, after_seconds or 0.0)
        backoff.not_before = self._clock.monotonic() + delay

    async def _rejected(self, window: Window, error: RequestRejectedError) -> None:
        self._server_answers(window)
        if error.status == 409:
            await self._outbox.renew_operation(window)
            chat = self._chats.setdefault(window.chat, _Backoff())
            self._back_off(chat, BACKOFF_BASE_SECONDS, BACKOFF_CAP_SECONDS, None)
            return
        self._logger.warning("Hindsight refused a window, it is set aside: %s", error)
        await self._outbox.set_aside(window, error.reason)

    def _server_answers(self, window: Window) -> None:
        """Ends whatever held the delivery back."""
        if self._hold.is_logged:
            self._logger.info("delivery to Hindsight goes on")
        self._hold = _Hold()
        self._chats.pop(window.chat, None)

    def _until_next(self) -> float:
        if self._disk_fault:
            return DISK_SECONDS
        now = self._clock.monotonic()
        delays = [b.not_before - now for b in (self._hold.backoff, *self._chats.values())]
        coming = [delay for delay in delays if delay > 0]
        # What has become due while this step went on is due at once.
        due = [*self._idle_at.values(), *([] if self._sync_at is None else [self._sync_at])]
        coming += [max(at - now, 0.0) for at in due]
        return min([*coming, STEP_SECONDS])


def _edited(
    turns: Iterable[TurnRecord], kept: Sequence[tuple[TurnRecord, list[Line]]]
) -> Iterator[TurnRecord]:
    """The same turns, some with the lines that stay, if any do."""
    for turn in turns:
        lines = next((lines for one, lines in kept if one is turn), turn.lines)
        if lines:
            yield replace(turn, lines=tuple(lines))
