"""Nobody ever sees a missing sentence, in either language."""

from __future__ import annotations

import re
import string
import unittest
from typing import get_args

import plugin  # noqa: F401
import test_hindsight_client
from astrbot_plugin_hindsight_memory.hindsight_types import HindsightError
from astrbot_plugin_hindsight_memory.scope import Skip, StateFault
from astrbot_plugin_hindsight_memory.settings import Problem
from astrbot_plugin_hindsight_memory.texts import WORDING, Language, Texts, choose_language
from support import FakeServer, reply

CHINESE = re.compile(r"[\u4e00-\u9fff]")
SAME_IN_BOTH = {"count", "list_separator", "help_line", "help_name", "help_separator", "entry"}
SAME_IN_BOTH |= {"entry_said"}
LITERAL = {key for key in WORDING if key.startswith(("arg_", "example_"))}
"""What is typed as it stands."""


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


class WordingTest(unittest.TestCase):
    def test_both_languages_of_every_key(self) -> None:
        for key, (chinese, english) in WORDING.items():
            with self.subTest(key):
                self.assertTrue(chinese.strip())
                self.assertTrue(english.strip())
                self.assertIsNone(CHINESE.search(english))
                if key not in SAME_IN_BOTH | LITERAL and not key.startswith("status_server"):
                    self.assertIsNotNone(CHINESE.search(chinese))

    def test_same_placeholders_in_both(self) -> None:
        for key, (chinese, english) in WORDING.items():
            with self.subTest(key):
                if key != "help_name":  # a Chinese name is of use to those who read Chinese
                    self.assertEqual(placeholders(chinese), placeholders(english))
                self.assertNotIn("", placeholders(english))

    def test_every_reason_has_a_sentence(self) -> None:
        from_http = {reason for _, _, reason in test_hindsight_client.StatusTest.TABLE}
        reasons = [
            *Skip,
            *StateFault,
            *get_args(Problem),
            *from_http,
            *("query_too_long", "unreachable", "timeout", "bad_answer"),  # of HindsightError
            *("proxy_error", "closing", "busy_here"),
            *("model_refused", "model_limited", "extraction_failed"),  # of Operation
            *("deadline", "disk", "newer_file", "daily_cap"),  # of recalls and of the delivery
            *("unreadable",),  # of the outbox
            *("erasing", "no_model"),
        ]
        for reason in reasons:
            for language in ("zh", "en"):
                with self.subTest(reason=reason, language=language):
                    self.assertTrue(Texts(language)(reason))

    def test_values_are_filled_in_and_not_read_as_placeholders(self) -> None:
        self.assertIn("{name} {0}", Texts("en")("help_unknown", name="{name} {0}"))

    def test_command_is_called_what_it_is_called_at_present(self) -> None:
        for key, both in WORDING.items():
            values = dict.fromkeys(placeholders(both[0]), "x")
            for language, wording in zip(get_args(Language), both, strict=True):
                usual = Texts(language)(key, **values)
                for command in ("/记忆", "#memory", "/{mem} {0}"):
                    with self.subTest(key=key, command=command):
                        said = Texts(language, command=command)(key, **values)
                        self.assertEqual(said, usual.replace("/hindsight", command))
                        self.assertEqual(said.count(command), wording.count("/hindsight"))

    def test_missing_key_or_value(self) -> None:
        for key in ("no_such_key", "help_unknown"):
            with self.subTest(key), self.assertRaises(KeyError):
                Texts("zh")(key)


class EveryErrorTest(unittest.IsolatedAsyncioTestCase):
    async def test_whatever_status_comes_has_a_sentence(self) -> None:
        server = FakeServer()
        client = server.client()
        self.addAsyncCleanup(client.aclose)
        for status in (*range(201, 209), *range(300, 309), *range(400, 452), *range(500, 530)):
            with self.subTest(status):
                server.script.append(reply(status))
                with self.assertRaises(HindsightError) as caught:
                    await client.check()
                self.assertTrue(Texts("en")(caught.exception.reason))


class LanguageTest(unittest.TestCase):
    def test_choice(self) -> None:
        for setting, locale, expected in (
            ("auto", "", "zh"),
            ("auto", "zh-CN", "zh"),
            ("auto", "en-US", "en"),
            ("auto", "EN", "en"),
            ("auto", "ru-RU", "zh"),
            ("zh", "en-US", "zh"),
            ("en", "zh-CN", "en"),
            ("en", "", "en"),
        ):
            with self.subTest(setting=setting, locale=locale):
                self.assertEqual(choose_language(setting, locale), expected)
