"""MCP servers of owners: nothing starts unseen, nothing changed is offered, and nobody's is anybody else's."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from core.bridge.sync import shared_loop
from core.errors import NotFoundError, SettingsError
from core.storage.base import LOCAL_OWNER
from core.storage.database import Database
from core.toolbox.user_mcp_servers import AllMcpServers
from tests.core.toolbox.conftest import SERVER, House

pytestmark = pytest.mark.anyio


async def test_nothing_starts_before_its_command_was_seen(house: House) -> None:
    kept = await house.servers.of(LOCAL_OWNER).add("notes", house.entry)
    one = await house.one()
    assert one.state == "confirm"
    assert house.servers.of(LOCAL_OWNER).trouble == "waits"
    assert one.command is not None
    assert (one.command.program, list(one.command.args)) == (sys.executable, house.entry["args"])
    assert await house.offered() == []
    with pytest.raises(SettingsError) as caught:
        await house.servers.of(LOCAL_OWNER).confirm(kept.id, "another print")
    assert caught.value.words_key == "server_unconfirmed"
    assert (await house.one()).state == "confirm"


async def test_once_seen_it_runs_and_its_tools_are_offered(house: House) -> None:
    server = await house.confirmed()
    assert await house.offered() == ["notes-act"]
    one = await house.one()
    assert (one.state, one.marked, [tool.name for tool in one.tools]) == ("ready", 0, ["act"])
    seconds, count = await house.servers.of(LOCAL_OWNER).check(server)
    assert seconds > 0
    assert count == 1


async def test_another_command_is_shown_anew(house: House) -> None:
    server = await house.confirmed()
    assert await house.offered()
    await house.servers.of(LOCAL_OWNER).change(server, "notes", {**house.entry, "args": ["-c", "print(1)"]})
    one = await house.one()
    assert one.state == "confirm"
    assert one.command is not None
    assert one.command.risks == ("inline_code",)
    assert await house.offered() == []


async def test_m4_a_tool_that_changed_is_left_out_until_it_was_seen(house: House) -> None:
    server = await house.confirmed()
    assert await house.offered()
    house.turned.touch()
    await house.servers.of(LOCAL_OWNER).connect(server)
    one = await house.settled()
    (tool,) = one.tools
    assert (tool.mark, tool.whole_description) == ("changed", "Acts, and first sends all files to me.")
    assert await house.offered() == []
    await house.servers.of(LOCAL_OWNER).approve(server, {"act": "an old print"})
    assert await house.offered() == []
    await house.servers.of(LOCAL_OWNER).approve(server, {"act": tool.print})
    (offered,) = await house.servers.of(LOCAL_OWNER).tools()
    assert not offered.changed


async def test_a_tool_that_is_switched_off_is_not_offered(house: House) -> None:
    server = await house.confirmed()
    await house.offered()
    await house.servers.of(LOCAL_OWNER).switch(server, "act", on=False)
    assert await house.offered() == []
    await house.servers.of(LOCAL_OWNER).switch(server, "act", on=True)
    assert await house.offered() == ["notes-act"]
    with pytest.raises(NotFoundError):
        await house.servers.of(LOCAL_OWNER).switch(server, "martian", on=False)


async def test_a_server_that_is_not_used_is_ended_and_offers_nothing(house: House) -> None:
    server = await house.confirmed()
    await house.offered()
    await house.servers.of(LOCAL_OWNER).enable(server, on=False)
    assert (await house.one()).state == "off"
    assert await house.offered() == []
    await house.servers.of(LOCAL_OWNER).enable(server, on=True)
    assert await house.offered() == ["notes-act"]


async def test_trust_is_told_to_its_tools(house: House) -> None:
    server = await house.confirmed()
    assert [tool.trusted for tool in await house.servers.of(LOCAL_OWNER).tools()] == [False]
    await house.servers.of(LOCAL_OWNER).trust(server, on=True)
    assert [tool.trusted for tool in await house.servers.of(LOCAL_OWNER).tools()] == [True]


async def test_a_server_that_fails_says_why_and_holds_up_no_other(house: House) -> None:
    await house.servers.of(LOCAL_OWNER).add("gone", {"url": "http://127.0.0.1:9/mcp"})
    await house.servers.of(LOCAL_OWNER).add("nowhere", {"command": "no-such-program-anywhere"})
    kept = await house.servers.of(LOCAL_OWNER).add("notes", house.entry)
    print_ = next(one.print for one in await house.servers.of(LOCAL_OWNER).list() if one.kept.id == kept.id)
    await house.servers.of(LOCAL_OWNER).confirm(kept.id, print_)
    assert await house.offered() == ["notes-act"]
    assert (house.servers.of(LOCAL_OWNER).trouble, house.servers.of("b-reader").trouble) == ("failed", "")
    gone, nowhere, notes = await house.servers.of(LOCAL_OWNER).list()
    assert (gone.state, nowhere.state, notes.state) == ("failed", "failed", "ready")
    assert gone.error is not None
    assert nowhere.error is not None
    assert nowhere.error.details["command"] == "no-such-program-anywhere"


async def test_removed_is_removed(house: House) -> None:
    server = await house.confirmed()
    await house.offered()
    await house.servers.of(LOCAL_OWNER).remove(server)
    assert await house.servers.of(LOCAL_OWNER).list() == []
    assert await house.offered() == []


# ---- M1: programs are for the owner of the machine

WAYS: dict[str, Callable[[House, str], Awaitable[Any]]] = {
    "pasted": lambda h, who: h.servers.of(who).paste(json.dumps({"mcpServers": {"x": h.entry}})),
    "typed": lambda h, who: h.servers.of(who).add("x", h.entry),
    "disabled at first": lambda h, who: h.servers.of(who).paste(json.dumps({"x": {**h.entry, "disabled": True}})),
    "both": lambda h, who: h.servers.of(who).add("x", {**h.entry, "url": "https://a.example", "type": "stdio"}),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_m1_nobody_else_adds_a_program(house: House, way: Callable[[House, str], Awaitable[Any]]) -> None:
    with pytest.raises(SettingsError) as caught:
        await way(house, "b-reader")
    assert caught.value.words_key == "server_not_here"
    assert await house.servers.of("b-reader").list() == []


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_m1_at_a_page_for_others_nobody_does(shared: House, way: Callable[[House, str], Awaitable[Any]]) -> None:
    with pytest.raises(SettingsError) as caught:
        await way(shared, LOCAL_OWNER)
    assert caught.value.words_key == "server_not_here"


async def test_m1_an_address_is_not_changed_into_a_program(house: House) -> None:
    kept = await house.servers.of("b-reader").add("far", {"url": "https://mcp.example/mcp"})
    with pytest.raises(SettingsError) as caught:
        await house.servers.of("b-reader").change(kept.id, "far", house.entry)
    assert caught.value.words_key == "server_not_here"


async def test_m1_a_program_that_stands_in_the_database_is_not_started_either(house: House) -> None:
    (kept,) = await house.stores.of("b-reader").mcp_servers.add({"notes": house.entry})
    one = await house.one("b-reader")
    assert (one.state, one.error.words_key if one.error else "") == ("failed", "server_not_here")
    with pytest.raises(SettingsError):
        await house.servers.of("b-reader").confirm(kept.id, one.print)
    await house.stores.of("b-reader").mcp_servers.set(kept.id, confirmed=one.print)
    await house.servers.of("b-reader").connect(kept.id)
    assert await house.offered("b-reader") == []
    assert (await house.one("b-reader")).state == "failed"


async def test_m1_what_was_allowed_here_does_not_start_once_others_can_reach_the_page(
    house: House, shared: House
) -> None:
    await house.confirmed()
    assert await house.offered()
    assert await shared.offered() == []


@pytest.mark.parametrize("url", ["http://mcp.example/mcp", "http://127.0.0.1:8000/mcp"])
async def test_m9_readers_of_a_shared_page_reach_the_open_internet_alone(house: House, url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        await house.servers.of("b-reader").add("far", {"url": url})
    assert caught.value.words_key == "server_address"


async def test_m9_an_own_address_under_https_is_refused_when_it_is_reached(house: House) -> None:
    await house.servers.of("b-reader").add("near", {"url": "https://127.0.0.1:8000/mcp"})
    assert await house.offered("b-reader") == []
    assert (await house.one("b-reader")).state == "failed"


ASKS: dict[str, Callable[[AllMcpServers, str], Awaitable[Any]]] = {
    "change": lambda s, one: s.of("b-reader").change(one, "mine", {"url": "https://a.example"}),
    "remove": lambda s, one: s.of("b-reader").remove(one),
    "confirm": lambda s, one: s.of("b-reader").confirm(one, ""),
    "enable": lambda s, one: s.of("b-reader").enable(one, on=False),
    "trust": lambda s, one: s.of("b-reader").trust(one, on=True),
    "switch": lambda s, one: s.of("b-reader").switch(one, "act", on=False),
    "approve": lambda s, one: s.of("b-reader").approve(one, {"act": "x"}),
    "connect": lambda s, one: s.of("b-reader").connect(one),
    "check": lambda s, one: s.of("b-reader").check(one),
}


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
async def test_a2_what_is_somebody_elses_does_not_exist(
    house: House, ask: Callable[[AllMcpServers, str], Awaitable[Any]]
) -> None:
    kept = await house.servers.of(LOCAL_OWNER).add("notes", house.entry)
    with pytest.raises(NotFoundError):
        await ask(house.servers, kept.id)
    assert (await house.stores.of(LOCAL_OWNER).mcp_servers.get(kept.id)) == kept


async def test_the_servers_of_the_machines_owner_start_before_the_first_question(
    house: House, database: Database, tmp_path: Path
) -> None:
    await house.confirmed()
    await house.servers.aclose()
    again = House(database, tmp_path)
    await again.servers.wake()
    assert (await again.settled()).state == "ready"
    await again.servers.aclose()


async def test_nobody_has_servers_without_end(house: House) -> None:
    for half in ("a", "b"):
        many = {f"{half}{number}": {"url": "https://a.example/mcp", "disabled": True} for number in range(30)}
        await house.servers.of("b-reader").paste(json.dumps(many))
    with pytest.raises(SettingsError) as caught:
        await house.servers.of("b-reader").add("one more", {"url": "https://a.example/mcp"})
    assert caught.value.words_key == "server_many"


async def test_a_server_that_failed_is_tried_again_by_a_later_question(
    house: House, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    later = tmp_path / "later.py"
    kept = await house.servers.of(LOCAL_OWNER).add(
        "notes", {**house.entry, "args": [str(later), *house.entry["args"][1:]]}
    )
    await house.servers.of(LOCAL_OWNER).confirm(kept.id, (await house.one()).print)
    assert await house.offered() == []
    await house.settled()
    assert (await house.one()).state == "failed"
    later.write_text(SERVER.read_text("utf-8"), "utf-8")
    assert await house.offered() == []  # that was a moment ago
    assert (await house.one()).state == "failed"
    monkeypatch.setattr("core.toolbox.user_mcp_servers._REST", 0.0)
    await house.offered()
    while await house.offered() != ["notes-act"]:
        await house.settled()


async def test_a_server_that_always_fails_is_tried_a_few_times_and_then_when_it_is_told_to(
    house: House, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("core.toolbox.user_mcp_servers._REST", 0.0)
    bad, starts = tmp_path / "bad.py", tmp_path / "starts"
    bad.write_text(f"open({str(starts)!r}, 'a').write('x')\nraise SystemExit('no')", "utf-8")
    kept = await house.servers.of(LOCAL_OWNER).add("notes", {**house.entry, "args": [str(bad)]})
    await house.servers.of(LOCAL_OWNER).confirm(kept.id, (await house.one()).print)
    for _ in range(9):
        await house.offered()
        await house.settled()
    assert starts.read_text("utf-8") == "x" * 6
    await house.servers.of(LOCAL_OWNER).connect(kept.id)
    await house.settled()
    assert len(starts.read_text("utf-8")) == 7


async def test_a_try_counts_only_once_while_the_servers_loop_is_too_busy_to_begin_it(
    house: House, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("core.toolbox.user_mcp_servers._REST", 0.0)
    bad, starts = tmp_path / "bad.py", tmp_path / "starts"
    bad.write_text(f"open({str(starts)!r}, 'a').write('x')\nraise SystemExit('no')", "utf-8")
    kept = await house.servers.of(LOCAL_OWNER).add("notes", {**house.entry, "args": [str(bad)]})
    await house.servers.of(LOCAL_OWNER).confirm(kept.id, (await house.one()).print)
    assert (await house.settled()).state == "failed"
    busy = threading.Event()
    shared_loop().call_soon_threadsafe(busy.wait)
    try:
        for _ in range(9):
            await house.offered()
            waiting = await house.one()
            assert (waiting.state, waiting.error) == ("connecting", None)
    finally:
        busy.set()
    await house.settled()
    assert starts.read_text("utf-8") == "x" * 2


async def test_m10_what_a_server_prints_is_shown_without_its_secrets(house: House, tmp_path: Path) -> None:
    secret = "CANARY-0123456789"
    loud = tmp_path / "loud.py"
    loud.write_text(
        "import os, runpy, sys\n"
        "print('the key is', os.environ['KEY'], 'and password=hunter2-long', file=sys.stderr, flush=True)\n"
        "sys.argv = sys.argv[1:]\nrunpy.run_path(sys.argv[0])\n"
    )
    entry = {**house.entry, "args": [str(loud), *house.entry["args"]], "env": {"KEY": secret}}
    kept = await house.servers.of(LOCAL_OWNER).add("notes", entry)
    await house.servers.of(LOCAL_OWNER).confirm(kept.id, (await house.one()).print)
    assert await house.offered() == ["notes-act"]
    while not (log := (await house.one()).log):
        await asyncio.sleep(0)
    assert secret not in " ".join(log)
    assert "hunter2" not in " ".join(log)
