"""What Hindsight holds of one chat, read.

Nothing here reaches beyond the four tags of the chat that it is called for, whatever ids it is
given: what does not carry all four does not exist.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import re
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from .clock import Clock
from .delivery import Delivery
from .hindsight_client import HindsightClient
from .hindsight_types import (
    ListedDocument,
    MemoryPage,
    RecalledMemory,
    RequestRejectedError,
    RetryLaterError,
)
from .outbox import Outbox
from .scope import Scope
from .texts import Texts
from .transcript import (
    Document,
    Line,
    TurnRecord,
    owners,
    read_document,
)

LISTED_AT_ONCE = 200
MAX_LISTED = 2000
MAX_LOOKED_AT = 40
"""Documents that are read to find a line again."""
MAX_SOURCES = 5
"""Each is a request; somebody waits for the answer, who can look at the rest afterwards."""


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


class Archive:
    """The stored memory of chats; its calls raise the errors of `hindsight_types`.

    Args:
        client: Hindsight.
        outbox: What is not there yet.
        delivery: Is paused for a chat while its documents are changed.
        clock: The time.
        profile_id: Makes the id of a chat's profile.
    """

    def __init__(
        self,
        client: HindsightClient,
        outbox: Outbox,
        delivery: Delivery,
        *,
        clock: Clock,
        profile_id: Callable[[Scope], str],
    ) -> None:
        self._client = client
        self._outbox = outbox
        self._delivery = delivery
        self._clock = clock
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.profile_id = profile_id

    async def page(self, scope: Scope, *, text: str = "", offset: int, limit: int) -> MemoryPage:
        """Memories of a chat, newest first."""
        return await self._client.memories(scope.tags, text=text, offset=offset, limit=limit)

    async def everything(self, scope: Scope, text: str = "") -> list[RecalledMemory]:
        """All memories of a chat, newest first; beyond `MAX_LISTED` the oldest are not told.

        Args:
            scope: The chat.
            text: Only memories with this text.
        """
        found: list[RecalledMemory] = []
        for offset in range(0, MAX_LISTED, LISTED_AT_ONCE):
            page = await self.page(scope, text=text, offset=offset, limit=LISTED_AT_ONCE)
            found += page.memories
            if offset + LISTED_AT_ONCE >= page.total:
                break
        return found

    async def count_documents(self, scope: Scope) -> int:
        """How many documents a chat has."""
        return len(await self.document_ids(scope.tags))

    async def memory(self, scope: Scope, memory_id: str) -> RecalledMemory | None:
        """One memory of this chat; None if there is none of this id here."""
        memory = await self._client.memory(memory_id)
        return memory if memory and memory.tags >= set(scope.tags) else None

    async def basis(self, scope: Scope, memory: RecalledMemory) -> list[RecalledMemory]:
        """The facts that a conclusion stands on; a fact stands on itself."""
        if memory.kind != "observation":
            return [memory]
        whole = memory if memory.sources else await self.memory(scope, memory.memory_id)
        places = {one: number for number, one in enumerate(whole.sources if whole else ())}
        found = await self._client.memories_by_id(scope.tags, places)
        return sorted(found, key=lambda fact: places[fact.memory_id])

    async def sources(self, scope: Scope, memory: RecalledMemory) -> tuple[list[SourceLine], int]:
        """The stored lines that a memory stands on, those that say the most of it.

        Returns:
            The lines, and how many documents were not looked at: no more than `MAX_SOURCES` are.
        """
        facts: dict[str, list[RecalledMemory]] = {}
        for fact in await self.basis(scope, memory):
            facts.setdefault(fact.document_id, []).append(fact)
        lines: list[SourceLine] = []
        for document_id in list(facts)[:MAX_SOURCES]:
            if document := await self.document(scope, document_id):
                texts, whose = [line.text for line in document.lines], owners(document.lines)
                found = {
                    index: None
                    for fact in facts[document_id]
                    for index in _matching_lines(fact.text, document.lines)
                }
                lines += [SourceLine(document_id, n, texts[n], whose[n]) for n in found]
        return lines, max(len(facts) - MAX_SOURCES, 0)

    async def export(self, scope: Scope, path: Path) -> tuple[int, int]:
        """Writes everything of a chat to a JSON Lines file, readable by its owner only.

        Args:
            scope: The chat.
            path: A file that does not exist.

        Returns:
            The numbers of documents and of memories; turns that wait are in the file too. Where
            there is nothing at all, no file is written.

        Raises:
            HindsightError: The server did not answer as it should.
            OSError: The file cannot be written.
        """
        rows = [row async for row in self._export_rows(scope)]
        if not rows:
            return 0, 0
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        await asyncio.to_thread(_write_new, path, text)
        kinds = [row["type"] for row in rows]
        return kinds.count("document"), kinds.count("memory")

    async def remember(self, scope: Scope, record: TurnRecord) -> list[RecalledMemory]:
        """Stores a few lines at once and returns what the server made of them.

        They are in the queue before anything is sent, and stay there until it is known that they
        have arrived: what the queue sends again is the same document.

        Raises:
            RetryLaterError, AccessRefusedError: They are in the queue.
            RequestRejectedError: They are not stored: the server refused them for good, or
                everything of the chat is being erased (`erasing`).
        """
        if (held := await self._outbox.held(scope.chat)) and held.whole:
            raise RequestRejectedError("erasing")
        async with self.changing(scope.chat):
            window = await self._outbox.queue(record)
            if window is None:
                raise RequestRejectedError("erasing")
            await self._check_not_held(scope)
            try:
                await self._client.retain_now(window.item)
            except RequestRejectedError:
                await self._outbox.take_back(window)
                raise
            await self._outbox.delivered(window, day=self._clock.today())
        page = await self._client.memories(scope.tags, document_id=window.document_id)
        return list(page.memories)

    async def profile(self, scope: Scope, texts: Texts) -> str:
        """The text of a chat's profile, which is made on first use; empty while it is made.

        Raises:
            RetryLaterError: `erasing` while something of the chat is being erased: it would come
                back with it.
        """
        await self._check_not_held(scope)
        async with self.lock(scope.chat):
            await self._check_not_held(scope)
            text = await self._client.profile(self.profile_id(scope))
            if text is None:
                query = texts(f"profile_query_{scope.kind}")
                await self._create_profile(scope, query)
        return text or ""

    async def _check_not_held(self, scope: Scope) -> None:
        if await self._outbox.held(scope.chat):
            raise RetryLaterError("erasing")

    async def delete_profile(self, scope: Scope) -> None:
        """Deletes a chat's profile; it is made again on its next use."""
        await self._client.delete_profile(self.profile_id(scope))

    async def _create_profile(self, scope: Scope, query: str) -> None:
        try:
            await self._client.create_profile(self.profile_id(scope), scope.tags, query)
        except RequestRejectedError as error:
            if error.reason == "no_model":  # it is made all the same, and would stay empty
                await self.delete_profile(scope)
            raise

    async def document(self, scope: Scope, document_id: str) -> Document | None:
        """A document, if it is this chat's."""
        return await self.read(scope.tags, document_id)

    async def read(self, tags: Sequence[str], document_id: str) -> Document | None:
        """A document, if it carries all the tags."""
        stored = await self._client.document(document_id) if document_id else None
        is_here = stored is not None and stored.tags >= set(tags)
        return read_document(stored, tags) if stored and is_here else None

    async def read_record(self, tags: Sequence[str], operation_id: str) -> Document | None:
        """The document of a retain that failed, if it carries all the tags."""
        stored = await self._client.retained(operation_id)
        is_here = stored is not None and stored.tags >= set(tags)
        return read_document(stored, tags) if stored and is_here else None

    async def memory_ids(self, scope: Scope, document_id: str) -> set[str]:
        """Ids of what was made from a document."""
        page = await self._client.memories(scope.tags, document_id=document_id)
        return {memory.memory_id for memory in page.memories}

    async def with_answers(self, scope: Scope, lines: Sequence[SourceLine]) -> list[SourceLine]:
        """Stored lines, each with what the bot has answered to it."""
        found = {line.text: line for line in lines}
        for document_id in dict.fromkeys(line.document_id for line in lines):
            document = await self.document(scope, document_id)
            stored = document.lines if document else ()
            whose = owners(stored)
            here = {line.index: line for line in lines if line.document_id == document_id}
            for index, line in sorted(here.items()):
                for after in range(index + 1, len(stored)) if Line(line.text).pseudonym else ():
                    if stored[after].pseudonym or whose[after] != line.pseudonym:
                        break
                    text = stored[after].text
                    found.setdefault(text, SourceLine(document_id, after, text, whose[after]))
        return list(found.values())

    async def find_lines(self, scope: Scope, lines: Sequence[SourceLine]) -> list[SourceLine]:
        """Where stored lines stand now: a document that was written anew has another id.

        Of lines that wait to be written the place is not known; they are told as they were.
        """
        missing = {line.text: line for line in lines}
        found: list[SourceLine] = []
        known = [line.document_id for line in lines]
        places = [*known, *await self.document_ids(scope.tags)]
        for document_id in list(dict.fromkeys(places))[:MAX_LOOKED_AT]:
            if not missing:
                break
            document = await self.document(scope, document_id)
            for number, line in enumerate(document.lines if document else ()):
                if old := missing.pop(line.text, None):
                    found.append(SourceLine(document_id, number, line.text, old.pseudonym))
        return [*found, *missing.values()]

    async def document_ids(self, tags: Sequence[str]) -> list[str]:
        """Ids of all documents of a chat."""
        found: list[str] = []
        while page := await self._client.documents(tags, offset=len(found)):
            found += page
        return found

    async def first_document(
        self, scope: Scope, is_wanted: Callable[[str], bool]
    ) -> Document | None:
        """The document of a chat that begins before all others.

        Args:
            scope: The chat.
            is_wanted: Takes the id of a document.
        """
        first: ListedDocument | None = None
        offset = 0
        while (page := await self._client.document_page(scope.tags, offset=offset)).length:
            offset += page.length
            wanted = (one for one in page.documents if is_wanted(one.document_id))
            first = min((*wanted, *([first] if first else [])), key=_began, default=None)
        return await self.document(scope, first.document_id) if first else None

    def lock(self, chat: str) -> asyncio.Lock:
        """Held by whoever changes what is stored of a chat."""
        return self._locks.setdefault(chat, asyncio.Lock())

    @contextlib.asynccontextmanager
    async def changing(self, chat: str) -> AsyncIterator[None]:
        """Meanwhile nothing else changes a chat's documents, and nothing of it is sent."""
        async with self.lock(chat), self._delivery.held(chat):
            yield

    async def _export_rows(self, scope: Scope) -> AsyncIterator[dict[str, Any]]:
        for document_id in await self.document_ids(scope.tags):
            if document := await self.document(scope, document_id):
                yield {
                    "type": "document",
                    "id": document.document_id,
                    "timestamp": document.header.timestamp,
                    "context": document.header.context,
                    "text": "\n".join(line.text for line in document.lines),
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
        for waiting in await self._delivery.waiting(scope.chat):
            text = "\n".join(line.text for line in waiting.lines)
            yield {"type": "waiting", "timestamp": waiting.header.timestamp, "text": text}


def _began(document: ListedDocument) -> float:
    """When the first line of a document was said; one that does not tell is none of the first."""
    try:
        return datetime.fromisoformat(document.timestamp).timestamp()
    except ValueError:
        return math.inf


def _matching_lines(fact: str, lines: Sequence[Line]) -> Collection[int]:
    """The lines of a document that a fact was made from.

    A fact that is the line itself matches it alone; one in other words matches the lines that
    share the most pairs of characters with it, at least the best.
    """
    told = {_letters(Line(one).words) for one in fact.splitlines()}
    if exact := [i for i, line in enumerate(lines) if _letters(line.words) in told]:
        return exact
    wanted = _pairs(fact)
    shares = [len(wanted & _pairs(line.words)) for line in lines]
    sizes = [max(1, len(_pairs(line.words))) for line in lines]
    scores = [share / size for share, size in zip(shares, sizes, strict=True)]
    best = max(scores, default=0.0)
    return [i for i, score in enumerate(scores) if score and score >= best * 0.6]


def _letters(text: str) -> str:
    return re.sub(r"\W", "", text.lower())


def _pairs(text: str) -> set[str]:
    letters = _letters(text)
    return {letters[i : i + 2] for i in range(len(letters) - 1)} or {letters}


def _write_new(path: Path, text: str) -> None:
    with path.open("x", encoding="utf-8") as file:
        path.chmod(0o600)
        file.write(text)
