"""How the plugin's command is typed: what it is called, and the wake prefix before it."""

from __future__ import annotations

import re
from collections.abc import Iterable


def needed_prefixes(platform: str, prefixes: Iterable[str]) -> tuple[str, ...]:
    """What a command is typed behind, one of these; nothing where it need not be.

    Args:
        platform: The adapter's name; Discord's slash commands come without the slash.
        prefixes: AstrBot's wake prefixes.
    """
    return () if platform == "discord" else tuple(prefix for prefix in prefixes if prefix)


def shown_prefix(platform: str, prefixes: Iterable[str]) -> str:
    """What people are told to type before a command's name."""
    return "/" if platform == "discord" else next((one for one in prefixes if one), "")


def as_command(text: str, raw: str, names: Iterable[str], prefixes: tuple[str, ...]) -> str | None:
    """The text of a command, its name in the one case in which AstrBot knows it.

    Args:
        text: What AstrBot has made of the message, without a prefix.
        raw: The message as it was typed.
        names: What the command is called.
        prefixes: See `needed_prefixes`.

    Returns:
        None where the message is no command.
    """
    before = rf"\s*(?:{'|'.join(map(re.escape, prefixes))})\s*" if prefixes else ""
    for name in names:
        typed = r"\s+".join(map(re.escape, name.split())) + r"(?!\S)"
        found = re.match(typed, text, re.IGNORECASE)
        if found and (not prefixes or re.match(before + typed, raw, re.IGNORECASE)):
            return name + text[found.end() :]
    return None
