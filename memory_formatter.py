"""Recalled memories -> the block for the model. Pure.

    <hindsight_memory>
    what this is, and who is speaking now
    2026-03-04
    - 小明#3fa2c1: 我的猫叫年糕
    - 助手: 好名字！
    </hindsight_memory>

What stands in it is chosen by relevance, and stands there in the order of time below one head for
each local day. Every line but those of our own begins with a hyphen and has no line break in it, so
nothing that was recalled can pass for a head.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from functools import cached_property

from .cleaning import BLOCK_CLOSE, BLOCK_OPEN, neutralise, recalled, shorten
from .hindsight_types import RecalledMemory
from .ranking import MIN_REPEATED, plain
from .texts import Texts
from .tokens import estimate_tokens, fit
from .transcript import Line, Speaker, said_at

MAX_MEMORY_CHARS = 360
"""A line has at most 400; the others are for whose words these are."""
PROFILE_SHARE = 0.25
"""How much of the whole the profile may take."""
PRIVATE_SHARE = 0.3
"""How much of the whole the lines of a private chat may take: never more than a third of what is
shown, also where the other lines do not quite fill their room."""
MIN_CUT_TOKENS = 24.0
"""The beginning of a memory is worth showing from here on."""

MAX_MISSES = 10
"""After so many in a row that do not fit, none is looked for any more."""

_LABEL = re.compile(r"[^\s#]+#[0-9a-f]{6,32}")
_PSEUDONYM = re.compile(r"#[0-9a-f]{6,32}")
_LINE_BREAK = 1.0
_BETWEEN = " / "
"""What stands between the lines of a memory."""


@dataclass(frozen=True)
class Block:
    """The part that is added to the model's request.

    Attributes:
        text: All of it, empty if there is nothing to say.
        shown: The memories in it, best first.
        left_out: How many there was no room for.
        private: The memories of the speaker's private chat in it.
    """

    text: str = ""
    shown: tuple[RecalledMemory, ...] = ()
    left_out: int = 0
    private: tuple[RecalledMemory, ...] = ()


@dataclass(frozen=True)
class _Said:
    """What one speaker says within a memory, as it may be shown.

    Attributes:
        who: The pseudonym, the bot's name, or empty where nothing tells.
        label: What stands before the words, or empty.
        words: The words.
        at: When, or None.
    """

    who: str
    label: str
    words: str
    at: datetime | None

    @property
    def text(self) -> str:
        """As it stands in the block."""
        return f"{self.label}: {self.words}" if self.label else self.words

    @cached_property
    def plain(self) -> str:
        """Its words by letters and digits alone."""
        return plain(self.words)

    def is_in(self, other: _Said) -> bool:
        """Whether a speaker who is known says all of it in the other."""
        if not self.who or self.who != other.who:
            return False
        is_long = len(self.plain) >= MIN_REPEATED
        return self.plain in other.plain if is_long else self.plain == other.plain


@dataclass(frozen=True)
class _Entry:
    """A memory with the line that shows it.

    Attributes:
        memory: The memory.
        line: What stands in the block.
        day: The local day that it stands under.
        moment: For the order of time.
        said: Who says what in it.
        begin: Where that begins in the line.
    """

    memory: RecalledMemory
    line: str
    day: str
    moment: float
    said: tuple[_Said, ...]
    begin: int = 0

    @cached_property
    def cost(self) -> float:
        """What its line costs."""
        return estimate_tokens(self.line) + _LINE_BREAK

    @cached_property
    def head(self) -> float:
        """What the head of its day costs."""
        return estimate_tokens(self.day) + _LINE_BREAK if self.day else 0.0

    @cached_property
    def shown(self) -> list[_Said]:
        """Who says what in it, as far as the line goes."""
        found: list[_Said] = []
        room = len(self.line.removesuffix("…")) - self.begin
        for one in self.said:
            words = one.words[: max(room - len(one.text) + len(one.words), 0)]
            found += [replace(one, words=words)] if words else []
            room -= len(one.text) + len(_BETWEEN)
        return found

    def is_in(self, entries: Iterable[_Entry]) -> bool:
        """Whether others say all of it on the same day; on another it is something else."""
        others = [one for entry in entries if entry.day == self.day for one in entry.shown]
        return all(any(said.is_in(one) for one in others) for said in self.shown)


def build_block(
    memories: Sequence[RecalledMemory],
    *,
    texts: Texts,
    timezone: tzinfo | None,
    max_tokens: int,
    speaker: Speaker | None = None,
    profile: str = "",
    wishes_to_forget: bool = False,
    private: Sequence[RecalledMemory] = (),
) -> Block:
    """Packs as many memories as there is room for.

    Args:
        memories: Best first.
        texts: The wording in the language of the chat.
        timezone: For the days; None is the system's.
        max_tokens: Bound on the whole.
        speaker: Who is speaking now; given in groups.
        profile: What is known of the chat as a whole, or empty.
        wishes_to_forget: The message asks that something be forgotten; the model is told that
            nothing is by its word, also where there is nothing else to say.
        private: What the speaker's private chat has, best first.
    """
    head = [BLOCK_OPEN, texts("block_header")]
    if speaker:
        head.append(texts("block_speaker", name=neutralise(speaker.label)))
    if wishes_to_forget:
        head.append(texts("block_forget"))
    if profile:
        overview = texts("block_profile", text=recalled(profile, texts))
        head.append(fit(overview, max_tokens * PROFILE_SHARE))
    own: list[_Entry] = []
    if private and speaker:
        about = texts("block_private", name=neutralise(speaker.label))
        room = max_tokens * PRIVATE_SHARE - estimate_tokens(about) - _LINE_BREAK
        own, _ = _pack(private, texts, timezone, room, mark="mark_private")
        head += [about] if own else []
    frame = [*head, *_in_time(own), BLOCK_CLOSE]
    room = max_tokens - estimate_tokens("\n".join(frame)) - _LINE_BREAK
    entries, left_out = _pack(memories, texts, timezone, room)
    if not entries and not own and not profile and not wishes_to_forget:
        return Block(left_out=left_out)
    text = "\n".join([*head, *_in_time([*entries, *own]), BLOCK_CLOSE])
    return Block(text, _memories(entries), left_out, _memories(own))


def _memories(entries: Iterable[_Entry]) -> tuple[RecalledMemory, ...]:
    return tuple(entry.memory for entry in entries)


def cut_memories(memories: Sequence[RecalledMemory], max_tokens: float) -> list[RecalledMemory]:
    """The best memories whose texts together cost no more than so many tokens."""
    kept: list[RecalledMemory] = []
    for memory in memories:
        max_tokens -= estimate_tokens(shorten(memory.text, MAX_MEMORY_CHARS))
        if max_tokens < 0 and kept:
            break
        kept.append(memory)
    return kept


def _pack(
    memories: Sequence[RecalledMemory],
    texts: Texts,
    timezone: tzinfo | None,
    room: float,
    *,
    mark: str = "",
) -> tuple[list[_Entry], int]:
    """What fits of the memories, in their order; a longer one is cut or passed over.

    A mark (the key of one) stands before each, where there is one.
    """
    entries: list[_Entry] = []
    left_out = misses = 0
    for number, memory in enumerate(memories):
        if misses == MAX_MISSES:
            return entries, left_out + len(memories) - number
        entry = _entry(memory, texts, timezone, mark, entries)
        if entry is None:
            continue
        fitted = _with(entry, entries, room)
        misses = 0 if fitted else misses + 1
        left_out += not fitted
        entries = fitted or entries
    return entries, left_out


def _with(entry: _Entry, entries: list[_Entry], room: float) -> list[_Entry]:
    """The entries with one more, in the place of those that it says all of; none if it has no room.

    One that has to be cut replaces nothing.
    """
    others = [one for one in entries if not one.is_in([entry])]
    line = _fitting(entry.line, room - _spent(others, entry))
    if line == entry.line:
        return [*others, entry]
    if len(others) < len(entries):
        line = _fitting(entry.line, room - _spent(entries, entry))
    return [*entries, replace(entry, line=line)] if line else []


def _spent(entries: Iterable[_Entry], following: _Entry) -> float:
    """What these entries cost, and the next one without its line."""
    heads: dict[str, float] = {}
    cost = _LINE_BREAK
    for entry in entries:
        cost += entry.cost
        heads[entry.day] = entry.head
    if following.day not in heads:
        heads[following.day] = following.head
    return cost + sum(heads.values())


def _fitting(line: str, room: float) -> str:
    """A line, or as much of it as is worth showing."""
    if estimate_tokens(line) <= room:
        return line
    return fit(line, room) if room >= MIN_CUT_TOKENS else ""


def _entry(
    memory: RecalledMemory,
    texts: Texts,
    timezone: tzinfo | None,
    mark: str,
    entries: Sequence[_Entry],
) -> _Entry | None:
    """A memory without what the entries say already; None where nothing is left of it."""
    new: list[_Said] = []
    for said in _said(memory, texts):
        line = shorten(said.text, MAX_MEMORY_CHARS)
        alone = _Entry(memory, line, _local_day(said.at, timezone), 0.0, (said,))
        if not alone.is_in(entries):
            new.append(said)
    if not new:
        return None
    text, at = _joined(memory, new, texts), new[0].at
    line = f"- {texts(mark, text=text) if mark else text}"
    if any(line == entry.line for entry in entries):
        return None
    begin = max(line.find(new[0].text[:MIN_REPEATED]), 0)
    return _Entry(memory, line, _local_day(at, timezone), _moment(at), tuple(new), begin)


def _in_time(entries: Iterable[_Entry]) -> Iterable[str]:
    """The lines in the order of time, what has no date first, a head before each day."""
    day = ""
    for entry in sorted(entries, key=lambda entry: (entry.day, entry.moment)):
        if entry.day != day:
            day = entry.day
            yield day
        yield entry.line


def memory_text(memory: RecalledMemory, texts: Texts) -> str:
    """A memory as it may be shown: harmless, short, and with its speaker where that matters."""
    return _joined(memory, _said(memory, texts), texts)


def _joined(memory: RecalledMemory, said: Sequence[_Said], texts: Texts) -> str:
    text = shorten(_BETWEEN.join(one.text for one in said), MAX_MEMORY_CHARS)
    # A line of a chat begins with its speaker; a fact in other words does not tell.
    told = memory.kind != "experience" or not text or any(one.label for one in said)
    return text if told else texts("block_by_assistant", text=text)


def _said(memory: RecalledMemory, texts: Texts) -> list[_Said]:
    """Who said what in each line of a memory, without the time, which its day tells."""
    who = memory.speakers[0] if len(memory.speakers) == 1 else ""
    known = who if _PSEUDONYM.fullmatch(who) else ""
    said: list[_Said] = []
    for line in map(Line, memory.text.splitlines()):
        at = line.at or said_at(memory)
        if line.label:
            label = neutralise(line.label)
            words = recalled(line.words, texts).replace(_BETWEEN, "／")
            said.append(_Said(line.pseudonym or label, label, words, at))
        elif words := recalled(line.text, texts, known):
            said.append(_Said("" if memory.kind == "experience" else known, "", words, at))
    return said


def has_label(text: str) -> bool:
    """Whether a text names a speaker by name and pseudonym."""
    return _LABEL.search(text) is not None


def memory_date(memory: RecalledMemory, timezone: tzinfo | None) -> str:
    """The local date of a memory, empty if it has none."""
    return _local_day(said_at(memory), timezone)


def _local_day(at: datetime | None, timezone: tzinfo | None) -> str:
    try:
        return at.astimezone(timezone).date().isoformat() if at else ""
    except OverflowError:  # the first or last day of the calendar
        return ""


def _moment(at: datetime | None) -> float:
    """For the order of time; `timestamp` fails at no end of the calendar for an aware time."""
    return at.timestamp() if at else -math.inf
