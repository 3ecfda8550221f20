"""The worker process: a bad file costs that file only, and it knows none of our secrets."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from core.errors import BrokenDocumentError, DocumentError, LockedDocumentError, NotFoundError
from core.rag.parsers import process
from core.rag.parsers.catalog import renderer_of
from core.rag.parsers.process import Limits, parse

Make = Callable[..., Path]
AES_256 = 5  # PyMuPDF's PDF_ENCRYPT_AES_256
ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def warm_readers() -> None:
    """The process is as the product starts it."""


def test_what_a_parser_gives_arrives_whole(make_pdf: Make) -> None:
    parsed = parse(make_pdf("Ein Satz mit Umlauten: äöü 中文"), "a.pdf", "pdf", Limits())
    assert parsed.about.pages == 1
    assert parsed.shapes[0].width == 400
    assert parsed.blocks[0].text.startswith("Ein Satz mit Umlauten: äöü")
    assert parsed.blocks[0].rectangle is not None


def test_an_error_arrives_as_itself(make_pdf: Make) -> None:
    path = make_pdf("x", encryption=AES_256, user_pw="u")
    with pytest.raises(LockedDocumentError) as caught:
        parse(path, "a.pdf", "pdf", Limits())
    assert caught.value.hint == "Give its password, or save a copy without one."
    assert caught.value.details == {"asks": True}
    assert str(caught.value).count("save a copy") == 1


def test_a_file_that_never_ends_is_given_up(tmp_path: Path) -> None:
    """A pipe that nobody writes into: the reader would wait for ever."""
    path = tmp_path / "endless"
    os.mkfifo(path)
    with pytest.raises(BrokenDocumentError) as caught:
        parse(path, "a.txt", "plain", Limits(seconds=0.5))
    assert caught.value.words_key == "document_too_slow"


def test_the_time_in_which_pages_are_indexed_is_not_the_readers(
    make_pdf: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = 0.0
    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + passed))
    found = process.stream(make_pdf(*["The lamp is green."] * 9), "a.pdf", "pdf", Limits())
    assert next(found)
    passed = 3600.0  # somebody worked on that for an hour
    assert len(list(found)) == 18


@pytest.mark.parametrize(
    ("worked", "waited", "goes_on"), [(0.1, 0.0, True), (0.01, 0.9, True), (0.01, 0.0, False), (0.0, 0.0, False)]
)
def test_on_a_busy_machine_a_reader_that_goes_on_has_the_time_that_it_takes(
    make_pdf: Make, monkeypatch: pytest.MonkeyPatch, *, worked: float, waited: float, goes_on: bool
) -> None:
    """The stand-in of a busy machine: at each look at the clock more time has passed than the file may take, and in a
    tenth of it the reader worked, or in most of it there was no processor for it. One that does next to nothing, though
    it could, is given up all the same.
    """
    clock = count(0.0, 100.0)
    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(process, "processor_seconds", lambda _: worked * next(clock))
    monkeypatch.setattr(process, "waited_seconds", lambda _: waited * next(clock))
    path, limits = make_pdf(*["The lamp is green."] * 3), Limits(seconds=10.0)
    if goes_on:
        assert len(parse(path, "a.pdf", "pdf", limits).blocks) == 3
        return
    with pytest.raises(BrokenDocumentError) as caught:
        parse(path, "a.pdf", "pdf", limits)
    assert caught.value.words_key == "document_too_slow"


def test_the_processor_time_of_a_process_is_what_it_says_of_itself() -> None:
    before, own = process.processor_seconds(os.getpid()), time.process_time()
    assert before == pytest.approx(own, abs=0.1)
    while time.process_time() < own + 0.1:
        sum(range(10_000))
    assert process.processor_seconds(os.getpid()) > before
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    assert process.processor_seconds(int(gone.stdout)) == 0.0


def test_the_time_that_a_process_waits_for_a_processor_is_what_the_system_says_of_its_threads() -> None:
    core = min(os.sched_getaffinity(0))
    works = f"import os; os.sched_setaffinity(0, {{{core}}}); print(flush=True)\nwhile True: pass"
    two = [subprocess.Popen([sys.executable, "-c", works], stdout=subprocess.PIPE) for _ in range(2)]
    try:
        ends = time.monotonic() + 60
        while min(process.waited_seconds(one.pid) for one in two) < 0.05:  # each waits while the other works
            assert time.monotonic() < ends
    finally:
        for one in two:
            one.kill()
            one.communicate()
    assert process.waited_seconds(two[0].pid) == 0.0


def test_a_file_that_unpacks_without_end_is_given_up(tmp_path: Path) -> None:
    """A page of half a gigabyte of drawing, packed into a few megabytes."""
    packer = zlib.compressobj(1)
    piece = b"0 0 m 9 9 l S\n" * 100_000
    packed = b"".join([*(packer.compress(piece) for _ in range(400)), packer.flush()])
    path = tmp_path / "bomb.pdf"
    path.write_bytes(
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
        b"2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
        b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 4 0 R>>endobj\n"
        b"4 0 obj<</Filter/FlateDecode/Length "
        + str(len(packed)).encode()
        + b">>stream\n"
        + packed
        + b"\nendstream endobj\n"
        b"trailer<</Root 1 0 R>>"
    )
    with pytest.raises(BrokenDocumentError) as caught:
        parse(path, "bomb.pdf", "pdf", Limits(seconds=1, seconds_per_page=0))
    assert caught.value.words_key in {"document_too_slow", "document_too_large"}


def test_a_file_that_fills_the_memory_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "big.txt"
    path.write_bytes(b"word " * 20_000_000)
    with pytest.raises(BrokenDocumentError) as caught:
        parse(path, "big.txt", "plain", Limits(memory=200 * 1024 * 1024))
    assert caught.value.words_key == "document_too_large"


def test_more_text_than_allowed_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text("A paragraph.\n\n" * 10_000)
    with pytest.raises(BrokenDocumentError) as caught:
        parse(path, "long.txt", "plain", Limits(answer_bytes=10_000))
    assert caught.value.words_key == "document_too_large"


def test_a_reader_that_crashes_costs_that_file_only(
    make_pdf: Make, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_pdf("fine")
    started = subprocess.Popen

    def crashed(*args: object, **options: object) -> subprocess.Popen[bytes]:
        worker: subprocess.Popen[bytes] = started(*args, **options)  # type: ignore[call-overload]
        worker.kill()
        return worker

    with monkeypatch.context() as patched, pytest.raises(DocumentError, match="its reader crashed"):
        patched.setattr(process.subprocess, "Popen", crashed)
        parse(path, "a.pdf", "pdf", Limits())
    assert "ended with code" in caplog.text
    assert parse(path, "a.pdf", "pdf", Limits()).blocks[0].text == "fine"


def test_a_reader_without_room_for_its_libraries_says_one_sentence(make_pdf: Make) -> None:
    with pytest.raises(DocumentError):
        parse(make_pdf("fine"), "a.pdf", "pdf", Limits(memory=40 * 1024 * 1024))


def test_a_page_that_is_not_there_cannot_be_drawn(make_pdf: Make) -> None:
    with pytest.raises(NotFoundError):
        process.picture(make_pdf("one page"), renderer_of("application/pdf"), 2, 1.0)


def test_the_reader_gets_nothing_of_our_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    seen: dict[str, str] = {}
    started = subprocess.Popen

    def watched(*args: object, **options: object) -> subprocess.Popen[bytes]:
        seen.update(options["env"])  # type: ignore[call-overload]
        return started(*args, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(process.subprocess, "Popen", watched)
    path = tmp_path / "a.txt"
    path.write_text("text")
    assert parse(path, "a.txt", "plain", Limits()).blocks[0].text == "text"
    threads = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"}
    assert set(seen) <= {"PYTHONPATH", "PYTHONUTF8", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP", *threads}


def test_a_plain_script_without_a_main_guard_may_use_a_library(tmp_path: Path) -> None:
    """`multiprocessing` would run the script again and again."""
    (tmp_path / "note.txt").write_text("The lamp is green.")
    script = tmp_path / "script.py"
    script.write_text(
        "from core.rag.library import Library\n"
        "print('started')\n"
        "with Library.open('lib') as library:\n"
        "    library.add('note.txt')\n"
        "    print(library.find('What colour is the lamp?')[0].text)\n"
    )
    done = subprocess.run(
        [sys.executable, script],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines() == ["started", "The lamp is green."]


def test_modules_beside_the_file_are_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody's folder may hold a `json.py`; the reader must not run it."""
    (tmp_path / "json.py").write_text("raise SystemExit('hijacked')")
    (tmp_path / "a.txt").write_text("text")
    monkeypatch.chdir(tmp_path)
    assert parse(tmp_path / "a.txt", "a.txt", "plain", Limits()).blocks[0].text == "text"
