"""Pictures on this machine, put into the request itself so that a service elsewhere can see them."""

from __future__ import annotations

from base64 import b64encode
from io import BytesIO
from typing import TYPE_CHECKING

from core.errors import ModelRefusedError
from core.llm.local_files import path_of

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

_FITS = 4 * 1024 * 1024
_LARGEST = 64 * 1024 * 1024
_LONG_SIDE = 2048
_MOST_PIXELS = 100_000_000  # a few hundred kilobytes can unpack to gigabytes
_KINDS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"BM": "image/bmp",
}


def data_uri(address: str) -> str:
    """A picture file as a `data:` URI; a large one is made smaller first.

    Args:
        address: A path, or a `file:` URL.

    Raises:
        ModelRefusedError: It cannot be read, is no picture, or is larger than 64 MB.
    """
    path = path_of(address)
    try:
        if path.stat().st_size > _LARGEST:
            raise unreadable(path.name, "is larger than 64 MB")
        raw = path.read_bytes()
    except (OSError, ValueError) as error:  # there is none, or its name has a zero in it
        raise unreadable(path.name, "cannot be read") from error
    kind = kind_of(raw)
    if not kind:
        raise unreadable(path.name, "is not a PNG, JPEG, WebP, GIF or BMP picture")
    if len(raw) > _FITS or kind == "image/bmp":
        raw, kind = _smaller(path.name, raw), "image/jpeg"
    return f"data:{kind};base64,{b64encode(raw).decode('ascii')}"


def kind_of(start: bytes) -> str:
    """The media type of a picture that begins so; empty where it is none that models see."""
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for begins, kind in _KINDS.items() if start.startswith(begins)), "")


def _smaller(name: str, raw: bytes) -> bytes:
    from PIL import Image, ImageOps

    try:
        with Image.open(BytesIO(raw)) as opened:
            opened.draft("RGB", (_LONG_SIDE, _LONG_SIDE))  # a large JPEG is decoded at about the size it will have
            check_pixels(name, opened)
            picture = ImageOps.exif_transpose(opened)  # a telephone tells how it was held, and JPEG forgets it here
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
    """Refuse a picture that would fill the memory: its size is known before anything of it is unpacked."""
    width, height = opened.size
    if width * height > _MOST_PIXELS:
        raise unreadable(name, f"has {width} × {height} pixels, which is too many")


def unreadable(name: str, why: str) -> ModelRefusedError:
    """The refusal of a picture, by its name where it has one."""
    hint = "Choose another picture, or ask without it."
    about = f"The picture {name!r}" if name else "The picture"
    return ModelRefusedError(message=f"{about} {why}.", hint=hint, key="picture_unreadable")
