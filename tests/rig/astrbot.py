"""One AstrBot with a root folder and a process of its own, everything on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import json
import re
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from rig.dashboard import PASSWORD, Dashboard
from rig.model import MODEL
from rig.onebot import SELF_ID, TOKEN, OneBot
from rig.polling import PATIENCE, eventually
from rig.ports import LOOPBACK, free_ports, is_open
from rig.processes import Process
from rig.venvs import clean_environment

PLUGIN = "astrbot_plugin_hindsight_memory"
ADMIN = 20001
START_SECONDS = 2 * PATIENCE
STOP_SECONDS = PATIENCE
NEW_MODEL_SETTING = (4, 28)

_PROVIDER = "stub"
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_NOT_COPIED = (".git", ".cache", "tests", "__pycache__", "*.pyc", ".mypy_cache", ".ruff_cache")

Json = dict[str, Any]


class AstrBot:
    """An AstrBot; use it with `async with`, which starts it and in the end removes it.

    Attributes:
        root: Its root folder.
        version: Its version, such as `(4, 29, 3)`.
        onebots: The QQ side of each of its aiocqhttp platforms; the platforms are called `onebot1`,
            `onebot2` and so on. They connect again by themselves after a restart.
    """

    def __init__(
        self,
        python: Path,
        plugin: Path | None = None,
        *,
        model_url: str,
        plugin_config: Json | None = None,
        overrides: Json | None = None,
        onebots: int = 1,
        extra_plugins: Sequence[Path] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Make it; `start` fills the root folder, unless `prepare` did, and starts the process.

        Args:
            python: The Python of a virtual environment with AstrBot.
            plugin: The folder of the plugin; None for an AstrBot without it.
            model_url: The address of the chat model, with `/v1`.
            plugin_config: The plugin's configuration, as far as it differs from the defaults.
            overrides: Changes to AstrBot's configuration, merged into it.
            onebots: How many bot accounts there are.
            extra_plugins: Folders of further plugins, installed under their own names.
            env: Further environment variables for the process.
        """
        self._python = python
        self._site = _site_packages(python)
        self.version = _installed_version(self._site)
        self._folder = tempfile.TemporaryDirectory(
            prefix="rig-astrbot-", ignore_cleanup_errors=True
        )
        self.root = Path(self._folder.name)
        self._env = {
            **clean_environment(),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
            "ASTRBOT_DISABLE_METRICS": "1",
            "ASTRBOT_DASHBOARD_INITIAL_PASSWORD": PASSWORD,
            **(env or {}),
        }
        self._dashboard_port, *self._onebot_ports = free_ports(1 + onebots)
        self._dashboard: Dashboard | None = None
        self._process: Process | None = None
        self.onebots = [
            OneBot(f"ws://{LOOPBACK}:{port}/ws", self_id=SELF_ID + index)
            for index, port in enumerate(self._onebot_ports)
        ]
        self._model_url = model_url
        self._plugins = {folder.name: folder for folder in extra_plugins}
        if plugin is not None:
            self._plugins[PLUGIN] = plugin
        self._plugin_config = plugin_config
        self._overrides = overrides or {}
        self._prepared = False

    async def __aenter__(self) -> Self:
        try:
            return await self.start()
        except BaseException:
            await self.close()
            raise

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # --- The process ------------------------------------------------------------------------------

    async def prepare(self) -> None:
        """Fill the root folder, once; `configure` and the like work from here on."""
        if not self._prepared:
            filling = asyncio.create_task(asyncio.to_thread(self._fill_root))
            try:
                await asyncio.shield(filling)
            except asyncio.CancelledError:
                # The thread goes on whatever happens here, and must not fill what is removed.
                await asyncio.gather(filling, return_exceptions=True)
                raise
            self._prepared = True

    async def start(self) -> Self:
        """Start it, wait until it listens, and connect the QQ side.

        Raises:
            AssertionError: If it ended or did not listen in time; the message holds the end of its
                log.
        """
        await self.prepare()
        command = [str(self._python.with_name("astrbot")), "run"]
        process = Process(command, log=self.root / "astrbot.log", cwd=self.root, env=self._env)
        self._process = process
        ports = [self._dashboard_port, *self._onebot_ports]

        def settled() -> bool:
            return not process.alive or all(is_open(port) for port in ports)

        try:
            await eventually(settled, START_SECONDS, "AstrBot listens", interval=0.1)
            assert process.alive, f"AstrBot ended with code {process.returncode}"
            for onebot in self.onebots:
                await onebot.connect()
        except AssertionError as error:
            raise AssertionError(f"{error}\n{process.log_tail()}") from None
        return self

    async def stop(self) -> None:
        """Stop it as Ctrl-C does; plugins are told and may finish their work."""
        if self._process:
            self._process.interrupt()
            await self._process.exited(STOP_SECONDS)

    async def sigterm(self) -> None:
        """Stop it as a container runtime does; plugins are not told."""
        if self._process:
            self._process.terminate()
            await self._process.exited(STOP_SECONDS)

    def kill(self) -> None:
        """End it at once."""
        if self._process:
            self._process.kill()

    async def restart(self) -> None:
        """Stop it as Ctrl-C does and start it again."""
        await self.stop()
        await self.start()

    async def close(self) -> None:
        """End it at once and remove its root folder."""
        for onebot in self.onebots:
            await onebot.close()
        if self._dashboard:
            await self._dashboard.close()
        self.kill()
        self._folder.cleanup()

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.alive

    # --- The ways in ------------------------------------------------------------------------------

    @property
    def onebot(self) -> OneBot:
        """The QQ side of the first bot account."""
        return self.onebots[0]

    @property
    def dashboard(self) -> Dashboard:
        """The web interface (the newest AstrBot only)."""
        assert self._bundles_dashboard, "this AstrBot comes without a web interface"
        if self._dashboard is None:
            self._dashboard = Dashboard(self._dashboard_port)
        return self._dashboard

    # --- What it has written ----------------------------------------------------------------------

    def log(self) -> str:
        """Return all that it has logged since the first start, without colours."""
        return _ANSI.sub("", self._process.log()) if self._process else ""

    @property
    def plugin_dir(self) -> Path:
        """The folder of the plugin's code."""
        return self.root / "data" / "plugins" / PLUGIN

    @property
    def plugin_data_dir(self) -> Path:
        """The folder that the plugin keeps its data in."""
        return self.root / "data" / "plugin_data" / PLUGIN

    def conversations(self) -> list[Json]:
        """Return the stored conversations, oldest first, with their parsed `content`."""
        database = self.root / "data" / "data_v4.db"
        rows = _rows(database, "SELECT * FROM conversations ORDER BY inner_conversation_id")
        return [{**row, "content": json.loads(row["content"] or "[]")} for row in rows]

    def outbox(self, query: str) -> list[Json]:
        """Return what the plugin's queue on disk answers to a query."""
        return _rows(self.plugin_data_dir / "outbox.db", query)

    # --- Configuration ----------------------------------------------------------------------------

    def configure(self, overrides: Json) -> None:
        """Merge changes into AstrBot's configuration; they count from the next start on."""
        path = self.root / "data" / "cmd_config.json"
        _write_json(path, _merged(_read_json(path), overrides))

    def config(self) -> Json:
        """Return AstrBot's configuration as its file has it."""
        return _read_json(self.root / "data" / "cmd_config.json")

    def configure_plugin(self, config: Json) -> None:
        """Write the plugin's configuration file; it counts from the next load on."""
        _write_json(self.root / "data" / "config" / f"{PLUGIN}_config.json", config)

    def plugin_config(self) -> Json:
        """Return the plugin's configuration as its file has it."""
        return _read_json(self.root / "data" / "config" / f"{PLUGIN}_config.json")

    @property
    def _bundles_dashboard(self) -> bool:
        return (self._site / "astrbot" / "dashboard" / "dist").is_dir()

    def _fill_root(self) -> None:
        self._initialise()
        self._write_config()
        for name, folder in self._plugins.items():
            copy_plugin(folder, self.root / "data" / "plugins" / name)
        if self._plugin_config is not None:
            self.configure_plugin(self._plugin_config)

    def _initialise(self) -> None:
        if not self._bundles_dashboard:
            self._pretend_dashboard()
        done = subprocess.run(
            [self._python.with_name("astrbot"), "init"],
            cwd=self.root,
            env=self._env,
            input=b"y\n",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=START_SECONDS,
            check=False,
        )
        output = done.stdout.decode("utf-8", "replace")
        assert done.returncode == 0, f"astrbot init failed:\n{output}"
        self._ensure_default_config()

    def _pretend_dashboard(self) -> None:
        """Keep an AstrBot that has no web pages from fetching them."""
        assets = self.root / "data" / "dist" / "assets"
        assets.mkdir(parents=True)
        assets.with_name("index.html").write_text("<!doctype html>", "utf-8")
        (assets / "version").write_text("v" + ".".join(map(str, self.version)), "utf-8")

    def _ensure_default_config(self) -> None:
        """Have AstrBot write its default configuration: old versions do not at `init`."""
        path = self.root / "data" / "cmd_config.json"
        if path.exists():
            return
        script = (
            "import sys; from astrbot.core.config.astrbot_config import AstrBotConfig; "
            "AstrBotConfig(config_path=sys.argv[1])"
        )
        subprocess.run(
            [self._python, "-c", script, path],
            cwd=self.root,
            env=self._env,
            check=True,
            capture_output=True,
            timeout=START_SECONDS,
        )

    def _write_config(self) -> None:
        if self.version >= NEW_MODEL_SETTING:
            model: Json = {"agent_runner": {"config": {"model": {"provider_id": _PROVIDER}}}}
        else:
            model = {"provider_settings": {"default_provider_id": _PROVIDER}}
        self.configure(_loopback_settings(self._dashboard_port))
        self.configure({"platform": self._platforms(), **_model_settings(self._model_url)})
        self.configure(model)
        self.configure(self._overrides)

    def _platforms(self) -> list[Json]:
        return [
            {
                "id": f"onebot{number}",
                "type": "aiocqhttp",
                "enable": True,
                "ws_reverse_host": LOOPBACK,
                "ws_reverse_port": port,
                "ws_reverse_token": TOKEN,
            }
            for number, port in enumerate(self._onebot_ports, start=1)
        ]


def _loopback_settings(dashboard_port: int) -> Json:
    return {
        "dashboard": {
            "host": LOOPBACK,
            "port": dashboard_port,
            "password_change_required": False,
        },
        "admins_id": [str(ADMIN)],
        "platform_settings": {"rate_limit": {"count": 100_000}},
        "log_level": "DEBUG",
        "disable_metrics": True,
    }


def _model_settings(model_url: str) -> Json:
    source = {
        "id": "stub-source",
        "provider": "openai",
        "type": "openai_chat_completion",
        "provider_type": "chat_completion",
        "enable": True,
        "key": ["sk-stub"],
        "api_base": model_url,
        "timeout": 120,
        "proxy": "",
        "custom_headers": {},
    }
    provider = {
        "id": _PROVIDER,
        "provider_source_id": "stub-source",
        "model": MODEL,
        "enable": True,
        "modalities": ["text", "image", "tool_use"],
        "custom_extra_body": {},
        "max_context_tokens": 100_000,
    }
    return {"provider_sources": [source], "provider": [provider]}


# --- Installing a plugin --------------------------------------------------------------------------


def copy_plugin(source: Path, target: Path) -> None:
    """Copy a plugin's folder as its users would get it.

    In a git checkout that is what git tracks or would track; elsewhere it is everything but caches
    and tests.

    Args:
        source: The plugin's folder.
        target: The folder to make.
    """
    files = _git_files(source)
    if Path("metadata.yaml") not in files:
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(*_NOT_COPIED))
        return
    for file in files:
        if (source / file).is_file():
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / file, target / file)


def _git_files(folder: Path) -> list[Path]:
    """Return the files that git tracks or would track, relative to a folder; none without git."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=30, check=False)
    except FileNotFoundError:
        return []
    if done.returncode != 0:
        return []
    return [Path(name) for name in done.stdout.decode("utf-8").split("\0") if name]


# --- Small helpers --------------------------------------------------------------------------------


def _rows(database: Path, query: str) -> list[Json]:
    connection = sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    with contextlib.closing(connection):
        return [dict(row) for row in connection.execute(query)]


def _site_packages(python: Path) -> Path:
    prefix = python.parent.parent
    folders = [*prefix.glob("lib/python3*/site-packages"), *prefix.glob("Lib/site-packages")]
    assert folders, f"{prefix} is not a virtual environment"
    return folders[0]


def _installed_version(site: Path) -> tuple[int, ...]:
    found = list(importlib.metadata.distributions(name="astrbot", path=[str(site)]))
    assert found, f"astrbot is not installed in {site}"
    return tuple(int(number) for number in re.findall(r"\d+", found[0].version)[:3])


def _read_json(path: Path) -> Json:
    data: Json = json.loads(path.read_text("utf-8-sig"))
    return data


def _write_json(path: Path, data: Json) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, ensure_ascii=False, indent=2), "utf-8-sig")


def _merged(base: Json, changes: Json) -> Json:
    """Return a mapping with changes merged in; lists and plain values are replaced."""
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            merged[key] = _merged(old, value)
        else:
            merged[key] = value
    return merged
