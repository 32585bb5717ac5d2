"""The zip that an operator installs: on a fresh AstrBot, over an older version, and off again."""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

from rig import venvs
from rig.astrbot import PLUGIN, AstrBot
from rig.bank import Bank
from rig.commands import command
from rig.faults import Refuse
from rig.hindsight import HindsightServer
from rig.model import ModelStub, memory_blocks
from rig.proxy import RecordingProxy
from rig.stack import BANK, CHECKOUT, plugin_config

sys.path.insert(0, str(CHECKOUT / "tools"))
import build_zip

MAX_BYTES = 1_000_000
OLDER = "v0.0.9"


def as_older(archive: Path) -> Path:
    """The same zip under an older version."""
    older = archive.with_name("older.zip")
    with zipfile.ZipFile(archive) as source, zipfile.ZipFile(older, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name.endswith("metadata.yaml"):
                content = re.sub(rb"(?m)^version: \S+", f"version: {OLDER}".encode(), content)
            target.writestr(name, content)
    return older


class PackagingTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        pythons = await asyncio.to_thread(venvs.ensure_many, ["astrbot-latest", "hindsight"])
        enter = self.enterAsyncContext
        self.archive = build_zip.build(Path(self.enterContext(tempfile.TemporaryDirectory())))
        self.model = await enter(ModelStub())
        server = await enter(HindsightServer(pythons["hindsight"], embeddings="hashed"))
        self.proxy = await enter(RecordingProxy(server.url))
        self.bank = await enter(Bank(server, BANK))
        self.bot = await enter(AstrBot(pythons["astrbot-latest"], model_url=self.model.base_url))
        self.config = plugin_config(self.proxy.url, server.api_key)

    async def version(self) -> str:
        installed = {one["name"]: one for one in await self.bot.dashboard.plugins()}
        return str(installed[PLUGIN]["version"]) if PLUGIN in installed else ""

    async def configure(self) -> None:
        present = await self.bot.dashboard.plugin_config(PLUGIN)
        await self.bot.dashboard.save_plugin_config(PLUGIN, {**present, **self.config})

    async def documents(self) -> set[str]:
        return {one["original_text"] for one in await self.bank.documents(texts=True)}

    async def uninstall(self, *, delete_config: bool = False, delete_data: bool = False) -> None:
        """Uninstalls it, and fails unless only what was to go is gone."""
        config = self.bot.root / "data" / "config" / f"{PLUGIN}_config.json"
        data, documents = self.bot.plugin_data_dir, await self.documents()
        await self.bot.dashboard.uninstall_plugin(
            PLUGIN, delete_config=delete_config, delete_data=delete_data
        )
        self.assertEqual(await self.version(), "")
        self.assertFalse(self.bot.plugin_dir.exists())
        self.assertEqual(config.exists(), not delete_config)
        self.assertEqual(data.exists(), not delete_data)
        # A turn of just now may have become one more.
        self.assertLessEqual(documents, await self.documents())
        self.assertIn("我住在杭州", "".join(documents))

    async def test_install_update_uninstall(self) -> None:
        onebot, data = self.bot.onebot, self.bot.plugin_data_dir
        self.assertLess(self.archive.stat().st_size, MAX_BYTES)
        await self.bot.dashboard.install_plugin(as_older(self.archive))
        self.assertEqual(await self.version(), OLDER)
        self.assertIn("api_key", await command(onebot, 37101, "status"))
        await self.configure()
        await onebot.ask_private(37101, "我住在杭州，请记住")
        await self.bank.stored("我住在杭州")

        await command(onebot, 37102, "off")
        self.proxy.fault = Refuse()
        await onebot.ask_private(37101, "SAY:更新之前说的话")
        salt = (data / "salt.txt").read_bytes()
        await self.bot.dashboard.install_plugin(self.archive)
        self.proxy.fault = None
        self.assertIn(await self.version(), self.archive.name)
        self.assertNotEqual(await self.version(), OLDER)
        self.assertEqual((data / "salt.txt").read_bytes(), salt)
        await self.bank.stored("更新之前说的话")
        self.assertIn("本聊天关闭了记忆", await command(onebot, 37102, "recall 杭州"))
        self.model.clear()
        await onebot.ask_private(37101, "我住在哪里？")
        self.assertIn("杭州", "".join(memory_blocks(self.model.requests[-1])))

        await self.uninstall()
        self.model.clear()
        await onebot.ask_private(37101, "SAY:卸载之后")
        self.assertEqual(memory_blocks(self.model.requests[-1]), [])

        await self.bot.dashboard.install_plugin(self.archive)
        self.assertEqual((data / "salt.txt").read_bytes(), salt)
        self.assertIn("杭州", await command(onebot, 37101, "recall 杭州"))
        await self.uninstall(delete_config=True)
        await self.bot.dashboard.install_plugin(self.archive)
        self.assertEqual((data / "salt.txt").read_bytes(), salt)
        self.assertIn("api_key", await command(onebot, 37101, "status"))
        await self.uninstall(delete_data=True)
