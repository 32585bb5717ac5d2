"""What the bot is called, as far as the platform has told."""

from __future__ import annotations

import unittest
from typing import Any

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.bot_names import RETRY_SECONDS, BotNames
from fake_events import BOT, GROUP, FakeEvent, at
from support import Clock

SECOND = "90009002"


class Platform:
    """A OneBot client that tells what its accounts are called.

    Attributes:
        told: What it tells of each account.
        asked: What it was asked.
        fault: What it raises instead.
    """

    def __init__(self, **told: str) -> None:
        self.told: dict[str, dict[str, str]] = {BOT: told}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.fault: Exception | None = None

    async def call_action(self, action: str, *, self_id: int, **values: Any) -> dict[str, str]:
        self.asked.append((action, values))
        if self.fault:
            raise self.fault
        return self.told[str(self_id)]


class BotNamesTest(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.names = BotNames(self.clock)

    async def test_asked_once_for_each_chat(self) -> None:
        for group_id, told, expected, asked in (
            (GROUP, {"card": "茶茶", "nickname": "bot"}, "茶茶", "get_group_member_info"),
            ("70007002", {"card": "", "nickname": "bot"}, "bot", "get_group_member_info"),
            (None, {"nickname": "bot"}, "bot", "get_login_info"),
            ("70007003", {}, "", "get_group_member_info"),
        ):
            platform = Platform(**told)
            event = FakeEvent("你好", group_id=group_id, bot=platform)
            for _ in range(2):
                await self.names.ask(event)
                self.assertEqual(self.names.name(event), expected)
            self.assertEqual([action for action, _ in platform.asked], [asked])

    async def test_each_account_of_an_adapter_by_its_own_name(self) -> None:
        platform = Platform(card="茶茶")
        platform.told[SECOND] = {"card": "豆豆"}
        events = [FakeEvent("你好", self_id=one, bot=platform) for one in (BOT, SECOND)]
        for event in events:
            await self.names.ask(event)
        self.assertEqual([self.names.name(event) for event in events], ["茶茶", "豆豆"])
        members = [{"group_id": int(GROUP), "user_id": int(one)} for one in (BOT, SECOND)]
        self.assertEqual([values for _, values in platform.asked], members)

    async def test_asked_again_some_time_after_a_failure(self) -> None:
        platform = Platform(card="茶茶")
        event = FakeEvent("你好", bot=platform)
        platform.fault = OSError("offline")
        with self.assertRaises(OSError):
            await self.names.ask(event)
        platform.fault = None
        self.clock.now += RETRY_SECONDS - 1
        await self.names.ask(event)
        self.assertEqual(self.names.name(event), "")
        self.clock.now += 1
        await self.names.ask(event)
        self.assertEqual(self.names.name(event), "茶茶")
        self.clock.now += RETRY_SECONDS
        await self.names.ask(event)
        self.assertEqual(len(platform.asked), 2)

    async def test_other_platforms_do_not_tell(self) -> None:
        platform = Platform(card="茶茶")
        await self.names.ask(FakeEvent("你好", platform="telegram", bot=platform))
        self.assertEqual(platform.asked, [])

    async def test_mention_tells_too(self) -> None:
        platform = Platform(card="别的")
        self.assertEqual(self.names.name(FakeEvent("你好", at(BOT, "茶茶"))), "茶茶")
        event = FakeEvent("你好", bot=platform)
        await self.names.ask(event)
        self.assertEqual(self.names.name(event), "茶茶")
        self.assertEqual(platform.asked, [])
