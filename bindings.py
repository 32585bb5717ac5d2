"""Which memory a message belongs to, whatever its chat was called before.

Two chats never have one memory: where a memory is bound to another chat, the chat that it was of
has none as long as that lasts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from .aliases import Aliases, Tags, seal, unseal
from .clock import Clock
from .recent import Recent
from .scope import Hasher, Origin, Scope, ScopeState, Skip

Bound = Literal["bot", "chat"]


@dataclass(frozen=True)
class Met:
    """A chat in which something was said since the start.

    Attributes:
        origin: Its ids, which stay in memory.
        own: What it is by them.
        memory: The digits of the memory that it used.
        at: When, in seconds of the monotonic clock.
    """

    origin: Origin
    own: Scope
    memory: str
    at: float


class Bindings:
    """Finds the memory of each message.

    Args:
        state: The salt, and what is bound to what.
        clock: The time.
    """

    def __init__(self, state: ScopeState, clock: Clock) -> None:
        self._state = state
        self._clock = clock
        self._met: Recent[str, Met] = Recent()
        self._indexed: _Index | None = None

    def scope(self, origin: Origin, persona: str = "") -> Scope | Skip:
        """The memory of a message, or why there is none.

        Args:
            origin: Where the message comes from.
            persona: The persona that answers, empty for the default one.
        """
        scope = self.resolve(origin)
        if isinstance(scope, Skip):
            return scope
        own = scope.own or scope
        self._met.put(own.chat, Met(origin, own, scope.chat, self._clock.monotonic()))
        return self._hasher.persona(scope, persona)

    async def meet(self, scope: Scope | Skip) -> Scope | Skip:
        """Notes a persona that is new in a chat, before anything is stored for it.

        Where that cannot be written there is no memory: nothing would erase it.
        """
        if isinstance(scope, Skip) or not scope.persona:
            return scope
        digest = self._hasher.persona_digest(scope.persona)
        if digest not in self._state.personas(scope):
            try:
                await asyncio.to_thread(self._state.meet_persona, scope, digest)
            except OSError:
                return Skip.STATE_FAULT
        return scope

    def resolve(self, origin: Origin) -> Scope | Skip:
        """The default persona's memory of a chat, or why there is none."""
        if self._state.hasher is None:
            return Skip.STATE_FAULT
        hasher, index = self._hasher, self._index
        own = hasher.scope(origin)
        if isinstance(own, Skip) or not (index.bots or index.chats):
            return own
        bot_id = bot_of(origin.umo)
        older_id = self.older_id(bot_id)
        renamed = hasher.scope(as_bot(origin, older_id))
        assert isinstance(renamed, Scope)  # its other ids are the same
        for one in (own, renamed):
            if tags := index.chats.get(one.chat):
                return hasher.bound(own, tags)
        if self.is_bot_taken(older_id, bot_id) or renamed.chat in index.taken_chats:
            return Skip.REBOUND
        return hasher.bound(own, renamed.tags)

    def met(self, bot_id: str) -> Iterator[Met]:
        """The chats of a bot in which something was said since the start."""
        return (one for one in self._met.values() if bot_of(one.origin.umo) == bot_id)

    def met_umo(self, own: str) -> str:
        """The session id of a chat, by its own digits; empty where nothing was said since."""
        met = self._met.get(own)
        return met.origin.umo if met else ""

    def last_used(self, memory: str, but: str) -> float | None:
        """When another chat than one (by its own digits) last used a memory since the start."""
        times = [m.at for own, m in self._met.items() if m.memory == memory and own != but]
        return max(times, default=None)

    def older_id(self, bot_id: str) -> str:
        """What a bot is hashed as: its own id, or an older one."""
        return self._index.bots.get(self._bot(bot_id), bot_id)

    def is_bot_taken(self, older_id: str, bot_id: str) -> bool:
        """Whether another bot than this one is hashed as that one."""
        return self._index.taken_bots.get(self._bot(older_id), bot := self._bot(bot_id)) != bot

    def is_taken(self, tags: Tags, own: Scope) -> bool:
        """Whether another chat than this one (by its own ids) is bound to these tags."""
        return self._index.taken_chats.get(self._hasher.name(tags), own.chat) != own.chat

    def is_bound(self, own: Scope) -> bool:
        """Whether a chat (by its own ids) is bound to another by itself."""
        return own.chat in self._index.chats

    def as_if(self, origin: Origin, older_id: str) -> Scope | None:
        """What a chat would be if its bot had an older id; None where that changes nothing."""
        own, renamed = self._hasher.scope(origin), self._hasher.scope(as_bot(origin, older_id))
        if isinstance(own, Skip) or isinstance(renamed, Skip) or self.is_bound(own):
            return None
        return self.bound(own, self._index.chats.get(renamed.chat, renamed.tags))

    def bound(self, own: Scope, tags: Tags) -> Scope | None:
        """A chat (by its own ids) with older tags; None where they are its own."""
        scope = self._hasher.bound(own, tags)
        return scope if scope.own else None

    def memories(self, scope: Scope) -> list[Scope]:
        """All memories of a chat: of each persona met, and what it has under its own ids."""
        home = scope.home or scope
        found: list[Scope] = []
        for room in (home, *([home.own] if home.own else [])):
            personas = self._state.personas(room)
            found += [room, *(self._hasher.persona(room, "", one) for one in personas)]
        return found

    def bind_bot(self, bot_id: str, older_id: str) -> None:
        """Hashes a bot as an older one from now on; OSError where that cannot be written."""
        key, sealed = self._bot(bot_id), seal(older_id, self._hasher.digest)
        self._state.bind(lambda now: replace(now, bots={**now.bots, key: sealed}))

    def bind_chat(self, own: Scope, tags: Tags) -> None:
        """Gives a chat older tags from now on; OSError where that cannot be written."""
        self._state.bind(lambda now: replace(now, chats={**now.chats, own.chat: tags}))

    def unbind(self, origin: Origin) -> Bound | None:
        """Ends what binds a chat, or its bot, or binds another one to it.

        Returns:
            What was ended; None where there was nothing.

        Raises:
            OSError: The state could not be written, and nothing has changed.
        """
        own, index = self._hasher.scope(origin), self._index
        bot = self._bot(bot_of(origin.umo))
        if isinstance(own, Skip):
            return None
        chats = [own.chat, index.taken_chats.get(own.chat, "")]
        if chat := next((one for one in chats if one in index.chats), ""):
            self._state.bind(lambda now: replace(now, chats=_without(now.chats, chat)))
            return "chat"
        bots = [bot, index.taken_bots.get(bot, "")]
        if one := next((one for one in bots if one in index.bots), ""):
            self._state.bind(lambda now: replace(now, bots=_without(now.bots, one)))
            return "bot"
        return None

    def note_moved(self, scope: Scope, room: str, *, here: bool) -> None:
        """Notes that a chat's memory holds documents of another room, or none any more.

        Raises:
            OSError: The state could not be written, and nothing has changed.
        """
        others = [one for one in self._state.aliases.rooms.get(scope.room, ()) if one != room]
        rooms = _without(self._state.aliases.rooms, scope.room)
        if here or others:
            rooms[scope.room] = (*others, *([room] if here else []))
        if rooms != self._state.aliases.rooms:
            self._state.bind(lambda now: replace(now, rooms=rooms))

    def rooms(self, scope: Scope) -> list[Scope]:
        """A memory once for each room that its lines come from: people have pseudonyms of there."""
        others = self._state.aliases.rooms.get(scope.room, ())
        return [scope, *(replace(scope, room=one) for one in others)]

    def _bot(self, bot_id: str) -> str:
        return self._hasher.digest("bot", bot_id)

    @property
    def _hasher(self) -> Hasher:
        hasher = self._state.hasher
        assert hasher is not None  # a scope came from it
        return hasher

    @property
    def _index(self) -> _Index:
        aliases = self._state.aliases
        if self._indexed is None or self._indexed.aliases is not aliases:
            self._indexed = _Index.of(aliases, self._hasher)
        return self._indexed


@dataclass(frozen=True)
class _Index:
    """Aliases, ready to be looked up.

    Attributes:
        aliases: What it was made from.
        bots: Older ids by the hash of the present one.
        chats: Tags by the hash of the present chat.
        taken_bots: By the hash of an older id, that of the bot which has it now.
        taken_chats: The same of chats.
    """

    aliases: Aliases
    bots: Mapping[str, str]
    chats: Mapping[str, Tags]
    taken_bots: Mapping[str, str]
    taken_chats: Mapping[str, str]

    @classmethod
    def of(cls, aliases: Aliases, hasher: Hasher) -> _Index:
        bots = {bot: unseal(sealed, hasher.digest) for bot, sealed in aliases.bots.items()}
        return cls(
            aliases,
            bots,
            aliases.chats,
            {hasher.digest("bot", older): bot for bot, older in bots.items()},
            {hasher.name(tags): chat for chat, tags in aliases.chats.items()},
        )


def bot_of(umo: str) -> str:
    """The bot's id, with which each session id begins."""
    return umo.partition(":")[0]


def as_bot(origin: Origin, bot_id: str) -> Origin:
    """The same place as another bot would see it."""
    return replace(origin, umo=f"{bot_id}:{origin.umo.partition(':')[2]}")


def _without[Value](table: Mapping[str, Value], key: str) -> dict[str, Value]:
    return {one: value for one, value in table.items() if one != key}
