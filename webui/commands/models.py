"""`parlour models`: the files of built-in models, listed, fetched and deleted."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from core.errors import ParlourError
from core.llm.weights import WeightStore
from core.models.weight_files import WeightFiles
from core.settings import Settings
from webui.commands.command_line import INTERRUPTED, Parser, add_language, sentence, words_for
from webui.panels.weight_files import about_file, file_data, size_said

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.llm.request import Progress
    from webui.words import Words

_ACTS = ("list", "get", "remove")


def main(arguments: Sequence[str]) -> int:
    """List the models that can run in Parlour, fetch some or delete some.

    Returns:
        The exit code: 0, 1 after an error, 130 after an interruption.
    """
    given = _parser().parse_args(arguments)
    words = words_for(given.lang)
    names: list[str] = given.names
    if given.act != "list" and not names:
        _parser().error(f"{given.act} needs the name of a model")
    try:
        files = WeightFiles(WeightStore(Settings.load().weights_dir))
        if given.act == "list":
            sys.stdout.write("".join(f"{line}\n" for line in listed(files, words)))
        for name in names if given.act == "get" else ():
            path = files.fetch(name, _told(words))
            sys.stderr.write(f"{_again()}{words('weights.here_at', model=name, path=path)}\n")
        for name in names if given.act == "remove" else ():
            freed = files.remove(name)
            said = words("weights.removed", model=name, size=size_said(freed)) if freed else words("weights.none")
            sys.stderr.write(f"{said}\n")
    except KeyboardInterrupt:
        sys.stderr.write(f"\n{words('weights.stopped')}\n")
        return INTERRUPTED
    except ParlourError as error:
        sys.stderr.write(f"{_again()}parlour: {sentence(error, words)}\n")
        return 1
    return 0


def listed(files: WeightFiles, words: Words) -> list[str]:
    """Three lines for each model: its name, what it is, and how it is here."""
    lines: list[str] = []
    for one in files.list():
        row: dict[str, Any] = file_data(one, words)
        lines += [f"{row['name']}  {row['label']}", f"    {about_file(row, words)}", f"    {row['said']}"]
    return [*lines, words("weights.folder", folder=files.folder)]


def _parser() -> Parser:
    parser = Parser(
        prog="parlour models",
        description="Models that run in Parlour itself, without a service: what there is, with size, licence, "
        "languages and the memory that each takes; `get` downloads, and goes on with what was begun; `remove` deletes "
        "what it has downloaded. A file counts only with the SHA-256 of the list, or of its repository's own record.",
        allow_abbrev=False,
    )
    parser.add_argument("act", nargs="?", choices=_ACTS, default="list", help="what to do (list)")
    parser.add_argument("names", nargs="*", metavar="NAME", help="models, by the first word of their lines")
    add_language(parser)
    return parser


def _told(words: Words) -> Callable[[Progress], None]:
    def tell(progress: Progress) -> None:
        if sys.stderr.isatty():
            done, total = size_said(progress.done), size_said(progress.total)
            said = words("weights.progress", model=progress.what, done=done, total=total)
            sys.stderr.write(f"{_again()}{said}")
            sys.stderr.flush()

    return tell


def _again() -> str:
    return "\r\x1b[K" if sys.stderr.isatty() else ""
