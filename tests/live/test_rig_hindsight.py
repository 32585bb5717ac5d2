"""The Hindsight half of the rig: a real server, the proxy and the far link in front of it."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from rig import venvs
from rig.bank import Bank
from rig.certificates import loopback_tls
from rig.faults import BlackHole, BrokenJson, Delay, DropResponse, Fault, Html, Refuse, Status
from rig.hindsight import HindsightServer
from rig.link import DelayLink
from rig.polling import PATIENCE, eventually
from rig.proxy import RecordingProxy

TAGS = ["scope:group", "platform:aiocqhttp", "group:g1", "umo:u1"]
WHEN = "2026-11-29T10:00:00+08:00"
ALLERGY = f"小明#3fa2c1 ({WHEN}): 我对花生过敏，千万别给我吃"
CAT = f"小红#aa11bb ({WHEN}): 我养了一只叫团子的猫"
RTT = 0.5


def item(document_id: str, *lines: str) -> dict[str, Any]:
    """Return an item as the plugin stores one."""
    return {
        "content": "\n".join(lines),
        "document_id": document_id,
        "timestamp": WHEN,
        "context": "QQ group chat, speakers are labelled",
        "metadata": {"plugin": "test"},
        "tags": TAGS,
        "observation_scopes": "combined",
    }


class WithoutModel(unittest.IsolatedAsyncioTestCase):
    """One server with real embeddings for all of these tests, each with a proxy of its own."""

    server: HindsightServer

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = HindsightServer(venvs.ensure("hindsight"))
        asyncio.run(cls.server.start())

    @classmethod
    def tearDownClass(cls) -> None:
        asyncio.run(cls.server.stop())

    async def asyncSetUp(self) -> None:
        self.proxy = await RecordingProxy(self.server.url).start()
        self.addAsyncCleanup(self.proxy.stop)
        self.client = self.client_for(self.proxy.url)
        self.addAsyncCleanup(self.client.aclose)
        self.bank = Bank(self.server, self.id().rpartition(".")[2])
        self.addAsyncCleanup(self.bank.close)
        self.addAsyncCleanup(self.bank.delete)

    def client_for(self, url: str, **options: Any) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {self.server.api_key}"},
            timeout=PATIENCE,
            trust_env=False,
            **options,
        )

    def path(self, end: str) -> str:
        return f"/v1/default/banks/{self.bank.bank_id}{end}"

    async def version(self) -> httpx.Response:
        return await self.client.get("/version")

    async def test_retain_and_recall_through_the_proxy(self) -> None:
        body = {"items": [item("d-1", ALLERGY), item("d-2", CAT)], "async": True}
        retained = await self.client.post(self.path("/memories"), json=body)
        self.assertEqual(retained.status_code, 200)
        await self.bank.settled()

        query = {"query": "有什么东西不能吃", "tags": TAGS, "tags_match": "all_strict"}
        recalled = await self.client.post(self.path("/memories/recall"), json=query)

        self.assertEqual(recalled.json()["results"][0]["text"], ALLERGY)
        self.assertEqual(self.proxy.connections, 1)
        self.assertEqual([one.status for one in self.proxy.requests], [200, 200])
        asked = self.proxy.matching("/recall", "POST")[0]
        self.assertEqual(asked.json, query)
        self.assertEqual(asked.response_json, recalled.json())
        self.assertEqual(asked.path, self.path("/memories/recall"))
        self.assertIn("authorization", asked.headers)
        self.assertGreater(self.proxy.bytes_in, len(retained.request.content))
        self.assertGreater(self.proxy.bytes_out, 500)

    async def test_bank_shows_what_is_stored(self) -> None:
        self.assertEqual(await self.bank.documents(), [])
        await self.bank.retain(item("d/1 茶", ALLERGY), item("d-2", CAT))

        documents = await self.bank.documents(TAGS, texts=True)
        self.assertEqual({one["original_text"] for one in documents}, {ALLERGY, CAT})
        self.assertEqual(len(await self.bank.memories(TAGS)), 2)
        self.assertEqual(await self.bank.memories(["scope:private"]), [])
        self.assertEqual({one["status"] for one in await self.bank.operations()}, {"completed"})
        await self.bank.delete()
        self.assertEqual(await self.bank.documents(), [])

    async def test_wrong_key_and_unknown_bank(self) -> None:
        wrong = {"Authorization": "Bearer hsk_wrong"}
        refused = await self.client.get(self.path("/tags?limit=1"), headers=wrong)
        self.assertEqual(refused.status_code, 401)
        unknown = await self.client.get(self.path("/tags?limit=1"))
        self.assertEqual(unknown.status_code, 404)
        self.assertEqual(self.proxy.requests[-1].path, self.path("/tags?limit=1"))

    async def test_restart_and_kill_keep_the_database(self) -> None:
        await self.bank.retain(item("d-1", ALLERGY))
        await self.server.restart()
        self.assertEqual(len(await self.bank.documents()), 1)
        self.server.kill()
        with self.assertRaises(httpx.TransportError):
            await self.bank.documents()
        await self.server.start()
        self.assertEqual(len(await self.bank.documents()), 1)

    async def test_answers_of_the_proxy_itself(self) -> None:
        limited = Status(429, {"detail": "slow down"}, {"Retry-After": "2"})
        self.proxy.fault = Fault(limited, times=1)
        answer = await self.version()
        self.assertEqual((answer.status_code, answer.headers["retry-after"]), (429, "2"))
        self.assertEqual(answer.json(), {"detail": "slow down"})
        self.assertEqual((await self.version()).status_code, 200)

        self.proxy.fault = BrokenJson()
        with self.assertRaises(ValueError):
            (await self.version()).json()
        self.proxy.fault = Html(403)
        answer = await self.version()
        self.assertEqual(answer.status_code, 403)
        self.assertIn("text/html", answer.headers["content-type"])
        self.assertEqual(self.proxy.connections, 1)

    async def test_refuse(self) -> None:
        await self.version()
        self.proxy.fault = Refuse()
        with self.assertRaises(httpx.ConnectError):
            await self.version()
        self.proxy.fault = None
        self.assertEqual((await self.version()).status_code, 200)
        self.assertEqual(len(self.proxy.requests), 2)
        with self.assertRaises(ValueError):
            Fault(Refuse(), times=1)

    async def test_black_hole(self) -> None:
        self.proxy.fault = Fault(BlackHole(), match="/version")
        with self.assertRaises(httpx.ReadTimeout):
            await self.client.get("/version", timeout=httpx.Timeout(PATIENCE, read=0.3))
        self.assertEqual((await self.client.get("/health")).status_code, 200)
        self.assertIsNone(self.proxy.requests[0].status)
        self.assertEqual(self.proxy.requests[0].fault, BlackHole())

    async def test_drop_response_reaches_the_server(self) -> None:
        self.proxy.fault = Fault(DropResponse(), times=1)
        body = {"items": [item("d-1", ALLERGY)], "async": True}
        with self.assertRaises(httpx.RemoteProtocolError):
            await self.client.post(self.path("/memories"), json=body)
        await self.bank.settled()
        self.assertEqual(len(await self.bank.documents()), 1)

    async def test_delay_probability_and_predicate(self) -> None:
        self.proxy.fault = Delay(0.3)
        began = time.perf_counter()
        await self.version()
        self.assertGreaterEqual(time.perf_counter() - began, 0.3)

        self.proxy.fault = Fault(Status(500), probability=0.5, seed=1)
        statuses = [(await self.version()).status_code for _ in range(20)]
        self.assertEqual(set(statuses), {200, 500})
        self.proxy.fault = Fault(Status(500), match=lambda one: one.method == "POST")
        self.assertEqual((await self.version()).status_code, 200)
        self.assertEqual((await self.client.post("/version")).status_code, 500)

    async def test_idle_connections_are_closed(self) -> None:
        self.proxy.idle_close = 2.0
        await self.version()
        await eventually(lambda: not self.proxy.open_connections, PATIENCE, "the idle close")
        await self.version()
        self.assertEqual(self.proxy.connections, 2)
        self.assertEqual([one.connection for one in self.proxy.requests], [1, 2])

    async def test_far_link(self) -> None:
        async with DelayLink(self.proxy.port, RTT) as link:
            async with self.client_for(link.url()) as client:
                await self.version_through(client)
                await self.version_through(client)
            self.assertEqual(link.connections, 1)
            self.assertEqual((link.bytes_up, link.bytes_down), self.proxy_bytes())
            await self.takes(2, 1, lambda: self.client_for(link.url()))

    async def test_far_link_below_tls(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            tls, certificate = loopback_tls(Path(folder))
            trust = ssl.create_default_context(cafile=str(certificate))
        async with (
            RecordingProxy(self.server.url, tls=tls) as proxy,
            DelayLink(proxy.port, RTT) as link,
        ):
            await self.takes(3, 1, lambda: self.client_for(link.url("https"), verify=trust))
            self.assertGreater(link.bytes_up, proxy.bytes_in)

    def proxy_bytes(self) -> tuple[int, int]:
        return self.proxy.bytes_in, self.proxy.bytes_out

    async def takes(self, cold: int, warm: int, client: Callable[[], httpx.AsyncClient]) -> None:
        """Fails unless a first and a later request take so many round trips.

        They never take less; a busy machine may take longer now and then, so they are sent until
        both have been seen once without such a pause.
        """
        seen: set[tuple[int, int]] = set()

        async def as_expected() -> bool:
            async with client() as one:
                seen.add((await self.version_through(one), await self.version_through(one)))
            least = tuple(map(min, zip(*seen, strict=True)))
            self.assertGreaterEqual(least, (cold, warm))
            return least == (cold, warm)

        await eventually(as_expected, PATIENCE, f"{cold} and {warm} round trips")

    async def version_through(self, client: httpx.AsyncClient) -> int:
        """Ask for the version and return how many round trips that took."""
        began = time.perf_counter()
        (await client.get("/version")).raise_for_status()
        return int((time.perf_counter() - began) / RTT)


class WithModel(unittest.IsolatedAsyncioTestCase):
    """A server with the stub model."""

    server: HindsightServer

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = HindsightServer(venvs.ensure("hindsight"), model="stub", embeddings="hashed")
        asyncio.run(cls.server.start())

    @classmethod
    def tearDownClass(cls) -> None:
        asyncio.run(cls.server.stop())

    async def asyncSetUp(self) -> None:
        assert self.server.model is not None
        self.model = self.server.model
        self.bank = Bank(self.server, self.id().rpartition(".")[2])
        self.addAsyncCleanup(self.bank.close)
        self.addAsyncCleanup(self.model.heal)

    async def test_facts_observations_and_reflect(self) -> None:
        await self.bank.retain(item("d-1", ALLERGY, CAT))
        facts = await self.bank.memories(TAGS, "world")
        self.assertCountEqual([one["text"].partition(" | ")[0] for one in facts], [ALLERGY, CAT])
        observations = await self.bank.memories(TAGS, "observation")
        self.assertEqual(len(observations), 2)
        self.assertEqual(set(observations[0]["tags"]), set(TAGS))

        answer = await self.bank.reflect("小明对花生过敏吗？", TAGS)
        self.assertIn("我对花生过敏", answer["text"])
        nothing = await self.bank.reflect("小明对花生过敏吗？", ["scope:private"])
        self.assertNotIn("花生", nothing["text"])
        kinds = {call["kind"] for call in await self.model.calls()}
        self.assertEqual(kinds, {"extraction", "consolidation", "reflect"})

    async def test_greedy_merges_observations(self) -> None:
        await self.model.mode("greedy")
        self.addAsyncCleanup(self.model.mode, "create")
        await self.bank.retain(item("d-1", ALLERGY))
        await self.bank.retain(item("d-2", CAT))
        (merged,) = await self.bank.memories(TAGS, "observation")
        self.assertIn("花生", merged["text"])
        self.assertIn("团子", merged["text"])

    async def test_profile_page_grows(self) -> None:
        await self.bank.retain(item("d-1", ALLERGY))
        page = {
            "id": "profile",
            "name": "profile",
            "source_query": "谁说了什么？",
            "tags": TAGS,
            "trigger": {"mode": "delta", "refresh_after_consolidation": True},
        }
        (await self.bank.request("POST", "/mental-models", json=page)).raise_for_status()
        await eventually(lambda: self.profile_has("花生"), PATIENCE, "the first refresh")
        await self.bank.retain(item("d-2", CAT))
        await eventually(lambda: self.profile_has("花生", "团子"), PATIENCE, "the second refresh")

    async def profile_has(self, *words: str) -> bool:
        answer = await self.bank.request("GET", "/mental-models/profile")
        content = answer.raise_for_status().json()["content"] or ""
        return all(word in content for word in words)

    async def test_broken_model(self) -> None:
        for fault in (401, "garbage"):
            await self.model.fail(fault)
            await self.bank.retain(item(f"d-{fault}", ALLERGY), settle=None)
            await eventually(self.errors, PATIENCE, f"an error after {fault}")
            self.assertEqual(await self.bank.memories(), [])
            await self.bank.delete()

    async def errors(self) -> list[str]:
        return [
            one["error_message"] for one in await self.bank.operations() if one["error_message"]
        ]


if __name__ == "__main__":
    unittest.main()
