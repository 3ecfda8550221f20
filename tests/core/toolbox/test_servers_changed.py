"""Servers that are set up otherwise while they are used, and those that hang."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from core.errors import NotFoundError
from core.mcp.settings import ServerSettings
from core.settings import Settings
from core.storage.base import LOCAL_OWNER
from core.storage.database import Database
from core.toolbox import user_mcp_servers as own_servers
from core.toolbox.user_mcp_servers import AllMcpServers
from tests.core.stores import stores_over
from tests.core.toolbox.conftest import SERVER, House

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("meanwhile", ["removed", "switched off", "renamed"])
async def test_what_is_changed_while_it_is_looked_at_is_not_started_as_it_was(
    house: House, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    server = await house.confirmed()
    assert await house.offered()
    looked, go_on, found = threading.Event(), threading.Event(), own_servers.found_command

    def slowly(settings: ServerSettings) -> Any:
        looked.set()
        go_on.wait(10)
        return found(settings)

    monkeypatch.setattr(own_servers, "found_command", slowly)
    looking = asyncio.create_task(house.servers.of(LOCAL_OWNER).list())
    await asyncio.to_thread(looked.wait, 10)
    match meanwhile:
        case "removed":
            await house.servers.of(LOCAL_OWNER).remove(server)
        case "switched off":
            await house.servers.of(LOCAL_OWNER).enable(server, on=False)
        case _:
            await house.servers.of(LOCAL_OWNER).change(server, "papers", house.entry)
    go_on.set()
    await looking
    assert house.known("notes") is None


async def test_what_one_server_may_do_unasked_no_other_of_its_name_may(database: Database, tmp_path: Path) -> None:
    stores = stores_over(database)
    servers, allowances = AllMcpServers(Settings.load(home=tmp_path), stores), stores.of(LOCAL_OWNER).allowances
    talks = stores.of(LOCAL_OWNER).conversations
    await talks.ensure_owner()
    talk = (await talks.create()).id

    async def allowed() -> list[str]:
        for tool in ("mcp:notes:act", "mcp:notes2:act", "storage"):
            await allowances.add(talk, tool)
        return await allowances.list(talk)

    others = ["mcp:notes2:act", "storage"]
    entry = {"url": "https://one.example/mcp"}
    kept = await servers.of(LOCAL_OWNER).add("notes", entry)
    assert len(await allowed()) == 3
    await servers.of(LOCAL_OWNER).change(kept.id, "notes", {**entry, "headers": {"A": "b"}})
    assert len(await allowances.list(talk)) == 3
    await servers.of(LOCAL_OWNER).change(kept.id, "notes", {"url": "https://other.example/mcp"})
    assert await allowances.list(talk) == others
    await allowed()
    await servers.of(LOCAL_OWNER).change(kept.id, "papers", {"url": "https://other.example/mcp"})
    assert await allowances.list(talk) == others
    await servers.of(LOCAL_OWNER).change(kept.id, "notes", {"url": "https://other.example/mcp"})
    await allowed()
    await servers.of(LOCAL_OWNER).remove(kept.id)
    assert await allowances.list(talk) == others
    await servers.aclose()


async def test_a_server_asks_only_once_it_may_and_another_program_in_its_place_may_not(house: House) -> None:
    server = await house.confirmed()
    await house.settled()
    assert house.known("notes").asks is False
    await house.servers.of(LOCAL_OWNER).let_ask(server, on=True)
    assert (await house.settled()).state == "ready"
    assert house.known("notes").asks is True
    await house.servers.of(LOCAL_OWNER).change(server, "notes", {**house.entry, "args": [str(SERVER), "fine", "else"]})
    assert (await house.one()).kept.asks is False
    with pytest.raises(NotFoundError):
        await house.servers.of("b-bob").let_ask(server, on=True)


async def test_a_server_that_failed_and_now_hangs_holds_no_question_up(
    house: House, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mute = tmp_path / "mute.py"
    mute.write_text(
        "import pathlib, sys, time\nonce = pathlib.Path(sys.argv[1])\n"
        "if not once.exists():\n    once.touch()\n    sys.exit(1)\ntime.sleep(600)\n"
    )
    entry = {"command": sys.executable, "args": [str(mute), str(tmp_path / "once")]}
    kept = await house.servers.of(LOCAL_OWNER).add("mute", entry)
    await house.servers.of(LOCAL_OWNER).confirm(kept.id, (await house.one()).print)
    assert await house.offered() == []
    assert (await house.settled()).state == "failed"
    monkeypatch.setattr("core.mcp.stdio._LEAVING", 0.1)  # the server does not end by itself
    monkeypatch.setattr("core.toolbox.user_mcp_servers._REST", 0.0)
    monkeypatch.setattr("core.toolbox.user_mcp_servers._PATIENCE", 60.0)
    assert await house.offered() == []  # it is tried again from here on
    while (await house.one()).state != "connecting":
        await asyncio.sleep(0)
    assert await house.offered() == []
    assert (await house.one()).state == "connecting"  # and was not waited for
