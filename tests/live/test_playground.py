"""The playground shows that the right people are remembered, and only they."""

from __future__ import annotations

import asyncio
import json
import os
import re
import select
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from rig import venvs
from rig.hindsight import HindsightServer
from rig.playground import friend
from rig.playground.cast import SECRETS, Language, Question, cast
from rig.playground.show import folded
from rig.playground.words import Words
from rig.polling import PATIENCE, wait_for
from rig.proxy import RecordingProxy
from rig.stack import CHECKOUT

COMMAND = (sys.executable, str(CHECKOUT / "tests" / "playground.py"))
LIMIT_SECONDS = 600


SAID = {
    "zh": (
        "小助手：",
        r"    ↳ (注入 \d+ 行|没有注入)",
        r"启动完成，用了 [\d.]+ 秒。",
        "演示成功",
        "正在停止 …",
    ),
    "en": (
        "Bot: ",
        r"    ↳ (injected \(\d+\)|nothing injected)",
        r"Started in [\d.]+ s\.",
        "All went well",
        "Stopping ...",
    ),
}
SEPARATOR = {"zh": "：", "en": ": "}
REFUSED = {"zh": "这个我还不知道。", "en": "I do not know that yet."}


def turns(transcript: str, bot: str) -> Iterator[tuple[str, str, str]]:
    """Returns place and words of each message, and what came before the next one's."""
    pieces = re.split(rf"^\[([^\]\n]+)\] (?!{bot})", transcript, flags=re.MULTILINE)
    for place, rest in zip(pieces[1::2], pieces[2::2], strict=True):
        words, _, answer = rest.partition("\n")
        yield place, words, answer


class ScriptTest(unittest.TestCase):
    """Without a terminal it plays the script and ends."""

    def check(self, code: int | None, transcript: str, language: Language) -> None:
        self.assertEqual(code, 0, transcript)
        bot, injected, started, success, stopping = SAID[language]
        self.assertEqual(len(re.findall(rf"^{started}$", transcript, re.MULTILINE)), 1)
        played = cast(language)
        asked: dict[tuple[str, str], list[str]] = {}
        for place, words, answer in turns(transcript, bot):
            asked.setdefault((place, words), []).append(answer)

        def answers(question: Question) -> list[str]:
            said = SEPARATOR[language].join((question.voice.name, question.text))
            return asked[question.voice.place, said]

        for question in played.questions:
            assert question.fact is not None
            shown, _, reply = answers(question)[0].partition(bot)
            self.assertRegex(shown, injected)
            self.assertRegex(reply, rf"^(?:你|You).*{question.fact.key}.*[。.]\n")
        for question in played.strangers:
            self.assertIn(REFUSED[language], answers(question)[0])
        self.assertNotIn(played.forgotten.key, answers(played.after)[-1])
        self.assertNotRegex(transcript, r"#[0-9a-f]{6}|\dT\d")
        self.assertRegex(transcript, rf"\n{success}[^\n]*\n(?:  · .*\n)+{re.escape(stopping)}\n$")

    def test_here(self) -> None:
        done = subprocess.run(
            COMMAND,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        self.check(done.returncode, done.stdout.decode(), "zh")

    def test_hindsight_elsewhere_in_english(self) -> None:
        asyncio.run(self.with_hindsight_elsewhere())

    async def with_hindsight_elsewhere(self) -> None:
        python = await asyncio.to_thread(venvs.ensure, "hindsight")
        async with HindsightServer(python) as server, RecordingProxy(server.url) as proxy:
            process = await asyncio.create_subprocess_exec(
                *COMMAND,
                f"--api-base={proxy.url}",
                f"--api-key={server.api_key}",
                "--bank-id=my bank",
                "--lang=en",
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            async with asyncio.timeout(LIMIT_SECONDS):
                output, _ = await process.communicate()
            self.check(process.returncode, output.decode(), "en")
            self.assertTrue(proxy.matching("/banks/my%20bank/memories", "POST"))
            sent = "".join(f"{one.path}{one.headers}{one.body.decode()}" for one in proxy.requests)
            self.assertNotRegex(sent, "|".join(SECRETS))


BLOCK = """<hindsight_memory>
Speaking now: Big Sam#3ab2ad
2026-03-04
- Big Sam#3ab2ad: My cat is called Dumpling, don't forget. / Bot: All right, noted.
- Rain#ddfc12: My dog is called Button.
- 小雨#c4bcc7: 我的车停在三号楼下，请记住。
- Rain moved to the harbour. (#ddfc12)
</hindsight_memory>"""


class FriendTest(unittest.TestCase):
    """The chat model quotes the words of the block, and nothing of its form."""

    def test_quotes_words_alone(self) -> None:
        for words, expected in {
            "What is my cat called?": "Your cat is called Dumpling.",
            "What is Rain's dog called?": "Rain said: My dog is called Button.",
            "小雨的车停在哪里？": "小雨说过：我的车停在三号楼下。",
            "What is my dog's age?": "I do not know that yet.",
            "My bird is called Pip.": "All right, noted.",
        }.items():
            with self.subTest(words=words):
                content = [{"type": "text", "text": one} for one in (words, BLOCK)]
                body = {"messages": [{"role": "user", "content": content}]}
                self.assertEqual(friend.answer(body), expected)

    def test_folds_a_block_to_one_line(self) -> None:
        self.assertEqual(
            folded(BLOCK, Words("en")),
            "    ↳ injected (4): Big Sam: My cat is called Dumpling, don't forget. ‖ "
            "Rain: My dog is called Button. ‖ 小雨: 我的车停在三号楼下，请记住。 ‖ "
            "Rain moved to the harbour.",
        )


class Screen:
    """The playground on a terminal."""

    def __init__(self, *arguments: str, temp: Path) -> None:
        self._ours, theirs = os.openpty()
        self._process = subprocess.Popen(
            [*COMMAND, *arguments],
            env={**os.environ, "TMPDIR": str(temp)},
            preexec_fn=lambda: os.login_tty(theirs),  # noqa: PLW1509 - no threads run yet
        )
        os.close(theirs)
        self._unseen = ""

    def wait(self, pattern: str) -> str:
        """Waits for something on the screen and returns all that came up to it."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while not (found := re.search(pattern, self._unseen)):
            assert time.monotonic() < deadline, f"no {pattern} in: {self._unseen}"
            assert self._process.poll() is None, f"ended without {pattern}: {self._unseen}"
            if select.select([self._ours], [], [], 1)[0]:
                self._unseen += os.read(self._ours, 65536).decode(errors="replace")
        seen, self._unseen = self._unseen[: found.end()], self._unseen[found.end() :]
        return seen

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def ended(self) -> int:
        """Waits for the end, reading on, and returns the exit code."""
        wait_for(self._has_ended, PATIENCE, "the end")
        return self._process.wait()

    def _has_ended(self) -> bool:
        if select.select([self._ours], [], [], 0)[0]:
            try:
                os.read(self._ours, 65536)
            except OSError:  # Linux says so when the other end is closed
                return self._process.poll() is not None
        return self._process.poll() is not None

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._ours)


def processes_in(folder: Path) -> list[str]:
    """Returns the command lines of processes that work in a folder or below it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str((process / "cwd").readlink()).startswith(str(folder)):
                found.append((process / "cmdline").read_text("utf-8", "replace"))
        except OSError:  # it has just ended, or is not ours
            continue
    return found


class TerminalTest(unittest.TestCase):
    """On a terminal one can go on; Ctrl-C leaves nothing behind."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.temp = Path(folder.name)
        self.temp.chmod(0o755)

    def test_chat_and_web_interface(self) -> None:
        screen = Screen("--webui", temp=self.temp)
        self.addCleanup(screen.close)
        address = screen.wait(r"http://127\.0\.0\.1:\d+").rpartition("http")[2]
        with urllib.request.urlopen(f"http{address}", timeout=PATIENCE) as page:
            self.assertEqual(page.status, 200)
        self.check_login(f"http{address}", screen.wait(r"用户名 \S+，密码 \S+，"))
        screen.wait("选择编号.*：")
        screen.type("1\n")
        self.check_chat(screen)
        self.assertTrue(processes_in(self.temp))
        screen.type("\x03")
        self.assertEqual(screen.ended(), 0)
        self.check_nothing_left()

    def check_login(self, address: str, shown: str) -> None:
        """Fails unless one can log in with what is on the screen."""
        user, password = re.findall(r"(?:用户名|密码) (\S+)，", shown)
        login = urllib.request.Request(
            f"{address}/api/v1/auth/login",
            json.dumps({"username": user, "password": password}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(login, timeout=PATIENCE) as answer:
            self.assertEqual(json.load(answer)["status"], "ok")

    def check_chat(self, screen: Screen) -> None:
        prompt = "小雨（机器人管理员）："
        screen.wait(prompt)
        screen.type("我的猫叫团子，别忘了。\n")
        screen.wait(r"小助手：好的.*\n")
        screen.wait(prompt)
        screen.type("/hindsight stats json\n")
        self.assertNotIn("注入", screen.wait(r"小助手：.*\{"))
        screen.type("/hindsight wipe\n")
        code = screen.wait(r"wipe \d+").rpartition(" ")[2]
        screen.type(f"/hindsight wipe {code}\n")
        screen.wait("已清空")
        screen.type(":who\n")
        screen.wait("选择编号.*：")
        screen.type("2\n")
        screen.wait("阿哲：")
        screen.type("我的猫叫什么？\n")
        self.assertNotIn("团子", screen.wait("小助手：.*\n"))

    def test_interrupted_at_any_moment(self) -> None:
        for mark in ("正在启动", "  AstrBot", "等待中"):
            with self.subTest(mark=mark):
                screen = Screen(temp=self.temp)
                self.addCleanup(screen.close)
                screen.wait(mark)
                screen.type("\x03")
                self.assertEqual(screen.ended(), 130)
                self.check_nothing_left()

    def check_nothing_left(self) -> None:
        self.assertEqual(processes_in(self.temp), [])
        left = [path.name for path in self.temp.iterdir() if "postgres" not in path.name]
        self.assertEqual(left, [])


if __name__ == "__main__":
    unittest.main()
