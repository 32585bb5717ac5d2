"""`rebind`: a chat or a bot whose id has changed keeps its memory.

Nothing is changed before its code is typed: first what is found is shown.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from .aliases import Tags
from .bindings import Bindings, bot_of
from .clock import Clock
from .codes import CODE_SECONDS, Codes
from .command_types import ChatRequest, Command, PersonKey, Request, first_word
from .hindsight_types import HindsightError
from .memory import ChatMemory
from .rebinding import Moved, Pair, Rebinder
from .scope import MessageKind, Origin, Scope, Skip
from .status import Status
from .texts import Texts

ACTIVE_SECONDS = 3600.0
"""Where somebody has talked so lately, somebody still talks."""

_SESSION = re.compile(r"([^:]+):(FriendMessage|GroupMessage|OtherMessage):(.+)")
_KINDS: dict[str, MessageKind] = {"FriendMessage": "private", "GroupMessage": "group"}
_WORDS = {"机器人": "bot", "聊天": "chat", "移动": "move", "撤销": "undo"}


@dataclass(frozen=True)
class Plan:
    """What a code stands for.

    Attributes:
        kind: Bind the bot, bind the chat, move what was stored meanwhile, or move it back.
        pairs: The chats that it concerns, as far as they are known.
        older_id: What the bot is to be hashed as.
        tags: The tags that the chat is to have.
    """

    kind: Literal["bot", "chat", "move", "back"]
    pairs: tuple[Pair, ...] = ()
    older_id: str = field(default="", repr=False)
    tags: Tags | None = None


class Rebinding:
    """Binds what has new ids to the memory it had.

    Args:
        bindings: What is bound to what.
        rebinder: What the server holds, None without a server.
        memory: The recall and retain flow.
        status: Says why there is no memory.
        clock: The time.
        running_bots: The ids of the bots that run.
    """

    def __init__(
        self,
        bindings: Bindings,
        rebinder: Rebinder | None,
        memory: ChatMemory,
        status: Status,
        clock: Clock,
        running_bots: Callable[[], Collection[str]],
    ) -> None:
        self._bindings = bindings
        self._rebinder = rebinder
        self._memory = memory
        self._status = status
        self._clock = clock
        self._running_bots = running_bots
        self._codes: Codes[Plan] = Codes(clock)

    @property
    def commands(self) -> Sequence[Command]:
        """Rows of the table."""
        return (
            Command(
                "rebind",
                "换绑",
                self._rebind,
                elsewhere=self._elsewhere,
                has_argument=True,
                rights="admins",
                is_verbatim=True,
            ),
        )

    async def _elsewhere(self, request: Request) -> str:
        """Where another chat has this one's memory, that can be ended."""
        word = request.argument.strip().lower()
        if request.caller.scope is Skip.REBOUND and _WORDS.get(word, word) == "undo":
            return await self._undo(request)
        return self._status.no_memory(request.caller.scope, request.texts)

    async def _rebind(self, request: ChatRequest) -> str:
        word, rest = first_word(request.argument)
        word = _WORDS.get(word, word.lower())
        if word == "undo":
            return await self._undo(request)
        if word == "move" and (pairs := self._pairs(request)):
            return await self._offer_move(request, pairs)
        if word == "bot" and rest:
            return await self._offer_bot(request, rest)
        if word == "chat" and (found := _SESSION.fullmatch(rest)):
            return await self._offer_chat(request, found)
        if plan := self._codes.take(_key(request), word):
            return await self._do(request, plan)
        return self._usage(request)

    def _usage(self, request: ChatRequest) -> str:
        is_bound = (request.scope.home or request.scope).own is not None
        present = request.texts("rebind_is_bound" if is_bound else "rebind_is_free")
        return f"{present}\n{request.texts('rebind_usage')}"

    # --- Before the code ------------------------------------------------------------------------

    async def _offer_bot(self, request: ChatRequest, bot_id: str) -> str:
        texts, bindings = request.texts, self._bindings
        own_id = bot_of(request.caller.place.umo)
        older_id = bindings.older_id(bot_id)
        if bindings.older_id(own_id) != own_id:
            return texts("rebind_already")
        if older_id == own_id:
            return texts("rebind_same")
        if self._is_bot_in_use(own_id, {bot_id, older_id}):
            return texts("rebind_active")
        chats = {met.own.chat: met.origin for met in bindings.met(own_id)}
        found = [bindings.as_if(origin, older_id) for origin in chats.values()]
        pairs = tuple(Pair(one.own, one) for one in found if one and one.own)
        return await self._offer(request, Plan("bot", pairs, older_id))

    async def _offer_chat(self, request: ChatRequest, session: re.Match[str]) -> str:
        texts, place = request.texts, request.caller.place
        own = _own(request.scope)
        if self._bindings.is_bound(own):
            return texts("rebind_already")
        if place.umo.split(":")[1:2] != [session[2]]:
            return texts("rebind_other_kind")
        older = self._bindings.resolve(_origin(place, session))
        if isinstance(older, Skip):
            return texts("rebind_active")
        tags = older.tags if older.own else await self._reached.tags_of(older)
        bound = self._bindings.bound(own, tags)
        if bound is None or tags == (request.scope.home or request.scope).tags:
            return texts("rebind_same")
        if self._is_chat_in_use(own, bound, session[1]):
            return texts("rebind_active")
        return await self._offer(request, Plan("chat", (Pair(own, bound),), tags=tags))

    async def _offer(self, request: ChatRequest, plan: Plan) -> str:
        """Shows what a binding would find, and how it is done."""
        texts = request.texts
        found = await self._reached.survey(plan.pairs)
        if found.is_active:
            return texts("rebind_active")
        code = self._codes.ask(_key(request), plan)
        return texts(
            f"rebind_found_{plan.kind}",
            chats=len(plan.pairs),
            older=found.older,
            own=found.own,
            code=code,
            seconds=round(CODE_SECONDS),
        )

    async def _offer_move(self, request: ChatRequest, pairs: tuple[Pair, ...]) -> str:
        found = await self._reached.survey(pairs)
        return self._move_text(request, pairs, found.own)

    def _move_text(self, request: Request, pairs: tuple[Pair, ...], number: int) -> str:
        texts = request.texts
        if not number:
            return texts("rebind_nothing_to_move")
        code = self._codes.ask(_key(request), Plan("move", pairs))
        return texts("rebind_move", number=number, code=code, seconds=round(CODE_SECONDS))

    # --- Behind it ------------------------------------------------------------------------------

    async def _do(self, request: ChatRequest, plan: Plan) -> str:
        texts = request.texts
        if plan.kind == "move":
            return _moved_text(texts, await self._reached.move(plan.pairs))
        if plan.kind == "back":
            return _moved_text(texts, await self._reached.move_back(plan.pairs))
        if not await self._bind(request, plan):
            return texts("rebind_active")
        for pair in plan.pairs:
            self._memory.forget_chat(pair.own)
        done = texts("rebind_done")
        try:
            found = await self._reached.survey(plan.pairs)
        except HindsightError as error:
            return f"{done}\n{texts('rebind_move_later', reason=texts(error.reason))}"
        return f"{done}\n{self._move_text(request, plan.pairs, found.own)}" if found.own else done

    async def _bind(self, request: ChatRequest, plan: Plan) -> bool:
        """Binds, unless somebody else has done so, or talks there, since it was shown."""
        bindings, own, own_id = (
            self._bindings,
            _own(request.scope),
            bot_of(request.caller.place.umo),
        )
        if plan.tags is not None:
            bound = bindings.bound(own, plan.tags)
            if bound is None or bindings.is_bound(own) or bindings.is_taken(plan.tags, own):
                return False
            await asyncio.to_thread(bindings.bind_chat, own, plan.tags)
            return True
        if bindings.older_id(own_id) != own_id or self._is_bot_in_use(own_id, {plan.older_id}):
            return False
        await asyncio.to_thread(bindings.bind_bot, own_id, plan.older_id)
        return True

    async def _undo(self, request: Request) -> str:
        """Ends a binding at once, and offers to move back what was moved."""
        texts, pairs = request.texts, self._pairs(request)
        ended = await asyncio.to_thread(self._bindings.unbind, request.caller.place)
        if ended is None:
            return texts("rebind_is_free")
        for pair in pairs:
            self._memory.forget_chat(pair.older)
        done = texts(f"rebind_undone_{ended}")
        if not pairs or self._rebinder is None:
            return done
        try:
            number = await self._rebinder.count_moved(pairs)
        except HindsightError as error:
            return f"{done}\n{texts('rebind_move_later', reason=texts(error.reason))}"
        if not number:
            return done
        code = self._codes.ask(_key(request), Plan("back", pairs))
        seconds = round(CODE_SECONDS)
        return f"{done}\n{texts('rebind_move_back', number=number, code=code, seconds=seconds)}"

    # --- What there is --------------------------------------------------------------------------

    def _pairs(self, request: Request) -> tuple[Pair, ...]:
        """The chats that the binding of this chat, or that of its bot, concerns."""
        scope = request.caller.scope
        home = (scope.home or scope) if isinstance(scope, Scope) else None
        if home is None or home.own is None:
            return ()
        if self._bindings.is_bound(home.own):
            return (Pair(home.own, home),)
        met = self._bindings.met(bot_of(request.caller.place.umo))
        found = [self._bindings.resolve(one.origin) for one in met]
        scopes = [one for one in found if isinstance(one, Scope)]
        return tuple(
            Pair(one.own, one) for one in scopes if one.own and not self._bindings.is_bound(one.own)
        )

    def _is_bot_in_use(self, own_id: str, ids: Collection[str]) -> bool:
        running = self._running_bots()
        return any(one in running or self._bindings.is_bot_taken(one, own_id) for one in ids)

    def _is_chat_in_use(self, own: Scope, older: Scope, bot_id: str) -> bool:
        if self._bindings.is_taken(older.tags, own):
            return True
        used_at = self._bindings.last_used(older.chat, own.chat)
        is_running = bot_id in self._running_bots()
        now = self._clock.monotonic()
        return is_running and used_at is not None and used_at > now - ACTIVE_SECONDS

    @property
    def _reached(self) -> Rebinder:
        if self._rebinder is None:
            raise HindsightError("not_configured")
        return self._rebinder


def _key(request: Request) -> PersonKey:
    """The person and the chat, by what a binding does not change."""
    return request.caller.place.umo, request.caller.place.sender_id


def _own(scope: Scope) -> Scope:
    """A chat by its own ids."""
    home = scope.home or scope
    return home.own or home


def _origin(place: Origin, session: re.Match[str]) -> Origin:
    """Where a message of an older session came from, as far as its id tells."""
    kind = _KINDS.get(session[2], "other")
    older = replace(place, umo=session[0], kind=kind)
    if kind == "group":
        return replace(older, group_id=session[3])
    is_same = place.sender_id and place.sender_id in session[3]
    return older if is_same else replace(older, sender_id=session[3])


def _moved_text(texts: Texts, moved: Moved) -> str:
    lines = [texts("rebind_moved", number=moved.documents)]
    if moved.failure:
        lines.append(texts("rebind_move_later", reason=texts(moved.failure)))
    if moved.waiting:
        lines.append(texts("rebind_waiting", number=moved.waiting))
    return "\n".join(lines)
