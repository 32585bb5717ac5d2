"""What a closed instance still gets is taken in by the next one, once."""

from __future__ import annotations

import json
import os
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from unittest import mock

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory import outbox as outbox_module
from astrbot_plugin_hindsight_memory.late import (
    late_files,
    new_late_path,
    read_late,
    write_late,
)
from astrbot_plugin_hindsight_memory.outbox import Outbox
from support import Clock, turn_of

A = "a" * 32


class LateTest(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    async def asyncSetUp(self) -> None:
        self.outbox = self.open()

    def open(self) -> Outbox:
        outbox = Outbox(self.folder, every_n_turns=5, now=Clock())
        self.addAsyncCleanup(outbox.aclose)
        return outbox

    async def said(self, outbox: Outbox | None = None) -> list[str]:
        windows = await (outbox or self.outbox).windows_of(A)
        return [window.turns[0][0].words for window in windows]

    async def test_turns_of_a_closed_outbox_are_windows_of_the_next(self) -> None:
        await self.outbox.aclose()
        await self.outbox.leave([turn_of(A, "1"), turn_of(A, "2")])
        (path,) = late_files(self.folder)
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        after = self.open()
        await after.take_in_files()
        self.assertEqual(await self.said(after), ["1", "2"])
        window = await after.next_window()
        assert window
        self.assertEqual(window.header, turn_of(A).header)
        self.assertEqual(late_files(self.folder), [])

    async def test_lines_keep_when_they_came(self) -> None:
        turn = turn_of(A, "1")
        lines = tuple(replace(line, came=1.25) for line in turn.lines)
        path = new_late_path(self.folder)
        write_late(path, [replace(turn, lines=lines)])
        (late,) = read_late(path)
        self.assertEqual({line.came for line in late.turn.lines}, {1.25})
        rows = json.loads(path.read_text("utf-8"))
        del rows[0]["came"], rows[0]["messages"]  # as an earlier version wrote it
        path.write_text(json.dumps(rows), "utf-8")
        (late,) = read_late(path)
        self.assertEqual({(line.came, line.message) for line in late.turn.lines}, {(0.0, "")})

    async def test_killed_before_the_file_is_deleted(self) -> None:
        await self.outbox.leave([turn_of(A, "1")])
        with mock.patch.object(Path, "unlink", side_effect=PermissionError):
            with self.assertRaises(OSError):
                await self.outbox.take_in_files()
            await self.outbox.take_in_files()  # the same run knows it
        after = self.open()
        await after.take_in_files()
        self.assertEqual(await self.said(after), ["1"])
        self.assertEqual(late_files(self.folder), [])

    async def test_delivered_before_the_file_is_deleted(self) -> None:
        """It is sent again under the same ids, which changes nothing on the server."""
        await self.outbox.leave([turn_of(A, "1")])
        (path,) = late_files(self.folder)
        content = path.read_text("utf-8")
        await self.outbox.take_in_files()
        window = await self.outbox.next_window()
        assert window
        await self.outbox.delivered(window, day="")
        path.write_text(content, "utf-8")
        after = self.open()
        await after.take_in_files()
        self.assertEqual(await after.next_window(), window)

    async def test_damaged_file_is_kept_out_of_the_way(self) -> None:
        broken = ("{", "[1]", '[{"chat": "x"}]', "[{}]", '{"a": 1}', '[{"lines": null}]')
        for number, content in enumerate(broken):
            with self.subTest(content):
                path = self.folder / f"late-{number}.json"
                path.write_text(content, "utf-8")
                await self.outbox.take_in_files()
                kept = path.with_suffix(".unreadable")
                self.assertEqual(kept.read_text("utf-8"), content)
        self.assertEqual(late_files(self.folder), [])

    async def test_copy_of_what_is_there_is_left_out(self) -> None:
        """The process was killed after the commit, before the copy was deleted."""
        await self.outbox.copy(turn_of(A, "1"))
        (path,) = late_files(self.folder)
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        await self.outbox.take_in_files()
        self.assertEqual(await self.said(), [], "its own instance has the turn")
        await self.outbox.add([turn_of(A, "1")])
        after = self.open()
        await after.take_in_files()
        self.assertEqual(await self.said(after), ["1"])
        self.assertEqual(late_files(self.folder), [])

    async def test_copies_are_dropped(self) -> None:
        copies = [await self.outbox.copy(turn_of(A, text)) for text in "12"]
        await self.outbox.drop_copies(copies)
        self.assertEqual(late_files(self.folder), [])

    async def test_another_instance_takes_it_in_meanwhile(self) -> None:
        gone = self.folder / "late-gone.json"
        with mock.patch.object(Path, "glob", return_value=[gone]):
            self.assertEqual(late_files(self.folder), [gone])
        with mock.patch.object(outbox_module, "late_files", return_value=[gone]):
            await self.outbox.take_in_files()

    def test_oldest_first(self) -> None:
        for text in "123":
            write_late(new_late_path(self.folder), [turn_of(A, text)])
        for number, path in enumerate(self.folder.iterdir()):
            os.utime(path, (100 - number, 100 - number))
        times = [path.stat().st_mtime for path in late_files(self.folder)]
        self.assertEqual(times, sorted(times))

    def test_ids_are_fixed_when_it_is_written(self) -> None:
        write_late(new_late_path(self.folder), [turn_of(A, "1")])
        (path,) = late_files(self.folder)
        self.assertEqual(read_late(path), read_late(path))
        self.assertTrue(json.loads(path.read_text("utf-8"))[0]["document_id"].startswith(A[:24]))
