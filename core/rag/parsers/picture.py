"""Pictures (PNG, JPEG, GIF, WebP, BMP, TIFF), read by OCR with the extra `ocr`."""

from __future__ import annotations

import io
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from core.errors import BrokenDocumentError, MissingExtraError, NotFoundError
from core.rag.document import About, Block, PageShape, union
from core.rag.page_letters import packed, pieces_of
from core.rag.parsers import ocr
from core.rag.parsers.base import PLAIN, Found, ParseOptions, Scanned
from core.rag.parsers.ocr import block, lines_of
from core.rag.parsers.pdf_page import Pixels, highlighted

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path

    from core.rag.document import Rectangle

_KINDS: tuple[tuple[bytes, int, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", 0, "image/png"),
    (b"\xff\xd8\xff", 0, "image/jpeg"),
    (b"GIF8", 0, "image/gif"),
    (b"WEBP", 8, "image/webp"),
    (b"II*\x00", 0, "image/tiff"),
    (b"MM\x00*", 0, "image/tiff"),
    (b"BM", 0, "image/bmp"),
)
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
_PAGES = 200  # of a TIFF; the moving pictures of other formats show one thing
_LONGEST = 842.0  # points: a picture is shown as large as a sheet of A4
_DRAWN = 20_000_000  # pixels


class PictureParser:
    """Reads the words in a picture, each line with its place."""

    def accepts(self, name: str, head: bytes) -> str:  # noqa: ARG002 - the bytes say it all
        """Known by its first bytes."""
        return next((kind for mark, at, kind in _KINDS if head.startswith(mark, at)), "")

    def parse(self, path: Path, name: str, options: ParseOptions = PLAIN) -> Iterator[Found]:  # noqa: ARG002 - its bytes say all
        """A page for each picture in the file, from the one asked for; lines that stand together are a paragraph.

        Raises:
            MissingExtraError: The extra `ocr` is not installed.
            BrokenDocumentError: It is damaged, or larger than 50 million pixels.
        """
        if not ocr.is_here():
            raise MissingExtraError("Reading words in pictures", ocr.PACKAGE, ocr.EXTRA)
        with _opened(path) as image:
            count = _count(image)
            yield About(pages=count)
            for number in range(options.first_page, count + 1):
                yield Scanned(number)
                pixels, points = _pixels(_frame(image, number))
                zoom = pixels.width / points[0]
                runs = lines_of(pixels, zoom, page=number)
                box = union(tuple(line.rectangle for run in runs for line in run))
                blocks = [block(run, number) for run in runs]
                words = packed(word for one in blocks for word in pieces_of(one))
                yield PageShape(number, round(points[0], 2), round(points[1], 2), box, words)
                yield Block("figure", "", number, ((0, (0.0, 0.0, *points)),), source="page")
                yield from blocks


def picture(path: Path, number: int, zoom: float, marks: Sequence[Rectangle] = (), password: str = "") -> bytes:  # noqa: ARG001 - as for other pages
    """A picture as PNG without its metadata, such as place and camera; errors as for other pages.

    Raises:
        NotFoundError: There is no such picture in the file.
        BrokenDocumentError: It cannot be drawn.
    """
    with _opened(path) as image:
        if not 1 <= number <= _count(image):
            raise NotFoundError(f"There is no page {number} to draw.")
        frame = _frame(image, number)
        wide, high = _points(frame)
        zoom = min(zoom, (_DRAWN / (wide * high)) ** 0.5)
        frame = frame.resize((max(1, round(wide * zoom)), max(1, round(high * zoom))))
        if marks:
            samples = highlighted(frame.tobytes(), frame.width, frame.height, marks, zoom)
            frame = _image(frame.size, samples)
        out = io.BytesIO()
        frame.save(out, "PNG")
        return out.getvalue()


@contextmanager
def _opened(path: Path) -> Generator[Any]:
    """The open picture; only its beginning is read before its size is known."""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None  # we say it ourselves, and sooner
    try:
        with Image.open(path, formats=_FORMATS) as image:
            if image.width * image.height > ocr.MOST_PIXELS:
                raise BrokenDocumentError(
                    f"The picture has {image.width} × {image.height} pixels.",
                    key="document_too_large",
                    hint="Make it smaller.",
                )
            yield image
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise BrokenDocumentError("The picture is damaged.") from error


def _count(image: Any) -> int:
    return min(_PAGES, int(getattr(image, "n_frames", 1))) if image.format == "TIFF" else 1


def _frame(image: Any, number: int) -> Any:
    """One picture, the right way up, on white paper."""
    from PIL import Image, ImageOps

    image.seek(number - 1)
    if image.width * image.height > ocr.MOST_PIXELS:  # in a TIFF each has a size of its own
        raise BrokenDocumentError("The picture is too large.", key="document_too_large", hint="Make it smaller.")
    frame: Any = ImageOps.exif_transpose(image)
    if "A" in frame.getbands() or "transparency" in frame.info:
        frame = frame.convert("RGBA")
        paper: Any = Image.new("RGBA", frame.size, "white")
        frame = Image.alpha_composite(paper, frame)
    return frame.convert("RGB")


def _pixels(frame: Any) -> tuple[Pixels, tuple[float, float]]:
    """The pixels for OCR, and the size in points."""
    points = _points(frame)
    frame.thumbnail((ocr.LONGEST_SIDE, ocr.LONGEST_SIDE))
    return Pixels(frame.width, frame.height, frame.tobytes()), points


def _points(frame: Any) -> tuple[float, float]:
    scale = _LONGEST / max(frame.width, frame.height, 1)
    return frame.width * scale, frame.height * scale


def _image(size: tuple[int, int], samples: bytes) -> Any:
    from PIL import Image

    return Image.frombytes("RGB", size, samples)
