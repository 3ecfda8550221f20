"""Reading a long document in: its first pages are found at once, and whatever stops it leaves nothing behind."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from core.errors import DocumentError, StorageError
from core.rag.document import ReadingProgress
from core.rag.document_locks import Job
from core.rag.library import Library
from core.rag.parsers import process

pytestmark = pytest.mark.anyio
Make = Callable[..., Path]
ROOT = Path(__file__).parents[3]
PAGES = 40
HANGS = "import sys, threading; sys.stdin.read(); threading.Event().wait()"


@pytest.fixture
def long_pdf(make_pdf: Make) -> Path:
    return make_pdf(*[f"Page {n} tells of lamp {n}." for n in range(1, PAGES + 1)], name="long.pdf")


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Readers that never answer; those that were started."""
    started: list[Any] = []
    popen: Any = subprocess.Popen

    def start(command: list[str], **options: Any) -> Any:
        started.append(popen([command[0], "-c", HANGS], **options))
        return started[-1]

    monkeypatch.setattr(process.subprocess, "Popen", start)
    yield started
    assert all(one.poll() is not None for one in started)


def nothing_stays(library: Library, folder: Path) -> bool:
    left = [path for name in ("originals", "pictures", "reading") for path in (folder / name).glob("*")]
    return library.documents() == [] and library.find("lamp") == [] and left == []


class Adding:
    """`library.add` in a thread; what came of it."""

    def __init__(self, library: Library, path: Path, **options: Any) -> None:
        self.result: Any = None
        self.began = threading.Event()
        self._work = (library, path, options)
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        library, path, options = self._work
        told = options.pop("progress", None)

        def progress(said: ReadingProgress) -> None:
            self.began.set()
            if told:
                told(said)

        try:
            self.result = library.add(path, progress=progress, **options)
        except Exception as error:  # whatever comes of it
            self.result = error

    def end(self) -> Any:
        self.thread.join(20)
        assert not self.thread.is_alive()
        return self.result


def until(what: Callable[[], Any]) -> None:
    """Wait for it, not for a time."""
    end = time.monotonic() + 20
    while not what():
        assert time.monotonic() < end
        threading.Event().wait(0.01)


def test_the_first_pages_are_found_and_shown_while_the_rest_is_read(
    library: Library, long_pdf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.rag.draft._LONGEST_WAIT", float("inf"))  # however slow the machine is
    said: list[ReadingProgress] = []
    seen: list[tuple[str, int | None, bool]] = []

    def progress(now: ReadingProgress) -> None:
        said.append(now)
        if now.chunks and not seen:
            passage = library.find("lamp 3", 1)[0]
            shown = library.page_picture(passage, 1.0).startswith(b"\x89PNG")
            seen.append((library.document(now.document_id).status, passage.page, shown))

    document = library.add(long_pdf, progress=progress)
    assert seen == [("reading", 3, True)]
    first = next(one for one in said if one.chunks)
    assert 8 <= first.pages < PAGES
    assert first.total == PAGES
    assert [one.pages for one in said] == sorted(one.pages for one in said)
    assert said[-1] == ReadingProgress(document.id, PAGES, PAGES, 0, 0, PAGES, document.seconds)
    assert (document.status, document.chunks) == ("ready", PAGES)
    assert library.find(f"lamp {PAGES}", 1)[0].page == PAGES


def test_progress_is_told_ten_times_a_second_at_most(library: Library, long_pdf: Path) -> None:
    said: list[float] = []
    library.add(long_pdf, progress=lambda _: said.append(time.monotonic()))
    gaps = [after - before for before, after in pairwise(said[:-1])]
    # when the first pages can be found, and when all is read, it is told whatever was told before
    assert sum(gap < 0.09 for gap in gaps) <= 1


def test_two_who_add_the_same_at_once_read_it_once_and_both_hear_of_it(
    library: Library, long_pdf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    original = process.stream

    def counted(path: Path, *args: Any, **options: Any) -> Any:
        read.append(path)
        return original(path, *args, **options)

    monkeypatch.setattr(process, "stream", counted)
    heard: list[ReadingProgress] = []
    others: list[Adding] = []

    def progress(said: ReadingProgress) -> None:
        if said.chunks and not others:
            others.append(Adding(library, long_pdf, name="second.pdf", progress=heard.append))
            until(lambda: library.documents()[0].status == "reading")

    first = library.add(long_pdf, name="first.pdf", progress=progress)
    second = others[0].end()
    assert len(read) == 1
    assert second.id == first.id
    assert heard[-1].chunks == PAGES
    assert [document.name for document in library.documents()] == ["second.pdf"]
    assert len(library.find("lamp", 100)) == PAGES


def test_two_processes_that_add_the_same_at_once_double_nothing(tmp_path: Path, long_pdf: Path) -> None:
    script = (
        "import sys\nfrom core.rag.library import Library\n"
        "with Library.open(sys.argv[1]) as library:\n    print(library.add(sys.argv[2]).chunks)\n"
    )
    command = [sys.executable, "-c", script, tmp_path / "library", long_pdf]
    both = [
        subprocess.Popen(command, env={"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    assert [one.communicate(timeout=60)[0].strip() for one in both] == [str(PAGES)] * 2
    with Library.open(tmp_path / "library") as library:
        assert len(library.find("lamp", 100)) == PAGES


@pytest.mark.parametrize("where", ["within", "beside"])
def test_a_document_that_is_removed_while_it_is_read_leaves_nothing(
    library: Library, tmp_path: Path, long_pdf: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    removing: list[threading.Thread] = []
    noticed = threading.Event()
    remove = Job.remove
    monkeypatch.setattr(Job, "remove", lambda self: (remove(self), noticed.set()))

    def progress(said: ReadingProgress) -> None:
        if not said.chunks or removing:
            return
        library.page_image(said.document_id, 1, 1.0)
        removing.append(threading.Thread(target=library.remove, args=(said.document_id,)))
        if where == "within":
            library.remove(said.document_id)
        else:
            removing[0].start()
            assert noticed.wait(20)

    with pytest.raises(DocumentError) as caught:
        library.add(long_pdf, progress=progress)
    assert caught.value.words_key == "document_cancelled"
    if where == "beside":
        removing[0].join(20)
    assert nothing_stays(library, tmp_path / "library")
    assert library.add(long_pdf).status == "ready"


def test_what_another_process_removes_is_read_no_further(library: Library, tmp_path: Path, long_pdf: Path) -> None:
    removing: list[threading.Thread] = []
    with Library.open(tmp_path / "library") as other:  # it shares nothing but the folder

        def progress(said: ReadingProgress) -> None:
            if said.chunks and not removing:
                removing.append(threading.Thread(target=other.remove, args=(said.document_id,)))
                removing[0].start()
                until(lambda: library.documents() == [])

        with pytest.raises(DocumentError) as caught:
            library.add(long_pdf, progress=progress)
        removing[0].join(20)
    assert caught.value.words_key == "document_cancelled"
    assert nothing_stays(library, tmp_path / "library")


def test_reading_that_is_cancelled_ends_at_once(
    library: Library, tmp_path: Path, long_pdf: Path, hanging: list[subprocess.Popen[bytes]]
) -> None:
    cancelled = threading.Event()
    adding = Adding(library, long_pdf, cancelled=cancelled)
    until(lambda: hanging)
    began = time.monotonic()
    cancelled.set()
    error = adding.end()
    assert time.monotonic() - began < 30  # what reads it hangs for ever
    assert isinstance(error, DocumentError)
    assert error.words_key == "document_cancelled"
    assert nothing_stays(library, tmp_path / "library")


def test_what_is_cancelled_before_it_begins_is_not_read(
    library: Library, tmp_path: Path, long_pdf: Path, hanging: list[subprocess.Popen[bytes]]
) -> None:
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(DocumentError) as caught:
        library.add(long_pdf, cancelled=cancelled)
    assert caught.value.words_key == "document_cancelled"
    assert hanging == []
    assert nothing_stays(library, tmp_path / "library")


def test_who_waits_for_another_may_be_cancelled_alone(
    library: Library, long_pdf: Path, hanging: list[subprocess.Popen[bytes]]
) -> None:
    over, other_over = threading.Event(), threading.Event()
    first = Adding(library, long_pdf, cancelled=over)
    until(lambda: hanging)
    second = Adding(library, long_pdf, cancelled=other_over)
    other_over.set()
    assert second.end().words_key == "document_cancelled"
    assert first.thread.is_alive()
    over.set()
    first.end()
    assert len(hanging) == 1


async def test_a_cancelled_task_ends_the_reading(
    library: Library, tmp_path: Path, long_pdf: Path, hanging: list[subprocess.Popen[bytes]]
) -> None:
    task = asyncio.create_task(library.aadd(long_pdf))
    await asyncio.to_thread(until, lambda: hanging)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert nothing_stays(library, tmp_path / "library")


def test_a_library_that_is_closed_ends_its_readings(
    tmp_path: Path, long_pdf: Path, hanging: list[subprocess.Popen[bytes]]
) -> None:
    library = Library.open(tmp_path / "library")
    adding = Adding(library, long_pdf)
    until(lambda: hanging)
    began = time.monotonic()
    library.close()
    assert time.monotonic() - began < 30  # what reads it hangs for ever
    error = adding.end()
    assert isinstance(error, StorageError)
    assert error.words_key == "library_closed"
    with Library.open(tmp_path / "library") as again:
        assert nothing_stays(again, tmp_path / "library")


def test_a_reader_that_dies_in_the_middle_leaves_nothing(library: Library, tmp_path: Path, long_pdf: Path) -> None:
    readers: list[Any] = []
    popen: Any = subprocess.Popen
    dying = "import os, sys; from core.rag.parsers import pdf, worker\n"
    dying += f"real = pdf._page\npdf._page = lambda s, n, h: os.abort() if n == {PAGES} else real(s, n, h)\n"
    dying += "pdf._sample = lambda count: [1]\nworker.main()"

    def start(command: list[str], **options: Any) -> Any:
        readers.append(popen([command[0], "-c", dying], **options))
        return readers[-1]

    seen: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process.subprocess, "Popen", start)
        with pytest.raises(DocumentError) as caught:
            library.add(long_pdf, progress=lambda said: seen.append(said.chunks))
    assert caught.value.words_key == "document_broken"
    assert len(readers) == 1
    assert nothing_stays(library, tmp_path / "library")
