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

_NODDING = ("好的，知道了。", "All right, noted.")
_IGNORANT = ("这个我还不知道。", "I do not know that yet.")
_TOLD_FACT = ("我记得：{words}。", "I remember: {words}.")
_TOLD_WORDS = ("{name}说过：{words}。", "{name} said: {words}.")

_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_LINE = re.compile(r"^- (?:\[[^\]]+\] )?(.+)$", re.MULTILINE)
_LABELLED = re.compile(r"(?P<name>[^#:]+(?=#)|[^#:\s]+)(?P<mark>#[0-9a-f]{6,32})?: (?P<words>.+)")
_SPEAKER = re.compile(r"^(?:现在说话的人：|Speaking now: )[^#\n]*(#[0-9a-f]{6,32})$", re.MULTILINE)
_MARK = re.compile(r"#[0-9a-f]{6,32}\b")
_ASKING = re.compile(r"什么|怎么|多少|谁|哪里?|吗|呢")
_QUESTION = re.compile(rf"[?？]|{_ASKING.pattern}")
_ME = re.compile(r"我|\b(?:I|my|me)\b")
_WISH = re.compile(
    r"[，,。. ]*(?:(?:请|帮我|你要)*(?:记住|记一下|记下|别忘了?)"
    r"|(?:please )?(?:remember|do(?: not|n't) forget)).*$",
    re.IGNORECASE,
)
_COMMON = set(
    re.findall(
        r"\w+",
        "a about am an and are at did do does for how in is it me my of on or that the to was"
        " what when where which who whose you your",
    )
)
_TURNED = {
    "我": "你",
    "你": "我",
    "i am": "you are",
    "i'm": "you're",
    "i": "you",
    "me": "you",
    "my": "your",
    "mine": "yours",
}
_TURNING = re.compile(r"[我你]|\b(?:I am|I'm|I|my|me|mine)\b", re.IGNORECASE)


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
    """Return what the friend says to a chat request, in the language that it was addressed in."""
    words = user_text(body)
    column = 0 if _CHINESE.search(words) else 1
    if not _QUESTION.search(words):
        return _NODDING[column]
    block = "\n".join(memory_blocks(body))
    found = _SPEAKER.search(block)
    asker = found.group(1) if found else ""
    memory = _best(words, asker, list(memories(block)))
    return _told(memory, asker, column) if memory else _IGNORANT[column]


def memories(block: str) -> Iterator[Memory]:
    """Read what people have said, or what is said about them, out of a memory block."""
    for line in _LINE.findall(block):
        for part in line.split(" / "):
            said = _LABELLED.fullmatch(part.strip())
            if said is None:
                mark = _MARK.search(part)
                yield Memory(_MARK.sub("", part).strip(), mark.group() if mark else "")
            elif said["mark"] and not _QUESTION.search(said["words"]):
                yield Memory(said["words"].strip(), said["mark"], said["name"].strip())


def _best(words: str, asker: str, known: list[Memory]) -> Memory | None:
    """Return the memory that has most in common with a question."""
    if asker and _ME.search(words):
        known = [memory for memory in known if memory.mark in {"", asker}]
    wanted = _pieces(_ASKING.sub(" ", words))
    scored = [(len(wanted & _pieces(memory.text)), memory) for memory in known]
    score, best = max(scored, key=lambda pair: pair[0], default=(0, None))
    return best if score else None


def _pieces(text: str) -> set[str]:
    """Return the words of a text that mean something, and all pairs of Chinese characters."""
    runs = re.findall(r"[\u4e00-\u9fff]+", text)
    pairs = {run[at : at + 2] for run in runs for at in range(len(run) - 1)}
    return pairs | (set(re.findall(r"[a-z0-9]{2,}", text.lower())) - _COMMON)


def _told(memory: Memory, asker: str, column: int) -> str:
    """Tell somebody a memory, as one says it."""
    words = _WISH.sub("", memory.text).rstrip("。.")
    if not memory.speaker:
        return _TOLD_FACT[column].format(words=words)
    if asker in {"", memory.mark}:
        turned = _TURNING.sub(lambda found: _TURNED[found.group().lower()], words)
        return f"{turned[:1].upper()}{turned[1:]}{'。' if column == 0 else '.'}"
    return _TOLD_WORDS[column].format(name=memory.speaker, words=words)
