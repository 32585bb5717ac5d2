"""A private memory that is read in a group, seen in the model's requests and in Hindsight."""

from __future__ import annotations

import re

from rig.model import memory_blocks
from test_rights import RightsCase

ANN, BEN, GROUP, ELSEWHERE = 35101, 35102, 77101, 77102
SECRET, QUESTION = "我的护照放在蓝色柜子里，请记住。", "我的护照放在哪里？"
HIDDEN = "蓝色柜子"


class SharingTest(RightsCase):
    """On a Hindsight without a model, which keeps what was said as it was said."""

    async def block(self, who: int, group: int, words: str = QUESTION) -> str:
        """What the model is given with a question."""
        self.model.clear()
        await self.say(who, words, group)
        return "".join(memory_blocks(self.model.requests[-1]))

    async def share(self) -> str:
        code = re.findall(r"share (\d{6})", await self.command(ANN, "share"))[0]
        self.assertIn("不对", await self.command(BEN, f"share {code}", GROUP))
        return await self.command(ANN, f"share {code}", GROUP)

    async def test_only_its_person_is_given_it_and_nobody_keeps_it(self) -> None:
        await self.say(ANN, SECRET)
        private = await self.tags_of("护照")
        await self.say(BEN, "我们每周五晚上打羽毛球，请记住。", GROUP)
        group = await self.tags_of("羽毛球")
        await self.settled()
        self.assertNotIn(HIDDEN, await self.block(ANN, GROUP))
        self.assertIn("全群都看得到", await self.share())

        self.proxy.clear()
        block = await self.block(ANN, GROUP)
        self.assertRegex(block, rf"\[私聊\] .*{HIDDEN}")
        recalls = [one.json for one in self.proxy.matching("/memories/recall", "POST")]
        asked = [tuple(sorted(body["tags"])) for body in recalls]
        self.assertCountEqual(asked, [private, group])
        self.assertEqual({body["tags_match"] for body in recalls}, {"all_strict"})
        self.assertEqual(await self.say(ANN, f"{QUESTION}其二", GROUP), f"收到：{QUESTION}其二")
        self.assertIn(HIDDEN, await self.command(ANN, "why", GROUP))

        for who, where in ((BEN, GROUP), (ANN, ELSEWHERE), (BEN, ELSEWHERE)):
            self.assertNotIn(HIDDEN, await self.block(who, where))
        for who in (ANN, BEN):
            for words in ("list", f"recall {QUESTION}"):
                self.assertNotIn(HIDDEN, await self.command(who, words, GROUP))
        self.assertNotIn(HIDDEN, await self.command(BEN, "why", GROUP))

        said = await self.stored(f"{QUESTION}其二", group)
        self.assertEqual(len(said["original_text"].splitlines()), 1)  # without the answer
        await self.settled()
        self.assertEqual(await self.held(group, HIDDEN), [])
        self.assertNotRegex(self.state(), f"{ANN}|{GROUP}")

        await self.command(ANN, "unshare", GROUP)
        self.assertNotIn(HIDDEN, await self.block(ANN, GROUP))
        await self.share()
        self.assertIn(HIDDEN, await self.block(ANN, GROUP))
        await self.wipe(ANN)
        self.assertNotIn(HIDDEN, await self.block(ANN, GROUP))
        self.assertNotIn("shares", self.state())
