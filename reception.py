"""Who comes in: an event of AstrBot becomes its chat, its message, and whoever uses a command.

What only AstrBot's own classes can tell or do is handed in (`Porter`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from logging import Logger
from typing import Any

from .assembly import Parts
from .bot_names import BotNames
from .clock import Clock
from .command_names import shown_prefix
from .command_types import Caller, FileSender
from .events import (
    EventReader,
    group_name_of,
    has_own_session,
    ids_of,
    is_manager,
    locale_of,
    message_id_of,
    origin_of,
    person_id_of,
)
from .history import PastEvent
from .history_host import ChatPast, place_of
from .personas import Personas
from .scope import UNKNOWN_PERSON, Scope, Skip, is_listed
from .settings import Settings
from .texts import Texts, choose_language
from .transcript import PLUGIN, Message, Speaker
from .turn import Turn

PERSONA_EXTRA = f"{PLUGIN}_persona"
"""Where an event says which persona answers it."""


@dataclass(frozen=True)
class Porter:
    """What only AstrBot's own classes can tell or do.

    Attributes:
        is_enabled: Whether the rules of a session let the plugin work there.
        command_names: What the command is called at present, its main name first.
        all_command_names: What the commands of all plugins are called at present.
        file_sender: Sends a file to the chat of an event; None where its platform takes none.
        say: Says something in the chat with this `unified_msg_origin`.
    """

    is_enabled: Callable[[str], Awaitable[bool]]
    command_names: Callable[[], Iterable[str]]
    all_command_names: Callable[[], Iterable[str]]
    file_sender: Callable[[Any], FileSender | None]
    say: Callable[[str, str], Awaitable[Any]]


class Reception:
    """Reads events.

    Args:
        context: AstrBot's context of the plugin.
        settings: The settings.
        parts: The parts.
        porter: See above.
        clock: The time.
        logger: Gets what a platform did not tell.
    """

    def __init__(
        self,
        context: Any,
        settings: Settings,
        parts: Parts,
        porter: Porter,
        clock: Clock,
        logger: Logger,
    ) -> None:
        self._context = context
        self._settings = settings
        self._parts = parts
        self._porter = porter
        self._clock = clock
        self._logger = logger
        self._bot_names = BotNames(clock)
        self._personas = Personas(context)

    # --- The chat -----------------------------------------------------------------------------

    def scope(self, event: Any) -> Scope | Skip:
        """The chat of an event, or why it can have no memory."""
        origin = origin_of(event)
        privacy = self._settings.privacy
        if is_listed(origin, privacy.deny_chats):
            return Skip.DENIED
        if privacy.allow_chats and not is_listed(origin, privacy.allow_chats):
            return Skip.DENIED
        return self._parts.bindings.scope(origin, event.get_extra(PERSONA_EXTRA) or "")

    async def meet(self, event: Any) -> Scope | Skip:
        """The same, once it is on disk that this chat was met."""
        return await self._parts.bindings.meet(self.scope(event))

    async def admitted(self, event: Any, *, is_passed: bool = False) -> Scope | Skip:
        """The chat of an event, or why it has no memory now; AstrBot asks no rule for hooks.

        Args:
            event: The event.
            is_passed: The session's rules were asked just now.
        """
        scope = self._parts.memory.admit(await self.meet(event))
        if isinstance(scope, Skip) or is_passed:
            return scope
        is_enabled = await self._porter.is_enabled(event.unified_msg_origin)
        return scope if is_enabled else Skip.SESSION_RULE

    async def note_persona(self, event: Any) -> None:
        """Leaves on the event which persona answers it, where that makes a difference."""
        if self._settings.separate_personas:
            event.set_extra(PERSONA_EXTRA, await self._personas.in_force(event))

    # --- The message --------------------------------------------------------------------------

    async def meet_people(self, event: Any, scope: Scope) -> None:
        """Notes whom an event names, so that their ids are known when it is read."""
        await self._parts.people.meet(scope, ids_of(event))

    def message(self, event: Any, scope: Scope, at: datetime) -> Message:
        """What an event says."""
        return replace(self.reader(event, scope).message(at), key=self._message_key(event))

    async def message_again(self, event: Any, turn: Turn, scope: Scope) -> Message:
        """A turn's message under what is switched, and bound, now."""
        await self.meet_people(event, scope)
        first, now = turn.message, self.message(event, scope, turn.message.at)
        is_private = first.private_to_speaker or now.private_to_speaker
        return replace(now, began=first.began, private_to_speaker=is_private)

    async def with_shared(self, event: Any, message: Message) -> Message:
        """A message with the private chat that its speaker lets be read here, if any."""
        sharing = self._parts.sharing
        if shared := sharing.of(message.scope, person_id_of(event)):
            sharing.note_name(message.scope, group_name_of(event))
            message = replace(message, shared=shared)
        return message if await self.is_shared(event, message) else replace(message, shared=None)

    async def is_shared(self, event: Any, message: Message) -> bool:
        """Whether the speaker's private chat may be read here now, also by its session's rules."""
        if message.shared is None:
            return False
        umo = self._parts.sharing.umo(message.shared, origin_of(event))
        if umo and not await self._porter.is_enabled(umo):
            return False
        return self._parts.memory.may_show_private(message)  # nothing can change from here on

    def reader(self, event: Any, scope: Scope, past: PastEvent | None = None) -> EventReader:
        """Reads an event, or a past message of its chat in the same way."""
        return EventReader(
            past or event,
            scope,
            self._parts.people.roster(scope),
            self.texts(event),
            bot_name=self.bot_name(event),
            wake_prefix=self._provider_prefix(event),
            privacy=self._settings.privacy,
            opted_out=lambda person_id: self._parts.state.is_opted_out(scope, person_id),
            # Its answers in such a group are not stored, and so they are not by this way either.
            quotes_bot=not self._parts.sharing.is_shared_in(scope),
        )

    async def clean(self, event: Any, text: str) -> str:
        """A text without raw ids and secrets; left alone where there is no chat to speak of."""
        scope = self.scope(event)
        if not isinstance(scope, Scope):
            return text
        await self.meet_people(event, scope)
        return self.reader(event, scope).clean(text)

    def asks_model(self, event: Any) -> bool:
        """Whether the model will be asked; AstrBot 4.29 looks only after the waiting hook."""
        has_prefix = event.message_str.startswith(self._provider_prefix(event))
        return has_prefix or event.get_extra("provider_request") is not None

    # --- The bot's name -----------------------------------------------------------------------

    def bot_name(self, event: Any) -> str:
        """What the bot is called in the chat of an event, as far as it is known."""
        return self._bot_names.name(event)

    async def ask_bot_name(self, event: Any) -> None:
        """Asks the platform for the bot's name, where that is not known yet."""
        try:
            await self._bot_names.ask(event)
        except Exception:  # noqa: BLE001 - whatever a platform's client raises; only a name
            self._logger.debug("the platform did not tell the bot's name", exc_info=True)

    # --- Commands -----------------------------------------------------------------------------

    def texts(self, event: Any) -> Texts:
        """The wording in the language of an event."""
        language = choose_language(self._settings.language, locale_of(event))
        prefix = shown_prefix(event.get_platform_name(), self._config(event)["wake_prefix"])
        name = next(iter(self._porter.command_names()))
        return Texts(language, command=f"{prefix}{name}")

    def caller(self, event: Any, scope: Scope | Skip) -> Caller:
        """Who uses a command or a tool."""
        texts = self.texts(event)
        speaker = Speaker(texts("name_user"), UNKNOWN_PERSON)
        past = None
        if isinstance(scope, Scope):
            past = self.past(event, scope)
            speaker = self.reader(event, scope).message(self._clock.local()).speaker
        return Caller(
            scope=scope,
            texts=texts,
            now=self._clock.local(),
            speaker=speaker,
            person_id=person_id_of(event),
            is_manager=is_manager(event),
            is_admin=event.is_admin(),
            send_file=self._porter.file_sender(event),
            past=past,
            place=origin_of(event),
            chat_name=group_name_of(event),
            message=self._message_key(event),
            has_own_session=has_own_session(event),
        )

    def past(self, event: Any, scope: Scope) -> ChatPast:
        """Tells what was said in the chat of an event before."""

        async def read(past: PastEvent) -> EventReader:
            await self.ask_bot_name(event)
            await self.meet_people(past, scope)
            return self.reader(event, scope, past)

        return ChatPast(
            self._context,
            event,
            find_place=lambda: place_of(
                event,
                scope.kind,
                self._config(event),
                frozenset(self._porter.all_command_names()),
            ),
            read=read,
            say=self._porter.say,
            logger=self._logger,
        )

    def _message_key(self, event: Any) -> str:
        hasher = self._parts.state.hasher
        return hasher.message(origin_of(event), message_id_of(event)) if hasher else ""

    def _config(self, event: Any) -> Any:
        return self._context.get_config(umo=event.unified_msg_origin)

    def _provider_prefix(self, event: Any) -> str:
        """What a message must begin with for the model to be asked; mostly empty."""
        return str(self._config(event)["provider_settings"].get("wake_prefix") or "")
