"""What is told of a file by its first bytes, before all of it is here: whether anything reads it."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

from core.errors import BrokenDocumentError, DocumentError, UnsupportedFormatError
from core.rag.parsers.catalog import HEAD, parser_for
from core.reading.attachments import true_name
from core.storage.files import media_type_of_head

NOT_WHAT_IT_SAYS: Final = "document_not_what_it_says"
_FOR_THE_MODEL = ("image/", "audio/", "video/")
_PICTURES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp"})
# What stands after the signature of a picture that can be shown.
_BEGINS: Final = {
    "image/png": re.compile(rb".{12}(?:IHDR|CgBI).{17}", re.DOTALL),
    "image/gif": re.compile(rb".{13}", re.DOTALL),
    "image/webp": re.compile(rb".{12}VP8[ LX]", re.DOTALL),
    "image/bmp": re.compile(rb".{26}", re.DOTALL),
}
_JPEG_FRAME: Final = re.compile(rb"\xff[\xc0-\xc3\xc5-\xc7\xc9-\xcb\xcd-\xcf]")


def unread(name: str, head: bytes) -> DocumentError | None:
    """Why nothing reads such a file; None where something does, or where only reading it can tell.

    Args:
        name: What its owner calls it.
        head: Its first 64 KiB.
    """
    media_type = media_type_of_head(head, name)
    error: DocumentError | None = None
    if media_type.startswith(_FOR_THE_MODEL) and true_name(name, media_type) == name:
        error = None if _may_be_shown(media_type, head) else BrokenDocumentError("The picture is damaged.")
    elif media_type.startswith("text/") and PurePosixPath(name).suffix.lower() in _PICTURES:
        error = BrokenDocumentError("The file is called a picture, and is text.", key=NOT_WHAT_IT_SAYS)
    else:
        error = _without_parser(name, head)
    if error is not None:
        error.details["name"] = name
    return error


def _without_parser(name: str, head: bytes) -> DocumentError | None:
    try:
        parser_for(name, head)
    except DocumentError as error:
        if isinstance(error, UnsupportedFormatError) or error.words_key == NOT_WHAT_IT_SAYS:
            return error
        # Of a kind that is read, but this one cannot be: the reply says why.
    return None


def _may_be_shown(media_type: str, head: bytes) -> bool:
    """False of what has the signature of a picture, and no more of one."""
    if media_type == "image/jpeg":  # what comes before its frame may be longer than the head
        return len(head) >= HEAD or _JPEG_FRAME.search(head) is not None
    begins = _BEGINS.get(media_type)
    return begins is None or begins.match(head) is not None
