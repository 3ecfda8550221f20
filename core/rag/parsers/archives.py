"""Zip packages: which document one holds, limits against decompression bombs, and one error for all damage."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from core.errors import BrokenDocumentError
from core.rag.parsers.base import ending

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from pathlib import Path

_ENTRIES = 2_000
_BYTES = 400 * 1024 * 1024
_RATIO = 100
_SMALL = 20 * 1024 * 1024  # below it no ratio is dangerous
_TEXT_BYTES = 100 * 1024 * 1024
_TEXTS = (".xml", ".rels", ".opf", ".ncx", ".htm", ".html", ".xhtml")

_SHEETS = "xl/worksheets/"
_START = b"PK\x03\x04"
_EMPTY = b"PK\x05\x06"  # an archive without files
_SIZE_BEHIND = 0x8  # a flag of an entry
_MANIFEST = "META-INF/manifest.xml"
_FOLDERS = {"word": ".docx", "ppt": ".pptx", "xl": ".xlsx"}
_TYPES = {
    b"application/epub+zip": ".epub",
    b"application/vnd.oasis.opendocument.spreadsheet": ".ods",
    b"application/vnd.oasis.opendocument.text": ".odt",
}
_MAIN_PARTS = {"word/document.xml", "ppt/presentation.xml", "xl/workbook.xml", "xl/workbook.bin"}
_CALLED_ARCHIVES = frozenset({"", ".zip"})
_ENDINGS = {**{kind: kind for kind in (*_FOLDERS.values(), *_TYPES.values())}, ".xlsm": ".xlsx", ".xlsb": ".xlsx"}


def zip_kind(name: str, head: bytes) -> str:
    """The usual file ending of the document in an archive, by its content, else by its name; "" for another file.

    Args:
        name: The file's name as the user knows it.
    """
    if not head.startswith(_START):
        return ""
    for entry, start in _entries(head):
        if entry == "mimetype":
            return next((kind for mark, kind in _TYPES.items() if head.startswith(mark, start)), "")
        folder, _, rest = entry.partition("/")
        # In an archive, folders may be called anything.
        if rest and folder in _FOLDERS and (ending(name) != ".zip" or entry in _MAIN_PARTS):
            return _FOLDERS[folder]
    return _ENDINGS.get(ending(name), "")


def is_archive(name: str, head: bytes) -> bool:
    """Whether it is an archive of files, and no document."""
    return head.startswith((_START, _EMPTY)) and ending(name) in _CALLED_ARCHIVES and not zip_kind(name, head)


def _entries(head: bytes) -> Iterator[tuple[str, int]]:
    """The first entries of an archive: their names, and where their bytes start.

    Entries of an archive that is stored within it are none of its own: it is stepped over where its size is told before
    it, else what comes after it is not known.
    """
    at = 0
    while (at := head.find(_START, at)) >= 0 and at + 30 <= len(head):
        named = at + 30 + int.from_bytes(head[at + 26 : at + 28], "little")
        start = named + int.from_bytes(head[at + 28 : at + 30], "little")
        yield head[at + 30 : named].decode(errors="replace"), start
        size = int.from_bytes(head[at + 18 : at + 22], "little")  # 0 where it is told after the bytes
        if not size and head.startswith(_START, start) and head[at + 6] & _SIZE_BEHIND:
            return
        at = start + size


def check_zip(path: Path) -> None:
    """Refuse an archive that is damaged or a decompression bomb.

    The declared sizes can be trusted: `zipfile` never reads beyond them.

    Raises:
        BrokenDocumentError: With the key `document_too_large` for what unpacks too large.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise BrokenDocumentError("The file is damaged: its archive cannot be opened.") from error
    check_sizes(entries)


def is_encrypted_package(path: Path) -> bool:
    """Whether an OpenDocument package has encrypted parts, by its manifest; false for a damaged one."""
    try:
        with zipfile.ZipFile(path) as archive:
            return b"encryption-data" in archive.read(_MANIFEST)
    except (*ARCHIVE_ERRORS, LookupError, ValueError):
        return False


def check_sizes(entries: Sequence[zipfile.ZipInfo]) -> None:
    """Refuse entries that unpack too large; errors as in `check_zip`."""
    total = sum(entry.file_size for entry in entries)
    packed = max(1, sum(entry.compress_size for entry in entries))
    texts = (one for one in entries if one.filename.lower().endswith(_TEXTS))
    # Sheets are read row by row; a million rows of three columns are 130 MB.
    text = max((one.file_size for one in texts if not one.filename.lower().startswith(_SHEETS)), default=0)
    bursts = total > _SMALL and total / packed > _RATIO
    if len(entries) > _ENTRIES or total > _BYTES or text > _TEXT_BYTES or bursts:
        raise BrokenDocumentError(
            "The file is far larger inside than it looks.", key="document_too_large", hint="Split it into smaller ones."
        )


# `RuntimeError`: a part is encrypted or, as `NotImplementedError`, compressed in an unknown way.
ARCHIVE_ERRORS = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError)
"""What a damaged archive raises while it is read."""
# A part that is missing, or of an unexpected kind.
_PART_ERRORS = (LookupError, ValueError, AttributeError, TypeError)


@contextmanager
def package(path: Path, what: str, open_with: Callable[[str], Any], invalid: type[Exception]) -> Generator[Any]:
    """An open Office package; damage raises one error, also while the package is read.

    Args:
        what: What to call it at the start of a sentence: "The Word document".
        open_with: Opens it.

    Raises:
        BrokenDocumentError: The archive is damaged, too large inside, or another kind of file.
    """
    check_zip(path)
    of_xml = cast("type[Exception]", cast("Any", import_module("lxml.etree")).LxmlError)
    try:
        try:
            opened = open_with(str(path))
        except (KeyError, ValueError) as error:
            raise BrokenDocumentError(f"{what} is another kind of file.", key="document_not_what_it_says") from error
        yield opened
    except (*ARCHIVE_ERRORS, *_PART_ERRORS, of_xml, invalid) as error:
        raise BrokenDocumentError(f"{what} is damaged.") from error
