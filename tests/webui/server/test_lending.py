"""Sharing in a thing's own dialog, and what is shared in the dialog of tools, asked over HTTP by everybody."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from core.models.own_models import Draft
from core.storage.database import Database
from core.workspace.levels import Level
from core.workspace.personas import Persona
from tests.core.stores import stores_over
from tests.webui.server.people_app import House, house
from webui.handlers import lending

pytestmark = pytest.mark.anyio
SERVER = Path(__file__).parents[2] / "core" / "toolbox" / "shared_server.py"
KEY, ARGUMENT = "CANARY-key-0123456789", "CANARY-argument-987654321"


@dataclass
class Shared:
    """A house where Mara, who administers it, has a server and a library: Jan is in her group, Eve is not."""

    here: House
    mara: httpx.AsyncClient
    jan: httpx.AsyncClient
    eve: httpx.AsyncClient
    group: str
    server: str
    library: str

    async def change(self, who: httpx.AsyncClient, kind: str, thing: str, how: str, group: str = "") -> dict[str, Any]:
        asked = {"kind": kind, "thing": thing, "group": group or self.group, "how": how}
        return dict((await who.post("/lending/change", json=asked)).json())


@pytest.fixture
async def shared(tmp_path: Path) -> AsyncIterator[Shared]:
    async with house(tmp_path, retrieval="keyword", guests=True) as here:
        await here.owner("Ada")
        mara, jan, eve = await here.person("Mara", "administrator"), await here.person("Jan"), await here.person("Eve")
        await mara.post("/people/group-make", data={"name": "Research"})
        (group,) = await here.engine.stores.groups.list()
        for one in (mara, jan):
            await mara.post("/people/group-add", data={"group": group.id, "person": await here.id_of(one)})
        tools = here.engine.toolbox.of(await here.id_of(mara))
        args = [str(SERVER), str(tmp_path), "--api-key", ARGUMENT]
        kept = await tools.servers.add("notes", {"command": sys.executable, "args": args, "env": {"API_KEY": KEY}})
        await tools.servers.confirm(kept.id, (await tools.servers.list())[0].print)
        library = (await mara.post("/libraries/create", json={"name": "Towers"})).json()["opened"]["id"]
        yield Shared(here, mara, jan, eve, group.id, kept.id, library)


async def test_the_dialog_of_a_thing_says_who_has_it_and_changes_that(shared: Shared) -> None:
    told = (await shared.mara.get("/lending/of", params={"kind": "library", "thing": shared.library})).json()
    assert told["groups"] == [{"id": shared.group, "name": "Research", "people": "Jan", "how": "none"}]
    assert [one["value"] for one in told["ways"]] == ["none", "read", "write"]
    assert told["said"] == "Shared with nobody."
    told = await shared.change(shared.mara, "library", shared.library, "write")
    assert (told["groups"][0]["how"], told["said"]) == ("write", "Shared with Research.")
    told = await shared.change(shared.mara, "server", shared.server, "write")
    assert [one["value"] for one in told["ways"]] == ["none", "read"]
    assert told["groups"][0]["how"] == "read", "what holds keys is shared to be used alone"
    assert "with your settings and keys" in told["note"]
    chinese = await shared.mara.get(
        "/lending/of", params={"kind": "server", "thing": shared.server}, headers={"accept-language": "zh"}
    )
    assert chinese.json()["said"] == "已与 Research 共享。"
    told = await shared.change(shared.mara, "server", shared.server, "none")
    assert told["said"] == "Shared with nobody."


async def test_of_a_model_it_is_said_that_it_is_asked_and_nothing_of_acting(shared: Shared) -> None:
    async with shared.here.engine.workspaces.open(await shared.here.id_of(shared.mara)) as mara:
        await mara.models.save(Draft("compatible", "http://127.0.0.1:9/v1", "big-one", "sk-house-1234"), use=False)
    told = (await shared.mara.get("/lending/of", params={"kind": "model", "thing": "compatible"})).json()
    assert "ask this model with your key, which they do not see" in told["note"]
    assert "acts for them" not in told["note"]


async def test_a_way_that_there_is_none_of_changes_nothing(shared: Shared) -> None:
    await shared.change(shared.mara, "library", shared.library, "write")
    asked = {"kind": "library", "thing": shared.library, "group": shared.group}
    for wrong in ("", "wriet", None, 7):
        answer = await shared.mara.post("/lending/change", json={**asked, "how": wrong})
        assert answer.status_code == 400, wrong
    told = (await shared.mara.get("/lending/of", params={"kind": "library", "thing": shared.library})).json()
    assert told["groups"][0]["how"] == "write"


async def test_nobody_looks_at_or_shares_what_is_anothers_by_its_id_or_by_a_guess(shared: Shared) -> None:
    await shared.change(shared.mara, "server", shared.server, "read")
    eves = await shared.eve.post("/libraries/create", json={"name": "Eve's"})
    eves = eves.json()["opened"]["id"]
    for who in (shared.jan, shared.eve):
        for kind, thing in (("server", shared.server), ("library", shared.library), ("service", "0" * 32), ("x", "y")):
            asked = (await who.get("/lending/of", params={"kind": kind, "thing": thing})).json()
            assert set(asked) == {"failed"}, asked
            assert set(await shared.change(who, kind, thing, "read")) == {"failed"}
            assert set(await shared.change(who, kind, thing, "none")) == {"failed"}
    assert set(await shared.change(shared.eve, "library", eves, "read")) == {"failed"}, "she is not in that group"
    assert set(await shared.change(shared.mara, "library", shared.library, "read", "guess")) == {"failed"}
    (one,) = (await shared.jan.get("/tools/state")).json()["lent"]
    assert one["name"] == "notes"
    for path in ("/lending/of", "/lending/change", "/standing", "/tools/lent"):
        nobody = shared.here.browser()
        assert (await nobody.request("GET" if path != "/lending/change" else "POST", path)).status_code in {401, 405}


async def test_the_dialog_of_tools_shows_what_is_shared_and_nothing_of_how_it_is_reached(shared: Shared) -> None:
    await shared.change(shared.mara, "server", shared.server, "read")
    heard = [await shared.jan.get("/tools/state")]
    (one,) = heard[0].json()["lent"]
    assert (one["whose"], one["on"], one["tools"]) == ("of Mara, to use", False, [])
    heard.append(await shared.jan.post("/tools/lent", json={"lent": one["id"], "on": True}))
    while (now := heard[-1].json()["lent"][0])["moves"]:
        heard.append(await shared.jan.get("/tools/state"))
        await asyncio.sleep(0)
    assert (now["on"], now["said"], len(now["tools"])) == (True, "MCP server · ready, 7 tools", 7)
    assert now["tools"][0]["id"].startswith("mcp:@Mara/notes#")
    rules = {"deny": [now["tools"][0]["id"], "mcp:@Mara/other:*"]}
    hints = (await shared.jan.post("/tools/patterns", json=rules)).json()["approval"]["hints"]["deny"]
    assert len(hints) == 1, "the one that is there is known"
    heard += [
        await shared.jan.get(path, params={"server": shared.server}) for path in ("/tools/state", "/lending", "/meter")
    ]
    exported = await shared.jan.get("/conversations/export", params={"as": "bundle"})
    for answer in (*heard, exported):
        for secret in (KEY, ARGUMENT, str(SERVER), sys.executable):
            assert secret.encode() not in answer.content, answer.url
    assert heard[0].json()["opened"] is None
    for act in ("remove", "connect", "check", "enable", "confirm", "trust", "let_ask", "sign_in"):
        assert "failed" in (await shared.jan.post(f"/tools/{act}", json={"server": shared.server})).json(), act
    assert (await shared.eve.get("/tools/state")).json()["lent"] == []
    assert "failed" in (await shared.eve.post("/tools/lent", json={"lent": one["id"], "on": True})).json()


async def test_a_page_that_is_open_is_told_at_once_and_shows_a_removed_member_nothing(shared: Shared) -> None:
    async def news(seen: str) -> str:
        answer = await shared.jan.get("/standing", params={"seen": seen})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["standing"])

    seen = await news("")
    member = {"group": shared.group, "person": await shared.here.id_of(shared.jan)}
    boss = shared.mara
    changes = [
        lambda: shared.change(boss, "server", shared.server, "read"),
        lambda: shared.change(boss, "library", shared.library, "read"),
        lambda: shared.change(boss, "library", shared.library, "write"),
        lambda: boss.post("/people/role", data={"person": member["person"], "role": "guest"}),
        lambda: boss.post("/people/role", data={"person": member["person"], "role": "member"}),
        lambda: boss.post("/people/limits", data={"person": member["person"], "tokens": "2,300"}),
        lambda: boss.post("/people/group-limits", data={"group": shared.group, "messages": "7"}),
        lambda: boss.post("/people/group-remove", data=member),
    ]
    async with asyncio.timeout(10):
        for change in changes:
            waits = asyncio.create_task(news(seen))
            await asyncio.sleep(0)
            await change()
            now = await waits
            assert now != seen
            seen = now
    assert (await shared.jan.get("/tools/state")).json()["lent"] == []
    assert (
        "failed" in (await shared.jan.post("/libraries/try", json={"library": shared.library, "question": "x"})).json()
    )


async def test_both_sides_of_a_shared_persona_hear_that_the_other_changed_it(shared: Shared) -> None:
    engine, ids = shared.here.engine, [await shared.here.id_of(one) for one in (shared.mara, shared.jan)]
    async with engine.workspaces.open(ids[0]) as mara:
        kept = await mara.steering.personas.save(Persona("", "Pirate", level=Level("Speak like a pirate.")))
        own = await mara.steering.personas.save(Persona("", "Poet"))
    await shared.change(shared.mara, "persona", kept.id, "write")

    async def news(who: httpx.AsyncClient, seen: str) -> str:
        return str((await who.get("/standing", params={"seen": seen})).json()["standing"])

    async def by_borrower() -> None:
        async with engine.workspaces.open(ids[1]) as jan:
            await jan.steering.change_lent(kept.id, Level("Speak like a sailor."))

    async def by_owner() -> None:
        async with engine.workspaces.open(ids[0]) as mara:
            await mara.steering.personas.save(replace(kept, sign="!"))

    async def deleted() -> None:
        async with engine.workspaces.open(ids[0]) as mara:
            await mara.steering.personas.delete(kept.id)

    async with asyncio.timeout(10):
        for change in (by_borrower, by_owner, deleted):
            seen = [await news(one, "") for one in (shared.mara, shared.jan)]
            waits = [asyncio.create_task(news(*each)) for each in zip((shared.mara, shared.jan), seen, strict=True)]
            await asyncio.sleep(0)
            await change()
            now = await asyncio.gather(*waits)
            assert now[0] != seen[0], change
            assert now[1] != seen[1], change
    async with engine.workspaces.open(ids[0]) as mara:
        seen = [await news(one, "") for one in (shared.mara, shared.jan)]
        await mara.steering.personas.save(replace(own, sign="?"))
        assert [await news(one, "") for one in (shared.mara, shared.jan)] == seen, "what is not shared is nobody's news"


@pytest.mark.parametrize("kind", ["library", "model", "server"])
async def test_the_audit_says_that_sharing_ended_because_what_was_shared_was_removed(shared: Shared, kind: str) -> None:
    engine, mara = shared.here.engine, await shared.here.id_of(shared.mara)
    stores = engine.stores.of(mara)
    async with engine.workspaces.open(mara) as workspace:
        await workspace.models.save(Draft("compatible", "http://127.0.0.1:9/v1", "m", "sk-1"), use=False)
    gone = {
        "library": (shared.library, lambda: stores.libraries.delete(shared.library)),
        "model": ("compatible", lambda: stores.model_services.delete("compatible")),
        "server": (shared.server, lambda: stores.mcp_servers.delete(shared.server)),
    }
    thing, remove = gone[kind]
    await shared.change(shared.mara, kind, thing, "read")
    await remove()
    last = (await engine.people.store.audit())[0]
    assert (last.by, last.did, last.to) == ("Mara", f"taken_back_{kind}", "Research")


async def test_who_waits_for_news_is_answered_in_the_end_and_hears_of_another_process(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lending, "_LOOKS", 0.01)
    monkeypatch.setattr(lending, "_WAITS", 0.02)
    seen = {"seen": str((await shared.jan.get("/standing")).json()["standing"])}
    assert (await shared.jan.get("/standing", params=seen)).json()["standing"] == seen["seen"]
    monkeypatch.setattr(lending, "_WAITS", 60.0)
    waits = asyncio.create_task(shared.jan.get("/standing", params=seen))
    await asyncio.sleep(0)
    theirs = await Database.open(shared.here.engine.stores.database.place)
    mara = stores_over(theirs).of(await shared.here.id_of(shared.mara))
    await mara.lending.lend(shared.group, "library", shared.library, writes=False)
    await theirs.aclose()
    async with asyncio.timeout(10):
        assert (await waits).json()["standing"] != seen["seen"]


async def test_one_person_may_not_have_pages_without_end_wait_for_news_and_others_wait_all_the_same(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lending, "_MOST_WAIT", 2)
    monkeypatch.setattr(lending, "_WAITS", 0.3)
    seen = {"seen": str((await shared.jan.get("/standing")).json()["standing"])}
    got = await asyncio.gather(
        *(shared.jan.get("/standing", params=seen) for _ in range(3)), shared.eve.get("/standing")
    )
    refused = [one for one in got if one.status_code == 429]
    assert [one.status_code for one in got].count(200) == 3
    assert int(refused[0].headers["retry-after"]) > 0
    assert got[3].status_code == 200
    assert (await shared.jan.get("/standing")).status_code == 200


async def test_the_page_of_all_that_is_shared_has_tools_too(shared: Shared) -> None:
    page = (await shared.mara.get("/lending")).text
    assert "Your MCP servers" in page
    await shared.mara.post(
        "/lending/set", data={"kind": "server", "thing": shared.server, "group": shared.group, "how": "write"}
    )
    assert "Research, to use" in (await shared.mara.get("/lending")).text
    theirs = (await shared.jan.get("/lending")).text
    assert "of Mara, to use" in theirs
    assert "Mara shares an MCP server with Research." in (await shared.mara.get("/people")).text
