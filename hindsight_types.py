"""What Hindsight's API takes and gives, as plain values, and how its calls fail.

Errors are named for what the caller can do about them:

    HindsightError
    ├── RetryLaterError        unreachable, overloaded, broken answer: the same again, later
    ├── AccessRefusedError     401, 402, 403: nothing goes until key or account are repaired
    └── RequestRejectedError   400, 409, 413, 422, …: never accepted as it is
        └── QueryTooLongError  Hindsight up to 0.10 refuses what 1.x shortens by itself
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

SOURCE_TOKENS = 4096


class HindsightError(Exception):
    """A call failed.

    Attributes:
        reason: A short English code such as `unauthorized`, the key of its sentence in `texts`.
        status: The HTTP status, or None where there was no answer.
        local: The cause is on this side, so that nothing is told of the server.
    """

    def __init__(self, reason: str, status: int | None = None, *, local: bool = False) -> None:
        super().__init__(f"{reason} ({status})" if status else reason)
        self.reason = reason
        self.status = status
        self.local = local


class RetryLaterError(HindsightError):
    """The same request may succeed later.

    Attributes:
        after_seconds: What the server asked to wait, capped, or None.
    """

    def __init__(
        self,
        reason: str,
        status: int | None = None,
        after_seconds: float | None = None,
        *,
        local: bool = False,
    ) -> None:
        super().__init__(reason, status, local=local)
        self.after_seconds = after_seconds


class AccessRefusedError(HindsightError):
    """Key or account are refused: no request succeeds until that is repaired."""


class RequestRejectedError(HindsightError):
    """The server will never accept this very request."""


class QueryTooLongError(RequestRejectedError):
    """A recall query has too many tokens for this server."""


@dataclass(frozen=True)
class RecalledMemory:
    """One memory, as recalls and lists return it.

    Attributes:
        memory_id: Hindsight's id.
        text: What is remembered.
        kind: `world`, `experience` (of the assistant) or `observation` (a conclusion).
        mentioned_at: When it was said, aware, or None.
        tags: Tags of the memory, in no particular order.
        score: Relevance, comparable only within one recall, or None. Without a cross-encoder it
            tells no more than the rank.
        speakers: Pseudonyms of those who speak in its source, where the source is known.
        document_id: Its source, or empty for a conclusion.
        sources: Ids of the memories that a conclusion stands on, where the server tells.
        semantic: Cosine of query and memory; None where another way led to it.
        reranker: A cross-encoder's verdict from 0 to 1; None where the server has none.
        chunk_id: The part of its source that it was made from, or empty.
        chunk: Words of that part, where they were asked for and fitted in; maybe cut at the end.
    """

    memory_id: str
    text: str
    kind: str
    mentioned_at: datetime | None
    tags: frozenset[str]
    score: float | None
    speakers: tuple[str, ...] = ()
    document_id: str = ""
    sources: tuple[str, ...] = ()
    semantic: float | None = None
    reranker: float | None = None
    chunk_id: str = ""
    chunk: str = ""


@dataclass(frozen=True)
class RecallOptions:
    """What a recall may be told besides its query; by default nothing.

    Attributes:
        min_semantic: Replaces the server's own floor for `RecalledMemory.semantic`.
        window: Memories of this time are looked for as well; first and last moment, aware.
        chunk_tokens: Bound on the words of all `RecalledMemory.chunk`; 0 leaves them out.
        with_sources: Tell `RecalledMemory.sources` of each conclusion, and with `chunk_tokens` give
            it the words of one of them.
    """

    min_semantic: float | None = None
    window: tuple[datetime, datetime] | None = None
    chunk_tokens: int = 0
    with_sources: bool = False

    def body(self) -> dict[str, Any]:
        """The JSON of what differs from the default."""
        include: dict[str, Any] = {"entities": None}
        if self.chunk_tokens:
            include["chunks"] = {"max_tokens": self.chunk_tokens}
        if self.with_sources:  # ids come whatever the bound on their texts
            include["source_facts"] = {"max_tokens": SOURCE_TOKENS if self.chunk_tokens else 0}
        body: dict[str, Any] = {"include": include}
        if self.min_semantic is not None:
            body["min_scores"] = {"semantic": self.min_semantic}
        if self.window:
            start, end = (moment.isoformat(timespec="seconds") for moment in self.window)
            body["temporal_window"] = {"start": start, "end": end}
        return body


NO_OPTIONS = RecallOptions()


@dataclass(frozen=True)
class MemoryPage:
    """Part of a list of memories, newest first.

    Attributes:
        memories: Those of this page.
        total: How many there are on all pages.
    """

    memories: tuple[RecalledMemory, ...]
    total: int


@dataclass(frozen=True)
class StoredDocument:
    """A document as it can be read back.

    Attributes:
        document_id: Its id.
        text: The lines.
        context: As it was retained.
        timestamp: As it was retained.
        metadata: As it was retained.
        tags: In no particular order.
    """

    document_id: str
    text: str
    context: str
    timestamp: str
    metadata: Mapping[str, str]
    tags: frozenset[str]


@dataclass(frozen=True)
class ListedDocument:
    """What a list tells of a document.

    Attributes:
        document_id: Its id.
        tags: In no particular order.
        timestamp: When its first line was said, as it was retained.
        created_at: When the server wrote it, aware, or None.
        metadata: As it was retained.
    """

    document_id: str
    tags: frozenset[str]
    timestamp: str
    created_at: datetime | None
    metadata: Mapping[str, str]


@dataclass(frozen=True)
class DocumentPage:
    """Part of a list of documents.

    Attributes:
        documents: Those of this page.
        total: How many there are on all pages.
        length: How many rows the server gave; the next page begins after so many.
    """

    documents: tuple[ListedDocument, ...]
    total: int
    length: int


@dataclass(frozen=True)
class Operation:
    """A piece of work in the server's queue, or a record of it.

    A retain is a `batch_retain` under the id that it was sent with, and below that a `retain`,
    which has an id of its own and keeps the whole text as long as the record is there.

    Attributes:
        operation_id: Its id.
        document_id: The document that it writes, or empty.
        status: `pending`, `processing`, `completed`, `failed` or `cancelled`.
        kind: `retain`, `batch_retain`, `consolidation` or the like.
        failure: Why it failed, or failed so far; the key of a sentence, or empty.
        created_at: When it was queued, aware, or None.
        children: Ids of the operations below it, where the server tells.
    """

    operation_id: str
    document_id: str
    status: str
    kind: str = ""
    failure: str = ""
    created_at: datetime | None = None
    children: tuple[str, ...] = ()


@dataclass(frozen=True)
class BankStats:
    """Figures of a whole bank, up to a minute old.

    Attributes:
        documents: Stored documents.
        memories: Facts and conclusions.
        pending_consolidation: Facts that wait for being concluded from.
        failed_consolidation: Facts that this failed for.
    """

    documents: int = 0
    memories: int = 0
    pending_consolidation: int = 0
    failed_consolidation: int = 0


@dataclass(frozen=True)
class ModelUse:
    """Model calls of a whole bank as its server counts them.

    Attributes:
        calls: How many.
        errors: How many of them failed.
        input_tokens: Tokens sent to the model.
        output_tokens: Tokens that it wrote.
    """

    calls: int
    errors: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True)
class Reflection:
    """An answer that the server's model made from memories.

    Attributes:
        text: The answer.
        memories: What it stands on.
    """

    text: str
    memories: tuple[RecalledMemory, ...]


@dataclass(frozen=True)
class RetainItem:
    """One document to be stored.

    Attributes:
        content: Lines of a conversation.
        document_id: Unique for ever, so that sending it again is harmless.
        context: Who is speaking to whom, for the extraction.
        timestamp: ISO 8601 with offset.
        metadata: Strings only; anything else makes the server refuse the whole request.
        tags: All four tags of the chat.
    """

    content: str
    document_id: str
    context: str
    timestamp: str
    metadata: Mapping[str, str]
    tags: Sequence[str]

    def body(self) -> dict[str, Any]:
        """The JSON of this item; `combined` keeps one pool of observations per chat."""
        return {
            "content": self.content,
            "document_id": self.document_id,
            "context": self.context,
            "timestamp": self.timestamp,
            "metadata": dict(self.metadata),
            "tags": strict_tags(self.tags),
            "observation_scopes": "combined",
        }


@dataclass(frozen=True)
class Health:
    """What a check of the connection found.

    Attributes:
        bank_exists: False until the first retain has made the bank.
        version: Hindsight's version, or empty if the server does not tell.
        seconds: Duration of one small request.
    """

    bank_exists: bool
    version: str = ""
    seconds: float = 0.0


def strict_tags(tags: Sequence[str]) -> list[str]:
    """The tags as a list.

    Raises:
        ValueError: They would select more than one chat.
    """
    if isinstance(tags, str) or not tags or not all(tags):
        raise ValueError("a request without tags would reach the whole bank")
    return list(tags)
