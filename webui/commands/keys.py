"""`parlour keys`: the keys that let programs in, made, listed and revoked."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from core.errors import NotFoundError
from core.storage.api_keys import SCOPES, NewKey
from core.storage.database import Database
from core.storage.installation import check_secret
from core.storage.lending import LENT
from core.storage.sealing import Sealer
from core.storage.stores import Stores
from webui.commands.command_line import Parser, above_zero, on_data_folder, positive_int
from webui.commands.owners import add_owner
from webui.panels.api_keys import key_data, off_note

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from core.settings import Settings
    from core.storage.stores import OwnerStores
    from webui.words import Words


def main(arguments: Sequence[str]) -> int:
    """Make a key, list the keys, or revoke one, also while Parlour runs; returns the exit code of `on_data_folder`."""
    parser = Parser(
        prog="parlour keys",
        description="Keys that let programs in at /v1, as to any OpenAI-compatible server. A new key is printed once: "
        "only its fingerprint is kept.",
        allow_abbrev=False,
    )
    parser.add_argument("act", choices=("create", "list", "revoke"), help="what to do")
    parser.add_argument("name", nargs="?", default="", help="what the new key is called, or which one is revoked")
    parser.add_argument("--for", dest="scopes", action="append", choices=SCOPES, help="what the key may do (chat)")
    parser.add_argument(
        "--model", dest="models", action="append", help="a model or agent that it may use, by its id (all)"
    )
    parser.add_argument(
        "--budget", type=above_zero, metavar="DOLLARS", help="US dollars that it may cost a month (no limit)"
    )
    parser.add_argument("--days", type=positive_int, help="after how many days it ends (never)")
    add_owner(parser, "whose it is")
    return on_data_folder(parser, arguments, _work, _wrong)


def _wrong(given: argparse.Namespace) -> str:
    if given.act == "list":
        return f"keys list takes no {given.name!r}; write `parlour keys list`" if given.name else ""
    return (
        "" if given.name.strip() else f"keys {given.act} needs a name; write it like `parlour keys {given.act} editor`"
    )


def _work(given: argparse.Namespace, settings: Settings, words: Words) -> list[str]:
    return asyncio.run(_done(given, settings, words))


async def _done(given: argparse.Namespace, settings: Settings, words: Words) -> list[str]:
    database = await Database.open(settings.database_in(settings.make_home()))
    try:
        await check_secret(database, settings.signing_secret())
        stores = Stores(database, settings.home / "files", Sealer(settings.signing_secret()))
        return await _lines(given, stores.of(given.owner), settings, words)
    finally:
        await database.aclose()


async def _lines(given: argparse.Namespace, mine: OwnerStores, settings: Settings, words: Words) -> list[str]:
    keys = mine.api_keys
    if given.act == "create":
        asked = {"name": given.name, "models": given.models, "budget": given.budget, "days": given.days}
        key, kept = await keys.create(NewKey.checked({**asked, "scopes": given.scopes or ["chat"]}))
        notes = [off_note(kept, settings, words)]
        if unknown := [one for one in kept.models or () if not await _is_known(one, mine)]:
            notes.append(words("api_keys.unknown", names=words("lang.comma").join(unknown)))
        return [words("api_keys.made", name=kept.name), key, *filter(None, notes)]
    there = await keys.list()
    if given.act == "revoke":
        named = (one.id for one in there if one.revoked_at is None and given.name in {one.id, one.name})
        found = next(named, "")
        if not found:
            raise NotFoundError(
                f"There is no key {given.name!r}.", hint="`parlour keys list` lists all.", kind="api_key"
            )
        await keys.revoke(found)
        return [words("api_keys.revoked")]
    rows = [key_data(one, words) for one in there]
    lines = [words("api_keys.line_revoked" if one["revoked"] else "api_keys.line", **one) for one in rows]
    return lines or [words("api_keys.none")]


async def _is_known(wanted: str, mine: OwnerStores) -> bool:
    """Whether something may answer by this id; agents of a program and models of a service are not looked up."""
    from core.doors.catalog import AGENT, ASSISTANT, INSTALLED_ID, PERSONA  # much to import: other commands do without
    from core.doors.embedding import embedding_models
    from core.models.menu import MENU, kind_of
    from core.workspace.personas import Personas

    if wanted.startswith(PERSONA):
        return wanted.removeprefix(PERSONA) in {one.id for one in await Personas(mine.settings).list()}
    service, slash, model = wanted.partition("/")
    is_served = bool(slash and model) and (service.startswith(LENT) or kind_of(service) in MENU)
    return is_served or wanted.startswith(AGENT) or wanted in {ASSISTANT, INSTALLED_ID, *embedding_models()}
