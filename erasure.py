"""What must vanish: lines, a person's words, a whole chat, and what is written late.

Hindsight cannot delete a single memory for good: an invalidated fact is still read from its
source, and comes back when the source is written again. So lines are taken out of the source, the
rest is stored as a new document, and the old one is deleted.

What is wished is on disk before the server is asked for anything, in one transaction with what it
changes there. A *round* makes the server agree with the disk; a command does the first ones, the
background goes on with them over outages and restarts until nothing is found any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .archive import Archive, SourceLine
from .batches import Phase
from .clock import Clock
from .delivery import Delivery
from .edits import Edit
from .hindsight_bank import RETAIN
from .hindsight_client import HindsightClient
from .hindsight_types import (
    AccessRefusedError,
    HindsightError,
    Operation,
    RequestRejectedError,
)
from .intake import DISK_ERRORS
from .outbox import Outbox
from .scope import Scope
from .transcript import Document, Line, keep
from .wishes import Edited, Erasure

WIPE_SECONDS = 120.0
WIPE_PAUSE_SECONDS = 2.0
BACKGROUND_PAUSE_SECONDS = 10.0
CLEAN_ROUNDS = 2
"""So often in a row nothing must be found."""
LATE_ROUNDS = 60
"""The same for ten minutes in the background: a retain that was cancelled while the server's
model was at it still writes its document when the model answers."""

REST_SECONDS = 3600.0
"""Between two looks at records that the server would run again and does not let us delete."""

_WORKING = ("pending", "processing")
_FAILED = "failed"
_ENDED = ("completed", _FAILED, "cancelled")
_ALL = ""
"""Every document of a chat."""
_RECORDS = 2
"""So many records a retain has: its own, and that of the batch around it."""


@dataclass(frozen=True)
class Removed:
    """What an erasure has done.

    Attributes:
        lines: Lines taken out of documents on the server.
        documents: Documents rewritten or deleted there.
        waiting: Lines or turns taken out of what waits here.
        unfinished: Retains that the server is still working on; what they write is looked at in
            the background.
        is_done: False where the rest is done in the background.
        failure: Why, where the server did not answer as it should: the key of a sentence.
        is_unchecked: The server does not let its queue be seen.
    """

    lines: int = 0
    documents: int = 0
    waiting: int = 0
    unfinished: int = 0
    is_done: bool = True
    failure: str = ""
    is_unchecked: bool = False

    def __add__(self, other: Removed) -> Removed:
        """What both have done; it is done where both are."""
        return Removed(
            self.lines + other.lines,
            self.documents + other.documents,
            self.waiting + other.waiting,
            self.unfinished + other.unfinished,
            self.is_done and other.is_done,
            self.failure or other.failure,
            self.is_unchecked or other.is_unchecked,
        )


@dataclass(frozen=True)
class _Round:
    """What one round has found and done.

    Attributes:
        working: Retains that the server is working on and that may write what is to vanish.
        lines: Keys of the single lines that it looked for.
        edited: What was taken out of documents.
        deleted: How many documents were deleted.
        is_unchecked: The server's queue was not seen.
        is_left: A record stays that the server could run again.
    """

    working: int
    edited: Edited
    deleted: int
    is_unchecked: bool
    lines: Collection[str] = ()
    is_left: bool = False

    @property
    def is_clean(self) -> bool:
        return not self.working and not self.deleted


@dataclass
class _Progress:
    """How far the erasure of a chat is, as far as this run knows.

    Attributes:
        quiet_rounds: Rounds in which nothing was seen, one after the other.
        checked: Documents that were read, or None before the first.
        searched: Documents whose records were looked for.
        rests_until: No round before, in monotonic seconds.
    """

    quiet_rounds: int = 0
    checked: set[str] | None = None
    searched: set[str] = field(default_factory=set)
    rests_until: float = -math.inf


class Eraser:
    """Takes lines, people and whole chats out of what is stored.

    A method raises DISK_ERRORS where the disk fails; where it is the wish that could not be
    written, nothing has changed.

    Args:
        client: Hindsight.
        archive: What is stored.
        outbox: What is not there yet, and what must vanish.
        delivery: Takes part in what changes the queue.
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
        self._progress: defaultdict[str, _Progress] = defaultdict(_Progress)

    async def remove_lines(self, scope: Scope, lines: Sequence[SourceLine]) -> Removed:
        """Takes lines out of what is stored and what waits; the profile goes too, which keeps them.

        Raises:
            HindsightError: The server did not answer before anything was changed.
        """
        changed: dict[str, Line | None] = dict.fromkeys(line.text for line in lines)
        return await self._edit_lines(scope, lines, functools.partial(_with_changes, changed))

    async def _edit_lines(self, scope: Scope, lines: Sequence[SourceLine], edit: Edit) -> Removed:
        """Edits the documents in which some lines stand; the profile goes."""
        async with self._archive.changing(scope.chat):
            ids = sorted({line.document_id for line in lines} - {""})
            found = [await self._archive.document(scope, one) for one in ids]
            documents = [document for document in found if document]
            edited = await self._begin(
                scope, lambda: self._delivery.edit_chat(self._wish(scope), edit, documents)
            )
            return await self._first_round(scope.chat, edited)

    async def correct(self, scope: Scope, lines: Sequence[SourceLine], words: str) -> Removed:
        """Puts other words in the place of the first of some lines, and takes the others out.

        Raises:
            HindsightError: The server did not answer before anything was changed.
        """
        first = Line(lines[0].text)
        new = first.saying(words)
        gone: dict[str, Line | None] = {one.text: None for one in lines if one.text != new.text}
        changed = gone | {first.text: new}
        return await self._edit_lines(scope, lines, functools.partial(_with_changes, changed))

    async def remove_documents(self, scope: Scope, document_ids: Collection[str]) -> Removed:
        """Erases whole documents of a chat, stored or not, with the profile and their records."""
        async with self._archive.changing(scope.chat):
            wish = replace(self._wish(scope), documents=tuple(document_ids))
            await self._begin(scope, lambda: self._outbox.wish(wish))
            return await self._first_round(scope.chat, Edited(documents=len(document_ids)))

    @contextlib.asynccontextmanager
    async def passing(self, scope: Scope) -> AsyncIterator[None]:
        """What is stored of a chat meanwhile vanishes afterwards, even if the bot is killed."""
        async with self._archive.changing(scope.chat):
            wish = self._wish(scope, whole=True)
            await self._begin(scope, lambda: self._delivery.drop_chat(wish))
            yield

    async def remove_person(self, scope: Scope, pseudonym: str) -> Removed:
        """Takes a person's lines, and the bot's answers to them, out of everything of a chat.

        Nothing of the chat is delivered until then.
        """
        async with self._archive.changing(scope.chat):
            wish = self._wish(scope, people=(pseudonym,))
            edited = await self._begin(scope, lambda: self._delivery.edit_chat(wish, wish.staying))
            return await self._first_round(scope.chat, edited)

    async def wipe(self, scope: Scope) -> Removed:
        """Erases everything of a chat: what waits, what is queued on the server, what is stored.

        What is not done after two minutes goes on in the background, and nothing of the chat is
        delivered until then.
        """
        async with self._archive.changing(scope.chat):
            wish = self._wish(scope, whole=True)
            waiting = await self._begin(scope, lambda: self._delivery.drop_chat(wish))
            try:
                return await self._wipe(scope.chat, waiting)
            except HindsightError as error:
                return Removed(waiting=waiting, is_done=False, failure=error.reason)

    async def withdraw(self, scope: Scope, message: str) -> None:
        """Takes a message that was withdrawn, and the answer to it, out of everything of a chat.

        What is stored of it is taken out in the background: nobody waits for it. Nothing else is
        waited for either, so that a kill cannot come between.

        Args:
            scope: The chat.
            message: The message's keyed hash.
        """
        await self._begin(
            scope, lambda: self._delivery.withdraw(self._wish(scope), message, self._clock.unix())
        )

    async def end_import(self, scope: Scope, batch: int, phase: Phase) -> Removed:
        """Drops what waits of an import and, where it is undone, deletes what it has brought."""
        async with self._archive.changing(scope.chat):
            wish = self._wish(scope)
            edited = await self._begin(scope, lambda: self._outbox.end_import(wish, batch, phase))
            return await self._first_round(scope.chat, edited)

    async def cut_off(self, scope: Scope, pseudonym: str) -> None:
        """Keeps what a person has said, and is not answered yet, from being stored."""
        await self._outbox.cut_off(scope.chat, pseudonym, self._clock.monotonic())

    async def run(self) -> None:
        """Completes erasures for ever; ends by cancellation."""
        while True:
            self._wake.clear()
            erasures = await self._erasures()
            if erasures == []:
                await self._wake.wait()
                await self._clock.sleep(BACKGROUND_PAUSE_SECONDS)  # a command is at work on it
                continue
            for erasure in erasures or ():
                with contextlib.suppress(HindsightError, *DISK_ERRORS):
                    await self._continue(erasure.chat)
            await self._clock.sleep(BACKGROUND_PAUSE_SECONDS)

    def _wish(self, scope: Scope, *, people: tuple[str, ...] = (), whole: bool = False) -> Erasure:
        return Erasure(
            scope.chat,
            scope.tags,
            self._archive.profile_id(scope),
            people=people,
            whole=whole,
            at=self._clock.monotonic(),
            said_before=self._clock.unix(),
        )

    async def _begin[Result](self, scope: Scope, write: Callable[[], Awaitable[Result]]) -> Result:
        """Puts a wish on disk; the background knows of it even if the caller is cancelled."""
        self._progress.pop(scope.chat, None)
        try:
            return await write()
        finally:
            self._wake.set()

    async def _first_round(self, chat: str, edited: Edited) -> Removed:
        """The round of a command, with what it has done on disk already."""
        try:
            done = await self._round(chat)
        except HindsightError as error:
            return Removed(
                edited.lines, edited.documents, edited.waiting, is_done=False, failure=error.reason
            )
        return Removed(
            edited.lines + done.edited.lines,
            edited.documents + done.edited.documents,
            edited.waiting,
            done.working,
            is_done=await self._is_done(chat, done),
            is_unchecked=done.is_unchecked,
        )

    async def _wipe(self, chat: str, waiting: int) -> Removed:
        deadline = self._clock.monotonic() + WIPE_SECONDS
        deleted, clean, is_unchecked = 0, 0, False
        done = _Round(0, Edited(), 0, is_unchecked=False)
        while clean < CLEAN_ROUNDS and self._clock.monotonic() <= deadline:
            done = await self._round(chat)
            deleted, is_unchecked = deleted + done.deleted, done.is_unchecked
            clean = clean + 1 if done.is_clean else 0
            await self._clock.sleep(WIPE_PAUSE_SECONDS)
        if clean >= CLEAN_ROUNDS:
            await self._end_wish(chat, done.lines)
        return Removed(
            documents=deleted,
            waiting=waiting,
            is_done=clean >= CLEAN_ROUNDS,
            is_unchecked=is_unchecked,
        )

    async def _is_done(self, chat: str, done: _Round) -> bool:
        """Whether the server agrees with what was wished; then the chat is delivered again."""
        erasure = await self._erasure(chat)
        if erasure and erasure.is_held:
            if not (done.is_clean if erasure.whole else not done.working):
                return False
            await self._end_wish(chat, done.lines)
        return True

    async def _end_wish(self, chat: str, lines: Collection[str]) -> None:
        """Lets a chat be delivered again; an eye is kept on what may be written late."""
        await self._outbox.end_wish(chat, lines)
        self._progress[chat].checked = None
        self._delivery.wake()

    async def _continue(self, chat: str) -> None:
        """One round in the background; a server that fails is asked again later."""
        if self._progress[chat].rests_until > self._clock.monotonic():
            return
        async with self._archive.lock(chat):
            # Read again: a command may have completed it, and what came after must stay.
            erasure = await self._erasure(chat)
            if erasure is None:
                return
            is_last = self._progress[chat].quiet_rounds >= LATE_ROUNDS - 1
            done = await self._round(chat, is_last=is_last)
            if erasure.is_held:
                await self._is_done(chat, done)
            elif is_last and done.is_left:  # as long as it is known here, nobody tries it again
                self._progress[chat].rests_until = self._clock.monotonic() + REST_SECONDS
            elif is_last and done.is_clean:
                self._progress.pop(chat, None)
                await self._outbox.end_erasure(chat)

    async def _round(self, chat: str, *, is_last: bool = False) -> _Round:
        """Makes the server agree with what is on disk of a chat.

        Args:
            chat: The chat's hash.
            is_last: Records that were looked for are looked for once more.
        """
        erasure = await self._erasure(chat)
        if erasure is None:
            return _Round(0, Edited(), 0, is_unchecked=False)
        working = await self._working(erasure)
        erasure = await self._cancel(erasure, working or ())
        stored = await self._archive.document_ids(erasure.tags)
        edited, lines = Edited(), erasure.lines.keys()
        if (erasure.people or lines) and not erasure.whole:
            edited = await self._rewrite(erasure, stored)
            erasure = await self._erasure(chat) or erasure
        gone = [one for one in stored if erasure.whole or one in erasure.documents]
        if strange := [one for one in gone if not erasure.is_useless(one)]:
            # Moved here from other ids: the server's records of them are known by nothing else.
            await self._outbox.note_documents(chat, strange)
            erasure = await self._erasure(chat) or erasure
        for document_id in gone:
            await self._client.delete_document(document_id)
        if gone or erasure.whole or not self._progress[chat].quiet_rounds:
            await self._client.delete_profile(erasure.profile)
        busy = {one.document_id for one in working or ()}
        is_left = await self._forget_records(erasure, gone, busy, is_last=is_last)
        done = _Round(len(working or ()), edited, len(gone), working is None, lines, is_left)
        progress = self._progress[chat]
        progress.quiet_rounds = progress.quiet_rounds + 1 if done.is_clean else 0
        return done

    async def _rewrite(self, erasure: Erasure, stored: Sequence[str]) -> Edited:
        """Queues what stays of documents in which something stands that is to vanish.

        They are stored, or the server has failed on them and would store them when it is told to
        try again: then they stand in its record.
        """
        progress = self._progress[erasure.chat]
        if progress.checked is None:
            progress.checked = set(erasure.documents)
        known = progress.checked
        failed = await self._failed(erasure)
        new = [one for one in (*stored, *failed) if one not in known and erasure.may_stand_in(one)]
        found: list[Document] = []
        for document_id in new:
            document = await self._archive.read(erasure.tags, document_id)
            if document is None and document_id in failed:
                document = await self._archive.read_record(erasure.tags, failed[document_id])
            if document and erasure.staying(document.lines) != list(document.lines):
                found.append(document)
        edited = Edited()
        if found:
            edited = await self._outbox.replace_documents(erasure, erasure.staying, found)
        known.update(new)
        return edited

    async def _failed(self, erasure: Erasure) -> dict[str, str]:
        """Documents of the chat that the server has failed on, with their operations' ids."""
        with contextlib.suppress(AccessRefusedError, RequestRejectedError):
            failed = await self._client.operations(_FAILED, kind=RETAIN)
            return {
                o.document_id: o.operation_id for o in failed if erasure.concerns(o.document_id)
            }
        return {}

    async def _working(self, erasure: Erasure) -> list[Operation] | None:
        """Retains in the server's queue that may write what is to vanish.

        None where the server lets nobody see it: what is stored can be deleted all the same.
        """
        try:
            found = await self._operations(_WORKING)
        except AccessRefusedError as error:
            if error.status != _FORBIDDEN:
                raise
            return None
        return [one for one in found if erasure.concerns(one.document_id)]

    async def _cancel(self, erasure: Erasure, working: Collection[Operation]) -> Erasure:
        """Cancels what would write nothing but what is to vanish, and notes its documents."""
        useless = [one for one in working if erasure.is_useless(one.document_id)]
        if new := {one.document_id for one in useless} - set(erasure.documents):
            await self._outbox.note_documents(erasure.chat, new)
        for operation in useless:
            await self._client.cancel(operation)
        return await self._erasure(erasure.chat) or erasure

    async def _forget_records(
        self, erasure: Erasure, gone: Sequence[str], busy: set[str], *, is_last: bool
    ) -> bool:
        """Deletes the server's records of what wrote the documents: they hold the whole text.

        The list of a large bank is long: those of a document are looked for once, again where
        something of it was seen since, and all once more at the end.

        Args:
            erasure: What is to vanish.
            gone: Documents that were deleted just now.
            busy: Documents that the server is still working on.
            is_last: All are looked for.

        Returns:
            Whether one stays that the server could run again.
        """
        searched = self._progress[erasure.chat].searched
        searched.difference_update(gone, busy)
        every = {*erasure.documents, *([_ALL] if erasure.whole else ())}
        wanted = {_ALL} if is_last else every.difference(searched, busy) | {*gone}
        left: set[str] = set()
        if wanted:
            with contextlib.suppress(AccessRefusedError, RequestRejectedError):
                left = await self._forget_operations(erasure, wanted)
        if new := left - {*erasure.documents}:
            await self._outbox.note_documents(erasure.chat, new)
        searched |= wanted
        return bool(left)

    async def _forget_operations(self, erasure: Erasure, wanted: Collection[str]) -> set[str]:
        """Deletes records; returns the documents of those that stay and could be run again."""
        enough = functools.partial(_has_all, wanted)
        left: set[str] = set()
        for status in _ENDED:
            for one in await self._client.operations(status, enough=enough):
                is_useless = erasure.is_useless(one.document_id)
                if is_useless and not await self._is_forgotten(one):
                    left.add(one.document_id)
        return left

    async def _is_forgotten(self, operation: Operation) -> bool:
        """Deletes the record of an operation; False where it stays and could be run again."""
        try:
            return (
                await self._client.forget_operation(operation.operation_id)
                or operation.status != _FAILED
            )
        except (AccessRefusedError, RequestRejectedError):
            return operation.status != _FAILED

    async def _operations(self, statuses: Sequence[str]) -> list[Operation]:
        return [one for status in statuses for one in await self._client.operations(status)]

    async def _erasure(self, chat: str) -> Erasure | None:
        return next((one for one in await self._outbox.erasures() if one.chat == chat), None)

    async def _erasures(self) -> list[Erasure] | None:
        """Erasures on disk; None while the disk fails, which the delivery reports."""
        try:
            return await self._outbox.erasures()
        except DISK_ERRORS:
            return None


_FORBIDDEN = 403


def _has_all(documents: Collection[str], found: Sequence[Operation]) -> bool:
    """Whether these are all records of some documents."""
    numbers = Counter(one.document_id for one in found)
    return all(numbers[one] >= _RECORDS for one in documents if one) and _ALL not in documents


def _with_changes(changed: Mapping[str, Line | None], lines: Sequence[Line]) -> list[Line]:
    """Lines with others in the place of some, and without some."""
    said = [changed.get(line.text) or line for line in lines]
    return keep(said, lambda line, _: changed.get(line.text, line) is not None)
