"""Pictures on this machine, put into the request itself so that a service elsewhere can see them."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from core.errors import ModelRefusedError
from core.messages.content import ContentItem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.messages.message import Message

_FITS = 4 * 1024 * 1024
_LARGEST = 64 * 1024 * 1024
_LONG_SIDE = 2048
_KINDS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"BM": "image/bmp",
}


async def with_pictures(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages, local pictures as `data:` URIs; others stay the same objects.

    Raises:
        ModelRefusedError: A picture cannot be read, is none, or is larger than 64 MB.
    """
    return tuple([await _with_pictures(message) for message in messages])


async def _with_pictures(message: Message) -> Message:
    if isinstance(message.content, str) or not any(_is_local(item) for item in message.content):
        return message
    items = [
        ContentItem(image=await asyncio.to_thread(data_uri, str(item.image))) if _is_local(item) else item
        for item in message.content
    ]
    return message.model_copy(update={"content": items})


def _is_local(item: ContentItem) -> bool:
    return item.type == "image" and not str(item.image).startswith(("data:", "http://", "https://"))


def data_uri(address: str) -> str:
    """A picture file as a `data:` URI; a large one is made smaller first.

    Args:
        address: A path, or a `file:` URL.

    Raises:
        ModelRefusedError: It cannot be read, is no picture, or is larger than 64 MB.
    """
    path = Path(unquote(urlsplit(address).path) if address.startswith("file:") else address)
    try:
        if path.stat().st_size > _LARGEST:
            raise _refused(path.name, "is larger than 64 MB")
        raw = path.read_bytes()
    except OSError as error:
        raise _refused(path.name, "cannot be read") from error
    kind = next((kind for start, kind in _KINDS.items() if raw.startswith(start)), "")
    if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP":
        kind = "image/webp"
    if not kind:
        raise _refused(path.name, "is not a PNG, JPEG, WebP, GIF or BMP picture")
    if len(raw) > _FITS or kind == "image/bmp":
        raw, kind = _smaller(path.name, raw), "image/jpeg"
    return f"data:{kind};base64,{b64encode(raw).decode('ascii')}"


def _smaller(name: str, raw: bytes) -> bytes:
    from PIL import Image

    try:
        with Image.open(BytesIO(raw)) as picture:
            picture.thumbnail((_LONG_SIDE, _LONG_SIDE))
            out = BytesIO()
            picture.convert("RGB").save(out, "JPEG", quality=85)
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise _refused(name, "is damaged") from error
    return out.getvalue()


def _refused(name: str, why: str) -> ModelRefusedError:
    hint = "Choose another picture, or ask without it."
    return ModelRefusedError(message=f"The picture {name!r} {why}.", hint=hint, key="picture_unreadable")
