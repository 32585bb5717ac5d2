"""Subprocesses that log to a file, can be stopped in several ways and never stay behind.

The ways to stop are POSIX signals: on Windows only `kill` and `wait` do something useful.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rig.polling import eventually


class Process:
    """One subprocess in a session of its own.

    Attributes:
        argv: The command line.
        log_path: The file that its output goes to; a later start appends.
        pid: Its process id, which is also the id of its process group.
    """

    def __init__(
        self,
        argv: Sequence[str | Path],
        *,
        log: Path,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        **popen: Any,
    ) -> None:
        """Start it.

        Args:
            argv: The command line.
            log: The file that gets standard output and standard error.
            cwd: The folder to run in.
            env: The whole environment; None for this process' own.
            popen: More for `subprocess.Popen`, such as `user`.
        """
        self.argv = [str(part) for part in argv]
        self.log_path = log
        prepare = None if sys.platform == "win32" else _heed_interrupts
        with log.open("ab") as output:
            self._popen = subprocess.Popen(
                self.argv,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=prepare,  # noqa: PLW1509 - it makes one system call
                **popen,
            )
        self.pid = self._popen.pid
        self._end = weakref.finalize(self, _end_group, self._popen)

    @property
    def returncode(self) -> int | None:
        """Its exit code, or None while it runs."""
        return self._popen.poll()

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self.returncode is None

    def interrupt(self) -> None:
        """Ask it to stop as Ctrl-C does (SIGINT)."""
        self._signal(signal.SIGINT)

    def terminate(self) -> None:
        """Ask it to stop as a container runtime does (SIGTERM)."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it and all of its process group at once (SIGKILL), and reap it."""
        self._end()

    def wait(self, timeout: float) -> int:
        """Wait until it has ended.

        Args:
            timeout: Seconds until giving up.

        Returns:
            Its exit code.

        Raises:
            AssertionError: If it still runs then; the message holds the end of its log.
        """
        try:
            return self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(self._still_runs(timeout)) from None

    async def exited(self, timeout: float) -> int:
        """Like `wait`, without blocking the event loop."""
        try:
            await eventually(lambda: not self.alive, timeout, "exit", interval=0.02)
        except AssertionError:
            raise AssertionError(self._still_runs(timeout)) from None
        code = self.returncode
        assert code is not None
        return code

    def log(self) -> str:
        """Return all that it has written so far."""
        return self.log_path.read_text("utf-8", "replace") if self.log_path.exists() else ""

    def log_tail(self, lines: int = 40) -> str:
        """Return the last lines that it has written."""
        return "\n".join(self.log().splitlines()[-lines:])

    def _signal(self, number: signal.Signals) -> None:
        if self.alive:
            self._popen.send_signal(number)

    def _still_runs(self, timeout: float) -> str:
        name = Path(self.argv[0]).name
        return f"{name} (pid {self.pid}) still runs after {timeout:g} s:\n{self.log_tail()}"


def _heed_interrupts() -> None:
    """In the child: undo an inherited 'ignore SIGINT', which shells give to background jobs."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _end_group(popen: subprocess.Popen[bytes]) -> None:
    """End a process and what it has started; also called at exit, for those that still run."""
    if sys.platform == "win32":
        popen.kill()
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(popen.pid, signal.SIGKILL)
    popen.wait()
