"""What is asked of AstrBot and the platform about a chat's past, and what they leave unanswered."""

from __future__ import annotations

import logging
import unittest
from types import SimpleNamespace
from typing import Any
from unittest import mock

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.history_host import ChatPast, place_of
from fake_events import FakeEvent

COMMANDS = frozenset({"hindsight"})


class PlaceTest(unittest.TestCase):
    def place(self, platform: str, *, needs_prefix: bool = True) -> Any:
        event = FakeEvent(platform=platform, get_platform_id=lambda: "bot1", session_id="s1")
        config = {
            "wake_prefix": ["/", ""],
            "platform_settings": {"friend_message_needs_wake_prefix": needs_prefix},
        }
        return place_of(event, "private", config, COMMANDS)

    def test_prefixes(self) -> None:
        place = self.place("telegram")
        self.assertEqual(
            (place.platform, place.instance, place.kind), ("telegram", "bot1", "private")
        )
        self.assertEqual((place.wake_prefixes, place.commands), (("/",), COMMANDS))
        self.assertTrue(place.needs_prefix)
        self.assertFalse(self.place("telegram", needs_prefix=False).needs_prefix)
        self.assertFalse(self.place("webchat").needs_prefix)


class AnswersTest(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.context, self.bot, self.say = mock.Mock(), mock.Mock(), mock.AsyncMock()
        self.context.message_history_manager.get = mock.AsyncMock(return_value=["row"])
        self.context.conversation_manager.get_conversations = mock.AsyncMock(return_value=["talk"])
        self.bot.call_action = mock.AsyncMock(return_value={"messages": []})
        self.event = SimpleNamespace(unified_msg_origin="umo", bot=self.bot)
        self.place = mock.Mock()
        self.past = ChatPast(
            self.context,
            self.event,
            find_place=self.place,
            read=mock.AsyncMock(return_value="reader"),
            say=self.say,
            logger=logging.getLogger("history"),
        )

    async def test_what_they_tell(self) -> None:
        self.assertEqual(await self.past.rows("bot1", "u", 2), ["row"])
        self.context.message_history_manager.get.assert_awaited_once_with("bot1", "u", page=2)
        self.assertEqual(await self.past.conversations("umo"), ["talk"])
        self.assertEqual(await self.past.onebot("get", {"count": 1}), {"messages": []})
        self.bot.call_action.assert_awaited_once_with("get", count=1)
        await self.past.say("done")
        self.say.assert_awaited_once_with("umo", "done")
        self.assertIs(self.past.host, self.past)
        self.assertEqual(await self.past.reader(mock.Mock()), "reader")

    async def test_what_they_do_not_tell(self) -> None:
        self.context.message_history_manager.get.side_effect = RuntimeError
        self.bot.call_action.side_effect = RuntimeError
        self.say.side_effect = RuntimeError
        self.assertIsNone(await self.past.rows("bot1", "u", 1))
        self.assertIsNone(await self.past.onebot("get", {}))
        await self.past.say("done")
        del self.event.bot
        self.assertIsNone(await self.past.onebot("get", {}))

    def test_chat_is_looked_up_only_where_somebody_asks(self) -> None:
        self.place.assert_not_called()
        self.assertIs(self.past.place, self.place.return_value)


if __name__ == "__main__":
    unittest.main()
