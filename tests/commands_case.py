"""All parts of the plugin but AstrBot, on a bank that keeps what it is given."""

from __future__ import annotations

import asyncio
from typing import Any, get_args

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.assembly import assemble
from astrbot_plugin_hindsight_memory.command_types import Caller
from astrbot_plugin_hindsight_memory.outbox import Outbox
from astrbot_plugin_hindsight_memory.scope import Scope, Skip
from astrbot_plugin_hindsight_memory.texts import Language, Texts
from astrbot_plugin_hindsight_memory.transcript import Message, Speaker
from fake_bank import BankCase
from support import (
    ANN,
    NOW,
    LogRecords,
    deliver_all,
    group_origin,
    make_settings,
    message_of,
    private_origin,
    scope_of,
)

LANGUAGES: tuple[Language, ...] = get_args(Language)
BEN = Speaker("小红", "#9b1c22")
AT = "(2026-01-02T03:04:05+08:00)"
TEA = f"小明#3fa2c1 {AT}: 我喜欢喝绿茶"
CAT = f"小红#9b1c22 {AT}: 我养了一只猫"
CAT_ANSWER = f"助手 {AT}: 猫很可爱"
CAT_ANSWER_ALONE = CAT_ANSWER.replace(")", " → 小红#9b1c22)", 1)


class CommandsCase(BankCase):
    """`build` makes the parts as they are after a start."""

    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.running_bots: set[str] = set()
        self.build()

    def build(self, **config: Any) -> None:
        self.settings = make_settings(**config)
        parts = assemble(
            self.settings,
            self.folder,
            clock=self.clock,
            logger=LogRecords().logger,
            host="4.29.3",
            client=None if self.settings.problems else self.client,
            outbox=Outbox(self.folder, every_n_turns=5, connect=self.disk.connect, now=self.clock),
            jitter=lambda: 1.0,
            running_bots=lambda: self.running_bots,
        )
        self.state, self.outbox, self.delivery = parts.state, parts.outbox, parts.delivery
        self.bindings, self.sharing = parts.bindings, parts.sharing
        self.memory, self.status, self.workers = parts.memory, parts.status, parts.workers
        self.commands, self.tools, self.work = parts.commands, parts.tools, parts.work
        self.importer, self.people = parts.importer, parts.people
        self.archive = parts.stored.archive if parts.stored else None
        self.eraser = parts.stored.eraser if parts.stored else None
        self.failures, self.retention = parts.failures, parts.retention
        self.addAsyncCleanup(self.people.aclose)
        self.addAsyncCleanup(self.delivery.aclose)
        self.addAsyncCleanup(self.memory.aclose)
        hasher = self.state.hasher
        self.private: Scope | Skip = Skip.STATE_FAULT
        self.group: Scope | Skip = Skip.STATE_FAULT
        if hasher:
            self.private = scope_of(private_origin(), hasher)
            self.group = scope_of(group_origin(), hasher)

    def today(self) -> str:
        return "2026-03-04"

    async def sleep(self, seconds: float) -> None:
        """Time passes at once."""
        self.clock.now += seconds
        await asyncio.sleep(0)

    def scope(self) -> Scope:
        assert isinstance(self.group, Scope)
        return self.group

    def profile_id(self) -> str:
        assert self.archive
        return self.archive.profile_id(self.scope())

    def other_scope(self) -> Scope:
        assert self.state.hasher
        return scope_of(group_origin("70002"), self.state.hasher)

    def private_scope(self) -> Scope:
        assert isinstance(self.private, Scope)
        return self.private

    def caller(self, scope: Scope | Skip | None = None, **changes: Any) -> Caller:
        values = {
            "scope": scope or self.group,
            "texts": Texts("zh"),
            "now": NOW,
            "speaker": ANN,
            "person_id": "20001",
            "is_manager": True,
            "is_admin": False,
        }
        return Caller(**values | changes)

    async def answers(self, words: str, caller: Caller | None = None) -> list[str]:
        caller = caller or self.caller()
        return [text async for text in self.commands.answer(caller, words)]

    async def ask(
        self,
        words: str,
        scope: Scope | Skip | None = None,
        *,
        language: Language = "zh",
        **changes: Any,
    ) -> str:
        """The one answer to a command."""
        caller = self.caller(scope, texts=Texts(language), **changes)
        (answer,) = await self.answers(words, caller)
        return answer

    async def confirmed(self, words: str, **changes: Any) -> str:
        """The answer to a command that asks for a code first."""
        question = await self.ask(words, **changes)
        self.assertRegex(question, rf"/hindsight {words}( all)? [0-9]{{4}}$")
        return await self.ask(question.partition("/hindsight ")[2], **changes)

    async def status_all(self, language: Language = "zh", scope: Scope | Skip | None = None) -> str:
        """What `status` tells who runs the bot."""
        return await self.ask("status all", scope, language=language, is_admin=True)

    async def expect(
        self, words: str, key: str, scope: Scope | Skip | None = None, **changes: Any
    ) -> None:
        """Both languages give the sentence of a key, alone."""
        for language in LANGUAGES:
            with self.subTest(words=words, language=language):
                self.clock.now += 61  # nobody asks too often here
                answer = await self.ask(words, scope, language=language, **changes)
                self.assertEqual(answer, Texts(language)(key))

    def message(self, words: str = "我最喜欢喝的是什么茶呢", **changes: Any) -> Message:
        return message_of(changes.pop("scope", None) or self.scope(), words, **changes)

    async def recall(self, words: str = "我最喜欢喝的是什么茶呢", **changes: Any) -> str:
        task = self.memory.start_recall(self.message(words, **changes))
        assert task
        return (await task).block

    async def send(self) -> None:
        """Delivers what may be delivered."""
        await deliver_all(self.delivery, self.bank)

    async def all_erased(self) -> None:
        """The background has erased all that it was to, and what stays is delivered."""
        assert self.eraser
        task = asyncio.create_task(self.eraser.run())
        async with asyncio.timeout(30):
            while await self.outbox.erasures():  # noqa: ASYNC110 - no waiting for time
                await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await self.delivery.flush()
