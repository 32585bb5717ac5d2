"""Who may see what: tags, pseudonyms, the salt and the switches."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
import threading
import unittest
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args
from unittest import mock

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.scope import (
    SALT_BYTES,
    SALT_FILE,
    STATE_FILE,
    Hasher,
    Scope,
    ScopeState,
    Skip,
    StateFault,
    is_listed,
    write_private,
)
from astrbot_plugin_hindsight_memory.texts import Language, Texts
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from support import HASHER, Clock, group_origin, private_origin, scope_of

HASH = "[0-9a-f]{32}"
IDS = st.text(min_size=1, max_size=20)


class TagsTest(unittest.TestCase):
    """Exactly four tags on every item, in a fixed order, without a raw id."""

    def assert_tags(self, tags: tuple[str, ...], *patterns: str) -> None:
        self.assertEqual(len(tags), len(patterns))
        for tag, pattern in zip(tags, patterns, strict=True):
            self.assertRegex(tag, rf"\A{pattern}\Z")

    def test_private_chat(self) -> None:
        scope = scope_of(private_origin())
        self.assertEqual(scope.kind, "private")
        self.assert_tags(
            scope.tags,
            "scope:private",
            "platform:aiocqhttp",
            f"sender:{HASH}",
            f"umo:{HASH}",
        )

    def test_group_chat(self) -> None:
        scope = scope_of(group_origin())
        self.assertEqual(scope.kind, "group")
        self.assert_tags(
            scope.tags, "scope:group", "platform:aiocqhttp", f"group:{HASH}", f"umo:{HASH}"
        )

    def test_group_needs_no_sender(self) -> None:
        self.assertEqual(scope_of(group_origin(sender="")), scope_of(group_origin(sender="2")))

    def test_group_event_without_group_id_is_kept_apart_from_the_private_chat(self) -> None:
        fallback = scope_of(group_origin(group_id=""))
        private = scope_of(private_origin())
        self.assertEqual(fallback.tags[:3], private.tags[:3])
        self.assertNotEqual(fallback.chat, private.chat)
        for match_umo in (True, False):
            with self.subTest(match_umo=match_umo):
                self.assertEqual(fallback.read_tags(match_umo=match_umo), fallback.tags)

    def test_what_may_be_no_private_chat_always_asks_for_the_umo(self) -> None:
        """Satori calls groups private; broadcasts and public notes are neither."""
        for changes in ({"platform": "satori"}, {"kind": "other"}, {}):
            with self.subTest(**changes):
                unsure = scope_of(private_origin(**changes))
                self.assertEqual(unsure.tags[0], "scope:private")
                self.assertEqual(unsure.read_tags(match_umo=False), unsure.tags)

    def test_other_messages_are_no_group_even_with_a_group_id(self) -> None:
        self.assertEqual(scope_of(group_origin(kind="other")).kind, "private")

    def test_reads_of_groups_leave_out_only_the_umo_and_only_if_told(self) -> None:
        scope = scope_of(group_origin())
        self.assertEqual(scope.read_tags(match_umo=True), scope.tags)
        self.assertEqual(scope.read_tags(match_umo=False), scope.tags[:3])

    def test_no_scope(self) -> None:
        cases = {
            "cron": (private_origin(platform="cron"), Skip.SYNTHETIC),
            "cron group": (group_origin(platform="cron"), Skip.SYNTHETIC),
            "empty": (private_origin(sender_id=""), Skip.NO_SENDER),
            "unknown": (private_origin(sender_id="unknown"), Skip.NO_SENDER),
            "None": (private_origin(sender_id="None"), Skip.NO_SENDER),
            "group without any id": (group_origin(group_id="", sender_id=""), Skip.NO_SENDER),
        }
        for name, (origin, reason) in cases.items():
            with self.subTest(name):
                self.assertEqual(HASHER.scope(origin), reason)

    def test_any_difference_makes_another_chat(self) -> None:
        chats = [
            scope_of(private_origin("1")),
            scope_of(private_origin("2")),
            scope_of(private_origin("1", platform="qq_official")),
            scope_of(private_origin("1", umo="other:FriendMessage:1")),
            scope_of(group_origin("1")),
            scope_of(group_origin("2")),
            scope_of(group_origin("1", umo="other:GroupMessage:1")),
            scope_of(group_origin("1"), Hasher(b"1" * 32)),
        ]
        self.assertEqual(len({scope.chat for scope in chats}), len(chats))
        self.assertEqual(len({scope.tags for scope in chats}), len(chats))

    @hypothesis_settings(database=None, deadline=None)
    @given(sender=IDS, other=IDS)
    def test_two_people_never_share_tags(self, sender: str, other: str) -> None:
        first = HASHER.scope(private_origin(sender))
        second = HASHER.scope(private_origin(other))
        if Skip.NO_SENDER in {first, second}:
            return
        self.assertEqual(first == second, sender == other)

    def test_raw_ids_are_in_nothing_that_leaves(self) -> None:
        for origin in (private_origin("123456789"), group_origin("987654321", "123456789")):
            scope = scope_of(origin)
            shown = f"{scope!r} {origin!r} {HASHER.pseudonym(scope, origin.sender_id)}"
            for raw in ("123456789", "987654321", origin.umo):
                with self.subTest(kind=scope.kind, raw=raw):
                    self.assertNotIn(raw, shown)

    def test_id_with_a_lone_surrogate(self) -> None:
        self.assertRegex(scope_of(private_origin("\ud800")).tags[2], f"sender:{HASH}")


class ListsTest(unittest.TestCase):
    """Operators name chats by the ids that they know."""

    def test_names_of_a_chat(self) -> None:
        group, private = group_origin("70001", "20001"), private_origin("20001")
        topic = group_origin("-1001234567890#77", platform="telegram")
        for origin, names, expected in (
            (group, ["70001"], True),
            (group, ["bot:GroupMessage:70001"], True),
            (group, ["1", "70001"], True),
            (group, ["20001"], False),
            (group, ["7000"], False),
            (group, [], False),
            (private, ["20001"], True),
            (private, ["bot:FriendMessage:20001"], True),
            (private, ["70001"], False),
            (private, [""], False),
            (private_origin("", umo="x"), ["", "x"], True),
            (private_origin("", umo="x"), [""], False),
            (group_origin(group_id=""), [""], False),
            (topic, ["-1001234567890"], True),
            (topic, ["-1001234567890#77"], True),
            (topic, ["bot:GroupMessage:-1001234567890"], True),
            (topic, ["-1001234567890#7", "-100123456789"], False),
            (replace(topic, platform="slack"), ["-1001234567890"], False),
        ):
            with self.subTest(kind=origin.kind, names=names):
                self.assertEqual(is_listed(origin, names), expected)


class PseudonymTest(unittest.TestCase):
    def test_form(self) -> None:
        self.assertRegex(HASHER.pseudonym(scope_of(group_origin()), "1"), r"\A#[0-9a-f]{6}\Z")

    def test_same_person_in_the_same_chat(self) -> None:
        scope = scope_of(group_origin())
        self.assertEqual(HASHER.pseudonym(scope, "1"), HASHER.pseudonym(scope, "1"))
        self.assertNotEqual(HASHER.pseudonym(scope, "1"), HASHER.pseudonym(scope, "2"))

    def test_differs_from_chat_to_chat(self) -> None:
        scopes = [scope_of(group_origin(str(n))) for n in range(20)]
        scopes.append(scope_of(private_origin("1")))
        self.assertEqual(len({HASHER.pseudonym(scope, "1") for scope in scopes}), len(scopes))

    def test_nobody_known(self) -> None:
        scope = scope_of(group_origin())
        for nobody in ("", "unknown", "None"):
            with self.subTest(nobody):
                self.assertEqual(HASHER.pseudonym(scope, nobody), "#000000")


class FolderTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.salt = self.folder / SALT_FILE
        self.state = self.folder / STATE_FILE

    def load(self, **named: Any) -> ScopeState:
        return ScopeState.load(self.folder, **named)

    def hasher(self) -> Hasher:
        hasher = self.load().hasher
        assert hasher is not None
        return hasher

    def switch_off(self, sender: str = "1") -> None:
        state = self.load()
        assert state.hasher
        state.switch(scope_of(private_origin(sender), state.hasher), on=False)


class SaltTest(FolderTest):
    """Fail closed: a file that broke never turns somebody's no into a yes."""

    def test_first_run(self) -> None:
        state = self.load()
        self.assertIsNone(state.fault)
        self.assertFalse(state.salt_lost)
        self.assertRegex(self.salt.read_text(), r"\A[0-9a-f]{64}\n\Z")
        self.assertRegex(state.fingerprint, r"\A[0-9a-f]{8}\Z")
        self.assertNotIn(state.fingerprint, self.salt.read_text())

    def test_files_are_for_their_owner_only(self) -> None:
        self.switch_off()
        for path in (self.salt, self.state):
            with self.subTest(path.name):
                self.assertEqual(path.stat().st_mode & 0o777, 0o600)

    def test_second_run_knows_the_same_chats(self) -> None:
        first, second = self.hasher(), self.hasher()
        self.assertEqual(
            scope_of(private_origin(), first),
            scope_of(private_origin(), second),
        )

    def test_two_installations_share_nothing(self) -> None:
        other = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.assertNotEqual(self.load().fingerprint, ScopeState.load(other).fingerprint)

    def test_unreadable_salt_keeps_memory_off_and_stays_as_it_is(self) -> None:
        for content in (b"", b"\n", b"short", b"g" * 64, b"a" * 63, b"a" * 65, b"\xff" * 64):
            with self.subTest(content=content[:8]):
                self.salt.write_bytes(content)
                state = self.load()
                self.assertEqual(state.fault, StateFault.SALT_UNREADABLE)
                self.assertIsNone(state.hasher)
                self.assertEqual(state.fingerprint, "")
                self.assertEqual(self.salt.read_bytes(), content)
                self.assertFalse(self.state.exists())

    def test_file_without_permission_is_not_called_damaged(self) -> None:
        ScopeState.load(self.folder)
        for file, fault in (
            (self.salt, StateFault.SALT_FORBIDDEN),
            (self.state, StateFault.STATE_FORBIDDEN),
        ):
            before, read = file.read_bytes(), Path.read_text

            def refuse(path: Path, *arguments: Any, file: Path = file, read: Any = read) -> str:
                if path == file:
                    raise PermissionError(13, "Permission denied")
                return str(read(path, *arguments))

            with self.subTest(fault), mock.patch.object(Path, "read_text", refuse):
                state = ScopeState.load(self.folder)
                self.assertEqual(state.fault, fault)
                self.assertIsNone(state.hasher)
                for language in get_args(Language):
                    self.assertNotRegex(Texts(language)(fault), "删除|delete")
            self.assertEqual(file.read_bytes(), before)
        self.assertIsNone(ScopeState.load(self.folder).fault)

    def test_switches_are_another_object_after_each_change(self) -> None:
        state = ScopeState.load(self.folder)
        scope = scope_of(private_origin(), state.hasher or HASHER)
        seen = [state.switches]
        state.switch(scope, on=False)
        seen.append(state.switches)
        state.opt(scope, "20001", out=True, everywhere=False)
        seen.append(state.switches)
        self.assertIs(seen[-1], state.switches)
        self.assertEqual(len({id(one) for one in seen}), 3)

    def test_salt_that_is_a_folder(self) -> None:
        self.salt.mkdir()
        self.assertEqual(self.load().fault, StateFault.SALT_UNREADABLE)

    def test_salt_in_capitals_or_without_newline(self) -> None:
        self.load()
        text = self.salt.read_text().strip()
        before = self.load().fingerprint
        self.salt.write_text(text.upper())
        self.assertEqual(self.load().fingerprint, before)

    def test_lost_salt(self) -> None:
        """Nobody said no, so memory goes on, but says that the old one is out of reach."""
        self.load()
        self.salt.unlink()
        for run in (1, 2):
            with self.subTest(run=run):
                state = self.load()
                self.assertIsNone(state.fault)
                self.assertTrue(state.salt_lost)

    def test_lost_salt_and_other_data(self) -> None:
        state = self.load(had_data=True)
        self.assertIsNone(state.fault)
        self.assertTrue(state.salt_lost)

    def test_lost_salt_when_somebody_said_no(self) -> None:
        self.switch_off()
        self.salt.unlink()
        for run in (1, 2):
            with self.subTest(run=run):
                state = self.load()
                self.assertEqual(state.fault, StateFault.SALT_CHANGED)
                self.assertIsNone(state.hasher)
                self.assertTrue(state.salt_lost)

    def test_restored_salt_knows_who_said_no(self) -> None:
        self.switch_off("1")
        old = self.salt.read_bytes()
        self.salt.unlink()
        self.load()
        self.salt.write_bytes(old)
        state = self.load()
        self.assertIsNone(state.fault)
        self.assertFalse(state.salt_lost)
        assert state.hasher
        self.assertTrue(state.is_off(scope_of(private_origin("1"), state.hasher)))

    def test_no_that_was_said_after_the_salt_was_lost(self) -> None:
        """It belongs to the present salt, and the next start must recognise it."""
        self.load()
        self.salt.unlink()
        self.switch_off("1")
        state = self.load()
        self.assertIsNone(state.fault)
        assert state.hasher
        self.assertTrue(state.is_off(scope_of(private_origin("1"), state.hasher)))

    def test_folder_that_cannot_be_written(self) -> None:
        state = ScopeState.load(self.folder / "missing")
        self.assertEqual(state.fault, StateFault.NOT_WRITABLE)
        self.assertIsNone(state.hasher)

    def test_full_disk_on_the_first_run(self) -> None:
        for failing in (1, 2):
            with self.subTest(failing=failing):
                folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
                results = [None] * (failing - 1) + [OSError(28, "No space left")]
                with mock.patch("os.fsync", side_effect=results):
                    state = ScopeState.load(folder)
                self.assertEqual(state.fault, StateFault.NOT_WRITABLE)
                self.assertIsNone(state.hasher)
                self.assertIsNone(ScopeState.load(folder).fault)


class StateTest(FolderTest):
    def test_broken_state_keeps_memory_off_and_stays_as_it_is(self) -> None:
        self.load()
        good = json.loads(self.state.read_text())
        broken = {
            "empty": b"",
            "cut": self.state.read_bytes()[:20],
            "binary": b"\xff\xfe\x00",
            "list": b"[]",
            "null": b"null",
            "no version": json.dumps({**good, "version": None}).encode(),
            "later version": json.dumps({**good, "version": 2}).encode(),
            "no fingerprint": json.dumps({**good, "salt_fingerprint": None}).encode(),
            "no list": json.dumps({**good, "off": None}).encode(),
            "list of numbers": json.dumps({**good, "off": [1]}).encode(),
            "no opt-outs": json.dumps({**good, "opted_out": None}).encode(),
            "no pauses": json.dumps({**good, "paused": None}).encode(),
            "pauses without times": json.dumps({**good, "paused": {"a": "b"}}).encode(),
            "mapping": json.dumps({**good, "off": {}}).encode(),
        }
        for name, content in broken.items():
            with self.subTest(name):
                self.state.write_bytes(content)
                state = self.load()
                self.assertEqual(state.fault, StateFault.STATE_UNREADABLE)
                self.assertIsNone(state.hasher)
                self.assertRegex(state.fingerprint, r"\A[0-9a-f]{8}\Z")
                self.assertEqual(self.state.read_bytes(), content)

    def test_deleting_a_broken_or_foreign_file_gives_up_who_said_no(self) -> None:
        for fault, broken, deleted in (
            (StateFault.STATE_UNREADABLE, self.state, (self.state,)),
            (StateFault.SALT_CHANGED, None, (self.state,)),
            (StateFault.SALT_UNREADABLE, self.salt, (self.salt, self.state)),
        ):
            with self.subTest(fault):
                self.say_no()
                if broken:
                    broken.write_text("{")
                else:
                    self.salt.write_text("ab" * SALT_BYTES)
                self.assertEqual(self.load().fault, fault)
                for path in deleted:
                    path.unlink()
                state = self.load()
                self.assertIsNone(state.fault)
                assert state.hasher
                scope = scope_of(private_origin(), state.hasher)
                self.assertFalse(state.is_off(scope))
                self.assertFalse(state.is_opted_out(scope, "1"))

    def say_no(self) -> None:
        """Somebody opts out, and a chat is switched off."""
        state = self.load()
        assert state.hasher
        scope = scope_of(private_origin(), state.hasher)
        state.opt(scope, "1", out=True, everywhere=True)
        state.switch(scope, on=False)
        self.assertTrue(state.is_off(scope))

    def test_state_that_is_a_folder(self) -> None:
        self.load()
        self.state.unlink()
        self.state.mkdir()
        self.assertEqual(self.load().fault, StateFault.STATE_UNREADABLE)

    def test_switching_survives_a_restart_and_concerns_one_chat(self) -> None:
        state, hasher = self.load(), self.hasher()
        one, other = (scope_of(private_origin(s), hasher) for s in "12")
        self.assertFalse(state.is_off(one))
        state.switch(one, on=False)
        for current in (state, self.load()):
            self.assertTrue(current.is_off(one))
            self.assertFalse(current.is_off(other))
        state.switch(one, on=True)
        for current in (state, self.load()):
            self.assertFalse(current.is_off(one))

    def pausable(self) -> tuple[Clock, ScopeState, Scope, Scope]:
        clock = Clock(1_800_000_000.0)
        state = ScopeState.load(self.folder, now=clock)
        assert state.hasher
        one, other = (scope_of(private_origin(s), state.hasher) for s in "12")
        return clock, state, one, other

    def test_pause_ends_by_the_clock_also_over_a_restart(self) -> None:
        clock, state, one, other = self.pausable()
        state.pause(one, 60)
        for current in (state, ScopeState.load(self.folder, now=clock)):
            self.assertTrue(current.is_paused(one))
            self.assertFalse(current.is_paused(other))
            self.assertFalse(current.is_off(one))
        again = ScopeState.load(self.folder, now=clock)
        clock.now += 59.9
        self.assertTrue(again.is_paused(one))
        clock.now += 0.1
        for current in (state, again, ScopeState.load(self.folder, now=clock)):
            self.assertFalse(current.is_paused(one))

    def test_pauses_that_have_ended_leave_the_file(self) -> None:
        clock, state, one, other = self.pausable()
        state.pause(one, 60)
        state.pause(other, 600)
        clock.now += 61
        state.pause(other, 60)
        paused = json.loads(self.state.read_text())["paused"]
        self.assertEqual(paused, {other.chat: clock.now + 60})

    def test_switching_ends_the_pause_of_that_chat(self) -> None:
        _, state, one, other = self.pausable()
        for on in (True, False):
            state.pause(one, 60)
            state.pause(other, 60)
            state.switch(one, on=on)
            self.assertFalse(state.is_paused(one))
            self.assertTrue(state.is_paused(other))

    def test_failed_pause_and_opt_out_change_nothing(self) -> None:
        _, state, one, _ = self.pausable()
        changes: tuple[Callable[[], object], ...] = (
            lambda: state.pause(one, 60),
            lambda: state.opt(one, "1", out=True, everywhere=False),
        )
        for change in changes:
            with (
                mock.patch("os.fsync", side_effect=OSError(28, "No space left")),
                self.assertRaises(OSError),
            ):
                change()
        self.assertFalse(state.is_paused(one))
        self.assertFalse(state.is_opted_out(one, "1"))

    def test_opt_out_here_and_everywhere(self) -> None:
        _, state, one, other = self.pausable()
        assert state.hasher
        elsewhere = scope_of(private_origin(platform="telegram"), state.hasher)
        state.opt(one, "1", out=True, everywhere=False)
        state.opt(one, "2", out=True, everywhere=True)
        for current in (state, self.load()):
            for scope, expected in (
                (one, [True, True, False]),
                (other, [False, True, False]),
                (elsewhere, [False, False, False]),
            ):
                self.assertEqual([current.is_opted_out(scope, p) for p in "123"], expected)
        for person in "12":
            state.opt(other, person, out=False, everywhere=False)
        self.assertTrue(state.is_opted_out(one, "1"), "in again concerns the chat it is said in")
        self.assertFalse(state.is_opted_out(one, "2"), "and what was said for all chats")

    def test_without_a_salt_nobody_can_opt_out(self) -> None:
        _, _, one, _ = self.pausable()
        self.salt.write_text("broken")
        state = self.load()
        before = self.state.read_bytes()
        state.opt(one, "1", out=True, everywhere=False)
        self.assertFalse(state.is_opted_out(one, "1"))
        self.assertEqual(self.state.read_bytes(), before)

    def test_lost_salt_when_somebody_opted_out_or_paused(self) -> None:
        for change in ("opt", "pause"):
            with self.subTest(change):
                _, state, one, _ = self.pausable()
                if change == "opt":
                    state.opt(one, "1", out=True, everywhere=False)
                else:
                    state.pause(one, 60)
                self.salt.unlink()
                self.assertEqual(self.load().fault, StateFault.SALT_CHANGED)
                self.state.unlink()

    def test_failed_switch_changes_nothing(self) -> None:
        state, hasher = self.load(), self.hasher()
        scope = scope_of(private_origin(), hasher)
        before = self.state.read_bytes()
        with (
            mock.patch("os.fsync", side_effect=OSError(28, "No space left")),
            self.assertRaises(OSError),
        ):
            state.switch(scope, on=False)
        self.assertFalse(state.is_off(scope))
        self.assertEqual(self.state.read_bytes(), before)

    def test_two_switches_at_the_same_time_both_count(self) -> None:
        """Commands switch in threads; each `off` must be on disk afterwards."""
        state, hasher = self.load(), self.hasher()
        scopes = [scope_of(private_origin(s), hasher) for s in "12"]
        both = threading.Barrier(2)
        sync = os.fsync

        def slow_sync(handle: int) -> None:
            # Broken where one comes after the other, as it should be.
            with contextlib.suppress(threading.BrokenBarrierError):
                both.wait(0.3)
            sync(handle)

        with mock.patch("os.fsync", slow_sync):
            threads = [
                threading.Thread(target=state.switch, args=[scope], kwargs={"on": False})
                for scope in scopes
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        for current in (state, self.load()):
            self.assertEqual([current.is_off(scope) for scope in scopes], [True, True])

    def test_no_raw_id_on_disk(self) -> None:
        self.switch_off("123456789")
        written = "".join(path.read_text() for path in self.folder.iterdir())
        self.assertNotIn("123456789", written)
        self.assertTrue(re.search(HASH, self.state.read_text()))


class WritePrivateTest(FolderTest):
    def test_old_file_stays_when_anything_fails(self) -> None:
        path = self.folder / "file"
        write_private(path, "old")
        for what in ("os.fsync", "pathlib.Path.replace"):
            with (
                self.subTest(what),
                mock.patch(what, side_effect=OSError(28, "No space left")),
            ):
                with self.assertRaises(OSError):
                    write_private(path, "new")
                self.assertEqual(path.read_text(), "old")
                self.assertEqual([p.name for p in self.folder.iterdir()], ["file"])

    def test_replaces_a_file_that_others_could_read(self) -> None:
        path = self.folder / "file"
        path.write_text("old")
        path.chmod(0o644)
        write_private(path, "新")
        self.assertEqual(path.read_text("utf-8"), "新")
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
