"""The plugin market's load check: an AstrBot without bot, provider and network loads the plugin."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rig import market_load
from rig.astrbot import PLUGIN, copy_plugin
from rig.venvs import clean_environment

LIMIT_SECONDS = 120


@dataclass(frozen=True)
class Loaded:
    """How it went.

    Attributes:
        loaded: Whether AstrBot says that it worked.
        error: What AstrBot says if it did not.
        names: The plugins that AstrBot has then.
        connections: Addresses that something tried to connect to.
        output: All that was printed.
    """

    loaded: bool
    error: str | None
    names: list[str]
    connections: list[str]
    output: str


def load_as_market(python: Path, plugin: Path) -> Loaded:
    """Load a plugin as the market's check does.

    Args:
        python: The Python of a virtual environment with AstrBot.
        plugin: The plugin's folder.

    Raises:
        AssertionError: If the check itself did not come to an end; the message holds its output.
    """
    with tempfile.TemporaryDirectory(prefix="rig-market-") as folder:
        root, result = Path(folder) / "root", Path(folder) / "result.json"
        copy_plugin(plugin, root / "data" / "plugins" / PLUGIN)
        (root / "data" / "config").mkdir()
        # -P: the script's neighbours must not hide AstrBot's packages.
        arguments = [market_load.__file__, str(root), PLUGIN, str(result)]
        done = subprocess.run(
            [str(python), "-P", "-B", *arguments],
            cwd=root,
            env={**clean_environment(), "ASTRBOT_DISABLE_METRICS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        output = done.stdout.decode("utf-8", "replace")
        assert result.exists(), f"the check ended with code {done.returncode}:\n{output}"
        return Loaded(**json.loads(result.read_text("utf-8")), output=output)
