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
from core.storage.mcp_servers import McpServerStore
from core.storage.sealing import Sealer
from core.toolbox.server_form import OwnServer
from core.toolbox.user_mcp_servers import OwnServers

SERVER = Path(__file__).parents[1] / "mcp" / "hostile_server.py"


class House:
    """The servers of one installation."""

    def __init__(self, database: Database, folder: Path, **settings: Any) -> None:
        self.store = McpServerStore(database, Sealer("secret"))
        self.servers = OwnServers(Settings.load(home=folder, **settings), self.store)
        self.turned = folder / "turned"
        self.entry = {"command": sys.executable, "args": [str(SERVER), "fine", str(self.turned)]}

    async def one(self, owner: str = LOCAL_OWNER) -> OwnServer:
        return (await self.servers.list(owner))[0]

    async def confirmed(self) -> str:
        """A server that was added and allowed."""
        kept = await self.servers.add(LOCAL_OWNER, "notes", self.entry)
        await self.servers.confirm(LOCAL_OWNER, kept.id, (await self.one()).print)
        return kept.id

    async def settled(self) -> OwnServer:
        while (one := await self.one()).state == "connecting":
            await asyncio.sleep(0)
        return one

    def known(self, name: str) -> Any:
        return vars(self.servers)["_running"].known(LOCAL_OWNER, name)

    async def offered(self, owner: str = LOCAL_OWNER) -> list[str]:
        return [tool.name for tool in await self.servers.tools(owner)]


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
