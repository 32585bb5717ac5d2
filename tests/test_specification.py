"""The specification: turns of chats with exactly what is asked, injected and stored for each.

`fixtures/*.json` hold them. An expected value changes only on purpose, by hand:

    python tests/test_specification.py --print NAME     shows what the code makes of a case now
    python tests/test_specification.py --list           names all cases

A case has the events of a chat (only what differs from `FakeEvent`'s own values), the bot's
answers, the settings and the memories that the server has. What is stored is expected as its
content and as what its envelope has that differs from the usual one of its kind and language, which
stands in `ENVELOPES`. The clock starts at 2026-03-04 20:30:05 +08:00 and goes on by `STEP` with
each message, or by the seconds that stand in its `after`. The salt is 32 zero bytes.
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import functools
import json
import sys
import tempfile
import unittest
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import plugin
from astrbot_plugin_hindsight_memory.bot_names import BotNames
from astrbot_plugin_hindsight_memory.delivery import DeliveryState
from astrbot_plugin_hindsight_memory.events import EventReader, origin_of
from astrbot_plugin_hindsight_memory.memory import ChatMemory
from astrbot_plugin_hindsight_memory.scope import (
    SALT_BYTES,
    SALT_FILE,
    Scope,
    ScopeState,
    write_private,
)
from astrbot_plugin_hindsight_memory.transcript import TurnRecord, build_item
from fake_events import event_from_json, reader_of
from support import Clock, FakeServer, make_settings, reply, scope_of

FIXTURES = plugin.CHECKOUT / "tests" / "fixtures"
ENVELOPES = FIXTURES / "envelopes.json"
DIALOGUES = FIXTURES / "recall.json"
STARTS_AT = datetime(2026, 3, 4, 20, 30, 5, tzinfo=timezone(timedelta(hours=8)))
STEP = 5
WIDTH = 90
DOCUMENT_ID = "fixed-document-id"


def cases() -> Iterator[dict[str, Any]]:
    """All cases of all files."""
    for path in sorted(set(FIXTURES.glob("*.json")) - {ENVELOPES, DIALOGUES}):
        yield from json.loads(path.read_text("utf-8"))


@functools.cache
def envelopes() -> dict[str, dict[str, Any]]:
    """The usual envelope of an item by its chat's kind and language."""
    found: dict[str, dict[str, Any]] = json.loads(ENVELOPES.read_text("utf-8"))
    return found


def difference(value: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """What differs from the usual (None: missing); of a mapping, what differs in it."""
    found = {}
    for name in {**usual, **value}:
        mine, theirs = value.get(name), usual.get(name)
        if isinstance(mine, dict) and isinstance(theirs, dict):
            mine, theirs = difference(mine, theirs), {}
        if mine != theirs:
            found[name] = mine
    return found


class Chat:
    """One case: a chat from its first message to the item that is stored."""

    def __init__(self, case: Mapping[str, Any], server: FakeServer) -> None:
        self._case = case
        self._server = server
        self._clock = Clock()
        self._started = self._clock.now
        self._bot_names = BotNames(self._clock)
        self._settings = make_settings(**case.get("settings", {}))
        self._records: list[TurnRecord] = []

    async def play(self) -> dict[str, Any]:
        """Says everything, and returns what came of it."""
        client = self._server.client()
        with tempfile.TemporaryDirectory() as folder:
            write_private(Path(folder) / SALT_FILE, "00" * SALT_BYTES)
            state = ScopeState.load(Path(folder))
        to_disk: Any = SimpleNamespace(add=self._add, state=DeliveryState())
        memory = ChatMemory(self._settings, state, client, to_disk, clock=self._clock)
        block = ""
        for turn in self._case["turns"]:
            block = await self._turn(memory, turn)
        await memory.aclose()
        await client.aclose()
        queries = [body["query"] for body in self._server.bodies]
        result = {"queries": queries} | self._item()
        return result | ({"block": block.split("\n")} if "memories" in self._case else {})

    async def _turn(self, memory: ChatMemory, turn: Mapping[str, Any]) -> str:
        readers = [self._reader(values) for values in turn["said"]]
        messages = []
        for reader, values in zip(readers, turn["said"], strict=True):
            messages.append(reader.message(self._later(values.get("after", STEP))))
        recall = memory.start_recall(messages[0])
        block = (await recall).block if recall else ""
        answer = readers[0].said(turn["answer"])
        await memory.remember(messages, answer, self._later(STEP))
        return block

    def _reader(self, values: Mapping[str, Any]) -> EventReader:
        event = event_from_json({k: v for k, v in values.items() if k != "after"})
        scope = scope_of(origin_of(event))
        self._server.otherwise = lambda _: reply(content={"results": self._results(scope)})
        return reader_of(
            event,
            self._case.get("language", "zh"),
            opted_out=self._case.get("opted_out", ()),
            bot_names=self._bot_names,
            **self._case.get("settings", {}).get("privacy", {}),
        )

    def _results(self, scope: Scope) -> list[dict[str, Any]]:
        own = {"type": "world", "tags": list(scope.tags)}
        return [own | memory for memory in self._case.get("memories", ())]

    def _later(self, seconds: float) -> datetime:
        """Lets time go on, and tells what time it is then."""
        self._clock.now += seconds
        return STARTS_AT + timedelta(seconds=self._clock.now - self._started - STEP)

    async def _add(self, record: TurnRecord) -> None:
        self._records.append(record)

    def _item(self) -> dict[str, Any]:
        """The item of all turns: its content as a list of lines, and what its envelope has."""
        if not self._records:
            return {"content": None}
        turns = [record.lines for record in self._records]
        item = build_item(DOCUMENT_ID, self._records[0].header, turns).body()
        content = item.pop("content").split("\n")
        kind = item["metadata"]["kind"]
        usual = envelopes()[f"{kind}-{self._case.get('language', 'zh')}"]
        return {"content": content, "envelope": {"kind": kind} | difference(item, usual)}


async def actual(case: Mapping[str, Any]) -> dict[str, Any]:
    """What the code makes of a case."""
    return await Chat(case, FakeServer()).play()


def readable(value: Any) -> list[str]:
    """A value as lines, invisible characters as escapes."""
    text = rendered(value)
    return "".join(c if c.isprintable() or c == "\n" else escaped(c) for c in text).split("\n")


def rendered(value: Any, indent: str = "") -> str:
    """A value as JSON, on one line where it fits."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, list | dict) or len(indent + line) <= WIDTH:
        return line
    deeper = f"{indent}  "
    if isinstance(value, list):
        inner, (opening, closing) = [rendered(one, deeper) for one in value], "[]"
    else:
        inner = [f"{json.dumps(k)}: {rendered(v, deeper)}" for k, v in value.items()]
        opening, closing = "{}"
    return f"{opening}\n{deeper}" + f",\n{deeper}".join(inner) + f"\n{indent}{closing}"


def escaped(character: str) -> str:
    """A character as JSON escapes it."""
    return json.dumps(character)[1:-1]


class SpecificationTest(unittest.IsolatedAsyncioTestCase):
    async def test_every_case(self) -> None:
        for case in cases():
            with self.subTest(case["name"]):
                found, expected = readable(await actual(case)), readable(case["expected"])
                if found != expected:
                    diff = difflib.unified_diff(expected, found, "specified", "now", lineterm="")
                    self.fail(f"{case['name']}: {case['shows']}\n" + "\n".join(diff))

    def test_size(self) -> None:
        every = list(cases())
        self.assertEqual(len({case["name"] for case in every}), len(every), "names are unique")
        self.assertGreaterEqual(sum(len(case["turns"]) for case in every), 60)
        for language in ("zh", "en"):
            found = [case for case in every if case.get("language", "zh") == language]
            self.assertGreater(len(found), 15, language)


def main(arguments: Sequence[str]) -> int:
    """Shows cases; changes nothing."""
    parser = argparse.ArgumentParser(description="Show cases of the specification.")
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--print", metavar="NAME", help="what the code makes of a case now")
    group.add_argument("--list", action="store_true", help="the names of all cases")
    options = parser.parse_args(arguments)
    for case in cases():
        if options.list:
            print(f"{case['name']}: {case['shows']}")
        elif case["name"] == options.print:
            print("\n".join(readable(asyncio.run(actual(case)))))
            return 0
    return 0 if options.list else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
