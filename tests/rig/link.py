"""A far network link on loopback: a TCP forwarder that delivers everything half a round trip later.

The link works below TLS and HTTP, so that handshakes, requests and answers pay what they pay on a
real line: every round trip costs `rtt`, however much data it carries. Throughput is not limited.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Self

_TIMER_SLACK = 0.0005
"""Deliveries due within this many seconds go out together: a timer may fire a little early."""


class DelayLink:
    """Forwards TCP connections to a target and delays each chunk by half a round trip.

    A connection that is accepted here starts to carry data one round trip later, as after a TCP
    handshake, so a first request on it is answered after two round trips and a later one after one.
    The client's own `connect` still returns at once: loopback accepts for us.

    Attributes:
        rtt: The round-trip time in seconds. May be changed while the link runs.
        connections: Connections opened by clients since the start or the last `clear()`.
        bytes_up: Bytes that went from clients to the target.
        bytes_down: Bytes that went from the target to clients.
    """

    def __init__(
        self, target_port: int, rtt: float = 0.0, *, target_host: str = "127.0.0.1"
    ) -> None:
        """Describe the link; `start()` opens it."""
        self.rtt = rtt
        self.target = (target_host, target_port)
        self.connections = 0
        self.bytes_up = 0
        self.bytes_down = 0
        self.port = 0
        self._server: asyncio.Server | None = None
        self._open: set[_Connection] = set()

    async def __aenter__(self) -> Self:
        """Start it."""
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        """Stop it."""
        await self.stop()

    async def start(self) -> Self:
        """Listen on a free loopback port."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Connection(self).client_side, "127.0.0.1", self.port
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        """Stop listening and cut every open connection."""
        if self._server is not None:
            self._server.close()
        for connection in tuple(self._open):
            connection.cut()
        if self._server is not None:
            await self._server.wait_closed()
            self._server = None

    def url(self, scheme: str = "http") -> str:
        """Return the base address that clients use."""
        return f"{scheme}://127.0.0.1:{self.port}"

    def clear(self) -> None:
        """Set the counters back to zero."""
        self.connections = self.bytes_up = self.bytes_down = 0

    def opened(self, connection: _Connection) -> None:
        """Count a connection and remember it while it lives."""
        self.connections += 1
        self._open.add(connection)

    def closed(self, connection: _Connection) -> None:
        """Forget a connection."""
        self._open.discard(connection)


class _Lane:
    """One direction of a connection: actions run in order, each at its own time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._queue: deque[tuple[float, Callable[[], None]]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._ready = False

    def ready(self) -> None:
        """Let deliveries begin: the far end is connected."""
        self._ready = True
        self._arm()

    def put(self, due: float, action: Callable[[], None]) -> None:
        """Run `action` at `due`, never before what was put earlier."""
        if self._queue:
            due = max(due, self._queue[-1][0])
        self._queue.append((due, action))
        self._arm()

    def discard(self) -> None:
        """Drop whatever is still under way."""
        self._queue.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if self._ready and self._queue and self._timer is None:
            self._timer = self._loop.call_at(self._queue[0][0], self._deliver)

    def _deliver(self) -> None:
        self._timer = None
        now = self._loop.time() + _TIMER_SLACK
        while self._queue and self._queue[0][0] <= now:
            self._queue.popleft()[1]()
        self._arm()


class _Connection:
    """A client's connection and its continuation to the target."""

    def __init__(self, link: DelayLink) -> None:
        self.link = link
        self.loop = asyncio.get_running_loop()
        self.client_side = _Side(self)
        self.target_side = _Side(self)
        self._connecting: asyncio.Task[None] | None = None
        self._established = 0.0

    def side_opened(self, side: _Side) -> None:
        """Start the continuation once the client is there, and the lane to whoever is there."""
        side.lane.ready()
        if side is self.client_side:
            self.link.opened(self)
            self._established = self.loop.time() + self.link.rtt
            self._connecting = self.loop.create_task(self._reach_target(self.link.rtt / 2))

    async def _reach_target(self, after: float) -> None:
        await asyncio.sleep(after)
        try:
            await self.loop.create_connection(lambda: self.target_side, *self.link.target)
        except OSError:
            self.target_side.gone = True
            self._forward(self.target_side, _abort)

    def data(self, side: _Side, chunk: bytes) -> None:
        """Count a chunk and send it on its way."""
        if side is self.client_side:
            self.link.bytes_up += len(chunk)
        else:
            self.link.bytes_down += len(chunk)
        self._forward(side, lambda transport: transport.write(chunk))

    def eof(self, side: _Side) -> None:
        """Pass on that one end has finished sending; when both have, the connection is over."""
        side.finished = True
        other = self.target_side if side is self.client_side else self.client_side
        self._forward(side, _close if other.finished else _write_eof)

    def lost(self, side: _Side, error: Exception | None) -> None:
        """Pass on that one end is gone."""
        self._forward(side, _abort if error else _close)
        if self.client_side.gone and self.target_side.gone:
            self.link.closed(self)

    def cut(self) -> None:
        """End both halves at once and drop what is under way."""
        if self._connecting is not None:
            self._connecting.cancel()
        for side in (self.client_side, self.target_side):
            side.lane.discard()
            if side.transport is not None:
                side.transport.abort()

    def _forward(self, origin: _Side, action: Callable[[asyncio.Transport], None]) -> None:
        receiver = self.target_side if origin is self.client_side else self.client_side
        sent = max(self.loop.time(), self._established)
        receiver.lane.put(sent + self.link.rtt / 2, lambda: receiver.apply(action))


class _Side(asyncio.Protocol):
    """One end of the forwarder: the client's or the target's."""

    def __init__(self, connection: _Connection) -> None:
        self.transport: asyncio.Transport | None = None
        self.finished = False
        self.gone = False
        self.lane = _Lane(connection.loop)
        self._connection = connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._connection.side_opened(self)

    def data_received(self, data: bytes) -> None:
        self._connection.data(self, data)

    def eof_received(self) -> bool:
        self._connection.eof(self)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone = True
        self._connection.lost(self, exc)

    def apply(self, action: Callable[[asyncio.Transport], None]) -> None:
        """Do something with this end's transport while it is open."""
        if self.transport is not None and not self.gone:
            action(self.transport)


def _write_eof(transport: asyncio.Transport) -> None:
    if not transport.is_closing():
        transport.write_eof()


def _close(transport: asyncio.Transport) -> None:
    transport.close()


def _abort(transport: asyncio.Transport) -> None:
    transport.abort()
