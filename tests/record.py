"""Record anew what real Hindsights answer, for `test_older_hindsight` and `test_each_hindsight`.

    python3 tests/record.py [NAME ...]

Tests whose name holds none of the names keep their records. It installs Hindsight 0.9 beside the
present one, which takes 1.5 GB below `.cache`.
"""

from __future__ import annotations

import asyncio
import sys
import unittest
from pathlib import Path

from rig import venvs

TOKENIZERS = "litellm/litellm_core_utils/tokenizers"
"""Without it Hindsight 0.9 downloads one when it starts."""

SETTINGS = {
    "HINDSIGHT_API_LLM_TRACE_ENABLED": "true",
    "HINDSIGHT_API_LLM_MAX_RETRIES": "0",
    "HINDSIGHT_API_WORKER_MAX_RETRIES": "0",
    "HINDSIGHT_API_WORKER_TASK_RETRY_BACKOFF_SECONDS": "1",
}
"""What fails must do so soon, and model calls are counted."""


def record(pythons: dict[str, Path], names: list[str]) -> bool:
    """Run the tests against real servers, which saves what they answer.

    Args:
        pythons: That of each release.
        names: Parts of the names of tests; none for all.
    """
    # Needs what was just installed.
    import test_each_hindsight as each  # noqa: PLC0415
    import test_older_hindsight as older  # noqa: PLC0415
    from astrbot_plugin_hindsight_memory.hindsight_client import PROFILE_PENDING  # noqa: PLC0415
    from rig.bank import Bank  # noqa: PLC0415
    from rig.hindsight import HindsightServer  # noqa: PLC0415
    from rig.polling import PATIENCE, eventually  # noqa: PLC0415

    class Server(HindsightServer):
        async def settled(self, bank_id: str) -> None:
            async with Bank(self, bank_id) as bank:
                await bank.settled(60)

        async def written(self, bank_id: str, profile_id: str) -> None:
            async def refreshed() -> bool:
                page = await bank.request("GET", f"/mental-models/{profile_id}")
                return bool(page.json()["content"].strip() != PROFILE_PENDING)

            async with Bank(self, bank_id) as bank:
                await eventually(refreshed, PATIENCE, "the profile")

        async def failing(self, status: int | None) -> None:
            assert self.model
            await (self.model.heal() if status is None else self.model.fail(status))

    loader = unittest.TestLoader()
    if names:
        loader.testNamePatterns = [f"*{name}*" for name in names]
    good = True
    for case in (older.WithoutModelTest, older.WithModelTest, each.OlderTest, each.NewerTest):
        suite = loader.loadTestsFromTestCase(case)
        if not suite.countTestCases():
            continue
        python = pythons[case.release]
        (site,) = python.parent.parent.glob("lib/python*/site-packages")
        environment = SETTINGS | {"TIKTOKEN_CACHE_DIR": str(site / TOKENIZERS)}
        with asyncio.Runner() as runner:
            server = Server(python, model=case.model, embeddings="hashed", env=environment)
            runner.run(server.start())
            try:
                case.source = server
                good &= unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful()
            finally:
                runner.run(server.stop())
    return good


def main() -> int:
    """Record and return the exit code."""

    def recorded() -> int:
        pythons = {"0.9": venvs.ensure("hindsight-0.9"), "1.1": venvs.ensure("hindsight")}
        return 0 if record(pythons, sys.argv[1:]) else 1

    return venvs.run_in("tools", recorded)


if __name__ == "__main__":
    sys.exit(main())
