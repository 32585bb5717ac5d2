"""Lets the person at the terminal go on chatting as one of the cast."""

from __future__ import annotations

import asyncio
import codecs
import os
import sys
from collections.abc import Callable
from typing import Self

from rig.playground.cast import VOICES, Voice
from rig.playground.scene import Scene
from rig.playground.show import transcript

Report = Callable[[str], None]

HELP = "直接输入消息，/hindsight 看命令，:who 换人，:quit 退出。"
_CHUNK = 4096


class Terminal:
    """Lines typed on a terminal, read in the event loop.

    Not in a thread: one that waits for a line cannot be ended, and would hold up the end.
    """

    def __init__(self) -> None:
        """Prepare; entering the context begins to read."""
        self._file = sys.stdin.fileno()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()

    def __enter__(self) -> Self:
        """Begin to read."""
        asyncio.get_running_loop().add_reader(self._file, self._read)
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the terminal alone again."""
        asyncio.get_running_loop().remove_reader(self._file)

    async def ask(self, prompt: str) -> str | None:
        """Return the next line that is typed, stripped, or None at the end of input."""
        print(prompt, end="", flush=True)
        line = await self._lines.get()
        return None if line is None else line.strip()

    def _read(self) -> None:
        try:
            data = os.read(self._file, _CHUNK)
        except OSError:  # the terminal is gone
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._file)
            self._lines.put_nowait(None)
            return
        *lines, self._text = (self._text + self._decoder.decode(data)).split("\n")
        for line in lines:
            self._lines.put_nowait(line)


async def talk(scene: Scene, report: Report) -> None:
    """Chat until the person has had enough."""
    with Terminal() as terminal:
        voice = await _choose(terminal, report)
        while voice is not None:
            line = await terminal.ask(f"\n[{voice.place}] {voice.name}> ")
            if line is None or line == ":quit":
                return
            if line == ":who":
                voice = await _choose(terminal, report)
            elif line.startswith(":"):
                report(HELP)
            elif line:
                await _say(scene, voice, line, report)


async def _choose(terminal: Terminal, report: Report) -> Voice | None:
    """Let the person choose who to be; None at the end of input."""
    report("\n接下来你可以用其中一个人的身份继续聊：")
    for number, voice in enumerate(VOICES, start=1):
        report(f"  {number}. {voice.name}，{voice.place}")
    while (choice := await terminal.ask("选择编号（:quit 退出）：")) not in {None, ":quit"}:
        if choice and choice.isdecimal() and 1 <= int(choice) <= len(VOICES):
            report(HELP)
            return VOICES[int(choice) - 1]
    return None


async def _say(scene: Scene, voice: Voice, text: str, report: Report) -> None:
    try:
        turn = await scene.say(voice, text)
    except AssertionError as silence:
        report(f"（没有回答：{silence}）")
        return
    for line in transcript(turn)[1:]:
        report(line)
