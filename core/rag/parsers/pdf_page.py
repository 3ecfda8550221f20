"""What the readers of PDF files give, whichever library they use: `pdf.py` makes blocks of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from core.errors import LockedDocumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.rag.document import Rectangle
    from core.rag.parsers.pdf_margins import Runs
    from core.rag.parsers.pdf_tables import Word

_GARBLED = "\ufffd"


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
        pictured: Says how much of it its largest picture covers, from 0 to 1.
        pixels: Draws it; takes the pixels for each point.
        is_garbled: Whether some of its text has letters that nobody knows.
        turn: Degrees by which it must be turned, with the clock, for most of its text to stand upright.
    """

    width: float
    height: float
    runs: Runs
    drawn: list[Rectangle]
    words: Callable[[], list[Word]]
    pictured: Callable[[], float]
    pixels: Callable[[float], Pixels]
    is_garbled: bool = False
    turn: int = 0


class Source(Protocol):
    """An open PDF."""

    @property
    def count(self) -> int:
        """How many pages it has."""
        ...

    @property
    def title(self) -> str:
        """What its properties call it."""
        ...

    def outline(self) -> list[tuple[int, str, int]]:
        """Its bookmarks: level, title, page."""
        ...

    def page(self, number: int) -> RawPage | None:
        """A page, counted from 1; `None` if it is damaged."""
        ...

    def is_mended(self) -> bool:
        """Whether it was damaged; known only when its pages were looked at."""
        ...

    def has_lost(self) -> bool:
        """Whether it was damaged so that something of it may be missing; known only when its pages were looked at."""
        ...

    def has_pictures(self) -> bool:
        """Whether any of its first pages shows a picture, as a scan does."""
        ...


def is_garbled(text: str) -> bool:
    """Fonts without a table of letters give replacement characters only: as good as a picture."""
    return text.count(_GARBLED) * 2 > len(text)


def largest(boxes: Sequence[Rectangle], width: float, height: float) -> float:
    """How much of a page the largest of some boxes covers, from 0 to 1."""
    return max(((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in boxes), default=0.0) / max(1.0, width * height)


def locked(password: str) -> LockedDocumentError:
    """What to say of an encrypted PDF that this password, or none, does not open."""
    if password:
        return LockedDocumentError(
            "The password does not open the PDF.", key="document_password_wrong", hint="Type it as it was given to you."
        )
    return LockedDocumentError(
        "The PDF asks for a password.", hint="Give its password, or save a copy without one.", asks=True
    )
