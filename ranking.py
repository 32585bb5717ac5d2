"""The order in which memories are worth reading, made here from what a recall brought. Pure.

Three orders are fused by reciprocal rank: the server's own, that of its vectors, and that of the
words in common with the query. The server's own order is fused from several arms, of which the one
that walks along its graph pushes hits out; only where a cross-encoder has read query and memories
together (each result then has a number as `scores.reranker`) it is the surest of the three.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from .hindsight_types import RecalledMemory
from .transcript import Line, said_at

FUSION = 30
"""How little the first ranks of one order outweigh the others: 1 / (FUSION + rank)."""
SERVER_WEIGHT = 0.4
RERANKED_WEIGHT = 3.0
SEMANTIC_WEIGHT = 1.0
WORDS_WEIGHT = 0.8
TIME_WEIGHT = 1.0
"""That of what was said on a day that the query names, in the order of everything else."""
PEOPLE_FACTOR = 1.1
"""How much what is said by or of the one who asks, or somebody the query names, is preferred."""

SATURATION = 1.2
LENGTH_SHARE = 0.75
"""BM25: how soon a repeated word counts no more, and how much a long text is held back."""

_RUN = re.compile(
    "(?P<pairs>[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+)"
    r"|(?P<word>[^\W_]+)"
)
"""What is compared by pairs of characters, since no blank ends a word there, or by whole words."""
_SIGNS = re.compile(r"[\W_]+")
MIN_REPEATED = 6
MAX_LABEL = 32
"""So many letters a conclusion in the words of its fact may have more, for its speaker."""
_WORD = re.compile(r"[^\W_]+")
_ENDINGS = ("ing", "ed", "es", "ly", "s", "e")
MIN_STEM = 3
_PSEUDONYM = re.compile(r"#[0-9a-f]{6,32}")


Window = tuple[datetime, datetime]


@dataclass(frozen=True)
class Terms:
    """What a query is compared by.

    Attributes:
        words: Whole words.
        pairs: Pairs of characters.
    """

    words: frozenset[str]
    pairs: frozenset[str]

    @classmethod
    def of(cls, query: str) -> Terms:
        """The terms of a query."""
        words: set[str] = set()
        pairs: set[str] = set()
        for run in _RUN.finditer(_folded(query)):
            text = run[0]
            if run.lastgroup == "pairs":
                pairs.update(map("".join, itertools.pairwise(text)))
            else:
                words.add(_stem(text))
        return cls(frozenset(words), frozenset(pairs))

    @cached_property
    def beginnings(self) -> frozenset[str]:
        """How the words begin."""
        return frozenset(word[:MIN_STEM] for word in self.words)

    def count(self, text: str) -> dict[str, int]:
        """How often each term stands in a text."""
        folded = _folded(text)
        found = {pair: folded.count(pair) for pair in self.pairs if pair in folded}
        if self.words:
            for word in _WORD.findall(folded):
                # Most words are ruled out by how they begin, which a stem never changes.
                if word[:MIN_STEM] in self.beginnings and (stem := _stem(word)) in self.words:
                    found[stem] = found.get(stem, 0) + 1
        return found


def rank(
    memories: Sequence[RecalledMemory],
    query: str,
    *,
    waiting: Sequence[RecalledMemory] = (),
    asker: str = "",
    window: Window | None = None,
) -> list[RecalledMemory]:
    """Puts memories in the order in which they should be chosen, each once.

    Args:
        memories: In the order of the server.
        query: What was asked.
        waiting: What the server may not know yet; of these only what has words in common counts.
        asker: The pseudonym of who asks, or empty.
        window: The time that the query names, first and last moment.
    """
    found = [*memories, *waiting]
    lines = [Line(memory.text) for memory in found]
    overlap = words_in_common([f"{line.label} {line.words}" for line in lines], query)
    by_words = _best([score or None for score in overlap])
    is_reranked = any(memory.reranker is not None for memory in memories)
    server = RERANKED_WEIGHT if is_reranked else SERVER_WEIGHT
    scores = [0.0] * len(found)
    for weight, order in (
        (server, range(len(memories))),
        (SEMANTIC_WEIGHT, _best([memory.semantic for memory in memories])),
        (WORDS_WEIGHT, by_words),
        # What waits has only its words to be judged by: they stand for the other orders too.
        (
            server + SEMANTIC_WEIGHT,
            [index if index >= len(memories) else None for index in by_words],
        ),
    ):
        for place, index in enumerate(order):
            if index is not None:
                scores[index] += weight / (FUSION + place)
    people = _people(lines, query, asker)
    for index, line in enumerate(lines):
        if line.pseudonym in people or not people.isdisjoint(_PSEUDONYM.findall(line.words)):
            scores[index] *= PEOPLE_FACTOR
    order = _best([score or None for score in scores])
    named = [index for index in order if window and _is_within(said_at(found[index]), window)]
    for place, index in enumerate(named):
        scores[index] += TIME_WEIGHT / (FUSION + place)
    return _once([found[index] for index in _best([score or None for score in scores])])


def _is_within(at: datetime | None, window: Window) -> bool:
    return at is not None and window[0] <= at <= window[1]


def _people(lines: Iterable[Line], query: str, asker: str) -> set[str]:
    """Pseudonyms of who asks and of those whom the query names."""
    labels = {line.pseudonym: line.label for line in lines if line.pseudonym}
    named = {who for who, label in labels.items() if label.removesuffix(who) in query}
    return {asker, *named, *_PSEUDONYM.findall(query)} - {""}


def _once(memories: Iterable[RecalledMemory]) -> list[RecalledMemory]:
    """Memories without those that say what a better one has said already."""
    kept: list[RecalledMemory] = []
    seen: set[tuple[str, str]] = set()
    told: set[str] = set()
    facts: list[str] = []
    conclusions: list[str] = []
    for memory in memories:
        line = Line(memory.text)
        words = plain(line.words)
        said = (line.pseudonym, words)
        single = set(memory.sources) if len(memory.sources) == 1 else set()
        is_conclusion = memory.kind == "observation"
        if said in seen or ({memory.memory_id} | single) & told:
            continue
        if _repeats(words, facts if is_conclusion else conclusions, is_conclusion=is_conclusion):
            continue
        seen.add(said)
        told |= ({memory.memory_id} | single) - {""}
        (conclusions if is_conclusion else facts).append(words)
        kept.append(memory)
    return kept


def _repeats(words: str, others: Iterable[str], *, is_conclusion: bool) -> bool:
    """Whether a conclusion says hardly more than one of the facts, or a fact nothing more."""
    if not is_conclusion:
        return len(words) >= MIN_REPEATED and any(words in other for other in others)
    short = max(len(words) - MAX_LABEL, MIN_REPEATED)
    return any(len(other) >= short and other in words for other in others)


def plain(text: str) -> str:
    """A text by its letters and digits alone."""
    return _SIGNS.sub("", text.casefold())


def words_in_common(texts: Sequence[str], query: str) -> list[float]:
    """How much each text has in common with a query (BM25 among these texts); 0 is nothing."""
    terms = Terms.of(query)
    counts = [terms.count(text) for text in texts]
    spread: dict[str, int] = {}
    for found in counts:
        for term in found:
            spread[term] = spread.get(term, 0) + 1
    rarity = {
        term: math.log(1 + (len(texts) - number + 0.5) / (number + 0.5))
        for term, number in spread.items()
    }
    usual = sum(map(len, texts)) / max(len(texts), 1) or 1.0
    scores: list[float] = []
    for text, found in zip(texts, counts, strict=True):
        held = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * len(text) / usual)
        scores.append(
            sum(
                rarity[term] * number * (SATURATION + 1) / (number + held)
                for term, number in found.items()
            )
        )
    return scores


def _best(scores: Sequence[float | None]) -> list[int]:
    """Indexes by falling score, without those that have none."""
    scored = [index for index, score in enumerate(scores) if score is not None]
    return sorted(scored, key=lambda index: -(scores[index] or 0.0))


def _stem(word: str) -> str:
    """An English word without its ending: what was painted is found by who paints."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) >= len(ending) + MIN_STEM:
            return word.removesuffix(ending)
    return word


def _folded(text: str) -> str:
    return text.casefold()
