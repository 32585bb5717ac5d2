"""A mapping that remembers the latest entries only."""

from __future__ import annotations

from collections import OrderedDict

MAX_ENTRIES = 5000
"""Chats or people of whom something is held in memory; each entry is small."""


class Recent[Key, Value](OrderedDict[Key, Value]):
    """Beyond `MAX_ENTRIES` entries, those that were put in first are dropped."""

    def put(self, key: Key, value: Value) -> None:
        """Adds or replaces an entry, which is the latest from then on."""
        self.pop(key, None)
        self[key] = value
        while len(self) > MAX_ENTRIES:
            self.popitem(last=False)
