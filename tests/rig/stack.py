"""All together: a chat model, Hindsight behind a recording proxy, AstrBot with the plugin."""

from __future__ import annotations

import asyncio
import unittest
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, ClassVar

from rig import venvs
from rig.astrbot import PLUGIN, AstrBot
from rig.bank import Bank
from rig.hindsight import HindsightServer
from rig.model import ModelStub
from rig.proxy import RecordingProxy
from rig.running import Running

CHECKOUT = Path(__file__).resolve().parents[2]
BANK = "live"
RECALL_SECONDS = 14.0
"""The longest that the plugin waits for a recall: on a busy machine one takes seconds."""

Json = dict[str, Any]


def plugin_config(url: str, api_key: str, **changes: Any) -> Json:
    """The plugin's settings for a server.

    Args:
        url: Its address.
        api_key: Its key.
        changes: What differs; groups are merged into the ones below.
    """
    config: Json = {
        "api_base": url,
        "api_key": api_key,
        "bank_id": BANK,
        "retain": {"every_n_turns": 1, "idle_seconds": 1.0},
        "recall": {"timeout_seconds": RECALL_SECONDS},
    }
    for key, value in changes.items():
        config[key] = {**config.get(key, {}), **value} if isinstance(value, dict) else value
    return config


class Stack(Running):
    """A whole installation on loopback; use it with `async with`.

    Attributes:
        model: The chat model.
        hindsight: The real Hindsight server.
        proxy: What the plugin talks to; records and breaks.
        bank: The plugin's bank, asked directly.
        bot: AstrBot with the plugin.
    """

    def __init__(
        self,
        hindsight: HindsightServer,
        *,
        astrbot: str = "astrbot-latest",
        overrides: Json | None = None,
        onebots: int = 1,
        extra_plugins: Sequence[Path] = (),
        env: dict[str, str] | None = None,
        **settings: Any,
    ) -> None:
        """Describe it; `start()` runs it.

        Args:
            hindsight: A server that runs and goes on; the plugin's bank is deleted at the end.
            astrbot: Which AstrBot, by the name of its virtual environment.
            overrides: Changes to AstrBot's configuration.
            onebots: How many bot accounts there are.
            extra_plugins: Folders of further plugins.
            env: Further environment variables for AstrBot.
            settings: Changes to the plugin's settings.
        """
        super().__init__()
        self._astrbot = astrbot
        self.hindsight = hindsight
        self._options: Json = {
            "overrides": overrides,
            "onebots": onebots,
            "extra_plugins": extra_plugins,
            "env": env,
        }
        self._settings = settings

    async def _start(self) -> None:
        python = await asyncio.to_thread(venvs.ensure, self._astrbot)
        enter = self._exits.enter_async_context
        self.model = await enter(ModelStub())
        self.proxy = await enter(RecordingProxy(self.hindsight.url))
        self.bank = await enter(Bank(self.hindsight, BANK))
        self._exits.push_async_callback(self.bank.delete)
        self.bot = await enter(self.another_bot(python))

    def another_bot(self, python: Path, **settings: Any) -> AstrBot:
        """A further AstrBot that uses the same servers; start it with `async with`.

        Args:
            python: The Python of its virtual environment.
            settings: More changes to the plugin's settings.
        """
        changes = {**self._settings, **settings}
        return AstrBot(
            python,
            CHECKOUT,
            model_url=self.model.base_url,
            plugin_config=plugin_config(self.proxy.url, self.hindsight.api_key, **changes),
            **self._options,
        )


class StackTest(unittest.TestCase):
    """Live tests that share one stack; test methods are coroutines in its event loop.

    The classes of a module share a Hindsight for each kind of it that they ask for.
    """

    options: ClassVar[Json] = {}
    stack: ClassVar[Stack]
    _runner: ClassVar[asyncio.Runner]
    _servers: ClassVar[dict[tuple[str, str], HindsightServer]] = {}

    @classmethod
    def setUpClass(cls) -> None:
        """Start the stack."""
        cls._runner = asyncio.Runner()
        cls.addClassCleanup(cls._runner.close)
        options = dict(cls.options)
        kind = (options.pop("extraction", "none"), options.pop("embeddings", "e5"))
        if kind not in cls._servers:
            python = venvs.ensure("hindsight")
            server = HindsightServer(python, model=kind[0], embeddings=kind[1])
            asyncio.run(server.start())
            unittest.addModuleCleanup(lambda: asyncio.run(cls._servers.pop(kind).stop()))
            cls._servers[kind] = server
        cls.stack = cls._runner.run(Stack(cls._servers[kind], **options).start())
        cls.addClassCleanup(lambda: cls._runner.run(cls.stack.stop()))

    def setUp(self) -> None:
        """Give the parts short names and forget what the last test did."""
        self.model = self.stack.model
        self.proxy = self.stack.proxy
        self.bank = self.stack.bank
        self.bot = self.stack.bot
        self.proxy.fault = None
        self.proxy.clear()
        self.model.clear()

    def restore_settings(self) -> None:
        """Give the other tests the plugin's settings back when this one has ended."""
        before = self.bot.plugin_config()
        save = self.bot.dashboard.save_plugin_config
        self.addCleanup(lambda: self._runner.run(save(PLUGIN, before)))

    def _callTestMethod(self, method: Callable[[], Coroutine[Any, Any, None]]) -> None:  # noqa: N802
        self._runner.run(method())
