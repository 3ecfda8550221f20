"""The tokens of a picture, recording or video, by the rules of the services."""

from __future__ import annotations

import re
from base64 import b64decode
from io import BytesIO
from math import ceil, floor, sqrt
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from core.llm.local_files import path_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.messages.content import ContentItem

Size: TypeAlias = tuple[int, int]

_UNKNOWN: Final = (1024, 1024)  # the size of a remote picture
_HEAD: Final = 256 * 1024  # bytes that hold the size in every usual format
_FRAMES: Final = 16  # of a video that is one file
_AUDIO_BYTES: Final = 16_000  # a second of compressed sound, roughly
_AUDIO_TOKENS: Final = 25  # a second
_AUDIO_SECONDS: Final = 30  # of a remote recording


def item_tokens(item: ContentItem, model: str) -> int:
    """The tokens of an item that is not text.

    Args:
        item: A picture, video or recording.
        model: The model's name, which decides the rule.
    """
    if item.type == "image":
        return picture_tokens(size_of(str(item.image)), model)
    if item.type == "video":
        frames = item.video if isinstance(item.video, list) else []
        count = len(frames) or _FRAMES
        size = size_of(frames[0]) if frames and isinstance(frames[0], str) else _UNKNOWN
        return ceil(count / 2) * picture_tokens(size, model)  # two frames share their tokens
    return _sound_tokens(item.audio)


_DOCUMENT_BYTES_OF_TOKEN: Final = 32
_DOCUMENT: Final = 8_000  # of one whose size is not known


def document_tokens(item: ContentItem) -> int:
    """The tokens of a PDF document, roughly, by its size."""
    address = str(item.file or "")
    if address.startswith("data:"):
        return max(1, len(address) * 3 // 4 // _DOCUMENT_BYTES_OF_TOKEN)
    if "://" in address and not address.startswith("file:"):
        return _DOCUMENT
    try:
        return max(1, path_of(address).stat().st_size // _DOCUMENT_BYTES_OF_TOKEN)
    except (OSError, ValueError):
        return _DOCUMENT


def picture_tokens(size: Size, model: str) -> int:
    """The tokens of one picture of `size` (width, height in pixels)."""
    width, height = (max(1, side) for side in size)
    rule = next((rule for pattern, rule in _RULES if re.search(pattern, model, re.IGNORECASE)), _qwen(28, 1280))
    return rule(width, height)


def size_of(address: str) -> Size:
    """Width and height of a `data:` URI or a file, in pixels; 1024 × 1024 for a remote picture."""
    try:
        raw = _first_bytes(address)
    except (OSError, ValueError):
        raw = b""
    if not raw:
        return _UNKNOWN
    try:
        from PIL import Image
    except ModuleNotFoundError:  # without the extra `documents` they count as usual ones
        return _UNKNOWN
    try:
        with Image.open(BytesIO(raw)) as picture:
            return picture.size
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):  # reported when it is sent
        return _UNKNOWN


def _first_bytes(address: str) -> bytes:
    if address.startswith("data:"):
        head, _, data = address[: _HEAD * 4 // 3].partition(",")
        return b64decode(data[: len(data) // 4 * 4]) if head.endswith(";base64") else b""
    if "://" in address and not address.startswith("file:"):
        return b""
    path = path_of(address)
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(_HEAD)


def _sound_tokens(audio: str | dict[str, Any] | None) -> int:
    data = str(audio.get("data") or "") if isinstance(audio, dict) else str(audio or "")
    here = isinstance(audio, dict) or data.startswith("data:")
    seconds = max(1, len(data) * 3 // 4 // _AUDIO_BYTES) if here and "://" not in data[:16] else _AUDIO_SECONDS
    return seconds * _AUDIO_TOKENS


def _qwen(patch: int, most: int) -> Callable[[int, int], int]:
    """Qwen-VL: a token for each square of `patch` pixels, 4 to `most` of them, and two marks around."""

    def tokens(width: int, height: int) -> int:
        across, down = max(1, round(width / patch)), max(1, round(height / patch))
        area = patch * patch
        if across * down > most:
            shrink = sqrt(width * height / (most * area))
            across, down = max(1, floor(width / shrink / patch)), max(1, floor(height / shrink / patch))
        elif across * down < 4:
            grow = sqrt(4 * area / (width * height))
            across, down = ceil(width * grow / patch), ceil(height * grow / patch)
        return across * down + 2

    return tokens


def _tiles(base: int, tile: int) -> Callable[[int, int], int]:
    """OpenAI: fitted into 2048 × 2048, the short side at most 768, then so much for each square of 512."""

    def tokens(width: int, height: int) -> int:
        scale = min(1.0, 2048 / max(width, height))
        scale *= min(1.0, 768 / (min(width, height) * scale))
        return base + tile * ceil(width * scale / 512) * ceil(height * scale / 512)

    return tokens


def _patches(factor: float) -> Callable[[int, int], int]:
    """OpenAI's small models: squares of 32, at most 1536 of them, times a factor."""

    def tokens(width: int, height: int) -> int:
        return ceil(min(1536, ceil(width / 32) * ceil(height / 32)) * factor)

    return tokens


def _by_area(width: int, height: int) -> int:
    return min(1600, ceil(width * height / 750))


_RULES: Final[list[tuple[str, Callable[[int, int], int]]]] = [
    (r"gpt-4o-mini", _tiles(2833, 5667)),
    (r"gpt-(?:4\.1|5)[\w.]*-nano", _patches(2.46)),
    (r"gpt-(?:4\.1|5)[\w.]*-mini", _patches(1.62)),
    (r"\bo4-mini", _patches(1.72)),
    (r"gpt-4", _tiles(85, 170)),
    (r"gpt-5", _tiles(70, 140)),
    (r"\bo[13]\b", _tiles(75, 150)),
    (r"claude", _by_area),
    (r"qwen-?3(?:\.\d)?-?(?:vl|omni|plus|flash|\d)|qwen3\.\d", _qwen(32, 2560)),
]
