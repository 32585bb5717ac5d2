"""Who talks where, and what the script has them say and ask."""

from __future__ import annotations

from dataclasses import dataclass

from rig.onebot import Role

GROUP_NAME = "周末爬山"


@dataclass(frozen=True)
class Voice:
    """Somebody in one chat.

    Attributes:
        user_id: The person's QQ number.
        nickname: The person's nickname; it need not be the only one of that name.
        remark: Tells people of the same name apart on the screen; the bot never sees it.
        group_id: The group; None for a private chat.
        role: The person's role in the group.
    """

    user_id: int
    nickname: str
    remark: str = ""
    group_id: int | None = None
    role: Role = "member"

    @property
    def chat(self) -> tuple[str, int]:
        """Which chat it is: everybody in a group shares one."""
        return ("private", self.user_id) if self.group_id is None else ("group", self.group_id)

    @property
    def place(self) -> str:
        """The chat in words."""
        return f"{self.nickname}的私聊" if self.group_id is None else f"群「{GROUP_NAME}」"

    @property
    def name(self) -> str:
        """The person in words."""
        return f"{self.nickname}（{self.remark}）" if self.remark else self.nickname


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


_GROUP = 738261945
XIAOYU = Voice(284619357, "小雨")
AZHE = Voice(391847265, "阿哲")
MING_OWNER = Voice(517263948, "小明", "群主", _GROUP, "owner")
MING_MEMBER = Voice(629481753, "小明", "另一个人", _GROUP)
XIAOYU_IN_GROUP = Voice(XIAOYU.user_id, "小雨", group_id=_GROUP)

VOICES = (XIAOYU, AZHE, MING_OWNER, MING_MEMBER, XIAOYU_IN_GROUP)

DRINK = Fact(XIAOYU, "我最喜欢的饮料是冰美式，请记住。", "冰美式")
PEANUTS = Fact(MING_OWNER, "我对花生过敏，请记住。", "花生")
MANGO = Fact(MING_MEMBER, "我对芒果过敏，请记住。", "芒果")

FACTS = (DRINK, PEANUTS, MANGO)
QUESTIONS = (
    Question(XIAOYU, "我最喜欢喝什么？", DRINK),
    Question(MING_OWNER, "我对什么过敏？", PEANUTS),
    Question(MING_MEMBER, "我对什么过敏？", MANGO),
)
STRANGERS = (
    Question(AZHE, "我最喜欢喝什么？"),
    Question(AZHE, "小明对什么过敏？"),
    Question(XIAOYU_IN_GROUP, "我最喜欢喝什么？"),
)

SECRETS = tuple(str(number) for number in sorted({voice.user_id for voice in VOICES} | {_GROUP}))
"""What must never reach Hindsight in the clear."""
