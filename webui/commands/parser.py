"""Arguments of commands: what is wrong with one is said in one sentence."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence


class Parser(argparse.ArgumentParser):
    """Says in one sentence what is wrong."""

    def error(self, message: str) -> NoReturn:
        """End with the sentence and exit code 2."""
        message = message.removeprefix("argument ").replace(": must be", " must be")
        self.exit(2, f"parlour: {message}; see `{self.prog} --help`.\n")


def add_language(parser: argparse.ArgumentParser) -> None:
    """The option that chooses the language of what is said."""
    parser.add_argument("--lang", choices=("en", "zh"), help="language of what is said (by LANG)")


def add_variables(parser: argparse.ArgumentParser) -> None:
    """The option that fills blanks of a prompt."""
    parser.add_argument(
        "--var", action="append", default=[], type=_pair, metavar="NAME=VALUE", help="fills {{NAME}} of the prompt"
    )


def add_allowed(parser: argparse.ArgumentParser) -> None:
    """The option that lets tools act where nobody can be asked."""
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="PATTERN",
        help="tools that may change something or run code; without it they are refused, for nobody can be asked",
    )


def counting(text: str) -> int:
    """A whole number from 1. Raises ArgumentTypeError."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1, not {text!r}")
    return number


def sharing(text: str) -> float:
    """A number from 0 to 1. Raises ArgumentTypeError."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 1, not {text!r}")
    return number


def variables_of(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The values by their names; of two for one name the last counts."""
    return dict(pairs)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, not {text!r}")
    return name.strip(), value
