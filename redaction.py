"""What secrets look like: one table of rules, each with examples of what it hides and keeps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from .draft import WORDS, Draft, folded
from .texts import Texts

_NOT_BEFORE, _NOT_AFTER = r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])"
"""Word boundaries in the ASCII sense: to `\\b`, Chinese right beside a key belongs to the word."""

_RANDOM = "a1B2c3D4e5F6g7H8i9J0"
"""For the examples."""

_TOKEN_SHAPES = (
    # Random letters and digits, which `key-value-store-abstraction-layer` has not.
    r"(?:sk|hsk|rk|pk|ak|tvly|gsk|xai|nvapi|pplx|app|key|tok|pat|dataset|fastgpt|lin|sbp|r8|fc"
    r"|jina|pcsk|e2b|lsv2|tskey)[-_]"
    r"(?=[A-Za-z0-9_-]{0,60}(?:[0-9][A-Za-z]|[A-Za-z][0-9]))"
    r"(?=[A-Za-z0-9_-]{0,60}[A-Za-z0-9]{12})"
    r"[A-Za-z0-9_-]{16,}",
    r"gh[pousr]_[A-Za-z0-9]{20,}",
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"gl(?:pat|dt|rt|cbt|ptt|ft|soat)-[A-Za-z0-9_-]{16,}",
    r"(?:xox[abeprs]|xapp)-[A-Za-z0-9-]{10,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",
    r"(?:LTAI|AKID)[A-Za-z0-9]{12,40}",
    r"bce-v3/[A-Za-z0-9_-]{8,}/[0-9A-Za-z]{16,}",  # Baidu
    r"AIza[A-Za-z0-9_-]{30,}",
    r"ya29\.[A-Za-z0-9_-]{20,}",
    r"GOCSPX-[A-Za-z0-9_-]{20,}",
    r"(?:npm|hf|dop_v1|doo_v1|shp(?:at|ca|pa|ss)|dckr_(?:pat|oat)|ntn|figd|glsa|whsec|ATATT3)[_x]"
    r"[A-Za-z0-9_=-]{20,}",
    r"(?:pypi|rubygems|xkeysib|PMAK|AGE-SECRET-KEY|sntrys)[-_][A-Za-z0-9_-]{20,}",
    r"hv[sb]\.[A-Za-z0-9_-]{20,}",  # Vault
    r"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}",
    r"eyJ[A-Za-z0-9_-]{8,500}\.eyJ[A-Za-z0-9_-]{8,9000}\.[A-Za-z0-9_-]*",
    r"[0-9]{8,10}:[A-Za-z0-9_-]{35}",  # Telegram's bots
    r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",  # Discord's bots
    r"[0-9a-f]{32}\.[A-Za-z0-9]{16}",  # Zhipu
)

_FOREIGN = "|".join(
    folded(word, WORDS)
    for word in (
        *("パスワード", "暗証番号", "비밀번호", "пароль", "contraseña", "mot de passe"),
        *("passwort", "senha", "hasło", "mật khẩu"),
    )
)
_CODE_WORD = (
    r"(?:(?:密\s?[码碼]|口令|[账帳]密)(?:[1-9](?=\s*[:：=是为為]))?|暗[号號]"
    rf"|{_FOREIGN}|(?:(?<![A-Za-z])|(?-i:(?<=[a-z0-9])(?=P)|(?<![A-Za-z]PG)(?<=PG)))"
    r"(?:pass(?:words?|wd|code|phrase)|pwd)(?![A-Za-z]))"
)
_KEY_WORD = (
    r"(?:[密秘私][钥鑰]|(?:授[权權]|激活|啟用|恢[复復])[码碼]|令牌"
    r"|(?:(?<![A-Za-z])|(?-i:(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])))"
    r"(?:secret(?:[-_ ]?(?:access[-_ ]?)?key)?|access[-_ ]?(?:key|token)|token"
    r"|(?:api|app|private|license|product|recovery|account)[-_ ]?key)"
    r"(?:[-_ ]?(?:id|value))?(?![A-Za-z]))"
)
_OPEN, _CLOSE = r"[\"'“”‘’「『【《`]", r"[\"'“”‘’」』】》`]"
_IS = (
    rf"{_CLOSE}?[^\S\n]*(?:[（(][^（()）]{{1,12}}[）)][^\S\n]*)?"
    r"(?:(?:我|就|都|也|还|還|现在|現在|目前|已经?|已經|应该|應該|默认|默認|暂时|分别|分別"
    r"|[设設用改][的了])*"
    r"(?:是|为|為|叫|係|は|은|는|改成了?|改为|改為|换成了?|換成了?|设成了?|设为|設為|设置[成为]"
    r"|設定為)[^\S\n]*[:：=]?|(?:→|[-=]>|[:：=]))\s*"
)
_ENGLISH_IS = (
    r"(?:'s|(?:\s+(?:is|was|are|now|has|been|will|be|changed|set|reset|to)){1,6})\s*[:=]?\s+"
)
_RANDOM_RUN = (
    r"(?=[A-Za-z0-9_+/=.-]{0,60}[A-Za-z0-9]{12})"
    r"(?=[A-Za-z0-9_+/=.-]{0,60}(?:[0-9][A-Za-z]|[A-Za-z][0-9]))[A-Za-z0-9_+/=.-]{16,256}"
)
_UNLESS = (
    r"(?!https?://|\[(?:key|password) removed\]"  # an address, one of our markers,
    # where a program takes it from, a place to fill in,
    r"|(?:os|process|self|config|settings|request|secrets|import\.meta|st|getpass)\."
    r"|(?:get)?env(?:iron)?[\[(.]|(?:get_?(?:pass|token)|input)\w{0,20}\(|\$[{(A-Z_]|\{\{|<[a-z]"
    r"|(?:your|my)[-_]|(?:none|null|undefined|true|false|str|string|required|optional|missing"
    r"|empty|invalid|incorrect|wrong|expired|hidden|encrypted|unknown|unchanged)(?![A-Za-z0-9])"
    # where a file is, or how much of a whole,
    r"|sha-?[0-9]{1,3}(?![!-~])|~?/(?:home|root|etc|usr|var|opt|tmp|mnt|data|users)/|[!-~]{1,60}\.(?:pem|key|txt|json|ya?ml)"
    r"(?![!-~])|[0-9.]{1,6}%(?![!-~])"
    r"|x{4,}(?![!-~])|\*{4,}(?![!-~])"
    # or the rule for its length.
    r"|[0-9]{1,3}\s*(?:[-~至到]\s*[0-9]{1,3}\s*)?(?:位|个字|個字|字符|digits|char|letters))"
)
_HAS_DIGIT, _HAS_LETTER = r"(?=[!-~]{0,256}[0-9])", r"(?=[!-~]{0,256}[A-Za-z])"
_CODE = r"(?![A-Za-z_][A-Za-z_.]{0,60}[(\[]|[a-z_]{1,40}(?:\.[a-z_]{1,40}){1,4}(?![!-~]))"
"""What gives a key its value in a program."""
_COOKIE = r"(?<![A-Za-z_])(?:sessdata|bili_jct|p?_?skey|pt4_token|[a-z]{0,8}sessid|jsessionid)="
_AND = r"\s*(?:和|与|與|跟|及|以及|还有|、|，|,|and)\s*"

_ID_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_ID_CHECKS = "10X98765432"


def _is_id_card(number: str) -> bool:
    """GB 11643."""
    number = re.sub("[ ./-]", "", number)
    total = sum(int(digit) * weight for digit, weight in zip(number, _ID_WEIGHTS, strict=False))
    return _ID_CHECKS[total % 11] == number[17].upper()


def _is_bank_card(number: str) -> bool:
    """Luhn."""
    digits = [int(c) for c in number if c.isdigit()]
    doubled = [digit * 2 for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(d - 9 if d > 9 else d for d in doubled)) % 10 == 0


def _card(digits: int) -> str:
    """A bank card of so many digits, by the numbers that banks and card companies begin with."""
    if digits == 15:
        start = r"3[ -]?[47]"
    elif digits == 16:
        start = r"(?:[456][0-9]|35|95|2[2-7])"
    else:
        start = r"(?:[456][0-9]|95)"
    rest = digits - 2
    return rf"(?<![0-9A-Za-z]){start}(?:[ -]?[0-9]){{{rest}}}(?![0-9A-Za-z])"


@dataclass(frozen=True)
class Rule:
    """One kind of what is hidden.

    Attributes:
        kind: A secret; a number that may be somebody's id as well, and is judged after these; or
            a way to reach somebody.
        mark: The key of the text that is put in its place.
        pattern: What it looks like; the group `it`, where there is one, is hidden alone.
        hides: Texts with what of them must go.
        keeps: Texts that stay as they are.
        is_it: Whether what was found is one indeed.
    """

    kind: Literal["secret", "number", "contact"]
    mark: str
    pattern: str
    hides: tuple[tuple[str, str], ...]
    keeps: tuple[str, ...] = ()
    is_it: Callable[[str], bool] = bool


RULES = (
    Rule(
        "secret",
        "mark_key",
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY[A-Z ]{0,20}-----"
        r".*?(?:-----END [A-Z ]{0,40}PRIVATE KEY[A-Z ]{0,20}-----|\Z)",
        hides=(
            ("-----BEGIN EC PRIVATE KEY----- MIIEvQ -----END EC PRIVATE KEY-----", "MIIEvQ"),
            ("没贴完 -----BEGIN PRIVATE KEY----- MIIEvQ", "MIIEvQ"),
        ),
        keeps=("-----BEGIN PUBLIC KEY----- MIIBIj -----END PUBLIC KEY-----",),
    ),
    Rule(  # In quotation marks it may be anything, 芝麻开门 too.
        "secret",
        "mark_password",
        rf"{_CODE_WORD}(?:(?:{_IS}|{_ENGLISH_IS}){_OPEN}|\s*[“「『【])"
        rf"{_UNLESS}(?P<it>[^\n\"“”‘’「」『』【】《》`]{{2,64}})(?={_CLOSE})",
        hides=(
            ("密码是「芝麻开门」", "芝麻开门"),
            ("密碼：“芝麻開門”", "芝麻開門"),
            ('my password is "correct horse"', "correct horse"),
        ),
        keeps=("“密码”两个字", '请输入"密码"', 'password: "<your password>"'),
    ),
    Rule(
        "secret",
        "mark_password",
        rf"{_CODE_WORD}分[别別]{_IS}(?P<it>[!-~]{{4,64}}(?:{_AND}[!-~]{{4,64}}){{1,4}})",
        hides=(
            ("密码分别是 abcd12 和 efgh34", "efgh34"),
            ("密碼分別為abcd12、efgh34", "abcd12"),
        ),
        keeps=("密码分别是什么和什么",),
    ),
    Rule(
        "secret",
        "mark_password",
        rf"{_CODE_WORD}{_IS}{_OPEN}?+{_UNLESS}(?P<it>[!-~]{{4,128}}"
        rf"(?:\s*(?:和|与|與|跟|或|还有)\s*{_HAS_DIGIT}{_HAS_LETTER}[!-~]{{6,64}}){{0,4}})",
        hides=(
            ("密码是hunter2啊", "hunter2"),
            ("密碼：hunter2", "hunter2"),
            ("密码我设的是hunter2", "hunter2"),
            ("密 码 -> hunter2", "hunter2"),
            ("密码是 hunter2 或 hunter3", "hunter3"),
            ("密码1：hunter2，密码2：hunter3", "hunter3"),
            ("账密：bob/hunter2", "hunter2"),
            ("密碼係hunter2", "hunter2"),
            ("PGPASSWORD=hunter2", "hunter2"),
            ("password => 'hunter2'", "hunter2"),
            ("パスワードはhunter2です", "hunter2"),
            ("비밀번호는 hunter2", "hunter2"),
            ("пароль: hunter2", "hunter2"),
            ("contraseña: hunter2", "hunter2"),
            ("userPassword=hunter2", "hunter2"),
            ("MYSQL_PWD=hunter2", "hunter2"),
            ("密码是８８８８６６６６", "８８８８６６６６"),
        ),
        keeps=(
            "密码是什么",
            "密码：8-16位",
            "密码：6 到 12 位",
            'password = os.environ["X"]',
            "password: ${DB_PASSWORD}",
            "password = getpass.getpass()",
            "password: required",
            "pwd: /home/bob",
            "密码：100%",
            "密码是 SHA256 的",
            "password: ./certs/password.txt",
        ),
    ),
    Rule(
        "secret",
        "mark_password",
        rf"<[\w:.-]{{0,40}}{_CODE_WORD}>\s*{_UNLESS}(?P<it>[!-;=?-~]{{4,128}})(?=\s*</)",
        hides=(("<password>hunter2</password>", "hunter2"),),
        keeps=("<password></password>", "<password>请输入</password>"),
    ),
    Rule(
        "secret",
        "mark_password",
        rf"(?:--(?:[a-z]+-)?{_CODE_WORD}\s|(?<![A-Za-z])sshpass\s+-p\s?"
        r"|(?<![A-Za-z])curl\s(?:[^|;\s]{1,60}\s){0,3}?-u\s+[\w.@-]{1,64}:"
        r"|(?<![A-Za-z])mysql\w{0,8}\s(?:[^|;\s]{1,60}\s){0,4}?-p)"
        rf"{_UNLESS}(?P<it>[!-~]{{4,128}})",
        hides=(
            ("mysql -uroot -phunter2 db", "hunter2"),
            ("curl -u bob:hunter2 https://x.cn", "hunter2"),
            ("sshpass -p hunter2 ssh x", "hunter2"),
            ("x --db-password hunter2", "hunter2"),
        ),
        keeps=("mysql -u root -p", "docker run -u 1000:1000", "ssh -p 2222 x", "--password $PW"),
    ),
    Rule(  # In one word with a letter and a digit, and no name of a method.
        "secret",
        "mark_password",
        rf"(?<![A-Za-z])(?:password|passwd|pwd)\s+{_UNLESS}(?!sha|md|base|argon|aes|pbkdf|bcrypt)"
        r"(?=[A-Za-z0-9]{0,128}[A-Za-z])(?=[A-Za-z0-9]{0,128}[0-9])"
        r"(?P<it>[A-Za-z0-9@#$%^&*!_]{6,128})(?![!-~])",
        hides=(("user bob password hunter22", "hunter22"), ("passwd hunter2", "hunter2")),
        keeps=("password argon2id", "password policy", "password 2026-03-04", "password base64"),
    ),
    Rule(
        "secret",
        "mark_password",
        rf"(?:(?<![A-Za-z])PIN\s?(?:[码碼]|code)?(?:{_IS}|{_ENGLISH_IS})"
        rf"|(?<![A-Za-z])PIN\s?[码碼]\s|[验驗][证證][码碼](?:{_IS}|\s)"
        rf"|verification code{_ENGLISH_IS})"
        rf"{_UNLESS}(?P<it>[0-9]{{4,8}})(?![0-9A-Za-z%.,年月日个個位])",
        hides=(
            ("开机PIN是1357", "1357"),
            ("PIN码 135790", "135790"),
            ("验证码是 482913，别告诉别人", "482913"),
            ("your verification code is 482913", "482913"),
        ),
        keeps=("pin: 13", "验证码是4位", "spin: 4096", "验证码 2026年改版"),
    ),
    Rule(  # After a space or in English only what no word looks like: "password is required!"
        "secret",
        "mark_password",
        rf"{_CODE_WORD}{_ENGLISH_IS}{_OPEN}?+{_UNLESS}"
        r"(?=[!-~]{0,128}(?:[0-9]|[!#$%&*@^_+=][A-Za-z0-9]))(?P<it>[!-~]{4,128})",
        hides=(
            ("the password was changed to hunter2", "hunter2"),
            ("passwords are hunter2", "hunter2"),
        ),
        keeps=("Password is required!", "the password is 8-16 characters"),
    ),
    Rule(
        "secret",
        "mark_password",
        rf"(?:密[码碼]|口令)\s*{_UNLESS}(?=[!-~]{{0,128}}[0-9])"
        r"(?P<it>[!-~]{6,128}+|[0-9]{4}#?)(?!\s?[年月日号號位次个個元块塊万萬多]|[!-~])",
        hides=(
            ("WiFi 密码 Abc12345", "Abc12345"),
            ("密碼88888888", "88888888"),
            ("门禁密码1357#", "1357"),
        ),
        keeps=(
            "密码20260304年到期",
            "密码8到16位",
            "密码2026年改过",
            "密码1000多个",
            "密码 2048 位",
        ),
    ),
    Rule(
        "secret",
        "mark_password",
        rf"(?:{_NOT_BEFORE}(?:pass|pw)\s*[:：=]|_pass=|{_NOT_BEFORE}pw\s+is)\s*{_UNLESS}{_HAS_DIGIT}(?P<it>[!-~]{{4,128}})",
        hides=(
            ("user: bob pass: hunter2", "hunter2"),
            ("DB_PASS=hunter2", "hunter2"),
            ("the pw is hunter2", "hunter2"),
        ),
        keeps=("pass: everyone", "bypass: hunter2", "pass：通过", "pass:100%", "PW: power"),
    ),
    Rule(  # "max_token: 4096" is no secret.
        "secret",
        "mark_key",
        rf"{_KEY_WORD}{_IS}{_OPEN}?+{_UNLESS}{_CODE}{_HAS_LETTER}(?P<it>[!-~]{{8,256}})",
        hides=(
            ("密钥是 abcd1234efgh", "abcd1234efgh"),
            ("秘钥：abcd1234efgh", "abcd1234efgh"),
            ("私鑰: 0xabcd1234efgh", "0xabcd1234efgh"),
            ("邮箱授权码是abcdefghijklmnop", "abcdefghijklmnop"),
            ("AppSecret: abcd1234efgh", "abcd1234efgh"),
            ("refreshToken=abcd1234efgh", "abcd1234efgh"),
            ('"clientSecret": "abcd1234efgh"', "abcd1234efgh"),
            ("aws_secret_access_key = abcd1234/efgh", "abcd1234/efgh"),
            ("privateKey：abcd1234efgh", "abcd1234efgh"),
            ("AWSSecretKey=abcd1234efgh", "abcd1234efgh"),
            ("license key: ABCDE-FGHIJ-12345", "FGHIJ"),
        ),
        keeps=(
            "max_token: 4096",
            'token = os.environ["X_TOKEN_NAME"]',
            "token = process.env.TOKEN_NAME",
            "api_key: ${OPENAI_API_KEY}",
            "api_key = your_api_key_here",
            "token: <your-token-here>",
            "token = self.read_token()",
            "token: Optional[str] = None",
            'token = response.json()["access_token"]',
            "api_key=args.api_key",
            "secret: Secret = Depends(x)",
            "privateKey: path/to/private.key",
            "授权码是什么",
        ),
    ),
    Rule(
        "secret",
        "mark_key",
        rf"(?:{_KEY_WORD}\s|(?<![A-Za-z])(?:key|[as]k)\s?[:：=]\s?){_UNLESS}(?P<it>{_RANDOM_RUN})",
        hides=(
            (f"apikey {_RANDOM}", _RANDOM),
            (f"API密钥 {_RANDOM}", _RANDOM),
            (f"SK: {_RANDOM}", _RANDOM),
            (f"key: {_RANDOM}", _RANDOM),
        ),
        keeps=("token expires-in-3600-seconds", "key: 20260304-meeting-notes", "api key reference"),
    ),
    Rule(
        "secret",
        "mark_key",
        rf"{_KEY_WORD}{_ENGLISH_IS}{_OPEN}?+{_UNLESS}{_HAS_LETTER}{_HAS_DIGIT}(?P<it>[!-~]{{8,256}})",
        hides=(("api key is abcd1234efgh", "abcd1234efgh"),),
        keeps=("the secret is patience", "the token is 32768 long"),
    ),
    Rule(
        "secret",
        "mark_key",
        rf"(?:助[记記][词詞]|seed phrase|mnemonic)(?:{_IS}|\s)"
        r"(?P<it>[a-z]{3,8}(?:[ ,，、]{1,3}[a-z]{3,8}){11,23})",
        hides=tuple((f"助记词{s}" + "abandon " * 11 + "about", "abandon") for s in ("：", " ")),
        keeps=("助记词：请抄在纸上",),
    ),
    Rule(
        "secret",
        "mark_key",
        rf"(?:{_NOT_BEFORE}cookies?{_IS}|(?={_COOKIE}))(?P<it>[\w.%-]{{1,64}}=[^\s;]{{4,4096}}"
        r"(?:;\s*[\w.%-]{1,64}=[^\s;]{0,4096})*)",
        hides=(
            ("Cookie: sid=abcd1234; uid=5", "abcd1234"),
            ("Set-Cookie: session=abcd1234; Path=/", "abcd1234"),
            ("cookie是 sid=abcd1234", "abcd1234"),
            ("SESSDATA=abcd1234; bili_jct=efgh5678", "efgh5678"),
        ),
        keeps=("cookie: 曲奇很好吃", "cookie: chocolate"),
    ),
    Rule(
        "secret",
        "mark_password",
        r"://[^\s/:@]{0,64}:(?![0-9]{1,5}(?:[/?#\s]|$))(?P<it>[^\s\"'<>“”，。]{1,128})(?=@[\w.\[-])",
        hides=(
            ("postgres://bob:hunter2@db/x", "hunter2"),
            ("mysql://root:p@ss/w0rd@10.0.0.1:3306/x", "ss/w0rd"),
            ("redis://:hunter2@cache:6379/0", "hunter2"),
        ),
        keeps=("https://example.com:8080/@user", "http://localhost:6185/#/a@b"),
    ),
    Rule(
        "secret",
        "mark_key",
        r"(?:(?<![A-Za-z])bearer\s+(?=[!-~]{0,60}[0-9])|authorization\s*[:=]\s*(?:[a-z]+\s+)?"
        r"|[?&](?:[a-z_-]{0,24}[_-]|api|app)?(?:key|sign|sig|signature|token|secret)=)"
        r"(?P<it>[A-Za-z0-9._~+/-]{16,}=*)",
        hides=(
            ("Bearer abcdef0123456789", "abcdef0123456789"),
            ("Authorization: Basic dXNlcjpwYXNzMTIz", "dXNlcjpwYXNzMTIz"),
            ("https://x.cn/send?key=0a1b2c3d-0000-4000-8000", "0a1b2c3d-0000-4000-8000"),
            (f"https://x.cn/a?X-Amz-Signature={_RANDOM}", _RANDOM),
        ),
        keeps=(
            "bearer of bad news",
            "bearer token-authentication",
            "?id=7&region=cn&timestamp=1",
            "?monkey=banana-split-recipe",
        ),
    ),
    Rule(  # Addresses that are secrets themselves.
        "secret",
        "mark_key",
        r"(?:hooks\.slack\.com/[a-z]{1,20}/|discord(?:app)?\.com/api/webhooks/[0-9]{5,24}/"
        r"|/open-apis/bot/v2/hook/|api\.telegram\.org/bot|api\.day\.app/|sctapi\.ftqq\.com/"
        r"|(?<![A-Za-z])(?:ssr?|vmess|vless|trojan|hysteria2?|hy2|tuic)://)"
        rf"(?P<it>{_HAS_DIGIT}[A-Za-z0-9_+/=%:-]{{8,4096}})",
        hides=(
            ("https://hooks.slack.com/services/T00/B00/a1B2c3D4e5", "a1B2c3D4e5"),
            (f"https://discord.com/api/webhooks/123456789012345678/{_RANDOM}", _RANDOM),
            (f"https://open.feishu.cn/open-apis/bot/v2/hook/{_RANDOM}", _RANDOM),
            (f"https://api.telegram.org/bot12345678:{_RANDOM}/getMe", _RANDOM),
            (f"ss://{_RANDOM}@1.2.3.4:8388", _RANDOM),
            (f"vmess://{_RANDOM}", _RANDOM),
        ),
        keeps=("https://discord.com/api/webhooks/docs", "vmess://协议", "wss://x.cn/v1/stream"),
    ),
    Rule(
        "secret",
        "mark_key",
        f"(?-i:{_NOT_BEFORE}(?:{'|'.join(_TOKEN_SHAPES)}){_NOT_AFTER})",
        hides=(
            (f"sk-{_RANDOM}", _RANDOM),
            (f"pat_{_RANDOM}", _RANDOM),
            (f"dataset-{_RANDOM}", _RANDOM),
            (f"shpat_{_RANDOM}", _RANDOM),
            (f"dckr_pat_{_RANDOM}", _RANDOM),
            (f"bce-v3/ALTAK-AbCdEfGh/{_RANDOM}", _RANDOM),
            (f"hvs.{_RANDOM}", _RANDOM),
            (f"GOCSPX-{_RANDOM}", _RANDOM),
            (f"我的是ｓｋ－{_RANDOM}".replace("－", "-"), _RANDOM),
        ),
        keeps=("dataset-for-training-and-evaluation", "pat_the_dog_on_the_head", "bce-v3/docs"),
    ),
    Rule(
        "number",
        "mark_id_card",
        r"(?<![0-9])[1-9][0-9]{5}[ ./-]?(?:18|19|20)[0-9]{2}[ ./-]?(?:0[1-9]|1[0-2])[ ./-]?"
        r"(?:0[1-9]|[12][0-9]|3[01])[ ./-]?[0-9]{3}[0-9Xx](?![0-9])",
        hides=(
            ("11010519491231002X", "1949"),
            ("110105 1949 1231 002X", "1949"),
            ("110105-1949-1231-002x", "1949"),
            ("110105.19491231.002X", "1949"),
            ("１１０１０５１９４９１２３１００２Ｘ", "１９４９"),
        ),
        keeps=("110105194912310021",),
        is_it=_is_id_card,
    ),
    *(
        # Longest first: an expiry date or a check code often stands behind the number.
        Rule("number", "mark_bank_card", _card(digits), hides, keeps, is_it=_is_bank_card)
        for digits, hides, keeps in (
            (
                19,
                (("9558800200138893215", "9558800200138893215"),),
                ("6222020200112233440", "1234567890123456782"),
            ),
            (18, (("622202020011223349", "622202020011223349"),), ("622202020011223340",)),
            (17, (("62220202001122338", "62220202001122338"),), ("62220202001122331",)),
            (
                16,
                (
                    ("4111 1111 1111 1111 12/27", "1111 1111"),
                    ("４１１１１１１１１１１１１１１１", "１１１１"),
                ),
                ("4111111111111112", "1111111111111117"),
            ),
            (
                15,
                (("378282246310005", "378282246310005"),),
                ("IMEI 353879234252633", "IMEI 490154203237518"),
            ),
        )
    ),
    Rule(
        "contact",
        "mark_email",
        # Before the @ stand 64 characters at most (RFC 5321), and domains have 253.
        _NOT_BEFORE
        + r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,6}\.[A-Za-z]{2,24}"
        + _NOT_AFTER,
        hides=(("邮箱a.b+c@example.com.cn谢谢", "example"),),
        keeps=("@小红 你好", "a@b"),
    ),
    Rule(
        "contact",
        "mark_phone",
        r"(?<![0-9A-Za-z])(?:\+?86[- ]?)?1[3-9][0-9][- ]?[0-9]{4}[- ]?[0-9]{4}(?![0-9])",
        hides=(
            ("电话13800138000吧", "13800138000"),
            ("+86 138-0013-8000", "0013"),
            ("１３８００１３８０００", "１３８"),
        ),
        keeps=("12345678901", "SF13800138000"),
    ),
)
_COMPILED = tuple((rule, re.compile(rule.pattern, re.IGNORECASE | re.DOTALL)) for rule in RULES)


def hide(draft: Draft, kinds: Iterable[str], texts: Texts) -> None:
    """Puts a mark in the place of everything that rules of these kinds find.

    Args:
        draft: What somebody said.
        kinds: See `Rule`.
        texts: The wording of the marks.
    """
    for rule, pattern in _COMPILED:
        if rule.kind in kinds:
            draft.replace(pattern, _judged(rule, draft, texts), WORDS)


def _judged(rule: Rule, draft: Draft, texts: Texts) -> Callable[[re.Match[str], str], str | None]:
    return lambda found, _: draft.keep(texts(rule.mark)) if rule.is_it(found[0]) else None
