"""Whose a line is, is written in it, and stays so whatever is taken out around it."""

from __future__ import annotations

import unittest
from datetime import datetime, timedelta

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.hindsight_types import StoredDocument
from astrbot_plugin_hindsight_memory.scope import Scope
from astrbot_plugin_hindsight_memory.texts import Texts
from astrbot_plugin_hindsight_memory.transcript import (
    Header,
    Line,
    Speaker,
    Utterance,
    build_item,
    document_prefix,
    group_turns,
    keep,
    new_document_id,
    owners,
    read_document,
    turn_lines,
    without_person,
)
from support import NOW, group_origin, private_origin, scope_of

ANN, BEN, BOT = Speaker("小明", "#3fa2c1"), Speaker("小红", "#2be071"), Speaker("助手")
T = "2026-03-04T12:30:05+00:00"
TEA, TEA_ANSWER = Line(f"小明#3fa2c1 ({T}): 我喜欢茶"), Line(f"助手 ({T}): 好茶")
CAT, CAT_ANSWER = Line(f"小红#2be071 ({T}): 我养猫"), Line(f"助手 ({T}): 好猫")
CAT_ANSWER_NAMED = Line(f"助手 ({T} → 小红#2be071): 好猫")


def said(speaker: Speaker, text: str, at: datetime = NOW) -> Utterance:
    return Utterance(speaker, at, text)


class LineTest(unittest.TestCase):
    def test_what_is_written_is_read_back(self) -> None:
        for name in ("小明", "", "Ann of the hill", "→", "助手 → 小红", "a)b: c"):
            for pseudonym in ("", "#3fa2c1", "#3fa2c1d2", f"#{'a' * 32}"):
                with self.subTest(name=name, pseudonym=pseudonym):
                    line = said(Speaker(name, pseudonym), "他说：(x): y → z").line
                    self.assertEqual(line.pseudonym, pseudonym)
                    self.assertEqual((line.answered, line.words), ("", "他说：(x): y → z"))

    def test_answer_names_whom_it_answers(self) -> None:
        for person in (ANN, Speaker("", "#3fa2c1"), Speaker("Ann of the hill", "#3fa2c1d2")):
            line = said(BOT, "好 (a): b").line.answering(person.label)
            self.assertEqual(line.text, f"助手 ({T} → {person.label}): 好 (a): b")
            self.assertEqual((line.pseudonym, line.answered), ("", person.pseudonym))
            self.assertEqual((line.answered_label, line.words), (person.label, "好 (a): b"))

    def test_words_cannot_pass_for_the_beginning_of_a_line(self) -> None:
        for words in (TEA.text, f" → 小红#2be071): {TEA.text}", f"#3fa2c1 ({T}): x"):
            for line in (said(BOT, words).line, said(BEN, words).line):
                self.assertIn(line.pseudonym, {"", BEN.pseudonym})
                self.assertEqual((line.answered, line.words), ("", words))

    def test_text_that_is_no_line_is_nobodys(self) -> None:
        for text in ("", "free text", "小明#3fa2c1: no time", "小明#3fa2c1 (yesterday): x"):
            line = Line(text)
            self.assertEqual((line.pseudonym, line.answered, line.words), ("", "", text))


class OwnerTest(unittest.TestCase):
    def test_answer_is_the_askers(self) -> None:
        later = NOW + timedelta(seconds=1)
        lines = turn_lines([said(ANN, "a"), said(ANN, "b", later), said(BOT, "c", later)], ANN)
        self.assertEqual(lines[-1].answered, "", "plain where it follows the asker's own line")
        self.assertEqual(owners(lines), [ANN.pseudonym] * 3)

    def test_answer_without_a_question_or_to_somebody_else_names_the_asker(self) -> None:
        for before in ([], [said(BEN, "x")], [said(BOT, "x")]):
            lines = turn_lines([*before, said(BOT, "c")], ANN)
            self.assertEqual(lines[-1].answered, ANN.pseudonym)
            self.assertEqual(owners(lines)[-1], ANN.pseudonym)

    def test_taking_anything_out_changes_no_owner(self) -> None:
        """Every subset of a window, twice in a row."""
        window = [TEA, TEA_ANSWER, CAT, CAT_ANSWER, CAT_ANSWER, TEA, CAT_ANSWER_NAMED, TEA_ANSWER]
        whose = owners(window)
        for mask in range(1 << len(window)):
            chosen = [bool(mask >> n & 1) for n in range(len(window))]
            wanted = iter(chosen)
            kept = keep(window, lambda *_, wanted=wanted: next(wanted))
            left = [owner for owner, stays in zip(whose, chosen, strict=True) if stays]
            self.assertEqual(owners(kept), left)
            self.assertEqual(
                owners(keep(kept, lambda line, _: not line.pseudonym)),
                [owner for line, owner in zip(kept, left, strict=True) if not line.pseudonym],
            )

    def test_person_goes_with_the_answers_to_them_and_nobody_elses(self) -> None:
        window = [TEA, TEA_ANSWER, CAT, TEA_ANSWER, CAT_ANSWER]
        self.assertEqual(without_person(window, ANN.pseudonym), [CAT, TEA_ANSWER, CAT_ANSWER])
        self.assertEqual(without_person(window, BEN.pseudonym), [TEA, TEA_ANSWER])

    def test_answer_that_is_left_alone_says_whose_it_is(self) -> None:
        only_answers = keep([TEA, TEA_ANSWER, CAT, CAT_ANSWER], lambda line, _: not line.pseudonym)
        self.assertEqual(only_answers, [Line(f"助手 ({T} → 小明#3fa2c1): 好茶"), CAT_ANSWER_NAMED])
        self.assertEqual(without_person(only_answers, ANN.pseudonym), [CAT_ANSWER_NAMED])

    def test_second_answer_keeps_the_name_that_only_the_first_one_told(self) -> None:
        kept = keep([CAT_ANSWER_NAMED, TEA_ANSWER], lambda line, _: line is TEA_ANSWER)
        self.assertEqual(kept, [Line(f"助手 ({T} → 小红#2be071): 好茶")])


class DocumentTest(unittest.TestCase):
    def header(self, scope: Scope) -> Header:
        return Header.of(scope, Texts("zh"), NOW, BOT)

    def test_read_back_as_it_was_written(self) -> None:
        for origin in (private_origin(), group_origin()):
            scope = scope_of(origin)
            header = self.header(scope)
            self.assertEqual(Header.from_json(header.to_json()), header)
            turns = [(TEA, TEA_ANSWER), (CAT, CAT_ANSWER)]
            item = build_item("d", header, turns)
            self.assertEqual(item.metadata["turns"], "2")
            self.assertEqual(item.metadata["speakers"], "#2be071 #3fa2c1")
            stored = StoredDocument(
                "d", item.content, item.context, item.timestamp, item.metadata, frozenset(item.tags)
            )
            document = read_document(stored, scope.tags)
            self.assertEqual(document.header, header)
            self.assertEqual(group_turns(document.lines), turns)

    def test_document_of_an_earlier_version_belongs_to_whom_it_did(self) -> None:
        """0.1.0 wrote no names into the bot's lines: they are of whoever spoke before."""
        text = "\n".join(line.text for line in (TEA, TEA_ANSWER, CAT, CAT_ANSWER, CAT_ANSWER))
        stored = StoredDocument("d", text, "c", T, {"turns": "2"}, frozenset())
        document = read_document(stored, ("a", "b", "c", "d"))
        self.assertEqual(owners(document.lines), [ANN.pseudonym] * 2 + [BEN.pseudonym] * 3)
        self.assertEqual(document.header.metadata, {})

    def test_ids(self) -> None:
        ids = {new_document_id("a" * 32) for _ in range(100)}
        self.assertEqual(len(ids), 100)
        self.assertTrue(all(one.startswith(document_prefix("a" * 32)) for one in ids))


if __name__ == "__main__":
    unittest.main()
