"""A real HTTP server that plays a script in the OpenAI protocol and records what it was asked.

    with ModelServer([Reply(text="Hello!")]) as server:
        model = get_chat_model({"model": "scripted", "base_url": server.base_url, "api_key": "any"})

It runs in a thread of its own on 127.0.0.1. As a process: `python -m core.testing.model_server --port 8100`.
"""

from __future__ import annotations

import asyncio
import json
import threading
from argparse import ArgumentParser
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from core.testing.behaviour import behave, many_chunks, script_from_file
from core.testing.script import Answer, Reply, Request, Script, chunks, completion, refusal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

_BIG_WRITE = 64 * 1024
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}


@dataclass(slots=True)
class Exchange:
    """One request and what became of it.

    `ended` is set when the reply is out or the client has left; `left_early` says which.
    """

    path: str
    headers: dict[str, str]
    body: Request
    connection: int
    left_early: bool = False
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages that were sent."""
        return self.body.get("messages", [])


class ModelServer:
    """Plays `script`: one reply for ever, a list taken one by one, or a function of the request.

    Args:
        script: The replies; each item of a list may be a function of the request too.
        port: 0 takes a free one.
        api_key: Where given, any other key is answered with 401.
        models: What `/v1/models` lists.
        host: The address to bind.
    """

    def __init__(
        self,
        script: Script,
        *,
        port: int = 0,
        api_key: str = "",
        models: Sequence[str] = ("scripted",),
        host: str = "127.0.0.1",
    ) -> None:
        self.requests: list[Exchange] = []
        self.host, self.port = host, port
        self.api_key, self.models = api_key, tuple(models)
        self.connections = 0
        self._endless = script if callable(script) or isinstance(script, Reply) else None
        self._queue: list[Reply | Answer] = [] if self._endless is not None else list(script)  # pyright: ignore[reportArgumentType]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._work, name="model-server", daemon=True)
        self._ready = threading.Event()
        self._failure: OSError | None = None
        self._encoded: dict[tuple[int, str, bool], tuple[Reply, list[bytes]]] = {}

    @property
    def base_url(self) -> str:
        """What a client calls `base_url`."""
        return f"http://{self.host}:{self.port}/v1"

    def start(self) -> Self:
        """Start serving; `port` and `base_url` are known afterwards.

        Raises:
            OSError: The port is taken.
        """
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def stop(self) -> None:
        """Drop every connection and end the thread."""
        if self._loop is not None and self._stopped is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()

    def wait(self) -> None:
        """Serve until somebody else stops it."""
        self._thread.join()

    def add(self, *replies: Reply | Answer) -> None:
        """Put more replies at the end of the queue."""
        self._queue.extend(replies)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def reply_to(self, exchange: Exchange) -> Reply:
        """Record the request and choose its reply."""
        self.requests.append(exchange)
        if self.api_key and exchange.headers.get("authorization") != f"Bearer {self.api_key}":
            return refusal(401, "Incorrect API key provided.", code="invalid_api_key")
        if self._endless is not None:
            chosen = self._endless
        elif self._queue:
            chosen = self._queue.pop(0)
        else:
            return refusal(500, "The script has no more replies.")
        return chosen if isinstance(chosen, Reply) else chosen(exchange.body)

    def events(self, reply: Reply, request: Request) -> list[bytes]:
        """The reply's chunks. One with a fixed usage is encoded once, so that a bench does not measure us."""
        options = cast("dict[str, Any]", request.get("stream_options") or {})
        key = (id(reply), str(request.get("model")), bool(options.get("include_usage")))
        if reply.usage is None:
            return chunks(reply, request, f"reply{len(self.requests)}")
        if key not in self._encoded:
            self._encoded[key] = (reply, chunks(reply, request, f"reply{len(self.requests)}"))
        return self._encoded[key][1]

    def _work(self) -> None:
        try:
            asyncio.run(self._serve())
        except OSError as error:
            self._failure = error
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        lines: set[_Line] = set()
        server = await self._loop.create_server(lambda: _Line(self, lines), self.host, self.port, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stopped.wait()
        server.close()
        for line in list(lines):
            line.drop()


class _Line(asyncio.Protocol):
    """One connection: reads requests, one after the other, and plays the reply to each."""

    def __init__(self, server: ModelServer, lines: set[_Line]) -> None:
        self._server = server
        self._lines = lines
        self._received = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._exchange: Exchange | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # pyright: ignore[reportAttributeAccessIssue]
        self._server.connections += 1
        self._number = self._server.connections
        self._lines.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc  # the client left, however it did
        self._lines.discard(self)
        if self._task is not None:
            self._task.cancel()
        if self._exchange is not None and not self._exchange.ended.is_set():
            self._exchange.left_early = True
            self._exchange.ended.set()

    def drop(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, rest = bytes(self._received).partition(b"\r\n\r\n")
        if not found:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
        size = int(headers.get("content-length", "0"))
        if len(rest) < size:
            return
        self._received = bytearray(rest[size:])
        method, path, _ = first.split(" ", 2)
        self._task = asyncio.ensure_future(self._answer(method, path, headers, rest[:size]))

    async def _answer(self, method: str, path: str, headers: dict[str, str], raw: bytes) -> None:
        if method == "GET" and path.rstrip("/").endswith("/models"):
            data = [{"id": name, "object": "model", "owned_by": "script"} for name in self._server.models]
            self._whole(200, json.dumps({"object": "list", "data": data}).encode())
        elif method == "POST" and path.endswith("/chat/completions"):
            body: Request = json.loads(raw or b"{}")
            self._exchange = Exchange(path, headers, body, self._number)
            await self._play(self._server.reply_to(self._exchange), self._exchange)
        else:
            self._whole(404, json.dumps({"error": {"message": f"There is no {path} here."}}).encode())

    async def _play(self, reply: Reply, exchange: Exchange) -> None:
        if reply.delay:
            await asyncio.sleep(reply.delay)
        if reply.hang:
            await asyncio.Event().wait()
        if reply.body is not None:
            raw = reply.body.encode() if isinstance(reply.body, str) else reply.body
            await self._verbatim(reply, raw)
        elif reply.status >= 400:
            self._whole(reply.status, json.dumps(reply.error or {}).encode(), reply=reply)
        elif exchange.body.get("stream"):
            await self._stream(reply, self._server.events(reply, exchange.body))
        else:
            whole = completion(reply, exchange.body, f"reply{len(self._server.requests)}")
            self._whole(200, json.dumps(whole).encode(), reply=reply)
        exchange.ended.set()

    def _whole(
        self, status: int, raw: bytes, content_type: str = "application/json", reply: Reply | None = None
    ) -> None:
        self._transport.write(_head(status, content_type, reply, f"Content-Length: {len(raw)}") + raw)

    async def _verbatim(self, reply: Reply, raw: bytes) -> None:
        self._transport.write(_head(reply.status, reply.content_type, reply, f"Content-Length: {len(raw)}"))
        size = reply.split or _BIG_WRITE
        for at in range(0, len(raw), size):
            self._transport.write(raw[at : at + size])
            await asyncio.sleep(reply.pace)

    async def _stream(self, reply: Reply, events: list[bytes]) -> None:
        self._transport.write(_head(200, "text/event-stream; charset=utf-8", reply, "Transfer-Encoding: chunked"))
        stop = reply.cut_after if reply.cut_after is not None else reply.hang_after
        for data in _writes(events if stop is None else events[:stop], reply):
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))
            await asyncio.sleep(reply.pace)
        if reply.hang_after is not None:
            await asyncio.Event().wait()
        if reply.cut_after is not None:
            # What was written goes out before the connection ends, as with a server that dies.
            self._transport.close()
        else:
            self._transport.write(b"0\r\n\r\n")


def _writes(events: list[bytes], reply: Reply) -> list[bytes]:
    """What is written at once: single events when paced or cut, else as much as fits."""
    if reply.pace:
        return events
    whole = b"".join(events)
    size = reply.split or _BIG_WRITE
    return [whole[at : at + size] for at in range(0, len(whole), size)]


def _head(status: int, content_type: str, reply: Reply | None, length: str) -> bytes:
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}", f"Content-Type: {content_type}", length]
    if reply is not None:
        lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run it as a process: see `--help`."""
    parser = ArgumentParser(prog="python -m core.testing.model_server", description="A scripted model service.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--script", type=Path, help="a JSON file; without it, words in the question choose the reply")
    parser.add_argument("--chunks", type=int, default=0, help="answer everything with that many chunks")
    parser.add_argument("--pace", type=float, default=0.0, help="seconds between those chunks")
    parser.add_argument("--api-key", default="", help="refuse any other")
    given = parser.parse_args(arguments)
    script = many_chunks(given.chunks, given.pace) if given.chunks else behave
    if given.script:
        script = script_from_file(given.script)
    server = ModelServer(script, port=given.port, host=given.host, api_key=given.api_key).start()
    print(f"Serving a scripted model on {server.base_url}", flush=True)  # noqa: T201 - read by whoever started it
    try:
        server.wait()
    except KeyboardInterrupt:
        server.stop()


if __name__ == "__main__":
    main()
