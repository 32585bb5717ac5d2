"""A plugin beside ours: it keeps the model busy, and it works on what the model is asked."""

import asyncio
import time

from astrbot.api.event import AstrMessageEvent, filter
from astrbot.api.provider import ProviderRequest
from astrbot.api.star import Star
from astrbot.core.agent.message import TextPart


class RigTools(Star):
    """Has one tool, and one hook for messages that ask for it."""

    @filter.llm_tool(name="look_up")
    async def look_up(self, event: AstrMessageEvent) -> str:
        """Looks something up."""
        return "TOOLRESULT 查到了"

    @filter.on_llm_request()
    async def look_over(self, event: AstrMessageEvent, req: ProviderRequest) -> None:
        """Takes a second for a message that says LOOK OVER, and adds to it from when to when."""
        if "LOOK OVER" not in event.message_str:
            return
        began = time.time()
        await asyncio.sleep(1)
        req.prompt += "\nADDED to the prompt"
        req.extra_user_content_parts.append(TextPart(text=f"ADDED {began} {time.time()}"))
