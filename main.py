"""AstrBot in, AstrBot out: the plugin class with its hooks and its command.

No `from __future__ import annotations` here: AstrBot 4.24.1 reads the handlers' annotations as
they stand and would not recognise `GreedyStr`.
"""

import asyncio
import functools
import json
import re
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from weakref import WeakSet, WeakValueDictionary
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from astrbot.api import AstrBotConfig, logger
from astrbot.api.event import AstrMessageEvent, filter
from astrbot.api.message_components import File
from astrbot.api.provider import LLMResponse, ProviderRequest
from astrbot.api.star import Context, Star, StarTools
from astrbot.core.agent.message import TextPart
from astrbot.core.agent.run_context import ContextWrapper
from astrbot.core.agent.tool import FunctionTool
from astrbot.core.astr_agent_context import AstrAgentContext
from astrbot.core.config.default import VERSION as ASTRBOT_VERSION
from astrbot.core.message.message_event_result import MessageChain, MessageEventResult
from astrbot.core.star.filter.command import CommandFilter, GreedyStr
from astrbot.core.star.filter.command_group import CommandGroupFilter
from astrbot.core.star.session_plugin_manager import SessionPluginManager
from astrbot.core.star.star import star_map
from astrbot.core.star.star_handler import EventType, StarHandlerMetadata, star_handlers_registry

from .assembly import assemble
from .bot_names import BotNames
from .cleaning import BLOCK_OPEN, strip_block
from .clock import Clock
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
    said_at,
    withdrawn_id_of,
)
from .handover import Handover
from .hindsight_client import HindsightClient
from .hindsight_types import HindsightError
from .history import PastEvent, Place
from .intake import DISK_ERRORS
from .listening import Heard, Listening
from .model_tools import ToolName, ToolSpec
from .personas import Personas
from .scope import UNKNOWN_PERSON, Origin, Scope, Skip, is_listed
from .settings import load_settings
from .texts import Texts, choose_language, in_both
from .transcript import PLUGIN, Message, Speaker
from .turn import Turn, answer_in

TURN_EXTRA = f"{PLUGIN}_turn"
HEARD_EXTRA = f"{PLUGIN}_heard_at"
PERSONA_EXTRA = f"{PLUGIN}_persona"
COMMAND = "hindsight"
WORK_SECONDS = 3.0
"""So long an ending instance waits for commands and tools."""
BETWEEN_SECONDS = 1.0
"""And for turns of which it is not yet known where their answers will stand; a few ms, mostly."""
FLUSH_SECONDS = 1.5
SUCCESSOR_SECONDS = 3.0
HOOK_SUCCESSOR_SECONDS = 0.5
"""A reply goes on without memory rather than wait longer for a reload."""
BRIDGE = f"{PLUGIN}_bridge"
BRIDGE_SECONDS = 10.0
"""So long a closed instance looks after the turns of a moment in which AstrBot has no other."""
TAKES_FILES = frozenset({"aiocqhttp", "discord", "lark", "slack", "telegram", "webchat", "wecom"})
"""Platforms whose adapters send files in every version of AstrBot that is supported."""
NEW_TALK_EXTRAS = ("_clean_group_context_session", "_clean_ltm_session")
"""What AstrBot leaves on the event of `/new` and `/reset`; the second is the name before 4.25.2."""
HISTORY_SECONDS = 20.0
"""So long one page of a chat's past may take."""
HOOK_PRIORITY = -100
"""Last of all plugins, so that others' changes to the message are seen, and ours stay last."""

HEAR_PRIORITY = 1000
"""Before plugins that answer and end the event: what was said was said all the same."""
LOG_EVERY = 100
"""Messages that could not be heard between two lines in the log."""
WITHDRAW_TRIES = 600
WITHDRAW_PAUSE_SECONDS = 1.0
"""Between two tries while the disk fails."""

ToolRun = Callable[[AstrMessageEvent, ToolName, str], Awaitable[str]]


class MemoryTool(FunctionTool[AstrAgentContext]):
    """A tool with one text argument that works in the chat of the event, and nowhere else."""

    def __init__(self, spec: ToolSpec, run: ToolRun) -> None:
        argument = {"type": "string", "description": spec.description}
        super().__init__(
            name=f"hindsight_{spec.name}",
            description=spec.description,
            parameters={
                "type": "object",
                "properties": {spec.argument: argument},
                "required": [spec.argument],
            },
        )
        self._spec = spec
        self._run = run

    async def call(self, context: ContextWrapper[AstrAgentContext], **arguments: Any) -> str:
        """Always returns a text: to AstrBot nothing would mean that the run is over."""
        text = str(arguments.get(self._spec.argument) or "")
        return await self._run(context.context.event, self._spec.name, text)


class TypedAsCommand(filter.CustomFilter):
    """Passes a command that was typed with a wake prefix, in any case.

    In private chats, after an @ and in replies AstrBot matches commands without any prefix, so
    that a sentence beginning with the command's name would be taken for one.
    """

    def filter(self, event: AstrMessageEvent, cfg: AstrBotConfig) -> bool:
        """Looks at the raw text, which still has the prefix.

        AstrBot, which looks next, knows the names in one case only, so the name is put into it.
        """
        for name in _command_names():
            typed = r"\s+".join(map(re.escape, name.split())) + r"(?!\S)"
            if (found := re.match(typed, event.message_str, re.IGNORECASE)) and _has_prefix(
                event, cfg, typed
            ):
                event.message_str = name + event.message_str[found.end() :]
                return True
        return False


class WokenInPrivateOrByName(filter.CustomFilter):
    """Passes messages that are meant for the bot, so that no other message is woken by us."""

    def filter(self, event: AstrMessageEvent, cfg: AstrBotConfig) -> bool:  # noqa: ARG002
        """Tells what AstrBot has found out already."""
        return bool(event.is_at_or_wake_command)


class TellsOfWithdrawal(filter.CustomFilter):
    """Passes what tells that a message was withdrawn."""

    def filter(self, event: AstrMessageEvent, cfg: AstrBotConfig) -> bool:  # noqa: ARG002
        """Looks only: what is to be done is done where session rules have been asked."""
        return bool(withdrawn_id_of(event))


class SaidWhereTheGroupListens(filter.CustomFilter):
    """Passes what is said in groups that listen, so that no other message meets our handler."""

    def filter(self, event: AstrMessageEvent, cfg: AstrBotConfig) -> bool:  # noqa: ARG002
        """Looks only, and never raises: AstrBot would tell the group."""
        star = star_map.get(__name__)
        plugin = star.star_cls if star else None
        try:
            return isinstance(plugin, HindsightMemory) and plugin.listens(event)
        except Exception:  # noqa: BLE001 - see above
            logger.debug("could not tell whether a group listens", exc_info=True)
            return False


class HindsightMemory(Star):
    """Long-term memory for each chat, kept in Hindsight."""

    def __init__(self, context: Context, config: AstrBotConfig | None = None) -> None:
        super().__init__(context)
        schema = json.loads(Path(__file__).with_name("_conf_schema.json").read_text("utf-8"))
        self._settings = load_settings(config or {}, schema)
        self._clock = Clock(_configured_timezone(context))
        self._parts = assemble(
            self._settings,
            StarTools.get_data_dir(PLUGIN),
            clock=self._clock,
            logger=logger,
            host=ASTRBOT_VERSION,
            running_bots=lambda: {bot.meta().id for bot in context.platform_manager.get_insts()},
        )
        self._state, self._memory = self._parts.state, self._parts.memory
        self._handover = Handover[HindsightMemory](self._running_instance, self._clock)
        self._bot_names = BotNames(self._clock)
        self._listening = Listening(self._memory, self._read_heard, self._clock)
        self._unheard = 0
        self._personas = Personas(context)
        self._tasks: set[asyncio.Task[None]] = set()
        self._turns: WeakSet[Turn] = WeakSet()
        self._working: WeakValueDictionary[str, Turn] = WeakValueDictionary()
        self._is_running = False

    async def initialize(self) -> None:
        """Starts the background work; needs no network and no provider."""
        for used in self._settings.replaced:
            logger.warning("setting %s is not usable as given, using %r", used.name, used.value)
        if self._state.fault or self._state.salt_lost:
            logger.error(Texts("en")(self._state.fault or "salt_lost"))
        if tools := [MemoryTool(spec, self.use_tool) for spec in self._parts.tools.specs]:
            self.context.add_llm_tools(*tools)
        await self._parts.delivery.start()
        for name, job in self._parts.jobs.items():
            self._parts.workers.start(name, job)
        self._parts.workers.start("listening", self._listening.run)
        if self._parts.client:
            self._start(_warm(self._parts.client))
        self._is_running = True

    async def terminate(self) -> None:
        """Ends what is under way, sends what can be sent at once, and closes everything.

        Until all is closed the hooks work as ever; a second call does nothing.
        """
        if self._handover.is_ending:
            return
        self._is_running, self._handover.is_ending = False, True
        await self._parts.work.finish(WORK_SECONDS)
        await self._handover.poll(
            lambda: not any(turn.is_between for turn in self._turns), BETWEEN_SECONDS
        )
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._parts.workers.aclose()
        await self._memory.aclose()
        try:
            async with asyncio.timeout(FLUSH_SECONDS):
                await self._listening.flush()
                await self._parts.delivery.flush()
        except TimeoutError:
            logger.info("stopping before everything was sent; the rest follows at the next start")
        self._handover.close()
        await self._listening.flush()
        await self._parts.delivery.aclose()
        await self._parts.people.aclose()
        if self._parts.client:
            await self._parts.client.aclose()
        self._bridge()

    # --- Hooks --------------------------------------------------------------------------------

    @filter.on_waiting_llm_request(priority=HOOK_PRIORITY, desc=in_both("about_waiting"))
    async def begin_recall(self, event: AstrMessageEvent) -> None:
        """Starts the recall before AstrBot prepares the request, which hides the round trip."""
        if successor := await self._successor(HOOK_SUCCESSOR_SECONDS):
            await successor.begin_recall(event)
        elif (
            event.get_extra(TURN_EXTRA) is None
            and self._passes_provider_prefix(event)
            and (turn := await self._new_turn(event))
        ):
            turn.recall = self._memory.start_recall(turn.message)

    @filter.on_llm_request(priority=HOOK_PRIORITY, desc=in_both("about_request"))
    async def inject(self, event: AstrMessageEvent, req: ProviderRequest) -> None:
        """Adds what was recalled to the request as a temporary part."""
        if successor := await self._successor(HOOK_SUCCESSOR_SECONDS):
            await successor.inject(event, req)
        elif turn := await self._asked_turn(event):
            self._start(self._ask_bot_name(event))
            self._working[event.unified_msg_origin] = turn
            recalled = await turn.recalled()
            block = recalled.block
            if recalled.with_private and await self._is_shared(event, turn.message):
                block, turn.is_private = recalled.with_private, True
            if block:
                req.extra_user_content_parts.append(TextPart(text=block).mark_as_temp())

    @filter.on_agent_begin(priority=HOOK_PRIORITY, desc=in_both("about_begin"))
    async def note_run(self, event: AstrMessageEvent, run_context: Any) -> None:
        """Notes where the answer will stand, for the moment of a reload that has no hooks."""
        if turn := _turn_of(event):
            turn.run = run_context

    @filter.custom_filter(WokenInPrivateOrByName)
    @filter.event_message_type(filter.EventMessageType.ALL, desc=in_both("about_follow_up"))
    async def note_follow_up(self, event: AstrMessageEvent) -> None:
        """Notes what is said to the bot while it works for the same person.

        AstrBot may hand such a message to the running agent, and then no hook is called for it.
        """
        turn = self._working.get(event.unified_msg_origin)
        scope = self._memory.admit(self._scope(event))
        if turn and event.message_str and isinstance(scope, Scope):
            message = self._message(event, scope, self._clock.local())
            is_theirs = message.speaker.pseudonym == turn.message.speaker.pseudonym
            if is_theirs and not message.private_to_speaker:
                turn.follow_ups.append(message)

    @filter.custom_filter(SaidWhereTheGroupListens)
    @filter.event_message_type(
        filter.EventMessageType.GROUP_MESSAGE,
        priority=HEAR_PRIORITY,
        desc=in_both("about_listening"),
    )
    async def listen(self, event: AstrMessageEvent) -> None:
        """Hears what is said in a group that listens; nobody waits for it, nothing is stopped."""
        try:
            plugin = self._handover.successor() or self
            await plugin.hear(event)
        except Exception:  # noqa: BLE001 - it would stop the event for other plugins
            self._log_unheard()

    @filter.custom_filter(TellsOfWithdrawal)
    @filter.event_message_type(filter.EventMessageType.ALL, desc=in_both("about_withdrawn"))
    async def note_withdrawn(self, event: AstrMessageEvent) -> None:
        """Forgets a message that was withdrawn; nobody is told, and no other plugin is stopped."""
        try:
            await self._forget_withdrawn(event)
        except Exception:  # noqa: BLE001 - it would stop the event for other plugins
            logger.error("a withdrawn message could not be forgotten", exc_info=True)

    @filter.after_message_sent(desc=in_both("about_new"))
    async def note_new_talk(self, event: AstrMessageEvent) -> None:
        """Has sent what was said before a new conversation, which knows nothing of it."""
        if self._is_running and any(map(event.get_extra, NEW_TALK_EXTRAS)):
            scope = self._scope(event)
            if isinstance(scope, Scope):
                self._memory.hurry(scope)

    @filter.on_agent_done(priority=HOOK_PRIORITY, desc=in_both("about_done"))
    async def remember(self, event: AstrMessageEvent, run_context: Any, resp: LLMResponse) -> None:
        """Puts the turn on disk, and cuts an echoed block; AstrBot sends the reply after this."""
        if successor := self._handover.successor():
            await successor.remember(event, run_context, resp)
            return
        if event.get_extra(TURN_EXTRA) is None:
            await self._new_turn(event)  # the hooks before fell into a reload
        turn = _turn_of(event)
        if turn and not turn.is_over:
            turn.is_over = True
            if resp.role == "assistant":
                _cut_echo(run_context.messages, resp)
                await self.take_answer(event, turn, run_context.messages, resp.completion_text)

    @filter.command(COMMAND)
    @filter.custom_filter(TypedAsCommand, desc=in_both("about_command"))
    async def hindsight(
        self, event: AstrMessageEvent, words: GreedyStr
    ) -> AsyncIterator[MessageEventResult]:
        """Answers the command, also where it stands alone; the model never sees it."""
        async for answer in self.answer(event, words):
            yield event.plain_result(answer)
        event.stop_event()

    # --- What the hooks do --------------------------------------------------------------------

    async def answer(self, event: AstrMessageEvent, words: str) -> AsyncIterator[str]:
        """What the command answers, see `Commands.answer`."""
        plugin = await self._at_work()
        if plugin is None:
            yield self._texts(event)("ended")
        elif plugin is not self:
            async for answer in plugin.answer(event, words):
                yield answer
        else:
            await self._note_persona(event)
            cleaned = await self._clean(event, words)
            scope = await self._parts.bindings.meet(self._scope(event))
            caller = replace(self._caller(event, scope), typed=words)
            async for answer in self._parts.commands.answer(caller, cleaned):
                yield answer

    async def use_tool(self, event: AstrMessageEvent, name: ToolName, text: str) -> str:
        """What a tool of the model answers, see `ModelTools`."""
        plugin = await self._at_work()
        if plugin is None:
            return self._texts(event)("ended")
        if plugin is not self:
            return await plugin.use_tool(event, name, text)
        await self._note_persona(event)
        text = await self._clean(event, text)
        caller = self._caller(event, await self._admitted(event))
        is_private = _is_private(_turn_of(event))
        return await self._parts.tools.answer(name, caller, text, is_private=is_private)

    async def _new_turn(self, event: AstrMessageEvent) -> Turn | None:
        """Decides whether an event has memory, and leaves the result on it."""
        # What has passed one of our handlers was admitted by the session's rules just now.
        passed = event.get_extra("activated_handlers") or ()
        is_passed = any(handler.handler_module_path == __name__ for handler in passed)
        await self._note_persona(event)
        scope = await self._admitted(event, is_passed=is_passed)
        if isinstance(scope, Skip):
            self._refuse(event, scope)
            return None
        await self._parts.people.meet(scope, ids_of(event))
        at = event.get_extra(HEARD_EXTRA) or self._clock.local()
        message = self._message(event, scope, at)
        message = replace(message, began=self._clock.monotonic())
        turn = Turn(await self._with_shared(event, message), self._state.switches)
        if self._parts.importer:
            past = ChatPast(self, event, scope)
            self._parts.importer.met(scope.chat, message.texts, past.say)
        event.set_extra(TURN_EXTRA, turn)
        self._turns.add(turn)
        if task := asyncio.current_task():  # the event's own, which ends when it has been answered
            task.add_done_callback(lambda _: self._event_over(event, turn))
        return turn

    async def _asked_turn(self, event: AstrMessageEvent) -> Turn | None:
        """The turn for which the model is asked now; None where it is to have no memory.

        It may have waited long for the turn before it, so what was decided then is decided anew.
        """
        if event.get_extra(TURN_EXTRA) is None:
            turn = await self._new_turn(event)
            if turn:  # without the waiting hook this is a runner that drops our part (Dify, …)
                self._memory.skip(Skip.FOREIGN_RUNNER, turn.message.scope)
        elif turn := _turn_of(event):
            await self._note_persona(event)
            admitted = await self._admitted(event)
            if isinstance(admitted, Skip):
                turn.drop_recall()
                self._refuse(event, admitted)
                return None
            # Another persona answers after all, or the chat was bound to another memory.
            is_elsewhere = admitted != turn.message.scope
            if is_elsewhere:
                turn.message = await self._read_again(event, turn, admitted)
            if turn.recall and (is_elsewhere or self._memory.is_outdated(turn.message)):
                turn.drop_recall()
                turn.recall = self._memory.start_recall(turn.message)
        if turn:
            turn.is_asked = True
        return turn

    def _refuse(self, event: AstrMessageEvent, reason: Skip) -> None:
        self._memory.skip(reason, self._scope(event))
        event.set_extra(TURN_EXTRA, reason)

    async def take_answer(
        self, event: AstrMessageEvent, turn: Turn, messages: list[Any], text: str | None
    ) -> None:
        """Puts a turn and its answer on disk, as far as they are to be remembered."""
        self._working.pop(event.unified_msg_origin, None)
        if event.is_stopped() or event.get_extra("agent_stop_requested"):
            return  # suppressed, or ended by `/stop`: the text is not an answer
        scope = await self._admitted(event)
        if isinstance(scope, Skip):
            return
        first = turn.message
        if turn.switches is not self._state.switches or scope != first.scope:
            first = await self._read_again(event, turn, scope)
        reader = self._reader(event, scope)
        if answer := reader.said(text or ""):
            told = _tool_results(messages)
            joined = [m for m in turn.follow_ups if m.raw and m.raw in told]
            joined = [replace(m, speaker=first.speaker) for m in joined]
            # The platform may have told the bot's name only after the question was read.
            first = replace(first, bot=reader.bot_speaker(self._bot_names.name(event)))
            kept = "" if _is_private(turn) else answer  # else it becomes everybody's
            await self._memory.remember([first, *joined], kept, self._clock.local())

    async def _read_again(self, event: AstrMessageEvent, turn: Turn, scope: Scope) -> Message:
        """A turn's message under what is switched, and bound, now."""
        await self._parts.people.meet(scope, ids_of(event))
        first, now = turn.message, self._message(event, scope, turn.message.at)
        is_private = first.private_to_speaker or now.private_to_speaker
        return replace(now, began=first.began, private_to_speaker=is_private)

    async def _with_shared(self, event: AstrMessageEvent, message: Message) -> Message:
        """A message with the private chat that its speaker lets be read here, if any."""
        sharing = self._parts.sharing
        if shared := sharing.of(message.scope, person_id_of(event)):
            sharing.note_name(message.scope, group_name_of(event))
            message = replace(message, shared=shared)
        return message if await self._is_shared(event, message) else replace(message, shared=None)

    async def _is_shared(self, event: AstrMessageEvent, message: Message) -> bool:
        """Whether the speaker's private chat may be read here now, also by its session's rules."""
        if message.shared is None:
            return False
        umo = self._parts.sharing.umo(message.shared, origin_of(event))
        if umo and not await SessionPluginManager.is_plugin_enabled_for_session(umo, PLUGIN):
            return False
        return self._memory.may_show_private(message)  # nothing can change from here on

    def listens(self, event: AstrMessageEvent) -> bool:
        """Whether the chat of an event is a group that listens."""
        if not self._state.is_listening or not event.get_group_id():
            return False
        scope = self._scope(event)
        return isinstance(scope, Scope) and self._state.listens(scope)

    async def hear(self, event: AstrMessageEvent) -> None:
        """Takes what was said in a group that listens."""
        scope = self._scope(event)
        if not isinstance(scope, Scope) or not self._state.listens(scope):
            return
        at = said_at(event, self._clock.local())
        event.set_extra(HEARD_EXTRA, at)  # should the bot answer uncalled, it is the same line
        self._listening.hear(event, scope, at, is_called=bool(event.is_at_or_wake_command))
        if self._handover.is_closed:
            await self._listening.flush()

    async def _read_heard(self, heard: Heard) -> Message | None:
        """Reads what was heard, unless it has become a turn; the others do not suffer by one."""
        if _turn_of(heard.event):
            return None
        try:
            await self._parts.people.meet(heard.scope, ids_of(heard.event))
            message = self._message(heard.event, heard.scope, heard.at)
        except Exception:  # noqa: BLE001 - whatever another plugin has made of the event
            self._log_unheard()
            return None
        return replace(message, began=heard.began)

    def _log_unheard(self) -> None:
        if self._unheard % LOG_EVERY == 0:
            logger.error("a message could not be heard", exc_info=True)
        self._unheard += 1

    async def _forget_withdrawn(self, event: AstrMessageEvent) -> None:
        """Has a message forgotten; where the disk fails, as soon as it does not.

        What the bot itself has said is known by no id.
        """
        if origin_of(event).sender_id == str(event.get_self_id() or ""):
            return
        for _ in range(WITHDRAW_TRIES):
            plugin = self._handover.successor() or self
            try:
                await plugin.withdraw(origin_of(event), withdrawn_id_of(event))
            except DISK_ERRORS:
                await self._clock.sleep(WITHDRAW_PAUSE_SECONDS)
            else:
                return
        logger.error("the disk did not take for long that a message was withdrawn")

    async def withdraw(self, origin: Origin, message_id: str) -> None:
        """Takes a message, and the answer to it, out of all memories of its chat.

        Raises:
            sqlite3.Error, OSError: The disk failed.
        """
        scope, hasher = self._parts.bindings.resolve(origin), self._state.hasher
        if hasher is None or isinstance(scope, Skip):
            return
        message = hasher.message(origin, message_id)
        for memory in self._parts.bindings.memories(scope):
            self._memory.forget_chat(memory)
            if self._parts.stored:
                await self._parts.stored.eraser.withdraw(memory, message)

    def _event_over(self, event: AstrMessageEvent, turn: Turn) -> None:
        """Takes the answer of a turn that ended while a reload left AstrBot without our hooks."""
        turn.is_event_over = True
        messages = turn.run.messages if turn.run else []
        text = answer_in(messages)
        if self._handover.is_closed and not turn.is_over and text:
            turn.is_over = True
            instance = self._handover.successor() or self
            self._start(instance.take_answer(event, turn, messages, text))

    # --- Handing over -------------------------------------------------------------------------

    def _running_instance(self) -> "HindsightMemory | None":
        metadata = self.context.get_registered_star(PLUGIN)
        star: Any = metadata.star_cls if metadata else None
        return star if star is not self and getattr(star, "_is_running", False) else None

    async def _successor(self, seconds: float) -> "HindsightMemory | None":
        """The instance that works in place of this one; None while this one is open."""
        return await self._handover.await_successor(seconds) if self._handover.is_closed else None

    async def _at_work(self) -> "HindsightMemory | None":
        """The instance for what may take long; None where a reload has left none."""
        if not self._handover.is_ending:
            return self
        return await self._handover.await_successor(SUCCESSOR_SECONDS)

    def _bridge(self) -> None:
        """Keeps the hooks while AstrBot reloads: it drops them before it has the next instance's.

        A turn of that moment is answered like any other, and would be seen by nobody.
        """
        if (metadata := star_map.get(__name__)) is None:
            return
        hooks = [
            replace(
                hook,
                handler_module_path=BRIDGE,
                handler_full_name=f"{BRIDGE}_{hook.handler_name}",
                handler=functools.partial(self._bridged, hook.handler_name),
            )
            for hook in star_handlers_registry.get_handlers_by_module_name(__name__)
            if hook.event_type is not EventType.AdapterMessageEvent
        ]
        star_map[BRIDGE] = metadata
        for hook in hooks:
            star_handlers_registry.append(hook)
        self._start(self._end_bridge(hooks))

    async def _bridged(self, name: str, event: AstrMessageEvent, *arguments: Any) -> None:
        """Calls a hook of this instance while none is registered, be it this or another one."""
        if getattr(star_map.get(__name__), "star_cls", None) is None:
            await getattr(self, name)(event, *arguments)

    async def _end_bridge(self, hooks: list[StarHandlerMetadata[Any]]) -> None:
        await self._handover.poll(lambda: self._running_instance() is not None, BRIDGE_SECONDS)
        for hook in hooks:
            star_handlers_registry.remove(hook)
        if not star_handlers_registry.get_handlers_by_module_name(BRIDGE):
            star_map.pop(BRIDGE, None)

    # --- Reading events -----------------------------------------------------------------------

    async def _note_persona(self, event: AstrMessageEvent) -> None:
        """Leaves on the event which persona answers it, where that makes a difference."""
        if self._settings.separate_personas:
            event.set_extra(PERSONA_EXTRA, await self._personas.in_force(event))

    async def _admitted(self, event: AstrMessageEvent, *, is_passed: bool = False) -> Scope | Skip:
        """The chat of an event, or why it has no memory now; AstrBot asks no rule for hooks."""
        scope = self._memory.admit(await self._parts.bindings.meet(self._scope(event)))
        umo = event.unified_msg_origin
        if isinstance(scope, Skip) or is_passed:
            return scope
        is_enabled = await SessionPluginManager.is_plugin_enabled_for_session(umo, PLUGIN)
        return scope if is_enabled else Skip.SESSION_RULE

    def _scope(self, event: AstrMessageEvent) -> Scope | Skip:
        origin = origin_of(event)
        privacy = self._settings.privacy
        if is_listed(origin, privacy.deny_chats):
            return Skip.DENIED
        if privacy.allow_chats and not is_listed(origin, privacy.allow_chats):
            return Skip.DENIED
        return self._parts.bindings.scope(origin, event.get_extra(PERSONA_EXTRA) or "")

    def _message(self, event: AstrMessageEvent, scope: Scope, at: datetime) -> Message:
        return replace(self._reader(event, scope).message(at), key=self._message_key(event))

    def _message_key(self, event: AstrMessageEvent) -> str:
        hasher = self._state.hasher
        return hasher.message(origin_of(event), message_id_of(event)) if hasher else ""

    def _reader(
        self, event: AstrMessageEvent, scope: Scope, past: PastEvent | None = None
    ) -> EventReader:
        """Reads an event, or a past message of its chat in the same way."""
        return EventReader(
            past or event,
            scope,
            self._parts.people.roster(scope),
            self._texts(event),
            bot_name=self._bot_names.name(event),
            wake_prefix=self._provider_prefix(event),
            privacy=self._settings.privacy,
            opted_out=lambda person_id: self._state.is_opted_out(scope, person_id),
            # Its answers in such a group are not stored, and so they are not by this way either.
            quotes_bot=not self._parts.sharing.is_shared_in(scope),
        )

    def _caller(self, event: AstrMessageEvent, scope: Scope | Skip) -> Caller:
        texts = self._texts(event)
        speaker = Speaker(texts("name_user"), UNKNOWN_PERSON)
        past = None
        if isinstance(scope, Scope):
            past = ChatPast(self, event, scope)
            speaker = self._reader(event, scope).message(self._clock.local()).speaker
        return Caller(
            scope=scope,
            texts=texts,
            now=self._clock.local(),
            speaker=speaker,
            person_id=person_id_of(event),
            is_manager=is_manager(event),
            is_admin=event.is_admin(),
            send_file=_file_sender(event),
            past=past,
            place=origin_of(event),
            chat_name=group_name_of(event),
            message=self._message_key(event),
            has_own_session=has_own_session(event),
        )

    async def read_past(
        self, event: AstrMessageEvent, scope: Scope, past: PastEvent
    ) -> EventReader:
        """Reads a past message of an event's chat like one that comes now."""
        await self._ask_bot_name(event)
        await self._parts.people.meet(scope, ids_of(past))
        return self._reader(event, scope, past)

    def place(self, event: AstrMessageEvent, scope: Scope) -> Place:
        """The chat of an event, for reading its past."""
        config = self._host_config(event)
        own = config["platform_settings"].get("friend_message_needs_wake_prefix")
        return Place(
            platform=str(event.get_platform_name()),
            instance=str(event.get_platform_id()),
            kind=scope.kind,
            umo=str(event.unified_msg_origin),
            session_id=str(event.session_id),
            group_id=str(event.get_group_id() or ""),
            self_id=str(event.get_self_id() or ""),
            person_id=str(event.get_sender_id() or ""),
            person_name=str(event.get_sender_name() or ""),
            wake_prefixes=tuple(str(one) for one in config["wake_prefix"] if one),
            needs_prefix=bool(own) and event.get_platform_name() != "webchat",
            commands=frozenset(_all_command_names()),
        )

    def _texts(self, event: AstrMessageEvent) -> Texts:
        language = choose_language(self._settings.language, locale_of(event))
        name = next(_command_names(), COMMAND)
        return Texts(language, command=_wake_prefix(event, self._host_config(event)) + name)

    async def _clean(self, event: AstrMessageEvent, text: str) -> str:
        scope = self._scope(event)
        if not isinstance(scope, Scope):
            return text
        await self._parts.people.meet(scope, ids_of(event))
        return self._reader(event, scope).clean(text)

    def _host_config(self, event: AstrMessageEvent) -> Any:
        return self.context.get_config(umo=event.unified_msg_origin)

    def _passes_provider_prefix(self, event: AstrMessageEvent) -> bool:
        """Whether the model will be asked; AstrBot 4.29 looks only after the waiting hook."""
        has_prefix = event.message_str.startswith(self._provider_prefix(event))
        return has_prefix or event.get_extra("provider_request") is not None

    def _provider_prefix(self, event: AstrMessageEvent) -> str:
        """What a message must begin with for the model to be asked; mostly empty."""
        return str(self._host_config(event)["provider_settings"].get("wake_prefix") or "")

    # --- In the background --------------------------------------------------------------------

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs something in the background until `terminate`."""
        task = asyncio.create_task(work)
        task.add_done_callback(_log_failure)
        task.add_done_callback(self._tasks.discard)
        self._tasks.add(task)

    async def _ask_bot_name(self, event: AstrMessageEvent) -> None:
        try:
            await self._bot_names.ask(event)
        except Exception:  # noqa: BLE001 - whatever a platform's client raises; only a name
            logger.debug("the platform did not tell the bot's name", exc_info=True)


class ChatPast:
    """What AstrBot and the platform tell of what was said in an event's chat before.

    Args:
        plugin: The plugin.
        event: The event.
        scope: Its chat.
    """

    def __init__(self, plugin: HindsightMemory, event: AstrMessageEvent, scope: Scope) -> None:
        self._plugin = plugin
        self._event = event
        self._scope = scope

    @property
    def host(self) -> "ChatPast":
        """Who tells."""
        return self

    @property
    def place(self) -> Place:
        """The chat."""
        return self._plugin.place(self._event, self._scope)

    async def reader(self, event: PastEvent) -> EventReader:
        """Reads a past message as a live one would be read."""
        return await self._plugin.read_past(self._event, self._scope, event)

    async def say(self, text: str) -> None:
        """Says something in the chat, later; not every platform lets a bot begin."""
        chain = MessageChain().message(text)
        await self._told(self._plugin.context.send_message(self._event.unified_msg_origin, chain))

    async def onebot(self, action: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """An answer of a OneBot platform."""
        bot: Any = getattr(self._event, "bot", None)
        return await self._told(bot.call_action(action, **params)) if bot else None

    async def rows(self, platform_id: str, user_id: str, page: int) -> Sequence[Any] | None:
        """A page of AstrBot's message history."""
        manager = self._plugin.context.message_history_manager
        return await self._told(manager.get(platform_id, user_id, page=page))

    async def conversations(self, umo: str) -> Sequence[Any] | None:
        """The chat's conversations with the model."""
        manager = self._plugin.context.conversation_manager
        return await self._told(manager.get_conversations(umo))

    async def _told(self, answer: Awaitable[Any]) -> Any:
        try:
            async with asyncio.timeout(HISTORY_SECONDS):
                return await answer
        except Exception:  # noqa: BLE001 - whatever the platform's client or the database raises
            logger.debug("AstrBot or the platform did not answer", exc_info=True)
            return None


async def _warm(client: HindsightClient) -> None:
    """Opens the connection before the first message needs it, and says what is wrong."""
    try:
        await client.check()
    except HindsightError as error:
        logger.warning("Hindsight: %s", Texts("en")(error.reason))


def _configured_timezone(context: Context) -> ZoneInfo | None:
    config: Any = context.get_config()
    name = config.get("timezone")
    try:
        return ZoneInfo(name) if isinstance(name, str) and name else None
    except (ZoneInfoNotFoundError, ValueError):
        return None


def _command_names() -> Iterator[str]:
    """What the command is called at present, its main name first: operators can rename it."""
    handler = star_handlers_registry.get_handler_by_full_name(f"{__name__}_{COMMAND}")
    for one in handler.event_filters if handler else ():
        if isinstance(one, CommandFilter):
            yield from one.get_complete_command_names()


def _all_command_names() -> Iterator[str]:
    """What the commands of all plugins are called at present, without a prefix."""
    for handler in star_handlers_registry:
        for one in handler.event_filters:
            if isinstance(one, CommandFilter | CommandGroupFilter):
                yield from (
                    " ".join(name.split()).lower() for name in one.get_complete_command_names()
                )


def _wake_prefix(event: AstrMessageEvent, cfg: Any) -> str:
    """What is typed before the command's name."""
    if event.get_platform_name() == "discord":
        return "/"
    return next((str(prefix) for prefix in cfg["wake_prefix"] if prefix), "")


def _has_prefix(event: AstrMessageEvent, cfg: Any, typed: str) -> bool:
    """Whether a command (a pattern) stands behind a wake prefix in the raw text."""
    if event.get_platform_name() == "discord":  # its slash commands come without the slash
        return True
    prefixes = [re.escape(prefix) for prefix in cfg["wake_prefix"] if prefix]
    pattern = rf"\s*(?:{'|'.join(prefixes)})\s*{typed}"
    raw = event.message_obj.message_str or ""
    return not prefixes or re.match(pattern, raw, re.IGNORECASE) is not None


def _file_sender(event: AstrMessageEvent) -> FileSender | None:
    """Sends a file to the chat of an event; None where its platform takes none."""
    if event.get_platform_name() not in TAKES_FILES:
        return None

    async def send(path: Path) -> bool:
        try:
            await event.send(MessageChain([File(name=path.name, file=str(path))]))
        except Exception:  # noqa: BLE001 - whatever a platform's client raises; the text tells
            logger.warning("the platform did not take a file", exc_info=True)
            return False
        return True

    return send


def _turn_of(event: AstrMessageEvent) -> Turn | None:
    """The turn that an earlier hook left on the event.

    It is not told by its class: after a reload in the middle of a turn that is another one, and
    the turn must not be lost for it.
    """
    turn = event.get_extra(TURN_EXTRA)
    return turn if hasattr(turn, "is_asked") else None


def _is_private(turn: Turn | None) -> bool:
    """Whether the model knows something of a private chat; a turn of an older class cannot tell."""
    return bool(getattr(turn, "is_private", False))


def _cut_echo(messages: list[Any], resp: LLMResponse) -> None:
    """Cuts a memory block that the model repeated out of the reply and of AstrBot's history.

    The history has been appended before the hooks run; text that was streamed has already left.
    """
    if BLOCK_OPEN not in (resp.completion_text or ""):
        return
    resp.completion_text = strip_block(resp.completion_text)
    for part in messages[-1].content or () if messages else ():
        if isinstance(part, TextPart):
            part.text = strip_block(part.text)


def _tool_results(messages: list[Any]) -> str:
    """The text of a run's tool results, in which AstrBot quotes the follow-ups it took in."""
    return "\n".join(str(message.content) for message in messages if message.role == "tool")


def _log_failure(task: asyncio.Task[None]) -> None:
    """Logs an error that ended a background task, with its traceback."""
    if not task.cancelled() and (error := task.exception()):
        logger.error("background task failed", exc_info=error)
