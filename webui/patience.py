"""How long Parlour waits for whoever has connected, and how much of a head it takes in.

uvicorn ends what rests between two requests, but waits for ever for a first one, for the rest of a head and for the
rest of a body; and httptools gives a head back when it is whole, however long it has grown.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, ClassVar, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

if TYPE_CHECKING:
    import asyncio

    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

_log = logging.getLogger(__name__)

_TOO_LONG = 431


class PatientProtocol(HttpToolsProtocol):
    """One connection, which ends where nothing comes."""

    head_seconds: ClassVar[float] = 30.0  # for a whole head, from its first byte or from connecting
    body_seconds: ClassVar[float] = 60.0  # between two pieces of a body
    longest_head: ClassVar[int] = 64 * 1024  # bytes; of what follows a body in chunks as well

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._timer: asyncio.TimerHandle | None = None
        self._unsaid = 0  # bytes that have made neither a head nor a piece of a body yet

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait."""
        super().connection_made(transport)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._rest()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take in what came; a head without end is refused."""
        self._unsaid += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._unsaid > self.longest_head:
            _log.warning("A request has a head of more than %d bytes and is refused.", self.longest_head)
            self.transport.write(STATUS_LINE[_TOO_LONG] + b"content-length: 0\r\nconnection: close\r\n\r\n")
            self.transport.close()
            return
        self._look()

    def on_headers_complete(self) -> None:
        """A head is whole."""
        self._unsaid = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of a body is there."""
        self._unsaid = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A request is whole."""
        self._unsaid = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """What follows has its own time."""
        super().on_response_complete()
        self._look()

    # -- inside ---------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Wait for a head, for the next piece of a body, or for nothing, as it stands now."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        is_body = cycle is not None and cycle.more_body
        is_ours = cycle is not None and not cycle.response_complete  # we answer: nobody keeps us waiting
        if self.timeout_keep_alive_task is not None or (is_ours and not is_body):
            self._rest()
        elif is_body:
            self._wait(self.body_seconds)
        elif self._timer is None:  # a head has so much time in all, however it trickles in
            self._wait(self.head_seconds)

    def _wait(self, seconds: float) -> None:
        self._rest()
        self._timer = self.loop.call_later(seconds / 2, self._half_over, seconds)

    def _half_over(self, seconds: float) -> None:
        """In two halves: where this process stood still, what came meanwhile is read before the second is over."""
        self._timer = self.loop.call_later(seconds / 2, self._over, seconds)

    def _over(self, seconds: float) -> None:
        if self.flow.read_paused:  # it is we who do not read
            self._half_over(seconds)
        else:
            self.transport.abort()

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
