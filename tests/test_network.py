"""The environment may hold anything: requests find a way, and what is odd is named."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import plugin  # noqa: F401
from astrbot_plugin_hindsight_memory.assembly import open_client
from astrbot_plugin_hindsight_memory.hindsight_client import HindsightClient
from astrbot_plugin_hindsight_memory.hindsight_types import HindsightError, RetryLaterError
from astrbot_plugin_hindsight_memory.network import Route, is_at_home, route_to
from astrbot_plugin_hindsight_memory.texts import Texts
from support import Clock, FakeServer, LogRecords, make_settings, reply

CLOUD = "https://api.hindsight.vectorize.io"
PROXY = "http://127.0.0.1:7890"
ASTRBOT = {
    "http_proxy": PROXY,
    "https_proxy": PROXY,
    "no_proxy": "localhost,127.0.0.1,::1,10.*,192.168.*",
}
"""What AstrBot puts into the environment where its `http_proxy` is set."""


class NetworkCase(unittest.TestCase):
    def setUp(self) -> None:
        names = ("http", "https", "all", "no")
        for name in os.environ.copy():
            if name.lower() in {f"{one}_proxy" for one in names} or name.startswith("SSL"):
                self.enterContext(mock.patch.dict(os.environ))
                del os.environ[name]

    def route(self, address: str = CLOUD, **environment: str) -> Route:
        with mock.patch.dict(os.environ, environment):
            return route_to(address)

    def notices(self, route: Route) -> list[tuple[str, Any]]:
        for notice in route.notices:
            for language in ("zh", "en"):
                sentence = Texts(language)(notice.key, **notice.values)
                for value in notice.values.values():
                    self.assertIn(value, sentence)
        return [(notice.key, notice.values.get("variable")) for notice in route.notices]


class HomeTest(unittest.TestCase):
    def test_hosts(self) -> None:
        for home, hosts in (
            (
                True,
                (
                    "localhost",
                    "hindsight",
                    "Nas.local",
                    "nas.lan.",
                    "host.docker.internal",
                    "127.0.0.1",
                    "127.8.9.1",
                    "10.0.0.5",
                    "172.16.0.1",
                    "172.31.255.1",
                    "192.168.1.5",
                    "169.254.1.1",
                    "100.64.0.1",
                    "::1",
                    "fe80::1",
                    "fd00::1",
                    "::ffff:10.0.0.5",
                    "0.0.0.0",
                ),
            ),
            (
                False,
                (
                    "api.hindsight.vectorize.io",
                    "8.8.8.8",
                    "172.15.0.1",
                    "172.32.0.1",
                    "11.0.0.1",
                    "2606:4700::1",
                    "::ffff:8.8.8.8",
                    "10.example.com",
                    "192.168.1.5.example.com",
                    "localhost.example.com",
                ),
            ),
        ):
            for host in hosts:
                with self.subTest(host):
                    self.assertIs(is_at_home(host), home)


class ProxyTest(NetworkCase):
    def setUp(self) -> None:
        super().setUp()
        self.enterContext(mock.patch("httpx.create_ssl_context"))  # which takes its time

    def test_none(self) -> None:
        route = self.route()
        self.assertEqual((route.proxy, route.notices), (None, ()))

    def test_the_one_for_the_scheme_before_that_for_all(self) -> None:
        for environment, variable in (
            ({"https_proxy": PROXY}, "https_proxy"),
            ({"HTTPS_PROXY": PROXY}, "HTTPS_PROXY"),
            ({"https_proxy": PROXY, "HTTPS_PROXY": "http://x"}, "https_proxy"),
            ({"ALL_PROXY": PROXY}, "ALL_PROXY"),
            ({"ALL_PROXY": "socks://x", "https_proxy": PROXY}, "https_proxy"),
            ({"https_proxy": "127.0.0.1:7890"}, "https_proxy"),
        ):
            with self.subTest(environment=environment):
                route = self.route(**environment)
                assert route.proxy
                self.assertEqual(route.proxy.url, PROXY)
                self.assertEqual(self.notices(route), [("proxy_used", variable)])

    def test_one_for_the_other_scheme_is_none(self) -> None:
        self.assertIsNone(self.route(http_proxy=PROXY).proxy)
        self.assertIsNone(self.route("http://example.com", https_proxy=PROXY).proxy)

    def test_of_use_to_nobody(self) -> None:
        for value in (
            "socks://127.0.0.1:7891",
            "socks4://127.0.0.1:7891",
            "ftp://127.0.0.1",
            "http://[::1",
            "http://",
            "http://127.0.0.1:port",
            "://",
        ):
            for variable in ("ALL_PROXY", "all_proxy", "https_proxy"):
                with self.subTest(value=value, variable=variable):
                    route = self.route(**{variable: value})
                    self.assertIsNone(route.proxy)
                    self.assertEqual(self.notices(route), [("proxy_unusable", variable)])

    def test_socks_needs_what_speaks_it(self) -> None:
        for found in (None, object()):
            with mock.patch("importlib.util.find_spec", return_value=found):
                route = self.route(ALL_PROXY="socks5://127.0.0.1:7891")
            self.assertIs(route.proxy is not None, found is not None)

    def test_a_password_is_not_shown(self) -> None:
        route = self.route(https_proxy="http://ann:secret@proxy.example.com:3128")
        (notice,) = route.notices
        self.assertEqual(notice.values["proxy"], "http://proxy.example.com:3128")
        assert route.proxy
        self.assertEqual(route.proxy.auth, ("ann", "secret"))

    def test_servers_at_home_are_reached_directly(self) -> None:
        for host in (
            "127.0.0.1",
            "127.0.0.2",
            "10.0.0.5",
            "192.168.1.5",
            "172.17.0.1",
            "[::1]",
            "[fd00::5]",
            "hindsight",
            "host.docker.internal",
            "nas.local",
        ):
            for scheme in ("http", "https"):
                for environment in (ASTRBOT, ASTRBOT | {"no_proxy": ""}):
                    with self.subTest(host=host, scheme=scheme, environment=environment):
                        route = self.route(f"{scheme}://{host}:8888", **environment)
                        self.assertEqual((route.proxy, route.notices), (None, ()))

    def test_the_rest_goes_through_it(self) -> None:
        for address in (CLOUD, "https://172.32.0.1", "https://10.example.com"):
            with self.subTest(address):
                self.assertIsNotNone(self.route(address, **ASTRBOT).proxy)

    def test_exceptions(self) -> None:
        for no_proxy, address, direct in (
            ("*", CLOUD, True),
            ("*.vectorize.io", CLOUD, True),
            (".vectorize.io", CLOUD, True),
            ("vectorize.io", CLOUD, True),
            ("API.Hindsight.Vectorize.IO", CLOUD, True),
            ("rize.io", CLOUD, False),
            ("example.com, *.vectorize.io", CLOUD, True),
            ("example.com *.vectorize.io", CLOUD, True),
            ("[::1]", CLOUD, False),
            ("[::1],,:,/,[", CLOUD, False),
            ("8.8.*", "https://8.8.4.4", True),
            ("8.8.0.0/16", "https://8.8.4.4", True),
            ("8.8.4.4", "https://8.8.4.4", True),
            ("8.8.8.0/24", "https://8.8.4.4", False),
            ("[2606:4700::1]", "https://[2606:4700::1]", True),
            ("2606:4700::/32", "https://[2606:4700::1]", True),
        ):
            with self.subTest(no_proxy=no_proxy, address=address):
                route = self.route(address, https_proxy=PROXY, no_proxy=no_proxy)
                self.assertIs(route.proxy is None, direct)


class PlainTest(NetworkCase):
    def test_a_key_in_the_clear_is_named(self) -> None:
        for address in ("http://example.com", "http://8.8.8.8:8888"):
            self.assertEqual(self.notices(self.route(address)), [("plain_http", None)])
        for address in ("http://10.0.0.5", "http://hindsight:8888", "https://example.com"):
            self.assertEqual(self.route(address).notices, ())


class CertificatesTest(NetworkCase):
    def setUp(self) -> None:
        super().setUp()
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.good = len(self.route().tls.get_ca_certs())
        self.assertGreater(self.good, 0)

    def test_what_cannot_be_used(self) -> None:
        garbage = self.folder / "garbage.pem"
        garbage.write_text("no certificate")
        missing = str(self.folder / "missing")
        for variable, value in (
            ("SSL_CERT_FILE", missing),
            ("SSL_CERT_FILE", str(garbage)),
            ("SSL_CERT_FILE", str(self.folder)),
            ("SSL_CERT_DIR", missing),
            ("SSLKEYLOGFILE", f"{missing}/keys.log"),
        ):
            with self.subTest(variable=variable, value=value):
                route = self.route(**{variable: value})
                self.assertEqual(self.notices(route), [("certificates_unusable", variable)])
                self.assertEqual(route.tls.verify_mode, ssl.CERT_REQUIRED)
                self.assertTrue(route.tls.check_hostname)

    def test_the_usual_ones_take_their_place(self) -> None:
        route = self.route(SSL_CERT_FILE=str(self.folder / "missing"))
        self.assertEqual(len(route.tls.get_ca_certs()), self.good)

    def test_what_can_be_used_is(self) -> None:
        pem = self.folder / "own.pem"
        (one, *_) = self.route().tls.get_ca_certs(binary_form=True)
        pem.write_text(ssl.DER_cert_to_PEM_cert(one))
        for environment in (
            {"SSL_CERT_FILE": str(pem)},
            {"SSL_CERT_FILE": str(pem), "SSL_CERT_DIR": str(self.folder / "missing")},
        ):
            route = self.route(**environment)
            self.assertEqual(route.notices, ())
            self.assertEqual(route.tls.get_ca_certs(binary_form=True), [one])
        self.assertEqual(self.route(SSL_CERT_DIR=str(self.folder)).notices, ())

    def test_where_there_is_no_tls_nothing_is_read(self) -> None:
        route = self.route("http://10.0.0.5", SSL_CERT_FILE=str(self.folder / "missing"))
        self.assertEqual(route.notices, ())


class ClientTest(unittest.IsolatedAsyncioTestCase, NetworkCase):
    """The client starts whatever the environment holds, and tells who failed."""

    def open(self, address: str, **environment: str) -> HindsightClient:
        with mock.patch.dict(os.environ, environment):
            client = HindsightClient(
                api_base=address, api_key="hsk_key", bank_id="bot", clock=Clock()
            )
        self.addAsyncCleanup(client.aclose)
        return client

    def fake(self, server: FakeServer, **environment: str) -> HindsightClient:
        with mock.patch.dict(os.environ, environment):
            client = server.client(api_base="http://example.com")
        self.addAsyncCleanup(client.aclose)
        return client

    async def failure(self, client: HindsightClient) -> HindsightError:
        with self.assertRaises(HindsightError) as caught:
            await client.check()
        return caught.exception

    async def test_starts(self) -> None:
        for environment, notices in (
            ({"ALL_PROXY": "socks://127.0.0.1:7891"}, ["proxy_unusable"]),
            ({"SSL_CERT_FILE": "/missing.pem"}, ["certificates_unusable"]),
            ({"no_proxy": "localhost,[::1]", "https_proxy": PROXY}, ["proxy_used"]),
            ({"no_proxy": "localhost,[::1]"}, []),
        ):
            with self.subTest(environment=environment):
                client = self.open(CLOUD, **environment)
                self.assertEqual([notice.key for notice in client.notices], notices)

    async def test_the_plugin_tells_when_it_starts(self) -> None:
        log = LogRecords()
        settings = make_settings(api_base="http://example.com")
        with mock.patch.dict(os.environ, {"ALL_PROXY": "socks://127.0.0.1:7891"}):
            client = open_client(settings, Clock(), log.logger)
        assert client
        self.addAsyncCleanup(client.aclose)
        lines = log.lines(logging.INFO)
        self.assertEqual(len(lines), 2)
        self.assertIn("http://", lines[0])
        self.assertIn("ALL_PROXY", lines[1])

    async def test_what_a_proxy_answers_in_the_servers_place(self) -> None:
        server = FakeServer()
        client = self.fake(server, http_proxy=PROXY)
        for answer in (
            httpx.Response(502, text="<html>Bad Gateway</html>"),
            httpx.Response(503, text=""),
            httpx.Response(504, json={"error": "timeout"}),
            httpx.Response(500, json=["no"]),
            httpx.Response(407, text="<html>"),
        ):
            server.script.append(answer)
            error = await self.failure(client)
            self.assertIsInstance(error, RetryLaterError)
            self.assertEqual((error.reason, error.status), ("proxy_error", answer.status_code))

    async def test_what_the_server_answers_through_a_proxy(self) -> None:
        server = FakeServer()
        client = self.fake(server, http_proxy=PROXY)
        for status, reason in ((500, "server_error"), (503, "overloaded"), (401, "unauthorized")):
            server.script.append(reply(status, {"detail": "no"}))
            self.assertEqual((await self.failure(client)).reason, reason)

    async def test_without_a_proxy_none_is_blamed(self) -> None:
        server = FakeServer()
        client = self.fake(server)
        for fault, reason in (
            (httpx.Response(502, text="<html>"), "server_error"),
            (httpx.ConnectError("refused"), "unreachable"),
        ):
            server.script.append(fault)
            self.assertEqual((await self.failure(client)).reason, reason)

    async def test_a_proxy_that_cannot_be_reached(self) -> None:
        server = FakeServer()
        client = self.fake(server, http_proxy=PROXY)
        server.script.append(httpx.ConnectError("refused"))
        self.assertEqual((await self.failure(client)).reason, "proxy_error")

    async def test_requests_go_through_the_proxy(self) -> None:
        seen: list[str] = []

        async def proxy(reader: Any, writer: Any) -> None:
            seen.append((await reader.readuntil(b"\r\n\r\n")).decode().splitlines()[0])
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n")
            await writer.drain()
            writer.close()

        listening = await asyncio.start_server(proxy, "127.0.0.1", 0)
        async with listening:
            port = listening.sockets[0].getsockname()[1]
            values = {"http_proxy": f"http://127.0.0.1:{port}"}
            values["https_proxy"] = values["http_proxy"]
            for address in ("http://example.com", "https://example.com"):
                error = await self.failure(self.open(address, **values))
                self.assertEqual(error.reason, "proxy_error")
        self.assertEqual(
            seen,
            [
                "GET http://example.com/v1/default/banks/bot/tags?limit=1 HTTP/1.1",
                "CONNECT example.com:443 HTTP/1.1",
            ],
        )
