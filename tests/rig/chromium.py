"""Finds a Chromium on this machine; the tests bring none of their own."""

from __future__ import annotations

import shutil

COMMANDS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC_APPS = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)


class MissingBrowser(Exception):  # noqa: N818
    """There is no browser on this machine that will do. The message says what to install."""


def find_browser() -> str:
    """Return the path of a Chromium or a Chrome.

    Raises:
        MissingBrowser: If there is none on the PATH, nor where macOS keeps its apps.
    """
    for name in (*COMMANDS, *MAC_APPS):
        found = shutil.which(name)
        if found:
            return found
    raise MissingBrowser(
        f"No browser was found: looked for {', '.join(COMMANDS)} on the PATH. "
        "Install Chromium or Chrome (on Debian: apt install chromium)."
    )
