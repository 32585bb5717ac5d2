"""The servers of the playground, and one turn of talk with the bot."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from rig import venvs
from rig.astrbot import AstrBot
from rig.bank import Bank
from rig.hindsight import HindsightServer
from rig.model import ModelStub, memory_blocks
from rig.playground import friend
from rig.playground.cast import ADMIN, Cast, Fact, Voice
from rig.playground.words import Words
from rig.polling import eventually
from rig.proxy import RecordingProxy
from rig.running import Running
from rig.stack import CHECKOUT, plugin_config

BANK = "playground"
ASTRBOT = "astrbot-latest"
REPLY_SECONDS = 180.0
LOCAL_SECONDS = 180.0
REMOTE_SECONDS = 180.0
REMOTE_INTERVAL = 3.0
DAY_SECONDS = 86_400.0


@dataclass(frozen=True)
class Account:
    """A bank at a Hindsight that runs elsewhere."""

    api_base: str
    api_key: str
    bank_id: str


@dataclass(frozen=True)
class Turn:
    """One message and what came of it.

    Attributes:
        voice: Who sent it, and where.
        text: The message.
        block: The memory block that the model was given with it; empty if there was none.
        asked: Whether the model was asked at all; a command is answered without it.
        replies: What the bot answered; a command may answer more than once.
    """

    voice: Voice
    text: str
    block: str
    asked: bool
    replies: tuple[str, ...]

    @property
    def reply(self) -> str:
        """All that the bot answered."""
        return "\n".join(self.replies)


class Scene(Running):
    """The running playground; use it with `async with`.

    Attributes:
        cast: Who plays.
        words: What the screen says.
        model: The chat model.
        bot: AstrBot with the plugin.
        proxy: Sees all that the plugin sends to a local Hindsight; None with a remote one.
        bank: The local bank; None with a remote one.
    """

    def __init__(self, cast: Cast, account: Account | None, report: Callable[[str], None]) -> None:
        """Describe it; entering the context starts it.

        Args:
            cast: Who plays.
            account: A Hindsight elsewhere; None to run one here.
            report: Gets the lines that tell how it is going.
        """
        super().__init__()
        self.cast = cast
        self.words = Words(cast.language)
        self.model = ModelStub()
        self.model.script = friend.answer
        self.proxy: RecordingProxy | None = None
        self.bank: Bank | None = None
        self._server: HindsightServer | None = None
        self._account = account
        self._report = report

    @staticmethod
    def needed(*, is_local: bool) -> list[str]:
        """Return the virtual environments that it runs in."""
        return [ASTRBOT, "hindsight"] if is_local else [ASTRBOT]

    @property
    def makeshift(self) -> bool:
        """Whether a local Hindsight has to do with hashed embeddings."""
        return self._server is not None and self._server.embeddings == "hashed"

    async def say(self, voice: Voice, text: str, until: str = "") -> Turn:
        """Let somebody send a message and await the bot's answer.

        Args:
            voice: Who, and where.
            text: The message.
            until: A pattern of the answer that is the last; without it the first one is.

        Raises:
            AssertionError: If there was none in time.
        """
        self.model.clear()
        onebot = self.bot.onebot
        replies = [sent.text for sent in onebot.take(voice.chat)]
        if voice.group_id is None:
            await onebot.private(voice.user_id, text, nickname=voice.nickname)
        else:
            await onebot.group(
                voice.group_id, voice.user_id, text, nickname=voice.nickname, role=voice.role
            )
        while True:
            replies.append((await onebot.reply(REPLY_SECONDS, target=voice.chat)).text)
            if re.search(until, replies[-1]):
                break
        replies += [sent.text for sent in onebot.take(voice.chat)]
        requests = self.model.requests_with(text)
        block = "\n".join(memory_blocks(requests[-1])) if requests else ""
        return Turn(voice, text, block, bool(requests), tuple(replies))

    async def late_reply(self) -> tuple[str, str]:
        """Await an answer that nobody has seen yet, and return where it came and its words."""
        sent = await self.bot.onebot.reply(DAY_SECONDS)
        places = (voice.place for voice in self.cast.voices if voice.chat == sent.target)
        return next(places, str(sent.target_kind)), sent.text

    async def stored(self, facts: Sequence[Fact]) -> None:
        """Wait until Hindsight has stored what was said and can recall it.

        Raises:
            AssertionError: If that takes too long.
        """
        if self.bank is not None:
            await self._stored_here(self.bank, facts)
        else:
            await self._stored_elsewhere(facts)

    def sent_in_the_clear(self, secrets: Sequence[str]) -> list[str]:
        """Return which of these texts stood in any request to a local Hindsight."""
        requests = self.proxy.requests if self.proxy else []
        sent = [f"{one.path}\n{one.headers}\n{one.body.decode('utf-8')}" for one in requests]
        return [secret for secret in secrets if any(secret in text for text in sent)]

    async def _stored_here(self, bank: Bank, facts: Sequence[Fact]) -> None:
        async def found() -> bool:
            texts = await self.lines()
            return all(any(fact.key in text for text in texts) for fact in facts)

        await eventually(found, LOCAL_SECONDS, self.words("storing"), interval=0.2)
        await bank.settled(LOCAL_SECONDS)

    async def _stored_elsewhere(self, facts: Sequence[Fact]) -> None:
        """Ask the bot itself, as there is no other way into a bank elsewhere."""
        deadline = time.monotonic() + REMOTE_SECONDS
        for fact in facts:
            shown = ""
            while fact.key not in (reply := await self._recalled(fact)):
                if reply != shown:
                    self._report(f"    /hindsight recall {fact.key} → {reply}")
                    shown = reply
                assert time.monotonic() < deadline, self.words("not_stored", reply=reply)
                await asyncio.sleep(REMOTE_INTERVAL)

    async def _recalled(self, fact: Fact) -> str:
        return (await self.say(fact.voice, f"/hindsight recall {fact.key}")).reply

    async def settled(self) -> None:
        """Wait until a local Hindsight has no work left."""
        if self.bank is not None:
            await self.bank.settled(LOCAL_SECONDS)

    async def lines(self) -> list[str]:
        """Return the lines that a local Hindsight has stored, as they are."""
        documents = await self.bank.documents(texts=True) if self.bank else []
        return [line for one in documents for line in one["original_text"].splitlines()]

    async def forgotten(self, fact: Fact) -> None:
        """Wait until a local Hindsight has nothing left of a fact."""

        async def gone() -> bool:
            memories = await self.bank.memories() if self.bank else []
            texts = [*await self.lines(), *(memory["text"] for memory in memories)]
            return not any(fact.key in text for text in texts)

        await eventually(gone, LOCAL_SECONDS, self.words("forgetting"), interval=0.2)

    async def _start(self) -> None:
        names = self.needed(is_local=self._account is None)
        pythons = await asyncio.to_thread(venvs.ensure_many, names, report=self._report)
        await self._exits.enter_async_context(self.model)
        starts: list[Callable[[], Awaitable[object]]] = []
        account = self._account
        if account is None:
            self._server = HindsightServer(pythons["hindsight"])
            account = await self._surround(self._server)
            starts.append(self._timed("Hindsight", self._server.start))
        self.bot = AstrBot(
            pythons[ASTRBOT],
            CHECKOUT,
            model_url=self.model.base_url,
            plugin_config=plugin_config(
                account.api_base,
                account.api_key,
                bank_id=account.bank_id,
                language=self.cast.language,
            ),
            overrides={"admins_id": [str(ADMIN)]},
        )
        self.bot.onebot.rename(self.words("bot"))
        self._exits.push_async_callback(self.bot.close)
        starts.append(self._timed("AstrBot", self.bot.start))
        await _together(starts)

    def _timed(
        self, name: str, start: Callable[[], Awaitable[object]]
    ) -> Callable[[], Awaitable[object]]:
        async def run() -> None:
            began = time.monotonic()
            await start()
            self._report(self.words("part", name=name, seconds=time.monotonic() - began))

        return run

    async def _surround(self, server: HindsightServer) -> Account:
        """Put a proxy before a local server, and a look behind it."""
        self._exits.push_async_callback(server.stop)
        self.proxy = await self._exits.enter_async_context(RecordingProxy(server.url))
        self.bank = await self._exits.enter_async_context(Bank(server, BANK))
        return Account(self.proxy.url, server.api_key, BANK)


async def _together(starts: Sequence[Callable[[], Awaitable[object]]]) -> None:
    """Start several things at once; the first that fails ends the others."""

    async def run(start: Callable[[], Awaitable[object]]) -> None:
        await start()

    try:
        async with asyncio.TaskGroup() as group:
            for start in starts:
                group.create_task(run(start))
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
