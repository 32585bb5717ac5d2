"""The text to recall by: the words of a message, with what they may lean on. Pure."""

from __future__ import annotations

import re

from .cleaning import clean_text

MAX_QUERY_UNITS = 480.0
"""Hindsight up to 0.10 refuses queries over 500 tokens, 1.x cuts them."""
SHORT_QUERY_UNITS = 16.0

_FIRST_WIDE = 0x2E80
"""From here on a character may cost up to two tokens: CJK, kana, hangul, emoji."""

_WISH = re.compile(
    r"记住|记下|记一下|记着|别忘|不要忘|\bremember (?:that|this|my|i\b)|\bdon'?t forget\b",
    re.IGNORECASE,
)

_UNWISH = re.compile(
    r"(?:你|请|帮我|麻烦|(?:^|[你请，。,])把.{1,20}|都|全|快|就)\s*(?:忘了|忘记|忘掉)(?:吧|它|他|她|掉|这|那|我说|我的|$|[，。！,.!])"
    r"|(?:忘了|忘记|忘掉)(?:它|这(?:件|个|些|句)|那(?:件|个|些|句)|我说|我(?:刚才|刚刚|之前))|(?:忘了|忘掉|忘记)吧"
    r"|(?:^|你|请)(?:忘掉|忘记)我(?!了)"
    r"|(?:别|不要|不用|不许)(?:再)?(?:记(?=这|那|它)|记住|记得|记着|记了|记下|保存)(?!我)"
    r"|(?:删掉|删除|清除)(?:.{0,12})(?:记忆|我说|刚才说)"
    r"|\bforget (?:that|this|it|about (?:that|this|it|me|what)|what(?! (?:others?|people)\b))\b"
    r"|\bforget (?:everything|all)(?=\s*(?:$|[,.!;?])"
    r"|\s+(?:about|of|i|we|you|that|this|it|what|my|please|now)\b)"
    r"|\b(?:don'?t|do not|never) (?:remember|store|save) (?:that|this|it|what)\b"
    r"|\b(?:delete|erase) (?:that|this|it|what i|your memor|my memor|the memor)",
    re.IGNORECASE,
)
_NO_UNWISH = re.compile(
    r"(?:别|不要|不能|没|不会|怎么|是不是|会不会|难道|可别)(?:把.{1,20})?(?:给)?\s*(?:忘|全忘)"
    r"|忘了吗|忘记了吗|忘了没"
    r"|\b(?:don'?t|do not|never|didn'?t|did you|won'?t|can'?t|not) (?:you )?forget\b"
    r"|我(?:都|也|又|真|差点|好像|可能|总|已经|快|老)*(?:把[^你]{1,20})?忘"
    r"|\bi(?:'ll| will| always|'d)? forget\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[?？吗么没]\s*$")
_REQUEST = re.compile(r"能|可以|可否|麻烦|请|\b(?:can|could|would|will|please)\b", re.IGNORECASE)


def asks_to_remember(words: str) -> bool:
    """Whether a person plainly wishes that something be remembered."""
    return _WISH.search(words) is not None


def asks_to_forget(words: str) -> bool:
    """Whether a person plainly wishes that something be forgotten."""
    if not _UNWISH.search(words) or _NO_UNWISH.search(words):
        return False
    return not _QUESTION.search(words) or bool(_REQUEST.search(words))


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
