"""The JSON of Hindsight's answers -> plain values.

Nothing is taken for granted: absent is null, and what has the wrong type is as good as absent.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from .hindsight_types import (
    BankStats,
    ListedDocument,
    ModelUse,
    Operation,
    RecalledMemory,
    StoredDocument,
)

_REFUSED = re.compile(r"Error code: 40[123]\b|AuthError|AuthenticationError|PermissionDenied")
_LIMITED = re.compile(r"Error code: 429\b|RateLimit")


def read_memory(raw: Any) -> RecalledMemory | None:
    """A memory of a recall or a list; None where it has no text."""
    if not isinstance(raw, Mapping) or not isinstance(raw.get("text"), str):
        return None
    scores = as_dict(raw.get("scores"))
    sources = raw.get("source_fact_ids") or raw.get("source_memory_ids")
    return RecalledMemory(
        memory_id=str(raw.get("id") or ""),
        text=raw["text"],
        kind=str(raw.get("type") or raw.get("fact_type") or "world"),
        mentioned_at=read_time(raw.get("mentioned_at")),
        tags=read_tags(raw),
        score=read_number(scores.get("final")),
        speakers=tuple(str(as_dict(raw.get("metadata")).get("speakers") or "").split()),
        document_id=str(raw.get("document_id") or ""),
        sources=tuple(map(str, as_list(sources))),
        semantic=read_number(scores.get("semantic")),
        reranker=read_number(scores.get("reranker")),
        chunk_id=str(raw.get("chunk_id") or ""),
    )


def read_recall(raw: Mapping[str, Any], tags: Collection[str]) -> list[RecalledMemory]:
    """What a recall found that carries all the tags, each with words that it was made from."""
    wanted = frozenset(tags)

    def ours(rows: Iterable[Any]) -> list[RecalledMemory]:
        return [memory for memory in map(read_memory, rows) if memory and wanted <= memory.tags]

    facts = {fact.memory_id: fact for fact in ours(as_dict(raw.get("source_facts")).values())}
    found, chunks = ours(as_list(raw.get("results"))), as_dict(raw.get("chunks"))

    def words_of(memory: RecalledMemory) -> str:
        """Its own: not every server limits the chunks of an answer to the chat."""
        for one in (memory, *(facts[key] for key in memory.sources if key in facts)):
            text = as_dict(chunks.get(one.chunk_id)).get("text") if one.chunk_id else None
            if isinstance(text, str):
                return text
        return ""

    return [replace(memory, chunk=words_of(memory)) for memory in found]


def read_document(document_id: str, raw: Mapping[str, Any]) -> StoredDocument:
    """A document with its text."""
    return StoredDocument(
        document_id=document_id,
        text=str(raw.get("original_text") or ""),
        context=str(as_dict(raw.get("retain_params")).get("context") or ""),
        timestamp=_event_time(raw),
        metadata=_metadata(raw),
        tags=read_tags(raw),
    )


def read_payload(raw: Mapping[str, Any]) -> StoredDocument | None:
    """The document that a retain was to write; None where its record does not tell one."""
    contents = as_list(as_dict(raw.get("task_payload")).get("contents"))
    item = as_dict(contents[0]) if len(contents) == 1 else {}
    if not isinstance(item.get("content"), str) or not item.get("document_id"):
        return None
    metadata = as_dict(item.get("metadata"))
    return StoredDocument(
        document_id=str(item["document_id"]),
        text=item["content"],
        context=str(item.get("context") or ""),
        timestamp=str(item.get("event_date") or item.get("timestamp") or ""),
        metadata={key: str(value) for key, value in metadata.items()},
        tags=read_tags(item),
    )


def read_listed(raw: Any) -> ListedDocument | None:
    """A document of a list, which holds no text; None where it has no id."""
    if not isinstance(raw, Mapping) or not raw.get("id"):
        return None
    return ListedDocument(
        document_id=str(raw["id"]),
        tags=read_tags(raw),
        timestamp=_event_time(raw),
        created_at=read_time(raw.get("created_at")),
        metadata=_metadata(raw),
    )


def read_operation(raw: Any) -> Operation | None:
    """An operation of a list, or one with its children; None where it is none."""
    if not isinstance(raw, Mapping):
        return None
    message = str(raw.get("error_message") or "")
    children = map(as_dict, as_list(raw.get("child_operations")))
    return Operation(
        operation_id=str(raw.get("operation_id") or raw.get("id") or ""),
        document_id=str(raw.get("document_id") or ""),
        status=str(raw.get("status") or ""),
        kind=str(raw.get("operation_type") or raw.get("task_type") or ""),
        failure=_failure(message) if message else "",
        created_at=read_time(raw.get("created_at")),
        children=tuple(str(one["operation_id"]) for one in children if one.get("operation_id")),
    )


def read_stats(raw: Mapping[str, Any]) -> BankStats:
    """The figures of a bank; what is not told is 0."""
    return BankStats(
        documents=read_count(raw.get("total_documents")),
        memories=read_count(raw.get("total_nodes")),
        pending_consolidation=read_count(raw.get("pending_consolidation")),
        failed_consolidation=read_count(raw.get("failed_consolidation")),
    )


def read_use(raw: Mapping[str, Any]) -> ModelUse | None:
    """What a model was used for; None where the server does not keep count."""
    buckets = [as_dict(one) for one in as_list(raw.get("buckets"))]
    if not buckets:
        return None
    sums: Counter[str] = Counter()
    for bucket in buckets:
        sums["calls"] += read_count(bucket.get("total"))
        sums["errors"] += read_count(as_dict(bucket.get("statuses")).get("error"))
        tokens = as_dict(bucket.get("tokens"))
        sums["input"] += read_count(tokens.get("input"))
        sums["output"] += read_count(tokens.get("output"))
    return ModelUse(sums["calls"], sums["errors"], sums["input"], sums["output"])


def read_tags(raw: Mapping[str, Any]) -> frozenset[str]:
    """The tags of anything that has some."""
    return frozenset(map(str, as_list(raw.get("tags"))))


def read_time(raw: Any) -> datetime | None:
    """Reads an ISO time; one without offset is UTC, as everywhere in Hindsight."""
    try:
        moment = datetime.fromisoformat(raw)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def read_number(raw: Any) -> float | None:
    """A finite number, or None for anything else."""
    if not isinstance(raw, int | float) or isinstance(raw, bool):
        return None
    try:
        return float(raw) if math.isfinite(raw) else None
    except OverflowError:
        return None


def read_count(raw: Any) -> int:
    """A number of things; 0 where it is none."""
    return max(int(read_number(raw) or 0), 0)


def as_list(raw: Any) -> list[Any]:
    """A list, empty where it is none."""
    return raw if isinstance(raw, list) else []


def as_dict(raw: Any) -> Mapping[str, Any]:
    """A mapping, empty where it is none."""
    return raw if isinstance(raw, dict) else {}


def _event_time(raw: Mapping[str, Any]) -> str:
    """When it was said, as it was retained; where that is unknown, when it was stored."""
    params = as_dict(raw.get("retain_params"))
    return str(params.get("event_date") or raw.get("created_at") or "")


def _metadata(raw: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(value) for key, value in as_dict(raw.get("document_metadata")).items()}


def _failure(message: str) -> str:
    """The key of a sentence for why it failed; the message itself holds paths of the server."""
    if _REFUSED.search(message):
        return "model_refused"
    return "model_limited" if _LIMITED.search(message) else "extraction_failed"
