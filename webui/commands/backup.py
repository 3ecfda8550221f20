"""`parlour backup FILE`: one file that holds the data folder, also while Parlour runs on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from core.backup.writing import write_backup
from webui.commands.at_home import at_home
from webui.commands.parser import Parser

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from core.settings import Settings
    from webui.words import Words


def main(arguments: Sequence[str]) -> int:
    """Write the backup; returns the exit code, as `at_home`."""
    parser = Parser(
        prog="parlour backup",
        description="Write conversations, files and libraries into one file, also while Parlour runs.",
        allow_abbrev=False,
    )
    parser.add_argument("file", type=Path, help="the file to make, or a folder, where it is named after the time")
    parser.add_argument(
        "--with-secret",
        action="store_true",
        help="take in the secret; without it, elsewhere, kept keys must be typed in again and cookies do not count",
    )
    return at_home(parser, arguments, _written)


def _written(given: argparse.Namespace, settings: Settings, words: Words) -> list[str]:
    file, manifest = write_backup(settings.home, given.file, with_secret=given.with_secret)
    megabytes = max(1, round(file.stat().st_size / 1_000_000))
    if "secret" in manifest.entries:
        about = "backup.with_secret"
    else:
        about = "backup.secret_elsewhere" if given.with_secret else "backup.without_secret"
    return [words("backup.made", file=str(file), size=megabytes, **manifest.counts), words(about)]
