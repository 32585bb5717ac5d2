"""What those who run the bot use: the self-test, failures of extraction, correcting, the costs."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from rig.astrbot import ADMIN
from rig.commands import command, whole_status
from rig.polling import PATIENCE, eventually
from rig.stack import StackTest

GROUP = 78101
MEMBER = 35011

Json = dict[str, Any]


class OperatingTest(StackTest):
    """On a Hindsight with a model that can be told to fail."""

    options: ClassVar[Json] = {
        "extraction": "stub",
        "embeddings": "hashed",
        "commands": {"per_minute": 60},
    }

    async def command(self, who: int, words: str, group: int = 0) -> str:
        """Uses a command and returns its whole answer."""
        return await command(self.bot.onebot, who, words, group)

    async def failed_retains(self) -> list[Json]:
        wanted = {"status": "failed", "type": "retain"}
        found = await self.bank.request("GET", "/operations", params=wanted)
        operations: list[Json] = found.json()["operations"]
        return operations

    async def heal(self) -> None:
        assert self.stack.hindsight.model
        await self.stack.hindsight.model.heal()

    async def test_selftest_looks_and_changes_nothing(self) -> None:
        await self.bot.onebot.ask_private(MEMBER, "SAY:我住在海边的城市")
        await self.bank.stored("我住在海边的城市")
        await self.bank.settled()
        await eventually(self.selftest_only_reads, PATIENCE, "a selftest that only reads", 1.0)
        self.assertIn("管理员", await self.command(MEMBER, "selftest full"))

    async def selftest_only_reads(self) -> bool:
        """Whether nothing but reading was asked of the server meanwhile.

        What an earlier test has erased is seen to in the background, now and then.
        """
        self.proxy.clear()
        answer = await self.command(ADMIN, "selftest")
        self.assertRegex(answer, r"✓ bank 里有 \d+ 份内容，\d+ 个聊天的标签完好")
        self.assertIn("✓ 时钟", answer)
        self.assertIn("retain_mission", answer)
        return {one.method for one in self.proxy.requests} == {"GET"}

    async def test_selftest_tries_it_out(self) -> None:
        await self.bot.onebot.ask_private(MEMBER, "SAY:我养了一只乌龟")
        await self.bank.stored("我养了一只乌龟")
        answer = await self.command(ADMIN, "selftest full")
        signs = re.findall(r"^([✓✗?]) ", answer, re.MULTILINE)
        self.assertEqual(signs, ["✓"] * 6, answer)
        self.assertRegex(answer, r"花费：\d+ 个字符")
        documents = await self.bank.documents(texts=True)
        self.assertTrue(documents)
        self.assertNotIn("platform:selftest", {tag for one in documents for tag in one["tags"]})
        self.assertEqual(await self.bank.memories(["platform:selftest"]), [])
        self.assertIn("乌龟", str(documents))

    async def test_extraction_that_fails_is_seen_and_tried_again(self) -> None:
        assert self.stack.hindsight.model
        await self.stack.hindsight.model.fail(401)
        try:
            await self.bot.onebot.ask_private(MEMBER, "SAY:我的生日是九月三日")
            await eventually(self.failed_retains, PATIENCE, "a failed retain", 0.3)
            self.assertIn("提取：1 批失败", await self.command(ADMIN, "selftest"))
            here = await whole_status(self.bot.onebot)
            self.assertIn("没能提取", here)
            self.assertIn("401", here)
            self.assertNotIn("Traceback", here)
        finally:
            await self.heal()
        self.assertIn("让它重试 1 批", await self.command(ADMIN, "retry"))
        await self.bank.stored("我的生日是九月三日")
        await self.bank.settled()
        self.assertIn("提取：没有失败的", await self.command(ADMIN, "selftest"))

    async def test_what_failed_and_was_erased_stays_so(self) -> None:
        assert self.stack.hindsight.model
        await self.stack.hindsight.model.fail(401)
        try:
            await self.bot.onebot.ask_group(GROUP, MEMBER, "SAY:我的护照在红色的箱子里")
            await eventually(self.failed_retains, PATIENCE, "a failed retain", 0.3)
            asked = await self.command(MEMBER, "forgetme", GROUP)
            code = re.findall(r"forgetme (\d{4})", asked)[0]
            await self.command(MEMBER, f"forgetme {code}", GROUP)
        finally:
            await self.heal()
        await self.command(ADMIN, "retry")
        await self.bank.settled()
        self.assertEqual(await self.failed_retains(), [])
        self.assertNotIn("护照", str(await self.bank.documents(texts=True)))

    async def test_correct_in_one_step(self) -> None:
        await self.bot.onebot.ask_private(MEMBER, "SAY:我最喜欢的颜色是紫色")
        await self.bank.stored("我最喜欢的颜色是紫色")
        await self.bank.settled()
        listed = await self.command(MEMBER, "list 紫色")
        number = re.findall(r"^(\d+)\. .*紫色", listed, re.MULTILINE)[0]
        answer = await self.command(MEMBER, f"correct {number} 我最喜欢的颜色是橙色")
        self.assertIn("已更正", answer)
        await self.bank.stored("我最喜欢的颜色是橙色")
        await self.bank.settled()
        self.assertIn("橙色", await self.command(MEMBER, "list 橙色"))

    async def test_costs_are_for_admins_and_silent_where_the_server_does_not_count(self) -> None:
        await self.bot.onebot.ask_private(MEMBER, "SAY:我在学吹笛子")
        await self.bank.stored("我在学吹笛子")
        await self.bank.settled()
        answer = await self.command(ADMIN, "stats")
        self.assertRegex(answer, r"每轮放入请求：约 \d+ token")
        self.assertNotIn("整个 bank", answer)
        self.assertNotIn("token", await self.command(MEMBER, "stats"))
