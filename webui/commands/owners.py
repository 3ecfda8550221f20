"""Whose data a command works on: `--owner` takes the name of a person, or the id of an owner that is there."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.errors import NotFoundError
from core.storage.base import LOCAL_OWNER

if TYPE_CHECKING:
    import argparse

    from core.settings import Settings

_SHOWN: Final = 100  # letters of what was given that an error repeats


def add_owner(parser: argparse.ArgumentParser, whose: str) -> None:
    """Add `--owner`, which says `whose` it is; `on_data_folder` puts the owner's id in place of what was given."""
    parser.add_argument(
        "--owner",
        default=LOCAL_OWNER,
        metavar="NAME",
        help=f"{whose}: a person's name, or the id of an owner that is there (the owner of this machine)",
    )


def owner_named(settings: Settings, given: str) -> str:
    """The id of the owner that somebody named; nothing is made.

    Raises:
        NotFoundError: key `no_owner`: there is nobody of this name, and no owner with this id.
        StorageError: The database failed.
    """
    if given == LOCAL_OWNER:
        return given
    found = asyncio.run(_found(settings, given))
    if found is None:
        name = repr(given[:_SHOWN])
        raise NotFoundError(
            f"There is no owner {name}.",
            hint="Write a person's name as `parlour users list` shows it, the id of an owner that is there, or leave "
            "--owner out for the owner of this machine.",
            key="no_owner",
            name=name,
        )
    return found


async def _found(settings: Settings, given: str) -> str | None:
    from core.people.names import name_key  # much to import: most commands name nobody
    from core.storage.database import Database
    from core.storage.people import PeopleStore

    place = settings.database_in(settings.home)
    if not given.isprintable() or (isinstance(place, Path) and not place.is_file()):
        return None
    database = await Database.open(place)
    try:
        people = PeopleStore(database)
        if (person := await people.named(name_key(given))) is not None:
            return person.id
        return given if await people.is_owner(given) else None
    finally:
        await database.aclose()
