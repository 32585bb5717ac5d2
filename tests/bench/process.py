"""CPU time and memory of a process, where the system has `/proc`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_MIB = 1024.0
_NS = 1e9
_UTIME = 13
"""Index of the user time in `/proc/<pid>/stat`; the system time follows."""


@dataclass(frozen=True)
class Usage:
    """What a process has used; zeros where the system does not tell.

    Attributes:
        cpu: Seconds of CPU time so far.
        loop: The same of its main thread alone, in which an event loop runs.
        rss: Resident memory in MiB.
        peak: The most that it ever was.
    """

    cpu: float = 0.0
    loop: float = 0.0
    rss: float = 0.0
    peak: float = 0.0

    @classmethod
    def of(cls, pid: int) -> Self:
        """Read it."""
        folder = Path("/proc", str(pid))
        try:
            stat = (folder / "stat").read_text()
            status = (folder / "status").read_text()
            main_thread = (folder / "task" / str(pid) / "schedstat").read_text()
        except OSError:
            return cls()
        fields = dict(line.split(":", 1) for line in status.splitlines())
        loop = int(main_thread.split()[0]) / _NS
        return cls(_cpu_seconds(stat), loop, _mib(fields["VmRSS"]), _mib(fields["VmHWM"]))


def _cpu_seconds(stat: str) -> float:
    """Read user and system time; the name in the second field may hold spaces."""
    pid, _, rest = stat.rpartition(")")
    times = [pid, "", *rest.split()][_UTIME : _UTIME + 2]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def _mib(field: str) -> float:
    return int(field.split(maxsplit=1)[0]) / _MIB
