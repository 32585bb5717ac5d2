"""Whatever the settings page holds, the plugin gets usable values or a named problem."""

from __future__ import annotations

import dataclasses
import operator
import unittest
from collections.abc import Mapping
from typing import Any

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.settings import Settings, SettingValue, load_settings
from support import SCHEMA, leaves, make_settings

WRONG: dict[str, tuple[Any, ...]] = {
    "bool": (1, 0, "true", [], {}),
    "int": ("many", True, [], {}, float("nan"), float("inf"), 10**400),
    "float": ("many", False, [], {}, float("nan"), 10**400),
    "string": (1, True, [], {}, 1.5),
    "list": (1, True, {}, 1.5),
}


def default_of(meta: Mapping[str, Any]) -> Any:
    """What stands for a default in the settings, where nothing can be changed."""
    return tuple(meta["default"]) if meta["type"] == "list" else meta["default"]


def config_with(path: str, value: Any) -> dict[str, Any]:
    """A configuration that is fine but for one value."""
    config: dict[str, Any] = {"api_key": "hsk_key", "bank_id": "bot"}
    group, _, name = path.rpartition(".")
    (config.setdefault(group, {}) if group else config)[name] = value
    return config


def loaded(path: str, value: Any) -> tuple[Settings, Any]:
    settings = load_settings(config_with(path, value), SCHEMA)
    return settings, operator.attrgetter(path)(settings)


class ValuesTest(unittest.TestCase):
    """Types, bounds and options are those of the schema."""

    def assert_warned(self, settings: Settings, path: str) -> None:
        used = operator.attrgetter(path)(settings)
        value = None if dataclasses.is_dataclass(used) else used
        self.assertEqual(settings.replaced, (SettingValue(path, value),))

    def test_empty_page_gives_the_defaults(self) -> None:
        settings = load_settings({}, SCHEMA)
        for path, meta in leaves().items():
            with self.subTest(path):
                self.assertEqual(operator.attrgetter(path)(settings), default_of(meta))
        self.assertEqual(settings.replaced, ())

    def test_every_setting_of_the_page_has_a_place(self) -> None:
        fields = {f.name for f in dataclasses.fields(Settings)} - {
            "problems",
            "replaced",
            "changed",
        }
        self.assertEqual(fields, set(SCHEMA))

    def test_wrong_type_becomes_an_allowed_value_with_one_warning(self) -> None:
        for path, meta in leaves().items():
            for value in WRONG[meta["type"]]:
                with self.subTest(path=path, value=str(value)[:20]):
                    settings, used = loaded(path, value)
                    self.assertEqual(used, default_of(meta))
                    self.assert_warned(settings, path)

    def test_null_is_the_default_without_a_warning(self) -> None:
        for path, meta in leaves().items():
            with self.subTest(path):
                settings, used = loaded(path, None)
                self.assertEqual(used, default_of(meta))
                self.assertEqual(settings.replaced, ())

    def test_numbers_beyond_the_slider_are_clamped_with_one_warning(self) -> None:
        for path, meta in leaves().items():
            if "slider" not in meta:
                continue
            low, high = meta["slider"]["min"], meta["slider"]["max"]
            for value, expected in ((low - 1, low), (-1e9, low), (high + 1, high), (1e9, high)):
                with self.subTest(path=path, value=value):
                    settings, used = loaded(path, value)
                    self.assertEqual(used, expected)
                    self.assert_warned(settings, path)

    def test_numbers_on_the_slider_are_kept(self) -> None:
        for path, meta in leaves().items():
            if "slider" not in meta:
                continue
            for value in (meta["slider"]["min"], meta["default"], meta["slider"]["max"]):
                for given in (value, str(value)):
                    with self.subTest(path=path, given=given):
                        settings, used = loaded(path, given)
                        self.assertEqual(used, value)
                        self.assertIs(type(used), {"int": int, "float": float}[meta["type"]])
                        self.assertEqual(settings.replaced, ())

    def test_infinite_wait_is_the_longest_allowed(self) -> None:
        settings, used = loaded("recall.timeout_seconds", float("inf"))
        self.assertEqual(used, SCHEMA["recall"]["items"]["timeout_seconds"]["slider"]["max"])
        self.assert_warned(settings, "recall.timeout_seconds")

    def test_options(self) -> None:
        for path, meta in leaves().items():
            for value in meta.get("options", ()):
                with self.subTest(path=path, value=value):
                    settings, used = loaded(path, value)
                    self.assertEqual((used, settings.replaced), (value, ()))
            if "options" in meta:
                with self.subTest(path=path, value="unknown"):
                    settings, used = loaded(path, "unknown")
                    self.assertEqual(used, meta["default"])
                    self.assert_warned(settings, path)

    def test_switches_are_kept(self) -> None:
        for path in (p for p, meta in leaves().items() if meta["type"] == "bool"):
            for value in (True, False):
                with self.subTest(path=path, value=value):
                    self.assertIs(loaded(path, value)[1], value)

    def test_lists_are_cleaned(self) -> None:
        for path in (p for p, meta in leaves().items() if meta["type"] == "list"):
            for given, expected in (
                ([], ()),
                (["70001", " 70002\n"], ("70001", "70002")),
                ([70001], ("70001",)),
                ("70001， 70002\n70003", ("70001", "70002", "70003")),
                (["", "  "], ()),
                (["70001，70002", "70003 70004"], ("70001", "70002", "70003", "70004")),
                (
                    ["my bot:GroupMessage:70001, 70002"],
                    ("my bot:GroupMessage:70001", "my", "bot:GroupMessage:70001", "70002"),
                ),
                (
                    ["70001 bot:GroupMessage:70002"],
                    ("70001 bot:GroupMessage:70002", "70001", "bot:GroupMessage:70002"),
                ),
                (["bot:GroupMessage:70001"], ("bot:GroupMessage:70001",)),
            ):
                with self.subTest(path=path, given=given):
                    settings, used = loaded(path, given)
                    self.assertEqual((used, settings.replaced), (expected, ()))

    def test_number_of_settings(self) -> None:
        shown = [one for one in leaves().values() if not one.get("invisible")]
        self.assertLessEqual(len(shown), 25)

    def test_tools_are_off_by_default(self) -> None:
        tools = make_settings().tools
        self.assertEqual((tools.recall, tools.remember), (False, False))

    def test_group_that_is_no_group_becomes_defaults_with_one_warning(self) -> None:
        values: tuple[object, ...] = ("text", 3, [], True)
        for value in values:
            with self.subTest(value=value):
                settings = make_settings(recall=value)
                self.assertEqual(settings.recall, make_settings().recall)
                self.assert_warned(settings, "recall")

    def test_unknown_keys_are_ignored(self) -> None:
        self.assertEqual(make_settings(other=1, recall={"other": 1}), make_settings())

    def test_every_warning_is_there(self) -> None:
        settings = make_settings(language="fr", retain={"every_n_turns": 99, "idle_seconds": "x"})
        self.assertEqual(
            settings.replaced,
            (
                SettingValue("language", "auto"),
                SettingValue("retain.every_n_turns", 20),
                SettingValue("retain.idle_seconds", 60),
            ),
        )

    def test_what_differs_from_the_defaults(self) -> None:
        self.assertEqual(make_settings().changed, ())
        settings = make_settings(
            api_base="http://127.0.0.1:8888",
            language="en",
            enable_group_memory=False,
            recall={"budget": "mid", "timeout_seconds": 99},
            privacy={"deny_chats": ["10086"]},
        )
        self.assertEqual(
            settings.changed,
            (
                SettingValue("enable_group_memory", False),
                SettingValue("language", "en"),
                SettingValue("recall.timeout_seconds", 15),
                SettingValue("privacy.deny_chats", ("10086",)),
            ),
        )

    def test_key_is_in_no_printed_form(self) -> None:
        for key in ("hsk_4711", "hsk 4711", ["hsk_4711"]):
            with self.subTest(key=key):
                settings = make_settings(api_key=key)
                self.assertNotIn("4711", repr(settings))


class ConnectionTest(unittest.TestCase):
    """People paste addresses, keys and names in many forms."""

    def test_address_forms(self) -> None:
        good = {
            "https://api.test": "https://api.test",
            "https://api.test/": "https://api.test",
            "https://api.test/v1": "https://api.test",
            "https://api.test/v1/": "https://api.test",
            "https://api.test/v1//": "https://api.test",
            "  https://api.test/v1\n": "https://api.test",
            "http://127.0.0.1:8888": "http://127.0.0.1:8888",
            "http://[::1]:8888/": "http://[::1]:8888",
            "https://host.test/under/path/v1/": "https://host.test/under/path",
            "https://host.test/v11": "https://host.test/v11",
        }
        for given, expected in good.items():
            with self.subTest(given):
                settings = make_settings(api_base=given)
                self.assertEqual((settings.api_base, settings.problems), (expected, ()))

    def test_addresses_that_cannot_be_used(self) -> None:
        for given in (
            "",
            "   ",
            "api.test",
            "ftp://api.test",
            "https://",
            "/v1",
            "https://api.test?x=1",
            "https://api.test/#part",
            "https://user:word@api.test",
            "http://[::1",
            "http://host.test:port",
            "http://\x00",
        ):
            with self.subTest(given):
                self.assertEqual(make_settings(api_base=given).problems, ("api_base_invalid",))

    def test_port_that_does_not_exist(self) -> None:
        """Connecting to it raises an error that is none of httpx's."""
        for port in (65536, 99999):
            with self.subTest(port):
                settings = make_settings(api_base=f"http://127.0.0.1:{port}")
                self.assertEqual(settings.problems, ("api_base_invalid",))

    def test_address_with_an_empty_query(self) -> None:
        """A path appended to it would become a query."""
        settings = make_settings(api_base="https://api.test/?")
        if not settings.problems:
            self.assertNotIn("?", settings.api_base)

    def test_key_forms(self) -> None:
        for given in (
            "hsk_key",
            " hsk_key ",
            "hsk_key\n",
            "Bearer hsk_key",
            "bearer   hsk_key\r\n",
            "\tBEARER\thsk_key",
        ):
            with self.subTest(given):
                settings = make_settings(api_key=given)
                self.assertEqual((settings.api_key, settings.problems), ("hsk_key", ()))

    def test_keys_that_cannot_be_used(self) -> None:
        for given, problem in (
            ("", "api_key_missing"),
            (" \n", "api_key_missing"),
            ("hsk key", "api_key_invalid"),
            ("hsk\nkey", "api_key_invalid"),
            ("密钥", "api_key_invalid"),
            ("hsk\x00key", "api_key_invalid"),
            ("hsk\u200bkey", "api_key_invalid"),
        ):
            with self.subTest(given):
                self.assertEqual(make_settings(api_key=given).problems, (problem,))

    def test_bank_ids(self) -> None:
        for given, problems in (
            ("bot", ()),
            (" bot ", ()),
            ("我的 机器人:1", ()),
            ("a" * 192, ()),
            ("机" * 64, ()),
            ("", ("bank_id_missing",)),
            ("  ", ("bank_id_missing",)),
            ("a" * 193, ("bank_id_invalid",)),
            ("机" * 65, ("bank_id_invalid",)),
            ("_bot", ("bank_id_invalid",)),
            (".", ("bank_id_invalid",)),
            ("..", ("bank_id_invalid",)),
            ("a/b", ("bank_id_invalid",)),
            ("a\nb", ("bank_id_invalid",)),
            ("a\x7fb", ("bank_id_invalid",)),
            ("a\ud800", ("bank_id_invalid",)),
        ):
            with self.subTest(given[:20]):
                settings = make_settings(bank_id=given)
                self.assertEqual(settings.problems, problems)
                self.assertEqual(settings.bank_id, given.strip())

    def test_all_problems_are_named_at_once(self) -> None:
        settings = make_settings(api_base="x", api_key="", bank_id="")
        self.assertEqual(
            set(settings.problems), {"api_base_invalid", "api_key_missing", "bank_id_missing"}
        )
