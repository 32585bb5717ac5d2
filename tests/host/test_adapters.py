"""The chat, the words and the stored line of every shape of message, on this AstrBot.

Runs under the Python of an AstrBot installation: `tests/run.py` does that for the oldest and the
newest that the plugin supports.
"""

from __future__ import annotations

import logging
import re
import tempfile
import unittest
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, cast

from host import CONFIG, Host

HOST = Host()  # before anything else imports AstrBot, which reads its root folder then

import plugin  # noqa: E402
from astrbot_plugin_hindsight_memory.bot_names import BotNames  # noqa: E402
from astrbot_plugin_hindsight_memory.events import (  # noqa: E402
    EventReader,
    has_own_session,
    origin_of,
)
from astrbot_plugin_hindsight_memory.memory import ChatMemory  # noqa: E402
from astrbot_plugin_hindsight_memory.people import Roster  # noqa: E402
from astrbot_plugin_hindsight_memory.query import build_query  # noqa: E402
from astrbot_plugin_hindsight_memory.scope import Scope, ScopeState, Skip  # noqa: E402
from astrbot_plugin_hindsight_memory.texts import Texts  # noqa: E402
from astrbot_plugin_hindsight_memory.transcript import Message, TurnRecord  # noqa: E402
from shapes import BOT, OTHER, Said, Shape, shapes  # noqa: E402
from support import HASHER, NOW, Clock, make_settings  # noqa: E402

FOLDER = tempfile.TemporaryDirectory()
STATE = ScopeState.load(Path(FOLDER.name))
SHAPES = shapes(HOST)
ANSWER = "好的"
ID_BEGINS = "30405060"
"""So much of an id gives it away; some adapters take as much for a name."""
LINE = re.compile(r"(\S+#[0-9a-f]{6}) \(2026-03-04T12:30:05\+00:00\): (.*)")
HASH = re.compile(r"(sender|group|umo):[0-9a-f]{32}")


@dataclass(frozen=True)
class Seen:
    """What the plugin made of one event.

    Attributes:
        umo: The session.
        ids: What the event tells of the sender and the chat.
        scope: The chat.
        message: What was said, unless there is no memory.
        record: What would be stored with an answer.
    """

    umo: str
    ids: frozenset[str]
    scope: Scope | Skip
    message: Message | None = None
    record: TurnRecord | None = None

    @property
    def chat(self) -> Scope:
        assert isinstance(self.scope, Scope), self.scope
        return self.scope

    @property
    def produced(self) -> str:
        """Everything that may be stored, sent or logged of it."""
        if self.message is None:
            return repr(self.scope)
        shown = replace(self.message, raw="")
        query = build_query(self.message.words, quoted=self.message.quoted)
        return f"{self.scope!r} {shown!r} {self.record!r} {query}"


class Recorder:
    """Stands in for the delivery and keeps what it is given."""

    def __init__(self) -> None:
        self.records: list[TurnRecord] = []

    async def add(self, record: TurnRecord) -> None:
        self.records.append(record)


async def see(shape: Shape, said: Said | None = None, *, isolated: bool = False) -> Seen:
    """Has the adapter make an event of a shape, and the plugin look at it."""
    event = await shape.make(HOST, said or Said(text=shape.words))
    if isolated:
        HOST.isolate(event)
    umo = event.unified_msg_origin
    told = {event.get_sender_id(), event.get_group_id(), *re.findall("[0-9]{8,}", umo)}
    ids = frozenset(one for one in told if len(one) >= len(ID_BEGINS))
    scope = HASHER.scope(origin_of(event))
    if isinstance(scope, Skip):
        return Seen(umo, ids, scope)
    reader = EventReader(
        event,
        scope,
        Roster(HASHER, scope),
        Texts("zh"),
        bot_name=BotNames(Clock()).name(event),
        privacy=make_settings().privacy,
        opted_out=lambda _: False,
    )
    message = reader.message(NOW)
    return Seen(umo, ids, scope, message, await record_of(message))


async def record_of(message: Message) -> TurnRecord:
    """What is stored of a message with an answer."""
    recorder = Recorder()
    client, delivery = cast("Any", object()), cast("Any", recorder)
    memory = ChatMemory(make_settings(), STATE, client, delivery, clock=Clock())
    await memory.remember([message], ANSWER, NOW)
    return recorder.records[0]


class AdaptersTest(unittest.IsolatedAsyncioTestCase):
    """One row for each shape."""

    level: ClassVar[int]

    @classmethod
    def setUpClass(cls) -> None:
        cls.level = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        cls.addClassCleanup(logging.disable, cls.level)

    def rows(self, *, remembered: bool = True) -> list[Shape]:
        """The shapes, or those that have a memory."""
        return [one for one in SHAPES if not remembered or not one.kind.startswith("skip")]

    def test_no_adapter_is_left_out(self) -> None:
        self.assertEqual({one.platform for one in SHAPES} - {"cron"}, set(HOST.adapters))
        self.assertEqual(set(CONFIG), set(HOST.adapters))
        self.assertEqual(len(HOST.adapters), 18)
        names = [(one.platform, one.name) for one in SHAPES]
        self.assertEqual(len(set(names)), len(names))

    async def test_scope(self) -> None:
        for shape in self.rows(remembered=False):
            with self.subTest(f"{shape.platform}: {shape.name}"):
                scope = (await see(shape)).scope
                if isinstance(scope, Skip):
                    self.assertEqual(f"skip {scope}", shape.kind)
                    continue
                self.assertEqual(scope.kind, shape.kind)
                owner = "sender" if shape.kind == "private" else "group"
                self.assertEqual(
                    [HASH.sub(r"\1", tag) for tag in scope.tags],
                    [f"scope:{shape.kind}", f"platform:{shape.platform}", owner, "umo"],
                )
                asked = scope.read_tags(match_umo=False)
                is_group = shape.kind == "group"
                self.assertEqual(asked, scope.tags[:3] if is_group else scope.tags)

    async def test_unique_session_changes_the_session_and_nothing_else(self) -> None:
        for shape in self.rows():
            with self.subTest(f"{shape.platform}: {shape.name}"):
                shared, alone = await see(shape), await see(shape, isolated=True)
                self.assertEqual(shared.umo != alone.umo, shape.isolated)
                self.assertEqual(shared.chat.tags[:3], alone.chat.tags[:3])
                self.assertEqual(shared.chat.chat != alone.chat.chat, shape.isolated)
                for read in (True, False):
                    self.assertEqual(
                        shared.chat.read_tags(match_umo=read)
                        == alone.chat.read_tags(match_umo=read),
                        not (shape.isolated and (read or shape.kind == "private")),
                    )

    async def test_unique_session_is_told(self) -> None:
        for shape in self.rows(remembered=False):
            with self.subTest(f"{shape.platform}: {shape.name}"):
                event = await shape.make(HOST, Said(text=shape.words))
                self.assertFalse(has_own_session(event))
                HOST.isolate(event)
                self.assertEqual(has_own_session(event), shape.isolated)

    async def test_stored_line(self) -> None:
        for shape in self.rows():
            with self.subTest(f"{shape.platform}: {shape.name}"):
                seen = await see(shape)
                assert seen.message
                assert seen.record
                self.assertEqual(seen.message.stored, expected_text(shape, seen.chat))
                *said, answered = [line.text for line in seen.record.lines]
                self.assertTrue(answered.endswith(f": {ANSWER}"))
                self.assertEqual(len(said), bool(shape.stored))
                for line in said:
                    found = LINE.fullmatch(line)
                    assert found, line
                    self.assertEqual(found[2], seen.message.stored)
                    name = found[1].partition("#")[0]
                    self.assertEqual(name, Said().name if shape.named else "用户")

    async def test_nothing_produced_holds_an_id(self) -> None:
        for shape in self.rows(remembered=False):
            for isolated in (False, True):
                with self.subTest(f"{shape.platform}: {shape.name}", isolated=isolated):
                    ids = (await see(shape)).ids
                    text = f"{shape.words} {'，'.join(sorted(ids))}，我是{min(ids, default='')}"
                    seen = await see(shape, Said(text=text), isolated=isolated)
                    begins = {one[: len(ID_BEGINS)] for one in {*ids, BOT, OTHER}}
                    found = [one for one in {*begins, seen.umo} if one in seen.produced]
                    self.assertEqual(found, [])

    async def test_two_chats_are_two_and_one_is_one(self) -> None:
        for shape in self.rows():
            with self.subTest(f"{shape.platform}: {shape.name}"):
                here = Said(text=shape.words)
                other_chat = replace(here, chat="70405060999")
                other_person = replace(here, sender="30405060999")
                first, again = await see(shape, here), await see(shape, here)
                self.assertEqual(first.scope, again.scope)
                elsewhere = await see(shape, other_chat)
                somebody = await see(shape, other_person)
                if shape.kind == "group":
                    self.assertNotEqual(first.chat.chat, elsewhere.chat.chat)
                    self.assertEqual(first.chat.chat, somebody.chat.chat)
                else:
                    self.assertNotEqual(first.chat.chat, somebody.chat.chat)

    async def test_each_conversation_in_webchat_is_a_chat(self) -> None:
        (shape,) = [one for one in self.rows() if one.platform == "webchat"]
        first, second = await see(shape), await see(shape, Said(chat="70405060999"))
        self.assertNotEqual(first.chat.chat, second.chat.chat)
        self.assertNotEqual(first.chat.tags, second.chat.tags)
        self.assertEqual(first.chat.tags[:3], second.chat.tags[:3])

    async def test_private_and_group_of_one_person_differ(self) -> None:
        for platform in HOST.adapters:
            with self.subTest(platform):
                rows = [one for one in self.rows() if one.platform == platform]
                seen = [(one.kind, await see(one)) for one in rows]
                private = {one.chat.chat for kind, one in seen if kind == "private"}
                group = {one.chat.chat for kind, one in seen if kind == "group"}
                self.assertEqual(private & group, set())
                people = {
                    kind: {
                        HASHER.pseudonym(one.chat, Said().sender) for k, one in seen if k == kind
                    }
                    for kind in ("private", "group")
                }
                self.assertEqual(people["private"] & people["group"], set())


class PagesTest(unittest.TestCase):
    """The pages name the adapters of the table."""

    def setUp(self) -> None:
        self.lines: dict[str, list[str]] = {}
        for name, title in (("acceptance", "测试过的平台"), ("acceptance_en", "Tested platforms")):
            text = page(name)
            section = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
            self.lines[name] = section.splitlines()

    def line(self, name: str, word: str) -> str:
        """The one item of the list that has a word in it."""
        (found,) = [one for one in self.lines[name] if one.startswith("- ") and word in one]
        return found

    def test_every_adapter_is_named(self) -> None:
        for name, lines in self.lines.items():
            with self.subTest(name):
                cells = [line.split("|")[1] for line in lines if line.startswith("| `")]
                self.assertEqual(sorted(words_in(" ".join(cells))), sorted(CONFIG))

    def test_platforms_without_nicknames(self) -> None:
        unnamed = {one.platform for one in SHAPES if one.stored and not one.named}
        by_words = {one for one in unnamed if one.startswith("qq_")}
        self.assertEqual(by_words, {"qq_official", "qq_official_webhook"})
        for name, words in (("acceptance", "QQ 官方接口"), ("acceptance_en", "QQ's official")):
            with self.subTest(name):
                self.assertEqual(set(words_in(self.line(name, words))), unnamed - by_words)

    def test_where_unique_session_isolates(self) -> None:
        known = {
            "aiocqhttp": ("QQ", "QQ"),
            "qq_official": ("QQ", "QQ"),
            "qq_official_webhook": ("QQ", "QQ"),
            "lark": ("飞书", "Lark"),
            "dingtalk": ("钉钉", "DingTalk"),
            "slack": ("Slack", "Slack"),
            "misskey": ("Misskey", "Misskey"),
        }
        names = {known[one.platform] for one in SHAPES if one.isolated}
        self.assertEqual(names, set(known.values()))
        pages = (("scopes-and-backup", "、"), ("scopes-and-backup_en", ", "))
        for column, (name, separator) in enumerate(pages):
            lines = page(name).splitlines()
            (row,) = [line for line in lines if line.count("`unique_session`")]
            with self.subTest(name):
                (told,) = re.findall(r"[(（](QQ[^)）]+)", row)
                self.assertEqual(set(told.split(separator)), {one[column] for one in names})

    def test_what_may_be_no_private_chat(self) -> None:
        unsure = {one.platform for one in SHAPES if one.unsure}
        for name in self.lines:
            with self.subTest(name):
                named = set(words_in(self.line(name, "`satori`")))
                self.assertEqual(named - {"umo"}, unsure)


def page(name: str) -> str:
    return (plugin.CHECKOUT / "docs" / f"{name}.md").read_text("utf-8")


def words_in(text: str) -> list[str]:
    """What stands as code in a text."""
    return re.findall(r"`(\w+)`", text)


def expected_text(shape: Shape, scope: Scope) -> str:
    """The stored text of a row with the labels of this chat."""
    labels = {
        "other": "小红" if shape.names_others else "用户",
        "hong": "hong",
        "hong_hong": "用户",
    }
    ids = {"other": OTHER, "hong": OTHER, "hong_hong": "hong_hong"}
    return shape.stored.format(
        **{key: name + HASHER.pseudonym(scope, ids[key]) for key, name in labels.items()},
    )
