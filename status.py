"""What `status`, `stats` and the bug report show."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from .archive import Archive
from .batches import Progress
from .clock import Clock
from .command_types import Caller
from .delivery import Delivery
from .failures import Failures, FailureWatch
from .hindsight_client import HindsightClient
from .hindsight_http import VERSION
from .hindsight_types import HindsightError
from .importing import progress_text
from .intake import DISK_ERRORS
from .memory import ChatMemory
from .outbox import Outbox, OutboxFigures
from .people import People
from .retention import Retention
from .scope import Scope, ScopeState, Skip
from .settings import Settings, SettingValue
from .texts import Texts
from .workers import Workers

STATUS_SECONDS = 2.5
"""Less than the patience of `commands`, so that status itself is the first answer."""
CLOUD = "hindsight.vectorize.io"


@dataclass(frozen=True)
class Status:
    """Reads the figures of all parts.

    Attributes:
        settings: The settings.
        state: Salt and switches.
        client: Hindsight, or None while the settings do not allow any request.
        memory: The recall and retain flow.
        delivery: The sending of turns.
        outbox: The turns that wait.
        archive: What is stored, or None without a client.
        failures: What the server has failed on, or None without a client.
        retention: Erases what is too old, or None without a client.
        people: Who was seen in each chat.
        workers: The work in the background.
        clock: The time.
        host: AstrBot's version, for bug reports.
    """

    settings: Settings
    state: ScopeState
    client: HindsightClient | None
    memory: ChatMemory
    delivery: Delivery
    outbox: Outbox
    archive: Archive | None
    failures: FailureWatch | None
    retention: Retention | None
    people: People
    workers: Workers
    clock: Clock
    host: str

    async def brief(self, caller: Caller) -> str:
        """The answer to `status`: whether it works, this chat, and the one who asks."""
        texts, scope = caller.texts, caller.scope
        lines = [await self._works_line(texts)]
        if self.client and not self.state.fault:
            lines.append(await self._here_line(scope, texts))
        if isinstance(scope, Scope) and self.state.listens(scope):
            lines.append(texts("status_listening"))
        if isinstance(scope, Scope) and caller.person_id:
            lines.append(self._me_line(caller, scope))
        lines += await self._import_lines(scope, texts)
        if caller.is_admin:
            lines.append(texts("status_all"))
        return "\n".join(lines)

    async def show(self, scope: Scope | Skip, texts: Texts) -> str:
        """The answer to `status all`: the whole bot, for who runs it."""
        lines = [texts("status_title", version=VERSION)]
        lines += self._settings_lines(texts)
        if self.client:
            lines += await self._connection_lines(self.client, texts)
            lines += [texts(notice.key, **notice.values) for notice in self.client.notices]
        lines += self._chat_lines(scope, texts)
        lines += await self._erasure_lines(scope, texts)
        lines += await self._outbox_lines(texts)
        lines += [texts("status_people")] if self.people.is_failing else []
        lines += self._failure_lines(scope, texts)
        lines += self._retention_lines(texts)
        lines += await self._import_lines(scope, texts)
        lines += self._count_lines(texts)
        return "\n".join(lines)

    async def _works_line(self, texts: Texts) -> str:
        """Whether memories are recalled and stored at present, or why not."""
        for reason in (self.state.fault, *self.settings.problems):
            if reason:
                return texts("status_fails", reason=texts(reason))
        if self.client:
            try:
                async with asyncio.timeout(STATUS_SECONDS):
                    await self.client.check()
            except HindsightError as error:
                return texts("status_fails", reason=texts(error.reason))
            except TimeoutError:
                return texts("status_fails", reason=texts("timeout"))
        if stopped := self.delivery.state.stopped:
            return texts("status_not_stored", reason=texts(stopped))
        return texts("status_works")

    async def _here_line(self, scope: Scope | Skip, texts: Texts) -> str:
        if isinstance(self.memory.admit(scope), Skip):
            return self.no_memory(scope, texts)
        erasing = await self._erasure_lines(scope, texts)
        return next(iter(erasing), texts("status_here"))

    def _me_line(self, caller: Caller, scope: Scope) -> str:
        texts = caller.texts
        if not self.state.is_opted_out(scope, caller.person_id):
            is_off = isinstance(self.memory.admit(scope), Skip)
            return texts("status_me_off" if is_off else "status_me")
        since = self.state.opted_out_at(scope, caller.person_id)
        if since is None:
            return texts("status_me_out")
        at = datetime.fromtimestamp(since, caller.now.tzinfo)
        return texts("status_me_out_since", date=texts.date(at, caller.now))

    async def stats(self, scope: Scope | Skip, texts: Texts) -> str:
        """The answer to `stats`."""
        figures, stored = self.memory.figures, await self._figures() or OutboxFigures()
        lines = [
            texts(
                "stats_flow",
                turns=figures.turns,
                recalls=figures.recalls,
                lines=figures.lines,
                repeated=figures.repeated,
            ),
            texts(
                "stats_retained",
                windows=stored.sent,
                chars=stored.sent_chars,
                today=stored.sent_chars_today,
            ),
        ]
        if figures.heard:
            lines.append(texts("stats_heard", lines=figures.heard, chars=figures.heard_chars))
        if figures.timings:
            lines.append(
                texts(
                    "stats_times",
                    p50=round(figures.percentile(0.5) * 1000),
                    p95=round(figures.percentile(0.95) * 1000),
                )
            )
        if self.archive and isinstance(scope, Scope):
            lines.append(await self._server_line(self.archive, scope, texts))
        return "\n".join(lines)

    def no_memory(self, scope: Scope | Skip, texts: Texts) -> str:
        """Why a chat has no memory, with what to do about it where there is something."""
        reason = self.memory.admit(scope)
        if reason is Skip.STATE_FAULT and self.state.fault:
            return texts(self.state.fault)
        if reason is Skip.NOT_CONFIGURED and self.settings.problems:
            return "\n".join(texts(problem) for problem in self.settings.problems)
        if isinstance(scope, Scope) and reason is Skip.PAUSED:
            left = (self.state.paused_until(scope) - self.clock.unix()) / 60
            return texts("no_memory_paused", span=texts.span(left))
        if reason is Skip.CHAT_OFF:
            return texts("no_memory_off")
        return texts("no_memory_here", reason=texts(str(reason)))

    async def report(self) -> str:
        """One JSON text for a bug report: no key, id, message, address or bank name."""
        settings = asdict(self.settings)
        for name in ("api_key", "bank_id", "changed"):
            settings.pop(name)
        settings["replaced"] = [used.name for used in self.settings.replaced]
        settings["api_base"] = "cloud" if CLOUD in self.settings.api_base else "own"
        for name in ("allow_chats", "deny_chats"):
            settings["privacy"][name] = len(settings["privacy"][name])
        figures = self.memory.figures
        content: dict[str, Any] = {
            "plugin": VERSION,
            "astrbot": self.host,
            "hindsight": await self._server_version(),
            "settings": settings,
            "state_fault": self.state.fault,
            "salt_lost": self.state.salt_lost,
            "breaker": self.memory.breaker.state,
            "skips": figures.skips,
            "recall_failures": figures.failures,
            "recalls": figures.recalls,
            "turns": figures.turns,
            "heard": figures.heard,
            "recall_seconds": {
                "p50": round(figures.percentile(0.5), 3),
                "p95": round(figures.percentile(0.95), 3),
            },
            "outbox": asdict(await self._figures() or OutboxFigures()),
            "delivery": asdict(self.delivery.state),
            "failed_retains": len(self.failures.found.retains) if self.failures else 0,
            "people_failing": self.people.is_failing,
            "workers": self.workers.faults,
        }
        return json.dumps(content, ensure_ascii=False, indent=1)

    async def _server_version(self) -> str:
        if self.client is None:
            return ""
        try:
            async with asyncio.timeout(STATUS_SECONDS):
                return await self.client.version()
        except TimeoutError:
            return ""

    async def _figures(self) -> OutboxFigures | None:
        """The numbers of the outbox; None where the disk fails or hangs."""
        try:
            async with asyncio.timeout(STATUS_SECONDS):
                return await self.outbox.figures(day=self.clock.today())
        except DISK_ERRORS:  # a time-out is one of them
            return None

    async def _server_line(self, archive: Archive, scope: Scope, texts: Texts) -> str:
        try:
            async with asyncio.timeout(STATUS_SECONDS):
                memories = (await archive.page(scope, offset=0, limit=1)).total
                documents = await archive.count_documents(scope)
        except HindsightError as error:
            return texts("stats_server_failed", reason=texts(error.reason))
        except TimeoutError:
            return texts("stats_server_failed", reason=texts("timeout"))
        return texts("stats_server", memories=memories, documents=documents)

    def _settings_lines(self, texts: Texts) -> Iterable[str]:
        for problem in self.settings.problems:
            yield texts("status_problem", problem=texts(problem))
        if not self.settings.problems:
            yield texts("status_settings_ok", bank=self.settings.bank_id)
        for key, used in (
            ("status_changed", self.settings.changed),
            ("status_replaced", self.settings.replaced),
        ):
            if used:
                parts = [_shown(one, texts) for one in used]
                yield texts(key, list=texts("list_separator").join(parts))
        if not self.settings.recall.match_umo:
            yield texts("status_match_umo")

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

    def _chat_lines(self, scope: Scope | Skip, texts: Texts) -> Iterable[str]:
        if self.state.fault:
            yield texts(self.state.fault)
        elif self.state.salt_lost:
            yield texts("salt_lost")
        if isinstance(scope, Skip):
            if scope is not Skip.STATE_FAULT:
                yield texts("no_memory_here", reason=texts(scope))
            return
        admitted = self.memory.admit(scope)
        if isinstance(admitted, Skip) and admitted is not Skip.NOT_CONFIGURED:
            switch = texts("entry", text=texts("off"), about=texts(admitted))
        else:
            switch = texts("on")
        yield texts("status_chat", kind=texts(f"kind_{scope.kind}"), switch=switch)
        if self.state.listens(scope):
            yield texts("status_listening")
        yield self._recall_line(scope, texts)

    async def _erasure_lines(self, scope: Scope | Skip, texts: Texts) -> list[str]:
        """Why nothing of this chat is delivered at the moment, if so."""
        with contextlib.suppress(*DISK_ERRORS):  # told with the outbox
            async with asyncio.timeout(STATUS_SECONDS):
                if isinstance(scope, Scope) and await self.outbox.held(scope.chat):
                    return [texts("status_erasing")]
        return []

    def _recall_line(self, scope: Scope, texts: Texts) -> str:
        report = self.memory.report(scope)
        if report is None:
            return texts("status_recall_none")
        when = texts.date(report.at, self.clock.local())
        if report.failure:
            return texts("status_recall_failed", when=when, reason=texts(report.failure))
        ms = round(report.seconds * 1000)
        return texts("status_recall", when=when, ms=ms, lines=report.lines)

    async def _outbox_lines(self, texts: Texts) -> list[str]:
        state = self.delivery.state
        if state.last_sent_at is None:
            lines = [texts("status_retain_none")]
        else:
            seconds = round(self.clock.monotonic() - state.last_sent_at)
            ago = texts.span(seconds / 60) if seconds >= 60 else ""
            lines = [texts("status_retain", ago=ago or texts("span_seconds", number=seconds))]
        if state.unsaved or state.lost:
            lines.append(texts("status_unsaved", unsaved=state.unsaved, lost=state.lost))
        figures = await self._figures()
        if figures is None:
            reason = "newer_file" if state.stopped == "newer_file" else "disk"
            return [*lines, texts(reason)]
        lines.append(
            texts(
                "status_outbox",
                open=figures.open_turns,
                waiting=figures.waiting,
                aside=sum(figures.aside.values()),
                dropped=figures.dropped,
            )
        )
        lines += [f"- {texts(reason)} ×{n}" for reason, n in figures.aside.items()]
        if figures.withdrawn:
            lines.append(texts("status_withdrawn", number=figures.withdrawn))
        if figures.aside:
            lines.append(texts("status_retry"))
        if state.stopped:
            lines.append(texts("status_stopped", reason=texts(state.stopped)))
        if figures.moved_aside:
            lines.append(texts("status_moved_aside", name=figures.moved_aside))
        return lines

    def _failure_lines(self, scope: Scope | Skip, texts: Texts) -> Iterable[str]:
        """What the server has failed on, as the last check has found it."""
        found = self.failures.found if self.failures else Failures()
        if found.retains:
            here = found.of(scope) if isinstance(scope, Scope) else ()
            newest = (here or found.retains)[0]
            reason = texts(newest.failure or "extraction_failed")
            yield texts("status_failed", here=len(here), number=len(found.retains), reason=reason)
        if found.facts:
            facts = texts("status_failed_facts", facts=found.facts)
            yield " ".join([facts, texts(found.reason)]) if found.reason else facts
        if found.retains or found.facts:
            yield texts("status_failed_retry")

    async def _import_lines(self, scope: Scope | Skip, texts: Texts) -> list[str]:
        """How far this chat's import is, while it is under way."""
        if not isinstance(scope, Scope):
            return []
        found: list[Progress] = []
        with contextlib.suppress(*DISK_ERRORS):  # told with the outbox
            async with asyncio.timeout(STATUS_SECONDS):
                found = await self.outbox.import_progress(scope.chat)
        return [progress_text(texts, one) for one in found if one.phase == "running"]

    def _retention_lines(self, texts: Texts) -> Iterable[str]:
        """What has gone for its age, where anything is to go."""
        if self.retention:
            state, days = self.retention.state, self.retention.keep_days
            yield texts("status_expired", days=days, documents=state.documents)
            if state.reason:
                yield texts("status_expiry_stopped", reason=texts(state.reason))

    def _count_lines(self, texts: Texts) -> Iterable[str]:
        figures = self.memory.figures
        if self.memory.breaker.state != "closed":
            yield texts("status_breaker")
        faults = Counter({f"worker_{name}": n for name, n in self.workers.faults.items()})
        counters: dict[str, Counter[str]] = {
            "status_skips": Counter(figures.skips),
            "status_failures": figures.failures,
            "status_workers": faults,
        }
        for key, counter in counters.items():
            parts = [
                texts("count", what=texts(reason), number=number)
                for reason, number in counter.most_common()
            ]
            if parts:
                yield texts(key, list=texts("list_separator").join(parts))
        if self.state.fingerprint:
            yield texts("status_salt", fingerprint=self.state.fingerprint)


def _shown(used: SettingValue, texts: Texts) -> str:
    """A setting and its value; of a list only how many entries it has, as they are ids."""
    value = used.value
    if value is None:
        value = texts("default")
    elif isinstance(value, bool):
        value = texts("on" if value else "off")
    elif isinstance(value, tuple):
        value = len(value)
    elif isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"{used.name}={value}"
