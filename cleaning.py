"""The one way a text is made safe, on the way in and on the way out.

Nothing here does I/O or knows AstrBot.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping

MAX_NAME_CHARS = 24
MIN_ID_CHARS = 4
"""Shorter ids are ordinary words and numbers; no platform gives such to people or groups."""
UNMISTAKABLE_CHARS = 20
"""An id that is no number and as long as this is no part of a word."""
MAX_ENTITY_DEPTH = 4
BLOCK_OPEN = "<hindsight_memory>"
BLOCK_CLOSE = "</hindsight_memory>"
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
_FORGED_PSEUDONYM = re.compile(r"#(?=[0-9a-fA-F]{6})")
LINE_TIME = re.compile(r"\((?=\d{4}-\d{2}-\d{2}T)")
_NAME_SYNTAX = re.compile(r"[#＃()（）:：<>＜＞‹›\[\]]+")
_ECHOED_BLOCK = re.compile(
    rf"\s*{re.escape(BLOCK_OPEN)}.*?(?:{re.escape(BLOCK_CLOSE)}|\Z)\s*", re.DOTALL
)


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
    return LINE_TIME.sub("（", _FORGED_PSEUDONYM.sub("＃", text))


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
