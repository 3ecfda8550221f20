"""An archive is its files: each read under its name, within limits, and those that are not are told."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from core.errors import BrokenDocumentError, UnsupportedFormatError
from core.rag.document import About, Block
from core.rag.parsers import parts
from core.rag.parsers.archive import ArchiveParser
from core.rag.parsers.base import Found
from core.rag.parsers.catalog import HEAD, parser_for
from core.rag.parsers.process import Limits, parse


def packed(files: Mapping[str, bytes | str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


class Unseekable(io.BytesIO):
    """A pipe: what writes an archive into it cannot go back and put a file's size before the file."""

    def seekable(self) -> bool:
        return False

    def seek(self, *_: int) -> int:
        raise io.UnsupportedOperation

    def tell(self) -> int:
        raise io.UnsupportedOperation


def found_in(tmp_path: Path, data: bytes) -> list[Found]:
    path = tmp_path / "a.zip"
    path.write_bytes(data)
    return list(ArchiveParser().parse(path, path.name))


def told(found: list[Found]) -> list[tuple[str, str]]:
    return [(one.kind, one.text) for one in found if isinstance(one, Block)]


def a_pdf(pages: int) -> bytes:
    import pymupdf

    document = pymupdf.open()
    for number in range(pages):
        document.new_page().insert_text((50, 50), f"Page {number + 1} of the lamp book.")
    return bytes(document.tobytes())


def test_files_come_in_the_order_of_their_names_with_their_folders(tmp_path: Path) -> None:
    files = {"b/two.txt": "second", "a/one.md": "# Lamps\n\nfirst", "a/.hidden": "x", "__MACOSX/a": "x"}
    assert told(found_in(tmp_path, packed(files))) == [
        ("heading", "a/one.md"),
        ("heading", "Lamps"),
        ("paragraph", "first"),
        ("heading", "b/two.txt"),
        ("paragraph", "second"),
    ]


def test_the_pages_of_a_file_are_told_by_headings(tmp_path: Path) -> None:
    found = found_in(tmp_path, packed({"book.pdf": a_pdf(2)}))
    assert told(found) == [
        ("heading", "book.pdf"),
        ("heading", "book.pdf · 1/2"),
        ("paragraph", "Page 1 of the lamp book."),
        ("heading", "book.pdf · 2/2"),
        ("paragraph", "Page 2 of the lamp book."),
    ]
    assert all(one.page is None and not one.lines for one in found if isinstance(one, Block))


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.txt", b"", "it is empty"),
        ("a.bin", b"\x7fELF\0\0", "files of this kind are not read"),
        ("a.pdf", b"no pdf", "it is damaged"),
        ("a.docx", packed({"word/document.xml": "<"}), "it is damaged"),
    ],
)
def test_a_file_that_cannot_be_read_says_why_and_the_others_are_read(
    tmp_path: Path, name: str, data: bytes, reason: str
) -> None:
    found = found_in(tmp_path, packed({name: data, "z.txt": "words"}))
    assert any(text.startswith(f"Not read: {reason}. ") for _, text in told(found))
    assert told(found)[-1] == ("paragraph", "words")
    assert found[-1] == About(left_out=1)


def test_archives_stand_in_each_other_so_deep_and_no_deeper(tmp_path: Path) -> None:
    data = packed({"deepest.txt": "too deep"})
    for name in ("three.zip", "two.zip", "one.zip"):
        data = packed({name: data, f"{name}.txt": f"beside {name}"})
    texts = [text for _, text in told(found_in(tmp_path, data))]
    assert "beside two.zip" in texts
    assert "too deep" not in texts
    assert any(text.startswith("Not read: it stands too deep") for text in texts)


def test_names_lead_nowhere_but_into_a_heading(tmp_path: Path) -> None:
    names = ["../../up.txt", "/etc/root.txt", "C:\\x\\win.txt", "con.txt", "a\x1b[2Jb.txt"]
    found = found_in(tmp_path, packed(dict.fromkeys(names, "words")))
    headings = [text for kind, text in told(found) if kind == "heading"]
    assert sorted(headings) == sorted(["up.txt", "etc/root.txt", "C:/x/win.txt", "con.txt", "a [2Jb.txt"])
    assert [one.name for one in tmp_path.iterdir()] == ["a.zip"]


def test_names_in_an_old_chinese_encoding_are_read(tmp_path: Path) -> None:
    data = packed({"AAAA.txt": "words"}).replace(b"AAAA.txt", "台灯".encode("gbk") + b".txt")
    assert told(found_in(tmp_path, data))[0] == ("heading", "台灯.txt")


def test_only_so_many_files_are_read_and_the_others_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MOST", 3)
    found = found_in(tmp_path, packed({f"{number}.txt": "words" for number in range(5)}))
    assert [text for _, text in told(found)].count("words") == 3
    assert told(found)[-1][1].startswith("Not read: 2 more files, beyond the first 3.")
    assert found[-1] == About(left_out=2)


def test_a_bomb_is_refused_and_so_is_one_within(tmp_path: Path) -> None:
    bomb = packed({"a.txt": bytes(30 * 1024 * 1024)})
    with pytest.raises(BrokenDocumentError) as caught:
        found_in(tmp_path, bomb)
    assert caught.value.words_key == "document_too_large"
    texts = [text for _, text in told(found_in(tmp_path, packed({"bomb.zip": bomb, "z.txt": "words"})))]
    assert "Not read: it is too large. 未读取：文件太大。" in texts
    assert "words" in texts


def test_an_encrypted_file_is_told_as_one(tmp_path: Path) -> None:
    data = bytearray(packed({"a.txt": "words"}))
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + at] |= 1
    assert told(found_in(tmp_path, bytes(data)))[1][1].startswith("Not read: it is protected by a password.")


@pytest.mark.parametrize("name", ["a.jar", "a.odp", "a.whl"])
def test_only_what_is_called_an_archive_is_read_as_one(name: str) -> None:
    with pytest.raises(UnsupportedFormatError):
        parser_for(name, packed({"x.txt": "words"})[:HEAD])


def test_a_folder_called_as_in_an_office_file_makes_no_office_file() -> None:
    assert parser_for("a.zip", packed({"word/list.txt": "words", "ppt/x.txt": "words"})[:HEAD])[0] == "archive"


@pytest.mark.parametrize("streamed", [False, True], ids=["with sizes", "sizes after the files"])
@pytest.mark.parametrize("inner", ["docx", "ods", "epub"])
def test_an_archive_that_only_stores_documents_is_none_of_them(
    tmp_path: Path, files: Mapping[str, bytes], inner: str, streamed: bool
) -> None:
    """Their own entries stand in it as they are, and so do those of the first document within its first bytes."""
    out = Unseekable() if streamed else io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(f"papers/report.{inner}", files[inner])
        archive.writestr("papers/words.txt", "words")
    assert parser_for("a.zip", out.getvalue()[:HEAD])[0] == "archive"
    assert "words" in [text for _, text in told(found_in(tmp_path, out.getvalue()))]


def test_the_process_that_reads_an_archive_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = tmp_path / "places"
    places.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(places))
    path = tmp_path / "a.zip"
    path.write_bytes(packed({"a.pdf": a_pdf(3), "b.txt": "words"}))
    parsed = parse(path, path.name, "archive", Limits())
    assert parsed.blocks[-1].text == "words"
    assert list(places.iterdir()) == []


def test_an_archive_without_files_has_no_words(tmp_path: Path) -> None:
    assert parser_for("a.zip", packed({})[:HEAD])[0] == "archive"
    assert found_in(tmp_path, packed({})) == [About()]
