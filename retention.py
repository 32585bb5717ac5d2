"""What is older than it may be goes, once a day, in the chats that were met since the start.

Only of those the tags are known. A document goes when its last line is too old; one that does not
tell its time stays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from .archive import Archive
from .clock import Clock
from .erasure import Eraser
from .hindsight_answers import read_time
from .hindsight_bank import LONG_PAGE, RETAIN
from .hindsight_client import HindsightClient
from .hindsight_types import AccessRefusedError, HindsightError, Operation
from .intake import DISK_ERRORS
from .scope import Scope
from .transcript import Document, document_prefix

LOOK_SECONDS = 600.0
BATCH = 200
"""So many documents go at once; meanwhile nothing of the chat is sent."""
MAX_SKEW_SECONDS = 3600.0
"""Where the two clocks differ by more, one of them may be years wrong, and nothing goes."""


@dataclass(frozen=True)
class Expired:
    """What status shows.

    Attributes:
        documents: How many have gone since the start.
        reason: Why nothing goes at present, the key of a sentence, or empty.
    """

    documents: int = 0
    reason: str = ""


class Retention:
    """Erases what is too old.

    Args:
        client: Hindsight.
        archive: What is stored.
        eraser: Erases, over failures and restarts.
        met: The chats met since the start.
        keep_days: How long documents are kept.
        clock: The time.

    Attributes:
        keep_days: See above.
        state: What has gone, and why nothing goes.
    """

    def __init__(
        self,
        client: HindsightClient,
        archive: Archive,
        eraser: Eraser,
        met: Callable[[], Collection[Scope]],
        keep_days: int,
        clock: Clock,
    ) -> None:
        self._client = client
        self._archive = archive
        self._eraser = eraser
        self._met = met
        self._clock = clock
        self._days: dict[str, str] = {}
        self.keep_days = keep_days
        self.state = Expired()

    async def run(self) -> None:
        """Does for ever what is due; ends by cancellation."""
        while True:
            await self.step()
            await self._clock.sleep(LOOK_SECONDS)

    async def step(self) -> None:
        """Goes through the chats whose turn it is today."""
        today = self._clock.today()
        due = [scope for scope in self._met() if self._days.get(scope.chat) != today]
        if not due:
            return
        try:
            reason = await self._obstacle()
            failed = [] if reason else await self._failed()
            for scope in () if reason else due:
                reason = await self._expire(scope, failed)
                if reason:
                    break
                self._days[scope.chat] = today
        except HindsightError as error:
            reason = error.reason
        except DISK_ERRORS:
            reason = "disk"
        self.state = Expired(self.state.documents, reason)

    async def _obstacle(self) -> str:
        """Why nothing can be told to be too old, or empty."""
        version = await self._client.version()
        if not version:
            return "expiry_unknown"
        if version.startswith("0."):
            return "expiry_needs_newer"
        skew = self._client.skew_seconds
        return "expiry_clock" if skew is None or abs(skew) > MAX_SKEW_SECONDS else ""

    async def _expire(self, scope: Scope, failed: Sequence[Operation]) -> str:
        """Erases what is too old of one chat; why that did not succeed at once, or empty."""
        before = datetime.fromtimestamp(self._clock.unix(), UTC) - timedelta(days=self.keep_days)
        old = await self._old(scope, before)
        ids = [one for one in old if await self._is_over(scope, one, before)]
        prefix = document_prefix(scope.chat)
        ids += {
            one.document_id
            for one in failed
            if one.document_id.startswith(prefix) and one.created_at and one.created_at < before
        } - set(ids)
        for start in range(0, len(ids), BATCH):
            batch = ids[start : start + BATCH]
            removed = await self._eraser.remove_documents(scope, batch)
            self.state = Expired(self.state.documents + len(batch))
            if removed.failure:
                return removed.failure
        return ""

    async def _old(self, scope: Scope, before: datetime) -> list[str]:
        """Documents of a chat that began before a time."""
        found: list[str] = []
        offset = 0
        while True:
            page = await self._client.document_page(scope.tags, offset=offset, limit=LONG_PAGE)
            for one in page.documents:
                began = read_time(one.timestamp)
                found += [one.document_id] if began and began < before else []
            offset += page.length
            if page.length < LONG_PAGE:
                return found

    async def _is_over(self, scope: Scope, document_id: str, before: datetime) -> bool:
        """Whether a document also ended before a time."""
        document = await self._archive.document(scope, document_id)
        ended = _last_said(document) if document else None
        return ended is not None and ended < before

    async def _failed(self) -> list[Operation]:
        """Retains that failed: what they were to write is kept in the server's records."""
        try:
            return await self._client.operations("failed", kind=RETAIN)
        except AccessRefusedError:
            return []


def _last_said(document: Document) -> datetime | None:
    """When the last line was said; where no line tells, when the first was."""
    times = [line.at for line in document.lines if line.at]
    return max(times) if times else read_time(document.header.timestamp)
