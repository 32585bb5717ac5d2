"""Memories as people see them: words first, one short date, one entry for each matter. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from .cleaning import neutralise, recalled, shorten
from .hindsight_types import RecalledMemory
from .ranking import Terms, words_in_common
from .texts import Texts
from .transcript import Line, said_at

MAX_ACKNOWLEDGEMENT = 24
"""A longer line of the bot says something of its own."""
ALIKE_SHARE = 0.5
MIN_COMMON = 2
"""What two texts must share to tell of the same: so many terms, and this share of the shorter."""
SURE_SCORE = 0.3
"""From here on a cross-encoder's verdict stands for words in common."""

MAX_NAME_CHARS = 24
_NO_BRACES = str.maketrans("{}", "()")

_NAMED = re.compile(r"(?P<name>[^\s#/:,，。：、“”（）()]*)(?P<number>#[0-9a-f]{6,32})(?![0-9a-f])")
_ACKNOWLEDGEMENT = re.compile(
    r"(?:嗯|哦|噢|啊|呀|好|行|对|是的?|没错|当然|可以|没问题|明白|了解|收到|知道|懂了|记住|记下|记好|已记"
    r"|我(?:会)?(?:记|知道|明白)|原来|这样|不客气|谢谢|哈哈|嘻嘻|真|太|不错|有意思"
    r"|ok\b|okay|sure|got it|noted|i see|i(?:'ll| will) remember|alright|all right|of course"
    r"|thanks|thank you|great|nice|good|understood|you're welcome|yes\b|right\b|cool\b)",
    re.IGNORECASE,
)
_SIGNS = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class Names:
    """What people are called: by their names alone, unless two have the same.

    Attributes:
        names: By pseudonym.
    """

    names: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, memories: Iterable[RecalledMemory], known: Mapping[str, str]) -> Names:
        """The names in some memories, and those of people who were seen here."""
        found: dict[str, str] = {}
        for memory in memories:
            for match in _NAMED.finditer(memory.text):
                if match["name"]:
                    found.setdefault(match["number"], match["name"])
        return cls({**found, **known})

    def shown(self, pseudonym: str, name: str = "") -> str:
        """What somebody is called; their number alone where no name is known."""
        name = name or self.names.get(pseudonym, "")
        alike = {number for number, other in self.names.items() if other == name}
        if not name or alike - {pseudonym}:
            return f"{name}{pseudonym}"
        return name

    def replaced(self, text: str) -> str:
        """A text with names in place of labels."""
        return _NAMED.sub(lambda match: self.shown(match["number"], match["name"]), text)


@dataclass(frozen=True)
class View:
    """How memories are shown to somebody.

    Attributes:
        texts: The wording in their language.
        now: Aware, in the local timezone.
        names: What people are called; None in private chats, where nobody need be named.
        bot: The bot's word for itself.
    """

    texts: Texts
    now: datetime
    names: Names
    is_group: bool

    def shown(self, memory: RecalledMemory, limit: int) -> str:
        """A memory on one line of so many characters: its words, then who and when."""
        said = _Said.of(memory, self)
        who = shorten(said.who, MAX_NAME_CHARS) if self.is_group or said.is_bots else ""
        about = " ".join(filter(None, [who, self._date(memory)]))
        form = "{text}"
        if about:
            form = self.texts("entry", text=form, about=about.translate(_NO_BRACES))
        if _is_conclusion(memory):
            form = self.texts("entry_conclusion", text=form)
        room = limit - len(form.replace("{text}", ""))
        return form.replace("{text}", shorten(said.text, room))

    def line(self, text: str, limit: int) -> str:
        """A stored line of a chat in the same way."""
        line = Line(text)
        memory = RecalledMemory("", text, "world", line.at, frozenset(), None)
        return self.shown(memory, limit)

    def who(self, label: str) -> str:
        """What somebody with a label is called."""
        # A conclusion may quote a line behind a word of its own: "Observation: Ann#1a2b3c (…)".
        return self.names.replaced(neutralise(label.rpartition(": ")[2]))

    def _date(self, memory: RecalledMemory) -> str:
        at = said_at(memory)
        try:
            return self.texts.date(at.astimezone(self.now.tzinfo), self.now) if at else ""
        except OverflowError:  # the first or last day of the calendar
            return ""


@dataclass(frozen=True)
class _Said:
    """The words of a memory, and whose they are.

    Attributes:
        text: Without labels and times.
        who: Whose words these are, empty where the text tells or nobody is known.
        is_bots: They are the bot's.
    """

    text: str
    who: str
    is_bots: bool = False

    @classmethod
    def of(cls, memory: RecalledMemory, view: View) -> _Said:
        lines = [Line(one) for one in memory.text.splitlines() if one.strip()]
        lines = [line for line in lines if line.pseudonym] or lines
        labels = list(dict.fromkeys(line.label for line in lines))
        known = memory.speakers[0] if len(memory.speakers) == 1 else ""
        if len(labels) == 1:
            text = " / ".join(_harmless(line.words, view) for line in lines)
            is_bots = not any(line.pseudonym for line in lines) and (
                bool(labels[0]) or memory.kind == "experience"
            )
            if labels[0]:
                return cls(text, view.who(labels[0]), is_bots)
            if is_bots:
                return cls(text, view.texts("name_bot"), is_bots=True)
            is_told = _NAMED.search(memory.text) or not known
            return cls(text, "" if is_told else view.names.shown(known))
        parts = []
        for line in lines:
            words = _harmless(line.words, view)
            name = view.who(line.label)
            parts.append(view.texts("entry_said", name=name, text=words) if name else words)
        return cls(" / ".join(parts), "")


def _harmless(words: str, view: View) -> str:
    return view.names.replaced(recalled(words, view.texts))


def one_each(memories: Sequence[RecalledMemory]) -> list[RecalledMemory]:
    """One memory for each matter, in their order: the conclusion, else the fact.

    What the bot says only to show that it has understood is none, unless there is nothing else.
    """
    covered = {source for one in memories if _is_conclusion(one) for source in one.sources}
    told: set[str] = set()
    kept: list[RecalledMemory] = []
    for memory in sorted(memories, key=lambda one: not _is_conclusion(one)):
        words = _plain(memory)
        is_told = memory.memory_id in covered or words in told or is_acknowledgement(memory)
        if not is_told:
            told.add(words)
            kept.append(memory)
    places = {id(memory): place for place, memory in enumerate(memories)}
    return sorted(kept, key=lambda one: places[id(one)])


def is_acknowledgement(memory: RecalledMemory) -> bool:
    """Whether a memory is nothing but the bot's word that it has understood."""
    lines = [Line(one) for one in memory.text.splitlines() if one.strip()]
    is_bots = all(line.label and not line.pseudonym for line in lines)
    if not lines or not is_bots:
        return False
    words = " ".join(line.words for line in lines)
    return len(words) <= MAX_ACKNOWLEDGEMENT and bool(_ACKNOWLEDGEMENT.match(words))


def tells(text: str, words: Sequence[str]) -> bool:
    """Whether a text tells of the same as one of the things that were said."""
    terms = _terms(" ".join(Line(one).words for one in text.splitlines()))
    return any(_alike(terms, _terms(one)) for one in words)


def related(memories: Sequence[RecalledMemory], query: str) -> list[bool]:
    """Which memories have to do with a question.

    Similarities of one server mean nothing on another, so what has no word in common counts only
    where it is as near as the nearest that has one, or where a cross-encoder is sure.
    """
    lines = [[Line(one) for one in memory.text.splitlines()] for memory in memories]
    texts = [
        " ".join(_NAMED.sub(r"\g<name>", f"{line.label} {line.words}") for line in said)
        for said in lines
    ]
    terms = [term for term in query.casefold().split() if len(term) == 1]
    common = [
        score > 0 or any(term in text.casefold() for term in terms)
        for score, text in zip(words_in_common(texts, query), texts, strict=True)
    ]
    scores = [memory.semantic or 0.0 for memory in memories]
    nearest = max((one for one, is_one in zip(scores, common, strict=True) if is_one), default=0.0)
    return [
        is_one or 0.0 < nearest <= score or (memory.reranker or 0.0) >= SURE_SCORE
        for memory, score, is_one in zip(memories, scores, common, strict=True)
    ]


def _is_conclusion(memory: RecalledMemory) -> bool:
    return memory.kind == "observation"


def _plain(memory: RecalledMemory) -> str:
    """The words of a memory by their letters alone, with whose they are."""
    lines = [Line(one) for one in memory.text.splitlines() if one.strip()]
    said = [line for line in lines if line.pseudonym] or lines
    whose = " ".join(line.pseudonym for line in said) or " ".join(memory.speakers)
    return f"{whose} {_SIGNS.sub('', ''.join(line.words for line in said).casefold())}"


def _terms(text: str) -> frozenset[str]:
    terms = Terms.of(_NAMED.sub(" ", text))
    return terms.words | terms.pairs


def _alike(these: frozenset[str], those: frozenset[str]) -> bool:
    common = len(these & those)
    return common >= MIN_COMMON and common >= ALIKE_SHARE * min(len(these), len(those))
