"""The AstrBot half of the rig does what it says, with the newest and the oldest AstrBot."""

from __future__ import annotations

import asyncio
import unittest

from rig import venvs
from rig.astrbot import AstrBot
from rig.model import (
    INTERIM_TEXT,
    ModelStub,
    last_user_message,
    system_prompt,
    texts,
    user_text,
)
from rig.onebot import Kind, Sent
from rig.polling import PATIENCE, eventually

STREAMING = {"provider_settings": {"streaming_response": True}}


class RigTest(unittest.IsolatedAsyncioTestCase):
    """A model and an AstrBot without the plugin."""

    venv = "astrbot-latest"

    async def asyncSetUp(self) -> None:
        self.model = await self.enterAsyncContext(ModelStub())
        python = await asyncio.to_thread(venvs.ensure, self.venv)
        self.bot = await self.enterAsyncContext(
            AstrBot(python, model_url=self.model.base_url, onebots=2)
        )
        self.onebot = self.bot.onebot

    async def take(self, target: tuple[Kind, int]) -> Sent:
        return await self.onebot.reply(target=target)

    async def check_chats(self) -> None:
        """Private chats, groups and quotes reach the model, and the answers the right chat."""
        private, group = await asyncio.gather(
            self.onebot.ask_private(30001, "你好"),
            self.onebot.ask_group(70001, 30002, "大家好", card="小红", role="admin"),
        )
        self.assertIn("收到：你好", private)
        self.assertIn("大家好", group)
        await self.onebot.group(70001, 30002, "没有人叫你", at=False)
        self.assertTrue(await self.onebot.silent(0.5))

        self.model.clear()
        asked = await self.onebot.private(30001, "SAY:一句话")
        said = await self.take(("private", 30001))
        self.assertEqual(said.text, "一句话")
        await self.onebot.ask_private(30001, "SAY:第二句", quote=said.message_id)
        self.assertIn("一句话", str(last_user_message(self.model.requests[-1])))
        await self.onebot.ask_private(30001, "SAY:第三句", quote=asked)
        self.assertEqual(user_text(self.model.requests[-1]), "SAY:第三句")
        self.assertIsInstance(system_prompt(self.model.requests[-1]), str)

    async def check_second_bot(self) -> None:
        """The second account answers in its own name."""
        second = self.bot.onebots[1]
        self.assertEqual(await second.ask_group(70001, 30001, "SAY:我是二号"), "我是二号")
        self.assertTrue(await self.onebot.silent(0.2))

    async def check_forward(self) -> None:
        """A merged-forward message is fetched when it is quoted."""
        forward = self.onebot.store_forward("f1", [(30003, "小刚", "明天下雨")])
        message = await self.onebot.group(70001, 30003, [forward], at=False)
        await self.onebot.ask_group(70001, 30001, "这是什么", quote=message)
        self.assertIn("明天下雨", str(last_user_message(self.model.requests[-1])))

    async def check_tool(self) -> None:
        """A tool call is made, answered with an error as there is no such tool, and ended."""
        first = await self.onebot.ask_private(30001, 'TOOL:no_such_tool {"q": "{}"} 谢谢')
        final = first if "工具说" in first else (await self.take(("private", 30001))).text
        self.assertIn("工具说：", final)
        calls = [m for m in self.model.requests[-1]["messages"] if m.get("tool_calls")]
        self.assertEqual("".join(texts(calls[-1])).strip(), INTERIM_TEXT.strip())
        self.assertEqual(calls[-1]["tool_calls"][0]["function"]["name"], "no_such_tool")

    async def check_script_and_errors(self) -> None:
        """A script goes before the directives, and the model can fail."""
        self.model.script = lambda body: "照本宣科" if "剧本" in user_text(body) else None
        self.assertEqual(await self.onebot.ask_private(30001, "剧本 SAY:x"), "照本宣科")
        self.assertIn("收到", await self.onebot.ask_private(30001, "别的"))
        self.assertIn("400", await self.onebot.ask_private(30005, "ERR400"))

    async def check_restart(self) -> None:
        """Stopping, configuring and starting again; conversations are kept."""
        self.assertTrue(any("你好" in str(c["content"]) for c in self.bot.conversations()))
        await self.bot.stop()
        self.assertFalse(self.bot.alive)
        self.bot.configure(STREAMING)
        await self.bot.start()
        self.model.clear()
        self.assertIn("收到：流", await self.onebot.ask_private(30001, "流式"))
        self.assertTrue(self.model.requests[-1]["stream"])
        self.assertIn("你好", str(self.model.requests[-1]["messages"]))
        await self.bot.sigterm()
        self.assertFalse(self.bot.alive)


class NewestTest(RigTest):
    """The newest AstrBot."""

    async def test_all(self) -> None:
        await self.check_chats()
        await self.check_second_bot()
        await self.check_forward()
        await self.check_tool()
        await self.check_script_and_errors()
        await self.check_dashboard()
        await self.check_restart()

    async def check_dashboard(self) -> None:
        """The web chat answers, goes on, and makes answers anew; a scheduled task runs."""
        web = self.bot.dashboard
        self.assertEqual(await web.failed_plugins(), {})
        reply = await web.chat("SAY:网页你好")
        self.assertEqual(reply.text, "网页你好")
        whole = await web.chat("SAY:不分段", reply.session, streaming=False)
        self.assertEqual(whole.text, "不分段")
        self.assertEqual((await web.regenerate_chat(whole)).text, "不分段")
        edited = await web.edit_chat(whole, "SAY:改过的")
        self.assertEqual(edited.text, "改过的")
        await self.check_cron()
        await self.check_web_restart()

    async def check_cron(self) -> None:
        self.model.clear()
        await self.bot.dashboard.run_cron_job("onebot1:FriendMessage:30001", "SAY:到点了")
        await eventually(
            lambda: self.model.requests_with("到点了"), PATIENCE, "the scheduled task runs"
        )

    async def check_web_restart(self) -> None:
        pid = self.bot.pid
        await self.bot.dashboard.restart()
        self.assertTrue(self.bot.alive)
        self.assertEqual(self.bot.pid, pid)
        self.assertIn("还在", await self.onebot.ask_private(30001, "还在吗"))


class OldestTest(RigTest):
    """The oldest AstrBot that the plugin supports."""

    venv = "astrbot-minimum"

    async def test_all(self) -> None:
        self.assertEqual(self.bot.version, (4, 24, 1))
        await self.check_chats()
        await self.check_second_bot()
        await self.check_forward()
        await self.check_tool()
        await self.check_script_and_errors()
        await self.check_restart()


if __name__ == "__main__":
    unittest.main()
