"""Pages whose text lies on its side or stands on its head: what stands above what is told as the text is read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.rag.document import Block, Rectangle
    from core.rag.parsers.pdf_margins import Runs
    from core.rag.parsers.pdf_page import RawPage


def turned(box: Sequence[float], degrees: int, width: float, height: float) -> Rectangle:
    """Where a box of a page goes when the page is turned.

    Args:
        box: In points from the upper left corner.
        degrees: By which the page is turned, with the clock.
        width: Of the page before.
        height: Of the page before.
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
class Turn:
    """From a page as displayed to the page as it is read, and back.

    Args:
        degrees: By which the page must be turned, with the clock, for its text to stand upright.
        width: Of the page as displayed.
        height: Of the page as displayed.
    """

    degrees: int
    width: float
    height: float

    def upright(self, page: RawPage) -> RawPage:
        """The page with the places of all that is in it as it is read."""
        if not self.degrees:
            return page
        lies = self.degrees % 180
        return replace(
            page,
            width=page.height if lies else page.width,
            height=page.width if lies else page.height,
            runs=self.read(page.runs),
            drawn=[self._read(box) for box in page.drawn],
            words=lambda: [(*self._read(word[:4]), word[4]) for word in page.words()],
        )

    def read(self, runs: Runs) -> Runs:
        """Lines with their places on the page as it is read."""
        return _moved(runs, self._read) if self.degrees else runs

    def shown(self, runs: Runs) -> Runs:
        """Lines with their places on the page as displayed."""
        return _moved(runs, self._shown) if self.degrees else runs

    def shown_block(self, block: Block) -> Block:
        """A block with its places on the page as displayed."""
        return _moved_block(block, self._shown) if self.degrees else block

    def _read(self, box: Sequence[float]) -> Rectangle:
        return turned(box, self.degrees, self.width, self.height)

    def _shown(self, box: Sequence[float]) -> Rectangle:
        wide, high = (self.height, self.width) if self.degrees % 180 else (self.width, self.height)
        return turned(box, -self.degrees, wide, high)


def _moved(runs: Runs, move: Callable[[Rectangle], Rectangle]) -> Runs:
    return [
        [
            replace(line, rectangle=move(line.rectangle), table=line.table and _moved_block(line.table, move))
            for line in run
        ]
        for run in runs
    ]


def _moved_block(block: Block, move: Callable[[Rectangle], Rectangle]) -> Block:
    return replace(block, lines=tuple((start, move(place)) for start, place in block.lines))
