"""Which number means which memory."""

from __future__ import annotations

import unittest
from typing import Any

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.command_types import Caller
from astrbot_plugin_hindsight_memory.numbered import Numbered, NumberedLists
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

    def told(self, number: int) -> str | None:
        entry = self.lists.get(caller(), number)
        return entry.memory.memory_id if entry else None

    def test_numbers_go_on_where_the_page_begins(self) -> None:
        self.lists.lines(caller(), self.memories)
        lines = self.lists.lines(caller(), self.memories, first=11)
        self.assertEqual(lines, ["11. tea (Mar 4, 12:30)", "12. cats (Mar 4, 12:30)"])
        told = [self.told(number) for number in (1, 2, 3, 11, 12, 13)]
        self.assertEqual(told, ["tea", "cats", None, "tea", "cats", None])

    def test_more_is_numbered_behind_the_last(self) -> None:
        self.lists.lines(caller(), self.memories)
        self.assertEqual(self.lists.add(caller(), [Numbered(memory_of("x"))] * 2), [3, 4])

    def test_names_alone_unless_two_have_the_same(self) -> None:
        lists = NumberedLists(lambda _: {"#0a0b0c": "Ann"})
        said = [
            memory_of("Ann#1a2b3c (2026-03-04T12:30:05+00:00): tea"),
            memory_of("Ben#9b1c22 (2026-03-04T12:30:05+00:00): cats"),
            memory_of("Ben#9b1c22 likes cats", speakers=("#9b1c22",)),
        ]
        shown = [line.partition(" (")[2] for line in lists.lines(caller(), said)]
        self.assertEqual(shown[:2], ["Ann#1a2b3c Mar 4, 12:30)", "Ben Mar 4, 12:30)"])
        self.assertEqual(lists.lines(caller(), said)[2], "3. Ben likes cats (Mar 4, 12:30)")

    def test_last_list_counts(self) -> None:
        self.lists.lines(caller(), self.memories)
        self.lists.lines(caller(), self.memories[1:])
        told = [self.told(number) for number in (1, 2)]
        self.assertEqual(told, ["cats", None])

    def test_each_person_in_each_chat_for_itself(self) -> None:
        self.lists.lines(caller(), self.memories)
        for other in (
            caller(speaker=Speaker("Ben", "#9b1c22")),
            caller(scope=scope_of(group_origin("70002"))),
        ):
            self.assertIsNone(self.lists.get(other, 1))

    def test_forgotten_with_the_chat(self) -> None:
        here, elsewhere = caller(), caller(scope=scope_of(group_origin("70002")))
        for one in (here, elsewhere):
            self.lists.lines(one, self.memories)
        self.lists.forget_chat(scope_of(group_origin()).chat)
        self.assertIsNone(self.lists.get(here, 1))
        entry = self.lists.get(elsewhere, 1)
        self.assertEqual(entry and entry.memory.memory_id, "tea")
