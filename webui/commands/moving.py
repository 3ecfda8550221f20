"""`parlour move`: carries a data folder over into what several Parlours share."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from core.errors import NotFoundError, extra_for
from webui.commands.command_line import Parser, on_data_folder

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from core.settings import Settings
    from webui.words import Words


def move(arguments: Sequence[str]) -> int:
    """Carry the rows of a data folder into a PostgreSQL database; returns the exit code of `on_data_folder`."""
    parser = Parser(
        prog="parlour move",
        description="Carry conversations, people and all other rows of a data folder into a PostgreSQL database. "
        "Parlour must not be running on the folder, which stays as it is. Cut short, it goes on when it is run again.",
        allow_abbrev=False,
    )
    parser.add_argument("--to", required=True, metavar="ADDRESS", help="postgresql://name:password@host:5432/database")
    return on_data_folder(parser, arguments, _move)


def _move(given: argparse.Namespace, settings: Settings, words: Words) -> list[str]:
    path = settings.home / "parlour.db"
    if not path.is_file():
        raise NotFoundError(f"There is no data in {settings.home}.", hint="Name its folder with --home.")
    with extra_for("The command 'move'"):
        from core.storage.carrying import carry

    def told(table: str, rows: int) -> None:
        if rows:
            sys.stderr.write(words("move.table", table=table, rows=rows) + "\n")

    rows = carry(path, given.to, settings.signing_secret(), told)
    return [words("move.done", rows=rows), words("move.next")]
