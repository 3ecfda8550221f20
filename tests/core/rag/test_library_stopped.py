"""A reading that is stopped keeps what was read, and the rest can be read later."""

from __future__ import annotations

import sqlite3
import subprocess
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pymupdf
import pytest
import xlsxwriter

from core.errors import DocumentError
from core.rag.document import Block, Document, ReadingProgress
from core.rag.library import Library
from core.rag.parsers import process
from core.rag.parsers.base import ParseOptions
from core.rag.parsers.catalog import PARSER_REGISTRY, PDF_READERS

Make = Callable[..., Path]
PAGES = 40


@pytest.fixture(autouse=True)
def step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read is searchable, and told of, at once: it can be stopped anywhere."""
    monkeypatch.setattr("core.rag.draft._LONGEST_WAIT", 0.0)
    monkeypatch.setattr("core.rag.document_locks._POLL", 0.0)


@pytest.fixture
def long_pdf(make_pdf: Make) -> Path:
    """Headings, and two paragraphs a page that are a chunk together."""
    toc = [[1, "Beginnings", 1], [2, "Early lamps", 3], [1, "Ends", 30]]
    return make_pdf(*[f"Page {n} tells of lamp {n}." for n in range(1, PAGES + 1)], name="long.pdf", toc=toc)


def stopped_at(library: Library, path: Path, chunks: int = 9, **options: Any) -> tuple[Document, list[ReadingProgress]]:
    """Read until a search finds so many chunks; how far it was said to be."""
    enough = threading.Event()
    said: list[ReadingProgress] = []

    def progress(now: ReadingProgress) -> None:
        said.append(now)
        if now.chunks >= chunks:
            enough.set()

    return library.add(path, progress=progress, enough=enough, **options), said


def kept_in(folder: Path) -> list[tuple[Any, ...]]:
    """Every chunk with its place."""
    db = sqlite3.connect(folder / "library.sqlite")
    try:
        return db.execute(
            "SELECT position, text, page, heading, rectangles, overlap FROM chunks ORDER BY id"
        ).fetchall()
    finally:
        db.close()


def test_what_was_read_of_a_stopped_document_is_found_and_shown(tmp_path: Path, long_pdf: Path) -> None:
    with Library.open(tmp_path / "library") as library:
        document, said = stopped_at(library, long_pdf)
        assert (document.status, document.pages) == ("stopped", PAGES)
        assert 0 < document.chunks < PAGES
        assert said[-1].pages in {document.chunks, document.chunks - 1}
        assert said[-1].total == PAGES
    with Library.open(tmp_path / "library") as library:  # also after a restart
        assert library.documents() == [document]
        found = library.find("lamp", 100)
        assert sorted(passage.page or 0 for passage in found) == list(range(1, document.chunks + 1))
        assert library.page_picture(found[0], 1.0).startswith(b"\x89PNG")
        assert library.pages.content(document.id, 1).blocks[0].text == "Page 1 tells of lamp 1."


def test_the_rest_is_read_from_where_it_was_stopped_and_is_as_if_it_never_was(
    tmp_path: Path, long_pdf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    stream = process.stream

    def counted(path: Path, name: str, parser: str, limits: Any, asked: Any, **options: Any) -> Any:
        begun.append(asked.first_page)
        return stream(path, name, parser, limits, asked, **options)

    monkeypatch.setattr(process, "stream", counted)
    with Library.open(tmp_path / "whole") as library:
        whole = library.add(long_pdf)
    with Library.open(tmp_path / "library") as library:
        first, _ = stopped_at(library, long_pdf)
        ids = [passage.chunk_id for passage in library.pages.chunks(first.id)]
        second, _ = stopped_at(library, long_pdf, 20)
        assert 9 <= first.chunks < second.chunks < PAGES
        document = library.add(long_pdf, name="renamed.pdf")
        assert (document.status, document.chunks, document.name) == ("ready", PAGES, "renamed.pdf")
        assert [passage.chunk_id for passage in library.pages.chunks(first.id)][: len(ids)] == ids
        assert library.pages.content(first.id, 2).blocks[-1].text == "Page 2 tells of lamp 2."
        assert library.page_size(first.id, PAGES) == (400, 500)
        assert [one.name for one in library.documents()] == ["renamed.pdf"]
    assert begun[:2] == [1, 1]
    assert first.chunks <= begun[2] <= first.chunks + 1
    assert second.chunks <= begun[3] <= second.chunks + 1
    assert document.seconds > second.seconds > first.seconds
    assert kept_in(tmp_path / "library") == kept_in(tmp_path / "whole")
    assert whole.tables == document.tables


def test_the_rest_of_a_text_is_what_was_not_found_before(tmp_path: Path) -> None:
    text = tmp_path / "long.md"
    text.write_text("\n\n".join(f"# Lamp {n}\n\nIt burns {n} hours." for n in range(60)))
    with Library.open(tmp_path / "whole") as library:
        chunks = library.add(text).chunks
    with Library.open(tmp_path / "library") as library:
        document, _ = stopped_at(library, text)
        assert document.status == "stopped"
        assert document.chunks < chunks
        assert library.add(text).status == "ready"
    assert kept_in(tmp_path / "library") == kept_in(tmp_path / "whole")


def test_the_rest_of_an_encrypted_document_is_read_without_its_password(library: Library, make_pdf: Make) -> None:
    texts = [f"Page {n} tells of lamp {n}." for n in range(1, PAGES + 1)]
    secret = make_pdf(*texts, name="secret.pdf", encryption=5, user_pw="open", owner_pw="open")
    assert stopped_at(library, secret, password="open")[0].status == "stopped"
    assert library.add(secret).status == "ready"
    assert len(library.find("lamp", 100)) == PAGES


def test_what_goes_wrong_with_the_rest_leaves_what_was_there(library: Library, long_pdf: Path) -> None:
    document, _ = stopped_at(library, long_pdf)
    popen: Any = subprocess.Popen

    def dies(command: list[str], **options: Any) -> Any:
        return popen([command[0], "-c", "import os; os.abort()"], **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process.subprocess, "Popen", dies)
        with pytest.raises(DocumentError):
            library.add(long_pdf)
    assert [(one.status, one.chunks) for one in library.documents()] == [("stopped", document.chunks)]
    assert len(library.find("lamp", 100)) == document.chunks
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(DocumentError):
        library.add(long_pdf, cancelled=cancelled)
    assert len(library.find("lamp", 100)) == document.chunks
    assert library.add(long_pdf).chunks == PAGES


@pytest.mark.parametrize("kind", ["pdf", "md"])
def test_what_is_stopped_again_before_anything_new_is_found_is_as_it_was(
    library: Library, tmp_path: Path, long_pdf: Path, kind: str
) -> None:
    text = tmp_path / "long.md"
    text.write_text("\n\n".join(f"# Lamp {n}\n\nIt burns {n} hours." for n in range(60)))
    path = long_pdf if kind == "pdf" else text
    document, _ = stopped_at(library, path)
    page = 7 if kind == "pdf" else None
    shown = replace(library.pages.content(document.id, page), letters=None)
    for _ in range(2):
        with pytest.raises(DocumentError) as caught:
            stopped_at(library, path, 0)
        assert caught.value.words_key == "document_cancelled"
        assert [(one.status, one.chunks) for one in library.documents()] == [("stopped", document.chunks)]
        assert replace(library.pages.content(document.id, page), letters=None) == shown
    assert library.add(path).status == "ready"


def test_what_is_stopped_before_anything_is_found_leaves_nothing(library: Library, long_pdf: Path) -> None:
    enough = threading.Event()
    enough.set()
    with pytest.raises(DocumentError) as caught:
        library.add(long_pdf, enough=enough)
    assert caught.value.words_key == "document_cancelled"
    assert library.documents() == []


def test_a_stopped_document_can_be_taken_out(library: Library, tmp_path: Path, long_pdf: Path) -> None:
    document, _ = stopped_at(library, long_pdf)
    library.remove(document.id)
    assert library.documents() == []
    assert library.find("lamp") == []
    assert list((tmp_path / "library" / "originals").iterdir()) == []


def test_what_is_read_anew_and_stopped_stays_whole(library: Library, long_pdf: Path) -> None:
    document = library.add(long_pdf)
    enough = threading.Event()
    with pytest.raises(DocumentError) as caught:
        library.add(long_pdf, again=True, enough=enough, progress=lambda _: enough.set())
    assert caught.value.words_key == "document_cancelled"
    assert library.documents() == [document]
    assert len(library.find("lamp", 100)) == PAGES


@pytest.mark.parametrize("reader", PDF_READERS)
def test_the_rest_of_a_pdf_does_not_begin_with_the_head_that_runs_over_its_pages(tmp_path: Path, reader: str) -> None:
    path = tmp_path / "heads.pdf"
    document: Any = pymupdf.open()
    for number in range(1, PAGES + 1):
        page = document.new_page(width=400, height=500)
        page.insert_text((40, 24), f"Of lamps and their oil | {number}", fontsize=8)
        page.insert_text((40, 120), f"Page {number} tells of lamp {number}.", fontsize=10)
    document.save(path)
    parser = PARSER_REGISTRY[PDF_READERS[reader][0]]()

    def texts(first: int) -> list[str]:
        found = parser.parse(path, path.name, ParseOptions(first_page=first))
        return [one.text for one in found if isinstance(one, Block)]

    assert texts(1)[:2] == ["Of lamps and their oil | 1", "Page 1 tells of lamp 1."]
    assert texts(20) == [f"Page {number} tells of lamp {number}." for number in range(20, PAGES + 1)]


def rows_of(kind: str, folder: Path, rows: int) -> Path:
    path = folder / f"long.{kind}"
    if kind == "csv":
        path.write_text("Ship,Tons\n" + "".join(f"Heron {at},{at}\n" for at in range(rows)), "utf-8")
        return path
    with xlsxwriter.Workbook(str(path), {"constant_memory": True}) as book:
        sheet = book.add_worksheet("Cargo")
        for at in range(rows):
            sheet.write_row(at, 0, [f"Heron {at}", at])
    return path


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_a_long_sheet_tells_at_which_row_it_is_and_its_reader_ends_when_it_is_called_off(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Any] = []
    opened: Any = subprocess.Popen

    def noted(*given: Any, **more: Any) -> Any:
        started.append(opened(*given, **more))
        return started[-1]

    monkeypatch.setattr(process.subprocess, "Popen", noted)
    path, cancelled, said = rows_of(kind, tmp_path, 30_000), threading.Event(), list[ReadingProgress]()

    def progress(now: ReadingProgress) -> None:
        said.append(now)
        if now.row >= 15_000:
            cancelled.set()

    with Library.open(tmp_path / "library") as library:
        with pytest.raises(DocumentError) as raised:
            library.add(path, progress=progress, cancelled=cancelled)
        assert raised.value.words_key == "document_cancelled"
        assert not library.documents(), "nothing of it stays"
    rows = [one.row for one in said if one.rows]
    assert rows == sorted(rows)
    assert 15_000 <= rows[-1] < 30_000
    assert {one.rows for one in said if one.rows} == {30_000 + (kind == "csv")}
    assert all(one.poll() is not None for one in started), "the reader is gone"
