"""Tools that somebody shares with a group: used with her settings by each alone, and gone at once where that ends."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zipfile import ZipFile

import pytest
from sqlalchemy import text

from core.engine import Engine
from core.errors import NotFoundError, ParlourError, ToolError
from core.export.exporting import Form
from core.export.redaction import Redaction
from core.people.people import checked_role, new_person
from core.runs.manager import Live
from core.settings import Settings
from core.storage.lending import Kind
from core.testing.scripted_model import Reply, ScriptedModel
from core.toolbox.lent_tools import LentTools
from core.toolbox.user_openapi import ServiceKey
from core.tools.approval import Policy
from core.tools.base import BaseTool
from core.tools.taint import Taint
from tests.core.mcp.protected_server import protected

pytestmark = pytest.mark.anyio
SERVER = Path(__file__).with_name("shared_server.py")
KEY, ARGUMENT = "CANARY-key-0123456789", "CANARY-argument-987654321"


@dataclass
class Group:
    """A house with a group: Mara administers and shares her server, Jan and Kim get it, Eve is in no group."""

    engine: Engine
    model: ScriptedModel
    folder: Path
    id: str
    mara: str
    jan: str
    kim: str
    eve: str
    server: str = ""

    async def lend(self, kind: Kind = "server", thing: str = "") -> None:
        await self.engine.stores.of(self.mara).lending.lend(self.id, kind, thing or self.server, writes=True)

    async def listed(self, who: str) -> list[LentTools]:
        return await self.engine.toolbox.of(who).lent.list()

    async def used(self, who: str) -> dict[str, BaseTool]:
        """The tools that somebody has of it once she switched it on, by the server's own names."""
        lent = self.engine.toolbox.of(who).lent
        (one,) = await lent.list()
        await lent.use(one.mark, on=True)
        return {getattr(tool, "own_name", tool.name): tool for tool in await lent.tools("talk")}

    async def started(self) -> list[str]:
        starts = self.folder / "starts"
        return starts.read_text().split() if starts.exists() else []


@pytest.fixture
async def group(tmp_path: Path) -> AsyncIterator[Group]:
    settings = Settings.load(home=tmp_path / "home", retrieval="keyword", titles=False, check_claims=False)
    model = ScriptedModel("So it is.")
    async with Engine(settings, model=model) as engine:
        ids: list[str] = []
        for name, role in (("Mara", "administrator"), ("Jan", "member"), ("Kim", "member"), ("Eve", "owner")):
            ids.append((await engine.people.store.add(new_person(name, checked_role(role)), "terminal")).id)
        made = await engine.groups.make(None, "Research")
        for one in ids[:3]:
            await engine.groups.add(None, made.id, one)
        group = Group(engine, model, tmp_path, made.id, *ids)
        servers = engine.toolbox.of(group.mara).servers
        args = [str(SERVER), str(tmp_path), "--api-key", ARGUMENT]
        kept = await servers.add("notes", {"command": sys.executable, "args": args, "env": {"API_KEY": KEY}})
        (one,) = await servers.list()
        await servers.confirm(kept.id, one.print)
        group.server = kept.id
        yield group


async def gone(pid: int) -> None:
    """Wait until a process has ended."""
    while True:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        with suppress(FileNotFoundError, ProcessLookupError):
            if Path(f"/proc/{pid}/stat").read_text().split(") ")[-1][0] == "Z":
                return
        await asyncio.sleep(0)


async def called(tool: BaseTool, **given: Any) -> str:
    result: Any = await tool.call(given)  # pyright: ignore[reportGeneralTypeIssues]
    return str(result.text)


async def test_only_who_is_in_the_group_has_it_and_nothing_runs_before_she_switched_it_on(group: Group) -> None:
    assert await group.listed(group.jan) == []
    await group.lend()
    (one,) = await group.listed(group.jan)
    assert (one.kind, one.name, one.lender, one.on, one.state, one.tools) == (
        "server",
        "notes",
        "Mara",
        False,
        "off",
        (),
    )
    assert await group.listed(group.eve) == []
    assert await group.listed(group.mara) == [], "her own is not lent to her"
    before = await group.started()
    assert await group.engine.toolbox.of(group.jan).lent.tools("talk") == []
    assert await group.started() == before
    tools = await group.used(group.jan)
    assert {"note", "recall", "tell"} <= set(tools)
    assert tools["note"].name == "notes_Mara-note"
    for who in (group.eve, group.mara):
        with pytest.raises(NotFoundError):
            await group.engine.toolbox.of(who).lent.use(one.mark, on=True)
    with pytest.raises(NotFoundError):
        await group.engine.toolbox.of(group.jan).lent.use("0123456789", on=True)
    for act in ("remove", "connect", "check"):
        with pytest.raises(NotFoundError):
            await getattr(group.engine.toolbox.of(group.jan).servers, act)(group.server)
    with pytest.raises(NotFoundError):
        await group.engine.toolbox.of(group.jan).servers.change(group.server, "mine", {"url": "https://evil.example"})


async def test_each_has_a_session_of_her_own_and_hears_nothing_of_anothers(group: Group) -> None:
    await group.lend()
    jan, kim = await group.used(group.jan), await group.used(group.kim)
    assert await called(jan["note"], text="jans") == "kept"
    assert await called(kim["note"], text="kims") == "kept"
    (jans, said), (kims, other) = [(await called(one["recall"])).split(": ") for one in (jan, kim)]
    assert (said, other) == ("jans", "kims")
    assert jans != kims
    mine = {getattr(tool, "own_name", ""): tool for tool in await group.engine.toolbox.of(group.mara).servers.tools()}
    assert (await called(mine["recall"])).endswith(": ")


async def test_its_secrets_are_told_to_nobody_in_results_errors_logs_pages_and_exports(
    group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    await group.lend()
    jan = await group.used(group.jan)
    heard = [await called(jan["tell"])]
    assert heard[0].startswith("the key is …, given as …")
    for name in ("fail", "die"):
        with pytest.raises(ParlourError) as failed:
            await called(jan[name])
        heard += [str(failed.value), repr(failed.value.details), repr(failed.value.__cause__)]
    assert "Mara" in str(failed.value), "it says whom to ask"
    heard += [repr(one) for one in await group.listed(group.jan)]
    heard += [tool.wants({}) + str(tool.function) for tool in jan.values()]
    heard += [record.getMessage() for record in caplog.records]
    for secret in (KEY, ARGUMENT):
        assert [one for one in heard if secret in one] == []
    assert [one for one in heard if str(SERVER) in one and "the key" not in one and "DEBUG" in one] == []
    assert sys.executable not in str(failed.value)
    tools = group.engine.toolbox.of(group.jan)
    assert {KEY, ARGUMENT} <= set(await tools.secrets())
    assert KEY not in Redaction(await tools.secrets()).said(f"somebody wrote {KEY} down")


async def test_she_is_asked_by_her_own_rules_whatever_its_owner_believes(group: Group) -> None:
    await group.lend()
    await group.engine.toolbox.of(group.mara).servers.trust(group.server, on=True)
    jan = await group.used(group.jan)
    assert Policy().verdict(jan["recall"], {}, Taint()) == "writes", "it says that it only reads, and is not believed"
    hers = await group.engine.toolbox.of(group.jan).servers.paste('{"notes": {"url": "https://mcp.example/mcp"}}')
    assert [one.name for one in hers] == ["notes"]
    for rule in ("mcp:notes:*", "mcp:notes:recall", "mcp:notes*"):
        assert Policy(allow=(rule,)).verdict(jan["recall"], {}, Taint()) == "writes", rule
    assert Policy(deny=("mcp:*",)).verdict(jan["recall"], {}, Taint()) == "refuse"
    assert Policy(lasting=(jan["recall"].full_name,)).verdict(jan["recall"], {}, Taint()) == "run"


async def test_what_was_allowed_of_one_command_is_not_allowed_of_another(group: Group) -> None:
    await group.lend()
    before = (await group.used(group.jan))["recall"].full_name
    servers = group.engine.toolbox.of(group.mara).servers
    args = [str(SERVER), str(group.folder), "another"]
    await servers.change(group.server, "notes", {"command": sys.executable, "args": args, "env": {"API_KEY": None}})
    (one,) = await group.listed(group.jan)
    assert not one.on, "it is switched on anew, too"
    await servers.confirm(group.server, (await servers.list())[0].print)
    after = (await group.used(group.jan))["recall"].full_name
    assert before != after


async def test_a_server_that_its_owner_has_not_confirmed_waits_for_her(group: Group) -> None:
    await group.lend()
    await group.engine.stores.of(group.mara).mcp_servers.set(group.server, confirmed="another")
    assert await group.used(group.jan) == {}
    (one,) = await group.listed(group.jan)
    assert one.state == "waits"


async def take_back(group: Group) -> None:
    await group.engine.stores.of(group.mara).lending.take_back(group.id, "server", group.server)


ENDS: dict[str, Callable[[Group], Awaitable[Any]]] = {
    "taken back": take_back,
    "member removed": lambda g: g.engine.groups.take_out(None, g.id, g.jan),
    "group deleted": lambda g: g.engine.groups.delete(None, g.id),
    "lender deleted": lambda g: g.engine.people.remove(None, g.mara),
    "lender demoted": lambda g: g.engine.people.set_role(None, g.mara, "member"),
    "server switched off": lambda g: g.engine.toolbox.of(g.mara).servers.enable(g.server, on=False),
    "server removed": lambda g: g.engine.toolbox.of(g.mara).servers.remove(g.server),
    "borrower deleted": lambda g: g.engine.people.remove(None, g.jan),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
async def test_what_ends_ends_at_once_in_the_middle_of_a_call_with_its_process(
    group: Group, end: Callable[[Group], Awaitable[Any]]
) -> None:
    await group.lend()
    jan = await group.used(group.jan)
    waits = asyncio.create_task(called(jan["wait"]))
    while not (place := group.folder / "waits").exists() or not place.read_text():
        await asyncio.sleep(0)
    async with asyncio.timeout(10):
        await end(group)
        with pytest.raises(ToolError) as over:
            await waits
        assert over.value.words_key == "tool_taken_back"
        assert "notes · Mara" in str(over.value)
        await gone(int(place.read_text()))
        with pytest.raises(ToolError, match="not shared with you any more"):
            await called(jan["recall"])
    assert await group.engine.toolbox.of(group.jan).lent.tools("talk") == []


async def test_another_process_that_takes_it_back_ends_it_too(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.toolbox.loans._LOOKS", 0.05)
    await group.lend()
    jan = await group.used(group.jan)
    waits = asyncio.create_task(called(jan["wait"]))
    while not (group.folder / "waits").exists():
        await asyncio.sleep(0)
    await group.engine.stores.database.write(lambda c: c.execute(text("DELETE FROM lent")))
    async with asyncio.timeout(10):
        with pytest.raises(ToolError, match="not shared with you any more"):
            await waits


async def test_programs_of_the_borrower_and_other_conversations_get_it_only_as_she_chose(group: Group) -> None:
    await group.lend()
    await group.used(group.jan)
    tools = group.engine.toolbox.of(group.jan)
    offered = {tool.full_name for tool in await tools.for_model("talk")}
    mine = {name for name in offered if name.startswith("mcp:@Mara/notes#")}
    assert len(mine) == 7
    assert {tool.full_name for tool in await tools.for_model("")}.isdisjoint(mine)
    bringer = next(iter(mine)).rpartition(":")[0]
    here = {tool.full_name for tool in await tools.for_model("talk", here={bringer: False})}
    assert here.isdisjoint(mine)
    (one,) = await tools.lent.list()
    await tools.lent.use(one.mark, on=False)
    assert {tool.full_name for tool in await tools.for_model("talk")}.isdisjoint(mine)


class Shop:
    """A web service on this machine that echoes what it is sent, or never answers."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.waiting = asyncio.Event()
        self.port = 0

    async def answered(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heard.append(asked)
        if "/wait" in asked:
            self.waiting.set()
            await reader.read()  # until the other side leaves
        body = f"you sent {asked}".encode()
        status = b"403 Forbidden" if "/refused" in asked else b"200 OK"
        head = b"HTTP/1.1 %b\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
        writer.write(head % (status, len(body)) + body)
        with suppress(ConnectionError):
            await writer.drain()
        writer.close()

    @property
    def document(self) -> str:
        paths = {f"/{name}": {"get": {"operationId": name}} for name in ("echo", "wait", "refused")}
        servers = [{"url": f"http://127.0.0.1:{self.port}"}]
        return json.dumps({"openapi": "3.1.0", "info": {"title": "Shop"}, "servers": servers, "paths": paths})


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    shop = Shop()
    served = await asyncio.start_server(shop.answered, "127.0.0.1", 0)
    shop.port = served.sockets[0].getsockname()[1]
    yield shop
    served.close()


async def test_a_web_service_is_asked_with_its_owners_key_which_its_borrower_never_sees(
    group: Group, shop: Shop
) -> None:
    mara = group.engine.toolbox.of(group.mara).openapi
    made = await mara.add(shop.document, key=ServiceKey("bearer", value=KEY))
    await group.lend("service", made.id)
    assert await group.engine.toolbox.of(group.jan).lent.tools("talk") == []
    jan = await group.used(group.jan)
    assert sorted(jan) == ["Shop-echo", "Shop-refused", "Shop-wait"]
    said = await called(jan["Shop-echo"])
    assert f"authorization: bearer {KEY}".casefold() in shop.heard[-1].casefold()
    assert KEY not in said
    with pytest.raises(ParlourError) as refused:
        await called(jan["Shop-refused"])
    assert KEY not in str(refused.value) + repr(refused.value.details) + repr(await group.listed(group.jan))
    for act in ("remove", "try_key"):
        with pytest.raises(NotFoundError):
            await getattr(group.engine.toolbox.of(group.jan).openapi, act)(made.id)
    waits = asyncio.create_task(called(jan["Shop-wait"]))
    await shop.waiting.wait()
    async with asyncio.timeout(10):
        await group.engine.stores.of(group.mara).lending.take_back(group.id, "service", made.id)
        with pytest.raises(ToolError, match="not shared with you any more"):
            await waits
    heard = len(shop.heard)
    with pytest.raises(ToolError, match="not shared with you any more"):
        await called(jan["Shop-echo"])
    assert len(shop.heard) == heard, "it was not asked"


async def test_a_service_of_who_looks_after_the_house_no_more_reaches_no_machine_of_it(
    group: Group, shop: Shop
) -> None:
    made = await group.engine.toolbox.of(group.mara).openapi.add(shop.document, key=ServiceKey("bearer", value=KEY))
    await group.lend("service", made.id)
    assert "you sent" in await called((await group.used(group.jan))["Shop-echo"])
    heard = len(shop.heard)
    await group.engine.people.set_role(None, group.mara, "member")
    with pytest.raises(ParlourError):
        await called((await group.used(group.jan))["Shop-echo"])
    assert len(shop.heard) == heard


async def test_a_thing_that_is_deleted_or_guessed_is_shared_with_nobody(group: Group, shop: Shop) -> None:
    lending = group.engine.stores.of(group.mara).lending
    made = await group.engine.toolbox.of(group.mara).openapi.add(shop.document)
    for kind, thing in (("server", group.server), ("service", made.id)):
        for who in (group.jan, group.eve):
            with pytest.raises(NotFoundError):
                await group.engine.stores.of(who).lending.lend(group.id, kind, thing, writes=False)  # pyright: ignore[reportArgumentType]
        await group.lend(kind, thing)  # pyright: ignore[reportArgumentType]
        assert [one.writes for one in await lending.loans(kind, thing)] == [False], "nobody else says where keys go"  # pyright: ignore[reportArgumentType]
    await group.engine.toolbox.of(group.mara).servers.remove(group.server)
    await group.engine.toolbox.of(group.mara).openapi.remove(made.id)
    assert await group.listed(group.jan) == []
    assert await lending.loans("server", group.server) == await lending.loans("service", made.id) == []


async def asked(group: Group, *turns: Any) -> tuple[str, Live]:
    """Jan asks, and the model calls a tool of Mara's: the reply waits for Jan's word."""
    await group.used(group.jan)
    group.model._turns[:] = list(turns)  # pyright: ignore[reportPrivateUsage]
    async with group.engine.workspaces.open(group.jan) as jan:
        talk = (await jan.conversations.create("")).id
        run = await jan.conversation(talk).ask("What is the key?")
        while not run.reply().asking:
            await asyncio.sleep(0)
        return talk, run


async def test_a_reply_asks_its_borrower_and_keeps_nothing_of_the_secrets_in_any_export(group: Group) -> None:
    await group.lend()
    talk, run = await asked(group, Reply(calls=[("notes_Mara-tell", {})]), "There it is.")
    (call,) = run.reply().asking
    assert call.asked is not None
    assert "notes · Mara" in call.asked.wants["en"]
    async with group.engine.workspaces.open(group.mara) as mara:
        with pytest.raises(NotFoundError):
            await mara.conversation(talk).decide(call.call_id, True)
    async with group.engine.workspaces.open(group.jan) as jan:
        await jan.conversation(talk).decide(call.call_id, True)
        assert await run.wait() == "complete"
        said = str((await jan.conversations.thread(talk))[-1].parts)
        assert "the key is …" in said
        forms: tuple[Form, ...] = ("json", "md", "html")
        kept: list[bytes] = []
        for form in forms:
            exported = await jan.conversation(talk).export(form)
            kept.append("".join([piece async for piece in exported.pieces]).encode())
        bundle = b"".join([piece async for piece in jan.taking.bundle([talk])])
        with ZipFile(BytesIO(bundle)) as opened:
            kept += [opened.read(name) for name in opened.namelist()]
        assert len(kept) > len(forms) + 1
        assert any("the key is …".encode() in one or b"the key is \\u2026" in one for one in kept)
        for one in kept:
            assert KEY.encode() not in one
            assert ARGUMENT.encode() not in one
        told = "\n".join(str(message) for message in group.model.requests[-1].messages)
        assert "the key is …" in told
        assert KEY not in told


async def test_who_is_taken_out_of_the_group_while_a_reply_waits_for_her_word_calls_nothing_by_it(group: Group) -> None:
    await group.lend()
    talk, run = await asked(group, Reply(calls=[("notes_Mara-note", {"text": "too late"})]), "I cannot.")
    await group.engine.groups.take_out(None, group.id, group.jan)
    async with group.engine.workspaces.open(group.jan) as jan:
        await jan.conversation(talk).decide(run.reply().asking[0].call_id, True)
        assert await run.wait() == "complete"
        assert "not shared with you any more" in str((await jan.conversations.thread(talk))[-1].parts)
    mine = {getattr(tool, "own_name", ""): tool for tool in await group.engine.toolbox.of(group.mara).servers.tools()}
    assert (await called(mine["recall"])).endswith(": ")


async def test_who_gets_a_server_uses_the_sign_in_of_its_owner_and_can_make_none(group: Group) -> None:
    with protected() as notes:
        servers = group.engine.toolbox.of(group.mara).servers
        kept = await servers.add("diary", {"url": notes.url})
        await group.lend("server", kept.id)
        assert await group.used(group.jan) == {}
        async with asyncio.timeout(20):
            while (one := (await group.listed(group.jan))[0]).state != "waits":
                await asyncio.sleep(0)
        assert "sign" not in repr(one)
        with pytest.raises(NotFoundError):
            await group.engine.toolbox.of(group.jan).servers.sign_in(kept.id, "http://127.0.0.1:7860/mcp/signed-in")
        address = await servers.sign_in(kept.id, "http://127.0.0.1:7860/mcp/signed-in")
        await servers.signed_in(urlsplit(await notes.user_agrees(address)).query)
        lent = group.engine.toolbox.of(group.jan).lent
        await lent.use(one.mark, on=False)
        tools = await group.used(group.jan)
        assert await called(tools["whose"], word="hello") == "hello: …", "it would have said the token"
        (mine,) = [one for one in await servers.tools() if one.full_name == "mcp:diary:whose"]
        for _ in range(2):  # each renews the sign-in of both, which counts once
            notes.accounts.forget(access_alone=True)
            for tool in (mine, tools["whose"]):
                assert (await called(tool, word="hello")).startswith("hello: ")
        store = group.engine.stores.of(group.mara).mcp_servers
        secrets = await store.secrets_of(await store.get(kept.id))
        assert len(secrets) >= 3
        assert set(secrets) <= set(await group.engine.toolbox.of(group.jan).secrets())
        await servers.sign_out(kept.id)
        assert not await store.sign_in(kept.id)
        with pytest.raises(ParlourError):
            await called(tools["whose"], word="again")


async def test_what_a_server_asks_it_asks_its_borrower_without_its_owners_secrets(group: Group) -> None:
    await group.lend()
    await group.engine.toolbox.of(group.mara).servers.let_ask(group.server, on=True)
    heard: list[str] = []

    async def answers(*asked: Any) -> dict[str, Any]:
        heard.append(repr(asked))
        return {"yes": True}

    tools = await group.used(group.jan)
    result: Any = await tools["ask"].call({}, ask_user=answers)  # pyright: ignore[reportGeneralTypeIssues]
    assert '"yes": true' in result.text
    (question,) = heard
    assert "The key is …" in question
    assert "Is it …?" in question
    assert KEY not in question
