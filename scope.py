"""Who is talking where: scopes, tags, pseudonyms, the salt, and which chats said no.

Platform ids enter this module and never leave it in the clear: everything that is stored or sent
is an HMAC under the salt of this installation.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from .aliases import Aliases, Tags, read_lists, unseal
from .shares import (
    Share,
    Shares,
    changed_chats,
    read_shares,
    shares_to_json,
    shares_without,
    shares_without_chats,
)

SALT_FILE = "salt.txt"
STATE_FILE = "scope_state.json"
STATE_VERSION = 1
SALT_BYTES = 32

ChatKind = Literal["private", "group"]
MessageKind = Literal["private", "group", "other"]

_SYNTHETIC_PLATFORMS = frozenset({"cron"})
"""AstrBot wakes itself with events of these names (scheduled and background tasks)."""

UNKNOWN_PERSON = "#000000"
"""The pseudonym of a group's member whom the platform does not tell."""

MADE_UP = "selftest"
"""The platform of chats that are none."""

_TAG_FORMS = (
    r"scope:(?:private|group)",
    r"platform:.+",
    r"(?:sender|group):[0-9a-f]{32}",
    r"umo:[0-9a-f]{32}",
)
"""The tags of a chat, in their order."""

SHORT_PSEUDONYM = 6
"""Hex digits of a pseudonym, unless somebody else in the chat has the same."""

NO_SENDER = frozenset({"", "unknown", "None"})
"""What adapters put where the platform told no sender (DingTalk and WeCom say `unknown`)."""


class Skip(StrEnum):
    """Why a message was answered without memory; counted, and shown by status."""

    NOT_CONFIGURED = "not_configured"
    STATE_FAULT = "state_fault"
    DENIED = "denied"
    CHAT_OFF = "chat_off"
    PAUSED = "paused"
    PRIVATE_DISABLED = "private_disabled"
    GROUP_DISABLED = "group_disabled"
    SESSION_RULE = "session_rule"
    SYNTHETIC = "synthetic"
    NO_SENDER = "no_sender"
    NO_WORDS = "no_words"
    REBOUND = "rebound"
    BREAKER_OPEN = "breaker_open"
    FOREIGN_RUNNER = "foreign_runner"


class StateFault(StrEnum):
    """Why memory is off everywhere: nobody who said no may be remembered because a file broke."""

    SALT_UNREADABLE = "salt_unreadable"
    SALT_FORBIDDEN = "salt_forbidden"
    SALT_CHANGED = "salt_changed"
    STATE_FORBIDDEN = "state_forbidden"
    STATE_UNREADABLE = "state_unreadable"
    NOT_WRITABLE = "state_not_writable"


@dataclass(frozen=True)
class Origin:
    """Where a message comes from, in the platform's own ids.

    Attributes:
        platform: The adapter's name, such as `aiocqhttp`.
        kind: What AstrBot calls it; `other` is neither, such as a broadcast or a public note.
        umo: AstrBot's `unified_msg_origin`.
        sender_id: The platform's id of the person, empty if it told none.
        group_id: The platform's id of the group, empty if it told none.
    """

    platform: str
    kind: MessageKind
    umo: str = field(repr=False)
    sender_id: str = field(repr=False)
    group_id: str = field(repr=False)


def is_listed(origin: Origin, chats: Collection[str]) -> bool:
    """Whether a list in the settings names this chat, by the ids that operators know.

    Args:
        origin: Where a message comes from.
        chats: Group numbers, for private chats the person's number, or whole umos.
    """
    ids = {origin.umo, origin.group_id if origin.kind == "group" else origin.sender_id}
    if origin.platform == "telegram":  # `-1001234567890#77` is a topic of that group
        ids |= {one.partition("#")[0] for one in ids}
    return not (ids - {""}).isdisjoint(chats)


@dataclass(frozen=True)
class Scope:
    """One memory: that of a chat, or of one persona in it.

    Attributes:
        kind: Private or group chat.
        platform: The name of the adapter that the chat is on now.
        tags: The four tags that every item of this memory carries, and no other tag.
        chat: 32 hex digits that name this memory on disk and in document ids.
        room: The same of the chat, whichever persona answers in it: what switches, opt-outs,
            pseudonyms and limits go by. The default persona's memory has the same digits.
        persona: The id of the persona, empty for the default one.
        home: The default persona's memory of the chat, where this is another one's.
        own: What the memory would be by the chat's own ids, where that is bound to older ones.
    """

    kind: ChatKind
    platform: str
    tags: Tags
    chat: str
    room: str
    persona: str = ""
    home: Scope | None = None
    own: Scope | None = None

    @property
    def rooms(self) -> frozenset[str]:
        """The chat as it is bound and as it is by itself: who says no has said so in both."""
        return frozenset({self.room, self.own.room if self.own else self.room})

    @property
    def platforms(self) -> frozenset[str]:
        """The platform that the chat is on, and the one that it was on."""
        return frozenset({self.platform, self.tags[1].partition(":")[2]})

    def read_tags(self, *, match_umo: bool) -> tuple[str, ...]:
        """The tags that a recall or a list must ask for, all of them, strictly.

        Args:
            match_umo: The setting of that name. Where it is off, a group's umo tag is left out, so
                that memories from before a change of session ids are found. What has the tags of
                a private chat may be a group that told no group id: those are kept apart by
                nothing but the umo, which therefore always counts there.
        """
        return self.tags if match_umo or self.kind == "private" else self.tags[:3]


@dataclass(frozen=True)
class Shared:
    """A private chat that may be read for one message of a group.

    Attributes:
        person: The hash of the speaker in the group.
        share: What they have shared.
        scope: The memory of the private chat.
    """

    person: str
    share: Share
    scope: Scope

    @property
    def pseudonym(self) -> str:
        """The speaker's in the private chat, where nobody else has one."""
        return f"#{self.share.people[0][:SHORT_PSEUDONYM]}"


def chat_tags(tags: Collection[str]) -> Tags | None:
    """The four tags of a chat in their order; None where these are not four of that form."""
    found = [one for form in _TAG_FORMS for one in tags if re.fullmatch(form, one)]
    if len(tags) != len(_TAG_FORMS) or len(found) != len(_TAG_FORMS):
        return None
    scope, platform, owner, place = found
    return scope, platform, owner, place


class Hasher:
    """Keyed hashes of platform ids.

    Args:
        salt: The secret of this installation.
    """

    def __init__(self, salt: bytes) -> None:
        self._salt = salt

    def digest(self, kind: str, value: str) -> str:
        """HMAC-SHA256 of a value of some kind, 32 hex digits."""
        message = f"{kind}\0{value}".encode("utf-8", "surrogatepass")
        return hmac.digest(self._salt, message, "sha256").hex()[:32]

    @property
    def fingerprint(self) -> str:
        """Eight hex digits that tell one salt from another without giving it away."""
        return self.digest("fingerprint", "")[:8]

    def scope(self, origin: Origin) -> Scope | Skip:
        """The chat that a message belongs to, or why it belongs to none."""
        if origin.platform in _SYNTHETIC_PLATFORMS:
            return Skip.SYNTHETIC
        umo = f"umo:{self.digest('umo', origin.umo)}"
        platform = f"platform:{origin.platform}"
        if origin.kind == "group" and origin.group_id:
            group = f"group:{self.digest('group', origin.group_id)}"
            return self._scope("group", origin, ("scope:group", platform, group, umo))
        if origin.sender_id in NO_SENDER:
            return Skip.NO_SENDER
        sender = f"sender:{self.digest('sender', origin.sender_id)}"
        return self._scope("private", origin, ("scope:private", platform, sender, umo))

    def _scope(self, kind: ChatKind, origin: Origin, tags: Tags) -> Scope:
        chat = self.name(tags)
        return Scope(kind, origin.platform, tags, chat, chat)

    def name(self, tags: Tags) -> str:
        """The digits that name the memory with these tags."""
        return self.digest("chat", "\n".join(tags))

    def bound(self, scope: Scope, tags: Tags) -> Scope:
        """A chat (by its own ids) with older tags in place of its own."""
        chat = self.name(tags)
        if chat == scope.chat:
            return scope
        return replace(scope, tags=tags, chat=chat, room=chat, own=scope)

    def persona(self, scope: Scope, name: str, digest: str = "") -> Scope:
        """The memory of a persona in a chat; that of the default one (no name) is the chat's.

        Args:
            scope: The chat.
            name: The persona's id.
            digest: Stands for the id where that is not known any more.
        """
        digest = digest or self.persona_digest(name)
        if not digest:
            return scope
        umo = f"umo:{self.digest('persona', f'{scope.tags[3]} {digest}')}"
        tags = (*scope.tags[:3], umo)
        own = self.persona(scope.own, name, digest) if scope.own else None
        chat = self.name(tags)
        return replace(scope, tags=tags, chat=chat, persona=name, home=scope, own=own)

    def persona_digest(self, name: str) -> str:
        """What stands for a persona on the disk, empty for the default one."""
        return self.digest("persona", name) if name else ""

    def made_up(self, kind: ChatKind) -> Scope:
        """A chat that is none: its tags are hashes of a kind that no message is hashed with."""
        whose, place = (self.digest(f"made up {one}", kind) for one in ("owner", "place"))
        owner = f"{'group' if kind == 'group' else 'sender'}:{whose}"
        tags = (f"scope:{kind}", f"platform:{MADE_UP}", owner, f"umo:{place}")
        chat = self.name(tags)
        return Scope(kind, MADE_UP, tags, chat, chat)

    def message(self, origin: Origin, message_id: str) -> str:
        """What stands for a message, empty where the platform does not tell which it is."""
        parts = (origin.umo, origin.sender_id, message_id)
        return self.digest("message", "\n".join(parts)) if message_id else ""

    def person(self, scope: Scope, person_id: str) -> str:
        """The hash of a person in a chat, another in each chat; empty where it is nobody.

        Hindsight's entities are bank-wide, so one hash for all chats would link them.
        """
        if person_id in NO_SENDER:
            return ""
        return self.digest(f"person:{scope.room}", person_id)

    def pseudonym(self, scope: Scope, person_id: str) -> str:
        """`#` and six hex digits for a person, where nobody else in the chat has the same six."""
        digest = self.person(scope, person_id)
        return f"#{digest[:SHORT_PSEUDONYM]}" if digest else UNKNOWN_PERSON


@dataclass(frozen=True)
class _StateData:
    """The content of `scope_state.json`.

    Attributes:
        salt_fingerprint: Of the salt that the hashes below were made with.
        lost_salt: Fingerprint of an older salt that memories were stored with, or `unknown`.
        off: Chats.
        paused: Chats with the time (Unix seconds) at which they are on again.
        opted_out: People, each in one chat or on one platform.
        opted_out_at: Since when (Unix seconds), of those who left since this is noted.
        aliases: Bots and chats that are hashed as what they were called before.
        personas: Hashes of the personas that were met in a chat, besides the default one.
        listening: Groups in which what is said without calling the bot is remembered.
        shares: Who lets a group's bot read their private chat.
    """

    salt_fingerprint: str
    lost_salt: str = ""
    off: frozenset[str] = frozenset()
    paused: Mapping[str, float] = field(default_factory=dict)
    opted_out: frozenset[str] = frozenset()
    opted_out_at: Mapping[str, float] = field(default_factory=dict)
    aliases: Aliases = field(default_factory=Aliases)
    personas: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    listening: frozenset[str] = frozenset()
    shares: Shares = field(default_factory=dict)

    def says_no(self, now: float) -> bool:
        """Whether anybody's no would be forgotten with this state."""
        return bool(self.off or self.opted_out or any(at > now for at in self.paused.values()))


class ScopeState:
    """The salt and the chats that are off; read once, then kept in memory.

    Attributes:
        fault: Why memory is off everywhere, or None.
    """

    def __init__(self, folder: Path, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._path = folder / STATE_FILE
        self._hasher: Hasher | None = None
        self._data = _StateData("")
        self._writing = threading.Lock()
        self._has_lost_salt = False
        self.fault: StateFault | None = None

    @classmethod
    def load(
        cls, folder: Path, *, had_data: bool = False, now: Callable[[], float] = time.time
    ) -> ScopeState:
        """Reads both files, and makes them on the first run.

        Args:
            folder: AstrBot's data directory of the plugin.
            had_data: Other data of an earlier run is there, so a missing salt is a lost salt.
            now: Unix seconds, for the ends of pauses.
        """
        state = cls(folder, now)
        try:
            state._open_salt(folder / SALT_FILE, is_lost=had_data or state._path.exists())
            state._open_state()
        except OSError:
            state.fault = StateFault.NOT_WRITABLE
        return state

    def _open_salt(self, path: Path, *, is_lost: bool) -> None:
        try:
            text = path.read_text("ascii").strip()
        except FileNotFoundError:
            self._has_lost_salt = is_lost
            text = secrets.token_hex(SALT_BYTES)
            write_private(path, text + "\n")
        except PermissionError:
            self.fault = StateFault.SALT_FORBIDDEN
            return
        except (OSError, ValueError):
            text = ""
        if re.fullmatch(r"[0-9a-fA-F]{64}", text):
            self._hasher = Hasher(bytes.fromhex(text))
        else:
            self.fault = StateFault.SALT_UNREADABLE

    def _open_state(self) -> None:
        if self._hasher is None:
            return
        fingerprint = self._hasher.fingerprint
        try:
            self._data = _parse_state(json.loads(self._path.read_text("utf-8")))
        except FileNotFoundError:
            self._replace(_StateData(fingerprint, "unknown" if self._has_lost_salt else ""))
        except PermissionError:
            self.fault = StateFault.STATE_FORBIDDEN
            return
        except (OSError, ValueError):
            self.fault = StateFault.STATE_UNREADABLE
            return
        if self._data.salt_fingerprint != fingerprint:
            self._adopt(fingerprint)
        elif not _are_sealed_with(self._hasher, self._data.aliases):
            self.fault = StateFault.STATE_UNREADABLE

    def _adopt(self, fingerprint: str) -> None:
        """Goes on with another salt, unless somebody said no under the one before."""
        if self._data.says_no(self._now()):
            self.fault = StateFault.SALT_CHANGED
            return
        lost = self._data.lost_salt or self._data.salt_fingerprint
        self._replace(_StateData(fingerprint, "" if lost == fingerprint else lost))

    @property
    def switches(self) -> object:
        """What all switches and opt-outs are at present; another object after each change."""
        return self._data

    @property
    def aliases(self) -> Aliases:
        """Which bots and chats are hashed as what they were called before."""
        return self._data.aliases

    def bind(self, change: Callable[[Aliases], Aliases]) -> None:
        """Changes what is hashed as what, on disk first.

        Raises:
            OSError: The state could not be written, and nothing has changed.
        """
        with self._writing:
            data, aliases = self._data, change(self._data.aliases)
            shares = data.shares
            if shares and self._hasher:
                changed = changed_chats(data.aliases, aliases, self._hasher.name)
                shares = shares_without_chats(shares, changed)
            self._replace(replace(data, aliases=aliases, shares=shares))

    @property
    def shares(self) -> Shares:
        """Who lets a group's bot read their private chat."""
        return self._data.shares

    def share(self, person: str, share: Share, scope: Scope) -> bool:
        """Lets a person's private chat be read in a group, on disk first.

        Args:
            person: The hash of the person in the group.
            share: What is shared.
            scope: The private chat.

        Returns:
            False where the chat was switched off, or the person has opted out, meanwhile.

        Raises:
            OSError: The state could not be written, and nothing has changed.
        """
        with self._writing:
            if self.is_off(scope) or self.is_any_opted_out(share.people):
                return False
            self._replace(replace(self._data, shares={**self._data.shares, person: share}))
            return True

    def end_shares(self, is_over: Callable[[Share], bool]) -> int:
        """Ends what is shared; returns how many there were.

        Raises:
            OSError: The state could not be written, and nothing has changed.
        """
        with self._writing:
            before = self._data.shares
            after = shares_without(before, is_over)
            if after is not before:
                self._replace(replace(self._data, shares=after))
            return len(before) - len(after)

    def personas(self, scope: Scope) -> tuple[str, ...]:
        """Hashes of the personas that were met in a chat, besides the default one."""
        return self._data.personas.get(scope.room, ())

    def meet_persona(self, scope: Scope, digest: str) -> None:
        """Notes that a persona has a memory in a chat, so that it is erased with the others.

        Raises:
            OSError: The state could not be written, and nothing has changed.
        """
        with self._writing:
            met = self._data.personas.get(scope.room, ())
            if digest not in met:
                personas = {**self._data.personas, scope.room: (*met, digest)}
                self._replace(replace(self._data, personas=personas))

    @property
    def salt_lost(self) -> bool:
        """Whether older memories cannot be found until the old salt file is put back."""
        return bool(self._data.lost_salt) or self.fault is StateFault.SALT_CHANGED

    @property
    def hasher(self) -> Hasher | None:
        """The keyed hashes, or None while memory is off because of a fault."""
        return None if self.fault else self._hasher

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the salt in use, empty if it cannot be read."""
        return self._hasher.fingerprint if self._hasher else ""

    def is_off(self, scope: Scope) -> bool:
        """Whether this chat's memory was switched off."""
        return scope.room in self._data.off

    def is_paused(self, scope: Scope) -> bool:
        """Whether this chat's memory is off for a while."""
        return self._data.paused.get(scope.room, 0.0) > self._now()

    def paused_until(self, scope: Scope) -> float:
        """When this chat's memory is on again, in Unix seconds; 0 where it is not paused."""
        until = self._data.paused.get(scope.room, 0.0)
        return until if until > self._now() else 0.0

    def opted_out_at(self, scope: Scope, person_id: str) -> float | None:
        """Since when (Unix seconds) a person has opted out; None where that is not known."""
        if self._hasher is None:
            return None
        keys = _people_keys(self._hasher, scope.rooms | scope.platforms, person_id)
        known = self._data.opted_out_at
        return min((known[key] for key in keys if key in known), default=None)

    def is_opted_out(self, scope: Scope, person_id: str) -> bool:
        """Whether a person wants to be neither stored nor named, in this chat or anywhere."""
        return self._hasher is not None and not self._data.opted_out.isdisjoint(
            _people_keys(self._hasher, scope.rooms | scope.platforms, person_id)
        )

    def person_keys(self, scope: Scope, person_id: str) -> tuple[str, ...]:
        """What stands for a person of a chat where somebody opts out; first, that in this chat."""
        if self._hasher is None:
            return ()
        own = self._hasher.person(scope, person_id)
        keys = _people_keys(self._hasher, scope.rooms | scope.platforms, person_id)
        return own, *sorted(keys - {own})

    def is_any_opted_out(self, keys: Collection[str]) -> bool:
        """Whether one of these stands for somebody who wants to be neither stored nor named."""
        return not self._data.opted_out.isdisjoint(keys)

    def switch(self, scope: Scope, *, on: bool) -> None:
        """Switches one chat on or off, on disk first; off, it is shared with no group any more.

        Raises:
            OSError: The state could not be written, and nothing has changed.
        """
        with self._writing:
            off = self._data.off - scope.rooms if on else self._data.off | scope.rooms
            paused = {c: at for c, at in self._data.paused.items() if c not in scope.rooms}
            shares = shares_without(
                self._data.shares, lambda share: not on and share.room in scope.rooms
            )
            self._replace(replace(self._data, off=off, paused=paused, shares=shares))

    @property
    def is_listening(self) -> bool:
        """Whether any group listens."""
        return bool(self._data.listening)

    def listens(self, scope: Scope) -> bool:
        """Whether what is said in this group without calling the bot is remembered."""
        return scope.room in self._data.listening

    def listen(self, scope: Scope, *, on: bool) -> None:
        """Switches listening on or off in one group, on disk first.

        Raises:
            OSError: The state could not be written, and nothing has changed.
        """
        with self._writing:
            rooms = {scope.room}
            listening = self._data.listening | rooms if on else self._data.listening - rooms
            self._replace(replace(self._data, listening=listening))

    def pause(self, scope: Scope, seconds: float) -> None:
        """Switches one chat off for a while.

        Raises:
            OSError: The state could not be written, and nothing has changed.
        """
        with self._writing:
            now = self._now()
            paused = {chat: at for chat, at in self._data.paused.items() if at > now}
            paused |= dict.fromkeys(scope.rooms, now + seconds)
            self._replace(replace(self._data, paused=paused))

    def opt(self, scope: Scope, person_id: str, *, out: bool, everywhere: bool) -> None:
        """Notes whether a person wants to be neither stored nor named.

        Out, a private chat of theirs is shared with no group any more.

        Args:
            scope: The chat.
            person_id: The platform's id of the person.
            out: Out or in again; in again ends both kinds.
            everywhere: In all chats of this platform, not in this one only.

        Raises:
            OSError: The state could not be written, and nothing has changed.
        """
        if self._hasher is None:
            return
        here = _people_keys(self._hasher, scope.rooms, person_id)
        all_chats = _people_keys(self._hasher, scope.platforms, person_id)
        with self._writing:
            since = dict(self._data.opted_out_at)
            if out:
                added = all_chats if everywhere else here
                people = self._data.opted_out | added
                since = {key: self._now() for key in added} | since
            else:
                people = self._data.opted_out - here - all_chats
            since = {key: at for key, at in since.items() if key in people}
            shares = shares_without(
                self._data.shares, lambda share: not people.isdisjoint(share.people)
            )
            self._replace(replace(self._data, opted_out=people, opted_out_at=since, shares=shares))

    def _replace(self, data: _StateData) -> None:
        """Writes new data, then uses it."""
        content: dict[str, Any] = {
            "version": STATE_VERSION,
            "salt_fingerprint": data.salt_fingerprint,
            "lost_salt": data.lost_salt,
            "off": sorted(data.off),
            "paused": dict(data.paused),
            "opted_out": sorted(data.opted_out),
            "opted_out_at": dict(data.opted_out_at),
            **data.aliases.to_json(),
        }
        if data.personas:
            content["personas"] = {room: list(met) for room, met in data.personas.items()}
        content |= shares_to_json(data.shares)
        if data.listening:
            content["listening"] = sorted(data.listening)
        write_private(self._path, json.dumps(content, indent=1) + "\n")
        self._data = data


def _parse_state(content: Any) -> _StateData:
    """Raises ValueError where the content is not what this version writes."""
    if not isinstance(content, dict) or content.get("version") != STATE_VERSION:
        raise ValueError("not a scope state of this version")
    fingerprint, lost = content.get("salt_fingerprint"), content.get("lost_salt")
    if not isinstance(fingerprint, str) or not isinstance(lost, str):
        raise ValueError("no salt fingerprint")
    paused, since = _times(content, "paused"), _times(content, "opted_out_at", {})
    off, opted_out = _hashes(content, "off"), _hashes(content, "opted_out")
    aliases, personas = Aliases.from_json(content), read_lists(content, "personas")
    listening = _hashes({"listening": [], **content}, "listening")  # earlier files have none
    return _StateData(
        fingerprint,
        lost,
        off,
        paused,
        opted_out,
        since,
        aliases,
        personas,
        listening,
        shares=read_shares(content),
    )


def _times(content: dict[str, Any], name: str, absent: Any = None) -> dict[str, float]:
    times = content.get(name, absent)
    if not isinstance(times, dict) or not all(isinstance(at, int | float) for at in times.values()):
        raise ValueError(f"{name} is not a table of times")
    return times


def _are_sealed_with(hasher: Hasher, aliases: Aliases) -> bool:
    """Whether the ids that are on disk can be read."""
    try:
        for sealed in aliases.bots.values():
            unseal(sealed, hasher.digest)
    except ValueError:
        return False
    return True


def _hashes(content: dict[str, Any], name: str) -> frozenset[str]:
    hashes = content.get(name)
    if not isinstance(hashes, list) or not all(isinstance(one, str) for one in hashes):
        raise ValueError(f"{name} is not a list of hashes")
    return frozenset(hashes)


def _people_keys(hasher: Hasher, names: Collection[str], person_id: str) -> set[str]:
    """What stands for a person in these chats, or on these platforms."""
    return {hasher.digest(f"person:{name}", person_id) for name in names}


def write_private(path: Path, text: str) -> None:
    """Replaces a file as a whole, readable by its owner only; on failure the old one stays.

    Raises:
        OSError: The folder cannot be written to, or the disk is full.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)  # there is one only if something failed
