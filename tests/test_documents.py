"""What the documents say of the plugin is what the plugin has."""

from __future__ import annotations

import ast
import re
import unittest
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import plugin
from astrbot_plugin_hindsight_memory import (
    breaker,
    codes,
    delivery,
    intake,
    outbox,
    windows,
    withdrawn,
)
from astrbot_plugin_hindsight_memory.cleaning import MAX_CHARS
from astrbot_plugin_hindsight_memory.command_types import Command
from astrbot_plugin_hindsight_memory.events import MAX_QUOTE_CHARS
from astrbot_plugin_hindsight_memory.hindsight_http import VERSION
from astrbot_plugin_hindsight_memory.importing import DEFAULT_DAYS, MAX_COUNT
from astrbot_plugin_hindsight_memory.memory_formatter import MAX_MEMORY_CHARS
from astrbot_plugin_hindsight_memory.texts import WORDING, Language
from commands_case import LANGUAGES, CommandsCase
from support import leaves

PLUGIN = plugin.PACKAGE
MAX_LINES = 150
MAX_SETTINGS = 25
PAGES = (
    *("docs/settings", "docs/commands", "docs/self-hosting", "docs/scopes-and-backup"),
    *("docs/privacy", "docs/troubleshooting", "docs/acceptance", "docs/how-it-differs"),
)
ON_OFF = {"zh": ("关", "开"), "en": ("off", "on")}
RIGHTS: dict[Language, dict[str, str]] = {
    "zh": {
        "all": "所有人.*",
        "managers": "管理者",
        "trusted": "机器人管理员；群里还有群主和群管理员",
        "private": "私聊：所有人；群里：机器人管理员",
        "admins": "机器人管理员",
    },
    "en": {
        "all": "everybody.*",
        "managers": "managers",
        "trusted": "bot admins; in groups also owner and administrators",
        "private": "private: everybody; in groups: bot admins",
        "admins": "bot admins",
    },
}


def read(name: str) -> str:
    return (plugin.CHECKOUT / name).read_text("utf-8")


def page(name: str, language: Language) -> str:
    """A page by its name without language and ending."""
    return read(f"{name}.md" if language == "zh" else f"{name}_en.md")


def rows(text: str) -> Iterator[list[str]]:
    """The cells of all rows of tables."""
    for line in re.findall(r"^\| (.*) \|$", text, re.MULTILINE):
        yield [cell.replace(r"\|", "|").strip() for cell in re.split(r" (?<!\\)\| ", line)]


def anchors(text: str) -> set[str]:
    """What a link can point to in a page."""
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


class VersionTest(unittest.TestCase):
    def field(self, name: str) -> str:
        found = re.search(rf'^{name}: "?(.+?)"?$', read("metadata.yaml"), re.MULTILINE)
        assert found, name
        return found[1]

    def test_one_version_everywhere(self) -> None:
        version = VERSION.removeprefix("v")
        self.assertEqual(self.field("version"), f"v{version}")
        self.assertEqual(re.findall(r"^## (\S+)", read("CHANGELOG.md"), re.MULTILINE)[0], version)
        oldest = self.field("astrbot_version").removeprefix(">=")
        self.assertIn(f"版本 {version}，需要 AstrBot {oldest} 或更新", read("README.md"))
        words = f"Version {version}, needs AstrBot {oldest} or newer"
        self.assertIn(words, read("README_en.md"))
        self.assertIn(f"需要 AstrBot {oldest} 或更新", read("CHANGELOG.md"))
        for name in ("README", "docs/privacy"):
            for language in LANGUAGES:
                named = re.findall(rf"{PLUGIN}[-/]v?([0-9.]+[0-9])", page(name, language))
                self.assertEqual(set(named), {version})


def imported(file: Path) -> set[str]:
    """The modules of the package that a module imports."""
    nodes = ast.walk(ast.parse(file.read_text("utf-8")))
    return {
        str(one.module)
        for one in nodes
        if isinstance(one, ast.ImportFrom) and one.level and one.module
    }


class SettingsTest(unittest.TestCase):
    shown = {path: meta for path, meta in leaves().items() if not meta.get("invisible")}

    def test_number(self) -> None:
        self.assertLessEqual(len(self.shown), MAX_SETTINGS)
        self.assertIn(f"设置 {len(self.shown)} 项", page("docs/how-it-differs", "zh"))
        self.assertIn(f" {len(self.shown)} settings", page("docs/how-it-differs", "en"))

    def test_pages_have_a_row_for_each_with_its_default_and_bounds(self) -> None:
        for language in LANGUAGES:
            told = {row[0]: row[1] for row in rows(page("docs/settings", language))}
            self.assertEqual(set(self.shown), {one.strip("`") for one in told} & set(self.shown))
            for path, meta in self.shown.items():
                with self.subTest(path, language=language):
                    self.assertTrue(told[f"`{path}`"].startswith(self.default(meta, language)))
                    if slider := meta.get("slider"):
                        bounds = f"{slider['min']}–{slider['max']}"
                        self.assertIn(bounds, told[f"`{path}`"])

    def default(self, meta: Mapping[str, Any], language: Language) -> str:
        value = meta["default"]
        if isinstance(value, bool):
            return ON_OFF[language][value]
        if value in ("", []):
            return {"zh": "空", "en": "empty"}[language]
        return f"`{value}`" if isinstance(value, str) else str(value)


class CommandsTest(CommandsCase):
    def test_readmes_have_a_row_for_each(self) -> None:
        for language in LANGUAGES:
            told = {
                row[0].split()[1].rstrip("`"): row
                for row in rows(page("README", language))
                if row[0].startswith("`/hindsight ")
            }
            self.assertEqual(set(told), {one.name for one in self.commands.table})
            for command in self.commands.table:
                with self.subTest(command.name, language=language):
                    self.compare(command, told[command.name], language)

    def compare(self, command: Command, row: list[str], language: Language) -> None:
        typed, alias, _, who = row
        self.assertEqual(alias, f"`{command.alias}`")
        self.assertEqual(" " in typed.removeprefix("`/hindsight "), command.has_argument)
        self.assertRegex(who, rf"^{RIGHTS[language][command.rights]}$")
        self.assertIn(f"help_{command.name}", WORDING)


class NumbersTest(unittest.TestCase):
    """Numbers that stand in a page, by where the code has them."""

    def test_numbers(self) -> None:
        for name, number, words in (
            ("docs/settings", windows.MAX_WINDOW_CHARS, ("满 {} 字", "{} characters")),
            (
                "docs/troubleshooting",
                intake.MAX_UNSAVED_TURNS,
                ("最多放 {} 轮", "{} turns at most"),
            ),
            (
                "docs/troubleshooting",
                round(outbox.MAX_WINDOWS / 10_000),
                ("超过 {} 万批", "{}0,000"),
            ),
            (
                "docs/troubleshooting",
                round(delivery.ACCESS_CAP_SECONDS / 60),
                ("{} 分钟", "{} min"),
            ),
            (
                "docs/troubleshooting",
                round(breaker.BREAKER_PAUSE_SECONDS),
                ("每 {} 秒到", "every {} seconds to"),
            ),
            ("docs/troubleshooting", delivery.MAX_OWN_FAILURES, ("失败 {} 次", "")),
            ("README", breaker.BREAKER_FAILURES, ("失败 {} 次", "after {} failures")),
            ("README", round(delivery.MAX_AGE_SECONDS / 86400), ("{} 天", "for {} days")),
            ("README", round(withdrawn.KEEP_SECONDS / 86400), ("{} 天内", "within {} days")),
            ("README", MAX_QUOTE_CHARS, ("最多 {} 字", "up to {} characters")),
            ("docs/commands", round(codes.CODE_SECONDS), ("{} 秒内", "within {} seconds")),
            ("docs/commands", MAX_COUNT, ("{} 条", "{} and")),
            ("docs/commands", DEFAULT_DAYS, ("{} 天", "and {}")),
            ("docs/self-hosting", MAX_MEMORY_CHARS, ("最多放进请求 {} 个字", "{} characters")),
            ("docs/privacy", f"{MAX_CHARS:,}", ("前 {} 个字", "first {} characters")),
        ):
            for language, form in zip(LANGUAGES, words, strict=True):
                with self.subTest(name, words=form):
                    self.assertIn(form.format(number), page(name, language))


class PagesTest(unittest.TestCase):
    def test_messages_are_said(self) -> None:
        for column, language in enumerate(LANGUAGES):
            said = "".join(re.sub(r"{\w+}", "", one[column]) for one in WORDING.values())
            table = [row[0] for row in rows(page("docs/troubleshooting", language))]
            for cell in set(table) - {"提示", "原因", "Message", "Reason", "---"}:
                for piece in re.split(r"…|、|, |\bN\b|N(?= )", cell):
                    self.assertIn(piece.strip(), said.replace('"', ""))

    def test_both_languages_have_the_same(self) -> None:
        for name in ("README", *PAGES):
            shapes = []
            for language in LANGUAGES:
                text = page(name, language)
                heads = [line.split()[0] for line in text.splitlines() if line.startswith("#")]
                firsts = [re.findall(r"`[\w./*-]+`|`/hindsight \w+", row[0]) for row in rows(text)]
                kinds = r"^(?:\| |- |\d+\. |```|!\[)"
                shapes.append((heads, firsts, re.findall(kinds, text, re.MULTILINE)))
            with self.subTest(name):
                self.assertEqual(*shapes)

    def test_links_lead_somewhere(self) -> None:
        files = [*plugin.CHECKOUT.glob("*.md"), *(plugin.CHECKOUT / "docs").glob("*.md")]
        for file in files:
            for target in re.findall(r"\]\((?!https?:)([^)]+)\)", file.read_text("utf-8")):
                with self.subTest(file.name, target=target):
                    path, _, anchor = target.partition("#")
                    other = file.parent / path if path else file
                    self.assertTrue(other.is_file())
                    if anchor:
                        self.assertIn(anchor, anchors(other.read_text("utf-8")))

    def test_what_is_read_first_is_short(self) -> None:
        for name in ("README.md", "README_en.md", "CONTRIBUTING.md"):
            self.assertLessEqual(read(name).count("\n"), MAX_LINES)


class ArchitectureTest(unittest.TestCase):
    def test_every_module_once_and_no_arrow_upward(self) -> None:
        floor, floors = 0, dict[str, int]()
        for line in read("docs/architecture.md").splitlines():
            if head := re.match(r"### (\d)\.", line):
                floor = int(head[1])
            elif row := re.match(r"\| `(\w+)\.py` \|", line):
                self.assertNotIn(row[1], floors)
                floors[row[1]] = floor
        files = {file.stem: file for file in plugin.CHECKOUT.glob("*.py")}
        self.assertEqual(set(floors), set(files))
        for name, file in files.items():
            above = {one for one in imported(file) if floors[one] > floors[name]}
            self.assertEqual(above, set(), name)


if __name__ == "__main__":
    unittest.main()
