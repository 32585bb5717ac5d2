"""AstrBot's own features around a message, and what becomes of it in memory."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from rig.model import Body, last_user_message, memory_blocks, texts
from rig.onebot import at_segment, text_segment
from rig.polling import PATIENCE, eventually
from test_remembers import DRINK, IMAGE, QUESTION, ChatTest

TOOLS = Path(__file__).parent / "plugins" / "rig_tools"
LINE = r"(?m)^\S+#[0-9a-f]{6} \(\S+\): "
HOST_TEXTS = (
    "<system_reminder>",
    "PREFIX",
    "SUFFIX",
    "CAPTION",
    "TOOLRESULT",
    "ADDED",
    "let me check",
)
"""What AstrBot, tools and other plugins put around the words of people."""

Json = dict[str, Any]


def whole_text(body: Body) -> str:
    """All text of a request."""
    return "\n".join(text for message in body["messages"] for text in texts(message))


class HostTest(ChatTest):
    """What the live tests with AstrBot's own features have in common."""

    def setUp(self) -> None:
        super().setUp()
        self.model.script = None

    async def logged(self, text: str) -> None:
        """Awaits that AstrBot has done something, as its log tells."""
        await eventually(lambda: text in self.bot.log(), PATIENCE, f"{text} in the log")

    async def assert_nothing_of_the_host(self) -> None:
        """Fails if something that no person and no bot has said is in what was sent."""
        sent = [r.body.decode() for r in [*self.recalls(), *self.retains()]]
        stored = [d["original_text"] for d in await self.bank.documents(texts=True)]
        for text in HOST_TEXTS:
            with self.subTest(text):
                self.assertEqual([one for one in [*sent, *stored] if text in one], [])


def provider(name: str, *modalities: str) -> Json:
    """A chat model for AstrBot's configuration: the rig's, by another name."""
    return {
        "id": name,
        "provider_source_id": "stub-source",
        "model": name,
        "enable": True,
        "modalities": ["text", *modalities],
    }


class SettingsTest(HostTest):
    """AstrBot's settings that change what the model gets and how it answers."""

    options: ClassVar[Json] = {
        "overrides": {
            "provider": [provider("stub", "tool_use"), provider("eyes", "image")],
            "provider_settings": {
                "prompt_prefix": "PREFIX {{prompt}} SUFFIX",
                "identifier": True,
                "default_image_caption_provider_id": "eyes",
            },
            "provider_ltm_settings": {"group_icl_enable": True},
            "platform_settings": {
                "segmented_reply": {"enable": True, "interval": "0.05,0.1"},
            },
        }
    }

    def setUp(self) -> None:
        super().setUp()
        self.model.script = lambda _: "好的"

    async def test_prompt_template_is_neither_asked_nor_stored(self) -> None:
        await self.bot.onebot.ask_private(41101, DRINK)
        self.assertIn("PREFIX", whole_text(self.model.requests[-1]))
        self.assertIn("<system_reminder>", whole_text(self.model.requests[-1]))
        document = await self.stored("冰美式")
        self.assertRegex(document["original_text"], LINE + DRINK)
        await self.bot.onebot.ask_private(41101, QUESTION)
        self.assertIn("冰美式", "".join(memory_blocks(self.model.requests[-1])))
        self.assertEqual(self.recalls()[-1].json["query"].count(QUESTION), 1)
        await self.assert_nothing_of_the_host()

    async def test_what_others_said_in_the_group_is_the_models_only(self) -> None:
        onebot = self.bot.onebot
        await onebot.group(71102, 41102, "旁人说的闲话", at=False, card="小红")
        await self.logged("group_chat_context | onebot1:GroupMessage:71102 | ")
        await onebot.ask_group(71102, 41103, "我想去看极光", card="小明")
        self.assertIn("旁人说的闲话", whole_text(self.model.requests[-1]))
        await self.stored("我想去看极光")
        await self.not_stored("旁人说的闲话")
        await self.assert_nothing_of_the_host()

    async def test_segmented_reply_is_stored_once_in_full(self) -> None:
        answer = "第一句话。第二句话。第三句话。"
        self.model.script = lambda _: answer
        onebot = self.bot.onebot
        await onebot.private(41104, "讲三句话")
        said = [(await onebot.reply(target=("private", 41104))).text for _ in range(3)]
        self.assertEqual("".join(said).replace("。", ""), answer.replace("。", ""))
        document = await self.stored("讲三句话")
        self.assertEqual(document["original_text"].count(answer), 1)
        self.assertEqual(len(document["original_text"].splitlines()), 2)

    async def test_caption_of_a_picture_is_the_models_only(self) -> None:
        self.model.script = lambda body: "CAPTION" if body["model"] == "eyes" else "好的"
        await self.bot.onebot.ask_private(41105, [IMAGE, text_segment("这是我家的猫")])
        self.assertIn("CAPTION", whole_text(self.model.requests[-1]))
        document = await self.stored("这是我家的猫")
        self.assertRegex(document["original_text"], LINE + r"\[图片\] 这是我家的猫")
        await self.assert_nothing_of_the_host()

    async def test_web_chat(self) -> None:
        await self.bot.dashboard.chat("我的狗叫旺财")
        self.assertIn("PREFIX", whole_text(self.model.requests[0]))
        document = await self.stored("旺财")
        self.assertRegex(document["original_text"], LINE + "我的狗叫旺财")
        await self.assert_nothing_of_the_host()


class ConversationTest(HostTest):
    """Turns in which more happens than one question and one answer."""

    options: ClassVar[Json] = {"onebots": 2, "extra_plugins": [TOOLS]}

    async def test_two_bots_in_one_group(self) -> None:
        first, second = self.bot.onebots
        await first.ask_group(73101, 43101, "我养了一只乌龟", card="小明")
        mention = [at_segment(second.self_id), text_segment(" 和它的 10002 都记一下：我养了鹦鹉")]
        await first.ask_group(73101, 43101, mention, card="小明")
        await second.ask_group(73101, 43101, "我养了一只刺猬", card="小明")
        await self.stored("鹦鹉")
        await self.stored("刺猬")
        ask = "我养了什么？"
        block = await self.block_for(lambda: first.ask_group(73101, 43101, ask))
        self.assertIn("乌龟", block)
        self.assertNotIn("刺猬", block)
        block = await self.block_for(lambda: second.ask_group(73101, 43101, ask))
        self.assertIn("刺猬", block)
        self.assertNotIn("乌龟", block)
        sent = "".join(r.body.decode() for r in [*self.recalls(), *self.retains()])
        for bot in (first, second):
            self.assertNotIn(str(bot.self_id), sent)

    async def test_echoed_block_is_cut(self) -> None:
        onebot = self.bot.onebot
        await onebot.ask_private(43102, DRINK)
        await self.stored("冰美式")
        self.model.clear()
        reply = await onebot.ask_private(43102, f"ECHO_BLOCK {QUESTION}")
        self.assertIn("冰美式", "".join(memory_blocks(self.model.requests[-1])))
        self.assertEqual(reply, "好的")
        await self.assert_no_block_is_kept()

    async def test_echoed_block_is_cut_where_it_was_streamed(self) -> None:
        dashboard = self.bot.dashboard
        first = await dashboard.chat("我的兔子叫雪球，请记住")
        await self.stored("雪球")
        self.model.clear()
        await dashboard.chat("ECHO_BLOCK 我的兔子叫什么？", first.session)
        self.assertIn("雪球", "".join(memory_blocks(self.model.requests[-1])))
        await self.assert_no_block_is_kept()

    async def assert_no_block_is_kept(self) -> None:
        await self.stored("ECHO_BLOCK")
        await self.not_stored("hindsight_memory")
        saved = str(self.bot.conversations())
        self.assertIn("ECHO_BLOCK", saved)
        self.assertNotIn("hindsight_memory", saved)

    async def test_message_that_a_running_agent_takes_in(self) -> None:
        self.model.script = lambda body: (
            "都办好了" if body["messages"][-1]["role"] == "tool" else None
        )
        await self.say_meanwhile(43103, "HOLD TOOL:look_up {} 查一下车票", "对了，我不吃香菜")
        await self.answered(self.bot.onebot, 43103, "都办好了")
        self.assertEqual(len(self.model.requests), 2)
        self.assertIn("我不吃香菜", whole_text(self.model.requests[-1]))
        document = await self.stored("我不吃香菜")
        text = document["original_text"]
        self.assertEqual(len(text.splitlines()), 3, text)
        self.assertRegex(text, LINE + "HOLD TOOL:look_up")
        self.assertRegex(text, LINE + "对了，我不吃香菜\n")
        await self.assert_stored_once("我不吃香菜")
        await self.assert_nothing_of_the_host()

    async def test_message_that_comes_too_late_for_the_agent(self) -> None:
        """No tool result follows, so AstrBot answers it by itself, and it is its own turn."""
        await self.say_meanwhile(43104, "HOLD 先说第一件事", "再说第二件事")
        await eventually(lambda: len(self.model.requests) > 1, PATIENCE, "a second request")
        await self.stored("再说第二件事")
        await self.assert_stored_once("先说第一件事", answers=1)
        await self.assert_stored_once("再说第二件事", answers=1)

    async def test_what_other_plugins_add_is_the_models_only(self) -> None:
        self.model.script = lambda _: "好的"
        await self.bot.onebot.ask_private(43105, "LOOK OVER 我的驾照在抽屉里")
        given = texts(last_user_message(self.model.requests[-1]))
        self.assertIn("ADDED to the prompt", given[0])
        self.assertRegex(given[-1], "^ADDED ")
        document = await self.stored("驾照")
        self.assertRegex(document["original_text"], LINE + "LOOK OVER 我的驾照在抽屉里\n")
        await self.assert_nothing_of_the_host()

    async def test_recall_goes_on_while_other_plugins_work(self) -> None:
        onebot, go_on = self.bot.onebot, Path(self.enterContext(TemporaryDirectory())) / "go on"
        self.model.script = lambda _: "好的"
        await onebot.ask_private(43106, "我的船叫海鸥号，请记住")
        await self.stored("海鸥号")
        self.proxy.clear()
        self.model.clear()
        await onebot.private(43106, f"LOOK OVER UNTIL {go_on.parent} 我的船叫什么？")
        await eventually(self.recalls, PATIENCE, "a recall while the other plugin works")
        self.assertEqual(self.model.requests, [])
        go_on.touch()
        await onebot.reply(target=("private", 43106))
        given = texts(last_user_message(self.model.requests[-1]))
        self.assertRegex(given[-2], "^ADDED ")
        self.assertRegex(given[-1], r"(?s)^<hindsight_memory.*海鸥号")
        self.assertEqual(len(self.recalls()), 1)

    async def say_meanwhile(self, who: int, first: str, second: str) -> None:
        """Says something, and something more while the model is held by the first."""
        await self.bot.onebot.private(who, first)
        await eventually(lambda: self.model.requests, PATIENCE, "a request to the model")
        await self.bot.onebot.private(who, second)
        captured = (
            f"Captured follow-up message for active agent run, umo=onebot1:FriendMessage:{who},"
        )
        await self.logged(captured)
        self.model.let_go()

    async def answered(self, onebot: Any, who: int, text: str) -> None:
        """Awaits an answer, past what the bot says before it."""
        while (await onebot.reply(target=("private", who))).text != text:
            pass

    async def assert_stored_once(self, text: str, *, answers: int = 0) -> None:
        """Fails unless a person's line holds a text once, and so many answers repeat it."""
        marker = f"之后{id(text)}"
        await self.bot.onebot.ask_private(49999, marker)
        await self.stored(marker)
        stored = "\n".join(d["original_text"] for d in await self.bank.documents(texts=True))
        self.assertEqual(stored.count(text), 1 + answers, stored)
