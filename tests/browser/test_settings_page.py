"""The settings page in a real browser, and what the running plugin makes of what is saved there."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any, get_args

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.texts import Language, Texts
from rig import venvs
from rig.astrbot import AstrBot
from rig.browser import Browser, Locale, SettingsDialog, WebInterface, translation_of
from rig.commands import command, whole_status
from rig.hindsight import HindsightServer
from rig.model import ModelStub, memory_blocks
from rig.polling import PATIENCE, eventually
from rig.stack import CHECKOUT, StackTest
from support import SCHEMA, leaves

sys.path.insert(0, str(CHECKOUT / "tools"))
import build_zip

FIVE_MINUTES = 300
PERSON = 38001

EVERY_SETTING: dict[str, Any] = {
    "enable_private_memory": True,
    "enable_group_memory": False,
    "language": "zh",
    "separate_personas": True,
    "recall.budget": "low",
    "recall.max_tokens": 1024,
    "recall.timeout_seconds": 2.5,
    "recall.min_score": 0.05,
    "recall.include_profile": True,
    "retain.every_n_turns": 3,
    "retain.idle_seconds": 20,
    "retain.daily_chars": 50000,
    "privacy.redact_secrets": False,
    "privacy.redact_contacts": True,
    "privacy.allow_chats": [str(PERSON), "70001"],
    "privacy.deny_chats": ["70002"],
    "commands.members_may_manage": True,
    "commands.per_minute": 10,
    "tools.recall": True,
    "tools.remember": True,
}


def value_of(config: dict[str, Any], name: str) -> Any:
    for part in name.split("."):
        config = config[part]
    return config


class FirstDayTest(unittest.IsolatedAsyncioTestCase):
    """An operator with the zip, an empty AstrBot and a Hindsight of their own."""

    async def test_from_the_zip_to_the_first_memory_in_five_minutes(self) -> None:
        pythons = await asyncio.to_thread(venvs.ensure_many, ["astrbot-latest", "hindsight"])
        enter = self.enterAsyncContext
        archive = build_zip.build(Path(self.enterContext(tempfile.TemporaryDirectory())))
        model = await enter(ModelStub())
        server = await enter(HindsightServer(pythons["hindsight"]))
        started = time.monotonic()
        bot = await enter(AstrBot(pythons["astrbot-latest"], model_url=model.base_url))
        page = await (await enter(Browser())).page()
        web = WebInterface(page, bot.dashboard.url)
        await web.login()
        await web.install(archive)
        await page.reload()
        self.assertIn("还没有填写 api_key", await self.status(bot))

        dialog = await web.settings()
        await dialog.write("api_base", server.url)
        await dialog.write("api_key", server.api_key)
        await dialog.write("bank_id", "first-day")
        await dialog.save()
        self.assertRegex(await self.status(bot), r"^记忆正常。")

        await bot.onebot.ask_private(PERSON, "我最喜欢的饮料是冰美式，请记住。")

        async def remembered() -> bool:
            await bot.onebot.ask_private(PERSON, "/new")
            await bot.onebot.ask_private(PERSON, "我最喜欢喝什么？")
            return "冰美式" in "".join(memory_blocks(model.requests[-1]))

        await eventually(remembered, PATIENCE, "the first memory", 0.5)
        self.assertLess(time.monotonic() - started, FIVE_MINUTES)

    async def status(self, bot: AstrBot) -> str:
        return await command(bot.onebot, PERSON, "status")


class SettingsPageTest(StackTest):
    options = {"embeddings": "hashed"}

    async def settings(self, browser: Browser, locale: Locale = "zh-CN") -> SettingsDialog:
        web = WebInterface(await browser.page(), self.bot.dashboard.url, locale)
        await web.login()
        return await web.settings()

    async def status(self) -> list[str]:
        return (await whole_status(self.bot.onebot)).split("\n")

    async def test_what_it_does_is_told_in_both_languages(self) -> None:
        async with Browser() as browser:
            web = WebInterface(await browser.page(), self.bot.dashboard.url)
            await web.login()
            shown = await web.about("五步开始", Texts("zh")("about_done"))
        for language in get_args(Language):
            texts = Texts(language)
            for key in ("waiting", "request", "follow_up", "done", "command"):
                with self.subTest(language=language, key=key):
                    self.assertIn(texts(f"about_{key}"), shown)

    async def test_the_key_is_masked(self) -> None:
        async with Browser() as browser:
            dialog = await self.settings(browser)
            key = dialog.field("api_key")
            self.assertEqual(await key.input_value(), self.stack.hindsight.api_key)
            self.assertEqual(await key.get_attribute("type"), "password")
            self.assertEqual(await dialog.field("bank_id").get_attribute("type"), "text")

    async def test_every_setting_can_be_changed(self) -> None:
        self.restore_settings()
        before = self.bot.plugin_config()
        async with Browser() as browser:
            dialog = await self.settings(browser)
            for name, value in EVERY_SETTING.items():
                with self.subTest(name):
                    await dialog.write(name, value)
            await dialog.save()
            saved = self.bot.plugin_config()
            for name, value in EVERY_SETTING.items():
                with self.subTest(name):
                    self.assertEqual(value_of(saved, name), value)
            for name in ("api_base", "api_key", "bank_id"):
                self.assertEqual(saved[name], before[name])
        changed = (
            "改过的设置：enable_group_memory=关闭，language=zh，separate_personas=开启，"
            "recall.budget=low，recall.max_tokens=1024，recall.timeout_seconds=2.5，"
            "recall.min_score=0.05，recall.include_profile=开启，retain.every_n_turns=3，"
            "retain.idle_seconds=20，retain.daily_chars=50000，privacy.redact_secrets=关闭，"
            "privacy.redact_contacts=开启，privacy.allow_chats=2，privacy.deny_chats=1，"
            "commands.members_may_manage=开启，commands.per_minute=10，tools.recall=开启，"
            "tools.remember=开启"
        )
        self.assertIn(changed, await self.status())

    async def test_a_wrong_value_gets_its_warning(self) -> None:
        self.restore_settings()
        async with Browser() as browser:
            dialog = await self.settings(browser)
            await dialog.write("recall.timeout_seconds", 99)
            await dialog.write("bank_id", "my/bank")
            await dialog.write("api_base", "hindsight")
            await dialog.save()
        status = "\n".join(await self.status())
        self.assertIn("recall.timeout_seconds=15", status)
        self.assertIn("bank_id 不能使用", status)
        self.assertIn("api_base 不是可用的地址", status)

    async def test_all_is_explained_in_both_languages(self) -> None:
        groups = [name for name, meta in SCHEMA.items() if meta["type"] == "object"]
        locales: tuple[Locale, ...] = ("zh-CN", "en-US")
        for locale in locales:
            async with Browser() as browser:
                shown = await (await self.settings(browser, locale)).dialog.inner_text()
            shown_ones = [one for one, meta in leaves().items() if not meta.get("invisible")]
            for name in [*groups, *shown_ones]:
                for part, text in translation_of(name, locale).items():
                    if part in ("description", "hint"):
                        with self.subTest(locale=locale, name=name, part=part):
                            self.assertIn(text, shown)


if __name__ == "__main__":
    unittest.main()
