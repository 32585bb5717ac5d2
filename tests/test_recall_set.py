"""What the benchmark of recall counts as found, and the dialogues that it plays."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path
from typing import Any

from bench.dialogue import SORTS, Chat, crowded, load
from bench.evidence import clean, met

OWN = Path(__file__).parent / "fixtures" / "recall.json"
LONG = "很" * 59 + "长的一句话。"


class EvidenceTest(unittest.TestCase):
    def test_a_need_is_met_by_one_of_its_texts_and_each_need_counts(self) -> None:
        text = "- 2026-03-04 小明#3fa2c1: 我对花生过敏！\n- 我养了一只猫。"
        needs = [["我对虾过敏", "我对花生过敏"], ["我养了一只狗"], ["我养了一只猫。"]]
        self.assertEqual(met(needs, text), [True, False, True])

    def test_punctuation_width_and_case_are_no_evidence(self) -> None:
        for text in (
            "I CAN'T eat prawns",
            "‘I can’t’ ｅａｔ  prawns…",
            "a: I can't eat prawns (b)",
        ):
            with self.subTest(text):
                self.assertEqual(met([["I can't eat prawns!"]], text), [True])

    def test_a_long_text_is_known_by_its_beginning(self) -> None:
        for text, expected in ((LONG[:60] + "…", True), (LONG[:59], False), (LONG, True)):
            with self.subTest(text):
                self.assertEqual(met([[LONG]], text), [expected])

    def test_nothing_is_found_across_lines_or_in_nothing(self) -> None:
        for needs, text in (([["一二三四"]], "一二\n三四"), ([["！"]], "！"), ([["一"]], "")):
            with self.subTest(needs):
                self.assertEqual(met(needs, text), [False])


class OwnSetTest(unittest.TestCase):
    chats = load(OWN)

    def share_of_chinese(self, parts: str) -> float:
        by_language = [(chat.language, len(getattr(chat, parts))) for chat in self.chats]
        chinese = sum(number for language, number in by_language if language == "zh")
        return chinese / sum(number for _, number in by_language)

    def test_it_is_large_enough_and_mostly_chinese(self) -> None:
        self.assertGreaterEqual(len(self.chats), 6)
        self.assertGreaterEqual(sum(len(chat.turns) for chat in self.chats), 600)
        self.assertGreaterEqual(sum(len(chat.questions) for chat in self.chats), 120)
        for parts in ("turns", "questions"):
            self.assertAlmostEqual(self.share_of_chinese(parts), 2 / 3, delta=0.05)

    def test_there_are_groups_and_questions_of_every_sort(self) -> None:
        people = [len({turn.speaker for turn in chat.turns}) for chat in self.chats]
        kinds = [chat.kind for chat in self.chats]
        self.assertIn((5, "group"), list(zip(people, kinds, strict=True)))
        sorts = [question.sort for chat in self.chats for question in chat.questions]
        for sort in SORTS:
            self.assertGreaterEqual(sorts.count(sort), 15, sort)

    def test_all_evidence_was_said_in_its_chat_and_before_the_question(self) -> None:
        for chat in self.chats:
            for question in chat.questions:
                with self.subTest(chat.name, question=question.words):
                    self.assertTrue(question.needs and all(question.needs))
                    for text in (text for texts in question.needs for text in texts):
                        self.assertIn(text, said(chat))
                    self.assertLess(chat.turns[-1].at, question.at)

    def test_turns_follow_each_other(self) -> None:
        for chat in self.chats:
            times = [turn.at for turn in chat.turns]
            self.assertEqual(times, sorted(times), chat.name)

    def test_no_question_or_turn_before_it_gives_the_answer_away(self) -> None:
        for chat in self.chats:
            for question in chat.questions:
                before = question.before
                told = [question.words, *((before.words, before.answer) if before else ())]
                self.assertEqual(
                    met(question.needs, "\n".join(told)), [False] * len(question.needs)
                )


class CrowdedTest(unittest.TestCase):
    def test_one_large_chat_for_each_language_with_no_other_evidence(self) -> None:
        small = load(OWN)
        chats = crowded(small, 3000)
        self.assertEqual([chat.language for chat in chats], ["zh", "en"])
        for chat in chats:
            was = [one for one in small if one.language == chat.language]
            lines = sum(1 + bool(turn.answer) for turn in chat.turns)
            self.assertIn(lines, (3000, 3001))
            self.assertEqual(chat.questions, tuple(q for one in was for q in one.questions))
            times = [turn.at for turn in chat.turns]
            self.assertEqual(times, sorted(times))
            turns = {turn for one in was for turn in one.turns}
            self.assertLessEqual(turns, set(chat.turns))
            made_up = [turn for turn in chat.turns if turn not in turns]
            words = "\n".join(f"{turn.words}\n{turn.answer}" for turn in made_up)
            needs = [need for question in chat.questions for need in question.needs]
            self.assertFalse(any(met(needs, words)))
            self.assertGreater(len({turn.words for turn in made_up}), 0.9 * len(made_up))

    def test_what_is_large_already_stays(self) -> None:
        small = [one for one in load(OWN) if one.language == "en"]
        (chat,) = crowded(small, 1)
        self.assertEqual(len(chat.turns), sum(len(one.turns) for one in small))


class LoadTest(unittest.TestCase):
    def load(self, **limits: int) -> tuple[Chat, ...]:
        turn = {"at": "2026-03-04T12:00:00+08:00", "speaker": "小明", "words": "在吗"}
        asked: dict[str, Any] = {"at": "2026-03-05T12:00:00+08:00", "needs": [["在吗"]]}
        questions = [{**asked, "words": f"第{n}问"} for n in range(10)]
        questions[5] |= {"speaker": "小红", "before": {"words": "冷", "answer": "是的"}}
        chat: dict[str, Any] = {"name": "a", "kind": "private", "language": "zh", "turns": [turn]}
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "data.json"
            file.write_text(json.dumps({"chats": [{**chat, "questions": questions}] * 3}), "utf-8")
            return load(file, **limits)

    def test_everything_is_read_where_nothing_limits_it(self) -> None:
        chats = self.load()
        self.assertEqual([len(chat.questions) for chat in chats], [10, 10, 10])
        self.assertEqual([chat.number for chat in chats], [0, 1, 2])
        self.assertEqual(chats[0].turns[0].answer, "")
        plain, follow_up = chats[0].questions[4:6]
        self.assertEqual((plain.speaker, plain.sort, plain.before), ("小明", "fact", None))
        self.assertEqual((follow_up.speaker, follow_up.sort), ("小红", "follow-up"))

    def test_a_quick_run_takes_questions_from_everywhere(self) -> None:
        (chat,) = self.load(chats=1, questions=4)
        self.assertEqual([question.words for question in chat.questions], words(0, 2, 5, 7))


def words(*numbers: int) -> list[str]:
    return [f"第{number}问" for number in numbers]


def said(chat: Chat) -> list[str]:
    return [text for turn in chat.turns for text in (turn.words, turn.answer) if clean(text)]
