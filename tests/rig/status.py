"""What the bot tells its admin of itself."""

from __future__ import annotations

from .astrbot import ADMIN
from .onebot import OneBot

MORE = "\n更多：/hindsight more"


async def whole_status(onebot: OneBot) -> str:
    """All of `status all`, however long it is."""
    parts = [await onebot.ask_private(ADMIN, "/hindsight status all")]
    while parts[-1].endswith(MORE):
        parts[-1] = parts[-1].removesuffix(MORE)
        parts.append(await onebot.ask_private(ADMIN, "/hindsight more"))
    return "\n".join(parts)
