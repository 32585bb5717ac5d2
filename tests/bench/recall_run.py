"""Plays dialogues, asks about them, and compares the block with one bare recall."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import httpx
from rig import venvs
from rig.bank import Bank
from rig.hindsight import HindsightServer
from rig.signals import stopping_on_signals

from bench.dialogue import Chat, Question
from bench.evidence import count_tokens, met
from bench.player import KEEPALIVE, Block, Player, Server, scope_in

Report = Callable[[str], None]

SIDES = ("block", "bare")
SETTLE_SECONDS = 3600.0


class NotEmptyError(Exception):
    """The bank holds something already, which would be found too."""


@dataclass(frozen=True)
class Options:
    """One run.

    Attributes:
        chats: The dialogues.
        max_tokens: The budgets to ask with, one after the other.
        observations: Whether the server draws conclusions.
        server: A Hindsight with a bank of the run's own; None to start one.
        loaded: The bank holds the dialogues already.
        keep: Where the database of the started server is kept; None to throw it away.
    """

    chats: Sequence[Chat]
    max_tokens: Sequence[int] = (1024,)
    observations: bool = False
    server: Server | None = None
    loaded: bool = False
    keep: Path | None = None


@dataclass(frozen=True)
class Side:
    """What one way of asking has brought for a question.

    Attributes:
        met: For each piece of evidence whether it is there.
        tokens: Real tokens of the text.
        lines: Memories in it.
        requests: Requests that it took.
        seconds: How long it took.
        failure: Why there is nothing, or empty.
    """

    met: tuple[bool, ...]
    tokens: int
    lines: int
    requests: int
    seconds: float
    failure: str = ""

    @property
    def all(self) -> bool:
        """Whether all evidence is there."""
        return all(self.met)

    @property
    def any(self) -> bool:
        """Whether some of it is."""
        return any(self.met)


@dataclass(frozen=True)
class Outcome:
    """A question and what was found for it.

    Attributes:
        chat: Its chat.
        question: The question.
        max_tokens: The budget.
        sides: By the names in `SIDES`.
    """

    chat: Chat
    question: Question
    max_tokens: int
    sides: dict[str, Side]


@dataclass(frozen=True)
class Run:
    """What a run has found.

    Attributes:
        outcomes: Of each question and budget.
        embeddings: `e5` or `hashed`, or `unknown` of a server that was not started here.
        loading: Seconds until everything was stored and processed.
    """

    outcomes: Sequence[Outcome]
    embeddings: str
    loading: float


async def stoppable(options: Options) -> Run:
    """Do as `measure` does; a signal ends it in order."""
    with stopping_on_signals():
        return await measure(options)


async def measure(options: Options, say: Report = venvs.print_line) -> Run:
    """Play the dialogues, then ask every question.

    Args:
        options: Which, and where.
        say: Gets a line now and then.
    """
    python = venvs.ensure("hindsight")
    async with _hindsight(options, python) as (server, embeddings):
        started = time.monotonic()
        if not options.loaded:
            await _load(options, server, say)
        loading = time.monotonic() - started
        say(f"... everything is processed ({loading:.0f} s); asking")
        outcomes = [
            outcome
            for max_tokens in options.max_tokens
            for outcome in await _ask_all(options.chats, server, max_tokens, python)
        ]
    return Run(outcomes, embeddings, loading)


@contextlib.asynccontextmanager
async def _hindsight(options: Options, python: Path) -> AsyncIterator[tuple[Server, str]]:
    """The server that is given, or one that makes a fact of each line and has real embeddings."""
    if options.server is not None:
        yield options.server, "unknown"
        return
    async with HindsightServer(python, model="stub", data=options.keep) as started:
        assert started.model is not None
        await started.model.plain_facts()
        yield Server(started.url, started.api_key, "recall"), started.embeddings


async def _load(options: Options, server: Server, say: Report) -> None:
    async with Bank(server, server.bank) as bank:
        if await bank.documents():
            raise NotEmptyError(f"the bank {server.bank} is not empty: take another, or --loaded")
        await bank.create(enable_observations=options.observations)
        say(f"... playing {sum(len(chat.turns) for chat in options.chats)} turns")
        with tempfile.TemporaryDirectory(prefix="bench-recall-") as folder:
            async with Player(server, Path(folder)) as player:
                await player.play(options.chats)
        say("... waiting until the server has processed everything")
        await bank.settled(SETTLE_SECONDS)
        if failed := await bank.operations("failed"):
            raise AssertionError(f"the server failed with {len(failed)} of the documents")


async def _ask_all(
    chats: Sequence[Chat], server: Server, max_tokens: int, python: Path
) -> list[Outcome]:
    asked: list[tuple[Chat, Question, dict[str, Block]]] = []
    with tempfile.TemporaryDirectory(prefix="bench-recall-") as folder:
        async with (
            Player(server, Path(folder), max_tokens=max_tokens) as player,
            Bare(server, max_tokens) as bare,
        ):
            ways = dict(zip(SIDES, (player.ask, bare.ask), strict=True))
            for chat in chats:
                for question in chat.questions:
                    # What comes second may find the server's caches warm: they take turns.
                    order = SIDES if len(asked) % 2 else SIDES[::-1]
                    answers = {side: await ways[side](chat, question) for side in order}
                    asked.append((chat, question, answers))
    texts = [answers[side].text for _, _, answers in asked for side in SIDES]
    tokens = iter(count_tokens(python, texts))
    return [
        Outcome(
            chat,
            question,
            max_tokens,
            {side: _side(question, answers[side], next(tokens)) for side in SIDES},
        )
        for chat, question, answers in asked
    ]


def _side(question: Question, found: Block, tokens: int) -> Side:
    return Side(
        tuple(met(question.needs, found.text)),
        tokens,
        found.lines,
        found.requests,
        found.seconds,
        found.failure,
    )


class Bare:
    """One plain recall for each question: the yardstick, which no change of the plugin moves."""

    def __init__(self, server: Server, max_tokens: int) -> None:
        """Describe it."""
        self._max_tokens = max_tokens
        self._client = httpx.AsyncClient(
            base_url=f"{server.url}/v1/default/banks/{server.bank}",
            headers={"Authorization": f"Bearer {server.api_key}"},
            timeout=60,
            trust_env=False,
            limits=httpx.Limits(keepalive_expiry=KEEPALIVE),
        )

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def ask(self, chat: Chat, question: Question) -> Block:
        """Recall with the words of the question alone, and take all that comes."""
        body = {
            "query": question.words,
            "prefer_observations": True,
            "budget": "mid",
            "max_tokens": self._max_tokens,
            "query_timestamp": question.at.isoformat(timespec="seconds"),
            "include": {"entities": None},
            "tags": list(scope_in(chat).tags),
            "tags_match": "all_strict",
        }
        started = time.perf_counter()
        response = await self._client.post("/memories/recall", json=body)
        results = response.raise_for_status().json()["results"]
        seconds = time.perf_counter() - started
        texts = [" ".join(result["text"].split()) for result in results]
        return Block("\n".join(texts), len(texts), 1, seconds)
