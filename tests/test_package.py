"""The package: what it needs, its settings page, its zip, and how it is tried."""

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
from typing import Any

import playground
import plugin
from support import SCHEMA, leaves

PLUGIN = plugin.PACKAGE
TRANSLATIONS = ("zh-CN", "en-US")


def read(name: str) -> str:
    return (plugin.CHECKOUT / name).read_text("utf-8")


def packages(file: Path) -> Iterator[str]:
    """The packages that a module imports, but for its own."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").partition(".")[0]


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
                others = set(packages(file)) - allowed
                self.assertEqual(others, {"astrbot"} if file.name == "main.py" else set())


def visible(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A part of the settings' schema without what the page does not show."""
    return {
        name: meta | {"items": visible(meta["items"])} if "items" in meta else meta
        for name, meta in schema.items()
        if not meta.get("invisible")
    }


class SettingsPageTest(unittest.TestCase):
    def test_both_translations_have_all_of_the_page_and_nothing_else(self) -> None:
        schema = visible(json.loads(read("_conf_schema.json")))
        for name in TRANSLATIONS:
            with self.subTest(name):
                content = json.loads(read(f".astrbot-plugin/i18n/{name}.json"))
                self.assertEqual(set(content), {"metadata", "config"})
                self.assertEqual(set(content["metadata"]), {"display_name", "short_desc", "desc"})
                self.compare(content["config"], schema, name)

    def compare(self, told: Mapping[str, Any], schema: Mapping[str, Any], path: str) -> None:
        self.assertEqual(set(told), set(schema), path)
        for name, meta in schema.items():
            with self.subTest(f"{path}.{name}"):
                own = {"description"} if meta["type"] == "object" else {"description", "hint"}
                own |= {"labels"} & set(meta)
                inner = meta.get("items", {})
                self.assertEqual(set(told[name]), own | set(inner))
                self.assertEqual(len(told[name].get("labels", ())), len(meta.get("labels", ())))
                self.assertTrue(all(told[name][one] for one in own))
                parts = {key: value for key, value in told[name].items() if key not in own}
                self.compare(parts, inner, f"{path}.{name}")

    def test_page_itself_and_market_are_in_chinese_and_say_the_same(self) -> None:
        content = json.loads(read(".astrbot-plugin/i18n/zh-CN.json"))
        for path, meta in leaves(visible(SCHEMA)).items():
            told = content["config"]
            for part in path.split("."):
                told = told[part]
            with self.subTest(path):
                self.assertEqual(told | meta, meta | told)
        for name, value in content["metadata"].items():
            self.assertIn(f"\n{name}: {value}\n", read("metadata.yaml"))


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
                shown = "".join(archive.read(f"{PLUGIN}/{n}").decode() for n in names if "md" in n)
        self.assertNotRegex(shown, r"\]\([^)]*\.png\)")
        patterns = ("*.py", "docs/*.md", "README*.md", ".astrbot-plugin/i18n/*.json")
        expected = {
            one.relative_to(plugin.CHECKOUT).as_posix()
            for pattern in patterns
            for one in plugin.CHECKOUT.glob(pattern)
        }
        expected |= {"_conf_schema.json", "metadata.yaml", "requirements.txt", "logo.png"}
        self.assertEqual(names, expected | {"LICENSE", "CHANGELOG.md"})


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
