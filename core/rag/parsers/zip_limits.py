"""Office files and books are zip archives; some are made to fill the memory of whoever opens them."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

from core.errors import BrokenDocumentError
from core.rag.parsers.base import ending

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_ENTRIES = 2_000
_BYTES = 400 * 1024 * 1024
_RATIO = 100
_SMALL = 20 * 1024 * 1024  # below it no ratio is dangerous
_TEXT_BYTES = 100 * 1024 * 1024
_TEXTS = (".xml", ".rels", ".opf", ".ncx", ".htm", ".html", ".xhtml")

_START = b"PK\x03\x04"
_FOLDERS = {"word": ".docx", "ppt": ".pptx", "xl": ".xlsx"}
_TYPES = {b"application/epub+zip": ".epub", b"application/vnd.oasis.opendocument.spreadsheet": ".ods"}
_ENDINGS = {**{kind: kind for kind in (*_FOLDERS.values(), *_TYPES.values())}, ".xlsm": ".xlsx", ".xlsb": ".xlsx"}


def zip_kind(name: str, head: bytes) -> str:
    """The usual ending of the document that an archive is, by what it holds, else by its name; "" for another file.

    Args:
        name: What the user calls it.
        head: Its first bytes.
    """
    if not head.startswith(_START):
        return ""
    for entry, start in _entries(head):
        if entry == "mimetype":
            return next((kind for mark, kind in _TYPES.items() if head.startswith(mark, start)), "")
        folder, _, rest = entry.partition("/")
        if rest and folder in _FOLDERS:
            return _FOLDERS[folder]
    return _ENDINGS.get(ending(name), "")


def _entries(head: bytes) -> Iterator[tuple[str, int]]:
    """The archive's entries at its beginning: their names, and where their bytes start."""
    at = 0
    while (at := head.find(_START, at)) >= 0 and at + 30 <= len(head):
        start = at + 30 + int.from_bytes(head[at + 26 : at + 28], "little")
        yield head[at + 30 : start].decode(errors="replace"), start + int.from_bytes(head[at + 28 : at + 30], "little")
        at = start


def check_zip(path: Path) -> None:
    """Refuse an archive that is damaged or grows too large when it is unpacked.

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


def check_sizes(entries: Sequence[zipfile.ZipInfo]) -> None:
    """Refuse what grows too large when it is unpacked, by what its entries say; errors as in `check_zip`."""
    total = sum(entry.file_size for entry in entries)
    packed = max(1, sum(entry.compress_size for entry in entries))
    text = max((entry.file_size for entry in entries if entry.filename.lower().endswith(_TEXTS)), default=0)
    bursts = total > _SMALL and total / packed > _RATIO
    if len(entries) > _ENTRIES or total > _BYTES or text > _TEXT_BYTES or bursts:
        raise BrokenDocumentError(
            "The file is far larger inside than it looks.", key="document_too_large", hint="Split it into smaller ones."
        )
