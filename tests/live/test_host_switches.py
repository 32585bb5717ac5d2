"""Where AstrBot does not let the plugin take part, or not fully."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rig.astrbot import PLUGIN
from rig.commands import whole_status
from rig.dify import DifyStub
from rig.model import memory_blocks
from rig.polling import PATIENCE, eventually
from test_hosts import LINE, HostTest, Json


class SwitchedOffTest(HostTest):
    """Nothing is asked and nothing is stored."""

    async def restart_with(self, changes: Json, back: Json) -> None:
        """Restarts AstrBot with other settings, and after the test with the former ones."""
        self.bot.configure(changes)
        await self.bot.restart()
        self.addCleanup(self._runner.run, self._restore(back))

    async def _restore(self, back: Json) -> None:
        self.bot.configure(back)
        await self.bot.restart()

    async def assert_untouched(self, ask: Callable[[], Awaitable[object]], words: str) -> None:
        self.proxy.clear()
        self.model.clear()
        await ask()
        self.assertEqual(self.recalls(), [])
        for body in self.model.requests:
            self.assertEqual(memory_blocks(body), [])
        self.assertEqual([r for r in self.retains() if words in r.body.decode()], [])

    async def test_session_rule(self) -> None:
        onebot, dashboard = self.bot.onebot, self.bot.dashboard
        umo = "onebot1:FriendMessage:42101"
        await dashboard.disable_plugin_in_session(umo, PLUGIN)
        await self.assert_untouched(lambda: onebot.ask_private(42101, "规则下的秘密"), "秘密")
        status = await whole_status(onebot)
        self.assertRegex(status, "会话规则停用了本插件")
        await dashboard.delete_session_rules(umo)
        await onebot.ask_private(42101, "规则之后的话")
        await self.stored("规则之后的话")
        await self.not_stored("规则下的秘密")

    async def test_session_rule_stops_the_tools_too(self) -> None:
        before = self.bot.plugin_config()
        await self.bot.dashboard.save_plugin_config(
            PLUGIN, {**before, "tools": {"recall": True, "remember": True}}
        )
        self.addCleanup(
            lambda: self._runner.run(self.bot.dashboard.save_plugin_config(PLUGIN, before))
        )
        umo = "onebot1:FriendMessage:42111"
        await self.bot.dashboard.disable_plugin_in_session(umo, PLUGIN)

        async def ask() -> None:
            text = 'TOOL:hindsight_remember{"content": "规则不许记的秘密"}'
            await self.bot.onebot.ask_private(42111, text)
            refused = "停用了本插件"
            await eventually(lambda: refused in str(self.model.requests), PATIENCE, "a refusal")

        await self.assert_untouched(ask, "秘密")
        await self.bot.dashboard.delete_session_rules(umo)
        await self.not_stored("规则不许记的秘密")

    async def test_command_by_the_name_on_astrbots_page(self) -> None:
        onebot, name = self.bot.onebot, f"data.plugins.{PLUGIN}.main_hindsight"

        async def rename(new: str, *aliases: str) -> None:
            change = {"alias": new, "aliases": list(aliases)}
            await self.bot.dashboard.call("PATCH", f"/commands/{name}", json=change)

        self.addCleanup(lambda: self._runner.run(rename("hindsight")))
        await rename("记忆", "mem")
        for words in ("/记忆 help", "/mem help", "/MEM 帮助"):
            answer = await onebot.ask_private(42112, words)
            self.assertIn("/记忆 ", answer)
            self.assertNotIn("/hindsight", answer)
        await self.bot.dashboard.reload_plugin(PLUGIN)
        self.assertIn("/记忆 ", await onebot.ask_private(42112, "/记忆 help"))
        self.assertEqual([r for r in self.model.requests if "help" in str(r)], [])

    async def test_session_rule_in_the_web_chat(self) -> None:
        dashboard = self.bot.dashboard
        session = await dashboard.new_chat()
        umo = f"webchat:FriendMessage:webchat!astrbot!{session}"
        await dashboard.disable_plugin_in_session(umo, PLUGIN)
        await self.assert_untouched(lambda: dashboard.chat("网页里的秘密", session), "秘密")
        await self.not_stored("网页里的秘密")

    async def test_profile_without_the_plugin(self) -> None:
        onebot = self.bot.onebot
        await self.restart_with({"plugin_set": ["rig"]}, {"plugin_set": ["*"]})
        await self.assert_untouched(lambda: onebot.ask_private(42103, "另一个配置的秘密"), "秘密")
        self.bot.configure({"plugin_set": ["*"]})
        await self.bot.restart()
        await self.not_stored("另一个配置的秘密")

    async def test_provider_wake_prefix(self) -> None:
        onebot = self.bot.onebot
        await self.restart_with(
            {"provider_settings": {"wake_prefix": "小助手"}},
            {"provider_settings": {"wake_prefix": ""}},
        )

        async def unanswered() -> None:
            await onebot.private(42104, "没有叫名字的秘密")
            await onebot.ask_private(42105, "小助手，你好，我住在杭州")

        self.proxy.clear()
        await unanswered()
        await self.stored("我住在杭州")
        self.assertEqual([r for r in self.model.requests if "秘密" in str(r)], [])
        sent = "".join(r.body.decode() for r in [*self.recalls(), *self.retains()])
        self.assertNotIn("秘密", sent)
        self.assertEqual(len(self.recalls()), 1)

    async def test_runner_that_takes_no_memory(self) -> None:
        onebot = self.bot.onebot
        async with DifyStub() as dify:
            provider = {"model": {"provider_id": "stub"}}
            await self.restart_with(
                dify.settings, {"agent_runner": {"runner_type": "local", "config": provider}}
            )
            self.proxy.clear()
            answer = await onebot.ask_private(42106, "我对芒果过敏")
            self.assertEqual(answer, "Dify：我对芒果过敏")
            self.assertEqual(dify.requests[-1]["query"], "我对芒果过敏")
            document = await self.stored("我对芒果过敏")
            self.assertRegex(document["original_text"], LINE + "我对芒果过敏\n")
            self.assertIn("Dify：我对芒果过敏", document["original_text"])
            self.assertEqual(self.recalls(), [])
            status = await whole_status(onebot)
            self.assertIn("外部执行器", status)
