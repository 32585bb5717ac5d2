"""Configuration values -> one frozen, validated `Settings`.

`_conf_schema.json` is the one place that holds defaults, bounds and options. AstrBot checks
neither `options` nor slider bounds when the page is saved, so they are checked here.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx

MAX_PORT = 65535
MAX_BANK_ID_BYTES = 192
"""Hindsight refuses longer bank ids with 400."""

Problem = Literal[
    "api_key_missing", "api_key_invalid", "bank_id_missing", "bank_id_invalid", "api_base_invalid"
]
"""A reason why no request can be sent with these settings; also the key of its sentence."""


CONNECTION = ("api_base", "api_key", "bank_id")
"""What is told apart from the other settings: two of them are nobody else's business."""


@dataclass(frozen=True)
class SettingValue:
    """A setting and the value that is used for it.

    Attributes:
        name: Its name with its group, such as `recall.budget`.
        value: The value; None where it is the default of a whole group.
    """

    name: str
    value: bool | float | str | tuple[str, ...] | None


@dataclass(frozen=True)
class RecallSettings:
    """What is asked of Hindsight before a model call."""

    budget: str
    max_tokens: int
    timeout_seconds: float
    min_score: float
    match_umo: bool
    include_profile: bool


@dataclass(frozen=True)
class RetainSettings:
    """What of a chat is stored, when it is sent to Hindsight, and how long it stays there."""

    every_n_turns: int
    idle_seconds: float
    daily_chars: int
    keep_days: int
    bot_answers: bool


@dataclass(frozen=True)
class PrivacySettings:
    """What is taken out of texts before they are kept."""

    redact_secrets: bool
    redact_contacts: bool
    allow_chats: tuple[str, ...]
    deny_chats: tuple[str, ...]


@dataclass(frozen=True)
class CommandSettings:
    """Who may use the commands."""

    members_may_manage: bool
    per_minute: int


@dataclass(frozen=True)
class ToolSettings:
    """Which tools the model is given."""

    recall: bool
    remember: bool


@dataclass(frozen=True)
class Settings:
    """All settings, each of the type and within the bounds that the schema states.

    Attributes:
        problems: Why no request can be sent, empty if all is well.
        replaced: Those whose given values could not be used.
        changed: Those that differ from the defaults, apart from the connection.
    """

    api_base: str
    api_key: str = field(repr=False)
    bank_id: str
    enable_private_memory: bool
    enable_group_memory: bool
    language: str
    separate_personas: bool
    recall: RecallSettings
    retain: RetainSettings
    privacy: PrivacySettings
    commands: CommandSettings
    tools: ToolSettings
    problems: tuple[Problem, ...] = ()
    replaced: tuple[SettingValue, ...] = ()
    changed: tuple[SettingValue, ...] = ()


def load_settings(config: Mapping[str, Any], schema: Mapping[str, Any]) -> Settings:
    """Validates what the settings page holds.

    Args:
        config: The values as AstrBot hands them over; anything may be missing or wrong.
        schema: The content of `_conf_schema.json`.

    Returns:
        Settings that are safe to use; wrong values are replaced by the nearest allowed one.
    """
    notes = _Notes()
    values = _read(Settings, config, schema, "", notes)
    connection, problems = _connection(values)
    values.update(connection)
    if values["separate_personas"]:  # nothing but the umo tag keeps personas apart
        values["recall"] = dataclasses.replace(values["recall"], match_umo=True)
    return Settings(
        **values,
        problems=problems,
        replaced=tuple(notes.replaced),
        changed=tuple(notes.changed),
    )


@dataclass
class _Notes:
    """What is noticed while the values are read."""

    replaced: list[SettingValue] = field(default_factory=list)
    changed: list[SettingValue] = field(default_factory=list)


_GROUPS = {
    "recall": RecallSettings,
    "retain": RetainSettings,
    "privacy": PrivacySettings,
    "commands": CommandSettings,
    "tools": ToolSettings,
}


def _read(
    kind: type[Any],
    config: Mapping[str, Any],
    schema: Mapping[str, Any],
    path: str,
    notes: _Notes,
) -> dict[str, Any]:
    """Reads each field of `kind` that the schema knows."""
    values: dict[str, Any] = {}
    for name in (f.name for f in dataclasses.fields(kind) if f.name in schema):
        meta, raw = schema[name], config.get(name)
        if meta["type"] == "object":
            group = raw if isinstance(raw, Mapping) else {}
            if raw is not None and not isinstance(raw, Mapping):
                notes.replaced.append(SettingValue(name, None))
            inner = _read(_GROUPS[name], group, meta["items"], f"{name}.", notes)
            values[name] = _GROUPS[name](**inner)
        else:
            values[name] = _checked(path + name, raw, meta, notes)
    return values


def _checked(path: str, raw: Any, meta: Mapping[str, Any], notes: _Notes) -> Any:
    """Returns `raw` if the schema allows it, else the nearest allowed value, and notes it."""
    default = _convert(meta["default"], meta["type"])
    if raw is None:
        return default
    try:
        value = allowed = _convert(raw, meta["type"])
    except (TypeError, ValueError, OverflowError):
        value, allowed = None, default
    if value is not None and "slider" in meta:
        allowed = min(max(value, meta["slider"]["min"]), meta["slider"]["max"])
        allowed = _convert(allowed, meta["type"])
    if value is not None and "options" in meta and value not in meta["options"]:
        allowed = default
    if allowed != value:
        notes.replaced.append(SettingValue(path, allowed))
    if allowed != default and path not in CONNECTION:
        notes.changed.append(SettingValue(path, allowed))
    return allowed


def _convert(raw: Any, kind: str) -> Any:
    """Converts to the schema's type; raises TypeError or ValueError where that is no such value."""
    if kind in {"int", "float"}:
        return _number(raw, kind)
    if kind == "list" and isinstance(raw, str):
        raw = [raw]
    if not isinstance(raw, _TYPES[kind]):
        raise TypeError
    if kind == "list":
        return tuple(entry for one in raw for entry in _entries(str(one)))
    return raw


def _entries(text: str) -> list[str]:
    """Takes apart several entries typed into one field, so that they exclude whom they name.

    A blank separates them, or belongs to the name of a platform in a session id; so a part with
    a blank and a colon counts as a whole and in its pieces.
    """
    entries: list[str] = []
    for part in re.split(r"[,，、;；\r\n]+", text):
        words = part.split()
        entries += [part.strip()] if ":" in part and len(words) > 1 else []
        entries += words
    return entries


_TYPES: dict[str, type[Any]] = {"bool": bool, "list": list, "string": str}


def _number(raw: Any, kind: str) -> float:
    """Reads a number, also one that was typed as text; true and false are none."""
    if isinstance(raw, bool):
        raise TypeError
    number = float(raw)
    if math.isnan(number):
        raise ValueError
    return int(number) if kind == "int" else number


def _connection(values: Mapping[str, Any]) -> tuple[dict[str, str], tuple[Problem, ...]]:
    """Cleans address, key and bank id of what people paste, and names what cannot be used."""
    problems: list[Problem] = []
    api_base = re.sub(r"(/v1)?/*$", "", values["api_base"].strip())
    if not _is_address(api_base):
        problems.append("api_base_invalid")
    api_key = re.sub(r"^bearer(?:\s+|$)", "", values["api_key"].strip(), flags=re.IGNORECASE)
    if not api_key:
        problems.append("api_key_missing")
    elif not re.fullmatch(r"[!-~]+", api_key):
        problems.append("api_key_invalid")
    bank_id = values["bank_id"].strip()
    if not bank_id:
        problems.append("bank_id_missing")
    elif not _is_bank_id(bank_id):
        problems.append("bank_id_invalid")
    return {"api_base": api_base, "api_key": api_key, "bank_id": bank_id}, tuple(problems)


def _is_address(text: str) -> bool:
    """Whether the text is an http(s) address that a path can be appended to."""
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        return False
    plain = not url.userinfo and not re.search(r"[?#]", text)
    port = url.port is None or 0 < url.port <= MAX_PORT
    return url.scheme in {"http", "https"} and bool(url.host) and plain and port


def _is_bank_id(text: str) -> bool:
    """Hindsight's rules: no slash (its router fails), no control character, no leading `_`."""
    return (
        len(text.encode("utf-8", "replace")) <= MAX_BANK_ID_BYTES
        and not text.startswith("_")
        and text not in {".", ".."}
        and "/" not in text
        and text.isprintable()
    )
