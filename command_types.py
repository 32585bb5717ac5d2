"""What a command is: who asks, where, for what, and what answers it.

Each module with commands offers a class whose `commands` are its rows of the table; `assembly`
puts the rows together.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

from .archive import Archive
from .erasure import Eraser
from .hindsight_client import HindsightClient
from .importing import Past
from .scope import Origin, Scope, Skip
from .texts import Texts
from .transcript import Speaker

NOWHERE = Origin("", "other", "", "", "")

PersonKey = tuple[str, str]
"""A person in a chat: the chat's hash and the person's pseudonym; never leaves the memory."""

Rights = Literal["all", "managers", "trusted", "admins", "private"]
"""Who may use a command: everybody; in a group those who may decide for it, whom a setting makes
everybody; the bot's admins and in a group those who may decide for it; the bot's admins alone; or
those in a group and everybody in a private chat."""

Needs = Literal["nothing", "stored", "memory"]
"""What a command needs: nothing, what is stored (also while the memory is off), or a memory that
is switched on."""


Section = Literal["seeing", "mine", "managing"]
"""Where a command stands in the help."""

FileSender = Callable[[Path], Awaitable[bool]]
"""Sends a file to where the command was typed; tells whether the platform took it."""


class Free(str):
    """An answer that cost nothing, so that it is no use of a limited command."""

    __slots__ = ()


class Whole(str):
    """An answer that is made to be copied, not to be read, and is not cut therefore."""

    __slots__ = ()


@dataclass(frozen=True)
class Stored:
    """What is there with a server and a salt only.

    Attributes:
        client: Hindsight.
        archive: What is stored.
        eraser: What must vanish.
    """

    client: HindsightClient
    archive: Archive
    eraser: Eraser


@dataclass(frozen=True)
class Caller:
    """Who uses a command, and where.

    Attributes:
        scope: The chat, or why it has no memory.
        texts: The wording in the caller's language.
        now: Aware, in the local timezone.
        speaker: The caller by name and pseudonym.
        person_id: The platform's id, for the opt-out alone; empty where it is nobody's own.
        is_manager: May change what concerns everybody in this chat.
        is_admin: Is an admin of the bot.
        send_file: Sends a file here; None where the platform takes none.
        past: What was said in the chat before, if AstrBot can tell.
        place: Where, in the platform's own ids; for what they have been before.
        typed: The whole command as it was typed, ids and all.
        chat_name: What the group is called, where the platform tells.
        message: The keyed hash of the message that it was typed in, see `Message.key`.
        began: When that message came, in monotonic seconds, where a model uses a tool for it.
        has_own_session: AstrBot gives each member of this group a session, and so a memory.
    """

    scope: Scope | Skip
    texts: Texts
    now: datetime
    speaker: Speaker
    person_id: str = field(repr=False)
    is_manager: bool
    is_admin: bool
    send_file: FileSender | None = field(default=None, repr=False, compare=False)
    past: Past | None = field(default=None, repr=False)
    place: Origin = NOWHERE
    typed: str = field(default="", repr=False)
    chat_name: str = ""
    message: str = ""
    began: float = math.inf
    has_own_session: bool = False

    @property
    def key(self) -> PersonKey:
        """The person in this chat."""
        if isinstance(self.scope, Scope):
            return self.scope.room, self.speaker.pseudonym
        return self.scope, self.person_id


@dataclass(frozen=True)
class Request:
    """A command that was typed.

    Attributes:
        caller: Who typed it.
        argument: What was typed behind it.
    """

    caller: Caller
    argument: str

    @property
    def texts(self) -> Texts:
        """The wording in the caller's language."""
        return self.caller.texts


@dataclass(frozen=True)
class ChatRequest(Request):
    """A command in a chat that can have a memory.

    Attributes:
        scope: The chat.
        reached: What is stored, None without a server.
    """

    scope: Scope
    reached: Stored | None

    @property
    def stored(self) -> Stored:
        """What is stored, for commands that need it."""
        assert self.reached is not None, "the command does not say that it needs what is stored"
        return self.reached


Handler = Callable[[ChatRequest], Awaitable[str]]


@dataclass(frozen=True)
class Command:
    """One sub-command.

    Attributes:
        name: What is typed after `/hindsight`; `help_<name>` is its line in the help.
        alias: The Chinese name.
        handler: Answers it.
        elsewhere: Answers it where there is no chat to speak of; None gives the reason instead.
        has_argument: `arg_<name>` describes what follows, `example_<name>` is an example.
        rights: Who may use it in a group.
        needs: What must be there.
        is_limited: So often a minute and person.
        is_personal: Concerns the lines of the caller, who must be somebody.
        is_verbatim: The argument is taken as it was typed: it may be an id.
        working: What is said where it takes longer.
        section: Where it stands in the help, where its rights do not tell.
        reads_argument: Looks at what is typed behind it though nothing belongs there.
    """

    name: str
    alias: str
    handler: Handler
    elsewhere: Callable[[Request], Awaitable[str]] | None = None
    has_argument: bool = False
    rights: Rights = "all"
    needs: Needs = "nothing"
    is_limited: bool = False
    is_personal: bool = False
    is_verbatim: bool = False
    working: str = "working"
    section: Section | None = None
    reads_argument: bool = False

    @property
    def shown_in(self) -> Section:
        """Where it stands in the help."""
        if self.section or self.rights == "all":
            return self.section or ("mine" if self.is_personal else "seeing")
        return "managing"

    @property
    def refuses_argument(self) -> bool:
        """Does nothing with a word behind it: whoever typed one may have meant something else."""
        reads = self.has_argument or self.reads_argument
        return not reads and self.shown_in != "seeing"


class CommandSet(Protocol):
    """A module's commands."""

    @property
    def commands(self) -> Sequence[Command]:
        """Rows of the table."""


def first_word(text: str) -> tuple[str, str]:
    """The first word of a text, and the rest."""
    words = [*text.split(maxsplit=1), "", ""]
    return words[0], words[1]
