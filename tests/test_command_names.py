"""What is typed as the plugin's command."""

from __future__ import annotations

import unittest

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.command_names import (
    as_command,
    needed_prefixes,
    shown_prefix,
)

NAMES = ("hindsight", "my memory", "记忆")


class TypedTest(unittest.TestCase):
    def typed(self, raw: str, *prefixes: str) -> str | None:
        """The command in a message that AstrBot has taken the prefix from."""
        text = raw.strip()
        for prefix in prefixes:
            text = text.removeprefix(prefix).strip()
        return as_command(text, raw, NAMES, prefixes)

    def test_name_is_put_into_the_case_that_astrbot_knows(self) -> None:
        for raw, expected in (
            ("/hindsight", "hindsight"),
            (" / Hindsight  Status", "hindsight  Status"),
            ("/My  Memory list", "my memory list"),
            ("/记忆 状态", "记忆 状态"),
            ("/hindsight\nstatus", "hindsight\nstatus"),
        ):
            with self.subTest(raw):
                self.assertEqual(self.typed(raw, "/"), expected)

    def test_what_is_none(self) -> None:
        for raw in ("hindsight status", "/hindsights", "/list", "well /hindsight", ""):
            with self.subTest(raw):
                self.assertIsNone(self.typed(raw, "/"))

    def test_prefix_is_no_pattern(self) -> None:
        self.assertEqual(self.typed(".hindsight", "/", "."), "hindsight")
        self.assertIsNone(as_command("hindsight", "xhindsight", NAMES, (".",)))

    def test_without_a_prefix(self) -> None:
        self.assertEqual(self.typed("Hindsight status"), "hindsight status")


class PrefixTest(unittest.TestCase):
    def test_prefixes(self) -> None:
        for platform, prefixes, needed, shown in (
            ("telegram", ["", "#", "/"], ("#", "/"), "#"),
            ("telegram", [""], (), ""),
            ("discord", ["#"], (), "/"),
        ):
            with self.subTest(platform, prefixes=prefixes):
                self.assertEqual(needed_prefixes(platform, prefixes), needed)
                self.assertEqual(shown_prefix(platform, prefixes), shown)


if __name__ == "__main__":
    unittest.main()
