"""What the plugin's class does in this AstrBot: hooks, command and tools, also over a reload.

Runs under the Python of an AstrBot installation, in AstrBot's own classes, without its pipeline.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import re
import unittest
from types import SimpleNamespace
from typing import Any
from unittest import mock

from host import Host

HOST = Host()  # before anything else imports AstrBot, which reads its root folder then

import plugin  # noqa: E402, F401
import shapes  # noqa: E402
from astrbot.api.provider import LLMResponse, ProviderRequest  # noqa: E402
from astrbot.core.agent.message import AssistantMessageSegment, TextPart  # noqa: E402
from astrbot.core.pipeline.context_utils import call_event_hook  # noqa: E402
from astrbot.core.star.session_plugin_manager import SessionPluginManager  # noqa: E402
from astrbot.core.star.star import star_map  # noqa: E402
from astrbot.core.star.star_handler import EventType, star_handlers_registry  # noqa: E402
from astrbot_plugin_hindsight_memory import bridge, main, reception  # noqa: E402
from astrbot_plugin_hindsight_memory.handover import POLL_SECONDS  # noqa: E402
from astrbot_plugin_hindsight_memory.intake import LATE_SECONDS  # noqa: E402
from astrbot_plugin_hindsight_memory.outbox import Outbox  # noqa: E402
from astrbot_plugin_hindsight_memory.scope import Skip  # noqa: E402
from astrbot_plugin_hindsight_memory.texts import Texts  # noqa: E402
from fake_bank import BankCase  # noqa: E402
from shapes import Said  # noqa: E402
from support import Clock, until  # noqa: E402

ANN, BEN = Said("30405060708", "小明"), Said("30405060709", "小红")
ZH = Texts("zh")
ANSWER = "好的，记下了"


def run_of(*messages: Any) -> Any:
    """AstrBot's context of an agent's run, as far as it is read."""
    return SimpleNamespace(messages=list(messages))


def answered(text: str = ANSWER) -> Any:
    part = SimpleNamespace(text=text)
    return SimpleNamespace(role="assistant", content=[part], tool_calls=None)


class BackgroundClock(Clock):
    """As late as a test's clock, which nothing in the background moves: who sleeps here sleeps on.

    Args:
        clock: The test's.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def unix(self) -> float:
        return self._clock.unix()

    async def sleep(self, seconds: float) -> None:
        await asyncio.Event().wait()


class HooksCase(BankCase):
    """One chat of a group, a plugin in it, and events as the adapter makes them."""

    def setUp(self) -> None:
        logging.getLogger("astrbot").setLevel(logging.CRITICAL)

    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.config: dict[str, Any] = {
            "wake_prefix": ["/"],
            "provider_settings": {"wake_prefix": ""},
            "timezone": "UTC",
        }
        self.message_ids = itertools.count(1)  # one that comes twice is stored once
        self.allowed = True
        self.current: Any = None
        self.context: Any = mock.Mock()
        self.context.get_config = lambda **_: self.config
        self.context.get_registered_star = lambda _: SimpleNamespace(star_cls=self.current)
        enabled = mock.AsyncMock(side_effect=lambda *_: self.allowed)
        for target, name, value in (
            (SessionPluginManager, "is_plugin_enabled_for_session", enabled),
            (main.StarTools, "get_data_dir", lambda _: self.folder),
            (main, "Clock", lambda _: self.clock),
            (main, "assemble", self.assemble),
        ):
            self.enterContext(mock.patch.object(target, name, value))
        self.addCleanup(self.drop_bridge)
        self.plugin = await self.start()

    @staticmethod
    def drop_bridge() -> None:
        """The last instance of a test is followed by none, and the loop ends at once."""
        for hook in star_handlers_registry.get_handlers_by_module_name(bridge.BRIDGE):
            star_handlers_registry.remove(hook)
        star_map.pop(bridge.BRIDGE, None)

    def assemble(self, *arguments: Any, **named: Any) -> Any:
        outbox = Outbox(self.folder, every_n_turns=1, now=self.clock.monotonic)
        named |= {"client": self.bank.client(), "outbox": outbox}
        return assemble(*arguments, **named | {"clock": BackgroundClock(self.clock)})

    async def start(self, **settings: Any) -> Any:
        """An instance as AstrBot has it once it is loaded."""
        config = {"api_key": "hsk_key", "bank_id": "bot", **settings}
        self.current = instance = main.HindsightMemory(self.context, config)
        self.addAsyncCleanup(instance.terminate)
        await instance.initialize()
        return instance

    async def event(self, said: Said = ANN, text: str = "我喜欢喝绿茶，不喜欢咖啡") -> Any:
        make = shapes.onebot("group", message_id=next(self.message_ids))
        return await make(HOST, Said(said.sender, said.name, said.chat, text))

    async def begin(self, event: Any) -> None:
        await self.plugin.begin_recall(event)

    async def request(self, event: Any, hooks: Any = None) -> str:
        """The block that an event's request is given."""
        request = ProviderRequest(prompt="…")
        await (hooks or self.plugin).inject(event, request)
        return "".join(part.text for part in request.extra_user_content_parts)

    async def done(self, event: Any, hooks: Any = None, text: str = ANSWER) -> None:
        response = LLMResponse(role="assistant", completion_text=text)
        await (hooks or self.plugin).remember(event, run_of(answered(text)), response)

    async def whole(self, event: Any) -> str:
        await self.begin(event)
        block = await self.request(event)
        await self.done(event)
        return block

    def scope(self, event: Any) -> Any:
        return self.plugin._reception.scope(event)

    async def stored(self, instance: Any = None) -> list[str]:
        """The texts in the bank once everything has been sent."""
        delivery = (instance or self.current)._parts.delivery
        await delivery.flush()
        return [document["original_text"] for document in self.bank.documents.values()]

    async def command(self, words: str, said: Said = ANN) -> list[str]:
        event = await self.event(said, words)
        return [text async for text in self.plugin.answer(event, words)]


assemble = main.assemble


class TurnTest(HooksCase):
    async def test_recalled_and_stored(self) -> None:
        event = await self.event()
        self.bank.store(self.scope(event), "小明#3fa2c1 (2026-01-02T03:04:05+08:00): 我爱绿茶")
        self.assertIn("绿茶", await self.whole(event))
        texts = await self.stored()
        self.assertEqual(len(texts), 2)
        self.assertIn(ANSWER, texts[-1])

    async def test_answer_is_taken_once(self) -> None:
        event = await self.event()
        await self.whole(event)
        await self.done(event)
        self.assertEqual(len(await self.stored()), 1)

    async def test_what_is_no_answer_is_not_stored(self) -> None:
        for role, stop in (("err", False), ("assistant", True)):
            event = await self.event()
            await self.begin(event)
            await self.request(event)
            event.set_extra("agent_stop_requested", stop)
            response = LLMResponse(role=role, completion_text="Output stopped.")
            await self.plugin.remember(event, run_of(), response)
        self.assertEqual(await self.stored(), [])

    async def test_what_is_meant_for_the_model_alone_is_cut_out_of_the_reply(self) -> None:
        for echo in (
            "<hindsight_memory>\n- 小明爱绿茶\n</hindsight_memory>",
            "<system_reminder>User ID: 30405060708</system_reminder>",
            "<system_reminder>User ID: 30405060708</system_reminder><hindsight_memory>小明爱绿茶",
        ):
            event = await self.event()
            await self.begin(event)
            await self.request(event)
            said = f"{ANSWER}\n{echo}"
            response = LLMResponse(role="assistant", completion_text=said)
            message = AssistantMessageSegment(content=[TextPart(text=said)])
            await self.plugin.remember(event, run_of(message), response)
            with self.subTest(echo):
                self.assertEqual(response.completion_text, ANSWER)
                self.assertEqual([part.text for part in message.content], [ANSWER])

    async def test_event_with_which_astrbot_wakes_itself_is_not_stored(self) -> None:
        await self.done(HOST.cron_event("bot1:GroupMessage:70405060708", "note"))
        self.assertEqual(await self.stored(), [])


class AskedAgainTest(HooksCase):
    """B has waited behind A; meanwhile something was switched."""

    async def waiting(self) -> Any:
        event = await self.event(BEN)
        self.bank.store(self.scope(event), "小红#9b1c22 (2026-01-02T03:04:05+08:00): 我爱绿茶")
        await self.begin(event)
        return event

    async def assert_without_memory(self, event: Any, reason: Skip) -> None:
        before = len(self.bank.documents)
        self.assertEqual(await self.request(event), "")
        await self.done(event)
        self.assertEqual(len(await self.stored()), before)
        self.assertEqual(self.plugin._memory.skipped(self.scope(event)), reason)

    async def test_off_and_pause(self) -> None:
        for words, reason in (("off", Skip.CHAT_OFF), ("pause 5", Skip.PAUSED)):
            event = await self.waiting()
            with mock.patch.object(reception, "is_manager", lambda _: True):
                await self.command(words)
                await self.assert_without_memory(event, reason)
                await self.command("on")

    async def test_session_rule(self) -> None:
        event = await self.waiting()
        self.allowed = False
        await self.assert_without_memory(event, Skip.SESSION_RULE)

    async def test_off_while_the_model_works(self) -> None:
        event = await self.waiting()
        self.assertIn("绿茶", await self.request(event))
        self.allowed = False
        before = len(self.bank.documents)
        await self.done(event)
        self.assertEqual(len(await self.stored()), before)

    async def test_list_that_a_reload_has_brought(self) -> None:
        event = await self.waiting()
        await self.plugin.terminate()
        successor = await self.start(privacy={"deny_chats": ["70405060708"]})
        before = len(self.bank.documents)
        self.assertEqual(await self.request(event, successor), "")
        await self.done(event, successor)
        self.assertEqual(len(await self.stored()), before)

    async def test_opted_out_meanwhile(self) -> None:
        event = await self.waiting()
        await self.request(event)
        await self.command("optout", BEN)
        await self.done(event)
        self.assertNotIn(ANSWER, "".join(await self.stored()))

    async def test_what_was_said_while_opted_out_stays_unsaid(self) -> None:
        await self.command("optout", BEN)
        event = await self.waiting()
        await self.request(event)
        await self.command("optin", BEN)
        await self.done(event)
        self.assertNotIn(ANSWER, "".join(await self.stored()))

    async def test_follow_up_that_was_said_while_off_or_opted_out_stays_unsaid(self) -> None:
        """The agent took it in all the same."""
        for before, after, said in (
            ("off", "on", "关着时说的话"),
            ("optout", "optin", "退出时说的话"),
            ("help", "help", "开着时说的话"),
        ):
            event = await self.waiting()
            await self.request(event)
            with mock.patch.object(reception, "is_manager", lambda _: True):
                await self.command(before, BEN)
                await self.plugin.note_follow_up(await self.event(BEN, said))
                await self.command(after, BEN)
            told = SimpleNamespace(role="tool", content=said)
            response = LLMResponse(role="assistant", completion_text=ANSWER)
            await self.plugin.remember(event, run_of(told, answered()), response)
            texts = "".join(await self.stored())
            with self.subTest(said):
                self.assertIn(ANSWER, texts)
                self.assertEqual(said in texts, before == "help")

    async def test_somebody_who_is_named_has_opted_out_meanwhile(self) -> None:
        make = shapes.onebot("group", before=[shapes.at(BEN.sender)])
        with mock.patch.dict(shapes.PEOPLE, {BEN.sender: "小红"}):
            event = await make(HOST, ANN)
        await self.begin(event)
        await self.request(event)
        await self.command("optout", BEN)
        await self.done(event)
        (text,) = await self.stored()
        self.assertIn(ANSWER, text)
        self.assertNotIn("小红", text)

    async def test_forgotten_meanwhile(self) -> None:
        event = await self.waiting()
        await event.get_extra(main.TURN_EXTRA).recalled()
        self.clock.now += 1
        self.bank.documents.clear()
        self.bank.memories.clear()
        self.plugin._memory.forget_chat(self.scope(event))
        self.assertEqual(await self.request(event), "")


class SharingTest(HooksCase):
    """Somebody's private chat is read in the group too."""

    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.clock.sleeper = self.sleep
        self.private = await self.said_in_private("hi")
        line = "小明#3fa2c1 (2026-01-02T03:04:05+08:00): 我的生日是五月八日"
        self.bank.store(self.scope(self.private), line)

    async def sleep(self, seconds: float) -> None:
        """The background rests: time would run away with it, and codes last ten minutes."""
        if seconds > POLL_SECONDS:
            await asyncio.Event().wait()
        self.clock.now += seconds
        await asyncio.sleep(0)

    async def said_in_private(self, text: str) -> Any:
        return await shapes.onebot("private")(HOST, Said(ANN.sender, ANN.name, ANN.sender, text))

    async def in_private(self, words: str) -> str:
        event = await self.said_in_private(words)
        answer = "".join([text async for text in self.plugin.answer(event, words)])
        code = re.findall(rf"/hindsight ({words} [0-9]{{4}})\b", answer)
        return await self.in_private(code[0]) if code and words == "forgetme" else answer

    async def share(self) -> None:
        answer = await self.in_private("share")
        code = answer.partition("share ")[2][:6]
        self.assertEqual(await self.command(f"share {code}"), [ZH("share_done")])

    async def test_on_their_own_turns(self) -> None:
        await self.share()
        self.assertIn("五月八日", await self.whole(await self.event()))
        self.assertNotIn("五月八日", await self.whole(await self.event(BEN)))
        (_, own, others) = await self.stored()
        self.assertNotIn(ANSWER, own)
        self.assertIn("绿茶", own)
        self.assertIn(ANSWER, others)

    async def test_answer_is_stored_where_nothing_private_was_shown(self) -> None:
        await self.share()
        self.bank.documents.clear()
        self.bank.memories.clear()
        await self.whole(await self.event())
        self.assertIn(ANSWER, "".join(await self.stored()))

    async def test_ended_while_the_turn_waited(self) -> None:
        for words in ("unshare", "off", "optout", "forgetme"):
            await self.in_private("on")
            await self.in_private("optin")
            await self.share()
            event = await self.event()
            await self.begin(event)
            await event.get_extra(main.TURN_EXTRA).recalled()
            answer = await self.in_private(words)
            if code := re.search(rf"{words} (\d{{4}})\b", answer):
                await self.in_private(f"{words} {code[1]}")
            self.assertNotIn("五月八日", await self.request(event), words)
            await self.done(event)
            self.clock.now += 61

    async def test_ended_while_the_model_works(self) -> None:
        """It knows it already, so its answer is not stored."""
        await self.share()
        event = await self.event()
        await self.begin(event)
        self.assertIn("五月八日", await self.request(event))
        await self.command("unshare")
        await self.done(event)
        self.assertNotIn(ANSWER, "".join(await self.stored()))

    async def test_answer_over_a_reload(self) -> None:
        await self.share()
        event = await self.event()
        await self.begin(event)
        self.assertIn("五月八日", await self.request(event))
        await self.plugin.terminate()
        await self.done(event, await self.start())
        self.assertNotIn(ANSWER, "".join(await self.stored()))

    async def test_rule_of_the_private_session(self) -> None:
        await self.share()
        umo = self.private.unified_msg_origin
        for is_met in (True, False):
            if not is_met:
                await self.plugin.terminate()
                self.plugin = await self.start()
            enabled = mock.AsyncMock(side_effect=lambda one, _: one != umo)
            with mock.patch.object(SessionPluginManager, "is_plugin_enabled_for_session", enabled):
                self.assertNotIn("五月八日", await self.whole(await self.event()))
        self.assertIn("五月八日", await self.whole(await self.event()))

    async def quoting(self) -> str:
        """What would be stored where somebody quotes the bot's answer."""
        before = shapes._onebot_call

        async def call(action: str, **params: Any) -> Any:
            if action != "get_msg":
                return await before(action, **params)
            return shapes._onebot_message(Said(shapes.BOT, "机器人", text=ANSWER), "group")

        make = shapes.onebot("group", before=[{"type": "reply", "data": {"id": "1"}}])
        with mock.patch.object(shapes, "_onebot_call", call):
            event = await make(HOST, BEN)
        message = self.plugin._reception.reader(event, self.scope(event)).message(
            self.clock.local()
        )
        self.assertIn("引用", message.stored)
        return str(message.stored)

    async def test_answer_that_somebody_quotes(self) -> None:
        """It would be stored with their words."""
        self.assertIn(ANSWER, await self.quoting())
        await self.share()
        self.assertNotIn(ANSWER, await self.quoting())
        await self.whole(await self.event())
        await self.command("unshare")
        self.assertNotIn(ANSWER, await self.quoting())

    async def test_tool_of_the_model(self) -> None:
        self.plugin = await self.start(tools={"remember": True})
        await self.share()
        event = await self.event()
        await self.begin(event)
        await self.request(event)
        said = await self.plugin.use_tool(event, "remember", "生日是五月八日")
        self.assertEqual(said, ZH("tool_private"))


class ReloadTest(HooksCase):
    async def begun(self) -> Any:
        event = await self.event()
        await self.begin(event)
        await self.request(event)
        await self.plugin.note_run(event, run_of())
        return event

    async def waits_of_the_end(self, late: Any = None) -> int:
        """Ends the plugin; how often that waits for a turn, whose run begins meanwhile."""
        waits = 0

        async def sleep(seconds: float) -> None:
            nonlocal waits
            if seconds == POLL_SECONDS and not self.plugin._handover.is_closed:
                waits += 1
                await self.plugin.note_run(late, run_of())
            self.clock.now += seconds
            await asyncio.sleep(0)

        self.clock.sleeper = sleep
        await self.plugin.terminate()
        return waits

    async def take_in(self) -> None:
        """What a closed instance has left beside the outbox comes into it."""
        self.clock.now += LATE_SECONDS
        await self.current._parts.delivery.step()

    async def test_nothing_waits_for_a_model_at_work(self) -> None:
        await self.begun()
        self.assertEqual(await self.waits_of_the_end(), 0)

    async def test_answer_that_the_successor_gets(self) -> None:
        event = await self.begun()
        await self.plugin.terminate()
        successor = await self.start()
        await self.done(event, successor)
        self.assertIn(ANSWER, "".join(await self.stored()))

    async def test_answer_that_the_closed_instance_gets(self) -> None:
        event = await self.begun()
        await self.plugin.terminate()
        await self.start()
        await self.done(event, self.plugin)
        self.assertIn(ANSWER, "".join(await self.stored()))

    async def test_answer_that_no_hook_gets(self) -> None:
        """The event's own task ends in the moment between two instances, or later."""
        for has_successor in (True, False):
            run, go_on = run_of(), asyncio.Event()

            async def handle(run: Any = run, go_on: asyncio.Event = go_on) -> None:
                event = await self.event()
                await self.begin(event)
                await self.request(event)
                await self.plugin.note_run(event, run)
                await go_on.wait()

            handling = asyncio.create_task(handle())
            await until(lambda: any(turn.run for turn in self.plugin._turns))
            await self.plugin.terminate()
            if has_successor:
                await self.start()
            run.messages.append(answered())
            go_on.set()
            await handling
            await asyncio.gather(*self.plugin._tasks)
            await self.current.terminate()
            self.plugin = await self.start()
            await self.take_in()
            with self.subTest(has_successor=has_successor):
                self.assertIn(ANSWER, "".join(await self.stored()))
                self.assertEqual(len(self.bank.documents), 1)
            self.bank.documents.clear()

    async def test_model_that_failed_leaves_nothing_and_is_not_waited_for(self) -> None:
        for run in (None, run_of(SimpleNamespace(role="user", content="hi"))):

            async def handle(run: Any = run) -> Any:
                event = await self.event()
                await self.begin(event)
                await self.request(event)
                if run:
                    await self.plugin.note_run(event, run)
                return event  # somebody still holds it

            event = await asyncio.create_task(handle())
            await asyncio.sleep(0)  # whoever else waits for the task is told
            self.assertEqual(await self.waits_of_the_end(), 0)
            self.assertIsNotNone(event)
            self.plugin = await self.start()
            self.assertEqual(await self.stored(), [])

    async def test_run_that_has_not_begun_yet_is_waited_for(self) -> None:
        event = await self.event()
        await self.begin(event)
        await self.request(event)

        self.assertEqual(await self.waits_of_the_end(event), 1)
        self.assertIsNotNone(event.get_extra(main.TURN_EXTRA).run)

    async def test_turn_whose_first_hooks_fell_into_the_reload(self) -> None:
        event = await self.event()
        await self.done(event)
        self.assertIn(ANSWER, "".join(await self.stored()))

    async def test_turn_that_falls_into_the_reload_as_a_whole(self) -> None:
        """AstrBot has dropped the old hooks, and not yet loaded the new ones."""
        self.enterContext(mock.patch.object(main, "BRIDGE_SECONDS", math.inf))
        await self.plugin.terminate()
        event, run = await self.event(), run_of(answered())
        response = LLMResponse(role="assistant", completion_text=ANSWER)
        request = ProviderRequest(prompt="…")
        self.plugin._handover.await_successor = mock.AsyncMock(return_value=None)
        with mock.patch.dict(star_map):
            del star_map[main.__name__]
            await call_event_hook(event, EventType.OnWaitingLLMRequestEvent)
            await call_event_hook(event, EventType.OnLLMRequestEvent, request)
            await call_event_hook(event, EventType.OnAgentBeginEvent, run)
            await call_event_hook(event, EventType.OnAgentDoneEvent, run, response)
        await self.start()
        await self.take_in()
        self.assertIn(ANSWER, "".join(await self.stored()))
        await until(lambda: bridge.BRIDGE not in star_map)
        hooks = star_handlers_registry.get_handlers_by_module_name(bridge.BRIDGE)
        self.assertEqual(hooks, [])

    async def test_registered_instance_alone_is_called(self) -> None:
        self.enterContext(mock.patch.object(main, "BRIDGE_SECONDS", math.inf))
        await self.plugin.terminate()
        with mock.patch.object(star_map[main.__name__], "star_cls", self.plugin):
            event = await self.event()
            for hook in star_handlers_registry.get_handlers_by_module_name(bridge.BRIDGE):
                await hook.handler(event, None, None)
        self.assertIsNone(event.get_extra(main.TURN_EXTRA))
        await self.start()
        await until(lambda: bridge.BRIDGE not in star_map)

    async def test_message_while_the_old_instance_ends(self) -> None:
        """It is still answered with memory, at once."""
        self.bank.gate.clear()
        tool = asyncio.create_task(self.plugin.use_tool(await self.event(), "recall", "茶"))
        await until(lambda: self.bank.waiting)
        ending = asyncio.create_task(self.plugin.terminate())
        await asyncio.sleep(0)
        event = await self.event(BEN)
        await self.begin(event)
        self.bank.gate.set()
        await self.request(event)
        await self.done(event)
        await tool
        await ending
        self.assertIn(ANSWER, "".join(await self.stored(await self.start())))

    async def test_command_and_tool_of_an_instance_that_has_ended(self) -> None:
        await self.plugin.terminate()
        event = await self.event()
        self.current = None
        self.assertEqual(await self.command("status"), [ZH("ended")])
        for name in ("recall", "remember"):
            self.assertEqual(await self.plugin.use_tool(event, name, "茶"), ZH("ended"))
        await self.start()
        (answer,) = await self.command("list")
        self.assertEqual(answer, ZH("list_empty"))
        told = await self.plugin.use_tool(event, "remember", "用户爱喝绿茶")
        self.assertEqual(told, ZH("tool_remembered"))
        self.assertIn("绿茶", "".join(await self.stored()))

    async def test_second_end_does_nothing(self) -> None:
        await self.plugin.terminate()
        await self.plugin.terminate()


class ToolTest(HooksCase):
    async def test_session_rule(self) -> None:
        event = await self.event()
        self.bank.store(self.scope(event), "小明#3fa2c1 (2026-01-02T03:04:05+08:00): 我爱绿茶")
        self.allowed = False
        reason = ZH("no_memory_here", reason=ZH("session_rule"))
        for name in ("recall", "remember"):
            self.assertEqual(await self.plugin.use_tool(event, name, "绿茶"), reason)
        self.assertEqual(len(await self.stored()), 1)

    async def test_only_what_is_switched_on_is_offered(self) -> None:
        self.context.add_llm_tools.assert_not_called()
        await self.start(tools={"recall": True, "remember": True})
        tools = self.context.add_llm_tools.call_args.args
        names = [tool.name for tool in tools]
        self.assertEqual(names, ["hindsight_recall", "hindsight_remember"])
        around = SimpleNamespace(context=SimpleNamespace(event=await self.event()))
        self.assertEqual(await tools[0].call(around, query="茶"), ZH("tool_nothing"))
        self.assertEqual(await tools[1].call(around, content=None), ZH("remember_usage"))


class CommandTest(HooksCase):
    """The name that counts is the one on AstrBot's page."""

    def setUp(self) -> None:
        super().setUp()
        handlers = star_handlers_registry.get_handlers_by_module_name(main.__name__)
        (self.handler,) = [one for one in handlers if one.handler_name == main.COMMAND]
        is_command = lambda one: isinstance(one, main.CommandFilter)  # noqa: E731
        (self.filter,) = filter(is_command, self.handler.event_filters)
        self.addCleanup(self.rename, main.COMMAND)

    def rename(self, name: str, *aliases: str) -> None:
        """What AstrBot does with what is set on its page."""
        self.filter.command_name, self.filter.alias = name, set(aliases)
        self.filter._cmpl_cmd_names = None

    async def words(self, text: str, prefix: str = "/") -> str | None:
        """What follows the command; None where the text is none."""
        event = await self.event(ANN, text)
        event.is_at_or_wake_command = True
        event.message_str = text.strip().removeprefix(prefix).strip()
        if not all(one.filter(event, self.config) for one in self.handler.event_filters):
            return None
        return str(event.get_extra("parsed_params")["words"])

    async def test_typed_with_a_prefix_in_any_case(self) -> None:
        for text, expected in (
            ("/hindsight", ""),
            ("/Hindsight Status", "Status"),
            ("/HINDSIGHT  list  2", "list 2"),
            ("hindsight status", None),
            ("Hindsight is a word", None),
            ("/hindsights", None),
            ("/hindsight\nstatus", "status"),
        ):
            with self.subTest(text):
                self.assertEqual(await self.words(text), expected)

    async def test_renamed_and_given_aliases(self) -> None:
        self.rename("记忆", "mem", "my memory")
        for text, expected in (
            ("/记忆 状态", "状态"),
            ("/mem list", "list"),
            ("/MEM list", "list"),
            ("/my memory list", "list"),
            ("/hindsight status", None),
            ("mem list", None),
        ):
            with self.subTest(text):
                self.assertEqual(await self.words(text), expected)

    async def test_operator_without_a_prefix(self) -> None:
        self.config["wake_prefix"] = [""]
        self.assertEqual(await self.words("hindsight status", ""), "status")

    async def test_help_names_what_can_be_typed(self) -> None:
        self.rename("记忆")
        self.config["wake_prefix"] = ["", "#"]
        (answer,) = await self.command("help recall")
        self.assertIn("#记忆 recall", answer)
        self.assertNotIn("/hindsight", answer)

    async def test_page_describes_it(self) -> None:
        self.assertEqual(self.handler.desc, main.in_both("about_command"))


class PersonTest(HooksCase):
    async def test_anonymous_member_decides_for_nobody(self) -> None:
        event = await shapes.onebot_anonymous(HOST, ANN)
        for words in ("forgetme", "optout all", "optin"):
            answers = [text async for text in self.plugin.answer(event, words)]
            self.assertEqual(answers, [ZH("needs_person")])


if __name__ == "__main__":
    unittest.main()


class PersonaTest(HooksCase):
    """Each persona with a memory of its own, and the persona is known for sure only late."""

    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.persona = "猫娘"
        manager, conversations = self.context.persona_manager, self.context.conversation_manager
        manager.personas_v3 = [{"name": name} for name in ("default", "猫娘", "管家")]
        manager.get_default_persona_v3 = mock.AsyncMock(return_value={"name": "default"})
        manager.resolve_selected_persona = mock.AsyncMock(
            side_effect=lambda **_: (self.persona, None, None, False)
        )
        conversations.get_curr_conversation_id = mock.AsyncMock(return_value=None)
        await self.plugin.terminate()
        self.plugin = await self.start(separate_personas=True)

    async def told(self, persona: str, text: str) -> Any:
        """Something that a persona remembers."""
        self.persona = persona
        event = await self.event(text=text)
        await self.whole(event)
        await self.stored()
        return event

    async def test_what_one_is_told_another_does_not_know(self) -> None:
        await self.told("猫娘", "我最喜欢的饮料是冰美式咖啡")
        for persona, knows in (("猫娘", True), ("管家", False), ("default", False)):
            self.persona = persona
            block = await self.whole(await self.event(text="我最喜欢的饮料是什么来着"))
            self.assertEqual("冰美式" in block, knows, persona)

    async def test_another_persona_than_recalled_for(self) -> None:
        """The model is asked as the butler, after the recall has begun for the cat girl."""
        await self.told("猫娘", "我最喜欢的饮料是冰美式咖啡")
        for trace in (True, False):
            event = await self.event(text="我最喜欢的饮料是什么来着")
            self.persona = "猫娘"
            await self.begin(event)
            if trace:
                event.set_extra("_trace_persona_id", "管家")
            else:
                self.persona = "管家"
            self.assertNotIn("冰美式", await self.request(event))
            self.persona = "猫娘"  # switched while the model is at it: the answer is the butler's
            await self.done(event)
            await self.stored()
            butler = self.plugin._parts.bindings.scope(main.origin_of(event), "管家")
            self.assertIn("什么来着", "".join(self.bank.texts(butler)))

    async def test_not_asked_where_the_setting_is_off(self) -> None:
        await self.plugin.terminate()
        self.plugin = await self.start()
        await self.told("猫娘", "我最喜欢的饮料是冰美式咖啡")
        self.context.persona_manager.resolve_selected_persona.assert_not_called()
        self.assertIn("冰美式", await self.whole(await self.event(text="我最喜欢的饮料是什么")))


class ReboundMeanwhileTest(HooksCase):
    async def test_turn_that_was_under_way_belongs_to_the_memory_it_was_bound_to(self) -> None:
        event = await self.event()
        older = self.scope(event)
        bot_id = event.unified_msg_origin.partition(":")[0]
        bindings = self.plugin._parts.bindings
        bindings.bind_bot("another", bot_id)
        self.assertIs(self.scope(event), Skip.REBOUND)
        bindings.unbind(main.origin_of(event))
        await self.begin(event)
        bindings.bind_bot(bot_id, "older")
        bound = self.scope(event)
        self.assertNotEqual(bound.chat, older.chat)
        self.bank.store(bound, "小明#3fa2c1 (2026-01-02T03:04:05+08:00): 我爱绿茶")
        self.assertIn("绿茶", await self.request(event))
        await self.done(event)
        await self.stored()
        self.assertEqual(self.bank.texts(older), [])
        self.assertEqual(len(self.bank.texts(bound)), 2)
