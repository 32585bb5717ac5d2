"""The plugin's command, typed in a chat, and what it answers."""

from __future__ import annotations

from typing import Any

from rig.astrbot import ADMIN
from rig.onebot import Kind, OneBot

WORKING = "请稍候"
"""What stands in a word that an answer takes longer."""
_FILE = "[file]"
_MORE = "\n更多：/hindsight more"


async def command(onebot: OneBot, who: int, words: str, group: int = 0, **how: Any) -> str:
    """Use a command, and return its whole answer.

    What comes in several messages is awaited whole: a late one would be taken for the answer to
    what is said next.

    Args:
        onebot: The bot's account.
        who: Who types it.
        words: What follows the command's name.
        group: In which group; 0 is the private chat.
        how: More for `OneBot.ask_group`.

    Returns:
        The answer; a word that it is being worked on is left out, and a file stands as `[file]`.
    """
    typed = f"/hindsight {words}"
    if not group:
        return await whole_answer(onebot, ("private", who), await onebot.ask_private(who, typed))
    first = await onebot.ask_group(group, who, typed, **{"at": False, **how})
    return await whole_answer(onebot, ("group", group), first)


async def whole_answer(onebot: OneBot, chat: tuple[Kind, int], first: str) -> str:
    """Return the whole answer to a command, of which the first message is known."""
    parts = [first]
    while parts[-1] == _FILE or WORKING in parts[-1]:
        parts.append((await onebot.reply(target=chat)).text)
    return "\n".join(part for part in parts if WORKING not in part)


async def whole_status(onebot: OneBot) -> str:
    """Return all of `status all`, however long it is."""
    parts = [await command(onebot, ADMIN, "status all")]
    while parts[-1].endswith(_MORE):
        parts[-1] = parts[-1].removesuffix(_MORE)
        parts.append(await command(onebot, ADMIN, "more"))
    return "\n".join(parts)
