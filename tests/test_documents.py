"""What the documents say of the plugin is what the plugin has."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import sys
import tempfile
import unittest
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import httpx
import playground
import plugin
from astrbot_plugin_hindsight_memory.hindsight_http import VERSION
from astrbot_plugin_hindsight_memory.texts import Language
from fake_bank import ROOT
from support import SCHEMA, leaves

PLUGIN = plugin.PACKAGE
MAX_SETTINGS = 25
READMES: dict[Language, str] = {"zh": "README.md", "en": "README_en.md"}
TRANSLATIONS = ("zh-CN", "en-US")


def read(name: str) -> str:
    return (plugin.CHECKOUT / name).read_text("utf-8")


class VersionTest(unittest.TestCase):
    def field(self, name: str) -> str:
        found = re.search(rf'^{name}: "?(.+?)"?$', read("metadata.yaml"), re.MULTILINE)
        assert found, name
        return found[1]

    def test_one_version_everywhere(self) -> None:
        version = VERSION.removeprefix("v")
        self.assertEqual(self.field("version"), f"v{version}")
        self.assertEqual(re.findall(r"^## (\S+)", read("CHANGELOG.md"), re.MULTILINE)[0], version)
        for language, words in (("zh", f"版本 {version}，"), ("en", f"Version {version},")):
            with self.subTest(language):
                text = read(READMES[cast("Language", language)])
                self.assertIn(words, text)
                named = re.findall(rf"{PLUGIN}[-/]v?([0-9]+\.[0-9]+\.[0-9]+)", text)
                self.assertEqual(set(named), {version})

    def test_oldest_astrbot(self) -> None:
        oldest = self.field("astrbot_version").removeprefix(">=")
        for name, words in (
            ("README.md", f"需要 AstrBot {oldest} 或更新"),
            ("README_en.md", f"needs AstrBot {oldest} or newer"),
            ("CHANGELOG.md", f"需要 AstrBot {oldest} 或更新"),
        ):
            with self.subTest(name):
                self.assertIn(words, read(name))


class DependenciesTest(unittest.TestCase):
    def test_httpx_is_the_only_one(self) -> None:
        lines = read("requirements.txt").split()
        self.assertEqual([re.split(r"[<>=~!]", line)[0] for line in lines], ["httpx"])
        self.assertIn("唯一的依赖是 `httpx`", read("README.md"))
        self.assertIn("The only dependency is `httpx`", read("README_en.md"))

    def test_nothing_else_is_imported(self) -> None:
        allowed = sys.stdlib_module_names | {"httpx"}
        for file in plugin.CHECKOUT.glob("*.py"):
            with self.subTest(file.name):
                others = set(self.imported(file)) - allowed
                self.assertEqual(others, {"astrbot"} if file.name == "main.py" else set())

    @staticmethod
    def imported(file: Path) -> Iterator[str]:
        """The packages that a module imports, but for its own."""
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                yield (node.module or "").partition(".")[0]


class SettingsTest(unittest.TestCase):
    def test_number(self) -> None:
        self.assertLessEqual(len(leaves()), MAX_SETTINGS)

    def test_both_translations_have_all_of_the_page_and_nothing_else(self) -> None:
        schema = json.loads(read("_conf_schema.json"))
        for name in TRANSLATIONS:
            with self.subTest(name):
                content = json.loads(read(f".astrbot-plugin/i18n/{name}.json"))
                self.assertEqual(set(content), {"metadata", "config"})
                self.assertEqual(set(content["metadata"]), {"display_name", "short_desc", "desc"})
                self.compare(content["config"], schema, name)

    def compare(self, told: Mapping[str, Any], schema: Mapping[str, Any], path: str) -> None:
        schema = visible(schema)
        self.assertEqual(set(told), set(schema), path)
        for name, meta in schema.items():
            with self.subTest(f"{path}.{name}"):
                own = {"description"} if meta["type"] == "object" else {"description", "hint"}
                own |= {"labels"} & set(meta)
                inner = visible(meta.get("items", {}))
                self.assertEqual(set(told[name]), own | set(inner))
                self.assertEqual(len(told[name].get("labels", ())), len(meta.get("labels", ())))
                for one in own - {"labels"}:
                    self.assertTrue(told[name][one].strip())
                parts = {key: value for key, value in told[name].items() if key not in own}
                self.compare(parts, inner, f"{path}.{name}")

    def test_page_itself_is_in_chinese_and_says_the_same(self) -> None:
        config = json.loads(read(".astrbot-plugin/i18n/zh-CN.json"))["config"]
        for path, meta in visible(leaves()).items():
            with self.subTest(path):
                told = config
                for part in path.split("."):
                    told = told[part]
                for key in ("description", "hint"):
                    self.assertEqual(meta[key], told[key])


def visible(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What the page shows: a setting that goes with the next version is kept, but not shown."""
    return {name: meta for name, meta in schema.items() if not meta.get("invisible")}


def plain_quotes(text: str) -> str:
    return re.sub("[“”]", '"', text)


def call_of(request: httpx.Request) -> tuple[str, str]:
    """Method and path below the bank, `{id}` in the place of an id."""
    path = request.url.path.replace(ROOT, "/", 1)
    kinds = "memories|documents|operations|mental-models"
    return request.method, re.sub(rf"^/({kinds})/(?!recall$|list$).+", r"/\1/{id}", path)


class ZipTest(unittest.TestCase):
    def test_zip_holds_the_plugin_and_nothing_else(self) -> None:
        spec = importlib.util.spec_from_file_location(
            "build_zip", plugin.CHECKOUT / "tools" / "build_zip.py"
        )
        assert spec
        assert spec.loader
        tool = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(tool)
        with tempfile.TemporaryDirectory() as folder:
            file = tool.build(Path(folder))
            self.assertIn(f"dist/{file.name}", read("README.md"))
            self.assertLess(file.stat().st_size, 1_000_000)
            with zipfile.ZipFile(file) as archive:
                names = {name.removeprefix(f"{PLUGIN}/") for name in archive.namelist()}
                for name in READMES.values():
                    text = archive.read(f"{PLUGIN}/{name}").decode()
                    self.assertIn("](docs/", read(name))
                    self.assertNotIn("](docs/", text)
                    self.assertIn(read(name)[-500:], text)
        needed = {one.name for one in plugin.CHECKOUT.glob("*.py")}
        needed |= {"_conf_schema.json", "metadata.yaml", "requirements.txt", "logo.png", "LICENSE"}
        needed |= {f".astrbot-plugin/i18n/{one}.json" for one in TRANSLATIONS}
        self.assertEqual(needed - names, set())
        shown = {*READMES.values(), "CHANGELOG.md"}
        self.assertEqual(names - needed, shown)


class PlaygroundTest(unittest.TestCase):
    def test_key_and_bank_alone_mean_the_cloud(self) -> None:
        for address in ([], ["--api-base", "http://hindsight.test"]):
            with self.subTest(address=address):
                options = playground.parse([*address, "--api-key", "k", "--bank-id", "b"])
                expected = address[-1] if address else SCHEMA["api_base"]["default"]
                self.assertEqual(options.account, (expected, "k", "b"))
        self.assertIsNone(playground.parse(["--webui"]).account)


if __name__ == "__main__":
    unittest.main()
