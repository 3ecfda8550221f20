"""What the commands that work on a data folder share: which one, in which language, and what becomes of errors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import ParlourError
from core.settings import Settings
from webui.commands.batch import INTERRUPTED
from webui.commands.parser import add_language
from webui.commands.saying import sentence, words_for

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Sequence

    from webui.commands.parser import Parser
    from webui.words import Words


def at_home(
    parser: Parser,
    arguments: Sequence[str],
    work: Callable[[argparse.Namespace, Settings, Words], Iterable[str]],
) -> int:
    """Read the arguments, work, and print what comes back, a line each.

    Args:
        parser: Knows what is the command's own; `--home` and `--lang` are added.
        arguments: What stands after the command.
        work: The command itself. It raises ParlourError, or OSError where something cannot be written.

    Returns:
        The exit code: 0, or 1 where it cannot be done, which is said in a sentence, 130 after an interruption.
    """
    parser.add_argument("--home", type=Path, help="the data folder (./data, or PARLOUR_HOME)")
    add_language(parser)
    given = parser.parse_args(arguments)
    words = words_for(given.lang)
    try:
        said = work(given, Settings.load(home=given.home), words)
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
