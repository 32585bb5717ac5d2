"""What the documents say of the plugin is what the plugin has."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import tempfile
import unittest
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

import plugin
from astrbot_plugin_hindsight_memory.commands import Command, Commands
from astrbot_plugin_hindsight_memory.hindsight_client import VERSION
from astrbot_plugin_hindsight_memory.scope import Skip, StateFault
from astrbot_plugin_hindsight_memory.settings import Problem
from astrbot_plugin_hindsight_memory.texts import Language, Texts
from support import make_settings
from test_hindsight_client import StatusTest

PLUGIN = plugin.PACKAGE
MAX_SETTINGS = 25
READMES: dict[Language, str] = {"zh": "README.md", "en": "README_en.md"}
TRANSLATIONS = ("zh-CN", "en-US")
WORD = re.compile(r"[\w./*:{}?=&-]+", re.ASCII)
TEST_NAME = re.compile(r"`((?:live/|host/|browser/)?test_\w+)::(test_\w+)`")

_CLAUSE_END = {"zh": r"[，。]|：(?=不)", "en": r"[.,;](?= |$)|: (?=no)"}


def read(name: str) -> str:
    return (plugin.CHECKOUT / name).read_text("utf-8")


def settings() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every setting by its path, in the order of the page."""
    for name, meta in json.loads(read("_conf_schema.json")).items():
        if meta["type"] == "object":
            yield from ((f"{name}.{inner}", one) for inner, one in meta["items"].items())
        else:
            yield name, meta


def commands() -> tuple[Command, ...]:
    """The table of the commands."""
    unused = cast("Any", None)
    return Commands(
        settings=make_settings(),
        state=unused,
        client=unused,
        memory=unused,
        delivery=unused,
        archive=unused,
        status=unused,
        folder=unused,
        monotonic=lambda: 0.0,
    )._table


@dataclass(frozen=True)
class Section:
    """A heading with the text that follows it.

    Attributes:
        level: How deep it is.
        title: What it says.
        text: What follows, without blocks of code.
    """

    level: int
    title: str
    text: str

    @property
    def words(self) -> frozenset[str]:
        """What stands as code and is the same in every language."""
        return frozenset(
            one for one in re.findall(r"`([^`\n]+)`", self.text) if WORD.fullmatch(one)
        )

    @property
    def rows(self) -> list[list[str]]:
        """The cells of all table rows."""
        lines = [line for line in self.text.splitlines() if line.startswith("| ")]
        return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]

    @property
    def items(self) -> int:
        """How many items its lists have."""
        return len(re.findall(r"^(?:-|\d+\.) ", self.text, re.MULTILINE))

    @property
    def anchor(self) -> str:
        """What a link to it ends in."""
        return re.sub(r"[^\w -]", "", self.title.lower()).replace(" ", "-")


def sections(name: str) -> list[Section]:
    text = re.sub(r"^```.*?^```$", "", read(name), flags=re.DOTALL | re.MULTILINE)
    parts = re.split(r"^(#+) (.+)$", text, flags=re.MULTILINE)[1:]
    return [
        Section(len(marks), title, body)
        for marks, title, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    ]


def rows(name: str) -> list[list[str]]:
    return [row for section in sections(name) for row in section.rows]


class VersionTest(unittest.TestCase):
    def field(self, name: str) -> str:
        found = re.search(rf'^{name}: "?(.+?)"?$', read("metadata.yaml"), re.MULTILINE)
        assert found, name
        return found[1]

    def test_one_version_everywhere(self) -> None:
        version = VERSION.removeprefix("v")
        self.assertEqual(self.field("version"), f"v{version}")
        self.assertEqual(re.findall(r"^## (\S+)", read("CHANGELOG.md"), re.MULTILINE)[0], version)
        for language, words in (("zh", f"版本 {version}，"), ("en", f"Version {version},")):
            with self.subTest(language):
                text = read(READMES[cast("Language", language)])
                self.assertIn(words, text)
                named = re.findall(rf"{PLUGIN}[-/]v?([0-9]+\.[0-9]+\.[0-9]+)", text)
                self.assertEqual(set(named), {version})

    def test_oldest_astrbot(self) -> None:
        oldest = self.field("astrbot_version").removeprefix(">=")
        for name, words in (
            ("README.md", f"需要 AstrBot {oldest} 或更新"),
            ("README_en.md", f"needs AstrBot {oldest} or newer"),
            ("CHANGELOG.md", f"需要 AstrBot {oldest} 或更新"),
        ):
            with self.subTest(name):
                self.assertIn(words, read(name))

    def test_declared_platforms_are_named(self) -> None:
        platforms = re.findall(r"^  - (\w+)$", read("metadata.yaml"), re.MULTILINE)
        self.assertGreater(len(platforms), 1)
        for name in READMES.values():
            for platform in platforms:
                with self.subTest(name, platform=platform):
                    self.assertIn(f"`{platform}`", read(name))


class SettingsTest(unittest.TestCase):
    def test_number(self) -> None:
        self.assertLessEqual(len(list(settings())), MAX_SETTINGS)

    def test_every_setting_has_its_row(self) -> None:
        for language, name in READMES.items():
            found = {row[0].strip("`"): row[1] for row in rows(name) if len(row) == 4}
            for path, meta in settings():
                with self.subTest(name, setting=path):
                    self.assertIn(path, found)
                    self.assertIn(self.shown(meta, language), found[path])
                    if "slider" in meta:
                        bounds = f"{meta['slider']['min']}–{meta['slider']['max']}"
                        self.assertRegex(found[path], rf"[(（]{re.escape(bounds)}\b")

    @staticmethod
    def shown(meta: Mapping[str, Any], language: Language) -> str:
        """The default as a person reads it."""
        default = meta["default"]
        if isinstance(default, bool):
            return {"zh": "关开", "en": ("off", "on")}[language][default]
        return str(default) if default not in ("", []) else {"zh": "空", "en": "empty"}[language]

    def test_rows_have_the_order_of_the_page(self) -> None:
        paths = [path for path, _ in settings()]
        for name in READMES.values():
            with self.subTest(name):
                named = [row[0].strip("`") for row in rows(name) if len(row) == 4]
                self.assertEqual([one for one in named if one in paths], paths)

    def test_both_translations_have_all_of_the_page_and_nothing_else(self) -> None:
        schema = json.loads(read("_conf_schema.json"))
        for name in TRANSLATIONS:
            with self.subTest(name):
                content = json.loads(read(f".astrbot-plugin/i18n/{name}.json"))
                self.assertEqual(set(content), {"metadata", "config"})
                self.assertEqual(set(content["metadata"]), {"display_name", "short_desc", "desc"})
                self.compare(content["config"], schema, name)

    def compare(self, told: Mapping[str, Any], schema: Mapping[str, Any], path: str) -> None:
        self.assertEqual(set(told), set(schema), path)
        for name, meta in schema.items():
            with self.subTest(f"{path}.{name}"):
                own = {"description"} if meta["type"] == "object" else {"description", "hint"}
                own |= {"labels"} & set(meta)
                inner = meta.get("items", {})
                self.assertEqual(set(told[name]), own | set(inner))
                self.assertEqual(len(told[name].get("labels", ())), len(meta.get("labels", ())))
                for one in own - {"labels"}:
                    self.assertTrue(told[name][one].strip())
                parts = {key: value for key, value in told[name].items() if key not in own}
                self.compare(parts, inner, f"{path}.{name}")

    def test_page_itself_is_in_chinese_and_says_the_same(self) -> None:
        config = json.loads(read(".astrbot-plugin/i18n/zh-CN.json"))["config"]
        for path, meta in settings():
            with self.subTest(path):
                told = config
                for part in path.split("."):
                    told = told[part]
                for key in ("description", "hint"):
                    self.assertEqual(meta[key], told[key])


class CommandsTest(unittest.TestCase):
    RIGHTS: dict[Language, dict[str, str]] = {
        "zh": {"all": "所有人", "managers": "管理者", "admins": "机器人管理员"},
        "en": {"all": "everybody", "managers": "managers", "admins": "bot admins"},
    }

    def test_every_command_has_its_row(self) -> None:
        for language, name in READMES.items():
            texts = Texts(language)
            found = {row[0]: row for row in rows(name)}
            for command in commands():
                with self.subTest(name, command=command.name):
                    argument = f" {texts(f'arg_{command.name}')}" if command.has_argument else ""
                    typed = f"/hindsight {command.name}{argument}".replace("|", "\\|")
                    self.assertIn(f"`{typed}`", found)
                    row = found[f"`{typed}`"]
                    self.assertEqual(row[1], f"`{command.alias}`")
                    if command.name != "forget":  # where it depends on whose words they are
                        self.assertTrue(row[3].startswith(self.RIGHTS[language][command.rights]))

    def test_rows_have_the_order_of_the_help(self) -> None:
        names = [command.name for command in commands()]
        for name in READMES.values():
            with self.subTest(name):
                typed = [re.match(r"`/hindsight (\w+)", row[0]) for row in rows(name)]
                self.assertEqual([one[1] for one in typed if one], names)

    def test_what_is_limited_a_minute(self) -> None:
        limited = {command.name for command in commands() if command.is_limited}
        for name in READMES.values():
            with self.subTest(name):
                (row,) = [one for one in rows(name) if one[0] == "`commands.per_minute`"]
                self.assertEqual(set(re.findall(r"`(\w+)`", row[2])), limited)

    def test_what_does_not_work_while_memory_is_off(self) -> None:
        names = {command.name for command in commands() if command.needs_memory}
        lines = {"README.md": "- 聊天关闭或暂停时", "README_en.md": "- While a chat"}
        for name, begin in lines.items():
            with self.subTest(name):
                (line,) = [one for one in read(name).splitlines() if one.startswith(begin)]
                told = re.split("[；;]", line)[0]
                self.assertEqual(set(re.findall(r"`(\w+)`", told)), names)


class MessagesTest(unittest.TestCase):
    def test_every_reason_can_be_looked_up(self) -> None:
        from_http = {reason for _, _, reason in StatusTest.TABLE}
        others = ("query_too_long", "unreachable", "timeout", "bad_answer", "deadline", "disk")
        reasons = (*get_args(Problem), *StateFault, *from_http, *others, "daily_cap", "salt_lost")
        for language, name in READMES.items():
            text = read(name)
            for reason in reasons:
                with self.subTest(name, reason=reason):
                    sentence = Texts(language)(str(reason))
                    self.assertIn(re.split(_CLAUSE_END[language], sentence)[0], text)

    def test_every_skip_can_be_looked_up(self) -> None:
        for language, name in READMES.items():
            first = {row[0] for row in rows(name)}
            for reason in Skip:
                with self.subTest(name, reason=reason):
                    self.assertIn(Texts(language)(reason), first)


class SectionsTest(unittest.TestCase):
    def test_both_readmes_have_the_same_sections(self) -> None:
        chinese, english = (sections(name) for name in READMES.values())
        self.assertEqual([one.level for one in chinese], [one.level for one in english])
        for here, there in zip(chinese, english, strict=True):
            with self.subTest(here.title, english=there.title):
                self.assertEqual(here.words, there.words)
                self.assertEqual(len(here.rows), len(there.rows))
                self.assertEqual(here.items, there.items)

    def test_every_link_leads_somewhere(self) -> None:
        for name in (*READMES.values(), "CONTRIBUTING.md", "CHANGELOG.md"):
            anchors = {section.anchor for section in sections(name)}
            for target in re.findall(r"\]\(([^)\s]+)\)", read(name)):
                with self.subTest(name, target=target):
                    if target.startswith("#"):
                        self.assertIn(target[1:], anchors)
                    elif not target.startswith("https://"):
                        self.assertTrue((plugin.CHECKOUT / target).exists())


class ZipTest(unittest.TestCase):
    def test_zip_holds_the_plugin_and_nothing_else(self) -> None:
        spec = importlib.util.spec_from_file_location(
            "build_zip", plugin.CHECKOUT / "tools" / "build_zip.py"
        )
        assert spec
        assert spec.loader
        tool = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(tool)
        with tempfile.TemporaryDirectory() as folder:
            file = tool.build(Path(folder))
            self.assertIn(f"dist/{file.name}", read("README.md"))
            self.assertLess(file.stat().st_size, 1_000_000)
            with zipfile.ZipFile(file) as archive:
                names = {name.removeprefix(f"{PLUGIN}/") for name in archive.namelist()}
                for name in READMES.values():
                    text = archive.read(f"{PLUGIN}/{name}").decode()
                    self.assertIn("](docs/", read(name))
                    self.assertNotIn("](docs/", text)
                    self.assertIn(read(name)[-500:], text)
        needed = {one.name for one in plugin.CHECKOUT.glob("*.py")}
        needed |= {"_conf_schema.json", "metadata.yaml", "requirements.txt", "logo.png", "LICENSE"}
        needed |= {f".astrbot-plugin/i18n/{one}.json" for one in TRANSLATIONS}
        self.assertEqual(needed - names, set())
        shown = {*READMES.values(), "CHANGELOG.md"}
        self.assertEqual(names - needed, shown)


class ContributingTest(unittest.TestCase):
    def test_every_test_it_names_exists(self) -> None:
        named = TEST_NAME.findall(read("CONTRIBUTING.md"))
        self.assertGreater(len(named), 50)
        for module, test in named:
            with self.subTest(module, test=test):
                self.assertEqual({test} - self.names_in(module), set())

    def test_every_claim_names_a_test(self) -> None:
        (table,) = [one for one in sections("CONTRIBUTING.md") if "README" in one.title]
        for row in table.rows[1:]:
            with self.subTest(row[0]):
                self.assertRegex(row[-1], TEST_NAME)

    def test_every_module_is_on_the_map(self) -> None:
        text = read("CONTRIBUTING.md")
        for file in plugin.CHECKOUT.glob("*.py"):
            with self.subTest(file.name):
                self.assertIn(f"`{file.name}`", text)

    @staticmethod
    def names_in(module: str) -> set[str]:
        tree = ast.parse(read(f"tests/{module}.py"))
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


if __name__ == "__main__":
    unittest.main()
