"""Sends the outbox to Hindsight: when, in what order, and what to do about each answer.

Time comes from a monotonic clock only, so that a clock that is set back or forward changes
nothing. `step` does what is due now and says when to call it again; `run` does so for ever.

A failure is the server's, and then holds everything back but one window at a time, or it is one
window's own: then that one waits alone, and is set aside after some tries. It is its own where
the server takes others meanwhile, or answers a check.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from logging import Logger

from .clock import Clock
from .edits import Edit
from .hindsight_client import HindsightClient
from .hindsight_types import (
    AccessRefusedError,
    HindsightError,
    RequestRejectedError,
    RetryLaterError,
)
from .intake import CLOSE_SECONDS, DISK_ERRORS, Intake
from .outbox import Outbox
from .recent import Recent
from .transcript import Document, TurnRecord
from .windows import Window
from .wishes import Edited, Erasure

CONCURRENCY = 2
BACKOFF_BASE_SECONDS = 1.0
BACKOFF_CAP_SECONDS = 120.0
ACCESS_BASE_SECONDS = 60.0
ACCESS_CAP_SECONDS = 900.0
AGE_EVERY_SECONDS = 60.0
MAX_AGE_SECONDS = 14 * 24 * 3600.0
MAX_OWN_FAILURES = 10
"""So often a window may fail alone before it is set aside."""

STEP_SECONDS = 30.0
"""The longest time between two steps; short enough to notice the next day for the daily cap."""

DISK_SECONDS = 1.0
"""Between two tries while the disk fails."""

LASTING = 3
"""So many failures in a row are worth a line in the log; single ones are ordinary."""

_UNSURE = {None, 500, 502, 504}
"""Statuses after which the server may have taken the window all the same."""


@dataclass(frozen=True)
class DeliveryState:
    """What status shows of the delivery.

    Attributes:
        stopped: Why nothing is being delivered at the moment (a reason of `HindsightError`,
            `daily_cap`, `disk` or `newer_file`), or empty.
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
    """What keeps the whole delivery back.

    Attributes:
        reason: Why, or empty.
        is_logged: Whether the log says so.
        backoff: When one window may be tried.
        asked: Document ids of the windows that failed in this round, so that each gets its turn.
    """

    reason: str = ""
    is_logged: bool = False
    backoff: _Backoff = field(default_factory=_Backoff)
    asked: set[str] = field(default_factory=set)


@dataclass
class _Trouble:
    """A window that has failed.

    Attributes:
        backoff: Its own failures.
        delivered: How many windows were delivered when it last failed.
        is_unsure: The server may have taken it all the same.
    """

    backoff: _Backoff = field(default_factory=_Backoff)
    delivered: int = 0
    is_unsure: bool = False


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
        self._intake = Intake(outbox, idle_seconds=idle_seconds, clock=clock, logger=logger)
        self._client = client
        self._daily_chars = daily_chars
        self._clock = clock
        self._random = random
        self._logger = logger
        self._wake = asyncio.Event()
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._troubles: Recent[str, _Trouble] = Recent()
        self._holds: Counter[str] = Counter()
        self._hold = _Hold()
        self._capped = False
        self._sent_day = ""
        self._sent_chars = 0
        self._delivered = 0
        self._aged_at = clock.monotonic()
        self._last_sent_at: float | None = None

    @property
    def state(self) -> DeliveryState:
        """A picture of this moment."""
        disk = self._intake.disk
        stopped = self._hold.reason
        if disk.fault or disk.sync_fault:
            stopped = disk.fault or "disk"
        elif self._capped:
            stopped = "daily_cap"
        return DeliveryState(stopped, self._intake.unsaved, self._intake.lost, self._last_sent_at)

    async def add(self, turn: TurnRecord) -> None:
        """Puts a turn on disk; where the disk refuses, keeps it in memory and tries again.

        After `aclose` the turn is left for the next instance.
        """
        await self._intake.add(turn)
        self._wake.set()

    async def add_heard(self, lines: Sequence[TurnRecord]) -> None:
        """Puts what was heard in a chat that listens on disk, in one go; see `add`."""
        await self._intake.add_heard(lines)
        self._wake.set()

    def hurry(self, chat: str) -> None:
        """Sends what a chat has said without waiting for more; somebody wants to see it."""
        self._intake.seal_chat(chat)
        self._wake.set()

    async def start(self) -> None:
        """Makes windows that an earlier run left open ready to be sent."""
        self._intake.seal_all()
        with contextlib.suppress(*DISK_ERRORS):  # tried again with each step
            await self._intake.seal()

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
            await self._intake.save()
            await self._intake.take_in()
            await self._grow_older()
            await self._intake.seal()
            await self._start_sending()
            await self._intake.sync()
        except DISK_ERRORS as error:
            self._intake.disk.failed(error)
        return self._until_next()

    async def settle(self) -> None:
        """Waits until every request that is under way has its answer."""
        while self._sending:
            await asyncio.wait(list(self._sending.values()))

    async def flush(self) -> None:
        """Sends what there is, as far as that succeeds at once."""
        try:
            await self._intake.save()
            self._intake.seal_all()
            await self._intake.seal()
            while self._client and not self._hold.reason and not self._capped:
                was_sending = bool(self._sending)  # then more of that chat may wait
                await self._start_sending()
                if not self._sending and not was_sending:
                    return
                await self.settle()
        except DISK_ERRORS as error:
            self._intake.disk.failed(error)

    async def aclose(self) -> None:
        """Cancels requests under way, which the next run sends again, and closes the outbox."""
        tasks = list(self._sending.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._intake.aclose()
        await self._clock.wait(asyncio.create_task(self._outbox.aclose()), CLOSE_SECONDS)

    @contextlib.asynccontextmanager
    async def held(self, chat: str) -> AsyncIterator[None]:
        """Meanwhile nothing of a chat is sent; a request under way is cancelled first.

        Its window may have reached the server all the same.
        """
        self._holds[chat] += 1
        try:
            await self._call_back(chat)
            yield
        finally:
            self._holds[chat] -= 1
            self._holds += Counter()  # keeps those that are held
            self._wake.set()

    def wake(self) -> None:
        """Looks at once for what may be sent."""
        self._wake.set()

    async def drop_chat(self, erasure: Erasure) -> int:
        """Drops all of a chat that waits, in memory too; see `Outbox.drop_chat`."""
        return await self._intake.drop_chat(erasure)

    async def edit_chat(
        self, erasure: Erasure, edit: Edit, documents: Sequence[Document] = ()
    ) -> Edited:
        """Edits all of a chat that waits, in memory too; see `Outbox.edit_chat`."""
        return await self._intake.edit_chat(erasure, edit, documents)

    async def withdraw(self, erasure: Erasure, message: str, at: float) -> None:
        """Takes a withdrawn message out of what waits; see `Outbox.withdraw`."""
        await self._intake.withdraw(erasure, message, at)

    async def waiting(self, chat: str) -> list[Document]:
        """All of a chat that waits, in order; what is in memory only has no document id yet."""
        return await self._intake.waiting(chat)

    async def retry_aside(self) -> int:
        """Sends the windows that were set aside once more; returns how many there were."""
        number = await self._outbox.retry_aside()
        self._troubles.clear()
        self._wake.set()
        return number

    async def _call_back(self, chat: str) -> None:
        if task := self._sending.get(chat):
            task.cancel()
            await asyncio.wait({task})

    async def _grow_older(self) -> None:
        now = self._clock.monotonic()
        is_asked = bool(self._intake.disk.fault)  # it writes: so a disk that is well again shows
        if now - self._aged_at < AGE_EVERY_SECONDS and not is_asked:
            return
        seconds = now - self._aged_at
        dropped = await self._intake.on_disk(self._outbox.age(seconds, limit=MAX_AGE_SECONDS))
        await self._intake.on_disk(self._outbox.forget_messages(self._clock.unix()))
        self._aged_at = now
        if dropped:
            self._logger.warning("gave up %d windows that waited too long", dropped)

    async def _start_sending(self) -> None:
        """Starts requests until the limit is reached or nothing is due."""
        while self._client and len(self._sending) < self._room() and not await self._is_capped():
            window = await self._next_window()
            if window is None:
                return
            if window.chat in self._holds:
                continue  # paused while the queue was read
            task = asyncio.create_task(self._send(self._client, window))
            self._sending[window.chat] = task
            task.add_done_callback(functools.partial(self._sent, window))

    async def _next_window(self) -> Window | None:
        """The oldest window that may be tried now.

        Behind all others stand those that fail alone, and while the server fails also those that
        met its failure: of these each gets its turn.
        """
        now = self._clock.monotonic()
        chats = self._holds.keys() | self._sending.keys()
        resting = {one for one, t in self._troubles.items() if t.backoff.not_before > now}
        is_held = bool(self._hold.reason)
        behind = {one for one, t in self._troubles.items() if is_held or t.backoff.failures}
        next_window = functools.partial(self._outbox.next_window, excluding=chats)
        window = await next_window(skipping=resting | behind)
        if window is None and behind:
            window = await next_window(skipping=resting | self._hold.asked)
        if window is None and self._hold.asked:
            self._hold.asked.clear()
            window = await next_window(skipping=resting)
        return window

    def _room(self) -> int:
        """How many requests may be under way: one while the server is failing, none while held."""
        if self._hold.backoff.not_before > self._clock.monotonic():
            return 0
        return 1 if self._hold.reason else CONCURRENCY

    async def _is_capped(self) -> bool:
        if not self._daily_chars:
            return False
        day = self._clock.today()
        if day != self._sent_day:
            self._sent_chars = await self._outbox.sent_chars(day=day)
            self._sent_day = day
        self._capped = self._sent_chars >= self._daily_chars
        return self._capped

    def _sent(self, window: Window, task: asyncio.Task[None]) -> None:
        self._sending.pop(window.chat, None)
        self._wake.set()
        if not task.cancelled() and (error := task.exception()):
            self._logger.error("sending a window failed", exc_info=error)
            self._rest(window)

    async def _send(self, client: HindsightClient, window: Window) -> None:
        """Sends one window and does what its answer asks for."""
        try:
            try:
                await client.retain(window.item, operation_id=window.operation_id)
            except HindsightError as error:
                await self._not_taken(client, window, error)
            else:
                await self._taken(client, window)
        except DISK_ERRORS as error:
            self._intake.disk.failed(error)
            self._rest(window)

    async def _taken(self, client: HindsightClient, window: Window) -> None:
        trouble = self._troubles.get(window.document_id)
        self._server_answers()
        if trouble and trouble.is_unsure and await self._has_failed(client, window):
            await self._intake.on_disk(self._outbox.renew_operation(window))
            trouble.is_unsure = False
            return
        day = self._clock.today()
        self._sent_chars = await self._intake.on_disk(self._outbox.delivered(window, day=day))
        self._sent_day = day
        self._delivered += 1
        self._last_sent_at = self._clock.monotonic()
        self._troubles.pop(window.document_id, None)

    async def _has_failed(self, client: HindsightClient, window: Window) -> bool:
        """Whether an earlier try came to nothing on the server: its operation never runs again."""
        try:
            operation = await client.operation(window.operation_id)
        except HindsightError:
            return False
        return operation is not None and operation.status == "failed"

    async def _not_taken(
        self, client: HindsightClient, window: Window, error: HindsightError
    ) -> None:
        if isinstance(error, RequestRejectedError) and error.status != 409:
            self._server_answers()
            await self._set_aside(window, error)
            return
        trouble = self._trouble(window)
        is_own = await self._is_own(client, trouble, error)
        trouble.delivered = self._delivered
        trouble.is_unsure = error.status in _UNSURE
        if is_own:
            await self._fails_alone(window, trouble, error)
        else:
            self._hold_back(error)
            self._hold.asked.add(window.document_id)
            trouble.backoff.not_before = self._hold.backoff.not_before

    async def _is_own(
        self, client: HindsightClient, trouble: _Trouble, error: HindsightError
    ) -> bool:
        """Whether a failure is this window's, and not the server's."""
        if isinstance(error, RetryLaterError):
            return self._delivered > trouble.delivered
        if error.status == 403:  # of the server, or of a firewall that dislikes the text
            try:
                await client.check()
            except HindsightError:
                return False
        return error.status in {403, 409}

    async def _fails_alone(self, window: Window, trouble: _Trouble, error: HindsightError) -> None:
        """Lets one window wait, the others not; after some tries it is set aside."""
        if not isinstance(error, RetryLaterError):
            self._server_answers()
        if trouble.backoff.failures + 1 >= MAX_OWN_FAILURES:
            await self._set_aside(window, error)
            return
        if error.status == 409:
            await self._intake.on_disk(self._outbox.renew_operation(window))
        base = ACCESS_BASE_SECONDS if error.status == 403 else BACKOFF_BASE_SECONDS
        self._back_off(trouble.backoff, base, ACCESS_CAP_SECONDS, _asked_pause(error))

    async def _set_aside(self, window: Window, error: HindsightError) -> None:
        self._logger.warning("Hindsight refuses a window, it is set aside: %s", error)
        await self._intake.on_disk(self._outbox.set_aside(window, error.reason))
        self._troubles.pop(window.document_id, None)

    def _trouble(self, window: Window) -> _Trouble:
        trouble = self._troubles.get(window.document_id) or _Trouble(delivered=self._delivered)
        self._troubles.put(window.document_id, trouble)
        return trouble

    def _rest(self, window: Window) -> None:
        """Does not try a window for a while, whatever was the matter."""
        self._trouble(window).backoff.not_before = self._clock.monotonic() + BACKOFF_CAP_SECONDS

    def _hold_back(self, error: HindsightError) -> None:
        """Holds everything back."""
        is_refused = isinstance(error, AccessRefusedError)
        base = ACCESS_BASE_SECONDS if is_refused else BACKOFF_BASE_SECONDS
        cap = ACCESS_CAP_SECONDS if is_refused else BACKOFF_CAP_SECONDS
        self._hold.reason = error.reason
        self._back_off(self._hold.backoff, base, cap, _asked_pause(error))
        lasting = is_refused or self._hold.backoff.failures >= LASTING
        if lasting and not self._hold.is_logged:
            self._logger.warning("delivery to Hindsight stopped, everything is kept: %s", error)
            self._hold.is_logged = True

    def _back_off(self, backoff: _Backoff, base: float, cap: float, asked: float) -> None:
        """Exponential, full jitter, and never before the server's own `Retry-After`."""
        limit = min(cap, base * 2.0 ** min(backoff.failures, 30))
        backoff.failures += 1
        backoff.not_before = self._clock.monotonic() + max(self._random() * limit, asked)

    def _server_answers(self) -> None:
        """Ends whatever held the delivery back."""
        if self._hold.is_logged:
            self._logger.info("delivery to Hindsight goes on")
        self._hold = _Hold()

    def _until_next(self) -> float:
        disk = self._intake.disk
        if disk.fault:
            return DISK_SECONDS
        now = self._clock.monotonic()
        waits = [self._hold.backoff, *(trouble.backoff for trouble in self._troubles.values())]
        delays = [one.not_before - now for one in waits]
        coming = [delay for delay in delays if delay > 0]
        # What has become due while this step went on is due at once.
        coming += [max(at - now, 0.0) for at in self._intake.due]
        return min([*coming, STEP_SECONDS])


def _asked_pause(error: HindsightError) -> float:
    """What the server asks to wait."""
    return (error.after_seconds or 0.0) if isinstance(error, RetryLaterError) else 0.0
