"""Files for a sense that a model lacks: what Parlour reads of them in its place, and what the model is told of that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from core.rag.citations import harmless
from core.rag.parsers import ocr
from core.rag.parsers.catalog import PICTURES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.languages import Lang
    from core.storage.base import DocumentRecord


Stead: TypeAlias = Literal["text", "nothing"]
"""What stands for a file: its text, or nothing, as none was found in it."""

_NO_TEXT: Final = "document_no_text"
_IN_STEAD: Final[Mapping[Lang, str]] = {
    "en": "You do not see pictures. Of {names} you get the text that was recognised in it as passages, "
    "and not the picture itself: say so where it matters.",
    "zh": "你看不到图片。{names} 只提供从中识别出的文字（以段落形式），而不是图片本身；必要时请说明。",
}
_NOTHING: Final[Mapping[Lang, str]] = {
    "en": "[picture {name}: you do not see it, and no text was recognised in it; say so if it matters]",
    "zh": "[图片 {name}：你看不到它，其中也没有识别出文字；必要时请说明]",
}


class _Typed(Protocol):
    @property
    def media_type(self) -> str: ...


def can_be_read(file: _Typed) -> bool:
    """Whether the words in a picture can be recognised here: its format is known, and the extra `ocr` installed."""
    return file.media_type.startswith("image/") and file.media_type in PICTURES and ocr.is_here()


def stead_of(record: DocumentRecord) -> Stead | None:
    """What stands for a file by its document; `None` where that is not read, or could not be."""
    if record.library_id is not None:
        return "text"
    return "nothing" if record.status == "failed" and (record.error or {}).get("key") == _NO_TEXT else None


def told_in_stead(names: Sequence[str], lang: Lang) -> str:
    """What a model is told of pictures whose recognised text it gets; "" for none."""
    listed = (", " if lang == "en" else "、").join(harmless(" ".join(name.split())) for name in names)
    return _IN_STEAD[lang].format(names=listed) if names else ""


def told_of_nothing(name: str, lang: Lang) -> str:
    """What stands in a message for a picture in which there is no text."""
    return _NOTHING[lang].format(name=harmless(" ".join(name.split())))
