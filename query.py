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
