"""A private chat is read in a group for its person alone, as long as they want it."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from typing import Any

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.hindsight_types import RecalledMemory
from astrbot_plugin_hindsight_memory.model_tools import ToolName
from astrbot_plugin_hindsight_memory.scope import (
    STATE_FILE,
    Origin,
    Scope,
    ScopeState,
    Shared,
    StateFault,
)
from astrbot_plugin_hindsight_memory.shares import Share
from astrbot_plugin_hindsight_memory.sharing import MAX_TRIES, SHARE_SECONDS
from astrbot_plugin_hindsight_memory.texts import Texts
from astrbot_plugin_hindsight_memory.tokens import estimate_tokens
from astrbot_plugin_hindsight_memory.transcript import Message, Speaker
from commands_case import AT, LANGUAGES, CommandsCase
from support import NOW, group_origin, message_of, private_origin, reply, until

ZH = Texts("zh")
SECRET, GROUP_LINE = "我的生日是五月八日", "群里每周五打球"
QUESTION, ANSWER = "我的生日是哪一天呢", "你的生日是五月八日"
ANN_PRIVATE, ANN, BEN = private_origin(), group_origin(), group_origin(sender="20002")
BEN_PRIVATE = private_origin("20002")


class SharingCase(CommandsCase):
    """Ann has said something in her private chat, and speaks in a group where Ben is too."""

    def build(self, **config: Any) -> None:
        super().build(**{"commands": {"per_minute": 60}} | config)

    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.tell(ANN_PRIVATE, SECRET)
        self.tell(ANN, GROUP_LINE)

    def at(self, place: Origin) -> Scope:
        scope = self.bindings.scope(place)
        assert isinstance(scope, Scope), scope
        return scope

    def speaker(self, place: Origin) -> Speaker:
        assert self.state.hasher
        return Speaker("小明", self.state.hasher.pseudonym(self.at(place), place.sender_id))

    def tell(self, place: Origin, *words: str) -> None:
        lines = [f"{self.speaker(place).label} {AT}: {one}" for one in words]
        document_id = self.bank.store(self.at(place), *lines)
        for number, line in enumerate(lines):  # as a server without a model keeps them
            self.bank.memories[f"{document_id}.{number}"]["text"] = line

    async def say(self, words: str, place: Origin, **changes: Any) -> str:
        """The answer to a command."""
        who: dict[str, Any] = {
            "speaker": self.speaker(place),
            "person_id": place.sender_id,
            "place": place,
        }
        return await self.ask(words, self.at(place), **who | changes)

    async def carry_out(self, words: str, place: Origin) -> None:
        """A command, with the code that it may ask for."""
        found = re.findall(r"/hindsight (\w+ [0-9]{4})$", await self.say(words, place))
        self.assertEqual(len(found), words in {"forgetme", "wipe"}, words)
        for confirmation in found:
            await self.say(confirmation, place)

    async def code(self, place: Origin = ANN_PRIVATE) -> str:
        (code,) = re.findall(r"/hindsight share ([0-9]{6})", await self.say("share", place))
        return str(code)

    async def share(self, private: Origin = ANN_PRIVATE, group: Origin = ANN) -> str:
        return await self.say(f"share {await self.code(private)}", group)

    def asked(self, place: Origin, words: str = QUESTION) -> Message:
        scope, self.clock.now = self.at(place), self.clock.now + 1.0
        message = message_of(scope, words, speaker=self.speaker(place), began=self.clock.now)
        return replace(message, shared=self.sharing.of(scope, place.sender_id))

    async def shown(self, message: Message) -> str:
        """The block that a request is given."""
        task = self.memory.start_recall(message)
        assert task
        recalled = await task
        is_private = recalled.with_private and self.memory.may_show_private(message)
        return recalled.with_private if is_private else recalled.block

    async def block(self, place: Origin, words: str = QUESTION) -> str:
        return await self.shown(self.asked(place, words))

    def shared(self) -> Shared:
        found = self.sharing.of(self.at(ANN), "20001")
        assert found
        return found


class CodeTest(SharingCase):
    async def test_both_memories_are_read_on_this_persons_turns_alone(self) -> None:
        self.assertNotIn(SECRET, await self.block(ANN))
        self.assertEqual(await self.share(), ZH("share_done"))
        block = await self.block(ANN)
        self.assertIn(GROUP_LINE, block)
        (line,) = [line for line in block.splitlines() if SECRET in line]
        label = self.speaker(ANN).label
        self.assertEqual(line, f"- [私聊] {label}: {SECRET}")
        self.assertIn(ZH("block_private", name=label), block)
        for place in (BEN, group_origin("70002"), group_origin("70002", "20002")):
            self.assertNotIn(SECRET, await self.block(place))

    async def test_person_has_the_number_of_the_group(self) -> None:
        await self.share()
        self.assertNotIn(self.speaker(ANN_PRIVATE).pseudonym, await self.block(ANN))

    async def test_what_the_code_means_is_told(self) -> None:
        for language in ("zh", "en"):
            answer = await self.say("share", ANN_PRIVATE, language=language)
            self.assertIn(Texts(language)("share_seen_by_all"), answer)
            self.assertNotIn(Texts(language)("share_title", number=0), answer)

    async def test_code_works_once(self) -> None:
        code = await self.code()
        self.assertEqual(await self.say(f"share {code}", ANN), ZH("share_done"))
        elsewhere = group_origin("70002")
        self.assertEqual(await self.say(f"share {code}", elsewhere), ZH("share_wrong"))

    async def test_later_code_voids_the_one_before(self) -> None:
        code = await self.code()
        await self.code()
        self.assertEqual(await self.say(f"share {code}", ANN), ZH("share_wrong"))

    async def test_code_ends(self) -> None:
        for seconds, key in ((SHARE_SECONDS - 1, "share_done"), (SHARE_SECONDS + 1, "share_wrong")):
            code = await self.code()
            self.clock.now += seconds
            self.assertEqual(await self.say(f"share {code}", ANN), ZH(key))

    async def test_wrong_tries_void_it(self) -> None:
        for tries, key in ((MAX_TRIES - 1, "share_done"), (MAX_TRIES, "share_wrong")):
            code = await self.code()
            wrong = f"{(int(code) + 1) % 1_000_000:06}"
            for typed in [wrong, "abcdef", "12345", "x", wrong][:tries]:
                self.assertEqual(await self.say(f"share {typed}", ANN), ZH("share_wrong"))
            self.assertEqual(await self.say(f"share {code}", ANN), ZH(key))

    async def test_code_is_for_the_same_person(self) -> None:
        code = await self.code()
        self.assertEqual(await self.say(f"share {code}", BEN), ZH("share_wrong"))
        for _ in range(MAX_TRIES):  # guessing voids nobody else's
            await self.say("share 000000", BEN)
        self.assertEqual(await self.say(f"share {code}", ANN), ZH("share_done"))
        self.assertNotIn(SECRET, await self.block(BEN))

    async def test_code_is_for_the_same_platform(self) -> None:
        code = await self.code()
        elsewhere = group_origin(platform="telegram")
        self.assertEqual(await self.say(f"share {code}", elsewhere), ZH("share_wrong"))

    async def test_where_ids_differ_the_code_alone_proves(self) -> None:
        for platform in ("qq_official", "qq_official_webhook"):
            private = private_origin("A1" * 8, platform=platform)
            member = group_origin("G1" * 8, "B2" * 8, platform=platform)
            self.tell(private, SECRET)
            answer = await self.say("share", private)
            code = re.findall(r"share ([0-9]{6})", answer)[0]
            self.assertIn("不告诉我群里的谁是你", answer)
            self.assertEqual(await self.say(f"share {code}", member), ZH("share_done_unproven"))
            self.assertIn(SECRET, await self.block(member))
            other = group_origin("G1" * 8, "C3" * 8, platform=platform)
            self.assertEqual(await self.say(f"share {code}", other), ZH("share_wrong"))
            self.assertNotIn(SECRET, await self.block(other))

    async def test_where_ids_differ_each_guess_counts(self) -> None:
        private = private_origin("A1" * 8, platform="qq_official")
        other = group_origin("G1" * 8, "C3" * 8, platform="qq_official")
        code = await self.code(private)
        wrong = f"{(int(code) + 1) % 1_000_000:06}"
        for _ in range(MAX_TRIES):
            await self.say(f"share {wrong}", other)
        self.assertEqual(await self.say(f"share {code}", other), ZH("share_wrong"))

    async def test_where_it_makes_no_sense(self) -> None:
        nameless = group_origin("")
        for words in ("share", "share 123456", "unshare"):
            self.assertEqual(await self.say(words, nameless), ZH("share_not_here"))
        self.assertEqual(await self.say("share", ANN), ZH("share_usage"))
        self.assertIn(ZH("share_in_group"), await self.say("share 123456", ANN_PRIVATE))
        await self.say("optout", ANN_PRIVATE)
        self.assertEqual(await self.say("share", ANN_PRIVATE), ZH("share_opted_out"))

    async def test_code_of_a_chat_that_was_ended_meanwhile(self) -> None:
        for words, back in (("off", "on"), ("optout", "optin"), ("forgetme", ""), ("unshare", "")):
            code = await self.code()
            await self.carry_out(words, ANN_PRIVATE)
            await self.say(back or "help", ANN_PRIVATE)
            self.assertEqual(await self.say(f"share {code}", ANN), ZH("share_wrong"), words)

    async def test_disk_that_refuses(self) -> None:
        code = await self.code()
        self.folder.chmod(0o500)
        self.addCleanup(self.folder.chmod, 0o700)
        if (self.folder / STATE_FILE).stat().st_uid:  # nothing is refused to root
            self.assertEqual(await self.say(f"share {code}", ANN), ZH("disk"))
            self.assertIsNone(self.sharing.of(self.at(ANN), "20001"))


class RecallTest(SharingCase):
    async def test_two_strict_recalls_at_the_same_time(self) -> None:
        await self.share()
        self.bank.requests.clear()
        self.bank.gate.clear()
        running = asyncio.create_task(self.block(ANN))
        await until(lambda: self.bank.waiting == 2)
        self.bank.gate.set()
        await running
        wanted = [set(self.at(place).tags) for place in (ANN, ANN_PRIVATE)]
        self.assertEqual([set(body["tags"]) for body in self.bank.bodies], wanted)
        for body in self.bank.bodies:
            self.assertEqual(body["tags_match"], "all_strict")
            self.assertNotIn("tag_groups", body)

    async def test_others_cost_one_request(self) -> None:
        await self.share()
        for place in (BEN, group_origin("70002"), ANN_PRIVATE):
            self.bank.requests.clear()
            await self.block(place)
            self.assertEqual(len(self.bank.requests), 1)

    async def test_private_recall_that_fails_is_left_out(self) -> None:
        await self.share()
        private = set(self.at(ANN_PRIVATE).tags)
        self.bank.fault = lambda: reply(503)
        self.bank.is_faulty = lambda r: set(json.loads(r.content)["tags"]) == private
        block = await self.block(ANN)
        self.assertIn(GROUP_LINE, block)
        self.assertNotIn("私聊", block)
        self.assertEqual(self.memory.figures.failures.total(), 1)
        self.assertEqual(self.memory.breaker.state, "closed")

    async def test_one_deadline(self) -> None:
        self.build(recall={"timeout_seconds": 0.5})
        await self.share()
        self.bank.gate.clear()
        started = asyncio.get_running_loop().time()
        self.assertEqual(await self.block(ANN), "")
        self.assertLess(asyncio.get_running_loop().time() - started, 5)
        self.assertEqual(self.bank.cancelled, 2)

    async def test_private_lines_take_a_third_at_most(self) -> None:
        await self.share()
        for number in range(80):
            self.tell(ANN_PRIVATE, f"私事第{number}件：" + "我今天去了很远的地方" * 5)
            self.tell(ANN, f"群事第{number}件：" + "大家今天去了很远的地方" * 5)
        for tokens in (400, 1000, 3000):
            self.build(recall={"max_tokens": tokens})
            block = await self.block(ANN)
            private = [line for line in block.splitlines() if "私聊" in line]
            taken = estimate_tokens("\n".join(private))
            self.assertGreater(len(private), 1)
            self.assertLessEqual(estimate_tokens(block), tokens)
            self.assertLessEqual(taken * 3, estimate_tokens(block), tokens)

    async def test_what_was_just_said_in_private_is_found(self) -> None:
        await self.share()
        said = message_of(self.at(ANN_PRIVATE), "我的生日蛋糕要草莓味的")
        await self.memory.remember([said], "好", NOW)
        self.assertIn("草莓味", await self.block(ANN))
        self.assertNotIn("草莓味", await self.block(BEN))

    async def test_group_without_memories(self) -> None:
        self.bank.documents.clear()
        self.bank.memories.clear()
        self.tell(ANN_PRIVATE, SECRET)
        await self.share()
        self.assertIn(SECRET, await self.block(ANN))


class StoredTest(SharingCase):
    async def test_persons_words_alone_are_stored_and_kept_in_mind(self) -> None:
        await self.share()
        message = self.asked(ANN)
        await self.shown(message)
        await self.memory.remember([message], "", NOW)  # as on a turn with private lines
        await self.delivery.flush()
        text = self.bank.texts(self.at(ANN))[-1]
        self.assertIn(QUESTION, text)
        self.assertEqual(len(text.splitlines()), 1)
        said = self.memory._lately.lines(self.at(ANN), 0.0)
        self.assertEqual([QUESTION in one.text for one in said], [True])

    async def test_turn_without_any_words_is_not_stored(self) -> None:
        await self.memory.remember([replace(self.asked(ANN), stored="")], "", NOW)
        await self.delivery.flush()
        self.assertEqual(len(self.bank.texts(self.at(ANN))), 1)

    async def test_tool_stores_nothing_on_such_a_turn(self) -> None:
        self.build(tools={"recall": True, "remember": True})
        caller = self.caller(self.at(ANN), person_id="20001")
        name: ToolName = "remember"
        answer = await self.tools.answer(name, caller, ANSWER, is_private=True)
        self.assertEqual(answer, ZH("tool_private"))
        await self.delivery.flush()
        self.assertNotIn(ANSWER, "".join(self.bank.texts(self.at(ANN))))

    async def test_nothing_else_reads_the_private_memory(self) -> None:
        self.build(tools={"recall": True, "remember": True})
        await self.share()
        await self.block(ANN)
        for place in (ANN, BEN):
            for words in (f"recall {QUESTION}", "list", "list 生日", f"ask {QUESTION}", "profile"):
                self.bank.requests.clear()
                self.assertNotIn(SECRET, await self.say(words, place))
                sent = [str(r.url) + r.content.decode() for r in self.bank.requests]
                self.assertNotIn(self.at(ANN_PRIVATE).tags[2], "".join(sent))
            caller = self.caller(self.at(place), person_id=place.sender_id)
            self.assertNotIn(SECRET, await self.tools.answer("recall", caller, QUESTION))
        await self.say("export", ANN, is_admin=True)
        (path,) = self.folder.glob("export-*")
        self.assertNotIn(SECRET, path.read_text("utf-8"))


class WhyTest(SharingCase):
    async def test_private_lines_are_shown_to_their_person_alone(self) -> None:
        await self.share()
        await self.block(ANN)
        self.assertIn(f"{ZH('why_private', number=1)}\n- ", await self.say("why", ANN))
        self.assertIn(SECRET, await self.say("why", ANN))
        self.assertNotIn(ZH("why_hidden", number=1), await self.say("why", ANN))
        for language in LANGUAGES:
            answer = await self.say("why", BEN, language=language)
            self.assertNotIn(SECRET, answer)
            self.assertNotIn(Texts(language)("why_private", number=1), answer)
            self.assertIn(Texts(language)("why_hidden", number=1), answer)
            self.assertIn(GROUP_LINE, answer)
            for words in ("why 1", "why 2", "more"):
                self.assertNotIn(SECRET, await self.say(words, BEN, language=language))

    async def test_not_once_it_is_ended(self) -> None:
        for words, place in (("unshare", ANN), ("off", ANN_PRIVATE), ("forgetme", ANN_PRIVATE)):
            await self.share()
            await self.block(ANN)
            self.assertIn("私聊", await self.say("why", ANN))
            await self.carry_out(words, place)
            for one in (ANN, BEN):
                self.assertNotIn("私聊", await self.say("why", one))
            await self.say("on", ANN_PRIVATE)
            self.tell(ANN_PRIVATE, SECRET)

    async def test_nothing_found_in_the_group(self) -> None:
        self.bank.documents.clear()
        self.bank.memories.clear()
        self.tell(ANN_PRIVATE, SECRET)
        await self.share()
        await self.block(ANN)
        answer = await self.say("why", BEN)
        self.assertNotIn(SECRET, answer)
        self.assertIn(ZH("why_empty"), answer)
        self.assertIn(ZH("why_hidden", number=1), answer)
        self.assertNotIn(ZH("why_empty"), await self.say("why", ANN))


class EndTest(SharingCase):
    async def test_what_ends_it_for_good(self) -> None:
        self.build(commands={"per_minute": 600})
        self.clock.sleeper = self.sleep
        for ending, place, back in (
            ("unshare", ANN, ""),
            ("unshare", ANN_PRIVATE, ""),
            ("unshare 1", ANN_PRIVATE, ""),
            ("optout", ANN_PRIVATE, "optin"),
            ("optout all", ANN_PRIVATE, "optin"),
            ("optout all", ANN, "optin"),
            ("off", ANN_PRIVATE, "on"),
            ("forgetme", ANN_PRIVATE, ""),
            ("wipe", ANN_PRIVATE, ""),
        ):
            with self.subTest(ending=ending, kind=place.kind):
                await self.share()
                message = self.asked(ANN)
                task = self.memory.start_recall(message)
                assert task
                recalled = await task
                self.assertIn(SECRET, recalled.with_private)
                await self.carry_out(ending, place)
                self.assertFalse(self.memory.may_show_private(message))
                self.assertIsNone(self.sharing.of(self.at(ANN), "20001"))
                await self.say(back or "help", place)
                await self.say(back or "help", ANN)
                self.tell(ANN_PRIVATE, SECRET)
                self.assertNotIn(SECRET, await self.block(ANN))

    async def test_what_others_do_ends_nothing(self) -> None:
        await self.share()
        for words, place in (
            ("unshare", BEN),
            ("unshare", BEN_PRIVATE),
            ("optout", BEN),
            ("off", BEN_PRIVATE),
            ("forgetme", BEN),
            ("unshare", group_origin("70002")),
            ("optout", ANN),
        ):
            await self.carry_out(words, place)
            self.assertIn(SECRET, await self.block(ANN), words)

    async def test_what_was_not_done_ends_nothing(self) -> None:
        """Nothing is withdrawn, not even a code that waits, until a command does what it says."""
        await self.share()
        code = await self.code()
        for words in (
            "wipe",
            "wipe 12",
            "forgetme",
            "forgetme 12",
            "forgetme 生日",
            "off 5",
            "off x",
        ):
            await self.say(words, ANN_PRIVATE)
            self.assertIn(SECRET, await self.block(ANN), words)
        elsewhere = group_origin("70002")
        self.assertEqual(await self.say(f"share {code}", elsewhere), ZH("share_done"))

    async def test_pause_rests_it(self) -> None:
        await self.share()
        message = self.asked(ANN)
        await self.say("pause 5", ANN_PRIVATE)
        self.assertFalse(self.memory.may_show_private(message))
        self.assertNotIn(SECRET, await self.block(ANN))
        self.clock.wall += 301
        self.assertIn(SECRET, await self.block(ANN))

    async def test_settings_that_leave_the_private_chat_out(self) -> None:
        await self.share()
        for config in (
            {"enable_private_memory": False},
            {"privacy": {"deny_chats": ["20001"]}},
            {"privacy": {"deny_chats": [ANN_PRIVATE.umo]}},
            {"privacy": {"allow_chats": ["70001"]}},
        ):
            self.build(**config)
            self.assertNotIn(SECRET, await self.block(ANN), config)
        self.build(privacy={"allow_chats": ["70001", "20001"], "deny_chats": ["20002"]})
        self.assertIn(SECRET, await self.block(ANN))

    async def test_forgotten_line_is_not_shown_any_more(self) -> None:
        await self.share()
        message = self.asked(ANN)
        task = self.memory.start_recall(message)
        assert task
        await task
        await self.say("forget 生日", ANN_PRIVATE)
        self.assertTrue(self.memory.may_show_private(message))  # it was only looked for
        await self.say("forget 1", ANN_PRIVATE)
        self.assertFalse(self.memory.may_show_private(message))

    async def test_shared_again_while_a_recall_was_under_way(self) -> None:
        await self.share()
        message = self.asked(ANN)
        self.bank.gate.clear()
        running = asyncio.create_task(self.shown(message))
        await until(lambda: self.bank.waiting == 2)
        await self.say("unshare", ANN)
        self.clock.wall += 1
        await self.share()
        self.bank.gate.set()
        self.assertNotIn(SECRET, await running)


class ListedTest(SharingCase):
    async def test_where_it_is_shared(self) -> None:
        elsewhere = group_origin("70002")
        code = await self.code()
        await self.say(f"share {code}", ANN, chat_name="周五打球")
        self.clock.wall += 86400
        await self.share(group=elsewhere)
        self.assertEqual(await self.say("share", ANN), ZH("share_is_here"))
        *_, title, first, second = (await self.say("share", ANN_PRIVATE)).splitlines()
        self.assertEqual(title, ZH("share_title", number=2))
        self.assertRegex(first, "^1[.] 周五打球（2027-01-15 起）$")
        self.assertRegex(second, "^2[.] 一个群（2027-01-16 起）$")
        self.assertEqual(await self.say("unshare 1", ANN_PRIVATE), ZH("unshared", number=1))
        self.assertNotIn(SECRET, await self.block(ANN))
        self.assertIn(SECRET, await self.block(elsewhere))
        self.assertIn(ZH("unshare_no_number"), await self.say("unshare 2", ANN_PRIVATE))
        self.assertEqual(await self.say("unshare", ANN_PRIVATE), ZH("unshared", number=1))
        self.assertEqual(await self.say("unshare", ANN_PRIVATE), ZH("unshare_nothing"))
        self.assertEqual(await self.say("unshare", elsewhere), ZH("unshare_nothing_here"))

    async def test_no_id_is_shown(self) -> None:
        await self.share()
        answer = await self.say("share", ANN_PRIVATE)
        self.assertNotRegex(answer, "70001|20001|#[0-9a-f]{6}")


class DiskTest(SharingCase):
    def path(self) -> Any:
        return self.folder / STATE_FILE

    async def test_over_a_restart_without_any_id(self) -> None:
        before = self.path().read_bytes()
        await self.share()
        text = self.path().read_text()
        self.assertNotRegex(text, "20001|70001")
        self.build()
        self.assertIn(SECRET, await self.block(ANN))
        await self.say("unshare", ANN)
        self.assertEqual(self.path().read_bytes(), before)  # undone is as never done

    async def test_file_of_an_earlier_version(self) -> None:
        content = json.loads(self.path().read_text())
        self.assertNotIn("shares", content)
        self.assertEqual(ScopeState.load(self.folder).shares, {})

    async def test_damaged_ones(self) -> None:
        await self.share()
        whole = json.loads(self.path().read_text())
        (person,) = whole["shares"]
        damages: list[Any] = [[], {person: []}]
        for name in vars(self.shared().share):
            damages += [{person: {**whole["shares"][person], name: None}}]
        damages += [{person: {**whole["shares"][person], "tags": ["a"]}}]
        for damage in damages:
            self.path().write_text(json.dumps({**whole, "shares": damage}))
            state = ScopeState.load(self.folder)
            self.assertEqual(state.fault, StateFault.STATE_UNREADABLE, damage)

    async def test_reads_what_it_writes(self) -> None:
        await self.share()
        share = self.shared().share
        self.assertEqual(Share.from_json(json.loads(json.dumps(share.to_json()))), share)


class RebindTest(SharingCase):
    def moved(self, place: Origin, bot: str = "shiny") -> Origin:
        return replace(place, umo=f"{bot}:{place.umo.partition(':')[2]}")

    async def test_bot_that_got_another_id(self) -> None:
        await self.share()
        new, private = self.moved(ANN), self.moved(ANN_PRIVATE)
        self.assertNotIn(SECRET, await self.block(new))
        self.bindings.bind_bot("shiny", "bot")
        self.assertIn(SECRET, await self.block(new))
        self.assertNotIn(SECRET, await self.block(self.moved(BEN)))
        await self.say("unshare", private)
        self.assertNotIn(SECRET, await self.block(new))

    async def test_list_that_names_it_by_the_new_id(self) -> None:
        await self.share()
        self.bindings.bind_bot("shiny", "bot")
        self.build(privacy={"deny_chats": [self.moved(ANN_PRIVATE).umo]})
        self.assertNotIn(SECRET, await self.block(self.moved(ANN)))

    async def test_chat_that_is_bound_to_another_memory(self) -> None:
        """Neither chat is any more what was shared."""
        other = group_origin("70009")
        for bound, tags in (
            (self.moved(ANN_PRIVATE), ANN_PRIVATE),
            (ANN_PRIVATE, self.moved(ANN_PRIVATE)),
            (other, ANN),
            (ANN, other),
        ):
            await self.share()
            self.assertIn(SECRET, await self.block(ANN))
            self.bindings.bind_chat(self.at(bound), self.at(tags).tags)
            for place in (ANN, other):
                if isinstance(self.bindings.scope(place), Scope):
                    self.assertNotIn(SECRET, await self.block(place))
            self.bindings.unbind(bound)
            self.assertNotIn(SECRET, await self.block(ANN))

    async def test_another_chat_that_is_bound(self) -> None:
        await self.share()
        elsewhere = group_origin("70009")
        self.bindings.bind_chat(self.at(self.moved(elsewhere)), self.at(elsewhere).tags)
        self.assertIn(SECRET, await self.block(ANN))


class PersonaTest(SharingCase):
    async def test_each_persona_reads_its_own(self) -> None:
        """The memory of a persona in the private chat is that persona's in the group."""
        await self.share()
        pirate = self.bindings.scope(ANN, "pirate")
        assert isinstance(pirate, Scope)
        shared = self.sharing.of(pirate, "20001")
        assert shared
        self.assertEqual(shared.scope, self.bindings.scope(ANN_PRIVATE, "pirate"))

    async def test_private_lines_have_no_numbers(self) -> None:
        await self.share()
        await self.block(ANN)
        numbered = re.findall(r"^([0-9]+)[.]", await self.say("why", ANN), re.MULTILINE)
        self.assertEqual(numbered, ["1"])
        memory: RecalledMemory = self.memory.report(self.at(ANN)).memories[0]  # type: ignore[union-attr]
        self.assertIn(GROUP_LINE, memory.text)
