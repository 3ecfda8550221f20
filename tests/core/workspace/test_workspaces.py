"""The pool of workspaces: what is opened in one is shared, kept a while, and gone with its workspace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.errors import StorageError
from core.rag.library import Library
from core.runs.manager import Runs
from core.settings import Settings
from core.storage.base import folder_name
from core.storage.stores import Stores
from core.workspace import workspaces
from core.workspace.services import OwnerServices
from core.workspace.workspace import Workspace
from core.workspace.workspaces import Workspaces

pytestmark = pytest.mark.anyio


async def ignored(_: Workspace, __: Library) -> None:
    """Nobody wants to know."""


def house(
    tmp_path: Path, indexed: Callable[[Workspace, Library], Awaitable[None]] = ignored
) -> AbstractAsyncContextManager[Workspaces]:
    """Workspaces in which nothing but an index is opened, closed at the end of an `async with` block."""
    others: dict[str, Any] = dict.fromkeys(("intake", "index", "changed", "remembering", "agents"))
    nothing: Any = None
    stores = Stores(nothing, tmp_path, nothing)
    bound = SimpleNamespace(of=lambda owner: SimpleNamespace(rules=None))
    settings = Settings.load(home=tmp_path, retrieval="keyword")
    others |= {"runs": Runs(stores), "toolbox": bound, "models": bound, "code": bound, "titles": bound}
    services: Any = SimpleNamespace(stores=stores, settings=settings, **others)
    services.of = partial(OwnerServices, services)
    return aclosing(Workspaces(services, tmp_path, indexed, most=3))


async def test_workspaces_of_those_who_went_are_closed_and_each_is_there_when_its_owner_comes_back(
    tmp_path: Path,
) -> None:
    opened: list[str] = []

    async def noted(workspace: Workspace, _: Library) -> None:
        opened.append(workspace.owner)

    owners = [f"owner {number}" for number in range(8)]
    async with house(tmp_path, noted) as workspaces:
        for owner in owners:
            async with workspaces.index(owner) as library:
                library.add_text(f"{owner} lives in a red house.", name="facts.txt")
            assert len(workspaces) <= 3
        for owner in reversed(owners):
            async with workspaces.index(owner) as library:
                assert [one.text for one in await library.afind("red house")] == [f"{owner} lives in a red house."]
    assert opened == [*owners, *reversed(owners[:5])]
    with pytest.raises(StorageError):
        await workspaces.open("owner 0").__aenter__()


async def test_a_workspace_in_which_nothing_was_opened_is_not_kept_and_makes_no_folder(tmp_path: Path) -> None:
    async with house(tmp_path) as workspaces:
        async with workspaces.index("has documents"):
            pass
        for number in range(5):
            async with workspaces.open(f"visitor {number}"):
                assert len(workspaces) == 2
        assert len(workspaces) == 1  # and the visitors have not pushed it out
        assert not (tmp_path / folder_name("visitor 1")).exists()


async def test_an_index_is_opened_once_for_all_who_want_it_also_where_the_first_of_them_leaves(tmp_path: Path) -> None:
    opened: list[str] = []
    go_on = asyncio.Event()

    async def held(workspace: Workspace, _: Library) -> None:
        opened.append(workspace.owner)
        await go_on.wait()

    async with house(tmp_path, held) as workspaces, workspaces.open("ann") as ann:
        first, second = (asyncio.create_task(ann.index()) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait({first})
        go_on.set()
        assert await second is await ann.index()
    assert opened == ["ann"]


async def test_an_index_that_could_not_be_opened_is_tried_again_by_the_next_who_wants_it(tmp_path: Path) -> None:
    folder = tmp_path / folder_name("ann")
    folder.write_text("in the way")
    async with house(tmp_path) as workspaces, workspaces.open("ann") as ann:
        with pytest.raises(OSError, match="exists"):
            await ann.index()
        folder.unlink()
        library = await ann.index()
        assert await asyncio.to_thread(library.documents) == []
    with pytest.raises(StorageError):  # it was closed with its workspace
        await ann.index()


async def test_a_file_that_is_waited_for_no_more_is_fetched_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspaces, "_FETCHING", 0.05)
    comes, opened = asyncio.Event(), list[str]()

    class Files:
        """Takes its time."""

        async def with_content(self, _: str) -> Any:
            return SimpleNamespace(id="file")

        @asynccontextmanager
        async def local(self, file_id: str) -> AsyncGenerator[tuple[None, Path]]:
            await comes.wait()
            opened.append(file_id)
            yield None, tmp_path

    files: Any = Files()
    fetch = workspaces.fetching(files, asyncio.get_running_loop())
    with pytest.raises(StorageError, match="in time"):
        await asyncio.to_thread(fetch, "digest", tmp_path / "target")
    comes.set()
    for _ in range(20):
        await asyncio.sleep(0)
    assert opened == []
