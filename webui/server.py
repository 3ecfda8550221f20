"""A port to listen on, and a server that ends cleanly when it is asked to."""

from __future__ import annotations

import asyncio
import errno
import faulthandler
import logging
import os
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from core.doors.asked import LONGEST_BODY
from core.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from starlette.types import ASGIApp
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

_TRIES = 50
_SLOW = 2.5  # seconds after which whoever waits for the end hears that it comes
_GRACE = 2  # seconds that open streams get before they are cut
_NOTICED = 5.0  # seconds after which a proxy sends nobody here any more
LAST: Final = 20.0
"""Seconds in which a process that is told to stop has closed its house; what hangs by then is left."""


def bind(host: str, port: int, *, next_free: bool = False) -> socket.socket:
    """A listening socket.

    Args:
        host: The address to listen on.
        port: The port; 0 for any.
        next_free: Where it is taken, the next free one will do. Only where nobody counts on this very port: a proxy
            or a health check in front would ask another program.

    Raises:
        SettingsError: The address is not this machine's, or the port is taken or not allowed.
    """
    name = host.strip("[]")
    try:
        found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise SettingsError(f"The address {host!r} is not known.", hint="Set --host to 127.0.0.1.") from error
    family, kind, _, _, address = found[0]
    last = min(port + (_TRIES if next_free else 1), 65536)
    for tried in range(port, last):
        sock = socket.socket(family, kind)
        try:
            if sys.platform != "win32":  # there it would let two programs share a port
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((address[0], tried))
            # Listening at once: with SO_REUSEADDR, two sockets may be bound to one port, but only one listens.
            sock.listen(2048)
        except OSError as error:
            sock.close()
            if error.errno != errno.EADDRINUSE:
                raise SettingsError(
                    f"Parlour cannot listen on {host}:{tried}: {error.strerror}.",
                    hint="Choose another --host or --port.",
                ) from error
        else:
            return sock
    taken = f"No port from {port} on is free." if next_free else f"Port {port} is taken by another program."
    raise SettingsError(taken, hint="End what listens there, or choose another --port.")


def address_of(host: str, sock: socket.socket) -> str:
    """What to type into a browser on this machine."""
    port = sock.getsockname()[1]
    name = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)  # noqa: S104 - a comparison, not a bind
    return f"http://{f'[{name}]' if ':' in name and not name.startswith('[') else name}:{port}"


class Server(uvicorn.Server):
    """A server for which being told to stop is not a failure: it ends with exit code 0.

    Args:
        stopping: Called at once when a signal asks to stop, so that open streams end by themselves.
        write_seconds: How long nothing of an answer may be taken before its connection is ended.
        drain: How it leaves a proxy that has others; left out, it stops at once.
        last: Seconds after which the process ends, whatever still hangs; left out, it is waited for.
        slow: Called once where ending takes some seconds, so that whoever waits hears of it.
    """

    def __init__(
        self,
        app: ASGIApp,
        stopping: Callable[[], None],
        *,
        write_seconds: float = 300.0,
        drain: Drain | None = None,
        last: float | None = None,
        slow: Callable[[], None] | None = None,
    ) -> None:
        class Protocol(PatientProtocol):
            """As the settings have it."""

        Protocol.write_seconds = write_seconds
        config = uvicorn.Config(
            app,
            http=Protocol,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # `ProxyMiddleware` decides whose count
            timeout_graceful_shutdown=_GRACE,
            timeout_keep_alive=75,
            ws_max_size=LONGEST_BODY,
            ws_per_message_deflate=False,  # what is small costs more packed
        )
        super().__init__(config)
        self._stopping = stopping
        self._drain = drain
        self._last = last
        self._slow = slow or _nothing
        self._let_go: Callable[[], None] = _nothing

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop, once it is drained where that was asked for; a second signal does not wait for that, nor a Ctrl-C."""
        del frame
        if self._drain is not None and sig == signal.SIGTERM and self._drain.begin():
            return
        logging.getLogger("uvicorn.error").disabled = True  # streams that are cut now are no news
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self._end()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close connections and the app."""
        late = asyncio.get_running_loop().call_later(_SLOW, self._slow)
        try:
            await super().shutdown(sockets)
        finally:
            late.cancel()

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: whether to stop."""
        if not self.should_exit and self._drain is not None and self._drain.is_over():
            self._end()
        return await super().on_tick(counter)

    def _end(self) -> None:
        self.should_exit = True
        if self._last is not None:
            self._let_go = end_within(self._last)
            self._last = None
        self._stopping()

    def let_go(self) -> None:
        """It is closed: let the process go on, with whatever its program does after it."""
        self._let_go()


def _nothing() -> None:
    """No time was named."""


def end_within(seconds: float) -> Callable[[], None]:
    """End this process after so many seconds, if it has not ended by itself: with exit code 1, and where it hung.

    A thread that waits for a disk, a driver or a library of somebody else's cannot be ended, and Python waits for it.
    What is stored is whole at any moment, so that nothing is lost but what was being closed. Where not even that can
    be told, for the interpreter is held or nobody takes the log, it ends a second later without a word.

    Returns:
        What calls that off.
    """

    def end() -> None:
        _log.warning("Parlour was not closed after %g seconds and ends; where it hung follows.", seconds)
        with suppress(Exception):  # where nobody takes what is said
            faulthandler.dump_traceback()
        os._exit(1)

    waiting = threading.Timer(seconds, end)
    waiting.daemon = True
    waiting.start()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    faulthandler.dump_traceback_later(seconds + 1, exit=True, file=nowhere)

    def call_off() -> None:
        waiting.cancel()
        faulthandler.cancel_dump_traceback_later()
        os.close(nowhere)

    return call_off


class Drain:
    """How a server leaves a proxy that has others: it says so, serves on, and ends when nobody is served any more.

    Args:
        seconds: The longest that it serves on.
        begun: Called when it begins.
        busy: Whether somebody is served.
        clock: Seconds that never go back.
    """

    def __init__(
        self,
        seconds: float,
        begun: Callable[[], None],
        busy: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._begun = begun
        self._busy = busy
        self._clock = clock
        self._since: float | None = None

    def begin(self) -> bool:
        """Begin, if it has not begun yet."""
        if self._since is not None:
            return False
        self._since = self._clock()
        _log.info("Parlour is told to stop; it serves on for %d seconds at most.", self._seconds)
        self._begun()
        return True

    def is_over(self) -> bool:
        """Whether it has begun, and nobody is served any more, or for too long."""
        if self._since is None:
            return False
        passed = self._clock() - self._since
        return passed >= self._seconds or (passed >= _NOTICED and not self._busy())


_log = logging.getLogger(__name__)

_TOO_LONG = 431
_LOOKS = 4  # at what was not taken, before its connection is ended


class Joined:
    """A transport that sends in one what is written in one breath: an answer's head and what its body begins with.

    Each time that somebody is told of bytes costs both sides more than the bytes do.

    Args:
        inner: The transport; all that is not said here is its own.
    """

    most: ClassVar[int] = 64 * 1024  # bytes that wait for more

    def __init__(self, inner: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._inner = inner
        self._loop = loop
        self._held: list[bytes] = []
        self._size = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def write(self, data: bytes) -> None:
        """Send this, with whatever is written before the loop goes on."""
        if not self._held:
            self._loop.call_soon(self._send)
        self._held.append(data)
        self._size += len(data)
        if self._size > self.most:
            self._send()

    def close(self) -> None:
        """Close it, when all is sent."""
        self._send()
        self._inner.close()

    def get_write_buffer_size(self) -> int:
        """Bytes that are written and not sent."""
        return self._size + self._inner.get_write_buffer_size()

    def _send(self) -> None:
        if self._held:
            data = b"".join(self._held)
            self._held.clear()
            self._size = 0
            self._inner.write(data)


class PatientProtocol(HttpToolsProtocol):
    """One connection, which ends where nothing comes, and where nothing of what is said is taken."""

    head_seconds: ClassVar[float] = 30.0  # for a whole head, from its first byte or from connecting
    body_seconds: ClassVar[float] = 60.0  # between two pieces of a body
    write_seconds: ClassVar[float] = 300.0  # in which something of an answer is taken, however little
    longest_head: ClassVar[int] = 64 * 1024  # bytes; of what follows a body in chunks as well

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None
        self._unsaid = 0  # bytes that have made neither a head nor a piece of a body yet

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait."""
        super().connection_made(cast("asyncio.Transport", Joined(transport, self.loop)))
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._rest()
        self._taken()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take in what came; a head without end is refused."""
        self._unsaid += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self.transport.get_protocol() is not self:  # it speaks by WebSocket from now on, which has its own patience
            self._rest()
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
        """What follows has its own time; what is not sent yet has to be taken."""
        super().on_response_complete()
        self._look()
        self._watch()

    def pause_writing(self) -> None:
        """More is said than is taken."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """Enough was taken."""
        super().resume_writing()
        self._taken()
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle is None or cycle.response_complete:
            self._watch()

    # -- inside ---------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Wait for a head, for the next piece of a body, or for nothing, as it stands now."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        is_body = cycle is not None and cycle.more_body
        is_ours = cycle is not None and not cycle.response_complete  # we answer: nobody keeps us waiting
        is_over = self.transport.is_closing()  # nothing follows; what was said may still be on its way
        if is_over or self.timeout_keep_alive_task is not None or (is_ours and not is_body):
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

    def _watch(self) -> None:
        """Wait until all that was said is taken, in looks: after a time asleep, one look alone is due."""
        if self._writing is None and self.transport.get_write_buffer_size():
            self._writing = self.loop.call_later(self.write_seconds / _LOOKS, self._look_again, self._unsent(), _LOOKS)

    def _look_again(self, before: int, looks: int) -> None:
        self._writing = None
        if not self.transport.get_write_buffer_size():
            return
        unsent = self._unsent()
        left = _LOOKS if unsent < before else looks - 1
        if left:
            self._writing = self.loop.call_later(self.write_seconds / _LOOKS, self._look_again, unsent, left)
        else:
            _log.info("Nothing of an answer was taken for %d seconds; the connection is ended.", self.write_seconds)
            self.transport.abort()

    def _unsent(self) -> int:
        """Bytes that the other side has not got yet.

        The system takes much at once, and says so in large steps; who reads slowly would seem to read nothing.
        """
        return self.transport.get_write_buffer_size() + _on_the_way(self.transport)

    def _taken(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None


def _on_the_way(transport: asyncio.Transport) -> int:
    """Bytes that the system holds of what was written, where it tells."""
    if sys.platform != "linux":
        return 0
    from fcntl import ioctl
    from termios import TIOCOUTQ

    try:
        return int.from_bytes(ioctl(transport.get_extra_info("socket").fileno(), TIOCOUTQ, bytes(4)), sys.byteorder)
    except (AttributeError, OSError):  # no socket, or none any more
        return 0
