"""What a text looks like that tries to give the bot orders."""

from __future__ import annotations

import re
import unicodedata

from .draft import SYNTAX, folded

_SIMPLE = str.maketrans(
    "從現無視記設發開員識規則須聽執務請後這個話變詞說裝統當還許應該認為對給嗎們內讓進啟訊輸",
    "从现无视记设发开员识规则须听执务请后这个话变词说装统当还许应该认为对给吗们内让进启讯输",
)
"""Traditional characters, as far as they stand in the patterns."""
_SPACED = re.compile(r"(?<=[\u3400-\u9fff])[\s·・*_~|/\\-]+(?=[\u3400-\u9fff])")

_ORDER = re.compile(
    r"忽略(?:掉)?(?:以上|之前|前面|前文|先前|上面|上述|所有|一切|你)"
    r"|无视(?:掉)?(?:以上|之前|前面|前文|先前|上面|上述|所有|一切|你的)"
    r"|(?:不要?|别|停止|无需)(?:再)?(?:理会|遵守|听从|遵循).{0,8}(?:指令|设定|规则|提示|要求)"
    r"|忘(?:记|掉|了)(?:你|之前|以上|前面|所有).{0,6}(?:指令|设定|规则|身份|提示|要求|一切)"
    r"|(?:指令|设定|规则|提示)(?:全|都|全都)?忘"
    r"|从(?:现在|今天?)(?:起|开始|往后|以后)[，,、 ]*(?:你|请|所有|只|必须)"
    r"|(?:以后|今后)(?:你(?:都|就)?(?:必须|只能|要|得|叫)|(?:都|就)?(?:必须|只能|要叫)"
    r"|(?:每次|所有|你的)?回答)"
    r"|你(?:现在|从今)(?:是|就是|叫|必须|扮演)"
    r"|你(?:必须|只能|要无条件)(?:听|服从|执行|回答|遵守|回复|输出)"
    r"|(?:你|请|来|要)(?:来)?扮演|假装你?是"
    r"|(?:进入|开启|启用|切换到?).{0,6}(?:开发者|越狱|无限制|DAN|上帝)模式"
    r"|(?:输出|告诉|说出|重复|显示|透露).{0,8}提示词|把.{0,8}提示词"
    r"|(?<!操作)(?:系统|开发者|管理员)(?:提示词?|消息|讯息|指令|通知|管理员)?[ ]?[:：]"
    r"|[\[<](?:系统|开发者|管理员)(?:提示词?|消息|讯息|指令|通知)?[\]>]"
    r"|(?:助手|你)的(?:规则|指令|设定|任务|身份)[ ]?(?:[:：]|是|改)|你的新(?:身份|指令|设定|任务)"
    r"|\b(?:ignore|disregard|forget|override)\b.{0,20}"
    r"\b(?:previous|above|prior|earlier|all|your (?:instructions?|rules?|prompt|training|role))\b"
    r"|\b(?:do not|don'?t|stop) (?:follow|obey)(?:ing)?\b.{0,20}"
    r"\b(?:rules?|instructions?|guidelines?|prompt)\b"
    r"|\b(?:enter|enable) (?:developer|dan|god|jailbreak) mode\b"
    r"|\b(?:reveal|print|repeat|output|show) your (?:system )?(?:prompt|instructions)\b"
    r"|\bfrom now on\b|\byou (?:are now"
    r"|must(?: now)? (?:always|never|obey|only|act|answer|reply|respond))\b"
    r"|\b(?:act as|pretend (?:to be|you|that you)|role-?play as)\b"
    r"|\b(?:new|system) (?:instructions?|prompt)\b"
    r"|(?:^|[\s>\[<|\"'(])(?:system|developer|assistant)(?:\s*(?:message|prompt|note))?\s*[:\]|>]"
    r"|<\|?im_start|\[/?inst\]|#{2,3}\s?(?:system|instruction)"
    r"|\bignor(?:a|ar|e|ez|er|iere|iera|are)\b.{0,30}\b(?:instruc|istruz|anweisung|ant[ée]rior)"
    r"|\b(?:verg[ie]ss|olvida|oublie)\w{0,2}\b.{0,30}\b(?:instruc|anweisung|regeln|ant[ée]rior)"
    r"|(?:игнорир|забуд).{0,30}(?:инструкц|указан|предыдущ)"
    r"|(?:指示|命令|ルール).{0,8}(?:無視|忘れ)|(?:今|これ)から(?:あなた|君|お前)は"
    r"|(?:システム|開発者)(?:メッセージ|プロンプト)?[ ]?[:：]"
    r"|(?:지시|명령|규칙).{0,6}무시|지금부터 ?(?:너|당신)"
    r"|تجاهل .{0,20}تعليمات|bỏ qua .{0,20}hướng dẫn",
    re.IGNORECASE,
)


def is_order(text: str) -> bool:
    """Whether a text tries to give the bot orders, however it is spelled.

    A false alarm costs quotation marks, no more.
    """
    if _ORDER.search(text):
        return True
    plain = unicodedata.normalize("NFKC", text).translate(_SIMPLE)
    return any(_ORDER.search(_SPACED.sub("", one)) for one in {plain, folded(plain, SYNTAX)})
