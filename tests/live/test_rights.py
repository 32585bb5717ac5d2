"""The rights of the people in a chat: see, correct, erase and ask its memory, and no other's."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Sequence
from typing import Any, ClassVar
from urllib.parse import unquote_plus

from rig.astrbot import ADMIN
from rig.commands import WORKING, command
from rig.faults import BlackHole, Fault, Kind, Status
from rig.model import memory_blocks
from rig.polling import PATIENCE, eventually
from rig.proxy import Recorded
from rig.stack import StackTest, plugin_config

PLUGIN = "astrbot_plugin_hindsight_memory"
HELD = 600.0
"""Seconds that the server's model holds its answers back, unless it is let go on before."""
LATE = 25.0
"""Seconds in which a retain that was cancelled comes after all, if it comes."""
CHATS = {76101: "甲", 76102: "乙", 76103: "丙"}
HOUSES = {35001: "甲一", 35002: "乙二"}
PAUSED = 35003
MANY = 110
"""Documents of a chat: more than one page of the server's list."""
MANAGING = ("wipe", "wipe 0000", "export", "pause 5", "on", "off", "retry", "setup", "setup apply")

Json = dict[str, Any]


class RightsCase(StackTest):
    """What the tests of this module ask of the stack."""

    async def say(self, who: int, text: str, group: int = 0, **how: Any) -> str:
        """Says something in a group or in private, and returns the first answer."""
        onebot = self.bot.onebot
        if group:
            return await onebot.ask_group(group, who, text, **how)
        return await onebot.ask_private(who, text)

    async def command(self, who: int, words: str, group: int = 0, **how: Any) -> str:
        """Uses a command and returns its whole answer."""
        return await command(self.bot.onebot, who, words, group, **how)

    async def next_answer(self, who: int, group: int = 0) -> str:
        target = ("group", group) if group else ("private", who)
        return (await self.bot.onebot.reply(target=target)).text

    async def wipe(self, who: int, group: int = 0, **how: Any) -> str:
        return await self.confirmed(who, "wipe", group, **how)

    async def confirmed(self, who: int, words: str, group: int = 0, **how: Any) -> str:
        """The answer to a command that asks for a code first."""
        asked = await self.command(who, words, group, **how)
        code = re.findall(rf"/hindsight {words} (\d{{4}})", asked)[0]
        return await self.command(who, f"{words} {code}", group, **how)

    async def stored(self, text: str, tags: tuple[str, ...] = ()) -> Json:
        """Awaits the document with a text and returns it."""
        return (await self.bank.stored(text, tags))[0]

    async def texts(self, tags: tuple[str, ...] = ()) -> list[Json]:
        """Documents with their text."""
        return await self.bank.documents(tags, texts=True)

    async def tags_of(self, text: str) -> tuple[str, ...]:
        """The four tags of the chat in which something was said."""
        return tuple(sorted((await self.stored(text))["tags"]))

    async def settled(self) -> None:
        """Waits until the server has done all that the plugin has sent."""
        await self.bank.settled()

    async def quiet(self) -> None:
        """Waits until nothing is under way any more that was said or done before."""
        waiting = "SELECT id FROM windows WHERE state <> 'aside'"
        await eventually(lambda: not self.bot.outbox(waiting), PATIENCE, "an empty outbox", 0.3)
        await self.settled()

    async def held(self, tags: tuple[str, ...], text: str = "") -> list[str]:
        """All that the server holds of a chat with a text in it: documents and memories."""
        documents = [d["original_text"] for d in await self.texts(tags)]
        memories = [m["text"] for m in await self.bank.memories(tags)]
        return [one for one in (*documents, *memories) if text in one]

    async def others(self, tags: tuple[str, ...]) -> list[Json]:
        """Every document that is not of this chat, whole."""
        return [d for d in await self.texts() if not set(d["tags"]) >= set(tags)]

    async def profiles(self, tags: tuple[str, ...]) -> list[Json]:
        answer = await self.bank.request("GET", "/mental-models", params={"detail": "content"})
        return [one for one in answer.json()["items"] if set(one["tags"]) == set(tags)]

    async def written_profile(self, who: int, group: int = 0) -> str:
        """Awaits the text of a chat's profile, which its first use makes."""

        async def written() -> str:
            text = await self.command(who, "profile", group)
            return "" if "正在生成" in text else text

        # Each look is a command, and there may be so many a minute.
        return await eventually(written, PATIENCE, "a profile", 2)

    def state(self) -> str:
        """The plugin's switches as they are on disk."""
        return (self.bot.plugin_data_dir / "scope_state.json").read_text("utf-8")

    async def assert_empty(self, who: int, tags: tuple[str, ...], query: str) -> None:
        """Fails unless nothing of a chat is left, however one looks."""
        self.assertEqual(await self.held(tags), [])
        self.assertEqual(await self.bank.recall(query, tags), [])
        self.assertIn("这里还没有记忆", await self.command(who, "list"))
        self.assertIn("没有和", await self.command(who, f"recall {query}"))

    async def configure(self, **changes: object) -> None:
        """Changes settings on the running bot, as an operator does."""
        config = plugin_config(self.proxy.url, self.stack.hindsight.api_key)
        present = await self.bot.dashboard.plugin_config(PLUGIN)
        await self.bot.dashboard.save_plugin_config(PLUGIN, {**present, **config, **changes})


def numbers(answer: str) -> dict[str, str]:
    """The numbered lines of an answer: text by number."""
    return dict(re.findall(r"^(\d+)\. (.*)$", answer, re.MULTILINE))


def number_of(answer: str, *parts: str) -> str:
    """The number of the first line that contains all of some texts."""
    return next(n for n, line in numbers(answer).items() if all(part in line for part in parts))


class RightsTest(RightsCase):
    """On a Hindsight with a model, which makes facts and conclusions."""

    options: ClassVar[Json] = {
        "extraction": "stub",
        "embeddings": "hashed",
        "commands": {"per_minute": 60},
        "tools": {"recall": True, "remember": True},
    }

    @classmethod
    def setUpClass(cls) -> None:
        """Begin a pause of a minute, which ends while the other tests run."""
        super().setUpClass()
        onebot = cls.stack.bot.onebot
        cls.paused = cls._runner.run(onebot.ask_private(PAUSED, "/hindsight pause 1"))
        cls.paused_at = time.monotonic()
        cls._runner.run(onebot.ask_private(PAUSED, "SAY:暂停时的秘密"))

    # --- Wiping and pausing -----------------------------------------------------------------------

    async def test_the_pause_ends_by_itself(self) -> None:
        self.assertIn("暂停 1 分钟", self.paused)
        await asyncio.sleep(max(0.0, self.paused_at + 61 - time.monotonic()))
        await self.say(PAUSED, "SAY:暂停之后的话")
        await self.stored("暂停之后的话")
        self.assertEqual(await self.held((), "暂停时的秘密"), [])

    async def test_wipe_beats_a_retain_in_the_servers_queue(self) -> None:
        who, other, model = 35001, 35002, self.stack.hindsight.model
        assert model is not None
        for person in (who, other):
            await self.say(person, f"SAY:我住在静安区{HOUSES[person]}号")
        tags = await self.tags_of(HOUSES[who])
        await self.stored(HOUSES[other])
        await self.settled()
        await self.written_profile(who)
        self.assertEqual(len(await self.profiles(tags)), 1)
        await self.quiet()
        kept = await self.others(tags)

        await model.delay(HELD)
        await self.say(who, "SAY:排队中的秘密")
        await eventually(lambda: self.bank.operations("processing"), PATIENCE, "a queued retain")
        self.assertIn("已清空", await self.wipe(who))
        await self.assert_empty(who, tags, "住在哪里")
        self.assertEqual(await self.profiles(tags), [])
        # The server lets go of a cancelled retain, which still writes when its model answers.
        self.proxy.clear()
        await model.delay(0)
        given_up = time.monotonic() + LATE
        await self.say(who, "SAY:清空之后的话")
        await self.stored("清空之后的话", tags)
        await eventually(
            lambda: self.deleted() or time.monotonic() > given_up, PATIENCE, "a late retain"
        )
        await self.settled()
        await eventually(
            lambda: self.only("清空之后", tags), PATIENCE, "nothing of before the wipe"
        )
        self.assertEqual(await self.others(tags), kept)

    async def only(self, text: str, tags: tuple[str, ...]) -> bool:
        """Whether all that the server holds of a chat has a text in it."""
        return all(text in one for one in await self.held(tags))

    def deleted(self) -> list[Recorded]:
        """Requests that have deleted a document."""
        deletions = self.proxy.matching("/documents/", "DELETE")
        return [request for request in deletions if request.status == 200]

    # --- Forgetting -------------------------------------------------------------------------------

    async def test_forget_is_for_good(self) -> None:
        group, owner, member = 75101, 35101, 35102
        await self.say(owner, "SAY:我对花生过敏", group, card="小明")
        await self.say(member, "SAY:我的车牌是沪A00001", group, card="小红")
        tags = await self.tags_of("花生")
        await self.stored("沪A00001")
        await self.settled()
        before = await self.texts(tags)

        listed = await self.command(member, "list 花生", group)
        self.assertIn("[结论]", listed)
        fact = number_of(listed, "小明")
        self.assertIn("小明说的话", await self.command(member, f"forget {fact} all", group))
        self.assertEqual(await self.texts(tags), before)

        listed = await self.command(owner, "list 花生", group)
        conclusion = number_of(listed, "[结论]", "小明")
        lines = await self.command(owner, f"forget {conclusion}", group)
        if "已忘掉" not in lines:
            lines = await self.command(owner, f"forget {conclusion} all", group, role="admin")
        self.assertIn("花生", lines)
        listed = await self.command(owner, "list 花生", group)
        while numbers(listed):  # the bot's answer repeated it
            answer = await self.command(ADMIN, "list 花生", group)
            answer = await self.command(ADMIN, f"forget {next(iter(numbers(answer)))} all", group)
            self.assertIn("已忘掉", answer)
            listed = await self.command(owner, "list 花生", group)

        plate = number_of(await self.command(ADMIN, "list 沪A00001", group), "小红")
        answer = await self.command(35103, f"forget {plate} all", group, role="admin")
        self.assertIn("没有第", answer)  # numbers are for those who have seen the list
        await self.settled()
        await self.say(member, "SAY:今天下雨", group)
        await self.stored("今天下雨")
        await self.settled()
        self.assertEqual(await self.held(tags, "花生"), [])
        for answer in (
            await self.command(member, "recall 花生 过敏", group),
            await self.command(member, "ask 谁对花生过敏", group),
        ):
            self.assertNotIn("花生", re.sub("“.*”", "", answer))  # what was asked is quoted
        self.assertIn("沪A00001", await self.command(member, "ask 车牌是什么", group))

    async def test_forgetme_takes_ones_own_lines_only(self) -> None:
        group, gone, stays = 75201, 35201, 35202
        onebot = self.bot.onebot
        await self.say(gone, "SAY:我住在静安区", group, card="小明")
        await self.say(stays, "SAY:小明喜欢打篮球", group, card="小红")
        await self.say(stays, "SAY:小红的旧秘密", group, card="小红")
        tags = await self.tags_of("静安区")
        mine = speaker(await self.stored("静安区"))
        hers = speaker(await self.stored("小红的旧秘密"))
        await self.settled()
        secret = number_of(await self.command(stays, "list 旧秘密", group), "小红")
        answer = await self.command(stays, f"forget {secret} all", group, role="owner")
        self.assertIn("已忘掉", answer)
        await self.settled()  # the profile quotes a few memories, conclusions first
        self.assertIn("静安区", await self.written_profile(gone, group))
        mixed = await self.add_mixed_document(tags, mine, hers)
        await self.settled()

        self.proxy.fault = Fault(Status(503, {}, {"Retry-After": "0"}), match=is_queued_retain)
        await onebot.ask_group(group, gone, "SAY:还没有送出的话", card="小明")
        await eventually(
            lambda: self.retains_with("还没有送出的话"), PATIENCE, "a retain that fails"
        )
        answer = await self.confirmed(gone, "forgetme", group)
        self.proxy.fault = None
        self.assertRegex(answer, r"已删除 [2-9]\d* 句")
        self.assertEqual(await self.profiles(tags), [])
        await self.stored("小明喜欢打篮球", tags)
        await self.stored("第三行是小红的", tags)
        await self.settled()
        await self.say(stays, "SAY:后来的话", group)
        await self.stored("后来的话")
        await self.settled()

        lines = [line for d in await self.texts(tags) for line in d["original_text"].splitlines()]
        self.assertEqual([line for line in lines if f"{mine} (" in line], [])
        for text in ("静安区", "还没有送出的话", "第一行是小明的", "回答小明", "小红的旧秘密"):
            self.assertEqual(await self.held(tags, text), [], text)
        self.assertIn("小明喜欢打篮球", " ".join(m["text"] for m in await self.bank.memories(tags)))
        rest = await self.stored("第三行是小红的", tags)
        self.assertEqual(rest["original_text"], mixed_lines(mine, hers, without=mine))
        self.assertNotEqual(rest["id"], mixed)
        self.assertEqual(set(rest["tags"]), set(tags))
        facts = [m for m in await self.bank.memories(tags, "world") if "第三行" in m["text"]]
        self.assertEqual([fact["mentioned_at"][:19] for fact in facts], ["2026-03-04T01:00:00"])

    async def add_mixed_document(self, tags: tuple[str, ...], mine: str, hers: str) -> str:
        document_id = f"mixed{mine[1:]}"
        await self.bank.retain(
            {
                "content": mixed_lines(mine, hers),
                "document_id": document_id,
                "timestamp": "2026-03-04T09:00:00+08:00",
                "context": "一个群聊",
                "tags": list(tags),
                "observation_scopes": "combined",
            },
            settle=None,
        )
        await self.stored("第三行是小红的", tags)
        return document_id

    def retains_with(self, text: str) -> list[Recorded]:
        return [r for r in self.proxy.matching("/memories", "POST") if text in r.body.decode()]

    # --- Seeing -----------------------------------------------------------------------------------

    async def test_why_lists_what_the_model_was_given(self) -> None:
        group, who = 75301, 35301
        self.assertIn("还没有回忆过", await self.command(who, "why", group))
        for text in ("SAY:我最喜欢冰美式", "SAY:我的猫叫煤球", "SAY:我在学法语 <b>&amp;"):
            await self.say(who, text, group, card="小明")
        for text in ("冰美式", "煤球", "法语"):
            await self.stored(text)
        await self.settled()
        self.model.clear()
        await self.say(who, "SAY:我最喜欢喝什么，猫叫什么？", group)
        block = "".join(memory_blocks(self.model.requests[-1]))
        given = [line[2:] for line in block.splitlines() if line.startswith("- ")]
        why = await self.command(who, "why", group)
        while why.endswith("/hindsight more"):
            why = why.rpartition("\n")[0] + "\n" + await self.command(who, "more", group)
        self.assertIn("查的是：", why)
        told = list(numbers(why).values())
        self.assertTrue(given)
        self.assertEqual(len(told), len(given))
        for line in told:
            self.assertRegex(line, r"（.*\d\d-\d\d \d\d:\d\d）$")
            self.assertNotRegex(line, r"#[0-9a-f]{6}|\d\dT\d\d")
        basis = await self.command(who, f"why {number_of(why, '煤球')}", group)
        self.assertRegex(basis, r"依据：\n- .*煤球")

        await self.say(who, "？！", group)
        self.assertNotIn("煤球", await self.command(who, "why", group))

    # --- Isolation --------------------------------------------------------------------------------

    async def test_no_command_reaches_another_chat(self) -> None:
        victim, thief = 35401, 35402
        await self.say(victim, "SAY:保险箱密码藏在鱼缸底下")
        await self.say(thief, "SAY:随便说一句")
        document = await self.stored("鱼缸")
        tags = await self.tags_of("鱼缸")
        own = await self.tags_of("随便说一句")
        await self.settled()
        for person in (victim, thief):
            await self.written_profile(person)
        await self.quiet()
        memories = await self.bank.memories(tags)
        kept = await self.others(own)
        await self.command(victim, "list")
        await self.command(thief, "list")
        self.proxy.clear()
        ids = [memories[0]["id"], document["id"], tags[0], "*", "%", "鱼缸"]
        forged = [f"list {one}" for one in ids] + [f"forget {one}" for one in ids]
        forged += [f"recall {one}鱼" for one in ids[:3]]
        forged += ["list 2", "forget 9", "recall 保险箱 鱼缸", "ask 保险箱在哪里"]
        forged += ["why", "profile", "stats", "status", "optout", "forgetme", "export", "help"]
        forged += ["why 1", "why 9", "forget 鱼缸", "list 第2页", "more"]
        for words in (*forged, "optin"):
            with self.subTest(words):
                self.assertNotIn("底下", await self.command(thief, words))
        query = {"query": "保险箱 鱼缸", "tags": list(tags), "scope": tags[0], "bank": "live"}
        tool = f"TOOL:hindsight_recall {json.dumps(query, ensure_ascii=False)}"
        self.assertNotIn("底下", await self.tool_answer(thief, tool))
        self.assertIn("已清空", await self.wipe(thief))
        self.assertEqual(await self.others(own), kept)
        self.assertEqual(await self.bank.memories(tags), memories)
        self.assertEqual(len(await self.profiles(tags)), 1)
        for export in self.bot.plugin_data_dir.glob("export-*.jsonl"):
            self.assertNotIn("底下", export.read_text("utf-8"))
        told = [r.path for r in self.proxy.requests if "鱼缸底下" in r.response_body.decode()]
        self.assertEqual(told, [])
        self.assertIn("底下", await self.command(victim, "ask 保险箱密码在哪里"))

    async def tool_answer(self, who: int, text: str) -> str:
        """What the model says after its tool has answered."""
        answer = await self.say(who, text)
        return answer if "工具说" in answer else await self.next_answer(who)

    async def test_tools_work_in_this_chat(self) -> None:
        who, other = 35501, 35502
        await self.say(who, "SAY:我的护照放在书柜里")
        await self.stored("书柜")
        await self.settled()
        recall = 'TOOL:hindsight_recall {"query": "护照 书柜"}'
        self.assertIn("书柜里", await self.tool_answer(who, recall))
        self.assertNotIn("书柜里", await self.tool_answer(other, recall))
        remember = 'TOOL:hindsight_remember {"content": "用户的生日是三月四日"}'
        self.assertIn("已记住", await self.tool_answer(other, remember))
        document = await self.stored("用户的生日是三月四日")
        self.assertEqual(set(document["tags"]), set(await self.tags_of("TOOL:hindsight_remember")))
        await self.command(other, "optout")
        secret = 'TOOL:hindsight_remember {"content": "退出后的秘密"}'
        self.assertIn("退出", await self.tool_answer(other, secret))
        self.assertIn("已退出", await self.command(other, "remember 退出后的秘密"))
        self.assertIn("生日", await self.command(other, "recall 生日"))
        await self.command(other, "off")
        self.assertIn("关闭了记忆", await self.tool_answer(other, recall))
        await self.command(other, "on")
        await self.command(other, "optin")
        self.assertIn("记住了", await self.command(other, "remember 我会弹吉他"))
        self.assertEqual(await self.held((), "退出后的秘密"), [])

    async def test_arguments_are_cleaned(self) -> None:
        who, password = 35511234, "hunter2x9"
        secret = f"我的号 {who}，密码是{password}"
        for words in ("remember", "recall", "ask", "list", "forget"):
            await self.command(who, f"{words} {secret}")
        for tool, argument, end in (("remember", "content", "记好"), ("recall", "query", "查好")):
            arguments = json.dumps({argument: f"{secret}，{end}"}, ensure_ascii=False)
            await self.tool_answer(who, f"TOOL:hindsight_{tool} {arguments}")
        await self.stored("查好")
        sent = {
            f"{unquote_plus(r.path)} {r.headers} {r.body.decode()}" for r in self.proxy.requests
        }
        cleaned = {one for one in sent if "[密码已隐藏]" in one}
        for path in ("/memories ", "/memories/recall ", "/memories/list?", "/reflect "):
            with self.subTest(path):
                self.assertTrue([one for one in cleaned if path in one])
        for end in ("记好", "查好"):  # as the tool sent it, not the message that called for it
            with self.subTest(end):
                self.assertTrue([one for one in cleaned if end in one and "TOOL:" not in one])
        for raw in (str(who), password):
            with self.subTest(raw):
                self.assertEqual([one for one in sent if raw in one], [])

    # --- Opting out, remembering, export, setup --------------------------------------------

    async def test_opting_out_and_in(self) -> None:
        group, another, who, member = 75601, 75602, 35601, 35602
        await self.say(who, "SAY:退出之前", group, card="小明")
        await self.stored("退出之前")
        tags = await self.tags_of("退出之前")
        await self.settled()
        self.assertIn("正在生成", await self.command(who, "profile", group))
        self.assertIn("退出之前", await self.written_profile(who, group))
        self.assertEqual(len(await self.profiles(tags)), 1)
        self.assertIn("不再保存你在本聊天", await self.command(who, "optout", group))
        self.assertEqual(await self.profiles(tags), [])
        await self.say(who, "SAY:退出以后一", group)
        await self.say(who, "SAY:另一个群的话", another)
        await self.stored("另一个群的话")
        self.assertIn("任何聊天", await self.command(who, "optout all", group))
        await self.say(who, "SAY:退出以后二", another)
        await self.say(member, "SAY:别人的话", group)
        await self.stored("别人的话")
        block = await self.block_of(who, "SAY:退出之前说了什么", group)
        self.assertIn("退出之前", block)
        self.assertIn("会重新保存", await self.command(who, "optin", group))
        await self.say(who, "SAY:重新加入", another)
        await self.stored("重新加入")
        self.assertEqual(await self.held((), "退出以后"), [])
        self.assertEqual(await self.held((), "退出之前说了什么"), [])

    async def block_of(self, who: int, text: str, group: int = 0) -> str:
        self.model.clear()
        await self.say(who, text, group)
        return "".join(memory_blocks(self.model.requests[-1]))

    async def test_remember_export_setup(self) -> None:
        who = 35701
        answer = await self.command(who, "remember 我的车牌是沪A00002")
        self.assertRegex(answer, r"记住了：\n- .*沪A00002")
        tags = await self.tags_of("沪A00002")
        await self.settled()
        self.assertRegex(await self.command(who, "export"), r"^\[file\]\n已发给你")
        self.assertEqual(list(self.bot.plugin_data_dir.glob("export-*")), [])
        group = 75701
        await self.say(who, "SAY:导出之前的话", group)
        tags = await self.tags_of("导出之前的话")
        await self.settled()
        answer = await self.command(ADMIN, "export", group)
        name = re.findall(r"export-\S+\.jsonl", answer)[0]
        path = self.bot.plugin_data_dir / name
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        self.assertEqual(path.stat().st_mode & 0o077, 0)
        kinds = [row["type"] for row in rows]
        self.assertEqual(kinds.count("document"), len(await self.bank.documents(tags)))
        self.assertEqual(kinds.count("memory"), len(await self.bank.memories(tags)))
        self.assertIn(f"记忆 {kinds.count('memory')} 条", answer)

        self.assertIn("机器人管理员", await self.command(who, "setup apply"))
        shown = await self.command(ADMIN, "setup")
        self.assertIn("retain_mission", shown)
        config = (await self.bank.request("GET", "/config")).json()["config"]
        self.assertNotIn("name#number", str(config.get("retain_mission")))
        self.assertIn("已改好", await self.command(ADMIN, "setup apply"))
        config = (await self.bank.request("GET", "/config")).json()["config"]
        self.assertIn("name#number", config["retain_mission"])
        self.assertIs(config["enable_observations"], True)
        self.assertEqual(config["default_observation_scopes"], "combined")
        self.proxy.fault = Fault(Status(403, {"detail": "no"}), match="/config")
        answer = await self.command(ADMIN, "setup")
        self.assertIn("Hindsight 控制台", answer)
        self.assertIn("403", answer)

    # --- Permissions, patience and faults ---------------------------------------------------------

    async def test_members_may_not_manage(self) -> None:
        group, owner, member = 75801, 35801, 35802
        await self.say(owner, "SAY:群里的约定", group)
        document, tags = await self.stored("群里的约定"), await self.tags_of("群里的约定")
        await self.settled()
        await self.command(owner, "list 约定", group)
        state, before = self.state(), await self.texts(tags)
        self.proxy.clear()
        for words in MANAGING:
            with self.subTest(words):
                self.assertIn("管理员", await self.command(member, words, group))
        self.assertIn("管理员", await self.command(member, "stats json", group))
        self.assertEqual(self.state(), state)
        # The plugin looks by itself for what an earlier test has wiped.
        own = [one for one in tags if one.startswith(("group:", "umo:"))]
        own.append(document["id"].partition("-")[0])
        asked = [r.path for r in self.proxy.requests if not is_in_background(r, own)]
        self.assertEqual(asked, [])
        self.assertEqual(await self.texts(tags), before)
        self.assertEqual(list(self.bot.plugin_data_dir.glob("export-*8801*")), [])
        for role in ("owner", "admin"):
            answer = await self.command(member, "wipe", group, role=role)
            self.assertRegex(answer, r"wipe \d{4}")
        code = answer.split()[-1]
        self.assertIn("没有等待确认", await self.command(ADMIN, f"wipe {code}", group))
        self.assertIn("管理员", await self.command(member, f"wipe {code}", group))
        self.assertEqual(await self.texts(tags), before)
        self.assertIn("已清空", await self.command(member, f"wipe {code}", group, role="admin"))
        self.assertEqual(await self.held(tags), [])

    async def test_a_slow_model_is_announced(self) -> None:
        model = self.stack.hindsight.model
        assert model is not None
        await self.say(35901, "SAY:慢慢来")
        await self.stored("慢慢来")
        await self.settled()
        await model.delay(HELD)
        try:
            commands = {35901: "ask 慢慢来吗", 35902: "remember 我走路很慢", 35903: "profile"}
            commands |= {35904: "list", 35905: "recall 慢", 35906: "stats", 35907: "status"}
            await asyncio.gather(*(self.announced(who, w) for who, w in commands.items()))
            await model.delay(0)
            self.assertIn("慢慢来", await self.next_answer(35901))
            self.assertIn("记住了", await self.next_answer(35902))
        finally:
            await model.delay(0)

    async def announced(self, who: int, words: str) -> None:
        """Uses a command while something hangs: it answers all the same, if need be to wait."""
        answer = await self.say(who, f"/hindsight {words}")
        if words.startswith(("ask", "remember")):
            self.assertIn(WORKING, answer)

    async def test_faults_tell_what_to_do(self) -> None:
        who, detail = 36001, {"detail": "trouble"}
        await self.say(who, "SAY:出错之前的话")
        await self.stored("出错之前的话")
        await self.quiet()
        await self.command(who, "list")
        kinds: dict[str, tuple[Kind, str]] = {
            "401": (Status(401, detail), "更换 api_key"),
            "402": (Status(402, detail), "充值"),
            "403": (Status(403, detail), "请检查 bank_id"),
            "404": (Status(404, {"detail": "Not Found"}), "请检查 api_base"),
            "409": (Status(409, detail), "请"),
            "422": (Status(422, detail), "请"),
            "429": (Status(429, detail, {"Retry-After": "1"}), "稍"),
            "503": (Status(503, detail, {"Retry-After": "1"}), "稍"),
        }
        before = await self.texts()
        for name, (kind, sentence) in kinds.items():
            self.proxy.fault = kind
            for words in ("list", "recall 出错", "ask 出错", "forget 1"):
                with self.subTest(f"{name}: {words}"):
                    self.assertIn(sentence, await self.command(who, words))
            with self.subTest(f"{name}: forgetme"):  # is noted all the same, so in another chat
                answer = await self.confirmed(36003, "forgetme")
                self.assertIn(sentence, answer)
                self.assertIn("后台", answer)
            with self.subTest(f"{name}: wipe"):
                asked = await self.command(36002, "wipe")
                answer = await self.command(36002, f"wipe {asked.split()[-1]}")
                self.assertIn(sentence, answer)
                self.assertIn("后台", answer)
        self.proxy.fault = None
        self.assertEqual(await self.texts(), before)
        self.assertIn("出错之前", await self.command(who, "list"))

    async def test_a_hanging_server_is_announced(self) -> None:
        self.proxy.fault = BlackHole()
        try:
            commands = {36101: "recall 慢", 36102: "list", 36103: "ask 慢", 36104: "remember 慢"}
            commands |= {36105: "forgetme", 36106: "stats", 36107: "status"}
            await asyncio.gather(*(self.announced(who, w) for who, w in commands.items()))
            self.assertIn("请检查网络", await self.next_answer(36101))
        finally:
            self.proxy.fault = None


def speaker(document: Json) -> str:
    """The pseudonym of the first speaker of a document."""
    return re.findall(r"#[0-9a-f]{6}", document["original_text"])[0]


def is_in_background(request: Recorded, chat: Sequence[str]) -> bool:
    """Whether the plugin may send this by itself: about the queue, or about another chat."""
    path = unquote_plus(request.path)
    if "/operations" in path or "/stats" in path:
        return True
    is_of_a_chat = "/documents" in path or "/mental-models" in path
    return is_of_a_chat and not any(mark in path for mark in chat)


def mixed_lines(mine: str, hers: str, without: str = "-") -> str:
    """A window of two people's turns; the bot's answers are those of the line before."""
    at = "(2026-03-04T09:00:00+08:00): "
    lines = [
        (mine, f"小明{mine} {at}第一行是小明的"),
        (mine, f"小助手 {at}回答小明"),
        (hers, f"小红{hers} {at}第三行是小红的，提到 小明{mine}"),
        (hers, f"小助手 {at}回答小红"),
    ]
    return "\n".join(line for owner, line in lines if owner != without)


def is_queued_retain(request: Recorded) -> bool:
    return request.method == "POST" and request.path.endswith("/memories")


class PlainServerTest(RightsCase):
    """On a Hindsight without a model, with other settings."""

    options: ClassVar[Json] = {
        "embeddings": "hashed",
        "commands": {"members_may_manage": True, "per_minute": 3},
        "privacy": {"deny_chats": ["76102"]},
    }

    async def test_a_wipe_of_many_documents_outlives_a_kill(self) -> None:
        who, other = 36201, 36202
        await self.say(who, "SAY:第一句话")
        await self.say(other, "SAY:别的聊天")
        tags = await self.tags_of("第一句话")
        await self.stored("别的聊天")
        await self.bank.retain(*(self.filler(number, tags) for number in range(MANY)))
        self.assertGreater(len(await self.bank.documents(tags)), 100)
        await self.quiet()
        kept = await self.others(tags)
        deleted: list[Recorded] = []

        def late(request: Recorded) -> bool:
            if request.method == "DELETE" and "/documents/" in request.path:
                deleted.append(request)
            return len(deleted) > 20

        self.proxy.fault = Fault(BlackHole(), match=late)
        asked = await self.command(who, "wipe")
        await self.bot.onebot.private(who, f"/hindsight wipe {asked.split()[-1]}")
        await eventually(lambda: len(deleted) > 20, PATIENCE, "a wipe under way")
        self.bot.kill()
        left = len(await self.bank.documents(tags))
        self.assertGreater(left, MANY / 2)
        self.proxy.fault = None
        await self.bot.start()
        await self.say(who, "SAY:清空之后的话")
        await self.stored("清空之后的话", tags)
        self.assertEqual(len(await self.held(tags, "清空之后的话")), 2)
        self.assertEqual([one for one in await self.held(tags) if "清空之后的话" not in one], [])
        self.assertEqual(await self.others(tags), kept)

    @staticmethod
    def filler(number: int, tags: tuple[str, ...]) -> Json:
        return {
            "content": f"用户#aaaaaa (2026-03-04T09:00:00+08:00): 第{number}件事",
            "document_id": f"filler{number}",
            "tags": list(tags),
            "observation_scopes": "combined",
        }

    async def test_without_a_model_it_is_said(self) -> None:
        for who, words in ((36301, "ask 我是谁"), (36302, "profile"), (36302, "profile")):
            with self.subTest(words):
                self.assertIn("没有配置模型", await self.command(who, words))
        answer = await self.command(36303, "remember 我的车牌是沪A00003")
        self.assertIn("沪A00003", answer)
        for _ in range(3):
            answer = await self.command(36303, "recall 车牌")
        self.assertIn("每人每分钟最多 3 次", answer)
        self.assertIn("沪A00003", await self.command(36303, "list"))

    async def test_a_setting_lets_members_manage(self) -> None:
        group, who = 76201, 36401
        await self.say(who, "SAY:群里的话", group)
        tags = await self.tags_of("群里的话")
        for words, sentence in (
            ("off", "记忆已关闭"),
            ("on", "记忆已开启"),
            ("pause 5", "暂停 5 分钟"),
            ("on", "记忆已开启"),
            ("export", "机器人管理员"),
            ("setup", "机器人管理员"),
            ("retry", "机器人管理员"),
        ):
            with self.subTest(words):
                self.assertIn(sentence, await self.command(who, words, group))
        self.assertIn("已清空", await self.wipe(who, group))
        self.assertEqual(await self.held(tags), [])

    async def test_lists_keep_chats_out(self) -> None:
        who = 36501
        for group in (76101, 76102):
            await self.say(who, f"SAY:名单测试{CHATS[group]}", group)
            await self.command(who, f"remember 名单记住{CHATS[group]}", group)
        await self.stored("名单测试甲")
        answer = await self.command(who, "list", 76102)
        self.assertIn("名单排除", answer)
        sent = "".join(r.path + r.body.decode() for r in self.proxy.requests)
        self.assertIn("SAY:名单测试甲", sent)
        self.assertIn("名单记住甲", sent)
        self.assertNotIn("名单测试乙", sent)
        self.assertNotIn("名单记住乙", sent)

        allowed = ["76101", "76102", str(who)]
        await self.configure(privacy={"allow_chats": allowed, "deny_chats": ["76102"]})
        try:
            self.proxy.clear()
            for group, name in CHATS.items():
                await self.say(who, f"SAY:允许测试{name}", group)
            await self.say(who, "SAY:允许测试私聊")
            await self.say(36502, "SAY:允许测试别人")
            await self.stored("允许测试甲")
            await self.stored("允许测试私聊")
        finally:
            await self.configure(privacy={"deny_chats": ["76102"]})
        sent = "".join(r.path + r.body.decode() for r in self.proxy.requests)
        self.assertNotIn("允许测试丙", sent)
        self.assertNotIn("允许测试乙", sent)  # it is in both lists
        self.assertNotIn("允许测试别人", sent)

    async def test_the_newest_is_listed_first(self) -> None:
        who, said = 36701, ("第一件事", "第二件事", "第三件事")
        for text in said:
            await self.say(who, f"SAY:{text}")
            await self.stored(text)
        await self.settled()
        listed = numbers(await self.command(who, "list"))
        shown = [text for line in listed.values() for text in said if text in line]
        self.assertEqual(list(dict.fromkeys(shown)), [*reversed(said)], listed)

    async def test_tools_are_off_by_default(self) -> None:
        await self.say(36601, "SAY:有什么工具")
        offered = json.dumps(self.model.requests[-1].get("tools") or [])
        self.assertNotIn("hindsight", offered)
