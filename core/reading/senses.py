"""Files for a sense that a model lacks: what Parlour reads of them in its place, and what the model is told of that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from core.rag.in_stead import told_in_stead, told_without
from core.rag.parsers import ocr
from core.rag.parsers.catalog import PICTURES

if TYPE_CHECKING:
    from core.storage.base import DocumentRecord

__all__ = [
    "AGREED",
    "ASKED_FIRST",
    "Stead",
    "asked_first",
    "can_be_read",
    "is_heard",
    "stead_of",
    "told_in_stead",
    "told_without",
]

Stead: TypeAlias = Literal["text", "nothing", "coming"]
"""What stands for a file: its text; nothing, as none was found in it; or nothing yet, as it is still being read."""

ASKED_FIRST: Final = frozenset({"recording_price", "recording_long", "recording_large"})
"""Keys of errors that tell what a service takes for a long recording, before it is sent there."""
AGREED: Final = "agreed"
"""A fact of a document: its owner had it read all the same."""

_NOTHING_IN_IT: Final = frozenset({"document_no_text", "recording_silent"})


class _Typed(Protocol):
    @property
    def media_type(self) -> str: ...


def asked_first(record: DocumentRecord) -> bool:
    """Whether its owner was told what reading it costs, and has said nothing yet."""
    return record.status == "failed" and (record.error or {}).get("key") in ASKED_FIRST


def can_be_read(file: _Typed, *, hears: bool) -> bool:
    """Whether something of a file can be read for a model that cannot take it.

    Args:
        file: A picture, whose words are recognised where the extra `ocr` is installed; or a recording or video.
        hears: Whether something is there that turns recordings into text.
    """
    if file.media_type.startswith("image/"):
        return file.media_type in PICTURES and ocr.is_here()
    return hears and is_heard(file)


def is_heard(file: _Typed) -> bool:
    """Whether it is a recording or a video, of which the sound may become text."""
    return file.media_type.startswith(("audio/", "video/"))


def stead_of(record: DocumentRecord) -> Stead | None:
    """What stands for a file by its document; `None` where that could not be read, or was called off."""
    if record.library_id is not None:
        return "text"
    if record.status == "reading":
        return "coming"
    return "nothing" if record.status == "failed" and (record.error or {}).get("key") in _NOTHING_IN_IT else None
