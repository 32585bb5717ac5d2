"""Loads a state file with many chats and asks it; prints what it found as JSON.

python -m bench.state_probe FOLDER CHATS
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import plugin  # noqa: F401 - makes the plugin importable
from astrbot_plugin_hindsight_memory.scope import STATE_FILE, Hasher, Origin, Scope, ScopeState

_MS = 1000.0
_US = 1e6
_KIB = 1024.0


def scope_of(hasher: Hasher, number: int) -> Scope:
    """Return a private chat."""
    umo = f"bot:FriendMessage:{number}"
    scope = hasher.scope(Origin("aiocqhttp", "private", umo, str(number), ""))
    assert isinstance(scope, Scope)
    return scope


def prepare(folder: Path, chats: int) -> list[Scope]:
    """Make the files; the second half of the chats that are returned is off."""
    hasher = ScopeState.load(folder).hasher
    assert hasher is not None
    scopes = [scope_of(hasher, number) for number in range(chats)]
    file = folder / STATE_FILE
    content = json.loads(file.read_text("utf-8"))
    content["off"] = sorted(scope.chat for scope in scopes[chats // 2 :])
    file.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    return scopes


def measure(folder: Path, chats: int) -> dict[str, float]:
    """Load, ask about each chat, and switch one."""
    scopes = prepare(folder, chats)
    started = time.perf_counter()
    state = ScopeState.load(folder)
    loaded = time.perf_counter()
    off = sum(map(state.is_off, scopes))
    asked = time.perf_counter()
    assert state.fault is None, state.fault
    assert off == chats - chats // 2, off
    state.switch(scopes[0], on=False)
    switched = time.perf_counter()
    return {
        "load": (loaded - started) * _MS,
        "is_off": (asked - loaded) / chats * _US,
        "switch": (switched - asked) * _MS,
        "size": (folder / STATE_FILE).stat().st_size / _KIB,
    }


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), int(sys.argv[2]))))
