"""What goes over the wire for one model call: its requests, and what came back, bounded."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

KEPT_HEAD: Final = 192 * 1024
KEPT_TAIL: Final = 64 * 1024
"""Bytes that are kept of what a service sends, of its beginning and its end."""


class HttpHeaders(Protocol):
    """The headers of a request."""

    def items(self) -> Iterable[tuple[str, str]]:
        """Names and values."""
        ...


class HttpRequest(Protocol):
    """A request of an HTTP client, as far as it is noted."""

    @property
    def method(self) -> str:
        """Its verb."""
        ...

    @property
    def url(self) -> object:
        """Its address."""
        ...

    @property
    def headers(self) -> HttpHeaders:
        """Its headers."""
        ...

    @property
    def content(self) -> bytes:
        """Its body."""
        ...


class HttpResponse(Protocol):
    """The head of a reply."""

    @property
    def status_code(self) -> int:
        """Its status."""
        ...


class Received:
    """The bytes of a reply, of a long one its beginning and its end.

    Attributes:
        size: All bytes that came.
    """

    __slots__ = ("_head", "_tail", "size")

    def __init__(self) -> None:
        self.size = 0
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, piece: bytes) -> None:
        """Take in what came."""
        self.size += len(piece)
        if len(self._head) + len(piece) <= KEPT_HEAD:
            self._head += piece
            return
        room = KEPT_HEAD - len(self._head)
        self._head += piece[:room]
        self._tail += piece[room:]
        if len(self._tail) > 2 * KEPT_TAIL:
            del self._tail[:-KEPT_TAIL]

    @property
    def head(self) -> bytes:
        """The beginning."""
        return bytes(self._head)

    @property
    def tail(self) -> bytes:
        """The end, where the beginning is not all of it."""
        return bytes(self._tail[-KEPT_TAIL:])


@dataclass(slots=True, eq=False)
class Exchange:
    """One request to a service, and what came back.

    Args:
        named: The headers.
        sent: The body.
        at: Seconds since the call began.
        status: The HTTP status; `None` where no answer came.
        received: The body that came.
    """

    method: str
    address: str
    named: HttpHeaders
    sent: bytes
    at: float
    status: int | None = None
    received: Received = field(default_factory=Received)

    @property
    def headers(self) -> Sequence[tuple[str, str]]:
        """The headers, which most calls are never asked for."""
        return tuple(self.named.items())


class WireLog:
    """The requests of one call, in order of time: the further ones are retries."""

    __slots__ = ("_began", "exchanges")

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self._began = perf_counter()

    def asked(self, request: HttpRequest) -> None:
        """Note a request that is sent."""
        at = perf_counter() - self._began
        self.exchanges.append(Exchange(request.method, str(request.url), request.headers, request.content, at))

    def answered(self, status: int) -> None:
        """Note the status of the reply to the newest request."""
        if self.exchanges:
            self.exchanges[-1].status = status

    def received(self, piece: bytes) -> None:
        """Note more of the reply to the newest request."""
        if self.exchanges:
            self.exchanges[-1].received.add(piece)


_WIRE: ContextVar[WireLog | None] = ContextVar("what takes down HTTP requests", default=None)


@contextmanager
def noted_in(wire: WireLog) -> Generator[None]:
    """Note the requests of the block that go through the clients of models."""
    token = _WIRE.set(wire)
    try:
        yield
    finally:
        _WIRE.reset(token)


async def note_request(request: HttpRequest) -> None:
    """The hook of those clients for requests."""
    if (wire := _WIRE.get()) is not None:
        wire.asked(request)


async def note_response(response: HttpResponse) -> None:
    """The hook of those clients for replies."""
    if (wire := _WIRE.get()) is not None:
        wire.answered(response.status_code)
