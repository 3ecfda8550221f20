"""The parsers, and the choice among them: a file's content counts before its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.errors import BrokenDocumentError, LockedDocumentError, UnsupportedFormatError
from core.rag.parsers.base import Parser, ending, is_pdf
from core.rag.parsers.compound import SIGNATURE
from core.registry import Entry, Registry

if TYPE_CHECKING:
    from collections.abc import Mapping

# Asked in this order; the last takes whatever is text.
PARSERS: Mapping[str, Entry] = {
    "pdf": Entry("core.rag.parsers.pdf:PdfParser"),
    "picture": Entry("core.rag.parsers.picture:PictureParser"),
    "pdfium": Entry("core.rag.parsers.pdf_pdfium:PdfiumParser"),  # never asked: the setting puts it in place of "pdf"
    "word": Entry("core.rag.parsers.word:WordParser"),
    "slides": Entry("core.rag.parsers.slides:SlidesParser"),
    "workbook": Entry("core.rag.parsers.spreadsheet:WorkbookParser"),
    "word97": Entry("core.rag.parsers.word97:Word97Parser"),
    "slides97": Entry("core.rag.parsers.slides97:Slides97Parser"),
    "open_document": Entry("core.rag.parsers.opendocument:OpenDocumentParser"),
    "rich_text": Entry("core.rag.parsers.rich_text:RichTextParser"),
    "mail": Entry("core.rag.parsers.mail:MailParser"),
    "outlook": Entry("core.rag.parsers.mail:OutlookParser"),
    "archive": Entry("core.rag.parsers.archive:ArchiveParser"),
    "book": Entry("core.rag.parsers.epub:BookParser"),
    "transcript": Entry("core.rag.parsers.transcript:TranscriptParser"),
    "web_page": Entry("core.rag.parsers.web_page:WebPageParser"),
    "sheet": Entry("core.rag.parsers.spreadsheet:SheetParser"),
    "data_text": Entry("core.rag.parsers.data_text:DataTextParser"),
    "plain": Entry("core.rag.parsers.text:PlainParser"),
}
# The setting `pdf_reader`: the parser, and what draws the pages.
PDF_READERS: Mapping[str, tuple[str, str]] = {
    "pymupdf": ("pdf", "core.rag.parsers.pdf_mupdf"),
    "pypdfium2": ("pdfium", "core.rag.parsers.pdf_pdfium"),
}
# Parsers of files to be shown or queried, not indexed; chosen by name.
VERBATIM: Mapping[str, Entry] = {
    "lines": Entry("core.rag.parsers.verbatim:LinesParser"),
    "grid": Entry("core.rag.parsers.verbatim:GridParser"),
    "table_rows": Entry("core.rag.parsers.table_rows:TableRowsParser"),
}
PARSER_REGISTRY: Registry[type[Parser]] = Registry("parser", {**PARSERS, **VERBATIM})

# The module that renders the pages of a media type.
PICTURES: Mapping[str, str] = {
    "application/pdf": PDF_READERS["pymupdf"][1],
    **{f"image/{kind}": "core.rag.parsers.picture" for kind in ("png", "jpeg", "gif", "webp", "bmp", "tiff")},
}

READABLE = (
    *("PDF", "DOCX", "DOC", "ODT", "RTF", "PPTX", "PPT", "XLSX", "XLS", "ODS", "EPUB"),
    *("EML", "MSG", "TXT", "MD", "HTML", "CSV", "JSON", "IPYNB", "VTT", "SRT", "ZIP"),
    *("PNG", "JPEG", "TIFF"),  # with the extra `ocr`
)

HEAD = 64 * 1024
# The format that a file ending promises.
_PROMISES = {
    ".pdf": "PDF",
    ".docx": "DOCX",
    ".doc": "DOC",
    ".odt": "ODT",
    ".rtf": "RTF",
    ".pptx": "PPTX",
    ".ppt": "PPT",
    ".msg": "MSG",
    ".zip": "ZIP",
    ".xlsx": "XLSX",
    ".ods": "ODS",
    ".epub": "EPUB",
    ".txt": "TXT",
    ".md": "MD",
    ".html": "HTML",
    ".htm": "HTML",
    ".csv": "CSV",
    ".tsv": "TSV",
    ".json": "JSON",
}
_NO_TEXT = frozenset({"PDF", "DOCX", "ODT", "PPTX", "PPT", "MSG", "XLSX", "ODS", "EPUB", "ZIP"})
_OFFICE = frozenset({".docx", ".xlsx", ".xlsm", ".pptx"})
_READ = frozenset({"", "ZIP", "Office 97", "RTF", "PNG", "JPEG", "GIF", "WebP", "BMP", "TIFF"})  # kinds with a parser
_SIGNATURES: tuple[tuple[bytes, int, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", 0, "PNG"),
    (b"\xff\xd8\xff", 0, "JPEG"),
    (b"GIF8", 0, "GIF"),
    (b"WEBP", 8, "WebP"),
    (b"BM", 0, "BMP"),
    (b"II*\x00", 0, "TIFF"),
    (b"MM\x00*", 0, "TIFF"),
    (b"PK\x03\x04", 0, "ZIP"),
    (b"PK\x05\x06", 0, "ZIP"),
    (SIGNATURE, 0, "Office 97"),
    (b"{\\rtf", 0, "RTF"),
    (b"\x1f\x8b", 0, "GZIP"),
    (b"7z\xbc\xaf", 0, "7Z"),
    (b"Rar!", 0, "RAR"),
    (b"\x7fELF", 0, "ELF"),
    (b"MZ", 0, "EXE"),
    (b"ID3", 0, "MP3"),
    (b"ftyp", 4, "MP4"),
    (b"RIFF", 0, "RIFF"),
    (b"OggS", 0, "OGG"),
)


def parser_for(name: str, head: bytes, pdf_reader: str = "pymupdf") -> tuple[str, str]:
    """The name of the parser that reads such a file, and the file's media type.

    Args:
        name: The file's name as the user knows it.
        head: Its first `HEAD` bytes.
        pdf_reader: Which of `PDF_READERS` reads a PDF.

    Raises:
        BrokenDocumentError: It is empty, or its name promises a format that it is not.
        LockedDocumentError: It is an Office file with a password.
        UnsupportedFormatError: No parser reads it; the message lists what is read.
    """
    if not head:
        raise BrokenDocumentError("The file is empty.", key="document_empty")
    kind = _signature(head)
    if head.startswith(SIGNATURE) and ending(name) in _OFFICE:
        raise LockedDocumentError(
            "The file asks for a password.", hint="Give its password, or save a copy without one.", asks=True
        )
    promised = _PROMISES.get(ending(name), "")
    for parser in PARSERS if kind in _READ or is_pdf(head) else ():
        media_type = PARSER_REGISTRY[parser]().accepts(name, head)
        if (media_type.startswith("text/") and promised in _NO_TEXT) or (media_type.startswith("image/") and promised):
            break
        if media_type:
            return (PDF_READERS[pdf_reader][0] if parser == "pdf" else parser), media_type
    if promised:
        raise _not_what_it_says(promised, kind)
    named = ending(name).removeprefix(".").upper()
    kind = named if named and kind in {"", "ZIP", "RIFF"} else kind
    raise UnsupportedFormatError(
        f"Files of this kind{f' ({kind})' if kind else ''} cannot be read.",
        hint=f"Parlour reads {', '.join(READABLE)} and other text.",
        kind=kind,
        readable=", ".join(READABLE),
    )


def renderer_of(media_type: str, pdf_reader: str = "pymupdf") -> str:
    """The module that renders the pages of a media type in `PICTURES`."""
    return PDF_READERS[pdf_reader][1] if media_type == "application/pdf" else PICTURES[media_type]


def decryptor_of(head: bytes, pdf_reader: str = "pymupdf") -> str:
    """The module that decrypts such a file, or "" if none does; `head` and `pdf_reader` as above."""
    if head.startswith(SIGNATURE):
        return "core.rag.parsers.office_encryption"
    return PDF_READERS[pdf_reader][1] if is_pdf(head) else ""


def _not_what_it_says(promised: str, kind: str) -> BrokenDocumentError:
    what = f" but {kind}" if kind else ""
    return BrokenDocumentError(
        f"The file is called {promised}, but it is not {promised}{what}.",
        key="document_not_what_it_says",
        hint="Check the file, or give it its right name.",
        promised=promised,
        kind=kind,
    )


def _signature(head: bytes) -> str:
    """The binary format that the first bytes are a signature of, or ""."""
    for mark, at, kind in _SIGNATURES:
        if head.startswith(mark, at) and (len(mark) > 2 or b"\x00" in head[:64]):
            return kind
    return ""
