"""The main job, seen in the model's requests, in Hindsight and in the chat."""

from __future__ import annotations

import re

from rig.model import memory_blocks, system_prompt, user_text
from rig.polling import eventually
from rig.stack import StackTest

ALICE, BOB, GROUP = 30101, 30102, 70101
DRINK = "我最喜欢的饮料是冰美式，请记住。"
QUESTION = "我最喜欢喝什么？"


class RemembersTest(StackTest):
    """What is said in a chat is known in that chat and nowhere else."""

    async def stored(self, text: str) -> dict:
        """Awaits the document with a text and returns it."""

        async def found() -> dict | None:
            await self.bank.settled()
            for document in await self.bank.documents(texts=True):
                if text in document["original_text"]:
                    return document
            return None

        return await eventually(found, 60, f"a document with {text}")

    async def block_for(self, ask) -> str:
        """Asks something and returns the block that the model was given with it."""
        self.model.clear()
        await ask()
        return "".join(memory_blocks(self.model.requests[-1]))

    async def test_private_chat_is_remembered(self) -> None:
        onebot = self.bot.onebot
        await onebot.ask_private(ALICE, DRINK)
        document = await self.stored("冰美式")
        self.assertEqual(len(document["tags"]), 4)

        block = await self.block_for(lambda: onebot.ask_private(ALICE, QUESTION))
        self.assertIn("冰美式", block)
        self.assertEqual(block.count("<hindsight_memory>"), 1)
        self.assertNotIn("hindsight_memory", system_prompt(self.model.requests[-1]))
        self.assertEqual(user_text(self.model.requests[-1]), QUESTION)

        block = await self.block_for(lambda: onebot.ask_private(BOB, QUESTION))
        self.assertNotIn("冰美式", block)
        block = await self.block_for(lambda: onebot.ask_group(GROUP, ALICE, QUESTION))
        self.assertNotIn("冰美式", block)

        saved = str(self.bot.conversations())
        self.assertIn(QUESTION, saved)
        self.assertNotIn("hindsight_memory", saved)
