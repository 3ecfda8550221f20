"""Marks lead to the pages of documents that are being read: own ones, and those that somebody else shares."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from core.people.people import checked_role, new_person
from core.rag import half_read
from core.testing.script import Reply
from tests.core.reading.held_reading import CLAUSE, Gate, index_of, long_pdf
from tests.webui.server.test_evidence import opened, panel_document
from webui.handlers import evidence

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("most", [half_read.MOST, 0])
async def test_on_a_page_that_is_read_the_cited_sentence_is_strongest_while_the_rest_of_its_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, anyio_backend: str, most: int
) -> None:
    monkeypatch.setattr(half_read, "MOST", most)  # of a file of too much text it comes at the end, by itself
    (tmp_path / "long.pdf").write_bytes(long_pdf())
    async with opened(tmp_path / "home", answering=lambda _: Reply(text=f"{CLAUSE} [1]")) as house:
        await house.asks(tmp_path / "long.pdf", question="Which deductible has water damage?")
        first = await house.cites()
        assert first.css(".p-hl.p-strong")
        library = await index_of(house.engine, house.view.owner)
        gate = Gate(library)
        library.remove(panel_document(first))
        async with house.engine.workspaces.open(house.view.owner) as workspace:
            (record,) = await workspace.documents.list(house.view.conversation_id)
            await workspace.intake.renew(record.id)
            await asyncio.to_thread(gate.held.wait, 20)
            panel = await house.cites()
            assert library.document(panel_document(panel)).status == "reading"
            assert panel.css(".p-hl.p-on")
            assert bool(panel.css(".p-hl.p-strong")) is bool(most)
            assert bool(panel.css("[data-unread]")) is not bool(most)
            gate.opened.set()
            await workspace.intake.wait_for_end(record.id)
        panel = await house.does(do="again")
        assert panel.css(".p-hl.p-strong")
        assert not panel.css("[data-unread]")


@pytest.mark.parametrize("how", ["lost", "added again"])
async def test_a_mark_on_a_document_that_somebody_shares_says_that_it_is_read_again_and_shows_its_page_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, anyio_backend: str, how: str
) -> None:
    monkeypatch.setattr(evidence, "_READ_WITHIN", 0.0)
    async with opened(tmp_path / "home", answering=lambda _: Reply(text=f"{CLAUSE} [1]")) as house:
        engine, people = house.engine, list[str]()
        for name, role in (("Mara", "owner"), ("Jan", "member")):
            people.append((await engine.people.store.add(new_person(name, checked_role(role)), "terminal")).id)
        lender, house.view.owner = people
        made = await engine.groups.make(None, "Research")
        for one in people:
            await engine.groups.add(None, made.id, one)
        async with engine.workspaces.open(lender) as mara:
            shelf = (await mara.libraries.create("Policies")).id
            record = await mara.libraries.add(shelf, long_pdf(), "policy.pdf")
            await mara.intake.wait_for_end(record.id)
        await engine.stores.of(lender).lending.lend(made.id, "library", shelf, writes=False)
        async with engine.workspaces.open(house.view.owner) as jan:
            house.view.conversation_id = (await jan.conversations.create("")).id
            await jan.libraries.use(house.view.conversation_id, shelf, on=True)
        await house.asks(question="Which deductible has water damage?")
        assert (await house.cites()).css(".p-hl.p-strong")
        library = await index_of(engine, lender)
        gate = Gate(library, early=True)
        async with engine.workspaces.open(lender) as mara:
            if how == "lost":
                library.remove(library.documents()[0].id)
                await mara.libraries.read_again(record.id)
            else:
                await mara.libraries.remove(record.id)
                record = await mara.libraries.add(shelf, long_pdf(), "policy.pdf")
            await asyncio.to_thread(gate.held.wait, 20)
            panel = await house.cites()
            assert "still being read" in panel.css(".p-none")[0].text()
            assert (await house.does(do="again")).css("[data-unread]")
            gate.opened.set()
            await mara.intake.wait_for_end(record.id)
        panel = await house.does(do="again")
        assert panel.css(".p-hl.p-strong")
        assert not panel.css("[data-unread]")
        await engine.stores.of(lender).lending.take_back(made.id, "library", shelf)
        assert not (await house.cites()).css("[data-unread]"), "what is not shared any more is not waited for"
