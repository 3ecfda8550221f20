"""Shows a part of a picture larger, so that a model that sees can read what is small in it."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any, ClassVar

from core.errors import BadArgumentsError
from core.tools.base import BaseTool
from core.tools.given_files import bytes_at, chosen, opened, picture_item

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.messages.content import ContentItem
    from core.messages.message import Message

_SCALE = 1000.0  # coordinates are thousandths of the picture's sides
_GRID = 32  # pixels: models see in squares of this size
_FEWEST, _MOST = 256 * _GRID * _GRID, 12_000_000  # pixels of what is shown
_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "bbox_2d": {
            "type": "array",
            "items": {"type": "number"},
            "minItems": 4,
            "maxItems": 4,
            "description": (
                "The part to show, as [x1, y1, x2, y2] from its top left to its bottom right corner, "
                "in thousandths of the picture's width and height: 0 to 1000."
            ),
        },
        "label": {"type": "string", "description": "What is there."},
        "img_idx": {"type": "number", "description": "Which picture of the conversation, counted from 0."},
    },
    "required": ["bbox_2d", "label", "img_idx"],
}


class ImageZoomInTool(BaseTool):
    """Cuts out a part of a picture of the conversation and enlarges it.

    For models that see pictures; where the model does not, leave it out.
    """

    name = "image_zoom_in_tool"
    description = "Cuts a part out of a picture of this conversation and shows it larger, to read or recognise details."
    parameters = _PARAMETERS
    labels: ClassVar[Mapping[str, str]] = {"en": "Zoom into a picture", "zh": "放大图片局部"}
    wishes: ClassVar[Mapping[str, str]] = {"en": "look closer at a picture", "zh": "放大查看图片"}
    deduplicate = True
    reaches_out = True  # where a picture of the conversation is an address
    timeout = 45.0

    def addresses(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """None that a call could name: pictures are counted."""
        del arguments
        return ()

    async def call(
        self, params: str | dict[str, Any], *, messages: Sequence[Message] = (), **kwargs: Any
    ) -> list[ContentItem]:
        """The part as a picture.

        Args:
            params: `{"bbox_2d": [...], "label": ..., "img_idx": ...}`.
            messages: The conversation, whose pictures are counted from 0.
            kwargs: Not used.

        Raises:
            BadArgumentsError: There is no such picture, or the corners are no part of one.
            ToolError: The picture cannot be read, or is too large.
        """
        del kwargs
        arguments = self._verify_json_format_args(params)
        box = box_of(arguments["bbox_2d"])
        data = await bytes_at(chosen(messages, arguments["img_idx"]))
        return [await asyncio.to_thread(_shown, data, box)]


def box_of(corners: Sequence[float]) -> tuple[float, float, float, float]:
    """Left, top, right and bottom as parts of the whole, whichever corner was named first."""
    if not all(math.isfinite(one) and 0 <= one <= _SCALE for one in corners):
        raise BadArgumentsError("The field 'bbox_2d' must hold numbers from 0 to 1000.", field="bbox_2d")
    x1, y1, x2, y2 = (one / _SCALE for one in corners)
    return min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)


def _shown(data: bytes, box: tuple[float, float, float, float]) -> ContentItem:
    picture = opened(data)
    width, height = picture.size
    left, right = side_of(box[0] * width, box[2] * width, width)
    top, bottom = side_of(box[1] * height, box[3] * height, height)
    part = picture.crop((left, top, right, bottom))
    return picture_item(part.resize(shown_size(*part.size)), name="part.png")


def side_of(start: float, end: float, whole: int) -> tuple[int, int]:
    """Whole pixels; what is narrower than a square grows on both sides as far as there is room."""
    first, last = math.floor(start), math.ceil(end)
    missing = min(_GRID, whole) - (last - first)
    if missing > 0:
        first = max(0, min(first - missing // 2, whole - min(_GRID, whole)))
        last = first + min(_GRID, whole)
    return first, last


def shown_size(width: int, height: int) -> tuple[int, int]:
    """How large a part is shown: not too small to be seen, not too large to be sent, in whole squares."""
    area = width * height
    scale = math.sqrt(_FEWEST / area) if area < _FEWEST else math.sqrt(_MOST / area) if area > _MOST else 1.0
    rounded = math.ceil if area < _FEWEST else math.floor
    longest = _MOST // _GRID  # a sliver is not stretched beyond bounds
    sides = (min(longest, max(_GRID, rounded(side * scale / _GRID) * _GRID)) for side in (width, height))
    return tuple(sides)  # pyright: ignore[reportReturnType] - two of them
