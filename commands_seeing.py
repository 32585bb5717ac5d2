"""Commands that show something and change nothing."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from .cleaning import neutralise
from .command_types import ChatRequest, Command, Request, whole_number
from .costs import Costs
from .hindsight_types import HindsightError, RecalledMemory
from .memory import ChatMemory, RecallReport
from .numbered import NumberedLists, described, numbered_line
from .query import build_query
from .status import Status

RECALL_SECONDS = 8.0
PAGE_LINES = 10
MAX_BASIS = 5


class Seeing:
    """What is remembered, and how the plugin is.

    Args:
        memory: The recall and retain flow.
        status: Figures of all parts.
        costs: Figures of what it costs.
        lists: Which number means which memory.
        folder: Where exports go.
        match_umo: A setting.
    """

    def __init__(
        self,
        memory: ChatMemory,
        status: Status,
        costs: Costs,
        lists: NumberedLists,
        folder: Path,
        *,
        match_umo: bool,
    ) -> None:
        self._memory = memory
        self._status = status
        self._costs = costs
        self._lists = lists
        self._folder = folder
        self._match_umo = match_umo

    @property
    def commands(self) -> Sequence[Command]:
        """Rows of the table."""
        status, stats = self._show_status, self._show_stats
        return (
            Command("status", "状态", status, elsewhere=status),
            Command(
                "recall", "回忆", self._recall, has_argument=True, needs="memory", is_limited=True
            ),
            Command("why", "为什么", self._why, needs="stored"),
            Command("list", "列表", self._list, has_argument=True, needs="stored"),
            Command(
                "ask",
                "提问",
                self._ask,
                has_argument=True,
                needs="memory",
                is_limited=True,
                working="working_ask",
            ),
            Command("profile", "概况", self._profile, needs="memory", is_limited=True),
            Command(
                "export", "导出", self._export, rights="managers", needs="stored", is_limited=True
            ),
            Command("stats", "统计", stats, elsewhere=stats, has_argument=True, is_limited=True),
        )

    async def _show_status(self, request: Request) -> str:
        return await self._status.show(request.caller.scope, request.texts)

    async def _show_stats(self, request: Request) -> str:
        if request.argument.lower() != "json":
            stats = await self._status.stats(request.caller.scope, request.texts)
            costs = await self._costs.lines(request.texts) if request.caller.is_admin else []
            return "\n".join([stats, *costs])
        if not request.caller.is_admin:
            return request.texts("needs_admins")
        return await self._status.report()

    async def _recall(self, request: ChatRequest) -> str:
        texts = request.texts
        query = build_query(request.argument)
        if not query:
            return texts("recall_usage")
        self._memory.hurry(request.scope)
        async with asyncio.timeout(RECALL_SECONDS):
            memories = await self._memory.search(request.scope, query, request.caller.now)
        if not memories:
            return texts("recall_empty")
        shown = self._lists.lines(request.caller, memories)
        return "\n".join([texts("recall_title", number=len(shown)), *shown])

    async def _list(self, request: ChatRequest) -> str:
        texts, argument = request.texts, request.argument
        page = whole_number(argument)
        offset = max((page or 1) - 1, 0) * PAGE_LINES
        text = argument if page is None else ""
        self._memory.hurry(request.scope)
        found = await request.stored.archive.page(
            request.scope, text=text, offset=offset, limit=PAGE_LINES
        )
        if not found.memories:
            return texts("list_empty")
        shown = self._lists.lines(request.caller, found.memories, first=offset + 1)
        title = texts("list_title", total=found.total, first=offset + 1, last=offset + len(shown))
        return "\n".join([title, *shown])

    async def _why(self, request: ChatRequest) -> str:
        texts, report = request.texts, self._memory.report(request.scope)
        if skipped := self._memory.skipped(request.scope):
            return texts("why_failed", reason=texts(skipped))
        if report is None:
            return texts("why_nothing")
        lines = [texts("why_query", query=report.query)] if report.query else []
        if report.failure:
            return "\n".join([*lines, texts("why_failed", reason=texts(report.failure))])
        lines += await self._shown(request, report)
        self._lists.put(request.caller, report.memories)
        private = self._private_lines(request, report)
        empty = [] if report.memories or private else [texts("why_empty")]
        return "\n".join([*lines, *empty, *private])

    async def _shown(self, request: ChatRequest, report: RecallReport) -> list[str]:
        """What was read of the chat, with what conclusions were drawn from."""
        texts = request.texts
        title = texts("why_title", number=len(report.memories))
        lines = [title] if report.memories else []
        for number, memory in enumerate(report.memories, start=1):
            lines.append(numbered_line(request.caller, number, memory))
            if memory.kind == "observation":
                lines += await self._basis(request, memory)
        if report.memories and report.left_out:
            lines.append(texts("why_left_out", number=report.left_out))
        return lines

    def _private_lines(self, request: ChatRequest, report: RecallReport) -> list[str]:
        """What was read of a private chat; without numbers, since it is forgotten there."""
        private = self._memory.private_lines(report, request.caller.speaker)
        title = request.texts("why_private", number=len(private))
        shown = [f"- {described(request.caller, memory)}" for memory in private]
        return [title, *shown] if private else []

    async def _basis(self, request: ChatRequest, memory: RecalledMemory) -> Iterable[str]:
        texts = request.texts
        try:
            facts = await request.stored.archive.basis(request.scope, memory)
        except HindsightError as error:  # what the reply was given is worth telling all the same
            return [texts("why_basis", text=texts(error.reason))]
        return [
            texts("why_basis", text=described(request.caller, fact)) for fact in facts[:MAX_BASIS]
        ]

    async def _ask(self, request: ChatRequest) -> str:
        texts = request.texts
        if not re.search(r"\w", request.argument):
            return texts("ask_usage")
        self._memory.hurry(request.scope)
        tags = request.scope.read_tags(match_umo=self._match_umo)
        answer = await request.stored.client.reflect(request.argument, tags)
        lines = _plain_lines(answer.text)
        if answer.memories:
            lines.append(texts("ask_basis"))
            lines += [f"- {described(request.caller, m)}" for m in answer.memories[:MAX_BASIS]]
        return "\n".join(lines) or texts("recall_empty")

    async def _profile(self, request: ChatRequest) -> str:
        self._memory.hurry(request.scope)
        text = await request.stored.archive.profile(request.scope, request.texts)
        return "\n".join(_plain_lines(text)) or request.texts("profile_being_made")

    async def _export(self, request: ChatRequest) -> str:
        stamp = request.caller.now.strftime("%Y%m%d-%H%M%S")
        self._memory.hurry(request.scope)
        path = self._folder / f"export-{request.scope.chat[:8]}-{stamp}.jsonl"
        documents, memories = await request.stored.archive.export(request.scope, path)
        return request.texts("exported", name=path.name, documents=documents, memories=memories)


def _plain_lines(text: str) -> list[str]:
    return [neutralise(line) for line in text.splitlines() if line.strip()]
