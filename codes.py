"""What is done only when somebody types the code that they were just shown."""

from __future__ import annotations

import re
import secrets

from .arguments import ALL_WORDS, folded
from .cleaning import neutralise, shorten
from .clock import Clock
from .command_types import ChatRequest, PersonKey, first_word
from .recent import Recent

CODE_SECONDS = 60.0
MAX_SHOWN = 30

_CODE = re.compile(r"[0-9]{1,8}")


class Codes[Plan]:
    """One plan for each person in each chat, for a minute.

    A wrong code changes nothing: the right one stays until its minute is over, or it was used.

    Args:
        clock: The time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._plans: Recent[PersonKey, tuple[str, float, Plan]] = Recent()

    def ask(self, key: PersonKey, plan: Plan) -> str:
        """Notes a plan in the place of the one before, and makes its code.

        Who asks for the same again is given the same code, and another minute.
        """
        found = self._open(key)
        code = found[0] if found and found[2] == plan else f"{secrets.randbelow(10_000):04}"
        self._plans.put(key, (code, self._clock.monotonic() + CODE_SECONDS, plan))
        return code

    def take(self, key: PersonKey, code: str) -> Plan | None:
        """The plan of a code, once; None where it is another code, or came too late."""
        found = self._open(key)
        if found is None or code != found[0]:
            return None
        del self._plans[key]
        return found[2]

    def open_one(self, key: PersonKey) -> tuple[str, int, Plan] | None:
        """The code that would be right, the seconds that are left, and its plan."""
        if found := self._open(key):
            code, until, plan = found
            return code, max(1, round(until - self._clock.monotonic())), plan
        return None

    def _open(self, key: PersonKey) -> tuple[str, float, Plan] | None:
        found = self._plans.get(key)
        if found and found[1] < self._clock.monotonic():
            del self._plans[key]
            return None
        return found


def confirm[Plan](request: ChatRequest, codes: Codes[Plan], name: str, plan: Plan) -> str:
    """Asks for a code, or takes it.

    Args:
        request: The command with what was typed behind it: nothing or the code, behind the word
            for all where that makes another plan.
        codes: The open codes of this command.
        name: The command's name; `<name>_confirm` and `<name>_confirm_all` ask, and
            `<name>_argument` is said of other words.
        plan: What would be done.

    Returns:
        An empty text where the right code was typed, else what to answer.
    """
    texts, key, typed = request.texts, request.caller.key, folded(request.argument)
    word, rest = first_word(typed)
    before = f"{word} " if word in ALL_WORDS else ""
    typed = rest if before else typed
    if not typed:
        what = f"{name}_confirm_all" if before else f"{name}_confirm"
        return texts(what, code=codes.ask(key, plan), seconds=round(CODE_SECONDS))
    if not _CODE.fullmatch(typed):
        return texts(f"{name}_argument", words=shorten(neutralise(request.argument), MAX_SHOWN))
    found = codes.open_one(key)
    if found is None or found[2] != plan:
        return texts("code_over", name=f"{name} {before}".strip())
    if codes.take(key, typed) is None:
        code = f"{before}{found[0]}"
        return texts("code_wrong", name=name, code=code, seconds=found[1])
    return ""


def takes_all(request: ChatRequest) -> bool:
    """Whether the word for all stands behind a command."""
    return first_word(folded(request.argument))[0] in ALL_WORDS
