"""The benchmark runs, and its quick figures tell one round trip and one deadline from more."""

from __future__ import annotations

import asyncio
import json
import tempfile
import unittest
from pathlib import Path
from typing import ClassVar

from bench import report, suite
from bench.crowd import NONE, PLUGIN, RECORDED, Take, multiple
from bench.figures import Section
from bench.listening import LISTENING
from bench.options import Quick

ALONE = True

ROWS = ("turns", "outage", "listening", "outbox", "state")


class BenchTest(unittest.TestCase):
    """One quick run for all tests.

    A machine that is shared is noisy, so times are compared with the link's round trip and with the
    plugin's deadline, which are there by design, or with what nobody could wait for; the targets
    are for the benchmark itself.
    """

    options = Quick(rows=ROWS, pairs=1, listening=5.0)
    sections: ClassVar[dict[str, Section]]

    @classmethod
    def setUpClass(cls) -> None:
        found, cls.versions = asyncio.run(suite.measure(cls.options))
        print(report.table(found))
        cls.sections = {section.key: section for section in found}

    def value(self, section: str, key: str, column: str = "plugin") -> float:
        return self.sections[section].value(key, column)

    def test_recall_costs_little_more_than_a_bare_one(self) -> None:
        bare = self.value("turns", "before_p50", "bare")
        self.assertGreaterEqual(bare, self.options.rtt * 1000)
        self.assertLess(self.value("turns", "before_p50"), 2 * bare)

    def test_nothing_is_awaited_after_the_answer(self) -> None:
        self.assertLess(self.value("turns", "after_p50"), self.options.rtt * 1000)

    def test_an_ordinary_turn_opens_no_connection(self) -> None:
        self.assertEqual(self.value("turns", "connections"), 0)
        self.assertGreaterEqual(self.value("turns", "requests"), 1)
        self.assertGreater(self.value("turns", "bytes"), 500)

    def test_an_outage_costs_three_deadlines_at_most(self) -> None:
        deadline = self.options.deadline
        for kind in ("refused", "black hole"):
            with self.subTest(kind):
                self.assertLess(self.value("outage", "total", kind), 2 * 3 * deadline)
                self.assertLess(self.value("outage", "settled_p95", kind), deadline * 1000 / 2)
                self.assertEqual(self.value("outage", "answered", kind), 0)

    def test_listening_costs_little(self) -> None:
        for key, limit in (("loop_added", 20), ("reply", 10), ("growth", 100)):
            self.assertLess(self.value("listening", key, LISTENING), limit, key)

    def test_a_full_outbox_starts_and_takes_turns_quickly(self) -> None:
        self.assertLess(self.value("outbox", "start"), 60)
        self.assertLess(self.value("outbox", "queue_p95"), 1000)
        self.assertLess(self.value("outbox", "growth"), 100)

    def test_many_known_chats_are_loaded_quickly(self) -> None:
        self.assertLess(self.value("state", "load"), 30_000)
        self.assertLess(self.value("state", "is_off"), 10_000)

    def test_the_json_file_holds_everything(self) -> None:
        sections = list(self.sections.values())
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "deep" / "bench.json"
            report.write(file, report.as_json(sections, self.options, self.versions))
            content = json.loads(file.read_text("utf-8"))
        self.assertEqual([section["key"] for section in content["sections"]], list(ROWS))
        self.assertEqual(content["options"]["rtt"], self.options.rtt)
        lines = {line["key"]: line for line in content["sections"][0]["lines"]}
        self.assertEqual(lines["after_p50"]["target"]["text"], "< 5 ms")
        self.assertIsInstance(lines["after_p50"]["met"], bool)


class MultipleTest(unittest.TestCase):
    """Rounds of a crowd are compared with those around them."""

    def test_a_machine_that_becomes_slower_changes_nothing(self) -> None:
        seconds = [(NONE, 4), (RECORDED, 5.5), (NONE, 6), (PLUGIN, 14), (NONE, 8), (RECORDED, 9.9)]
        takes = [take(*one) for one in [*seconds, (NONE, 10)]]
        self.assertAlmostEqual(multiple(takes, RECORDED, lambda one: one.whole), 1.1)
        self.assertAlmostEqual(multiple(takes, PLUGIN, lambda one: one.whole), 2)


def take(column: str, seconds: float) -> Take:
    return Take(column, (seconds,), seconds, cpu=0, hindsight=0, blocks=0)
