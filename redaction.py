"""Secrets out of text, before it is written to disk or sent anywhere."""

from __future__ import annotations

import re
from collections.abc import Callable

from .texts import Texts

_NOT_BEFORE, _NOT_AFTER = r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])"
"""Word boundaries in the ASCII sense: to `\\b`, Chinese right beside a key belongs to the word."""

_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY[A-Z ]*-----.*?(?:-----END [A-Z ]*PRIVATE KEY[A-Z ]*-----|\Z)",
    re.DOTALL,
)

_TOKEN_SHAPES = (
    # Random letters and digits, which `key-value-store-abstraction-layer` has not.
    r"(?:sk|hsk|rk|pk|ak|tvly|gsk|xai|nvapi|pplx|app|key|tok)[-_]"
    r"(?=[A-Za-z0-9_-]{0,60}(?:[0-9][A-Za-z]|[A-Za-z][0-9]))"
    r"(?=[A-Za-z0-9_-]{0,60}[A-Za-z0-9]{12})"
    r"[A-Za-z0-9_-]{16,}",
    r"gh[pousr]_[A-Za-z0-9]{20,}",
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"glpat-[A-Za-z0-9_-]{16,}",
    r"(?:xox[abeprs]|xapp)-[A-Za-z0-9-]{10,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",
    r"(?:LTAI|AKID)[A-Za-z0-9]{12,40}",
    r"AIza[A-Za-z0-9_-]{30,}",
    r"ya29\.[A-Za-z0-9_-]{20,}",
    r"(?:npm_|hf_|pypi-|dop_v1_)[A-Za-z0-9_-]{20,}",
    r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    r"[0-9]{8,10}:[A-Za-z0-9_-]{35}",  # Telegram's bots
    r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",  # Discord's bots
    r"[0-9a-f]{32}\.[A-Za-z0-9]{16}",  # Zhipu
)
_TOKEN = re.compile(f"{_NOT_BEFORE}(?:{'|'.join(_TOKEN_SHAPES)}){_NOT_AFTER}")
_BEARER = re.compile(
    r"((?<![A-Za-z])bearer\s+(?=[!-~]{0,60}[0-9])|authorization:\s*[a-z]+\s+|[?&](?:key|sign)=)"
    r"[A-Za-z0-9._~+/-]{16,}=*",
    re.IGNORECASE,
)
_URL_PASSWORD = re.compile(r"(://[^\s/:@]*:)[^\s/@]+(?=@)")

_CODE_WORD = r"(?:密码|口令|暗号|(?<![A-Za-z])(?:pass(?:word|wd|code|phrase)|pwd)(?![A-Za-z]))"
_KEY_WORD = (
    r"(?:密钥|令牌|(?<![A-Za-z])(?:api[-_ ]?key|secret(?:[-_ ]?key)?|access[-_ ]?(?:key|token)"
    r"|token)(?![A-Za-z]))"
)
_OPEN, _CLOSE = r"[\"'“”‘’「『【《`]", r"[\"'“”‘’」』】》`]"
_IS = (
    rf"{_CLOSE}?[^\S\n]*(?:[（(][^（()）]{{1,12}}[）)][^\S\n]*)?"
    r"(?:(?:我|就|都|也|还|现在|目前|已经?|应该|默认|暂时)*"
    r"(?:是|为|叫|改成了?|改为|换成了?|设成了?|设为|设置[成为])[^\S\n]*[:：=]?|[:：=])\s*"
)
_ENGLISH_IS = r"(?:\s+(?:is|was|are|now|has|been|will|be|changed|set|reset|to))+\s*[:=]?\s+"
_UNLESS = r"(?!https?://|\[(?:key|password) removed\])"  # nor one of our markers
_SAID_PASSWORD = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # In quotation marks it may be anything, 芝麻开门 too.
        rf"({_CODE_WORD}(?:(?:{_IS}|{_ENGLISH_IS}){_OPEN}|\s*[“「『【]))"
        rf"{_UNLESS}[^\n\"“”‘’「」『』【】《》`]{{2,64}}"
        rf"(?={_CLOSE})",
        rf"({_CODE_WORD}{_IS}{_OPEN}?+){_UNLESS}[!-~]{{4,128}}",
        # After a space or in English only what no word looks like: "password is required!"
        rf"({_CODE_WORD}{_ENGLISH_IS}{_OPEN}?+){_UNLESS}"
        r"(?=[!-~]*(?:[0-9]|[!#$%&*@^_+=][A-Za-z0-9]))[!-~]{4,128}",
        rf"((?:密码|口令)\s*){_UNLESS}(?=[!-~]*[0-9])[!-~]{{6,128}}+(?![年月日号位次个])",
    )
)
_SAID_KEY = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # "max_token: 4096" is no secret.
        rf"({_KEY_WORD}{_IS}{_OPEN}?+){_UNLESS}(?=[!-~]*[A-Za-z])[!-~]{{8,256}}",
        rf"({_KEY_WORD}{_ENGLISH_IS}{_OPEN}?+){_UNLESS}(?=[!-~]*[A-Za-z])(?=[!-~]*[0-9])"
        r"[!-~]{8,256}",
    )
)

_ID_CARD = re.compile(
    r"(?<![0-9])[1-9][0-9]{5}[ -]?(?:18|19|20)[0-9]{2}(?:0[1-9]|1[0-2])"
    r"(?:0[1-9]|[12][0-9]|3[01])[ -]?[0-9]{3}[0-9Xx](?![0-9])"
)
_CARDS = tuple(
    # Longest first: an expiry date or a check code often stands behind the number.
    re.compile(
        r"(?<![0-9A-Za-z])(?:[3-6][0-9]{2}|22[2-9]|2[3-6][0-9]|27[0-2])[0-9]"
        rf"(?:[ -]?[0-9]){{{digits - 4}}}(?![0-9A-Za-z])"
    )
    for digits in range(19, 14, -1)
)
_PHONE = re.compile(
    r"(?<![0-9A-Za-z])(?:\+?86[- ]?)?1[3-9][0-9][- ]?[0-9]{4}[- ]?[0-9]{4}(?![0-9])"
)
# The part before the @ has 64 characters at most (RFC 5321); without the bound a long text of
# "a-a-a-…" takes time that grows with its square.
_EMAIL = re.compile(
    _NOT_BEFORE + r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]+\.[A-Za-z]{2,}" + _NOT_AFTER
)

_ID_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_ID_CHECKS = "10X98765432"


def redact_secrets(text: str, texts: Texts) -> str:
    """Puts a marker in the place of each secret.

    Keys and tokens of the usual shapes, private-key blocks, passwords said as such, and ID-card
    and bank-card numbers whose check digit is right (GB 11643, Luhn); ordinary numbers stay.

    Args:
        text: What somebody said.
        texts: The wording of the markers.
    """
    key, password = texts("mark_key"), texts("mark_password")
    text = _PRIVATE_KEY.sub(key, text)
    for said in _SAID_PASSWORD:
        text = said.sub(rf"\1{password}", text)
    for said in _SAID_KEY:
        text = said.sub(rf"\1{key}", text)
    text = _URL_PASSWORD.sub(rf"\1{password}", text)
    text = _BEARER.sub(rf"\1{key}", text)
    text = _TOKEN.sub(key, text)
    text = _ID_CARD.sub(_checked(_is_id_card, texts("mark_id_card")), text)
    for card in _CARDS:
        text = card.sub(_checked(_is_bank_card, texts("mark_bank_card")), text)
    return text


def redact_contacts(text: str, texts: Texts) -> str:
    """Puts a marker in the place of each mobile number (mainland China) and e-mail address."""
    return _PHONE.sub(texts("mark_phone"), _EMAIL.sub(texts("mark_email"), text))


def _checked(test: Callable[[str], bool], marker: str) -> Callable[[re.Match[str]], str]:
    return lambda match: marker if test(match[0]) else match[0]


def _is_id_card(number: str) -> bool:
    number = re.sub("[ -]", "", number)
    total = sum(int(digit) * weight for digit, weight in zip(number, _ID_WEIGHTS, strict=False))
    return _ID_CHECKS[total % 11] == number[17].upper()


def _is_bank_card(number: str) -> bool:
    digits = [int(c) for c in number if c.isdigit()]
    doubled = [digit * 2 for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(d - 9 if d > 9 else d for d in doubled)) % 10 == 0
