"""Every answered turn is in Hindsight exactly once, whatever happens to the processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from rig.faults import DropResponse, Fault, Refuse, Status
from rig.polling import PATIENCE, eventually
from rig.proxy import Recorded
from rig.stack import StackTest

PLUGIN = "astrbot_plugin_hindsight_memory"
TURNS = 1000
CHATS = 20
TURN = re.compile(r"第\d+轮次")


class DurabilityTest(StackTest):
    """The stack's settings gather two turns, so that windows are open when it is killed."""

    options = {
        "embeddings": "hashed",
        "overrides": {"log_level": "INFO"},
        "retain": {"every_n_turns": 2, "idle_seconds": 1.0},
    }

    async def said(self) -> Counter[str]:
        """How often each numbered turn was said by a user in the stored documents."""
        counter: Counter[str] = Counter()
        for document in await self.bank.documents(texts=True):
            for line in document["original_text"].splitlines():
                if re.match(r"[^ ]+#[0-9a-f]{6} \(", line):
                    counter.update(TURN.findall(line))
        return counter

    async def arrives_once(self, text: str) -> None:
        async def there() -> list[object]:
            found = await self.bank.request("GET", "/documents", params={"q": text})
            return found.json().get("items", [])

        found = await eventually(there, PATIENCE, f"{text} in Hindsight", 0.5)
        self.assertEqual(len(found), 1)

    async def say(self, who: int, text: str) -> None:
        await self.bot.onebot.ask_private(who, f"SAY:{text}")

    async def test_kill_right_after_the_reply(self) -> None:
        await self.say(33001, "回复后立刻断电")
        self.bot.kill()
        await self.bot.start()
        await self.arrives_once("回复后立刻断电")

    async def test_sigterm(self) -> None:
        await self.say(33002, "容器停止")
        await self.bot.sigterm()
        await self.bot.start()
        await self.arrives_once("容器停止")

    async def test_restart_from_the_dashboard(self) -> None:
        await self.say(33003, "面板重启")
        await self.bot.dashboard.restart()
        await self.arrives_once("面板重启")

    async def test_interrupt_sends_before_it_ends(self) -> None:
        await self.say(33004, "正常退出")
        await self.bot.stop()
        await self.arrives_once("正常退出")
        await self.bot.start()

    async def test_reload_while_sending(self) -> None:
        self.proxy.fault = Fault(DropResponse(), times=3, match=is_retain)
        for number in range(6):
            await self.say(33010 + number, f"重载时发送{number}")
            await self.bot.dashboard.reload_plugin(PLUGIN)
        for number in range(6):
            await self.arrives_once(f"重载时发送{number}")

    async def working(self, who: int, text: str) -> asyncio.Task[str]:
        """Asks what the model is held by; it is at work when this returns."""
        self.model.clear()
        onebot = self.bot.onebot
        asking = asyncio.create_task(onebot.ask_private(who, f"HOLD SAY:{text}"))

        async def asked() -> bool:
            return any(text in str(body) for body in self.model.requests)

        await eventually(asked, PATIENCE, "the model is at work")
        return asking

    async def test_reload_while_the_model_works(self) -> None:
        asking = await self.working(33041, "重载时还在想")
        await self.bot.dashboard.reload_plugin(PLUGIN)
        await self.say(33042, "旁人照常聊天")
        self.assertFalse(asking.done(), "neither the reload nor anybody else waited for the model")
        self.model.let_go()
        await asking
        for text in ("重载时还在想", "旁人照常聊天"):
            await self.arrives_once(text)

    async def test_answer_while_the_plugin_is_switched_off(self) -> None:
        """Nobody takes the answer but the instance that is closed already."""
        asking = await self.working(33043, "停用时才想好")
        await self.bot.dashboard.enable_plugin(PLUGIN, False)
        self.assertFalse(asking.done(), "the end waited for the model")
        self.model.let_go()
        await asking
        await eventually(self.left_files, PATIENCE, "what the closed instance leaves")
        self.bot.kill()
        await self.bot.start()
        await self.bot.dashboard.enable_plugin(PLUGIN, True)
        await self.arrives_once("停用时才想好")

    async def test_reload_after_the_model_failed(self) -> None:
        with contextlib.suppress(AssertionError):
            await self.bot.onebot.ask_private(33044, "ERR400 模型出错了")
        await self.bot.dashboard.reload_plugin(PLUGIN)
        await self.say(33044, "出错之后的话")
        await self.arrives_once("出错之后的话")

    async def test_hindsight_down_from_before_the_start(self) -> None:
        self.proxy.fault = Refuse()
        await self.bot.restart()
        await self.say(33005, "启动时服务不在")
        self.proxy.fault = None
        await self.arrives_once("启动时服务不在")

    async def test_a_lost_answer_doubles_nothing(self) -> None:
        self.proxy.fault = Fault(DropResponse(), times=4, match=is_retain)
        await self.say(33006, "答复丢失")
        await self.arrives_once("答复丢失")
        await self.bank.settled()
        await self.arrives_once("答复丢失")
        facts = [m for m in await self.bank.memories() if "答复丢失" in m["text"]]
        self.assertEqual(len(facts), 1)

    async def test_a_thousand_turns_under_every_trouble(self) -> None:
        """Kills, reloads, lost answers, 429 and 500, while twenty people chat on busy cores."""
        self.keep_the_cores_busy()
        self.proxy.set_faults(
            *(
                Fault(kind, match=is_retain, probability=0.07, seed=seed)
                for seed, kind in enumerate(
                    (DropResponse(), Status(429, {}, {"Retry-After": "0"}), Status(500, {}))
                )
            )
        )
        self.trouble = asyncio.Event()
        numbers = iter(range(TURNS))
        answered: list[str] = []

        async def chat(who: int) -> None:
            for number in numbers:
                if await self.answers(who, f"第{number}轮次"):
                    answered.append(f"第{number}轮次")

        chats = [asyncio.create_task(chat(33100 + n)) for n in range(CHATS)]
        await self.make_trouble(answered, chats)
        await asyncio.gather(*chats)
        self.assertGreater(len(answered), TURNS * 0.7)
        self.proxy.set_faults()

        await eventually(self.nothing_waits, PATIENCE, "an empty outbox", 0.5)
        await self.bank.settled()
        counts = await self.said()
        self.assertEqual(set(answered) - set(counts), set())
        self.assertEqual({text: n for text, n in counts.items() if n != 1}, {})

    def keep_the_cores_busy(self) -> None:
        """Takes a share of every core, which modules that run beside this one need too."""
        for _ in range(os.cpu_count() or 1):
            loop = "import os; os.nice(5)\nwhile True: pass"
            busy = subprocess.Popen([sys.executable, "-c", loop])
            self.addCleanup(busy.wait)
            self.addCleanup(busy.kill)

    async def answers(self, who: int, text: str) -> bool:
        """Whether the bot says something before a kill or a reload has taken the question along."""
        asking = asyncio.create_task(self.answer(who, text))
        trouble = asyncio.create_task(self.trouble.wait())
        await asyncio.wait((asking, trouble), return_when=asyncio.FIRST_COMPLETED)
        trouble.cancel()
        if asking.done():
            await asking
            return True
        asking.cancel()
        return False

    async def answer(self, who: int, text: str) -> None:
        """Asks, and awaits this very answer: one to an earlier question may come late."""
        await self.bot.onebot.private(who, f"SAY:{text}")
        while (await self.bot.onebot.reply(target=("private", who))).text != text:
            pass

    def left_files(self) -> list[Path]:
        return list(self.bot.plugin_data_dir.glob("late-*.json"))

    def nothing_waits(self) -> bool:
        if self.left_files():
            return False
        return not self.bot.outbox("SELECT id FROM windows")

    async def make_trouble(self, answered: list[str], chats: list[asyncio.Task[None]]) -> None:
        """Kills or reloads after every two hundred or so answers, until the chats end."""
        dice = random.Random(4)
        while not all(task.done() for task in chats):
            goal = len(answered) + dice.randint(120, 220)
            while len(answered) < goal and not all(task.done() for task in chats):
                before = len(answered)
                await eventually(
                    lambda before=before: (
                        len(answered) > before or all(task.done() for task in chats)
                    ),
                    PATIENCE,
                    "another answer",
                )
            if dice.random() < 0.5:
                self.bot.kill()
                await self.bot.start()
            else:
                await self.bot.dashboard.reload_plugin(PLUGIN)
            self.trouble.set()
            self.trouble = asyncio.Event()


def is_retain(request: Recorded) -> bool:
    return request.path.endswith("/memories")
