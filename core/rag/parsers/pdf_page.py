"""A PDF page as its readers give it: printed lines, rulings, rotation, and how lines become running text.

`pdf.py` makes blocks of such pages, whichever library read them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from core.errors import LockedDocumentError
from core.rag.parsers.base import is_ideograph

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from core.rag.document import Block, Rectangle

_REPLACEMENT = "\ufffd"
# A row of dots, or of spaces, is tried once, from its start.
_LEADER = re.compile(r"(?<!\s)(?:(?<![.·…])|(?=\s\s))\s*+(?:[.·…]\s?+){4,}+\s*+(\w{0,6}+)\s*+$")
_HIGHLIGHT = (0xF2, 0xCF, 0x3F)
_TABLES = tuple(bytes(round(value * (0.34 + 0.66 * strength / 255)) for value in range(256)) for strength in _HIGHLIGHT)


@dataclass(frozen=True, slots=True)
class Line:
    """A printed line: its words, its place on the page as displayed, the font size in points.

    One without words stands for a whole table.
    """

    text: str
    rectangle: Rectangle
    size: float
    bold: bool
    table: Block | None = None


Runs: TypeAlias = list[list[Line]]
"""The lines of a page, those of a paragraph together."""
Word: TypeAlias = tuple[float, float, float, float, str]


MOST_FIELDS = 2_000
"""Of a form, on one page."""
FieldKind: TypeAlias = Literal["text", "check", "radio", "choice", "signature"]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a form.

    Args:
        name: Within the file.
        told: What the file tells people about it, if anything.
        value: What was typed or chosen; of a box that can be ticked, what being ticked means.
        on: Whether it is ticked, chosen or signed.
        options: What can be chosen.
        place: On the page as displayed, in points.
    """

    name: str
    told: str
    kind: FieldKind
    value: str
    on: bool
    options: tuple[str, ...]
    place: Rectangle


@dataclass(frozen=True, slots=True)
class Pixels:
    """A picture: rows of pixels, each red, green and blue."""

    width: int
    height: int
    samples: bytes


@dataclass(frozen=True, slots=True)
class RawPage:
    """A page as displayed, in points.

    Args:
        runs: Its lines of text, those of a paragraph together, in the order in which they are drawn.
        drawn: The boxes of its lines and rectangles.
        words: Gives the words with their boxes.
        letters: The same, quickly: a box reaches from the first letter to the last, and is as high as these.
        image_share: Gives how much of the page its largest_share image covers, from 0 to 1.
        pixels: Renders the page; takes the pixels for each point.
        is_garbled: Whether some of its text is in a font without a character map.
        rotation: Degrees by which it must be rotated, clockwise, for most of its text to stand upright.
        pictures: Gives the boxes of its images.
        strokes: The boxes of its curves and slanted lines.
        fields: Gives the fields of a form on it.
    """

    width: float
    height: float
    runs: Runs
    drawn: list[Rectangle]
    words: Callable[[], list[Word]]
    image_share: Callable[[], float]
    pixels: Callable[[float], Pixels]
    is_garbled: bool = False
    rotation: int = 0
    pictures: Callable[[], list[Rectangle]] = list
    strokes: Sequence[Rectangle] = ()
    fields: Callable[[], list[Field]] = list
    letters: Callable[[], list[Word]] | None = None


XFA_PARTS: Final = frozenset({"", "template", "datasets"})
"""Those of a form that is kept as XML; "" is all of them in one."""
MOST_XFA_BYTES: Final = 20_000_000
"""Of one of these parts; a larger one is not read."""


class Source(Protocol):
    """An open PDF."""

    @property
    def count(self) -> int:
        """The number of pages."""
        ...

    @property
    def title(self) -> str:
        """The title in its properties."""
        ...

    def outline(self) -> list[tuple[int, str, int]]:
        """Its bookmarks: level, title, page."""
        ...

    def page(self, number: int) -> RawPage | None:
        """A page, counted from 1; `None` if it is damaged."""
        ...

    def was_repaired(self) -> bool:
        """Whether the library had to repair it; known only after its pages were read."""
        ...

    def has_lost_content(self) -> bool:
        """Whether the damage may have cost some of its content; known only after its pages were read."""
        ...

    def has_images(self) -> bool:
        """Whether any of its first pages shows an image, as a scan does."""
        ...

    def form_packets(self) -> Mapping[str, bytes]:
        """The template and the data of a form that is kept as XML, by their names; none where there is no such form."""
        ...


def is_garbled(text: str) -> bool:
    """Whether most of the text is replacement characters: such a page is as good as a picture."""
    return text.count(_REPLACEMENT) * 2 > len(text)


def largest_share(boxes: Sequence[Rectangle], width: float, height: float) -> float:
    """How much of a page the largest_share of some boxes covers, from 0 to 1."""
    return max(((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in boxes), default=0.0) / max(1.0, width * height)


def locked_error(password: str) -> LockedDocumentError:
    """The error for an encrypted PDF that this password, or none, does not open."""
    if password:
        return LockedDocumentError(
            "The password does not open the PDF.", key="document_password_wrong", hint="Type it as it was given to you."
        )
    return LockedDocumentError(
        "The PDF asks for a password.", hint="Give its password, or save a copy without one.", asks=True
    )


# --------------------------------------------------------------------------------------------------- lines of text


def is_contents_list(lines: Sequence[str]) -> bool:
    """Whether most lines end in a dot leader and a number, as in a table of contents."""
    return sum(bool(_LEADER.search(line)) for line in lines) * 2 > len(lines)


def joined_as_list(lines: list[str]) -> tuple[str, list[int]]:
    """The lines of a table of contents, kept as lines without their dot leaders; and where each starts in the text."""
    text = ""
    starts: list[int] = []
    for line in lines:
        text += "\n" if text else ""
        starts.append(len(text))
        text += " ".join(_LEADER.sub(r" \1", line).split())
    return text, starts


def joined(lines: list[str]) -> tuple[str, list[int]]:
    """Printed lines as running text, and where each starts in it.

    A word hyphenated at a line's end is put together again; Chinese needs no space between lines.
    """
    text = ""
    starts: list[int] = []
    for line in (" ".join(line.split()) for line in lines):
        if text.endswith("-") and len(text) > 1 and text[-2].islower() and line[:1].islower():
            text = text[:-1]
        elif text and line and not (is_ideograph(text[-1]) and is_ideograph(line[0])):
            text += " "
        starts.append(len(text))
        text += line
    return text, starts


# -------------------------------------------------------------------------------------------------------- rotation


def rotated(box: Sequence[float], degrees: int, width: float, height: float) -> Rectangle:
    """Where a box goes when its page is rotated.

    Args:
        box: In points from the upper left corner.
        degrees: A multiple of 90, clockwise.
    """
    x0, y0, x1, y1 = box
    match degrees % 360:
        case 90:
            x0, y0, x1, y1 = height - y1, x0, height - y0, x1
        case 180:
            x0, y0, x1, y1 = width - x1, height - y1, width - x0, height - y0
        case 270:
            x0, y0, x1, y1 = y0, width - x1, y1, width - x0
        case _:
            return (x0, y0, x1, y1)
    return (round(x0, 2), round(y0, 2), round(x1, 2), round(y1, 2))


@dataclass(frozen=True, slots=True)
class Rotation:
    """From a page as displayed to the page with its text upright, where blocks sort in reading order, and back.

    Args:
        degrees: By which the page must be rotated, clockwise, for its text to stand upright.
        width: Of the page as displayed.
        height: Of the page as displayed.
    """

    degrees: int
    width: float
    height: float

    def upright_page(self, page: RawPage) -> RawPage:
        """The page with upright places."""
        if not self.degrees:
            return page
        is_sideways = self.degrees % 180
        return replace(
            page,
            width=page.height if is_sideways else page.width,
            height=page.width if is_sideways else page.height,
            runs=self.upright(page.runs),
            drawn=[self._upright(box) for box in page.drawn],
            words=lambda: [(*self._upright(word[:4]), word[4]) for word in page.words()],
            pictures=lambda: [self._upright(box) for box in page.pictures()],
            strokes=[self._upright(box) for box in page.strokes],
            fields=lambda: [replace(one, place=self._upright(one.place)) for one in page.fields()],
        )

    def upright(self, runs: Runs) -> Runs:
        """Lines with upright places."""
        return _moved(runs, self._upright) if self.degrees else runs

    def displayed(self, runs: Runs) -> Runs:
        """Lines with their places on the page as displayed."""
        return _moved(runs, self._displayed) if self.degrees else runs

    def displayed_block(self, block: Block) -> Block:
        """A block with its places on the page as displayed."""
        return _moved_block(block, self._displayed) if self.degrees else block

    def _upright(self, box: Sequence[float]) -> Rectangle:
        return rotated(box, self.degrees, self.width, self.height)

    def _displayed(self, box: Sequence[float]) -> Rectangle:
        width, height = (self.height, self.width) if self.degrees % 180 else (self.width, self.height)
        return rotated(box, -self.degrees, width, height)


def _moved(runs: Runs, move: Callable[[Rectangle], Rectangle]) -> Runs:
    return [
        [
            replace(line, rectangle=move(line.rectangle), table=line.table and _moved_block(line.table, move))
            for line in run
        ]
        for run in runs
    ]


def _moved_block(block: Block, move: Callable[[Rectangle], Rectangle]) -> Block:
    # Columns that lie on their side are rows of the page as displayed.
    return replace(block, lines=tuple((start, move(place)) for start, place in block.lines), columns=())


# ---------------------------------------------------------------------------------------------------- highlighting


def highlighted(samples: bytes, width: int, height: int, marks: Sequence[Rectangle], zoom: float) -> bytes:
    """The pixels of a picture with places highlighted: paper turns yellow, ink stays ink.

    Args:
        samples: Rows of red, green and blue.
        width: Pixels.
        height: Pixels.
        marks: Places, in points.
        zoom: Pixels for each point.
    """
    pixels = bytearray(samples)
    for mark in marks:
        left, top, right, bottom = (round(edge * zoom) for edge in mark)
        left, right = max(0, left - 2), min(width, right + 2)
        for row in range(max(0, top - 1), min(height, bottom + 1)):
            start, end = 3 * (row * width + left), 3 * (row * width + right)
            for channel, table in enumerate(_TABLES):
                pixels[start + channel : end : 3] = pixels[start + channel : end : 3].translate(table)
    return bytes(pixels)
