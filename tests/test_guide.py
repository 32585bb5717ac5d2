"""The help, and what was meant by what is no command."""

from __future__ import annotations

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.long_answers import MAX_CHARS, MAX_LINES, cut, fits
from astrbot_plugin_hindsight_memory.texts import WORDING, Texts
from commands_case import LANGUAGES, CommandsCase


class GuideTest(CommandsCase):
    async def test_nearest_command(self) -> None:
        for typed, meant in (
            ("forgt 猫", "forget 猫"),
            ("statsu", "status"),
            ("记住我的车牌", "记住 我的车牌"),
            ("忘记我住在杭州", "忘记 我住在杭州"),
            ("暂停半小时", "暂停 半小时"),
            ("列表2", "列表 2"),
            ("概况怎么样", "概况"),
            ("删除 猫", "忘记 猫"),
            ("delete everything", "forget everything"),
            ("wpe", "wipe"),
            ("help forgt", "help forget"),
        ):
            for language in LANGUAGES:
                with self.subTest(typed=typed, language=language):
                    answer = await self.ask(typed, language=language)
                    self.assertIn(Texts(language)("help_meant", words=meant), answer.split("\n"))

    async def test_nothing_is_like_it(self) -> None:
        for typed in ("xyzzy", "？", "12345", "量子力学"):
            answer = await self.ask(typed)
            self.assertNotIn("你是不是", answer)
            self.assertTrue(answer.endswith("/hindsight help"))

    async def test_what_one_may_not_use_is_left_out_and_marked(self) -> None:
        shown = await self.ask("help", is_manager=False)
        for name in ("wipe", "pause", "setup", "export", "import"):
            self.assertNotIn(name, shown)
            marked = await self.ask(f"help {name}", is_manager=False)
            self.assertIn("管理员", marked)
        self.assertIn("export", await self.ask("help", self.private, is_manager=True))

    async def test_every_command_has_what_the_help_says(self) -> None:
        for command in self.commands.table:
            with self.subTest(command.name):
                self.assertIn(f"help_{command.name}", WORDING)
                self.assertEqual(command.has_argument, f"arg_{command.name}" in WORDING)
                self.assertEqual(command.has_argument, f"example_{command.name}" in WORDING)
                for language in LANGUAGES:
                    answer = await self.ask(f"help {command.name}", language=language)
                    self.assertTrue(fits(answer))

    async def test_help_can_be_read_at_one_glance(self) -> None:
        for language in LANGUAGES:
            self.assertTrue(fits(await self.ask("help", language=language, is_admin=True)))


class CutTest(CommandsCase):
    async def test_parts_make_the_whole(self) -> None:
        for text in ("", "x", "x" * 5000, "a\n" * 100, ("b" * 50 + "\n") * 40, "\n" * 50):
            rest, parts = text, []
            while rest:
                part, rest = cut(rest)
                parts.append(part)
                self.assertLessEqual(len(part), MAX_CHARS)
                self.assertLess(part.count("\n"), MAX_LINES)
            self.assertEqual("".join("\n".join(parts).split()), "".join(text.split()))
