"""A chat or a bot whose id has changed keeps its memory, and no two chats have one."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import Any
from unittest import mock

import test_commands
from astrbot_plugin_hindsight_memory import scope as scope_module
from astrbot_plugin_hindsight_memory.aliases import Aliases, seal, unseal
from astrbot_plugin_hindsight_memory.codes import CODE_SECONDS
from astrbot_plugin_hindsight_memory.scope import STATE_FILE, Origin, Scope, ScopeState, Skip
from astrbot_plugin_hindsight_memory.texts import Texts
from commands_case import CAT, LANGUAGES, TEA, CommandsCase
from support import HASHER, group_origin, private_origin, reply, turn_of

OLD, NEW = "bot", "shiny"
OLD_GROUP = "bot:GroupMessage:70001"


def as_new(origin: Origin) -> Origin:
    """The same place under the bot's new id."""
    return group_origin(origin.group_id, umo=f"{NEW}:GroupMessage:{origin.group_id}")


class RebindCase(CommandsCase):
    """A group that was talked in under the old id, and now is under the new one."""

    def build(self, **config: Any) -> None:
        super().build(**config)
        self.old_place, self.new_place = group_origin(), as_new(group_origin())

    def at(self, place: Origin) -> Scope:
        scope = self.bindings.scope(place)
        assert isinstance(scope, Scope), scope
        return scope

    async def rebind(self, words: str, place: Origin | None = None, **changes: Any) -> str:
        place = place or self.new_place
        values: dict[str, Any] = {
            "is_admin": True,
            "place": place,
            "typed": f"rebind {words}",
        } | changes
        return await self.ask("rebind", self.bindings.scope(place), **values)

    def code(self, answer: str) -> str:
        (code,) = re.findall(r"/hindsight rebind ([0-9]{4})", answer)
        return str(code)

    async def confirm(self, words: str, place: Origin | None = None) -> str:
        return await self.rebind(self.code(await self.rebind(words, place)), place)

    def on_disk(self) -> bytes:
        return (self.folder / STATE_FILE).read_bytes()


class BotTest(RebindCase):
    async def test_memory_switches_optouts_and_pseudonyms_are_the_old_ones(self) -> None:
        old = self.at(self.old_place)
        self.bank.store(old, TEA)
        self.state.opt(old, "20001", out=True, everywhere=False)
        self.state.switch(old, on=False)
        assert self.state.hasher
        pseudonym = self.state.hasher.pseudonym(old, "20001")
        before = self.at(self.new_place)
        self.assertFalse(self.state.is_off(before) or self.state.is_opted_out(before, "20001"))
        self.assertEqual(await self.confirm("bot bot"), Texts("zh")("rebind_done"))
        now = self.at(self.new_place)
        self.assertEqual((now.chat, now.tags, now.room), (old.chat, old.tags, old.room))
        self.assertTrue(self.state.is_off(now) and self.state.is_opted_out(now, "20001"))
        self.assertEqual(self.state.hasher.pseudonym(now, "20001"), pseudonym)
        self.assertIn("绿茶", await self.ask("list", now))

    async def test_chats_that_were_not_met_are_bound_too(self) -> None:
        elsewhere, private = group_origin("70009"), private_origin()
        old = [self.at(elsewhere), self.at(private)]
        self.at(self.new_place)
        await self.confirm("bot bot")
        new = [
            self.at(as_new(elsewhere)),
            self.at(private_origin(umo=f"{NEW}:FriendMessage:20001")),
        ]
        self.assertEqual([one.chat for one in new], [one.chat for one in old])

    async def test_works_offline_and_after_a_restart(self) -> None:
        old = self.at(self.old_place)
        code = self.code(await self.rebind("bot bot"))
        self.bank.fail(reply(503))
        answer = await self.rebind(code)
        self.assertIn(Texts("zh")("rebind_done"), answer)
        self.assertEqual(self.at(self.new_place).chat, old.chat)
        self.build()
        self.assertEqual(self.at(self.new_place).chat, old.chat)

    async def test_raw_ids_are_not_on_the_disk(self) -> None:
        self.old_place = group_origin(umo="qq-12345678:GroupMessage:70001")
        await self.confirm("bot qq-12345678")
        self.assertEqual(self.at(self.new_place).chat, self.at_own(self.old_place).chat)
        for name in ("qq-12345678", NEW, "70001"):
            self.assertNotIn(name.encode(), self.on_disk())

    def at_own(self, place: Origin) -> Scope:
        assert self.state.hasher
        scope = self.state.hasher.scope(place)
        assert isinstance(scope, Scope)
        return scope

    async def test_dry_run_tells_what_there_is_and_changes_nothing(self) -> None:
        self.bank.store(self.at(self.old_place), TEA)
        for _ in range(2):
            self.bank.store(self.at(self.new_place), CAT)
        before = self.on_disk()
        for language in LANGUAGES:
            answer = await self.rebind("bot bot", language=language)
            expected = Texts(language)(
                "rebind_found_bot", chats=1, older=1, own=2, code=self.code(answer), seconds=60
            )
            self.assertEqual(answer, expected)
        self.assertEqual(self.on_disk(), before)
        self.assertEqual({r.method for r in self.bank.requests}, {"GET"})

    async def test_undo_leaves_the_state_as_it_was_to_the_byte(self) -> None:
        self.state.pause(self.at(self.old_place), 60)
        self.state.opt(self.at(self.old_place), "5", out=True, everywhere=True)
        for words in ("bot bot", f"chat {OLD_GROUP}"):
            with self.subTest(words):
                before, own = self.on_disk(), self.at(self.new_place)
                await self.confirm(words)
                self.assertNotEqual(self.on_disk(), before)
                await self.rebind("undo")
                self.assertEqual(self.on_disk(), before)
                self.assertEqual(self.at(self.new_place), own)

    async def test_code_is_good_once_and_for_a_minute_and_for_one_person(self) -> None:
        code = self.code(await self.rebind("bot bot"))
        self.assertIn(
            "rebind bot", await self.rebind(code, place=replace(self.new_place, sender_id="2"))
        )
        self.clock.now += CODE_SECONDS + 1
        self.assertIn(Texts("zh")("rebind_is_free"), await self.rebind(code))
        self.assertIsNone(self.at(self.new_place).own)

    async def test_usage(self) -> None:
        for words in ("", "bot", "chat", "chat 70001", "move", "1234", "nonsense"):
            with self.subTest(words):
                self.assertIn(Texts("zh")("rebind_usage"), await self.rebind(words))

    async def test_nothing_to_bind(self) -> None:
        for words in (f"bot {NEW}", f"chat {self.new_place.umo}"):
            self.assertEqual(await self.rebind(words), Texts("zh")("rebind_same"))
        await self.confirm("bot bot")
        self.assertEqual(await self.rebind("bot other"), Texts("zh")("rebind_already"))

    async def test_bot_that_changes_again_finds_the_first_memory(self) -> None:
        old = self.at(self.old_place)
        await self.confirm("bot bot")
        third = group_origin(umo="third:GroupMessage:70001")
        self.assertEqual(await self.rebind(f"bot {NEW}", third), Texts("zh")("rebind_active"))
        await self.rebind("undo")
        await self.confirm("bot bot", third)
        self.assertEqual(self.at(third).chat, old.chat)


class ChatTest(RebindCase):
    async def test_another_group_number(self) -> None:
        old = self.at(self.old_place)
        self.bank.store(old, TEA)
        new = group_origin("80001")
        self.clock.now += 2 * 3600
        await self.confirm(f"chat {OLD_GROUP}", new)
        self.assertEqual(self.at(new).tags, old.tags)
        self.assertIsNone(self.at(group_origin("80002")).own)

    async def test_another_adapter(self) -> None:
        """Documents tell what was stored with the session id; the id itself does not."""
        old = self.at(group_origin("-100", umo="tg:GroupMessage:-100#77", platform="telegram"))
        self.bank.store(old, TEA)
        self.clock.now += 2 * 3600
        await self.confirm("chat tg:GroupMessage:-100#77")
        now = self.at(self.new_place)
        self.assertEqual((now.tags, now.platform), (old.tags, "aiocqhttp"))

    async def test_who_has_said_no_on_either_platform_is_out(self) -> None:
        own = self.at(self.new_place)
        old = self.at(group_origin(platform="telegram"))
        self.bank.store(old, TEA)
        self.state.opt(own, "1", out=True, everywhere=True)
        self.state.opt(own, "2", out=True, everywhere=False)
        self.state.opt(old, "3", out=True, everywhere=True)
        self.state.opt(old, "4", out=True, everywhere=False)
        self.clock.now += 2 * 3600
        await self.confirm(f"chat {OLD_GROUP}")
        now = self.at(self.new_place)
        out = [person for person in "12345" if self.state.is_opted_out(now, person)]
        self.assertEqual(out, ["1", "2", "3", "4"])
        for person in "1234":
            self.state.opt(now, person, out=False, everywhere=False)
            self.assertFalse(self.state.is_opted_out(now, person))

    async def test_no_that_was_said_while_bound_holds_after_the_undo(self) -> None:
        await self.confirm("bot bot")
        bound = self.at(self.new_place)
        self.state.opt(bound, "1", out=True, everywhere=False)
        self.state.opt(bound, "2", out=True, everywhere=True)
        self.state.switch(bound, on=False)
        await self.rebind("undo")
        for scope in (self.at(self.new_place), self.at(self.old_place)):
            self.assertTrue(self.state.is_off(scope))
            out = [person for person in "123" if self.state.is_opted_out(scope, person)]
            self.assertEqual(out, ["1", "2"])

    async def test_pause_while_bound_holds_after_the_undo(self) -> None:
        await self.confirm("bot bot")
        self.state.pause(self.at(self.new_place), 60)
        await self.rebind("undo")
        self.assertTrue(self.state.is_paused(self.at(self.new_place)))
        self.state.switch(self.at(self.new_place), on=True)
        self.assertFalse(self.state.is_paused(self.at(self.new_place)))

    async def test_private_is_never_bound_to_a_group(self) -> None:
        private = private_origin(umo=f"{NEW}:FriendMessage:20001")
        answer = await self.rebind(f"chat {OLD_GROUP}", private)
        self.assertEqual(answer, Texts("zh")("rebind_other_kind"))
        old = self.at(private_origin())
        await self.confirm("chat bot:FriendMessage:20001", private)
        self.assertEqual(self.at(private).chat, old.chat)

    async def test_private_chat_of_a_new_account(self) -> None:
        old = self.at(private_origin("10001"))
        place = private_origin("20002", umo=f"{NEW}:FriendMessage:20002")
        await self.confirm("chat bot:FriendMessage:10001", place)
        self.assertEqual(self.at(place).chat, old.chat)


class TwoLiveChatsTest(RebindCase):
    """Never one memory for two, whichever way the second one comes."""

    def nobody_shares(self, *places: Origin) -> None:
        scopes = [self.bindings.scope(place) for place in places]
        chats = [one.chat for one in scopes if isinstance(one, Scope)]
        self.assertEqual(len(chats), len(set(chats)))

    async def test_bot_that_runs(self) -> None:
        self.running_bots.add(OLD)
        self.assertEqual(await self.rebind("bot bot"), Texts("zh")("rebind_active"))

    async def test_bot_that_is_started_before_the_code_is_typed(self) -> None:
        code = self.code(await self.rebind("bot bot"))
        self.running_bots.add(OLD)
        self.assertEqual(await self.rebind(code), Texts("zh")("rebind_active"))
        self.assertIsNone(self.at(self.new_place).own)

    async def test_chat_in_which_somebody_talked_lately(self) -> None:
        self.running_bots.add(OLD)
        self.at(self.old_place)
        self.assertEqual(await self.rebind(f"chat {OLD_GROUP}"), Texts("zh")("rebind_active"))
        self.clock.now += 3601
        self.assertIn("确定", await self.rebind(f"chat {OLD_GROUP}"))

    async def test_chat_with_documents_newer_than_the_first_of_the_new_one(self) -> None:
        old, new = self.at(self.old_place), self.at(self.new_place)
        self.bank.store(new, CAT)
        newer = self.bank.documents[self.bank.store(old, TEA)]
        newer["retain_params"]["event_date"] = "2026-03-04T12:00:00+00:00"
        for words in ("bot bot", f"chat {OLD_GROUP}"):
            self.assertEqual(await self.rebind(words), Texts("zh")("rebind_active"))
        newer["retain_params"]["event_date"] = "2025-03-04T12:00:00+00:00"
        self.assertIn("确定", await self.rebind("bot bot"))

    async def test_old_bot_that_comes_back_has_no_memory_until_undone(self) -> None:
        old = self.at(self.old_place)
        await self.confirm("bot bot")
        self.assertIs(self.bindings.scope(self.old_place), Skip.REBOUND)
        self.nobody_shares(self.old_place, self.new_place)
        for words in ("", "bot shiny", "move"):
            self.assertIn(Texts("zh")("rebound"), await self.rebind(words, self.old_place))
        undone = await self.rebind("undo", self.old_place)
        self.assertEqual(undone, Texts("zh")("rebind_undone_bot"))
        self.assertEqual(self.at(self.old_place).chat, old.chat)
        self.assertIsNone(self.at(self.new_place).own)

    async def test_old_chat_that_comes_back(self) -> None:
        await self.confirm(f"chat {OLD_GROUP}")
        self.assertIs(self.bindings.scope(self.old_place), Skip.REBOUND)
        await self.rebind("undo", self.old_place)
        self.nobody_shares(self.old_place, self.new_place)

    async def test_two_that_want_the_same_at_once(self) -> None:
        other = group_origin("80001", umo="other:GroupMessage:80001")
        first = self.code(await self.rebind(f"chat {OLD_GROUP}"))
        second = self.code(await self.rebind(f"chat {OLD_GROUP}", other))
        await self.rebind(first)
        self.assertEqual(await self.rebind(second, other), Texts("zh")("rebind_active"))
        self.nobody_shares(self.new_place, other, self.old_place)

    async def test_chat_and_bot_that_want_the_same(self) -> None:
        other = group_origin("80001", umo="other:GroupMessage:80001")
        await self.confirm(f"chat {OLD_GROUP}", other)
        await self.confirm("bot bot")
        self.nobody_shares(self.new_place, other, self.old_place)
        self.assertIs(self.bindings.scope(self.new_place), Skip.REBOUND)


class MoveTest(RebindCase):
    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.old, self.new = self.at(self.old_place), self.at(self.new_place)
        self.bank.store(self.old, TEA)
        self.stored = self.bank.store(self.new, CAT)

    async def bound(self) -> str:
        return await self.confirm("bot bot")

    async def moved(self) -> str:
        return await self.rebind(self.code(await self.bound()))

    async def test_only_after_a_second_code(self) -> None:
        answer = await self.bound()
        self.assertEqual(self.bank.texts(self.old), [TEA])
        self.assertEqual(self.bank.asked("PATCH"), [])
        moved = await self.rebind(self.code(answer))
        self.assertEqual(moved, Texts("zh")("rebind_moved", number=1))
        self.assertEqual(sorted(self.bank.texts(self.old)), sorted([TEA, CAT]))
        self.assertEqual(self.bank.texts(self.new), [])

    async def test_later(self) -> None:
        await self.bound()
        self.clock.now += 3600
        await self.confirm("move")
        self.assertEqual(self.bank.texts(self.new), [])
        self.assertEqual(await self.rebind("move"), Texts("zh")("rebind_nothing_to_move"))

    async def test_what_waits_is_told_and_moved_later(self) -> None:
        turn = turn_of(self.new.chat)
        await self.outbox.add([turn])
        answer = await self.moved()
        self.assertIn(Texts("zh")("rebind_waiting", number=1), answer)

    async def test_outage_on_the_way_is_told_and_the_rest_moved_later(self) -> None:
        for number in range(3):
            self.bank.store(self.new, f"第{number}句")
        code = self.code(await self.bound())
        answers = iter([None, None])

        def fails_third(request: Any) -> bool:
            return request.method == "PATCH" and next(answers, True) is True

        self.bank.fail(reply(503))
        self.bank.is_faulty = fails_third
        answer = await self.rebind(code)
        self.assertIn("2", answer)
        self.assertIn("rebind move", answer)
        self.bank.heal()
        await self.confirm("move")
        self.assertEqual(len(self.bank.texts(self.old)), 5)

    async def test_what_is_to_be_deleted_is_not_moved_out_of_reach(self) -> None:
        """A line is forgotten while the server is away, then the chat is bound and moved."""
        assert self.archive
        assert self.eraser
        memory = await self.archive.memory(self.new, f"{self.stored}.0")
        assert memory
        lines, _ = await self.archive.sources(self.new, memory)
        self.bank.fail(reply(503), method="DELETE")
        await self.eraser.remove_lines(self.new, lines)
        await self.moved()
        self.assertEqual(self.bank.texts(self.old), [TEA])
        self.bank.heal()

    async def test_wipe_finds_what_was_moved_and_what_was_left(self) -> None:
        await self.moved()
        self.bank.store(self.new, "留在新号下")
        now = self.at(self.new_place)
        other = self.bank.store(self.at(group_origin("70002", umo="x:GroupMessage:70002")), CAT)
        answer = await self.ask("wipe", now)
        await self.ask(f"wipe {re.findall(r'wipe ([0-9]+)', answer)[0]}", now)
        self.assertEqual(list(self.bank.documents), [other])
        self.assertEqual(
            [r for r in self.bank.records.values() if r["item"]["document_id"] == self.stored], []
        )

    async def test_forgetme_finds_what_was_moved_under_another_pseudonym(self) -> None:
        assert self.state.hasher
        mine = self.state.hasher.pseudonym(self.new, "20001")
        line = TEA.replace("#3fa2c1", mine).replace("绿茶", "红茶")
        self.bank.store(self.new, line)
        await self.moved()
        now = self.at(self.new_place)
        self.assertEqual(len(self.bank.texts(now)), 3)
        await self.confirmed("forgetme", scope=now)
        await self.send()
        self.assertEqual(self.bank.texts(now), [CAT])

    async def test_own_lines_may_be_forgotten_under_either_pseudonym(self) -> None:
        assert self.state.hasher
        mine = self.state.hasher.pseudonym(self.new, "20001")
        self.bank.store(self.new, TEA.replace("#3fa2c1", mine).replace("绿茶", "红茶"))
        await self.moved()
        now = self.at(self.new_place)
        await self.ask("forget 红茶", now, is_manager=False)
        answer = await self.ask("forget 1", now, is_manager=False)
        self.assertIn(Texts("zh")("forgotten"), answer)

    async def test_undo_moves_back(self) -> None:
        before = self.on_disk()
        await self.moved()
        answer = await self.rebind("undo")
        self.assertIn(Texts("zh")("rebind_undone_bot"), answer)
        await self.rebind(self.code(answer))
        self.assertEqual(self.bank.texts(self.old), [TEA])
        self.assertEqual(self.bank.texts(self.new), [CAT])
        self.assertEqual(self.on_disk(), before)

    async def test_while_everything_is_being_erased_nothing_is_moved(self) -> None:
        assert self.eraser
        code = self.code(await self.bound())
        self.bank.fail(reply(503), method="DELETE")
        await self.eraser.wipe(self.new)
        answer = await self.rebind(code)
        self.assertIn(Texts("zh")("erasing"), answer)
        self.assertEqual(self.bank.asked("PATCH"), [])
        self.bank.heal()

    async def test_move_and_wipe_at_the_same_time_leave_nothing(self) -> None:
        code = self.code(await self.bound())
        now = self.at(self.new_place)
        answer = await self.ask("wipe", now)
        wipe = f"wipe {re.findall(r'wipe ([0-9]+)', answer)[0]}"
        await asyncio.gather(self.rebind(code), self.ask(wipe, now))
        self.assertEqual(list(self.bank.documents), [])


class StateTest(RebindCase):
    async def test_damaged_aliases_keep_memory_off(self) -> None:
        await self.confirm("bot bot")
        whole = self.on_disk()
        (sealed,) = self.state.aliases.bots.values()
        for damaged in (
            whole.replace(sealed.encode(), b"00" + sealed[2:].encode()),
            whole.replace(sealed.encode(), b"xx"),
            whole.replace(b'"bots": {', b'"bots": 3, "x": {'),
            whole.replace(b'"bots": {', b'"chats": {"a": ["b"]}, "bots": {'),
        ):
            (self.folder / STATE_FILE).write_bytes(damaged)
            state = ScopeState.load(self.folder)
            self.assertEqual(state.fault, "state_unreadable")
        (self.folder / STATE_FILE).write_bytes(whole)
        self.assertIsNone(ScopeState.load(self.folder).fault)

    def test_sealed_texts(self) -> None:
        for text in ("", "a", "机器人" * 20, "\ud800", "x" * 16, "x" * 17):
            sealed = seal(text, HASHER.digest)
            self.assertEqual(unseal(sealed, HASHER.digest), text)
            self.assertRegex(sealed, r"\A[0-9a-f]+\Z")

    def test_no_aliases_leave_no_trace(self) -> None:
        self.assertEqual(Aliases().to_json(), {})
        self.assertEqual(Aliases.from_json({}), Aliases())

    async def test_disk_that_fails_changes_nothing(self) -> None:
        code = self.code(await self.rebind("bot bot"))
        with mock.patch.object(scope_module, "write_private", side_effect=OSError):
            self.assertEqual(await self.rebind(code), Texts("zh")("disk"))
        self.assertIsNone(self.at(self.new_place).own)


class Rebound(CommandsCase):
    """All of it again in chats that are bound to older ids."""

    def build(self, **config: Any) -> None:
        super().build(**config)
        if isinstance(self.group, Scope) and not self.state.aliases.bots:
            self.bindings.bind_bot(NEW, OLD)
        if isinstance(self.group, Scope):
            self.group = self._at(as_new(group_origin()))
            self.private = self._at(private_origin(umo=f"{NEW}:FriendMessage:20001"))

    def other_scope(self) -> Scope:
        return self._at(as_new(group_origin("70002")))

    def _at(self, place: Origin) -> Scope:
        scope = self.bindings.scope(place)
        assert isinstance(scope, Scope)
        assert scope.own
        return scope


class SeeingAgainTest(Rebound, test_commands.SeeingTest):
    pass


class WhyAgainTest(Rebound, test_commands.WhyTest):
    pass


class AskAgainTest(Rebound, test_commands.AskTest):
    pass


class ExportAgainTest(Rebound, test_commands.ExportTest):
    pass


class ForgetAgainTest(Rebound, test_commands.ForgetTest):
    pass


class ForgetMeAgainTest(Rebound, test_commands.ForgetMeTest):
    pass


class OptAgainTest(Rebound, test_commands.OptTest):
    pass


class WipeAgainTest(Rebound, test_commands.WipeTest):
    pass


class ToolAgainTest(Rebound, test_commands.ToolTest):
    pass
