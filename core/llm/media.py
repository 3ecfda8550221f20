"""Local pictures, recordings and videos, inlined into the request as `data:` URIs."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from binascii import a2b_base64
from io import BytesIO
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from urllib.parse import quote, urlsplit

from core.errors import ModelRefusedError, extra_for
from core.llm.local_files import path_of
from core.messages.content import ContentItem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from PIL.Image import Image as Picture

    from core.messages.message import Message

MediaKind: TypeAlias = Literal["audio", "video"]

LARGEST: Final = 20 * 1024 * 1024
"""Bytes of an inlined recording or video, before base64, which adds a third."""

_WORDS: Final = {"audio": "recording", "video": "video"}
_KEYS: Final = {"audio": "recording_unreadable", "video": "video_unreadable"}
_ELSEWHERE: Final = ("http://", "https://", "oss://")
_STARTS: Final[dict[MediaKind, dict[bytes, str]]] = {
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
    """The messages with local media as `data:` URIs; unaffected messages stay the same objects.

    Args:
        messages: Never changed.
        takes: Whether the model takes an item; others stay as they are.

    Raises:
        ModelRefusedError: A file cannot be read, has an unknown format, or is too large.
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
            return _replaced(item, _media_uri("audio", item.audio))
        case "video" if isinstance(item.video, list):
            return ContentItem(video=[_picture(str(frame)) for frame in item.video])
        case "video":
            return _replaced(item, _media_uri("video", str(item.video)))
        case "file":
            return _replaced(item, _document(str(item.file)))
        case _:
            return item


def is_document(item: ContentItem) -> bool:
    """Whether it is a PDF document by its address: what some models read as it is."""
    address = str(item.file or "")
    if address.startswith("data:"):
        return address.startswith("data:application/pdf")
    return urlsplit(address).path.lower().endswith(".pdf")


def _document(address: str) -> str:
    """A document as a `data:` address with its name; a remote one stays."""
    if address.startswith(_ELSEWHERE):
        return address
    if address.startswith("data:"):
        return address
    path = path_of(address)
    try:
        if path.stat().st_size > LARGEST:
            raise unread_document(path.name, f"is larger than {LARGEST >> 20} MB")
        raw = path.read_bytes()
    except (OSError, ValueError) as error:  # missing, or a NUL in its name
        raise unread_document(path.name, "cannot be read") from error
    if not raw[:1024].lstrip().startswith(b"%PDF-"):
        raise unread_document(path.name, "is no PDF")
    return f"data:application/pdf;name={quote(path.name, safe='')};base64,{b64encode(raw).decode('ascii')}"


def unread_document(name: str, why: str) -> ModelRefusedError:
    """The error for a document that cannot be sent."""
    hint = "Give another file, or ask without it."
    return ModelRefusedError(message=f"The document {name!r} {why}.", hint=hint, key="document_broken")


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


def _media_uri(kind: MediaKind, address: str) -> str:
    """A recording or video as a `data:` URI; a remote address stays."""
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
    except (OSError, ValueError) as error:  # missing, or a NUL in its name
        raise refused(kind, path.name, "cannot be read") from error
    subtype = subtype_of(kind, raw[:16])
    if not subtype:
        raise refused(kind, path.name, "is none that is known")
    return f"data:{kind}/{subtype};base64,{b64encode(raw).decode('ascii')}"


def _nameless(address: str) -> str:
    """A `data:` URI without the `name=` that tools add, which services refuse."""
    head, comma, data = address.partition(",")
    parts = [part for part in head.split(";") if not part.startswith("name=")]
    plain = ";".join(parts)
    return address if plain == head else f"{plain}{comma}{data}"


def _beginning(address: str) -> bytes:
    """The first bytes of a base64 `data:` URI; empty for any other form."""
    head, _, data = address.partition(",")
    if not head.endswith("base64"):
        return b""
    try:
        return a2b_base64(data[:24])
    except ValueError:  # not base64, or not even ASCII
        return b""


def subtype_of(kind: MediaKind, start: bytes) -> str:
    """The media subtype of a file by its first bytes; empty if it is unknown."""
    if start[:4] == b"RIFF":
        return {("audio", b"WAVE"): "wav", ("video", b"AVI "): "x-msvideo"}.get((kind, start[8:12]), "")
    if start[4:8] in {b"ftyp", b"moov", b"mdat"}:
        return "quicktime" if start[8:10] == b"qt" else "mp4"
    return next((subtype for begins, subtype in _STARTS[kind].items() if start.startswith(begins)), "")


def refused(kind: MediaKind, name: str, why: str) -> ModelRefusedError:
    """The error for a recording or video that cannot be sent."""
    about = f"The {_WORDS[kind]} {name!r}" if name else f"The {_WORDS[kind]}"
    hint = "Choose another file, cut it to a shorter one, or ask without it."
    return ModelRefusedError(message=f"{about} {why}.", hint=hint, key=_KEYS[kind])


_FITS = 4 * 1024 * 1024
_LARGEST = 64 * 1024 * 1024
_LONG_SIDE = 2048
_MOST_PIXELS = 100_000_000  # a decompression bomb unpacks to gigabytes
_KINDS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"BM": "image/bmp",
}


def data_uri(address: str) -> str:
    """A picture file as a `data:` URI, downscaled if it is large.

    Args:
        address: A path, or a `file:` URL.

    Raises:
        ModelRefusedError: It cannot be read, is not a picture, or is larger than 64 MB.
    """
    path = path_of(address)
    try:
        if path.stat().st_size > _LARGEST:
            raise unreadable(path.name, "is larger than 64 MB")
        raw = path.read_bytes()
    except FileNotFoundError as error:
        raise unreadable(path.name, "is not there any more") from error
    except (OSError, ValueError) as error:  # missing, or a NUL in its name
        raise unreadable(path.name, "cannot be read") from error
    kind = kind_of(raw)
    if not kind:
        raise unreadable(path.name, "is not a PNG, JPEG, WebP, GIF or BMP picture")
    if len(raw) > _FITS or kind == "image/bmp":
        raw, kind = _smaller(path.name, raw), "image/jpeg"
    return f"data:{kind};base64,{b64encode(raw).decode('ascii')}"


def kind_of(start: bytes) -> str:
    """The media type of a picture by its first bytes; empty if models do not take it."""
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for begins, kind in _KINDS.items() if start.startswith(begins)), "")


def _smaller(name: str, raw: bytes) -> bytes:
    with extra_for("Making a picture smaller"):
        from PIL import Image, ImageOps

    try:
        with Image.open(BytesIO(raw)) as opened:
            opened.draft("RGB", (_LONG_SIDE, _LONG_SIDE))  # decodes a large JPEG at about its final size
            check_pixels(name, opened)
            picture = ImageOps.exif_transpose(opened)  # applied, as saving drops EXIF
            picture.thumbnail((_LONG_SIDE, _LONG_SIDE))
            if picture.has_transparency_data:
                seen = picture.convert("RGBA")
                picture = Image.new("RGB", seen.size, "white")
                picture.paste(seen, mask=seen.getchannel("A"))
            out = BytesIO()
            picture.convert("RGB").save(out, "JPEG", quality=85)
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise unreadable(name, "is damaged") from error
    return out.getvalue()


def check_pixels(name: str, opened: Picture) -> None:
    """Refuse a picture that would fill the memory, before it is decoded."""
    width, height = opened.size
    if width * height > _MOST_PIXELS:
        raise unreadable(name, f"has {width} × {height} pixels, which is too many")


def unreadable(name: str, why: str) -> ModelRefusedError:
    """The error for a picture that cannot be sent."""
    hint = "Choose another picture, or ask without it."
    about = f"The picture {name!r}" if name else "The picture"
    return ModelRefusedError(message=f"{about} {why}.", hint=hint, key="picture_unreadable")
