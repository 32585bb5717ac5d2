"""Which number means which memory."""

from __future__ import annotations

import unittest
from typing import Any

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.command_types import Caller
from astrbot_plugin_hindsight_memory.numbered import NumberedLists
from astrbot_plugin_hindsight_memory.texts import Texts
from astrbot_plugin_hindsight_memory.transcript import Speaker
from support import ANN, NOW, group_origin, memory_of, scope_of


def caller(**changes: Any) -> Caller:
    values: dict[str, Any] = {
        "scope": scope_of(group_origin()),
        "texts": Texts("en"),
        "now": NOW,
        "speaker": ANN,
        "person_id": "20001",
        "is_manager": False,
        "is_admin": False,
    }
    return Caller(**values | changes)


class NumberedListsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.lists = NumberedLists()
        self.memories = [memory_of(text, memory_id=text) for text in ("tea", "cats")]

    def test_numbers_go_on_where_the_page_begins(self) -> None:
        lines = self.lists.lines(caller(), self.memories, first=11)
        self.assertEqual(lines, ["11. [fact] 2026-03-04 tea", "12. [fact] 2026-03-04 cats"])
        told = [self.lists.memory_id(caller(), number) for number in (1, 11, 12, 13)]
        self.assertEqual(told, [None, "tea", "cats", None])

    def test_last_list_counts(self) -> None:
        self.lists.put(caller(), self.memories)
        self.lists.put(caller(), self.memories[1:])
        told = [self.lists.memory_id(caller(), number) for number in (1, 2)]
        self.assertEqual(told, ["cats", None])

    def test_each_person_in_each_chat_for_itself(self) -> None:
        self.lists.put(caller(), self.memories)
        for other in (
            caller(speaker=Speaker("Ben", "#9b1c22")),
            caller(scope=scope_of(group_origin("70002"))),
        ):
            self.assertIsNone(self.lists.memory_id(other, 1))

    def test_forgotten_with_the_chat(self) -> None:
        here, elsewhere = caller(), caller(scope=scope_of(group_origin("70002")))
        for one in (here, elsewhere):
            self.lists.put(one, self.memories)
        self.lists.forget_chat(scope_of(group_origin()).chat)
        self.assertIsNone(self.lists.memory_id(here, 1))
        self.assertEqual(self.lists.memory_id(elsewhere, 1), "tea")
