"""Personas that have a memory of their own in a chat."""

from __future__ import annotations

import re
import unittest
from types import SimpleNamespace
from typing import Any
from unittest import mock

import httpx
import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory import scope as scope_module
from astrbot_plugin_hindsight_memory.personas import Personas
from astrbot_plugin_hindsight_memory.scope import STATE_FILE, Scope, Skip
from astrbot_plugin_hindsight_memory.texts import Texts
from commands_case import CAT, LANGUAGES, TEA, CommandsCase
from fake_events import FakeEvent
from support import group_origin, make_settings

CAT_GIRL, BUTLER = "猫娘", "butler"


class InForceTest(unittest.IsolatedAsyncioTestCase):
    """What AstrBot says, and what it comes to."""

    def setUp(self) -> None:
        self.resolved: str | None = "default"
        self.default = "default"
        self.conversation: Any = SimpleNamespace(persona_id=None)
        manager = mock.Mock()
        manager.personas_v3 = [{"name": n} for n in ("default", CAT_GIRL, BUTLER)]
        manager.resolve_selected_persona = mock.AsyncMock(
            side_effect=lambda **_: (self.resolved, None, None, False)
        )
        manager.get_default_persona_v3 = mock.AsyncMock(
            side_effect=lambda _: {"name": self.default}
        )
        conversations = mock.Mock()
        conversations.get_curr_conversation_id = mock.AsyncMock(side_effect=lambda _: "c")
        conversations.get_conversation = mock.AsyncMock(side_effect=lambda *_: self.conversation)
        self.context = mock.Mock(persona_manager=manager, conversation_manager=conversations)
        self.context.get_config = lambda **_: {"provider_settings": {}}
        self.event = FakeEvent()

    async def in_force(self) -> str:
        return await Personas(self.context).in_force(self.event)

    async def test_default_none_and_deleted_are_the_chat_itself(self) -> None:
        for name in ("default", None, "[%None]", "_chatui_default_", "deleted"):
            self.resolved = name
            self.assertEqual(await self.in_force(), "")

    async def test_chosen(self) -> None:
        self.resolved = CAT_GIRL
        self.assertEqual(await self.in_force(), CAT_GIRL)

    async def test_default_of_the_profile(self) -> None:
        self.default = self.resolved = CAT_GIRL
        self.assertEqual(await self.in_force(), "")
        self.resolved = "default"
        self.assertEqual(await self.in_force(), "default")

    async def test_without_a_conversation_yet(self) -> None:
        self.context.conversation_manager.get_curr_conversation_id.side_effect = lambda _: None
        await self.in_force()
        asked = self.context.persona_manager.resolve_selected_persona.call_args.kwargs
        self.assertIsNone(asked["conversation_persona_id"])

    async def test_no_database_where_astrbot_has_noted_it(self) -> None:
        self.event.extras["_trace_persona_id"] = BUTLER
        self.assertEqual(await self.in_force(), BUTLER)
        self.context.conversation_manager.get_conversation.assert_not_called()


class PersonaCase(CommandsCase):
    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.build(separate_personas=True)

    async def of(self, persona: str, group: str = "70001") -> Scope:
        scope = await self.bindings.meet(self.bindings.scope(group_origin(group), persona))
        assert isinstance(scope, Scope)
        return scope

    async def wipe(self, words: str, scope: Scope) -> str:
        asked = await self.ask(words, scope)
        (typed,) = re.findall(r"/hindsight (wipe [0-9a-z ]+)", asked)
        return await self.ask(typed, scope)


class ScopeTest(PersonaCase):
    async def test_each_persona_has_tags_of_its_own_in_the_same_room(self) -> None:
        scopes = [await self.of(one) for one in ("", CAT_GIRL, BUTLER)]
        self.assertEqual(scopes[0], self.scope())
        self.assertEqual(len({one.chat for one in scopes}), 3)
        self.assertEqual(len({one.tags for one in scopes}), 3)
        self.assertEqual({one.tags[:3] for one in scopes}, {scopes[0].tags[:3]})
        self.assertEqual({one.room for one in scopes}, {scopes[0].chat})
        elsewhere = await self.of(CAT_GIRL, "70002")
        self.assertNotIn(elsewhere.tags[3], {one.tags[3] for one in scopes})

    async def test_switches_optouts_and_pseudonyms_are_the_chats(self) -> None:
        default, girl = await self.of(""), await self.of(CAT_GIRL)
        self.state.switch(girl, on=False)
        self.state.opt(girl, "1", out=True, everywhere=False)
        self.assertTrue(self.state.is_off(default) and self.state.is_opted_out(default, "1"))
        assert self.state.hasher
        self.assertEqual(*(self.state.hasher.pseudonym(one, "1") for one in (default, girl)))
        self.assertEqual(self.caller(default).key, self.caller(girl).key)

    async def test_reads_always_match_on_the_persona(self) -> None:
        settings = make_settings(separate_personas=True, recall={"match_umo": False})
        self.assertTrue(settings.recall.match_umo)
        self.assertFalse(make_settings(recall={"match_umo": False}).recall.match_umo)

    async def test_only_hashes_on_the_disk_and_there_before_anything_is_stored(self) -> None:
        await self.of(CAT_GIRL)
        await self.of(CAT_GIRL)
        text = (self.folder / STATE_FILE).read_text("utf-8")
        self.assertNotIn(CAT_GIRL, text)
        self.assertNotIn("猫", text.encode().decode("unicode_escape"))
        self.build(separate_personas=True)
        self.assertEqual(len(self.bindings.memories(self.scope())), 2)

    async def test_persona_that_cannot_be_noted_has_no_memory(self) -> None:
        with mock.patch.object(scope_module, "write_private", side_effect=OSError):
            scope = await self.bindings.meet(self.bindings.scope(group_origin(), BUTLER))
        self.assertIs(scope, Skip.STATE_FAULT)

    async def test_persona_of_a_chat_that_is_bound(self) -> None:
        girl = await self.of(CAT_GIRL)
        self.bindings.bind_bot("new", "bot")
        place = group_origin(umo="new:GroupMessage:70001")
        again = self.bindings.scope(place, CAT_GIRL)
        assert isinstance(again, Scope)
        self.assertEqual((again.tags, again.chat, again.room), (girl.tags, girl.chat, girl.room))
        assert again.own
        self.assertNotEqual(again.own.tags, again.tags)


class MemoryTest(PersonaCase):
    async def test_what_is_said_to_one_is_not_recalled_by_another(self) -> None:
        default, girl, butler = [await self.of(one) for one in ("", CAT_GIRL, BUTLER)]
        self.bank.store(default, CAT)
        self.bank.store(girl, TEA)
        for careless in (False, True):
            self.bank.careless = careless
            self.assertIn("绿茶", await self.recall(scope=girl))
            for other in (default, butler):
                self.assertNotIn("绿茶", await self.recall(scope=other))
        self.assertIn("猫", await self.recall(scope=default))

    async def test_commands_act_on_the_persona_in_force_and_name_it(self) -> None:
        default, girl = await self.of(""), await self.of(CAT_GIRL)
        self.bank.store(default, CAT)
        self.bank.store(girl, TEA)
        for language in LANGUAGES:
            texts = Texts(language)
            for words in ("list", "recall 茶", "export", "forget 没有"):
                self.clock.now += 61
                is_admin = words == "export"
                answer = await self.ask(words, girl, language=language, is_admin=is_admin)
                self.assertTrue(answer.startswith(texts("persona", name=CAT_GIRL)), answer)
                self.assertNotIn("猫，", answer)
            named = texts("persona", name=texts("persona_default"))
            self.assertTrue((await self.ask("list", default, language=language)).startswith(named))
        self.assertIn("绿茶", await self.ask("list", girl))
        self.assertNotIn("绿茶", await self.ask("list", default))

    async def test_number_of_one_persona_means_nothing_to_another(self) -> None:
        default, girl = await self.of(""), await self.of(CAT_GIRL)
        self.bank.store(girl, TEA)
        await self.ask("list 茶", girl)
        unknown = Texts("zh")("number_unknown", number=1)
        for words in ("forget 1", "correct 1 我喜欢喝水", "why 1", "forget 1 all"):
            self.clock.now += 61
            self.assertIn(unknown, await self.ask(words, default))
        self.assertNotIn("绿茶", await self.ask("list 第1页", default))
        self.assertEqual(self.bank.texts(girl), [TEA])
        self.bank.store(default, CAT)
        await self.ask("list", default)
        await self.ask("forget 1", girl)  # what it meant there
        await self.send()
        self.assertEqual((self.bank.texts(girl), self.bank.texts(default)), ([], [CAT]))

    async def test_wipe_is_of_one_and_wipe_all_of_every_persona_met(self) -> None:
        default, girl, butler = [await self.of(one) for one in ("", CAT_GIRL, BUTLER)]
        other = await self.of(CAT_GIRL, "70002")
        for one in (default, girl, butler, other):
            self.bank.store(one, TEA)
        await self.wipe("wipe", girl)
        left = [len(self.bank.texts(one)) for one in (default, girl, butler, other)]
        self.assertEqual(left, [1, 0, 1, 1])
        await self.wipe("wipe all", girl)
        left = [len(self.bank.texts(one)) for one in (default, girl, butler, other)]
        self.assertEqual(left, [0, 0, 0, 1])

    async def test_code_of_one_persona_wipes_no_other(self) -> None:
        default, girl = await self.of(""), await self.of(CAT_GIRL)
        self.bank.store(default, TEA)
        asked = await self.ask("wipe", girl)
        (code,) = re.findall(r"wipe ([0-9]{4})", asked)
        await self.ask(f"wipe {code}", default)
        self.assertEqual(len(self.bank.texts(default)), 1)

    async def test_forgetme_all(self) -> None:
        scopes = [await self.of(one) for one in ("", CAT_GIRL, BUTLER)]
        for one in scopes:
            self.bank.store(one, TEA, CAT)
        await self.confirmed("forgetme", scope=scopes[1])
        await self.send()
        self.assertEqual([self.bank.texts(one) for one in scopes][1], [CAT])
        self.assertIn("绿茶", self.bank.texts(scopes[0])[0])
        await self.confirmed("forgetme all", scope=scopes[1])
        await self.send()
        self.assertEqual([self.bank.texts(one) for one in scopes], [[CAT]] * 3)
        refused = Texts("zh")("forgetme_argument", words="茶")
        self.assertIn(refused, await self.ask("forgetme 茶", scopes[1]))

    async def test_with_the_setting_off_again_everything_of_the_chat_is_erased(self) -> None:
        self.bank.store(await self.of(CAT_GIRL), TEA)
        self.build()
        await self.wipe("wipe", self.scope())
        self.assertEqual(self.bank.documents, {})

    async def test_a_kill_in_the_middle_of_wipe_all_leaves_no_persona_out(self) -> None:
        """All wishes are on disk before the server is asked for the second time."""
        scopes = [await self.of(one) for one in ("", CAT_GIRL, BUTLER)]
        for one in scopes:
            self.bank.store(one, TEA)
        asked = await self.ask("wipe all", scopes[0])
        (typed,) = re.findall(r"/hindsight (wipe all [0-9]+)", asked)
        self.bank.fail(httpx.ConnectError("gone"))
        with mock.patch.object(self.clock, "sleep"):
            await self.ask(typed, scopes[0])
        wished = {one.chat for one in await self.outbox.erasures() if one.whole}
        self.assertEqual(wished, {one.chat for one in scopes})
        self.bank.heal()
