"""What a message asks the memory for: one clean short line, and whether it wishes to be kept."""

from __future__ import annotations

import re
import unittest

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.cleaning import clean_text
from astrbot_plugin_hindsight_memory.query import (
    MAX_QUERY_UNITS,
    asks_to_forget,
    asks_to_remember,
    build_query,
    halve_query,
    units,
)
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

ANY = st.text(st.characters(codec=None), max_size=60)


class WishTest(unittest.TestCase):
    def test_plain_wishes(self) -> None:
        for words in (
            "请记住我喜欢茶",
            "记下来",
            "帮我记一下",
            "别忘了周五",
            "Remember that I like tea",
            "please remember my birthday",
            "remember I like tea",
            "Don't forget the milk",
        ):
            with self.subTest(words):
                self.assertTrue(asks_to_remember(words))

    def test_wishes_to_be_forgotten(self) -> None:
        for words in (
            "我对青霉素过敏这件事你忘了吧",
            "把我的生日忘掉",
            "请忘掉我说的",
            "忘掉我的车牌",
            "别记住这个",
            "不要记这个",
            "你能忘掉这件事吗？",
            "forget that",
            "Please forget what I said",
            "don't remember this",
            "can you forget that?",
            *("forget everything", "Please forget all of that", "forget all about my birthday"),
        ):
            with self.subTest(words):
                self.assertTrue(asks_to_forget(words))
        for words in (
            *("我忘了带钥匙", "你忘了吗", "你忘了我的生日？", "别忘了这件事", "妈妈把我的生日忘了"),
            *(
                "我差点忘记这件事",
                "忘了说，我住杭州",
                "你是不是忘了我说的",
                "不要忘记我",
                "别记错了",
            ),
            *("Forget all your worries, let's have tea", "forget what others say, be yourself"),
            *("don't forget that", "did you forget it", "I forget what it was called", ""),
        ):
            with self.subTest(words):
                self.assertFalse(asks_to_forget(words))

    def test_no_wishes(self) -> None:
        for words in ("你好", "我喜欢茶", "do you remember?", "I don't remember", "忘了吧", ""):
            with self.subTest(words):
                self.assertFalse(asks_to_remember(words))


class QueryTest(unittest.TestCase):
    LONG = "这是一句足够长的话，不需要前一句。"

    def test_words_as_they_are(self) -> None:
        self.assertEqual(build_query(" 我喜欢\n什么茶？ "), "我喜欢 什么茶？")

    def test_nothing_to_ask(self) -> None:
        for words in ("", "  ", "?!…", "😀", "\u200b", "。。。"):
            with self.subTest(words=ascii(words)):
                self.assertEqual(build_query(words), "")
                self.assertEqual(build_query(words, previous="earlier words"), "")

    def test_short_words_are_preceded_by_the_earlier_ones(self) -> None:
        self.assertEqual(build_query("为什么？", previous="我喜欢\n茶"), "我喜欢 茶 为什么？")
        self.assertEqual(build_query("为什么？"), "为什么？")
        self.assertEqual(build_query(self.LONG, previous="我喜欢茶"), self.LONG)

    def test_newest_text_is_kept(self) -> None:
        for character in "茶x":
            with self.subTest(character):
                query = build_query(character * 5000 + " 最后")
                self.assertLessEqual(units(query), MAX_QUERY_UNITS)
                self.assertGreater(units(query), MAX_QUERY_UNITS - 3)
                self.assertTrue(query.endswith(f"{character} 最后"))

    def test_long_earlier_words_never_push_out_the_new_ones(self) -> None:
        query = build_query("为什么？", previous="茶" * 1000)
        self.assertTrue(query.endswith("为什么？"))
        self.assertLessEqual(units(query), MAX_QUERY_UNITS)

    def test_cut_query_still_has_a_word(self) -> None:
        """The server answers 422 to a query without one."""
        for words in ("hello" + "!" * 2000, "你好" + "。" * 500, "ok" + "😀" * 400):
            with self.subTest(words[:6]):
                query = build_query(words)
                self.assertTrue(query == "" or re.search(r"\w", query), query[:20])

    def test_half_of_a_query(self) -> None:
        query = "一二三四五六七八"
        self.assertEqual(halve_query(query), "五六七八")
        self.assertEqual(halve_query("abcd"), "cd")

    @hypothesis_settings(database=None, deadline=None)
    @given(words=ANY, previous=ANY)
    def test_any_query_is_one_clean_short_line(self, words: str, previous: str) -> None:
        query = build_query(words * 20, previous=previous * 20)
        self.assertLessEqual(units(query), MAX_QUERY_UNITS)
        self.assertEqual(query, clean_text(query))
