"""A plugin beside ours: it keeps the model busy, and it works on what the model is asked."""

import asyncio
import re
from pathlib import Path

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
        """Adds to a message that says LOOK OVER, and waits before that if it says UNTIL when.

        That is until a file called "go on" is in the folder that it names.
        """
        found = re.search(r"LOOK OVER(?: UNTIL (\S+))?", event.message_str)
        if not found:
            return
        while found[1] and not (Path(found[1]) / "go on").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        req.prompt += "\nADDED to the prompt"
        req.extra_user_content_parts.append(TextPart(text="ADDED part"))
