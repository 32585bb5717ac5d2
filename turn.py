"""What the hooks of one event hand on to each other."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from .cleaning import strip_block
from .transcript import PLUGIN, Message

TURN_EXTRA = f"{PLUGIN}_turn"
"""Where a turn stands on its event, or why the event has none."""


@dataclass(frozen=True)
class Recalled:
    """What is added to the model's request.

    Attributes:
        block: What the chat's memory tells, empty if nothing.
        with_private: The same with lines of the private chat that the speaker shares; empty where
            there are none.
    """

    block: str = ""
    with_private: str = ""


class Turn:
    """One message and what becomes of it.

    Attributes:
        message: What was said.
        switches: The switches under which it was read, see `ScopeState.switches`.
        recall: The running recall, or None where nothing is recalled.
        run: AstrBot's context of the agent's run, once it has begun.
        is_asked: The model is asked.
        is_event_over: AstrBot is done with the event.
        is_over: The turn has gone to the outbox, or is not to go there.
        is_private: The model was given lines of a private chat, so that its words are not stored.
        follow_ups: What the same person said while the bot was working.
    """

    def __init__(self, message: Message, switches: object) -> None:
        self.message = message
        self.switches = switches
        self.recall: asyncio.Task[Recalled] | None = None
        self.run: Any = None
        self.is_asked = False
        self.is_event_over = False
        self.is_over = False
        self.is_private = False
        self.follow_ups: list[Message] = []

    @property
    def is_between(self) -> bool:
        """Whether the model is asked, and where its answer will stand is not yet known."""
        return self.is_asked and self.run is None and not (self.is_over or self.is_event_over)

    async def recalled(self) -> Recalled:
        """What was recalled; nothing where a reload has cancelled it."""
        if self.recall is None:
            return Recalled()
        await asyncio.wait({self.recall})
        return Recalled() if self.recall.cancelled() else self.recall.result()

    def drop_recall(self) -> None:
        """Ends the recall: its result is not wanted any more."""
        if self.recall:
            self.recall.cancel()
            self.recall = None


def turn_of(event: Any) -> Turn | None:
    """The turn that an earlier hook left on the event.

    It is not told by its class: after a reload in the middle of a turn that is another one, and
    the turn must not be lost for it.
    """
    turn: Turn | None = event.get_extra(TURN_EXTRA)
    return turn if hasattr(turn, "is_asked") else None


def is_private(turn: Turn | None) -> bool:
    """Whether the model knows something of a private chat; a turn of an older class cannot tell."""
    return bool(getattr(turn, "is_private", False))


def answer_in(messages: list[Any]) -> str:
    """The text of the answer that a finished run ends with; empty where it ended otherwise."""
    last = messages[-1] if messages else None
    if last is None or last.role != "assistant" or getattr(last, "tool_calls", None):
        return ""
    if isinstance(last.content, str):
        return last.content
    return "".join(getattr(part, "text", "") for part in last.content or ())


def cut_echo(messages: list[Any], response: Any) -> None:
    """Cuts what was meant for the model alone out of the reply and of AstrBot's history.

    That is a memory block, ours or not, and AstrBot's own markup, which models repeat. The history
    has been appended before the hooks run; text that was streamed has already left.
    """
    text = response.completion_text or ""
    if (cut := strip_block(text)) == text:
        return
    response.completion_text = cut
    for part in messages[-1].content or () if messages else ():
        if getattr(part, "type", "") == "text":
            part.text = strip_block(part.text)


def tool_results(messages: list[Any]) -> str:
    """The text of a run's tool results, in which AstrBot quotes the follow-ups it took in."""
    return "\n".join(str(message.content) for message in messages if message.role == "tool")
