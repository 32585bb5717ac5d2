"""Which bots and chats are hashed as what they were called before their ids changed.

A chat's alias is a hash that stands for four others, so the disk shows no id. A bot's id is part
of every session id, and each chat's is hashed as a whole: to hash it as it was, the bot's old id
itself must be known. So that one stands on the disk *sealed*: mixed with a stream that only the
salt gives, under a check that is made of the id, so that it is never read as another one. (The
same as a synthetic initialisation vector; the salt lies beside it, as for all hashes here: who has
both files can try ids anyway.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Tags = tuple[str, str, str, str]

Digest = Callable[[str, str], str]
"""HMAC of a value of some kind, 32 hex digits."""

NUMBER_OF_TAGS = 4
_CHECK_DIGITS = 32
_BLOCK_BYTES = 16


@dataclass(frozen=True)
class Aliases:
    """What stands for what.

    Attributes:
        bots: By the hash of a bot's id, its older id, sealed.
        chats: By the hash of a chat under its own ids, the four tags that it has instead.
        rooms: By the hash of a chat, those of whom documents were moved to it: the people in them
            have the pseudonyms of there.
    """

    bots: Mapping[str, str] = field(default_factory=dict)
    chats: Mapping[str, Tags] = field(default_factory=dict)
    rooms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """JSON values; nothing for what there is none of, so that undone is as never done."""
        parts = {
            "bots": dict(sorted(self.bots.items())),
            "chats": {one: list(tags) for one, tags in sorted(self.chats.items())},
            "rooms": {one: list(others) for one, others in sorted(self.rooms.items())},
        }
        return {name: part for name, part in parts.items() if part}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Aliases:
        """The aliases that `to_json` gave.

        Raises:
            ValueError: They are not what this version writes.
        """
        bots, chats = content.get("bots", {}), read_lists(content, "chats")
        if not isinstance(bots, dict) or not all(isinstance(one, str) for one in bots.values()):
            raise ValueError("bots is not a table of texts")
        if not all(len(tags) == NUMBER_OF_TAGS for tags in chats.values()):
            raise ValueError("chats is not a table of tags")
        whole = {one: (tags[0], tags[1], tags[2], tags[3]) for one, tags in chats.items()}
        return cls(bots, whole, read_lists(content, "rooms"))


def read_lists(content: Mapping[str, Any], name: str) -> dict[str, tuple[str, ...]]:
    """A table of lists of texts.

    Raises:
        ValueError: It is something else.
    """
    table = content.get(name, {})
    if not isinstance(table, dict) or not all(
        isinstance(row, list) and all(isinstance(one, str) for one in row) for row in table.values()
    ):
        raise ValueError(f"{name} is not a table of lists")
    return {key: tuple(row) for key, row in table.items()}


def seal(text: str, digest: Digest) -> str:
    """A text in hex digits that tell nothing of it without the salt."""
    check = digest("seal", text)
    return check + _mixed(text.encode("utf-8", "surrogatepass"), check, digest).hex()


def unseal(sealed: str, digest: Digest) -> str:
    """The text that was sealed.

    Raises:
        ValueError: It was sealed with another salt, or is damaged.
    """
    check, mixed = sealed[:_CHECK_DIGITS], bytes.fromhex(sealed[_CHECK_DIGITS:])
    text = _mixed(mixed, check, digest).decode("utf-8", "surrogatepass")
    if digest("seal", text) != check:
        raise ValueError("not sealed with this salt")
    return text


def _mixed(text: bytes, check: str, digest: Digest) -> bytes:
    """A text mixed with the stream of its check; a second time, what it was."""
    blocks = range(-(-len(text) // _BLOCK_BYTES))
    stream = b"".join(bytes.fromhex(digest("stream", f"{check} {n}")) for n in blocks)
    return bytes(a ^ b for a, b in zip(text, stream, strict=False))
