"""Who the bot is: a bot that has another id in AstrBot, and personas with a memory each."""

from __future__ import annotations

import re

from rig.astrbot import ADMIN, PLUGIN
from rig.commands import command
from rig.polling import PATIENCE, eventually
from test_remembers import ChatTest

NEW_ID = "shiny"
GIRL, BUTLER = "猫娘", "管家"


class IdentityTest(ChatTest):
    async def command(self, words: str, group: int) -> str:
        return await command(self.bot.onebot, ADMIN, words, group)

    async def block_in(self, group: int, text: str) -> str:
        return await self.block_for(lambda: self.bot.onebot.ask_group(group, ADMIN, text))

    def code(self, answer: str) -> str:
        (code,) = re.findall(r"/hindsight rebind ([0-9]{4})", answer)
        return str(code)

    async def rename(self, bot_id: str) -> None:
        """Has the operator delete the bot and make it again under another id."""
        platforms = self.bot.config()["platform"]
        self.bot.configure({"platform": [{**platforms[0], "id": bot_id}, *platforms[1:]]})
        await self.bot.restart()

    async def test_bot_that_was_made_again(self) -> None:
        group, ask = 72101, "谁对花生过敏？"
        await self.bot.onebot.ask_group(group, ADMIN, "我对花生过敏，请记住", card="小明")
        tags = set((await self.stored("花生"))["tags"])
        in_use = await self.command("rebind bot onebot1", group)
        self.assertIn("不用换绑", in_use)
        await self.rename(NEW_ID)
        self.addCleanup(lambda: self._runner.run(self.rename("onebot1")))
        self.assertNotIn("花生过敏，请记住", await self.block_in(group, ask))
        await self.bot.onebot.ask_group(group, ADMIN, "我养了一只乌龟，请记住")
        stray = await self.stored("乌龟")
        self.assertNotEqual(set(stray["tags"]), tags)

        path = self.bot.plugin_data_dir / "scope_state.json"
        before = path.read_bytes()
        found = await self.command("rebind bot onebot1", group)
        self.assertIn("旧 ID 下有", found)
        bound = await self.command(f"rebind {self.code(found)}", group)
        self.assertIn("已换绑", bound)
        for name in ("onebot1", NEW_ID, str(group)):
            self.assertNotIn(name, path.read_text("utf-8"))
        self.assertIn("花生", await self.block_in(group, ask))

        await self.bank.settled()
        moving = await self.command("rebind move", group)
        moved = await self.command(f"rebind {self.code(moving)}", group)
        self.assertIn("已移动", moved)
        now = await self.bank.document(stray["id"])
        self.assertEqual(set(now["tags"]), tags)
        self.assertIn("乌龟", await self.command("list 乌龟", group))

        undone = await self.command("rebind undo", group)
        self.assertIn("已撤销", undone)
        back = await self.command(f"rebind {self.code(undone)}", group)
        self.assertIn("已移动", back)
        self.assertEqual(path.read_bytes(), before)
        now = await self.bank.document(stray["id"])
        self.assertEqual(set(now["tags"]), set(stray["tags"]))

    async def test_two_personas(self) -> None:
        group, onebot, dashboard = 72201, self.bot.onebot, self.bot.dashboard
        umo = f"onebot1:GroupMessage:{group}"
        for name in (GIRL, BUTLER):
            persona = {"persona_id": name, "system_prompt": f"你是{name}。"}
            await dashboard.call("POST", "/personas", json=persona)
        await onebot.ask_group(group, ADMIN, "我对芒果过敏，请记住")
        await self.stored("芒果")
        self.restore_settings()
        present = self.bot.plugin_config()
        await dashboard.save_plugin_config(PLUGIN, {**present, "separate_personas": True})

        async def answers(name: str) -> None:
            await dashboard.set_session_rule(umo, "session_service_config", {"persona_id": name})

        self.addCleanup(lambda: self._runner.run(dashboard.delete_session_rules(umo)))
        self.assertIn("芒果", await self.block_in(group, "我对什么过敏？"))
        await answers(GIRL)
        self.assertNotIn("芒果", await self.block_in(group, "我对什么过敏？"))
        await onebot.ask_group(group, ADMIN, "我的猫叫团子，请记住")
        await self.stored("团子")
        self.assertIn("团子", await self.block_in(group, "我的猫叫什么？"))
        listed = await self.command("list", group)
        self.assertIn(f"【人格：{GIRL}】", listed)
        self.assertNotIn("芒果", listed)
        await answers(BUTLER)
        self.assertNotIn("团子，请记住", await self.block_in(group, "我的猫叫什么？"))

        asked = await self.command("wipe all", group)
        (code,) = re.findall(r"/hindsight wipe all ([0-9]{4})", asked)
        self.assertIn("已清空", await self.command(f"wipe all {code}", group))

        async def gone() -> bool:
            texts = [one["original_text"] for one in await self.bank.documents(texts=True)]
            return not any("芒果" in one or "团子" in one for one in texts)

        await eventually(gone, PATIENCE, "no document of any persona")
