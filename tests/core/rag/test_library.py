"""A library: what goes in is found, shown, kept, and gone when it is taken out."""

from __future__ import annotations

import asyncio
import io
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.errors import (
    BrokenDocumentError,
    DocumentError,
    LockedDocumentError,
    NoSpaceError,
    NotFoundError,
    SettingsError,
    StorageError,
    UnsupportedFormatError,
)
from core.rag import library as library_module
from core.rag.index_file import translated
from core.rag.library import Library
from core.rag.parsers import process

pytestmark = pytest.mark.anyio
Make = Callable[..., Path]


def written(folder: Path, name: str, data: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def test_a_document_is_found_with_its_page_and_place(library: Library, make_pdf: Make) -> None:
    document = library.add(make_pdf("Cats sleep all day.", "The warranty lasts two years."))
    assert (document.status, document.pages, document.media_type) == ("ready", 2, "application/pdf")
    (passage,) = library.find("How long is the warranty?", 1)
    assert (passage.document, passage.document_id, passage.page) == ("made.pdf", document.id, 2)
    assert passage.text == "The warranty lasts two years."
    assert len(passage.rectangles) == 1
    assert library.page_size(document.id, 2) == (400, 500)
    box = library.text_box(document.id, 2)
    assert box == passage.rectangles[0]


def test_what_documents_say_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "fresh"
    with Library.open(folder) as library:
        library.add_text("The heron stands in the water.", name="a.txt")
        files = [path for path in folder.rglob("*") if path.is_file()]
        open_to_others = [path.name for path in files if path.stat().st_mode & 0o077 and path.parent == folder]
    assert not [name for name in open_to_others if name.startswith("library.sqlite")]


def test_chinese_is_found(library: Library, tmp_path: Path) -> None:
    library.add(written(tmp_path, "诗.txt", "床前明月光，疑是地上霜。\n\n举头望明月，低头思故乡。"))
    library.add(written(tmp_path, "other.txt", "保修期为两年，请保留发票。"))
    assert library.find("保修期是多久？", 1)[0].text.startswith("保修期")
    assert library.find("明月", 1)[0].document == "诗.txt"


def test_word_forms_and_accents_do_not_matter(library: Library) -> None:
    library.add_text("The cafés were charging their batteries.", name="a.txt")
    assert library.find("battery charged cafe")


def test_the_title_and_the_headings_are_searched_too(library: Library) -> None:
    library.add_text("# Guarantee\n\nTwo years.\n\n# Price\n\nTen euros.", name="a.md")
    assert library.find("guarantee", 1)[0].text == "Two years."
    assert library.find("guarantee", 1)[0].heading == "Guarantee"


def test_a_question_without_words_finds_nothing(library: Library) -> None:
    library.add_text("Something.", name="a.txt")
    for question in ("", "?!", '"AND" OR (', "的", "the"):
        assert library.find(question) == []


def test_only_the_named_documents_are_searched(library: Library) -> None:
    first = library.add_text("The lamp is green.", name="a.txt")
    second = library.add_text("The lamp is red.", name="b.txt")
    assert {passage.document_id for passage in library.find("lamp")} == {first.id, second.id}
    assert [passage.document_id for passage in library.find("lamp", documents={second.id})] == [second.id]
    assert library.find("lamp", documents=[]) == []


def test_the_same_bytes_are_read_once_and_take_the_newest_name(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = 0
    original = process.stream

    def counted(*args: Any, **options: Any) -> Any:
        nonlocal read
        read += 1
        return original(*args, **options)

    monkeypatch.setattr(process, "stream", counted)
    first = library.add(written(tmp_path, "a.txt", "Same words."))
    second = library.add(written(tmp_path, "b.txt", "Same words."))
    assert read == 1
    assert first.id == second.id
    assert [document.name for document in library.documents()] == ["b.txt"]


def test_two_who_add_the_same_at_once_get_the_same(library: Library, make_pdf: Make) -> None:
    path = make_pdf(*[f"Page {n} of many." for n in range(20)])
    ids: list[str] = []
    threads = [threading.Thread(target=lambda: ids.append(library.add(path).id)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 4
    assert len(set(ids)) == 1
    assert len(library.documents()) == 1


def test_an_edited_file_is_another_document(library: Library, tmp_path: Path) -> None:
    library.add(written(tmp_path, "a.txt", "The lamp is green."))
    library.add(written(tmp_path, "a.txt", "The lamp is red."))
    assert {passage.text for passage in library.find("lamp")} == {"The lamp is green.", "The lamp is red."}


def test_what_is_taken_out_leaves_nothing(library: Library, make_pdf: Make, tmp_path: Path) -> None:
    document = library.add(make_pdf("The lamp is green."))
    library.page_image(document.id, 1)
    library.remove(document.id)
    assert library.find("lamp") == []
    assert library.documents() == []
    left = [path.name for path in (tmp_path / "library").rglob("*") if document.id in path.name]
    assert left == []
    with pytest.raises(NotFoundError):
        library.document(document.id)
    with pytest.raises(NotFoundError):
        library.remove(document.id)
    library.add(make_pdf("The lamp is green."))
    assert library.find("lamp")


def test_everything_is_there_after_a_restart(tmp_path: Path, make_pdf: Make) -> None:
    with Library.open(tmp_path / "kept") as library:
        document = library.add(make_pdf("The lamp is green."))
        before = library.find("lamp")
    make_pdf("something else")  # the file that was added is gone
    with Library.open(tmp_path / "kept") as library:
        assert library.find("lamp") == before
        assert library.document(document.id) == document
        assert library.page_picture(before[0]).startswith(b"\x89PNG")


def test_a_page_is_drawn_once_and_marked_where_the_passage_stands(
    library: Library, make_pdf: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    from PIL import Image

    document = library.add(make_pdf("The lamp is green."))
    (passage,) = library.find("lamp")
    marked, plain = library.page_picture(passage, 1.0), library.page_image(document.id, 1, 1.0)
    _, y0, x1, y1 = passage.rectangles[0]
    inside = (round(x1) - 1, round((y0 + y1) / 2))
    assert Image.open(io.BytesIO(plain)).convert("RGB").getpixel(inside) == (255, 255, 255)
    assert Image.open(io.BytesIO(marked)).convert("RGB").getpixel(inside) != (255, 255, 255)
    monkeypatch.setattr(library_module.Pictures, "_keep", None)  # drawing again would fail
    assert library.page_picture(passage, 1.0) == marked


def test_a_text_has_no_page_to_show(library: Library) -> None:
    library.add_text("The lamp is green.", name="a.txt")
    (passage,) = library.find("lamp")
    assert passage.page is None
    with pytest.raises(DocumentError) as caught:
        library.page_picture(passage)
    assert caught.value.words_key == "document_no_pages"


def test_a_text_may_say_which_page_it_is(library: Library) -> None:
    library.add_text("The lamp is green.", name="scan", page=7)
    library.add_text("The lamp is green.", name="scan", page=8)
    assert {passage.page for passage in library.find("lamp")} == {7, 8}


@pytest.mark.parametrize(
    ("name", "data", "error", "key"),
    [
        ("empty.pdf", b"", BrokenDocumentError, "document_empty"),
        ("blank.txt", b" \n\t\n", BrokenDocumentError, "document_empty"),
        ("picture.pdf", b"\x89PNG\r\n\x1a\n" + b"\0" * 99, BrokenDocumentError, "document_not_what_it_says"),
        ("text.pdf", b"just text", BrokenDocumentError, "document_not_what_it_says"),
        ("binary.txt", b"abc\0def", BrokenDocumentError, "document_not_what_it_says"),
        ("picture.md", b"GIF89a\0\0\0", BrokenDocumentError, "document_not_what_it_says"),
        ("text.docx", b"just text", BrokenDocumentError, "document_not_what_it_says"),
        ("broken.pdf", b"%PDF-1.7\nnothing else", BrokenDocumentError, "document_broken"),
        ("picture.png", b"\x89PNG\r\n\x1a\n" + b"\0" * 99, BrokenDocumentError, "document_broken"),
        ("sound.ogg", b"OggS" + b"\0" * 99, UnsupportedFormatError, "document_unsupported"),
        ("slides.pptx", b"PK\x03\x04ppt/slides", BrokenDocumentError, "document_broken"),
        ("text.xlsx", b"just text", BrokenDocumentError, "document_not_what_it_says"),
        ("text.epub", b"just text", BrokenDocumentError, "document_not_what_it_says"),
        ("locked.xlsx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 99, LockedDocumentError, "document_locked"),
        ("program.bin", bytes(range(256)) * 9, UnsupportedFormatError, "document_unsupported"),
        ("locked.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 99, LockedDocumentError, "document_locked"),
        ("old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 99, BrokenDocumentError, "document_broken"),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence_and_leaves_nothing(
    library: Library, tmp_path: Path, name: str, data: bytes, error: type[DocumentError], key: str
) -> None:
    with pytest.raises(error) as caught:
        library.add(written(tmp_path, name, data))
    assert caught.value.words_key == key
    assert type(caught.value) is error
    assert library.documents() == []
    assert list((tmp_path / "library" / "originals").iterdir()) == []


def test_an_unsupported_file_is_told_what_is_read(library: Library, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFormatError, match="PDF, DOCX, DOC, ODT, RTF, PPTX, PPT, XLSX, XLS, ODS, EPUB"):
        library.add(written(tmp_path, "a.mp3", b"ID3" + b"\0" * 99))


def test_a_pdf_with_the_wrong_name_is_read(library: Library, make_pdf: Make) -> None:
    assert library.add(make_pdf("The lamp.", name="wrong.txt")).media_type == "application/pdf"


def test_a_picture_without_words_is_kept_and_says_so(library: Library, tmp_path: Path, picture_bytes: bytes) -> None:
    import pymupdf

    made = pymupdf.open()
    made.new_page().insert_image(pymupdf.Rect(0, 0, 300, 300), stream=picture_bytes)
    made.save(tmp_path / "scan.pdf")
    document = library.add(tmp_path / "scan.pdf")
    assert (document.status, document.note, document.chunks, document.pages) == ("no_text", "document_no_text", 0, 1)
    assert library.page_image(document.id, 1).startswith(b"\x89PNG")


def test_a_file_beyond_the_limit_is_refused_before_it_is_copied(tmp_path: Path) -> None:
    big = tmp_path / "big.pdf"
    with big.open("wb") as out:
        out.truncate(210 * 1024 * 1024)
    with Library.open(tmp_path / "library") as library, pytest.raises(BrokenDocumentError) as caught:
        library.add(big)
    assert caught.value.words_key == "document_too_large"
    assert caught.value.details == {"size": 210, "limit": 200}


def test_what_is_no_file_is_refused(library: Library, tmp_path: Path) -> None:
    with pytest.raises(DocumentError):
        library.add(tmp_path)
    with pytest.raises(NotFoundError):
        library.add(tmp_path / "missing.pdf")
    with pytest.raises(NotFoundError):
        library.add("nul\0byte.pdf")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc/passwd", "passwd"),
        ("..\\..\\win.txt", "win.txt"),
        ("nul\0l.txt", "null.txt"),
        ("two\nlines.txt", "two lines.txt"),
        ("文件🎉.txt", "文件🎉.txt"),
        ("gpj\u202etxt.exe", "gpjtxt.exe"),
        ("x" * 300 + ".txt", "x" * 250 + "….txt"),
        ("", "document"),
        ("/", "document"),
    ],
)
def test_a_name_is_only_shown(library: Library, tmp_path: Path, name: str, shown: str) -> None:
    document = library.add(written(tmp_path, "source.txt", "Words."), name=name)
    assert document.name == shown
    inside = sorted(path.name for path in (tmp_path / "library" / "originals").iterdir())
    assert inside == [document.id, f"{document.id}.json"]


def test_a_full_disk_says_so() -> None:
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    assert isinstance(translated(error), NoSpaceError)
    assert isinstance(translated(OSError(28, "No space left on device")), NoSpaceError)


def test_a_full_disk_while_copying_leaves_nothing(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    path = written(tmp_path, "a.txt", "Words.")
    monkeypatch.setattr("core.storage.data_folder.os.fsync", full)
    with pytest.raises(NoSpaceError):
        library.add(path)
    assert list((tmp_path / "library" / "originals").iterdir()) == []


def test_settings_are_checked_and_the_mapping_is_not_changed(tmp_path: Path) -> None:
    given = {"parser_page_size": 100, "rag_searchers": ["keyword_search"], "max_ref_token": 500}
    with Library.open(tmp_path / "a", given) as library:
        library.add_text("word " * 1000, name="a.txt")
        assert library.documents()[0].chunks > 10
    assert given == {"parser_page_size": 100, "rag_searchers": ["keyword_search"], "max_ref_token": 500}
    with pytest.raises(SettingsError, match="chunk_sise"):
        Library.open(tmp_path / "b", {"chunk_sise": 5})


def test_a_closed_library_says_so(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "a")
    library.close()
    library.close()
    with pytest.raises(StorageError):
        library.find("lamp")


async def test_the_async_twins_leave_the_loop_free(library: Library, make_pdf: Make) -> None:
    adding = asyncio.create_task(library.aadd(make_pdf(*["The lamp is green."] * 50)))
    turns = 0
    while not adding.done():
        await asyncio.sleep(0)
        turns += 1
    document = await adding
    assert turns > 10
    (passage, *_) = await library.afind("lamp", documents={document.id})
    assert (await library.apage_picture(passage)).startswith(b"\x89PNG")
    assert (await library.apage_image(document.id, 1)).startswith(b"\x89PNG")
    await library.aremove(document.id)
    assert await library.afind("lamp") == []


def test_a_file_that_was_cut_off_is_kept_with_a_note(library: Library, make_pdf: Make) -> None:
    path = make_pdf(*[f"Page {n} tells of matter {n}." for n in range(9)])
    data = path.read_bytes()
    path.write_bytes(data[: data.rindex(b"trailer")])
    document = library.add(path)
    assert (document.status, document.note) == ("ready", "document_damaged")
    assert library.document(document.id).note == "document_damaged"


def test_slides_have_passages_but_no_picture_that_would_be_missing(library: Library, tmp_path: Path) -> None:
    from pptx import Presentation

    deck: Any = Presentation()
    deck.slides.add_slide(deck.slide_layouts[0]).shapes.title.text = "Herons eat fish."
    deck.save(tmp_path / "deck.pptx")
    document = library.add(tmp_path / "deck.pptx")
    assert library.find("What do herons eat?")[0].page == 1
    for ask in (library.page_size, library.text_box, library.page_image):
        with pytest.raises(DocumentError) as caught:
            ask(document.id, 1)
        assert caught.value.words_key == "document_no_pages"


@pytest.mark.parametrize("kind", ["hybrid", "vector"])
def test_search_by_meaning_without_vectors_says_how_to_open_the_library(library: Library, kind: Any) -> None:
    library.add_text("Herons eat fish.", name="lake")
    with pytest.raises(SettingsError, match="opened without vectors") as caught:
        library.find("herons", retrieval_type=kind)
    assert f'Library.open(folder, {{"retrieval_type": "{kind}"}})' in str(caught.value)
    with pytest.raises(SettingsError, match="opened without vectors"):
        asyncio.run(library.afind("herons", retrieval_type=kind))
    assert library.find("herons")[0].document == "lake"


def test_a_misspelt_setting_names_the_near_one(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="Did you mean 'retrieval_type'"):
        Library.open(tmp_path / "x", {"retrieval": "hybrid"})


@pytest.mark.parametrize(
    ("typed", "is_found"),
    [
        ("deductible", True), ("deductib", True), ("ded", True), ("policies covering", True), ("policies cov", True),
        ("Covering POLICIES", True), ("hoping", True), ("hopin", True), ("免赔额", True), ("赔额 ded", True),
        ("fire have", True),
        ("deductible storm", False), ("the", False), ("d", False), ("", False), ('"*) OR (', False), ("免费", False),
    ],
)  # fmt: skip
def test_a_passage_is_found_by_all_words_that_stand_in_it_the_last_one_perhaps_only_begun(
    library: Library, typed: str, is_found: bool
) -> None:
    wanted = library.add_text("Policies covering fire have a deductible. We are hoping. 免赔额是三百。", name="a.txt")
    other = library.add_text("A storm is no fire. 免费。", name="b.txt")
    among = {one.document_id for one in library.holding(typed, 5)}
    assert (wanted.id in among) is is_found
    assert library.holding(typed, 5, documents=[other.id]) == [
        one for one in library.holding(typed, 5) if one.document_id == other.id
    ]
