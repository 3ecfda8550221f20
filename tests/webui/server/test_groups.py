"""Groups and what is shared with them, asked over HTTP by everybody: in the group, out of it, and as administrators."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from core.workspace.levels import Level
from core.workspace.personas import Persona
from tests.webui.server.people_app import House, house

pytestmark = pytest.mark.anyio
TOWER = b"# The tower\n\nThe tower of Brenn is 321 metres tall. It was built in 1889 of iron."
DIARY = b"# Diary\n\nMara hid the golden key of Brenn under the third stair."
OURS = {"x-parlour": "1"}


@dataclass
class Shared:
    """A house where Mara shares a library with a group: Jan is in it, Eve is not, Boss administers."""

    here: House
    boss: httpx.AsyncClient
    mara: httpx.AsyncClient
    jan: httpx.AsyncClient
    eve: httpx.AsyncClient
    group: str
    library: str
    text: str
    document: str
    hidden: str
    hidden_text: str

    async def lend(self, how: str, kind: str = "library", thing: str = "") -> httpx.Response:
        form = {"kind": kind, "thing": thing or self.library, "group": self.group, "how": how}
        return await self.mara.post("/lending/set", data=form)


@pytest.fixture
async def shared(tmp_path: Path) -> AsyncIterator[Shared]:
    async with house(tmp_path, retrieval="keyword", guests=True) as here:
        await here.owner("Ada")
        boss = await here.person("Boss", "administrator")
        mara, jan, eve = [await here.person(name) for name in ("Mara", "Jan", "Eve")]
        assert (await boss.post("/people/group-make", data={"name": "Research"})).status_code == 303
        (group,) = await here.engine.stores.groups.list()
        for one in (mara, jan):
            member = {"group": group.id, "person": await here.id_of(one)}
            assert (await boss.post("/people/group-add", data=member)).status_code == 303
        made: list[tuple[str, str, str]] = []
        async with here.engine.workspaces.open(await here.id_of(mara)) as workspace:
            for name, content in (("Towers", TOWER), ("Diary", DIARY)):
                library = await workspace.libraries.create(name)
                record = await workspace.libraries.add(library.id, content, f"{name}.md")
                await _read(here, record.id)
                made.append((library.id, (await workspace.documents.get(record.id)).library_id or "", record.id))
        (towers, text, document), (diary, diary_text, _) = made
        found = Shared(here, boss, mara, jan, eve, group.id, towers, text, document, diary, diary_text)
        answer = await found.lend("read")
        assert answer.status_code == 303, answer.text[-700:]
        yield found


async def _read(here: House, document_id: str) -> None:
    job = here.engine.services.intake.jobs.get(document_id)
    if job is not None and job.task is not None:
        await asyncio.wait({job.task})


async def opened(browser: httpx.AsyncClient, library: str) -> dict[str, Any] | None:
    return (await browser.get("/libraries/state", params={"library": library})).json()["opened"]


async def test_only_who_is_in_the_group_sees_what_is_shared_and_the_rest_does_not_exist(shared: Shared) -> None:
    told = await opened(shared.jan, shared.library)
    assert told is not None
    assert (told["name"], told["whose"], told["writes"]) == ("Towers", "of Mara, to read", False)
    assert [(one["name"], one["file"]) for one in told["documents"]] == [("Towers.md", "")]
    assert await opened(shared.jan, shared.hidden) is None
    found = (await shared.jan.post("/libraries/try", json={"library": shared.library, "question": "How tall?"})).json()
    assert "321 metres" in found["found"][0]["text"]
    for browser in (shared.eve, shared.boss):
        assert await opened(browser, shared.library) is None
        tried = await browser.post("/libraries/try", json={"library": shared.library, "question": "How tall?"})
        assert "321" not in tried.text
    for browser, library in ((shared.jan, shared.hidden), (shared.eve, shared.library)):
        tried = await browser.post("/libraries/try", json={"library": library, "question": "golden key tower"})
        assert "failed" in tried.json()
    files = [f"/files/{(await record(shared)).file_id}", f"/files/{(await record(shared)).file_id}?download=1"]
    for browser in (shared.jan, shared.eve, shared.boss):
        assert {(await browser.get(path)).status_code for path in files} == {404}
        for text in (shared.hidden_text, "0" * 64):
            assert (await browser.get(f"/pages/{text}/1.png")).status_code == 404
            assert (await browser.get(f"/pages/{text}/figure/1.jpg")).status_code == 404


async def record(shared: Shared) -> Any:
    mara = await shared.here.id_of(shared.mara)
    return await shared.here.engine.stores.of(mara).documents.get(shared.document)


async def test_to_read_is_not_to_write_and_to_write_is_not_to_own(shared: Shared) -> None:
    async def sent() -> dict[str, Any]:
        files = {"files": ("more.md", b"# More\n\nThe bridge of Brenn has seven arches.")}
        return dict((await shared.jan.post(f"/libraries/{shared.library}/files", files=files, headers=OURS)).json())

    assert "Mara shares this to read alone" in (await sent())["failed"]
    taken = await shared.jan.post("/libraries/remove", json={"library": shared.library, "document": shared.document})
    assert "to read alone" in taken.json()["failed"]
    await shared.lend("write")
    assert (await sent())["fresh"] == 1
    told = await opened(shared.jan, shared.library)
    assert told is not None
    assert told["writes"] is True
    assert len(told["documents"]) == 2
    mara = shared.here.engine.stores.of(await shared.here.id_of(shared.mara))
    assert len(await mara.documents.list_shelved(shared.library)) == 2
    (fresh,) = [one for one in await mara.documents.list_shelved(shared.library) if one.id != shared.document]
    await _read(shared.here, fresh.id)
    gone = await shared.jan.post("/libraries/remove", json={"library": shared.library, "document": fresh.id})
    assert len(gone.json()["opened"]["documents"]) == 1
    (hidden,) = await mara.documents.list_shelved(shared.hidden)
    for attack in (
        ("remove", {"document": hidden.id}),
        ("again", {"document": hidden.id}),
        ("rename", {"library": shared.library, "name": "Mine"}),
        ("delete", {"library": shared.library}),
    ):
        assert "failed" in (await shared.jan.post(f"/libraries/{attack[0]}", json=attack[1])).json(), attack
    assert [one.name for one in await mara.libraries.list()] == ["Diary", "Towers"]
    assert await mara.documents.list_shelved(shared.hidden) == [hidden]


async def test_what_is_taken_back_is_gone_at_once_and_so_it_is_without_the_group(shared: Shared) -> None:
    assert await opened(shared.jan, shared.library) is not None
    await shared.lend("none")
    assert await opened(shared.jan, shared.library) is None
    await shared.lend("read")
    member = {"group": shared.group, "person": await shared.here.id_of(shared.jan)}
    await shared.boss.post("/people/group-remove", data=member)
    assert await opened(shared.jan, shared.library) is None
    await shared.boss.post("/people/group-add", data=member)
    assert await opened(shared.jan, shared.library) is not None
    wrong = await shared.boss.post("/people/group-delete", data={"group": shared.group, "name": "research"})
    assert wrong.status_code == 400
    await shared.boss.post("/people/group-delete", data={"group": shared.group, "name": "Research"})
    assert await opened(shared.jan, shared.library) is None


async def test_nobody_shares_what_is_not_theirs_or_with_a_group_that_they_are_not_in(shared: Shared) -> None:
    eve_library = (await shared.eve.post("/libraries/create", json={"name": "Eve's"})).json()["opened"]["id"]
    for browser, thing in ((shared.eve, eve_library), (shared.jan, shared.library), (shared.boss, shared.library)):
        form = {"kind": "library", "thing": thing, "group": shared.group, "how": "write"}
        assert (await browser.post("/lending/set", data=form)).status_code == 404
    form = {"kind": "model", "thing": "openai", "group": shared.group, "how": "read"}
    assert (await shared.mara.post("/lending/set", data=form)).status_code == 400
    told = await opened(shared.jan, shared.library)
    assert told is not None
    assert told["writes"] is False
    for browser in (shared.jan, shared.eve, shared.mara):
        for act in ("make", "rename", "delete", "limits", "add", "remove"):
            assert (await browser.post(f"/people/group-{act}", data={"group": shared.group})).status_code in {303, 403}
    assert [(one.name, len(one.members)) for one in await shared.here.engine.stores.groups.list()] == [("Research", 2)]


async def test_the_page_says_what_is_shared_with_whom_and_by_whom(shared: Shared) -> None:
    page = (await shared.mara.get("/lending")).text
    assert "Research, to read" in page
    assert "Diary" in page
    theirs = (await shared.jan.get("/lending")).text
    assert "Towers" in theirs
    assert "of Mara, to read" in theirs
    assert "Diary" not in theirs
    assert "Towers" not in (await shared.eve.get("/lending")).text
    people = (await shared.boss.get("/people")).text
    assert "Mara shares a library with Research." in people
    assert "Towers" not in people, "the house sees that something is shared, and not what"
    chinese = await shared.mara.get("/lending", headers={"accept-language": "zh"})
    assert "与群组共享" in chinese.text


async def test_a_persona_to_write_is_changed_where_it_is_and_to_read_it_is_not(shared: Shared) -> None:
    engine = shared.here.engine
    async with engine.workspaces.open(await shared.here.id_of(shared.mara)) as mara:
        kept = await mara.steering.personas.save(Persona("", "Pirate", level=Level("Speak like a pirate.")))
    await shared.lend("read", "persona", kept.id)
    async with engine.workspaces.open(await shared.here.id_of(shared.jan)) as jan:
        with pytest.raises(Exception, match="to read alone"):
            await jan.steering.change_lent(kept.id, Level("Speak like a poet."))
    await shared.lend("write", "persona", kept.id)
    async with engine.workspaces.open(await shared.here.id_of(shared.jan)) as jan:
        await jan.steering.change_lent(kept.id, Level("Speak like a poet."))
    async with engine.workspaces.open(await shared.here.id_of(shared.mara)) as mara:
        assert (await mara.steering.personas.get(kept.id)).level.instructions == "Speak like a poet."
