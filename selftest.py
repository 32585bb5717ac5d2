"""Looks whether a bank is in order; on request tries it out with chats that nobody has.

The look changes nothing and costs nothing. The trial stores a sentence in each of two made-up
chats, looks for them from both, and erases them; that is wished before anything is stored, so that
nothing stays even if the bot is killed meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from .archive import Archive
from .clock import Clock
from .commands_operating import BANK_SETTINGS
from .erasure import Eraser
from .failures import FailureWatch
from .hindsight_client import HindsightClient
from .hindsight_types import AccessRefusedError, HindsightError, ModelUse, RetainItem
from .scope import MADE_UP, Hasher, Scope, chat_tags
from .texts import Texts
from .transcript import Header, Speaker, Utterance, build_item, new_document_id

MAX_SKEW_SECONDS = 60.0

_SENTENCES = {"private": "self_test_private", "group": "self_test_group"}


@dataclass(frozen=True)
class Finding:
    """One line of the result.

    Attributes:
        text: What was found.
        advice: What to do about it, or empty.
        is_good: Whether it is as it should be; None where that could not be found out.
    """

    text: str
    advice: str = ""
    is_good: bool | None = True

    def line(self) -> str:
        """As it is shown."""
        sign = {True: "✓", False: "✗", None: "?"}[self.is_good]
        return "\n".join(
            filter(None, [f"{sign} {self.text}", self.advice and f"  → {self.advice}"])
        )


@dataclass
class _Trial:
    """What a trial has found so far, for each of the two chats.

    Attributes:
        chats: The chats.
        items: What is stored in each.
        found: What each has found, of all that was stored.
    """

    chats: tuple[Scope, ...]
    items: tuple[RetainItem, ...]
    found: tuple[set[str], ...] = ()

    @property
    def own(self) -> int:
        """How many chats find what is theirs."""
        pairs = zip(self.items, self.found, strict=False)
        return sum(item.document_id in found for item, found in pairs)

    @property
    def others(self) -> int:
        """How many chats find what is the other's."""
        pairs = zip(reversed(self.items), self.found, strict=False)
        return sum(item.document_id in found for item, found in pairs)


class SelfTest:
    """Tests a bank.

    Args:
        client: Hindsight.
        hasher: Makes up chats.
        archive: What is stored.
        eraser: Cleans up.
        failures: What the server has failed on.
        clock: The time.
    """

    def __init__(
        self,
        client: HindsightClient,
        hasher: Hasher,
        archive: Archive,
        eraser: Eraser,
        failures: FailureWatch,
        clock: Clock,
    ) -> None:
        self._client = client
        self._hasher = hasher
        self._archive = archive
        self._eraser = eraser
        self._failures = failures
        self._clock = clock
        self._trying = asyncio.Lock()

    async def look(self, texts: Texts) -> list[Finding]:
        """What can be seen without changing anything."""
        looks = (self._tags, self._settings, self._skew, self._extraction)
        findings: list[Finding] = []
        for look in looks:
            try:
                findings += await look(texts)
            except HindsightError as error:
                name = texts(f"self_test_{look.__name__.strip('_')}")
                findings.append(Finding(f"{name}: {texts(error.reason)}", is_good=None))
        return findings

    async def trial(self, texts: Texts) -> list[Finding]:
        """Stores, recalls and erases; never touches a real chat."""
        async with self._trying:
            return await self._try(texts)

    async def _tags(self, texts: Texts) -> list[Finding]:
        """Whether all that is stored is of chats; the rest is no danger to them, but costs."""
        documents = await self._client.document_scopes()
        conclusions = await self._client.observation_scopes()
        untagged = await self._client.untagged_memories() + documents[frozenset()]
        foreign = _foreign(documents) + _foreign(conclusions)
        chats = sum(chat_tags(tags) is not None for tags in documents)
        found = texts("self_test_chats", documents=documents.total(), chats=chats)
        findings = [Finding(found)]
        if untagged:
            text = texts("self_test_untagged", number=untagged)
            findings.append(Finding(text, texts("self_test_untagged_advice"), is_good=False))
        if foreign:
            text = texts("self_test_foreign", number=foreign)
            findings.append(Finding(text, texts("self_test_foreign_advice"), is_good=False))
        return findings

    async def _settings(self, texts: Texts) -> list[Finding]:
        try:
            present = await self._client.config()
        except AccessRefusedError:
            return [Finding(texts("setup_forbidden"), is_good=None)]
        if not present:
            return [Finding(texts("status_bank_new"), is_good=None)]
        other = [key for key, value in BANK_SETTINGS.items() if present.get(key, value) != value]
        if not other:
            return [Finding(texts("self_test_settings_good"))]
        names = texts("list_separator").join(other)
        text = texts("self_test_settings_other", list=names)
        return [Finding(text, texts("self_test_settings_advice"), is_good=False)]

    async def _skew(self, texts: Texts) -> list[Finding]:
        skew = self._client.skew_seconds
        if skew is None:
            return [Finding(texts("self_test_skew_unknown"), is_good=None)]
        is_good = abs(skew) <= MAX_SKEW_SECONDS
        advice = "" if is_good else texts("self_test_skew_advice")
        text = texts("self_test_skew_found", seconds=round(skew))
        return [Finding(text, advice, is_good=is_good)]

    async def _extraction(self, texts: Texts) -> list[Finding]:
        found = await self._failures.look()
        if not found.retains and not found.facts:
            return [Finding(texts("self_test_extraction_good"))]
        number, facts = len(found.retains), found.facts
        text = texts("self_test_extraction_failed", number=number, facts=facts)
        reason = [texts(one.failure or "extraction_failed") for one in found.retains[:1]]
        advice = texts("status_failed_retry")
        return [Finding(" ".join([text, *reason]), advice, is_good=False)]

    async def _try(self, texts: Texts) -> list[Finding]:
        trial, failure = self._made_up(texts), ""
        before, began_at = await self._use(), self._clock.monotonic()
        try:
            async with self._passing(trial.chats):
                await self._store_and_find(trial)
        except HindsightError as error:
            failure = texts(error.reason)
        is_gone = await self._clean_up(trial)  # where this is cancelled, the background does it
        seconds = self._clock.monotonic() - began_at
        cost = _cost(before, await self._use(), trial, seconds, texts)
        number = len(trial.items)
        is_tried = len(trial.found) == number
        return [
            Finding(texts("self_test_stored"), failure, is_good=is_tried),
            Finding(texts("self_test_own"), is_good=trial.own == number if is_tried else None),
            Finding(texts("self_test_apart"), is_good=not trial.others if is_tried else None),
            Finding(
                texts("self_test_gone"), "" if is_gone else texts("wipe_goes_on"), is_good=is_gone
            ),
            Finding(cost),
        ]

    def _made_up(self, texts: Texts) -> _Trial:
        chats = tuple(self._hasher.made_up(kind) for kind in ("private", "group"))
        word = secrets.token_hex(4)
        return _Trial(chats, tuple(self._item(one, word, texts) for one in chats))

    def _item(self, scope: Scope, word: str, texts: Texts) -> RetainItem:
        now = self._clock.local()
        speaker = Speaker(texts("name_user"), self._hasher.pseudonym(scope, MADE_UP))
        line = Utterance(speaker, now, texts(_SENTENCES[scope.kind], word=word)).line
        header = Header.of(scope, texts, now, Speaker(texts("name_bot")))
        return build_item(new_document_id(scope.chat), header, [(line,)])

    @contextlib.asynccontextmanager
    async def _passing(self, chats: Sequence[Scope]) -> AsyncIterator[None]:
        """Wishes that all of these chats vanish; the wish is carried out afterwards."""
        async with contextlib.AsyncExitStack() as stack:
            for chat in chats:
                await stack.enter_async_context(self._eraser.passing(chat))
            yield

    async def _store_and_find(self, trial: _Trial) -> None:
        for item in trial.items:
            await self._client.retain_now(item)
        trial.found = tuple([await self._find(trial, chat) for chat in trial.chats])

    async def _find(self, trial: _Trial, chat: Scope) -> set[str]:
        """What a chat finds when it asks for its own sentence and for the other's."""
        found: set[str] = set()
        for item in trial.items:
            found |= await self._client.found_anywhere(item.content, chat.tags)
        return found

    async def _clean_up(self, trial: _Trial) -> bool:
        """Erases what was stored; whether nothing of it is found any more."""
        removed = await asyncio.gather(*(self._eraser.wipe(chat) for chat in trial.chats))
        if not all(one.is_done for one in removed):
            return False
        ids = {item.document_id for item in trial.items}
        try:
            left = [await self._find(trial, chat) & ids for chat in trial.chats]
            lists = [await self._archive.document_ids(chat.tags) for chat in trial.chats]
        except HindsightError:
            return False
        return not any(left) and not any(lists)

    async def _use(self) -> ModelUse | None:
        try:
            return await self._client.model_use()
        except HindsightError:
            return None


def _foreign(scopes: Counter[frozenset[str]]) -> int:
    """How many carry tags that are not those of a chat."""
    return sum(number for tags, number in scopes.items() if tags and chat_tags(tags) is None)


def _cost(
    before: ModelUse | None, after: ModelUse | None, trial: _Trial, seconds: float, texts: Texts
) -> str:
    chars = sum(len(item.content) for item in trial.items)
    text = texts("self_test_cost", chars=chars, seconds=round(seconds))
    if after is None:
        return text
    calls, tokens = after.calls, after.input_tokens + after.output_tokens
    if before:
        calls, tokens = calls - before.calls, tokens - before.input_tokens - before.output_tokens
    return " ".join([text, texts("self_test_cost_model", calls=calls, tokens=tokens)])
