"""`parlour ingest`: a folder or a store becomes a library, once and whole, however often it is cut short."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from core.engine import Engine
from core.errors import StorageError
from core.ingesting import ingestion, keeping
from core.ingesting.sources import Files, Item
from core.settings import Settings
from core.storage.base import LOCAL_OWNER, DocumentRecord, folder_name
from core.testing.scripted_model import ScriptedModel
from tests.core.reading.held_reading import CLAUSE, pdf
from tests.core.talks import world_of
from tests.grown_servers import S3Server
from tests.webui.commands.own_terminal import Terminal
from webui.commands.ingesting import ingest

QUESTION = "What is the deductible for water damage?"


@dataclass
class House:
    """A data folder, and perhaps a database.

    Args:
        home: The folder.
        database: The address of a PostgreSQL; "" where the rows are in the folder.
    """

    home: Path
    database: str

    def engine(self) -> Engine:
        more: dict[str, Any] = {"database": self.database, "secret": "the same for all"} if self.database else {}
        return Engine(Settings.load(home=self.home, retrieval="keyword", **more), model=ScriptedModel())

    def documents(self, owner: str = LOCAL_OWNER) -> list[DocumentRecord]:
        """What stands in the owner's one library."""

        async def listed() -> list[DocumentRecord]:
            async with self.engine() as engine:
                stores = engine.stores.of(owner)
                (library,) = await stores.libraries.list()
                records = await stores.documents.list_shelved(library.id)
                async with engine.workspaces.index(owner) as index:
                    known = {one.id for one in index.documents() if one.status == "ready"}
                assert known == {one.library_id for one in records if one.status == "ready"}
                return records

        return asyncio.run(listed())


@pytest.fixture(params=["embedded", "grown"])
def house(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    """A house in either form; the command finds it by the environment."""
    monkeypatch.setenv("PARLOUR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PARLOUR_RETRIEVAL", "keyword")
    database = ""
    if request.param == "grown":
        database = str(request.getfixturevalue("postgres"))
        monkeypatch.setenv("PARLOUR_DATABASE", database)
        monkeypatch.setenv("PARLOUR_SECRET", "the same for all")
    return House(tmp_path / "home", database)


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    """A house in its embedded form."""
    monkeypatch.setenv("PARLOUR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PARLOUR_RETRIEVAL", "keyword")
    return House(tmp_path / "home", "")


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    """Three files that can be read, two of the same bytes, and three that cannot be."""
    folder = tmp_path / "papers"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "lamp.md").write_text("# Lamps\n\nThe green lamp stands beside the door.")
    (folder / "deep" / "policy.pdf").write_bytes(pdf(CLAUSE))
    (folder / "deep" / "er" / "the same policy.pdf").write_bytes(pdf(CLAUSE))
    (folder / "deep" / "program.exe").write_bytes(b"MZ\0\0\0")
    (folder / "empty.txt").touch()
    (folder / "locked.pdf").write_bytes(pdf(CLAUSE, password="secret"))
    (folder / ".hidden.md").write_text("Nobody reads this.")
    return folder


def test_a_folder_becomes_a_library_and_a_second_run_reads_what_is_missing_alone(
    house: House, papers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(papers), "--library", "Papers", "--workers", "2"]
    assert ingest(given) == 1
    said = capsys.readouterr()
    assert said.out == "Papers: 2 taken in, 1 there already.\n"
    assert "parlour: 3 of 6 files could not be taken in." in said.err
    for name in ("program.exe", "empty.txt", "locked.pdf"):
        (line,) = [one for one in said.err.splitlines() if name in one]
        assert line.startswith(str(papers))
    there = house.documents()
    lamp, policy = sorted(one.name for one in there if one.status == "ready")  # two workers: either may be first
    assert (lamp, policy.endswith("policy.pdf")) == ("lamp.md", True)
    assert len(there) == 2, "what cannot be read is in the ledger, not in the library"

    assert ingest(given) == 1
    assert capsys.readouterr().out == "Papers: 0 taken in, 3 there already.\n"
    (papers / "lamp.md").write_text("# Lamps\n\nThe red lamp is broken.")
    for name in ("empty.txt", "locked.pdf"):
        (papers / name).unlink()
    (papers / "deep" / "program.exe").write_text("Now it is a text, whatever it is called.")
    (papers / "deep" / "program.exe").rename(papers / "deep" / "text.md")
    assert ingest(given) == 0
    assert capsys.readouterr().out == "Papers: 2 taken in, 2 there already.\n"
    assert [one.id for one in house.documents()[:2]] == [one.id for one in there]


async def _tried(engine: Engine, owner: str) -> list[str]:
    libraries = world_of(engine, owner).libraries
    (library,) = await libraries.list()
    return [passage.document for passage in await libraries.tried(library.id, QUESTION)]


def test_the_page_finds_what_was_taken_in_and_what_it_takes_out_is_read_again(
    house: House, papers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(papers / "deep" / "policy.pdf"), "--library", "Policies", "--owner", "alice"]

    async def begun() -> None:
        async with house.engine() as engine:
            await engine.stores.of("alice").conversations.create()

    asyncio.run(begun())
    assert ingest(given) == 0

    async def looked() -> None:
        async with house.engine() as engine:
            assert await _tried(engine, "alice") == ["policy.pdf"]
            libraries = world_of(engine, "alice").libraries
            (library,) = await libraries.list()
            assert library.name == "Policies"
            (record,) = (await libraries.opened(library.id)).documents
            assert record.pages == 1
            async with engine.workspaces.index("alice") as index:
                (found,) = await index.afind(QUESTION)
                assert await index.apage_picture(found), "its file is here, to be shown"
            assert not await engine.stores.of("bob").libraries.list()
            await libraries.remove(record.id)

    asyncio.run(looked())
    capsys.readouterr()
    assert ingest(given) == 0
    assert capsys.readouterr().out.startswith("Policies: 1 taken in")


def test_with_resume_what_failed_and_did_not_change_is_told_and_not_tried(
    alone: House, papers: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = [str(papers), "--library", "Papers"]
    assert ingest(given) == 1
    first = capsys.readouterr()
    tried: list[str] = []
    check = keeping.check_kind
    monkeypatch.setattr(
        keeping, "check_kind", lambda path, name, reader: (tried.append(name), check(path, name, reader))
    )
    assert ingest([*given, "--resume"]) == 1
    again = capsys.readouterr()
    assert tried == []
    assert sorted(again.err.splitlines()) == sorted(first.err.splitlines()), "each is told in the same sentence"
    (papers / "empty.txt").write_text("It is no longer empty.")
    assert ingest([*given, "--resume"]) == 1
    assert tried == ["empty.txt"]
    assert ingest(given) == 1
    assert sorted(tried) == ["empty.txt", "locked.pdf", "program.exe"]


def test_the_objects_of_a_store_are_read_as_files_are(
    alone: House, s3: S3Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from obstore import put
    from obstore.store import S3Store

    keys: dict[str, Any] = {"access_key_id": "AKIDTEST", "secret_access_key": "a secret of the store"}
    for name, value in (*keys.items(), ("endpoint_url", s3.address)):
        monkeypatch.setenv(f"AWS_{name.upper()}", value)
    bucket = s3.make_bucket()
    store: Any = S3Store(bucket, region="us-east-1", endpoint=s3.address, client_options={"allow_http": True}, **keys)
    put(store, "papers/deep/policy.pdf", pdf(CLAUSE))
    put(store, "papers/program.exe", b"MZ\0\0\0")
    put(store, "papers/.hidden/x.md", b"Nobody reads this.")
    put(store, "other/lamp.md", b"This was not asked for.")
    given = [f"s3://{bucket}/papers", "--library", "Papers"]
    assert ingest(given) == 1
    said = capsys.readouterr()
    assert said.out == "Papers: 1 taken in, 0 there already.\n"
    assert f"s3://{bucket}/papers/program.exe: " in said.err
    assert "a secret of the store" not in said.err
    assert [one.name for one in alone.documents()] == ["policy.pdf"]
    assert ingest(given) == 1
    assert "Papers: 0 taken in, 1 there already." in capsys.readouterr().out
    put(store, "papers/deep/policy.pdf", pdf("The deductible was abolished."))
    assert ingest(given) == 1
    assert "Papers: 1 taken in, 0 there already." in capsys.readouterr().out
    assert ingest([f"s3://{bucket}-not-there/papers", "--library", "Papers"]) == 1
    assert "There is no bucket" in capsys.readouterr().err


def test_the_library_is_told_by_the_name_that_is_kept(
    alone: House, papers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lamp = str(papers / "lamp.md")
    for typed in ("\x1b[31mRed\nlamps\x07", "x" * 400):
        assert ingest([lamp, "--library", typed, "--lang", "en"]) == 0
        said = capsys.readouterr().out
        assert said.count("\n") == 1
        assert said.rstrip("\n").isprintable()
        name = said.partition(": ")[0]
        with closing(sqlite3.connect(alone.home / "parlour.db")) as rows:
            assert (name,) in rows.execute("SELECT name FROM libraries").fetchall()


def test_a_new_library_that_nothing_came_into_is_not_kept(
    alone: House, papers: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_: Files) -> Any:
        raise StorageError("The store is away.")

    def names() -> list[str]:
        with closing(sqlite3.connect(alone.home / "parlour.db")) as rows:
            return [name for (name,) in rows.execute("SELECT name FROM libraries")]

    locked = str(papers / "locked.pdf")
    for source in (locked, str(papers / "*.nothing")):
        assert ingest([source, "--library", "Papers"]) == 1
        assert names() == []
    assert "1 of 1 files could not be taken in" in capsys.readouterr().err
    with monkeypatch.context() as patched:
        patched.setattr(Files, "items", away)
        assert ingest([str(papers), "--library", "Papers"]) == 1
    assert "The store is away." in capsys.readouterr().err
    assert names() == []
    assert ingest([str(papers / "lamp.md"), "--library", "Papers"]) == 0
    assert ingest([locked, "--library", "Papers"]) == 1
    assert names() == ["Papers"]


def test_where_nothing_came_in_the_vectors_of_other_libraries_are_not_waited_for(
    alone: House, papers: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def waited(*_: object) -> bool:
        raise StorageError("It waited for vectors.")

    monkeypatch.setattr(ingestion, "with_vectors", waited)
    assert ingest([str(papers / "locked.pdf"), "--library", "Papers"]) == 1
    said = capsys.readouterr()
    assert "0 taken in, 0 there already" in said.out
    assert "1 of 1 files could not be taken in" in said.err
    assert "It waited" not in said.err


def test_vectors_are_told_to_be_missing_only_where_some_are() -> None:
    class Index:
        """An index that takes a while to see whether all vectors are there."""

        def __init__(self, made: int) -> None:
            self.retriever, self.made, self.waits = self, made, 0

        def wait_for_vectors(self, _: float) -> bool:
            self.waits += 1
            return self.waits > 2

        def vectors_idle(self) -> bool:
            return False

        def documents(self) -> list[Any]:
            return []

        def vector_progress(self, _: list[str]) -> dict[str, tuple[int, int]]:
            return {"a": (self.made, 3)}

    for made, times in ((3, 0), (2, 1)):
        told: list[str] = []
        watching = ingestion.Told(lambda *_: None, lambda told=told: told.append("missing"))
        index: Any = Index(made)
        assert asyncio.run(ingestion.with_vectors(index, watching))
        assert len(told) == times


def test_on_a_folder_where_no_parlour_would_find_the_files_nothing_is_taken_in(
    postgres: str, papers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARLOUR_DATABASE", postgres)
    monkeypatch.setenv("PARLOUR_SECRET", "the same for all")
    monkeypatch.setenv("PARLOUR_RETRIEVAL", "keyword")
    lamp = [str(papers / "lamp.md"), "--library", "Papers", "--lang", "en"]
    first = House(tmp_path / "first", postgres)
    assert ingest([*lamp, "--home", str(first.home)]) == 0, "no Parlour said yet where files are"
    with psycopg.connect(postgres) as connection:
        kept = connection.execute("SELECT count(*) FROM installation WHERE name = 'files'").fetchone()
    assert kept == (0,), "nor does the command say it"
    assert len(first.documents()) == 1  # a Parlour starts there
    capsys.readouterr()
    policy = [str(papers / "deep" / "policy.pdf"), "--library", "Papers", "--lang", "en"]
    assert ingest([*policy, "--home", str(tmp_path / "other")]) == 1
    said = capsys.readouterr().err
    assert f"elsewhere than in {tmp_path / 'other'}" in said
    assert "Set PARLOUR_FILES" in said
    assert len(first.documents()) == 1
    assert ingest([*policy, "--home", str(first.home)]) == 0
    assert len(first.documents()) == 2


@pytest.mark.parametrize("address", ["sqlite:///x", "x", "mysql://127.0.0.1/x"])
def test_a_database_of_another_kind_is_told_what_it_must_be(
    alone: House,
    papers: Path,
    address: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PARLOUR_DATABASE", address)
    monkeypatch.setitem(sys.modules, "core.storage.postgres_database", None)  # as where the extra is missing
    assert ingest([str(papers), "--library", "Papers", "--lang", "en"]) == 1
    said = capsys.readouterr().err
    assert "postgresql://" in said
    assert "extra" not in said
    assert not (alone.home / "parlour.db").exists()


@pytest.mark.parametrize(("lang", "part"), [("en", "cannot be read as UTF-8"), ("zh", "无法按 UTF-8 读取")])
def test_of_a_name_that_is_no_utf_8_that_is_said(
    alone: House,
    lang: str,
    part: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    try:
        (folder / "na\udcefve\x1b.md").write_text("The green lamp stands beside the door.")
    except (OSError, UnicodeError):  # this system takes no such name, but a disk of another one may bring it
        known, place = Files.items, str(folder / "na\ufffdve\x1b.md")
        monkeypatch.setattr(Files, "items", lambda self: [Item(place, Path(place).name, 38, "38 1"), *known(self)])
    (folder / "lamp.md").write_text("The red lamp is broken.")
    assert ingest([str(folder), "--library", "Papers", "--lang", lang]) == 1
    (line, *_) = capsys.readouterr().err.splitlines()
    assert part in line
    assert "na\ufffdve" in line
    assert line.isprintable()
    assert len(alone.documents()) == 1


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_is_no_source_is_said_in_a_sentence(
    alone: House, lang: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    nothing = [(str(tmp_path / one), "s3://bucket/prefix") for one in ("*.pdf", "empty", "empty/**/*.pdf", "not there")]
    for source, part in (*nothing, ("s3://B", "s3://bucket/papers")):
        assert ingest([source, "--library", "Papers", "--lang", lang]) == 1
        said = capsys.readouterr().err
        assert repr(source) in said
        assert len(said.splitlines()) == 1
        assert part in said
    with pytest.raises(SystemExit) as ended:
        ingest([str(tmp_path), "--library", "Papers", "--on", "mars"])
    assert ended.value.code == 2
    assert "local, ray, host:port or ray://host:port" in capsys.readouterr().err


def test_a_path_that_leads_nowhere_is_told_before_anything_is_opened(
    alone: House, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """To open a library may take most of a minute, where a model for vectors is loaded with it."""
    opened: list[Any] = []
    monkeypatch.setattr(ingestion, "opened_house", lambda *given, **_: opened.append(given))
    assert ingest([str(tmp_path / "nowhere"), "--library", "Papers"]) == 1
    assert "nowhere" in capsys.readouterr().err
    assert opened == []
    assert not alone.home.exists()


def test_without_ray_the_extra_that_brings_it_is_named(
    alone: House, papers: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert ingest([str(papers), "--library", "Papers", "--on", "ray"]) == 1
    said = capsys.readouterr().err
    assert "needs the extra 'bulk'" in said
    assert len(said.splitlines()) == 1


def many(folder: Path, count: int) -> Path:
    folder.mkdir()
    for number in range(count):
        (folder / f"{number:03}.md").write_text(f"# Lamp {number}\n\nLamp {number} stands beside door {number}.")
    return folder


def begun(home: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until something was taken in."""
    while True:
        assert process.poll() is None, process.communicate()
        if (home / "parlour.db").exists():
            with closing(sqlite3.connect(home / "parlour.db")) as db:
                try:
                    if db.execute("SELECT 1 FROM documents WHERE status = 'ready'").fetchone():
                        return
                except sqlite3.OperationalError:
                    pass  # its tables are being made
        time.sleep(0.01)  # between two looks


def interrupt(process: Terminal) -> int:
    process.interrupt()
    return process.returncode


def kill(process: Terminal) -> int:
    process.kill()
    return process.wait()


@pytest.mark.parametrize(("end", "code"), [(interrupt, 130), (kill, -9)])
def test_cut_short_it_leaves_whole_documents_and_goes_on(
    alone: House, tmp_path: Path, end: Callable[[Terminal], int], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, count = many(tmp_path / "lamps", 16), 16
    given = [str(folder), "--library", "Lamps"]
    command = ["ingest", *given, "--workers", "2"]
    with Terminal(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        begun(alone.home, process)
        assert end(process) == code
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
    with closing(sqlite3.connect(alone.home / "parlour.db")) as db:
        left = Counter(status for (status,) in db.execute("SELECT status FROM documents"))
        files = db.execute("SELECT count(*) FROM files").fetchone()[0]
    assert 0 < left["ready"] < count
    if code == 130:
        assert set(left) == {"ready"}, "what was begun is undone"
        assert files == left["ready"]
        kept = list((alone.home / "libraries" / folder_name(LOCAL_OWNER) / "originals").glob("*.json"))
        assert len(kept) == files
    assert ingest(given) == 0
    assert "there already" in capsys.readouterr().out
    there = alone.documents()
    assert len(there) == count
    assert Counter(one.status for one in there) == {"ready": count}
    assert len({one.name for one in there}) == count
