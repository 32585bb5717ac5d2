"""The command that brings a chat's past into its memory."""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from .clock import Clock
from .command_types import ChatRequest, Command, PersonKey
from .importing import DEFAULT_DAYS, MAX_COUNT, MAX_DAYS, Importer, Past, Plan, progress_text
from .memory import ChatMemory
from .recent import Recent
from .scope import Skip
from .status import Status
from .texts import Texts

CODE_SECONDS = 60.0
CODES = range(MAX_COUNT + 1, 10_000)
"""None of them could be meant as a number of messages."""
MAX_SPEAKERS = 8
"""So many are shown by name."""

_COUNT = re.compile(r"[0-9]{1,9}")
_DAYS = re.compile(r"([0-9]{1,9})\s*(?:d|days?|天|日)", re.IGNORECASE)
_STATUS = frozenset({"status", "状态", "进度"})
_STOP = frozenset({"stop", "停止"})
_UNDO = frozenset({"undo", "撤销"})
_RUNNING = frozenset({"running"})


@dataclass(frozen=True)
class _Wanted:
    count: int
    days: int


@dataclass(frozen=True)
class _Offer:
    """A dry run that somebody has seen.

    Attributes:
        code: Starts it.
        valid_until: Monotonic seconds.
        plan: What it would bring.
    """

    code: str
    valid_until: float
    plan: Plan


class Importing:
    """Shows what an import would bring, starts it, and takes it back.

    Args:
        importer: Does it; None without a server.
        memory: Tells whether a chat has memory.
        status: Says why not.
        clock: The time.
        daily_chars: A setting.
    """

    def __init__(
        self,
        importer: Importer | None,
        memory: ChatMemory,
        status: Status,
        clock: Clock,
        *,
        daily_chars: int,
    ) -> None:
        self._importer = importer
        self._memory = memory
        self._status = status
        self._clock = clock
        self._daily_chars = daily_chars
        self._offers: Recent[PersonKey, _Offer] = Recent()

    @property
    def commands(self) -> Sequence[Command]:
        """Rows of the table."""
        return (
            Command(
                "import",
                "导入",
                self._import,
                has_argument=True,
                rights="trusted",
                needs="stored",
                is_limited=True,
            ),
        )

    async def _import(self, request: ChatRequest) -> str:
        importer = self._importer
        assert importer is not None  # the command needs what is stored
        word = request.argument.lower()
        if word in _STATUS:
            return await self._progress(request, importer)
        if word in _STOP | _UNDO:
            return await self._end(request, importer, is_undo=word in _UNDO)
        if isinstance(self._memory.admit(request.scope), Skip):
            return self._status.no_memory(request.scope, request.texts)
        past = request.caller.past
        if past is None:
            return request.texts("import_no_source")
        progress = await importer.progress(request.scope)
        if progress and progress.left and progress.phase in _RUNNING:
            return f"{progress_text(request.texts, progress)}\n{request.texts('import_busy')}"
        return await self._offer_or_start(request, importer, past)

    async def _offer_or_start(self, request: ChatRequest, importer: Importer, past: Past) -> str:
        offer = self._taken(request)
        if offer:
            number = await importer.start(offer.plan, past, request.texts)
            if number is not None:
                key = "import_started" if number else "import_nothing_new"
                return request.texts(key, windows=number)
        elif request.argument.isdecimal() and int(request.argument[:9]) in CODES:
            return request.texts("import_no_code")
        wanted = _wanted(request.argument if offer is None else "")
        if wanted is None:
            return request.texts("import_usage", count=MAX_COUNT, days=DEFAULT_DAYS)
        plan = await importer.plan(
            request.scope, past, request.texts, count=wanted.count, days=wanted.days
        )
        return self._shown(request, plan)

    def _taken(self, request: ChatRequest) -> _Offer | None:
        """The dry run whose code was typed in time, which is then used up."""
        now = self._clock.monotonic()
        for key in [key for key, offer in self._offers.items() if offer.valid_until < now]:
            del self._offers[key]
        offer = self._offers.get(request.caller.key)
        if offer is None or offer.code != request.argument:
            return None
        return self._offers.pop(request.caller.key)

    def _shown(self, request: ChatRequest, plan: Plan) -> str:
        """The dry run in words, with the code that starts it."""
        texts = request.texts
        if not plan.source:
            return texts("import_no_source")
        source = texts(plan.source)
        if plan.first is None or plan.last is None or plan.batch is None:
            until = _minute(plan.until)
            return texts("import_nothing", source=source, until=until, messages=plan.messages)
        code = str(secrets.choice(CODES))
        valid_until = self._clock.monotonic() + CODE_SECONDS
        self._offers.put(request.caller.key, _Offer(code, valid_until, plan))
        values = {
            "source": source,
            "first": _minute(plan.first),
            "last": _minute(plan.last),
            "messages": plan.messages,
            "lines": plan.lines,
            "number": len(plan.speakers),
            "speakers": _speakers(plan, texts),
            "chars": plan.chars,
            "windows": len(plan.batch.windows),
            "limit": self._limit(plan, texts),
            "code": code,
            "seconds": round(CODE_SECONDS),
        }
        return texts("import_plan", **values)

    def _limit(self, plan: Plan, texts: Texts) -> str:
        if not self._daily_chars:
            return texts("import_no_limit")
        days = math.ceil(plan.chars / self._daily_chars)
        return texts("import_limit", chars=self._daily_chars, days=days)

    async def _progress(self, request: ChatRequest, importer: Importer) -> str:
        progress = await importer.progress(request.scope)
        if progress is None:
            return request.texts("import_none")
        return progress_text(request.texts, progress)

    async def _end(self, request: ChatRequest, importer: Importer, *, is_undo: bool) -> str:
        texts = request.texts
        progress = await importer.progress(request.scope)
        if progress is None or (not is_undo and progress.phase not in _RUNNING):
            return texts("import_none")
        if is_undo:
            removed = await importer.undo(request.scope, progress)
            self._memory.forget_chat(request.scope)
            said = texts("import_undone", windows=progress.windows, lines=progress.lines)
        else:
            removed = await importer.stop(request.scope, progress)
            said = texts("import_stopped", waiting=removed.waiting)
        if removed.failure:
            return f"{said}\n{texts('erasure_failed', reason=texts(removed.failure))}"
        return said


def _wanted(argument: str) -> _Wanted | None:
    """How many messages of how many days; None where something else was typed."""
    count, days = MAX_COUNT, DEFAULT_DAYS
    argument = re.sub(r"(?<=[0-9])\s+(?=d\b|days?\b|天|日)", "", argument.lower())
    for word in argument.split():
        if found := _DAYS.fullmatch(word):
            days = min(int(found[1]), MAX_DAYS)
        elif _COUNT.fullmatch(word):
            count = min(int(word), MAX_COUNT)
        else:
            return None
    return _Wanted(count, days) if count and days else None


def _minute(moment: object) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"


def _speakers(plan: Plan, texts: Texts) -> str:
    """The first of those who speak, as they will be written."""
    shown = plan.speakers[:MAX_SPEAKERS]
    more = "…" if len(plan.speakers) > len(shown) else ""
    return texts("list_separator").join(shown) + more
