"""Where a chat's past can be read, the best source first.

Everything is read through AstrBot; what answers is handed in, and says None where it fails.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Any, Protocol

from .history import (
    PastMessage,
    Place,
    from_conversation,
    from_onebot,
    from_row,
    resolve,
)

PAGE = 100
MAX_PAGES = 300
"""So many pages are read at most, also where everything in them is too young."""


class Host(Protocol):
    """What AstrBot and the platform tell of a chat's past; None where they do not."""

    async def onebot(self, action: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """An answer of the platform."""

    async def rows(self, platform_id: str, user_id: str, page: int) -> Sequence[Any] | None:
        """A page of AstrBot's message history; the first one is the newest."""

    async def conversations(self, umo: str) -> Sequence[Any] | None:
        """The chat's conversations with the model, the newest first."""


@dataclass(frozen=True)
class Span:
    """Which messages are wanted.

    Attributes:
        count: So many at most, the youngest.
        since: None that are older (Unix seconds).
        until: None that are as young or younger.
    """

    count: int
    since: float
    until: float


@dataclass(frozen=True)
class History:
    """What was read.

    Attributes:
        source: The key of the source's name.
        messages: In order.
    """

    source: str
    messages: list[PastMessage] = field(default_factory=list)


Pages = AsyncIterator[list[PastMessage]]


async def read_history(host: Host, place: Place, span: Span, zone: tzinfo | None) -> History | None:
    """Reads a chat's past from the best source that knows it.

    Args:
        host: Who tells.
        place: The chat.
        span: Which messages.
        zone: AstrBot's timezone.

    Returns:
        What was read; None where no source knows this chat.
    """
    sources: list[tuple[str, Callable[[], Pages]]] = []
    if place.platform == "aiocqhttp":
        sources.append(("source_onebot", lambda: _onebot(host, place)))
    sources.append(("source_rows", lambda: _rows(host, place)))
    if place.kind == "private":
        sources.append(("source_conversations", lambda: _conversations(host, place, zone)))
    known: History | None = None
    for source, pages in sources:
        messages = await _collect(pages(), span)
        if messages:
            return History(source, messages)
        if messages is not None:
            known = known or History(source)
    return known


async def _collect(pages: Pages, span: Span) -> list[PastMessage] | None:
    """The wanted messages, in order; None where there is no page at all."""
    found: list[PastMessage] = []
    is_known = False
    async for page in pages:
        is_known = True
        wanted = [one for one in page if _is_young_enough(one, span) and _is_old_enough(one, span)]
        found = wanted + found
        if len(found) >= span.count or not any(_is_young_enough(one, span) for one in page):
            break
    if not is_known:
        return None
    ordered = sorted(found, key=lambda one: one.time or 0.0)
    return resolve(ordered[-span.count :])


def _is_young_enough(message: PastMessage, span: Span) -> bool:
    return (message.time or 0.0) >= span.since


def _is_old_enough(message: PastMessage, span: Span) -> bool:
    """Whether it was surely said before; one without a time of its own may not have been."""
    return max(message.time or 0.0, message.latest or 0.0) < span.until


async def _onebot(host: Host, place: Place) -> Pages:
    """Pages of the platform's own history, the newest first.

    What a platform makes of the anchor differs: it is asked for what is older in all the words
    that there are, and what is known already is passed over.
    """
    is_group = place.kind == "group"
    action = "get_group_msg_history" if is_group else "get_friend_msg_history"
    chat_id = place.group_id if is_group else place.person_id
    if not (chat_id.isdecimal() and place.self_id.isdecimal()):
        return
    asked = {
        "group_id" if is_group else "user_id": int(chat_id),
        "self_id": int(place.self_id),
        "count": PAGE,
        "reverse_order": True,
        "reverseOrder": True,
        "parse_mult_msg": False,
        "disable_get_url": True,
    }
    anchor: dict[str, Any] = {}
    anchor_time = math.inf
    known: set[Any] = set()
    for _ in range(MAX_PAGES):
        answer = await host.onebot(action, asked | anchor)
        entries = _new_entries(answer, known)
        oldest = min(entries, key=lambda one: one["time"], default=None)
        if oldest is None or oldest["time"] > anchor_time:
            return
        anchor_time = oldest["time"]
        anchor = {
            "message_seq": oldest.get("message_seq") or oldest["message_id"],
            "message_id": oldest["message_id"],
        }
        yield [one for entry in entries if (one := from_onebot(entry, place))]


def _new_entries(answer: Mapping[str, Any] | None, known: set[Any]) -> list[dict[str, Any]]:
    """Entries that were not in a page before."""
    entries = answer.get("messages") if isinstance(answer, dict) else None
    new: list[dict[str, Any]] = []
    for entry in entries if isinstance(entries, list) else ():
        is_entry = isinstance(entry, dict) and isinstance(entry.get("time"), int | float)
        if is_entry and entry.get("message_id") not in {None, *known}:
            known.add(entry["message_id"])
            new.append(entry)
    return new


async def _rows(host: Host, place: Place) -> Pages:
    """Pages of AstrBot's message history, the newest first."""
    is_web = place.platform == "webchat"
    platform_id = "webchat" if is_web else place.instance
    user_id = place.session_id.rpartition("!")[2] if is_web else place.umo
    for page in range(1, MAX_PAGES):
        rows = await host.rows(platform_id, user_id, page)
        if not rows:
            return
        yield [one for row in rows if (one := from_row(row, place))]


async def _conversations(host: Host, place: Place, zone: tzinfo | None) -> Pages:
    """The chat's conversations with the model, each a page."""
    for conversation in await host.conversations(place.umo) or ():
        yield from_conversation(conversation, place, zone)
