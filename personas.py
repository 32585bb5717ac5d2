"""Which persona answers in a chat, as AstrBot finds it."""

from __future__ import annotations

from typing import Any

_TRACED = "_trace_persona_id"
"""Where AstrBot notes it, once the request is made (later than 4.27.4)."""


class Personas:
    """Asks AstrBot.

    Args:
        context: AstrBot's context of the plugin.
    """

    def __init__(self, context: Any) -> None:
        self._context = context

    async def in_force(self, event: Any) -> str:
        """The id of the persona that answers an event.

        Returns:
            An empty text for the default persona, for none, and for one that was deleted: those
            have the memory of the chat itself.
        """
        manager = self._context.persona_manager
        name = event.get_extra(_TRACED) or await self._resolved(event)
        default = await manager.get_default_persona_v3(event.unified_msg_origin)
        is_known = any(one["name"] == name for one in manager.personas_v3)
        return str(name) if is_known and name != default["name"] else ""

    async def _resolved(self, event: Any) -> str | None:
        """What AstrBot will choose; reads the conversation from its database (about 3 ms)."""
        context, umo = self._context, event.unified_msg_origin
        conversation_id = await context.conversation_manager.get_curr_conversation_id(umo)
        conversation = None
        if conversation_id:
            conversation = await context.conversation_manager.get_conversation(umo, conversation_id)
        found = await context.persona_manager.resolve_selected_persona(
            umo=umo,
            conversation_persona_id=conversation.persona_id if conversation else None,
            platform_name=event.get_platform_name(),
            provider_settings=context.get_config(umo=umo)["provider_settings"],
        )
        name: str | None = found[0]
        return name
