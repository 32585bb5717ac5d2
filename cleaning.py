"""The one way a text is made safe, on the way in and on the way out.

In: `Cleaner.clean`, in this order: bounded length; entities decoded; what is invisible taken out;
blocks of ours and of AstrBot cut; secrets; ids; numbers that are secret; contacts; forged lines
and forged marks broken. Nothing is decoded after it was checked, and nothing that was put in is
looked at again. Out: `recalled` and `neutralise`, for text that may be older than this order.

Nothing here does I/O or knows AstrBot.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from html.entities import html5

from .draft import NUMBERS, SYNTAX, Draft, folded
from .orders import is_order
from .redaction import hide
from .settings import PrivacySettings
from .texts import WORDING, Texts

MAX_CHARS = 20_000
"""What is beyond is not even looked at: a pasted book is nothing that somebody said."""
MAX_NAME_CHARS = 24
MAX_TYPED_NAME = 400
MIN_ID_CHARS = 4
"""Shorter ids are ordinary words and numbers; no platform gives such to people or groups."""
UNMISTAKABLE_CHARS = 20
"""An id that is no number and as long as this is no part of a word."""
MAX_ENTITY_DEPTH = 4
BLOCK_OPEN = "<hindsight_memory>"
BLOCK_CLOSE = "</hindsight_memory>"

_CUT_AT = 200
"""How far back from the bound a text may be cut, so as not to cut a key or an id in two."""
_PRIVATE = re.compile("[\ue000-\uf8ff\U000f0000-\U0010ffff]")
_PICTURE = (
    "[\u2194-\u21aa\u231a-\u23fa\u2600-\u266e\u2670-\u2767\u2794-\u27bf\u2b05-\u2b55"
    "\U0001f300-\U0001faff]"
)
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164"
    "\ufe00-\ufe0e\uffa0\ufffc\U0001d159\U000e0100-\U000e01ef]"
    rf"|(?<!{_PICTURE})\ufe0f"
)
"""Variation selectors, but for the one that gives a sign its color, and blanks that Unicode takes
for visible."""
_JOINED = "".join(
    chr(code)
    for code in (*range(0x600, 0x780), *range(0x8A0, 0xE00), *range(0x1000, 0x10A0))
    if unicodedata.category(chr(code))[0] in "LM" and not SYNTAX.get(code)
)
"""Letters of the scripts that write words with joiners: Arabic, the Indic ones and Burmese."""
_JOINER = re.compile(
    f"(?<=[{_JOINED}])[\u200c\u200d](?=[{_JOINED}])"
    f"|(?:(?<={_PICTURE})|(?<={_PICTURE}\ufe0f))\u200d(?={_PICTURE})"
)
"""What is not seen, but part of a word or of a picture."""
_ENTITY = re.compile(r"&(#[0-9]+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]{1,31});")
_HALF_ENTITY = re.compile(r"&(?=#|lt|gt|amp)", re.IGNORECASE)
"""What browsers decode without its `;`."""
_ANGLES = str.maketrans(dict.fromkeys("<＜﹤", "‹") | dict.fromkeys(">＞﹥", "›"))
_FOR_THE_MODEL = r"hindsight_memor(?:y|ies)|system[_ -]reminder"
_BLOCK, _ECHO = (
    re.compile(
        rf"(?:(?<!\s)\s++)?<\s*(?P<name>{names})(?:\s[^<>]{{0,200}})?>"
        r".*?(?:<\s*/\s*(?P=name)\s*>|\Z)\s*",
        re.DOTALL | re.IGNORECASE,
    )
    for names in (rf"{_FOR_THE_MODEL}|quoted[_ ]message|image_caption|attachment", _FOR_THE_MODEL)
)
"""Tags that are not stored, and those that nobody writes but a model that repeats its request."""
_DIGIT, _HEX = "[0-9oOlI]", "[0-9a-fA-FoOlI]"
"""Digits, and letters that look like some."""
_LOOKS = str.maketrans("oli", "011")
_NUMBER_SIGN = re.compile(
    rf"#\s?(?P<number>{_HEX}{{6,32}})(?=(?P<line>\s*\(\s*{_DIGIT}{{4}}|\s*:|))"
)
"""What looks like a pseudonym, and what stands behind it."""
_LINE_BRACKETS = re.compile(
    rf"\(\s*{_DIGIT}{{4}}\s*-\s*{_DIGIT}{{2}}\s*-\s*{_DIGIT}{{2}}\s*T[^()]{{0,80}}\)(?=\s*:)",
    re.IGNORECASE,
)
_NAME_SYNTAX = re.compile(r"[#():<>‹›\[\]{}]+")
_NO_NAMES = {
    *("n/a", "na", "nan", "null", "nil", "none", "undefined", "unknown", "-", "--", "无", "未知"),
    *("匿名", "未命名", "no name", "noname", "nickname", "[object object]", "object object"),
}
"""What programs write where there is no name."""
_INNER_BRACKETS = str.maketrans(dict.fromkeys("[［", "〔") | dict.fromkeys("]］", "〕"))
_INNER_QUOTES = str.maketrans({"“": "‘", "”": "’"} | dict.fromkeys('"„‟〝〞〟＂″', "'"))
"""What would end the mark or the quotation that a text stands in."""
_MENTION = re.compile(
    r'<(?:(?P<sign>@[!&]?|#)|qqbot-at-user\s+id=")(?P<id>[\w-]{1,64})(?:\|[^<>]{0,200})?"?\s*/?>'
)
"""How Discord, Slack and QQ write people (`<@1>`), roles (`<@&1>`) and channels (`<#1>`)."""
_BETWEEN_DIGITS = r"[ !-/:-@\[-`{-~·・•‧∙⋅−，、。．…‐-―]{0,3}"
_NUMBERS = re.compile(rf"-?[0-9](?:{_BETWEEN_DIGITS}[0-9]){{3,}}")
_ESCAPED_NUMBER = re.compile(r"(?<=%[0-9A-Fa-f]{2})[0-9]{4,}")
"""A number behind a sign as addresses write it: `%2220002002%22`."""
_IN_BRACKETS = re.compile("\\s?[(（]\\s?([\U000f0000-\U000ffffd])\\s?[)）]")
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:!|=/+-]{3,}")
"""A word, or a run of words and signs as composite ids and addresses are."""
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_]+")
MAX_ID_DIGITS = 20
MAX_GROUPS, FEW_GROUPS = 64, 3
"""In a list of more numbers, an id is looked for in fewer of them together."""


_HEADS = sorted(
    {text.split("{")[0] for key in WORDING if key.startswith("mark_") for text in WORDING[key]}
)
"""What our marks begin with, in both languages: the whole mark, or up to what is filled in."""


def _typed_marks() -> re.Pattern[str]:
    """What reads as one of our marks, in either language."""
    heads = [folded(head) for head in (*_HEADS, *WORDING["block_by_assistant"])]
    whole = [re.escape(h.strip("[] ")) for h in heads if h.startswith("[") and "]" in h]
    filled = [re.escape(h.strip("[ ")) for h in heads if h.startswith("[") and "]" not in h]
    round_ = [re.escape(h.split(")")[0].strip("(")) for h in heads if h.startswith("(")]
    whole += [r"[^\[\]()]{1,20}(?:已隐藏|removed)", "已隐藏"]
    return re.compile(
        rf"\[\s*(?:{'|'.join(whole)})(?:\s*\]|$)"
        rf"|\[\s*(?:{'|'.join(filled)})(?:\s*\]|[\s:][^\[\]]{{0,200}}\]?|$)"
        rf"|\(\s*(?:{'|'.join(round_)})\s*\)",
        re.IGNORECASE,
    )


_TYPED_MARK = _typed_marks()
_GENUINE = re.compile(
    r"(?<!&)(?:(?<!;)#[0-9a-f]{6,32}|#[0-9a-f]{6,32}+(?![0-9a-fA-F]*;))"
    r"|\([0-9]{4}-[0-9]{2}-[0-9]{2}T[^()&]{0,80}\)(?=:)|"
    + "|".join(re.escape(head.rstrip()) for head in _HEADS)
)
"""Syntax of ours as it stands in what was stored, in exactly these characters."""


@dataclass(frozen=True)
class Known:
    """Whom a text may name.

    Attributes:
        labels: By raw id of the event's people and chats, what to write.
        names: By raw id, names that may stand before it (`name(id)`).
        hidden: Names of those who want not to be named.
        label_of: What to write for the id of anybody ever seen in the chat; empty for others.
        person: What to write for somebody whom the platform names by id, known or not.
        is_taken: Whether a pseudonym is somebody's in this chat.
    """

    labels: Mapping[str, str]
    names: Mapping[str, Collection[str]]
    hidden: Collection[str]
    label_of: Callable[[str], str]
    person: Callable[[str], str]
    is_taken: Callable[[str], bool]


class Cleaner:
    """Makes safe what an event brings; built once for each.

    Args:
        texts: The wording in the language of the chat.
        privacy: What is taken out.
        known: Whom a text may name.
    """

    def __init__(self, texts: Texts, privacy: PrivacySettings, known: Known) -> None:
        self._texts = texts
        self._privacy = privacy
        self._known = known
        self._ids = _Ids(known)

    def clean(self, text: str, *, within: bool = False) -> str:
        """What may be kept of a text, on one line.

        Args:
            text: Whatever somebody typed.
            within: It will stand in a mark of ours, which it must not end.
        """
        draft = Draft(_legible(text))
        draft.replace(_BLOCK, lambda *_: " ", SYNTAX)
        if self._privacy.redact_secrets:
            hide(draft, ["secret"], self._texts)
        self._hide_ids(draft)
        kinds = ["number"] if self._privacy.redact_secrets else []
        hide(draft, kinds + ["contact"] * self._privacy.redact_contacts, self._texts)
        _break_forgeries(draft, lambda number, _: self._known.is_taken(number))
        if within:
            draft.text = draft.text.translate(_INNER_BRACKETS)
        return draft.done()

    def said(self, text: str) -> str:
        """The same, in quotation marks where it tries to give the bot orders."""
        return as_said(self.clean(text), self._texts)

    def name(self, name: str, fallback: str) -> str:
        """A display name that cannot imitate a line, without ids and secrets; never empty."""
        draft = Draft(_legible(name[:MAX_TYPED_NAME]))
        hide(draft, ["secret"], self._texts)
        self._ids.replace(draft)
        kinds = ["number", *["contact"] * self._privacy.redact_contacts]
        hide(draft, kinds, self._texts)
        return clean_name(draft.done(), fallback)

    def _hide_ids(self, draft: Draft) -> None:
        draft.replace(_MENTION, lambda found, _: draft.keep(self._mention(found)), SYNTAX)
        self._ids.replace(draft)
        for name in self._known.hidden:
            draft.text = draft.text.replace(f"@{name}", draft.keep(self._texts("mark_opted_out")))

    def _mention(self, found: re.Match[str]) -> str:
        """What stands for somebody or something that a platform writes as markup with an id."""
        if found["sign"] == "@&":
            return self._texts("name_group")
        if found["sign"] == "#":
            return self._texts("name_chat")
        return f"@{self._known.person(found['id'])}"


class _Ids:
    """Finds raw ids in texts, however they are written.

    Args:
        known: Whose.
    """

    def __init__(self, known: Known) -> None:
        self._known = known
        named = (raw for raw in known.labels if len(raw) >= MIN_ID_CHARS and not _is_number(raw))
        self._raws = sorted(named, key=len, reverse=True)
        pattern = "|".join(f"({_bounded(raw)})" for raw in self._raws)
        self._pattern = re.compile(pattern) if pattern else None

    def replace(self, draft: Draft) -> None:
        """Puts labels in the place of ids; each only once, so that no label is replaced."""
        kept: dict[str, str] = {}

        def keep(raw: str) -> str:
            character = draft.keep(self._label(raw))
            kept[character] = raw
            return character

        if self._pattern:
            draft.replace(self._pattern, lambda found, _: keep(self._raw(found)), SYNTAX)
        draft.replace(_WORD, lambda found, _: self._in_words(found[0], keep))
        draft.replace(
            _NUMBERS, lambda found, typed: self._in_numbers(found[0], typed, keep), NUMBERS
        )
        draft.replace(
            _ESCAPED_NUMBER, lambda found, _: keep(found[0]) if self._label(found[0]) else None
        )
        self._take_names(draft, kept)

    def _label(self, raw: str) -> str:
        return self._known.labels.get(raw) or self._known.label_of(raw)

    def _raw(self, found: re.Match[str]) -> str:
        return self._raws[(found.lastindex or 1) - 1]

    def _in_words(self, word: str, keep: Callable[[str], str]) -> str | None:
        """A run of words and signs that is an id, or has some with digits or capitals in it."""
        bare = word.rstrip(".:!|=/+-")
        if not bare.isdecimal() and self._known.label_of(bare):
            return keep(bare) + word[len(bare) :]
        made = _PLAIN_WORD.sub(lambda part: self._part(part[0], keep), word)
        return made if made != word else None

    def _part(self, part: str, keep: Callable[[str], str]) -> str:
        """One word of a run; `astrbot.py` is none of WebChat's user of that name."""
        is_word = part.isalpha() and part.islower()
        if len(part) < MIN_ID_CHARS or is_word or part.isdecimal():
            return part
        return keep(part) if self._known.label_of(part) else part

    def _in_numbers(self, looks: str, typed: str, keep: Callable[[str], str]) -> str | None:
        """A run of numbers in which some are ids."""
        if len(looks) != len(typed):
            typed = looks  # marks upon digits go with them
        made: list[str] = []
        groups = list(re.finditer(r"[0-9]+", looks))
        index = done = 0
        while index < len(groups):
            if one := self._longest(groups, index):
                raw, last = one
                start = groups[index].start() - raw.startswith("-")
                made += (typed[done:start], keep(raw))
                done, index = groups[last].end(), last
            index += 1
        return "".join([*made, typed[done:]]) if made else None

    def _longest(self, groups: Sequence[re.Match[str]], first: int) -> tuple[str, int] | None:
        """The longest id that begins with a group of digits, and the group where it ends."""
        found, number = None, ""
        sign = groups[first].string[groups[first].start() - 1 : groups[first].start()]
        most = len(groups) if len(groups) <= MAX_GROUPS else first + FEW_GROUPS
        for last in range(first, min(most, len(groups))):
            number += groups[last][0]
            if len(number) > MAX_ID_DIGITS:
                break
            if len(number) < MIN_ID_CHARS:
                continue
            if sign == "-" and self._label(f"-{number}"):
                found = f"-{number}", last
            elif self._label(number):
                found = number, last
        return found

    def _take_names(self, draft: Draft, kept: Mapping[str, str]) -> None:
        """Takes names away that stand before an id in brackets, which has become a label."""
        for found in reversed(list(_IN_BRACKETS.finditer(draft.text))):
            before, character = draft.text[: found.start()], found[1]
            raw = kept.get(character, "")
            label = self._label(raw).partition("#")[0] if raw else ""
            names = sorted({*self._known.names.get(raw, ()), label} - {""}, key=len, reverse=True)
            for name in names:
                if before.endswith(name):
                    rest = draft.text[found.end() :]
                    draft.text = before.removesuffix(name) + character + rest
                    break


def clean_text(text: str) -> str:
    """One line without control, zero-width or bidirectional characters."""
    return _visible(_PRIVATE.sub("", text))


def clean_name(name: str, fallback: str) -> str:
    """A display name that cannot imitate another line's beginning; never empty.

    What would give orders stands in quotation marks.
    """
    draft = Draft(_legible(name))
    draft.replace(_NAME_SYNTAX, lambda *_: " ", SYNTAX)
    cleaned = draft.done()[:MAX_NAME_CHARS].strip()
    if folded(cleaned).casefold() in _NO_NAMES or not any(map(_is_visible, cleaned)):
        return fallback
    return f"“{cleaned.translate(_INNER_QUOTES)}”" if is_order(cleaned) else cleaned


def as_said(text: str, texts: Texts) -> str:
    """A cleaned text, in quotation marks where it tries to give the bot orders.

    Such words are kept as what they are, a quotation with its speaker; so a false alarm costs
    nothing but quotation marks.
    """
    return texts("mark_said", text=text.translate(_INNER_QUOTES)) if is_order(text) else text


def recalled(text: str, texts: Texts, who: str = "") -> str:
    """Text from memory as it may be shown to the model; orders stand in quotation marks.

    Args:
        text: What somebody said, a fact, or a profile.
        texts: The wording in the language of the chat.
        who: The pseudonym of the one who said it, where the text does not tell.
    """
    safe = neutralise(text)
    if not is_order(safe):
        return safe
    for opening, closing in (form.split("{text}") for form in WORDING["mark_said"]):
        before, is_quoted, said = safe.partition(opening)
        if is_quoted and not is_order(before):
            said = said.removesuffix(closing).translate(_INNER_QUOTES)
            return f"{before}{opening}{said}{closing}"
    quoted = safe.translate(_INNER_QUOTES)
    return texts("block_said", name=who, text=quoted) if who else texts("mark_said", text=quoted)


def neutralise(text: str) -> str:
    """Text that can open or close no tag, and in which only what was stored so reads as a line.

    What was decoded just now, or looks like our syntax without being it, is broken; so what an
    earlier version let through is harmless too.
    """
    typed = _PRIVATE.sub("", text[:MAX_CHARS])
    draft = Draft(typed)
    draft.replace(_GENUINE, lambda _, genuine: draft.keep(genuine), {})
    draft.text = _decoded(_visible(draft.text))
    _break_forgeries(draft, lambda _, number: not number.isascii() or number not in typed)
    draft.text = _HALF_ENTITY.sub("＆", draft.text).translate(_ANGLES)
    return draft.done()


def strip_block(text: str) -> str:
    """Cuts memory blocks, and AstrBot's reminders, out of a reply; lines stay.

    AstrBot's other tags (`<attachment>`) are words that a reply about XML may hold.
    """
    draft = Draft(text)
    draft.replace(_ECHO, lambda *_: "\n", SYNTAX)
    return draft.text.strip() if draft.text != text else text


def shorten(text: str, limit: int) -> str:
    """Cuts a text to so many characters, an ellipsis included."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def _legible(text: str) -> str:
    """Bounded, without entities or invisible characters, on one line."""
    return _decoded(clean_text(_bounded_text(text)))


def _bounded_text(text: str) -> str:
    """A text of bearable length, cut between words where it must be cut."""
    if len(text) <= MAX_CHARS:
        return text
    end = next(
        (n for n in range(MAX_CHARS, MAX_CHARS - _CUT_AT, -1) if text[n].isspace()), MAX_CHARS
    )
    return f"{text[:end]}…"


def _decoded(text: str) -> str:
    """Text without entities, at whatever depth; those that are too deep are no entities after."""
    for _ in range(MAX_ENTITY_DEPTH):
        decoded = _ENTITY.sub(_character, text)
        if decoded == text:
            return text
        text = _visible(decoded)
    return _ENTITY.sub(lambda found: f"＆{found[0][1:]}", text)


def _character(entity: re.Match[str]) -> str:
    """What an entity stands for; nothing for what would look like a draft's own characters."""
    name = entity[1]
    if name[0] != "#":
        return html5.get(f"{name};", entity[0])
    base, digits = ("x", name[2:]) if name[1] in "xX" else ("", name[1:])
    return _PRIVATE.sub("", html.unescape(f"&#{base}{digits.lstrip('0')[:7] or '0'};"))


def _visible(text: str) -> str:
    """One line without what is invisible, but for what a draft keeps."""
    if not text.isascii():
        text = _UNSEEN.sub("", text)
    if not text.isprintable():  # mostly it is plain already
        joiners = {found.start() for found in _JOINER.finditer(text)}
        text = "".join(
            c
            for place, c in enumerate(text)
            if c.isspace() or place in joiners or not _is_invisible(c)
        )
    return " ".join(text.split())


def _break_forgeries(draft: Draft, is_forged: Callable[[str, str], bool]) -> None:
    """Breaks what reads as the beginning of a line, as a pseudonym, or as one of our marks.

    Args:
        draft: What somebody said.
        is_forged: Takes a pseudonym that stands in no line's beginning, and how it is written.
    """

    def break_number(found: re.Match[str], typed: str) -> str | None:
        before, after = found.string[found.start() - 1 : found.start()], found["line"] or ""
        is_line = "(" in after or (":" in after and before.isalnum())
        number = f"#{found['number'].lower().translate(_LOOKS)}"
        return f" {typed[1:]}" if is_line or is_forged(number, typed) else None

    draft.replace(_NUMBER_SIGN, break_number, SYNTAX)
    for pattern in (_LINE_BRACKETS, _TYPED_MARK):
        draft.replace(pattern, lambda _, typed: _other_brackets(typed), SYNTAX)


def _other_brackets(typed: str) -> str:
    """The same in brackets that no line or mark of ours has."""
    last = next((n for n in range(len(typed) - 1, 0, -1) if folded(typed[n])), 0)  # else a mark
    closing = "〕" if folded(typed[last]) in {")", "]"} else typed[last]
    return f"〔{typed[1:last]}{closing}{typed[last + 1 :]}"


def _is_number(raw: str) -> bool:
    return raw.isascii() and raw.removeprefix("-").isdecimal()


def _bounded(raw: str) -> str:
    """A pattern for an id that is no number: a word within no longer word.

    Some are ordinary words: WebChat's user is called `astrbot`.
    """
    escaped = re.escape(folded(raw))
    if len(raw) >= UNMISTAKABLE_CHARS:
        return escaped
    if raw.isalpha():
        return rf"(?<![A-Za-z0-9_])(?<![A-Za-z0-9_][./-]){escaped}(?![./-]?[A-Za-z0-9_])"
    return rf"(?<![A-Za-z0-9_]){escaped}(?![A-Za-z0-9_])"


def _is_invisible(character: str) -> bool:
    """Control, format (zero-width, bidi, tags) and surrogate characters."""
    return unicodedata.category(character) in {"Cc", "Cf", "Cs"}


def _is_visible(character: str) -> bool:
    return unicodedata.category(character)[0] not in "CZM"
