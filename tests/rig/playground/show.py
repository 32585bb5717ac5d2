"""Plays the script before the audience, and judges what was seen."""

from __future__ import annotations

import time
from collections.abc import Callable

from rig.playground.cast import FACTS, QUESTIONS, SECRETS, STRANGERS, Question, Voice
from rig.playground.scene import Scene, Turn

Report = Callable[[str], None]

BOT = "小助手"


def transcript(turn: Turn) -> list[str]:
    """Return a turn as lines to read: who said what where, what was injected, what came back."""
    voice = turn.voice
    lines = [f"[{voice.place}] {voice.name}：{turn.text}"]
    if turn.asked:
        lines += [f"    │ {line}" for line in _shown(turn.block)]
    first, *rest = turn.reply.splitlines() or [""]
    lines.append(f"[{voice.place}] {BOT}：{first}")
    return lines + [f"    {line}" for line in rest]


def _shown(block: str) -> list[str]:
    """Return the lines of a block that say something about this chat."""
    lines = block.splitlines()
    if not lines:
        return ["召回并注入：无"]
    # The first two are the opening tag and the header, which is the same in every block.
    inner = [line for line in lines[2:] if not line.startswith("</")]
    return ["召回并注入：", *inner]


async def perform(scene: Scene, report: Report) -> list[str]:
    """Play the script.

    Args:
        scene: The running playground.
        report: Gets each line as it happens.

    Returns:
        What went wrong, in sentences; nothing if all went well.
    """
    report("\n── 一、先说 ──")
    for fact in FACTS:
        await _play(scene, fact.voice, fact.text, report)
    report("\n── 二、等 Hindsight 存好 ──")
    started = time.monotonic()
    report("等待中 …")
    await scene.stored(FACTS)
    report(f"存好了，用了 {time.monotonic() - started:.1f} 秒。")
    wrong: list[str] = []
    for title, questions in (("三、后来问起", QUESTIONS), ("四、别处的人问起", STRANGERS)):
        report(f"\n── {title} ──")
        for question in questions:
            turn = await _play(scene, question.voice, question.text, report)
            wrong += faults(question, turn)
    leaked = scene.sent_in_the_clear(SECRETS)
    return wrong + [f"号码 {number} 原样发给了 Hindsight" for number in leaked]


async def _play(scene: Scene, voice: Voice, text: str, report: Report) -> Turn:
    turn = await scene.say(voice, text)
    for line in transcript(turn):
        report(line)
    return turn


def faults(question: Question, turn: Turn) -> list[str]:
    """Return what is wrong with the answer to a question, in sentences."""
    who = f"{turn.voice.name}在{turn.voice.place}问“{turn.text}”"
    wrong = []
    fact = question.fact
    if fact and fact.key not in turn.block:
        wrong.append(f"{who}，没有召回{fact.key}")
    elif fact and fact.key not in turn.reply:
        wrong.append(f"{who}，召回了{fact.key}，回答里却没有")
    for other in FACTS:
        elsewhere = other.voice.chat != turn.voice.chat
        if elsewhere and other.key in turn.block + turn.reply:
            wrong.append(f"{who}，得到了{other.voice.place}里的{other.key}")
        elif not elsewhere and other is not fact and other.key in turn.reply:
            wrong.append(f"{who}，回答里有别人的{other.key}")
    return wrong


def verdict(scene: Scene, wrong: list[str]) -> str:
    """Return the one line that says what was shown."""
    if wrong:
        return f"演示失败：{'；'.join(wrong)}。"
    line = (
        f"演示成功：{len(QUESTIONS)} 个人问起时都答对了自己说过的话，同名的两个小明没有混淆；"
        "一个聊天里说的，别的聊天查不到"
    )
    if scene.proxy is None:
        return f"{line}。"
    number = len(scene.proxy.requests)
    return f"{line}；发给 Hindsight 的 {number} 个请求里没有任何 QQ 号和群号。"
