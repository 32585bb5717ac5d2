"""What the hooks hand on, and the answer at the end of a run."""

from __future__ import annotations

import asyncio
import unittest
from types import SimpleNamespace
from typing import Any

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.turn import (
    TURN_EXTRA,
    Recalled,
    Turn,
    answer_in,
    cut_echo,
    turn_of,
)
from support import group_origin, message_of, scope_of


def said(role: str, *texts: str | None, **changes: Any) -> Any:
    parts = [
        SimpleNamespace(text=text) if text is not None else SimpleNamespace() for text in texts
    ]
    return SimpleNamespace(**{"role": role, "content": parts, "tool_calls": None} | changes)


class AnswerTest(unittest.TestCase):
    def test_last_message_is_the_answer(self) -> None:
        for messages, expected in (
            ([said("user", "hi"), said("assistant", "hello")], "hello"),
            ([said("assistant", None, "a", "b")], "ab"),
            ([said("assistant", content="plain")], "plain"),
            ([said("assistant", content=None)], ""),
            ([said("assistant", "old"), said("user", "hi")], ""),
            ([said("assistant", "wait", tool_calls=[1])], ""),
            ([said("tool", "result")], ""),
            ([], ""),
        ):
            with self.subTest(expected=expected):
                self.assertEqual(answer_in(messages), expected)


class EchoTest(unittest.TestCase):
    def test_text_without_an_echo_is_left_alone(self) -> None:
        for text in (None, "", " tea, and 1 < 2 ", "write <attachment>tea</attachment>"):
            part = SimpleNamespace(type="text", text=text)
            answer = SimpleNamespace(completion_text=text)
            cut_echo([said("assistant", content=[part])], answer)
            self.assertEqual((answer.completion_text, part.text), (text, text))

    def test_text_alone_is_cut(self) -> None:
        text = "tea <system_reminder>User ID: 1</system_reminder>"
        for messages in (
            [],
            [said("assistant", content=None)],
            [said("assistant", content=text)],
            [said("assistant", content=[SimpleNamespace(type="think", think=text)])],
        ):
            answer = SimpleNamespace(completion_text=text)
            cut_echo(messages, answer)
            self.assertEqual(answer.completion_text, "tea")


class TurnTest(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.turn = Turn(message_of(scope_of(group_origin()), "hi"), object())

    def test_on_an_event(self) -> None:
        for extra, expected in ((self.turn, self.turn), (None, None), ("denied", None)):
            extras = {TURN_EXTRA: extra}
            self.assertIs(turn_of(SimpleNamespace(get_extra=extras.get)), expected)

    async def test_between_the_request_and_the_run(self) -> None:
        self.assertFalse(self.turn.is_between)
        self.turn.is_asked = True
        self.assertTrue(self.turn.is_between)
        self.turn.run = SimpleNamespace()
        self.assertFalse(self.turn.is_between)
        self.turn.run = None
        for name in ("is_over", "is_event_over"):
            setattr(self.turn, name, True)
            self.assertFalse(self.turn.is_between)
            setattr(self.turn, name, False)

    async def test_block(self) -> None:
        self.assertEqual(await self.turn.recalled(), Recalled())
        self.turn.recall = asyncio.create_task(asyncio.sleep(0, Recalled("block")))
        self.assertEqual(await self.turn.recalled(), Recalled("block"))

    async def test_block_of_a_cancelled_recall(self) -> None:
        self.turn.recall = asyncio.create_task(asyncio.sleep(60, Recalled("block")))
        waiting = asyncio.create_task(self.turn.recalled())
        await asyncio.sleep(0)
        self.turn.recall.cancel()
        self.assertEqual(await waiting, Recalled())

    async def test_dropped_recall(self) -> None:
        self.turn.recall = recall = asyncio.create_task(asyncio.sleep(60, Recalled("block")))
        self.turn.drop_recall()
        self.assertEqual(await self.turn.recalled(), Recalled())
        await asyncio.wait({recall})
        self.assertTrue(recall.cancelled())
        self.turn.drop_recall()
