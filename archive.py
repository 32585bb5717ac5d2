"""What Hindsight holds of one chat: list it, take lines out of it, erase it, export it.

Nothing here reaches beyond the four tags of the chat that it is called for, whatever ids it is
given: what does not carry all four does not exist.

Hindsight cannot delete a single memory for good: an invalidated fact is still read from its
source, and comes back when the source is written again. So lines are taken out of the source, the
rest is stored as a new document, and the old one is deleted.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from .delivery import DISK_ERRORS, Delivery, build_item
from .hindsight_client import (
    HindsightClient,
    HindsightError,
    MemoryPage,
    Operation,
    RecalledMemory,
    RequestRejectedError,
    RetryLaterError,
    StoredDocument,
)
from .outbox import (
    Erasure,
    Line,
    Outbox,
    TurnRecord,
    document_prefix,
    group_turns,
    new_document_id,
)
from .scope import Scope
from .texts import Texts

WIPE_SECONDS = 120.0
WIPE_PAUSE_SECONDS = 2.0
BACKGROUND_PAUSE_SECONDS = 10.0
CLEAN_ROUNDS = 2
"""So often in a row nothing must be found."""
LATE_ROUNDS = 60
"""The same for ten minutes in the background: a retain that was cancelled while the server's
model was at it still writes its document when the model answers."""

_LINE = re.compile(r"^[^#(\n]*(#[0-9a-f]{6}) \(\d{4}-\d\d-\d\dT")
"""Names have neither `#` nor brackets, so what somebody says cannot pass for a speaker."""

_WORKING = ("pending", "processing")
_COUNTED = {"turns", "speakers"}
"""Metadata that is counted anew from the lines."""


@dataclass(frozen=True)
class SourceLine:
    """A stored line that a memory may stand on.

    Attributes:
        document_id: Where it stands.
        index: Which line of the document, from 0.
        text: The line.
        pseudonym: The speaker's; that of whom it answers where the bot speaks.
    """

    document_id: str
    index: int
    text: str
    pseudonym: str = ""


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


class Archive:
    """The stored memory of chats.

    Args:
        client: Hindsight.
        outbox: What is not there yet.
        delivery: Is paused for a chat while its documents are changed.
        profile_id: Makes the id of a chat's profile.
        sleep: Waits so many seconds.
        monotonic: Seconds that never jump.
    """

    def __init__(
        self,
        client: HindsightClient,
        outbox: Outbox,
        delivery: Delivery,
        *,
        profile_id: Callable[[Scope], str],
        monotonic: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._outbox = outbox
        self._delivery = delivery
        self._profile_id = profile_id
        self._monotonic = monotonic
        self._sleep = sleep
        self._wake = asyncio.Event()
        self._erasing: set[str] = set()
        self._quiet_rounds: Counter[str] = Counter()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def page(self, scope: Scope, *, text: str = "", offset: int, limit: int) -> MemoryPage:
        """Memories of a chat, newest first.

        Raises:
            HindsightError: The server did not answer as it should.
        """
        return await self._client.memories(scope.tags, text=text, offset=offset, limit=limit)

    async def count_documents(self, scope: Scope) -> int:
        """How many documents a chat has.

        Raises:
            HindsightError: The server did not answer as it should.
        """
        return len([one async for one in self._document_ids(scope.tags)])

    async def memory(self, scope: Scope, memory_id: str) -> RecalledMemory | None:
        """One memory of this chat; None if there is none of this id here.

        Raises:
            HindsightError: The server did not answer as it should.
        """
        memory = await self._client.memory(memory_id)
        return memory if memory and memory.tags >= set(scope.tags) else None

    async def basis(self, scope: Scope, memory: RecalledMemory) -> list[RecalledMemory]:
        """The facts that a conclusion stands on; a fact stands on itself.

        Raises:
            HindsightError: The server did not answer as it should.
        """
        if memory.kind != "observation":
            return [memory]
        whole = await self.memory(scope, memory.memory_id)
        found = [await self.memory(scope, one) for one in (whole.sources if whole else ())]
        return [one for one in found if one]

    async def source_lines(self, scope: Scope, memory: RecalledMemory) -> list[SourceLine]:
        """The stored lines that a memory stands on, those that say the most of it.

        Raises:
            HindsightError: The server did not answer as it should.
        """
        lines: dict[tuple[str, int], SourceLine] = {}
        for fact in await self.basis(scope, memory):
            document = await self._document(scope, fact.document_id)
            if document is None:
                continue
            stored = _lines(document.text)
            owners = _owners(stored)
            for index in _matching_lines(fact.text, document.text):
                lines[fact.document_id, index] = SourceLine(
                    fact.document_id, index, stored[index].text, owners[index]
                )
        return list(lines.values())

    async def remove_lines(self, scope: Scope, lines: Sequence[SourceLine]) -> Removed:
        """Takes lines out of what is stored; the profile goes too, since it keeps its text.

        Raises:
            HindsightError: The server did not answer as it should; what is done is done.
        """
        removed = Removed()
        async with self._held(scope.chat):
            await self.delete_profile(scope)
            for document_id in {line.document_id for line in lines}:
                gone = {line.text for line in lines if line.document_id == document_id}
                document = await self._document(scope, document_id)
                if document:
                    removed = await self._rewrite(
                        scope, document, removed, functools.partial(_stands_in, gone)
                    )
        return removed

    async def remove_person(self, scope: Scope, pseudonym: str) -> Removed:
        """Takes a person's lines, and the bot's answers to them, out of everything of a chat.

        Raises:
            HindsightError: The server did not answer as it should; what is done is done.
        """
        async with self._held(scope.chat):
            waiting, tried = await self._outbox.edit_chat(
                scope.chat, lambda lines: _without(lines, pseudonym)
            )
            if tried:
                await self._note(scope, tried, whole=False)
            removed = Removed(waiting=waiting, unfinished=await self._unfinished(scope.chat))
            await self.delete_profile(scope)
            for document_id in [one async for one in self._document_ids(scope.tags)]:
                if document_id in tried:
                    await self._client.delete_document(document_id)
                elif document := await self._document(scope, document_id):
                    lines = _lines(document.text)
                    gone = set(lines) - set(_without(lines, pseudonym))
                    if gone:
                        removed = await self._rewrite(scope, document, removed, gone.__contains__)
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
        deadline = self._monotonic() + WIPE_SECONDS
        removed, clean = 0, 0
        async with self._held(scope.chat):
            waiting, erasure = await self._begin_erasure(scope)
            while clean < CLEAN_ROUNDS:
                cancelled, deleted, erasure = await self._erase_round(erasure)
                removed += deleted
                clean = 0 if cancelled or deleted else clean + 1
                if self._monotonic() > deadline:
                    return None
                await self._sleep(WIPE_PAUSE_SECONDS)
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
                await self._sleep(BACKGROUND_PAUSE_SECONDS)  # a command is at work on it
                continue
            for erasure in erasures or ():
                await self._continue(erasure.chat)
            await self._sleep(BACKGROUND_PAUSE_SECONDS)

    async def export(self, scope: Scope, path: Path) -> tuple[int, int]:
        """Writes everything of a chat to a JSON Lines file, readable by its owner only.

        Args:
            scope: The chat.
            path: A file that does not exist.

        Returns:
            The numbers of documents and of memories; turns that wait are in the file too.

        Raises:
            HindsightError: The server did not answer as it should.
            OSError: The file cannot be written.
        """
        rows = [row async for row in self._export_rows(scope)]
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        await asyncio.to_thread(_write_new, path, text)
        kinds = [row["type"] for row in rows]
        return kinds.count("document"), kinds.count("memory")

    async def remember(self, scope: Scope, record: TurnRecord) -> list[RecalledMemory]:
        """Stores a few lines at once and returns what the server made of them.

        Raises:
            HindsightError: The server did not answer as it should, or everything of the chat is
                being erased.
        """
        if scope.chat in self._erasing:
            raise RetryLaterError("erasing")
        document_id = new_document_id(scope.chat)
        item = build_item(document_id, record.header, [record.lines])
        await self._client.retain_now(item)
        page = await self._client.memories(scope.tags, document_id=document_id)
        return list(page.memories)

    async def profile(self, scope: Scope, texts: Texts) -> str:
        """The text of a chat's profile, which is made on first use; empty while it is made.

        While everything of the chat is being erased there is none.

        Raises:
            HindsightError: The server did not answer as it should.
        """
        if scope.chat in self._erasing:
            return ""
        text = await self._client.profile(self._profile_id(scope))
        if text is None:
            query = texts(f"profile_query_{scope.kind}")
            await self._create_profile(scope, query)
        return text or ""

    async def delete_profile(self, scope: Scope) -> None:
        """Deletes a chat's profile; it is made again on its next use.

        Raises:
            HindsightError: The server did not answer as it should.
        """
        await self._client.delete_profile(self._profile_id(scope))

    async def _create_profile(self, scope: Scope, query: str) -> None:
        try:
            await self._client.create_profile(self._profile_id(scope), scope.tags, query)
        except RequestRejectedError as error:
            if error.reason == "no_model":  # it is made all the same, and would stay empty
                await self.delete_profile(scope)
            raise

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

    async def _document(self, scope: Scope, document_id: str) -> StoredDocument | None:
        """A document, if it is this chat's."""
        document = await self._client.document(document_id) if document_id else None
        return document if document and document.tags >= set(scope.tags) else None

    async def _document_ids(self, tags: Sequence[str]) -> AsyncIterator[str]:
        """Ids of all documents of a chat; read as a whole before any is changed."""
        found: list[str] = []
        while page := await self._client.documents(tags, offset=len(found)):
            found += page
        for document_id in found:
            yield document_id

    async def _rewrite(
        self,
        scope: Scope,
        document: StoredDocument,
        removed: Removed,
        is_gone: Callable[[Line], bool],
    ) -> Removed:
        """Puts what stays of a document in the queue as a new one, and deletes the old one."""
        lines = _lines(document.text)
        kept = [line for line in lines if not is_gone(line)]
        replacement = ""
        if kept and scope.chat not in self._erasing:
            header = _header(scope, document)
            replacement = await self._outbox.add_window(scope.chat, header, group_turns(kept))
        try:
            await self._client.delete_document(document.document_id)
        except HindsightError:
            # The deletion may have happened all the same. Only beside a document that is surely
            # there the replacement would stand twice; otherwise what stays must not be lost.
            if replacement and await self._is_stored(document.document_id):
                await self._outbox.remove_document(replacement)
            raise
        return replace(
            removed,
            lines=removed.lines + len(lines) - len(kept),
            documents=removed.documents + 1,
        )

    async def _is_stored(self, document_id: str) -> bool:
        """Whether a document is surely there; a server that does not answer proves nothing."""
        try:
            return await self._client.document(document_id) is not None
        except HindsightError:
            return False

    async def _unfinished(self, chat: str) -> int:
        """How many retains of a chat the server is still working on."""
        prefix = document_prefix(chat)
        working = await self._working()
        return len({one.document_id for one in working if one.document_id.startswith(prefix)})

    async def _begin_erasure(self, scope: Scope) -> tuple[int, Erasure]:
        """Drops what waits of a chat, and notes on disk that everything of it must go."""
        waiting, tried = await self._outbox.drop_chat(scope.chat)
        erasure = await self._note(scope, tried, whole=True)
        self._erasing.add(scope.chat)
        return waiting, erasure

    async def _note(self, scope: Scope, documents: Iterable[str], *, whole: bool) -> Erasure:
        """Notes on disk what must vanish, besides what is noted of this chat already."""
        earlier = [e for e in await self._outbox.erasures() if e.chat == scope.chat]
        late = {*documents, *(document_id for e in earlier for document_id in e.documents)}
        erasure = Erasure(
            scope.chat,
            scope.tags,
            self._profile_id(scope),
            tuple(sorted(late)),
            whole=whole or any(e.whole for e in earlier),
        )
        await self._outbox.keep_erasure(erasure)
        self._quiet_rounds.pop(scope.chat, None)
        self._wake.set()
        return erasure

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
            await self._outbox.keep_erasure(erasure)
        stored: set[str] = set()
        if erasure.whole:
            stored = {one async for one in self._document_ids(erasure.tags)}
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
        await self._outbox.keep_erasure(replace(erasure, whole=False))
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
            await self._outbox.end_erasure(erasure.chat)

    async def _export_rows(self, scope: Scope) -> AsyncIterator[dict[str, Any]]:
        async for document_id in self._document_ids(scope.tags):
            if document := await self._document(scope, document_id):
                yield {
                    "type": "document",
                    "id": document.document_id,
                    "timestamp": document.timestamp,
                    "context": document.context,
                    "text": document.text,
                }
        offset = 0
        while (page := await self.page(scope, offset=offset, limit=100)).memories:
            offset += len(page.memories)
            for memory in page.memories:
                when = memory.mentioned_at
                yield {
                    "type": "memory",
                    "id": memory.memory_id,
                    "kind": memory.kind,
                    "date": when.isoformat() if when else "",
                    "document": memory.document_id,
                    "text": memory.text,
                }
        for window in await self._outbox.windows(scope.chat):
            text = "\n".join(line.text for turn in window.turns for line in turn)
            yield {"type": "waiting", "timestamp": window.header["timestamp"], "text": text}


def _stands_in(texts: Collection[str], line: Line) -> bool:
    return line.text in texts


def _header(scope: Scope, document: StoredDocument) -> dict[str, Any]:
    metadata = {k: v for k, v in document.metadata.items() if k not in _COUNTED}
    return {
        "tags": list(scope.tags),
        "context": document.context,
        "timestamp": document.timestamp,
        "metadata": metadata,
    }


def _lines(text: str) -> list[Line]:
    """A document's lines with their speakers; the bot's have no pseudonym."""
    return [
        Line(match[1] if (match := _LINE.match(line)) else "", line) for line in text.splitlines()
    ]


def _owners(lines: Iterable[Line]) -> list[str]:
    """Whose each line is; the bot's are of those whom they answer."""
    owners: list[str] = []
    for line in lines:
        owners.append(line.pseudonym or (owners[-1] if owners else ""))
    return owners


def _without(lines: Sequence[Line], pseudonym: str) -> list[Line]:
    """Lines without a person's, and without what the bot said right after them."""
    owned = zip(lines, _owners(lines), strict=True)
    return [line for line, owner in owned if owner != pseudonym]


def _matching_lines(fact: str, text: str) -> Collection[int]:
    """The lines of a document that a fact was made from.

    A fact that is the line itself matches it alone; one in other words matches the lines that
    share the most pairs of characters with it, at least the best.
    """
    wanted = _pairs(fact)
    shares = [len(wanted & _pairs(_said(line))) for line in text.splitlines()]
    sizes = [max(1, len(_pairs(_said(line)))) for line in text.splitlines()]
    scores = [share / size for share, size in zip(shares, sizes, strict=True)]
    best = max(scores, default=0.0)
    return [i for i, score in enumerate(scores) if score and score >= best * 0.6]


def _said(line: str) -> str:
    """A line without its beginning."""
    return re.sub(r"^.*?\(\d{4}-\d\d-\d\dT[^)]*\): ", "", line)


def _pairs(text: str) -> set[str]:
    letters = re.sub(r"\W", "", text.lower())
    return {letters[i : i + 2] for i in range(len(letters) - 1)} or {letters}


def _write_new(path: Path, text: str) -> None:
    with path.open("x", encoding="utf-8") as file:
        path.chmod(0o600)
        file.write(text)
