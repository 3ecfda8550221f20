"""`parlour move`: carries a data folder over into what several Parlours share."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from core.errors import NotFoundError, SettingsError, extra_for
from webui.commands.command_line import Parser, on_data_folder
from webui.commands.moving_files import move_files

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from core.settings import Settings
    from webui.words import Words


def move(arguments: Sequence[str]) -> int:
    """Carry a data folder into a PostgreSQL database and an S3 store; returns the exit code of `on_data_folder`."""
    parser = Parser(
        prog="parlour move",
        description="Carry conversations, people and all other rows of a data folder into a PostgreSQL database, and "
        "its files and shared snapshots into an S3 store. "
        "Parlour must not be running on the folder, which keeps all it has. Cut short, it goes on when run again.",
        allow_abbrev=False,
    )
    parser.add_argument("--to", metavar="ADDRESS", help="postgresql://name:password@host:5432/database")
    parser.add_argument("--files", metavar="STORE", help="s3://bucket/prefix, with the usual variables of AWS")
    return on_data_folder(parser, arguments, _move)


def _move(given: argparse.Namespace, settings: Settings, words: Words) -> list[str]:
    if not (given.to or given.files):
        raise SettingsError("It is not said where to.", hint="Give --to, --files or both.", key="move_nowhere")
    path = settings.home / "parlour.db"
    if not path.is_file() and (given.to or settings.database is None):
        raise NotFoundError(f"There is no data in {settings.home}.", hint="Name its folder with --home.")
    # Files first, for they may be carried again: rows are refused where they are already.
    files = move_files(settings, given.files, words) if given.files else ()
    return [*files, *(_rows(given.to, path, settings, words) if given.to else ())]


def _rows(to: str, path: Path, settings: Settings, words: Words) -> list[str]:
    with extra_for("The command 'move'"):
        from core.storage.carrying import carry

    def told(table: str, rows: int) -> None:
        if rows:
            sys.stderr.write(words("move.table", table=table, rows=rows) + "\n")

    asyncio.run(_bring_in_notes(path))
    rows = carry(path, to, settings.signing_secret(), told)
    return [words("move.done", rows=rows), words("move.next")]


async def _bring_in_notes(path: Path) -> None:
    """Notes of a Parlour that kept them in files are rows, too."""
    from core.storage.database import Database
    from core.tools.owner_notes import take_in_notes

    database = await Database.open(path)
    try:
        await take_in_notes(database, path.parent / "notes")
    finally:
        await database.aclose()
