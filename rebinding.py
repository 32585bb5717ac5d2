"""What the server holds of a chat under its own ids and under older ones, and how it is moved.

A document keeps its id, which tells under which ids it was stored, and in its lines the pseudonyms
of there.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from .aliases import NUMBER_OF_TAGS, Tags
from .archive import Archive
from .bindings import Bindings
from .clock import Clock
from .hindsight_answers import read_time
from .hindsight_bank import LONG_PAGE
from .hindsight_client import HindsightClient
from .hindsight_types import HindsightError, ListedDocument, RetryLaterError
from .outbox import Outbox
from .scope import Scope, ScopeState
from .transcript import document_prefix

ACTIVE_TIME = timedelta(days=1)
"""What was stored since then shows that somebody still talks there."""

_WORKING = ("pending", "processing")
_ORDER = (("scope:",), ("platform:",), ("sender:", "group:"), ("umo:",))


@dataclass(frozen=True)
class Pair:
    """A chat under its own ids and under older ones."""

    own: Scope
    older: Scope


@dataclass(frozen=True)
class Survey:
    """What is stored of some chats.

    Attributes:
        own: Documents under their own ids.
        older: Documents under the older ones.
        is_active: Somebody still talks under the older ones.
    """

    own: int = 0
    older: int = 0
    is_active: bool = False


@dataclass(frozen=True)
class Moved:
    """What has been moved.

    Attributes:
        documents: Documents with other tags now.
        waiting: What still waits here or on the server, and can be moved once it is stored.
        failure: Why not all was moved: the key of a sentence; else empty.
    """

    documents: int = 0
    waiting: int = 0
    failure: str = ""


class Rebinder:
    """Looks at documents and gives them other tags; its calls raise `HindsightError`.

    Args:
        client: Hindsight.
        archive: What is stored.
        outbox: What is not there yet.
        state: The salt and the personas met.
        bindings: What is bound to what.
        clock: The time.
    """

    def __init__(
        self,
        client: HindsightClient,
        archive: Archive,
        outbox: Outbox,
        state: ScopeState,
        bindings: Bindings,
        clock: Clock,
    ) -> None:
        self._client = client
        self._archive = archive
        self._outbox = outbox
        self._state = state
        self._bindings = bindings
        self._clock = clock

    async def tags_of(self, scope: Scope) -> Tags:
        """The four tags that were stored with the session id of a chat, else the chat's own.

        What a session id was made from is the adapter's business and may have changed; the
        documents tell.
        """
        page = await self._client.document_page(scope.tags[3:], limit=1)
        for document in page.documents:
            tags = [one for start in _ORDER for one in document.tags if one.startswith(start)]
            if len(tags) == len(document.tags) == NUMBER_OF_TAGS and tags[0] == scope.tags[0]:
                return (tags[0], tags[1], tags[2], tags[3])
        return scope.tags

    async def survey(self, pairs: Sequence[Pair]) -> Survey:
        """Counts documents, and looks for signs of life under the older ids."""
        found = Survey()
        for pair in self._of_personas(pairs):
            own = await self._documents(pair.own)
            older = await self._documents(pair.older)
            found = Survey(
                found.own + len(own),
                found.older + len(older),
                found.is_active or self._is_active(pair, own, older),
            )
        return found

    async def move(self, pairs: Sequence[Pair]) -> Moved:
        """Gives what is stored under chats' own ids the older tags."""
        moved = Moved()
        for pair in pairs:
            for one in self._state.personas(pair.own):
                await asyncio.to_thread(self._state.meet_persona, pair.older, one)
        for pair in self._of_personas(pairs):
            moved = await self._moved(moved, pair.own, pair.older, "")
        return moved

    async def move_back(self, pairs: Sequence[Pair]) -> Moved:
        """Gives what was moved the tags back that it was stored with."""
        moved = Moved()
        for pair in self._of_personas(pairs):
            prefix = document_prefix(pair.own.chat)
            moved = await self._moved(moved, pair.older, pair.own, prefix)
        if not moved.failure:
            for pair in pairs:
                await self._note(pair.older, pair.own, is_here=False)
        return moved

    async def count_moved(self, pairs: Sequence[Pair]) -> int:
        """How many documents `move_back` would move."""
        number = 0
        for pair in self._of_personas(pairs):
            prefix = document_prefix(pair.own.chat)
            older = await self._documents(pair.older)
            number += sum(one.document_id.startswith(prefix) for one in older)
        return number

    async def _moved(self, so_far: Moved, source: Scope, target: Scope, prefix: str) -> Moved:
        """What is moved with one more memory; after a failure nothing is tried."""
        documents, waiting, failure = so_far.documents, so_far.waiting, so_far.failure
        if failure:
            return so_far
        try:
            async with self._changing(source, target):
                for document_id in await self._movable(source, prefix):
                    documents += await self._client.retag_document(document_id, target.tags)
                await self._archive.delete_profile(source)
                waiting += 0 if prefix else await self._waiting(source)
        except HindsightError as error:
            failure = error.reason
        return Moved(documents, waiting, failure)

    @contextlib.asynccontextmanager
    async def _changing(self, source: Scope, target: Scope) -> AsyncIterator[None]:
        """Meanwhile nothing is erased from either memory; it would escape, or be thought gone."""
        first, second = sorted((source.chat, target.chat))
        async with self._archive.changing(first), self._archive.changing(second):
            for one in (first, second):
                if await self._outbox.held(one):
                    raise RetryLaterError("erasing")
            if target.own:
                await self._note(target, source, is_here=True)
            yield

    async def _note(self, older: Scope, own: Scope, *, is_here: bool) -> None:
        """Notes, before anything is moved, whose pseudonyms there will be."""
        await asyncio.to_thread(self._bindings.note_moved, older, own.room, here=is_here)

    async def _movable(self, source: Scope, prefix: str) -> list[str]:
        """Ids of a memory's documents, without those that are to be deleted."""
        erased = {one for erasure in await self._outbox.erasures() for one in erasure.documents}
        ids = [one.document_id for one in await self._documents(source)]
        return [one for one in ids if one.startswith(prefix) and one not in erased]

    async def _waiting(self, source: Scope) -> int:
        prefix = document_prefix(source.chat)
        queued = [one for status in _WORKING for one in await self._client.operations(status)]
        on_server = {one.document_id for one in queued if one.document_id.startswith(prefix)}
        return len(await self._outbox.windows_of(source.chat)) + len(on_server)

    async def _documents(self, scope: Scope) -> list[ListedDocument]:
        found: list[ListedDocument] = []
        offset = 0
        while True:
            page = await self._client.document_page(scope.tags, offset=offset, limit=LONG_PAGE)
            found += page.documents
            offset += page.length
            if not page.length or offset >= page.total:
                return found

    def _is_active(
        self, pair: Pair, own: Sequence[ListedDocument], older: Sequence[ListedDocument]
    ) -> bool:
        """Whether there is something new under the older ids since there is a newer chat."""
        prefix = document_prefix(pair.own.chat)
        stayed = [one for one in older if not one.document_id.startswith(prefix)]
        last, first = max(_times(stayed), default=None), min(_times(own), default=None)
        if last is None or first is None:
            return False
        return last > first and last > self._clock.local() - ACTIVE_TIME

    def _of_personas(self, pairs: Sequence[Pair]) -> Iterator[Pair]:
        """Chats, and the memory of each persona in them."""
        hasher = self._state.hasher
        assert hasher is not None  # a scope came from it
        for pair in pairs:
            yield pair
            met = dict.fromkeys(
                (*self._state.personas(pair.own), *self._state.personas(pair.older))
            )
            for one in met:
                yield Pair(hasher.persona(pair.own, "", one), hasher.persona(pair.older, "", one))


def _times(documents: Iterable[ListedDocument]) -> Iterator[datetime]:
    """When each was said, as far as that is known."""
    for one in documents:
        when = read_time(one.timestamp) or one.created_at
        if when:
            yield when
