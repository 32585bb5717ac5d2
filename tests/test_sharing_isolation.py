"""Whatever is switched meanwhile, a private memory is read for its person where it is shared alone.

Random interleavings of share, unshare, opt-outs, switches, `wipe`, `forgetme`, ids that change,
rebinding and restarts with the turns and commands of two people in two groups, over a bank in
memory. The model is the worst: it answers with everything that it was given. Each run makes the
same ones.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import re
import tempfile
import unittest
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory import outbox_thread
from astrbot_plugin_hindsight_memory.assembly import assemble
from astrbot_plugin_hindsight_memory.command_types import Caller
from astrbot_plugin_hindsight_memory.outbox import Outbox
from astrbot_plugin_hindsight_memory.scope import Origin, Scope
from astrbot_plugin_hindsight_memory.texts import Texts
from astrbot_plugin_hindsight_memory.transcript import Message, Speaker
from astrbot_plugin_hindsight_memory.turn import Recalled
from fake_bank import FakeBank
from support import NOW, Clock, LogRecords, group_origin, make_settings, message_of, private_origin
from test_interleavings import AtOnce, hasty

WORLDS, STEPS = int(os.environ.get("PROPERTY_EXAMPLES", "100")), 100
ZH = Texts("zh")
PEOPLE, GROUPS = ("20001", "20002"), ("70001", "70002")
BOTS = ("bot", "shiny")
LOOKS = ("recall 密", "list", "list 密", "ask 密", "profile", "export", "status", "status all")
ADMINS = ("export", "status all")
SECRET = re.compile(r"密([0-9]+)号")


def place_of(bot: str, group: str, person: str) -> Origin:
    """A group, or with no name the person's private chat."""
    origin = group_origin(group, person) if group else private_origin(person)
    return replace(origin, umo=f"{bot}:{origin.umo.partition(':')[2]}")


@dataclass
class Secret:
    """What somebody has said in private.

    Attributes:
        person: Who.
        chat: The memory that it was said to.
        is_gone: It was erased.
    """

    person: str
    chat: str
    is_gone: bool = False


class World:
    """Two people, each with a private chat, in two groups with one bot, whose id may change."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.loop = asyncio.new_event_loop()
        self.loop.set_default_executor(AtOnce())
        self.folder = tempfile.TemporaryDirectory()
        self.clock = Clock()
        self.clock.sleeper = self.sleep
        self.bank = FakeBank()
        self.bot = BOTS[0]
        self.secrets: dict[int, Secret] = {}
        self.shares: dict[tuple[str, str], str] = {}  # private rooms by group's room and person
        self.codes: dict[str, tuple[str, str]] = {}  # person and private room by code
        self.running: list[tuple[Origin, Message, asyncio.Task[Recalled]]] = []
        self.numbers = itertools.count()
        self.shown = self.exported = 0
        self.run(self.open())

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    def step(self) -> None:
        """Anything that may happen, what this is for more often than the rest."""
        pick = self.random.choice
        person, group, place = pick(PEOPLE), pick(GROUPS), pick((*GROUPS, ""))
        happenings: tuple[tuple[int, Callable[[], None]], ...] = (
            (6, lambda: self.tell(person)),
            (3, lambda: self.tell_the_bot(person)),
            (12, lambda: self.share(person, group, pick((person, person, *PEOPLE)))),
            (3, lambda: self.unshare(place, person)),
            (
                5,
                lambda: self.switch(
                    person, pick(("off", "off 5", "on", "on", "pause 5", "optin", "optin"))
                ),
            ),
            (2, lambda: self.opt_out(person, pick(("optout", "optout all")), place)),
            (
                3,
                lambda: self.erase(
                    person, pick(("wipe", "forgetme")), place, is_sure=pick((True, True, False))
                ),
            ),
            (3, self.time_passes),
            (2, lambda: self.rename(pick(BOTS))),
            (1, self.rebind_bot),
            (1, lambda: self.rebind_chat(place, person, pick((False, True)))),
            (2, lambda: self.unbind(place, person)),
            (1, self.restart),
            (8, lambda: self.turn_begins(person, group)),
            (8, self.turns_end),
            (12, lambda: self.turn(person, group)),
            (9, lambda: self.look(person, group, pick(LOOKS))),
            (5, lambda: self.why(person, group)),
        )
        weights, actions = zip(*happenings, strict=True)
        self.random.choices(actions, weights)[0]()

    async def sleep(self, seconds: float) -> None:
        self.clock.now += seconds
        await asyncio.sleep(0)

    async def open(self) -> None:
        """The parts as they are after a start."""
        folder = Path(self.folder.name)
        with mock.patch.object(outbox_thread, "ThreadPoolExecutor", AtOnce):
            outbox = Outbox(
                folder,
                every_n_turns=1,
                connect=hasty,
                sync=lambda _: None,
                now=self.clock.monotonic,
            )
        self.client = self.bank.client(clock=self.clock)
        self.parts = assemble(
            make_settings(commands={"per_minute": 60}, tools={"recall": True, "remember": True}),
            folder,
            clock=self.clock,
            logger=LogRecords().logger,
            host="4.29.3",
            client=self.client,
            outbox=outbox,
            jitter=lambda: 1.0,
        )
        await self.parts.delivery.start()

    async def close(self) -> None:
        for _, _, task in self.running:
            task.cancel()
        await asyncio.gather(*(task for _, _, task in self.running), return_exceptions=True)
        self.running.clear()
        await self.parts.memory.aclose()
        await self.parts.delivery.aclose()
        await self.parts.people.aclose()
        await self.client.aclose()

    # --- What is expected ----------------------------------------------------------------------

    def scope(self, place: Origin) -> Scope | None:
        scope = self.parts.bindings.scope(place)
        return scope if isinstance(scope, Scope) else None

    def is_shown(self, place: Origin, number: int) -> bool:
        """Whether a secret may be told to somebody at a place now."""
        scope, secret = self.scope(place), self.secrets[number]
        if scope is None or secret.person != place.sender_id or secret.is_gone:
            return False
        if scope.kind == "private":
            return True
        room = self.shares.get((scope.room, place.sender_id))
        state = self.parts.state
        is_off = any(self.memory_of(room, test) for test in (state.is_off, state.is_paused))
        return room == secret.chat and not is_off

    @staticmethod
    def memory_of(room: str | None, test: Any) -> bool:
        tags = ("scope:private", "platform:aiocqhttp", "", "")
        return room is not None and bool(test(Scope("private", "", tags, room, room)))

    def check(self, text: str, place: Origin) -> None:
        """Nothing that is not to be shown at a place stands in a text."""
        for number in map(int, SECRET.findall(text)):
            assert self.is_shown(place, number), f"{self.secrets[number]} is shown at {place}"

    def check_public(self, text: str) -> None:
        """No secret at all stands in a text."""
        assert not SECRET.search(text), text

    def end(self, *, person: str = "", group: str = "", private: str = "") -> None:
        """Shares end of which all of that is so."""
        for key, room in list(self.shares.items()):
            if person in {"", key[1]} and group in {"", key[0]} and private in {"", room}:
                del self.shares[key]

    # --- What people do ------------------------------------------------------------------------

    def speaker(self, scope: Scope, person: str) -> Speaker:
        assert self.parts.state.hasher
        return Speaker("某人", self.parts.state.hasher.pseudonym(scope, person))

    def say(self, words: str, place: Origin, *, is_open: bool = True) -> str:
        """The answer to a command, in which nothing stands that must not.

        An admin of the bot types what nobody else may read.
        """
        self.clock.now += 20.0
        scope = self.parts.bindings.scope(place)
        speaker = self.speaker(scope, place.sender_id) if isinstance(scope, Scope) else Speaker("")
        caller = Caller(
            scope=scope,
            texts=ZH,
            now=NOW,
            speaker=speaker,
            person_id=place.sender_id,
            is_manager=True,
            is_admin=words in ADMINS,
            place=place,
        )

        async def answer() -> str:
            return "".join([one async for one in self.parts.commands.answer(caller, words)])

        text: str = self.run(answer())
        if is_open:
            self.check(text, place)
        else:
            self.check_public(text)
        return text

    def tell(self, person: str) -> None:
        """Says something in private."""
        scope, number = self.scope(place_of(self.bot, "", person)), next(self.numbers)
        if scope is None:
            return
        label = self.speaker(scope, person).label
        self.secrets[number] = Secret(person, scope.chat)
        self.bank.store(scope, f"{label} (2026-01-02T03:04:05+08:00): 密{number}号")

    def tell_the_bot(self, person: str) -> None:
        """Says something in private that is answered, and so waits here too."""
        self.ask(place_of(self.bot, "", person), secret=True)

    def share(self, person: str, group: str, typist: str) -> None:
        private, place = place_of(self.bot, "", person), place_of(self.bot, group, typist)
        found = re.findall(r"share ([0-9]{6})\n", self.say("share", private))
        if not found:
            return
        is_done = self.say(f"share {found[0]}", place) == ZH("share_done")
        assert not is_done or person == typist
        scope, own = self.scope(place), self.scope(private)
        if is_done and scope and own:
            self.shares[scope.room, person] = own.room

    def unshare(self, place: str, person: str) -> None:
        where = place_of(self.bot, place, person)
        if scope := self.scope(where):
            self.say("unshare", where)
            if place:
                self.end(person=person, group=scope.room)
            else:
                self.end(private=scope.room)

    def switch(self, person: str, words: str) -> None:
        private = place_of(self.bot, "", person)
        self.say(words, private)
        if words == "off" and (scope := self.scope(private)):
            self.end(private=scope.room)

    def opt_out(self, person: str, words: str, place: str) -> None:
        where = place_of(self.bot, place, person)
        self.say(words, where)
        scope = self.scope(where)
        if scope and words == "optout all":
            self.end(person=person)
        elif scope and not place:
            self.end(private=scope.room)

    def erase(self, person: str, words: str, place: str, *, is_sure: bool) -> None:
        """Asks for an erasure; what is not confirmed ends nothing."""
        where = place_of(self.bot, place, person)
        scope, answer = self.scope(where), self.say(words, where)
        found = re.findall(rf"/hindsight {words} ([0-9]{{4}})", answer)
        assert bool(found) == bool(scope), answer
        if scope is None or not is_sure:
            return
        covered = {one.chat for one in (scope, scope.own) if one}
        self.say(f"{words} {found[0]}", where)
        if not place:
            self.end(private=scope.room)
            for secret in self.secrets.values():
                secret.is_gone = secret.is_gone or secret.chat in covered

    # --- What happens meanwhile ----------------------------------------------------------------

    def time_passes(self) -> None:
        self.clock.now += 400.0
        self.clock.wall += 400.0

    def rename(self, bot: str) -> None:
        """The bot is made anew under another id, and nobody has a memory until it is rebound."""
        self.bot = bot

    def rebind_bot(self) -> None:
        self.parts.bindings.bind_bot("shiny", "bot")

    def rebind_chat(self, place: str, person: str, other: bool) -> None:
        """A chat gets the memory of its older id, or a group that of another group by mistake."""
        own, hasher = place_of(self.bot, place, person), self.parts.state.hasher
        group = GROUPS[1 - GROUPS.index(place)] if other and place else place
        older = place_of(BOTS[0], group, person)
        assert hasher
        by_id, wanted = hasher.scope(own), hasher.scope(older)
        assert isinstance(by_id, Scope)
        assert isinstance(wanted, Scope)
        before = dict(self.parts.state.aliases.chats)
        if by_id.chat == wanted.chat or self.parts.bindings.is_taken(wanted.tags, by_id):
            return
        self.parts.bindings.bind_chat(by_id, wanted.tags)
        self.after(before)

    def unbind(self, place: str, person: str) -> None:
        before = dict(self.parts.state.aliases.chats)
        self.parts.bindings.unbind(place_of(self.bot, place, person))
        self.after(before)

    def after(self, before: dict[str, Any]) -> None:
        """Whatever was shared by or with a chat that was bound is not any more."""
        now, hasher = self.parts.state.aliases.chats, self.parts.state.hasher
        assert hasher
        for own in {*before, *now}:
            if before.get(own) != now.get(own):
                tags = [table[own] for table in (before, now) if own in table]
                for room in (own, *map(hasher.name, tags)):
                    self.end(group=room)
                    self.end(private=room)

    def restart(self) -> None:
        async def run() -> None:
            await self.close()
            await self.open()

        self.run(run())

    # --- What must hold ------------------------------------------------------------------------

    def question(self, place: Origin, words: str) -> Message | None:
        """A message as the hooks make it."""
        scope = self.scope(place)
        if scope is None or self.parts.memory.admit(scope) is not scope:
            return None
        self.clock.now += 1.0
        message = message_of(
            scope, words, speaker=self.speaker(scope, place.sender_id), began=self.clock.now
        )
        is_out = self.parts.state.is_opted_out(scope, place.sender_id)
        shared = self.parts.sharing.of(scope, place.sender_id)
        self.clock.now += 1.0
        return replace(message, private_to_speaker=is_out, shared=shared)

    def ask(self, place: Origin, *, secret: bool = False) -> None:
        number = next(self.numbers)
        words = f"密{number}号" if secret else f"第{number}个问题"
        if message := self.question(place, words):
            if secret:
                self.secrets[number] = Secret(place.sender_id, message.scope.chat)
            self.running.append((place, message, self.run(self.begin(message))))

    async def begin(self, message: Message) -> asyncio.Task[Recalled]:
        task = self.parts.memory.start_recall(message)
        assert task
        return task

    def turn_begins(self, person: str, group: str) -> None:
        self.ask(place_of(self.bot, group, person))

    def turn(self, person: str, group: str) -> None:
        """What is shared now is found; it is what all this is for."""
        self.end_turns()
        place = place_of(self.bot, group, person)
        self.ask(place)
        if self.running:
            (block,) = self.end_turns()
            found = set(map(int, SECRET.findall(block)))
            self.shown += bool(found)
            stored = "".join(d["original_text"] for d in self.bank.documents.values())
            there = set(map(int, SECRET.findall(stored)))
            assert {n for n in there if self.is_shown(place, n)} <= found

    def turns_end(self) -> None:
        self.end_turns()

    def end_turns(self) -> list[str]:
        """The model is given what was recalled, and says it all."""
        running, self.running = self.running, []
        return [self.run(self.answered(*one)) for one in running]

    async def answered(self, place: Origin, message: Message, task: asyncio.Task[Recalled]) -> str:
        memory, recalled = self.parts.memory, await task
        admitted = memory.admit(self.parts.bindings.scope(place))
        if admitted != message.scope or memory.is_outdated(message):
            return ""  # such a turn is begun anew, or has no memory
        is_private = bool(recalled.with_private) and memory.may_show_private(message)
        block = recalled.with_private if is_private else recalled.block
        self.check(block, place)
        text = block.replace("\n", " ")
        caller = Caller(
            message.scope, ZH, NOW, message.speaker, place.sender_id, False, False, place=place
        )
        tools = self.parts.tools
        await tools.answer("remember", caller, text, is_private=is_private)
        self.check_place(await tools.answer("recall", caller, "密"), place)
        await memory.remember([message], "" if is_private else text, NOW)
        return block

    def check_place(self, text: str, place: Origin) -> None:
        if place.group_id:
            self.check_public(text)

    def look(self, person: str, group: str, words: str) -> None:
        for _, _, task in self.running:
            self.run(asyncio.wait({task}))
        before = len(self.bank.requests)
        place = place_of(self.bot, group, person)
        self.say(words, place, is_open=False)
        for exported in Path(self.folder.name).glob("export-*"):
            self.check_public(exported.read_text("utf-8"))
            exported.unlink()
            self.exported += 1
        private = {scope.tags[2] for one in PEOPLE if (scope := self.private(one))}
        sent = "".join(map(_whole, self.bank.requests[before:]))
        assert not any(tag in sent for tag in private), words

    def private(self, person: str) -> Scope | None:
        return self.scope(place_of(self.bot, "", person))

    def why(self, person: str, group: str) -> None:
        self.say("why", place_of(self.bot, group, person))

    def stored(self) -> Iterator[str]:
        """What is stored of groups, on the server and here."""
        for document in self.bank.documents.values():
            if "scope:group" in document["tags"]:
                yield document["original_text"]
        for body in self.bank.created:
            assert len({tag for tag in body["tags"] if tag.startswith("scope:")}) == 1

    def check_all(self) -> None:
        self.end_turns()
        self.run(self.parts.delivery.flush())
        for text in self.stored():
            self.check_public(text)
        state = (Path(self.folder.name) / "scope_state.json").read_text()
        ids = "|".join([*PEOPLE, *GROUPS])  # by chance, a hash may have the digits of one
        assert not re.search(rf"(?<![0-9a-f])(?:{ids})(?![0-9a-f])", state)

    def leave(self) -> None:
        self.run(self.close())
        self.loop.close()
        self.folder.cleanup()


def _whole(request: Any) -> str:
    return f"{request.url} {request.content.decode()}"


class SharingTest(unittest.TestCase):
    def test_no_private_memory_is_read_for_anybody_else(self) -> None:
        self.enterContext(mock.patch("os.fsync"))  # no power cut happens here
        shown = exported = 0
        for seed in range(WORLDS):
            with self.subTest(seed=seed):
                world = World(seed)
                try:
                    for _ in range(STEPS):
                        world.step()
                    world.check_all()
                finally:
                    world.leave()
                shown += world.shown
                exported += world.exported
        self.assertGreater(shown, WORLDS)  # else all that would tell nothing
        self.assertGreater(exported, WORLDS // 10)


if __name__ == "__main__":
    unittest.main()
