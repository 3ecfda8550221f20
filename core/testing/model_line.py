"""One connection to the test server: reads requests and plays the reply to each, faults included."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast

from core.testing.dialect import Answered, Asked
from core.testing.script import Reply, refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from core.testing.dialect import Dialect
    from core.testing.script import Request

_BIG_WRITE = 64 * 1024
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}
_EVENTS = "text/event-stream; charset=utf-8"


@dataclass(slots=True)
class Exchange:
    """One request and what became of it.

    `ended` is set when the reply is out or the client has left; `left_early` says which, `ended_at` when
    (`time.monotonic`). `body` is what was sent, `question` the same as every dialect's script reads it.
    """

    path: str
    headers: dict[str, str]
    body: Request
    connection: int
    query: str = ""
    question: Request = field(default_factory=dict[str, Any])
    key: str = ""
    left_early: bool = False
    ended_at: float = 0.0
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages that were sent."""
        return self.question.get("messages", [])

    def end(self, *, early: bool = False) -> None:
        """The reply is out, or nobody listens any more."""
        if not self.ended.is_set():
            self.left_early, self.ended_at = early, time.monotonic()
            self.ended.set()


class Playing(Protocol):
    """What a connection asks of its server."""

    connections: int
    models: tuple[str, ...]
    dialects: tuple[Dialect, ...]
    requests: list[Exchange]

    def reply_to(self, exchange: Exchange) -> Reply:
        """Record the request and choose its reply."""
        ...

    def events(self, reply: Reply, exchange: Exchange, dialect: Dialect) -> list[bytes]:
        """The reply as events."""
        ...


class Line(asyncio.Protocol):
    """One connection."""

    def __init__(self, server: Playing, lines: set[Line]) -> None:
        self._server = server
        self._lines = lines
        self._received = bytearray()
        self._wanted = 0
        self._task: asyncio.Task[None] | None = None
        self._exchange: Exchange | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody came."""
        self._transport = cast("asyncio.Transport", transport)
        self._server.connections += 1
        self._number = self._server.connections
        self._lines.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Somebody left."""
        del exc  # the client left, however it did
        self._lines.discard(self)
        if self._task is not None:
            self._task.cancel()
        if self._exchange is not None:
            self._exchange.end(early=True)

    def drop(self) -> None:
        """End it without a word."""
        if self._task is not None:
            self._task.cancel()
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """More of a request."""
        self._received += data
        if len(self._received) < self._wanted:
            return
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return
        first, *lines = self._received[:end].decode("latin-1").split("\r\n")
        headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
        self._wanted = end + 4 + int(headers.get("content-length", "0"))
        if len(self._received) < self._wanted:
            return
        raw = bytes(self._received[end + 4 : self._wanted])
        self._received, self._wanted = self._received[self._wanted :], 0
        method, target, _ = first.split(" ", 2)
        path, _, query = target.partition("?")
        self._task = asyncio.ensure_future(self._answer(Asked(method, path, query, headers, raw)))

    async def _answer(self, asked: Asked) -> None:
        for dialect in self._server.dialects:
            if dialect.takes(asked):
                body: Request = json.loads(asked.raw or b"{}")
                question = dialect.request(asked, body)
                self._exchange = Exchange(asked.path, dict(asked.headers), body, self._number, asked.query, question)
                self._exchange.key = dialect.key(asked)
                reply = self._server.reply_to(self._exchange)
                if fault := dialect.fault(asked, body):
                    reply = refusal(400, fault)
                await self._play(reply, self._exchange, dialect, streamed=dialect.streams(asked, body))
                return
            if (answer := dialect.other(asked, self._server.models)) is not None:
                self._whole(answer)
                return
        self._whole(Answered(404, json.dumps({"error": {"message": f"There is no {asked.path} here."}}).encode()))

    async def _play(self, reply: Reply, exchange: Exchange, dialect: Dialect, *, streamed: bool) -> None:
        await asyncio.sleep(reply.delay)
        if reply.hang:
            await asyncio.Event().wait()
        if reply.silent:
            self._reset()
        elif reply.body is not None:
            await self._verbatim(reply, reply.body.encode() if isinstance(reply.body, str) else reply.body)
        elif reply.status >= 400:
            self._whole(Answered(reply.status, dialect.error(reply)), reply)
        elif streamed:
            events = _with_faults(self._server.events(reply, exchange, dialect), reply, dialect)
            await self._stream(reply, events, str(getattr(dialect, "stream_type", _EVENTS)))
        else:
            self._whole(Answered(200, dialect.whole(reply, exchange.body, f"reply{len(self._server.requests)}")), reply)
        exchange.end()

    def _whole(self, answer: Answered, reply: Reply | None = None) -> None:
        length = f"Content-Length: {len(answer.raw)}"
        self._transport.write(_head(answer.status, answer.content_type, reply, length) + answer.raw)

    async def _verbatim(self, reply: Reply, raw: bytes) -> None:
        self._transport.write(_head(reply.status, reply.content_type, reply, f"Content-Length: {len(raw)}"))
        size = reply.split or _BIG_WRITE
        for at in range(0, len(raw), size):
            self._transport.write(raw[at : at + size])
            await asyncio.sleep(reply.pace)

    async def _stream(self, reply: Reply, events: list[bytes], kind: str) -> None:
        self._transport.write(_head(200, kind, reply, "Transfer-Encoding: chunked"))
        stops = [stop for stop in (reply.cut_after, reply.hang_after, reply.reset_after) if stop is not None]
        kept = events[: min(stops)] if stops else events
        calm = kept if reply.stall_after is None else kept[: reply.stall_after]
        await self._written(calm, reply)
        if len(calm) < len(kept):
            await asyncio.sleep(reply.stall)
            await self._written(kept[len(calm) :], reply)
        if reply.hang_after is not None:
            await asyncio.Event().wait()
        elif reply.reset_after is not None:
            self._reset()
        elif reply.cut_after is not None:
            # What was written goes out before the connection ends, as with a server that dies.
            self._transport.close()
        else:
            self._transport.write(b"0\r\n\r\n")

    async def _written(self, events: Sequence[bytes], reply: Reply) -> None:
        for data in _writes(events, reply):
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))
            await asyncio.sleep(reply.pace)

    def _reset(self) -> None:
        """End the connection as a machine that forgot it: a reset instead of a farewell."""
        plug = cast("socket.socket", self._transport.get_extra_info("socket"))
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()


def _with_faults(events: list[bytes], reply: Reply, dialect: Dialect) -> list[bytes]:
    if reply.error_after is not None:
        events = [*events[: reply.error_after], dialect.error_event(reply)]
    elif not reply.done:
        events = events[:-1]
    if reply.comments:
        events = [piece for event in events for piece in (b": keep-alive\n\n", b"event: message\n" + event)]
    return [event.replace(b"\n", b"\r\n") for event in events] if reply.crlf else events


def _writes(events: Sequence[bytes], reply: Reply) -> Iterator[bytes]:
    """What is written at once: single events when paced, cut ones when split, else as much as fits."""
    if reply.pace and not reply.split:
        yield from events
        return
    whole = b"".join(events)
    size = reply.split or _BIG_WRITE
    for at in range(0, len(whole), size):
        yield whole[at : at + size]


def _head(status: int, content_type: str, reply: Reply | None, length: str) -> bytes:
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}", f"Content-Type: {content_type}", length]
    if reply is not None:
        lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
