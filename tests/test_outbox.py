"""Turns survive on disk, in order, once each, whatever the disk does."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import unittest
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory import outbox as outbox_module
from astrbot_plugin_hindsight_memory import outbox_file as outbox_file_module
from astrbot_plugin_hindsight_memory.outbox import (
    UNREADABLE,
    Outbox,
    OutboxFigures,
    outbox_exists,
)
from astrbot_plugin_hindsight_memory.outbox_file import DATABASE_FILE, VERSION, NewerFileError
from astrbot_plugin_hindsight_memory.transcript import (
    Document,
    Header,
    Line,
    TurnRecord,
    group_turns,
)
from astrbot_plugin_hindsight_memory.windows import MAX_WINDOW_CHARS, Window
from astrbot_plugin_hindsight_memory.wishes import Edited, Erasure
from support import Disk, turn_of

AT = "2026-03-04T12:30:05+00:00"
A, B, C = "a" * 32, "b" * 32, "c" * 32
DAY = "2026-03-04"
WISH = Erasure(A, ("t1", "t2", "t3", A), "profile")
UUID = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


def words(window: Window) -> list[str]:
    """What was said in each turn of a window."""
    return [turn[0].text.rpartition(": ")[2] for turn in window.turns]


class OutboxCase(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.path = self.folder / DATABASE_FILE
        self.outbox = self.open()

    def open(self, *, every: int = 3, disk: Disk | None = None, closed: bool = False) -> Outbox:
        seams: dict[str, Any] = {"connect": disk.connect, "sync": disk.sync} if disk else {}
        outbox = Outbox(self.folder, every_n_turns=every, now=lambda: 1000.0, **seams)
        if not closed:
            self.addAsyncCleanup(outbox.aclose)
        return outbox

    async def asyncTearDown(self) -> None:
        """Whatever a test has done: what the outbox knows of its queue is what is on disk."""
        with contextlib.suppress(sqlite3.Error, OSError):
            window = await self.outbox.next_window()
            self.assertEqual(window, await self.open().next_window())

    async def add(self, *texts: str, chat: str = A, urgent: bool = False) -> list[bool]:
        turns = [turn_of(chat, text, urgent=urgent) for text in texts]
        return [place.sealed for place in await self.outbox.add(turns)]

    async def next(self, *excluding: str) -> Window:
        window = await self.outbox.next_window(excluding=excluding)
        assert window is not None
        return window

    async def figures(self) -> OutboxFigures:
        return await self.outbox.figures(day=DAY)

    async def noted(self) -> set[str]:
        """Documents that are to vanish."""
        return {one for erasure in await self.outbox.erasures() for one in erasure.documents}

    async def drain(self) -> list[str]:
        """Takes everything that is sealed, in the order of delivery."""
        found: list[str] = []
        while window := await self.outbox.next_window():
            found += words(window)
            await self.outbox.delivered(window, day=DAY)
        return found


class SealingTest(OutboxCase):
    async def test_number_of_turns_fills_a_window(self) -> None:
        self.assertEqual(await self.add("1", "2"), [False, False])
        self.assertIsNone(await self.outbox.next_window())
        self.assertEqual(await self.add("3", "4"), [True, False])
        self.assertEqual(words(await self.next()), ["1", "2", "3"])

    async def test_size_fills_a_window(self) -> None:
        half = "x" * (MAX_WINDOW_CHARS // 2)
        self.assertEqual(await self.add("small", half, half), [False, False, True])
        self.assertEqual(await self.add("x" * MAX_WINDOW_CHARS), [True])

    async def test_urgent_turn_takes_the_earlier_ones_along(self) -> None:
        await self.add("1")
        self.assertEqual(await self.add("2", urgent=True), [True])
        self.assertEqual(words(await self.next()), ["1", "2"])

    async def test_chats_do_not_fill_each_others_windows(self) -> None:
        await self.add("a1", "a2")
        self.assertEqual(await self.add("b1", "b2", chat=B), [False, False])
        self.assertEqual((await self.figures()).open_turns, 4)

    async def test_seal_some(self) -> None:
        (first,) = await self.outbox.add([turn_of(A, "a")])
        await self.outbox.add([turn_of(B, "b")])
        await self.outbox.seal([first.document_id, "gone"])
        self.assertEqual(await self.drain(), ["a"])
        self.assertEqual((await self.figures()).open_turns, 1)

    async def test_seal_all_and_twice(self) -> None:
        await self.add("a")
        await self.add("b", chat=B)
        await self.outbox.seal()
        await self.outbox.seal()
        self.assertEqual((await self.figures()).waiting, 2)
        self.assertEqual(await self.drain(), ["a", "b"])

    async def test_turn_after_the_seal_begins_another_window(self) -> None:
        await self.add("1")
        await self.outbox.seal()
        await self.add("2")
        self.assertEqual(words(await self.next()), ["1"])


class WindowTest(OutboxCase):
    async def test_names(self) -> None:
        await self.add("1", urgent=True)
        await self.add("2", urgent=True)
        first = await self.next()
        await self.outbox.delivered(first, day=DAY)
        second = await self.next()
        for window in (first, second):
            self.assertRegex(window.document_id, rf"\A{A[:24]}-{UUID}\Z")
            self.assertRegex(window.operation_id, rf"\A{UUID}\Z")
        names = {w.document_id for w in (first, second)} | {w.operation_id for w in (first, second)}
        self.assertEqual(len(names), 4)

    async def test_content_and_header_come_back_as_they_were(self) -> None:
        header = Header(("标", "签"), "'\"\n", "x", {"a": "b"})
        lines = (Line("小明#0a0b0c (t): 'quoted' \U0001f600"), Line("助手 (t): 好"))
        await self.outbox.add([TurnRecord(A, header, lines), TurnRecord(A, header, lines[:1])])
        await self.outbox.seal()
        window = await self.next()
        self.assertEqual(window.chat, A)
        self.assertEqual(window.header, header)
        self.assertEqual(window.turns, (lines, lines[:1]))
        self.assertEqual(window.chars, sum(len(x.text) + 1 for x in (*lines, lines[0])))

    async def test_same_until_it_is_delivered(self) -> None:
        await self.add("1", urgent=True)
        self.assertEqual(await self.next(), await self.next())

    async def test_renewed_operation_keeps_the_document(self) -> None:
        await self.add("1", urgent=True)
        before = await self.next()
        await self.outbox.renew_operation(before)
        after = await self.next()
        self.assertNotEqual(after.operation_id, before.operation_id)
        self.assertEqual(after.document_id, before.document_id)
        self.assertEqual(after.turns, before.turns)


class OrderTest(OutboxCase):
    async def test_oldest_first_and_exclusion(self) -> None:
        for chat, text in ((A, "a1"), (B, "b1"), (A, "a2"), (C, "c1")):
            await self.add(text, chat=chat, urgent=True)
        self.assertEqual(words(await self.next()), ["a1"])
        self.assertEqual(words(await self.next(A)), ["b1"])
        self.assertEqual(words(await self.next(A, B)), ["c1"])
        self.assertIsNone(await self.outbox.next_window(excluding=[A, B, C]))
        self.assertEqual(await self.drain(), ["a1", "b1", "a2", "c1"])

    async def test_queue_is_read_only_while_a_window_waits(self) -> None:
        disk = Disk()
        self.outbox = self.open(disk=disk)
        await self.add("0", urgent=True)
        self.assertEqual(await self.drain(), ["0"])
        await self.add("1")
        with mock.patch.object(disk, "touch", side_effect=disk.touch) as touch:
            self.assertIsNone(await self.outbox.next_window())
            touch.assert_not_called()
            await self.outbox.seal()
            touch.reset_mock()
            self.assertEqual(words(await self.next()), ["1"])
            touch.assert_called()


class ChatTest(OutboxCase):
    """What commands do to the windows of one chat."""

    def lines(self, *texts: str) -> tuple[Line, ...]:
        names = ("Ann#0a0b0c", "Bot")
        return tuple(Line(f"{names[n % 2]} ({AT}): {text}") for n, text in enumerate(texts))

    async def three_windows(self) -> None:
        """One open, one sealed, one aside."""
        await self.add("aside", urgent=True)
        await self.outbox.set_aside(await self.next(), "rejected")
        await self.add("sealed", urgent=True)
        await self.add("open")

    async def test_windows_of_a_chat_in_order(self) -> None:
        await self.three_windows()
        await self.add("other", chat=B, urgent=True)
        found = await self.outbox.windows_of(A)
        self.assertEqual([words(w) for w in found], [["aside"], ["sealed"], ["open"]])
        self.assertEqual(await self.outbox.windows_of(C), [])

    def stored(self) -> Document:
        return Document(
            "old", Header(("t",), "", "x", {}), (*self.lines("a", "b"), *self.lines("c"))
        )

    async def test_replacement_and_note_are_one(self) -> None:
        stored = self.stored()
        edited = await self.outbox.replace_documents(WISH, without_b, [stored])
        self.assertEqual(edited, Edited(lines=1, documents=1))
        window = await self.next()
        self.assertRegex(window.document_id, rf"\A{A[:24]}-{UUID}\Z")
        self.assertEqual(window.header, stored.header)
        self.assertEqual([line.words for turn in window.turns for line in turn], ["a", "c"])
        self.assertEqual((await self.figures()).waiting, 1)
        self.assertEqual(await self.noted(), {"old"})

    async def test_replaced_once_only(self) -> None:
        """A second correction of what is noted already would store what stays twice."""
        for number in (1, 0):
            edited = await self.outbox.replace_documents(WISH, without_b, [self.stored()])
            self.assertEqual(edited.documents, number)
        self.assertEqual((await self.figures()).waiting, 1)

    async def test_nothing_replaces_what_is_erased_as_a_whole(self) -> None:
        await self.outbox.drop_chat(dataclasses.replace(WISH, whole=True))
        edited = await self.outbox.replace_documents(WISH, without_b, [self.stored()])
        self.assertEqual(edited.documents, 1)
        self.assertEqual((await self.figures()).waiting, 0)
        self.assertEqual(await self.noted(), {"old"})

    async def test_replacement_has_no_line_of_somebody_who_is_being_erased(self) -> None:
        person = dataclasses.replace(WISH, people=("#0a0b0c",))
        await self.outbox.edit_chat(person, list, ())
        await self.outbox.replace_documents(WISH, without_b, [self.stored()])
        self.assertEqual(await self.outbox.windows_of(A), [])

    async def test_dropped_chat(self) -> None:
        await self.three_windows()
        before = await self.outbox.windows_of(A)
        await self.add("other", chat=B, urgent=True)
        whole = dataclasses.replace(WISH, whole=True)
        self.assertEqual(await self.outbox.drop_chat(whole), 3)
        self.assertEqual(await self.outbox.drop_chat(whole), 0)
        figures = await self.figures()
        self.assertEqual((figures.waiting, figures.open_turns, figures.aside), (1, 0, {}))
        (erasure,) = await self.outbox.erasures()
        self.assertTrue(erasure.whole)
        # What was open has never been sent.
        self.assertEqual(set(erasure.documents), {one.document_id for one in before[:2]})
        self.assertEqual(await self.drain(), ["other"])

    async def test_edited_chat(self) -> None:
        await self.three_windows()
        await self.add("other", chat=B, urgent=True)
        before = await self.outbox.windows_of(A)

        def without_answers(lines: Sequence[Line]) -> list[Line]:
            return [line for line in lines if line.pseudonym and "open" not in line.text]

        self.assertEqual(await self.outbox.edit_chat(WISH, without_answers, ()), Edited(waiting=4))
        self.assertEqual(await self.noted(), {one.document_id for one in before[:2]})
        after = await self.outbox.windows_of(A)
        self.assertEqual([words(window) for window in after], [["aside"], ["sealed"]])
        for old, new in zip(before, after, strict=False):
            self.assertNotEqual(new.document_id, old.document_id)
            self.assertNotEqual(new.operation_id, old.operation_id)
            self.assertEqual(new.header, old.header)
            self.assertEqual(new.chars, len(new.turns[0][0].text) + 1)
        figures = await self.figures()
        self.assertEqual((figures.waiting, figures.open_turns), (2, 0))
        self.assertEqual(figures.aside, {"rejected": 1})

    async def test_edit_that_takes_nothing_changes_nothing(self) -> None:
        await self.three_windows()
        before = await self.outbox.windows_of(A)
        self.assertEqual(await self.outbox.edit_chat(WISH, list, ()), Edited())
        self.assertEqual(await self.outbox.windows_of(A), before)
        self.assertEqual(await self.outbox.erasures(), [])

    async def test_edit_without_its_note_does_not_happen(self) -> None:
        disk = Disk()
        self.outbox = self.open(disk=disk)
        await self.three_windows()
        before = await self.outbox.windows_of(A)
        disk.fault, disk.only = sqlite3.SQLITE_FULL, "INTO erasures"
        for change in (
            self.outbox.edit_chat(WISH, lambda lines: [lines[0]], ()),
            self.outbox.drop_chat(WISH),
            self.outbox.replace_documents(WISH, without_b, [self.stored()]),
        ):
            with self.assertRaises(sqlite3.Error):
                await change
        disk.fault = None
        self.assertEqual(await self.outbox.windows_of(A), before)

    async def test_edited_open_window_is_added_to(self) -> None:
        await self.add("1", "2")
        (before,) = await self.outbox.windows_of(A)
        await self.outbox.edit_chat(
            WISH, lambda lines: [x for x in lines if ": 1" not in x.text], ()
        )
        # It was never sent: the delivery, which waits for its quiet, still knows it.
        self.assertEqual((await self.outbox.windows_of(A))[0].document_id, before.document_id)
        self.assertEqual(await self.add("3"), [True])
        self.assertEqual((await self.drain())[-1], "3")

    async def test_lines_as_turns(self) -> None:
        ann, ben, bot = (Line(f"{n} ({AT}): x") for n in ("Ann#00000a", "Ben#00000b", "Bot"))
        for lines, expected in (
            ([], []),
            ([ann, bot, ben, bot], [(ann, bot), (ben, bot)]),
            ([ann, ben, bot], [(ann, ben, bot)]),
            ([bot, ann], [(bot,), (ann,)]),
            ([ann, bot, bot, ben], [(ann, bot, bot), (ben,)]),
        ):
            self.assertEqual(group_turns(lines), expected)


def without_b(lines: Sequence[Line]) -> list[Line]:
    return [line for line in lines if line.words != "b"]


class ErasureTest(OutboxCase):
    """Wishes survive until they are done."""

    WHOLE = dataclasses.replace(WISH, documents=("d1", "d2"), whole=True)
    PERSON = dataclasses.replace(WISH, chat=B, people=("#0a0b0c",))

    async def test_kept_over_a_restart_until_it_ends(self) -> None:
        await self.outbox.drop_chat(self.WHOLE)
        await self.outbox.edit_chat(self.PERSON, list, ())
        again = self.open()
        self.assertEqual(await again.erasures(), [self.WHOLE, self.PERSON])
        await again.end_erasure(A)
        self.assertEqual((await again.erasures())[0], dataclasses.replace(WISH, whole=True))
        for chat in (A, B, "gone"):
            await again.end_wish(chat)
        self.assertEqual(await self.outbox.erasures(), [])

    async def test_what_is_noted_meanwhile_stays(self) -> None:
        await self.outbox.drop_chat(self.WHOLE)
        await self.outbox.note_documents(A, ["d2", "d3"])
        await self.outbox.end_wish(A)
        expected = dataclasses.replace(WISH, documents=("d1", "d2", "d3"))
        self.assertEqual(await self.outbox.erasures(), [expected])
        await self.outbox.end_erasure(A)
        self.assertEqual(await self.outbox.erasures(), [])

    async def test_nothing_of_a_held_chat_is_sent(self) -> None:
        await self.outbox.drop_chat(self.WHOLE)
        await self.outbox.edit_chat(self.PERSON, list, ())
        for chat in (A, B, C):
            await self.add(chat[0], chat=chat, urgent=True)
        self.assertEqual(words(await self.next()), [C[0]])
        self.assertTrue(await self.outbox.held(A))
        self.assertIsNone(await self.outbox.held(C))
        await self.outbox.end_wish(A)
        self.assertEqual(words(await self.next()), [A[0]])

    async def test_what_began_before_is_not_stored_after(self) -> None:
        await self.outbox.drop_chat(dataclasses.replace(WISH, whole=True, at=10.0))
        await self.outbox.edit_chat(dataclasses.replace(self.PERSON, at=20.0), list, ())
        before = [(A, 9.0), (B, 19.0)]
        after = [(A, 11.0), (B, 21.0), (C, 9.0)]
        turns = [dataclasses.replace(turn_of(c), began=at) for c, at in [*before, *after]]
        added = await self.outbox.add(turns)
        self.assertEqual(len(added), len(after))
        self.assertEqual([await self.outbox.queue(turn) for turn in turns[:2]], [None, None])
        someone = (Line(f"Ben#00000b ({AT}): x"), Line(f"Bot ({AT}): y"))
        other = dataclasses.replace(turns[1], lines=someone)
        self.assertEqual(len(await self.outbox.add([other])), 1)

    async def test_times_of_an_earlier_boot_mean_nothing(self) -> None:
        await self.outbox.cut_off(A, "", 500.0)
        turn = dataclasses.replace(turn_of(A), began=100.0)
        self.assertEqual(await self.outbox.add([turn]), [])
        await self.outbox.aclose()
        again = Outbox(self.folder, every_n_turns=5, now=lambda: 90.0)
        self.addAsyncCleanup(again.aclose)
        self.assertEqual(len(await again.add([turn])), 1)


class CountsTest(OutboxCase):
    async def test_delivered_counts_once(self) -> None:
        await self.add("1", urgent=True)
        window = await self.next()
        for _ in range(2):
            await self.outbox.delivered(window, day=DAY)
        figures = await self.figures()
        self.assertEqual((figures.sent, figures.waiting), (1, 0))
        self.assertEqual((figures.sent_chars, figures.sent_chars_today), (window.chars,) * 2)

    async def test_day_counts_for_itself(self) -> None:
        for day in (DAY, "2026-03-05"):
            await self.add("1", urgent=True)
            await self.outbox.delivered(await self.next(), day=day)
        figures = await self.outbox.figures(day="2026-03-05")
        self.assertEqual(figures.sent_chars, 2 * figures.sent_chars_today)
        self.assertEqual((await self.outbox.figures(day="2026-03-06")).sent_chars_today, 0)

    async def test_aside_and_back(self) -> None:
        for text, reason in (("1", "rejected"), ("2", "rejected"), ("3", "too_large")):
            await self.add(text, urgent=True)
            await self.outbox.set_aside(await self.next(), reason)
        await self.add("4", urgent=True)
        figures = await self.figures()
        self.assertEqual(figures.aside, {"rejected": 2, "too_large": 1})
        self.assertEqual(figures.waiting, 1)
        self.assertEqual(words(await self.next()), ["4"])
        self.assertEqual(await self.outbox.retry_aside(), 3)
        self.assertEqual(await self.outbox.retry_aside(), 0)
        self.assertEqual((await self.figures()).aside, {})
        self.assertEqual(await self.drain(), ["1", "2", "3", "4"])

    async def test_aside_windows_come_back_as_young_ones(self) -> None:
        await self.add("1", urgent=True)
        await self.outbox.set_aside(await self.next(), "rejected")
        await self.outbox.age(1000, limit=100)
        await self.outbox.retry_aside()
        self.assertEqual(await self.outbox.age(60, limit=100), 0)
        self.assertEqual(await self.outbox.age(60, limit=100), 1)

    async def test_set_aside_after_it_has_gone(self) -> None:
        await self.add("1", urgent=True)
        window = await self.next()
        await self.outbox.delivered(window, day=DAY)
        await self.outbox.set_aside(window, "rejected")
        self.assertEqual((await self.figures()).aside, {})

    async def test_figures_survive_a_restart(self) -> None:
        await self.add("1", urgent=True)
        await self.outbox.delivered(await self.next(), day=DAY)
        await self.add("2", urgent=True)
        await self.add("3")
        before = await self.figures()
        again = self.open()
        self.assertEqual(await again.figures(day=DAY), before)


class BoundsTest(OutboxCase):
    async def test_number_of_windows(self) -> None:
        self.enterContext(mock.patch.object(outbox_module, "MAX_WINDOWS", 3))
        for n in range(5):
            await self.add(str(n), urgent=True)
        figures = await self.figures()
        self.assertEqual((figures.waiting, figures.dropped), (3, 2))
        self.assertEqual(await self.drain(), ["2", "3", "4"])

    async def test_number_of_windows_when_all_are_sealed_at_once(self) -> None:
        self.enterContext(mock.patch.object(outbox_module, "MAX_WINDOWS", 1))
        await self.add("1")
        await self.add("2", chat=B)
        await self.outbox.seal()
        self.assertEqual(await self.drain(), ["2"])

    async def test_windows_set_aside_count(self) -> None:
        self.enterContext(mock.patch.object(outbox_module, "MAX_WINDOWS", 3))
        for n in range(6):
            await self.add(str(n), urgent=True)
            if n % 2 == 0:
                await self.outbox.set_aside(await self.next(), "rejected")
        figures = await self.figures()
        self.assertEqual(figures.waiting + sum(figures.aside.values()), 3)
        self.assertEqual(figures.dropped, 3)

    async def test_age_is_running_time(self) -> None:
        await self.add("old", urgent=True)
        self.assertEqual(await self.outbox.age(60, limit=100), 0)
        await self.add("young", urgent=True)
        await self.add("open")
        again = self.open()  # a restart does not make it younger
        self.assertEqual(await again.age(50, limit=100), 1)
        figures = await again.figures(day=DAY)
        self.assertEqual((figures.waiting, figures.dropped), (1, 1))
        window = await again.next_window()
        assert window
        self.assertEqual(words(window), ["young"])

    async def test_age_spares_what_is_open_or_aside(self) -> None:
        await self.add("aside", urgent=True)
        await self.outbox.set_aside(await self.next(), "rejected")
        await self.add("open")
        self.assertEqual(await self.outbox.age(1000, limit=100), 0)
        self.assertEqual((await self.figures()).open_turns, 1)

    async def test_dropped_windows_leave_no_text_behind(self) -> None:
        await self.add("needle in the hay", urgent=True)
        await self.outbox.age(1000, limit=100)
        db = sqlite3.connect(self.path)
        self.addCleanup(db.close)
        self.assertEqual(db.execute("SELECT COUNT(*) FROM turns").fetchone(), (0,))


class FilesTest(OutboxCase):
    async def test_existence(self) -> None:
        self.assertFalse(outbox_exists(self.folder))
        await self.add("1")
        self.assertTrue(outbox_exists(self.folder))

    async def test_files_are_for_their_owner_only(self) -> None:
        await self.add("1")
        files = list(self.folder.iterdir())
        self.assertIn(self.path, files)
        for path in files:
            with self.subTest(path.name):
                self.assertEqual(path.stat().st_mode & 0o777, 0o600)

    async def test_reopening_loses_nothing(self) -> None:
        first = self.open(closed=True)
        await first.add([turn_of(A, "1"), turn_of(A, "2", urgent=True), turn_of(A, "3")])
        before = await first.next_window()
        await first.aclose()
        self.assertEqual(await self.next(), before)
        await self.add("4", urgent=True)
        self.assertEqual(await self.drain(), ["1", "2", "3", "4"])

    async def test_a_killed_run_loses_nothing(self) -> None:
        """Nothing is closed: the next run finds what was committed."""
        await self.add("1", "2", "3", "4")
        self.outbox = self.open()
        await self.outbox.seal()
        self.assertEqual(await self.drain(), ["1", "2", "3", "4"])

    async def test_power_cut_takes_nothing_back_that_was_synced(self) -> None:
        """What is committed is in the log, and the disk is asked to have all of it."""
        await self.add("1", "2", "3")
        synced: list[int] = []
        with mock.patch.object(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_ino)):
            await self.outbox.sync()
        log = self.path.with_name(self.path.name + "-wal")
        self.assertEqual(synced, [log.stat().st_ino, self.folder.stat().st_ino])

    async def test_sync_before_any_use(self) -> None:
        await self.outbox.sync()

    async def test_a_slow_disk_keeps_no_commit_waiting(self) -> None:
        disk = Disk()
        self.outbox = self.open(disk=disk)
        await self.add("1")
        is_stalled, go_on = disk.stall()
        syncing = asyncio.create_task(self.outbox.sync())
        self.assertTrue(await is_stalled())
        await self.add("2")
        self.assertFalse(syncing.done())
        go_on()
        await syncing

    async def test_closing_before_any_use(self) -> None:
        outbox = self.open(closed=True)
        await outbox.aclose()
        self.assertFalse(outbox_exists(self.folder))

    async def test_closing_twice_does_nothing(self) -> None:
        outbox = self.open(closed=True)
        await outbox.add([turn_of()])
        await outbox.aclose()
        await outbox.aclose()
        with self.assertRaises(sqlite3.Error):
            await outbox.add([turn_of()])

    async def test_nothing_opens_the_file_again_while_it_is_closed(self) -> None:
        await self.add("1")
        busy = threading.Event()
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))  # whatever waits there comes late
        waiting = loop.run_in_executor(None, busy.wait)
        closing = asyncio.create_task(self.outbox.aclose())
        await asyncio.sleep(0)
        try:
            with self.assertRaises(sqlite3.ProgrammingError):
                await self.outbox.add([turn_of()])
        finally:
            busy.set()
            await asyncio.gather(waiting, closing)


class OtherReaderTest(unittest.TestCase):
    """Another program looks into the file, as a backup or a curious operator does."""

    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.path = self.folder / DATABASE_FILE

    def write(self, process: subprocess.Popen[str], text: str) -> None:
        assert process.stdin
        assert process.stdout
        process.stdin.write(f"{text}\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), "committed\n")

    def count(self) -> int:
        """Reads like any client of SQLite, which clears the log away if it was the last one."""
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            (number,) = db.execute("SELECT COUNT(*) FROM turns").fetchone()
            return int(number)

    def test_a_reader_and_a_kill_take_no_commit_away(self) -> None:
        command = [
            sys.executable,
            str(Path(__file__).with_name("outbox_writer.py")),
            str(self.folder),
        ]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        process = self.enterContext(subprocess.Popen(command, **pipes))
        self.addCleanup(process.kill)
        for number in range(1, 4):
            self.write(process, str(number))
            self.assertEqual(self.count(), number)
        for number in range(4, 6):
            self.write(process, str(number))
        process.kill()
        process.wait()
        self.assertEqual(self.count(), 5)


class CorruptTest(OutboxCase):
    async def test_garbage_is_kept_and_replaced(self) -> None:
        garbage = b"this is no database " * 500
        self.path.write_bytes(garbage)
        await self.add("1", urgent=True)
        figures = await self.figures()
        self.assertRegex(figures.moved_aside, r"\Aoutbox\.corrupt-[0-9]+\.db\Z")
        self.assertEqual((self.folder / figures.moved_aside).read_bytes(), garbage)
        self.assertEqual(await self.drain(), ["1"])

    async def test_second_time_gets_another_name(self) -> None:
        names = set()
        for content in (b"first " * 500, b"second " * 500):
            self.path.write_bytes(content)
            outbox = self.open(closed=True)
            await outbox.add([turn_of()])
            name = (await outbox.figures(day=DAY)).moved_aside
            await outbox.aclose()
            names.add(name)
            self.assertEqual((self.folder / name).read_bytes(), content)
        self.assertEqual(len(names), 2)

    async def test_answer_for_the_old_file_does_nothing_to_the_new_one(self) -> None:
        await self.add("old", urgent=True)
        old = await self.next()
        await self.outbox.aclose()
        self.path.write_bytes(b"garbage " * 500)
        self.outbox = self.open()
        await self.add("new", urgent=True)
        new = await self.next()
        await self.outbox.delivered(old, day=DAY)
        await self.outbox.set_aside(old, "rejected")
        await self.outbox.renew_operation(old)
        await self.outbox.seal([old.document_id])
        self.assertEqual(await self.next(), new)
        self.assertEqual((await self.figures()).sent, 0)

    async def test_write_ahead_log_is_kept_beside_it(self) -> None:
        """Turns that are only in the log can still be rescued."""
        await self.add("needle")  # by a run that never closed its database
        disk = Disk()
        again = self.open(disk=disk)
        disk.fault, disk.only, disk.heals = sqlite3.SQLITE_CORRUPT, "INSERT INTO turns", True
        await again.add([turn_of()])
        name = (await again.figures(day=DAY)).moved_aside
        self.assertIn(b"needle", (self.folder / f"{name}-wal").read_bytes())
        self.assertTrue((self.folder / f"{name}-shm").exists())

    async def test_every_kind_of_corruption(self) -> None:
        for kind in ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_CORRUPT_INDEX"):
            with self.subTest(kind):
                disk = Disk()
                outbox = self.open(disk=disk)
                disk.fault, disk.only = getattr(sqlite3, kind), "INSERT INTO turns"
                disk.heals = True
                await outbox.add([turn_of(urgent=True)])
                self.assertIsNotNone(await outbox.next_window())
                self.assertTrue((await outbox.figures(day=DAY)).moved_aside)


class VersionTest(OutboxCase):
    """Files of other versions of the plugin."""

    SCHEMA_0_1_0 = """
    CREATE TABLE windows (
        id INTEGER PRIMARY KEY AUTOINCREMENT, position REAL NOT NULL, state TEXT NOT NULL,
        chat TEXT NOT NULL, document_id TEXT NOT NULL, operation_id TEXT NOT NULL,
        header TEXT NOT NULL, turns INTEGER NOT NULL, chars INTEGER NOT NULL, uptime REAL NOT NULL,
        tried INTEGER NOT NULL DEFAULT 0, reason TEXT NOT NULL DEFAULT ''
    );
    CREATE INDEX windows_by_state ON windows (state, position, id, chat);
    CREATE INDEX windows_by_chat ON windows (chat, state);
    CREATE TABLE turns (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        window INTEGER NOT NULL REFERENCES windows (id) ON DELETE CASCADE,
        lines TEXT NOT NULL
    );
    CREATE INDEX turns_by_window ON turns (window);
    CREATE TABLE erasures (
        chat TEXT PRIMARY KEY, tags TEXT NOT NULL, profile TEXT NOT NULL, documents TEXT NOT NULL,
        whole INTEGER NOT NULL
    );
    CREATE TABLE figures (name TEXT PRIMARY KEY, value REAL NOT NULL);
    """
    HEADER = json.dumps({"tags": ["t"], "context": "c", "timestamp": AT, "metadata": {"k": "v"}})

    def write_0_1_0(self) -> None:
        """Windows of which one was split, so that their order is not that of their rows."""
        db = sqlite3.connect(self.path)
        db.executescript(self.SCHEMA_0_1_0)
        for row_id, position, state, texts in (
            (1, 1.0, "aside", ["refused"]),
            (3, 3.0, "sealed", ["4"]),
            (4, 2.0, "sealed", ["1", "2"]),
            (5, 2.5, "sealed", ["3"]),
            (6, 6.0, "open", ["5"]),
        ):
            self.write_window(db, row_id, (position, state), texts)
        db.execute("INSERT INTO erasures VALUES (?, '[\"t\"]', 'p', '[\"d1\", \"d2\"]', 1)", (B,))
        db.executemany(
            "INSERT INTO figures VALUES (?, ?)", [("uptime", 60.0), ("sent", 7.0), ("dropped", 2.0)]
        )
        db.commit()
        db.close()

    def write_window(
        self, db: sqlite3.Connection, row_id: int, values: tuple[float, str], texts: list[str]
    ) -> None:
        position, state = values
        db.execute(
            "INSERT INTO windows VALUES (?, ?, ?, ?, ?, ?, ?, ?, 50, 0, 1, ?)",
            (
                *(row_id, position, state, A, f"doc{row_id}", f"op{row_id}", self.HEADER),
                *(len(texts), "rejected" if state == "aside" else ""),
            ),
        )
        for text in texts:
            lines = [
                {"pseudonym": "#0a0b0c", "text": f"Ann#0a0b0c ({AT}): {text}"},
                {"pseudonym": "", "text": f"Bot ({AT}): yes"},
            ]
            db.execute(
                "INSERT INTO turns (window, lines) VALUES (?, ?)", (row_id, json.dumps(lines))
            )

    async def test_file_of_the_first_version(self) -> None:
        self.write_0_1_0()
        window = await self.next()
        self.assertEqual((window.document_id, window.operation_id), ("doc4", "op4"))
        self.assertEqual(window.header, Header(("t",), "c", AT, {"k": "v"}))
        self.assertEqual(len(window.turns[0]), 2)
        figures = await self.figures()
        self.assertEqual((figures.open_turns, figures.waiting, figures.sent), (1, 3, 7))
        self.assertEqual((figures.aside, figures.dropped), ({"rejected": 1}, 2))
        expected = Erasure(B, ("t",), "p", ("d1", "d2"), whole=True)
        self.assertEqual(await self.outbox.erasures(), [expected])
        self.assertEqual(await self.outbox.age(50, limit=100), 3, "their age counts on")

    async def test_file_of_the_first_version_has_all_tables(self) -> None:
        def tables() -> list[tuple[str, str, str]]:
            with contextlib.closing(sqlite3.connect(self.path)) as db:
                names = "SELECT type, name, tbl_name FROM sqlite_master ORDER BY 1, 2, 3"
                return db.execute(names).fetchall()

        await self.add("1")
        await self.outbox.aclose()
        new = tables()
        self.path.unlink()
        self.write_0_1_0()
        self.outbox = self.open()
        await self.next()
        await self.outbox.aclose()
        self.assertEqual(tables(), new)

    async def test_file_of_the_first_version_takes_what_came_since(self) -> None:
        self.write_0_1_0()
        self.assertEqual(await self.outbox.import_progress(A), [])
        line = {"0123456789abcdef": "d1"}
        await self.outbox.edit_chat(dataclasses.replace(WISH, lines=line), list, ())
        _, wish = await self.outbox.erasures()
        self.assertEqual(wish.lines, line)
        self.assertEqual(await self.drain(), [], "held until it is gone")
        await self.outbox.end_wish(A, line)
        await self.outbox.seal()
        self.assertEqual(await self.drain(), ["1", "2", "3", "4", "5"])

    async def test_order_of_the_first_version(self) -> None:
        self.write_0_1_0()
        self.assertEqual(await self.add("6"), [False])
        await self.outbox.seal()
        self.assertEqual(await self.drain(), ["1", "2", "3", "4", "5", "6"])
        await self.outbox.retry_aside()
        self.assertEqual(await self.drain(), ["refused"])

    async def test_opened_a_second_time(self) -> None:
        self.write_0_1_0()
        before = await self.next()
        again = self.open()
        self.assertEqual(await again.next_window(), before)

    async def test_change_of_the_file_happens_as_a_whole_or_not(self) -> None:
        self.write_0_1_0()
        broken = outbox_file_module._COPY_OLD_TABLES + "SELECT broken;"
        with (
            mock.patch.object(outbox_file_module, "_COPY_OLD_TABLES", broken),
            self.assertRaises(sqlite3.Error),
        ):
            await self.next()
        self.assertEqual((await self.next()).document_id, "doc4")

    async def test_file_of_a_later_version_is_refused_and_stays(self) -> None:
        await self.add("1")
        await self.outbox.aclose()
        db = sqlite3.connect(self.path)
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
        db.close()
        before = self.path.read_bytes()
        self.outbox = self.open()
        with self.assertRaisesRegex(NewerFileError, "later version"):
            await self.add("2")
        await self.outbox.aclose()
        self.assertEqual(self.path.read_bytes(), before)
        self.assertEqual(
            [path.name for path in self.folder.iterdir() if "corrupt" in path.name], []
        )


class UnreadableTest(OutboxCase):
    """A row that cannot be read stops no other, and is set aside with a reason."""

    async def spoil(self, column: str, value: str, text: str = "bad") -> None:
        """Changes a row of a window, as a bug or another program might."""
        await self.outbox.aclose()
        db = sqlite3.connect(self.path)
        where = "id = (SELECT window FROM turns WHERE lines LIKE ?)"
        if column == "lines":
            db.execute("UPDATE turns SET lines = ? WHERE lines LIKE ?", (value, f"%: {text}%"))
        else:
            db.execute(f"UPDATE windows SET {column} = ? WHERE {where}", (value, f"%: {text}%"))
        db.commit()
        db.close()
        self.outbox = self.open()

    SPOILT = (
        ("header", "{"),
        ("header", "[]"),
        ("header", "{}"),
        ("header", '{"tags": [], "context": "", "timestamp": "", "metadata": {}}'),
        ("header", '{"tags": ["t"], "context": "", "timestamp": "", "metadata": 1}'),
        ("header", '{"tags": null, "context": "", "timestamp": "", "metadata": {}}'),
        ("document_id", ""),
        ("lines", "not json"),
        ("lines", "[1]"),
        ("lines", '[{"words": "of a later version"}]'),
        ("lines", "null"),
    )

    async def test_set_aside_and_the_rest_goes_on(self) -> None:
        for number, (column, value) in enumerate(self.SPOILT, start=1):
            with self.subTest(column=column, value=value):
                await self.add(f"bad{number}", "good", urgent=True)
                await self.spoil(column, value, f"bad{number}")
                self.assertEqual(await self.drain(), ["good"])
                self.assertEqual((await self.figures()).aside, {UNREADABLE: number})
        await self.outbox.retry_aside()
        self.assertIsNone(await self.outbox.next_window())
        self.assertEqual((await self.figures()).aside, {UNREADABLE: len(self.SPOILT)})

    async def test_what_may_be_anybodys_goes_with_whoever_goes(self) -> None:
        await self.add("bad", urgent=True)
        await self.add("good", urgent=True)
        await self.spoil("header", "{")
        self.assertEqual([words(one) for one in await self.outbox.windows_of(A)], [["good"]])
        await self.outbox.edit_chat(WISH, list, ())
        self.assertEqual(await self.drain(), ["good"])
        self.assertEqual((await self.figures()).aside, {})

    async def test_window_without_turns(self) -> None:
        await self.add("bad", urgent=True)
        await self.outbox.aclose()
        db = sqlite3.connect(self.path)
        db.execute("DELETE FROM turns")
        db.commit()
        db.close()
        self.outbox = self.open()
        self.assertIsNone(await self.outbox.next_window())

    async def test_half_a_character_keeps_no_turn_from_the_disk(self) -> None:
        await self.add("half \ud83d", urgent=True)
        header = Header(("t",), "\udc00", AT, {})
        await self.outbox.add([TurnRecord(A, header, turn_of().lines, urgent=True)])
        self.assertEqual(await self.drain(), ["half ?", "hello"])


class DiskFailureTest(OutboxCase):
    def setUp(self) -> None:
        super().setUp()
        self.disk = Disk()
        self.outbox = self.open(disk=self.disk, every=1)

    async def test_failure_changes_nothing_and_the_next_try_works(self) -> None:
        self.outbox = self.open(disk=self.disk, every=2)
        for only in ("INSERT INTO windows", "INSERT INTO turns", "UPDATE windows"):
            with self.subTest(only):
                self.disk.fault, self.disk.only = sqlite3.SQLITE_FULL, only
                with self.assertRaises(sqlite3.Error):
                    await self.add("1", "2")
                self.disk.fault = None
                self.assertEqual(await self.figures(), OutboxFigures())
                self.assertIsNone(await self.outbox.next_window())
        await self.add("1", "2")
        self.assertEqual(await self.drain(), ["1", "2"])

    async def test_group_is_all_or_nothing_and_counted_so(self) -> None:
        await self.add("0")
        statements = iter(range(100))
        touch = self.disk.touch

        def fail_at_the_second_turn(statement: str) -> None:
            if "INSERT INTO turns" in statement and next(statements) == 1:
                self.disk.fault = sqlite3.SQLITE_FULL
            touch(statement)

        with (
            mock.patch.object(self.disk, "touch", fail_at_the_second_turn),
            self.assertRaises(sqlite3.Error),
        ):
            await self.add("1", "2")
        self.disk.fault = None
        self.assertEqual((await self.figures()).waiting, 1)
        self.assertEqual(await self.drain(), ["0"])

    async def test_failed_delivery_note_keeps_the_window(self) -> None:
        await self.add("1")
        window = await self.next()
        self.disk.fault, self.disk.only = sqlite3.SQLITE_IOERR, "INSERT INTO figures"
        with self.assertRaises(sqlite3.Error):
            await self.outbox.delivered(window, day=DAY)
        self.disk.fault = None
        self.assertEqual(await self.next(), window)
        self.assertEqual((await self.figures()).waiting, 1)

    async def test_database_that_cannot_be_opened_at_first(self) -> None:
        for fault in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            with self.subTest(fault=fault):
                self.disk.fault, self.disk.only = fault, "PRAGMA"
                with self.assertRaises(sqlite3.Error):
                    await self.add("1")
        self.disk.fault = None
        await self.add("1")
        self.assertEqual(await self.drain(), ["1"])

    async def test_folder_that_is_missing(self) -> None:
        outbox = Outbox(self.folder / "missing", every_n_turns=1, now=lambda: 1000.0)
        self.addAsyncCleanup(outbox.aclose)
        with self.assertRaises(OSError):
            await outbox.add([turn_of()])
        (self.folder / "missing").mkdir()
        await outbox.add([turn_of()])
        self.assertIsNotNone(await outbox.next_window())

    async def test_database_that_is_a_folder(self) -> None:
        self.path.mkdir()
        outbox = self.open()
        with self.assertRaises((OSError, sqlite3.Error)):
            await outbox.add([turn_of()])

    async def test_locked_database_is_not_taken_for_a_corrupt_one(self) -> None:
        self.disk.fault, self.disk.only = sqlite3.SQLITE_BUSY, "INSERT"
        with self.assertRaises(sqlite3.Error):
            await self.add("1")
        self.disk.fault = None
        self.assertEqual((await self.figures()).moved_aside, "")
        self.assertFalse([p for p in self.folder.iterdir() if re.search("corrupt", p.name)])
