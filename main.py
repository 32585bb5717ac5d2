"""AstrBot in, AstrBot out: the plugin class with its hooks and its command.

No `from __future__ import annotations` here: AstrBot 4.24.1 reads the handlers' annotations as
they stand and would not recognise `GreedyStr`.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from dataclasses import replace
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
from astrbot.core.star.star_handler import EventType, star_handlers_registry

from .assembly import assemble
from .bridge import Bridge
from .clock import Clock
from .command_names import as_command, needed_prefixes
from .command_types import FileSender
from .events import origin_of, said_at, withdrawn_id_of
from .handover import Handover
from .hindsight_client import HindsightClient
from .hindsight_types import HindsightError
from .listening import Heard, Listening
from .model_tools import ToolName, ToolSpec
from .reception import Porter, Reception
from .scope import Origin, Scope, Skip
from .settings import load_settings
from .texts import Texts, in_both
from .transcript import PLUGIN, Message
from .turn import TURN_EXTRA, Turn, answer_in, cut_echo, is_private, tool_results, turn_of
from .withdrawals import until_taken

HEARD_EXTRA = f"{PLUGIN}_heard_at"
COMMAND = "hindsight"
WORK_SECONDS = 3.0
"""So long an ending instance waits for commands and tools."""
BETWEEN_SECONDS = 1.0
"""And for turns of which it is not yet known where their answers will stand; a few ms, mostly."""
FLUSH_SECONDS = 1.5
SUCCESSOR_SECONDS = 3.0
HOOK_SUCCESSOR_SECONDS = 0.5
"""A reply goes on without memory rather than wait longer for a reload."""
BRIDGE_SECONDS = 10.0
"""So long a closed instance looks after the turns of a moment in which AstrBot has no other."""
TAKES_FILES = frozenset({"aiocqhttp", "discord", "lark", "slack", "telegram", "webchat", "wecom"})
"""Platforms whose adapters send files in every version of AstrBot that is supported."""
NEW_TALK_EXTRAS = ("_clean_group_context_session", "_clean_ltm_session")
"""What AstrBot leaves on the event of `/new` and `/reset`; the second is the name before 4.25.2."""
HOOK_PRIORITY = -100
"""Last of all plugins, so that others' changes to the message are seen, and ours stay last."""

HEAR_PRIORITY = 1000
"""Before plugins that answer and end the event: what was said was said all the same."""
LOG_EVERY = 100
"""Messages that could not be heard between two lines in the log."""


class TypedAsCommand(filter.CustomFilter):
    """Passes a command that was typed with a wake prefix, in any case.

    In private chats, after an @ and in replies AstrBot matches commands without any prefix, so
    that a sentence beginning with the command's name would be taken for one.
    """

    def filter(self, event: AstrMessageEvent, cfg: AstrBotConfig) -> bool:
        """Looks at the raw text, which still has the prefix.

        AstrBot, which looks next, knows the names in one case only, so the name is put into it.
        """
        raw = getattr(event.message_obj, "message_str", None) or ""
        prefixes = needed_prefixes(event.get_platform_name(), cfg["wake_prefix"])
        text = as_command(event.message_str, raw, _command_names(), prefixes)
        if text is not None:
            event.message_str = text
        return text is not None


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
        self._reception = Reception(
            context, self._settings, self._parts, _porter(context), self._clock, logger
        )
        self._handover = Handover[HindsightMemory](self._running_instance, self._clock)
        self._listening = Listening(self._memory, self._read_heard, self._clock)
        self._unheard = 0
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
        self._open_bridge()

    # --- Hooks --------------------------------------------------------------------------------

    @filter.on_waiting_llm_request(priority=HOOK_PRIORITY, desc=in_both("about_waiting"))
    async def begin_recall(self, event: AstrMessageEvent) -> None:
        """Starts the recall before AstrBot prepares the request, which hides the round trip."""
        if successor := await self._successor(HOOK_SUCCESSOR_SECONDS):
            await successor.begin_recall(event)
        elif (
            event.get_extra(TURN_EXTRA) is None
            and self._reception.asks_model(event)
            and (turn := await self._new_turn(event))
        ):
            turn.recall = self._memory.start_recall(turn.message)

    @filter.on_llm_request(priority=HOOK_PRIORITY, desc=in_both("about_request"))
    async def inject(self, event: AstrMessageEvent, req: ProviderRequest) -> None:
        """Adds what was recalled to the request as a temporary part."""
        if successor := await self._successor(HOOK_SUCCESSOR_SECONDS):
            await successor.inject(event, req)
        elif turn := await self._asked_turn(event):
            self._start(self._reception.ask_bot_name(event))
            self._working[event.unified_msg_origin] = turn
            recalled = await turn.recalled()
            block = recalled.block
            if recalled.with_private and await self._reception.is_shared(event, turn.message):
                block, turn.is_private = recalled.with_private, True
            if block:
                req.extra_user_content_parts.append(TextPart(text=block).mark_as_temp())

    @filter.on_agent_begin(priority=HOOK_PRIORITY, desc=in_both("about_begin"))
    async def note_run(self, event: AstrMessageEvent, run_context: Any) -> None:
        """Notes where the answer will stand, for the moment of a reload that has no hooks."""
        if turn := turn_of(event):
            turn.run = run_context

    @filter.custom_filter(WokenInPrivateOrByName)
    @filter.event_message_type(filter.EventMessageType.ALL, desc=in_both("about_follow_up"))
    async def note_follow_up(self, event: AstrMessageEvent) -> None:
        """Notes what is said to the bot while it works for the same person.

        AstrBot may hand such a message to the running agent, and then no hook is called for it.
        """
        turn = self._working.get(event.unified_msg_origin)
        scope = self._memory.admit(self._reception.scope(event))
        if turn and event.message_str and isinstance(scope, Scope):
            message = self._reception.message(event, scope, self._clock.local())
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
            scope = self._reception.scope(event)
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
        turn = turn_of(event)
        if turn and not turn.is_over:
            turn.is_over = True
            if resp.role == "assistant":
                cut_echo(run_context.messages, resp)
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

    # --- Commands and tools -------------------------------------------------------------------

    async def answer(self, event: AstrMessageEvent, words: str) -> AsyncIterator[str]:
        """What the command answers, see `Commands.answer`."""
        plugin = await self._at_work()
        if plugin is None:
            yield self._reception.texts(event)("ended")
        elif plugin is not self:
            async for answer in plugin.answer(event, words):
                yield answer
        else:
            await self._reception.note_persona(event)
            cleaned = await self._reception.clean(event, words)
            scope = await self._reception.meet(event)
            caller = replace(self._reception.caller(event, scope), typed=words)
            async for answer in self._parts.commands.answer(caller, cleaned):
                yield answer

    async def use_tool(self, event: AstrMessageEvent, name: ToolName, text: str) -> str:
        """What a tool of the model answers, see `ModelTools`."""
        plugin = await self._at_work()
        if plugin is None:
            return self._reception.texts(event)("ended")
        if plugin is not self:
            return await plugin.use_tool(event, name, text)
        await self._reception.note_persona(event)
        text = await self._reception.clean(event, text)
        caller = self._reception.caller(event, await self._reception.admitted(event))
        turn = turn_of(event)
        if turn:
            caller = replace(caller, began=turn.message.began)
        knows_private = is_private(turn)
        return await self._parts.tools.answer(name, caller, text, is_private=knows_private)

    # --- Turns --------------------------------------------------------------------------------

    async def _new_turn(self, event: AstrMessageEvent) -> Turn | None:
        """Decides whether an event has memory, and leaves the result on it."""
        # What has passed one of our handlers was admitted by the session's rules just now.
        passed = event.get_extra("activated_handlers") or ()
        is_passed = any(handler.handler_module_path == __name__ for handler in passed)
        await self._reception.note_persona(event)
        scope = await self._reception.admitted(event, is_passed=is_passed)
        if isinstance(scope, Skip):
            self._refuse(event, scope)
            return None
        await self._reception.meet_people(event, scope)
        at = event.get_extra(HEARD_EXTRA) or self._clock.local()
        message = self._reception.message(event, scope, at)
        message = replace(message, began=self._clock.monotonic())
        turn = Turn(await self._reception.with_shared(event, message), self._state.switches)
        if self._parts.importer:
            past = self._reception.past(event, scope)
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
        elif turn := turn_of(event):
            await self._reception.note_persona(event)
            admitted = await self._reception.admitted(event)
            if isinstance(admitted, Skip):
                turn.drop_recall()
                self._refuse(event, admitted)
                return None
            # Another persona answers after all, or the chat was bound to another memory.
            is_elsewhere = admitted != turn.message.scope
            if is_elsewhere:
                turn.message = await self._reception.message_again(event, turn, admitted)
            if turn.recall and (is_elsewhere or self._memory.is_outdated(turn.message)):
                turn.drop_recall()
                turn.recall = self._memory.start_recall(turn.message)
        if turn:
            turn.is_asked = True
        return turn

    def _refuse(self, event: AstrMessageEvent, reason: Skip) -> None:
        self._memory.skip(reason, self._reception.scope(event))
        event.set_extra(TURN_EXTRA, reason)

    async def take_answer(
        self, event: AstrMessageEvent, turn: Turn, messages: list[Any], text: str | None
    ) -> None:
        """Puts a turn and its answer on disk, as far as they are to be remembered."""
        self._working.pop(event.unified_msg_origin, None)
        if event.is_stopped() or event.get_extra("agent_stop_requested"):
            return  # suppressed, or ended by `/stop`: the text is not an answer
        scope = await self._reception.admitted(event)
        if isinstance(scope, Skip):
            return
        first = turn.message
        if turn.switches is not self._state.switches or scope != first.scope:
            first = await self._reception.message_again(event, turn, scope)
        reader = self._reception.reader(event, scope)
        if answer := reader.said(text or ""):
            told = tool_results(messages)
            joined = [m for m in turn.follow_ups if m.raw and m.raw in told]
            joined = [replace(m, speaker=first.speaker) for m in joined]
            # The platform may have told the bot's name only after the question was read.
            first = replace(first, bot=reader.bot_speaker(self._reception.bot_name(event)))
            kept = "" if is_private(turn) else answer  # else it becomes everybody's
            await self._memory.remember([first, *joined], kept, self._clock.local())

    def _event_over(self, event: AstrMessageEvent, turn: Turn) -> None:
        """Takes the answer of a turn that ended while a reload left AstrBot without our hooks."""
        turn.is_event_over = True
        messages = turn.run.messages if turn.run else []
        text = answer_in(messages)
        if self._handover.is_closed and not turn.is_over and text:
            turn.is_over = True
            instance = self._handover.successor() or self
            self._start(instance.take_answer(event, turn, messages, text))

    # --- What is heard, and what is withdrawn --------------------------------------------------

    def listens(self, event: AstrMessageEvent) -> bool:
        """Whether the chat of an event is a group that listens."""
        if not self._state.is_listening or not event.get_group_id():
            return False
        scope = self._reception.scope(event)
        return isinstance(scope, Scope) and self._state.listens(scope)

    async def hear(self, event: AstrMessageEvent) -> None:
        """Takes what was said in a group that listens."""
        scope = self._reception.scope(event)
        if not isinstance(scope, Scope) or not self._state.listens(scope):
            return
        at = said_at(event, self._clock.local())
        event.set_extra(HEARD_EXTRA, at)  # should the bot answer uncalled, it is the same line
        self._listening.hear(event, scope, at, is_called=bool(event.is_at_or_wake_command))
        if self._handover.is_closed:
            await self._listening.flush()

    async def _read_heard(self, heard: Heard) -> Message | None:
        """Reads what was heard, unless it has become a turn; the others do not suffer by one."""
        if turn_of(heard.event):
            return None
        try:
            await self._reception.meet_people(heard.event, heard.scope)
            message = self._reception.message(heard.event, heard.scope, heard.at)
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
        origin, message_id = origin_of(event), withdrawn_id_of(event)
        if origin.sender_id == str(event.get_self_id() or ""):
            return

        def take() -> Awaitable[None]:
            return (self._handover.successor() or self).withdraw(origin, message_id)

        if not await until_taken(take, self._clock):
            logger.error("the disk did not take for long that a message was withdrawn")

    async def withdraw(self, origin: Origin, message_id: str) -> None:
        """Takes a message out of all memories of its chat, see `Withdrawals`."""
        await self._parts.withdrawals.withdraw(origin, message_id)

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

    def _open_bridge(self) -> None:
        """Keeps the hooks until the next instance has its own."""
        bridge = Bridge(self, __name__, star_map, star_handlers_registry)
        handlers = star_handlers_registry.get_handlers_by_module_name(__name__)
        hooks = [one for one in handlers if one.event_type is not EventType.AdapterMessageEvent]
        if bridge.open(hooks):
            self._start(self._end_bridge(bridge))

    async def _end_bridge(self, bridge: Bridge) -> None:
        await self._handover.poll(lambda: self._running_instance() is not None, BRIDGE_SECONDS)
        bridge.close()

    # --- In the background --------------------------------------------------------------------

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs something in the background until `terminate`."""
        task = asyncio.create_task(work)
        task.add_done_callback(_log_failure)
        task.add_done_callback(self._tasks.discard)
        self._tasks.add(task)


async def _warm(client: HindsightClient) -> None:
    """Opens the connection before the first message needs it, and says what is wrong."""
    try:
        await client.check()
    except HindsightError as error:
        logger.warning("Hindsight: %s", Texts("en")(error.reason))


def _porter(context: Context) -> Porter:
    """What only AstrBot's own classes can tell or do."""
    return Porter(
        is_enabled=lambda umo: SessionPluginManager.is_plugin_enabled_for_session(umo, PLUGIN),
        command_names=lambda: [*_command_names(), COMMAND],
        all_command_names=_all_command_names,
        file_sender=_file_sender,
        say=lambda umo, text: context.send_message(umo, MessageChain().message(text)),
    )


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


def _log_failure(task: asyncio.Task[None]) -> None:
    """Logs an error that ended a background task, with its traceback."""
    if not task.cancelled() and (error := task.exception()):
        logger.error("background task failed", exc_info=error)
