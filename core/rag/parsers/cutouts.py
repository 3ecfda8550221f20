"""Pictures of figures as they are shown: cut out of a drawn page, or taken out of the file that holds them.

Runs in the worker only.
"""

from __future__ import annotations

import io
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from core.errors import BrokenDocumentError, NotFoundError
from core.rag.parsers.figure_pictures import DATA, opened, part_of
from core.rag.parsers.web_page import pictures_in

if TYPE_CHECKING:
    from collections.abc import Mapping

_MARGIN: Final = 4.0  # points around a figure
_ZOOM: Final = 3.0  # pixels for each point at most: more shows nothing new
_QUALITY: Final = 88


def drawn(request: Mapping[str, Any]) -> bytes:
    """A figure as JPEG, as `process.figure` asks for it.

    Raises:
        BrokenDocumentError: It cannot be drawn.
        NotFoundError: There is none.
    """
    path, pixels = Path(request["path"]), int(request["pixels"])
    if request["renderer"]:
        return _of_page(request, path, pixels)
    source = str(request["source"])
    data = pictures_in(path.read_bytes()).get(source) if source.startswith(DATA) else part_of(path, source)
    if data is None:
        raise NotFoundError("There is no such picture.")
    image = opened(data)
    if image is None:
        raise BrokenDocumentError("The picture is damaged.")
    return _jpeg(image, pixels)


def _of_page(request: Mapping[str, Any], path: Path, pixels: int) -> bytes:
    wide, high = request["size"] or (0.0, 0.0)
    if wide <= 0 or high <= 0:
        raise NotFoundError("There is no such page.")
    x0, y0, x1, y1 = request["place"] or (0.0, 0.0, wide, high)
    x0, y0, x1, y1 = max(0.0, x0 - _MARGIN), max(0.0, y0 - _MARGIN), min(wide, x1 + _MARGIN), min(high, y1 + _MARGIN)
    zoom = min(_ZOOM, (pixels / max(1.0, (x1 - x0) * (y1 - y0))) ** 0.5)
    page = opened(import_module(request["renderer"]).picture(path, request["page"], zoom))
    if page is None:
        raise BrokenDocumentError("The page cannot be drawn.")
    across, down = page.width / wide, page.height / high  # a poster is drawn smaller than asked for
    return _jpeg(page.crop((round(x0 * across), round(y0 * down), round(x1 * across), round(y1 * down))), pixels)


def _jpeg(image: Any, pixels: int) -> bytes:
    if image.width < 1 or image.height < 1:
        raise BrokenDocumentError("The figure is empty.")
    scale = (pixels / (image.width * image.height)) ** 0.5
    if scale < 1:
        image = image.resize((max(1, int(image.width * scale)), max(1, int(image.height * scale))))
    out = io.BytesIO()
    image.save(out, "JPEG", quality=_QUALITY)
    return out.getvalue()
