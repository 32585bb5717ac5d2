"""The self-test looks without touching anything, and tries without touching a real chat."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.scope import MADE_UP, Skip, chat_tags
from astrbot_plugin_hindsight_memory.texts import Texts
from astrbot_plugin_hindsight_memory.transcript import new_document_id
from commands_case import CAT, LANGUAGES, TEA, CommandsCase
from support import reply, until

ZH = Texts("zh")
LINES = ("self_test_stored", "self_test_own", "self_test_apart", "self_test_gone")


class SelfTestCase(CommandsCase):
    async def look(self, words: str = "selftest", **changes: Any) -> str:
        self.clock.now += 61
        return await self.ask(words, is_admin=True, **changes)

    def assert_read_only(self) -> None:
        self.assertEqual({request.method for request in self.bank.requests}, {"GET"})


class LookTest(SelfTestCase):
    async def test_all_is_well(self) -> None:
        self.bank.store(self.scope(), TEA)
        self.bank.store(self.private_scope(), CAT)
        self.bank.conclude(self.scope(), "x")
        self.bank.config = {"enable_observations": True}
        for language in LANGUAGES:
            answer = await self.look(language=language)
            self.assertNotIn("✗", answer)
            texts = Texts(language)
            self.assertIn(f"✓ {texts('self_test_chats', documents=2, chats=2)}", answer)
            self.assertIn(texts("self_test_more"), answer)
        self.assert_read_only()

    async def test_what_is_not_ours(self) -> None:
        self.bank.store(self.scope(), TEA)
        self.bank.memories["u"] = {"id": "u", "text": "x", "type": "world", "tags": []}
        self.bank.documents["n"] = {"id": "n", "tags": ["notes"]}
        self.bank.documents["m"] = {"id": "m", "tags": ["scope:group", "platform:x", "umo:1", "y"]}
        answer = await self.look()
        self.assertIn(f"✗ {ZH('self_test_untagged', number=1)}", answer)
        self.assertIn(ZH("self_test_untagged_advice"), answer)
        self.assertIn(f"✗ {ZH('self_test_foreign', number=2)}", answer)

    async def test_settings_that_do_not_suit(self) -> None:
        self.bank.config = {"enable_observations": False, "retain_mission": None}
        answer = await self.look()
        names = "retain_mission，enable_observations"
        self.assertIn(f"✗ {ZH('self_test_settings_other', list=names)}", answer)

    async def test_key_that_may_not_read_the_settings(self) -> None:
        self.bank.fail(reply(403), "config")
        self.assertIn(f"? {ZH('setup_forbidden')}", await self.look())

    async def test_skew(self) -> None:
        self.client.skew_seconds = 90.4
        self.assertIn(f"✗ {ZH('self_test_skew_found', seconds=90)}", await self.look())
        self.client.skew_seconds = -3.0
        self.assertIn(f"✓ {ZH('self_test_skew_found', seconds=-3)}", await self.look())

    async def test_failures_change_nothing(self) -> None:
        item: dict[str, Any] = {"document_id": new_document_id(self.scope().chat)}
        item |= {"content": TEA, "timestamp": "", "tags": list(self.scope().tags)}
        self.bank.records["f"] = {"status": "failed", "error": "x", "item": item}
        answer = await self.look()
        self.assertIn(ZH("self_test_extraction_failed", number=1, facts=0), answer)
        self.bank.store(self.scope(), TEA, document_id=str(item["document_id"]))
        self.assertIn(f"✓ {ZH('self_test_extraction_good')}", await self.look())
        self.assertIn("f", self.bank.records)
        self.assert_read_only()

    async def test_server_that_fails(self) -> None:
        self.bank.fail(reply(503))
        answer = await self.look()
        self.assertIn(f"? {ZH('self_test_tags')}: {ZH('overloaded')}", answer)

    async def test_without_settings_and_where_there_is_no_chat(self) -> None:
        self.assertIn("✓", await self.look(scope=Skip.NO_SENDER))
        self.build(api_key="")
        answer = await self.look()
        self.assertIn(f"✗ {ZH('api_key_missing')}", answer)

    async def test_usage_and_rights(self) -> None:
        self.assertEqual(await self.look("selftest everything"), ZH("self_test_usage"))
        self.assertEqual(await self.ask("selftest full"), ZH("needs_admins"))


class TrialTest(SelfTestCase):
    def lines(self, answer: str) -> dict[str, str]:
        """The sign before each of the four lines."""
        signs = {line[2:]: line[:1] for line in answer.splitlines()}
        return {key: signs[ZH(key)] for key in LINES}

    def stored(self) -> list[frozenset[str]]:
        """Tags of everything that was sent to be stored."""
        bodies = [r for r in self.bank.requests if r.url.path.endswith("/memories")]
        items = [item for r in bodies for item in json.loads(r.content)["items"]]
        return [frozenset(item["tags"]) for item in items]

    async def trial(self) -> str:
        return await self.look("selftest full")

    async def test_all_is_well(self) -> None:
        self.bank.store(self.scope(), TEA)
        self.bank.used = 7, 1000
        answer = await self.trial()
        self.assertEqual(self.lines(answer), dict.fromkeys(LINES, "✓"))
        self.assertIn(ZH("self_test_cost_model", calls=0, tokens=0), answer)
        self.assertEqual(list(self.bank.texts(self.scope())), [TEA])
        self.assertEqual(len(self.bank.documents), 1)
        self.assertEqual(len(self.bank.records), 0)

    async def test_no_real_chat_can_have_these_tags(self) -> None:
        await self.trial()
        sets = self.stored()
        self.assertEqual(len(set(sets)), 2)
        for tags in sets:
            self.assertIsNotNone(chat_tags(tags))
            self.assertIn(f"platform:{MADE_UP}", tags)
        self.assertEqual(set.intersection(*map(set, sets)), {f"platform:{MADE_UP}"})

    async def test_server_that_does_not_keep_chats_apart(self) -> None:
        self.bank.careless = True
        self.assertEqual(self.lines(await self.trial())["self_test_apart"], "✗")

    async def test_server_that_finds_nothing(self) -> None:
        self.bank.fail(reply(content={"results": []}), "recall")
        signs = self.lines(await self.trial())
        self.assertEqual(signs["self_test_own"], "✗")
        self.assertEqual(signs["self_test_stored"], "✓")

    async def test_server_that_fails_is_cleaned_up_all_the_same(self) -> None:
        self.bank.fail(reply(500), "recall")
        answer = await self.trial()
        signs = self.lines(answer)
        self.assertEqual(signs["self_test_stored"], "✗")
        self.assertEqual((signs["self_test_own"], signs["self_test_apart"]), ("?", "?"))
        self.assertIn(ZH("server_error"), answer)
        self.assertEqual(self.bank.documents, {})

    async def test_what_cannot_be_deleted_now_is_deleted_later(self) -> None:
        self.bank.fail(reply(500), "documents", "DELETE")
        self.assertEqual(self.lines(await self.trial())["self_test_gone"], "✗")
        self.assertEqual(len(self.bank.documents), 2)
        self.bank.heal()
        await self.all_erased()
        self.assertEqual(self.bank.documents, {})

    async def test_killed_in_the_middle(self) -> None:
        self.bank.gate.clear()
        task = asyncio.create_task(self.trial())
        await until(lambda: self.bank.waiting)  # the model's use
        self.bank.gate.set()
        await until(lambda: self.bank.documents)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await self.delivery.aclose()
        self.build()
        await self.all_erased()
        self.assertEqual(self.bank.documents, {})
