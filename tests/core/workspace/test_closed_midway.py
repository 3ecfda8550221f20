"""A workspace that is closed while a run lives or a document is read: whoever opens it next finds all of it."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from core.engine import Engine
from core.errors import StorageError
from core.rag.library import Library
from core.settings import Settings
from core.storage.base import DocumentRecord, folder_name
from core.testing.script import Reply as Say
from core.testing.scripted_model import ScriptedModel
from core.workspace.workspace import Workspace
from core.workspace.workspaces import Workspaces
from tests.core.reading.held_reading import CLAUSE, Gate, is_read, long_pdf

pytestmark = pytest.mark.anyio


def house(home: Path, *says: Any) -> Engine:
    return Engine(Settings.load(home=home, retrieval="keyword"), model=ScriptedModel(*says))


async def ignored(workspace: Workspace, library: Library) -> None:
    """Nothing is restored."""


async def only_document(workspace: Workspace, conversation_id: str) -> DocumentRecord:
    (document,) = await workspace.documents.list(conversation_id)
    return document


async def held_reading(workspace: Workspace) -> tuple[str, Gate]:
    """A conversation whose document is being read while its run waits for that."""
    gate = Gate(await workspace.index(), early=True)
    talk = await workspace.conversations.create()
    file = await workspace.files.put("policy.pdf", long_pdf())
    run = await workspace.conversation(talk.id).ask("What is the deductible?", [file.id])
    assert await asyncio.to_thread(gate.held.wait, 30)
    assert run.status == "running"
    return talk.id, gate


async def test_a_run_outlives_its_workspace_and_belongs_to_the_next_one(tmp_path: Path) -> None:
    says: list[Any] = [Say(hang=True)]
    async with (
        asyncio.timeout(180),
        house(tmp_path, lambda _: says[-1]) as engine,
        aclosing(Workspaces(engine.services, tmp_path / "libraries", ignored, idle=0)) as engine.workspaces,
    ):
        async with engine.workspaces.open("alice") as first:
            index = await first.index()
            talk = await first.conversations.create()
            run = await first.conversation(talk.id).ask("Count.")
        assert len(engine.workspaces) == 0
        async with engine.workspaces.open("alice") as second:
            assert second is not first
            assert await second.index() is not index
            assert not index.is_intact()
            assert second.runs.live(talk.id) is run
            assert run.status == "running"
            await second.conversation(talk.id).stop()
            thread = await second.conversation(talk.id).messages()
            assert [turn.status for turn in thread] == ["complete", "stopped"]
            says.append("Three.")
            again = await second.conversation(talk.id).regenerate(thread[-1].id)
            assert await again.wait() == "complete"
        with pytest.raises(StorageError):
            await first.index()


async def test_a_document_that_is_read_while_its_workspace_is_closed_is_read_in_the_next_one(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(180),
        house(tmp_path, lambda _: "Four hundred.") as engine,
        engine.workspaces.open("alice") as first,
    ):
        talk, gate = await held_reading(first)
        run = first.runs.live(talk)
        assert run is not None
        # Its index is gone, so the next who opens the workspace closes this one, whoever is in it.
        (tmp_path / "libraries" / folder_name("alice") / "library.sqlite").unlink()
        asyncio.get_running_loop().call_later(0.2, gate.opened.set)  # closing waits for whoever reads
        async with engine.workspaces.open("alice") as second:
            assert second is not first
            document = await is_read(engine, (await only_document(second, talk)).id)
            assert document.status == "ready", document.error
            assert await run.wait() == "complete", run.error
            found = await second.conversation(talk).find("the deductible for water damage")
            assert CLAUSE in found[0].text


async def test_what_was_under_way_when_one_process_closed_a_workspace_is_there_in_another(tmp_path: Path) -> None:
    async with house(tmp_path, lambda _: "No word of it.") as engine, engine.workspaces.open("alice") as workspace:
        talk, _ = await held_reading(workspace)
    async with (
        asyncio.timeout(180),
        house(tmp_path, lambda _: "Four hundred and twenty.") as other,
        other.workspaces.open("alice") as workspace,
    ):
        document = await is_read(other, (await only_document(workspace, talk)).id)
        assert document.status == "ready", document.error
        conversation = workspace.conversation(talk)
        thread = await conversation.messages()
        assert [turn.status for turn in thread] == ["complete", "interrupted"]
        run = await conversation.regenerate(thread[-1].id)
        assert await run.wait() == "complete", run.error
        assert CLAUSE in run.reply().passages[0]["text"]
        assert (await conversation.messages())[-1].status == "complete"
