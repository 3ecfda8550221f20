"""The commands about people: `parlour users`, `parlour groups` and `parlour audit`."""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from core.errors import NotFoundError, SettingsError
from core.people.groups import Groups
from core.people.names import name_key
from core.people.people import People
from core.storage.database import Database
from core.storage.groups import GroupStore
from core.storage.people import ROLES, PeopleStore
from core.storage.use import Use, UseStore
from webui.commands.command_line import Parser, on_data_folder, positive_int
from webui.panels.people import said_of
from webui.serving import address_of_open

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncGenerator, Sequence

    from core.settings import Settings
    from core.storage.people import Person
    from webui.words import Words

_DAY: Final = 24 * 3600.0
_MIB: Final = 1024 * 1024


def users(arguments: Sequence[str]) -> int:
    """`parlour users`: who has an account; returns the exit code of `on_data_folder`."""
    parser = Parser(
        prog="parlour users",
        description="List people with accounts, invite, change a role, make a recovery link, delete.",
        allow_abbrev=False,
    )
    parser.add_argument("do", choices=("list", "invite", "role", "reset", "delete"), help="what to do")
    parser.add_argument("name", nargs="?", default="", help="whose account: for role, reset and delete")
    parser.add_argument("role", nargs="?", choices=ROLES, help="for role, and with --role for invite")
    parser.add_argument("--role", dest="invited", choices=ROLES, default="member", help="of who is invited (member)")
    parser.add_argument("--days", type=positive_int, default=7, help="how long a link counts (7)")
    parser.add_argument(
        "--export", type=Path, metavar="FILE", help="with delete: first write their conversations into a ZIP, for them"
    )
    parser.add_argument("--yes", action="store_true", help="with delete: do not ask, as in a script")
    return on_data_folder(parser, arguments, _users, _wrong_of_users)


def groups(arguments: Sequence[str]) -> int:
    """`parlour groups`: who is in which group; returns the exit code of `on_data_folder`."""
    parser = Parser(
        prog="parlour groups",
        description="List groups of people, make, rename and delete them, add people and take them out.",
        allow_abbrev=False,
    )
    parser.add_argument("do", choices=("list", "make", "rename", "delete", "add", "remove"), help="what to do")
    parser.add_argument("group", nargs="?", default="", help="which group, by its name")
    parser.add_argument("name", nargs="?", default="", help="for add and remove who, for rename the other name")
    parser.add_argument("--yes", action="store_true", help="with delete: do not ask, as in a script")
    return on_data_folder(parser, arguments, _groups, _wrong_of_groups)


def audit(arguments: Sequence[str]) -> int:
    """`parlour audit`: what administrators did; returns the exit code of `on_data_folder`."""
    parser = Parser(prog="parlour audit", description="List what was done about people.", allow_abbrev=False)
    parser.add_argument("--last", type=positive_int, default=100, help="how many at most (100)")
    return on_data_folder(parser, arguments, _audit)


_NAMES_A_PERSON: Final = {"role": "ada member", "reset": "ada", "delete": "ada"}
_NAMES_A_GROUP: Final = {
    "make": "team",
    "rename": "team crew",
    "delete": "team",
    "add": "team ada",
    "remove": "team ada",
}


def _wrong_of_users(given: argparse.Namespace) -> str:
    example = _NAMES_A_PERSON.get(given.do, "")
    return _wrong_count(f"users {given.do}", [one for one in (given.name, given.role) if one], example)


def _wrong_of_groups(given: argparse.Namespace) -> str:
    example = _NAMES_A_GROUP.get(given.do, "")
    return _wrong_count(f"groups {given.do}", [one for one in (given.group, given.name) if one], example)


def _wrong_count(command: str, given: list[str], example: str) -> str:
    """What is wrong with how many names a command is given."""
    wanted = len(example.split())
    if len(given) > wanted:
        return f"{command} takes no {given[wanted]!r}; write `parlour {command} {example}".rstrip() + "`"
    if len(given) < wanted:
        what = "a name" if wanted == 1 or not given else "one more word"
        return f"{command} needs {what}; write it like `parlour {command} {example}`"
    return ""


def _users(given: argparse.Namespace, settings: Settings, words: Words) -> list[str]:
    return asyncio.run(_done(given, settings, words))


async def _done(given: argparse.Namespace, settings: Settings, words: Words) -> list[str]:
    async with _people(settings) as (people, use):
        if given.do == "list":
            used = await use.since("")
            lines = [_line(one, used.get(one.id, Use()), words) for one in await people.store.list()]
            return lines or [words("users.none")]
        if given.do == "invite":
            return [_link(settings, await people.invite(None, given.invited, seconds=given.days * _DAY))]
        person = await _named(people, given.name)
        if given.do == "reset":
            return [_link(settings, await people.recovery_link(None, person.id, seconds=given.days * _DAY))]
        if given.do == "role":
            await people.set_role(None, person.id, given.role or "")
            return [words("users.role", name=person.name, role=words(f"role.{given.role}"))]
        if not given.yes and not await asyncio.to_thread(_is_meant, "users", person.name, words):
            return [words("users.kept")]
        if given.export is not None:
            await _export(settings, person, given.export, words)
        await people.remove(None, person.id)
        return [words("users.deleted", name=person.name)]


def _is_meant(of: Literal["users", "groups"], name: str, words: Words) -> bool:
    """Whether somebody at the terminal types the name of what to delete. Raises SettingsError where nobody is there."""
    if not sys.stdin.isatty():
        said = (
            f"The account of {name}, and all that is theirs, is deleted for good."
            if of == "users"
            else f"The group {name} is deleted for good, and with it what its members have only through it."
        )
        raise SettingsError(said, hint="Add --yes if that is meant.", key=f"{of}_unasked", name=name)
    sys.stderr.write(words("users.ask_delete" if of == "users" else "groups.ask_delete", name=name) + " ")
    sys.stderr.flush()
    return sys.stdin.readline().strip() == name


def _groups(given: argparse.Namespace, settings: Settings, words: Words) -> list[str]:
    async def done() -> list[str]:
        async with _database(settings) as database:
            people = People(PeopleStore(database))
            return await _in_groups(given, people, Groups(GroupStore(database), people), words)

    return asyncio.run(done())


async def _in_groups(given: argparse.Namespace, people: People, groups: Groups, words: Words) -> list[str]:
    if given.do == "list":
        names = {one.id: one.name for one in await people.store.list()}
        listed = await groups.store.list()
        lines = ["  ".join((one.name, *sorted(names[who] for who in one.members))) for one in listed]
        return lines or [words("groups.list_none")]
    if given.do == "make":
        await groups.make(None, given.group)
        return [words("groups.done", name=given.group)]
    group = await groups.store.named(name_key(given.group))
    if group is None:
        raise NotFoundError(
            f"There is no group {given.group!r}.", hint="`parlour groups list` lists all.", key="no_group"
        )
    if given.do == "rename":
        await groups.rename(None, group.id, given.name)
    elif given.do == "delete":
        if not given.yes and not await asyncio.to_thread(_is_meant, "groups", group.name, words):
            return [words("users.kept")]
        await groups.delete(None, group.id)
    else:
        person = await _named(people, given.name)
        await (groups.add if given.do == "add" else groups.take_out)(None, group.id, person.id)
    return [words("groups.done", name=group.name)]


async def _named(people: People, name: str) -> Person:
    person = await people.store.named(name_key(name))
    if person is None:
        raise NotFoundError(f"There is no person {name!r}.", hint="`parlour users list` lists all.", key="no_person")
    return person


def _audit(given: argparse.Namespace, settings: Settings, words: Words) -> list[str]:
    async def read() -> list[str]:
        async with _people(settings) as (people, _):
            acts = await people.store.audit(given.last)
            return [f"{_when(one.at)}  {said_of(one, words)}" for one in acts] or [words("audit.none")]

    return asyncio.run(read())


@asynccontextmanager
async def _people(settings: Settings) -> AsyncGenerator[tuple[People, UseStore], None]:
    async with _database(settings) as database:
        yield People(PeopleStore(database)), UseStore(database)


@asynccontextmanager
async def _database(settings: Settings) -> AsyncGenerator[Database, None]:
    place = settings.database_in(settings.home)
    if isinstance(place, Path) and not place.is_file():
        raise NotFoundError(f"There is no data in {settings.home}.", hint="Name its folder with --home.")
    database = await Database.open(place)
    try:
        yield database
    finally:
        await database.aclose()


async def _export(settings: Settings, person: Person, file: Path, words: Words) -> None:
    """All conversations of somebody, whole, in one file."""
    from core.export.bundle import bundled  # much to import: other commands do without
    from core.export.exporting import conversations_at_rest

    async with conversations_at_rest(settings, person.id) as (stores, exporting):
        every = [one.id for one in await stores.conversations.list()]
        with file.open("wb") as out:
            async for piece in bundled(exporting, stores, every, words.spoken):
                out.write(piece)


def _line(person: Person, used: Use, words: Words) -> str:
    seen = _when(person.seen_at) if person.seen_at is not None else words("people.not_yet")
    sums = words(
        "people.used", messages=used.messages, tokens=f"{used.tokens:,}", cost=f"{used.cost:.2f}", mb=used.bytes // _MIB
    )
    return f"{person.name}  {person.role}  {seen}  {sums}"


def _link(settings: Settings, token: str) -> str:
    return f"{address_of_open(settings)}{settings.root_path}/link/{token}"


def _when(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M}"
