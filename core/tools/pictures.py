"""Pictures that tools work on: brought here, opened within bounds, and handed over without what cameras add."""

from __future__ import annotations

from base64 import b64encode
from binascii import a2b_base64
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, unquote_to_bytes

from core.errors import BadArgumentsError, ToolError
from core.messages.content import ContentItem
from core.net.addresses import Reach
from core.net.fetcher import FetchLimits, fetch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.messages.message import Message

MOST_PIXELS = 50_000_000
_LARGEST = 32 * 1024 * 1024  # bytes
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
_OPEN = Reach()


def pictures_of(messages: Iterable[Message]) -> list[str]:
    """The addresses of all pictures in a conversation, in order."""
    return [str(item.image) for message in messages for item in message.items if item.type == "image" and item.image]


def chosen(messages: Iterable[Message], number: object) -> str:
    """The address of the picture with a number, counted from 0.

    Raises:
        BadArgumentsError: There is none; the sentence says which there are.
    """
    addresses = pictures_of(messages)
    if not addresses:
        raise BadArgumentsError("There is no picture in this conversation.", field="img_idx")
    whole = int(number) if isinstance(number, int | float) and number == number // 1 else -1
    if not 0 <= whole < len(addresses):
        last = len(addresses) - 1
        raise BadArgumentsError(f"The field 'img_idx' must be a whole number from 0 to {last}.", field="img_idx")
    return addresses[whole]


async def bytes_at(address: str, reach: Reach = _OPEN) -> bytes:
    """The bytes of a picture: of a `data:` or web address, or of a file of this machine.

    Raises:
        ToolError: It is not there, or larger than 32 MB.
        FetchError: It cannot be fetched, or may not be.
    """
    if address.startswith("data:"):
        return _unpacked(address)
    if address.lower().startswith(("http://", "https://")):
        limits = FetchLimits(size=_LARGEST, types=("image/", "application/octet-stream", "binary/octet-stream"))
        return (await fetch(address, limits=limits, reach=reach)).data
    from core.llm.local_files import path_of

    path = path_of(address)
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            raise ToolError(f"The picture {path.name!r} is not here, or larger than 32 MB.")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise ToolError("The picture cannot be read.") from error


def _unpacked(address: str) -> bytes:
    head, _, data = address.partition(",")
    try:
        return a2b_base64(data) if head.endswith(";base64") else unquote_to_bytes(data)
    except ValueError as error:
        raise ToolError("The picture cannot be read.") from error


def opened(data: bytes) -> Any:
    """A picture (of `PIL`) as people see it: its first frame, turned as its camera was held, in RGB or RGBA.

    Raises:
        ToolError: It is none, is damaged, or has more than 50 million pixels.
    """
    from PIL import Image, ImageOps

    bombs = (Image.DecompressionBombError, Image.DecompressionBombWarning)
    try:
        picture: Any = Image.open(BytesIO(data), formats=_FORMATS)
        width, height = picture.size
        if width * height > MOST_PIXELS:  # known before anything is unpacked
            raise _too_large()
        turned: Any = ImageOps.exif_transpose(picture)
        mode = "RGBA" if turned.has_transparency_data else "RGB"
        return turned.convert(mode)
    except bombs as error:
        raise _too_large() from error
    except (OSError, ValueError, SyntaxError, EOFError, MemoryError, OverflowError) as error:
        raise ToolError("The picture is damaged, or of a kind that is not read.") from error


def _too_large() -> ToolError:
    return ToolError("The picture has more than 50 million pixels.", hint="Make it smaller first.")


def picture_item(picture: Any, kind: Literal["PNG", "JPEG"] = "PNG", name: str = "") -> ContentItem:
    """A picture as an item of a result. Nothing but its pixels is kept.

    Args:
        picture: From `opened`.
        kind: How it is packed; JPEG puts what is transparent on white.
        name: What to call it where it is stored.
    """
    from PIL import Image

    if kind == "JPEG" and picture.mode == "RGBA":
        ground: Any = Image.new("RGB", picture.size, "white")
        ground.paste(picture, mask=picture.getchannel("A"))
        picture = ground
    picture.info.clear()
    out = BytesIO()
    picture.save(out, kind, **({"quality": 85} if kind == "JPEG" else {}))
    called = f";name={quote(Path(name).name, safe='')}" if name else ""
    packed = b64encode(out.getvalue()).decode("ascii")
    return ContentItem(image=f"data:image/{kind.lower()}{called};base64,{packed}")
