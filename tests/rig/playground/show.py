"""Plays the script before the audience, and judges what was seen."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from rig.playground.cast import SECRETS, Question, Voice
from rig.playground.scene import Scene, Turn
from rig.playground.words import Words

Report = Callable[[str], None]

LONGEST = 160
_MEMORY = re.compile(r"^- (.+)$", re.MULTILINE)
_SAID = re.compile(r"(?:\[\S+\] )?([^#:]+)#[0-9a-f]{6,32}: (.+)")
_NUMBER = re.compile(r" ?\(?#[0-9a-f]{6,32}\b\)?")
_CODE = r"forgetme (\d+)"


@dataclass(frozen=True)
class Show:
    """Shows turns to whoever watches.

    Attributes:
        scene: The running playground.
        report: Gets each line as it happens.
        raw: Show lines as they are stored and injected, not as people read them.
    """

    scene: Scene
    report: Report
    raw: bool = False

    def turn(self, turn: Turn, *, echo: bool = True) -> None:
        """Show who said what where, what was injected, and what came back."""
        words = self.scene.words
        if echo:
            self.line(turn.voice.place, turn.voice.name, turn.text)
        if turn.asked and self.raw and turn.block:
            for line in turn.block.splitlines():
                self.report(f"    │ {line}")
        elif turn.asked:
            self.report(folded(turn.block, words))
        for reply in turn.replies:
            self.line(turn.voice.place, words("bot"), reply)

    def line(self, place: str, name: str, text: str) -> None:
        """Show what somebody said."""
        first, *rest = text.splitlines() or [""]
        self.report(self.scene.words("said", place=place, name=name, text=first))
        for line in rest:
            self.report(f"    {line}")

    async def play(self, voice: Voice, text: str, until: str = "") -> Turn:
        """Let somebody say something and show what comes of it."""
        turn = await self.scene.say(voice, text, until)
        self.turn(turn)
        return turn


def folded(block: str, words: Words) -> str:
    """Return what was injected as one line to read: whose words, without numbers and twice none."""
    lines = _MEMORY.findall(block)
    if not lines:
        return words("injected_none")
    parts = dict.fromkeys(_read(part, words) for line in lines for part in line.split(" / "))
    text = " ‖ ".join(filter(None, parts)) or words("bot")
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}…"
    return words("injected", number=len(lines), lines=text)


def _read(part: str, words: Words) -> str:
    """Return a line of the block as people read it; what the bot itself said is left out."""
    if said := _SAID.fullmatch(part):
        return words("spoken", name=said[1], text=said[2])
    return "" if part.startswith(f"{words('bot')}: ") else _NUMBER.sub("", part)


async def perform(show: Show) -> list[str]:
    """Play the script and return what went wrong, in sentences; nothing if all went well."""
    scene, report = show.scene, show.report
    words, cast = scene.words, scene.cast
    report(f"\n{words('act_said')}")
    for fact in cast.facts:
        await show.play(fact.voice, fact.text)
    await _store(show)
    wrong: list[str] = []
    for act, questions in (("act_asked", cast.questions), ("act_strangers", cast.strangers)):
        report(f"\n{words(act)}")
        for question in questions:
            wrong += faults(scene, question, await show.play(question.voice, question.text))
    wrong += await _forget(show)
    leaked = scene.sent_in_the_clear(SECRETS)
    return wrong + [words("leaked", number=number) for number in leaked]


async def _store(show: Show) -> None:
    scene, words = show.scene, show.scene.words
    show.report(f"\n{words('act_stored')}\n{words('waiting')}")
    started = time.monotonic()
    await scene.stored(scene.cast.facts)
    show.report(words("stored", seconds=time.monotonic() - started))
    for line in await scene.lines() if show.raw else []:
        show.report(f"    │ {line}")


async def _forget(show: Show) -> list[str]:
    """Let somebody have the bot forget what they said, and ask once more."""
    scene, fact, after = show.scene, show.scene.cast.forgotten, show.scene.cast.after
    show.report(f"\n{scene.words('act_forgotten')}")
    await scene.settled()
    asked = await show.play(fact.voice, "/hindsight forgetme", _CODE)
    found = re.search(_CODE, asked.reply)
    assert found is not None
    await show.play(fact.voice, f"/hindsight forgetme {found[1]}", r"\d")
    await scene.forgotten(fact)
    turn = await show.play(after.voice, after.text)
    wrong = faults(scene, after, turn)
    if fact.key in turn.block + turn.reply:
        wrong.append(_who(scene, turn) + scene.words("not_forgotten", key=fact.key))
    return wrong


def _who(scene: Scene, turn: Turn) -> str:
    return scene.words("who", name=turn.voice.name, place=turn.voice.place, text=turn.text)


def faults(scene: Scene, question: Question, turn: Turn) -> list[str]:
    """Return what is wrong with the answer to a question, in sentences."""
    words, who, fact = scene.words, _who(scene, turn), question.fact
    wrong = []
    if fact and fact.key not in turn.block:
        wrong.append(who + words("not_recalled", key=fact.key))
    elif fact and fact.key not in turn.reply:
        wrong.append(who + words("not_told", key=fact.key))
    for other in scene.cast.facts:
        elsewhere = other.voice.chat != turn.voice.chat
        if elsewhere and other.key in turn.block + turn.reply:
            wrong.append(who + words("told_elsewhere", place=other.voice.place, key=other.key))
        elif not elsewhere and other is not fact and other.key in turn.reply:
            wrong.append(who + words("told_other", key=other.key))
    return wrong


def summary(scene: Scene, wrong: list[str]) -> str:
    """Return the lines that say what was shown."""
    words, cast = scene.words, scene.cast
    if wrong:
        return words("failure", lines="\n".join(f"  · {one}" for one in wrong))
    line = words(
        "success",
        questions=len(cast.questions),
        strangers=len(cast.strangers),
        name=cast.forgotten.voice.nickname,
        forgotten=cast.forgotten.voice.name,
    )
    if scene.proxy is None:
        return line
    return f"{line}\n{words('clean', number=len(scene.proxy.requests))}"
