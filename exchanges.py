"""Which of a chat's past messages belong together: what was said to the bot, and its answers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from .history import PartType, PastEvent, PastMessage, Place

ANSWER_SECONDS = 600.0
"""What the bot says later answers something else."""
CONTINUED_SECONDS = 15.0
"""A long answer comes in several messages."""


@dataclass
class Exchange:
    """What one person has said, and what the bot answered.

    Attributes:
        said: In order.
        is_command: It was a command, and so was never a matter for the model.
        answers: In order, maybe none.
    """

    said: list[PastEvent]
    is_command: bool = False
    answers: list[PastMessage] = field(default_factory=list)

    @property
    def sender_id(self) -> str:
        """Who has said it."""
        return self.said[0].message.sender_id

    @property
    def text(self) -> str:
        """The whole answer."""
        return "\n".join(one.words for one in self.answers if one.words)

    def is_answered_by(self, message: PastMessage) -> bool:
        """Whether a message of the bot quotes or mentions who has said it."""
        quoted = {p.sender_id for p in message.parts if p.type is PartType.REPLY}
        return self.sender_id in quoted or message.mentions(self.sender_id)

    def goes_on_at(self, message: PastMessage) -> bool:
        """Whether a message of the bot goes on with its answer."""
        is_owed = len(self.answers) < len(self.said)
        seconds = ANSWER_SECONDS if is_owed else CONTINUED_SECONDS
        return _seconds(self.answers[-1], message) <= seconds


class _Chat:
    """The talk so far.

    Args:
        place: The chat.
        listens: Also what is not for the bot is remembered here.
    """

    def __init__(self, place: Place, *, listens: bool) -> None:
        self._place = place
        self._listens = listens
        self._waiting: deque[Exchange] = deque()
        self._answered: Exchange | None = None
        self.found: list[Exchange] = []

    def hear(self, message: PastMessage) -> None:
        """Takes the next message."""
        while (
            self._waiting and _seconds(self._waiting[0].said[-1].message, message) > ANSWER_SECONDS
        ):
            self._waiting.popleft()
        if message.is_bot:
            self._answer(message)
        else:
            self._say(PastEvent(self._place, message))

    def _say(self, event: PastEvent) -> None:
        if not event.is_to_bot:
            if self._listens:
                self.found.append(Exchange([event]))
            return
        last = self._waiting[-1] if self._waiting else None
        is_same = last and last.sender_id == event.message.sender_id
        if last and is_same and not (event.is_command or last.is_command):
            last.said.append(event)
            return
        exchange = Exchange([event], event.is_command)
        self._waiting.append(exchange)
        self.found.append(exchange)

    def _answer(self, message: PastMessage) -> None:
        meant = (one for one in self._waiting if one.is_answered_by(message))
        exchange = next(meant, self._waiting[0] if self._waiting else None)
        if exchange:
            self._waiting.remove(exchange)
            self._answered = exchange
        elif self._answered is None or not self._answered.goes_on_at(message):
            return
        assert self._answered is not None
        self._answered.answers.append(message)


def exchanges(place: Place, messages: Iterable[PastMessage], *, listens: bool) -> list[Exchange]:
    """What a live chat would have remembered, in order: what was said to the bot and answered.

    Args:
        place: The chat.
        messages: In order.
        listens: Also what is not for the bot is remembered here.
    """
    chat = _Chat(place, listens=listens)
    for message in messages:
        chat.hear(message)
    return [one for one in chat.found if not one.is_command and (listens or one.answers)]


def _seconds(earlier: PastMessage, later: PastMessage) -> float:
    return (later.time or 0.0) - (earlier.time or later.time or 0.0)
