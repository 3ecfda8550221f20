"""Which folder holds the files of all Parlours on one PostgreSQL, where no store does."""

from __future__ import annotations

import asyncio
import errno
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
import pytest

from core.engine import Engine
from core.settings import Settings
from core.storage.base import LOCAL_OWNER
from core.storage.database import Database
from core.storage.installation import files_are_here
from core.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio

Told = Callable[..., Awaitable[bool]]


@pytest.fixture
def told(postgres: str) -> Told:
    """Whether a Parlour that starts on a data folder says that files are elsewhere; it then takes in some."""

    async def started(home: Path, *, adds: int = 0) -> bool:
        settings = Settings.load(database=postgres, secret="a secret of some length", home=home)
        async with Engine(settings, model=ScriptedModel()) as house:
            files = house.stores.of(LOCAL_OWNER).files
            for number in range(adds):
                await files.put(f"{number}.txt", f"{home.name} {number}".encode())
            said = house.readiness.notes.get("files_elsewhere")
        assert said in (None, {"folder": str(home / "files")})
        return said is not None

    return started


@pytest.fixture
async def opened(postgres: str, anyio_backend: str) -> AsyncIterator[Database]:
    database = await Database.open(postgres)
    yield database
    await database.aclose()


def copied(source: Path, target: Path) -> None:
    """As `cp source/files/* target/files`: what begins with a dot stays behind."""
    shutil.copytree(source / "files", target / "files", ignore=shutil.ignore_patterns(".*"), dirs_exist_ok=True)


async def test_a_parlour_whose_files_are_in_another_folder_says_so_and_one_on_the_same_folder_does_not(
    told: Told, tmp_path: Path
) -> None:
    assert not await told(tmp_path / "one")
    for _ in range(2):  # it is told each time
        assert await told(tmp_path / "two")
    assert not await told(tmp_path / "one", adds=1)
    assert await told(tmp_path / "two", adds=1), "it has not got the file of the other"
    assert await told(tmp_path / "two"), "nor has it nearly all"
    (tmp_path / "one").rename(tmp_path / "moved")
    assert not await told(tmp_path / "moved"), "it is the same folder in another place"


async def test_who_took_in_the_latest_files_alone_does_not_become_the_one(told: Told, tmp_path: Path) -> None:
    assert not await told(tmp_path / "one", adds=25)
    assert await told(tmp_path / "two", adds=6)
    assert await told(tmp_path / "two")
    assert not await told(tmp_path / "one")


async def test_where_the_files_of_all_were_brought_together_nobody_says_more(told: Told, tmp_path: Path) -> None:
    one, two, both = tmp_path / "one", tmp_path / "two", tmp_path / "both"
    assert not await told(one, adds=2)
    assert await told(two, adds=2)
    copied(one, both)
    copied(two, both)
    for _ in range(2):
        assert not await told(both)
    assert await told(one)


async def test_a_folder_that_came_back_without_its_id_is_known_by_its_files(told: Told, tmp_path: Path) -> None:
    assert not await told(tmp_path / "one", adds=7)
    copied(tmp_path / "one", tmp_path / "restored")
    shutil.rmtree(tmp_path / "one")
    assert not await told(tmp_path / "restored")


async def test_a_folder_that_was_tried_first_is_forgotten_once_another_has_the_files(
    told: Told, tmp_path: Path
) -> None:
    tried, used = tmp_path / "tried", tmp_path / "used"
    assert not await told(tried)
    assert await told(used, adds=1)
    assert not await told(used)
    assert await told(tried), "the file is not in it"


async def test_an_empty_folder_that_comes_first_is_not_the_one_of_a_database_with_files(
    told: Told, postgres: str, tmp_path: Path
) -> None:
    assert not await told(tmp_path / "used", adds=1)
    with psycopg.connect(postgres) as connection:  # as an older Parlour left it
        connection.execute("DELETE FROM installation WHERE name = 'files'")
    assert await told(tmp_path / "tried")
    assert not await told(tmp_path / "used")


async def test_a_folder_of_files_that_cannot_be_written_stops_nobody(opened: Database, tmp_path: Path) -> None:
    (tmp_path / "files").write_text("no folder")
    assert await files_are_here(opened, tmp_path / "files"), "who adds a file is told"


async def test_of_those_that_open_a_new_folder_at_once_all_know_it_by_one_id(
    opened: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, has_looked, others_are_done = Path.read_text, Event(), Event()

    def read_and_wait(place: Path, *args: Any, **others: Any) -> str:
        try:
            return read(place, *args, **others)
        finally:
            if place.name == ".id" and not has_looked.is_set():
                has_looked.set()
                assert others_are_done.wait(60)

    folder = tmp_path / "home" / "files"
    monkeypatch.setattr(Path, "read_text", read_and_wait)
    slow = asyncio.create_task(files_are_here(opened, folder))
    try:
        assert await asyncio.to_thread(has_looked.wait, 60)
        assert all(await asyncio.gather(*(files_are_here(opened, folder) for _ in range(3))))
    finally:
        others_are_done.set()
    assert await slow, "it had found no id, and takes that of the others"
    assert await files_are_here(opened, folder)
    assert sorted(one.name for one in folder.iterdir()) == [".id", ".id.lock"], "no draft is left"
    assert [oct(one.stat().st_mode & 0o777) for one in (folder, folder / ".id")] == ["0o700", "0o600"]


@pytest.mark.parametrize("left", ["", "half of"])
async def test_an_id_that_is_not_whole_is_none(opened: Database, tmp_path: Path, left: str) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".id").write_text(left)
    assert await files_are_here(opened, tmp_path / "one")
    assert not await files_are_here(opened, tmp_path / "two"), "it has one of its own now"
    assert await files_are_here(opened, tmp_path / "one")


async def test_where_the_disk_was_full_no_half_of_an_id_stays(
    opened: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(draft: Path, _: bytes) -> None:
        draft.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        assert await files_are_here(opened, tmp_path / "files")
    assert [one.name for one in (tmp_path / "files").iterdir()] == [".id.lock"]


async def test_who_only_asks_leaves_no_id_behind(opened: Database, tmp_path: Path) -> None:
    assert await files_are_here(opened, tmp_path / "asking", keeps=False), "nobody said yet where they are"
    assert await files_are_here(opened, tmp_path / "files")
    assert not await files_are_here(opened, tmp_path / "asking", keeps=False)
    assert await files_are_here(opened, tmp_path / "files", keeps=False)
    assert not (tmp_path / "asking").exists()
