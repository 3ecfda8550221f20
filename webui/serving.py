"""Serves a page until it is told to stop: the `parlour` command and `WebUI(agent).run()` end here."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from core.descriptors import raise_limit
from core.errors import ParlourError
from webui.app import open_house
from webui.auth import Hosts, Owners
from webui.door import Door
from webui.listening import Server, address_of
from webui.middleware.headers import HeadersMiddleware
from webui.middleware.owner import OwnerMiddleware
from webui.neighbour import opened_at
from webui.page_look import Look
from webui.terminal import Terminal

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from core.engine import Engine
    from core.settings import Settings

_log = logging.getLogger(__name__)
_SPACE_FRAMES = ("https://huggingface.co", "https://*.hf.space")


def serve(
    settings: Settings,
    secret: str,
    sock: socket.socket,
    engine: Callable[[Settings], Engine] | None = None,
    look: Look = Look(),  # noqa: B008 - frozen
) -> int:
    """Serve until a signal says stop.

    Args:
        settings: The settings.
        secret: Signs the owner cookies.
        sock: Where to listen.
        engine: Makes the engine, in a thread; Parlour's own if left out.
        look: What a program chose of the page.

    Returns:
        The exit code: 1 where the house could not be opened for a reason that was logged.

    Raises:
        ParlourError: It cannot be opened.
    """
    raise_limit()
    port, address = sock.getsockname()[1], address_of(settings.host, sock)
    terminal = Terminal(address)
    failures: list[Exception] = []

    def failed(error: Exception) -> None:
        failures.append(error)
        server.should_exit = True

    door = Door(partial(open_house, settings, terminal.tell, engine=engine, look=look), failed)
    server = Server(_guarded(door, settings, secret), door.close)
    with opened_at(settings.home, address) as beside:
        terminal.opening(instead_of=settings.port if settings.port not in {0, port} else 0, beside=beside)
        server.run(sockets=[sock])
    for failure in failures:
        if isinstance(failure, ParlourError):
            raise failure
        _log.error("Parlour cannot be opened.", exc_info=failure)
    return 1 if failures else 0


def _guarded(door: Door, settings: Settings, secret: str) -> HeadersMiddleware:
    """The door behind what looks at every request."""
    local = settings.bound_to_this_machine
    framed = bool(settings.space_host)
    owners = Owners(secret, local=local and settings.owners == "auto", framed=framed)
    hosts = Hosts(settings.host, (*settings.allowed_hosts, settings.space_host), any_address=not local)
    return HeadersMiddleware(OwnerMiddleware(door, owners, hosts), _SPACE_FRAMES if framed else ())
