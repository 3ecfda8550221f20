"""A proxy that waits for so many seconds for the next word of an answer, and then ends the connection."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self


class ImpatientProxy:
    """Passes on what comes, both ways, at a port of its own, until the `with` block ends.

    Each connection carries one request: a client says `Connection: close`.

    Args:
        port: Of the server on this machine.
        seconds: How long the server may say nothing.

    Attributes:
        port: Where it listens.
        gave_up: How many answers it gave up.
    """

    def __init__(self, port: int, seconds: float) -> None:
        self._server = ("127.0.0.1", port)
        self._seconds = seconds
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self.gave_up = 0
        self._open: set[socket.socket] = set()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in (self._listening, *self._open):
            _end(one)

    def _accept(self) -> None:
        with suppress(OSError):  # it was ended
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(self._server)
                server.settimeout(self._seconds)
                self._open |= {client, server}
                threading.Thread(target=self._pass_on, args=(client, server), daemon=True).start()
                threading.Thread(target=self._pass_on, args=(server, client), daemon=True).start()

    def _pass_on(self, start: socket.socket, end: socket.socket) -> None:
        try:
            while piece := start.recv(65_536):
                end.sendall(piece)
        except TimeoutError:
            self.gave_up += 1
        except OSError:
            pass  # the other side left
        _end(start)
        _end(end)


def _end(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
