"""Serves a page until it is told to stop: the `parlour` command and `WebUI(agent).run()` end here."""

from __future__ import annotations

import json
import logging
import os
from contextlib import contextmanager, suppress
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlencode

from core.errors import ParlourError
from core.net.addresses import serving
from core.resources import raise_descriptor_limit
from core.runs.lease import standing, this_worker
from core.shared_limits import limits_of
from webui.app import open_app
from webui.auth import Hosts, PageToken, owners_of
from webui.doors.socket import SocketDoor
from webui.middleware.headers import HeadersMiddleware
from webui.middleware.owner import OwnerMiddleware, newcomers_of
from webui.middleware.places import PlacesMiddleware
from webui.middleware.proxy import ProxyMiddleware
from webui.middleware.root import RootMiddleware
from webui.observing import observing
from webui.page_look import Look
from webui.server import Drain, Server, address_of
from webui.startup_app import StartupApp
from webui.terminal import Terminal

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Generator, Mapping
    from pathlib import Path

    from starlette.types import ASGIApp

    from core.engine import Engine
    from core.settings import Settings

_log = logging.getLogger(__name__)
_SPACE_FRAMES = ("https://huggingface.co", "https://*.hf.space")


def serve(  # noqa: PLR0913 - what is served, and by name how
    settings: Settings,
    secret: str,
    sock: socket.socket,
    engine: Callable[[Settings], Engine] | None = None,
    look: Look = Look(),  # noqa: B008 - frozen
    query: Mapping[str, str] = MappingProxyType({}),
    *,
    front: Callable[[ASGIApp], ASGIApp] | None = None,
    last: float | None = None,
    goes_on: bool = False,
) -> int:
    """Serve until a signal says stop.

    Args:
        secret: Signs the owner cookies.
        engine: Makes the engine, in a thread; Parlour's own if left out.
        look: What a program chose of the page.
        query: What the printed address asks for besides, such as a demonstration.
        front: What stands before everything else, and answers what it will by itself.
        last: Seconds after a signal in which the process ends, whatever hangs; left out, it is waited for.
        goes_on: Whether the process does something else afterwards: then these seconds count until this returns.

    Returns:
        The exit code: 1 where the house could not be opened for a reason that was logged.

    Raises:
        ParlourError: It cannot be opened.
    """
    raise_descriptor_limit()
    port, address = sock.getsockname()[1], address_of(settings.host, sock)
    token = settings.page_token()
    asked = urlencode({**({"token": token} if token else {}), **query})
    page = f"{address}{settings.root_path}"  # cookies of the page come back from below its path alone
    pages = settings.role != "worker"
    terminal = Terminal(f"{page}/?{asked}" if asked and pages else page, pages=pages)
    failures: list[Exception] = []

    def failed(error: Exception) -> None:
        failures.append(error)
        server.should_exit = True

    if advice := secret_advice(settings):
        _log.warning(advice)
    measurements = observing(settings)
    opening = partial(open_app, settings, terminal.tell, engine=engine, look=look, first=terminal.first_owner)
    app = StartupApp(opening, failed, measurements)
    whole: ASGIApp = guarded(app, settings, secret, token)
    wait = settings.drain_seconds
    drain = Drain(wait, app.drain, lambda: app.busy) if wait else None
    shown = whole if front is None else front(whole)
    server = Server(
        shown, app.close, write_seconds=settings.write_seconds, drain=drain, last=last, slow=terminal.ending
    )
    with opened_at(settings.home, address) as beside, serving(port, secret):
        taken = settings.port if settings.port not in {0, port} else 0
        terminal.opening(instead_of=taken, beside=beside, open_to_all=settings.has_local_owner and settings.asks_nobody)
        try:
            server.run(sockets=[sock])
        finally:
            if goes_on:  # a program that catches what is raised here goes on as well
                server.let_go()
    for failure in failures:
        if isinstance(failure, ParlourError):
            raise failure
        _log.error("Parlour cannot be opened.", exc_info=failure)
    return 1 if failures else 0


def secret_advice(settings: Settings) -> str:
    """A sentence for whoever starts the first of several Parlours with a secret of its folder; "" where all is well."""
    given = settings.secret is not None or (settings.space_hosts and settings.oauth_client_secret is not None)
    if settings.database is None or given:
        return ""
    return (
        "PARLOUR_SECRET is not set, so the secret in this data folder is the one of the database. "
        "Another Parlour that uses the database needs the same: set PARLOUR_SECRET for all of them."
    )


def bring_back(settings: Settings) -> None:
    """Make the data folder, and fill a fresh one with what a bucket keeps.

    Raises:
        SettingsError: It cannot be made.
        StorageError: The bucket cannot be read.
    """
    settings.make_home()
    if settings.bucket or settings.space_hosts:
        from core.backup.bucket import bucket_of  # brings the database's package with it: nobody else waits for that

        if bucket := bucket_of(settings):
            bucket.bring_back()


def guarded(app: ASGIApp, settings: Settings, secret: str, token: str) -> SocketDoor:
    """The app behind what looks at every request.

    Args:
        settings: Where Parlour listens, and who may come how.
        secret: Signs cookies.
        token: Opens the page; "" where nobody is asked for one.
    """
    owners = owners_of(settings, secret)
    allowed = (*settings.allowed_hosts, *settings.space_hosts)
    hosts = Hosts(settings.host, allowed, any_address=not settings.bound_to_this_machine)
    shown = PageToken(secret, token, for_everybody=settings.asks_everybody, cookies=owners.cookies)
    newcomers = newcomers_of(limits_of(settings.redis_address), settings)
    owned = OwnerMiddleware(
        app,
        owners,
        hosts,
        shown,
        kept=not settings.asks_everybody,
        newcomers=newcomers,
        accounts=settings.has_accounts,
    )
    frames = HeadersMiddleware(owned, (*(_SPACE_FRAMES if settings.space_hosts else ()), *settings.frames))
    placed = ProxyMiddleware(PlacesMiddleware(frames, owners.cookies), settings.trusted_proxies)
    return SocketDoor(RootMiddleware(placed, settings.root_path), settings.root_path)


_NAME = "address"


@contextmanager
def opened_at(home: Path, address: str) -> Generator[str]:
    """Note that this process is open at `address`, until the end; the first of several has the note.

    Yields:
        Where another process is open on the same folder; empty where there is none.
    """
    note, me = home / _NAME, this_worker()
    other = _read(note)
    there = standing(other.get("worker", "")) == "alive" and other.get("worker") != me
    if not there:
        try:
            _write(note, json.dumps({"worker": me, "url": address}))
        except OSError as error:  # no reason not to open
            _log.debug("The address is not noted: %s", error)
    try:
        yield other.get("url", "") if there else ""
    finally:
        if _read(note).get("worker") == me:
            with suppress(OSError):
                note.unlink()


def address_of_open(settings: Settings) -> str:
    """Where Parlour is open on a data folder, or would be by these settings."""
    host = settings.host.strip("[]")
    shown = f"[{host}]" if ":" in host else host
    return _read(settings.home / _NAME).get("url") or f"http://{shown}:{settings.port}"


def _write(note: Path, text: str) -> None:
    """Write what nobody but the owner of the folder may read, whatever mode the folder and an older note have."""
    note.unlink(missing_ok=True)
    with os.fdopen(os.open(note, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def _read(note: Path) -> dict[str, str]:
    """What is noted; nothing where there is no note, or one that nobody here wrote."""
    try:
        found: Any = json.loads(note.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    noted = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    return {name: str(value) for name, value in noted.items()}
