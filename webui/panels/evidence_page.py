"""A page as a sheet of paper: its picture or its boxes, highlights on the words, tabs on its edge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from webui.render.markup import escaped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webui.words import Words

Box: TypeAlias = tuple[float, float, float, float]

UNREAD = " data-unread"
"""Where a page, or what is cited on it, is still being read; `assets/js/paper.js` asks for it again."""

_MARGIN = 16.0  # points around the text that the page is cropped to
_LETTERS = 11.2  # pixels of letters, so that rounding leaves 11
_ROOM = 376.0  # pixels of a page in the usual column on a laptop
_MOST_OF_IT = 0.8  # of a rectangle that lies in another
_TAB = 34.0  # pixels of a tab
_NEAR = 1.0  # points between edges that are the same
_WIDTH = 350.0  # pixels of the page, about


@dataclass(frozen=True, slots=True)
class ShownPage:
    """A page of a document.

    Args:
        page: From 1.
        pages: How many there are, if known.
        size: Width and height in points.
        text_box: Around its text, in points from the top left corner; `None` where there is none.
        cited: Rectangles of the evidence span, in points.
        opened: Rectangles of a passage that has no number.
        letters: The usual font size, in points; 0 where unknown.
        figures: Places of its figures, which are framed: under a marker their colours would be others.
        file: The id of its picture, where that is kept without its document: no other page of it can be shown.
        is_unread: Whether it is not known yet where on it the cited sentence stands, for it is still being read.
        unproved: The numbers of passages whose words are not where their marks would lie: they have none.
    """

    document_id: str
    document: str
    page: int
    pages: int | None
    size: tuple[float, float]
    text_box: Box | None = None
    cited: tuple[Box, ...] = ()
    opened: tuple[Box, ...] = ()
    letters: float = 0.0
    figures: tuple[Box, ...] = ()
    file: str = ""
    is_unread: bool = False
    unproved: frozenset[int] = frozenset()

    @property
    def fine(self) -> bool:
        """Whether most letters are legible only in a wider column than the usual one."""
        left, _, right, _ = self.crop
        return self.letters > 0 and (right - left) * _LETTERS / self.letters > _ROOM

    @property
    def crop(self) -> Box:
        """The part that is shown at first: the text with a margin, for a whole page is illegible at this width."""
        width, height = self.size
        if self.text_box is None:
            return (0.0, 0.0, width, height)
        left, top, right, bottom = self.text_box
        crop = (
            max(0.0, left - _MARGIN),
            max(0.0, top - _MARGIN),
            min(width, right + _MARGIN),
            min(height, bottom + _MARGIN),
        )
        empty = crop[2] - crop[0] < width / 4 or crop[3] - crop[1] < 1
        return (0.0, crop[1], width, max(crop[3], crop[1] + height / 4)) if empty else crop


def picture(
    page: ShownPage, here: Sequence[Mapping[str, Any]], open_number: int | None, words: Words, message_id: str
) -> str:
    """A page of a PDF, or a picture, with its passages marked.

    Args:
        message_id: The reply's, for the links.
    """
    marks = "".join(
        _marks(page, one.get("rectangles") or (), " p-on" if one["number"] == open_number else "")
        for one in here
        if one["number"] not in page.unproved
    )
    marks += _marks(page, page.opened, " p-on") + _marks(page, page.cited, " p-strong")
    alt = escaped(words("evidence.picture", n=page.page, document=page.document))
    own = f"./pages/{escaped(page.document_id)}/{page.page}.png"
    source = f"./files/{escaped(page.file)}" if page.file else own
    image = f'<img src="{source}" alt="{alt}" width="{page.size[0]:.0f}" height="{page.size[1]:.0f}">'
    return paper(page, f"{image}{marks}", tabs(page, here, open_number, words, message_id), form=" p-pictured")


def paper(page: ShownPage, inside: str, tabs_html: str, *, below: str = "", form: str = "") -> str:
    """A sheet of paper, cropped to its text until the reader wants all of it.

    Args:
        page: Its size, and where its text is.
        inside: Markup, positioned in per cent of the page.
        tabs_html: From `tabs`.
        below: Markup under the sheet.
        form: A class of the sheet, with a space before it.
    """
    width, height = page.size
    left, top, right, bottom = page.crop
    across, down = right - left, bottom - top
    fine = " p-fine" if page.fine else ""
    place = f"left:{-left / across:.4%};top:{-top / down:.4%};width:{width / across:.4%}"
    return (
        f'<div class="p-desk" tabindex="0" role="region" aria-label="{escaped(page.document)}"'
        f"{UNREAD if page.is_unread else ''}>"
        f'<div class="p-page{fine}" style="--crop:{across:.1f}/{down:.1f};--full:{width:.1f}/{height:.1f}">'
        f'<div class="p-paper"><div class="p-sheet{form}" style="{place}">{inside}</div></div>'
        f'<div class="p-tabs">{tabs_html}</div></div>{below}</div>'
    )


def _marks(page: ShownPage, rectangles: Sequence[Sequence[float]], state: str) -> str:
    """Highlights, positioned in per cent of the page."""
    width, height = page.size
    return "".join(
        f'<span class="p-hl{state}{_framed(page, (x0, y0, x1, y1))}" '
        f'style="left:{x0 / width:.3%};top:{y0 / height:.3%};'
        f'width:{(x1 - x0) / width:.3%};height:{(y1 - y0) / height:.3%}"></span>'
        for x0, y0, x1, y1 in _once(rectangles)
    )


def _once(rectangles: Sequence[Sequence[float]]) -> list[Sequence[float]]:
    """Rectangles without those that lie in others: marks upon each other are darker, as if that were what is cited."""
    kept: list[Sequence[float]] = []
    for one in rectangles:
        if not any(_lies_in(one, other) for other in kept):
            kept = [*(other for other in kept if not _lies_in(other, one)), one]
    return kept


def _lies_in(one: Sequence[float], other: Sequence[float]) -> bool:
    across = min(one[2], other[2]) - max(one[0], other[0])
    down = min(one[3], other[3]) - max(one[1], other[1])
    area = (one[2] - one[0]) * (one[3] - one[1])
    return across > 0 and down > 0 and across * down >= _MOST_OF_IT * area


def _framed(page: ShownPage, box: Box) -> str:
    near = (all(abs(a - b) < _NEAR for a, b in zip(box, one, strict=True)) for one in page.figures)
    return " p-framed" if any(near) else ""


def tabs(
    page: ShownPage, here: Sequence[Mapping[str, Any]], open_number: int | None, words: Words, message_id: str
) -> str:
    """Links with the passages' numbers on the edge of the page, each at its height; arguments as in `picture`."""
    placed = sorted((_top(one), one["number"]) for one in here)
    _, top, _, bottom = page.crop
    cropped = _apart([(at - top) / (bottom - top) for at, _ in placed], page.crop[2] - page.crop[0], bottom - top)
    whole = _apart([at / page.size[1] for at, _ in placed], *page.size)
    return "".join(
        f'<a class="cite p-tab{" p-on" if number == open_number else ""}" href="#cite-{escaped(message_id)}-{number}" '
        f'style="--at:{at:.2%};--at-whole:{at_whole:.2%}" '
        f'aria-label="{escaped(words("evidence.open", n=number))}">{number}</a>'
        for (_, number), at, at_whole in zip(placed, cropped, whole, strict=True)
    )


def _top(passage: Mapping[str, Any]) -> float:
    return min((rectangle[1] for rectangle in passage.get("rectangles") or ()), default=0.0)


def _apart(tops: Sequence[float], width: float, height: float) -> list[float]:
    """Positions of tabs from the top down, apart enough to be clicked."""
    gap = _TAB / (_WIDTH * height / max(width, 1.0))
    places: list[float] = []
    for top in tops:
        place = min(max(top, 0.0), 1.0)
        places.append(max(place, places[-1] + gap) if places else place)
    return places
