"""Scans of one document are recognised on several cores, and read as one core would read them."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import BrokenDocumentError
from core.rag.document import Block
from core.rag.parsers import ocr, scans_ahead
from core.rag.parsers.base import ParseOptions, Scanned
from core.rag.parsers.ocr import Recognised, Sheet
from core.rag.parsers.pdf import PdfParser
from core.rag.parsers.pdf_page import RawPage, Runs
from core.rag.parsers.scans_ahead import allowed_cores, threads

GIGA = 1_000_000_000
TEXT = "This page has letters of its own, more than a page with a stamp has, and is recognised by nobody."


@pytest.fixture
def document(tmp_path: Path) -> Path:
    """Pages 1 to 6: each a picture as dark as its number, but for the fourth, which has text."""
    import pymupdf

    made = pymupdf.open()
    for number in range(1, 7):
        page = made.new_page(width=200, height=100)
        if number == 4:
            page.insert_textbox(page.rect, TEXT, fontsize=8)
            continue
        picture = pymupdf.Pixmap(pymupdf.csRGB, pymupdf.IRect(0, 0, 40, 20), False)
        picture.clear_with(10 * number)
        page.insert_image(page.rect, pixmap=picture)
    path = tmp_path / "scans.pdf"
    made.save(path)
    return path


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    def at_once(number: int) -> None:
        monkeypatch.setattr(scans_ahead, "threads", lambda: number)

    return at_once


def recognising(monkeypatch: pytest.MonkeyPatch, seen: Callable[[int], object]) -> None:
    """What stands on a page is its number, as the picture tells it."""

    def recognise(samples: bytes, width: int, height: int) -> Sheet:
        number = round(samples[0] / 10)
        seen(number)
        return Sheet([Recognised(f"Page number {number}.", (5, 5, width - 5, height / 2))], 0, 1.0)

    monkeypatch.setattr(ocr, "recognise", recognise)


def told(path: Path) -> list[tuple[int | None, str] | int]:
    found = PdfParser().parse(path, "scans.pdf", ParseOptions(pictures=True))
    return [
        one.page if isinstance(one, Scanned) else (one.page, " ".join(one.text.split()))
        for one in found
        if isinstance(one, Scanned) or (isinstance(one, Block) and one.kind != "figure")
    ]


def expected() -> list[tuple[int | None, str] | int]:
    scans = [[number, (number, f"Page number {number}.")] for number in range(1, 7)]
    scans[3] = [(4, TEXT)]
    return [one for page in scans for one in page]


@pytest.mark.parametrize("number", [1, 2, 4])
def test_pages_come_in_their_order_by_as_many_threads_as_there_are(
    document: Path, monkeypatch: pytest.MonkeyPatch, at_once: Callable[[int], None], number: int
) -> None:
    recognising(monkeypatch, lambda _: None)
    at_once(number)
    assert told(document) == expected()
    assert not [one.name for one in threading.enumerate() if one.name.startswith("scan")]


def test_pages_are_recognised_at_the_same_time(
    document: Path, monkeypatch: pytest.MonkeyPatch, at_once: Callable[[int], None]
) -> None:
    together = threading.Barrier(2)
    recognising(monkeypatch, lambda page: page < 3 and together.wait(30))
    at_once(2)
    assert told(document) == expected()


def test_no_more_scans_are_recognised_than_a_document_may_have(
    document: Path, monkeypatch: pytest.MonkeyPatch, at_once: Callable[[int], None]
) -> None:
    seen = list[int]()
    recognising(monkeypatch, seen.append)
    monkeypatch.setattr(ocr, "MOST_PAGES", 2)
    at_once(4)
    assert [one for one in told(document) if isinstance(one, int)] == [1, 2] == sorted(seen)


def test_a_page_that_cannot_be_drawn_is_told_at_its_turn(
    document: Path, monkeypatch: pytest.MonkeyPatch, at_once: Callable[[int], None]
) -> None:
    recognising(monkeypatch, lambda _: None)
    at_once(4)
    begin = ocr.to_recognise

    def broken(page: RawPage, number: int) -> Callable[[], Runs]:
        if number == 3:
            raise BrokenDocumentError("Page 3 cannot be drawn.")
        return begin(page, number)

    monkeypatch.setattr(ocr, "to_recognise", broken)
    found = list[str]()
    with pytest.raises(BrokenDocumentError):
        for one in PdfParser().parse(document, "scans.pdf", ParseOptions(pictures=True)):
            found += [one.text] if isinstance(one, Block) and one.kind != "figure" else []
    assert found == ["Page number 1.", "Page number 2."]


def test_what_is_recognised_ahead_ends_with_the_reading(
    document: Path, monkeypatch: pytest.MonkeyPatch, at_once: Callable[[int], None]
) -> None:
    recognising(monkeypatch, lambda _: None)
    at_once(3)
    reading = PdfParser().parse(document, "scans.pdf", ParseOptions(pictures=True))
    assert next(one for one in reading if isinstance(one, Block) and one.kind != "figure").page == 1
    reading.close()  # pyright: ignore[reportAttributeAccessIssue] - a generator
    assert not [one.name for one in threading.enumerate() if one.name.startswith("scan")]


def test_where_memory_is_short_fewer_pages_are_recognised_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans_ahead.os, "sched_getaffinity", lambda _: range(8), raising=False)
    monkeypatch.setattr(scans_ahead.os, "cpu_count", lambda: 8)
    monkeypatch.setattr(scans_ahead, "allowed_cores", lambda: 4)
    found = [threads(lambda free=free: free) for free in (0, GIGA, 2 * GIGA, 3 * GIGA, 64 * GIGA)]
    assert found == [1, 1, 2, 4, 4]


def test_the_cores_that_a_container_may_use_count(tmp_path: Path) -> None:
    for told, cores in (("150000 100000", 2), ("50000 100000", 1), ("max 100000", 4), ("", 4)):
        (tmp_path / "cpu.max").write_text(told)
        assert allowed_cores(tmp_path) == cores


def test_what_recognises_several_scans_at_once_is_loaded_where_there_is_a_scan(tmp_path: Path) -> None:
    import pymupdf

    with pymupdf.open() as made:
        made.new_page().insert_text((50, 80), TEXT)
        made.save(tmp_path / "text.pdf")
    program = (
        "import sys; from pathlib import Path; from core.rag.parsers.pdf import PdfParser; "
        "found = [*PdfParser().parse(Path(sys.argv[1]), 'text.pdf')]; "
        "print(len(found), *sorted({'psutil', 'concurrent.futures', 'cv2', 'numpy'} & sys.modules.keys()))"
    )
    told = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "text.pdf"], check=True, stdout=subprocess.PIPE, text=True
    )
    assert told.stdout.split() == ["3"]
