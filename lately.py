"""What was just said in each chat. It is held in memory only and is gone with the process.

It serves two ends: a short message is asked about together with what it leans on, and what the
server has not made memories of yet can be found all the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from .hindsight_types import RecalledMemory
from .recent import Recent
from .scope import UNKNOWN_PERSON, Scope
from .transcript import Message, Utterance

MAX_LINES = 40
"""So many lines are kept of a chat."""
LINE_SECONDS = 1800.0
"""By then the server has made memories of what was sent."""
MAX_PEOPLE = 20
MAX_ANSWER_CHARS = 100
"""How much of the end of the bot's last answer a short message is asked with."""


@dataclass
class _Talk:
    """What one chat was just talking about.

    Attributes:
        words: The last words of each person, by pseudonym.
        last: The pseudonym of who spoke last, and their words; both empty if they want no memory.
        answer: The end of the bot's last answer.
        lines: What was said, with the monotonic time.
    """

    words: dict[str, str] = field(default_factory=dict)
    last: tuple[str, str] = ("", "")
    answer: str = ""
    lines: deque[tuple[float, RecalledMemory]] = field(
        default_factory=lambda: deque(maxlen=MAX_LINES)
    )


class Lately:
    """Keeps what was just said, a little of each chat."""

    def __init__(self) -> None:
        self._talks: Recent[str, _Talk] = Recent()

    def before(self, message: Message) -> str:
        """What a short message leans on: the line before, the person's own words, the answer."""
        talk = self._talks.get(message.scope.chat)
        if talk is None:
            return ""
        person = message.speaker.pseudonym
        speaker, line = talk.last
        parts = [line if speaker != person else "", talk.words.get(person, ""), talk.answer]
        return " ".join(filter(None, parts))

    def ask(self, message: Message) -> None:
        """Notes a message, unless its speaker wants no memory or cannot be told from others."""
        talk, person = self._talk(message.scope), message.speaker.pseudonym
        talk.last = ("", "")
        talk.words.pop(person, None)
        if person != UNKNOWN_PERSON and not message.private_to_speaker:
            talk.last = (person, message.words)
            talk.words[person] = message.words
            if len(talk.words) > MAX_PEOPLE:
                del talk.words[next(iter(talk.words))]

    def say(self, scope: Scope, said: Iterable[Utterance], now: float) -> None:
        """Notes lines that are remembered."""
        talk = self._talk(scope)
        for one in said:
            speakers = (one.speaker.pseudonym,) if one.speaker.pseudonym else ()
            kind = "world" if speakers else "experience"
            memory = RecalledMemory(
                memory_id="",
                text=one.line.text,
                kind=kind,
                mentioned_at=one.at,
                tags=frozenset(scope.tags),
                score=None,
                speakers=speakers,
            )
            talk.lines.append((now, memory))
            if not speakers:
                talk.answer = one.text[-MAX_ANSWER_CHARS:]

    def lines(self, scope: Scope, since: float) -> list[RecalledMemory]:
        """The lines of a chat that were said after a monotonic time, newest last."""
        talk = self._talks.get(scope.chat)
        return [memory for at, memory in talk.lines if at >= since] if talk else []

    def forget(self, chat: str) -> None:
        """Drops what is held of a chat."""
        self._talks.pop(chat, None)

    def forget_all(self) -> None:
        """Drops everything, where somebody's words are in chats that are not known here."""
        self._talks.clear()

    def _talk(self, scope: Scope) -> _Talk:
        talk = self._talks.get(scope.chat) or _Talk()
        self._talks.put(scope.chat, talk)
        return talk
