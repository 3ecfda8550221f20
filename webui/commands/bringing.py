"""`parlour import`: takes conversations of a file into a data folder, whether Parlour runs or not."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from webui.commands.command_line import Parser, on_data_folder
from webui.commands.owners import add_owner
from webui.render.imported import import_told

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from core.importing.importing import Imported
    from core.settings import Settings
    from webui.words import Words

_STEP: Final = 0.1


def bring_in(arguments: Sequence[str]) -> int:
    """`parlour import`: bring conversations in; returns the exit code of `on_data_folder`."""
    parser = Parser(
        prog="parlour import",
        description="Bring conversations in: a bundle or JSON of Parlour's, or an export of ChatGPT, Claude, Open "
        "WebUI or LibreChat (ZIP or JSON). All of it is checked first; what cannot be taken in changes nothing.",
        allow_abbrev=False,
    )
    parser.add_argument("file", type=Path, help="the file")
    parser.add_argument(
        "--again", action="store_true", help="bring what is there already in once more, as a copy; else it is left out"
    )
    add_owner(parser, "whose they are from now on")
    return on_data_folder(parser, arguments, _bring_in)


def _bring_in(given: argparse.Namespace, settings: Settings, words: Words) -> list[str]:
    if not settings.home.exists():  # what cannot be taken in makes no data folder either
        from core.importing.importing import check

        check(given.file, name=str(given.file))
    settings.make_home()
    return list(import_told(asyncio.run(_run(given, settings, words)), words))


async def _run(given: argparse.Namespace, settings: Settings, words: Words) -> Imported:
    from core.importing.importing import bring_in as brought  # much to import: other commands do without
    from core.storage.database import Database
    from core.storage.opening import opened_blobs
    from core.storage.sealing import Sealer
    from core.storage.stores import Stores

    async with AsyncExitStack() as opened:
        database = await Database.open(settings.database_in(settings.home))
        opened.push_async_callback(database.aclose)
        stores = Stores(
            database,
            await opened.enter_async_context(opened_blobs(settings)),
            Sealer(settings.signing_secret()),
            quota=settings.files_mb * 2**20 or None,
        )
        mine = stores.of(given.owner)
        imported = await brought(
            given.file,
            mine,
            name=str(given.file),
            told=_Progress(words),
            unless_there=None if given.again else (),
        )
        for conversation_id, file in imported.documents:  # Parlour reads them when it starts
            await mine.documents.add(conversation_id, file.id, file.name)
        return imported


class _Progress:
    """A line now and then, for who watches."""

    def __init__(self, words: Words) -> None:
        self._words, self._last = words, 0.0

    def __call__(self, share: float) -> None:
        if share - self._last >= _STEP and sys.stderr.isatty():
            self._last = share
            sys.stderr.write(f"{self._words('import.progress', share=round(share * 100))}\n")
