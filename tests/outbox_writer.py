"""A process that writes turns into an outbox, one for each line of its input, until it is killed.

python outbox_writer.py FOLDER
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import plugin  # noqa: F401 - makes the plugin importable
from astrbot_plugin_hindsight_memory.outbox import Outbox
from support import turn_of


async def main(folder: Path) -> None:
    """Tells of each turn as soon as it is committed and synced."""
    outbox = Outbox(folder, every_n_turns=1, now=time.monotonic)
    while line := await asyncio.to_thread(sys.stdin.readline):
        await outbox.add([turn_of(text=line.strip())])
        await outbox.sync()
        print("committed", flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
