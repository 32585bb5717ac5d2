"""What a message asks the memory for: one clean short line, and whether it wishes to be kept."""

from __future__ import annotations

import re
import time
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


WISHES_TO_FORGET = (
    "我对青霉素过敏这件事你忘了吧",
    "把我的生日忘掉",
    "请忘掉我说的",
    "忘掉我的车牌",
    "别记住这个",
    "不要记这个",
    "你能忘掉这件事吗？",
    "忘了吧",
    "忘了刚才说的",
    "忘掉刚才的话",
    "刚才说的忘了吧",
    "把刚才那句忘掉吧",
    "这件事你忘了吧",
    "帮我忘掉这件事",
    "请把我的地址忘了",
    "请你忘记我的电话",
    "别记这件事",
    "这个不用记住",
    "把关于我的记忆删掉",
    "删除我的记忆",
    "forget that",
    "Please forget what I said",
    "don't remember this",
    "can you forget that?",
    "just forget it",
    "forget about my address",
    "forget my birthday",
    "please forget my phone number",
    "could you please forget what I told you",
    "I want you to forget that",
    "you can forget that now",
    "delete that memory",
    "Delete what I said about my job",
    "Erase my memories please",
    "Sorry, forget that",
    "Don't store this",
    "Actually forget everything I said",
    "ok now forget it",
    "我对青霉素过敏这件事，你忘了吧",
    "好了，忘了吧，我们聊点别的",
    "Don’t remember this",
)
"""Somebody tells the bot to forget something."""
NO_WISHES_TO_FORGET = (
    "别忘了明天开会",
    "别忘了我的生日",
    "我忘了带伞",
    "我又忘了带伞",
    "我把伞忘了",
    "我忘记密码了",
    "don't forget my birthday",
    "Don't forget that I am allergic to nuts",
    "please don't forget that",
    "她让我把这件事忘了吧",
    "我老婆说忘了吧，我做不到",
    "我想忘了他",
    "我想忘了这件事，可是做不到",
    "我要忘了这段感情",
    "你怎么忘了我说的话",
    "请不要忘了我们的约定",
    "请别忘了把伞带上",
    "你可千万别忘了这件事",
    "我永远不会忘了这件事",
    "我妈把钥匙忘了",
    "都忘了，我早都忘了",
    "大家都忘了我的生日",
    "他们都忘了我的生日",
    "同事全忘了我的生日",
    "他快忘了我了",
    "她就忘了我说的话",
    "他把我的生日忘了",
    "他把我的生日忘了吧？",
    "我可能把钥匙忘在家里了吧",
    "是不是忘了吧台的钱",
    "你忘了吗",
    "你是不是把我忘了",
    "请记住别删除照片",
    "帮我把手机里的照片删掉，清理一下记忆卡",
    "我昨天把记忆卡删掉了",
    "我删除了那段记忆",
    "怎么删除记忆",
    "别记得这么清楚嘛",
    "别记住了又忘",
    "医生说别记着这事",
    "I will never forget this day",
    "I can't just forget it",
    "How could I forget that day",
    "She tends to forget what I say",
    "My grandma will forget everything soon",
    "I tried to forget it",
    "He told me to forget it",
    "We must not forget that",
    "I won't ever forget that",
    "Don't you ever forget this",
    "I do not want to forget this",
    "don't remember what I did yesterday",
    "I don't remember that",
    "I don't remember what he said",
    "they don't remember it",
    "We don't store that at home",
    "I had to delete that app",
    "he will delete it",
    "did you forget what I said?",
    "Let's not forget that",
    "never forget this",
    "I'm afraid I'll forget this",
    "I'd rather forget it than fight",
    "you forget that I hate tea",
    "you always forget what I say",
    "If I forget this again, remind me",
    "remind me before I forget that",
    "我怕忘了这件事，提醒我",
    "提醒我，免得我忘了这个",
    "怕你忘了我说一下，我住杭州",
    "为了不忘记这件事",
    "人老了就忘了这些事",
    "老师说请忘掉这些公式",
    "你忘了我说过我对花生过敏",
    "你忘了我说的了",
    "你忘了这件事",
    "难忘这件事",
    "她说，忘了吧",
    "老师说：“忘掉这些公式”",
    "He said: forget it",
    "我把密码忘记了",
)
"""What is told of somebody's forgetting, or must not be forgotten; it is worth remembering."""


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

    def test_plain_wishes_to_forget_alone(self) -> None:
        self.assertEqual([one for one in WISHES_TO_FORGET if not asks_to_forget(one)], [])
        self.assertEqual([one for one in NO_WISHES_TO_FORGET if asks_to_forget(one)], [])

    def test_long_words_are_read_at_once(self) -> None:
        for part in (
            "这",
            "刚",
            "能",
            "能不能",
            "就",
            "我要你",
            "请把",
            "忘了",
            "please ",
            "you can ",
        ):
            with self.subTest(part):
                started = time.process_time()
                self.assertFalse(asks_to_forget(part * 20_000 + "x"))
                self.assertLess(time.process_time() - started, 5.0)

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
