"""What must vanish: lines, a person's words, a whole chat, and what is written late.

Hindsight cannot delete a single memory for good: an invalidated fact is still read from its
source, and comes back when the source is written again. So lines are taken out of the source, the
rest is stored as a new document, and the old one is deleted.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections import Counter
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

from .archive import Archive, SourceLine
from .clock import Clock
from .delivery import Delivery
from .hindsight_client import HindsightClient
from .hindsight_types import HindsightError, Operation
from .intake import DISK_ERRORS
from .outbox import Erasure, Outbox
from .scope import Scope
from .transcript import Document, Line, document_prefix, group_turns, keep, without_person

WIPE_SECONDS = 120.0
WIPE_PAUSE_SECONDS = 2.0
BACKGROUND_PAUSE_SECONDS = 10.0
CLEAN_ROUNDS = 2
"""So often in a row nothing must be found."""
LATE_ROUNDS = 60
"""The same for ten minutes in the background: a retain that was cancelled while the server's
model was at it still writes its document when the model answers."""

_WORKING = ("pending", "processing")


@dataclass(frozen=True)
class Removed:
    """What an erasure has done.

    Attributes:
        lines: Lines taken out of documents on the server.
        documents: Documents rewritten or deleted there.
        waiting: Lines or turns taken out of the local queue.
        unfinished: Retains of this chat that the server is still working on; what they write is
            erased later only by a wipe.
    """

    lines: int = 0
    documents: int = 0
    waiting: int = 0
    unfinished: int = 0


class Eraser:
    """Takes lines, people and whole chats out of what is stored.

    Args:
        client: Hindsight.
        archive: What is stored.
        outbox: What is not there yet.
        delivery: Is paused for a chat while its documents are changed.
        clock: The time.
    """

    def __init__(
        self,
        client: HindsightClient,
        archive: Archive,
        outbox: Outbox,
        delivery: Delivery,
        *,
        clock: Clock,
    ) -> None:
        self._client = client
        self._archive = archive
        self._outbox = outbox
        self._delivery = delivery
        self._clock = clock
        self._wake = asyncio.Event()
        self._erasing: set[str] = set()
        self._quiet_rounds: Counter[str] = Counter()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def remove_lines(self, scope: Scope, lines: Sequence[SourceLine]) -> Removed:
        """Takes lines out of what is stored; the profile goes too, since it keeps its text.

        Raises:
            HindsightError: The server did not answer as it should; what is done is done.
        """
        removed = Removed()
        async with self._held(scope.chat):
            await self._archive.delete_profile(scope)
            for document_id in {line.document_id for line in lines}:
                gone = {line.text for line in lines if line.document_id == document_id}
                document = await self._archive.document(scope, document_id)
                if document:
                    stays = functools.partial(_stays, gone)
                    kept = keep(document.lines, stays)
                    removed = await self._rewrite(scope, document, removed, kept)
        return removed

    async def remove_person(self, scope: Scope, pseudonym: str) -> Removed:
        """Takes a person's lines, and the bot's answers to them, out of everything of a chat.

        Raises:
            HindsightError: The server did not answer as it should; what is done is done.
        """
        async with self._held(scope.chat):
            waiting = await self._delivery.edit_chat(
                self._wish(scope), lambda lines: without_person(lines, pseudonym)
            )
            self._wake.set()
            noted = await self._noted(scope.chat)
            removed = Removed(waiting=waiting, unfinished=await self._unfinished(scope.chat))
            await self._archive.delete_profile(scope)
            for document_id in [one async for one in self._archive.document_ids(scope.tags)]:
                if document_id in noted:
                    await self._client.delete_document(document_id)
                elif document := await self._archive.document(scope, document_id):
                    kept = without_person(document.lines, pseudonym)
                    if len(kept) < len(document.lines):
                        removed = await self._rewrite(scope, document, removed, kept)
        return removed

    async def wipe(self, scope: Scope) -> Removed | None:
        """Erases everything of a chat: what waits, what is queued on the server, what is stored.

        The wish is on disk first; what is not done after two minutes goes on in the background,
        over restarts, and nothing of the chat is delivered until then.

        Returns:
            The figures, or None if it goes on in the background.

        Raises:
            HindsightError: The server did not answer as it should; it is tried again in the
                background.
        """
        deadline = self._clock.monotonic() + WIPE_SECONDS
        removed, clean = 0, 0
        async with self._held(scope.chat):
            waiting, erasure = await self._begin_erasure(scope)
            while clean < CLEAN_ROUNDS:
                cancelled, deleted, erasure = await self._erase_round(erasure)
                removed += deleted
                clean = 0 if cancelled or deleted else clean + 1
                if self._clock.monotonic() > deadline:
                    return None
                await self._clock.sleep(WIPE_PAUSE_SECONDS)
            await self._erased(erasure)
        return Removed(documents=removed, waiting=waiting)

    async def restore(self) -> None:
        """Holds back what must not be sent before an erasure of an earlier run is complete."""
        for erasure in await self._unfinished_erasures() or ():
            if erasure.whole:
                await self._hold_back(erasure.chat)

    async def run(self) -> None:
        """Completes erasures for ever; ends by cancellation."""
        while True:
            self._wake.clear()
            erasures = await self._unfinished_erasures()
            if erasures == []:
                await self._wake.wait()
                await self._clock.sleep(BACKGROUND_PAUSE_SECONDS)  # a command is at work on it
                continue
            for erasure in erasures or ():
                await self._continue(erasure.chat)
            await self._clock.sleep(BACKGROUND_PAUSE_SECONDS)

    def _lock(self, chat: str) -> asyncio.Lock:
        return self._locks.setdefault(chat, asyncio.Lock())

    @contextlib.asynccontextmanager
    async def _held(self, chat: str) -> AsyncIterator[None]:
        """Meanwhile nothing else changes a chat's documents, and nothing of it is sent."""
        async with self._lock(chat):
            await self._delivery.pause(chat)
            try:
                yield
            finally:
                if chat not in self._erasing:
                    self._delivery.resume(chat)

    async def _rewrite(
        self,
        scope: Scope,
        document: Document,
        removed: Removed,
        kept: Sequence[Line],
    ) -> Removed:
        """Puts what stays of a document in the queue as a new one, and deletes the old one."""
        done = await self._outbox.replace_document(
            self._wish(scope), document.document_id, document.header, group_turns(kept)
        )
        self._quiet_rounds.pop(scope.chat, None)
        self._wake.set()
        await self._client.delete_document(document.document_id)
        if not done:
            return removed
        return replace(
            removed,
            lines=removed.lines + len(document.lines) - len(kept),
            documents=removed.documents + 1,
        )

    async def _unfinished(self, chat: str) -> int:
        """How many retains of a chat the server is still working on."""
        prefix = document_prefix(chat)
        working = await self._working()
        return len({one.document_id for one in working if one.document_id.startswith(prefix)})

    async def _begin_erasure(self, scope: Scope) -> tuple[int, Erasure]:
        """Drops what waits of a chat, and notes on disk that everything of it must go."""
        wish = self._wish(scope, whole=True)
        waiting = await self._delivery.drop_chat(wish)
        self._quiet_rounds.pop(scope.chat, None)
        self._wake.set()
        self._erasing.add(scope.chat)
        return waiting, replace(wish, documents=tuple(sorted(await self._noted(scope.chat))))

    def _wish(self, scope: Scope, *, whole: bool = False) -> Erasure:
        return Erasure(scope.chat, scope.tags, self._archive.profile_id(scope), whole=whole)

    async def _noted(self, chat: str) -> set[str]:
        """Documents of a chat that are to go."""
        erasures = await self._outbox.erasures()
        return {one for erasure in erasures if erasure.chat == chat for one in erasure.documents}

    async def _erase_round(self, erasure: Erasure) -> tuple[int, int, Erasure]:
        """One pass over everything that an erasure names.

        Returns:
            How many queued retains were cancelled, how many documents were deleted, and the
            erasure with the documents that may yet be written.
        """
        queued = await self._queued(erasure)
        for operation in queued:
            await self._client.cancel(operation)
        late = set(erasure.documents) | {operation.document_id for operation in queued}
        if late != set(erasure.documents):
            erasure = replace(erasure, documents=tuple(sorted(late)))
            await self._outbox.note_erasure(erasure)
        stored: set[str] = set()
        if erasure.whole:
            stored = {one async for one in self._archive.document_ids(erasure.tags)}
            await self._client.delete_profile(erasure.profile)
        deleted = 0
        for document_id in late | stored:
            deleted += await self._client.delete_document(document_id)
        return len(queued), deleted, erasure

    async def _queued(self, erasure: Erasure) -> list[Operation]:
        """Retains in the server's queue that would write what is to be erased."""
        prefix = document_prefix(erasure.chat)
        return [
            operation
            for operation in await self._working()
            if operation.document_id in erasure.documents
            or (erasure.whole and operation.document_id.startswith(prefix))
        ]

    async def _working(self) -> list[Operation]:
        """What the server's queue holds of the whole bank."""
        return [one for status in _WORKING for one in await self._client.operations(status)]

    async def _erased(self, erasure: Erasure) -> None:
        """Ends a whole erasure, but keeps an eye on what a cancelled retain may write."""
        await self._outbox.end_whole(erasure.chat)
        self._erasing.discard(erasure.chat)
        self._delivery.resume(erasure.chat)

    async def _hold_back(self, chat: str) -> None:
        """Sends nothing of a chat until everything of it is erased."""
        self._erasing.add(chat)
        await self._delivery.pause(chat)

    async def _unfinished_erasures(self) -> list[Erasure] | None:
        """Erasures on disk; None while the disk fails, which the delivery reports."""
        try:
            return await self._outbox.erasures()
        except DISK_ERRORS:
            return None

    async def _continue(self, chat: str) -> None:
        """One round of an erasure in the background; a server that fails is asked again later."""
        async with self._lock(chat):
            # Read again: a command may have completed it, and what came after must stay.
            for erasure in await self._unfinished_erasures() or ():
                if erasure.chat == chat:
                    with contextlib.suppress(HindsightError, *DISK_ERRORS):
                        await self._finish(erasure)

    async def _finish(self, erasure: Erasure) -> None:
        if erasure.whole:
            await self._hold_back(erasure.chat)
        cancelled, deleted, erasure = await self._erase_round(erasure)
        if cancelled or deleted:
            self._quiet_rounds.pop(erasure.chat, None)
        elif erasure.whole:
            await self._erased(erasure)
        else:
            await self._watch(erasure)

    async def _watch(self, erasure: Erasure) -> None:
        """Counts the rounds without a late document, and ends the erasure after enough of them."""
        self._quiet_rounds[erasure.chat] += 1
        if not erasure.documents or self._quiet_rounds[erasure.chat] >= LATE_ROUNDS:
            del self._quiet_rounds[erasure.chat]
            await self._outbox.end_documents(erasure.chat, erasure.documents)


def _stays(gone: Collection[str], line: Line, _: str) -> bool:
    return line.text not in gone
