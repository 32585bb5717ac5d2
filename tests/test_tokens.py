"""The estimate of tokens is never below the real count, and not far above it where people write.

`fixtures/tokens/o200k.json` holds sentences and other texts with their real number of o200k tokens
(counted with toktok-rs 0.3).
"""

from __future__ import annotations

import json
import unittest
from typing import Any

import plugin
from astrbot_plugin_hindsight_memory.tokens import estimate_tokens, fit
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

SAMPLES: list[dict[str, Any]] = json.loads(
    (plugin.CHECKOUT / "tests" / "fixtures" / "tokens" / "o200k.json").read_text("utf-8")
)
CLOSE = ("Chinese", "traditional Chinese", "en")


class EstimateTest(unittest.TestCase):
    def test_never_below_the_real_count(self) -> None:
        self.assertGreater(len(SAMPLES), 40)
        for sample in SAMPLES:
            with self.subTest(sample["name"]):
                self.assertGreaterEqual(estimate_tokens(sample["text"]), sample["tokens"])

    def test_close_where_most_people_write(self) -> None:
        for sample in SAMPLES:
            if sample["name"] in CLOSE:
                with self.subTest(sample["name"]):
                    self.assertLess(estimate_tokens(sample["text"]), 1.25 * sample["tokens"])

    def test_unknown_scripts_cost_their_bytes(self) -> None:
        for text in ("ᚠᚢᚦ", "𐌰𐌱𐌲", "ⵣⴰ", "𠀀𠀁"):
            with self.subTest(text):
                self.assertEqual(estimate_tokens(text), len(text.encode()))

    def test_a_repeated_character_costs_a_token(self) -> None:
        for character in "的长茶":
            with self.subTest(character):
                self.assertGreaterEqual(estimate_tokens(character * 50), 50)


class FitTest(unittest.TestCase):
    @hypothesis_settings(database=None, deadline=None)
    @given(st.text(max_size=80), st.floats(0, 60))
    def test_any_text(self, text: str, limit: float) -> None:
        cut = fit(text, limit)
        if cut != text:
            self.assertLessEqual(estimate_tokens(cut), max(limit, estimate_tokens("…")) + 1)
            self.assertTrue(cut == "" or (cut.endswith("…") and text.startswith(cut[:-1])))

    def test_examples(self) -> None:
        self.assertEqual(fit("short", 10), "short")
        self.assertEqual(fit("we went to the market", 4.5), "we went to…")
        self.assertEqual(fit("猫", 0.5), "")
        self.assertTrue(fit("0123456789abcdef" * 20, 50).endswith("…"))
