"""The pictures of a conversation, opened: for models on this machine, which read pixels."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_to_bytes

from core.errors import FetchError
from core.llm.pictures import check_pixels, data_uri, unreadable
from core.llm.wire.notes import item_name
from core.messages.content import ContentItem
from core.net.addresses import Reach
from core.net.fetcher import FetchLimits, fetch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.llm.backends.local_turns import Json

_LIMITS: Final = FetchLimits(size=64 * 1024 * 1024, seconds=30.0, types=("image/", "application/octet-stream"))
_OPEN: Final = Reach()


async def opened_pictures(turns: Iterable[Json], *, reach: Reach = _OPEN) -> list[Any]:
    """Every picture of the turns, in order, as PIL images in RGB.

    Args:
        turns: What the model is asked.
        reach: How far a picture may be fetched from: the open internet, whichever way a redirect leads.

    Raises:
        ModelRefusedError: One cannot be had, is no picture, or is larger than 64 MB (`picture_unreadable`).
    """
    addresses = [
        str(part["image"])
        for turn in turns
        if not isinstance(turn["content"], str)
        for part in turn["content"]
        if part["type"] == "image"
    ]
    return [await _opened(address, reach) for address in addresses]


async def _opened(address: str, reach: Reach) -> Any:
    name = item_name(ContentItem(image=address))
    if address.startswith(("http://", "https://")):
        raw = await _fetched(address, name, reach)
    else:
        uri = address if address.startswith("data:") else await asyncio.to_thread(data_uri, address)
        raw = _decoded(uri)
    return await asyncio.to_thread(_image, raw, name)


def _decoded(uri: str) -> bytes:
    head, _, body = uri.partition(",")
    try:
        return b64decode(body) if head.endswith(";base64") else unquote_to_bytes(body)
    except ValueError as error:
        raise unreadable("", "is damaged") from error


async def _fetched(address: str, name: str, reach: Reach) -> bytes:
    try:
        return (await fetch(address, limits=_LIMITS, reach=reach)).data
    except FetchError as error:
        if error.words_key == "fetch_too_large":
            raise unreadable(name, "is larger than 64 MB") from error
        raise unreadable(name, f"could not be fetched: {str(error).rstrip('.')}") from error


def _image(raw: bytes, name: str) -> Any:
    """The picture as it was held, on white where one can look through it."""
    from PIL import Image, ImageOps

    try:
        with Image.open(BytesIO(raw)) as opened:
            check_pixels(name, opened)
            picture = ImageOps.exif_transpose(opened)
            if not picture.has_transparency_data:
                return picture.convert("RGB")
            seen = picture.convert("RGBA")
            whole = Image.new("RGB", seen.size, "white")
            whole.paste(seen, mask=seen.getchannel("A"))
            return whole
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise unreadable(name, "is none, or is damaged") from error
