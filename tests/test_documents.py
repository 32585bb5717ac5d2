"""What the documents say of the plugin is what the plugin has."""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import itertools
import json
import re
import sys
import tempfile
import unittest
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args
from unittest import mock

import httpx
import playground
import plugin
from astrbot_plugin_hindsight_memory.archive import WIPE_SECONDS
from astrbot_plugin_hindsight_memory.commands import (
    CODE_SECONDS,
    MAX_PAUSE_MINUTES,
    PAGE_LINES,
    PATIENCE_SECONDS,
    RECALL_SECONDS,
    Command,
    Commands,
)
from astrbot_plugin_hindsight_memory.delivery import (
    ACCESS_CAP_SECONDS,
    CONCURRENCY,
    MAX_AGE_SECONDS,
    MAX_UNSAVED_TURNS,
)
from astrbot_plugin_hindsight_memory.events import MAX_QUOTE_CHARS
from astrbot_plugin_hindsight_memory.hindsight_client import VERSION
from astrbot_plugin_hindsight_memory.memory import (
    BREAKER_FAILURES,
    BREAKER_MAX_PAUSE_SECONDS,
    BREAKER_PAUSE_SECONDS,
    PROFILE_SECONDS,
    REPEAT_SECONDS,
)
from astrbot_plugin_hindsight_memory.memory_formatter import MIN_ID_CHARS
from astrbot_plugin_hindsight_memory.outbox import MAX_WINDOW_CHARS, MAX_WINDOWS
from astrbot_plugin_hindsight_memory.scope import Skip, StateFault
from astrbot_plugin_hindsight_memory.settings import MAX_BANK_ID_BYTES, Problem, load_settings
from astrbot_plugin_hindsight_memory.texts import WORDING, Language, Texts
from commands_case import CAT, TEA, CommandsCase
from fake_bank import ROOT
from rig import venvs
from support import HASHER, SCHEMA, leaves, make_settings, reply, until
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


def chapter(name: str, title: str) -> list[Section]:
    """The section that begins with some words, and those below it."""
    every = sections(name)
    (first,) = [index for index, one in enumerate(every) if one.title.startswith(title)]
    below = itertools.takewhile(lambda one: one.level > every[first].level, every[first + 1 :])
    return [every[first], *below]


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


class NumbersTest(unittest.TestCase):
    """What both READMEs say of a constant, with the constant's own number in it."""

    WORDS: dict[Language, dict[float, str]] = {
        "zh": {1: "一", 2: "两"},
        "en": {1: "one", 2: "two"},
    }
    WAIT = SCHEMA["recall"]["items"]["timeout_seconds"]["default"]
    PHRASES: tuple[tuple[float, str, str], ...] = (
        (WAIT, "默认 {n} 秒", "({n} by default)"),
        (BREAKER_FAILURES, "连续失败 {n} 次后暂停召回", "after {n} failures in a row"),
        (BREAKER_PAUSE_SECONDS, "后台每 {n} 秒到", "in the background every {n} seconds to"),
        (BREAKER_MAX_PAUSE_SECONDS / 60, "秒到 {n} 分钟探测", "seconds to {n} minutes;"),
        (MAX_AGE_SECONDS / 86400, "插件运行满 {n} 天后放弃", "for {n} days of running time"),
        (MAX_AGE_SECONDS / 86400, "等了超过 {n} 天", "Waited more than {n} days"),
        (MAX_AGE_SECONDS / 86400, "超过 {n} 天的会放弃", "has waited {n} days is given up"),
        (MAX_WINDOWS, "排队超过 {wan} 万批", "more than {n} windows were queued"),
        (MAX_UNSAVED_TURNS, "暂存内存，最多 {n} 轮", "up to {n} turns wait in memory"),
        (MAX_UNSAVED_TURNS, "内存里最多放 {n} 轮", "memory holds {n} turns at most"),
        (MAX_WINDOW_CHARS, "一批满 {n} 字", "turns have gathered {n} characters"),
        (REPEAT_SECONDS / 3600, "{word}小时内重复说的", "within {an} hour is stored once"),
        (PROFILE_SECONDS / 60, "最多每 {n} 分钟读一次", "at most every {n} minutes"),
        (RECALL_SECONDS, "记得什么，最多等 {n} 秒", "of this chat; waits at most {n} seconds"),
        (RECALL_SECONDS, "再查一次旧事，最多等 {n} 秒", "other words; waits at most {n} seconds"),
        (PATIENCE_SECONDS, "超过 {n} 秒还没有结果", "takes more than {n} seconds is announced"),
        (PAGE_LINES, "每页 {n} 条", "newest first, {n} a page"),
        (MAX_PAUSE_MINUTES, "最多 {n} 分钟（", "at most {n} minutes ("),
        (MAX_PAUSE_MINUTES / 1440, "分钟（{n} 天）", "minutes ({n} days)"),
        (WIPE_SECONDS / 60, "{word}分钟内没有清完", "not finished in {word} minutes"),
        (CODE_SECONDS, "{n} 秒内由同一个人发出", "if sent within {n} seconds"),
        (ACCESS_CAP_SECONDS / 60, "最多等 {n} 分钟", "within {n} minutes"),
        (CONCURRENCY, "最多同时{word}批", "at most {word} at a time"),
        (MAX_QUOTE_CHARS, "最多 {n} 字", "at most {n} characters"),
        (MIN_ID_CHARS, "不到 {n} 个字符的号码", "Ids of fewer than {n} characters"),
        (MAX_BANK_ID_BYTES, "最多 {n} 字节", "at most {n} bytes"),
        (len(HASHER.digest("umo", "x")), "取 {n} 位十六进制", "{n} hex digits"),
    )

    def test_both_readmes_have_the_constants_numbers(self) -> None:
        for number, *phrases in self.PHRASES:
            for (language, name), phrase in zip(READMES.items(), phrases, strict=True):
                told = self.told(phrase, number, language)
                with self.subTest(name, told=told):
                    self.assertTrue(told in read(name), f"{name} does not say: {told}")

    def told(self, phrase: str, number: float, language: Language) -> str:
        """A phrase with its number as each language writes it."""
        word = self.WORDS[language].get(number, str(number))
        an = "an" if number == 1 else word
        plain = f"{number:,.0f}" if number >= 100_000 else f"{number:g}"
        return phrase.format(n=plain, wan=f"{number / 10_000:g}", word=word, an=an)

    def test_oldest_python(self) -> None:
        python = ".".join(map(str, venvs.MINIMUM))
        self.assertIn(f"Python {python} 或更新", read("README.md"))
        self.assertIn(f"Python {python} or newer", read("README_en.md"))


class DependenciesTest(unittest.TestCase):
    def test_httpx_is_the_only_one(self) -> None:
        lines = read("requirements.txt").split()
        self.assertEqual([re.split(r"[<>=~!]", line)[0] for line in lines], ["httpx"])
        self.assertIn("唯一的依赖是 `httpx`", read("README.md"))
        self.assertIn("The only dependency is `httpx`", read("README_en.md"))

    def test_nothing_else_is_imported(self) -> None:
        allowed = sys.stdlib_module_names | {"httpx"}
        for file in plugin.CHECKOUT.glob("*.py"):
            with self.subTest(file.name):
                others = set(self.imported(file)) - allowed
                self.assertEqual(others, {"astrbot"} if file.name == "main.py" else set())

    @staticmethod
    def imported(file: Path) -> Iterator[str]:
        """The packages that a module imports, but for its own."""
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                yield (node.module or "").partition(".")[0]


class SettingsTest(unittest.TestCase):
    def test_number(self) -> None:
        self.assertLessEqual(len(leaves()), MAX_SETTINGS)

    def test_readmes_tell_how_many_there_are_and_which_are_required(self) -> None:
        required = [path for path, meta in leaves().items() if "必填" in meta["description"]]
        problems = load_settings({}, SCHEMA).problems
        self.assertEqual([f"{path}_missing" for path in required], list(problems))
        number, words = len(leaves()), NumbersTest.WORDS
        zh, en = (words[language][len(required)] for language in READMES)
        for name, told, mark in (
            ("README.md", f"设置 {number} 项，必填的只有{zh}项", "必填"),
            ("README_en.md", f"{number} settings of which {en} are required", "required"),
        ):
            with self.subTest(name):
                self.assertIn(told, read(name))
                marked = [row[0].strip("`") for row in rows(name) if mark in row[1]]
                self.assertEqual(marked, required)

    def test_every_setting_has_its_row(self) -> None:
        for language, name in READMES.items():
            found = {row[0].strip("`"): row[1] for row in rows(name) if len(row) == 4}
            for path, meta in leaves().items():
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
        paths = list(leaves())
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
        for path, meta in leaves().items():
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

    def test_every_message_that_can_be_looked_up_is_one(self) -> None:
        titles = {"zh": "排查", "en": "Troubleshooting"}
        for column, (language, name) in enumerate(READMES.items()):
            sentences = [plain_quotes(one[column]) for one in WORDING.values()]
            _, *tables = chapter(name, titles[language])
            cells = [row[0] for table in tables for row in table.rows[1:]]
            self.assertGreater(len(cells), 60)
            for cell in cells:
                with self.subTest(name, cell=cell):
                    found = [one for one in sentences if re.search(self.pattern(cell), one)]
                    self.assertTrue(found, f"nothing says so: {cell}")

    @staticmethod
    def pattern(cell: str) -> str:
        """What a sentence looks like that a cell quotes: N is a value, … is anything."""
        parts = re.split(r"(…|\bN\b)", plain_quotes(cell))
        wild = {"…": ".*", "N": r"\{\w+\}"}
        return "".join(wild.get(part) or re.escape(part) for part in parts)

    def test_every_skip_can_be_looked_up(self) -> None:
        for language, name in READMES.items():
            first = {row[0] for row in rows(name)}
            for reason in Skip:
                with self.subTest(name, reason=reason):
                    self.assertIn(Texts(language)(reason), first)


def plain_quotes(text: str) -> str:
    return re.sub("[“”]", '"', text)


@dataclass(frozen=True)
class Calls:
    """A row of the table of the interface.

    Attributes:
        methods: The first column.
        paths: The second one, without queries.
        commands: The commands that the third one names.
    """

    methods: frozenset[str]
    paths: frozenset[str]
    commands: frozenset[str]

    @property
    def all(self) -> set[tuple[str, str]]:
        return set(itertools.product(self.methods, self.paths))


def interface(name: str) -> list[Calls]:
    titles = {"README.md": "调用的接口", "README_en.md": "API calls"}
    (section,) = chapter(name, titles[name])
    names = {command.name for command in commands()}
    return [
        Calls(
            frozenset(re.findall(r"[A-Z]+", methods)),
            frozenset(re.findall(r"`(/[^`?]+)", paths)),
            frozenset(re.findall(r"`(\w+)[^`]*`", when)) & names,
        )
        for methods, paths, when in section.rows[1:]
    ]


class InterfaceTest(CommandsCase):
    """Everything that makes requests is done; the table has all of them and nothing else."""

    WORDS = (
        *("status", "recall 茶", "why", "list", "remember 茶", "ask 茶？", "profile", "forget 茶"),
        *("forget 1", "forgetme", "optout", "optin", "wipe 0007", "export", "pause 5", "on"),
        *("off", "stats", "stats json", "retry", "setup", "setup apply", "help"),
    )

    def setUp(self) -> None:
        self.enterContext(mock.patch("secrets.randbelow", lambda _: 7))
        self.asked: dict[str, set[tuple[str, str]]] = defaultdict(set)
        """By the command's name; the rest, which nobody asked for, under an empty one."""

    async def test_every_request_is_in_the_table_with_the_commands_that_make_it(self) -> None:
        await self.do_everything()
        every = set().union(*self.asked.values())
        for name in READMES.values():
            with self.subTest(name):
                table = interface(name)
                told = set().union(*(row.all for row in table))
                self.assertEqual(every - told, set())
            for row in table:
                with self.subTest(name, paths=sorted(row.paths)):
                    made = every & row.all
                    self.assertEqual({method for method, _ in made}, row.methods)
                    self.assertEqual({path for _, path in made}, row.paths)
                    who = {one for one, calls in self.asked.items() if calls & row.all}
                    self.assertEqual(who - {""}, row.commands)

    async def do_everything(self) -> None:
        names = {words.partition(" ")[0] for words in self.WORDS}
        self.assertEqual(names, {command.name for command in commands()})
        for words in self.WORDS:
            await self.chat()
            self.note("")
            await self.ask(words, is_admin=True)
            assert self.archive
            await self.archive._continue(self.scope().chat)  # what it leaves to the background
            self.note(words.partition(" ")[0])
        await self.memory._probe()
        self.bank.fail(lambda: reply(404), "/v1/version")
        await self.client.version()
        self.note("")
        await self.erase_in_the_background()
        self.note("")

    async def chat(self) -> None:
        """A new chat in which something is stored, concluded, recalled, listed and queued."""
        await super().asyncSetUp()
        document = self.bank.store(self.scope(), TEA, CAT)
        self.bank.conclude(self.scope(), "爱茶", f"{document}.0")
        await self.recall()
        await self.say("记住我爱喝茶")
        self.bank.fail(lambda: reply(503), "memories", "POST")
        await self.say("记住我不爱喝咖啡")
        self.bank.heal()
        (window,) = await self.outbox.windows(self.scope().chat)
        item = {"document_id": window.document_id}
        self.bank.queue["q"] = {"status": "pending", "item": item}
        for words in ("wipe", "list 绿茶"):
            await self.ask(words)

    async def say(self, words: str) -> None:
        message = self.message(words)
        await self.memory.remember([message], "好的", message.at)
        await self.send()

    async def erase_in_the_background(self) -> None:
        await self.chat()
        self.bank.fail(lambda: reply(503))
        await self.ask("wipe 0007")
        self.bank.heal()
        assert self.archive
        task = asyncio.create_task(self.archive.run())
        await until(lambda: not self.bank.texts(self.scope()))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def note(self, name: str) -> None:
        self.asked[name] |= set(map(call_of, self.bank.requests))
        self.bank.requests.clear()


def call_of(request: httpx.Request) -> tuple[str, str]:
    """Method and path below the bank, `{id}` in the place of an id."""
    path = request.url.path.replace(ROOT, "/", 1)
    kinds = "memories|documents|operations|mental-models"
    return request.method, re.sub(rf"^/({kinds})/(?!recall$|list$).+", r"/\1/{id}", path)


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


class PlaygroundTest(unittest.TestCase):
    def test_key_and_bank_alone_mean_the_cloud(self) -> None:
        for address in ([], ["--api-base", "http://hindsight.test"]):
            with self.subTest(address=address):
                options = playground.parse([*address, "--api-key", "k", "--bank-id", "b"])
                expected = address[-1] if address else SCHEMA["api_base"]["default"]
                self.assertEqual(options.account, (expected, "k", "b"))
        self.assertIsNone(playground.parse(["--webui"]).account)


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
