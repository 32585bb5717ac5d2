"""Groups: a bot that listens where it may, and forgets what was withdrawn."""

from __future__ import annotations

import json
import time
from typing import Any, ClassVar

from rig.astrbot import ADMIN
from rig.commands import command, whole_status
from rig.model import memory_blocks
from rig.onebot import SELF_ID, OneBot, at_segment, text_segment
from rig.polling import PATIENCE, eventually
from rig.stack import StackTest

FIRST_ID = 500_000
WITHDRAWN = "SELECT message FROM said WHERE document_id = ''"
"""What was withdrawn, as it is noted on disk."""


class GroupsCase(StackTest):
    """What the tests of this module ask of the stack."""

    options: ClassVar[dict[str, Any]] = {"commands": {"per_minute": 60}}

    async def stored(self) -> str:
        """Everything that is stored."""
        documents = await self.bank.documents(texts=True)
        return "\n".join(document["original_text"] for document in documents)

    async def count(self, text: str) -> int:
        return (await self.stored()).count(text)

    async def expect(self, text: str, number: int) -> None:
        async def is_so() -> bool:
            return await self.count(text) == number

        await eventually(is_so, PATIENCE, f"{text} stored {number} times")

    async def marked(self, words: str) -> None:
        """All that was said before is stored, and this."""
        await self.bot.onebot.ask_private(39001, words)
        await self.expect(f": {words}", 1)


class WithdrawnTest(GroupsCase):
    async def test_while_the_model_works(self) -> None:
        group, onebot = 77101, self.bot.onebot
        known = len(self.bot.outbox(WITHDRAWN))
        answer = await onebot.group(group, 36101, "HOLD 我的保险箱密码在阁楼")
        await eventually(
            lambda: self.model.requests_with("保险箱"), PATIENCE, "the model is at work"
        )
        await onebot.notice(
            "group_recall", user_id=36101, group_id=group, message_id=answer, operator_id=36102
        )
        await eventually(
            lambda: len(self.bot.outbox(WITHDRAWN)) > known, PATIENCE, "the withdrawal on disk"
        )
        self.model.let_go()
        await onebot.reply(target=("group", group))
        await onebot.ask_group(group, 36102, "我养了一只橘猫")
        await self.expect(": 我养了一只橘猫", 1)
        self.assertEqual(await self.count("保险箱"), 0)
        self.assertEqual(await self.count("HOLD"), 0)

    async def test_after_it_was_delivered(self) -> None:
        group, onebot = 77102, self.bot.onebot
        onebot.discard()
        wrong = await onebot.group(group, 36201, "我的生日是九月三十一号")
        await onebot.reply(target=("group", group))
        await onebot.ask_group(group, 36202, "我对芒果过敏")
        await self.expect(": 我的生日是九月三十一号", 1)
        await self.expect(": 我对芒果过敏", 1)
        await self.bank.settled()
        sent = len(onebot.sent)
        await onebot.notice(
            "group_recall", user_id=36201, group_id=group, message_id=wrong, operator_id=36201
        )
        await self.expect("九月三十一号", 0)
        await self.expect(": 我对芒果过敏", 1)
        self.assertEqual(len(onebot.sent), sent, "nobody is answered")
        self.assertIn("撤回后忘掉的消息", await whole_status(onebot))

    async def test_in_private_and_the_bots_own(self) -> None:
        onebot, who = self.bot.onebot, 36301
        onebot.discard()
        wrong = await onebot.private(who, "我的银行卡放在抽屉里")
        await onebot.reply(target=("private", who))
        await onebot.ask_private(who, "我喜欢下雨天")
        await self.expect(": 我喜欢下雨天", 1)
        await onebot.notice("friend_recall", user_id=SELF_ID, message_id=wrong)
        await onebot.notice("friend_recall", user_id=who, message_id=wrong)
        await self.expect("抽屉里", 0)
        await self.expect(": 我喜欢下雨天", 1)


class ListeningTest(GroupsCase):
    """Two accounts of the bot on one adapter are in the group."""

    async def both(
        self, second: OneBot, group: int, who: int, name: str, words: str, *, calls: int = 0
    ) -> None:
        """Somebody says something, of which both accounts are told."""
        at = int(time.time()) - 200 + self.number - FIRST_ID  # each in a second of its own
        for number, onebot in enumerate((self.bot.onebot, second)):
            called = [at_segment(calls)] if calls else []
            event: dict[str, Any] = {
                "post_type": "message",
                "message_type": "group",
                "sub_type": "normal",
                "group_id": group,
                "user_id": who,
                "message_id": self.number * 2 + number,
                "message": [*called, text_segment(words)],
                "raw_message": words,
                "font": 0,
                "time": at,
                "sender": {"user_id": who, "nickname": name, "card": "", "role": "member"},
            }
            await onebot.emit(event)
        self.number += 1

    async def has_heard_all(self) -> bool:
        """Whether the plugin has read what was said, for which nobody waits."""
        stats = await command(self.bot.onebot, ADMIN, "stats json")
        return bool(json.loads(stats)["heard"] == self.number - FIRST_ID)

    def setUp(self) -> None:
        super().setUp()
        self.number = FIRST_ID

    async def test_listening(self) -> None:
        group, onebot = 77201, self.bot.onebot
        second = await OneBot(onebot._url, self_id=SELF_ID + 50, name="小二").connect()
        try:
            await self.listen(group, second)
        finally:
            await second.close()

    async def listen(self, group: int, second: OneBot) -> None:
        onebot = self.bot.onebot
        refused = await command(onebot, 36401, "listen on", group)
        self.assertNotIn("optout", refused)
        told = await command(onebot, 36400, "listen on", group, role="owner")
        for word in ("listen off", "optout", "forgetme"):
            self.assertIn(word, told)
        sent, asked = len(onebot.sent) + len(second.sent), len(self.model.requests)
        people = {36401: "小明", 36402: "小红"}
        for number in range(6):
            who = 36401 + number % 2
            await self.both(second, group, who, people[who], f"第{number}句是关于爬山的")
        await self.both(second, group, 36401, "小明", "小红你怕高吗", calls=36402)
        await self.marked("旁听记号")
        self.assertEqual(await self.count("句是关于爬山的"), 0, "nothing before the window is full")
        self.assertEqual(len(self.model.requests) - asked, 1, "the mark's alone")
        self.assertEqual(len(onebot.sent) + len(second.sent) - sent, 1)
        await eventually(self.has_heard_all, PATIENCE, "all that was said is heard", 1.0)
        self.model.clear()
        await self.both(second, group, 36402, "小红", "关于爬山的路有多远", calls=SELF_ID)
        await onebot.reply(target=("group", group))
        self.assertIn("句是关于爬山的", "".join(memory_blocks(self.model.requests[-1])))
        for number in range(6, 30):
            await self.both(second, group, 36401, "小明", f"第{number}句是关于爬山的")
        await self.expect("第20句是关于爬山的", 1)
        text = await self.stored()
        places = [text.index(f"第{number}句是关于爬山的") for number in range(21)]
        self.assertEqual(places, sorted(places))
        for words in ("): 第0句", "): 第5句", "): 关于爬山的路有多远", "你怕高吗"):
            self.assertEqual(text.count(words), 1, (words, text))
        self.assertLess(places[5], text.index("关于爬山的路有多远"))
        self.assertLess(text.index("关于爬山的路有多远"), places[6])
        off = await command(onebot, ADMIN, "listen off", group, role="owner")
        self.assertIn("forget", off)
        await self.both(second, group, 36401, "小明", "关了以后说的话")
        await self.marked("旁听记号二")
        listed = await command(onebot, 36401, "list 关了以后", group)
        self.assertNotIn("说的话", listed)
