"""Whatever is wrong with Hindsight or the settings: the bot replies, and status says what it is."""

from __future__ import annotations

import time

from rig.commands import whole_status
from rig.faults import BlackHole, BrokenJson, Fault, Html, Kind, Refuse, Status
from rig.model import memory_blocks
from rig.polling import PATIENCE, eventually
from rig.stack import BANK, StackTest, plugin_config

PLUGIN = "astrbot_plugin_hindsight_memory"
DEADLINE = 5.0
LEEWAY = 20.0
"""Seconds for the reply itself; a request that hangs takes longer where no deadline ends it."""
AT_ONCE = 40.0
"""Seconds; after a refused key the plugin waits up to a minute by itself."""
WRONG_KEY = "hsk_wrong_9876543210fedcba"


class FaultsTest(StackTest):
    """Settings are changed on the running bot, as an operator does on the settings page."""

    options = {
        "embeddings": "hashed",
        "env": {"PYTHONWARNINGS": "default"},
        "recall": {"timeout_seconds": DEADLINE},
    }

    async def configure(self, **changes: object) -> None:
        config = await self.bot.dashboard.plugin_config(PLUGIN)
        await self.bot.dashboard.save_plugin_config(PLUGIN, {**config, **changes})

    async def reset(self) -> None:
        self.proxy.fault = None
        good = plugin_config(self.proxy.url, self.stack.hindsight.api_key)
        await self.configure(**{key: good[key] for key in ("api_base", "api_key", "bank_id")})

    async def status(self) -> str:
        return await whole_status(self.bot.onebot)

    async def paused(self) -> None:
        async def shown() -> bool:
            return "保存暂停" in await self.status()

        await eventually(shown, PATIENCE, "delivery to pause", 0.5)

    async def timed(self, who: int, text: str) -> float:
        started = time.monotonic()
        self.assertIn(text, await self.bot.onebot.ask_private(who, f"SAY:{text}"))
        return time.monotonic() - started

    def assert_no_key_is_logged(self, reason: str) -> None:
        """Fails if a key is in the log, or if what happened with it is not."""
        log = self.bot.log().splitlines()
        self.assertTrue([line for line in log if reason in line], reason)
        keys = (self.stack.hindsight.api_key, WRONG_KEY)
        self.assertEqual([line for line in log if any(key in line for key in keys)], [])

    async def test_wrong_settings_are_named_and_nothing_leaves(self) -> None:
        cases = [
            ({"api_key": ""}, "还没有填写 api_key"),
            ({"bank_id": ""}, "还没有填写 bank_id"),
            ({"api_key": "", "bank_id": "a/b"}, "bank_id 不能使用"),
            ({"api_base": "hindsight"}, "api_base 不是可用的地址"),
        ]
        for number, (changes, sentence) in enumerate(cases):
            with self.subTest(sentence):
                await self.reset()
                self.proxy.clear()
                await self.configure(**changes)
                await eventually(
                    lambda: not self.proxy.open_connections, PATIENCE, "idle connections"
                )
                self.proxy.clear()
                self.assertIn(sentence, await self.status())
                await self.timed(32010 + number, "照常回答")
                self.assertEqual(memory_blocks(self.model.requests[-1]), [])
                self.assertEqual(self.proxy.requests, [])
        await self.reset()

    async def test_unusable_values_are_replaced_and_named(self) -> None:
        await self.reset()
        self.restore_settings()
        await self.configure(language="fr", retain={"every_n_turns": 99, "idle_seconds": 1.0})
        replaced = "这些设置填的值不能用，已改用：language=auto，retain.every_n_turns=20"
        self.assertIn(replaced, await self.status())
        self.assertIn("setting language is not usable as given, using 'auto'", self.bot.log())
        await self.timed(32015, "照常回答")

    async def test_wrong_key_and_wrong_address_are_named(self) -> None:
        await self.reset()
        for changes, sentence in (
            ({"api_key": WRONG_KEY}, "API Key 无效或已过期（401）"),
            ({"api_base": self.model.base_url}, "不是 Hindsight"),
            ({"api_base": "http://127.0.0.1:9"}, "连不上 Hindsight"),
        ):
            with self.subTest(sentence):
                await self.configure(**changes)
                self.assertIn(sentence, await self.status())
                self.assertLess(await self.timed(32020, "照常回答"), DEADLINE + LEEWAY)
        await self.reset()
        self.assert_no_key_is_logged("The API key is wrong or expired (401)")

    async def test_a_good_key_is_used_at_once(self) -> None:
        await self.reset()
        await self.configure(api_key=WRONG_KEY)
        await self.timed(32071, "换好 Key 之前的话")
        await self.paused()
        await self.reset()
        self.assertEqual(len(await self.bank.stored("换好 Key 之前的话", timeout=AT_ONCE)), 1)

    async def test_the_server_is_asked_once_at_the_start(self) -> None:
        await self.reset()  # starts it once, too
        await eventually(lambda: self.proxy.matching("/tags"), PATIENCE, "a request at the start")
        self.proxy.clear()
        await self.bot.dashboard.reload_plugin(PLUGIN)
        await eventually(lambda: self.proxy.matching("/tags"), PATIENCE, "a request at the start")
        await self.timed(32081, "启动之后的话")
        asked = [(one.method, one.path) for one in self.proxy.matching("/tags")]
        self.assertEqual(asked, [("GET", f"/v1/default/banks/{BANK}/tags?limit=1")])

    async def test_a_failing_server_costs_at_most_the_deadline(self) -> None:
        kinds: dict[str, tuple[Kind, str]] = {
            "down": (Refuse(), "连不上"),
            "hanging": (BlackHole(), "限定时间内"),
            "html": (Html(), "不是 Hindsight 的回答"),
            "broken json": (BrokenJson(), "不是 Hindsight 的回答"),
            "error": (Status(500), "内部出错"),
            "no credit": (Status(402), "余额不足"),
        }
        for number, (name, (kind, sentence)) in enumerate(kinds.items()):
            with self.subTest(name):
                await self.reset()
                await self.bot.dashboard.reload_plugin(PLUGIN)
                self.proxy.fault = kind
                self.assertLess(await self.timed(32030 + number, "照常回答"), DEADLINE + LEEWAY)
                self.assertEqual(memory_blocks(self.model.requests[-1]), [])
                self.assertIn(sentence, await self.status())
                if kind != BlackHole():  # there the request itself may take half a minute
                    await self.paused()
        await self.reset()
        await self.bot.dashboard.reload_plugin(PLUGIN)
        self.assert_no_key_is_logged("delivery to Hindsight stopped")

    async def test_what_was_said_during_an_outage_arrives_afterwards(self) -> None:
        await self.reset()
        self.proxy.fault = Refuse()
        await self.timed(32041, "停机时说的话")
        self.proxy.fault = None
        self.assertEqual(len(await self.bank.stored("停机时说的话")), 1)

    async def test_a_long_query_is_asked_again_at_half(self) -> None:
        await self.reset()
        too_long = Status(400, {"detail": "Query too long: 900 tokens exceeds maximum of 500"})
        self.proxy.fault = Fault(too_long, times=1, match="/recall")
        self.proxy.clear()
        await self.timed(32051, "很长的问题" * 60)
        queries = [r.json["query"] for r in self.proxy.matching("/recall")]
        self.assertEqual(len(queries), 2)
        self.assertLess(len(queries[1]), len(queries[0]) * 0.6)
        self.assertTrue(queries[0].endswith(queries[1]))

    async def test_twenty_reloads_leave_nothing_behind(self) -> None:
        await self.reset()
        await self.timed(32061, "重载之前")
        for _ in range(20):
            await self.bot.dashboard.reload_plugin(PLUGIN)
        await self.timed(32061, "重载之后")
        await eventually(lambda: self.proxy.open_connections <= 2, PATIENCE, "few connections")
        for word in ("never awaited", "was destroyed but it is pending", "ResourceWarning"):
            self.assertNotIn(word, self.bot.log())
        self.assertNotIn("Traceback", self.bot.log())

        async def is_connected() -> bool:
            return "连接：正常" in await self.status()

        await eventually(is_connected, PATIENCE, "a connection", 0.5)


class NewBankTest(StackTest):
    """A bank that does not exist yet is no fault."""

    options = {"embeddings": "hashed"}

    async def test_status_says_so_and_the_first_turn_makes_it(self) -> None:
        onebot = self.bot.onebot
        self.assertIn("bank 还不存在", await whole_status(onebot))
        await onebot.ask_private(32101, "SAY:第一句")
        failed = [r for r in self.proxy.requests if r.status not in (None, 200, 404)]
        self.assertEqual(failed, [])

        async def gone() -> bool:
            status = await whole_status(onebot)
            return "bank 还不存在" not in status and "召回失败" not in status

        await eventually(gone, PATIENCE, "a bank", interval=0.5)
