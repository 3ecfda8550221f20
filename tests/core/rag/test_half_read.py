"""Who reads a document on that another reader left in the middle begins behind the pages that were read whole."""

from __future__ import annotations

import hashlib
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from core.errors import DocumentError, NotFoundError
from core.rag import half_read
from core.rag.document import About, Block, Document, PageShape, ReadingProgress, table
from core.rag.draft import Piece
from core.rag.half_read import KeptPages, found_on
from core.rag.ingest import Ingestor
from core.rag.library import Library
from core.rag.page_content import PageContent
from core.rag.parsers import process
from core.rag.parsers.base import Invisible, ParseOptions, Scanned
from core.rag.shelf import Shelf
from tests.grown_postgres import migrated_postgres, postgres_server
from tests.grown_shelves import shelves

__all__ = ["migrated_postgres", "postgres_server", "shelves"]

PAGES = 5
_NUMBERS = count()


class KilledError(BaseException):
    """The process ends here: nothing is tidied up."""


class Scan:
    """A scan whose words are recognised page by page, and how often each was."""

    def __init__(self) -> None:
        self.read: list[int] = []

    def stream(self, _path: Path, _name: str, _parser: str, _limits: Any, asked: ParseOptions, **_: Any) -> Any:
        yield About(PAGES, "Of lamps")
        for page in range(asked.first_page, PAGES + 1):
            self.read.append(page)
            yield Scanned(page)
            yield PageShape(page, 400.0, 500.0, (1.0, 2.0, 3.0, 4.0))
            if page % 3 == 1:
                yield Block("heading", f"Part {page}", page, level=1)
            yield Block("paragraph", f"Page {page} tells of lamp {page}. {'It burns. ' * 150}", page)
            yield Block("figure", f"Figure {page}: A lamp", page, ((0, (5.0, 5.0, 9.0, 9.0)),), source="page")
            yield table([("Lamp", "Hours"), (str(page), "9")], page)
            yield Invisible(2)


@pytest.fixture
def scan(monkeypatch: pytest.MonkeyPatch) -> Scan:
    """Is read whatever file is read, and what was read is stored after each step."""
    made = Scan()
    monkeypatch.setattr(process, "stream", made.stream)
    monkeypatch.setattr("core.rag.draft._LONGEST_WAIT", -1.0)
    monkeypatch.setattr("core.rag.document_locks._POLL", 0.0)
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "scan.pdf"
    path.write_bytes(b"%PDF-1.7 as far as anybody looks")
    return path


@pytest.fixture(params=["embedded", "grown"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], Library]]:
    """Opens a library by its name, as another process would; one in PostgreSQL from another machine."""
    made: list[Library] = []
    all_shelves: Any = request.getfixturevalue("shelves") if request.param == "grown" else None
    run = next(_NUMBERS)

    def open_one(name: str) -> Library:
        shelf: Shelf | None = all_shelves.of(f"half read {run} {name}") if all_shelves else None
        folder = tmp_path / (f"{name} {len(made)}" if shelf else name)
        made.append(Library.open(folder, shelf=shelf))
        return made[-1]

    yield open_one
    for one in made:
        one.close()


@pytest.fixture
def tiff(tmp_path: Path) -> Path:
    path = tmp_path / "scan.tiff"
    path.write_bytes(b"II*\0 as far as anybody looks")
    return path


def shelf_of(library: Library) -> Shelf:
    return library._shelf  # pyright: ignore[reportPrivateUsage]


def content_of(library: Library) -> Any:
    (document,) = library.documents()
    shelf = shelf_of(library)
    passages = [replace(one, chunk_id=0) for one in shelf.whole([document.id])]
    return replace(document, seconds=0.0), passages, shelf.figures([document.id]), shelf.last_page(document.id)


def killed_after(library: Library, file: Path, pieces: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Read until so many pieces are stored, and no further; whether there were so many."""
    shelf, stored = shelf_of(library), count(1)
    put = shelf.put

    def counted(*given: Any, **more: Any) -> Document | None:
        kept = put(*given, **more)
        if next(stored) == pieces:
            raise KilledError
        return kept

    with monkeypatch.context() as patch:
        patch.setattr(shelf, "put", counted)
        patch.setattr(Ingestor, "_discard", lambda *_: None)
        try:
            library.add(file)
        except KilledError:
            return True
    return False


def test_a_reader_that_is_killed_after_any_piece_leaves_the_rest_to_the_next_one(
    scan: Scan, file: Path, opened: Callable[[str], Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = opened("whole")
    pieces = 0
    put = shelf_of(whole).put

    def counted(*given: Any, **more: Any) -> Document | None:
        nonlocal pieces
        pieces += 1
        return put(*given, **more)

    monkeypatch.setattr(shelf_of(whole), "put", counted)
    whole.add(file)
    assert scan.read == list(range(1, PAGES + 1))
    assert pieces > PAGES
    for at in range(1, pieces, 4):
        name = f"killed {at}"
        scan.read.clear()
        assert killed_after(opened(name), file, at, monkeypatch)
        (left,) = opened(name).documents()
        whole_pages, before = max(0, len(scan.read) - 1), [*scan.read]
        scan.read.clear()
        library = opened(name)
        library.add(file)
        assert content_of(library) == content_of(whole), at
        assert not shelf_of(library).half_read(left.id), "it is of no use any more"
        again = [one for one in scan.read if one in before]
        assert len(again) <= 2, (at, before, scan.read)
        assert scan.read == list(range(scan.read[0] if scan.read else PAGES, PAGES + 1))
        assert whole_pages < 2 or scan.read[:1] != [1], "what was whole is not read again"


def test_each_of_many_readers_that_are_killed_brings_it_further(
    scan: Scan, file: Path, opened: Callable[[str], Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    times = 0
    while killed_after(opened("often"), file, 10, monkeypatch):
        times += 1
        assert times < 3 * PAGES, "it goes on"
    assert times > 2
    library = opened("often")
    opened("whole").add(file)
    assert content_of(library) == content_of(opened("whole"))
    assert len(scan.read) < PAGES + PAGES + 2 * times


def test_what_was_stopped_is_read_on_from_its_pages_on_any_machine(
    scan: Scan, file: Path, opened: Callable[[str], Library]
) -> None:
    enough = threading.Event()

    def told(now: ReadingProgress) -> None:
        if now.chunks > 9:
            enough.set()

    first = opened("stopped")
    stopped = first.add(file, progress=told, enough=enough)
    assert stopped.status == "stopped"
    read = max(scan.read)
    assert read > 2
    scan.read.clear()
    enough.clear()
    second = opened("stopped")
    second.add(file)
    assert scan.read[0] in {read - 1, read}
    opened("whole").add(file)
    assert content_of(second) == content_of(opened("whole"))


def test_one_that_is_stopped_before_it_comes_further_keeps_what_was_left(
    scan: Scan, file: Path, opened: Callable[[str], Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert killed_after(opened("left"), file, 20, monkeypatch)
    (left,) = opened("left").documents()
    enough = threading.Event()
    library = opened("left")
    stopped = library.add(file, progress=lambda _: enough.set(), enough=enough)
    assert (stopped.status, stopped.chunks) == ("stopped", left.chunks)
    scan.read.clear()
    assert opened("left").add(file).status == "ready"
    assert scan.read[0] > 1
    opened("whole").add(file)
    assert content_of(opened("left")) == content_of(opened("whole"))


def test_what_is_called_off_or_taken_out_leaves_no_page(
    file: Path, scan: Scan, opened: Callable[[str], Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert killed_after(opened("gone"), file, 20, monkeypatch)
    library = opened("gone")
    (left,) = library.documents()
    assert shelf_of(library).half_read(left.id)
    cancelled = threading.Event()
    with pytest.raises(DocumentError):
        library.add(file, progress=lambda _: cancelled.set(), cancelled=cancelled)
    assert library.documents() == []
    assert shelf_of(library).half_read(left.id) == []
    assert killed_after(opened("gone"), file, 20, monkeypatch)
    library.remove(left.id)
    assert shelf_of(library).half_read(left.id) == []
    assert scan.read


def test_another_program_begins_anew_and_so_does_one_that_finds_them_damaged(
    scan: Scan, file: Path, opened: Callable[[str], Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened("whole").add(file)
    for change in ("program", "damage"):
        assert killed_after(opened(change), file, 20, monkeypatch)
        library = opened(change)
        (left,) = library.documents()
        shelf = shelf_of(library)
        if change == "program":
            monkeypatch.setattr(half_read, "_program", lambda: "another")
        else:
            kept = shelf.half_read
            torn = [replace(one, data=one.data[:-5]) for one in kept(left.id)]
            monkeypatch.setattr(shelf, "half_read", lambda _, torn=torn: torn)
        scan.read.clear()
        library.add(file)
        assert scan.read == list(range(1, PAGES + 1))
        assert content_of(library) == content_of(opened("whole"))


def test_damaged_pages_of_a_stopped_one_do_not_stop_it_for_ever(
    scan: Scan, file: Path, opened: Callable[[str], Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    enough = threading.Event()

    def told(now: ReadingProgress) -> None:
        if now.chunks > 9:
            enough.set()

    first = opened("torn")
    assert first.add(file, progress=told, enough=enough).status == "stopped"
    library = opened("torn")
    shelf = shelf_of(library)
    torn = [replace(one, data=one.data[:-5]) for one in shelf.half_read(library.documents()[0].id)]
    assert torn
    monkeypatch.setattr(shelf, "half_read", lambda _: torn)
    assert library.add(file).status == "ready"
    opened("whole").add(file)
    assert content_of(library) == content_of(opened("whole"))
    assert scan.read
    with pytest.raises(DocumentError, match="damaged"):
        list(found_on(torn))


def test_who_reads_from_the_beginning_leaves_no_page_of_an_earlier_reading(opened: Callable[[str], Library]) -> None:
    shelf = shelf_of(opened("anew"))
    document = Document("d", "scan.pdf", "application/pdf", 5, 0, "reading")
    readings = [KeptPages(3, "old", b"1", True), KeptPages(2, "new", b"2", True), KeptPages(4, "new", b"3")]
    for number, kept in enumerate(readings):
        shelf.put(Piece(document, [], [], kept=kept), is_first=not number)
    assert [(one.last, one.by) for one in shelf.half_read("d")] == [(2, "new"), (4, "new")]


def test_no_more_is_kept_than_fits_and_what_follows_is_read_again(
    scan: Scan, file: Path, opened: Callable[[str], Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(half_read, "MOST", 600)
    assert killed_after(opened("large"), file, 22, monkeypatch)
    library = opened("large")
    (left,) = library.documents()
    kept: list[KeptPages] = shelf_of(library).half_read(left.id)
    assert 0 < sum(len(one.data) for one in kept) <= 600
    assert kept[-1].last < max(scan.read) - 1
    assert zlib.decompress(kept[0].data)
    scan.read.clear()
    library.add(file)
    assert scan.read == list(range(kept[-1].last + 1, PAGES + 1))
    opened("whole").add(file)
    assert content_of(library) == content_of(opened("whole"))


@pytest.mark.parametrize("kind", ["file", "tiff"])
def test_a_page_that_was_read_is_there_with_its_places_while_the_next_ones_are_read(
    kind: str, scan: Scan, opened: Callable[[str], Library], request: pytest.FixtureRequest
) -> None:
    path: Path = request.getfixturevalue(kind)
    library, other = opened("read"), opened("read")
    document_id = hashlib.sha256(path.read_bytes()).hexdigest()
    seen: dict[int, tuple[int, PageContent]] = {}

    def told(_: ReadingProgress) -> None:
        for page in range(1, PAGES + 1):
            with suppress(NotFoundError):
                seen.setdefault(page, (len(scan.read), other.pages.content(document_id, page)))

    assert library.add(path, progress=told).status == "ready"
    for page in range(1, PAGES):
        reached, content = seen[page]
        assert reached == page + 1, "as soon as the next one is begun"
        assert content == library.pages.content(document_id, page)
        assert any(block.lines for block in content.blocks)


def test_damaged_pages_are_shown_once_all_is_read(
    scan: Scan, file: Path, opened: Callable[[str], Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert killed_after(opened("torn"), file, 20, monkeypatch)
    library = opened("torn")
    shelf = shelf_of(library)
    (left,) = library.documents()
    assert library.pages.content(left.id, 1).blocks
    torn = [replace(one, data=one.data[:-5]) for one in shelf.half_read(left.id)]
    with monkeypatch.context() as patch:
        patch.setattr(shelf, "half_read", lambda *_: torn)
        with pytest.raises(NotFoundError):
            library.pages.content(left.id, 1)
    library.add(file)
    assert library.pages.content(left.id, 1).blocks
    assert scan.read


def test_a_picture_of_many_pages_is_read_on_behind_the_last_whole_one(
    scan: Scan, tiff: Path, opened: Callable[[str], Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened("whole").add(tiff)
    assert killed_after(opened("killed"), tiff, 20, monkeypatch)
    before = max(scan.read[PAGES:])
    assert before > 2
    scan.read.clear()
    opened("killed").add(tiff)
    assert scan.read[0] in {before - 1, before}
    assert content_of(opened("killed")) == content_of(opened("whole"))
