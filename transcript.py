"""What a speaker, a line, a turn and a document are, and whose a line is.

The one writer and the one parser of the stored form. A document is a run of lines

    小明#3fa2c1 (2026-03-04T12:30:05+08:00): 我的猫叫年糕
    助手 (2026-03-04T12:30:09+08:00): 好名字！

The bot's line is part of what it answers: of the line before it, or of whom it names in the
brackets where that is somebody else, `助手 (2026-03-04T12:31:00+08:00 → 小红#2be071): …`. Names
have neither `#` nor brackets, so what somebody says cannot pass for the beginning of a line.
"""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from .hindsight_types import RecalledMemory, RetainItem, StoredDocument
from .scope import Scope, Shared
from .texts import Texts

PLUGIN = "astrbot_plugin_hindsight_memory"

_PERSON = r"[^#(\n]*(?P<{}>#[0-9a-f]{{6,32}})"
_LINE = re.compile(
    rf"(?P<label>{_PERSON.format('speaker')}|[^#(\n]*) \((?P<at>\d{{4}}-\d\d-\d\dT[^)\s]*)"
    rf"(?: → (?P<answered_label>{_PERSON.format('answered')}))?\): (?P<words>.*)",
    re.DOTALL,
)
_COUNTED = ("turns", "speakers")
"""Metadata that is counted anew from the lines."""


@dataclass(frozen=True)
class Speaker:
    """Who says a line.

    Attributes:
        name: Display name, cleaned.
        pseudonym: `#` and hex digits, six as a rule; empty for the bot itself.
    """

    name: str
    pseudonym: str = ""

    @property
    def label(self) -> str:
        """The name that stands before what was said; only the bot's has no number."""
        return f"{self.name}{self.pseudonym}"


@dataclass(frozen=True)
class Line:
    """One line as it stands in a document.

    Attributes:
        text: The whole line.
        message: The keyed hash of the message that it was made of, until it is on disk.
        came: When it came, in Unix seconds, until it is sent; 0 where that makes no difference.
    """

    text: str
    message: str = field(default="", compare=False, repr=False)
    came: float = field(default=0.0, compare=False, repr=False)

    @property
    def pseudonym(self) -> str:
        """The speaker's; empty for the bot."""
        return self._part("speaker")

    @property
    def label(self) -> str:
        """The speaker's name and pseudonym, the bot's name alone; empty for other texts."""
        return self._part("label")

    @property
    def at(self) -> datetime | None:
        """When it was said, if the line tells a moment with its offset."""
        try:
            moment = datetime.fromisoformat(self._part("at"))
        except ValueError:
            return None
        return moment if moment.tzinfo else None

    @property
    def answered(self) -> str:
        """The pseudonym of whom the bot answers, where the line names somebody."""
        return self._part("answered")

    @property
    def answered_label(self) -> str:
        """The same with the name."""
        return self._part("answered_label")

    @property
    def words(self) -> str:
        """What was said."""
        return self._part("words") if self._match else self.text

    def saying(self, words: str) -> Line:
        """The same line with other words; one that is none is said by nobody."""
        return Line(f"{self.text.removesuffix(self.words)}{words}", came=self.came)

    def is_before(self, other: Line) -> bool:
        """Whether it was said before another one, as far as both tell."""
        if self.at is None or other.at is None:
            return False
        return (self.at, self.came) < (other.at, other.came)

    @cached_property
    def _match(self) -> re.Match[str] | None:
        return _LINE.match(self.text)

    def _part(self, name: str) -> str:
        return (self._match[name] or "") if self._match else ""

    def answering(self, person: str) -> Line:
        """The same line of the bot with the label of whom it answers."""
        head, closing, words = self.text.partition("): ")
        return replace(self, text=f"{head} → {person}{closing}{words}")


@dataclass(frozen=True)
class Utterance:
    """What one speaker said at one time.

    Attributes:
        speaker: Who.
        at: When, aware, in the chat's timezone.
        text: The words, on one line.
        message: See `Line`.
        came: See `Line`.
    """

    speaker: Speaker
    at: datetime
    text: str
    message: str = ""
    came: float = 0.0

    @property
    def line(self) -> Line:
        """The stored form."""
        when = self.at.isoformat(timespec="seconds")
        return Line(f"{self.speaker.label} ({when}): {self.text}", self.message, self.came)


@dataclass(frozen=True)
class Message:
    """What somebody has said to the bot.

    Attributes:
        scope: The chat.
        speaker: Who.
        raw: The person's own words as the platform delivered them; never stored or sent.
        words: The same on one line, ids replaced.
        quoted: The words that the message replies to.
        stored: The words with a marker for each attachment and quotation.
        at: When, aware, in the local timezone.
        texts: The wording in the language of this chat.
        bot: The bot's own name.
        private_to_speaker: The speaker does not want to be stored.
        began: When it came, in seconds of the monotonic clock, which a reload does not set back.
        shared: The private chat whose memory the speaker lets be read here too.
        key: Its keyed hash, by which it is found when it is withdrawn; empty where the platform
            never tells of that.
        came: When AstrBot was told of it, in Unix seconds; 0 where that is not known.
    """

    scope: Scope
    speaker: Speaker
    raw: str = field(repr=False)
    words: str
    quoted: str
    stored: str
    at: datetime
    texts: Texts
    bot: Speaker
    private_to_speaker: bool = False
    began: float = math.inf
    shared: Shared | None = None
    key: str = ""
    came: float = 0.0

    @property
    def utterance(self) -> Utterance:
        """What is stored of it."""
        return Utterance(self.speaker, self.at, self.stored, self.key, self.came)


@dataclass(frozen=True)
class Header:
    """What the turns of a window have in common; the first one's stands for all.

    Attributes:
        tags: The four tags of the chat.
        context: Who is speaking to whom, for the extraction.
        timestamp: ISO 8601 with offset.
        metadata: Strings only.
    """

    tags: tuple[str, ...]
    context: str
    timestamp: str
    metadata: Mapping[str, str]

    @classmethod
    def of(cls, scope: Scope, texts: Texts, at: datetime, bot: Speaker) -> Header:
        """The header of what is said in a chat at a time."""
        return cls(
            tags=scope.tags,
            context=texts(f"context_{scope.kind}", platform=scope.platform, bot=bot.name),
            timestamp=at.isoformat(timespec="seconds"),
            metadata={"plugin": PLUGIN, "kind": scope.kind, "platform": scope.platform},
        )

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Header:
        """The header that `to_json` gave.

        Raises:
            KeyError: A field is missing.
        """
        return cls(
            tuple(content["tags"]), content["context"], content["timestamp"], content["metadata"]
        )

    def to_json(self) -> dict[str, Any]:
        """JSON values, for the disk."""
        return {
            "tags": list(self.tags),
            "context": self.context,
            "timestamp": self.timestamp,
            "metadata": dict(self.metadata),
        }


TurnLines = tuple[Line, ...]
"""What people say, and the bot's answer to it."""


@dataclass(frozen=True)
class TurnRecord:
    """A turn as it is written to disk.

    Attributes:
        chat: The chat's hash.
        header: The first turn's header is the window's.
        lines: What was said.
        urgent: Its window is to be sent as soon as possible.
        is_listened: Its chat listens, whose windows are longer and in the order of time.
        is_heard: Nobody called the bot: a line that may be lost before any turn is.
        began: See `Message`; what is erased after that covers the turn, wherever it is by then.
    """

    chat: str
    header: Header
    lines: TurnLines
    urgent: bool = False
    began: float = math.inf
    is_listened: bool = False
    is_heard: bool = False

    @property
    def chars(self) -> int:
        """Characters that this turn adds to its window."""
        return count_chars([self.lines])


@dataclass(frozen=True)
class Document:
    """A document that was read back.

    Attributes:
        document_id: Its id.
        header: What it was stored with.
        lines: What was said.
    """

    document_id: str
    header: Header
    lines: TurnLines


def said_at(memory: RecalledMemory) -> datetime | None:
    """When a memory was said: its own line tells, else its source's time; None if none does."""
    return Line(memory.text).at or memory.mentioned_at


def new_document_id(chat: str) -> str:
    """An id that no other document has, ever."""
    return f"{document_prefix(chat)}{uuid.uuid4()}"


def document_prefix(chat: str) -> str:
    """What the ids of all documents of a chat begin with."""
    return f"{chat[:24]}-"


def count_chars(turns: Iterable[TurnLines]) -> int:
    """Characters of these turns as lines of a document."""
    return sum(len(line.text) + 1 for lines in turns for line in lines)


def turn_lines(said: Sequence[Utterance], asker: Speaker) -> TurnLines:
    """The lines of a turn, of which each of the bot's tells whom it answers.

    Args:
        said: In order.
        asker: Whom the bot answers.
    """
    lines: list[Line] = []
    for one in said:
        line = one.line
        before = lines[-1].pseudonym if lines else ""
        is_plain = one.speaker.pseudonym or before == asker.pseudonym
        lines.append(line if is_plain else line.answering(asker.label))
    return tuple(lines)


def owners(lines: Iterable[Line]) -> list[str]:
    """Whose each line is, by pseudonym; the bot's are of those whom they answer."""
    found: list[str] = []
    for line in lines:
        found.append(line.pseudonym or line.answered or (found[-1] if found else ""))
    return found


def keep(lines: Sequence[Line], is_kept: Callable[[Line, str], bool]) -> list[Line]:
    """Some lines of a window or document, each of which stays whose it was.

    Args:
        lines: All of them.
        is_kept: Takes a line and its owner's pseudonym.
    """
    owned = list(zip(lines, owners(lines), strict=True))
    return _relabelled(lines, [(line, owner) for line, owner in owned if is_kept(line, owner)])


def in_order(lines: Sequence[Line]) -> list[Line]:
    """Lines in the order in which they were said, each of which stays whose it was.

    Within a second, which is all that a line tells, they are in the order in which they came.
    """
    times = [(line.at or datetime.min.replace(tzinfo=UTC), line.came) for line in lines]
    places = sorted(range(len(lines)), key=times.__getitem__)
    whose = owners(lines)
    return _relabelled(lines, [(lines[place], whose[place]) for place in places])


def _relabelled(lines: Sequence[Line], owned: Iterable[tuple[Line, str]]) -> list[Line]:
    """Lines with their owners, of which each of the bot's tells whom it answers where it must.

    Args:
        lines: Where everybody's name stands.
        owned: The lines, in order.
    """
    labels = {line.answered: line.answered_label for line in lines if line.answered}
    labels |= {line.pseudonym: line.text.partition(" (")[0] for line in lines if line.pseudonym}
    placed: list[Line] = []
    before = ""
    for line, owner in owned:
        is_plain = line.pseudonym or line.answered or owner in {before, ""}
        placed.append(line if is_plain else line.answering(labels[owner]))
        before = owner
    return placed


def without_person(lines: Sequence[Line], pseudonym: str) -> list[Line]:
    """Lines without a person's, and without what the bot answered them."""
    return keep(lines, lambda _, owner: owner != pseudonym)


def group_turns(lines: Iterable[Line]) -> list[TurnLines]:
    """Lines as turns: what people say, and the bot's answer to it."""
    turns: list[TurnLines] = []
    for line in lines:
        follows = turns and (not line.pseudonym or turns[-1][-1].pseudonym)
        turns = [*turns[:-1], (*turns[-1], line)] if follows else [*turns, (line,)]
    return turns


def build_item(document_id: str, header: Header, turns: Sequence[TurnLines]) -> RetainItem:
    """A document of some turns, the same each time it is built."""
    lines = [line for turn in turns for line in turn]
    speakers = sorted({line.pseudonym for line in lines if line.pseudonym})
    metadata = {**header.metadata, "turns": str(len(turns)), "speakers": " ".join(speakers)}
    return RetainItem(
        content="\n".join(line.text for line in lines),
        document_id=document_id,
        context=header.context,
        timestamp=header.timestamp,
        metadata=metadata,
        tags=header.tags,
    )


def read_document(stored: StoredDocument, tags: Sequence[str]) -> Document:
    """Reads a document back, also one that an earlier version wrote.

    Args:
        stored: The document.
        tags: The four tags of its chat, in their order.
    """
    metadata = {k: v for k, v in stored.metadata.items() if k not in _COUNTED}
    header = Header(tuple(tags), stored.context, stored.timestamp, metadata)
    lines = tuple(Line(text) for text in stored.text.splitlines())
    return Document(stored.document_id, header, lines)
