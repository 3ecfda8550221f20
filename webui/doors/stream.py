"""A reply as server-sent events: with signs of life, no faster than it is read, and ended with its reader."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from starlette.responses import Response

from core.errors import LimitReachedError
from core.messages.events import MessageStarted
from webui.doors.refusals import refused, told_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import Receive, Scope, Send

    from core.doors.door import Answer
    from core.messages.events import Event

_log = logging.getLogger(__name__)
ALIVE: Final = 15.0
"""Seconds of silence after which a comment says that the reply is still being made."""
_ALIVE: Final = b": keep-alive\n\n"
_MOST: Final = 256 * 1024  # bytes that wait to be sent


class Written(Protocol):
    """The form that a reply is given."""

    def first(self) -> bytes:
        """What comes before all else."""
        ...

    def piece(self, event: Event) -> bytes:
        """What an event adds; empty for what is not told."""
        ...

    async def last(self) -> bytes:
        """What ends it."""
        ...

    def failed(self, told: dict[str, object]) -> bytes:
        """What ends one that failed in its midst."""
        ...


class _Buffer:
    """Takes events in from the task that makes the reply, and gives bytes to the one that sends them."""

    def __init__(self, written: Written) -> None:
        self._written = written
        self._pieces: list[bytes] = []
        self._size = 0
        self._came = asyncio.Event()
        self._room = asyncio.Event()
        self.begun = False

    @property
    def full(self) -> bool:
        """Whether it waits for its reader."""
        return self._size > _MOST

    def take(self, event: Event) -> None:
        """Take in an event."""
        if not self.begun and type(event) is not MessageStarted:  # until then an error is an answer with its status
            self.begin()
        piece = self._written.piece(event)
        if piece:
            self.put(piece)

    def put(self, piece: bytes) -> None:
        """Take in bytes."""
        self._pieces.append(piece)
        self._size += len(piece)
        self._came.set()

    def begin(self) -> None:
        """Put what comes before all else."""
        self.begun = True
        self.put(self._written.first())

    async def drained(self) -> None:
        """Wait until all was sent."""
        self._room.clear()
        await self._room.wait()

    def taken(self) -> bytes:
        """All that waits, which waits no more."""
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        self._came.clear()
        self._room.set()
        return data

    def wake(self) -> None:
        """Let whoever waits look again."""
        self._came.set()

    async def wait(self, seconds: float) -> None:
        """Wait until something came, or so long."""
        if not self._came.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._came.wait()


class ReplyStream(Response):
    """The answer to a request that wants a stream.

    What goes wrong before the first word is an answer with its status; later it is the last event.

    Args:
        answer: The reply, not begun yet.
        written: Its form.
        closing: Called at the end of all of it.
        over: Called when the reply is whole, before its end is sent.
    """

    def __init__(
        self,
        answer: Answer,
        written: Written,
        *,
        closing: Callable[[], Awaitable[None]] | None = None,
        over: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__()
        self._answer = answer
        self._written = written
        self._closing = closing
        self._over = over

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Make the reply and send it."""
        buffer = _Buffer(self._written)
        making = asyncio.create_task(self._made(buffer), name="a program's reply")
        making.add_done_callback(lambda _: buffer.wake())
        leaving = asyncio.create_task(_left(receive))
        leaving.add_done_callback(lambda _: making.cancel())
        try:
            await self._sent(buffer, making, scope, receive, send)
        finally:
            leaving.cancel()
            making.cancel()
            await asyncio.wait({making, leaving})
            if not making.cancelled():
                making.exception()  # told already
            if self._closing is not None:
                await self._closing()

    async def _made(self, buffer: _Buffer) -> None:
        try:
            await self._answer.run(buffer)
        except LimitReachedError:
            self._answer.reason = "length"
        if self._over is not None:
            await self._over()
        if not buffer.begun:
            buffer.begin()
        buffer.put(await self._written.last())

    async def _sent(
        self, buffer: _Buffer, making: asyncio.Task[None], scope: Scope, receive: Receive, send: Send
    ) -> None:
        begun = False
        while True:
            await buffer.wait(ALIVE)
            is_over = making.done()
            data = buffer.taken()
            if is_over and making.cancelled():
                return
            error = making.exception() if is_over else None
            if error is not None and not begun and not data:
                _note(error)
                await refused(error if isinstance(error, Exception) else Exception())(scope, receive, send)
                return
            if error is not None:
                _note(error)
                _, told, _ = told_of(error if isinstance(error, Exception) else Exception())
                data += self._written.failed(told)
            if not begun:
                begun = True
                headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]
                await send({"type": "http.response.start", "status": 200, "headers": headers})
            data = data if data or is_over else _ALIVE
            await send({"type": "http.response.body", "body": data, "more_body": not is_over})
            if is_over:
                return


def event(body: object) -> bytes:
    """One event."""
    return b"data: " + json.dumps(body).encode() + b"\n\n"


async def _left(receive: Receive) -> None:
    """Wait until the program goes away."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _note(error: BaseException) -> None:
    if told_of(error if isinstance(error, Exception) else Exception())[0] >= 500:
        _log.warning("A program's question failed: %s", type(error).__name__, exc_info=error)
