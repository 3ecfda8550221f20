"""What kind of file it is, found in its content; its name only tells kinds of text apart."""

from __future__ import annotations

import zipfile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

UNKNOWN = "application/octet-stream"
_HEAD = 64 * 1024
_ZIP = b"PK\x03\x04"

_MAGIC: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (8, b"WAVE", "audio/wav"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"\xff\xf3", "audio/mpeg"),
    (4, b"ftypM4A", "audio/mp4"),
    (4, b"ftyp", "video/mp4"),
    (0, b"BM", "image/bmp"),
)
_OFFICE = "application/vnd.openxmlformats-officedocument."
_IN_ZIP = (
    ("word/document.xml", _OFFICE + "wordprocessingml.document"),
    ("xl/workbook.xml", _OFFICE + "spreadsheetml.sheet"),
    ("ppt/presentation.xml", _OFFICE + "presentationml.presentation"),
    ("META-INF/container.xml", "application/epub+zip"),
)
_TEXTS = {
    ".csv": "text/csv",
    ".tsv": "text/csv",
    ".htm": "text/html",
    ".html": "text/html",
    ".markdown": "text/markdown",
    ".md": "text/markdown",
}
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_SUFFIXES = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "image/bmp": ".bmp",
    "audio/wav": ".wav",
    "audio/ogg": ".ogg",
    "audio/flac": ".flac",
    "audio/mpeg": ".mp3",
    "audio/mp4": ".m4a",
    "audio/webm": ".weba",
    "video/mp4": ".mp4",
    "video/webm": ".webm",
    "application/pdf": ".pdf",
    "application/epub+zip": ".epub",
    **{media_type: suffix for suffix, media_type in _TEXTS.items() if suffix in {".csv", ".html", ".md"}},
    "text/plain": ".txt",
    "text/uri-list": ".uri",  # never what a content is found to be
    _IN_ZIP[0][1]: ".docx",
    _IN_ZIP[1][1]: ".xlsx",
    _IN_ZIP[2][1]: ".pptx",
}


def media_type_of(path: Path, name: str) -> str:
    """The media type of a file: `application/octet-stream` for what is not known, the empty file included.

    Args:
        path: The file.
        name: What people call it.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return _in_zip(path) if head.startswith(_ZIP) else media_type_of_head(head, name)


def media_type_of_head(head: bytes, name: str) -> str:
    """The media type of a file of which only the first bytes are there; every ZIP archive is `application/zip`.

    Args:
        head: Its first 64 KiB.
        name: What people call it.
    """
    suffix = PurePosixPath(name).suffix.lower()
    # Readers accept a PDF that begins late; a text that only speaks of one does not start so early.
    if b"%PDF-" in head[:1024]:
        return "application/pdf"
    if head.startswith(_ZIP):
        return "application/zip"
    if head.startswith(b"\x1aE\xdf\xa3"):
        # A browser's recordings of sound and of pictures begin alike; the tracks' names tell them apart.
        return "audio/webm" if b"A_" in head and b"V_" not in head else "video/webm"
    for offset, magic, media_type in _MAGIC:
        if head.startswith(magic, offset) and not (magic == b"BM" and _is_text(head)):
            return media_type
    return _text_type(head, suffix) if _is_text(head) else UNKNOWN


def suffix_for(media_type: str) -> str:
    """The suffix that a stored file of this kind gets, with its dot; empty for unknown kinds."""
    return _SUFFIXES.get(media_type, "")


def _in_zip(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError):
        return "application/zip"
    return next((media_type for name, media_type in _IN_ZIP if name in names), "application/zip")


def _is_text(head: bytes) -> bool:
    if head.startswith(_BYTE_ORDER_MARKS):
        return True
    # Old Chinese encodings are not UTF-8, but neither do they hold control characters.
    return bool(head) and not any(byte < 9 or 13 < byte < 27 or 27 < byte < 32 for byte in head)


def _text_type(head: bytes, suffix: str) -> str:
    start = head[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return "text/html"
    return _TEXTS.get(suffix, "text/plain")
