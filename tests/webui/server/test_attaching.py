"""Files that are asked about before they are sent: which are refused, and how one line says so."""

from __future__ import annotations

import io
import json
import zipfile
from base64 import b64encode
from typing import Any

import httpx
import pytest

from core.errors import BrokenDocumentError, DocumentError, UnsupportedFormatError
from core.rag.parsers.catalog import parser_for
from tests.webui.server.raw_page import RawPage
from webui.render.refused import refusal_text
from webui.words import Words

PROGRAM = b"MZ\x90\x00" + bytes(99)


def zipped(*entries: str) -> bytes:
    """An archive of files that are called so."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for entry in entries:
            archive.writestr(entry, "<x/>")
    return out.getvalue()


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(60)
JPEG = b"\xff\xd8\xff\xe0" + bytes(60) + b"\xff\xc0" + bytes(60)


def described(name: str, content: bytes, size: int | None = None) -> dict[str, Any]:
    return {"name": name, "size": len(content) if size is None else size, "head": b64encode(content).decode()}


def check(page: RawPage, asked: Any) -> httpx.Response:
    headers = {"accept-language": "en", "content-type": "application/json"}
    return page.client.post(f"{page.url}/uploads/check", content=json.dumps(asked), headers=headers)


def test_only_files_that_would_be_refused_are_named(page: RawPage) -> None:
    files = [
        described("a.exe", PROGRAM),
        described("b.txt", b"A lamp."),
        described("c.pdf", b""),
        described("d.mov", b"\0\0\0\x14ftypqt  ", 99 * 2**20),
        described("e.png", PNG),
        described("f.docx", b"PK\x03\x04" + bytes(60)),
    ]
    answer = check(page, {"files": files}).json()
    assert answer["refused"] == [0, 2, 3], "of a picture the text is recognised for a model that does not see"
    assert answer["said"].startswith("Parlour cannot read a.exe.")
    assert "d.mov is 99 MB; the limit is 50 MB." in answer["said"]


def test_a_file_that_is_not_what_its_name_says_is_refused_before_it_is_sent(page: RawPage) -> None:
    files = [
        described("a.pdf", b"Only text.\n" * 9),
        described("b.txt", b"A lamp."),
        described("c.docx", b"Text.\n" * 9),
    ]
    answer = check(page, {"files": files}).json()
    assert answer["refused"] == [0, 2]
    assert "The content of a.pdf does not match its file name." in answer["said"]


BEGINNINGS = {
    "a.png": b"\x89PNG\r\n\x1a\nbroken",
    "b.jpg": b"\xff\xd8\xff\xe0 and no frame of a picture",
    "c.gif": b"GIF89a",
    "d.webp": b"RIFF\0\0\0\0WEBPbroken",
    "e.BMP": b"BM\0\0\0\0",
}


@pytest.mark.parametrize(("name", "content"), BEGINNINGS.items())
def test_a_picture_that_only_begins_like_one_is_refused_before_it_is_sent(
    page: RawPage, name: str, content: bytes
) -> None:
    answer = check(page, {"files": [described("f.png", PNG), described("g.jpg", JPEG), described(name, content)]})
    assert answer.json()["refused"] == [2]
    assert answer.json()["said"].startswith(f"{name} is damaged and cannot be read.")


def test_a_text_that_is_called_a_picture_is_refused_before_it_is_sent(page: RawPage) -> None:
    answer = check(page, {"files": [described("a.png", b"Only text.\n" * 9), described("b.jpeg", b"Text.")]}).json()
    assert answer["refused"] == [0, 1]
    assert "The contents of a.png, b.jpeg do not match their file names." in answer["said"]


@pytest.mark.parametrize("name", ["a.jpg", "b.JPEG"])
def test_a_jpeg_with_a_long_beginning_is_taken(page: RawPage, name: str) -> None:
    answer = check(page, {"files": [described(name, b"\xff\xd8\xff\xe1" + bytes(2**16))]}).json()
    assert answer["refused"] == []


@pytest.mark.parametrize(
    ("name", "content", "really"),
    [
        ("picture.pdf", PNG, ["picture.png", "image/png"]),
        ("Scan.v2.DOCX", JPEG, ["Scan.v2.jpg", "image/jpeg"]),
        ("notes.txt", b"RIFF\x00\x00\x00\x00WEBPVP8 " + bytes(60), ["notes.webp", "image/webp"]),
        ("prices.csv", zipped("xl/workbook.xml"), ["prices.xlsx", "application/zip"]),
        ("talk.pdf", zipped("ppt/presentation.xml"), ["talk.pptx", "application/zip"]),
    ],
)
def test_what_is_called_a_document_that_it_is_not_is_read_as_what_it_is_and_a_line_says_so(
    page: RawPage, name: str, content: bytes, really: list[str]
) -> None:
    asked = {"files": [described("b.txt", b"A lamp."), described(name, content)]}
    answer = check(page, asked).json()
    assert (answer["refused"], answer["said"], answer["renamed"]) == ([], "", {"1": really})
    promised, kind = name.rpartition(".")[2].upper(), really[0].rpartition(".")[2].upper()
    assert answer["noted"] == f"{name} is no {promised}: by its content it is {kind}, and it is read as that."


@pytest.mark.parametrize("name", ["prices.xls", "prices.xlsm", "prices.xlsx", "prices", "prices.data"])
def test_a_workbook_that_is_called_one_or_promises_nothing_keeps_its_name(page: RawPage, name: str) -> None:
    answer = check(page, {"files": [described(name, zipped("xl/workbook.xml"))]}).json()
    assert (answer["refused"], answer["renamed"]) == ([], {})


def test_of_a_picture_that_is_called_a_document_and_refused_it_is_said_what_it_is_and_what_to_do(page: RawPage) -> None:
    files = [described("scan.docx", PNG, 99 * 2**20)]
    answer = check(page, {"files": files}).json()
    meant, why = answer["said"].split("\n")
    assert meant == "scan.docx is no DOCX: by its content it is PNG."
    assert why.startswith("scan.png is 99 MB; the limit is 50 MB.")


@pytest.mark.parametrize(
    ("lang", "said", "done"),
    [
        ("en", "scan.docx is called DOCX, but by its content it is PNG.", "Give it the ending of what it is"),
        ("zh", "scan.docx 的扩展名是 DOCX，但内容是 PNG。", "请把扩展名改成"),
    ],
)
def test_a_file_of_another_kind_than_its_name_says_has_one_sentence_on_that_and_one_on_what_to_do(
    lang: str, said: str, done: str
) -> None:
    with pytest.raises(BrokenDocumentError) as caught:
        parser_for("scan.docx", b"\x89PNG\r\n\x1a\n" + bytes(60))
    caught.value.details["name"] = "scan.docx"
    told = Words(lang).error(caught.value)
    assert told.startswith(said)
    assert done in told.removeprefix(said)


def test_what_was_not_asked_about_is_refused_as_it_arrives_where_it_is_not_what_its_name_says(page: RawPage) -> None:
    with pytest.raises(AssertionError, match=r"picture\.pdf is called PDF, but by its content it is PNG"):
        page.upload("picture.pdf", b"\x89PNG\r\n\x1a\n" + bytes(60))


@pytest.mark.parametrize(
    "asked",
    [
        [],
        {"files": 1},
        {"files": [1]},
        {"files": [{"name": "a"}]},
        {"files": [{"name": "a", "size": -1, "head": ""}]},
        {"files": [{"name": "a", "size": 10**4000, "head": ""}]},
        {"files": [{"name": "a", "size": 1, "head": "a"}]},
        {"files": [described("a.txt", b"x")] * 41},
        {"files": [{"name": "a" * 4_000_000, "size": 1, "head": ""}]},
    ],
    ids=["list", "number", "no file", "no size", "negative", "beyond all", "no base64", "too many", "too long"],
)
def test_what_the_page_would_not_send_is_no_question(page: RawPage, asked: Any) -> None:
    assert check(page, asked).status_code == 400


def test_names_of_any_kind_are_told_as_they_are(page: RawPage) -> None:
    answer = check(page, {"files": [described("{name}\ud800<b>.exe", PROGRAM)]}).json()
    assert "{name}?<b>.exe" in answer["said"]


def test_each_reason_why_files_are_not_taken_has_a_line_of_its_own() -> None:
    errors = [
        DocumentError("", key="document_empty", name="a.txt"),
        DocumentError("", key="upload_too_large", name="b.mov", size=99, limit=50),
        DocumentError("", key="upload_too_large", name="c.mov", size=70, limit=50),
        UnsupportedFormatError("", name="d.exe", kind="program"),
    ]
    for lang in ("en", "zh"):
        lines = refusal_text(errors, Words(lang)).split("\n")
        assert [name for line in lines for name in ("a.txt", "b.mov", "c.mov", "d.exe") if name in line] == [
            *("a.txt", "b.mov", "c.mov", "d.exe")
        ]
        assert len(lines) == 4


def test_what_several_files_share_is_said_once() -> None:
    errors = [
        UnsupportedFormatError("", name="a.zip", kind="ZIP"),
        UnsupportedFormatError("", name="b.exe", kind="program"),
        DocumentError("", key="document_empty", name="c.txt"),
    ]
    said = refusal_text(errors, Words("en"))
    together, apart = said.split("\n")
    assert together.startswith("Parlour cannot read a.zip, b.exe. It reads PDF,")
    assert together.count("It reads") == 1
    assert apart == "c.txt is empty. Check that it was saved, and send it again."
    assert refusal_text(errors, Words("zh")).startswith("Parlour 无法读取 a.zip、b.exe。")
    assert refusal_text([], Words("en")) == ""


def test_several_that_are_empty_are_empty() -> None:
    errors = [DocumentError("", key="document_empty", name=name) for name in ("empty.pdf", "empty.txt")]
    assert refusal_text(errors, Words("en")).startswith("empty.pdf, empty.txt are empty. Check")
    assert refusal_text(errors, Words("zh")).startswith("empty.pdf、empty.txt 里都没有内容。")


def test_of_very_many_files_of_one_reason_the_first_are_named_and_the_others_counted(page: RawPage) -> None:
    files = [described(f"{number:02}.exe", PROGRAM) for number in range(11)]
    answer = check(page, {"files": files}).json()
    assert answer["said"].startswith("Parlour cannot read 00.exe, 01.exe, 02.exe, 03.exe, 04.exe, and 6 more.")
    ten = check(page, {"files": files[:10]}).json()["said"]
    assert ten.startswith("Parlour cannot read 00.exe, ")
    assert "09.exe." in ten


def test_refusals_of_several_requests_are_told_in_one_sentence(page: RawPage) -> None:
    first = check(page, {"files": [described("a.exe", PROGRAM)], "alone": True}).json()
    second = check(page, {"files": [described("b.exe", PROGRAM), described("c.txt", b"")], "also": first["why"]}).json()
    assert second["refused"] == [0, 1]
    assert second["said"].startswith("Parlour cannot read a.exe, b.exe. It reads PDF,")
    assert len(second["why"]) == 2
    together = check(page, {"files": [], "also": [*first["why"], *second["why"]]}).json()["said"]
    assert together == second["said"]


@pytest.mark.parametrize("also", [1, [1], [{"key": 1}], [{"key": "upload_too_large", "details": 1}]])
def test_what_was_never_a_refusal_is_not_told(page: RawPage, also: Any) -> None:
    answer = check(page, {"files": [described("b.txt", b"A lamp.")], "also": also})
    assert (answer.status_code, answer.json()["said"]) == (200, "")
