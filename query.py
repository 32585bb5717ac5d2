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

_CLAUSE = re.compile(r"[^。！？；，、…,.!?;:：\n]+[?？]?")
_REPORTED = re.compile(r"(说|道|\bsaid)\s*[，,：:]?\s*[“「\"]?")
_POLITE = (
    r"请|麻烦|拜托|帮我|帮忙|给我|替我|能不能|能|可不可以|可以|可否|"
    r"(?:我)?(?:希望|想让|想要|要)(?=你)"
)
_LEAD = r"你|您|那|就|都|全|快|也|再|算了|嗯|好|现在"
_SOME_TIME_AGO = r"它|这|那|刚才|刚刚|之前|我(?:刚|之前|说|告诉|的)"
_LEAD_EN = (
    r"(?:(?:please|pls|kindly|just|so|ok|okay|now|then|actually|sorry|hey|and|well|oh|"
    r"you (?:can|could|should|must|may)|(?:can|could|would|will) you|"
    r"i(?:'d| would)? (?:want|like|need) you to) )*"
)
_ASK_TO_FORGET = (
    # 请忘了我说的, 你能把它忘了吗
    rf"^(?:{_LEAD})*(?:{_POLITE})(?:{_POLITE}|{_LEAD})*(?:把.{{1,20}}?)?(?:都|全|给)*忘[了记掉]",
    # 忘掉我的车牌, 把它忘掉: not what somebody tells of themselves
    rf"^(?:{_LEAD})*(?:把.{{1,20}}?)?(?:都|全|给)*忘掉(?!了)",
    # 忘了刚才说的; with 你 it were a reproach
    rf"^(?:那|就|算了|嗯|好|现在)*忘[了记](?:{_SOME_TIME_AGO})(?!.*了$)",
    r"^(?:那|就|你)*忘记我(?!.*了$)",
    # 我对青霉素过敏这件事你忘了吧
    r"忘[了记掉](?:它|[这那].{0,6}|我说.{0,6})?吧$",
    # 这个不用记住, 别记我的电话
    rf"^(?:{_LEAD}|请|麻烦)*(?:[这刚].{{0,8}}?)?(?:请|就|都){{0,3}}(?:别|不要|不用|不必|不许)(?:再|把.{{1,12}})?"
    rf"(?:记住|记下来?|记着|记录|保存|记|存)(?:了|吧|{_SOME_TIME_AGO}|$)(?!又)",
    # 删掉我说的, 把关于我的记忆都删掉
    rf"^(?:{_POLITE}|{_LEAD})*(?:删[掉除]|清[除空]|抹掉)(?!了).{{0,12}}"
    r"(?:记忆(?![卡棒力])|我说|刚才说)",
    rf"^(?:{_POLITE}|{_LEAD})*把.{{0,12}}(?:记忆(?![卡棒力])|我.{{0,6}}说|刚才说).{{0,6}}(?:删|清|抹)",
    rf"^{_LEAD_EN}(?:forget|unremember) (?:about )?"
    r"(?:(?:that|this|it|these|those|what(?! (?:others?|people)\b)|my|me)\b"
    r"|(?:everything|all|anything)"
    r"(?:$| (?:about|of|i|we|you|that|this|it|what|my|please|now)\b))",
    rf"^{_LEAD_EN}(?:don't|do not|never) (?:remember|store|save|keep|record) "
    r"(?:that|this|it|any of this|my|what i(?:'ve)? (?:just )?(?:said|told|wrote))\b",
    rf"^{_LEAD_EN}(?:delete|erase|remove|wipe) "
    r"(?:(?:that|this|it|everything|all)$|.{0,12}\bmemor(?:y|ies)\b"
    r"|(?:all |everything )?(?:of )?(?:what )?i(?:'ve)? (?:just )?(?:said|told|wrote))",
)
_UNWISH = re.compile("|".join(_ASK_TO_FORGET), re.IGNORECASE)
_NO_UNWISH = re.compile(
    r"(?:别|不要|不能|没|不会|怎么|是不是|会不会|难道|不想|想|怕|为了|免得|以免|不|差点|好像)"
    r"(?:[你我他她再])?(?:把.{1,20})?(?:给|全|都)?忘"
    r"|(?<![帮给替把])[我他她它谁们人家妈爸](?:都|也|全|又|真|就|快|老|总|早|已经|可能|大概|估计|应该)*"
    r"(?:把[^你]{1,20})?忘"
    r"|说(?:请|你)?忘|忘[了记掉]+[吗没]|忘[了记](?:说|带|拿|告诉)",
)
"""What somebody tells of themselves or of others, or what must not be forgotten."""
_QUESTION = re.compile(r"[?？吗么没]\s*$")
_REQUEST = re.compile(r"能|可以|可否|麻烦|请|\b(?:can|could|would|will|please)\b", re.IGNORECASE)


def asks_to_remember(words: str) -> bool:
    """Whether a person plainly wishes that something be remembered."""
    return _WISH.search(words) is not None


def asks_to_forget(words: str) -> bool:
    """Whether a person plainly wishes that something be forgotten.

    The wish must be a clause of its own: a wrong guess loses what they have said.
    """
    words = _REPORTED.sub(r"\1", words.replace("’", "'"))  # what others say stays theirs
    return any(map(_wishes_to_forget, _CLAUSE.findall(words)))


def _wishes_to_forget(clause: str) -> bool:
    clause = " ".join(clause.split())
    bare = clause.rstrip("?？ ")
    if not _UNWISH.search(bare) or _NO_UNWISH.search(bare):
        return False
    return not _QUESTION.search(clause) or bool(_REQUEST.search(clause))


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
