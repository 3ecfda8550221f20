"""Files that are broken, mislabelled or made to do harm: each costs one sentence, and nothing else."""

from __future__ import annotations

import io
import random
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import BrokenDocumentError, DocumentError
from core.rag.parsers import process
from core.rag.parsers.catalog import HEAD, PARSERS, PDF_READERS, parser_for
from core.rag.parsers.process import Limits, Parsed

Make = Callable[[str], bytes]
KINDS = ("pdf", "docx", "pptx", "xlsx", "ods", "epub", "html", "csv", "json", "txt", "png")
WORD = "lamplight"


def read(path: Path, name: str = "", limits: Limits | None = None) -> Parsed:
    """As a library does it."""
    with path.open("rb") as file:
        parser, _ = parser_for(name or path.name, file.read(HEAD))
    return process.parse(path, name or path.name, parser, limits or Limits())


def outcome(reading: Callable[[], Parsed]) -> Parsed | DocumentError:
    """What was read, or the one sentence."""
    try:
        return reading()
    except DocumentError as error:
        return error


def words(parsed: Parsed) -> str:
    return " ".join(block.text for block in parsed.blocks)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "png"])
def test_every_kind_is_read(files: dict[str, bytes], tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    path.write_bytes(files[kind])
    assert WORD in words(read(path))


@pytest.mark.parametrize("kind", ["pdf", "docx", "pptx", "xlsx", "epub"])
@pytest.mark.parametrize("name", ["a.docx", "a.xls", "a.zip", "a", "a.png", "a.PPTX"])
def test_what_a_file_holds_counts_more_than_its_name(
    files: dict[str, bytes], tmp_path: Path, kind: str, name: str
) -> None:
    assert parser_for(name, files[kind][:HEAD])[0] == parser_for(f"a.{kind}", files[kind][:HEAD])[0]


@pytest.mark.parametrize("kind", ["pdf", "docx", "pptx", "xlsx", "epub", "png"])
@pytest.mark.parametrize("share", [0.2, 0.6, 0.95])
def test_a_truncated_file_says_so_or_gives_what_is_left(
    files: dict[str, bytes], tmp_path: Path, kind: str, share: float
) -> None:
    path = tmp_path / f"a.{kind}"
    path.write_bytes(files[kind][: int(len(files[kind]) * share)])
    found = outcome(lambda: read(path))
    if isinstance(found, DocumentError):
        assert found.words_key in {"document_broken", "document_not_what_it_says"}
    else:
        assert found.about.damaged or kind == "png"


@pytest.mark.parametrize("kind", ["pdf", "docx", "pptx", "xlsx", "epub"])
def test_flipped_bytes_cost_that_file_only(files: dict[str, bytes], tmp_path: Path, kind: str) -> None:
    dice = random.Random(7)
    for number in range(3):
        data = bytearray(files[kind])
        for _ in range(30):
            data[dice.randrange(8, len(data))] = dice.randrange(256)
        path = tmp_path / f"{number}.{kind}"
        path.write_bytes(data)
        assert isinstance(outcome(lambda path=path: read(path)), Parsed | DocumentError)


@pytest.mark.parametrize("parser", [name for name in PARSERS if name != "picture"])
def test_noise_crashes_no_parser(tmp_path: Path, parser: str) -> None:
    path = tmp_path / "noise"
    path.write_bytes(random.Random(3).randbytes(20_000))
    found = outcome(lambda: process.parse(path, "noise", parser, Limits()))
    assert isinstance(found, Parsed | DocumentError)


def pdf_of(kids: str, count: int, more: str = "") -> bytes:
    return (
        "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
        f"2 0 obj<</Type/Pages/Kids[{kids}]/Count {count}>>endobj\n"
        f"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>endobj\n{more}trailer<</Root 1 0 R>>"
    ).encode()


@pytest.mark.parametrize("reader", PDF_READERS)
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(pdf_of("3 0 R " * 100_000, 100_000), id="100,000 pages"),
        pytest.param(pdf_of("2 0 R 2 0 R", 9_000_000), id="a tree that holds itself"),
        pytest.param(
            pdf_of(
                "10 0 R",
                1,
                "".join(f"{n} 0 obj<</Type/Pages/Kids[{n + 1} 0 R]/Count 1>>endobj\n" for n in range(10, 20_000)),
            ),
            id="20,000 levels",
        ),
        pytest.param(b"%PDF-1.7\n" + b"[" * 500_000, id="brackets"),
    ],
)
def test_a_pdf_made_to_keep_a_reader_busy_is_given_up(tmp_path: Path, reader: str, data: bytes) -> None:
    path = tmp_path / "bomb.pdf"
    path.write_bytes(data)
    found = outcome(lambda: process.parse(path, "bomb.pdf", PDF_READERS[reader][0], Limits(seconds=5)))
    if isinstance(found, DocumentError):
        assert found.words_key in {"document_broken", "document_too_large", "document_too_slow"}
    else:
        assert len(found.shapes) <= 5_000


@pytest.mark.slow
@pytest.mark.parametrize("reader", PDF_READERS)
def test_a_page_with_a_picture_of_four_thousand_million_pixels_costs_that_page(tmp_path: Path, reader: str) -> None:
    side = 65_000
    packer = zlib.compressobj(9)
    row = b"\0" * (side // 8)
    packed = b"".join([*(packer.compress(row) for _ in range(side)), packer.flush()])
    drawing = b"99 0 0 99 0 0 cm /I Do"
    path = tmp_path / "large.pdf"
    path.write_bytes(
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
        b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 5 0 R"
        b"/Resources<</XObject<</I 4 0 R>>>>>>endobj\n"
        b"4 0 obj<</Type/XObject/Subtype/Image/Width 65000/Height 65000/BitsPerComponent 1/ColorSpace/DeviceGray"
        b"/Filter/FlateDecode/Length " + str(len(packed)).encode() + b">>stream\n" + packed + b"\nendstream endobj\n"
        b"5 0 obj<</Length " + str(len(drawing)).encode() + b">>stream\n" + drawing + b"\nendstream endobj\n"
        b"trailer<</Root 1 0 R>>"
    )
    limits = Limits(seconds=5, seconds_per_scan=5)
    found = outcome(lambda: process.parse(path, "large.pdf", PDF_READERS[reader][0], limits))
    if isinstance(found, DocumentError):
        assert found.words_key in {"document_too_large", "document_too_slow", "document_broken"}
    else:
        [page] = found.blocks  # a page that is a picture is a figure; what it shows was not recognised
        assert (page.kind, page.text) == ("figure", "")


@pytest.mark.parametrize("rows", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_a_table_of_very_many_rows_is_read(tmp_path: Path, rows: int) -> None:
    path = tmp_path / "a.csv"
    path.write_text("n,square\n" + "".join(f"{n},{n * n}\n" for n in range(rows)))
    parsed = read(path)
    assert sum(len(block.cells) - 1 for block in parsed.blocks) == rows


def test_a_sheet_of_a_million_rows_is_read_or_too_large(files: dict[str, bytes], tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    row = b'<row><c t="inlineStr"><is><t>x</t></is></c><c><v>1</v></c></row>'
    with (
        zipfile.ZipFile(io.BytesIO(files["xlsx"])) as source,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target,
    ):
        for name in source.namelist():
            data = source.read(name)
            if name == "xl/worksheets/sheet1.xml":
                start = data.partition(b"<sheetData>")[0]
                data = start + b"<sheetData>" + row * 1_000_000 + b"</sheetData></worksheet>"
            target.writestr(name, data)
    found = outcome(lambda: read(path))
    if isinstance(found, DocumentError):
        assert found.words_key == "document_too_large"
    else:
        assert sum(len(block.cells) - 1 for block in found.blocks) == 999_999


@pytest.mark.parametrize(("kind", "part"), [("docx", "word/document.xml"), ("xlsx", "xl/sharedStrings.xml")])
def test_entities_are_neither_unfolded_nor_fetched(
    files: dict[str, bytes], tmp_path: Path, kind: str, part: str
) -> None:
    (tmp_path / "secret.txt").write_text("the secret")
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    outside = (tmp_path / "secret.txt").as_uri()
    bomb = f'<!DOCTYPE x [<!ENTITY l0 "ha">{entities}<!ENTITY f SYSTEM "{outside}">]>'.encode()
    path = tmp_path / f"a.{kind}"
    with zipfile.ZipFile(io.BytesIO(files[kind])) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name == part:
                head, rest = data.split(b"?>", 1)
                data = head + b"?>" + bomb + rest.replace(WORD.encode(), b"&l11;&f;")
            target.writestr(name, data)
    found = outcome(lambda: read(path))
    text = str(found) if isinstance(found, DocumentError) else words(found)
    assert "secret" not in text
    assert len(text) < 1_000


@pytest.mark.parametrize("count", [2_001, 70_000])
def test_an_archive_of_very_many_parts_is_refused(tmp_path: Path, count: int) -> None:
    path = tmp_path / "a.docx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("word/document.xml", "<a/>")
        for number in range(count):
            archive.writestr(str(number), "")
    with pytest.raises(BrokenDocumentError) as caught:
        read(path)
    assert caught.value.words_key == "document_too_large"


def test_right_to_left_text_keeps_its_order(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    text = "مرحبا بالعالم. هذا نص عربي.\n\nשלום עולם. זה טקסט בעברית."
    path.write_text(text, encoding="utf-8")
    assert [block.text for block in read(path).blocks] == text.split("\n\n")
