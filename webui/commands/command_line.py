"""What all commands share: arguments, errors in the language of the terminal, progress."""

from __future__ import annotations

import argparse
import re
import sys
from contextlib import nullcontext
from difflib import get_close_matches
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NoReturn

from core.errors import ParlourError
from core.settings import TRACE_FILE, Settings, terminal_language
from webui.commands.owners import owner_named
from webui.words import LANGUAGES, Words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import TextIO

    from core.batch.job import Tally


_PLAINER: Final = (
    (re.compile(r"^(\S+): invalid choice: (.*?) \(choose from (.*)\)$"), r"\1 must be one of \3, not \2"),
    (re.compile(r"^(\S+): invalid int value: (.*)$"), r"\1 must be a whole number, not \2"),
    (re.compile(r"^(\S+): invalid float value: (.*)$"), r"\1 must be a number, not \2"),
    (re.compile(r"^(\S+): expected one argument$"), r"\1 needs a value behind it"),
    (re.compile(r"^(\S+): expected at least one argument$"), r"\1 needs a value behind it"),
    (re.compile(r"^the following arguments are required: "), "these are missing: "),
)
"""What argparse says, and the same in plain words."""
_UNKNOWN: Final = "unrecognized arguments: "


class Parser(argparse.ArgumentParser):
    """Reports wrong arguments in one sentence."""

    def error(self, message: str) -> NoReturn:
        """End with the sentence and exit code 2."""
        message = message.removeprefix("argument ").replace(": must be", " must be")
        for said, better in _PLAINER:
            message = said.sub(better, message)
        if message.startswith(_UNKNOWN):
            message = self._unknown(message.removeprefix(_UNKNOWN))
        self.exit(2, f"parlour: {message}; see `{self.prog} --help`.\n")

    def _unknown(self, given: str) -> str:
        option = given.partition(" ")[0].partition("=")[0]
        near = get_close_matches(option, self._option_string_actions, 1) if option.startswith("-") else []
        return f"there is no {option}, perhaps {near[0]} is meant" if near else f"it takes no {given}"


def add_language(parser: argparse.ArgumentParser) -> None:
    """Add `--lang`: the language of messages."""
    parser.add_argument("--lang", choices=LANGUAGES, help="language of messages (by LANG)")


def add_variables(parser: argparse.ArgumentParser) -> None:
    """Add `--var`: values for the blanks of a prompt."""
    parser.add_argument(
        "--var", action="append", default=[], type=_variable, metavar="NAME=VALUE", help="fills {{NAME}} of the prompt"
    )


def add_allowed(parser: argparse.ArgumentParser) -> None:
    """Add `--allow`: tools that may act although nobody can be asked."""
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="PATTERN",
        help="tools that may change something or run code; without it they are refused, for nobody can be asked",
    )


_ID: Final = re.compile(r"-[\w-]{21}")


def id_argument(text: str) -> str:
    """An argument as argparse takes it: an id may look like an option, and gets a space in front."""
    return f" {text}" if _ID.fullmatch(text) else text


def positive_int(text: str) -> int:
    """A whole number from 1. Raises ArgumentTypeError."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1, not {text!r}")
    return number


def above_zero(text: str) -> float:
    """A number above 0. Raises ArgumentTypeError."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < inf:
        raise argparse.ArgumentTypeError(f"must be a number above 0, not {text!r}")
    return number


def folder(text: str) -> Path:
    """A path with letters in it: an empty one would be the folder that one stands in. Raises ArgumentTypeError."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"must be the path of a folder, not {text!r}")
    return Path(text)


def fraction(text: str) -> float:
    """A number from 0 to 1. Raises ArgumentTypeError."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 1, not {text!r}")
    return number


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, not {text!r}")
    return name.strip(), value


def traced() -> AbstractContextManager[object]:
    """Inside, replies leave traces in the file that the settings name, if they name one.

    Raises:
        SettingsError: It cannot be written.
    """
    settings = Settings.load()
    if settings.traces is None or not settings.traces.startswith(TRACE_FILE):
        return nullcontext()
    from core.export.redaction import own_secrets  # few programs are traced
    from core.export.traces import trace_to

    return trace_to(settings.traces, secrets=own_secrets(settings))


_SAYS_LITTLE: Final = frozenset({"settings", "unexpected", "mcp_settings"})
"""Errors whose sentence sends readers of the page to the terminal: there the error's own text is printed."""
_OF_THE_PAGE: Final = re.compile("Your message|[Pp]ress |at the top|this page|Load the page")
"""Marks a remedy (in English) that makes sense on the page alone: it names a button, the top line, a kept message."""


def words_for(lang: str | None) -> Words:
    """The words of the given language, else of the terminal's."""
    return Words.named(lang or terminal_language())


def sentence(error: ParlourError, words: Words) -> str:
    """An error on one line, in full: the page shows less of it."""
    said = _sentence(error, words)
    return " ".join("".join(sign if sign.isprintable() else " " for sign in said).split())


def stored_sentence(error: Mapping[str, Any], words: Words) -> str:
    """The same for an error that was stored as `key`, `message` and `details`."""
    message = str(error.get("message") or "")
    if words.lang == "en":
        return message
    details: dict[str, Any] = error.get("details") or {}
    return sentence(ParlourError(message, key=str(error.get("key") or ""), **details), words)


def _sentence(error: ParlourError, words: Words) -> str:
    if words.lang == "en":
        return str(error)
    key = error.words_key
    details = {name: _translated(value, words) for name, value in error.details.items()}
    if key == "unknown_name":
        kind = f"check.kind.{str(error.details['kind']).replace(' ', '_')}"
        details["kind"] = words(kind) if kind in words else str(error.details["kind"])
        near: list[str] = error.details.get("near") or []
        ending = words("check.meant", near=words("lang.or").join(near)) if near else ""
        return words("check.unknown_name", **details) + ending
    if key in _SAYS_LITTLE or f"error.{key}" not in words:
        return words("check.other", what=str(error))
    told = {"key": key, "details": details}
    if said := details.get("message"):  # a service's own words say more than what to press on the page
        return words("check.service", what=words.error_parts(told)[0], said=said.rstrip("."))
    happened, remedy = words.error_parts(told)
    return words.line(happened, "" if _OF_THE_PAGE.search(Words("en").error_parts(told)[1]) else remedy)


def _translated(value: object, words: Words) -> str:
    """A value for a blank, with the joints of an English list replaced by those of the language."""
    if not isinstance(value, str):
        return str(value)
    return value.replace(" or ", words("lang.or")).replace(", ", words("attach.comma"))


INTERRUPTED: Final = 130
"""The exit code after Ctrl-C."""
_STEPS: Final = 10  # lines of progress, where lines cannot be rewritten
_AT_LEAST_EVERY: Final = 30.0  # seconds between two of them, where something was done meanwhile
_GUESSES_AFTER: Final = 10.0  # seconds; before, what is over says little about what is left


def on_data_folder(
    parser: Parser,
    arguments: Sequence[str],
    work: Callable[[argparse.Namespace, Settings, Words], Iterable[str]],
    wrong: Callable[[argparse.Namespace], str] = lambda _: "",
) -> int:
    """Parse the arguments, run a command on a data folder, and print the lines that it returns.

    Args:
        parser: Has the command's own arguments; `--home` and `--lang` are added.
        work: The command; an `owner` that it is given is the id of one that is there. It raises ParlourError, or
            OSError where something cannot be written.
        wrong: What is wrong with the arguments together, in a sentence; empty where nothing is.

    Returns:
        The exit code: 0, 1 after an error (printed as one sentence), 130 after an interruption.
    """
    parser.add_argument("--home", type=folder, help="the data folder (./data, or PARLOUR_HOME)")
    add_language(parser)
    given = parser.parse_args(arguments)
    if complaint := wrong(given):
        parser.error(complaint)
    words = words_for(given.lang)
    try:
        settings = Settings.load(home=given.home)
        if "owner" in given:
            given.owner = owner_named(settings, given.owner)
        said = work(given, settings, words)
    except ParlourError as error:
        sys.stderr.write(f"parlour: {sentence(error, words)}\n")
        return 1
    except OSError as error:
        file = getattr(given, "out", None) or error.filename or "-"
        sys.stderr.write(f"parlour: {words('batch.no_write', file=file, why=error.strerror or error)}\n")
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    sys.stdout.write("".join(f"{line}\n" for line in said))
    return 0


class ProgressLine:
    """Progress of many questions: one line that is rewritten on a screen, a line now and then in a file.

    Args:
        out: Where to write; standard error if left out.
        key: The sentence, with blanks for `done`, `total` and `failed`.
        clock: Seconds, from whenever.
    """

    def __init__(
        self,
        words: Words,
        out: TextIO | None = None,
        *,
        key: str = "batch.progress",
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._words = words
        self._key = key
        self._out = out or sys.stderr
        self._clock = clock
        self._began = self._told = clock()
        self._rewrites = self._out.isatty()
        self._step = -1
        self._width = 0

    def tell(self, tally: Tally) -> None:
        """Show the tally."""
        now = self._clock()
        line = self._words(self._key, done=tally.done, total=tally.total, failed=tally.failed)
        line += self._left(tally, now - self._began)
        step = _STEPS * tally.done // tally.total
        if self._rewrites:
            self._out.write("\r" + line.ljust(self._width))
            self._width = len(line)
        elif step > self._step or now - self._told >= _AT_LEAST_EVERY:
            self._step, self._told = step, now
            self._out.write(f"{line}\n")
        self._out.flush()

    def _left(self, tally: Tally, passed: float) -> str:
        """How long the rest takes, if it goes on like this."""
        left = tally.total - tally.done
        if not left or not tally.done or passed < _GUESSES_AFTER:
            return ""
        return self._words("progress.left", time=self._words.seconds(passed * left / tally.done, whole=True))

    def end(self) -> None:
        """End the line."""
        if self._width:
            self._out.write("\n")
