"""Try the plugin: a scripted chat with a real AstrBot and a real Hindsight, then your own.

    python3 tests/playground.py

Whatever Python starts this: a newer one is looked for, and everything is installed below `.cache`.
"""

from __future__ import annotations

import argparse
import sys

from rig import venvs

CLOUD = "https://api.hindsight.vectorize.io"


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line; `account` tells a Hindsight elsewhere, or is None."""
    parser = argparse.ArgumentParser(
        prog="tests/playground.py",
        description="在真实的 AstrBot 和 Hindsight 上试用本插件：先看一段演示，再自己聊。"
        " A scene with a real AstrBot and a real Hindsight, then a chat of your own.",
    )
    parser.add_argument("--lang", choices=("zh", "en"), default="zh", help="中文 / English")
    parser.add_argument(
        "--raw", action="store_true", help="原样显示保存和注入的内容 / lines as stored and injected"
    )
    parser.add_argument(
        "--webui", action="store_true", help="打开管理面板，直到 Ctrl-C / keep the dashboard open"
    )
    parser.add_argument("--api-base", help=f"别处的 Hindsight / elsewhere: {CLOUD}")
    parser.add_argument("--api-key", help="那里的 API Key / the key there")
    parser.add_argument("--bank-id", help="那里的 bank / the bank there")
    options = parser.parse_args(arguments)
    options.account = None
    if options.api_base or options.api_key or options.bank_id:
        if not (options.api_key and options.bank_id):
            parser.error("--api-key 和 --bank-id 都要给出 / give both --api-key and --bank-id")
        options.account = (options.api_base or CLOUD, options.api_key, options.bank_id)
    return options


def main() -> int:
    """Run the playground and return the exit code."""
    options = parse(sys.argv[1:])

    def script() -> int:
        from rig.playground.main import play  # noqa: PLC0415 - needs what was just installed

        return play(options)

    return venvs.run_in("tools", script)


if __name__ == "__main__":
    sys.exit(main())
