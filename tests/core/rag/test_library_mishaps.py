"""What else happens to a document on its way in: killed processes, full disks, lost files, links."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from core.errors import DocumentError, NoSpaceError, NotFoundError, StorageError
from core.rag.index_file import IndexFile
from core.rag.library import Library
from core.rag.parsers import process
from core.rag.parsers.base import ParseOptions
from core.rag.parsers.process import Limits

Make = Callable[..., Path]
ROOT = Path(__file__).parents[3]
PAGES = 40


@pytest.fixture
def long_pdf(make_pdf: Make) -> Path:
    return make_pdf(*[f"Page {n} tells of lamp {n}." for n in range(1, PAGES + 1)], name="long.pdf")


def test_what_a_killed_process_left_is_found_and_then_read_to_its_end_from_there(
    tmp_path: Path, long_pdf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = (
        "import os, signal, sys\n"
        "from core.rag.library import Library\n"
        "library = Library.open(sys.argv[1])\n"
        "library.add(sys.argv[2], progress=lambda said: said.chunks and os.kill(os.getpid(), signal.SIGKILL))\n"
    )
    folder = tmp_path / "library"
    done = subprocess.run([sys.executable, "-c", script, folder, long_pdf], env={"PYTHONPATH": str(ROOT)}, check=False)
    assert done.returncode == -9
    with Library.open(folder) as library:
        (left,) = library.documents()
        assert (left.status, left.pages) == ("reading", PAGES)
        assert 0 < left.chunks < PAGES
        assert len(library.find("lamp", 100)) == left.chunks
        begun: list[int] = []
        stream = process.stream

        def noted(path: Path, name: str, parser: str, limits: Limits, asked: ParseOptions, **more: Any) -> Any:
            begun.append(asked.first_page)
            return stream(path, name, parser, limits, asked, **more)

        monkeypatch.setattr(process, "stream", noted)
        document = library.add(long_pdf)
        assert begun[0] in {left.chunks, left.chunks + 1}
        assert (document.status, document.chunks) == ("ready", PAGES)
        assert len(library.find("lamp", 100)) == PAGES
        assert sorted(passage.page or 0 for passage in library.find("lamp", 100)) == list(range(1, PAGES + 1))


def test_what_a_killed_process_left_can_be_taken_out(tmp_path: Path, long_pdf: Path) -> None:
    folder = tmp_path / "library"
    with Library.open(folder) as library:
        document = library.add(long_pdf)
    with sqlite3.connect(folder / "library.sqlite") as db:
        db.execute("UPDATE documents SET status = 'reading'")
    db.close()
    with Library.open(folder) as library:
        library.remove(document.id)
        assert library.documents() == []
        assert library.find("lamp") == []
        assert list((folder / "originals").iterdir()) == []


def test_a_lost_index_forgets_what_a_killed_process_left_and_it_is_read_anew(tmp_path: Path, long_pdf: Path) -> None:
    folder = tmp_path / "library"
    with Library.open(folder) as library:
        library.add_text("The lantern is green.", name="a.txt")
        document = library.add(long_pdf)
    (folder / "originals" / f"{document.id}.json").unlink()  # it is written last
    (folder / "library.sqlite").write_bytes(b"rubbish" * 2000)
    with Library.open(folder) as library:
        assert [one.name for one in library.documents()] == ["a.txt"]
        assert library.add(long_pdf).chunks == PAGES
        assert len(library.find("lamp", 100)) == PAGES


def test_a_file_that_is_deleted_while_it_is_read_is_read_to_its_end(library: Library, long_pdf: Path) -> None:
    document = library.add(long_pdf, progress=lambda _: long_pdf.unlink(missing_ok=True))
    assert (document.status, document.chunks) == ("ready", PAGES)
    assert not long_pdf.exists()


def test_a_disk_that_fills_while_a_document_is_read_keeps_the_others(
    library: Library, tmp_path: Path, long_pdf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.add_text("The lantern is green.", name="a.txt")
    writing = IndexFile.writing
    full: list[bool] = []

    @contextmanager
    def bounded(self: IndexFile) -> Iterator[sqlite3.Connection]:
        with writing(self) as db:
            size = db.execute("PRAGMA page_count").fetchone()[0] if full else 1 << 30
            db.execute(f"PRAGMA max_page_count = {size}")
            yield db

    monkeypatch.setattr(IndexFile, "writing", bounded)
    with pytest.raises(NoSpaceError):
        library.add(long_pdf, progress=lambda said: full.append(True) if said.chunks else None)
    assert full
    assert [document.name for document in library.documents()] == ["a.txt"]
    assert library.find("lamp") == []
    assert library.find("lantern")
    originals = [path.name for path in (tmp_path / "library" / "originals").iterdir()]
    assert len(originals) == 2  # those of the other
    full.clear()
    assert library.add(long_pdf).status == "ready"


def test_a_document_is_read_where_what_is_shown_of_it_cannot_be_kept(
    library: Library, tmp_path: Path, long_pdf: Path
) -> None:
    (tmp_path / "library" / "pictures").write_bytes(b"a file where a folder should be")
    document = library.add(long_pdf)
    assert (document.status, document.chunks) == ("ready", PAGES)
    with pytest.raises(StorageError) as caught:
        library.pages.content(document.id, 1)
    assert str(tmp_path) not in str(caught.value)


def test_what_goes_wrong_while_the_index_is_used_leaves_no_connection_open(tmp_path: Path) -> None:
    file = IndexFile(tmp_path / "library.sqlite")
    used: list[sqlite3.Connection] = []
    for use in (file.reading, file.writing):
        with pytest.raises(ValueError, match="wrong"), use() as db:
            used.append(db)
            raise ValueError("wrong")
    for db in used:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            db.execute("SELECT 1")
    with file.reading() as db:
        assert db.execute("SELECT count(*) FROM documents").fetchone() == (0,)
    file.close()


def test_a_page_that_is_drawn_while_its_document_is_taken_out_is_not_kept(
    library: Library, tmp_path: Path, long_pdf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = library.add(long_pdf)

    def drawn(*_: object) -> bytes:
        library.remove(document.id)
        return b"a picture"

    monkeypatch.setattr("core.rag.pages.process.picture", drawn)
    assert library.page_image(document.id, 1) == b"a picture"
    assert not (tmp_path / "library" / "pictures" / document.id).exists()


def test_what_others_take_out_while_it_is_listed_keeps_nothing_from_being_opened_or_shown(
    tmp_path: Path, long_pdf: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("core.rag.pages.process.picture", lambda *_: b"a picture")
    originals = tmp_path / "library" / "originals"
    originals.mkdir(parents=True)
    (originals / f"{'0' * 64}.json").symlink_to("gone")  # a name that leads nowhere by the time it is looked at
    with Library.open(tmp_path / "library") as library:
        document = library.add(long_pdf)
        pictures = tmp_path / "library" / "pictures" / document.id
        (pictures / "1-50.png").symlink_to("gone")
        assert library.page_image(document.id, 1) == b"a picture"
        assert sorted(one.name for one in pictures.glob("*.png") if one.is_file()) == ["1-200.png"]
    assert "not kept" not in caplog.text


def test_copies_that_a_killed_process_left_are_deleted_after_a_day(tmp_path: Path) -> None:
    folder = tmp_path / "library" / "originals"
    folder.mkdir(parents=True)
    for name in (".old", ".new"):
        (folder / name).write_bytes(b"half a file")
    os.utime(folder / ".old", (1, 1))
    with Library.open(tmp_path / "library") as library:
        document = library.add_text("The lamp is green.", name="a.txt")
    assert sorted(path.name for path in folder.iterdir()) == [".new", document.id, f"{document.id}.json"]


def test_removing_what_is_not_there_says_so(library: Library) -> None:
    for document_id in ("a" * 64, "../library.sqlite", ""):
        with pytest.raises(NotFoundError):
            library.remove(document_id)


def test_links_are_followed_to_files_alone(library: Library, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The lamp is green.")
    (tmp_path / "link.txt").symlink_to(tmp_path / "a.txt")
    (tmp_path / "folder").symlink_to(tmp_path)
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    (tmp_path / "round").symlink_to(tmp_path / "round")
    (tmp_path / "device").symlink_to(os.devnull)
    document = library.add(tmp_path / "link.txt")
    assert not (tmp_path / "library" / "originals" / document.id).is_symlink()
    for name, error in (("folder", DocumentError), ("nowhere", NotFoundError), ("round", NotFoundError)):
        with pytest.raises(error):
            library.add(tmp_path / name)
    with pytest.raises(DocumentError):
        library.add(tmp_path / "device")
    assert len(library.documents()) == 1
