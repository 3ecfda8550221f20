"""The MCP servers of one installation."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from core.settings import Settings
from core.storage.base import LOCAL_OWNER
from core.storage.database import Database
from core.storage.sealing import Sealer
from core.toolbox.server_form import OwnServer
from core.toolbox.user_mcp_servers import AllMcpServers
from core.toolbox.user_openapi import KnownServices, OwnerOpenApi
from tests.core.stores import stores_over

SERVER = Path(__file__).parents[1] / "mcp" / "hostile_server.py"


class House:
    """The servers of one installation."""

    def __init__(self, database: Database, folder: Path, **settings: Any) -> None:
        self.stores = stores_over(database)
        self.servers = AllMcpServers(Settings.load(home=folder, **settings), self.stores)
        self.turned = folder / "turned"
        self.entry = {"command": sys.executable, "args": [str(SERVER), "fine", str(self.turned)]}

    async def one(self, owner: str = LOCAL_OWNER) -> OwnServer:
        return (await self.servers.of(owner).list())[0]

    async def confirmed(self) -> str:
        """A server that was added and allowed."""
        kept = await self.servers.of(LOCAL_OWNER).add("notes", self.entry)
        await self.servers.of(LOCAL_OWNER).confirm(kept.id, (await self.one()).print)
        return kept.id

    async def settled(self) -> OwnServer:
        while (one := await self.one()).state == "connecting":
            await asyncio.sleep(0)
        return one

    def known(self, name: str) -> Any:
        return self.servers.running.of(LOCAL_OWNER).known(name)

    async def offered(self, owner: str = LOCAL_OWNER) -> list[str]:
        return [tool.name for tool in await self.servers.of(owner).tools()]


@pytest.fixture
async def database(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Database]:
    database = await Database.open(tmp_path / "parlour.db")
    yield database
    await database.aclose()


@pytest.fixture
async def house(database: Database, tmp_path: Path) -> AsyncIterator[House]:
    house = House(database, tmp_path)
    yield house
    await house.servers.aclose()


@pytest.fixture
async def shared(database: Database, tmp_path: Path) -> AsyncIterator[House]:
    """The same, at a page that others can reach."""
    house = House(database, tmp_path, host="0.0.0.0")
    yield house
    await house.servers.aclose()


class Services:
    """The services of an installation, where one owner is at home."""

    def __init__(self, database: Database, secret: str = "secret") -> None:
        self._stores, self._sealer, self._known = stores_over(database), Sealer(secret), KnownServices()

    def of(self, owner: str) -> OwnerOpenApi:
        return OwnerOpenApi(
            owner, self._stores.of(owner).settings, self._sealer, known=self._known, at_home=owner == "home"
        )
