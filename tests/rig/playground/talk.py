"""Lets the person at the terminal go on chatting as one of the cast."""

from __future__ import annotations

import asyncio
import codecs
import os
import sys
from typing import Self

from rig.playground.cast import Voice
from rig.playground.show import Show

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


async def talk(show: Show) -> None:
    """Chat until the person has had enough."""
    scene = show.scene
    with Terminal() as terminal:
        voice = await _choose(terminal, show)
        while voice is not None:
            prompt = scene.words("said", place=voice.place, name=voice.name, text="")
            line = await _typed(terminal, f"\n{prompt}", show)
            if line is None or line == ":quit":
                return
            if line == ":who":
                voice = await _choose(terminal, show)
            elif line.startswith(":"):
                show.report(scene.words("help"))
            elif line:
                await _say(show, voice, line)


async def _typed(terminal: Terminal, prompt: str, show: Show) -> str | None:
    """Await a line, and show meanwhile what the bot says later on."""

    async def listen() -> None:
        while True:
            place, text = await show.scene.late_reply()
            show.report("")
            show.line(place, show.scene.words("bot"), text)
            print(prompt, end="", flush=True)

    listening = asyncio.create_task(listen())
    try:
        return await terminal.ask(prompt)
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


async def _choose(terminal: Terminal, show: Show) -> Voice | None:
    """Let the person choose who to be; None at the end of input."""
    words, voices = show.scene.words, show.scene.cast.voices
    show.report(words("choose"))
    for number, voice in enumerate(voices, start=1):
        show.report(words("choice", number=number, name=voice.name, place=voice.place))
    while (choice := await _typed(terminal, words("number"), show)) not in {None, ":quit"}:
        if choice and choice.isdecimal() and 1 <= int(choice) <= len(voices):
            show.report(words("help"))
            return voices[int(choice) - 1]
    return None


async def _say(show: Show, voice: Voice, text: str) -> None:
    try:
        show.turn(await show.scene.say(voice, text), echo=False)
    except AssertionError as silence:
        show.report(show.scene.words("silent", silence=silence))
