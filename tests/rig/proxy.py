"""A reverse proxy that records every request and can act out every kind of trouble.

It speaks HTTP/1.1 by hand (with `h11`), so that what a client does with its connections stays
visible: how many it opens, which request went over which, and when one was closed under it.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import socket
import ssl
import time
from dataclasses import dataclass, field
from typing import Any, Self

import h11
import httpx

from rig.faults import BlackHole, Delay, DropResponse, Fault, Kind, Refuse, Status
from rig.ports import LOOPBACK

_CHUNK = 65536
_PER_CONNECTION = {b"connection", b"keep-alive", b"transfer-encoding", b"content-length"}
"""Headers that are not passed on: they belong to one connection, and each side has its own."""


@dataclass
class Recorded:
    """One request, and the answer that it got.

    Attributes:
        connection: The number of its connection; no two of a proxy have the same.
        at: When it had arrived in full (`time.time()`).
        method: The HTTP method.
        path: Path and query as sent.
        headers: The request headers, names in lower case.
        body: The request body.
        fault: The kind of trouble that struck it, if any.
        status: The status of the answer; None if none was sent.
        response_headers: The headers of the answer, names in lower case.
        response_body: The body of the answer, decompressed.
        answered_at: When the answer was sent; None if none was.
    """

    connection: int
    at: float
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    fault: Kind | None = None
    status: int | None = None
    response_headers: dict[str, str] = field(default_factory=dict)
    response_body: bytes = b""
    answered_at: float | None = None

    @property
    def json(self) -> Any:
        """The request body, parsed."""
        return json.loads(self.body)

    @property
    def response_json(self) -> Any:
        """The body of the answer, parsed."""
        return json.loads(self.response_body)


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class RecordingProxy:
    """A reverse proxy on loopback, in the event loop of the test.

    Attributes:
        requests: What was asked since the start or the last `clear()`, in order of arrival.
        connections: How many connections clients opened in that time.
        bytes_in: What clients sent in that time, HTTP headers included, TLS excluded.
        bytes_out: What they were sent.
        idle_close: After how many idle seconds a connection is closed; None for never.
        port: The port that it listens on, or listened on while connects are refused.
    """

    def __init__(
        self,
        target: str,
        *,
        idle_close: float | None = 30.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Describe the proxy; `start()` opens it.

        Args:
            target: The base address of the server behind it.
            idle_close: After how many idle seconds a connection is closed.
            tls: Serve TLS with this context (see `rig.certificates`).
        """
        self.target = target.rstrip("/")
        self.idle_close = idle_close
        self.requests: list[Recorded] = []
        self.connections = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.port = 0
        self._tls = tls
        self._accepted = 0
        self._refusing = False
        self._faults: tuple[Fault, ...] = ()
        self._server: asyncio.Server | None = None
        self._opening: asyncio.Task[None] | None = None
        self._running: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def __aenter__(self) -> Self:
        """Start it."""
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        """Stop it."""
        await self.stop()

    async def start(self) -> Self:
        """Listen on a free loopback port."""
        self._upstream = httpx.AsyncClient(
            timeout=None,
            trust_env=False,
            limits=httpx.Limits(max_keepalive_connections=0, max_connections=None),
        )
        self._listen()
        assert self._opening is not None
        await self._opening
        return self

    async def stop(self) -> None:
        """Close the port and every connection."""
        self._close()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self._upstream.aclose()

    @property
    def url(self) -> str:
        """The base address that clients use."""
        return f"{'https' if self._tls else 'http'}://{LOOPBACK}:{self.port}"

    @property
    def open_connections(self) -> int:
        """How many connections are open right now."""
        return len(self._running)

    @property
    def fault(self) -> Fault | None:
        """The trouble that is on, the first one if there are several."""
        return self._faults[0] if self._faults else None

    @fault.setter
    def fault(self, fault: Fault | Kind | None) -> None:
        self.set_faults(*(() if fault is None else (fault,)))

    def set_faults(self, *faults: Fault | Kind) -> None:
        """Have these faults from now on, and no others; the first that strikes a request counts."""
        self._faults = tuple(one if isinstance(one, Fault) else Fault(one) for one in faults)
        self._refusing = any(isinstance(one.kind, Refuse) for one in self._faults)
        if self._refusing:
            self._close()
        elif self._server is None and self._opening is None:
            self._listen()

    def matching(self, fragment: str, method: str | None = None) -> list[Recorded]:
        """Return the recorded requests whose path contains `fragment`, of one method or any."""
        return [
            one
            for one in self.requests
            if fragment in one.path and (method is None or one.method == method)
        ]

    def clear(self) -> None:
        """Forget the recorded requests and set the counters back to zero."""
        self.requests.clear()
        self.connections = self.bytes_in = self.bytes_out = 0

    def cut_connections(self) -> None:
        """Close every open connection, as a server does that restarts; clients see it at once."""
        for task, writer in self._running.items():
            with contextlib.suppress(OSError):
                writer.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
            task.cancel()

    def _listen(self) -> None:
        """Open the port at once, so that connects queue there, and serve it in a moment."""
        listening = socket.create_server((LOOPBACK, self.port))
        self.port = listening.getsockname()[1]
        self._opening = asyncio.create_task(self._serve(listening))

    async def _serve(self, listening: socket.socket) -> None:
        self._server = await asyncio.start_server(self._accept, sock=listening, ssl=self._tls)
        self._opening = None
        if self._refusing:
            self._close()

    def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        self.cut_connections()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._running[task] = writer
        self.connections += 1
        self._accepted += 1
        try:
            await _Connection(self, reader, writer, self._accepted).serve()
        except (ConnectionError, ssl.SSLError, h11.RemoteProtocolError, asyncio.CancelledError):
            pass  # the client is gone or talks nonsense, or the connection is to be cut
        finally:
            del self._running[task]
            writer.close()

    def strike(self, request: Recorded) -> Kind | None:
        """Return what happens to this request, None for nothing."""
        for fault in self._faults:
            if fault.strikes(request):
                return fault.kind
        return None

    async def forward(self, request: Recorded, headers: list[tuple[bytes, bytes]]) -> _Answer:
        """Send a request to the server over a connection of its own and return the answer."""
        message = httpx.Request(
            request.method,
            self.target,
            headers=_passed_on(headers),
            content=request.body,
            extensions={"target": request.path.encode("ascii"), "timeout": {}},
        )
        response = await self._upstream.send(message, stream=True)
        try:
            body = b"".join([chunk async for chunk in response.aiter_raw()])
        finally:
            await response.aclose()
        return _Answer(response.status_code, _passed_on(response.headers.raw), body)


class _Connection:
    """One client's connection: requests come in one after the other."""

    def __init__(
        self,
        proxy: RecordingProxy,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        number: int,
    ) -> None:
        self._proxy = proxy
        self._reader = reader
        self._writer = writer
        self._number = number
        self._http = h11.Connection(h11.SERVER)

    async def serve(self) -> None:
        """Handle requests until one side has had enough."""
        while head := await self._next_request():
            request = self._record(head, await self._body())
            if not await self._handle(request, head.headers.raw_items()):
                return
            if self._http.our_state is not h11.DONE:
                return
            self._http.start_next_cycle()

    async def _next_request(self) -> h11.Request | None:
        """Wait for a request; None if the client is gone or too long idle."""
        try:
            event = await asyncio.wait_for(self._event(), self._proxy.idle_close)
        except TimeoutError:
            return None
        return event if isinstance(event, h11.Request) else None

    async def _body(self) -> bytes:
        if self._http.they_are_waiting_for_100_continue:
            await self._send(h11.InformationalResponse(status_code=100, headers=[]))
        parts = []
        while isinstance(event := await self._event(), h11.Data):
            parts.append(bytes(event.data))
        return b"".join(parts)

    async def _event(self) -> Any:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            await self._receive()
        return event

    async def _receive(self) -> bytes:
        data = await self._reader.read(_CHUNK)
        self._proxy.bytes_in += len(data)
        self._http.receive_data(data)
        return data

    def _record(self, head: h11.Request, body: bytes) -> Recorded:
        request = Recorded(
            connection=self._number,
            at=time.time(),
            method=head.method.decode("ascii"),
            path=head.target.decode("ascii"),
            headers={name.decode("ascii"): value.decode("latin-1") for name, value in head.headers},
            body=body,
        )
        request.fault = self._proxy.strike(request)
        self._proxy.requests.append(request)
        return request

    async def _handle(self, request: Recorded, headers: list[tuple[bytes, bytes]]) -> bool:
        """Answer a request, or not, and tell whether the connection goes on."""
        match request.fault:
            case BlackHole():
                await self._gone()
                return False
            case Status() as canned:
                await self._answer(request, _canned(canned))
                return True
            case Delay(seconds):
                if await self._unless_gone(asyncio.sleep(seconds, True)) is None:
                    return False
        answer = await self._unless_gone(self._forward(request, headers))
        if answer is None or isinstance(request.fault, DropResponse):
            return False
        await self._answer(request, answer)
        return True

    async def _forward(
        self, request: Recorded, headers: list[tuple[bytes, bytes]]
    ) -> _Answer | None:
        """Ask the server; None if it is not there, which ends the client's connection too."""
        try:
            return await self._proxy.forward(request, headers)
        except httpx.TransportError:
            return None

    async def _unless_gone(self, work: Any) -> Any:
        """Do something, but give it up and return None when the client closes the connection."""
        task = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(self._gone())
        try:
            await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            for one in (task, gone):
                one.cancel()
            await asyncio.gather(task, gone, return_exceptions=True)

    async def _gone(self) -> None:
        """Return when the client has closed the connection."""
        with contextlib.suppress(ConnectionError):
            while await self._receive():
                pass

    async def _answer(self, request: Recorded, answer: _Answer) -> None:
        request.status = answer.status
        request.response_headers = {
            name.decode("ascii").lower(): value.decode("latin-1") for name, value in answer.headers
        }
        compressed = request.response_headers.get("content-encoding") == "gzip"
        request.response_body = gzip.decompress(answer.body) if compressed else answer.body
        request.answered_at = time.time()
        headers = [*answer.headers, (b"content-length", str(len(answer.body)).encode("ascii"))]
        await self._send(
            h11.Response(status_code=answer.status, headers=headers),
            h11.Data(data=answer.body),
            h11.EndOfMessage(),
        )

    async def _send(self, *events: Any) -> None:
        data = b"".join(self._http.send(event) or b"" for event in events)
        self._proxy.bytes_out += len(data)
        self._writer.write(data)
        await self._writer.drain()


def _passed_on(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [pair for pair in headers if pair[0].lower() not in _PER_CONNECTION]


def _canned(status: Status) -> _Answer:
    headers = [(b"content-type", status.content_type.encode("latin-1"))]
    headers += [(name.encode(), value.encode("latin-1")) for name, value in status.headers.items()]
    return _Answer(status.code, headers, status.content())
