"""Codes that must be typed before something is erased."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

from .arguments import folded
from .cleaning import neutralise, shorten
from .clock import Clock
from .command_types import ChatRequest, PersonKey
from .recent import Recent

CODE_SECONDS = 60.0
FIRST_CODE = 1000
LAST_CODE = 9999
MAX_SHOWN = 30

_CODE = re.compile(r"[0-9]{1,8}")


@dataclass(frozen=True)
class Offer[Subject]:
    """Something that is done once its code is typed.

    Attributes:
        code: Four digits.
        valid_until: Monotonic seconds.
        subject: What it is about.
    """

    code: str
    valid_until: float
    subject: Subject


class Confirmations[Key, Subject]:
    """The open codes of one command.

    A wrong code changes nothing: the right one stays until its time is over, or it was used.

    Args:
        clock: The time.
        codes: The codes that may be given, else all of four digits that begin with no zero.
    """

    def __init__(self, clock: Clock, codes: range = range(FIRST_CODE, LAST_CODE + 1)) -> None:
        self._clock = clock
        self._codes = codes
        self._offers: Recent[Key, Offer[Subject]] = Recent()

    def offer(self, key: Key, subject: Subject) -> str:
        """The code for something; the same again with a new minute while one is open."""
        code = f"{self._codes[secrets.randbelow(len(self._codes))]}"
        if (open_one := self._open(key)) and open_one.subject == subject:
            code = open_one.code
        valid_until = self._clock.monotonic() + CODE_SECONDS
        self._offers.put(key, Offer(code, valid_until, subject))
        return code

    def take(self, key: Key, code: str) -> Offer[Subject] | None:
        """What a code was given for, which is used up by it; None where the code is not right."""
        offer = self._open(key)
        if offer is None or offer.code != code:
            return None
        return self._offers.pop(key)

    def open_code(self, key: Key) -> tuple[str, int] | None:
        """The code that would be right, with the seconds that are left."""
        if offer := self._open(key):
            return offer.code, max(1, round(offer.valid_until - self._clock.monotonic()))
        return None

    def _open(self, key: Key) -> Offer[Subject] | None:
        offer = self._offers.get(key)
        if offer and offer.valid_until < self._clock.monotonic():
            del self._offers[key]
            return None
        return offer


def confirm[Subject](
    request: ChatRequest, codes: Confirmations[PersonKey, Subject], name: str, subject: Subject
) -> str:
    """Asks for a code, or takes it.

    Args:
        request: The command with what was typed behind it.
        codes: The open codes of this command.
        name: The command's name; `<name>_confirm` asks, `<name>_argument` is said of other words.
        subject: What would be done; a code for something else is not right.

    Returns:
        An empty text where the right code was typed, else what to answer.
    """
    texts, key, typed = request.texts, request.caller.key, folded(request.argument)
    if not typed:
        code = codes.offer(key, subject)
        return texts(f"{name}_confirm", code=code, seconds=round(CODE_SECONDS))
    if not _CODE.fullmatch(typed):
        return texts(f"{name}_argument", words=shorten(neutralise(request.argument), MAX_SHOWN))
    known = codes.open_code(key)
    if known is None:
        return texts("code_over", name=name)
    offer = codes.take(key, typed)
    if offer is None:
        return texts("code_wrong", name=name, code=known[0], seconds=known[1])
    return "" if offer.subject == subject else texts("code_over", name=name)
