"""The main job, seen in the model's requests, in Hindsight and in the chat."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable

from rig.astrbot import ADMIN
from rig.commands import command, whole_answer, whole_status
from rig.model import last_user_message, memory_blocks, system_prompt, texts, user_text
from rig.onebot import at_segment, text_segment
from rig.polling import PATIENCE, eventually
from rig.proxy import Recorded
from rig.stack import StackTest

DRINK = "我最喜欢的饮料是冰美式，请记住。"
QUESTION = "我最喜欢喝什么？"
IMAGE = {
    "type": "image",
    "data": {
        "file": "base64://iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9"
        "awAAAABJRU5ErkJggg=="
    },
}


class ChatTest(StackTest):
    """What the tests of this module ask of the stack."""

    async def stored(self, text: str) -> dict:
        """Awaits that a text is stored and processed, and returns its document."""
        document = (await self.bank.stored(text))[0]
        await self.bank.settled()
        return document

    async def not_stored(self, text: str) -> None:
        """Fails if a text is stored, now that everything said before has been delivered."""
        marker = f"到此为止{id(text)}"
        await self.bot.onebot.ask_private(39999, marker)
        await self.stored(marker)
        stored = [d["original_text"] for d in await self.bank.documents(texts=True)]
        self.assertFalse([content for content in stored if text in content])

    async def block_for(self, ask: Callable[[], Awaitable[object]]) -> str:
        """Asks something and returns the block that the model was given with it."""
        self.model.clear()
        await ask()
        return "".join(memory_blocks(self.model.requests[-1]))

    async def check_group(self, group: int, person: int, other: int) -> None:
        """Fails unless a group remembers for its members, and for nobody and nowhere else."""
        onebot, elsewhere = self.bot.onebot, group + 1
        await onebot.ask_group(group, person, "我对花生过敏，请记住", card="小明")
        document = await self.stored("花生")
        self.assertRegex(
            document["original_text"], r"小明#[0-9a-f]{6} \(\d{4}-\d\d-\d\dT[\d:+-]+\): "
        )
        ask = "谁对花生过敏？"
        block = await self.block_for(lambda: onebot.ask_group(group, other, ask, card="小红"))
        self.assertRegex(block, r"小明#[0-9a-f]{6}.*花生")
        self.assertRegex(block, r"现在说话的人：小红#[0-9a-f]{6}")
        block = await self.block_for(lambda: onebot.ask_group(elsewhere, person, ask))
        self.assertNotIn("花生", block)
        block = await self.block_for(lambda: onebot.ask_private(person, ask))
        self.assertNotIn("花生", block)

    def recalls(self) -> list[Recorded]:
        return self.proxy.matching("/memories/recall", "POST")

    def retains(self) -> list[Recorded]:
        return [one for one in self.proxy.requests if one.path.endswith("/memories")]


class RemembersTest(ChatTest):
    """What is said in a chat is known in that chat and nowhere else."""

    async def test_private_chat_is_remembered(self) -> None:
        alice, bob, group, onebot = 30101, 30102, 70101, self.bot.onebot
        await onebot.ask_private(alice, DRINK)
        await self.stored("冰美式")

        block = await self.block_for(lambda: onebot.ask_private(alice, QUESTION))
        self.assertIn("冰美式", block)
        self.assertEqual(block.count("<hindsight_memory>"), 1)
        self.assertEqual(user_text(self.model.requests[-1]), QUESTION)
        *before, last = texts(last_user_message(self.model.requests[-1]))
        self.assertTrue(last.startswith("<hindsight_memory>"), last)
        self.assertNotIn("hindsight_memory", "".join(before))

        block = await self.block_for(lambda: onebot.ask_private(bob, QUESTION))
        self.assertNotIn("冰美式", block)
        block = await self.block_for(lambda: onebot.ask_group(group, alice, QUESTION))
        self.assertNotIn("冰美式", block)

        await onebot.ask_private(alice, "SAY:好")
        history = self.model.requests[-1]["messages"][:-1]
        self.assertIn(QUESTION, str(history))
        self.assertNotIn("hindsight_memory", str(history))
        saved = str(self.bot.conversations())
        self.assertIn(QUESTION, saved)
        self.assertNotIn("hindsight_memory", saved)

    async def test_group_is_remembered_for_its_members(self) -> None:
        await self.check_group(70201, 30201, 30202)

    async def test_requests_have_the_chats_four_tags(self) -> None:
        onebot = self.bot.onebot
        await onebot.ask_private(30301, "SAY:标签测试一")
        await onebot.ask_group(70301, 30301, "SAY:标签测试二")
        await self.stored("标签测试一")
        await self.stored("标签测试二")
        expected = {
            "private": r"scope:private platform:aiocqhttp sender:[0-9a-f]{32} umo:[0-9a-f]{32}",
            "group": r"scope:group platform:aiocqhttp group:[0-9a-f]{32} umo:[0-9a-f]{32}",
        }
        recalls = self.recalls()
        # What another test has said may be stored only now.
        retains = [r for r in self.retains() if "标签测试" in r.body.decode()]
        self.assertEqual(len(recalls), 2)
        for kind, pattern in expected.items():
            with self.subTest(kind):
                asked = [r.json for r in recalls if f"scope:{kind}" in r.json["tags"]]
                items = [
                    i for r in retains for i in r.json["items"] if f"scope:{kind}" in i["tags"]
                ]
                self.assertEqual([body["tags_match"] for body in asked], ["all_strict"])
                self.assertRegex(" ".join(asked[0]["tags"]), f"^{pattern}$")
                self.assertEqual({tuple(i["tags"]) for i in items}, {tuple(asked[0]["tags"])})
        self.assertTrue(all(r.json["async"] for r in retains))

    async def test_no_raw_id_leaves(self) -> None:
        onebot, group, people = self.bot.onebot, 70411234, (30411234, 30421234, 30431234)
        for person, name in zip(people, ("小明", "30421234", "小刚"), strict=True):
            await onebot.group(group, person, "在吗", at=False, card=name)
        quoted = await onebot.group(group, people[1], "我的号是 30421234", at=False)
        mention = [text_segment(" 你问问"), at_segment(people[2]), text_segment("，群号 70411234")]
        await onebot.ask_group(group, people[0], mention, quote=quoted)
        await onebot.ask_private(people[0], "我的 QQ 是 30411234，onebot1:FriendMessage:30411234")
        document = await self.stored("你问问")
        self.assertRegex(document["original_text"], r"@小刚#[0-9a-f]{6}")
        await self.stored("我的 QQ 是")
        sent = "".join(f"{r.path} {r.headers} {r.body.decode()}" for r in self.proxy.requests)
        for raw in (*people, group, onebot.self_id):
            with self.subTest(raw):
                self.assertNotIn(str(raw), sent)

    async def test_system_prompt_is_untouched(self) -> None:
        onebot = self.bot.onebot
        await onebot.ask_private(30501, "我的自行车是蓝色的，请记住")
        await self.stored("自行车")
        ask = "我的自行车是什么颜色？"
        self.assertIn("蓝色", await self.block_for(lambda: onebot.ask_private(30501, ask)))
        with_plugin = system_prompt(self.model.requests[-1])
        self.assertEqual(await self.block_for(lambda: onebot.ask_private(30502, ask)), "")
        self.assertEqual(system_prompt(self.model.requests[-1]), with_plugin)
        await self.bot.dashboard.enable_plugin("astrbot_plugin_hindsight_memory", False)
        try:
            await onebot.ask_private(30501, "SAY:二")
        finally:
            await self.bot.dashboard.enable_plugin("astrbot_plugin_hindsight_memory", True)
        self.assertEqual(system_prompt(self.model.requests[-1]), with_plugin)

    async def test_each_kind_of_turn_costs_one_recall_and_one_retain(self) -> None:
        onebot = self.bot.onebot

        async def use_a_tool(who: int) -> None:
            answer = await onebot.ask_private(who, "TOOL:none {} 查一下")
            while "工具说" not in answer:
                answer = (await onebot.reply(target=("private", who))).text

        kinds: dict[str, Callable[[int], Awaitable[object]]] = {
            "tools": use_a_tool,
            "image": lambda who: onebot.ask_private(who, [IMAGE]),
            "emoji": lambda who: onebot.ask_private(who, "😀😀"),
            "bare mention": lambda who: onebot.ask_group(70601, who, ""),
            "punctuation": lambda who: onebot.ask_private(who, "？！"),
        }
        await self.settle()
        for number, (kind, ask) in enumerate(kinds.items()):
            with self.subTest(kind):
                self.proxy.clear()
                await ask(30610 + number)
                await self.settle()
                self.assertLessEqual(len(self.recalls()), 1)
                self.assertLessEqual(len(self.retains()), 1)
                refused = [r for r in self.proxy.requests if (r.status or 0) >= 400]
                self.assertEqual([(r.path, r.status) for r in refused], [])

    async def settle(self) -> None:
        """Waits until a turn of another chat has been delivered after all that went before."""
        marker = f"一轮之后{len(self.model.requests)}"
        await self.bot.onebot.ask_private(39998, f"SAY:{marker}")
        await self.stored(marker)
        for recorded in list(self.proxy.requests):
            if "一轮之后" in recorded.body.decode():
                self.proxy.requests.remove(recorded)

    async def test_stopped_and_failed_answers_are_not_stored(self) -> None:
        onebot = self.bot.onebot
        await onebot.private(30701, "HOLD 这句话被停止了")
        await eventually(lambda: self.model.requests, PATIENCE, "a request to the model")
        await onebot.private(30701, "/stop")
        await onebot.private(30702, "ERR400 这句话模型出错了")
        await eventually(lambda: len(self.model.requests) > 1, PATIENCE, "a second request")
        await onebot.ask_private(30702, "SAY:好了")
        await self.not_stored("这句话被停止了")
        await self.not_stored("这句话模型出错了")
        await self.not_stored("Output stopped.")

    async def test_cron_runs_are_left_alone(self) -> None:
        await self.bot.onebot.ask_private(30801, "SAY:先说一句")
        await self.stored("先说一句")
        self.proxy.clear()
        self.model.clear()
        await self.bot.dashboard.run_cron_job("onebot1:FriendMessage:30801", "定时任务的备注")
        await eventually(lambda: self.model.requests, PATIENCE, "a request of the cron job")
        self.assertEqual(memory_blocks(self.model.requests[-1]), [])
        await self.not_stored("定时任务的备注")
        self.assertNotIn("定时任务", "".join(r.body.decode() for r in self.proxy.requests))

    async def test_webchat_is_remembered(self) -> None:
        dashboard = self.bot.dashboard
        first = await dashboard.chat("我的猫叫煤球，请记住")
        document = await self.stored("煤球")
        self.assertNotRegex(document["original_text"], r"\bastrbot\b")
        self.model.clear()
        await dashboard.chat("我的猫叫什么？", first.session)
        self.assertIn("煤球", "".join(memory_blocks(self.model.requests[-1])))
        self.assertNotIn("hindsight_memory", str(self.bot.conversations()))

    async def test_streamed_turn_is_remembered(self) -> None:
        reply = await self.bot.dashboard.chat("SAY:流式回答全文", streaming=True)
        self.assertEqual(reply.text, "流式回答全文")
        document = await self.stored("流式回答全文")
        self.assertEqual(document["original_text"].count("流式回答全文"), 2)  # question and answer


class OldestAstrBotTest(ChatTest):
    """The same on the oldest AstrBot that the plugin supports."""

    options = {"astrbot": "astrbot-minimum"}

    async def test_private_chat_is_remembered(self) -> None:
        onebot = self.bot.onebot
        await onebot.ask_private(31101, DRINK)
        await self.stored("冰美式")
        block = await self.block_for(lambda: onebot.ask_private(31101, QUESTION))
        self.assertIn("冰美式", block)
        self.assertNotIn("hindsight_memory", str(self.bot.conversations()))
        self.assertIn("冰美式", await command(onebot, 31101, "recall 最喜欢 的 饮料"))
        self.assertIn("状态 status", await onebot.ask_private(31101, "/hindsight"))

    async def test_group_is_remembered_for_its_members(self) -> None:
        await self.check_group(71201, 31202, 31203)

    async def test_stopped_answers_are_not_stored(self) -> None:
        onebot = self.bot.onebot
        await onebot.private(31201, "HOLD 这句话被停止了")
        await eventually(lambda: self.model.requests, PATIENCE, "a request to the model")
        await onebot.private(31201, "/stop")
        await asyncio.sleep(0)
        await self.not_stored("这句话被停止了")


class CommandsTest(ChatTest):
    """`/hindsight` in the chat: answered by the plugin, never by the model."""

    async def ask(self, text: str, who: int = 30901) -> str:
        onebot = self.bot.onebot
        return await whole_answer(onebot, ("private", who), await onebot.ask_private(who, text))

    async def ask_in_group(self, text: str, **how: bool) -> str:
        onebot, group = self.bot.onebot, 70903
        first = await onebot.ask_group(group, 30901, text, **how)
        return await whole_answer(onebot, ("group", group), first)

    async def test_bare_and_unknown_answer_with_help(self) -> None:
        for typed in ("/hindsight", "/hindsight help", "/hindsight 帮助"):
            with self.subTest(typed):
                self.assertIn("回忆 recall", await self.ask(typed))
        for typed in ("/hindsight recal 茶", "/Hindsight RECAL 茶"):
            with self.subTest(typed):
                self.assertIn("/hindsight recall 茶", await self.ask(typed))
        self.assertEqual(self.model.requests, [])
        self.assertEqual(self.retains(), [])

    async def test_prose_is_no_command(self) -> None:
        self.assertIn("收到：hindsight off", await self.ask("hindsight off is a phrase"))
        answer = await self.bot.onebot.ask_group(70901, 30901, "hindsight status 怎么样")
        self.assertIn("收到：", answer)

    async def test_wake_prefix_is_the_hosts(self) -> None:
        dashboard, shown = self.bot.dashboard, "本聊天：记忆开启"
        try:
            await dashboard.save_config(wake_prefix=["!"])
            self.assertIn(shown, await self.ask("!hindsight status"))
            self.assertIn(shown, await self.ask_in_group("!hindsight status", at=False))
            for typed in ("/hindsight status", "hindsight status"):
                self.assertEqual(await self.ask(typed), f"收到：{typed}")
            await dashboard.save_config(wake_prefix=[])
            self.assertIn(shown, await self.ask("hindsight status"))
            self.assertIn(shown, await self.ask_in_group("hindsight status"))
        finally:
            await dashboard.save_config(wake_prefix=["/"])

    async def test_web_chat_tells_the_language(self) -> None:
        for locale, words in (("en-US", "See: status"), ("zh-CN", "查看：状态 status")):
            with self.subTest(locale):
                reply = await self.bot.dashboard.chat("/hindsight help", locale=locale)
                self.assertIn(words, reply.text)

    async def test_status_tells_what_is(self) -> None:
        await self.bot.onebot.ask_private(ADMIN, "SAY:状态之前说一句")
        await self.stored("状态之前说一句")
        status = await eventually(self.settled_status, PATIENCE, "a status after the retain")
        for part in (r"bank：live", r"连接：正常，\d+ 毫秒，Hindsight 1\.1\.0", "私聊，记忆开启"):
            self.assertRegex(status, part)
        self.assertRegex(status, r"上次召回：.*毫秒")
        self.assertRegex(status, r"盐指纹：[0-9a-f]{8}")
        self.assertNotIn(self.stack.hindsight.api_key, status)

    async def settled_status(self) -> str:
        status = await whole_status(self.bot.onebot)
        shown = (r"上次保存：\d+ (秒|分钟)前", "连接：正常")
        return status if all(re.search(one, status) for one in shown) else ""

    async def test_members_may_not_switch_a_group(self) -> None:
        onebot = self.bot.onebot
        self.assertIn("管理员", await command(onebot, 30902, "off", 70902))
        answer = await command(onebot, 30903, "off", 70902, role="owner")
        self.assertIn("本聊天的记忆已关闭", answer)
        answer = await command(onebot, ADMIN, "on", 70902)
        self.assertIn("本聊天的记忆已开启", answer)

    async def test_off_stores_nothing_also_after_a_restart(self) -> None:
        onebot, bot = self.bot.onebot, self.bot
        await self.ask("SAY:关闭之前的话", 30904)
        self.assertIn("关闭", await self.ask("/hindsight off", 30904))
        await self.ask("SAY:关闭时的秘密", 30904)
        await self.ask("SAY:别人的话", 30905)
        await bot.restart()
        self.proxy.clear()
        await self.ask("SAY:重启后的秘密", 30904)
        self.assertEqual(self.recalls(), [])
        await self.stored("关闭之前的话")
        await self.stored("别人的话")
        await self.not_stored("秘密")
        self.assertIn("本聊天的记忆已关闭", await self.ask("/hindsight off", 30904))
        await self.ask("/hindsight on", 30904)
        await onebot.ask_private(30904, "SAY:重新开启了")
        await self.stored("重新开启了")
        with contextlib.suppress(FileNotFoundError):
            for name in ("salt.txt", "scope_state.json", "outbox.db"):
                self.assertEqual((bot.plugin_data_dir / name).stat().st_mode & 0o077, 0)
