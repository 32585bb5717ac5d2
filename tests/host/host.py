"""The adapters of the AstrBot that runs this Python, without any connection.

An adapter is made as AstrBot makes it, and given what its platform would send; the event that it
puts into AstrBot's queue is what a plugin sees.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.metadata
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

SOURCES = "astrbot.core.platform.sources"
PLATFORM_ID = "bot1"

CONFIG: dict[str, dict[str, Any]] = {
    "aiocqhttp": {"ws_reverse_host": "127.0.0.1", "ws_reverse_port": 1},
    "dingtalk": {"client_id": "c", "client_secret": "s"},
    "discord": {"discord_token": "t"},
    "kook": {"kook_bot_token": "t"},
    "lark": {"app_id": "a", "app_secret": "s", "lark_bot_name": "小助手"},
    "line": {"channel_access_token": "t", "channel_secret": "s"},
    "mattermost": {"mattermost_url": "http://127.0.0.1:1", "mattermost_bot_token": "t"},
    "misskey": {"misskey_instance_url": "http://127.0.0.1:1", "misskey_token": "t"},
    "qq_official": {
        "appid": "a",
        "secret": "s",
        "enable_group_c2c": True,
        "enable_guild_direct_message": True,
    },
    "qq_official_webhook": {"appid": "a", "secret": "s"},
    "satori": {},
    "slack": {"bot_token": "t", "app_token": "t", "signing_secret": "s"},
    "telegram": {"telegram_token": "1:t"},
    "webchat": {},
    "wecom": {"corpid": "c", "secret": "s", "port": 1, "token": "t", "encoding_aes_key": "k" * 43},
    "wecom_ai_bot": {
        "port": 1,
        "wecom_ai_bot_name": "小助手",
        "wecom_ai_bot_connection_mode": "webhook",
        "token": "t",
        "encoding_aes_key": "k" * 43,
    },
    "weixin_oc": {},
    "weixin_official_account": {
        "appid": "a",
        "secret": "s",
        "port": 1,
        "token": "t",
        "encoding_aes_key": "k" * 43,
    },
}
"""The least that each adapter needs to be made; the name of each is its key in AstrBot."""


class Host:
    """AstrBot's own classes, in a root folder of its own.

    Attributes:
        version: AstrBot's version, such as `(4, 29, 3)`.
        adapters: The class of each adapter that this AstrBot has, by name.
    """

    def __init__(self) -> None:
        """Import AstrBot; that reads its root folder, so it is set before.

        Raises:
            RuntimeError: Something has imported it already, into the working directory.
        """
        if "astrbot.core" in sys.modules and "ASTRBOT_ROOT" not in os.environ:
            raise RuntimeError("AstrBot was imported without a root folder, make a Host before")
        self.version = tuple(map(int, importlib.metadata.version("astrbot").split(".")[:3]))
        self._root = tempfile.TemporaryDirectory(prefix="host-tests-")
        os.environ["ASTRBOT_ROOT"] = self._root.name
        importlib.import_module("astrbot.api")  # first, or the oldest AstrBot imports in circles
        for name in _adapter_modules():
            importlib.import_module(name)
        register = importlib.import_module("astrbot.core.platform.register")
        self.adapters: dict[str, type] = dict(register.platform_cls_map)

    def adapter(self, platform: str, **config: Any) -> Any:
        """Make an adapter; it does not connect before it is run."""
        settings = {"type": platform, "id": PLATFORM_ID, "enable": True}
        queue: asyncio.Queue[Any] = asyncio.Queue()
        return self.adapters[platform]({**settings, **CONFIG[platform], **config}, {}, queue)

    @staticmethod
    def event_of(adapter: Any) -> Any:
        """Return the event that the adapter has made."""
        return adapter._event_queue.get_nowait()

    @staticmethod
    def cron_event(umo: str, note: str) -> Any:
        """Return the event with which AstrBot wakes itself for a session."""
        events = importlib.import_module("astrbot.core.cron.events")
        sessions = importlib.import_module("astrbot.core.platform.message_session")
        session = sessions.MessageSession.from_str(umo)
        return events.CronMessageEvent(context=None, session=session, message=note)

    @staticmethod
    def isolate(event: Any) -> None:
        """Rewrite the session as AstrBot does where `unique_session` is on."""
        bus = importlib.import_module("astrbot.core.event_bus")
        if hasattr(bus.EventBus, "_apply_session_isolation"):
            config = {"platform_settings": {"unique_session": True}}
            bus.EventBus._apply_session_isolation(None, event, config)
            return
        stage = importlib.import_module("astrbot.core.pipeline.waking_check.stage")
        if event.message_obj.type.value == "GroupMessage":
            event.session_id = stage.build_unique_session_id(event) or event.session_id


def _adapter_modules() -> list[str]:
    """Return the names of the modules with adapters; some folders are no regular packages."""
    sources = importlib.import_module(SOURCES)
    files = [file for folder in sources.__path__ for file in Path(folder).glob("*/*_adapter.py")]
    return sorted(f"{SOURCES}.{file.parent.name}.{file.stem}" for file in files)
