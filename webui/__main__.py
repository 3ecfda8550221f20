"""The command line: `parlour`, or `python -m webui`."""

from __future__ import annotations

import argparse
import gc
import logging
import sys
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Final

from core.errors import MissingExtraError, ParlourError, UnknownNameError, need_packages
from core.extras import PACKAGES
from core.settings import Settings
from webui.commands import ABOUT, COMMANDS, run_command
from webui.commands.command_line import Parser, folder, sentence, words_for

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve Parlour until it is told to stop, or run one of its commands.

    Returns:
        The exit code: 0 after a stop that was asked for, 1 where Parlour could not start; of a command its own.
    """
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words and words[0] in COMMANDS:
        try:
            return run_command(words[0], words[1:])
        except MissingExtraError as error:
            print(f"parlour: {sentence(error, words_for(None))}", file=sys.stderr)
            return 1
    if words and not words[0].startswith("-"):
        error = UnknownNameError("command", words[0], COMMANDS)
        _parser().exit(2, f"parlour: {sentence(error, words_for(None))}\n")
    given = vars(_parser().parse_args(words))
    try:
        need_packages("The page", PACKAGES["page"])
        from webui.server import LAST, bind  # a command needs no server, and does not wait for one to be imported
        from webui.serving import bring_back, serve

        settings = Settings.load(**given)
        if settings.logs == "json":
            from webui.observing import log_as_json

            log_as_json()
        if settings.log_calls:
            logging.getLogger("core.llm.calls").setLevel(logging.INFO)
        if settings.role == "sandbox":
            from webui.sandbox_role.process import serve_sandbox

            return serve_sandbox(settings, last=LAST)
        bring_back(settings)
        settings.check_whole()
        settings.check_open_to()
        settings.make_home()
        secret = settings.signing_secret()
        sock = bind(settings.host, settings.port, next_free=settings.may_move_port)
        code = serve(settings, secret, sock, last=LAST)
        gc.freeze()  # everything was closed: collecting what is left would only make the end a second longer
        return code
    except ParlourError as error:
        print(f"parlour: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


_WIDTH: Final = 78  # letters of a line of help
_BROAD: Final = 17  # where the words on a command begin, as those on an option do


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 65535, not {text!r}") from error


def _parser() -> argparse.ArgumentParser:
    listed = "\n".join(f"  {name:<{_BROAD}}{about}" for name, about in ABOUT.items())
    told = (
        "The model is set by variables: PARLOUR_BASE_URL, PARLOUR_API_KEY and PARLOUR_MODEL, or OPENAI_API_KEY. "
        "README.md says what each means, under “Connect another model”."
    )
    parser = Parser(
        prog="parlour",
        usage="parlour [options]\n       parlour COMMAND …",
        description="A chat application on your own machine. Without a command, its page opens.",
        epilog=f"commands (`parlour check --help` and so on say more):\n{listed}\n\n{fill(told, _WIDTH)}",
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--host", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=_whole, help="port to listen on (7860, or the next free one)")
    parser.add_argument("--config", type=Path, help="settings file (parlour.toml)")
    parser.add_argument("--home", type=folder, help="data folder (./data)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
