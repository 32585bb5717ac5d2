"""The data directory of v0.1.0, as that version wrote it, goes on under this one."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from typing import Any

import plugin
from astrbot_plugin_hindsight_memory.outbox_file import DATABASE_FILE
from astrbot_plugin_hindsight_memory.scope import SALT_FILE, STATE_FILE, Skip
from commands_case import CommandsCase
from support import group_origin, private_origin, scope_of

OLDER = plugin.CHECKOUT / "tests" / "fixtures" / "v0.1.0"


class UpgradeTest(CommandsCase):
    """One group with a sealed and an open window; who said no in it, and which chats did."""

    def build(self, **config: Any) -> None:
        (self.folder / SALT_FILE).write_text("00" * 32 + "\n", "utf-8")
        shutil.copyfile(OLDER / STATE_FILE, self.folder / STATE_FILE)
        with contextlib.closing(sqlite3.connect(self.folder / DATABASE_FILE)) as db:
            db.executescript((OLDER / "outbox.sql").read_text("utf-8"))
        self.clock.wall = 1_772_627_405.0
        super().build(**config)

    def test_chats_and_people_are_recognised(self) -> None:
        self.assertIsNone(self.state.fault)
        self.assertFalse(self.state.salt_lost)
        self.assertEqual(self.state.fingerprint, "9b6920b0")
        self.assertEqual(self.scope().chat, "26faf45c60130aa53711766799f5bbdb")

    def test_who_said_no_has_still_said_no(self) -> None:
        assert self.state.hasher
        others = [
            scope_of(origin, self.state.hasher)
            for origin in (group_origin("70002"), private_origin("20003"))
        ]
        reasons = [self.memory.admit(one) for one in others]
        self.assertEqual(reasons, [Skip.CHAT_OFF, Skip.PAUSED])
        here, out = self.scope(), self.other_scope()
        said_no = {
            person: (self.state.is_opted_out(here, person), self.state.is_opted_out(out, person))
            for person in ("20001", "20002", "20004")
        }
        expected = {"20001": (False, False), "20002": (True, False), "20004": (True, True)}
        self.assertEqual(said_no, expected)

    async def test_what_waited_is_delivered_once(self) -> None:
        await self.delivery.start()
        await self.send()
        contents = self.bank.texts(self.scope())
        self.assertEqual(len(contents), 2)
        for words in ("我喜欢喝绿茶", "我对芒果过敏"):
            self.assertEqual(sum(words in one for one in contents), 1)
        figures = await self.outbox.figures(day=self.today())
        self.assertEqual((figures.open_turns, figures.waiting, figures.moved_aside), (0, 0, ""))

    async def test_people_can_erase_what_waited(self) -> None:
        assert self.eraser
        await self.eraser.remove_person(self.scope(), "#3fa2c1")
        await self.all_erased()
        await self.send()
        self.assertEqual(self.bank.documents, {})
