"""Encrypted documents: opened once with their password, shown ever after, and the password is kept nowhere."""

from __future__ import annotations

import logging
import shutil
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.errors import DocumentError, LockedDocumentError, NoSpaceError
from core.rag.document import ReadingProgress
from core.rag.library import Library
from core.rag.parsers import process
from core.rag.parsers.catalog import PDF_READERS

Make = Callable[..., Path]
AES_256, RC4_128 = 5, 3  # PyMuPDF's names for them
PASSWORD = "open-sesame-9"


@pytest.fixture
def locked_pdf(make_pdf: Make) -> Path:
    return make_pdf("The lamp is green.", "The lamp is red.", encryption=AES_256, user_pw=PASSWORD, owner_pw="other")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The commands and environments of all processes that are started."""
    seen: list[Any] = []
    popen: Any = subprocess.Popen

    def start(command: list[str], **options: Any) -> Any:
        seen.append((command, options["env"]))
        return popen(command, **options)

    monkeypatch.setattr(process.subprocess, "Popen", start)
    yield seen
    assert seen


@pytest.mark.parametrize("reader", PDF_READERS)
def test_its_pages_are_found_and_shown_after_a_restart_without_asking_again(
    tmp_path: Path, locked_pdf: Path, reader: str
) -> None:
    config = {"pdf_reader": reader}
    with Library.open(tmp_path / "library", config) as library:
        document = library.add(locked_pdf, password=PASSWORD)
        assert (document.status, document.pages, document.size) == ("ready", 2, locked_pdf.stat().st_size)
    with Library.open(tmp_path / "library", config) as library:
        (passage,) = library.find("red")
        assert passage.page == 2
        assert library.page_picture(passage).startswith(b"\x89PNG")
        assert library.add(locked_pdf).id == document.id  # the same bytes are known, without a password too
        assert len(library.documents()) == 1


def test_it_is_read_again_without_the_password(tmp_path: Path, locked_pdf: Path, started: list[Any]) -> None:
    with Library.open(tmp_path / "library") as library:
        document = library.add(locked_pdf, password=PASSWORD)
        processes = len(started)
        again = library.add(locked_pdf, again=True)
        assert len(started) == processes + 1
        assert (again.status, again.size) == ("ready", document.size)
        assert [passage.page for passage in library.find("red")] == [2]


@pytest.mark.parametrize("ends", [True, False])
def test_a_text_stays_until_it_was_read_again_to_its_end(
    tmp_path: Path, make_pdf: Make, monkeypatch: pytest.MonkeyPatch, *, ends: bool
) -> None:
    monkeypatch.setattr("core.rag.document_locks._POLL", 0.0)  # told of each step
    with Library.open(tmp_path / "library") as library:
        source = make_pdf(*(f"Lamp number {n} is green." for n in range(60)))
        library.add(source)
        before = library.find("lamp", 100)
        cancelled = threading.Event()
        seen: list[int] = []

        def look(told: ReadingProgress) -> None:
            if told.pages < 60:
                seen.append(len(library.find("lamp", 100)))
                if told.pages > 10 and not ends:
                    cancelled.set()

        if ends:
            library.add(source, again=True, progress=look)
        else:
            with pytest.raises(DocumentError, match="stopped"):
                library.add(source, again=True, progress=look, cancelled=cancelled)
        assert set(seen) == {len(before)}
        after = library.find("lamp", 100)
        assert [one.text for one in after] == [one.text for one in before]
        assert (after == before) is not ends


def test_a_lost_index_is_restored_without_the_password(tmp_path: Path, locked_pdf: Path) -> None:
    folder = tmp_path / "library"
    with Library.open(folder) as library:
        library.add(locked_pdf, password=PASSWORD)
    (folder / "library.sqlite").write_bytes(b"rubbish" * 2000)
    with Library.open(folder) as library:
        assert [passage.page for passage in library.find("red")] == [2]


@pytest.mark.parametrize("reader", PDF_READERS)
@pytest.mark.parametrize(("password", "key"), [("", "document_locked"), ("wrong-1", "document_password_wrong")])
def test_without_the_right_password_nothing_stays_and_it_can_be_tried_again(
    tmp_path: Path, locked_pdf: Path, password: str, key: str, reader: str
) -> None:
    with Library.open(tmp_path / "library", {"pdf_reader": reader}) as library:
        with pytest.raises(LockedDocumentError) as caught:
            library.add(locked_pdf, password=password)
        assert caught.value.words_key == key
        assert caught.value.hint
        assert library.documents() == []
        assert list((tmp_path / "library" / "originals").iterdir()) == []
        assert library.add(locked_pdf, password=PASSWORD).status == "ready"


@pytest.mark.parametrize("method", [AES_256, RC4_128])
@pytest.mark.parametrize("reader", PDF_READERS)
def test_the_password_stands_nowhere(
    tmp_path: Path,
    make_pdf: Make,
    started: list[Any],
    caplog: pytest.LogCaptureFixture,
    method: int,
    reader: str,
) -> None:
    path = make_pdf("The lamp is green.", encryption=method, user_pw=PASSWORD)
    with caplog.at_level(logging.DEBUG), Library.open(tmp_path / "library", {"pdf_reader": reader}) as library:
        document = library.add(path, password=PASSWORD)
        library.page_image(document.id, 1)
        with pytest.raises(LockedDocumentError) as caught:
            library.add(make_pdf("Other.", encryption=method, user_pw="x", name="b.pdf"), password=PASSWORD)
        assert PASSWORD not in repr(caught.value) + str(caught.value.details) + caught.value.hint
        kept = [one for one in (tmp_path / "library").rglob("*") if one.is_file()]
        assert kept
        assert not any(PASSWORD.encode() in one.read_bytes() for one in kept)
    assert PASSWORD not in caplog.text
    assert PASSWORD not in repr(started)


def test_only_its_owner_can_read_the_open_copy(library: Library, tmp_path: Path, locked_pdf: Path) -> None:
    document = library.add(locked_pdf, password=PASSWORD)
    original = tmp_path / "library" / "originals" / document.id
    assert stat.S_IMODE(original.stat().st_mode) == 0o600
    assert stat.S_IMODE(original.parent.stat().st_mode) == 0o700
    assert b"/Encrypt" not in original.read_bytes()
    assert locked_pdf.read_bytes().count(b"/Encrypt")  # the user's own file is as it was


def test_a_disk_without_room_for_the_open_copy_is_said_to_be_full(
    library: Library, locked_pdf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(locked_pdf.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=100))
    with pytest.raises(NoSpaceError):
        library.add(locked_pdf, password=PASSWORD)
    assert library.documents() == []


def test_a_password_that_is_not_needed_changes_nothing(library: Library, tmp_path: Path, make_pdf: Make) -> None:
    path = make_pdf("The lamp is green.")
    document = library.add(path, password=PASSWORD)
    assert (tmp_path / "library" / "originals" / document.id).read_bytes() == path.read_bytes()
    (tmp_path / "a.txt").write_text("The lantern is red.")
    assert library.add(tmp_path / "a.txt", password=PASSWORD).status == "ready"


def test_an_office_file_with_a_password_is_told_what_can_be_done(library: Library, tmp_path: Path) -> None:
    (tmp_path / "a.docx").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 99)
    with pytest.raises(LockedDocumentError, match="save a copy without one") as caught:
        library.add(tmp_path / "a.docx")
    assert (caught.value.words_key, caught.value.details) == ("document_locked", {"asks": True})
