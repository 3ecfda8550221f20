"""A real HTTP server that plays a script in every dialect of `dialect.py` and records what it was asked.

    with ModelServer([Reply(text="Hello!")]) as server:
        model = get_chat_model({"model": "scripted", "base_url": server.base_url, "api_key": "any"})

It runs in a thread of its own on 127.0.0.1. As a process: `python -m core.testing.model_server --port 8100`.
"""

from __future__ import annotations

import asyncio
import threading
from argparse import ArgumentParser
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from core.testing.behaviour import behave, many_chunks, script_from_file
from core.testing.dialect import Dialect, dialects
from core.testing.model_line import Exchange, Line
from core.testing.script import Answer, Reply, Script, refusal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

__all__ = ["Exchange", "ModelServer"]


class ModelServer:
    """Plays `script`: one reply for ever, a list taken one by one, or a function of the request.

    Args:
        script: The replies; each item of a list may be a function of the request too.
        port: 0 takes a free one.
        api_key: Where given, any other key is answered with 401.
        models: What `/v1/models` lists.
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
        self.dialects: tuple[Dialect, ...] = tuple(dialects())
        self._endless = script if callable(script) or isinstance(script, Reply) else None
        self._queue: list[Reply | Answer] = [] if self._endless is not None else list(script)  # pyright: ignore[reportArgumentType]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._work, name="model-server", daemon=True)
        self._ready = threading.Event()
        self._failure: OSError | None = None
        self._encoded: dict[tuple[int, str, str], tuple[Reply, list[bytes]]] = {}

    @property
    def base_url(self) -> str:
        """What a client calls `base_url`."""
        return f"http://{self.host}:{self.port}/v1"

    @property
    def dashscope_url(self) -> str:
        """What a client of DashScope's own protocol calls `base_http_api_url`."""
        return f"http://{self.host}:{self.port}/api/v1"

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
        if self.api_key and exchange.key != self.api_key:
            return refusal(401, "Incorrect API key provided.", code="invalid_api_key")
        if self._endless is not None:
            chosen = self._endless
        elif self._queue:
            chosen = self._queue.pop(0)
        else:
            return refusal(500, "The script has no more replies.")
        return chosen if isinstance(chosen, Reply) else chosen(exchange.question)

    def events(self, reply: Reply, exchange: Exchange, dialect: Dialect) -> list[bytes]:
        """The reply's events. One with a fixed usage is encoded once, so that a bench does not measure us."""
        body = exchange.body
        if reply.usage is None:
            return dialect.events(reply, body, f"reply{len(self.requests)}")
        options = cast("dict[str, Any]", body.get("stream_options") or {})
        key = (id(reply), f"{type(dialect).__name__} {body.get('model')}", str(options or body.get("parameters")))
        if key not in self._encoded:
            self._encoded[key] = (reply, dialect.events(reply, body, f"reply{len(self.requests)}"))
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
        lines: set[Line] = set()
        server = await self._loop.create_server(lambda: Line(self, lines), self.host, self.port, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stopped.wait()
        # A connection that is being accepted while its server closes is never closed by asyncio: first nobody new.
        with suppress(NotImplementedError):  # by Windows' loop
            self._loop.remove_reader(server.sockets[0].fileno())
        while lines or len(asyncio.all_tasks()) > 1:
            for line in list(lines):
                line.drop()
            await asyncio.sleep(0)
        server.close()


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
