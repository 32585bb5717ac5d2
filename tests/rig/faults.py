"""What can go wrong between a client and a server, for `rig.proxy` to act out."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rig.proxy import Recorded


@dataclass(frozen=True)
class Refuse:
    """Nobody listens: connects are refused, open connections are cut.

    It takes the whole proxy down, so it cannot be limited to some requests.
    """


@dataclass(frozen=True)
class BlackHole:
    """The request is accepted and never answered."""


@dataclass(frozen=True)
class Status:
    """The proxy answers by itself; the server does not see the request.

    Attributes:
        code: The HTTP status.
        body: The body; anything but bytes and text is sent as JSON.
        headers: Further response headers.
        content_type: The `Content-Type` header.
    """

    code: int
    body: object = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"

    def content(self) -> bytes:
        """Return the body as it goes over the wire."""
        if isinstance(self.body, bytes):
            return self.body
        if isinstance(self.body, str):
            return self.body.encode()
        return json.dumps(self.body, ensure_ascii=False).encode()


@dataclass(frozen=True)
class DropResponse:
    """The server handles the request, but its answer is lost: the connection closes instead."""


@dataclass(frozen=True)
class Delay:
    """The request reaches the server this many seconds late."""

    seconds: float


Kind = Refuse | BlackHole | Status | DropResponse | Delay


def BrokenJson() -> Status:  # noqa: N802 - reads as one of the kinds
    """Return an answer that claims to be JSON and ends in the middle."""
    return Status(200, b'{"results": [{"id": "0", "text": "cut o')


def Html(code: int = 200) -> Status:  # noqa: N802 - reads as one of the kinds
    """Return the kind of page that a login portal or a content network answers with."""
    page = "<!DOCTYPE html><html><head><title>Attention</title></head><body>Sign in</body></html>"
    return Status(code, page, content_type="text/html; charset=utf-8")


@dataclass
class Fault:
    """A kind of trouble, and which requests it strikes.

    Attributes:
        kind: What happens.
        times: How many requests it strikes before it is over; None for no end.
        match: Only requests whose path contains this text, or for which this function is true.
        probability: How likely it strikes a request that matches.
        seed: Seed of the dice, so that a run can be repeated.
        struck: How many requests it has struck.
    """

    kind: Kind
    times: int | None = None
    match: str | Callable[[Recorded], bool] | None = None
    probability: float = 1.0
    seed: int = 0
    struck: int = 0

    def __post_init__(self) -> None:
        """Check that the kind can be limited as asked.

        Raises:
            ValueError: If single requests are to be refused.
        """
        limited = self.times is not None or self.match is not None or self.probability < 1
        if isinstance(self.kind, Refuse) and limited:
            raise ValueError("Refuse closes the port, so it cannot strike some requests only")
        self._dice = random.Random(self.seed)

    def strikes(self, request: Recorded) -> bool:
        """Decide whether this request is struck, and count it if so."""
        if self.times is not None and self.struck >= self.times:
            return False
        if not self._matches(request) or self._dice.random() >= self.probability:
            return False
        self.struck += 1
        return True

    def _matches(self, request: Recorded) -> bool:
        if self.match is None:
            return True
        if isinstance(self.match, str):
            return self.match in request.path
        return self.match(request)
