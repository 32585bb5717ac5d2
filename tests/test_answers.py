"""What people read, word for word: `fixtures/answers.txt` holds every answer in both languages.

A change of wording shows there as such. To write it anew, and then to read what has changed:

    PYTHONPATH=tests python tests/test_answers.py --write
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys
import unittest
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.long_answers import MAX_CHARS, MAX_LINES
from astrbot_plugin_hindsight_memory.scope import Scope
from astrbot_plugin_hindsight_memory.texts import Language, Texts
from astrbot_plugin_hindsight_memory.transcript import Speaker
from commands_case import BEN, CommandsCase
from support import ANN, reply

FILE = Path(__file__).with_name("fixtures") / "answers.txt"
CODE = 4711
LANGUAGES: tuple[Language, ...] = ("zh", "en")
OTHER_ANN = Speaker("小明", "#5c7e90")
HASH = re.compile(r"(?<![0-9a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{8}(?![0-9a-f])(?!-[0-9]{6}\.)")
"""What another salt makes another: of the salt itself, and of a chat."""
RAW = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T|Traceback|HTTP|\bNone\b|[{}]")

Setup = Callable[["AnswersCase"], Awaitable[None] | None]


@dataclass(frozen=True)
class Scene:
    """Somebody somewhere, and what they type one after the other.

    Attributes:
        name: A head in the file.
        typed: What follows the command's name. `@5` before it lets seconds pass.
        setup: What has happened before.
        caller: How the caller differs from a member of a group.
        config: Settings.
        is_private: In a private chat.
    """

    name: str
    typed: Sequence[str]
    setup: Setup = lambda _: None
    caller: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    is_private: bool = False


class AnswersCase(CommandsCase):
    """Plays scenes."""

    def said(self, *lines: tuple[Speaker, str, str], scope: Scope | None = None) -> str:
        """Stores lines of (speaker, time, words) as a server without a model does: verbatim."""
        texts = [
            f"{who.label} ({at}:00+00:00{f' → {ANN.label}' if not who.pseudonym else ''}): {words}"
            for who, at, words in lines
        ]
        document = self.bank.store(scope or self.scope(), *texts)
        for number, (who, at, _) in enumerate(lines):
            memory = self.bank.memories[f"{document}.{number}"]
            memory |= {"text": texts[number], "mentioned_at": f"{at}:00+00:00"}
            memory["metadata"] = {"speakers": who.pseudonym}
        return document

    async def play(self, scene: Scene, language: Language) -> list[str]:
        """The answers of a scene."""
        asyncio.get_running_loop().slow_callback_duration = 10.0
        await self.asyncSetUp()
        self.build(**scene.config)
        if waiting := scene.setup(self):
            await waiting
        answers = []
        for typed in scene.typed:
            words = typed
            if found := re.match(r"@([0-9]+) ?", typed):
                self.clock.now += int(found[1])
                words = typed[found.end() :]
            scope = self.private if scene.is_private else self.group
            changes = {"is_manager": scene.is_private, "is_admin": False, **scene.caller}
            caller = self.caller(scope, texts=Texts(language), **changes)
            answers.append("\n".join([text async for text in self.commands.answer(caller, words)]))
        return answers


def chat(case: AnswersCase) -> None:
    """A group that has talked: a cat, tea, a journey; and a conclusion from two of it."""
    bot = Speaker("助手")
    document = case.said(
        (ANN, "2026-03-04T08:48", "我的猫叫年糕"),
        (bot, "2026-03-04T08:48", "好的，知道了"),
        (ANN, "2026-03-03T21:05", "我下周三要去成都出差"),
        (bot, "2026-03-03T21:05", "祝顺利，你下周三要去成都出差，记得带伞"),
        (BEN, "2025-12-31T23:59", "我喜欢喝绿茶"),
        (ANN, "2026-02-01T10:00", "我每天喝两杯绿茶"),
        (bot, "2026-02-01T10:00", "原来是这样"),
    )
    case.said(
        (ANN, "2026-03-04T09:00", "我最近有什么安排？"),
        (bot, "2026-03-04T09:00", "你下周三要去成都出差，别忘了订票"),
    )
    case.bank.conclude(
        case.scope(), "小明#3fa2c1 和 小红#9b1c22 都喝绿茶", f"{document}.4", f"{document}.5"
    )


def long_chat(case: AnswersCase) -> None:
    """Twenty cars."""
    for n in range(20):
        case.said((ANN, f"2026-02-{n + 1:02}T10:00", f"第{n}辆车停在{n}号车位" + "很久" * 30))
    case.said((BEN, "2026-02-25T10:00", "我养了一只猫"))


def two_of_a_name(case: AnswersCase) -> None:
    case.said(
        (ANN, "2026-03-01T10:00", "我怕狗"),
        (OTHER_ANN, "2026-03-01T11:00", "我养狗"),
        (BEN, "2026-03-01T12:00", "我也养狗"),
    )


def private_chat(case: AnswersCase) -> None:
    case.said(
        (ANN, "2026-03-04T08:48", "我对青霉素过敏"),
        (Speaker("助手"), "2026-03-04T08:48", "收到"),
        scope=case.private_scope(),
    )


async def recalled(case: AnswersCase) -> None:
    chat(case)
    await case.recall("我的猫叫什么名字来着")


async def recalled_then_forgot(case: AnswersCase) -> None:
    await recalled(case)
    case.memory.forget_chat(case.scope())


def off(case: AnswersCase) -> None:
    chat(case)
    case.state.switch(case.scope(), on=False)


def paused(case: AnswersCase) -> None:
    chat(case)
    case.state.pause(case.scope(), 30 * 60)


def opted_out(case: AnswersCase) -> None:
    chat(case)
    case.clock.wall = 1_772_600_000.0
    case.state.opt(case.scope(), "20001", out=True, everywhere=False)


def failing(case: AnswersCase) -> None:
    case.bank.fail(lambda: reply(503))


def refused(case: AnswersCase) -> None:
    case.bank.fail(lambda: reply(401))


def reflecting(case: AnswersCase) -> None:
    chat(case)
    basis = {"id": "x", "text": "小明#3fa2c1 的猫叫年糕", "tags": list(case.scope().tags)}
    case.bank.reflection = {
        "text": "小明#3fa2c1 的猫叫**年糕**。\n" + "它很可爱。\n" * 20,
        "based_on": {"memories": [basis]},
    }


def profiled(case: AnswersCase) -> None:
    case.bank.profiles[case.profile_id()] = "小明#3fa2c1 爱喝绿茶，养了一只叫年糕的猫。"


MANAGER: dict[str, Any] = {"is_manager": True}
ADMIN: dict[str, Any] = {"is_manager": True, "is_admin": True}
NOBODY = {"person_id": "", "speaker": Speaker("匿名成员", "#000000")}


async def _takes(_: Path) -> bool:
    return True


async def _takes_not(_: Path) -> bool:
    return False


SCENES = (
    Scene(
        "help, to a member of a group",
        (
            "",
            "help",
            "help forget",
            "help 忘记",
            "help /status",
            "help forgt",
            "help wipe",
            "帮助",
            "help pause",
            "help export",
            "help optin",
        ),
    ),
    Scene("help, to who may manage the group", ("help", "help import"), caller=MANAGER),
    Scene("help, to a bot admin", ("help", "help rebind", "help setup"), caller=ADMIN),
    Scene(
        "what is no command",
        (
            "forgt 猫",
            "statsu",
            "记住我的车牌",
            "忘记我住在杭州",
            "暂停30分钟",
            "删除 猫",
            "xyzzy",
            "查看列表",
            "search cat",
            "<b>" + "x" * 80,
        ),
        caller=MANAGER,
    ),
    Scene("signs and cases", ("状态？", "STATUS", "ｓｔａｔｕｓ", "/status", "optin 5")),
    Scene(
        "list",
        (
            "list",
            "list 1",
            "list 2",
            "list 99",
            "list 猫",
            "list 火星",
            "list 第2页",
            "list 绿茶 第2页",
            "list 0",
        ),
        setup=chat,
    ),
    Scene("a long list", ("list", "list 2", "list 3", "list 99", "list 车 第3页"), setup=long_chat),
    Scene("names that collide", ("list", "recall 狗"), setup=two_of_a_name),
    Scene("nothing yet", ("list", "recall 猫", "forget 猫", "why", "profile", "ask 猫？")),
    Scene(
        "recall",
        ("recall", "recall ？", "recall 绿茶", "recall 量子力学", "recall 猫 2", "回忆 成都"),
        setup=chat,
    ),
    Scene(
        "a long recall",
        ("recall 车", "recall 车 2", "recall 车 第4页", "recall 车 9"),
        setup=long_chat,
    ),
    Scene("why", ("why", "why 1", "why 2", "why 9", "why x"), setup=recalled),
    Scene("why of a conclusion", ("list 都喝", "why 1"), setup=chat),
    Scene("why after a deletion", ("why",), setup=recalled_then_forgot),
    Scene("ask", ("ask", "ask ？", "ask 猫叫什么？", "more", "more"), setup=reflecting),
    Scene("profile", ("profile",), setup=profiled),
    Scene("remember", ("remember", "remember ！", "remember 我的车牌是沪A12345")),
    Scene("remember while the server fails", ("remember 我喜欢茶", "recall 茶"), setup=failing),
    Scene(
        "forget, by a member",
        (
            "forget",
            "forget ？",
            "list",
            "forget 6",
            "forget 6 all",
            "forget 6a",
            "forget 2",
            "forget 2",
            "forget 99",
            "forget 1",
            "forget 6b",
            "list",
        ),
        setup=chat,
    ),
    Scene(
        "forget, by who may manage the group",
        ("list", "forget 第一条", "forget 2,3", "forget #6", "forget 6a", "forget 6 all", "list"),
        setup=chat,
        caller=MANAGER,
    ),
    Scene(
        "forget what else tells it",
        ("list 我下周三", "forget 1", "forget 2", "list 成都", "recall 成都"),
        setup=chat,
    ),
    Scene("forget several", ("list", "forget 2 3", "forget 2-3", "forget 4"), setup=chat),
    Scene(
        "forget by a text",
        (
            "forget 年糕",
            "forget 1",
            "forget 绿茶",
            "forget 火星",
            "forget me",
            "forget all",
            "forget 我",
            "忘记 全部",
        ),
        setup=chat,
    ),
    Scene(
        "forget in a private chat",
        ("list", "forget 1", "list"),
        setup=private_chat,
        is_private=True,
    ),
    Scene(
        "forgetme",
        (
            "forgetme abc",
            "忘记我 住在杭州",
            "forgetme 1234",
            "forgetme",
            "forgetme 1234",
            "@59 forgetme",
            f"forgetme {CODE}",
            f"forgetme {CODE}",
            "forgetme all",
        ),
        setup=chat,
    ),
    Scene(
        "forgetme too late",
        ("forgetme", f"@61 forgetme {CODE}", "@61 forgetme", f"forgetme {CODE}"),
    ),
    Scene("forgetme of nobody", ("forgetme", "optout", "status"), caller=NOBODY, setup=chat),
    Scene(
        "wipe",
        (
            "wipe 1234",
            "wipe",
            "wipe 1234",
            "wipe 猫",
            "wipe all",
            f"wipe {CODE}",
            f"wipe all {CODE}",
            "list",
        ),
        setup=chat,
        caller=MANAGER,
    ),
    Scene(
        "what a member may not do",
        (
            "wipe",
            "pause 5",
            "off",
            "on",
            "export",
            "import",
            "setup",
            "retry",
            "rebind",
            "status all",
            "stats json",
        ),
        setup=chat,
    ),
    Scene(
        "pause",
        (
            "pause",
            "暂停 30分钟",
            "pause 半小时",
            "pause 2h",
            "pause 99999999",
            "pause 0",
            "pause -5",
            "pause soon",
            "recall 猫",
            "status",
            "on",
            "on",
        ),
        setup=chat,
        caller=MANAGER,
    ),
    Scene(
        "off",
        ("off 5", "off 半小时", "off now", "off", "pause 5", "recall 猫", "status", "on 5", "on"),
        setup=chat,
        caller=MANAGER,
    ),
    Scene("while off", ("recall 猫", "list 猫", "status", "remember 茶"), setup=off),
    Scene("while paused", ("recall 猫", "list 猫", "status", "ask 猫？"), setup=paused),
    Scene(
        "optout",
        ("optout x", "optout", "status", "remember 茶", "optin", "optin", "退出 全部"),
        setup=chat,
    ),
    Scene("status after an opt-out", ("status",), setup=opted_out),
    Scene("status, to a member", ("status",)),
    Scene("status, to a bot admin", ("status", "status all", "more", "stats"), caller=ADMIN),
    Scene("status in a private chat", ("status",), is_private=True),
    Scene("status while the server fails", ("status", "list"), setup=failing),
    Scene("status while the key is refused", ("status", "recall 猫"), setup=refused),
    Scene("status without settings", ("status", "list"), config={"api_key": ""}),
    Scene("stats", ("stats",), setup=chat),
    Scene("setup", ("setup", "setup x", "setup apply", "setup"), caller=ADMIN),
    Scene(
        "correct",
        (
            "correct",
            "list",
            "correct 1 我的猫叫汤圆",
            "correct 99 猫",
            "correct 6 我喝红茶",
            "correct 6b 我每天喝两杯红茶",
            "forget 1",
            "list",
        ),
        setup=chat,
    ),
    Scene("listen", ("listen", "listen on", "listen off", "listen x"), caller=MANAGER),
    Scene("share in a group", ("share", "share 4711", "unshare", "unshare 9")),
    Scene("share in private", ("share", "unshare"), is_private=True),
    Scene("selftest, to a member", ("selftest", "help selftest")),
    Scene("retry", ("retry", "retry 5"), caller=ADMIN),
    Scene("export in a group", ("export",), setup=chat, caller=ADMIN),
    Scene("export where there is nothing", ("export",), caller=ADMIN),
    Scene(
        "export in a private chat",
        ("export",),
        setup=private_chat,
        caller={"send_file": _takes},
        is_private=True,
    ),
    Scene(
        "export that the platform does not take",
        ("export",),
        setup=private_chat,
        caller={"send_file": _takes_not},
        is_private=True,
    ),
    Scene("export where no files are", ("export",), setup=private_chat, is_private=True),
    Scene(
        "too often",
        ("recall", "recall", "recall 猫", "@10 ask 猫", "recall 茶", "ask"),
        config={"commands": {"per_minute": 2}},
        setup=chat,
    ),
)


class AnswersTest(AnswersCase):
    maxDiff = None

    def setUp(self) -> None:
        self.enterContext(mock.patch("secrets.randbelow", lambda _: CODE))

    async def test_every_answer(self) -> None:
        stored = dict(_scenes_of(FILE.read_text("utf-8")))
        for scene in SCENES:
            answers = [await self.play(scene, language) for language in LANGUAGES]
            with self.subTest(scene.name):
                self.assertEqual(shown(scene, *answers), stored.pop(scene.name, ""))
            for answer in (one for language in answers for one in language):
                with self.subTest(scene=scene.name, answer=answer):
                    self.assertLessEqual(len(answer), MAX_CHARS)
                    self.assertLess(answer.count("\n"), MAX_LINES)
                    self.assertNotRegex(answer, RAW)
        self.assertEqual(stored, {})

    async def test_every_command_is_played(self) -> None:
        played = {re.sub(r"^@[0-9]+ ", "", one).split(" ")[0] for s in SCENES for one in s.typed}
        for command in self.commands.table:
            with self.subTest(command.name):
                self.assertFalse(played.isdisjoint({command.name, command.alias}))


class TypoTest(AnswersCase):
    """Nothing is erased but by a right command with what confirms it."""

    def _typed(self, draw: random.Random) -> str:
        """A command, or nearly one, with anything behind it but the numbers that were shown."""
        names = [name for one in self.commands.table for name in (one.name, one.alias)]
        name = draw.choice([one for one in names if one not in {"remember", "记住"}])
        if draw.random() < 0.3:
            place = draw.randrange(len(name))
            name = name[:place] + draw.choice(["", "x", "我", "？", name[place] * 2]) + name[place:]
        words = ["all", "全部", "我", "me", "猫", "绿茶", "第2页", "99", "50-60", "0", "1234", "-1"]
        words += [
            "年糕 all",
            "5分钟",
            "undo",
            "stop",
            "apply",
            "json",
            "abc",
            "' OR 1=1",
            "x" * 700,
        ]
        words += [chr(draw.randrange(0x20, 0x2FFF)) for _ in range(5)]
        behind = " ".join(draw.choice(words) for _ in range(draw.randrange(4)))
        return f"{name}{draw.choice([' ', ' ', ' ', ''])}{behind}"

    async def _kept(self) -> str:
        documents = sorted(one["original_text"] for one in self.bank.documents.values())
        waiting = await self.outbox.windows_of(self.scope().chat)
        return json.dumps([documents, sorted(map(str, waiting))])

    async def test_random_words_behind_commands_erase_nothing(self) -> None:
        asyncio.get_running_loop().slow_callback_duration = 10.0
        for seed in range(3):
            draw = random.Random(seed)
            await self.asyncSetUp()
            chat(self)
            self.enterContext(mock.patch("secrets.randbelow", lambda _: CODE))
            before = await self._kept()
            await self.answers("list", self.caller(**ADMIN))
            for _ in range(200):
                typed = self._typed(draw)
                self.clock.now += draw.choice([1, 20, 61])
                caller = self.caller(**draw.choice([ADMIN, MANAGER, {"is_manager": False}]))
                answers = await self.answers(typed, caller)
                with self.subTest(seed=seed, typed=typed):
                    self.assertEqual(await self._kept(), before)
                    self.assertLessEqual(len(answers[-1]), MAX_CHARS)
                if self.bank.config:
                    self.bank.config = {}


def shown(scene: Scene, chinese: Sequence[str], english: Sequence[str]) -> str:
    """A scene as it stands in the file."""
    blocks = [
        f"> {typed}\n{_indented(zh)}\n{_indented(en)}"
        for typed, zh, en in zip(scene.typed, chinese, english, strict=True)
    ]
    return "\n\n".join(blocks)


def _indented(answer: str) -> str:
    first, *rest = HASH.sub("########", answer).split("\n")
    return "\n".join([f"  | {first}", *(f"    {line}" for line in rest)])


def _scenes_of(text: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"(?m)^# ", text)[1:]:
        name, _, blocks = part.partition("\n")
        yield name, blocks.strip("\n")


class _Writer(AnswersTest):
    """Writes the file; only by hand."""

    async def runTest(self) -> None:  # noqa: N802 - the name that unittest looks for
        blocks = []
        for scene in SCENES:
            answers = [await self.play(scene, language) for language in LANGUAGES]
            blocks.append(f"# {scene.name}\n\n{shown(scene, *answers)}\n")
        FILE.write_text("\n".join(blocks), "utf-8")


def load_tests(loader: unittest.TestLoader, *_: Any) -> unittest.TestSuite:
    """All but what writes."""
    return unittest.TestSuite(map(loader.loadTestsFromTestCase, (AnswersTest, TypoTest)))


if __name__ == "__main__":
    if "--write" not in sys.argv:
        sys.exit(__doc__)
    unittest.TextTestRunner().run(_Writer())
