"""Dialogues to measure recall with, and the questions about them.

The file holds

    {"chats": [{"name", "kind": "private" | "group", "language": "zh" | "en",
                "turns": [{"at": ISO time, "speaker", "words", "answer"}],
                "questions": [{"words", "at", "needs": [[text, …], …]}]}]}

and a question may hold `speaker` (who asks; else the one who speaks first in the chat), `sort` (a
word that questions are counted by, see `SORTS`) and `before`: `{"words", "answer"}`, the turn that
came just before the question and is no part of the memory.

`crowded` makes large chats of small ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, Self

from bench.evidence import met

SORTS = ("fact", "dated", "change", "person", "follow-up")
"""What a question is about: a fact, a day, something that has changed, one of several people, or
what was just talked about."""


_CLAUSE = re.compile(r"[^，。！？；,.!?;]*[，。！？；,.!?;]+|[^，。！？；,.!?;]+")


@dataclass(frozen=True)
class Turn:
    """What somebody said and, unless it was a line of a group, what the bot answered."""

    at: datetime
    speaker: str
    words: str
    answer: str


@dataclass(frozen=True)
class Before:
    """The turn just before a question."""

    words: str
    answer: str


@dataclass(frozen=True)
class Question:
    """A question and what must be known to answer it.

    Attributes:
        words: The question.
        at: When it is asked.
        speaker: Who asks.
        needs: For each piece of evidence the texts that hold it.
        sort: One of `SORTS`.
        before: The turn just before it, or None.
    """

    words: str
    at: datetime
    speaker: str
    needs: tuple[tuple[str, ...], ...]
    sort: str = SORTS[0]
    before: Before | None = None

    @classmethod
    def read(cls, content: Mapping[str, Any], speaker: str) -> Self:
        """Read it from JSON; `speaker` asks where nobody is named."""
        before = content.get("before")
        return cls(
            words=content["words"],
            at=datetime.fromisoformat(content["at"]),
            speaker=content.get("speaker") or speaker,
            needs=tuple(tuple(texts) for texts in content["needs"]),
            sort=content.get("sort") or ("follow-up" if before else SORTS[0]),
            before=Before(before["words"], before["answer"]) if before else None,
        )


@dataclass(frozen=True)
class Chat:
    """One chat with its questions.

    Attributes:
        number: Its place in the file.
        name: What it is called in the file.
        kind: Private or group.
        language: Of the chat.
        turns: In the order of time.
        questions: Asked when all has been said.
    """

    number: int
    name: str
    kind: Literal["private", "group"]
    language: Literal["zh", "en"]
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]

    @property
    def speakers(self) -> list[str]:
        """Everybody who speaks or asks, in the order of the first line."""
        names = [turn.speaker for turn in self.turns]
        return list(dict.fromkeys([*names, *(question.speaker for question in self.questions)]))

    @classmethod
    def read(cls, number: int, content: Mapping[str, Any]) -> Self:
        """Read it from JSON."""
        turns = tuple(
            Turn(
                datetime.fromisoformat(turn["at"]),
                turn["speaker"],
                turn["words"],
                turn.get("answer") or "",
            )
            for turn in content["turns"]
        )
        first = turns[0].speaker
        questions = tuple(Question.read(one, first) for one in content["questions"])
        return cls(number, content["name"], content["kind"], content["language"], turns, questions)


def load(file: Path, *, chats: int | None = None, questions: int | None = None) -> tuple[Chat, ...]:
    """Read dialogues.

    Args:
        file: Where they are.
        chats: At most so many chats.
        questions: At most so many questions of each chat, taken evenly.
    """
    found = json.loads(file.read_text("utf-8"))["chats"][:chats]
    return tuple(
        Chat.read(number, {**one, "questions": _evenly(one["questions"], questions)})
        for number, one in enumerate(found)
    )


def _evenly(items: list[Any], number: int | None) -> list[Any]:
    if number is None or number >= len(items):
        return items
    return [items[at * len(items) // number] for at in range(number)]


def crowded(chats: Sequence[Chat], lines: int) -> tuple[Chat, ...]:
    """One group of at least so many lines for each language, in which everybody said all of it.

    What is missing is made of what was said and is no evidence, so it is about the same things.
    """
    languages = dict.fromkeys(chat.language for chat in chats)
    return tuple(
        _crowd(number, language, [one for one in chats if one.language == language], lines)
        for number, language in enumerate(languages)
    )


def _crowd(number: int, language: Literal["zh", "en"], chats: Sequence[Chat], lines: int) -> Chat:
    turns = [turn for chat in chats for turn in chat.turns]
    questions = tuple(question for chat in chats for question in chat.questions)
    needs = [need for question in questions for need in question.needs]
    idle = [turn for turn in turns if not any(met(needs, f"{turn.words}\n{turn.answer}"))]
    left = lines - sum(map(_lines, turns))
    for turn in _made_up(idle):
        if left <= 0:
            break
        turns.append(turn)
        left -= _lines(turn)
    turns.sort(key=lambda turn: turn.at)
    return Chat(number, f"{lines} {language}", "group", language, tuple(turns), questions)


def _lines(turn: Turn) -> int:
    return 1 + bool(turn.answer)


def _made_up(turns: Sequence[Turn]) -> Iterator[Turn]:
    """Turns that begin like one of these and end like another."""
    for step in range(1, len(turns)):
        for turn, other in zip(turns, [*turns[step:], *turns[:step]], strict=True):
            yield replace(
                turn,
                at=turn.at + timedelta(minutes=step),
                words=_mixed(turn.words, other.words),
                answer=_mixed(turn.answer, other.answer) if turn.answer else "",
            )


def _mixed(text: str, other: str) -> str:
    first, second = _CLAUSE.findall(text), _CLAUSE.findall(other)
    return "".join([*first[: (len(first) + 1) // 2], *second[len(second) // 2 :]])
