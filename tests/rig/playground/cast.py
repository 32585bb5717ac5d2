"""Who talks where, and what the script has them say and ask, in either language."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rig.onebot import Role

type Language = Literal["zh", "en"]


@dataclass(frozen=True)
class Voice:
    """Somebody in one chat.

    Attributes:
        user_id: The person's QQ number.
        nickname: The person's nickname; it need not be the only one of that name.
        place: The chat in words.
        remark: Tells people apart on the screen, in brackets; the bot never sees it.
        group_id: The group; None for a private chat.
        role: The person's role in the group.
    """

    user_id: int
    nickname: str
    place: str
    remark: str = ""
    group_id: int | None = None
    role: Role = "member"

    @property
    def chat(self) -> tuple[Literal["private", "group"], int]:
        """Which chat it is: everybody in a group shares one."""
        return ("private", self.user_id) if self.group_id is None else ("group", self.group_id)

    @property
    def name(self) -> str:
        """The person in words."""
        return self.nickname + self.remark


@dataclass(frozen=True)
class Fact:
    """Something that is said first and asked later.

    Attributes:
        voice: Who says it, and where.
        text: The message.
        key: The word by which it is recognised.
    """

    voice: Voice
    text: str
    key: str


@dataclass(frozen=True)
class Question:
    """A question, and what it must bring back.

    Attributes:
        voice: Who asks, and where.
        text: The message.
        fact: What must be recalled; None where nothing may be known.
    """

    voice: Voice
    text: str
    fact: Fact | None = None


@dataclass(frozen=True)
class Cast:
    """The whole script in one language.

    Attributes:
        language: Which one.
        voices: Everybody one can be.
        facts: What is said first.
        questions: What those who said it ask later.
        strangers: What is asked from elsewhere.
        forgotten: What its speaker has the bot forget.
        after: What that person asks then.
    """

    language: Language
    voices: tuple[Voice, ...]
    facts: tuple[Fact, ...]
    questions: tuple[Question, ...]
    strangers: tuple[Question, ...]
    forgotten: Fact
    after: Question


ADMIN = 284619357
"""The bot's admin."""
_OTHER, _OWNER, _MEMBER, _GROUP = 391847265, 517263948, 629481753, 738261945
SECRETS = tuple(map(str, (ADMIN, _OTHER, _OWNER, _MEMBER, _GROUP)))
"""What must never reach Hindsight in the clear."""


def cast(language: Language) -> Cast:
    """Return the script in a language."""
    say = _Lines(0 if language == "zh" else 1)
    place = say("群「周末爬山」", "the group “Weekend hikes”")
    rain, owner = say("小雨", "Rain"), say("（群主）", " (owner)")
    namesake, remark = say("小明", "Sam"), say("（机器人管理员）", " (bot admin)")
    admin = Voice(ADMIN, rain, say("小雨的私聊", "private chat of Rain"), remark)
    other = Voice(_OTHER, say("阿哲", "Alex"), say("阿哲的私聊", "private chat of Alex"))
    first = Voice(_OWNER, namesake, place, owner, _GROUP, "owner")
    second = Voice(_MEMBER, namesake, place, say("（另一个人）", " (another one)"), _GROUP)
    admin_there = Voice(ADMIN, rain, place, remark, _GROUP)
    drink = Fact(
        admin,
        say("我最喜欢的饮料是冰美式，请记住。", "My favourite drink is lemonade, please remember."),
        say("冰美式", "lemonade"),
    )
    peanuts = Fact(
        first,
        say("我对花生过敏，请记住。", "I am allergic to peanuts, please remember."),
        say("花生", "peanuts"),
    )
    mango = Fact(
        second,
        say("我对芒果过敏，请记住。", "I am allergic to mangoes, please remember."),
        say("芒果", "mangoes"),
    )
    drinking = say("我最喜欢喝什么饮料？", "What is my favourite drink?")
    allergy = say("我对什么过敏？", "What am I allergic to?")
    return Cast(
        language=language,
        voices=(admin, other, first, second, admin_there),
        facts=(drink, peanuts, mango),
        questions=(
            Question(admin, drinking, drink),
            Question(first, allergy, peanuts),
            Question(second, allergy, mango),
        ),
        strangers=(
            Question(other, drinking),
            Question(other, say("小明对什么过敏？", "What is Sam allergic to?")),
            Question(admin_there, drinking),
        ),
        forgotten=mango,
        after=Question(second, allergy),
    )


@dataclass(frozen=True)
class _Lines:
    column: int

    def __call__(self, *wordings: str) -> str:
        return wordings[self.column]
