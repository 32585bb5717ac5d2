"""What a recall brought, in the order in which it is worth reading; nothing here asks a server."""

from __future__ import annotations

import time
import unittest
from datetime import UTC, datetime
from typing import Any

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.hindsight_types import RecalledMemory
from astrbot_plugin_hindsight_memory.ranking import rank, words_in_common
from support import memory_of

RESULTS = 300
ROUNDS = 5


def said(words: str, who: str = "小明#3fa2c1", **changes: Any) -> RecalledMemory:
    """A line of a chat as a memory."""
    return memory_of(f"{who} (2026-03-04T12:30:05+00:00): {words}", **changes)


def order(*memories: RecalledMemory, query: str, **named: Any) -> list[str]:
    """The ids of what is left, best first."""
    return [memory.memory_id for memory in rank(memories, query, **named)]


class WordsTest(unittest.TestCase):
    def test_what_shares_words_is_found_in_any_script(self) -> None:
        for query, hit, others in (
            ("我的猫叫什么", "我的猫叫年糕", ("周五吃火锅", "去望京")),
            ("what is my cat called", "my cat is Mochi", ("hot pot on Friday", "off to Soho")),
            ("who paints pictures?", "she painted a picture", ("hot pot", "Soho")),
            ("แมวกินอะไร", "แมวของฉัน", ("ตลาด", "พรุ่งนี้")),
            ("ねこの名前", "ねこはモチ", ("金曜日", "鍋")),
            ("내 고양이 이름", "고양이 모찌", ("금요일", "시장")),
            ("как зовут кошку", "кошку зовут Мочи", ("рынок", "пятница")),
        ):
            with self.subTest(query):
                scores = words_in_common([others[0], hit, others[1]], query)
                self.assertEqual([score > 0 for score in scores], [False, True, False])

    def test_a_rare_word_says_more_than_a_common_one(self) -> None:
        scores = words_in_common(["the tea", "the cat", "the rain", "the Mochi"], "the Mochi")
        self.assertEqual(max(scores), scores[3])
        self.assertGreater(scores[3], 3 * scores[0])

    def test_part_of_a_word_is_no_word(self) -> None:
        self.assertEqual(words_in_common(["category", "concatenate"], "cat"), [0, 0])

    def test_nothing_to_compare(self) -> None:
        self.assertEqual(words_in_common([], "cat"), [])
        self.assertEqual(words_in_common(["", "cat"], "？！"), [0, 0])


class RankTest(unittest.TestCase):
    def test_vectors_and_words_outweigh_the_server_without_a_cross_encoder(self) -> None:
        noise = [said(f"不用谢{n}", memory_id=f"n{n}", semantic=0.5) for n in range(9)]
        hit = said("我的猫叫年糕", memory_id="hit", semantic=0.9)
        self.assertEqual(order(*noise, hit, query="我的猫叫什么")[0], "hit")

    def test_with_a_cross_encoder_the_server_weighs_more(self) -> None:
        places = []
        for score in (None, 0.5):
            noise = [
                said(f"猫叫什么{n}", memory_id=f"n{n}", semantic=0.9, reranker=score)
                for n in range(30)
            ]
            hit = said("年糕三岁了", memory_id="hit", semantic=0.1, reranker=score)
            places.append(order(hit, *noise, query="我的猫叫什么").index("hit"))
        self.assertGreater(places[0], 20)
        self.assertLess(places[1], places[0] / 2)

    def test_servers_that_tell_no_scores(self) -> None:
        memories = [said(f"{n}", memory_id=f"{n}") for n in "abc"]
        self.assertEqual(order(*memories, query="猫"), ["a", "b", "c"])

    def test_same_sentence_once(self) -> None:
        self.assertEqual(
            order(
                said("我喜欢茶", memory_id="a"),
                said("我喜欢 茶！", memory_id="b"),
                said("我喜欢茶", "小红#9b1c22", memory_id="c"),
                query="茶",
            ),
            ["a", "c"],
        )

    def test_a_conclusion_or_the_very_fact_it_was_made_of(self) -> None:
        fact = memory_of("小明喜欢茶", memory_id="fact")
        conclusion = memory_of("小明爱喝茶", memory_id="c", kind="observation", sources=("fact",))
        wider = memory_of("爱喝茶的人", memory_id="w", kind="observation", sources=("fact", "x"))
        self.assertEqual(order(fact, conclusion, query="茶"), ["fact"])
        self.assertEqual(order(conclusion, fact, query="茶"), ["c"])
        self.assertEqual(order(fact, wider, query="茶"), ["fact", "w"])

    def test_a_conclusion_in_the_words_of_its_fact(self) -> None:
        fact = said("我喜欢喝龙井茶", memory_id="fact")
        text = "Observation: 小明#3fa2c1: 我喜欢喝龙井茶"
        conclusion = memory_of(text, memory_id="c", kind="observation")
        self.assertEqual(len(order(fact, conclusion, query="茶")), 1)
        self.assertEqual(len(order(conclusion, fact, query="茶")), 1)

    def test_who_asks_and_who_is_named_come_first_among_equals(self) -> None:
        ann = said("周五有空", memory_id="ann", semantic=0.5)
        ben = said("周五没空", "小红#9b1c22", memory_id="ben", semantic=0.5)
        cat = said("周五加班", "小刚#0a0b0c", memory_id="cat", semantic=0.5)
        for asker, query, first in (
            ("#3fa2c1", "周五", {"ann"}),
            ("#0a0b0c", "周五", {"cat"}),
            ("#3fa2c1", "小红周五呢", {"ann", "ben"}),
            ("", "小红#9b1c22 周五呢", {"ben"}),
        ):
            for memories in ((ann, ben, cat), (cat, ben, ann), (ben, cat, ann)):
                with self.subTest(query=query, asker=asker):
                    found = order(*memories, query=query, asker=asker)
                    self.assertEqual(set(found[: len(first)]), first)

    def test_what_waits_here_joins_by_its_words_alone(self) -> None:
        known = [said(f"火锅{n}", memory_id=f"{n}", semantic=0.8) for n in range(20)]
        new, other = said("我的猫叫年糕", memory_id="new"), said("去望京", memory_id="other")
        found = order(*known, query="我的猫叫什么", waiting=[other, new])
        self.assertEqual(found[0], "new")
        self.assertNotIn("other", found)

    def test_a_day_that_is_named(self) -> None:
        window = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC)
        memories = [
            memory_of(f"书{n}", memory_id=f"{n}", mentioned_at=datetime(2026, 3, n, 12, tzinfo=UTC))
            for n in (5, 4, 3, 2, 1)
        ]
        self.assertEqual(order(*memories, query="书", window=window)[0], "1")

    def test_cost_grows_with_the_answer_and_no_faster(self) -> None:
        """Four times the answer costs four times the time; compared to all others, sixteen."""
        words = "我们周末去爬山，路上看到一条蛇，灰的，可能是蝮蛇，大家以后穿高帮的鞋子。"
        query = "4月25号阿岩去了哪座山，看到了什么？"
        few, many = (
            [said(f"{n} {words}", memory_id=f"{n}", semantic=0.8) for n in range(number)]
            for number in (RESULTS, 4 * RESULTS)
        )
        once = min(self.cost(lambda: rank(few, query)) for _ in range(ROUNDS))
        self.assertLess(min(self.cost(lambda: rank(many, query)) for _ in range(ROUNDS)), 9 * once)

    @staticmethod
    def cost(work: Any) -> float:
        started = time.process_time()
        work()
        return time.process_time() - started
