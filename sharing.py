"""A person's private chat, read for them in a group as well: by whom, where, and how long.

A code is made in the private chat and typed in the group. Where a platform has one id for a person
in all chats, only the same person's counts; where it has others in each chat, whoever types the
code is taken for that person.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Collection
from dataclasses import dataclass

from .bindings import Bindings, as_bot, bot_of
from .clock import Clock
from .recent import Recent
from .scope import Hasher, Origin, Scope, ScopeState, Shared
from .settings import Settings
from .shares import Share

SHARE_SECONDS = 600.0
MAX_TRIES = 5
CODE_DIGITS = 6
_OTHER_IDS = frozenset({"qq_official", "qq_official_webhook"})
"""Platforms on which a person has another id in each chat."""


@dataclass
class _Offer:
    """A code that waits to be typed in a group.

    Attributes:
        code: Six digits.
        scope: The private chat.
        people: What stands for its person where somebody opts out.
        until: Monotonic seconds.
        tries: So many may yet be wrong.
    """

    code: str
    scope: Scope
    people: tuple[str, ...]
    until: float
    tries: int = MAX_TRIES

    def is_for(self, scope: Scope, sender: str) -> bool:
        """Whether somebody in a group may be the one who was given the code.

        Args:
            scope: The group.
            sender: The person's tag, were this a private chat.
        """
        own = self.scope.own or self.scope
        if own.platform != scope.platform:
            return False
        return not tells_people(scope) or own.tags[2] == sender


def tells_people(scope: Scope) -> bool:
    """Whether the platform tells that somebody in a group and in a private chat are the same."""
    return scope.platform not in _OTHER_IDS


class Sharing:
    """Which private chat is read for whom.

    Args:
        state: Where it stands, beside the switches that it depends on.
        bindings: Knows what bots were called before.
        settings: May leave a private chat without memory.
        clock: The time.
    """

    def __init__(
        self, state: ScopeState, bindings: Bindings, settings: Settings, clock: Clock
    ) -> None:
        self._state = state
        self._bindings = bindings
        self._settings = settings
        self._clock = clock
        self._offers: Recent[str, _Offer] = Recent()
        self._names: Recent[str, str] = Recent()
        self._groups: set[str] = set()

    def offer(self, scope: Scope, person_id: str) -> str:
        """Makes a code for a private chat, in the place of the one before."""
        home = scope.home or scope
        taken = {one.code for one in self._open_offers()}
        code = next(code for code in iter(_new_code, "") if code not in taken)
        people = self._state.person_keys(home, person_id)
        until = self._clock.monotonic() + SHARE_SECONDS
        self._offers.put(home.room, _Offer(code, home, people, until))
        return code

    async def accept(self, scope: Scope, person_id: str, code: str) -> bool:
        """Takes a code that somebody types in a group.

        Returns:
            Whether their private chat is read there from now on.

        Raises:
            OSError: The state could not be written; the code is used up.
        """
        group, offer = scope.home or scope, self._taken(scope, person_id, code)
        if offer is None:
            return False
        private = offer.scope
        own, own_group = private.own or private, group.own or group
        share = Share(
            tags=private.tags,
            own=own.tags,
            room=private.room,
            group=group.room,
            people=offer.people,
            chats=tuple({private.chat, own.chat, group.chat, own_group.chat}),
            since=self._clock.unix(),
        )
        person = self._hasher.person(group, person_id)
        return await asyncio.to_thread(self._state.share, person, share, private)

    def of(self, scope: Scope, person_id: str) -> Shared | None:
        """What may be read besides for somebody who speaks in a group."""
        if not self._state.shares or scope.kind != "group" or not person_id:
            return None
        person = self._hasher.person(scope, person_id)
        share = self._state.shares.get(person)
        if share is None or not self._is_allowed(share):
            return None
        self._groups.add(scope.room)
        private = self._hasher.persona(_memory(share), scope.persona)
        return Shared(person, share, private)

    def is_shared_in(self, scope: Scope) -> bool:
        """Whether anybody lets a private chat be read in a group, or has since the start."""
        groups = {share.group for share in self._state.shares.values()}
        return scope.room in self._groups or scope.room in groups

    def is_shared(self, shared: Shared) -> bool:
        """Whether that is so still."""
        share = self._state.shares.get(shared.person)
        return share == shared.share and self._is_allowed(shared.share)

    def is_met(self, scope: Scope, person_id: str) -> bool:
        """Whether somebody shares a private chat in a group, may it be read now or not."""
        return self._hasher.person(scope, person_id) in self._state.shares

    def groups(self, scope: Scope) -> list[Share]:
        """Where a private chat is shared, the oldest first."""
        shares = [one for one in self._state.shares.values() if one.room == scope.room]
        return sorted(shares, key=lambda share: (share.since, share.group))

    async def end(self, scope: Scope, share: Share | None = None) -> int:
        """Ends what a private chat shares, or one share of it.

        A code that waits is void from then on.

        Returns:
            How many shares there were.

        Raises:
            OSError: The state could not be written, and nothing is ended but the code.
        """
        self.withdraw(scope)

        def is_over(one: Share) -> bool:
            return one == share if share else one.room in scope.rooms

        return await asyncio.to_thread(self._state.end_shares, is_over)

    async def end_here(self, scope: Scope, person_id: str) -> int:
        """Ends what somebody shares in a group; see `end`."""
        share = self._state.shares.get(self._hasher.person(scope, person_id))
        return await asyncio.to_thread(self._state.end_shares, lambda one: one == share)

    def withdraw(self, scope: Scope) -> None:
        """Makes a private chat's code void."""
        self._offers.pop(scope.room, None)

    def note_name(self, scope: Scope, name: str) -> None:
        """Notes what a group is called, as long as it runs."""
        if name:
            self._names.put(scope.room, name)

    def name(self, share: Share) -> str:
        """What the group of a share is called, empty where it was not told since the start."""
        return self._names.get(share.group, "")

    def umo(self, shared: Shared, origin: Origin) -> str:
        """The session id of a private chat, empty where it is not known since the start.

        Args:
            shared: The private chat.
            origin: Where its person speaks now.
        """
        own = shared.share.own
        likely = f"{bot_of(origin.umo)}:FriendMessage:{origin.sender_id}"
        met = self._bindings.met_umo(self._hasher.name(own))
        return met or (likely if self._umo_tag(likely) == own[3] else "")

    def _taken(self, scope: Scope, person_id: str, code: str) -> _Offer | None:
        """The offer of a code, used up; a wrong code counts where it may have been tried on."""
        sender, offers = self._sender_tag(person_id), self._open_offers()
        theirs = [offer for offer in offers if offer.is_for(scope, sender)]
        for offer in theirs:
            if secrets.compare_digest(offer.code, code):
                self.withdraw(offer.scope)
                return offer
        for offer in offers:
            if offer in theirs or offer.code == code:
                offer.tries -= 1
                if not offer.tries:
                    self.withdraw(offer.scope)
        return None

    def _open_offers(self) -> list[_Offer]:
        now = self._clock.monotonic()
        for room in [room for room, one in self._offers.items() if one.until < now]:
            del self._offers[room]
        return list(self._offers.values())

    def _is_allowed(self, share: Share) -> bool:
        """Whether a private chat has a memory that may be read now."""
        scope, privacy = _memory(share), self._settings.privacy
        if not self._settings.enable_private_memory or self._state.is_off(scope):
            return False
        if self._state.is_paused(scope) or self._state.is_any_opted_out(share.people):
            return False
        if self._is_listed(share, privacy.deny_chats):
            return False
        return not privacy.allow_chats or self._is_listed(share, privacy.allow_chats)

    def _is_listed(self, share: Share, chats: Collection[str]) -> bool:
        """Whether a list in the settings names a private chat, which is known by hashes only."""
        tags = {*share.own, *share.tags}
        for one in chats:
            older = self._bindings.older_id(bot_of(one))
            names = {one, as_bot(Origin("", "other", one, "", ""), older).umo}
            if not tags.isdisjoint({*map(self._umo_tag, names), self._sender_tag(one)}):
                return True
        return False

    def _umo_tag(self, umo: str) -> str:
        return f"umo:{self._hasher.digest('umo', umo)}"

    def _sender_tag(self, person_id: str) -> str:
        return f"sender:{self._hasher.digest('sender', person_id)}"

    @property
    def _hasher(self) -> Hasher:
        hasher = self._state.hasher
        assert hasher is not None  # a scope came from it
        return hasher


def _memory(share: Share) -> Scope:
    """The private chat of a share, as its messages have it."""
    return Scope("private", share.platform, share.tags, share.room, share.room)


def _new_code() -> str:
    return f"{secrets.randbelow(10**CODE_DIGITS):0{CODE_DIGITS}}"
