"""`parlour restore FILE`: a data folder made of a backup again."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from core.backup.restoring import restore_backup
from core.errors import ParlourError
from core.settings import Settings
from webui.commands.batch import INTERRUPTED
from webui.commands.parser import Parser, add_language
from webui.commands.saying import sentence, words_for

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """Restore the backup.

    Returns:
        The exit code: 0, or 1 where it cannot be restored, 130 after an interruption.
    """
    parser = Parser(
        prog="parlour restore",
        description="Make a data folder of a backup. Parlour must not be running on it.",
        allow_abbrev=False,
    )
    parser.add_argument("file", type=Path, help="the file that `parlour backup` made")
    parser.add_argument(
        "--replace", action="store_true", help="also where the folder is not empty: what is there is kept beside it"
    )
    parser.add_argument("--home", type=Path, help="the data folder (./data, or PARLOUR_HOME)")
    add_language(parser)
    given = parser.parse_args(arguments)
    words = words_for(given.lang)
    try:
        settings = Settings.load(home=given.home)
        done = restore_backup(given.file, settings.home, replace=given.replace)
    except ParlourError as error:
        sys.stderr.write(f"parlour: {sentence(error, words)}\n")
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    made = datetime.fromtimestamp(done.manifest.made).astimezone().strftime("%Y-%m-%d %H:%M")
    said = [words("restore.done", home=str(settings.home), made=made, **done.manifest.counts)]
    if done.aside is not None:
        said.append(words("restore.aside", folder=str(done.aside)))
    if not done.has_secret and settings.secret is None:
        said.append(words("restore.without_secret"))
    sys.stdout.write("\n".join(said) + "\n")
    return 0
