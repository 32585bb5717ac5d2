"""Find a Python, and make the virtual environments that the rig runs in.

Standard library only, and it runs under Python 3.8 too: bootstrap scripts import it under whatever
`python3` there is, long before a newer one has been found.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

CHECKOUT = Path(__file__).resolve().parents[2]
CACHE = CHECKOUT / ".cache"
REQUIREMENTS = CHECKOUT / "tests" / "requirements"

MINIMUM = (3, 12)
NEWEST = (3, 14)
TICK_SECONDS = 10
REEXEC_MARK = "RIG_IN_VENV"

_PROBE = "import ensurepip, venv, sys; print(sys.version_info[0], sys.version_info[1])"


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
def find_python() -> Path:
    """Find a Python that can make virtual environments.

    The running interpreter comes first, then the PATH, then pyenv's versions, then the Windows
    launcher. A candidate is run before it is believed: a shim of a version manager may be on the
    PATH and yet fail.

    Returns:
        The interpreter's path.

    Raises:
        MissingPython: If there is none.
    """
    for _, python in _usable():
        return python
    raise MissingPython(_how_to_get())


@functools.lru_cache(maxsize=None)  # noqa: UP033 - Python 3.8 has no functools.cache
def find_pythons() -> dict[tuple[int, int], Path]:
    """Find a Python of each minor version that will do, in the same places.

    Returns:
        The interpreters' paths by version, the oldest version first.

    Raises:
        MissingPython: If there is none.
    """
    found: dict[tuple[int, int], Path] = {}
    for version, python in _usable():
        if version <= NEWEST:
            found.setdefault(version, python)
    if not found:
        raise MissingPython(_how_to_get())
    return dict(sorted(found.items()))


def _usable() -> Iterator[tuple[tuple[int, int], Path]]:
    """Yield each Python that is new enough and runs, with its version."""
    for candidate in _candidates():
        version = python_version(candidate)
        if version is not None and version >= MINIMUM:
            yield version, candidate


def _candidates() -> Iterator[Path]:
    yield running_python()
    versions = [(3, minor) for minor in range(NEWEST[1], MINIMUM[1] - 1, -1)]
    names = [*(f"python{_dotted(version)}" for version in versions), "python3", "python"]
    for name in names:
        found = shutil.which(name)
        if found:
            yield Path(found)
    yield from _pyenv_pythons()
    yield from _launcher_pythons(versions)


def _pyenv_pythons() -> Iterator[Path]:
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    folders = (root / "versions").glob("3.*")
    for folder in sorted(folders, key=lambda path: _numbers(path.name), reverse=True):
        python = folder / "bin" / "python3"
        if python.exists():
            yield python


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]


def _launcher_pythons(versions: Sequence[tuple[int, int]]) -> Iterator[Path]:
    launcher = shutil.which("py") if os.name == "nt" else None
    if not launcher:
        return
    for version in versions:
        path = _output_of(
            [launcher, f"-{_dotted(version)}", "-c", "import sys; print(sys.executable)"]
        )
        if path:
            yield Path(path)


def running_python() -> Path:
    """Return the interpreter that runs this, seen through a virtual environment to its base."""
    base = getattr(sys, "_base_executable", None)
    if base and Path(base).exists():
        return Path(base)
    return Path(os.path.realpath(sys.executable))


@functools.lru_cache(maxsize=None)  # noqa: UP033 - Python 3.8 has no functools.cache
def python_version(python: Path) -> tuple[int, int] | None:
    """Return an interpreter's version, or None if it does not run or cannot make an environment."""
    if python == running_python():
        complete = importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")
        return sys.version_info[:2] if complete else None
    output = _output_of([str(python), "-c", _PROBE])
    if not output:
        return None
    major, minor = output.split()
    return int(major), int(minor)


def _output_of(command: Sequence[str]) -> str | None:
    """Run a command and return what it printed, or None if it failed in whatever way."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=clean_environment(),
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace").strip() or None


def _how_to_get() -> str:
    version = _dotted(MINIMUM)
    running = _dotted(sys.version_info[:2])
    return (
        f"Python {version} or newer that can make virtual environments was not found: "
        f"looked at the running Python ({running}), python3.x on the PATH, pyenv's versions and, "
        "on Windows, the py launcher. "
        "Get it from your system (on Debian and Ubuntu: apt install python3 python3-venv), "
        f"from pyenv (pyenv install {version}) or from python.org, and try again."
    )


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def clean_environment() -> dict[str, str]:
    """Return this process' environment without what would change another Python's imports."""
    unwanted = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
    return {name: value for name, value in os.environ.items() if name not in unwanted}


# --- Making an environment ------------------------------------------------------------------------


def ensure(
    name: str, python: Path | None = None, report: Callable[[str], None] = print_line
) -> Path:
    """Make a virtual environment, unless it is there and up to date.

    Args:
        name: A key of `VENVS`.
        python: The interpreter to make it from; None for whatever is found.
        report: Gets the lines that tell how it is going.

    Returns:
        The environment's Python.

    Raises:
        MissingPython: If there is no Python to make it from.
        InstallFailed: If it could not be made.
    """
    if python is None and VENVS[name].oldest:
        python = next(iter(find_pythons().values()))
    elif python is None:
        ready = _any_ready(name)
        if ready:
            return ready
        python = find_python()
    version = python_version(python)
    if version is None:
        raise MissingPython(f"{python} does not run, or has no venv and ensurepip modules.")
    folder = _folder(name, version)
    if not _is_ready(name, folder, version):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder.with_name(folder.name + ".lock"), name, report):
            if not _is_ready(name, folder, version):
                _build(name, folder, python, version, report)
    return _python_in(folder)


def ensure_many(
    names: Sequence[str],
    python: Path | None = None,
    report: Callable[[str], None] = print_line,
    workers: int = 2,
) -> dict[str, Path]:
    """Make several virtual environments, a few at a time.

    Args:
        names: Keys of `VENVS`.
        python: The interpreter to make them from; None for whatever is found.
        report: Gets the lines that tell how it is going.
        workers: How many are made at once.

    Returns:
        The Python of each.

    Raises:
        MissingPython: If there is no Python to make them from.
        InstallFailed: If one could not be made.
    """
    with ThreadPoolExecutor(workers) as pool:
        return dict(pool.map(lambda name: (name, ensure(name, python, report)), names))


def _folder(name: str, version: tuple[int, int]) -> Path:
    return CACHE / "venvs" / f"{name}-{_dotted(version)}"


def _python_in(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _stamp_file(folder: Path) -> Path:
    return folder / "rig-stamp"


def _any_ready(name: str) -> Path | None:
    """Return the Python of a finished environment; the running version goes before newer ones."""
    newer = [(3, minor) for minor in range(NEWEST[1], MINIMUM[1] - 1, -1)]
    for version in [sys.version_info[:2], *newer]:
        folder = _folder(name, version)
        if version >= MINIMUM and _is_ready(name, folder, version):
            return _python_in(folder)
    return None


def _is_ready(name: str, folder: Path, version: tuple[int, int]) -> bool:
    try:
        stamp = _stamp_file(folder).read_text("utf-8")
    except OSError:
        return False
    return stamp == _stamp(name, version) and _python_in(folder).exists()


def _stamp(name: str, version: tuple[int, int]) -> str:
    """Return the fingerprint of what an environment is to hold."""
    digest = hashlib.sha256(repr((name, version, VENVS[name])).encode())
    for step in VENVS[name].steps:
        digest.update((REQUIREMENTS / step.file).read_bytes())
    return digest.hexdigest()


def _build(
    name: str,
    folder: Path,
    python: Path,
    version: tuple[int, int],
    report: Callable[[str], None],
) -> None:
    started = time.monotonic()
    report(f"installing {name} (about {VENVS[name].about}) ...")
    with _ticking(name, started, report):
        _clear(folder)
        made = _run_logged([str(python), "-m", "venv", str(folder)])
        if made is not None:
            _give_up(name, made, report)
        for step in VENVS[name].steps:
            failure = _pip_install(folder, step)
            if failure is None:
                continue
            if step.fallback is None:
                _give_up(name, failure, report)
            report(f"{step.file} could not be installed: {step.fallback}")
    _stamp_file(folder).write_text(_stamp(name, version), "utf-8")
    report(f"installed {name} in {time.monotonic() - started:.0f} s")


def _clear(folder: Path) -> None:
    if not folder.exists():
        return
    try:
        shutil.rmtree(str(folder))
    except OSError as error:
        raise InstallFailed(
            f"The outdated folder {folder} is in use ({error}). Delete it and try again."
        ) from error


def _pip_install(folder: Path, step: Step) -> str | None:
    """Install a requirement file; return pip's output if that failed."""
    command = [str(_python_in(folder)), "-m", "pip", "install", "--quiet", "--no-input"]
    command += ["--disable-pip-version-check", "--requirement", str(REQUIREMENTS / step.file)]
    return _run_logged(command + (["--no-deps"] if step.no_deps else []))


def _run_logged(command: Sequence[str]) -> str | None:
    """Run a command; return its output if it failed, None if it did not."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=clean_environment(),
        check=False,
    )
    if done.returncode == 0:
        return None
    return done.stdout.decode("utf-8", "replace") or f"exit code {done.returncode}"


def _give_up(name: str, output: str, report: Callable[[str], None]) -> NoReturn:
    for line in output.splitlines()[-20:]:
        report("    " + line)
    raise InstallFailed(
        f"Installing {name} failed; the lines above say why. "
        "It needs a connection to the package index; what is half done is redone next time."
    )


@contextlib.contextmanager
def _ticking(name: str, started: float, report: Callable[[str], None]) -> Iterator[None]:
    """Tell every few seconds that it still goes on, when somebody watches."""
    done = threading.Event()

    def tick() -> None:
        while not done.wait(TICK_SECONDS):
            report(f"... still installing {name} ({time.monotonic() - started:.0f} s)")

    ticker = threading.Thread(target=tick, daemon=True)
    if sys.stdout.isatty():
        ticker.start()
    try:
        yield
    finally:
        done.set()


@contextlib.contextmanager
def _locked(path: Path, name: str, report: Callable[[str], None]) -> Iterator[None]:
    """Hold a lock file, so that two processes or threads do not make the same thing at once."""
    with path.open("a+b") as file:
        if not _try_lock(file):
            report(f"waiting for another process that installs {name} ...")
            while not _try_lock(file):
                time.sleep(0.2)
        try:
            yield
        finally:
            _unlock(file)


if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: IO[bytes]) -> bool:
        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(file: IO[bytes]) -> bool:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def _unlock(file: IO[bytes]) -> None:
        fcntl.flock(file.fileno(), fcntl.LOCK_UN)


# --- Running a script in an environment -----------------------------------------------------------


def reexec_in(name: str, report: Callable[[str], None] = print_line) -> None:
    """Go on in an environment: run this very command line again with its Python.

    Returns at once when that is where it runs already. Otherwise it does not return.

    Args:
        name: A key of `VENVS`.
        report: Gets the lines that tell how it is going.

    Raises:
        MissingPython: If there is no Python to make the environment from.
        InstallFailed: If it could not be made.
    """
    if os.environ.pop(REEXEC_MARK, None):
        return
    python = ensure(name, report=report)
    if Path(sys.prefix).resolve() == python.parent.parent.resolve():
        return
    command = [str(python), *getattr(sys, "orig_argv", ["", *sys.argv])[1:]]
    os.environ[REEXEC_MARK] = "1"
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "nt":
        sys.exit(subprocess.call(command))
    os.execv(command[0], command)


def run_in(name: str, script: Callable[[], int]) -> int:
    """Run the body of a script in an environment.

    Args:
        name: A key of `VENVS`.
        script: Imports what is installed there, and returns the exit code.

    Returns:
        The exit code; 1 if there is no environment, with the reason printed, 130 after Ctrl-C.
    """
    try:
        reexec_in(name)
        return script()
    except (MissingPython, InstallFailed) as error:
        print_line(str(error))
        return 1
    except KeyboardInterrupt:
        return 130
