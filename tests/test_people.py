"""Whoever was seen in a chat is known again, by hashes alone, and the disk holds nobody up."""

from __future__ import annotations

import logging
import sqlite3
import tempfile
import unittest
from pathlib import Path
from typing import Any

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.people import DATABASE_FILE, People, Roster
from astrbot_plugin_hindsight_memory.scope import UNKNOWN_PERSON, Hasher, Scope
from support import HASHER, Disk, LogRecords, group_origin, scope_of

WAIT_SECONDS = 0.05
SCOPE = scope_of(group_origin())
OTHER = scope_of(group_origin("70002"))


class Alike(Hasher):
    """Everybody's hash begins with the same twelve digits."""

    def person(self, scope: Scope, person_id: str) -> str:
        digest = super().person(scope, person_id)
        return digest and f"3fa2c1aabbcc{digest[12:]}"


class RosterTest(unittest.TestCase):
    def test_the_usual_pseudonym(self) -> None:
        roster = Roster(HASHER, SCOPE)
        self.assertEqual(roster.pseudonym("20001"), HASHER.pseudonym(SCOPE, "20001"))
        for nobody in ("", "unknown", "None"):
            self.assertEqual(roster.pseudonym(nobody), UNKNOWN_PERSON)
        self.assertEqual(len(roster.unsaved()), 1)

    def test_each_has_one_of_their_own(self) -> None:
        roster = Roster(Alike(bytes(32)), SCOPE)
        found = [roster.pseudonym(str(number)) for number in range(20001, 20021)]
        self.assertEqual(len(set(found)), 20)
        self.assertEqual(found[:4], ["#3fa2c1", "#3fa2c1aa", "#3fa2c1aabb", "#3fa2c1aabbcc"])
        self.assertEqual(found, [roster.pseudonym(str(n)) for n in range(20001, 20021)])
        for pseudonym in found:
            self.assertRegex(pseudonym, r"\A#[0-9a-f]{6,32}\Z")

    def test_nobody_gets_the_pseudonym_of_the_unknown(self) -> None:
        class Zero(Hasher):
            def person(self, scope: Scope, person_id: str) -> str:
                return "000000" + super().person(scope, person_id)[6:]

        self.assertRegex(Roster(Zero(bytes(32)), SCOPE).pseudonym("20001"), r"\A#000000[0-9a-f]{2}")

    def test_whose_a_pseudonym_is(self) -> None:
        roster = Roster(HASHER, SCOPE)
        own = roster.pseudonym("20001")
        for pseudonym, taken in ((own, True), (f"{own}ab", True), ("#123456", False)):
            self.assertEqual(roster.is_taken(pseudonym), taken)


class PeopleTest(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.log = LogRecords()
        self.disk = Disk()

    def people(self, hasher: Hasher = HASHER, **changes: Any) -> People:
        values: dict[str, Any] = {"connect": self.disk.connect, "wait": 10.0} | changes
        people = People(self.folder, hasher, self.log.logger, **values)
        self.addAsyncCleanup(people.aclose)
        return people

    async def test_known_after_a_restart(self) -> None:
        people = self.people()
        await people.meet(SCOPE, ["20001", "U0ABCDEF", "", "unknown"])
        await people.aclose()
        again = self.people()
        self.assertFalse(again.roster(SCOPE).knows("20001"), "not read yet")
        await again.meet(SCOPE, [])
        await again.meet(OTHER, [])
        for person in ("20001", "U0ABCDEF"):
            self.assertTrue(again.roster(SCOPE).knows(person))
            self.assertFalse(again.roster(OTHER).knows(person))
        for nobody in ("20002", "", "unknown"):
            self.assertFalse(again.roster(SCOPE).knows(nobody))

    async def test_pseudonyms_stay_whoever_speaks_first_after_a_restart(self) -> None:
        hasher = Alike(bytes(32))
        people = self.people(hasher)
        await people.meet(SCOPE, ["20001", "20002"])
        before = [people.roster(SCOPE).pseudonym(one) for one in ("20001", "20002")]
        await people.aclose()
        again = self.people(hasher)
        await again.meet(SCOPE, ["20002"])
        after = [again.roster(SCOPE).pseudonym(one) for one in ("20001", "20002")]
        self.assertEqual(after, before)
        self.assertEqual(len(set(after)), 2)

    async def test_no_raw_id_on_disk(self) -> None:
        people = self.people(connect=None)
        await people.meet(SCOPE, ["20001987", "U0ABCDEF"])
        people.roster(SCOPE).note("20001987", "小明")
        await people.aclose()
        files = [path for path in self.folder.iterdir() if path.is_file()]
        content = b"".join(path.read_bytes() for path in files)
        for raw in ("20001987", "U0ABCDEF", "小明"):
            self.assertNotIn(raw.encode(), content)
        self.assertEqual((self.folder / DATABASE_FILE).stat().st_mode & 0o777, 0o600)

    async def test_a_failing_disk_costs_nothing_but_the_next_start(self) -> None:
        people = self.people()
        self.disk.fault = sqlite3.SQLITE_FULL
        for _ in range(3):
            await people.meet(SCOPE, ["20001"])
        self.assertTrue(people.is_failing)
        self.assertTrue(people.roster(SCOPE).knows("20001"))
        (line,) = self.log.lines(logging.ERROR)
        self.assertIn(DATABASE_FILE, line)
        self.disk.fault = None
        await people.meet(SCOPE, [])
        self.assertFalse(people.is_failing)
        await people.aclose()
        again = self.people()
        await again.meet(SCOPE, [])
        self.assertTrue(again.roster(SCOPE).knows("20001"), "written once the disk was mended")

    async def test_what_was_found_out_meanwhile_gives_way_to_the_disk(self) -> None:
        hasher = Alike(bytes(32))
        people = self.people(hasher)
        await people.meet(SCOPE, ["20001", "20002"])
        await people.aclose()
        again = self.people(hasher)
        self.disk.fault = sqlite3.SQLITE_IOERR
        await again.meet(SCOPE, ["20002"])
        self.assertEqual(again.roster(SCOPE).pseudonym("20002"), "#3fa2c1")
        self.disk.fault = None
        await again.meet(SCOPE, [])
        self.assertEqual(again.roster(SCOPE).pseudonym("20002"), "#3fa2c1aa")
        self.assertEqual(again.roster(SCOPE).pseudonym("20001"), "#3fa2c1")

    async def test_a_stalling_disk_is_waited_for_once(self) -> None:
        people = self.people(wait=WAIT_SECONDS)
        reached, go_on = self.disk.stall()
        await people.meet(SCOPE, ["20001"])
        self.assertTrue(await reached())
        self.assertTrue(people.is_failing)
        await people.meet(SCOPE, ["20002"])
        await people.meet(OTHER, ["20003"])
        self.assertTrue(people.roster(SCOPE).knows("20002"))
        go_on()

    async def test_a_damaged_file_is_put_aside(self) -> None:
        (self.folder / DATABASE_FILE).write_bytes(b"no database at all " * 100)
        people = self.people()
        await people.meet(SCOPE, ["20001"])
        self.assertFalse(people.is_failing)
        await people.aclose()
        again = self.people()
        await again.meet(SCOPE, [])
        self.assertTrue(again.roster(SCOPE).knows("20001"))
        self.assertTrue((self.folder / DATABASE_FILE).with_suffix(".damaged").exists())


if __name__ == "__main__":
    unittest.main()
