"""Text in and out: a turn -> what is stored; recalled memories -> the block for the model.

Nothing here does I/O or knows AstrBot.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from .hindsight_client import RecalledMemory
from .texts import Texts

BLOCK_OPEN = "<hindsight_memory>"
BLOCK_CLOSE = "</hindsight_memory>"

MAX_NAME_CHARS = 24
MIN_ID_CHARS = 4
"""Shorter ids are ordinary words and numbers; no platform gives such to people or groups."""
UNMISTAKABLE_CHARS = 20
"""An id that is no number and as long as this is no part of a word."""
MAX_QUERY_UNITS = 480.0
"""Hindsight up to 0.10 refuses queries over 500 tokens, 1.x cuts them."""
SHORT_QUERY_UNITS = 16.0
MAX_MEMORY_CHARS = 360
"""A line has at most 400; the others are for its date and whose words these are."""
MAX_PROFILE_CHARS = 600
MAX_ENTITY_DEPTH = 4

_FIRST_WIDE = 0x2E80
"""From here on a character may cost up to two tokens: CJK, kana, hangul, emoji."""

_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\ufe0e\ufe0f")
_ANGLES = str.maketrans(dict.fromkeys("<＜﹤", "‹") | dict.fromkeys(">＞﹥", "›"))
_INSTRUCTION = re.compile(
    r"忽略(?:掉)?(?:以上|之前|前面|先前|上面|上述|所有|一切|你)"
    r"|无视(?:以上|之前|前面|所有|一切)"
    r"|忘(?:记|掉)(?:你|之前|以上|前面|所有).{0,6}(?:指令|设定|规则|身份|提示|要求)"
    r"|从(?:现在|今)(?:起|开始|往后|以后)[，,、 ]*(?:你|请你|所有)"
    r"|以后你(?:都|就)?(?:必须|只能|要|得)"
    r"|你(?:现在|从今)(?:是|就是|叫|必须|扮演)|你必须(?:服从|听从|执行|回答|遵守)|(?:扮演|假装你?是)"
    r"|(?:系统|开发者)(?:提示词?|消息|指令|通知|管理员)?[ ]?[:：]|你的新(?:身份|指令|设定|任务)"
    r"|\b(?:ignore|disregard|forget|override)\b.{0,20}"
    r"\b(?:previous|above|prior|earlier|all|your)\b"
    r"|\bfrom now on\b|\byou (?:are now|must(?: now)? (?:always|never|obey|only|act))\b"
    r"|\b(?:act as|pretend (?:to be|you|that you)|role-?play)\b"
    r"|\b(?:new|system) (?:instructions?|prompt)\b"
    r"|(?:^|[\s>\[<|])(?:system|developer|assistant)(?:\s*(?:message|prompt|note))?\s*[:：\]|>]"
    r"|<\|?im_start|\[/?INST\]|#{2,}\s*(?:system|instruction)",
    re.IGNORECASE,
)
_LABEL = re.compile(r"[^\s#]+#[0-9a-f]{6}")
_PSEUDONYM = re.compile(r"#[0-9a-f]{6}")
_FORGED_PSEUDONYM = re.compile(r"#(?=[0-9a-fA-F]{6})")
_LINE_TIME = re.compile(r"\((?=\d{4}-\d{2}-\d{2}T)")
_NAME_SYNTAX = re.compile(r"[#＃()（）:：<>＜＞‹›\[\]]+")
_WISH = re.compile(
    r"记住|记下|记一下|记着|别忘|不要忘|\bremember (?:that|this|my|i\b)|\bdon'?t forget\b",
    re.IGNORECASE,
)
_ECHOED_BLOCK = re.compile(
    rf"\s*{re.escape(BLOCK_OPEN)}.*?(?:{re.escape(BLOCK_CLOSE)}|\Z)\s*", re.DOTALL
)


@dataclass(frozen=True)
class Speaker:
    """Who says a line.

    Attributes:
        name: Display name, cleaned.
        pseudonym: `#` and six hex digits; empty for the bot itself.
    """

    name: str
    pseudonym: str = ""

    @property
    def label(self) -> str:
        """The name that stands before what was said; only the bot's has no number."""
        return f"{self.name}{self.pseudonym}"


@dataclass(frozen=True)
class Utterance:
    """What one speaker said at one time.

    Attributes:
        speaker: Who.
        at: When, aware, in the chat's timezone.
        text: The words, on one line.
    """

    speaker: Speaker
    at: datetime
    text: str

    @property
    def line(self) -> str:
        """The stored form: `Name#pseudonym (local time with offset): text`."""
        return f"{self.speaker.label} ({self.at.isoformat(timespec='seconds')}): {self.text}"


def clean_text(text: str) -> str:
    """One line without control, zero-width or bidirectional characters."""
    if not text.isprintable() or not _FILLERS.isdisjoint(text):  # mostly it is plain already
        text = "".join(c for c in text if c.isspace() or not _is_invisible(c))
    return " ".join(text.split())


def plain_speech(text: str) -> str:
    """What somebody said, on one line, without a memory block."""
    return clean_text(strip_block(clean_text(text)))


def without_forgery(text: str) -> str:
    """Text in which nothing reads as another line's beginning."""
    return _LINE_TIME.sub("（", _FORGED_PSEUDONYM.sub("＃", text))


def is_instruction(text: str) -> bool:
    """Whether a text tries to give the bot orders, in Chinese or English.

    Such words are kept as what they are, a quotation with its speaker; so a false alarm costs
    nothing but quotation marks.
    """
    return _INSTRUCTION.search(text) is not None


def clean_name(name: str, fallback: str) -> str:
    """A display name that cannot imitate another line's beginning; never empty."""
    cleaned = clean_text(_NAME_SYNTAX.sub(" ", neutralise(name)))
    return cleaned[:MAX_NAME_CHARS].strip() or fallback


def replace_ids(
    text: str, labels: Mapping[str, str], names: Mapping[str, Collection[str]] | None = None
) -> str:
    """Puts labels where raw platform ids stand, also in the form `name(id)`.

    Args:
        text: Any text of the chat.
        labels: Platform id -> what to write instead.
        names: Platform id -> names that may stand before it, besides the one in its label.
    """
    names = names or {}
    found = (raw for raw in labels if len(raw) >= MIN_ID_CHARS and raw in text)
    raws = sorted(found, key=len, reverse=True)
    if not raws:
        return text
    # In one pass, so that nothing is replaced within a label that has just been put in.
    patterns = [
        rf"({_named(raw, [*names.get(raw, ()), labels[raw].partition('#')[0]])}|{_bounded(raw)})"
        for raw in raws
    ]
    return re.sub("|".join(patterns), lambda match: labels[raws[(match.lastindex or 1) - 1]], text)


def _named(raw: str, names: Iterable[str]) -> str:
    """A pattern for an id in brackets behind one of its names."""
    name = "|".join(map(re.escape, sorted(filter(None, names), key=len, reverse=True)))
    return rf"(?:{name})\s*[(（]\s*{_bounded(raw)}\s*[)）]"


def _bounded(raw: str) -> str:
    """A pattern for an id: a number within no longer number, a word within no longer word.

    Some ids are ordinary words (WebChat's user is called `astrbot`), and a number may stand right
    behind letters (`qq10001`).
    """
    if len(raw) >= UNMISTAKABLE_CHARS and not raw.isdecimal():
        return re.escape(raw)
    around = r"[0-9]" if raw.isdecimal() else r"[A-Za-z0-9_]"
    return rf"(?<!{around}){re.escape(raw)}(?!{around})"


def strip_block(text: str) -> str:
    """Cuts every memory block out of a text, also one that was never closed."""
    if BLOCK_OPEN not in text:
        return text
    return _ECHOED_BLOCK.sub("\n", text).strip()


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
    return re.sub(r"\W+$", "", text)


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
    if overview := shorten(neutralise(profile), MAX_PROFILE_CHARS):
        yield texts("block_profile", text=overview), None
    seen: set[str] = set()
    for memory in memories:
        text = memory_text(memory, texts)
        if text and text not in seen:
            seen.add(text)
            date = memory_date(memory, timezone)
            yield " ".join(filter(None, ["-", date, text])), memory


def memory_text(memory: RecalledMemory, texts: Texts) -> str:
    """A memory as it may be shown: harmless, short, and with its speaker where that matters.

    Returns:
        The text, or an empty one for orders to the bot of which nobody knows who gave them.
    """
    one_line = " / ".join(filter(str.strip, memory.text.splitlines()))
    text = shorten(neutralise(one_line), MAX_MEMORY_CHARS)
    if is_instruction(text) and not _LABEL.search(text):
        who = memory.speakers[0] if len(memory.speakers) == 1 else ""
        is_known = _PSEUDONYM.fullmatch(who)
        return texts("block_said", name=who, text=text) if is_known else ""
    # A whole line begins with its speaker; a fact in other words does not tell.
    told = memory.kind != "experience" or _LINE_TIME.search(text)
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


def neutralise(text: str) -> str:
    """Text that can neither open nor close a tag, on one line, nothing invisible in it."""
    for _ in range(MAX_ENTITY_DEPTH):
        before, text = text, html.unescape(clean_text(text))
        if text == before:
            return text.translate(_ANGLES)
    return clean_text(text).replace("&", "＆").translate(_ANGLES)


def shorten(text: str, limit: int) -> str:
    """Cuts a text to so many characters, an ellipsis included."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def _is_invisible(character: str) -> bool:
    """Control, format (zero-width, bidi, tags), surrogate and private-use characters, fillers."""
    return character in _FILLERS or unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co"}
