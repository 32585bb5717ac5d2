"""AstrBot's web interface in a real browser, used as an operator uses it (the newest AstrBot)."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, Literal

from playwright.async_api import Locator, Page, async_playwright

from rig.astrbot import PLUGIN
from rig.chromium import find_browser
from rig.dashboard import PASSWORD, USERNAME
from rig.running import Running
from rig.stack import CHECKOUT

Locale = Literal["zh-CN", "en-US"]

TIMEOUT_MS = 120_000
# As root, as in containers, Chromium's sandbox does not start; the rest keeps it off the network.
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def schema_of(name: str) -> dict[str, Any]:
    """Return what `_conf_schema.json` says of a setting, such as `recall.budget`."""
    schema = json.loads((CHECKOUT / "_conf_schema.json").read_text("utf-8"))
    group, _, leaf = name.rpartition(".")
    found: dict[str, Any] = (schema[group]["items"] if group else schema)[leaf]
    return found


def translation_of(name: str, locale: Locale) -> dict[str, Any]:
    """Return how the page calls a setting in a language: `description`, `hint`, `labels`."""
    file = CHECKOUT / ".astrbot-plugin" / "i18n" / f"{locale}.json"
    found: dict[str, Any] = json.loads(file.read_text("utf-8"))["config"]
    for part in name.split("."):
        found = found[part]
    return found


class Browser(Running):
    """A browser of its own, without a screen; use it with `async with`."""

    def __init__(self, *, height: int = 900) -> None:
        """Describe it.

        Args:
            height: Of the window, in pixels.
        """
        super().__init__()
        self._height = height

    async def _start(self) -> None:
        executable = find_browser()
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        profile = self._exits.enter_context(folder)
        driver = await self._exits.enter_async_context(async_playwright())
        self._context = await driver.chromium.launch_persistent_context(
            profile,
            executable_path=executable,
            args=list(_FLAGS),
            viewport={"width": 1280, "height": self._height},
        )
        self._exits.push_async_callback(self._context.close)
        self._context.set_default_timeout(TIMEOUT_MS)

    async def page(self) -> Page:
        """Open an empty page."""
        return await self._context.new_page()


class WebInterface:
    """AstrBot's pages, in one language."""

    def __init__(self, page: Page, url: str, locale: Locale = "zh-CN") -> None:
        """Take over a page.

        Args:
            page: An empty one.
            url: The address of the web interface.
            locale: The language to show it in.
        """
        self.page = page
        self._url = url
        self._locale = locale

    async def login(self) -> None:
        """Log in by the form."""
        await self.page.add_init_script(f"localStorage.setItem('astrbot-locale', '{self._locale}')")
        await self.page.goto(self._url)
        await self.page.locator("input[name=username]").fill(USERNAME)
        await self.page.locator("input[name=password]").fill(PASSWORD)
        await self.page.locator("button[type=submit]").click()
        await self.page.wait_for_url(lambda url: "login" not in url)
        await self.page.goto(f"{self._url}/#/extension/plugins#installed")

    async def install(self, archive: Path) -> None:
        """Install a plugin by "install from file"."""
        await self.page.locator("button:has(.mdi-plus)").last.click()
        dialog = self._dialog()
        await dialog.locator("input[type=file]").set_input_files(archive)
        async with self.page.expect_response("**/plugins/install/upload*"):
            await dialog.locator(".v-card-actions button").last.click()

    async def settings(self) -> SettingsDialog:
        """Open the settings of the plugin."""
        card = self.page.locator(".v-card", has_text="Hindsight").last
        await card.locator("button:has(.mdi-cog)").click()
        dialog = SettingsDialog(self._dialog(), self._locale)
        await dialog.row("api_key").wait_for()
        return dialog

    async def about(self, *parts: str) -> str:
        """Open the page of the plugin, with its hooks and its README, and return what it shows.

        Args:
            parts: What stands in parts of the page that come one after the other.
        """
        await self.page.goto(f"{self._url}/#/extension/plugins/{PLUGIN}")
        for part in parts:
            await self.page.get_by_text(part).first.wait_for()
        shown: str = await self.page.locator("body").inner_text()
        return shown

    def _dialog(self) -> Locator:
        return self.page.locator(".v-dialog.v-overlay--active").last


class SettingsDialog:
    """The plugin's settings; they are named as in the schema, such as `recall.budget`."""

    def __init__(self, dialog: Locator, locale: Locale) -> None:
        """Take over the open dialog."""
        self.dialog = dialog
        self._locale = locale

    def row(self, name: str) -> Locator:
        """Return a setting's row: its description, its hint and its field."""
        description = translation_of(name, self._locale)["description"]
        title = self.dialog.page.locator(".property-name").get_by_text(description, exact=True)
        return self.dialog.locator(".config-row").filter(has=title)

    def field(self, name: str) -> Locator:
        """Return the field that is typed into."""
        return self.row(name).locator("input.v-field__input")

    async def write(self, name: str, value: Any) -> None:
        """Give a setting a value by the field that the page shows for it."""
        meta = schema_of(name)
        if meta["type"] == "bool":
            await self.row(name).locator("input[type=checkbox]").set_checked(value)
        elif meta["type"] == "list":
            await self._write_list(name, value)
        elif "options" in meta:
            await self._choose(name, meta["options"].index(value))
        else:
            await self.field(name).fill(str(value))
            await self.field(name).blur()

    async def _choose(self, name: str, index: int) -> None:
        label = translation_of(name, self._locale)["labels"][index]
        await self.row(name).locator(".v-field").click()
        menu = self.dialog.page.locator(".v-menu.v-overlay--active").last
        await menu.get_by_text(label, exact=True).click()

    async def _write_list(self, name: str, entries: list[str]) -> None:
        await self.row(name).get_by_role("button").last.click()
        editor = self.dialog.page.locator(".v-dialog.v-overlay--active").last
        for entry in entries:
            await editor.locator("input").first.fill(entry)
            await editor.locator("input").first.press("Enter")
        await editor.locator(".v-card-actions button").last.click()

    async def save(self) -> None:
        """Save, which reloads the plugin, and wait until the dialog has closed."""
        async with self.dialog.page.expect_response("**/plugins/config*") as saving:
            await self.dialog.locator(".v-card-actions button").first.click()
        answer = await saving.value
        assert answer.ok, await answer.text()
        await self.row("api_key").wait_for(state="hidden")
