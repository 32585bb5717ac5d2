"""What the model's tools answer: always a text, and never one of another chat."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Literal

from .cleaning import neutralise
from .command_types import Caller, PersonKey
from .delivery import Delivery
from .handover import Work
from .hindsight_types import HindsightError, RecalledMemory
from .memory import ChatMemory
from .memory_formatter import cut_memories, has_label, memory_date, memory_text
from .query import build_query
from .rate_limit import RateLimit
from .scope import Scope, ScopeState, Skip
from .settings import ToolSettings
from .status import Status

TOOL_SECONDS = 8.0

ToolName = Literal["recall", "remember"]


@dataclass(frozen=True)
class ToolSpec:
    """What the model is told of a tool.

    Attributes:
        name: Its name, without that of the plugin.
        description: In the model's language, which is always English.
        argument: The name of its one argument.
    """

    name: ToolName
    description: str
    argument: str


_RECALL = ToolSpec(
    "recall", "Looks up what is remembered of this chat. Ask in its language.", "query"
)
_REMEMBER = ToolSpec(
    "remember", "Stores one sentence in the long-term memory of this chat.", "content"
)


class ModelTools:
    """Answers the model's tools.

    Args:
        settings: Which tools there are.
        max_tokens: How much a recall gives.
        memory: The recall and retain flow.
        state: Salt and switches.
        delivery: The sending of turns.
        status: Says why there is no memory.
        limit: Shared with the commands.
        work: Knows what is under way.
    """

    def __init__(
        self,
        settings: ToolSettings,
        max_tokens: float,
        memory: ChatMemory,
        state: ScopeState,
        delivery: Delivery,
        status: Status,
        limit: RateLimit[PersonKey],
        work: Work,
    ) -> None:
        self._work = work
        wanted = {_RECALL: settings.recall, _REMEMBER: settings.remember}
        self.specs = [spec for spec, is_wanted in wanted.items() if is_wanted]
        self._max_tokens = max_tokens
        self._memory = memory
        self._state = state
        self._delivery = delivery
        self._status = status
        self._limit = limit

    async def answer(
        self, name: ToolName, caller: Caller, text: str, *, is_private: bool = False
    ) -> str:
        """What is remembered of this chat for a query; or takes a sentence as the bot's own.

        Args:
            name: The tool.
            caller: Who is answered with it.
            text: The query or the sentence.
            is_private: The model knows things that must not be stored in this chat.
        """
        if is_private and name == "remember":
            return caller.texts("tool_private")
        handler = {"recall": self._recall, "remember": self._remember}[name]
        work = self._answer(caller, text, handler)
        return await self._work.start(work, ended=caller.texts("ended"))

    async def _answer(
        self, caller: Caller, text: str, handler: Callable[[Caller, Scope, str], Awaitable[str]]
    ) -> str:
        scope = self._memory.admit(caller.scope)
        if isinstance(scope, Skip):
            return self._status.no_memory(caller.scope, caller.texts)
        if not self._limit.may_use(caller.key):
            seconds = self._limit.seconds(caller.key)
            return caller.texts("too_often", number=self._limit.per_minute, seconds=seconds)
        try:
            async with asyncio.timeout(TOOL_SECONDS):
                return await handler(caller, scope, text)
        except HindsightError as error:
            return caller.texts(error.reason)
        except TimeoutError:
            return caller.texts("timeout")

    async def _recall(self, caller: Caller, scope: Scope, text: str) -> str:
        query = build_query(text)
        if not query:
            return caller.texts("recall_usage")
        found = await self._memory.search(scope, query, caller.now)
        memories = cut_memories(found, self._max_tokens)
        lines = [_described(caller, m) for m in memories if memory_text(m, caller.texts)]
        return "\n".join(lines) or caller.texts("tool_nothing")

    async def _remember(self, caller: Caller, scope: Scope, text: str) -> str:
        texts = caller.texts
        if not re.search(r"\w", text):
            return texts("remember_usage")
        if self._state.is_opted_out(scope, caller.person_id):
            return texts("remember_opted_out")
        record = self._memory.record(
            scope,
            texts,
            caller.speaker,
            text,
            caller.now,
            by_bot=True,
            message=caller.message,
        )
        # What was erased since the model was asked covers what it says of it.
        await self._delivery.add(replace(record, began=min(record.began, caller.began)))
        return texts("tool_remembered")


def _described(caller: Caller, memory: RecalledMemory) -> str:
    """A memory with its date, and its speaker where the text does not tell."""
    text = memory_text(memory, caller.texts)
    who = memory.speakers[0] if len(memory.speakers) == 1 and not has_label(text) else ""
    date = memory_date(memory, caller.now.tzinfo)
    return " ".join(filter(None, [date, text, f"({neutralise(who)})" if who else ""]))
