"""Listening and withdrawn messages in this AstrBot: what its handlers are given, and when."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from unittest import mock

from test_hooks import ANN, ANSWER, BEN, HOST, ZH, HooksCase

CHAT = ANN.chat  # what follows needs the AstrBot that was imported just now

import shapes  # noqa: E402
from astrbot.api.provider import LLMResponse  # noqa: E402
from astrbot.core.star.star_handler import star_handlers_registry  # noqa: E402
from astrbot_plugin_hindsight_memory import main  # noqa: E402
from shapes import Said  # noqa: E402
from support import NOW  # noqa: E402


class ListeningCase(HooksCase):
    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.clock.wall = NOW.timestamp()
        star = SimpleNamespace(star_cls=self.plugin, name="hindsight_memory")
        self.enterContext(mock.patch.dict(main.star_map, {main.__name__: star}))

    async def heard(self, text: str, said: Said = ANN, *, message_id: int = 0) -> Any:
        """Somebody says something to the group; handlers whose filters pass are called."""
        changes = {"message_id": message_id} if message_id else {}
        make = shapes.onebot("group", **changes)
        event = await make(HOST, Said(said.sender, said.name, said.chat, text))
        await self.handle(event)
        return event

    async def handle(self, event: Any) -> None:
        if main.SaidWhereTheGroupListens().filter(event, self.config):
            await self.plugin.listen(event)
        if main.TellsOfWithdrawal().filter(event, self.config):
            await self.plugin.note_withdrawn(event)

    async def withdrawn(self, message_id: int, said: Said = ANN, **fields: Any) -> Any:
        fields = {"notice_type": "group_recall", "message_id": message_id, **fields}
        event = await shapes.onebot_happening("notice", group=True, **fields)(HOST, said)
        await self.handle(event)
        return event

    def switch(self, event: Any, *, on: bool = True) -> None:
        self.plugin._state.listen(self.scope(event), on=on)

    async def text(self) -> str:
        """What is stored in the end."""
        await self.plugin._listening.flush()
        return "\n".join(await self.stored())


class HeardTest(ListeningCase):
    async def test_only_where_the_group_listens(self) -> None:
        event = await self.heard("今天去爬山吗")
        self.assertEqual(await self.text(), "")
        self.switch(event)
        before = dict(event.__dict__)
        event = await self.heard("明天去爬山吗")
        await self.heard("我带水果", BEN)
        text = await self.text()
        self.assertNotIn("今天", text)
        self.assertRegex(text, r"小明#[0-9a-f]{6} \([^)]*\): 明天去爬山吗")
        self.assertIn("我带水果", text)
        for name in ("is_wake", "is_at_or_wake_command", "call_llm"):
            self.assertEqual(getattr(event, name), before[name])
        self.assertFalse(event.is_stopped())
        self.assertIsNone(event.get_result())

    async def test_lists_and_switches_win(self) -> None:
        event = await self.heard("今天去爬山吗")
        self.switch(event)
        for switch in ("off", "pause"):
            state, scope = self.plugin._state, self.scope(event)
            state.switch(scope, on=False) if switch == "off" else state.pause(scope, 60.0)
            await self.heard("明天去爬山吗")
            self.assertEqual(await self.text(), "")
            state.switch(scope, on=True)
        denied = await self.start(privacy={"deny_chats": [CHAT]})
        self.assertFalse(denied.listens(event))

    async def test_refused_where_each_member_has_a_session(self) -> None:
        for is_isolated in (True, False):
            event = await self.event(text="/hindsight listen on")
            event.role = "admin"
            if is_isolated:
                HOST.isolate(event)
            told = "".join([text async for text in self.plugin.answer(event, "listen on")])
            self.assertEqual(ZH("listen_isolated") in told, is_isolated, told)
            self.assertEqual(self.plugin.listens(event), not is_isolated)

    async def test_turn_and_line_are_one(self) -> None:
        first = await self.event()
        self.switch(first)
        await self.heard("今天去爬山吗", BEN)
        event = await self.event()
        event.is_at_or_wake_command = True
        await self.handle(event)
        await self.whole(event)
        uncalled = await self.heard("谁知道路怎么走")
        await self.plugin._listening.flush()
        await self.begin(uncalled)
        await self.request(uncalled)
        await self.done(uncalled, text="从东门走")
        text = await self.text()
        for words in ("今天去爬山吗", "我喜欢喝绿茶", ANSWER, "谁知道路怎么走", "从东门走"):
            self.assertEqual(text.count(words), 1, text)

    async def test_failure_stops_nothing_and_is_logged(self) -> None:
        event = await self.heard("今天去爬山吗")
        self.switch(event)
        with (
            mock.patch.object(self.plugin._listening, "hear", side_effect=ValueError),
            mock.patch.object(main.logger, "error") as error,
        ):
            for _ in range(main.LOG_EVERY):
                await self.heard("明天去爬山吗")
        self.assertEqual(error.call_count, 1)
        self.assertTrue(error.call_args.kwargs["exc_info"])
        with mock.patch.object(self.plugin._reception, "message", side_effect=ValueError):
            await self.heard("后天去爬山吗")
            self.assertEqual(await self.text(), "")
        with mock.patch.object(self.plugin, "listens", side_effect=ValueError):
            self.assertFalse(main.SaidWhereTheGroupListens().filter(event, self.config))

    async def test_over_a_reload(self) -> None:
        event = await self.heard("今天去爬山吗")
        self.switch(event)
        await self.heard("明天去爬山吗")
        await self.plugin.terminate()
        await self.heard("后天去爬山吗")
        successor = await self.start()
        await self.heard("大后天去爬山吗")
        await successor._listening.flush()
        await successor._parts.delivery.step()
        text = "\n".join(await self.stored(successor))
        for words in ("明天", "后天", "大后天"):
            self.assertIn(f": {words}去爬山吗", text)

    async def test_notices_and_handlers(self) -> None:
        event = await self.heard("今天去爬山吗")
        self.switch(event)
        for kind in ("group_increase", "notify"):
            make = shapes.onebot_happening("notice", group=True, notice_type=kind)
            await self.handle(await make(HOST, ANN))
        self.assertEqual(await self.text(), "")
        for name in ("listen", "note_withdrawn"):
            full = f"{main.__name__}_{name}"
            self.assertIsNotNone(star_handlers_registry.get_handler_by_full_name(full))


class WithdrawnTest(ListeningCase):
    async def test_heard_line(self) -> None:
        event = await self.heard("今天去爬山吗")
        self.switch(event)
        for moment in ("before", "after"):
            await self.heard(f"说错了{moment}", message_id=len(moment))
            await self.heard(f"没说错{moment}", BEN, message_id=len(moment) + 100)
            if moment == "after":
                await self.plugin._listening.flush()
            self.clock.now += 1.0
            await self.withdrawn(len(moment))
            text = await self.text()
            self.assertNotIn(f"说错了{moment}", text)
            self.assertIn(f"没说错{moment}", text)

    async def test_turn_while_the_model_works_and_after(self) -> None:
        for number, moment in enumerate(("before", "after"), start=71):
            make = shapes.onebot("group", message_id=number)
            said = Said(ANN.sender, ANN.name, ANN.chat, f"密码箱在阁楼{moment}")
            event = await make(HOST, said)
            await self.begin(event)
            await self.request(event)
            self.clock.now += 1.0
            if moment == "before":
                await self.withdrawn(number, operator_id=int(BEN.sender))
            await self.done(event)
            if moment == "after":
                self.assertIn("密码箱", "".join(await self.stored()))
                await self.withdrawn(number)
                eraser = self.plugin._parts.stored.eraser
                await eraser._continue(self.scope(event).chat)
            texts = "".join(await self.stored())
            self.assertNotIn("密码箱", texts)
            self.assertNotIn(ANSWER, texts)

    async def test_follow_up(self) -> None:
        event = await self.event()
        await self.begin(event)
        await self.request(event)
        make = shapes.onebot("group", message_id=88)
        follow_up = await make(HOST, Said(ANN.sender, ANN.name, ANN.chat, "密码是四个八"))
        await self.plugin.note_follow_up(follow_up)
        await self.withdrawn(88)
        told = SimpleNamespace(role="tool", content="密码是四个八")
        answer = SimpleNamespace(role="assistant", content=ANSWER, tool_calls=None)
        response = LLMResponse(role="assistant", completion_text=ANSWER)
        await self.plugin.remember(event, SimpleNamespace(messages=[told, answer]), response)
        text = await self.text()
        self.assertIn("我喜欢喝绿茶", text)
        self.assertNotIn("四个八", text)
        self.assertNotIn(ANSWER, text)

    async def test_the_bots_own_message_is_nobodys(self) -> None:
        bot = Said(shapes.BOT, "小助手", CHAT)
        withdraw = mock.AsyncMock()
        with mock.patch.object(self.plugin, "withdraw", withdraw):
            await self.withdrawn(5, bot)
            make = shapes.onebot_happening(
                "notice", group=False, notice_type="friend_recall", message_id=5
            )
            await self.handle(await make(HOST, bot))
            withdraw.assert_not_awaited()
            await self.withdrawn(5)
            withdraw.assert_awaited_once()

    async def test_failing_disk_and_failure(self) -> None:
        faults = mock.AsyncMock(side_effect=[OSError, OSError, None])
        with mock.patch.object(self.plugin, "withdraw", faults):
            event = await self.withdrawn(5)
        self.assertEqual(faults.await_count, 3)
        with mock.patch.object(self.plugin, "withdraw", side_effect=ValueError):
            event = await self.withdrawn(5)
        self.assertFalse(event.is_stopped())
        await asyncio.sleep(0)
