"""The command line: `parlour`, or `python -m webui`."""

from __future__ import annotations

import argparse
import gc
import logging
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from core.errors import ParlourError
from core.settings import Settings
from webui.app import open_house
from webui.auth import Hosts, Owners
from webui.door import Door
from webui.listening import Server, address_of, bind
from webui.middleware.headers import HeadersMiddleware
from webui.middleware.owner import OwnerMiddleware
from webui.neighbour import opened_at
from webui.terminal import Terminal

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

_SPACE_FRAMES = ("https://huggingface.co", "https://*.hf.space")


class _Parser(argparse.ArgumentParser):
    """Says in one sentence what is wrong."""

    def error(self, message: str) -> NoReturn:
        message = message.removeprefix("argument ").replace(": must be", " must be")
        self.exit(2, f"parlour: {message}; see `parlour --help`.\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve Parlour until it is told to stop.

    Returns:
        The exit code: 0 after a stop that was asked for, 1 where Parlour could not start.
    """
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    given = vars(_parser().parse_args(arguments))
    try:
        settings = Settings.load(**given)
        if settings.log_calls:
            logging.getLogger("core.llm.calls").setLevel(logging.INFO)
        settings.make_home()
        secret = settings.signing_secret()
        sock = bind(settings.host, settings.port)
        code = _serve(settings, secret, sock)
        gc.freeze()  # everything was closed: collecting what is left would only make the end a second longer
        return code
    except ParlourError as error:
        print(f"parlour: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 65535, not {text!r}") from error


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="parlour",
        description="A chat application that runs on your own machine.",
        epilog="The model is set by variables: PARLOUR_BASE_URL, PARLOUR_API_KEY and PARLOUR_MODEL, or OPENAI_API_KEY. "
        "README.md says what each means, under “Connect another model”.",
        allow_abbrev=False,
    )
    parser.add_argument("--host", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=_whole, help="port to listen on, or the next free one (7860)")
    parser.add_argument("--config", type=Path, help="settings file (parlour.toml)")
    parser.add_argument("--home", type=Path, help="data folder (./data)")
    return parser


def _serve(settings: Settings, secret: str, sock: socket.socket) -> int:
    port, address = sock.getsockname()[1], address_of(settings.host, sock)
    terminal = Terminal(address)
    failures: list[Exception] = []

    def failed(error: Exception) -> None:
        failures.append(error)
        server.should_exit = True

    door = Door(partial(open_house, settings, terminal.tell), failed)
    server = Server(_guarded(door, settings, secret), door.close)
    with opened_at(settings.home, address) as beside:
        terminal.opening(instead_of=settings.port if settings.port not in {0, port} else 0, beside=beside)
        server.run(sockets=[sock])
    for failure in failures:
        if isinstance(failure, ParlourError):
            raise failure
        logging.getLogger(__name__).error("Parlour cannot be opened.", exc_info=failure)
    return 1 if failures else 0


def _guarded(door: Door, settings: Settings, secret: str) -> HeadersMiddleware:
    """The door behind what looks at every request."""
    local = settings.bound_to_this_machine
    framed = bool(settings.space_host)
    owners = Owners(secret, local=local and settings.owners == "auto", framed=framed)
    hosts = Hosts(settings.host, (*settings.allowed_hosts, settings.space_host), any_address=not local)
    return HeadersMiddleware(OwnerMiddleware(door, owners, hosts), _SPACE_FRAMES if framed else ())


if __name__ == "__main__":
    sys.exit(main())
