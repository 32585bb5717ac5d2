"""What was said in a chat before comes into its memory once, as it would have been stored live."""

from __future__ import annotations

import re
import time
from typing import ClassVar

from rig.astrbot import ADMIN, PLUGIN
from rig.commands import command
from rig.onebot import Segment, at_segment, text_segment
from rig.polling import PATIENCE, eventually
from test_hosts import HostTest, Json

GROUP = 75101
PEOPLE = ((45101, "小明"), (45102, "小红"), (45103, "小明"), (45104, "小李"), (45105, "小王"))
"""Two of them have the same name."""
EXCHANGES = 60
DAY = 86_400.0
NUMBERED = re.compile(r"第(\d+)件往事")


class ImportTest(HostTest):
    """The platform knows more than AstrBot ever saw."""

    options: ClassVar[Json] = {"overrides": {"admins_id": [str(ADMIN), "astrbot"]}}

    def setUp(self) -> None:
        super().setUp()
        self.model.script = lambda _: "好的"

    def mention(self, words: str) -> list[Segment]:
        return [at_segment(self.bot.onebot.self_id), text_segment(f" {words}")]

    def seed_group(self) -> None:
        onebot, start = self.bot.onebot, time.time() - 3 * DAY
        for n in range(EXCHANGES):
            user, name = PEOPLE[n % len(PEOPLE)]
            at = start + 120 * n
            onebot.seed(GROUP, user, self.mention(f"第{n}件往事是{user}种了树"), time=at, name=name)
            onebot.seed(GROUP, onebot.self_id, f"记下了第{n}件", time=at + 4, name="小助手")
            onebot.seed(GROUP, user, "没有对机器人说的闲话", time=at + 30, name=name)

    async def texts(self) -> str:
        """All that is stored of what was said before."""
        documents = await self.bank.documents(texts=True)
        found = [d["original_text"] for d in documents if "件" in d["original_text"]]
        return "\n".join(sorted(found))

    async def imported(self, number: int) -> str:
        async def all_there() -> str:
            texts = await self.texts()
            return texts if len(set(NUMBERED.findall(texts))) == number else ""

        return await eventually(all_there, PATIENCE, f"{number} things of the past", 1.0)

    async def ask(self, words: str, group: int = 0) -> str:
        """The answer to a command of an admin."""
        return await command(self.bot.onebot, ADMIN, words, group)

    def code(self, answer: str) -> str:
        """What starts the import that an answer shows."""
        found = re.search(r"import (\d{4})", answer)
        self.assertIsNotNone(found, answer)
        return found[1] if found else ""

    async def test_group_of_five_over_a_kill_and_back(self) -> None:
        onebot = self.bot.onebot
        self.seed_group()
        refused = await command(onebot, 45102, "import", GROUP, nickname="小红")
        self.assertIn("管理员", refused)
        self.proxy.clear()
        code = self.code(await self.ask("import", GROUP))
        self.assertEqual([r for r in self.proxy.requests if r.method not in {"GET", "HEAD"}], [])
        started = await self.ask(f"import {code}", GROUP)
        self.assertIn("开始导入", started)
        self.bot.kill()
        await self.bot.start()
        texts = await self.imported(EXCHANGES)
        lines = [line for line in texts.splitlines() if NUMBERED.search(line)]
        self.assertEqual(len(lines), EXCHANGES)
        self.assertEqual(texts.count("记下了第"), EXCHANGES)
        self.assertNotIn("闲话", texts)
        await self.live_people_have_the_same_numbers(lines)
        before = await self.texts()
        again = await self.ask("import", GROUP)
        self.assertIn("没有可以导入的内容", again)
        undone = await self.ask("import undo", GROUP)
        self.assertIn("已撤销", undone)
        self.assertTrue(before)
        await self.only_live_lines_stay()

    async def live_people_have_the_same_numbers(self, lines: list[str]) -> None:
        onebot = self.bot.onebot
        for user, name in PEOPLE:
            await onebot.ask_group(GROUP, user, f"{name}现在说{user % 100}", nickname=name)
            live = await self.stored(f"现在说{user % 100}")
            (line,) = [t for t in live["original_text"].splitlines() if "现在说" in t]
            label = line.partition(" (")[0]
            own = [
                one
                for n, one in ((int(NUMBERED.findall(t)[0]), t) for t in lines)
                if PEOPLE[n % len(PEOPLE)][0] == user
            ]
            self.assertEqual({one.partition(" (")[0] for one in own}, {label})

    async def only_live_lines_stay(self) -> None:
        async def is_gone() -> bool:
            documents = await self.bank.documents(texts=True)
            return not [d for d in documents if NUMBERED.search(d["original_text"])]

        await eventually(is_gone, PATIENCE, "the import gone", 1.0)
        for user, _ in PEOPLE:
            await self.stored(f"现在说{user % 100}")

    async def test_private_chat_is_told_of_its_end(self) -> None:
        onebot, start = self.bot.onebot, time.time() - 2 * DAY
        onebot.seed(None, ADMIN, "我的自行车是第1件往事", time=start, name="管理员")
        onebot.seed(None, onebot.self_id, "记下了", time=start + 3, friend=ADMIN)
        self.assertIn("管理员", await command(onebot, 45109, "import"))
        code = self.code(await self.ask("import 100 5d"))
        await self.ask(f"import {code}")
        await self.stored("自行车")
        told = await onebot.reply(target=("private", ADMIN))
        self.assertIn("已导入", told.text)

    async def test_web_chat(self) -> None:
        """Its history is AstrBot's own; what was said while the memory was off stays out."""
        dashboard = self.bot.dashboard
        session = await dashboard.new_chat()
        umo = f"webchat:FriendMessage:webchat!astrbot!{session}"
        await dashboard.disable_plugin_in_session(umo, PLUGIN)
        await dashboard.chat("插件还没开时我种了第1件往事", session)
        # A line tells whole seconds, and in doubt it was said while the memory was off.
        said_at = int(time.time())
        await eventually(lambda: int(time.time()) > said_at, PATIENCE, "another second")
        await dashboard.delete_session_rules(umo)
        await dashboard.chat("/hindsight off", session)
        await dashboard.chat("关着的时候说的秘密", session)
        await dashboard.chat("/hindsight on", session)
        await self.not_stored("插件还没开时")
        answer = (await dashboard.chat("/hindsight import", session)).text
        self.assertIn("共 2 行", answer)
        await dashboard.chat(f"/hindsight import {self.code(answer)}", session)
        await self.stored("插件还没开时")
        await self.not_stored("关着的时候说的秘密")
