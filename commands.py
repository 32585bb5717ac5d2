"""`/hindsight`: finds the command that was typed and answers it, whatever goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

from .arguments import ALL_WORDS
from .cleaning import neutralise, shorten
from .clock import Clock
from .command_types import (
    Caller,
    ChatRequest,
    Command,
    Free,
    PersonKey,
    Request,
    Stored,
    Whole,
    first_word,
)
from .guide import Guide, takes_nothing
from .handover import Work
from .hindsight_types import AccessRefusedError, HindsightError, RequestRejectedError
from .intake import DISK_ERRORS
from .long_answers import LongAnswers
from .memory import ChatMemory
from .rate_limit import RateLimit
from .scope import Scope, Skip
from .status import Status

MAX_NAME_CHARS = 30
PATIENCE_SECONDS = 3.0
"""An answer that takes longer is announced."""

_SWITCHED_OFF = {Skip.CHAT_OFF, Skip.PAUSED, Skip.PRIVATE_DISABLED, Skip.GROUP_DISABLED}
"""Where nothing is recalled or stored, people can still see and erase what there is."""


_OF_PERSONA = {
    *("recall", "why", "list", "ask", "profile", "export"),
    *("remember", "correct", "forget", "forgetme", "wipe"),
}
"""What is about the memory of the persona in force, and not about all of the chat."""


class Commands:
    """Answers `/hindsight`.

    Args:
        table: The commands, in the order of the help, which comes last.
        stored: What is stored, None without a server.
        memory: Tells whether a chat has memory.
        status: Says why there is no memory.
        limit: Shared with the model's tools.
        work: Knows what is under way.
        clock: The time.
        members_may_manage: A setting.
        separate_personas: A setting.
    """

    def __init__(
        self,
        table: Sequence[Command],
        *,
        stored: Stored | None,
        memory: ChatMemory,
        status: Status,
        limit: RateLimit[PersonKey],
        work: Work,
        clock: Clock,
        members_may_manage: bool,
        separate_personas: bool,
    ) -> None:
        self._stored = stored
        self._memory = memory
        self._status = status
        self._limit = limit
        self._work = work
        self._members_may_manage = members_may_manage
        self._separate_personas = separate_personas
        self._long = LongAnswers(memory, clock)
        help_, more = self._help, self._more
        self.table = (
            *table,
            Command("more", "更多", more, elsewhere=more),
            Command("help", "帮助", help_, elsewhere=help_, has_argument=True),
        )
        self._guide = Guide(self.table, self._may)

    async def answer(self, caller: Caller, words: str) -> AsyncGenerator[str, None]:
        """Answers what was typed after `/hindsight`, with the help where nothing was.

        Args:
            caller: Who typed it.
            words: What follows the command's name.

        Yields:
            The answer; before it, where it takes longer, a word that it is being worked on.
        """
        name, argument = first_word(words)
        command = self._guide.find(name or "help")
        if command and command.is_verbatim and caller.typed:
            _, argument = first_word(caller.typed)
        work = self._answer(caller, command, argument) if command else self._unknown(caller, words)
        task = self._work.start(work, ended=caller.texts("ended"))
        try:
            done, _ = await asyncio.wait({task}, timeout=PATIENCE_SECONDS)
            if not done:
                yield caller.texts(command.working if command else "working")
            yield await task
        finally:
            task.cancel()

    async def _answer(self, caller: Caller, command: Command, argument: str) -> str:
        """A refusal, or what the command answers, as much of it as can be read at one glance."""
        if refusal := self._refusal(caller, command, argument):
            return refusal
        answer = await self._run(command, Request(caller, argument))
        if command.is_limited and isinstance(answer, Free):
            self._limit.give_back(caller.key)
        if isinstance(answer, Whole):
            return answer
        return self._long.first(caller, self._persona_line(caller, command, argument) + answer)

    def _persona_line(self, caller: Caller, command: Command, argument: str) -> str:
        """Whose memory an answer is about, where personas have memories of their own."""
        is_of_all = first_word(argument)[0].lower() in ALL_WORDS or isinstance(caller.scope, Skip)
        if not self._separate_personas or command.name not in _OF_PERSONA or is_of_all:
            return ""
        assert isinstance(caller.scope, Scope)
        name = shorten(neutralise(caller.scope.persona), MAX_NAME_CHARS)
        return f"{caller.texts('persona', name=name or caller.texts('persona_default'))}\n"

    def _refusal(self, caller: Caller, command: Command, argument: str) -> str:
        """Why somebody may not use a command here, or an empty text."""
        if not self._may(caller, command):
            return caller.texts(f"needs_{command.rights}")
        reason = self._memory.admit(caller.scope)
        if isinstance(reason, Skip) and (
            command.needs == "memory" or (command.needs == "stored" and reason not in _SWITCHED_OFF)
        ):
            return self._status.no_memory(caller.scope, caller.texts)
        if command.is_personal and not caller.person_id:
            return caller.texts("needs_person")
        if argument and command.refuses_argument:
            return takes_nothing(caller.texts, command)
        if command.is_limited and not self._limit.may_use(caller.key):
            seconds = self._limit.seconds(caller.key)
            return caller.texts("too_often", number=self._limit.per_minute, seconds=seconds)
        return ""

    def _may(self, caller: Caller, command: Command) -> bool:
        if command.rights == "managers":
            return caller.is_manager or self._members_may_manage
        if command.rights == "private" and isinstance(caller.scope, Scope):
            return caller.is_admin or caller.scope.kind == "private"
        if command.rights == "trusted":
            is_group = isinstance(caller.scope, Scope) and caller.scope.kind == "group"
            return caller.is_admin or (caller.is_manager and is_group)
        return command.rights == "all" or caller.is_admin

    async def _run(self, command: Command, request: Request) -> str:
        """Runs a command and turns whatever goes wrong into a sentence."""
        caller, texts = request.caller, request.texts
        try:
            if isinstance(caller.scope, Scope):
                chat = ChatRequest(caller, request.argument, caller.scope, self._stored)
                return await command.handler(chat)
            if command.elsewhere:
                return await command.elsewhere(request)
        except (AccessRefusedError, RequestRejectedError) as error:
            return Free(texts(error.reason))
        except HindsightError as error:
            return texts(error.reason)
        except TimeoutError:
            return texts("timeout")
        except DISK_ERRORS:
            return texts("disk")
        return self._status.no_memory(caller.scope, texts)

    async def _unknown(self, caller: Caller, words: str) -> str:
        return self._guide.unknown(caller, words)

    async def _help(self, request: Request) -> str:
        if request.argument:
            return self._guide.about(request.caller, request.argument)
        return self._guide.overview(request.caller)

    async def _more(self, request: Request) -> str:
        return self._long.next(request.caller) or request.texts("more_nothing")
