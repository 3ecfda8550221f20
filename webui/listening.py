"""A port to listen on, and a server that ends cleanly when it is asked to."""

from __future__ import annotations

import errno
import logging
import signal
import socket
import sys
from typing import TYPE_CHECKING

import uvicorn

from core.errors import SettingsError
from webui.patience import PatientProtocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from starlette.types import ASGIApp

_TRIES = 50
_GRACE = 2  # seconds that open streams get before they are cut


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
    """

    def __init__(self, app: ASGIApp, stopping: Callable[[], None]) -> None:
        config = uvicorn.Config(
            app,
            http=PatientProtocol,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # `ProxyMiddleware` decides whose count
            timeout_graceful_shutdown=_GRACE,
            timeout_keep_alive=75,
        )
        super().__init__(config)
        self._stopping = stopping

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop; a second Ctrl-C does not wait."""
        del frame
        logging.getLogger("uvicorn.error").disabled = True  # streams that are cut now are no news
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True
        self._stopping()
