"""Record anew what an older Hindsight answers, for `test_older_hindsight.py`.

    python3 tests/record.py

It installs that Hindsight, which takes 1.5 GB below `.cache`.
"""

from __future__ import annotations

import asyncio
import sys
import unittest
from pathlib import Path

from rig import venvs

TOKENIZERS = "litellm/litellm_core_utils/tokenizers"
"""Without it Hindsight 0.9 downloads one when it starts."""


def record(python: Path) -> bool:
    """Run the tests against real servers, which saves what they answer."""
    # Needs what was just installed.
    import test_older_hindsight as tests  # noqa: PLC0415
    from astrbot_plugin_hindsight_memory.hindsight_client import PROFILE_PENDING  # noqa: PLC0415
    from rig.bank import Bank  # noqa: PLC0415
    from rig.hindsight import HindsightServer  # noqa: PLC0415
    from rig.polling import PATIENCE, eventually  # noqa: PLC0415

    class Server(HindsightServer):
        async def settled(self, bank_id: str) -> None:
            async with Bank(self, bank_id) as bank:
                await bank.settled()

        async def written(self, bank_id: str, profile_id: str) -> None:
            async def refreshed() -> bool:
                page = await bank.request("GET", f"/mental-models/{profile_id}")
                return bool(page.json()["content"].strip() != PROFILE_PENDING)

            async with Bank(self, bank_id) as bank:
                await eventually(refreshed, PATIENCE, "the profile")

    (site,) = python.parent.parent.glob("lib/python*/site-packages")
    environment = {"TIKTOKEN_CACHE_DIR": str(site / TOKENIZERS)}
    good = True
    for case in (tests.WithoutModelTest, tests.WithModelTest):
        with asyncio.Runner() as runner:
            server = Server(python, model=case.model, embeddings="hashed", env=environment)
            runner.run(server.start())
            try:
                case.source = server
                suite = unittest.defaultTestLoader.loadTestsFromTestCase(case)
                good &= unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful()
            finally:
                runner.run(server.stop())
    return good


def main() -> int:
    """Record and return the exit code."""
    return venvs.run_in("tools", lambda: 0 if record(venvs.ensure("hindsight-0.9")) else 1)


if __name__ == "__main__":
    sys.exit(main())
