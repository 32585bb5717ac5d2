"""All parts of the plugin but AstrBot, on a bank that keeps what it is given."""

from __future__ import annotations

import asyncio
from typing import Any, get_args

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.archive import Archive
from astrbot_plugin_hindsight_memory.commands import Caller, Commands
from astrbot_plugin_hindsight_memory.memory import ChatMemory, Message
from astrbot_plugin_hindsight_memory.memory_formatter import Speaker
from astrbot_plugin_hindsight_memory.outbox import Outbox
from astrbot_plugin_hindsight_memory.scope import Scope, ScopeState, Skip
from astrbot_plugin_hindsight_memory.status import Status
from astrbot_plugin_hindsight_memory.texts import Language, Texts
from fake_bank import BankCase
from support import (
    ANN,
    NOW,
    Clock,
    deliver_all,
    delivery_of,
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


class CommandsCase(BankCase):
    """`build` makes the parts as they are after a start."""

    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.wall = Clock(1_800_000_000.0)
        self.build()

    def build(self, **config: Any) -> None:
        self.settings = make_settings(**config)
        client = None if self.settings.problems else self.client
        self.state = ScopeState.load(self.folder, now=self.wall)
        self.outbox = Outbox(self.folder, every_n_turns=5, connect=self.disk.connect)
        self.delivery = delivery_of(self.outbox, client, self.clock, self.today)
        self.addAsyncCleanup(self.delivery.aclose)
        hasher = self.state.hasher
        self.archive: Archive | None = None
        if client and hasher:
            self.archive = Archive(
                client,
                self.outbox,
                self.delivery,
                profile_id=lambda scope: f"p{scope.chat[:8]}",
                monotonic=self.clock,
                sleep=self.sleep,
            )
        self.memory = ChatMemory(
            self.settings, self.state, client, self.delivery, monotonic=self.clock
        )
        self.addAsyncCleanup(self.memory.aclose)
        self.status = Status(
            settings=self.settings,
            state=self.state,
            client=client,
            memory=self.memory,
            delivery=self.delivery,
            outbox=self.outbox,
            archive=self.archive,
            monotonic=self.clock,
            today=self.today,
            host="4.29.3",
        )
        self.commands = Commands(
            settings=self.settings,
            state=self.state,
            client=client,
            memory=self.memory,
            delivery=self.delivery,
            archive=self.archive,
            status=self.status,
            folder=self.folder,
            monotonic=self.clock,
        )
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
        return await task

    async def send(self) -> None:
        """Delivers what may be delivered."""
        await deliver_all(self.delivery, self.bank)
