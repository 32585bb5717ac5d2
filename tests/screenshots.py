"""Make the pictures of the README anew.

    python3 tests/screenshots.py [FOLDER]

It needs a Chromium and a font with Chinese characters (on Debian: fonts-noto-cjk).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from html import escape
from pathlib import Path

from rig import venvs

FOLDER = Path(__file__).resolve().parents[1] / "docs"
TERMINAL = """
    <pre style="margin: 0; padding: 24px; font: 15px/1.55 monospace; white-space: pre-wrap;
    color: #d8dee9; background: #20252e">{}</pre>
"""


async def settings_page(folder: Path) -> None:
    """Take the settings page in both languages."""
    from rig.astrbot import AstrBot  # noqa: PLC0415 - needs what was just installed
    from rig.browser import Browser, Locale, WebInterface  # noqa: PLC0415

    config = {"api_key": "hsk_" + "0" * 24, "bank_id": "astrbot"}
    python = await asyncio.to_thread(venvs.ensure, "astrbot-latest")
    bot = AstrBot(python, venvs.CHECKOUT, model_url="http://127.0.0.1:9/v1", plugin_config=config)
    locales: tuple[Locale, ...] = ("zh-CN", "en-US")
    async with bot:
        for locale in locales:
            async with Browser(height=1100) as browser:
                page = await browser.page()
                web = WebInterface(page, bot.dashboard.url, locale)
                await web.login()
                await web.settings()
                await page.screenshot(path=folder / f"settings.{locale}.png", animations="disabled")


async def conversation(folder: Path) -> None:
    """Take what the playground shows."""
    from rig.browser import Browser  # noqa: PLC0415 - needs what was just installed
    from rig.playground.cast import cast  # noqa: PLC0415
    from rig.playground.scene import Scene  # noqa: PLC0415
    from rig.playground.show import Show, perform, summary  # noqa: PLC0415

    lines = ["$ python3 tests/playground.py"]
    async with Scene(cast("zh"), None, venvs.print_line) as scene:
        wrong = await perform(Show(scene, lines.append))
        lines.append(f"\n{summary(scene, wrong)}")
    async with Browser() as browser:
        page = await browser.page()
        await page.set_content(TERMINAL.format(escape("\n".join(lines))))
        await page.locator("pre").screenshot(path=folder / "playground.png")


async def make(folder: Path) -> None:
    """Make all of them."""
    await settings_page(folder)
    await conversation(folder)


def main() -> int:
    """Make the pictures and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="tests/screenshots.py", description="Make the pictures of the README anew."
    )
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, help="where they go")
    folder = parser.parse_args().folder

    def script() -> int:
        folder.mkdir(parents=True, exist_ok=True)
        asyncio.run(make(folder))
        return 0

    return venvs.run_in("browser", script)


if __name__ == "__main__":
    sys.exit(main())
