"""What the server has taken and then failed on: seen in the background, tried again on request.

A retain that was taken is only queued on the server. Minutes later it may fail there for good, and
its lines stand nowhere but in the record of that operation.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from logging import Logger

from .archive import Archive
from .clock import Clock
from .delivery import Delivery
from .hindsight_bank import CONSOLIDATION, RETAIN
from .hindsight_client import HindsightClient
from .hindsight_types import (
    AccessRefusedError,
    HindsightError,
    Operation,
    RequestRejectedError,
)
from .outbox import Outbox
from .scope import Hasher, Scope, chat_tags
from .texts import Texts
from .transcript import Document, document_prefix, read_document

LOOK_SECONDS = 60.0
CHECK_SECONDS = 300.0
"""Between two checks."""
WATCH_SECONDS = 1800.0
"""So long after a delivery checks go on: the server tries for minutes before it gives up."""
MAX_FAILED = 500
"""So many failures are looked at; their list has a hundred on a page."""
MAX_STALE = 20
"""So many of them in a check are asked whether they have been stored after all."""

_FAILED = "failed"
_OWN_ID = re.compile(r"[0-9a-f]{24}-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class Failures:
    """What the last check has found.

    Attributes:
        retains: Retains of chats that failed for good, newest first.
        facts: Facts of the whole bank that concluding failed for.
        reason: Why that failed, the key of a sentence, or empty.
    """

    retains: tuple[Operation, ...] = ()
    facts: int = 0
    reason: str = ""

    def of(self, scope: Scope) -> tuple[Operation, ...]:
        """Those of one chat."""
        prefix = document_prefix(scope.chat)
        return tuple(one for one in self.retains if one.document_id.startswith(prefix))


@dataclass(frozen=True)
class Retried:
    """What trying again has begun.

    Attributes:
        again: Retains that the server tries again.
        resent: Windows that are sent once more, as the server does not try again by itself.
        facts: Facts that are concluded from once more.
        left: Failures that nothing could be done about.
    """

    again: int = 0
    resent: int = 0
    facts: int = 0
    left: int = 0


@dataclass(frozen=True)
class _Owned:
    """A failed retain of a chat of ours.

    Attributes:
        operation: The failure.
        chat: The chat's hash.
        document: What it was to write.
    """

    operation: Operation
    chat: str
    document: Document


class FailureWatch:
    """Looks for failures, and tries them again.

    Args:
        client: Hindsight.
        hasher: Tells our chats from those of others.
        archive: What is stored.
        outbox: Where lines wait that are sent again.
        delivery: Sends them.
        clock: The time.
        logger: Gets a line when there are more failures than before.

    Attributes:
        found: What the last check has found.
    """

    def __init__(
        self,
        client: HindsightClient,
        hasher: Hasher,
        archive: Archive,
        outbox: Outbox,
        delivery: Delivery,
        *,
        clock: Clock,
        logger: Logger,
    ) -> None:
        self._client = client
        self._hasher = hasher
        self._archive = archive
        self._outbox = outbox
        self._delivery = delivery
        self._clock = clock
        self._logger = logger
        self._checked_at: float | None = None
        self._stale: list[Operation] = []
        self.found = Failures()

    async def run(self) -> None:
        """Checks after the start and after deliveries, for ever; ends by cancellation."""
        while True:
            if self._is_due():
                with contextlib.suppress(HindsightError):
                    await self.check()
            await self._clock.sleep(LOOK_SECONDS)

    async def check(self) -> Failures:
        """Looks for failures, and deletes the records of those that are none any more.

        Raises:
            HindsightError: The server does not tell them.
        """
        found = await self.look()
        if self._stale:
            await self._clear(self._stale)
        return found

    async def look(self) -> Failures:
        """The same, but nothing is changed."""
        self._checked_at = self._clock.monotonic()
        failed = await self._client.operations(_FAILED, kind=RETAIN, most=MAX_FAILED)
        retains = [one for one in failed if _OWN_ID.fullmatch(one.document_id)]
        self._stale = await self._stored(retains[:MAX_STALE])
        retains = [one for one in retains if one not in self._stale]
        if len(retains) > len(self.found.retains):
            reason = Texts("en")(retains[0].failure or "extraction_failed")
            self._logger.warning("Hindsight has failed on %d windows: %s", len(retains), reason)
        facts, reason = await self._unconcluded()
        self.found = Failures(tuple(retains), facts, reason)
        return self.found

    async def retry(self) -> Retried:
        """Has everything tried again that failed, as the server allows it.

        Raises:
            HindsightError: The server did not answer as it should; what was begun goes on.
        """
        try:
            found = await self.check()
            done = Retried()
            for one in found.retains:
                done = await self._retry(one, done)
            if found.facts:
                await self._client.recover_consolidation()
                await self._client.consolidate()
            return replace(done, facts=found.facts)
        finally:
            self._checked_at = None
            self._delivery.wake()

    async def _unconcluded(self) -> tuple[int, str]:
        """How many facts concluding failed for, and why.

        Some are given up one by one. Where the whole work failed, as with a key that is refused,
        all stay as they were, and nothing is begun again before the next retain.
        """
        stats = await self._client.stats(refresh=True)
        latest = await self._client.operations(kind=CONSOLIDATION, most=1)
        if latest and latest[0].status == _FAILED and stats.pending_consolidation:
            facts = stats.failed_consolidation + stats.pending_consolidation
            return facts, latest[0].failure
        return stats.failed_consolidation, ""

    def _is_due(self) -> bool:
        if self._checked_at is None:
            return True
        now, sent_at = self._clock.monotonic(), self._delivery.state.last_sent_at
        is_watched = sent_at is not None and now - sent_at < WATCH_SECONDS
        return now - self._checked_at >= CHECK_SECONDS and (is_watched or self.found != Failures())

    async def _retry(self, operation: Operation, done: Retried) -> Retried:
        owned = await self._owned(operation)
        if owned is None:
            return replace(done, left=done.left + 1)
        # Under the lock, so that nothing is erased between the look at the wishes and the retry.
        async with self._archive.lock(owned.chat):
            if await self._is_erased(owned) or await self._client.document(operation.document_id):
                return done  # it is for the eraser, or was stored by a later retain
            if await self._runs_again(operation):
                return replace(done, again=done.again + 1)
            present = await self._client.operation(operation.operation_id)
            if present is None or present.status != _FAILED:
                return done
            if not await self._outbox.queue_again(owned.chat, owned.document):
                return done
            # Its lines are in the queue now; the record would bring them back after an erasure.
            await self._clear([owned.operation])
        return replace(done, resent=done.resent + 1)

    async def _runs_again(self, operation: Operation) -> bool:
        """Whether the server tries it again by itself."""
        try:
            return await self._client.retry_operation(operation.operation_id)
        except AccessRefusedError:
            return False

    async def _is_erased(self, owned: _Owned) -> bool:
        """Whether something of it is to vanish: then it is for the eraser to see to it."""
        document_id = owned.document.document_id
        erasures = await self._outbox.erasures()
        return any(one.concerns(document_id) for one in erasures if one.chat == owned.chat)

    async def _owned(self, operation: Operation) -> _Owned | None:
        """What a failed retain was to write, if the server tells it and it is of a chat of ours.

        Another bot's ids look the same, but no one without our salt can make a chat's hash.
        """
        with contextlib.suppress(AccessRefusedError, RequestRejectedError):
            stored = await self._client.retained(operation.operation_id)
            tags = chat_tags(stored.tags) if stored else None
            if stored and tags and stored.document_id == operation.document_id:
                chat = self._hasher.name(tags)
                if stored.document_id.startswith(document_prefix(chat)):
                    return _Owned(operation, chat, read_document(stored, tags))
        return None

    async def _stored(self, failed: Sequence[Operation]) -> list[Operation]:
        """Those whose document was stored by a later retain.

        The server keeps their records for ever, and a retry would put the older text in the
        newer's place.
        """
        return [
            one
            for one in failed
            if await self._client.document(one.document_id) and await self._owned(one)
        ]

    async def _clear(self, failed: Sequence[Operation]) -> None:
        """Deletes the records of failures with those above them."""
        ids = {one.document_id for one in failed}
        for one in await self._client.operations(_FAILED, most=MAX_FAILED):
            if one.document_id in ids:
                with contextlib.suppress(AccessRefusedError, RequestRejectedError):
                    await self._client.forget_operation(one.operation_id)
