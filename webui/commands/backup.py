"""`parlour backup FILE`: one file that holds the data folder, also while Parlour runs on it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from core.backup.writing import write_backup
from core.errors import ParlourError
from core.settings import Settings
from webui.commands.batch import INTERRUPTED
from webui.commands.parser import Parser, add_language
from webui.commands.saying import sentence, words_for

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """Write the backup.

    Returns:
        The exit code: 0, or 1 where it cannot be written, 130 after an interruption.
    """
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
    parser.add_argument("--home", type=Path, help="the data folder (./data, or PARLOUR_HOME)")
    add_language(parser)
    given = parser.parse_args(arguments)
    words = words_for(given.lang)
    try:
        settings = Settings.load(home=given.home)
        file, manifest = write_backup(settings.home, given.file, with_secret=given.with_secret)
    except ParlourError as error:
        sys.stderr.write(f"parlour: {sentence(error, words)}\n")
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    megabytes = max(1, round(file.stat().st_size / 1_000_000))
    said = [words("backup.made", file=str(file), size=megabytes, **manifest.counts)]
    if "secret" in manifest.entries:
        said.append(words("backup.with_secret"))
    else:
        said.append(words("backup.secret_elsewhere" if given.with_secret else "backup.without_secret"))
    sys.stdout.write("\n".join(said) + "\n")
    return 0
