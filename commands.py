"""What each `/hindsight` command answers: plain values in, text out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from .delivery import DISK_ERRORS, Delivery
from .hindsight_client import HindsightClient, HindsightError
from .memory import ChatMemory
from .memory_formatter import build_query, memory_date, memory_text, neutralise, shorten
from .outbox import Outbox
from .scope import Scope, ScopeState, Skip
from .settings import Settings
from .texts import Texts

STATUS_SECONDS = 4.0
RECALL_SECONDS = 8.0


@dataclass(frozen=True)
class Caller:
    """Who uses a command, and where.

    Attributes:
        scope: The chat, or why it has no memory.
        texts: The wording in the caller's language.
        now: Aware, in the local timezone.
        is_manager: May change what concerns everybody in this chat.
    """

    scope: Scope | Skip
    texts: Texts
    now: datetime
    is_manager: bool


Handler = Callable[[Caller, str], Awaitable[str]]


@dataclass(frozen=True)
class Command:
    """One sub-command.

    Attributes:
        name: What is typed after `/hindsight`; `help_<name>` is its line in the help.
        alias: The Chinese name.
        handler: Answers it.
        has_argument: `arg_<name>` describes what follows.
        for_managers: In groups, only for those who may change it for everybody.
    """

    name: str
    alias: str
    handler: Handler
    has_argument: bool = False
    for_managers: bool = False


class Commands:
    """Answers `/hindsight`.

    Args:
        version: The plugin's version.
        settings: The settings.
        state: Salt and switches.
        client: Hindsight, or None while the settings do not allow any request.
        memory: The recall and retain flow.
        delivery: The sending of turns.
        outbox: The turns that wait.
        monotonic: Seconds that never jump.
    """

    def __init__(
        self,
        *,
        version: str,
        settings: Settings,
        state: ScopeState,
        client: HindsightClient | None,
        memory: ChatMemory,
        delivery: Delivery,
        outbox: Outbox,
        monotonic: Callable[[], float],
    ) -> None:
        self._version = version
        self._settings = settings
        self._state = state
        self._client = client
        self._memory = memory
        self._delivery = delivery
        self._outbox = outbox
        self._monotonic = monotonic
        self._table = (
            Command("status", "状态", self._status),
            Command("recall", "回忆", self._recall, has_argument=True),
            Command("on", "开启", self._on, for_managers=True),
            Command("off", "关闭", self._off, for_managers=True),
            Command("help", "帮助", self._help),
        )

    async def answer(self, caller: Caller, words: str) -> str:
        """Answers what was typed after `/hindsight`, with the help where it is no command."""
        name, _, argument = words.strip().partition(" ")
        command = self._find(name.lower())
        if command is None:
            return await self._help(caller, name)
        if command.for_managers and not self._may_manage(caller):
            return caller.texts("needs_manager")
        return await command.handler(caller, argument.strip())

    def _may_manage(self, caller: Caller) -> bool:
        return caller.is_manager or self._settings.commands.members_may_manage

    def _find(self, name: str) -> Command | None:
        return next((c for c in self._table if name in {c.name, c.alias}), None)

    async def _help(self, caller: Caller, unknown: str) -> str:
        texts = caller.texts
        lines = [texts("help_unknown", name=shorten(neutralise(unknown), 30))] if unknown else []
        lines.append(texts("help_title"))
        for command in self._table:
            argument = f" {texts(f'arg_{command.name}')}" if command.has_argument else ""
            names = f"/hindsight {command.name}{argument}（{command.alias}）"
            lines.append(f"{names}  {texts(f'help_{command.name}')}")
        return "\n".join(lines)

    async def _on(self, caller: Caller, _: str) -> str:
        return await self._switch(caller, on=True)

    async def _off(self, caller: Caller, _: str) -> str:
        return await self._switch(caller, on=False)

    async def _switch(self, caller: Caller, *, on: bool) -> str:
        if isinstance(caller.scope, Skip):
            return self._no_memory(caller, caller.scope)
        try:
            await asyncio.to_thread(self._state.switch, caller.scope, on=on)
        except OSError:
            return caller.texts("switch_failed")
        return caller.texts("switched_on" if on else "switched_off")

    async def _recall(self, caller: Caller, argument: str) -> str:
        texts = caller.texts
        query = build_query(argument)
        if not query:
            return texts("recall_usage")
        scope = self._memory.admit(caller.scope)
        if isinstance(scope, Skip):
            return self._no_memory(caller, scope)
        try:
            async with asyncio.timeout(RECALL_SECONDS):
                memories = await self._memory.search(scope, query, caller.now)
        except HindsightError as error:
            return texts(error.reason)
        except TimeoutError:
            return texts("timeout")
        lines = [
            " ".join(filter(None, [memory_date(memory, caller.now.tzinfo), text]))
            for memory in memories
            if (text := memory_text(memory, texts))
        ]
        if not lines:
            return texts("recall_empty")
        numbered = [f"{number}. {line}" for number, line in enumerate(lines, start=1)]
        return "\n".join([texts("recall_title", number=len(numbered)), *numbered])

    def _no_memory(self, caller: Caller, reason: Skip) -> str:
        """Says why this chat has no memory, with what to do about it where there is something."""
        texts = caller.texts
        if reason is Skip.STATE_FAULT and self._state.fault:
            return texts(self._state.fault)
        if reason is Skip.NOT_CONFIGURED and self._settings.problems:
            return "\n".join(texts(problem) for problem in self._settings.problems)
        return texts("no_memory_here", reason=texts(reason))

    async def _status(self, caller: Caller, _: str) -> str:
        texts = caller.texts
        lines = [texts("status_title", version=self._version)]
        lines += self._settings_lines(texts)
        if self._client:
            lines += await self._connection_lines(self._client, texts)
        lines += self._chat_lines(caller)
        lines += await self._outbox_lines(texts)
        lines += self._count_lines(texts)
        return "\n".join(lines)

    def _settings_lines(self, texts: Texts) -> Iterable[str]:
        for problem in self._settings.problems:
            yield texts("status_problem", problem=texts(problem))
        if not self._settings.problems:
            yield texts("status_settings_ok", bank=self._settings.bank_id)
        if self._settings.warnings:
            yield texts("status_warnings", number=len(self._settings.warnings))

    async def _connection_lines(self, client: HindsightClient, texts: Texts) -> list[str]:
        try:
            async with asyncio.timeout(STATUS_SECONDS):
                health = await client.check()
                version = await client.version()
        except HindsightError as error:
            return [texts("status_disconnected", problem=texts(error.reason))]
        except TimeoutError:
            return [texts("status_disconnected", problem=texts("timeout"))]
        shown = texts("status_server_version", version=version) if version else ""
        lines = [texts("status_connected", ms=round(health.seconds * 1000), version=shown)]
        return lines if health.bank_exists else [*lines, texts("status_bank_new")]

    def _chat_lines(self, caller: Caller) -> Iterable[str]:
        texts, scope = caller.texts, caller.scope
        if self._state.fault:
            yield texts(self._state.fault)
        elif self._state.salt_lost:
            yield texts("salt_lost")
        if isinstance(scope, Skip):
            if scope is not Skip.STATE_FAULT:
                yield texts("no_memory_here", reason=texts(scope))
            return
        admitted = self._memory.admit(scope)
        if isinstance(admitted, Skip) and admitted is not Skip.NOT_CONFIGURED:
            switch = f"{texts('off')} ({texts(admitted)})"
        else:
            switch = texts("on")
        yield texts("status_chat", kind=texts(f"kind_{scope.kind}"), switch=switch)
        yield self._recall_line(scope, texts)

    def _recall_line(self, scope: Scope, texts: Texts) -> str:
        report = self._memory.report(scope)
        if report is None:
            return texts("status_recall_none")
        when = report.at.strftime("%m-%d %H:%M:%S")
        if report.failure:
            return texts("status_recall_failed", when=when, reason=texts(report.failure))
        lines = report.block.count("\n- ")
        return texts("status_recall", when=when, ms=round(report.seconds * 1000), lines=lines)

    async def _outbox_lines(self, texts: Texts) -> list[str]:
        state = self._delivery.state
        if state.last_sent_at is None:
            lines = [texts("status_retain_none")]
        else:
            ago = round(self._monotonic() - state.last_sent_at)
            lines = [texts("status_retain", seconds=ago)]
        if state.unsaved or state.lost:
            lines.append(texts("status_unsaved", unsaved=state.unsaved, lost=state.lost))
        try:
            figures = await self._outbox.figures(day="")
        except DISK_ERRORS:
            return [*lines, texts("disk")]
        aside = sum(figures.aside.values())
        lines.append(
            texts(
                "status_outbox",
                open=figures.open_turns,
                waiting=figures.waiting,
                aside=aside,
                dropped=figures.dropped,
            )
        )
        lines += [f"- {texts(reason)} ×{n}" for reason, n in figures.aside.items()]
        if state.stopped:
            lines.append(texts("status_stopped", reason=texts(state.stopped)))
        if figures.moved_aside:
            lines.append(texts("status_moved_aside", name=figures.moved_aside))
        return lines

    def _count_lines(self, texts: Texts) -> Iterable[str]:
        figures = self._memory.figures
        if self._memory.breaker.state != "closed":
            yield texts("status_breaker")
        for key, counter in (
            ("status_skips", figures.skips),
            ("status_failures", figures.failures),
        ):
            if counter:
                parts = [
                    texts("count", what=texts(reason), number=number)
                    for reason, number in counter.most_common()
                ]
                yield texts(key, list=texts("list_separator").join(parts))
        if self._state.fingerprint:
            yield texts("status_salt", fingerprint=self._state.fingerprint)
