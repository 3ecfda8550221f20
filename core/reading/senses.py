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


Stead: TypeAlias = Literal["text", "nothing", "coming"]
"""What stands for a file: its text; nothing, as none was found in it; or nothing yet, as it is still being read."""
Sense: TypeAlias = Literal["picture", "sound", "video"]

_NOTHING_IN_IT: Final = frozenset({"document_no_text", "recording_silent"})
_IN_STEAD: Final[Mapping[Lang, Mapping[Sense, str]]] = {
    "en": {
        "picture": "You do not see pictures. Of {names} you get the text that was recognised in it as passages, "
        "and not the picture itself: say so where it matters.",
        "sound": "You do not hear recordings. Of {names} you get a transcript as passages, each line of which begins "
        "with its time (h:mm:ss), and not the sound itself: say so where it matters.",
        "video": "You do not watch videos. Of {names} you get a transcript of its sound as passages, each line of "
        "which begins with its time (h:mm:ss), and neither pictures nor sound: say so where it matters.",
    },
    "zh": {
        "picture": "你看不到图片。{names} 只提供从中识别出的文字（以段落形式），而不是图片本身；必要时请说明。",
        "sound": "你听不到录音。{names} 只提供转写的文字（以段落形式，每行以时间 h:mm:ss 开头），"
        "而不是声音本身；必要时请说明。",
        "video": "你看不到视频。{names} 只提供其声音的转写文字（以段落形式，每行以时间 h:mm:ss 开头），"
        "没有画面和声音；必要时请说明。",
    },
}
_WITHOUT: Final[Mapping[Lang, Mapping[Literal["nothing", "coming"], Mapping[Sense, str]]]] = {
    "en": {
        "nothing": {
            "picture": "[picture {name}: you do not see it, and no text was recognised in it; say so if it matters]",
            "sound": "[recording {name}: you do not hear it, and nothing that is said was found in it; "
            "say so if it matters]",
            "video": "[video {name}: you do not watch it, and nothing that is said was found in it; "
            "say so if it matters]",
        },
        "coming": {
            "picture": "[picture {name}: you do not see it, and its text is still being recognised; say so]",
            "sound": "[recording {name}: you do not hear it, and its transcript is still being made; say so]",
            "video": "[video {name}: you do not watch it, and the transcript of its sound is still being made; say so]",
        },
    },
    "zh": {
        "nothing": {
            "picture": "[图片 {name}：你看不到它，其中也没有识别出文字；必要时请说明]",
            "sound": "[录音 {name}：你听不到它，其中也没有听出话语；必要时请说明]",
            "video": "[视频 {name}：你看不到它，其中也没有听出话语；必要时请说明]",
        },
        "coming": {
            "picture": "[图片 {name}：你看不到它，其中的文字仍在识别；请说明]",
            "sound": "[录音 {name}：你听不到它，转写仍在进行；请说明]",
            "video": "[视频 {name}：你看不到它，其声音的转写仍在进行；请说明]",
        },
    },
}
_COMMA: Final[Mapping[Lang, str]] = {"en": ", ", "zh": "、"}


class _Typed(Protocol):
    @property
    def media_type(self) -> str: ...


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


def told_in_stead(files: Sequence[tuple[str, Sense]], lang: Lang) -> str:
    """What a model is told of files whose text it gets in their stead; "" for none.

    Args:
        files: The name of each, and the sense that it lacks for it.
    """
    lines: list[str] = []
    for sense, told in _IN_STEAD[lang].items():
        if names := [_plain(name) for name, of in files if of == sense]:
            lines.append(told.format(names=_COMMA[lang].join(names)))
    return "\n".join(lines)


def told_without(name: str, sense: Sense, stead: Literal["nothing", "coming"], lang: Lang) -> str:
    """What stands in a message for a file of which there is no text, or none yet."""
    return _WITHOUT[lang][stead][sense].format(name=_plain(name))


def _plain(name: str) -> str:
    return harmless(" ".join(name.split()))
