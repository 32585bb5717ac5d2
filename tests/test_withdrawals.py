"""Which memories a withdrawn message is taken out of, and a disk that takes it only later."""

from __future__ import annotations

import sqlite3
import unittest
from unittest import mock

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.scope import Skip
from astrbot_plugin_hindsight_memory.withdrawals import (
    WITHDRAW_PAUSE_SECONDS,
    WITHDRAW_TRIES,
    Withdrawals,
    until_taken,
)
from support import Clock, group_origin, scope_of

ORIGIN = group_origin()
ROOM, PERSONA = scope_of(ORIGIN), scope_of(group_origin("70405060709"))


class WithdrawalsTest(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.bindings, self.state, self.memory = mock.Mock(), mock.Mock(), mock.Mock()
        self.eraser = mock.AsyncMock()
        self.bindings.resolve.return_value = ROOM
        self.bindings.memories.return_value = [ROOM, PERSONA]
        self.state.hasher.message = lambda origin, message_id: f"{origin.umo} {message_id}"

    async def withdraw(self, *, is_served: bool = True) -> None:
        eraser = self.eraser if is_served else None
        one = Withdrawals(self.bindings, self.state, self.memory, eraser)
        await one.withdraw(ORIGIN, "7")

    async def test_from_all_memories_of_the_chat(self) -> None:
        await self.withdraw()
        key = f"{ORIGIN.umo} 7"
        self.assertEqual(
            self.eraser.withdraw.await_args_list, [mock.call(ROOM, key), mock.call(PERSONA, key)]
        )

    async def test_without_a_server_what_was_just_said_is_forgotten(self) -> None:
        await self.withdraw(is_served=False)
        self.assertEqual(
            self.memory.forget_chat.call_args_list, [mock.call(ROOM), mock.call(PERSONA)]
        )

    async def test_where_there_is_no_memory(self) -> None:
        self.bindings.resolve.return_value = Skip.REBOUND
        await self.withdraw()
        self.bindings.resolve.return_value, self.state.hasher = ROOM, None
        await self.withdraw()
        self.memory.forget_chat.assert_not_called()
        self.eraser.withdraw.assert_not_awaited()


class DiskTest(unittest.IsolatedAsyncioTestCase):
    async def test_as_soon_as_the_disk_takes_it(self) -> None:
        clock = Clock()
        take = mock.AsyncMock(side_effect=[OSError, sqlite3.OperationalError, None])
        before = clock.monotonic()
        self.assertTrue(await until_taken(take, clock))
        self.assertEqual(clock.monotonic() - before, 2 * WITHDRAW_PAUSE_SECONDS)

    async def test_disk_that_never_does(self) -> None:
        take = mock.AsyncMock(side_effect=OSError)
        self.assertFalse(await until_taken(take, Clock()))
        self.assertEqual(take.await_count, WITHDRAW_TRIES)

    async def test_other_faults_are_told_at_once(self) -> None:
        with self.assertRaises(ValueError):
            await until_taken(mock.AsyncMock(side_effect=ValueError), Clock())


if __name__ == "__main__":
    unittest.main()
