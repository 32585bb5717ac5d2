"""What the memory costs, as far as the plugin and the server count it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from .hindsight_client import HindsightClient
from .hindsight_types import HindsightError, ModelUse
from .intake import DISK_ERRORS
from .memory import ChatMemory
from .outbox import Outbox
from .texts import Texts

COUNT_SECONDS = 2.5


@dataclass(frozen=True)
class Costs:
    """Reads the figures that cost something.

    Attributes:
        client: Hindsight, or None while the settings do not allow any request.
        memory: Knows what was given to the model.
        outbox: Knows how many turns went together.
    """

    client: HindsightClient | None
    memory: ChatMemory
    outbox: Outbox

    async def lines(self, texts: Texts) -> list[str]:
        """A line for each cost that is known."""
        lines: list[str] = []
        figures = self.memory.figures
        if figures.recalls:
            tokens = round(figures.tokens / figures.recalls)
            lines.append(texts("stats_injected", tokens=tokens))
        if saved := await self._saved():
            lines.append(texts("stats_saved", calls=saved))
        if use := await self._use():
            values = {"input": use.input_tokens, "output": use.output_tokens}
            lines.append(texts("stats_model", calls=use.calls, errors=use.errors, **values))
        return lines

    async def _saved(self) -> int:
        try:
            async with asyncio.timeout(COUNT_SECONDS):
                return await self.outbox.saved_calls()
        except DISK_ERRORS:  # a time-out is one of them
            return 0

    async def _use(self) -> ModelUse | None:
        """What the server counts; None where it does not, or does not tell us."""
        if self.client is None:
            return None
        try:
            async with asyncio.timeout(COUNT_SECONDS):
                return await self.client.model_use()
        except (HindsightError, TimeoutError):
            return None
