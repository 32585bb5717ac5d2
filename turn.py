"""What the hooks of one event hand on to each other."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from .transcript import Message


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


def answer_in(messages: list[Any]) -> str:
    """The text of the answer that a finished run ends with; empty where it ended otherwise."""
    last = messages[-1] if messages else None
    if last is None or last.role != "assistant" or getattr(last, "tool_calls", None):
        return ""
    if isinstance(last.content, str):
        return last.content
    return "".join(getattr(part, "text", "") for part in last.content or ())
