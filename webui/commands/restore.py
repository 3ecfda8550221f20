"""`parlour restore FILE`: a data folder made of a backup again."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from core.backup.restoring import restore_backup
from webui.commands.at_home import at_home
from webui.commands.parser import Parser

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from core.settings import Settings
    from webui.words import Words


def main(arguments: Sequence[str]) -> int:
    """Restore the backup; returns the exit code, as `at_home`."""
    parser = Parser(
        prog="parlour restore",
        description="Make a data folder of a backup. Parlour must not be running on it.",
        allow_abbrev=False,
    )
    parser.add_argument("file", type=Path, help="the file that `parlour backup` made")
    parser.add_argument(
        "--replace", action="store_true", help="also where the folder is not empty: what is there is kept beside it"
    )
    return at_home(parser, arguments, _restored)


def _restored(given: argparse.Namespace, settings: Settings, words: Words) -> list[str]:
    done = restore_backup(given.file, settings.home, replace=given.replace)
    made = datetime.fromtimestamp(done.manifest.made).astimezone().strftime("%Y-%m-%d %H:%M")
    said = [words("restore.done", home=str(settings.home), made=made, **done.manifest.counts)]
    if done.aside is not None:
        said.append(words("restore.aside", folder=str(done.aside)))
    if not done.has_secret and settings.secret is None:
        said.append(words("restore.without_secret"))
    return said
