"""A library that several processes use, and one whose files were damaged."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import NoSpaceError, StorageError
from core.rag import ingest
from core.rag.document import Document
from core.rag.document_locks import Job
from core.rag.index_file import DamagedIndexError, IndexFile
from core.rag.ingest import Ingestor
from core.rag.library import Library
from core.rag.originals import FileInfo

Make = Callable[..., Path]
ROOT = Path(__file__).parents[3]


def test_several_processes_read_while_one_writes(tmp_path: Path) -> None:
    reader = (
        "import sys\n"
        "from core.rag.library import Library\n"
        "with Library.open(sys.argv[1]) as library:\n"
        "    seen = 0\n"
        "    while seen < 40:\n"
        "        found = len(library.find('lamp', 100))\n"
        "        assert found >= seen, (found, seen)\n"
        "        seen = found\n"
    )
    folder = tmp_path / "shared"
    with Library.open(folder) as library:
        readers = [
            subprocess.Popen([sys.executable, "-c", reader, str(folder)], env={"PYTHONPATH": str(ROOT)})
            for _ in range(2)
        ]
        for number in range(40):
            library.add_text(f"Lamp number {number}.", name=f"{number}.txt")
        assert [process.wait(60) for process in readers] == [0, 0]


def test_two_processes_write_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    writer = (
        "import sys\n"
        "from core.rag.library import Library\n"
        "with Library.open(sys.argv[1]) as library:\n"
        "    for number in range(25):\n"
        "        library.add_text(f'Lamp {sys.argv[2]} {number}.', name='a.txt')\n"
    )
    folder = tmp_path / "shared"
    writers = [
        subprocess.Popen([sys.executable, "-c", writer, str(folder), name], env={"PYTHONPATH": str(ROOT)})
        for name in "ab"
    ]
    assert [process.wait(60) for process in writers] == [0, 0]
    with Library.open(folder) as library:
        assert len(library.documents()) == 50
        assert len(library.find("lamp", 100)) == 50


@pytest.mark.parametrize(
    "damage",
    ["UPDATE chunk_terms_data SET block = x'0102030405'", "DELETE FROM chunk_terms_data", "DROP TABLE chunk_terms"],
)
def test_a_broken_search_index_is_built_anew(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "library"
    with Library.open(folder) as library:
        library.add_text("The lamp is green.", name="a.txt")
    with sqlite3.connect(folder / "library.sqlite") as db:
        db.execute(damage)
    db.close()
    with Library.open(folder) as library:
        assert [passage.text for passage in library.find("lamp")] == ["The lamp is green."]


@pytest.mark.parametrize("damage", ["rubbish", "half"])
def test_a_damaged_file_is_moved_aside_and_everything_read_again(tmp_path: Path, make_pdf: Make, damage: str) -> None:
    folder = tmp_path / "library"
    with Library.open(folder) as library:
        library.add(make_pdf("The lamp is green."), name="manual.pdf")
        library.add_text("The lamp was red.", name="note", page=4)
        before = {passage.text: (passage.document, passage.page) for passage in library.find("lamp")}
    file = folder / "library.sqlite"
    data = file.read_bytes()
    bad = b"rubbish" * 2000 if damage == "rubbish" else data[:512] + b"\xff" * (len(data) - 512)
    file.write_bytes(bad)
    with Library.open(folder) as library:
        assert {passage.text: (passage.document, passage.page) for passage in library.find("lamp")} == before
        assert library.page_picture(library.find("green")[0]).startswith(b"\x89PNG")
    assert (folder / "library.damaged-1.sqlite").read_bytes() == bad


@pytest.mark.parametrize("damage", ["rubbish", "given up"])
def test_of_several_that_find_the_file_damaged_one_moves_it_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    folder = tmp_path / "library"
    with Library.open(folder) as library:
        library.add_text("The lamp is green.", name="a.txt")
    if damage == "rubbish":
        (folder / "library.sqlite").write_bytes(b"rubbish" * 2000)
    else:
        (folder / "library.sqlite-given-up").touch()
    quicker: list[Library] = []

    class Slow(IndexFile):
        """Another one has opened the library when this one has found that its file is damaged."""

        def __init__(self, path: Path) -> None:
            try:
                super().__init__(path)
            except DamagedIndexError:
                monkeypatch.undo()
                quicker.append(Library.open(folder))
                raise

    monkeypatch.setattr(ingest, "IndexFile", Slow)
    with Library.open(folder) as library:
        (other,) = quicker
        with other:
            assert other.is_intact()
            other.add_text("The lamp was red.", name="b.txt")
            assert {one.text for one in library.find("lamp")} == {"The lamp is green.", "The lamp was red."}
    assert [one.name for one in folder.glob("library.damaged-*")] == ["library.damaged-1.sqlite"]
    assert not (folder / "library.sqlite-given-up").exists()


@pytest.mark.parametrize("end", [NoSpaceError("The disk is full."), KeyboardInterrupt()], ids=["full disk", "killed"])
def test_what_was_not_read_again_when_it_was_cut_short_is_so_at_the_next_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: BaseException
) -> None:
    folder = tmp_path / "library"
    with Library.open(folder) as library:
        all_of_them = {library.add_text(f"Lamp {number}.", name=f"{number}.txt").id for number in range(3)}
    (folder / "library.sqlite").write_bytes(b"rubbish" * 2000)
    reread = Ingestor.reread
    read: list[str] = []

    def cut_short(self: Ingestor, document_id: str, info: FileInfo, job: Job) -> Document:
        if len(read) == 1:
            raise end
        read.append(document_id)
        return reread(self, document_id, info, job)

    monkeypatch.setattr(Ingestor, "reread", cut_short)
    with pytest.raises(type(end)):
        Library.open(folder)
    read.append("no longer cut short")
    with Library.open(folder) as library:
        assert {document.id for document in library.documents()} == all_of_them
        assert len(library.find("lamp", 10)) == 3
    assert len(read) == 4  # each document once
    Library.open(folder).close()
    assert len(read) == 4


def test_a_library_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "library"
    Library.open(folder).close()
    with sqlite3.connect(folder / "library.sqlite") as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StorageError) as caught:
        Library.open(folder)
    assert caught.value.words_key == "library_newer"
    assert not (folder / "library.damaged-1.sqlite").exists()


def test_a_library_of_an_older_version_is_opened_and_grows(tmp_path: Path, make_pdf: Make) -> None:
    folder = tmp_path / "library"
    with Library.open(folder) as library:
        old = library.add(make_pdf("The lamp is green."))
    with sqlite3.connect(folder / "library.sqlite") as db:
        for column in ("scanned", "tables", "seconds"):
            db.execute(f"ALTER TABLE documents DROP COLUMN {column}")
        db.execute("PRAGMA user_version = 2")
    db.close()
    (tmp_path / "a.csv").write_text("lamp,colour\nfirst,red\n")
    with Library.open(folder) as library:
        (document,) = library.documents()
        assert (document.id, document.tables, document.seconds) == (old.id, 0, 0.0)
        new = library.add(tmp_path / "a.csv")
        assert (new.tables, new.scanned) == (1, 0)
        assert new.seconds > 0
    with Library.open(folder) as library:
        assert library.document(new.id) == new
        assert {passage.document for passage in library.find("lamp")} == {"made.pdf", "a.csv"}
    assert not (folder / "library.damaged-1.sqlite").exists()
