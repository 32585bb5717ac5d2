"""The playground's chat model: it knows nothing but the memory block of the request.

What it answers to a question is taken from that block, never from the conversation so far and
never from a list of answers, so that an answer shows what was recalled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rig.model import memory_blocks, user_text

NODDING = "好的，知道了。"
IGNORANT = "这个我还不知道。"

_LABEL = r"(?P<name>[^\s#：]+)(?P<mark>#[0-9a-f]{6})?"
_UTTERANCE = re.compile(rf"{_LABEL} \(\d{{4}}-\d\d-\d\dT[0-9:.+Z-]+\): ")
_SPEAKER = re.compile(r"^(?:现在说话的人：|Speaking now: )\S+?(#[0-9a-f]{6})$", re.MULTILINE)
_MEMORY = re.compile(r"^- (?:\d{4}-\d\d-\d\d )?(.+)$", re.MULTILINE)
_MARK = re.compile(r"#[0-9a-f]{6}\b")
_QUESTION = re.compile(r"[?？]|什么|谁|哪|怎么|多少|几[个点岁]|[吗呢]$")
_ASKING = re.compile(r"什么|怎么|多少|谁|哪里?|吗|呢")
_WISH = re.compile(r"[，,。 ]*(?:请|帮我|你要)*(?:记住|记一下|记下|别忘了?).*$")
_TURNED = str.maketrans("我你", "你我")


@dataclass(frozen=True)
class Memory:
    """One thing that the block says.

    Attributes:
        text: The words.
        mark: The pseudonym of the person that it is about, empty if there is none.
        speaker: The name of the person whose very words these are; empty for a fact that the
            server has put into words of its own.
    """

    text: str
    mark: str
    speaker: str = ""


def answer(body: dict[str, Any]) -> str:
    """Return what the friend says to a chat request."""
    words = user_text(body)
    if not _QUESTION.search(words):
        return NODDING
    block = "\n".join(memory_blocks(body))
    found = _SPEAKER.search(block)
    asker = found.group(1) if found else ""
    memory = _best(words, asker, list(memories(block)))
    return _told(memory, asker) if memory else IGNORANT


def memories(block: str) -> Iterator[Memory]:
    """Read what people have said, or what is said about them, out of a memory block."""
    for line in _MEMORY.findall(block):
        starts = list(_UTTERANCE.finditer(line))
        if not starts:
            mark = _MARK.search(line)
            yield Memory(line, mark.group() if mark else "")
        ends = [start.start() for start in starts[1:]] + [len(line)]
        for start, end in zip(starts, ends, strict=True):
            words = line[start.end() : end].strip()
            if start["mark"] and not _QUESTION.search(words):
                yield Memory(words, start["mark"], start["name"])


def _best(words: str, asker: str, known: list[Memory]) -> Memory | None:
    """Return the memory that has most in common with a question."""
    if "我" in words and asker:
        known = [memory for memory in known if memory.mark in {"", asker}]
    wanted = _pairs(_ASKING.sub(" ", words))
    scored = [(len(wanted & _pairs(memory.text)), memory) for memory in known]
    score, best = max(scored, key=lambda pair: pair[0], default=(0, None))
    return best if score else None


def _pairs(text: str) -> set[str]:
    """Return all pairs of neighbouring characters."""
    runs = re.findall(r"\w+", text)
    return {run[at : at + 2] for run in runs for at in range(len(run) - 1)}


def _told(memory: Memory, asker: str) -> str:
    """Tell somebody a memory."""
    words = _WISH.sub("", memory.text).rstrip("。")
    if not memory.speaker:
        return f"我记得：{words}。"
    if asker in {"", memory.mark}:
        return f"{words.translate(_TURNED)}。"
    return f"{memory.speaker}说过：{words}。"
