"""The servers that the rows share; bots start when a row first asks for them."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rig import venvs
from rig.astrbot import AstrBot
from rig.certificates import loopback_tls
from rig.hindsight import HindsightServer
from rig.model import ModelStub
from rig.running import Running

from bench.line import Line
from bench.options import Options

CHECKOUT = Path(__file__).resolve().parents[2]
OFFICIAL_PLUGIN = Path(__file__).resolve().parent / "official_plugin"
BANK = "bench"

Kind = Literal["none", "plugin", "official"]
"""An AstrBot without memory, with this plugin, or with Hindsight's own client."""

_VENV = {"none": "astrbot-latest", "plugin": "astrbot-latest", "official": "astrbot-bench"}


@dataclass(frozen=True)
class Bot:
    """An AstrBot and its way to Hindsight.

    Attributes:
        kind: What kind of memory it has.
        astrbot: The bot.
        line: The way; nothing passes where there is no memory.
    """

    kind: Kind
    astrbot: AstrBot
    line: Line


class World(Running):
    """A chat model, a Hindsight server, and the bots; use it with `async with`.

    Attributes:
        options: What is asked for.
        model: The chat model; it answers at once.
        hindsight: The server.
        certificate: The file with the certificate of all lines.
    """

    def __init__(self, options: Options) -> None:
        """Describe it; entering it starts the model and the server."""
        super().__init__()
        self.options = options
        self._bots: dict[Kind, Bot] = {}

    async def _start(self) -> None:
        is_compared = self.options.official and "turns" in self.options.rows
        names = ["astrbot-latest", "hindsight", *(["astrbot-bench"] * is_compared)]
        self._pythons = await asyncio.to_thread(venvs.ensure_many, names)
        folder = Path(self._exits.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        self._tls, self.certificate = loopback_tls(folder)
        self.model = await self._exits.enter_async_context(ModelStub())
        server = HindsightServer(self._pythons["hindsight"], embeddings="hashed")
        self.hindsight = await self._exits.enter_async_context(server)

    async def bots(self, *kinds: Kind) -> list[Bot]:
        """Return bots of these kinds, started at the same time if they do not run yet."""
        missing = [kind for kind in kinds if kind not in self._bots]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._start_bot(kind)) for kind in missing]
        self._bots |= dict(zip(missing, (task.result() for task in tasks), strict=True))
        return [self._bots[kind] for kind in kinds]

    async def line(self) -> Line:
        """Open another way to the server."""
        line = Line(self.hindsight.url, self.options.rtt, self._tls)
        return await self._exits.enter_async_context(line)

    def client_tls(self) -> ssl.SSLContext:
        """Return the context of a client that trusts the lines."""
        return ssl.create_default_context(cafile=str(self.certificate))

    @property
    def versions(self) -> dict[str, str]:
        """The versions of the bots that run."""
        return {kind: ".".join(map(str, bot.astrbot.version)) for kind, bot in self._bots.items()}

    async def _start_bot(self, kind: Kind) -> Bot:
        line = await self.line()
        astrbot = AstrBot(
            self._pythons[_VENV[kind]],
            CHECKOUT if kind == "plugin" else None,
            model_url=self.model.base_url,
            plugin_config=self._plugin_config(line) if kind == "plugin" else None,
            extra_plugins=[OFFICIAL_PLUGIN] if kind == "official" else [],
            overrides={"log_level": "INFO"},
            env=self._environment(line),
        )
        return Bot(kind, await self._exits.enter_async_context(astrbot), line)

    def _plugin_config(self, line: Line) -> dict[str, Any]:
        return {
            "api_base": line.url,
            "api_key": self.hindsight.api_key,
            "bank_id": BANK,
            "recall": {"timeout_seconds": self.options.deadline},
        }

    def _environment(self, line: Line) -> dict[str, str]:
        return {
            "SSL_CERT_FILE": str(self.certificate),
            "BENCH_HINDSIGHT_URL": line.url,
            "BENCH_HINDSIGHT_KEY": self.hindsight.api_key,
        }
