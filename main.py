"""AstrBot in, AstrBot out: the plugin class with its hooks and its command.

No `from __future__ import annotations` here: AstrBot 4.24.1 reads the handlers' annotations as
they stand and would not recognise `GreedyStr`.
"""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import WeakSet, WeakValueDictionary
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from astrbot.api import AstrBotConfig, logger
from astrbot.api.event import AstrMessageEvent, filter
from astrbot.api.provider import LLMResponse, ProviderRequest
from astrbot.api.star import Context, Star, StarTools
from astrbot.core.agent.message import TextPart
from astrbot.core.agent.run_context import ContextWrapper
from astrbot.core.agent.tool import FunctionTool
from astrbot.core.astr_agent_context import AstrAgentContext
from astrbot.core.config.default import VERSION as ASTRBOT_VERSION
from astrbot.core.star.filter.command import GreedyStr
from astrbot.core.star.session_plugin_manager import SessionPluginManager

from .assembly import assemble
from .cleaning import BLOCK_OPEN, strip_block
from .clock import Clock
from .commands import Caller
from .events import BotNames, EventReader, ids_of, is_manager, locale_of, origin_of
from .hindsight_client import HindsightClient
from .hindsight_types import HindsightError
from .scope import UNKNOWN_PERSON, Scope, Skip, is_listed
from .settings import load_settings
from .texts import Texts, choose_language, in_both
from .transcript import PLUGIN, Message, Speaker

TURN_EXTRA = f"{PLUGIN}_turn"
COMMAND = "hindsight"
FLUSH_SECONDS = 1.5
DRAIN_SECONDS = 5.0
SUCCESSOR_SECONDS = 3.0
POLL_SECONDS = 0.05
HOOK_PRIORITY = -100
"""Last of all plugins, so that others' changes to the message are seen, and ours stay last."""


class Turn:
    """What the hooks of one event hand on to each other.

    Attributes:
        message: What was said.
        reader: The event's people, to clean the answer with.
        recall: The running recall, or None where nothing is recalled.
        asked: The model was really asked.
        is_over: The turn has gone to the outbox, or is not to go there.
        follow_ups: What the same person said while the bot was working.
    """

    def __init__(self, message: Message, reader: EventReader) -> None:
        self.message = message
        self.reader = reader
        self.recall: asyncio.Task[str] | None = None
        self.asked = False
        self.is_over = False
        self.follow_ups: list[Message] = []


ToolRun = Callable[[AstrMessageEvent, str], Awaitable[str]]


class MemoryTool(FunctionTool[AstrAgentContext]):
    """A tool with one text argument that works in the chat of the event, and nowhere else."""

    def __init__(self, *, name: str, description: str, argument: str, run: ToolRun) -> None:
        super().__init__(
            name=name,
            description=description,
            parameters={
                "type": "object",
                "properties": {argument: {"type": "string", "description": description}},
                "required": [argument],
            },
        )
        self._argument = argument
        self._run = run

    async def call(self, context: ContextWrapper[AstrAgentContext], **arguments: Any) -> str:
        """Always returns a text: to AstrBot nothing would mean that the run is over."""
        return await self._run(context.context.event, str(arguments.get(self._argument) or ""))


class TypedAsCommand(filter.CustomFilter):
    """Passes a command that was typed with a wake prefix.

    In private chats, after an @ and in replies AstrBot matches commands without any prefix, so
    that a sentence beginning with the command's name would be taken for one.
    """

    def filter(self, event: AstrMessageEvent, cfg: AstrBotConfig) -> bool:
        """Looks at the raw text, which still has the prefix."""
        if event.get_platform_name() == "discord":  # its slash commands come without the slash
            return True
        prefixes = [re.escape(prefix) for prefix in cfg["wake_prefix"] if prefix]
        raw = event.message_obj.message_str or ""
        typed = rf"\s*(?:{'|'.join(prefixes)})\s*{COMMAND}"
        return not prefixes or re.match(typed, raw) is not None


class WokenInPrivateOrByName(filter.CustomFilter):
    """Passes messages that are meant for the bot, so that no other message is woken by us."""

    def filter(self, event: AstrMessageEvent, cfg: AstrBotConfig) -> bool:  # noqa: ARG002
        """Tells what AstrBot has found out already."""
        return bool(event.is_at_or_wake_command)


class HindsightMemory(Star):
    """Long-term memory for each chat, kept in Hindsight."""

    def __init__(self, context: Context, config: AstrBotConfig | None = None) -> None:
        super().__init__(context)
        self._config = config or {}
        self._bot_names = BotNames()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_running = False
        self._is_closing = False
        self._closed = asyncio.Event()
        self._turns: WeakSet[Turn] = WeakSet()
        self._turn_over = asyncio.Event()
        self._working: WeakValueDictionary[str, Turn] = WeakValueDictionary()

    async def initialize(self) -> None:
        """Builds the parts and starts the background work; needs no network and no provider."""
        folder = StarTools.get_data_dir(PLUGIN)
        schema = json.loads(Path(__file__).with_name("_conf_schema.json").read_text("utf-8"))
        self._settings = load_settings(self._config, schema)
        for used in self._settings.replaced:
            logger.warning("setting %s is not usable as given, using %r", used.name, used.value)
        self._clock = Clock(self._configured_timezone())
        parts = assemble(
            self._settings, folder, clock=self._clock, logger=logger, host=ASTRBOT_VERSION
        )
        self._state, self._client, self._delivery = parts.state, parts.client, parts.delivery
        self._memory, self._commands, self._people = parts.memory, parts.commands, parts.people
        if self._state.fault or self._state.salt_lost:
            logger.error(Texts("en")(self._state.fault or "salt_lost"))
        self._add_tools()
        self._is_running = True
        await self._delivery.start()
        if parts.eraser:
            await parts.eraser.restore()
            self._start(parts.eraser.run())
        self._start(self._delivery.run())
        if self._client:
            self._start(self._warm(self._client))

    async def terminate(self) -> None:
        """Sends what can be sent at once, then closes everything; a second call does nothing."""
        if not self._is_running:
            return
        self._is_running, self._is_closing = False, True
        await self._drain()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._memory.aclose()
        try:
            async with asyncio.timeout(FLUSH_SECONDS):
                await self._delivery.flush()
        except TimeoutError:
            logger.info("stopping before everything was sent; the rest follows at the next start")
        self._closed.set()
        await self._delivery.aclose()
        await self._people.aclose()
        if self._client:
            await self._client.aclose()

    @filter.on_waiting_llm_request(priority=HOOK_PRIORITY, desc=in_both("about_waiting"))
    async def begin_recall(self, event: AstrMessageEvent) -> None:
        """Starts the recall before AstrBot prepares the request, which hides the round trip."""
        if not self._is_running:
            if successor := await self._successor():
                await successor.begin_recall(event)
            return
        if event.get_extra(TURN_EXTRA) is None and self._passes_provider_prefix(event):
            turn = await self._turn(event)
            if turn:
                turn.recall = self._memory.start_recall(turn.message)

    @filter.on_llm_request(priority=HOOK_PRIORITY, desc=in_both("about_request"))
    async def inject(self, event: AstrMessageEvent, req: ProviderRequest) -> None:
        """Adds what was recalled to the request as a temporary part."""
        is_foreign = event.get_extra(TURN_EXTRA) is None and self._is_running
        turn = await self._turn(event) if is_foreign else _turn_of(event)
        if turn is None:
            return
        if is_foreign:
            # Without the waiting hook this is a runner that drops our part (Dify, Coze, …).
            self._memory.skip(Skip.FOREIGN_RUNNER, turn.message.scope)
        turn.asked = True
        self._start(self._ask_bot_name(event))
        self._working[event.unified_msg_origin] = turn
        if block := await _finished(turn.recall):
            req.extra_user_content_parts.append(TextPart(text=block).mark_as_temp())

    @filter.custom_filter(WokenInPrivateOrByName)
    @filter.event_message_type(filter.EventMessageType.ALL, desc=in_both("about_follow_up"))
    async def note_follow_up(self, event: AstrMessageEvent) -> None:
        """Notes what is said to the bot while it works for the same person.

        AstrBot may hand such a message to the running agent, and then no hook is called for it.
        """
        turn = self._working.get(event.unified_msg_origin)
        if turn and event.message_str:
            message = self._reader(event, turn.message.scope).message(self._clock.local())
            if message.speaker.pseudonym == turn.message.speaker.pseudonym:
                turn.follow_ups.append(message)

    @filter.on_agent_done(priority=HOOK_PRIORITY, desc=in_both("about_done"))
    async def remember(self, event: AstrMessageEvent, run_context: Any, resp: LLMResponse) -> None:
        """Puts the turn on disk, and cuts an echoed block; AstrBot sends the reply after this."""
        turn = _turn_of(event)
        if turn is None or not turn.asked or turn.is_over:
            return
        is_able = self._is_running or (self._is_closing and not self._closed.is_set())
        if not is_able:
            if successor := await self._successor():
                await successor.remember(event, run_context, resp)
            return
        try:
            await self._remember(event, turn, run_context.messages, resp)
        finally:
            turn.is_over = True
            self._turn_over.set()

    async def _remember(
        self, event: AstrMessageEvent, turn: Turn, messages: list[Any], resp: LLMResponse
    ) -> None:
        self._working.pop(event.unified_msg_origin, None)
        if resp.role != "assistant" or event.is_stopped():
            return
        if event.get_extra("agent_stop_requested"):  # `/stop`: the text is not an answer
            return
        _cut_echo(messages, resp)
        answer = turn.reader.said(resp.completion_text or "")
        if answer:
            told = _tool_results(messages)
            joined = [m for m in turn.follow_ups if m.raw and m.raw in told]
            # The platform may have told the bot's name only after the question was read.
            bot = turn.reader.bot_speaker(self._bot_names.name(event))
            first = replace(turn.message, bot=bot)
            await self._memory.remember([first, *joined], answer, self._clock.local())

    @filter.custom_filter(TypedAsCommand)
    @filter.command(COMMAND, desc=in_both("about_command"))
    async def hindsight(self, event: AstrMessageEvent, words: GreedyStr):
        """Answers the command, also where it stands alone; the model never sees it."""
        plugin = self if self._is_running else await self._successor()
        if plugin:
            async for answer in plugin.answer(event, words):
                yield event.plain_result(answer)
        event.stop_event()

    async def answer(self, event: AstrMessageEvent, words: str) -> AsyncIterator[str]:
        """What the command answers, see `Commands.answer`."""
        words = await self._clean(event, words)
        async for answer in self._commands.answer(self._caller(event), words):
            yield answer

    async def _turn(self, event: AstrMessageEvent) -> Turn | None:
        """Decides once per event whether it has memory, and leaves the result on the event."""
        scope = self._scope(event)
        admitted = await self._admitted(event, scope)
        if isinstance(admitted, Skip):
            self._memory.skip(admitted, scope)
            event.set_extra(TURN_EXTRA, admitted)
            return None
        await self._people.meet(admitted, ids_of(event))
        reader = self._reader(event, admitted)
        turn = Turn(reader.message(self._clock.local()), reader)
        event.set_extra(TURN_EXTRA, turn)
        self._turns.add(turn)
        return turn

    async def _drain(self) -> None:
        """Lets the turns that have begun end with the hooks that they began with.

        Between `terminate` and the next instance there is a moment without any hook: the answer
        of a turn that ended then would be lost. New turns wait for the next instance.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while any(not turn.is_over for turn in self._turns):
                    self._turn_over.clear()
                    await self._turn_over.wait()

    async def _successor(self) -> "HindsightMemory | None":
        """The instance that runs once a reload is complete; None if there comes none.

        AstrBot calls the hooks of an instance also while it is being initialised, so that may be
        this one.
        """
        if self._is_closing:
            await self._closed.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SUCCESSOR_SECONDS):
                while True:
                    metadata = self.context.get_registered_star(PLUGIN)
                    star: Any = metadata.star_cls if metadata else None
                    if getattr(star, "_is_running", False):
                        return star
                    await asyncio.sleep(POLL_SECONDS)
        return None

    async def _admitted(self, event: AstrMessageEvent, scope: Scope | Skip) -> Scope | Skip:
        admitted = self._memory.admit(scope)
        if isinstance(admitted, Skip) or await _is_enabled(event):
            return admitted
        return Skip.SESSION_RULE

    def _scope(self, event: AstrMessageEvent) -> Scope | Skip:
        hasher, origin = self._state.hasher, origin_of(event)
        privacy = self._settings.privacy
        if is_listed(origin, privacy.deny_chats):
            return Skip.DENIED
        if privacy.allow_chats and not is_listed(origin, privacy.allow_chats):
            return Skip.DENIED
        return hasher.scope(origin) if hasher else Skip.STATE_FAULT

    def _reader(self, event: AstrMessageEvent, scope: Scope) -> EventReader:
        return EventReader(
            event,
            scope,
            self._people.roster(scope),
            self._texts(event),
            bot_name=self._bot_names.name(event),
            wake_prefix=self._provider_prefix(event),
            privacy=self._settings.privacy,
            opted_out=lambda person_id: self._state.is_opted_out(scope, person_id),
        )

    def _caller(self, event: AstrMessageEvent) -> Caller:
        scope, texts = self._scope(event), self._texts(event)
        if isinstance(scope, Scope):
            speaker = self._reader(event, scope).message(self._clock.local()).speaker
        else:
            speaker = Speaker(texts("name_user"), UNKNOWN_PERSON)
        return Caller(
            scope=scope,
            texts=texts,
            now=self._clock.local(),
            speaker=speaker,
            person_id=str(event.get_sender_id() or ""),
            is_manager=is_manager(event),
            is_admin=event.is_admin(),
        )

    def _texts(self, event: AstrMessageEvent) -> Texts:
        return Texts(choose_language(self._settings.language, locale_of(event)))

    def _passes_provider_prefix(self, event: AstrMessageEvent) -> bool:
        """Whether the model will be asked; AstrBot 4.29 looks only after the waiting hook."""
        prefix = self._provider_prefix(event)
        return event.get_extra("provider_request") is not None or event.message_str.startswith(
            prefix
        )

    def _provider_prefix(self, event: AstrMessageEvent) -> str:
        """What a message must begin with for the model to be asked; mostly empty."""
        config: Any = self.context.get_config(umo=event.unified_msg_origin)
        return str(config["provider_settings"].get("wake_prefix") or "")

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs something in the background until `terminate`."""
        task = asyncio.create_task(work)
        task.add_done_callback(_log_failure)
        task.add_done_callback(self._tasks.discard)
        self._tasks.add(task)

    def _add_tools(self) -> None:
        """Gives the model the tools that are switched on; the decorator would register them all."""
        tools = []
        if self._settings.tools.recall:
            tools.append(
                MemoryTool(
                    name="hindsight_recall",
                    description="Looks up what is remembered of this chat. Ask in its language.",
                    argument="query",
                    run=self._recall_for_model,
                )
            )
        if self._settings.tools.remember:
            tools.append(
                MemoryTool(
                    name="hindsight_remember",
                    description="Stores one sentence in the long-term memory of this chat.",
                    argument="content",
                    run=self._remember_for_model,
                )
            )
        if tools:
            self.context.add_llm_tools(*tools)

    async def _recall_for_model(self, event: AstrMessageEvent, query: str) -> str:
        query = await self._clean(event, query)
        return await self._commands.recall_for_model(self._caller(event), query)

    async def _remember_for_model(self, event: AstrMessageEvent, content: str) -> str:
        content = await self._clean(event, content)
        return await self._commands.remember_for_model(self._caller(event), content)

    async def _ask_bot_name(self, event: AstrMessageEvent) -> None:
        try:
            await self._bot_names.ask(event)
        except Exception:  # noqa: BLE001 - whatever a platform's client raises; only a name
            logger.debug("the platform did not tell the bot's name", exc_info=True)

    async def _clean(self, event: AstrMessageEvent, text: str) -> str:
        scope = self._scope(event)
        if not isinstance(scope, Scope):
            return text
        await self._people.meet(scope, ids_of(event))
        return self._reader(event, scope).clean(text)

    async def _warm(self, client: HindsightClient) -> None:
        """Opens the connection before the first message needs it, and says what is wrong."""
        try:
            await client.check()
        except HindsightError as error:
            logger.warning("Hindsight: %s", Texts("en")(error.reason))

    def _configured_timezone(self) -> ZoneInfo | None:
        config: Any = self.context.get_config()
        name = config.get("timezone")
        try:
            return ZoneInfo(name) if isinstance(name, str) and name else None
        except (ZoneInfoNotFoundError, ValueError):
            return None


async def _finished(recall: asyncio.Task[str] | None) -> str:
    """The block of a recall; none if a reload has cancelled it."""
    if recall is None:
        return ""
    await asyncio.wait({recall})
    return "" if recall.cancelled() else recall.result()


async def _is_enabled(event: AstrMessageEvent) -> bool:
    """Whether the session's rules let the plugin work; AstrBot asks them for handlers, not hooks.

    Where it has passed one of our handlers it need not ask its database again (4.24.1, 4.29.3).
    """
    passed = event.get_extra("activated_handlers") or ()
    if any(handler.handler_module_path == __name__ for handler in passed):
        return True
    umo = event.unified_msg_origin
    return await SessionPluginManager.is_plugin_enabled_for_session(umo, PLUGIN)


def _turn_of(event: AstrMessageEvent) -> Turn | None:
    """The turn that an earlier hook left on the event.

    It is not told by its class: after a reload in the middle of a turn that is another one, and
    the turn must not be lost for it.
    """
    turn = event.get_extra(TURN_EXTRA)
    return turn if hasattr(turn, "asked") else None


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
