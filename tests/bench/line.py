"""The far way to Hindsight: a link with a fixed round-trip time, TLS, and a look at what passes."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Self

from rig.link import DelayLink
from rig.proxy import Recorded, RecordingProxy

HTTP_OK = 200


@dataclass(frozen=True)
class Traffic:
    """What has passed over a line.

    Attributes:
        requests: HTTP requests that arrived.
        connections: TCP connections that were opened.
        size: Bytes in both directions, TLS included.
    """

    requests: int
    connections: int
    size: int

    def since(self, earlier: Traffic) -> Traffic:
        """Return what has passed between two moments."""
        return Traffic(
            self.requests - earlier.requests,
            self.connections - earlier.connections,
            self.size - earlier.size,
        )


class Line:
    """One client's way to the server; use it with `async with`.

    Attributes:
        proxy: The near end of the server: records requests and acts out trouble.
    """

    def __init__(self, target: str, rtt: float, tls: ssl.SSLContext) -> None:
        """Describe it; `start()` opens it."""
        self.proxy = RecordingProxy(target, tls=tls)
        self._rtt = rtt

    async def start(self) -> Self:
        """Open it."""
        await self.proxy.start()
        self._link = await DelayLink(self.proxy.port, self._rtt).start()
        return self

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self._link.stop()
        await self.proxy.stop()

    @property
    def url(self) -> str:
        """The address that the client uses."""
        return self._link.url("https")

    @property
    def stored(self) -> list[Recorded]:
        """The requests that stored something and were answered so."""
        posts = self.proxy.matching("/memories", "POST")
        return [one for one in posts if one.path.endswith("/memories") and one.status == HTTP_OK]

    @property
    def traffic(self) -> Traffic:
        """What has passed so far."""
        link = self._link
        size = link.bytes_up + link.bytes_down
        return Traffic(len(self.proxy.requests), link.connections, size)
