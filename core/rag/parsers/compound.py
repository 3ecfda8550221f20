"""Compound files of Office 97 and Outlook: which document one holds, and one error for all damage."""

from __future__ import annotations

import struct
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from core.errors import BrokenDocumentError, LockedDocumentError
from core.rag.parsers.base import ending
from core.rag.parsers.text import decode

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_STREAMS = {
    ".msg": "__properties_version1.0",
    ".ppt": "PowerPoint Document",
    ".doc": "WordDocument",
    ".xls": "Workbook",
}
_SAME = {".dot": ".doc", ".pps": ".ppt", ".pot": ".ppt", ".xlt": ".xls"}
# What reading beyond the end, or a number that is none, ends in.
_DAMAGE = (*(OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError, EOFError), struct.error)


def compound_kind(name: str, head: bytes) -> str:
    """The usual file ending of the document in a compound file, by what its name says, else by its streams, or "".

    Args:
        name: The file's name as the user knows it.
    """
    if not head.startswith(SIGNATURE):
        return ""
    kind = _SAME.get(ending(name), ending(name))
    if kind in _STREAMS:  # the list of streams may lie behind the head
        return kind
    return next((kind for kind, stream in _STREAMS.items() if stream.encode("utf-16-le") in head), "")


@contextmanager
def compound(path: Path, what: str) -> Generator[Any]:
    """An open compound file; damage raises one error, also while its streams are read.

    Args:
        what: What to call it at the start of a sentence: "The Word document".

    Raises:
        BrokenDocumentError: It is damaged, or another kind of file.
    """
    try:
        with cast("Any", import_module("olefile")).OleFileIO(str(path)) as container:
            yield container
    except _DAMAGE as error:
        raise BrokenDocumentError(f"{what} is damaged.") from error


def stream_of(container: Any, name: str) -> bytes:
    """A whole stream.

    Raises:
        BrokenDocumentError: There is none of this name: it is another kind of file.
    """
    if not container.exists(name):
        raise BrokenDocumentError(f"There is no {name} in the file.", key="document_not_what_it_says")
    return bytes(container.openstream(name).read())


def title_of(container: Any) -> str:
    """The title that the document tells of itself."""
    title = container.get_metadata().title
    return decode(title).strip() if isinstance(title, bytes) else ""


def locked(what: str) -> LockedDocumentError:
    """The error of a file that a password opens."""
    return LockedDocumentError(
        f"{what} asks for a password.", hint="Give its password, or save a copy without one.", asks=True
    )
