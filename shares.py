"""Who lets a group's bot read their private chat too: what is kept of it on disk. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from .aliases import NUMBER_OF_TAGS, Aliases, Tags

Shares = Mapping[str, "Share"]
"""By the hash of a person in a group."""


@dataclass(frozen=True)
class Share:
    """A private chat that is read when its person speaks in a group; hashes only.

    Attributes:
        tags: The four tags of the private chat's memory.
        own: The same by the chat's own ids, at the time.
        room: The digits of the private chat.
        group: Those of the group.
        people: What stands for the person in the private chat where somebody opts out.
        chats: The digits of both chats, also by their own ids: where one of them is bound to
            another memory, or no longer, it is not the same any more that was shared.
        since: When it was shared, in Unix seconds.
    """

    tags: Tags
    own: Tags
    room: str
    group: str
    people: tuple[str, ...]
    chats: tuple[str, ...]
    since: float

    @property
    def platform(self) -> str:
        """The adapter's name."""
        return self.tags[1].partition(":")[2]

    def to_json(self) -> dict[str, Any]:
        """JSON values, for the disk."""
        return {
            "tags": list(self.tags),
            "own": list(self.own),
            "room": self.room,
            "group": self.group,
            "people": list(self.people),
            "chats": list(self.chats),
            "since": self.since,
        }

    @classmethod
    def from_json(cls, content: Any) -> Share:
        """The share that `to_json` gave.

        Raises:
            ValueError: It is not what this version writes.
        """
        if not isinstance(content, dict):
            raise ValueError("a share is not a table")
        room, group, since = content.get("room"), content.get("group"), content.get("since")
        if not isinstance(room, str) or not isinstance(group, str):
            raise ValueError("a share tells no chat")
        if not isinstance(since, int | float):
            raise ValueError("a share tells no time")
        people, chats = _texts(content, "people"), _texts(content, "chats")
        return cls(_tags(content, "tags"), _tags(content, "own"), room, group, people, chats, since)


def shares_to_json(shares: Shares) -> dict[str, Any]:
    """JSON values; nothing where nothing is shared, so that undone is as never done."""
    return {"shares": {one: share.to_json() for one, share in shares.items()}} if shares else {}


def read_shares(content: Mapping[str, Any]) -> Shares:
    """The shares that `shares_to_json` gave; none in what earlier versions wrote.

    Raises:
        ValueError: They are not what this version writes.
    """
    shares = content.get("shares", {})
    if not isinstance(shares, dict):
        raise ValueError("shares is not a table")
    return {person: Share.from_json(share) for person, share in shares.items()}


def shares_without(shares: Shares, is_over: Callable[[Share], bool]) -> Shares:
    """The shares that stay; the same object where all do."""
    kept = {person: share for person, share in shares.items() if not is_over(share)}
    return kept if len(kept) < len(shares) else shares


def shares_without_chats(shares: Shares, chats: Collection[str]) -> Shares:
    """The shares that concern none of these chats."""
    return shares_without(shares, lambda share: not set(share.chats).isdisjoint(chats))


def changed_chats(before: Aliases, after: Aliases, name: Callable[[Tags], str]) -> set[str]:
    """The digits of chats whose memory is another one after a change.

    Args:
        before: What was bound to what.
        after: What is.
        name: Gives the digits for tags.
    """
    owns = {*before.chats, *after.chats}
    changed = {own for own in owns if before.chats.get(own) != after.chats.get(own)}
    tables = (before.chats, after.chats)
    return changed | {name(table[own]) for table in tables for own in changed if own in table}


def _tags(content: Mapping[str, Any], name: str) -> Tags:
    tags = _texts(content, name)
    if len(tags) != NUMBER_OF_TAGS:
        raise ValueError(f"{name} is not the tags of a chat")
    return tags[0], tags[1], tags[2], tags[3]


def _texts(content: Mapping[str, Any], name: str) -> tuple[str, ...]:
    texts = content.get(name)
    if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
        raise ValueError(f"{name} is not a list of texts")
    return tuple(texts)
