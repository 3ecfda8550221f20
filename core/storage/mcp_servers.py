"""The MCP servers that owners set up: how to reach each, sealed, and what of it was looked at and allowed."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from sqlalchemy import ColumnElement, Connection, Row, delete, insert, select, update

from core.errors import ConflictError, NotFoundError, StorageError
from core.storage.base import new_id
from core.storage.conversations import insert_owner
from core.storage.loans import end_loans
from core.storage.sealing import in_address, in_arguments, secrets_in_pairs
from core.storage.statements import MCP_SERVERS
from core.storage.tables import mcp_servers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from core.storage.database import Database
    from core.storage.sealing import Sealer


_APART = 1e-5  # seconds between those that come together: they stay in their order


@dataclass(frozen=True, slots=True)
class McpServer:
    """A server as an owner set it up.

    Args:
        name: What the owner calls it; its tools are named after it.
        settings: The sealed `mcpServers` entry: values of `env` and `headers` are secrets.
        enabled: Whether its tools are offered at all.
        trusted: Whether what it says of its tools is believed: those that only read run unasked.
        asks: Whether it may ask the owner things while one of its tools runs.
        confirmed: The print of the command that the owner has seen and allowed to start; empty before.
        approved: The print of each tool as the owner last saw it.
        off: Its tools that are switched off, by the server's own names.
        signed_in: Whether the owner has signed in to it.
        created_at: Unix seconds.
    """

    id: str
    owner_id: str
    name: str
    settings: str = field(repr=False)
    enabled: bool
    trusted: bool
    asks: bool
    confirmed: str
    approved: Mapping[str, str]
    off: tuple[str, ...]
    signed_in: bool
    created_at: float


class McpServerStore:
    """The servers of one owner. What is somebody else's does not exist.

    Args:
        sealer: Seals their settings.
        owner: Whose they are; need not be known yet.
    """

    def __init__(self, database: Database, sealer: Sealer, owner: str) -> None:
        self._database = database
        self._sealer = sealer
        self._owner = owner

    async def list(self) -> list[McpServer]:
        """The owner's servers, in the order in which they came."""
        mine = {"owner": self._owner}
        return [server_record(row) for row in await self._database.read(lambda c: c.execute(MCP_SERVERS, mine).all())]

    async def get(self, server_id: str) -> McpServer:
        """One of them. Raises NotFoundError."""
        return await self._database.read(lambda c: _server_of(c, self._owner, server_id))

    async def add(self, given: Mapping[str, Mapping[str, Any]]) -> list[McpServer]:
        """New servers by name, all of them or none.

        Raises:
            ConflictError: key `server_name_taken`: the owner has one of that name.
        """
        now = time.time()
        rows = [
            self._fresh(name, settings, now + place * _APART) for place, (name, settings) in enumerate(given.items())
        ]

        def begin(connection: Connection) -> None:
            insert_owner(connection, self._owner)
            for row in rows:
                _refuse_taken(connection, self._owner, row["name"])
                connection.execute(insert(mcp_servers).values(row))

        await self._database.write(begin)
        return [await self.get(row["id"]) for row in rows]

    async def change(self, server_id: str, name: str, make: Callable[[dict[str, Any]], Mapping[str, Any]]) -> McpServer:
        """Another name and other settings; what was seen of its tools is forgotten where it is reached otherwise.

        Args:
            server_id: Which one.
            name: Its name from now on.
            make: From the settings as they are kept to those to keep, in the same step.

        Raises:
            NotFoundError: There is none such of this owner.
            ConflictError: key `server_name_taken`: another one of the owner has the name.
            StorageError: key `key_unreadable`: the installation's secret has changed.
        """

        def change(connection: Connection) -> McpServer:
            old = _server_of(connection, self._owner, server_id)
            _refuse_taken(connection, self._owner, name, but=server_id)
            before = self.settings_of(old)
            after = dict(make(before))
            values: dict[str, Any] = {"name": name, "settings": self._sealed(server_id, after)}
            if reached(before) != reached(after):
                values |= {"approved": {}, "trusted": False, "asks": False}
            if (reached(before), before.get("oauth")) != (reached(after), after.get("oauth")):
                values["sign_in"] = ""
            connection.execute(update(mcp_servers).where(_is(self._owner, server_id)).values(values))
            return _server_of(connection, self._owner, server_id)

        return await self._database.write(change)

    async def set(
        self,
        server_id: str,
        *,
        enabled: bool | None = None,
        trusted: bool | None = None,
        asks: bool | None = None,
        confirmed: str | None = None,
        approved: Mapping[str, str] | None = None,
    ) -> McpServer:
        """Change what is given of it; `approved` adds to what was approved. Raises NotFoundError."""
        given = {"enabled": enabled, "trusted": trusted, "asks": asks, "confirmed": confirmed}
        values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}

        def change(connection: Connection) -> McpServer:
            old = _server_of(connection, self._owner, server_id)
            if approved is not None:
                values["approved"] = {**old.approved, **approved}
            if values:
                connection.execute(update(mcp_servers).where(_is(self._owner, server_id)).values(values))
            return _server_of(connection, self._owner, server_id)

        return await self._database.write(change)

    async def switch(self, server_id: str, tools: Iterable[str], *, on: bool) -> McpServer:
        """Offer some of its tools, or no more. Raises NotFoundError."""
        named = dict.fromkeys(tools)

        def change(connection: Connection) -> McpServer:
            old = _server_of(connection, self._owner, server_id)
            others = [tool for tool in old.off if tool not in named]
            off = others if on else [*others, *named]
            connection.execute(update(mcp_servers).where(_is(self._owner, server_id)).values(off=off))
            return _server_of(connection, self._owner, server_id)

        return await self._database.write(change)

    async def sign_in(self, server_id: str) -> dict[str, Any]:
        """With what the owner has signed in: `url`, `tokens` and `client`; nothing where that was never done.

        Raises:
            NotFoundError: There is none such of this owner.
            StorageError: key `key_unreadable`: the installation's secret has changed.
        """
        return self._opened(server_id, await self._database.read(lambda c: _sign_in_of(c, self._owner, server_id)))

    async def keep_sign_in(self, server_id: str, url: str, given: Mapping[str, Any]) -> None:
        """Keep a part of that, beside what is kept for the same address. Raises NotFoundError."""

        def change(connection: Connection) -> None:
            before: dict[str, Any] = {}
            with suppress(StorageError):
                before = self._opened(server_id, _sign_in_of(connection, self._owner, server_id))
            kept = {**(before if before.get("url") == url else {}), "url": url, **given}
            sealed = self._sealer.seal(json.dumps(kept), self._owner, "mcp sign-in", server_id)
            connection.execute(update(mcp_servers).where(_is(self._owner, server_id)).values(sign_in=sealed))

        await self._database.write(change)

    async def forget_sign_in(self, server_id: str) -> None:
        """Forget the owner's tokens. Raises NotFoundError."""

        def change(connection: Connection) -> None:
            _server_of(connection, self._owner, server_id)
            connection.execute(update(mcp_servers).where(_is(self._owner, server_id)).values(sign_in=""))

        await self._database.write(change)

    async def delete(self, server_id: str) -> None:
        """Forget a server with its secrets. Raises NotFoundError."""

        def remove(connection: Connection) -> None:
            _server_of(connection, self._owner, server_id)
            connection.execute(delete(mcp_servers).where(_is(self._owner, server_id)))
            end_loans(connection, self._owner, "server", server_id)

        await self._database.write(remove)

    def settings_of(self, kept: McpServer) -> dict[str, Any]:
        """The `mcpServers` entry, with its secrets. They go to the server and nowhere else.

        Raises:
            StorageError: key `key_unreadable`: the installation's secret has changed.
        """
        return cast("dict[str, Any]", json.loads(self._sealer.open(kept.settings, kept.owner_id, "mcp", kept.id)))

    async def secrets(self) -> list[str]:
        """What may be keys in variables, headers, arguments, address and tokens, for whoever must not repeat them.

        Whose settings cannot be read has none.
        """
        return [one for kept in await self.list() for one in await self.secrets_of(kept)]

    async def secrets_of(self, kept: McpServer) -> list[str]:
        """Those of one server. Raises StorageError: the database failed."""
        found: list[str] = []
        with suppress(StorageError):
            settings = self.settings_of(kept)
            given = [settings.get(name) for name in ("env", "headers")]
            pairs = [pair for one in given if isinstance(one, dict) for pair in cast("Any", one).items()]
            arguments: object = settings.get("args")
            found += [*secrets_in_pairs(pairs), *in_address(str(settings.get("url") or ""))]
            found += in_arguments(cast("list[object]", arguments)) if isinstance(arguments, list) else []
            found += _keys_of(settings.get("oauth"), "client_secret")
            signed = await self.sign_in(kept.id) if kept.signed_in else {}
            found += _keys_of(signed.get("tokens"), "access_token", "refresh_token")
            found += _keys_of(signed.get("client"), "client_secret")
        return found

    def _opened(self, server_id: str, sealed: str) -> dict[str, Any]:
        if not sealed:
            return {}
        return cast("dict[str, Any]", json.loads(self._sealer.open(sealed, self._owner, "mcp sign-in", server_id)))

    def _fresh(self, name: str, settings: Mapping[str, Any], now: float) -> dict[str, Any]:
        server_id = new_id()
        return {
            "id": server_id,
            "owner_id": self._owner,
            "name": name,
            "settings": self._sealed(server_id, settings),
            "enabled": True,
            "trusted": False,
            "asks": False,
            "confirmed": "",
            "approved": {},
            "off": [],
            "sign_in": "",
            "created_at": now,
        }

    def _sealed(self, server_id: str, settings: Mapping[str, Any]) -> str:
        return self._sealer.seal(json.dumps(dict(settings), ensure_ascii=False), self._owner, "mcp", server_id)


def reached(settings: Mapping[str, Any]) -> tuple[Any, ...]:
    """What decides which program or service it is."""
    return settings.get("command"), settings.get("args") or [], settings.get("cwd"), settings.get("url")


def _is(owner: str, server_id: str) -> ColumnElement[bool]:
    return (mcp_servers.c.owner_id == owner) & (mcp_servers.c.id == server_id)


def _server_of(connection: Connection, owner: str, server_id: str) -> McpServer:
    row = connection.execute(select(mcp_servers).where(_is(owner, server_id))).first()
    if row is None:
        raise NotFoundError("There is no such MCP server.", kind="server")
    return server_record(row)


def _sign_in_of(connection: Connection, owner: str, server_id: str) -> str:
    row = connection.execute(select(mcp_servers.c.sign_in).where(_is(owner, server_id))).first()
    if row is None:
        raise NotFoundError("There is no such MCP server.", kind="server")
    return str(row.sign_in)


def _keys_of(given: object, *names: str) -> list[str]:
    values = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    return [str(values[name]) for name in names if values.get(name)]


def _refuse_taken(connection: Connection, owner: str, name: str, *, but: str = "") -> None:
    query = select(mcp_servers.c.id, mcp_servers.c.name).where(mcp_servers.c.owner_id == owner)
    for row in connection.execute(query):
        if row.id != but and row.name.casefold() == name.casefold():
            hint = "Choose another name."
            text = f"There is an MCP server {row.name!r} already."
            raise ConflictError(text, hint=hint, key="server_name_taken", name=row.name)


def server_record(row: Row[Any]) -> McpServer:
    """A server as a row has it."""
    return McpServer(
        id=row.id,
        owner_id=row.owner_id,
        name=row.name,
        settings=row.settings,
        enabled=row.enabled,
        trusted=row.trusted,
        asks=row.asks,
        confirmed=row.confirmed,
        approved=dict(row.approved),
        off=tuple(row.off),
        signed_in=bool(row.sign_in),
        created_at=row.created_at,
    )
