"""Hindsight's own client called straightforwardly; a measure for the benchmark, no real plugin."""

import os

from astrbot.api.event import AstrMessageEvent, filter
from astrbot.api.provider import LLMResponse, ProviderRequest
from astrbot.api.star import Context, Star
from astrbot.core.agent.message import TextPart

from hindsight_client import Hindsight

BANK = "official"


class OfficialMemory(Star):
    """Awaits a recall before the model call and a retain after the answer."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._client = Hindsight(
            base_url=os.environ["BENCH_HINDSIGHT_URL"], api_key=os.environ["BENCH_HINDSIGHT_KEY"]
        )

    async def terminate(self) -> None:
        """Closes the client."""
        await self._client.aclose()

    @filter.on_llm_request()
    async def recall(self, event: AstrMessageEvent, req: ProviderRequest) -> None:
        """Adds what is remembered of this chat."""
        found = await self._client.arecall(
            BANK, event.message_str, tags=[event.unified_msg_origin], tags_match="all_strict"
        )
        if found.results:
            lines = "\n".join(result.text for result in found.results)
            block = f"<hindsight_memory>\n{lines}\n</hindsight_memory>"
            req.extra_user_content_parts.append(TextPart(text=block).mark_as_temp())

    @filter.on_llm_response()
    async def retain(self, event: AstrMessageEvent, resp: LLMResponse) -> None:
        """Stores the turn; the server is asked to do the work later."""
        await self._client.aretain(
            BANK,
            f"user: {event.message_str}\nassistant: {resp.completion_text}",
            tags=[event.unified_msg_origin],
            retain_async=True,
        )
