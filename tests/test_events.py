"""No raw id of anybody in an event gets into what is stored or asked."""

from __future__ import annotations

import unittest
from types import SimpleNamespace
from typing import Any

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.events import (
    MAX_QUOTE_CHARS,
    is_manager,
    locale_of,
    origin_of,
    person_id_of,
)
from astrbot_plugin_hindsight_memory.transcript import Message
from fake_events import ANN, BEN, BOT, GROUP, FakeEvent, at, part, quote, reader_of
from support import HASHER, NOW, scope_of


def read(*arguments: Any, **changes: Any) -> Message:
    return reader_of(FakeEvent(*arguments, **changes)).message(NOW)


def label(name: str, person: str) -> str:
    return name + HASHER.pseudonym(scope_of(origin_of(FakeEvent())), person)


class OriginTest(unittest.TestCase):
    def test_group(self) -> None:
        origin = origin_of(FakeEvent())
        self.assertEqual(
            (origin.platform, origin.kind, origin.sender_id, origin.group_id),
            ("aiocqhttp", "group", ANN, GROUP),
        )
        self.assertEqual(origin.umo, f"bot1:GroupMessage:{GROUP}")

    def test_private_with_nothing_known(self) -> None:
        origin = origin_of(FakeEvent(group_id=None, sender_id=None))
        self.assertEqual((origin.kind, origin.sender_id, origin.group_id), ("private", "", ""))

    def test_locale(self) -> None:
        for extras, expected in (
            ({}, ""),
            ({"locale": "en-US"}, "en-US"),
            ({"locale": None}, ""),
            ({"locale": 5}, ""),
        ):
            with self.subTest(extras=extras):
                self.assertEqual(locale_of(FakeEvent(extras=extras)), expected)


class PersonTest(unittest.TestCase):
    def test_id_that_is_somebodys_own(self) -> None:
        for changes in ({}, {"platform": "telegram"}, {"group_id": None}):
            self.assertEqual(person_id_of(FakeEvent(**changes)), ANN)
        # The number is an ordinary one where no such platform shares it.
        self.assertEqual(person_id_of(FakeEvent(sender_id="1087968824")), "1087968824")

    def test_id_that_is_nobodys_own(self) -> None:
        anonymous = SimpleNamespace(raw_message={"sub_type": "anonymous"})
        webhook = SimpleNamespace(raw_message=SimpleNamespace(webhook_id=5))
        for name, changes in (
            ("none", {"sender_id": None}),
            ("empty", {"sender_id": ""}),
            ("unknown", {"sender_id": "unknown", "platform": "dingtalk"}),
            ("OneBot's anonymous members", {"sender_id": "80000000"}),
            ("anonymous under another id", {"message_obj": anonymous}),
            ("Discord's webhooks", {"message_obj": webhook, "platform": "discord"}),
            ("Telegram's administrators", {"sender_id": "1087968824", "platform": "telegram"}),
            ("Telegram's channels", {"sender_id": "136817688", "platform": "telegram"}),
        ):
            with self.subTest(name):
                self.assertEqual(person_id_of(FakeEvent(**changes)), "")


class ManagerTest(unittest.TestCase):
    def test_who_may_decide_for_everybody(self) -> None:
        def raw(value: Any) -> Any:
            return SimpleNamespace(raw_message=value)

        for name, changes, expected in (
            ("bot admin", {"admin": True}, True),
            ("private chat", {"group_id": None}, True),
            ("member", {"message_obj": raw({"sender": {"role": "member"}})}, False),
            ("owner", {"message_obj": raw({"sender": {"role": "owner"}})}, True),
            ("administrator", {"message_obj": raw({"sender": {"role": "admin"}})}, True),
            ("no role", {"message_obj": raw({"sender": {}})}, False),
            ("no sender", {"message_obj": raw({})}, False),
            ("odd sender", {"message_obj": raw({"sender": "owner"})}, False),
            ("odd message", {"message_obj": raw("owner")}, False),
            ("no raw message", {"message_obj": SimpleNamespace()}, False),
        ):
            with self.subTest(name):
                self.assertEqual(is_manager(FakeEvent(**changes)), expected)


class WordsTest(unittest.TestCase):
    def test_plain_message(self) -> None:
        message = read(" 我喜欢\n茶 ")
        self.assertEqual((message.words, message.stored), ("我喜欢 茶", "我喜欢 茶"))
        self.assertEqual(message.speaker.label, label("小明", ANN))
        self.assertEqual((message.bot.label, message.at), ("助手", NOW))

    def test_no_words(self) -> None:
        self.assertEqual((read(None).words, read(None).stored), ("", ""))

    def test_markers_stand_in_what_is_stored_only(self) -> None:
        for kind, mark in (
            ("Image", "[图片]"),
            ("Record", "[语音]"),
            ("Video", "[视频]"),
            ("Forward", "[转发的聊天记录]"),
        ):
            with self.subTest(kind):
                message = read("看", part(kind))
                self.assertEqual((message.words, message.stored), ("看", f"{mark} 看"))
        for kind in ("Plain", "Face"):
            self.assertEqual(read("看", part(kind)).stored, "看")

    def test_file(self) -> None:
        self.assertEqual(read("", part("File", name="a\nb.txt")).stored, "[文件 a b.txt]")
        self.assertEqual(read("", part("File", name=None)).stored, "[文件 ]")

    def test_forwarded_people_are_known(self) -> None:
        node = part("Node", uin=BEN, name="小红", content=[at("30003003", "小刚")])
        for parts in ((node,), (part("Nodes", nodes=[node]),)):
            message = read(f"{BEN} 和 30003003", *parts)
            expected = f"{label('小红', BEN)} 和 {label('小刚', '30003003')}"
            self.assertEqual(message.words, expected)

    def test_quotation(self) -> None:
        message = read("对", quote(text=f"问 {ANN}"))
        self.assertEqual(message.stored, f"[引用 {label('小红', BEN)}: 问 {label('小明', ANN)}] 对")
        self.assertEqual(message.words, "对")

    def test_bot_is_not_quoted_where_its_words_are_not_stored(self) -> None:
        for quoted, expected in (
            (quote(BOT, "", "你的生日"), "[引用 助手: …] 对"),
            (quote("0", "", "你的生日"), "[引用 用户#000000: …] 对"),
            (quote(BEN, "小红", "你好"), f"[引用 {label('小红', BEN)}: 你好] 对"),
            (
                quote(BEN, "小红", "嗯", [quote(BOT, "", "你的生日")]),
                f"[引用 {label('小红', BEN)}: [引用 助手: …] 嗯] 对",
            ),
        ):
            reader = reader_of(FakeEvent("对", quoted), quotes_bot=False)
            self.assertEqual(reader.message(NOW).stored, expected)

    def test_quotation_of_the_bot_and_of_a_picture(self) -> None:
        message = read("对", quote(BOT, "whatever", "", [part("Image")]))
        self.assertEqual(message.stored, "[引用 助手: [图片]] 对")

    def test_long_quotation_is_cut(self) -> None:
        stored = read("", quote(text="茶" * 1000)).stored
        self.assertLess(len(stored), MAX_QUOTE_CHARS + 40)

    def test_our_own_block_is_never_stored(self) -> None:
        echoed = "<hindsight_memory>\n- secret\n</hindsight_memory>"
        message = read(f"{echoed} 你好", quote(text=echoed))
        self.assertNotIn("secret", message.stored)
        self.assertTrue(message.stored.endswith("你好"))
        self.assertEqual(reader_of(FakeEvent()).clean(f"好 {echoed}"), "好")


class IdsTest(unittest.TestCase):
    def test_no_raw_id_in_any_text(self) -> None:
        umo = f"bot1:GroupMessage:{GROUP}"
        words = f"我是{ANN}，他是 {BEN}，群 {GROUP}，机器人{BOT}，会话 {umo}"
        message = read(
            words, at(BEN, "小红"), quote(BEN, BEN, words), part("File", name=f"{ANN}.txt")
        )
        everything = f"{message.words} {message.stored} {message.speaker} {message.bot}"
        for raw in (ANN, BEN, GROUP, BOT, umo):
            with self.subTest(raw):
                self.assertNotIn(raw, everything)
        self.assertIn(f"我是{label('小明', ANN)}", message.words)
        self.assertIn("群 本群", message.words)
        self.assertIn("会话 本聊天", message.words)

    def test_private_chat(self) -> None:
        message = read(f"我的号是 {ANN}", group_id=None)
        self.assertEqual(message.words, f"我的号是 {message.speaker.label}")

    def test_name_that_is_the_id(self) -> None:
        for name in (ANN, f"({ANN})", f" {ANN}\n", "", None):
            with self.subTest(name=name):
                self.assertTrue(read("你好", sender_name=name).speaker.label.startswith("用户#"))

    def test_name_that_is_the_beginning_of_the_id(self) -> None:
        """Lark and LINE take that for a name."""
        message = read("你好", at(BEN, BEN[:5]), sender_name=ANN[:8])
        self.assertTrue(message.speaker.label.startswith("用户#"))
        self.assertNotIn(BEN[:5], message.stored)
        self.assertEqual(read("你好", sender_name="100").speaker.name, "100")

    def test_mentions_that_are_markup(self) -> None:
        """Discord, Slack and QQ leave them in the text."""
        unknown = label("用户", BEN)
        for markup, expected in (
            (f"<@{BEN}>", f"@{unknown}"),
            (f"<@!{BEN}>", f"@{unknown}"),
            (f"<@{BEN}|hong>", f"@{unknown}"),
            (f'<qqbot-at-user id="{BEN}" />', f"@{unknown}"),
            (f"<@{ANN}>", f"@{label('小明', ANN)}"),
            (f"<@{BOT}>", "@助手"),
            ("<@&123456789>", "本群"),
            ("<#0a1b2c3d>", "本聊天"),
            ("<#C0123456|general>", "本聊天"),
            ("1 < 2 > 0", "1 < 2 > 0"),
        ):
            with self.subTest(markup):
                self.assertEqual(read(f"{markup} 在吗").words, f"{expected} 在吗")
                self.assertIn(f"{expected} 早]", read("", quote("3", text=f"{markup} 早")).stored)

    def test_names_that_are_listed_beside_the_text(self) -> None:
        """Discord and QQ do that; Lark's list is another."""
        listed = (
            SimpleNamespace(id=int(BEN), display_name="小红", username="hong"),
            SimpleNamespace(id="u3003", username="gang"),
            SimpleNamespace(id=SimpleNamespace(open_id="u4"), name="小丽"),
        )
        raw = SimpleNamespace(raw_message=SimpleNamespace(mentions=listed))
        message = read(f"<@{BEN}> <@u3003> 在吗", message_obj=raw)
        expected = f"@{label('小红', BEN)} @{label('gang', 'u3003')} 在吗"
        self.assertEqual(message.words, expected)

    def test_name_that_holds_another_ones_id(self) -> None:
        message = read("你好", at(BEN, f"小红 {ANN}"), sender_name="小明")
        self.assertNotIn(ANN, str(message.speaker) + message.stored)

    def test_senders_name_that_holds_a_mentioned_id(self) -> None:
        message = read("你好", at(BEN, "小红"), sender_name=f"{BEN}的朋友")
        self.assertNotIn(BEN, f"{message.speaker} {message.stored}")

    def test_own_name_counts_more_than_what_others_call_one(self) -> None:
        message = read("你好", at(ANN, "别名"))
        self.assertEqual(message.speaker.label, label("小明", ANN))

    def test_mention_of_all_and_numbers(self) -> None:
        message = read(f"all {BEN}", at("all", "all"), at(int(BEN), "小红"))
        self.assertEqual(message.words, f"all {label('小红', BEN)}")

    def test_bot_is_known_by_its_name_in_the_chat(self) -> None:
        self.assertEqual(read("你好", at(BOT, "小助手")).bot.label, "小助手")
        self.assertEqual(read("你好", at(BOT, "")).bot.label, "助手")
        self.assertEqual(read("你好", at(BOT, BOT)).bot.label, "助手")

    def test_somebody_unknown_is_not_the_bot_whose_id_is_unknown_too(self) -> None:
        message = read("你好", quote(None, "", "在吗"), self_id="", sender_id="", sender_name="")
        self.assertEqual(message.speaker.label, "用户#000000")
        self.assertEqual(message.stored, "[引用 用户#000000: 在吗] 你好")

    def test_anonymous_members(self) -> None:
        for language, name in (("zh", "匿名成员#"), ("en", "Anonymous#")):
            event = FakeEvent("你好", sender_id="80000000", sender_name="")
            speaker = reader_of(event, language).message(NOW).speaker
            self.assertTrue(speaker.label.startswith(name), speaker)

    def test_group_of_a_platform_that_tells_no_sender(self) -> None:
        message = read("你好", sender_id=None, sender_name=None)
        self.assertEqual(message.speaker.label, "用户#000000")

    def test_answers_are_cleaned_with_the_same_labels(self) -> None:
        reader = reader_of(FakeEvent("你好", at(BEN, "小红")))
        self.assertEqual(reader.clean(f"好的\n@小红({BEN})"), f"好的 @{label('小红', BEN)}")


class PrivacyTest(unittest.TestCase):
    """Who opted out is neither stored nor named; secrets go before anything is kept."""

    def test_speaker_who_opted_out(self) -> None:
        for opted_out in ((), (ANN,), (BEN,)):
            message = reader_of(FakeEvent("你好"), opted_out=opted_out).message(NOW)
            self.assertEqual(message.private_to_speaker, opted_out == (ANN,))

    def test_others_who_opted_out(self) -> None:
        event = FakeEvent(f"问 {BEN}", at(BEN, "小红"), quote(BEN, "小红", "我的秘密"))
        message = reader_of(event, opted_out=[BEN]).message(NOW)
        everything = f"{message.words} {message.quoted} {message.stored}"
        self.assertNotIn("秘密", everything)
        self.assertNotIn("小红", everything)
        self.assertNotIn(HASHER.pseudonym(scope_of(origin_of(event)), BEN), everything)
        self.assertEqual(message.words, "问 [某成员]")

    def test_others_who_opted_out_and_are_mentioned_by_markup(self) -> None:
        message = reader_of(FakeEvent(f"<@{BEN}> 在吗"), opted_out=[BEN]).message(NOW)
        self.assertEqual(message.words, "@[某成员] 在吗")

    def test_quoted_words_without_the_marker(self) -> None:
        message = read("对", quote(text="我喜欢茶"))
        self.assertEqual(message.quoted, "我喜欢茶")

    def test_contacts_in_a_name(self) -> None:
        cases: tuple[tuple[dict[str, Any], bool], ...] = (
            ({}, True),
            ({"redact_contacts": True}, False),
        )
        for privacy, shown in cases:
            with self.subTest(privacy=privacy):
                event = FakeEvent("你好", sender_name="老王13800138000")
                stored = reader_of(event, **privacy).message(NOW).speaker.name
                self.assertEqual("13800138000" in stored, shown)
                self.assertIn("老王", stored)

    def test_secrets_in_names_go_whatever_the_settings_say(self) -> None:
        key = "sk-a1B2c3D4e5F6g7H8i9J0"
        parts = (at(BEN, key), at(BOT, key), quote(BEN, key, "早"))
        event = FakeEvent(f"问 {BEN}", *parts, sender_name=key)
        for redact in (True, False):
            with self.subTest(redact=redact):
                message = reader_of(event, redact_secrets=redact).message(NOW)
                told = f"{message.speaker} {message.bot} {message.words} {message.stored}"
                self.assertNotIn(key, told)
                self.assertEqual(message.speaker.name, "密钥已隐藏")

    def test_secrets_and_contacts(self) -> None:
        event = FakeEvent("密码是 hunter2hunter2，电话 13800138000")
        cases: tuple[tuple[dict[str, Any], bool, bool], ...] = (
            ({}, False, True),
            ({"redact_secrets": False}, True, True),
            ({"redact_contacts": True}, False, False),
        )
        for privacy, secret, phone in cases:
            with self.subTest(privacy=privacy):
                stored = reader_of(event, **privacy).message(NOW).stored
                self.assertEqual("hunter2" in stored, secret)
                self.assertEqual("13800138000" in stored, phone)
