"""Whatever lies on this machine, put into the request itself: pictures, recordings, videos and their frames."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from binascii import a2b_base64
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from core.errors import ModelRefusedError
from core.llm.local_files import path_of
from core.llm.pictures import data_uri, kind_of, unreadable
from core.messages.content import ContentItem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from core.messages.message import Message

Heard: TypeAlias = Literal["audio", "video"]

LARGEST: Final = 20 * 1024 * 1024
"""Bytes of a recording or video that goes into a request; base64 makes it a third larger."""

_WORDS: Final = {"audio": "recording", "video": "video"}
_KEYS: Final = {"audio": "recording_unreadable", "video": "video_unreadable"}
_ELSEWHERE: Final = ("http://", "https://", "oss://")
_STARTS: Final[dict[Heard, dict[bytes, str]]] = {
    "audio": {
        b"ID3": "mpeg",
        b"\xff\xfb": "mpeg",
        b"\xff\xf3": "mpeg",
        b"\xff\xf2": "mpeg",
        b"\xff\xfa": "mpeg",
        b"OggS": "ogg",
        b"fLaC": "flac",
        b"#!AMR": "amr",
        b"\xff\xf1": "aac",
        b"\xff\xf9": "aac",
        b"\x1aE\xdf\xa3": "webm",
    },
    "video": {
        b"\x1aE\xdf\xa3": "webm",
        b"FLV\x01": "x-flv",
        b"\x00\x00\x01\xba": "mpeg",
        b"\x00\x00\x01\xb3": "mpeg",
        b"OggS": "ogg",
    },
}


async def inlined(messages: Iterable[Message], takes: Callable[[ContentItem], bool]) -> tuple[Message, ...]:
    """The messages, what is local as `data:` URIs; a message without any stays the same object.

    Args:
        messages: Never changed.
        takes: Whether the model takes an item; others stay as they are.

    Raises:
        ModelRefusedError: A file cannot be read, is not what it should be, or is too large.
    """
    return tuple([await _inlined(message, takes) for message in messages])


async def _inlined(message: Message, takes: Callable[[ContentItem], bool]) -> Message:
    if isinstance(message.content, str) or not any(takes(item) for item in message.content):
        return message
    items = [await asyncio.to_thread(_item, item) if takes(item) else item for item in message.content]
    changed = any(new is not old for new, old in zip(items, message.content, strict=True))
    return message.model_copy(update={"content": items}) if changed else message


def _item(item: ContentItem) -> ContentItem:
    match item.type:
        case "image":
            return _replaced(item, _picture(str(item.image)))
        case "audio" if isinstance(item.audio, str):
            return _replaced(item, _heard("audio", item.audio))
        case "video" if isinstance(item.video, list):
            return ContentItem(video=[_picture(str(frame)) for frame in item.video])
        case "video":
            return _replaced(item, _heard("video", str(item.video)))
        case _:
            return item


def _replaced(item: ContentItem, address: str) -> ContentItem:
    return item if address == item.value else ContentItem(**{item.type: address})


def _picture(address: str) -> str:
    if address.startswith(_ELSEWHERE):
        return address
    if not address.startswith("data:"):
        return data_uri(address)
    if not kind_of(_beginning(address)):
        raise unreadable("", "is not a PNG, JPEG, WebP, GIF or BMP picture")
    return _nameless(address)


def _heard(kind: Heard, address: str) -> str:
    """A recording or a video as a `data:` URI; an address elsewhere stays one."""
    if address.startswith(_ELSEWHERE):
        return address
    if address.startswith("data:"):
        if len(address) > LARGEST * 4 // 3 + 1024:
            raise refused(kind, "", f"is larger than {LARGEST >> 20} MB")
        if not subtype_of(kind, _beginning(address)):
            raise refused(kind, "", "is none that is known")
        return _nameless(address)
    path = path_of(address)
    try:
        if path.stat().st_size > LARGEST:
            raise refused(kind, path.name, f"is larger than {LARGEST >> 20} MB")
        raw = path.read_bytes()
    except (OSError, ValueError) as error:  # there is none, or its name has a zero in it
        raise refused(kind, path.name, "cannot be read") from error
    subtype = subtype_of(kind, raw[:16])
    if not subtype:
        raise refused(kind, path.name, "is none that is known")
    return f"data:{kind}/{subtype};base64,{b64encode(raw).decode('ascii')}"


def _nameless(address: str) -> str:
    """A `data:` URI without the name that tools put into it; services take none but the plainest form."""
    head, comma, data = address.partition(",")
    parts = [part for part in head.split(";") if not part.startswith("name=")]
    plain = ";".join(parts)
    return address if plain == head else f"{plain}{comma}{data}"


def _beginning(address: str) -> bytes:
    """The first bytes of a `data:` URI in base64; none where it is in no such form."""
    head, _, data = address.partition(",")
    if not head.endswith("base64"):
        return b""
    try:
        return a2b_base64(data[:24])
    except ValueError:  # no base64, or not even ASCII
        return b""


def subtype_of(kind: Heard, start: bytes) -> str:
    """The second half of the media type of a file that begins so; empty where it is no such file."""
    if start[:4] == b"RIFF":
        return {("audio", b"WAVE"): "wav", ("video", b"AVI "): "x-msvideo"}.get((kind, start[8:12]), "")
    if start[4:8] in {b"ftyp", b"moov", b"mdat"}:
        return "quicktime" if start[8:10] == b"qt" else "mp4"
    return next((subtype for begins, subtype in _STARTS[kind].items() if start.startswith(begins)), "")


def refused(kind: Heard, name: str, why: str) -> ModelRefusedError:
    """The error for a recording or video that cannot be sent."""
    about = f"The {_WORDS[kind]} {name!r}" if name else f"The {_WORDS[kind]}"
    hint = "Choose another file, cut it to a shorter one, or ask without it."
    return ModelRefusedError(message=f"{about} {why}.", hint=hint, key=_KEYS[kind])
