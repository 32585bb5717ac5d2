"""What the bot is called in each chat."""

from __future__ import annotations

from typing import Any

from .clock import Clock
from .events import mentioned_name
from .recent import Recent

RETRY_SECONDS = 600.0
"""After a platform did not tell, it is asked again so much later."""


class BotNames:
    """The bot's names, as far as the platforms have told.

    Several accounts of one adapter may be in one chat, so a name belongs to an account in a chat.

    Args:
        clock: The time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._names: Recent[tuple[str, str], str] = Recent()
        self._ask_at: Recent[tuple[str, str], float] = Recent()

    def name(self, event: Any) -> str:
        """The bot's card or nickname in the chat of an event, or an empty text."""
        if mentioned := mentioned_name(event):
            self._names.put(_key(event), mentioned)
        return self._names.get(_key(event), "")

    async def ask(self, event: Any) -> None:
        """Asks a OneBot platform for the name, which the others do not tell, until it is known.

        Raises:
            Exception: Whatever the platform's client raises; it is asked again later.
        """
        key, now = _key(event), self._clock.monotonic()
        if event.get_platform_name() != "aiocqhttp" or self._names.get(key):
            return
        if now < self._ask_at.get(key, now):
            return
        self._ask_at.put(key, now + RETRY_SECONDS)
        if name := await _told(event):
            self._names.put(key, name)


def _key(event: Any) -> tuple[str, str]:
    return str(event.unified_msg_origin), str(event.get_self_id() or "")


async def _told(event: Any) -> str:
    """The card or nickname of the account that got the event."""
    self_id, group_id = event.get_self_id(), event.get_group_id()
    account = {"self_id": int(self_id)}  # chooses among the adapter's connections
    if group_id:
        who = {"group_id": int(group_id), "user_id": int(self_id)}
        told = await event.bot.call_action("get_group_member_info", **account, **who)
    else:
        told = await event.bot.call_action("get_login_info", **account)
    return str(told.get("card") or told.get("nickname") or "")
