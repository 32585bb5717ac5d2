"""Secrets are taken out whatever stands beside them; ordinary words and numbers stay."""

from __future__ import annotations

import time
import unittest

import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.draft import Draft
from astrbot_plugin_hindsight_memory.redaction import RULES, hide
from astrbot_plugin_hindsight_memory.texts import Texts

ZH, EN = Texts("zh"), Texts("en")
RANDOM = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
PEM_BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"

KEYS = {
    "openai": "sk-" + RANDOM,
    "openai project": "sk-proj-Ab12_cd34-EfGh56ijKLmn78opQRst90",
    "anthropic": "sk-ant-api03-" + RANDOM + "-_" + RANDOM,
    "deepseek": "sk-0123456789abcdef0123456789abcdef",
    "hindsight": "hsk_" + RANDOM,
    "stripe": "sk_live_51H8a9Bc0De1Fg2Hi3Jk4Lm5",
    "dify": "app-Xy12Zz34Ab56Cd78Ef90Gh12",
    "groq": "gsk_" + RANDOM,
    "tavily": "tvly-" + RANDOM,
    "nvidia": "nvapi-" + RANDOM,
    "zhipu": "0123456789abcdef0123456789abcdef.AbCdEfGh12345678",
    "github": "ghp_" + RANDOM,
    "github fine-grained": "github_pat_11ABCDEFG0" + RANDOM,
    "gitlab": "glpat-Ab12Cd34Ef56Gh78Ij90",
    "slack bot": "xoxb-123456789012-1234567890123-AbCdEfGhIjKlMnOp",
    "slack app": "xapp-1-A0123456789-1234567890123-abcdef0123456789",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "aws temporary": "ASIAIOSFODNN7EXAMPLE",
    "alibaba": "LTAI5tAb12Cd34Ef56Gh78Ij",
    "tencent": "AKIDz8krbsJ5yKBZQpn74WFkmLPx3EXAMPLE",
    "google": "AIzaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
    "google oauth": "ya29.A0ARrdaM-Ab12Cd34Ef56Gh78",
    "npm": "npm_" + RANDOM,
    "hugging face": "hf_" + RANDOM,
    "pypi": "pypi-AgEIcHlwaS5vcmcCJDAxMjM0NTY3",
    "sendgrid": "SG.Ab12Cd34Ef56Gh78Ij90Kl.Ab12Cd34Ef56Gh78Ij90KlMn12Op34Qr56St78Uv90W",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP",
    "telegram bot": "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw9",
    "discord bot": "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs12",
}
ID_CARDS = ("11010519491231002X", "440308199901010012", "110105 19491231 002x")
BANK_CARDS = (
    "6222020200112233446",
    "6228480402564890018",
    "4111111111111111",
    "5555555555554444",
    "2223003122003222",
    "378282246310005",
    "4111 1111 1111 1111",
    "4111-1111-1111-1111",
    "6222 0202 0011 2233 446",
)
AROUND = (
    ("", ""),
    ("我的是", "，别告诉别人"),
    ("中文", "中文"),
    ("“", "”"),
    ('"', '"'),
    ("`", "`"),
    ("（", "）"),
    ("(", ")"),
    ("x = '", "';"),
    ("see ", ". Thanks"),
    ("=", "\n下一行"),
    ("【", "】"),
)


def hidden(text: str, texts: Texts, *kinds: str) -> str:
    draft = Draft(" ".join(text.split()))
    hide(draft, kinds, texts)
    return draft.done()


def redact_secrets(text: str, texts: Texts) -> str:
    return hidden(text, texts, "secret", "number")


def redact_contacts(text: str, texts: Texts) -> str:
    return hidden(text, texts, "contact")


class RulesTest(unittest.TestCase):
    """Each rule's own examples, alone and with Chinese or quotation marks around them."""

    def test_what_each_rule_hides(self) -> None:
        for rule in RULES:
            for text, secret in rule.hides:
                with self.subTest(text, mark=rule.mark):
                    self.assertIn(secret, text)
                    found = hidden(f"看 {text} 吧", ZH, "secret", "number", "contact")
                    self.assertNotIn(secret, found)
                    self.assertIn(ZH(rule.mark), found)

    def test_what_each_rule_keeps(self) -> None:
        for rule in RULES:
            for text in rule.keeps:
                with self.subTest(text, mark=rule.mark):
                    self.assertEqual(hidden(text, ZH, "secret", "number"), text)
                    self.assertEqual(hidden(f"“{text}”", ZH, "secret", "number"), f"“{text}”")


class SecretsTest(unittest.TestCase):
    def assert_hidden(self, secret: str, text: str) -> None:
        for texts in (ZH, EN):
            redacted = redact_secrets(text, texts)
            self.assertNotIn(secret, redacted)
            self.assertEqual(redact_secrets(redacted, texts), redacted, "a second time")

    def test_keys_with_anything_around_them(self) -> None:
        for name, key in KEYS.items():
            for before, after in AROUND:
                with self.subTest(name, before=before):
                    self.assert_hidden(key, f"{before}{key}{after}")
                    redacted = redact_secrets(f"{before}{key}{after}", ZH)
                    self.assertEqual(redacted, " ".join(f"{before}[密钥已隐藏]{after}".split()))

    def test_numbers_with_anything_around_them(self) -> None:
        for numbers, mark in ((ID_CARDS, "[证件号已隐藏]"), (BANK_CARDS, "[卡号已隐藏]")):
            for number in numbers:
                for before, after in AROUND:
                    with self.subTest(number, before=before):
                        redacted = redact_secrets(f"{before}{number}{after}", ZH)
                        self.assertEqual(redacted, " ".join(f"{before}{mark}{after}".split()))

    def test_card_with_its_date_and_code(self) -> None:
        for after in (" 12/27", " 1227", " 123", " 12/27 123", "-123", " 12 27 123"):
            with self.subTest(after):
                self.assert_hidden("4111111111111111", f"卡号4111111111111111{after}")
                self.assert_hidden("1111 1111", f"卡号 4111 1111 1111 1111{after}")

    def test_wrong_check_digits_are_no_secret(self) -> None:
        for text in (
            "110105194912310021",
            "11010519491331002X",  # no such month
            "6222020200112233440",
            "4111111111111112",
            "4111 1111 1111 1112",
        ):
            with self.subTest(text):
                self.assertEqual(redact_secrets(f"单号{text}。", ZH), f"单号{text}。")

    def test_passwords_said_as_such(self) -> None:
        for text, secret in (
            ("密码是hunter2", "hunter2"),
            ("密码是 hunter2，别忘了", "hunter2"),
            ("密码：hunter2", "hunter2"),
            ("密码:hunter2", "hunter2"),
            ("密码是：hunter2", "hunter2"),
            ("密码是: hunter2", "hunter2"),
            ("密码为【hunter2】", "hunter2"),
            ("密码是“hunter2”。", "hunter2"),
            ("密码是「芝麻开门」", "芝麻开门"),
            ("密码“芝麻开门”", "芝麻开门"),
            ("密码 = hunter2", "hunter2"),
            ("密码改成了Hunter@2024", "Hunter@2024"),
            ("密码我已经改成 hunter2", "hunter2"),
            ("密码现在是 swordfish", "swordfish"),
            ("wifi密码88888888", "88888888"),
            ("WiFi 密码 Abc12345", "Abc12345"),
            ("WiFi密码（二楼）：abc12345", "abc12345"),
            ("支付密码就是123456", "123456"),
            ("口令是swordfish", "swordfish"),
            ("暗号：swordfish", "swordfish"),
            ("密码是 P@ss#123456x!", "123456x"),
            ("password is hunter2", "hunter2"),
            ("Password: hunter2", "hunter2"),
            ("the password was changed to hunter2", "hunter2"),
            ("I set the password to Tr0ub4dor&3.", "Tr0ub4dor"),
            ("password is: hunter2", "hunter2"),
            ('my password is "correct horse"', "correct horse"),
            ("`password`: `hunter2`", "hunter2"),
            ("password=hunter2", "hunter2"),
            ("DB_PASSWORD=hunter2", "hunter2"),
            ('{"password": "hunter2"}', "hunter2"),
            ("passwd: hunter2", "hunter2"),
            ("pwd是hunter2", "hunter2"),
            ("我的password是hunter2", "hunter2"),
            ("passphrase is c0rrect-horse", "c0rrect"),
            ("密钥是 abcd1234efgh", "abcd1234efgh"),
            ("token：abcd1234efgh", "abcd1234efgh"),
            ("access_token=abcd1234efgh", "abcd1234efgh"),
            ("api key is abcd1234efgh", "abcd1234efgh"),
            ("API-Key: abcd1234efgh", "abcd1234efgh"),
            ("secret key是abcd1234efgh", "abcd1234efgh"),
            ('"apiKey": "abcd1234efgh"', "abcd1234efgh"),
        ):
            with self.subTest(text):
                self.assert_hidden(secret, text)

    def test_what_stands_around_a_password_stays(self) -> None:
        for text, expected in (
            ("我家wifi密码是 hunter2，随便用", "我家wifi密码是 [密码已隐藏]，随便用"),
            ("密码“芝麻开门”记好", "密码“[密码已隐藏]”记好"),
            ("密码是hunter2啊", "密码是[密码已隐藏]啊"),
            ("密码：sk-" + RANDOM, "密码：[密码已隐藏]"),
        ):
            with self.subTest(text):
                self.assertEqual(redact_secrets(text, ZH), expected)

    def test_addresses_and_headers(self) -> None:
        for text, expected in (
            ("postgres://bob:hunter2@db/x", "postgres://bob:[password removed]@db/x"),
            ("redis://:hunter2@cache:6379/0", "redis://:[password removed]@cache:6379/0"),
            ("见https://a:b@c.cn吧", "见https://a:[password removed]@c.cn吧"),
            ("Bearer abcdef0123456789", "Bearer [key removed]"),
            ("用bearer abcdef0123456789==试", "用bearer [key removed]试"),
            ("Authorization: Basic dXNlcjpwYXNzMTIz", "Authorization: Basic [key removed]"),
            (
                "https://x.cn/send?key=0a1b2c3d-0000-4000-8000-0a1b2c3d4e5f",
                "https://x.cn/send?key=[key removed]",
            ),
            (
                "https://x.cn/?a=1&access_token=abcd1234efgh",
                "https://x.cn/?a=1&access_token=[key removed]",
            ),
        ):
            with self.subTest(text):
                self.assertEqual(redact_secrets(text, EN), expected)

    def test_private_keys(self) -> None:
        for kind in ("", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "):
            begin, end = (f"-----{word} {kind}PRIVATE KEY-----" for word in ("BEGIN", "END"))
            for text, expected in (
                (f"看：{begin}\n{PEM_BODY}\n{end}谢谢", "看：[密钥已隐藏]谢谢"),
                (f"{begin} {PEM_BODY.replace(chr(10), ' ')} {end} ok", "[密钥已隐藏] ok"),
                (f"没贴完 {begin}\n{PEM_BODY}", "没贴完 [密钥已隐藏]"),
                (f"{begin}{PEM_BODY}{end}和{begin}{PEM_BODY}{end}", "[密钥已隐藏]和[密钥已隐藏]"),
            ):
                with self.subTest(kind=kind, text=text[:12]):
                    self.assertEqual(redact_secrets(text, ZH), expected)
        pgp = "-----BEGIN PGP PRIVATE KEY BLOCK-----\nx\n-----END PGP PRIVATE KEY BLOCK-----"
        self.assertEqual(redact_secrets(pgp, ZH), "[密钥已隐藏]")

    def test_hostile_text_costs_no_time(self) -> None:
        for text in (
            "密码" * 5000,
            "密码是" * 5000,
            "password is " * 3000,
            "password" + " is" * 9000,
            "密码" + "“" * 9000,
            "密码(" * 5000,
            "sk-" * 8000,
            "sk-" + "a-" * 8000,
            "4 " * 9000,
            "1" * 20000,
            "4111 " * 4000,
            "eyJ" + "a" * 9000 + ".eyJ" * 3000,
            "://" * 9000,
            "a:" * 9000,
            "-----BEGIN PRIVATE KEY-----"[:-1] * 800,
            "bearer " * 4000,
            "a" * 20000 + "@",
            "a.a" * 7000,
            "a-" * 20000,
        ):
            with self.subTest(text[:20]):
                started = time.process_time()
                redact_contacts(redact_secrets(text, ZH), ZH)
                self.assertLess(time.process_time() - started, 0.5)


class OrdinaryTextTest(unittest.TestCase):
    def test_stays(self) -> None:
        for text in (
            "我的电话是 13800138000",
            "+86 138-0013-8000",
            "邮箱 xiaoming@example.com",
            "订单号 20260304123005123456",
            "运单SF1234567890123",
            "订单 8837261530012",
            "时间戳 1772627405",
            "毫秒 1772627405123",
            "微秒 1772627405123456",
            "2026-03-04 20:30:05",
            "20260304203005",
            "2026-03-04T20:30:05+08:00",
            "北京市朝阳区建国路88号院1号楼2单元301室",
            "88 Jianguo Road, Chaoyang, Beijing 100022",
            "v4.29.3、3.13.0rc1、1.2.3-beta.4",
            "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
            "550e8400-e29b-41d4-a716-446655440000",
            "192.168.1.1:8080 和 http://localhost:6185/#/chat",
            "圆周率 3.14159265358979323846",
            "彩票 3 5 8 12 20 27 31",
            "价格 4999 元，4 台 19996",
            "密码是什么",
            "密码是多少？",
            "密码忘了",
            "我改密码了，密码强度要8位以上",
            "密码8到16位",
            "密码20260304年到期",
            "改密码 https://example.com/reset?id=123456",
            "密码：见群公告",
            "密码是空的",
            "password is required",
            "Password is required!",
            "the password is wrong!!",
            "your password is case-sensitive",
            "I forgot my password again",
            "password reset link",
            "passwordless: nothing to type",
            "token 用完了",
            "token是什么",
            "一个 token 是 4 个字符",
            "max_token: 4096",
            "上下文token是128000",
            "the token is 32768 long",
            "the secret is patience",
            "令牌桶算法",
            "暗号是什么",
            "sk-learn",
            "sk-learn-contrib-ensemble-methods",
            "key-value-store-abstraction-layer",
            "app-store-connect-api-client",
            "app-release-20260304123005",
            "pk-fire-and-ice-adventure",
            "bearer of bad news",
            "bearer token-authentication",
            "eyJ 开头的是 JWT",
            "AKIA 是什么前缀",
            "-----BEGIN PUBLIC KEY-----",
            "https://example.com:8080/@user",
            "@小红 你好",
            "小明: 密 码",
            "1+1=2, 3*4=12",
            "😀👍🏻",
            "",
        ):
            with self.subTest(text):
                self.assertEqual(redact_secrets(text, ZH), text)
                self.assertEqual(redact_secrets(text, EN), text)


class ContactsTest(unittest.TestCase):
    def test_taken_out(self) -> None:
        for text, expected in (
            ("电话13800138000吧", "电话[电话已隐藏]吧"),
            ("+86 138-0013-8000", "[电话已隐藏]"),
            ("8613800138000", "[电话已隐藏]"),
            ("邮箱a.b+c@example.com.cn谢谢", "邮箱[邮箱已隐藏]谢谢"),
            ("13800138000@example.com", "[邮箱已隐藏]"),
        ):
            with self.subTest(text):
                self.assertEqual(redact_contacts(text, ZH), expected)

    def test_other_numbers_stay(self) -> None:
        for text in ("12345678901", "1772627405123", "2026-03-04", "SF13800138000", "@小红"):
            with self.subTest(text):
                self.assertEqual(redact_contacts(text, ZH), text)
