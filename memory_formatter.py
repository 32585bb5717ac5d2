"""Text in and out: a turn -> what is stored; recalled memories -> the block for the model.

Nothing here does I/O or knows AstrBot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import tzinfo

from .cleaning import (
    BLOCK_CLOSE,
    BLOCK_OPEN,
    LINE_TIME,
    clean_text,
    neutralise,
    recalled,
)
from .hindsight_types import RecalledMemory
from .texts import Texts
from .transcript import Speaker

MAX_QUERY_UNITS = 480.0
"""Hindsight up to 0.10 refuses queries over 500 tokens, 1.x cuts them."""
SHORT_QUERY_UNITS = 16.0
MAX_MEMORY_CHARS = 360
"""A line has at most 400; the others are for its date and whose words these are."""
MAX_PROFILE_CHARS = 600

_FIRST_WIDE = 0x2E80
"""From here on a character may cost up to two tokens: CJK, kana, hangul, emoji."""

_LABEL = re.compile(r"[^\s#]+#[0-9a-f]{6,32}")
_PSEUDONYM = re.compile(r"#[0-9a-f]{6,32}")
_WISH = re.compile(
    r"记住|记下|记一下|记着|别忘|不要忘|\bremember (?:that|this|my|i\b)|\bdon'?t forget\b",
    re.IGNORECASE,
)


def asks_to_remember(words: str) -> bool:
    """Whether a person plainly wishes that something be remembered."""
    return _WISH.search(words) is not None


def units(text: str) -> float:
    """An upper estimate of tokens: two for a wide character, 0.4 for any other."""
    return sum(2.0 if ord(c) >= _FIRST_WIDE else 0.4 for c in text)


def build_query(words: str, *, previous: str = "", quoted: str = "") -> str:
    """The text to recall by, empty if there is no word in it.

    Args:
        words: What the person has just said.
        previous: The same person's message before, used where the words alone say little.
        quoted: The message that this one replies to.

    Returns:
        At most `MAX_QUERY_UNITS` units, the newest text kept.
    """
    if units(words) >= SHORT_QUERY_UNITS:
        previous = ""
    query = clean_text(f"{previous} {quoted} {words}")
    if not re.search(r"\w", words + quoted):
        return ""
    newest = _newest(query, MAX_QUERY_UNITS)
    # What is kept must have a word in it, or the server refuses it.
    return newest if re.search(r"\w", newest) else _newest(_trim(query), MAX_QUERY_UNITS)


def _trim(text: str) -> str:
    end = len(text)
    while end and not re.match(r"\w", text[end - 1]):
        end -= 1
    return text[:end]


def halve_query(query: str) -> str:
    """The newer half of a query that the server found too long."""
    return _newest(query, units(query) / 2)


def _newest(text: str, limit: float) -> str:
    """The end of a text, as long as the limit allows."""
    used = 0.0
    for index in range(len(text) - 1, -1, -1):
        used += units(text[index])
        if used > limit:
            return text[index + 1 :].strip()
    return text


def build_block(
    memories: Sequence[RecalledMemory],
    *,
    texts: Texts,
    timezone: tzinfo | None,
    max_tokens: int,
    speaker: Speaker | None = None,
    profile: str = "",
) -> tuple[str, list[RecalledMemory]]:
    """The part that is added to the model's request.

    Args:
        memories: Best first.
        texts: The wording in the language of the chat.
        timezone: For the dates of the lines; None is the system's.
        max_tokens: Bound on the whole, in `units`.
        speaker: Who is speaking now; given in groups.
        profile: What is known of the chat as a whole, or empty.

    Returns:
        The block, empty if nothing fits or there is nothing to say, and the memories in it.
    """
    head = [BLOCK_OPEN, texts("block_header")]
    if speaker:
        head.append(texts("block_speaker", name=neutralise(speaker.label)))
    left = max_tokens - units("\n".join([*head, BLOCK_CLOSE]))
    lines: list[str] = []
    shown: list[RecalledMemory] = []
    for line, memory in _block_lines(memories, texts, timezone, profile):
        left -= units(line) + 1
        if left < 0:
            break
        lines.append(line)
        if memory:
            shown.append(memory)
    return ("\n".join([*head, *lines, BLOCK_CLOSE]) if lines else ""), shown


def _block_lines(
    memories: Iterable[RecalledMemory], texts: Texts, timezone: tzinfo | None, profile: str
) -> Iterable[tuple[str, RecalledMemory | None]]:
    """The profile, then one dated line per memory, each text once."""
    if overview := recalled(profile, texts, MAX_PROFILE_CHARS):
        yield texts("block_profile", text=overview), None
    seen: set[str] = set()
    for memory in memories:
        text = memory_text(memory, texts)
        if text and text not in seen:
            seen.add(text)
            date = memory_date(memory, timezone)
            yield " ".join(filter(None, ["-", date, text])), memory


def memory_text(memory: RecalledMemory, texts: Texts) -> str:
    """A memory as it may be shown: harmless, short, and with its speaker where that matters."""
    who = memory.speakers[0] if len(memory.speakers) == 1 else ""
    is_known = _PSEUDONYM.fullmatch(who) is not None
    text = recalled(memory.text, texts, MAX_MEMORY_CHARS, who if is_known else "")
    # A whole line begins with its speaker; a fact in other words does not tell.
    told = memory.kind != "experience" or not text or LINE_TIME.search(text)
    return text if told else texts("block_by_assistant", text=text)


def has_label(text: str) -> bool:
    """Whether a text names a speaker by name and pseudonym."""
    return _LABEL.search(text) is not None


def memory_date(memory: RecalledMemory, timezone: tzinfo | None) -> str:
    """The local date of a memory, empty if it has none."""
    if memory.mentioned_at is None:
        return ""
    try:
        return memory.mentioned_at.astimezone(timezone).date().isoformat()
    except OverflowError:  # the first or last day of the calendar
        return ""
