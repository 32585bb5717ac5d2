"""A plugin with a tool for the model, so that it can be kept busy."""

from astrbot.api.event import AstrMessageEvent, filter
from astrbot.api.star import Star


class RigTools(Star):
    """Has one tool."""

    @filter.llm_tool(name="look_up")
    async def look_up(self, event: AstrMessageEvent) -> str:
        """Looks something up."""
        return "TOOLRESULT 查到了"
