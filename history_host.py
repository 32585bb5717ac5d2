"""What AstrBot and the platform tell of what was said in an event's chat before."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from logging import Logger
from typing import Any

from .events import EventReader
from .history import PastEvent, Place
from .scope import ChatKind

HISTORY_SECONDS = 20.0
"""So long one page of a chat's past may take."""


def place_of(event: Any, kind: ChatKind, config: Any, commands: frozenset[str]) -> Place:
    """The chat of an event, for reading its past.

    Args:
        event: AstrBot's event.
        kind: Private or group chat.
        config: AstrBot's configuration for the chat.
        commands: What all commands are called, without a prefix.
    """
    own = config["platform_settings"].get("friend_message_needs_wake_prefix")
    return Place(
        platform=str(event.get_platform_name()),
        instance=str(event.get_platform_id()),
        kind=kind,
        umo=str(event.unified_msg_origin),
        session_id=str(event.session_id),
        group_id=str(event.get_group_id() or ""),
        self_id=str(event.get_self_id() or ""),
        person_id=str(event.get_sender_id() or ""),
        person_name=str(event.get_sender_name() or ""),
        wake_prefixes=tuple(str(one) for one in config["wake_prefix"] if one),
        needs_prefix=bool(own) and event.get_platform_name() != "webchat",
        commands=commands,
    )


class ChatPast:
    """Asks AstrBot, and the platform, about one chat.

    Args:
        context: AstrBot's context of the plugin.
        event: An event of the chat.
        find_place: The chat.
        read: Reads a past message as a live one would be read.
        say: Says something in the chat with this `unified_msg_origin`.
        logger: Gets what did not answer.
    """

    def __init__(
        self,
        context: Any,
        event: Any,
        *,
        find_place: Callable[[], Place],
        read: Callable[[PastEvent], Awaitable[EventReader]],
        say: Callable[[str, str], Awaitable[Any]],
        logger: Logger,
    ) -> None:
        self._context = context
        self._event = event
        self._find_place = find_place
        self._read = read
        self._say = say
        self._logger = logger

    @property
    def host(self) -> ChatPast:
        """Who tells."""
        return self

    @property
    def place(self) -> Place:
        """The chat."""
        return self._find_place()

    async def reader(self, event: PastEvent) -> EventReader:
        """Reads a past message as a live one would be read."""
        return await self._read(event)

    async def say(self, text: str) -> None:
        """Says something in the chat, later; not every platform lets a bot begin."""
        await self._told(self._say(self._event.unified_msg_origin, text))

    async def onebot(self, action: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """An answer of a OneBot platform."""
        bot: Any = getattr(self._event, "bot", None)
        answer: Mapping[str, Any] | None = None
        if bot:
            answer = await self._told(bot.call_action(action, **params))
        return answer

    async def rows(self, platform_id: str, user_id: str, page: int) -> Sequence[Any] | None:
        """A page of AstrBot's message history."""
        manager = self._context.message_history_manager
        rows: Sequence[Any] | None = await self._told(manager.get(platform_id, user_id, page=page))
        return rows

    async def conversations(self, umo: str) -> Sequence[Any] | None:
        """The chat's conversations with the model."""
        manager = self._context.conversation_manager
        found: Sequence[Any] | None = await self._told(manager.get_conversations(umo))
        return found

    async def _told(self, answer: Awaitable[Any]) -> Any:
        try:
            async with asyncio.timeout(HISTORY_SECONDS):
                return await answer
        except Exception:  # noqa: BLE001 - whatever the platform's client or the database raises
            self._logger.debug("AstrBot or the platform did not answer", exc_info=True)
            return None
