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
    r"(?:sk|hsk|rk|pk|ak|tvly|gsk|xai|nvapi|pplx|app|key|tok)[-_][A-Za-z0-9_-]{16,}",
    r"gh[pousr]_[A-Za-z0-9]{20,}",
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"glpat-[A-Za-z0-9_-]{16,}",
    r"xox[abeprs]-[A-Za-z0-9-]{10,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",
    r"(?:LTAI|AKID)[A-Za-z0-9]{12,40}",
    r"AIza[A-Za-z0-9_-]{30,}",
    r"ya29\.[A-Za-z0-9_-]{20,}",
    r"(?:npm_|hf_|pypi-|dop_v1_|SG\.)[A-Za-z0-9_.-]{20,}",
    r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    r"[0-9]{8,10}:[A-Za-z0-9_-]{35}",
)
_TOKEN = re.compile(f"{_NOT_BEFORE}(?:{'|'.join(_TOKEN_SHAPES)}){_NOT_AFTER}")
_BEARER = re.compile(r"(?<![A-Za-z])(bearer\s+)[A-Za-z0-9._~+/-]{16,}=*", re.IGNORECASE)
_URL_PASSWORD = re.compile(r"(://[^\s/:@]+:)[^\s/@]+(?=@)")

_SAID_AS = (
    r"(?:密码|口令|密钥|令牌|暗号|(?<![A-Za-z])(?:pass(?:word|wd|code|phrase)|pwd|api[-_ ]?key"
    r"|secret(?:[-_ ]?key)?|access[-_ ]?(?:key|token)|token)(?![A-Za-z]))"
)
_CHINESE_SECRET = re.compile(
    rf"({_SAID_AS}[^\S\n]*(?:都?是|为|就是|改成了?|改为|设成了?|设为|[:：=])\s*[\"'“”「]?)"
    r"([!-~]{4,128})",
    re.IGNORECASE,
)
_ENGLISH_SECRET = re.compile(
    rf"({_SAID_AS}\s+(?:is|was|to)\s+[\"'“”]?)((?=[!-~]*[0-9!#$%&*@^_+=])[!-~]{{4,128}})",
    re.IGNORECASE,
)

_ID_CARD = re.compile(r"(?<![0-9A-Za-z])[1-9][0-9]{16}[0-9Xx](?![0-9A-Za-z])")
_CARD = re.compile(r"(?<![0-9A-Za-z])[2-6](?:[ -]?[0-9]){14,18}(?![0-9A-Za-z])")
_PHONE = re.compile(
    r"(?<![0-9A-Za-z])(?:\+?86[- ]?)?1[3-9][0-9][- ]?[0-9]{4}[- ]?[0-9]{4}(?![0-9])"
)
_EMAIL = re.compile(_NOT_BEFORE + r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}" + _NOT_AFTER)

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
    text = _URL_PASSWORD.sub(rf"\1{password}", text)
    text = _BEARER.sub(rf"\1{key}", text)
    text = _TOKEN.sub(key, text)
    text = _CHINESE_SECRET.sub(rf"\1{password}", text)
    text = _ENGLISH_SECRET.sub(rf"\1{password}", text)
    text = _ID_CARD.sub(_checked(_is_id_card, texts("mark_id_card")), text)
    return _CARD.sub(_checked(_is_bank_card, texts("mark_bank_card")), text)


def redact_contacts(text: str, texts: Texts) -> str:
    """Puts a marker in the place of each mobile number (mainland China) and e-mail address."""
    return _EMAIL.sub(texts("mark_email"), _PHONE.sub(texts("mark_phone"), text))


def _checked(test: Callable[[str], bool], marker: str) -> Callable[[re.Match[str]], str]:
    return lambda match: marker if test(match[0]) else match[0]


def _is_id_card(number: str) -> bool:
    total = sum(int(digit) * weight for digit, weight in zip(number, _ID_WEIGHTS, strict=False))
    return _ID_CHECKS[total % 11] == number[17].upper()


def _is_bank_card(number: str) -> bool:
    digits = [int(c) for c in number if c.isdigit()]
    doubled = [digit * 2 for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(d - 9 if d > 9 else d for d in doubled)) % 10 == 0
