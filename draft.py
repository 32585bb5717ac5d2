"""A text that is being made safe: look-alike characters are seen through, but stay as typed.

Patterns look at a folded copy, in which every character that looks like an ASCII letter, digit or
sign is that character; what they find is replaced in the text itself. What was put in place of
something is out of reach for all later patterns, until the text is done.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Final

Fold = Mapping[int, str | None]
"""For `str.translate`: a character to the one it looks like, or None for a mark upon another."""

_FIRST_KEPT = 0xF0000
"""Private-use characters stand for what is kept; no cleaned text has any of its own."""
_KEPT = re.compile("[\U000f0000-\U000ffffd]")
_CODES = (
    *(range(0xA0, 0x3400), range(0xA640, 0xAC00), range(0xFB00, 0x10000)),
    *(range(0x104A0, 0x104AA), range(0x11066, 0x11DAA), range(0x16A60, 0x16B5A)),
    *(range(0x1D400, 0x1D800), range(0x1E140, 0x1E960), range(0x1F100, 0x1F200)),
    range(0x1FBF0, 0x1FBFA),
)
"""Where Unicode has look-alikes of ASCII, apart from ideographs and hangul."""
_LETTERS = {
    "a": "аαɑᴀ",
    "A": "АΑᎪ",
    "b": "βᏏʙЬьƄᖯ",
    "B": "ВΒᏴ",
    "c": "сϲᴄⅽ",
    "C": "СϹᏟ",
    "d": "ԁᴅⅾ",
    "D": "Ꭰꓓᗞ",
    "e": "еєεᴇҽ",
    "E": "ЕΕᎬ",
    "f": "ғƒẝք",
    "F": "ҒϜᖴ",
    "i": "іιıᎥ",
    "I": "ІΙӀǀ",
    "o": "оοᴏօ",
    "O": "ОΟՕ",
    "l": "ӏ",
    "p": "рρ",
    "P": "РΡ",
    "s": "ѕ",
    "S": "Ѕ",
    "x": "хχ",
    "T": "ТΤᎢᴛт",
    "k": "кκ",
    "K": "КΚ",
    "M": "МΜ",
    "N": "Ν",
    "y": "уү",
    "Y": "УΥ",
    "H": "НΗ",
    "X": "ХΧ",
    "h": "һ",
    "v": "ν",
    "Z": "Ζ",
    "z": "ᴢ",
    "t": "τ",
    "r": "ᴦ",
    "n": "ո",
}
_SIGNS = {
    "#": "⌗♯⋕ⵌ𝍖",
    ":": "∶ː꞉׃։⁚˸ꓽ⦂᛬⁝᠄܃܄︰",
    "(": "❨❪⟮⦅⸨﴾",
    ")": "❩❫⟯⦆⸩﴿",
    "[": "【",
    "]": "】",
    '"': "“”„‟″〝〞〟",
    "'": "‘’‚‛′",
    "-": "‐‑‒–—―−⁃",
}
"""By what they look like, those that Unicode does not itself take for a form of it."""


_SQUARED = re.compile(r"(?:SQUARED|SYMBOL).* LETTER ([A-Z])$")


def _fold() -> Iterator[tuple[int, str | None]]:
    """Every character that looks like another, letters and digits alone."""
    for codes in _CODES:
        for code in codes:
            character = chr(code)
            if unicodedata.category(character) in {"Mn", "Me"}:
                yield code, None
            elif (digit := unicodedata.digit(character, None)) is not None:
                yield code, str(digit)
            else:
                yield from _folded_letter(code, unicodedata.normalize("NFKD", character))
    for looks, characters in _LETTERS.items():
        yield from ((ord(character), looks) for character in characters)


def _folded_letter(code: int, plain: str) -> Iterator[tuple[int, str]]:
    """A letter or number in another dress: wide, mathematical, circled, with an accent."""
    first = plain.strip("()⁄ ")[:1]
    if plain != chr(code) and first.isascii() and first.isalnum():
        yield code, first
    elif letter := _SQUARED.search(unicodedata.name(chr(code), "")):
        yield code, letter[1]


def _fold_signs() -> Iterator[tuple[int, str | None]]:
    """The same for ASCII's signs."""
    for codes in _CODES:
        for code in codes:
            plain = unicodedata.normalize("NFKC", chr(code))
            if plain != chr(code) and len(plain) == 1 and "!" <= plain <= "~":
                yield code, plain
    for looks, characters in _SIGNS.items():
        yield from ((ord(character), looks) for character in characters)


WORDS: Final[dict[int, str | None]] = dict(_fold())
"""Letters and digits."""
SYNTAX: Final[dict[int, str | None]] = dict(_fold_signs()) | WORDS
"""Signs too."""
_CHINESE_DIGITS = dict(
    zip("〇零○一幺二三四五六七八九壹贰叁肆伍陆柒捌玖", "0001123456789123456789", strict=True)
)
NUMBERS: Fold = WORDS | {ord(character): digit for character, digit in _CHINESE_DIGITS.items()}
"""Letters and digits, and the digits of Chinese."""


class Draft:
    """A text on its way through all patterns.

    Args:
        text: On one line, without private-use characters.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._kept: list[str] = []
        self._looks: dict[int, tuple[str, str, list[int]]] = {}

    def keep(self, shown: str) -> str:
        """A character that stands for a text until the draft is done."""
        self._kept.append(shown)
        return chr(_FIRST_KEPT + len(self._kept) - 1)

    def replace(
        self,
        pattern: re.Pattern[str],
        make: Callable[[re.Match[str], str], str | None],
        fold: Fold = WORDS,
    ) -> None:
        """Replaces what a pattern finds in the folded text, or its group `it` where it has one.

        Args:
            pattern: Looks at the folded text.
            make: Takes what was found and how that was written; None leaves it.
            fold: Which look-alikes count.
        """
        looks, places = self._folded(fold)
        group: str | int = "it" if "it" in pattern.groupindex else 0
        pieces: list[str] = []
        done = 0
        for found in pattern.finditer(looks):
            start, end = found.span(group)
            if start < 0:
                continue
            if places:
                start, end = places[start], places[end]
            made = make(found, self.text[start:end])
            if made is not None:
                pieces += (self.text[done:start], made)
                done = end
        if pieces:
            self.text = "".join([*pieces, self.text[done:]])

    def _folded(self, fold: Fold) -> tuple[str, list[int]]:
        """The folded text, and where each of its characters stands; nothing where that is plain."""
        text, looks, places = self._looks.get(id(fold), ("", "", []))
        if text is not self.text:
            looks = folded(self.text, fold)
            if len(looks) == len(self.text):
                places = []
            else:
                stay = [n for n, c in enumerate(self.text) if fold.get(ord(c), c) is not None]
                places = [*stay, len(self.text)]
            self._looks[id(fold)] = self.text, looks, places
        return looks, places

    def done(self) -> str:
        """The text with all that was kept, on one line."""
        text = _KEPT.sub(lambda one: self._kept[ord(one[0]) - _FIRST_KEPT], self.text)
        return " ".join(text.split())


def folded(text: str, fold: Fold = SYNTAX) -> str:
    """The text as it looks."""
    return text if text.isascii() else text.translate(fold)
