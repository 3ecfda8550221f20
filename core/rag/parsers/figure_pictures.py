"""Figures of formats without drawn pages: their pictures, taken out of the file that holds them, and their words.

Runs in the worker only.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from core.rag.document import Block
from core.rag.figure_labels import caption_in, figure_text, label_of, words_in
from core.rag.parsers import ocr
from core.rag.parsers.base import Found, Scanned
from core.rag.parsers.pdf_page import Pixels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

_LARGEST: Final = 64 * 1024 * 1024
"""Bytes of a picture within a file."""
MOST_PIXELS: Final = 50_000_000
DATA: Final = "data:"
"""Begins the source of a picture that stands in a text itself; its fingerprint follows."""
MOST_READ: Final = 40
"""Figures of a document in which words are recognised."""
_SMALLEST: Final = (90, 60)  # pixels, wide and high: what is smaller is an icon
_FORMATS: Final = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")


def part_of(path: Path, source: str) -> bytes | None:
    """The bytes of a picture that is a part of a zip archive; `None` where there is none."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.read(source) if archive.getinfo(source).file_size <= _LARGEST else None
    except (KeyError, zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError):
        return None


def opened(data: bytes) -> Any | None:
    """A picture in red, green and blue, on white paper, the right way up; `None` where it is none, or too large."""
    from PIL import Image, ImageOps

    Image.MAX_IMAGE_PIXELS = None  # we say it ourselves
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                return None
            upright: Any = ImageOps.exif_transpose(image)
            if "A" in upright.getbands() or "transparency" in upright.info:
                upright = upright.convert("RGBA")
                upright = Image.alpha_composite(Image.new("RGBA", upright.size, "white"), upright)
            return upright.convert("RGB")
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError):
        return None


def with_figures(found: Iterable[Found], bytes_of: Callable[[str], bytes | None], *, words: bool) -> Iterator[Found]:
    """What a parser found, its figures with their captions and the words in them; without icons.

    A paragraph before or after a picture that begins as captions do ("Figure 3: …") is its caption.

    Args:
        found: Figures among it have the source of a picture, and the text that stands in its place, if any.
        bytes_of: Gives the bytes of a picture by its source; `None` where there is none.
        words: Whether words are recognised, where the extra `ocr` is installed.
    """
    left = MOST_READ if words and ocr.is_here() else 0
    held: Block | None = None  # a caption whose picture may follow, or a picture whose caption may
    for one in found:
        if not isinstance(one, Block) or one.kind not in {"figure", "paragraph"}:
            yield from (held,) if held else ()
            held = None
            yield one
            continue
        block = one
        if one.kind == "figure":
            image = opened(bytes_of(one.source) or b"")
            if image is None or image.width < _SMALLEST[0] or image.height < _SMALLEST[1]:
                continue
            if left:
                left -= 1
                yield Scanned(one.page or 1, figure=True)
                block = _captioned(one, "", ocr.words_of(_pixels(image)))
        if held and {held.kind, block.kind} == {"figure", "paragraph"} and (both := _joined(held, block)):
            held = None
            yield both
            continue
        yield from (held,) if held else ()
        held = block if block.kind == "figure" or label_of(block.text) else None
        if held is None:
            yield block
    yield from (held,) if held else ()


def _joined(one: Block, other: Block) -> Block | None:
    """A figure with its caption; `None` where the paragraph is none, or the figure has another name."""
    figure, paragraph = (one, other) if one.kind == "figure" else (other, one)
    if not label_of(paragraph.text) or label_of(caption_in(figure.text)) or figure.page != paragraph.page:
        return None
    return _captioned(figure, paragraph.text)


def _captioned(figure: Block, caption: str, words: Sequence[str] = ()) -> Block:
    text = figure_text(caption or caption_in(figure.text), "\n".join(words) or words_in(figure.text))
    return replace(figure, text=text)


def _pixels(image: Any) -> Pixels:
    image.thumbnail((ocr.LONGEST_SIDE, ocr.LONGEST_SIDE))
    return Pixels(image.width, image.height, image.tobytes())
