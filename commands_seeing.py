"""Commands that show something and change nothing."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

from .archive import Archive
from .arguments import ALL_WORDS, paged, targets, whole_number
from .cleaning import neutralise, shorten
from .command_types import ChatRequest, Command, Free, Request, Whole
from .costs import Costs
from .entries import one_each, related
from .hindsight_types import RecalledMemory
from .memory import ChatMemory, RecallReport
from .numbered import NumberedLists
from .query import build_query
from .status import Status

RECALL_SECONDS = 8.0
PAGE_LINES = 6
BEST_LINES = 5
FAR_LINES = 3
"""So many are shown of what hardly has to do with the question, where nothing else was found."""
BEST_CHARS = 90
MAX_BASIS = 5
BASIS_CHARS = 60
WHOLE_CHARS = 200
MAX_QUERY_CHARS = 40


class Seeing:
    """What is remembered, and how the plugin is.

    Args:
        memory: The recall and retain flow.
        status: Figures of all parts.
        costs: Figures of what it costs.
        lists: Which number means which memory.
        match_umo: A setting.
    """

    def __init__(
        self,
        memory: ChatMemory,
        status: Status,
        costs: Costs,
        lists: NumberedLists,
        *,
        match_umo: bool,
    ) -> None:
        self._memory = memory
        self._status = status
        self._costs = costs
        self._lists = lists
        self._match_umo = match_umo

    @property
    def commands(self) -> Sequence[Command]:
        """Rows of the table."""
        status, stats = self._show_status, self._show_stats
        return (
            Command("status", "状态", status, elsewhere=status, has_argument=True),
            Command(
                "recall", "回忆", self._recall, has_argument=True, needs="memory", is_limited=True
            ),
            Command("why", "为什么", self._why, has_argument=True, needs="stored"),
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
            Command("stats", "统计", stats, elsewhere=stats, has_argument=True, is_limited=True),
        )

    async def _show_status(self, request: Request) -> str:
        caller = request.caller
        if request.argument.lower() not in ALL_WORDS:
            return await self._status.brief(caller)
        if not caller.is_admin:
            return request.texts("needs_admins")
        return await self._status.show(caller.scope, request.texts)

    async def _show_stats(self, request: Request) -> str:
        if request.argument.lower() != "json":
            stats = await self._status.stats(request.caller.scope, request.texts)
            costs = await self._costs.lines(request.texts) if request.caller.is_admin else []
            return "\n".join([stats, *costs])
        if not request.caller.is_admin:
            return Free(request.texts("needs_admins"))
        return Whole(await self._status.report())

    async def _recall(self, request: ChatRequest) -> str:
        texts, caller = request.texts, request.caller
        text, page = paged(request.argument, self._lists.asked(caller))
        query = build_query(text)
        if not query:
            return Free(texts("recall_usage"))
        self._memory.hurry(request.scope)
        async with asyncio.timeout(RECALL_SECONDS):
            found = await self._memory.search(request.scope, query, caller.now)
        self._lists.ask(caller, text)
        asked = _short(text)
        if not found:
            return texts("recall_nothing", text=asked)
        near = zip(found, related(found, query), strict=True)
        best = one_each([memory for memory, is_near in near if is_near])
        if not best:
            far = one_each(found)[:FAR_LINES]
            shown = self._lists.lines(caller, far, limit=BEST_CHARS)
            return "\n".join([texts("recall_far", text=asked), *shown])
        pages = -(-len(best) // BEST_LINES)
        if page > pages:
            return texts("recall_pages", text=asked, pages=pages)
        first = max(page - 1, 0) * BEST_LINES
        part = best[first : first + BEST_LINES]
        shown = self._lists.lines(caller, part, first=first + 1, among=best, limit=BEST_CHARS)
        title = texts("recall_title", number=len(best), pages=pages, page=max(page, 1))
        if pages == 1:
            title = texts("recall_all", number=len(best))
        more = [texts("recall_more", text=text, page=page + 1)] if page < pages else []
        return "\n".join([title, *shown, *more])

    async def _list(self, request: ChatRequest) -> str:
        texts, caller = request.texts, request.caller
        number = whole_number(request.argument)
        text, page = "", number or 1
        if number is None:
            text, page = paged(request.argument, self._lists.asked(caller))
        self._memory.hurry(request.scope)
        found = one_each(await request.stored.archive.everything(request.scope, text))
        self._lists.ask(caller, text if found else "")
        if not found:
            return texts("list_nothing_with" if text else "list_empty", text=_short(text))
        pages = -(-len(found) // PAGE_LINES)
        words = f"{text} " if text else ""
        if page > pages:
            key = "list_pages" if number is None else "list_pages_or_text"
            return texts(key, pages=pages, words=words, text=_short(request.argument))
        first = max(page - 1, 0) * PAGE_LINES
        part = found[first : first + PAGE_LINES]
        shown = self._lists.lines(caller, part, first=first + 1, among=found)
        title = "list_title" if pages > 1 else "list_all"
        lines = [texts(title, total=len(found), page=max(page, 1), pages=pages), *shown]
        lines.append(texts("list_forget", number=first + 1))
        if page < pages:
            lines.append(texts("list_more", words=words, page=max(page, 1) + 1))
        return "\n".join(lines)

    async def _why(self, request: ChatRequest) -> str:
        if request.argument:
            return await self._why_number(request)
        texts, report = request.texts, self._memory.report(request.scope)
        if skipped := self._memory.skipped(request.scope):
            return texts("why_failed", reason=texts(skipped))
        if report is None:
            is_forgotten = self._memory.forgotten_at(request.scope) > float("-inf")
            return texts("why_forgotten" if is_forgotten else "why_nothing")
        lines = [texts("why_query", query=_short(report.query))] if report.query else []
        if report.failure:
            return "\n".join([*lines, texts("why_failed", reason=texts(report.failure))])
        private, hidden = self._private_lines(request, report), self._hidden_lines(request, report)
        if not report.memories:
            return "\n".join([*lines, *(private or [texts("why_empty")]), *hidden])
        lines.append(texts("why_title", number=len(report.memories)))
        lines += self._lists.lines(request.caller, report.memories)
        if report.left_out:
            lines.append(texts("why_left_out", number=report.left_out))
        return "\n".join([*lines, *private, *hidden, texts("why_more", number=1)])

    def _private_lines(self, request: ChatRequest, report: RecallReport) -> list[str]:
        """What was read of a private chat; without numbers, since it is forgotten there."""
        private = self._memory.private_lines(report, request.caller.speaker)
        title = request.texts("why_private", number=len(private))
        view = self._lists.view(request.caller, private)
        shown = [f"- {view.shown(memory, BASIS_CHARS)}" for memory in private]
        return [title, *shown] if private else []

    def _hidden_lines(self, request: ChatRequest, report: RecallReport) -> list[str]:
        """That there was something of another's private chat, for everybody but that one."""
        number = self._memory.private_number(report)
        if not number or self._memory.private_lines(report, request.caller.speaker):
            return []
        return [request.texts("why_hidden", number=number)]

    async def _why_number(self, request: ChatRequest) -> str:
        """One memory of a list, whole, and what it stands on."""
        texts, wanted = request.texts, targets(request.argument)
        if wanted is None:
            return texts("why_usage")
        number = wanted[0].number
        entry = self._lists.get(request.caller, number)
        if entry is None or entry.is_gone:
            return texts("number_gone" if entry else "number_unknown", number=number)
        view = self._lists.view(request.caller, [entry.memory])
        lines = [f"{number}. {view.shown(entry.memory, WHOLE_CHARS)}"]
        basis = await self._basis(request, entry.memory)
        if basis:
            lines += [texts("why_basis"), *(f"- {one}" for one in basis)]
        return "\n".join([*lines, texts("list_forget", number=number)])

    async def _basis(self, request: ChatRequest, memory: RecalledMemory) -> list[str]:
        """The facts below a conclusion, or the lines that a fact was made from."""
        archive: Archive = request.stored.archive
        if memory.kind == "observation":
            facts = await archive.basis(request.scope, memory)
            view = self._lists.view(request.caller, facts)
            return [view.shown(fact, BASIS_CHARS) for fact in facts[:MAX_BASIS]]
        lines, _ = await archive.sources(request.scope, memory)
        view = self._lists.view(request.caller, [memory])
        return [view.line(line.text, BASIS_CHARS) for line in lines[:MAX_BASIS]]

    async def _ask(self, request: ChatRequest) -> str:
        texts = request.texts
        if not re.search(r"\w", request.argument):
            return Free(texts("ask_usage"))
        self._memory.hurry(request.scope)
        tags = request.scope.read_tags(match_umo=self._match_umo)
        answer = await request.stored.client.reflect(request.argument, tags)
        view = self._lists.view(request.caller, answer.memories)
        lines = [view.names.replaced(line) for line in _plain_lines(answer.text)]
        if answer.memories:
            lines.append(texts("ask_basis"))
            lines += [f"- {view.shown(m, BASIS_CHARS)}" for m in answer.memories[:MAX_BASIS]]
        return "\n".join(lines) or texts("recall_nothing", text=_short(request.argument))

    async def _profile(self, request: ChatRequest) -> str:
        self._memory.hurry(request.scope)
        text = await request.stored.archive.profile(request.scope, request.texts)
        view = self._lists.view(request.caller, ())
        lines = [view.names.replaced(line) for line in _plain_lines(text)]
        return "\n".join(lines) or Free(request.texts("profile_being_made"))


def _plain_lines(text: str) -> list[str]:
    return [neutralise(line) for line in text.splitlines() if line.strip()]


def _short(text: str) -> str:
    return shorten(neutralise(text), MAX_QUERY_CHARS)
