"""Find a Python, and make the virtual environments that the rig runs in.

Standard library only, and it runs under Python 3.8 too: bootstrap scripts import it under whatever
`python3` there is, long before a newer one has been found.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
CACHE = CHECKOUT / ".cache"
REQUIREMENTS = CHECKOUT / "tests" / "requirements"

MINIMUM = (3, 12)
NEWEST = (3, 14)
TICK_SECONDS = 10
POLL_SECONDS = 0.2

_PROBE = "import ensurepip, venv, sys; print(*sys.version_info[:2])"


class MissingPython(Exception):  # noqa: N818
    """There is no Python on this machine that will do. The message says what to install."""


class InstallFailed(Exception):  # noqa: N818
    """A virtual environment could not be made. The message says which and why."""


@dataclass(frozen=True)
class Step:
    """One call of pip.

    Attributes:
        file: The requirement file.
        no_deps: Install just what it lists.
        fallback: What happens without it; None when nothing works without it.
    """

    file: str
    no_deps: bool = False
    fallback: str | None = None


@dataclass(frozen=True)
class Venv:
    """What a virtual environment holds.

    Attributes:
        steps: The calls of pip that fill it, in order.
        about: How long that takes, in words.
        oldest: Whether it is made from the oldest Python that will do, to test with that one too.
    """

    steps: tuple[Step, ...]
    about: str
    oldest: bool = False


VENVS = {
    "plain": Venv((Step("../../requirements.txt"), Step("plain.txt")), "10 seconds"),
    "tools": Venv((Step("tools.txt"),), "half a minute"),
    "astrbot-latest": Venv((Step("astrbot-latest.txt"),), "2 minutes"),
    "astrbot-minimum": Venv((Step("astrbot-minimum.txt"),), "2 minutes", oldest=True),
    "astrbot-bench": Venv((Step("astrbot-bench.txt"),), "2 minutes"),
    "browser": Venv((Step("tools.txt"), Step("browser.txt")), "a minute"),
    "hindsight-0.9": Venv((Step("hindsight-0.9.txt"),), "2 minutes"),
    "hindsight": Venv(
        (
            Step("hindsight-no-deps.txt", no_deps=True),
            Step("hindsight.txt"),
            Step("hindsight-optional.txt", fallback="the rig falls back to hashed embeddings"),
        ),
        "1 minute",
    ),
}


def print_line(line: str) -> None:
    """Print a line at once, also into a pipe."""
    print(line, flush=True)


# --- Finding a Python -----------------------------------------------------------------------------


@functools.lru_cache(maxsize=None)  # noqa: UP033 - Python 3.8 has no functools.cache
def find_pythons() -> dict[tuple[int, int], Path]:
    """Find a Python of each minor version that can make virtual environments.

    The running interpreter comes first, then the PATH, then pyenv's versions. A candidate is run
    before it is believed: a shim of a version manager may be on the PATH and yet fail.

    Returns:
        The interpreters' paths by version, the oldest version first.

    Raises:
        MissingPython: If there is none.
    """
    found: dict[tuple[int, int], Path] = {}
    for candidate in _candidates():
        version = _version(candidate)
        if version is not None and MINIMUM <= version <= NEWEST:
            found.setdefault(version, candidate)
    if not found:
        least = _dotted(MINIMUM)
        raise MissingPython(
            f"Python {least} or newer that can make virtual environments was not found: looked at "
            f"the running Python ({_dotted(sys.version_info[:2])}), python3.x on the PATH and "
            "pyenv's versions. Get it from your system (on Debian and Ubuntu: apt install python3 "
            f"python3-venv), from pyenv (pyenv install {least}) or from python.org, and try again."
        )
    return dict(sorted(found.items()))


def _candidates() -> Iterator[Path]:
    yield Path(getattr(sys, "_base_executable", "") or sys.executable)
    for name in [*(f"python{_dotted(version)}" for version in _versions()), "python3", "python"]:
        found = shutil.which(name)
        if found:
            yield Path(found)
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(root.glob("versions/3.*/bin/python3"), reverse=True)


def _versions() -> list[tuple[int, int]]:
    """Return all versions that will do; the running one goes before newer ones."""
    newer = [(3, minor) for minor in range(NEWEST[1], MINIMUM[1] - 1, -1)]
    return sorted(newer, key=lambda version: version != sys.version_info[:2])


def _version(python: Path) -> tuple[int, int] | None:
    """Return an interpreter's version, or None if it does not run or cannot make an environment."""
    try:
        done = _run([str(python), "-c", _PROBE], timeout=60)
        major, minor = done.stdout.split() if done.returncode == 0 else ("0", "0")
        return int(major), int(minor)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def clean_environment() -> dict[str, str]:
    """Return this process' environment without what would change another Python's imports."""
    unwanted = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
    return {name: value for name, value in os.environ.items() if name not in unwanted}


def _run(command: Sequence[str], timeout: float | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=clean_environment(),
        encoding="utf-8",
        errors="replace",
        timeout=timeout,
        check=False,
    )


# --- Making an environment ------------------------------------------------------------------------


def ensure(
    name: str,
    version: tuple[int, int] | None = None,
    report: Callable[[str], None] = print_line,
    stopped: threading.Event | None = None,
) -> Path:
    """Make a virtual environment, unless it is there and up to date.

    Args:
        name: A key of `VENVS`.
        version: The Python to make it from, of those that are found; None for any.
        report: Gets the lines that tell how it is going.
        stopped: Ends it, as Ctrl-C does where it runs in the main thread.

    Returns:
        The environment's Python.

    Raises:
        MissingPython: If there is no Python to make it from.
        InstallFailed: If it could not be made.
    """
    if version is None and VENVS[name].oldest:
        version = next(iter(find_pythons()))
    elif version is None:
        ready = (one for one in _versions() if _is_ready(name, one))
        version = next(ready, None) or next(one for one in _versions() if one in find_pythons())
    if not _is_ready(name, version):
        folder = _folder(name, version)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder.with_name(folder.name + ".lock"), name, report):
            if not _is_ready(name, version):
                try:
                    _build(name, version, report, stopped or threading.Event())
                except BaseException:
                    shutil.rmtree(folder, ignore_errors=True)
                    raise
    return _folder(name, version) / "bin" / "python"


def ensure_many(
    names: Sequence[str], report: Callable[[str], None] = print_line
) -> dict[str, Path]:
    """Do as `ensure` does for several, two at a time, and return the Python of each."""
    stopped = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        making = [pool.submit(ensure, name, None, report, stopped) for name in names]
        try:
            return {name: one.result() for name, one in zip(names, making)}  # noqa: B905 - 3.8
        except BaseException:
            stopped.set()
            raise


def _folder(name: str, version: tuple[int, int]) -> Path:
    return CACHE / "venvs" / f"{name}-{_dotted(version)}"


def _is_ready(name: str, version: tuple[int, int]) -> bool:
    folder = _folder(name, version)
    try:
        stamp = (folder / "rig-stamp").read_text("utf-8")
    except OSError:
        return False
    return stamp == _stamp(name, version) and (folder / "bin" / "python").exists()


def _stamp(name: str, version: tuple[int, int]) -> str:
    """Return the fingerprint of what an environment is to hold."""
    digest = hashlib.sha256(repr((name, version, VENVS[name])).encode())
    for step in VENVS[name].steps:
        digest.update((REQUIREMENTS / step.file).read_bytes())
    return digest.hexdigest()


def _build(
    name: str, version: tuple[int, int], report: Callable[[str], None], stopped: threading.Event
) -> None:
    folder, started = _folder(name, version), time.monotonic()
    report(f"installing {name} (about {VENVS[name].about}) ...")
    with _ticking(folder, report):
        python = str(find_pythons()[version])
        code, output = _install([python, "-m", "venv", "--clear", str(folder)], folder, stopped)
        if code:
            raise _failed(name, output, report)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-input"]
        # Most of what is installed is never imported; the rest is compiled by who imports it.
        pip += ["--no-compile", "--disable-pip-version-check"]
        for step in VENVS[name].steps:
            command = [*pip, *(["--no-deps"] if step.no_deps else [])]
            command += ["--requirement", str(REQUIREMENTS / step.file)]
            code, output = _install(command, folder, stopped)
            if code and step.fallback is None:
                raise _failed(name, output, report)
            if code:
                report(f"{step.file} could not be installed: {step.fallback}")
    size = _megabytes(folder)
    (folder / "rig-stamp").write_text(_stamp(name, version), "utf-8")
    report(f"installed {name} in {time.monotonic() - started:.0f} s, {size:.0f} MB")


def _install(command: Sequence[str], folder: Path, stopped: threading.Event) -> tuple[int, str]:
    """Run a step of an installation and return its code and output.

    It has a session of its own, so that Ctrl-C is not mistaken for a step that failed; it ends with
    all that it started. What it downloads lies beside the environment, to be counted and removed.
    """
    if stopped.is_set():
        raise KeyboardInterrupt
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}.") as temporary:
        output = Path(temporary) / "output"
        with output.open("wb") as file:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**clean_environment(), "TMPDIR": temporary},
                start_new_session=True,
            )
        try:
            while process.poll() is None:
                if stopped.wait(POLL_SECONDS):
                    raise KeyboardInterrupt
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return process.returncode, output.read_text("utf-8", "replace")


def _megabytes(folder: Path) -> float:
    """Return how much has been downloaded and unpacked for an environment so far."""
    size = 0
    for beginning in [folder, *folder.parent.glob(f"{folder.name}.*/")]:
        for where, _, files in os.walk(beginning):
            for file in files:
                with contextlib.suppress(OSError):  # it has just been moved
                    size += os.lstat(os.path.join(where, file)).st_size  # noqa: PTH118 - faster
    return size / 1e6


def _failed(name: str, output: str, report: Callable[[str], None]) -> InstallFailed:
    for line in output.splitlines()[-20:]:
        report("    " + line)
    return InstallFailed(
        f"Installing {name} failed; the lines above say why. "
        "It needs a connection to the package index; what is half done is redone next time."
    )


@contextlib.contextmanager
def _ticking(folder: Path, report: Callable[[str], None]) -> Iterator[None]:
    """Tell every few seconds that it still goes on, and how far it is."""
    done, started = threading.Event(), time.monotonic()

    def tick() -> None:
        while not done.wait(TICK_SECONDS):
            seconds, size = time.monotonic() - started, _megabytes(folder)
            report(f"... {folder.name}: {seconds:.0f} s, {size:.0f} MB")

    threading.Thread(target=tick, daemon=True).start()
    try:
        yield
    finally:
        done.set()


@contextlib.contextmanager
def _locked(path: Path, name: str, report: Callable[[str], None]) -> Iterator[None]:
    """Hold a lock file, so that two processes or threads do not make the same thing at once."""
    with path.open("a+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            report(f"waiting for another process that installs {name} ...")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield  # closing the file lets go of the lock


# --- Running a script in an environment -----------------------------------------------------------


def reexec_in(name: str, report: Callable[[str], None] = print_line) -> None:
    """Go on in an environment: run this very script again with its Python.

    Returns at once when that is where it runs already. Otherwise it does not return, unless it
    raises what `ensure` raises.
    """
    python = ensure(name, report=report)
    if Path(sys.prefix).resolve() != python.parent.parent.resolve():
        sys.stdout.flush()
        os.execv(str(python), [str(python), *sys.argv])


def run_in(name: str, script: Callable[[], int]) -> int:
    """Run the body of a script in an environment and return its exit code.

    That is 1 if there is no environment, with the reason printed, and 130 after Ctrl-C, which the
    end of the terminal is as well: what is being installed ends with it.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        reexec_in(name)
        return script()
    except (MissingPython, InstallFailed) as error:
        print_line(str(error))
        return 1
    except KeyboardInterrupt:
        return 130
