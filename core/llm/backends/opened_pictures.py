"""The pictures of a conversation, opened: for models on this machine, which read pixels."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_to_bytes

import httpx

from core.errors import ModelRefusedError
from core.llm.pictures import data_uri

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.llm.backends.local_turns import Json

_LARGEST: Final = 64 * 1024 * 1024
_SECONDS: Final = 30.0


async def opened_pictures(turns: Iterable[Json]) -> list[Any]:
    """Every picture of the turns, in order, as PIL images in RGB.

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
    return [await _opened(address) for address in addresses]


async def _opened(address: str) -> Any:
    if address.startswith(("http://", "https://")):
        raw = await _fetched(address)
    else:
        uri = address if address.startswith("data:") else await asyncio.to_thread(data_uri, address)
        raw = _decoded(uri)
    return await asyncio.to_thread(_image, raw)


def _decoded(uri: str) -> bytes:
    head, _, body = uri.partition(",")
    try:
        return b64decode(body) if head.endswith(";base64") else unquote_to_bytes(body)
    except ValueError as error:
        raise _refused("is damaged") from error


async def _fetched(address: str) -> bytes:
    raw = bytearray()
    try:
        async with (
            httpx.AsyncClient(timeout=_SECONDS, follow_redirects=True) as client,
            client.stream("GET", address) as response,
        ):
            response.raise_for_status()
            async for piece in response.aiter_bytes():
                raw += piece
                if len(raw) > _LARGEST:
                    raise _refused("is larger than 64 MB")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _refused("could not be fetched") from error
    return bytes(raw)


def _image(raw: bytes) -> Any:
    from PIL import Image

    try:
        with Image.open(BytesIO(raw)) as picture:
            return picture.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise _refused("is none, or is damaged") from error


def _refused(why: str) -> ModelRefusedError:
    return ModelRefusedError(message=f"The picture {why}.", key="picture_unreadable")
