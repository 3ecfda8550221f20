"""A page as a sheet of paper: its picture or its boxes, the marker on the words, tabs on its edge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from webui.render.html import escaped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webui.words import Words

Box: TypeAlias = tuple[float, float, float, float]

_MARGIN = 16.0  # points around the text, where the page is zoomed to it
_LETTERS = 11.2  # pixels that letters have, so that rounding leaves 11
_WIDEST = 1400.0  # pixels; letters smaller than this allows are not for reading
_TAB = 34.0  # pixels that a tab needs
_WIDTH = 350.0  # pixels that the page has, more or less


@dataclass(frozen=True, slots=True)
class ShownPage:
    """A page of a document.

    Args:
        document_id: In the owner's library.
        document: Its name.
        page: From 1.
        pages: How many there are, if known.
        size: Width and height in points.
        text_box: Around its text, in points from the top left corner; `None` where there is none.
        cited: Where the sentence stands that bears out the reply's, in points.
        opened: Where a passage stands that has no number.
        letters: How large most of its letters are printed, in points; 0 where that is not known.
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

    @property
    def legible(self) -> float:
        """How many pixels wide the page must be for most of its letters to be read; 0 where any width will do."""
        if self.letters <= 0:
            return 0.0
        left, _, right, _ = self.crop
        return min((right - left) * _LETTERS / self.letters, _WIDEST)

    @property
    def crop(self) -> Box:
        """What is shown at first: the text with a margin; a page seen whole is unreadable at this width."""
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
        page: What is shown.
        here: The passages that stand on it.
        open_number: The one that is open.
        words: The reader's.
        message_id: The reply's, for the links.
    """
    marks = "".join(
        _marks(page, one.get("rectangles") or (), " p-on" if one["number"] == open_number else "") for one in here
    )
    marks += _marks(page, page.opened, " p-on") + _marks(page, page.cited, " p-strong")
    alt = escaped(words("evidence.picture", n=page.page, document=page.document))
    source = f"./pages/{escaped(page.document_id)}/{page.page}.png"
    image = f'<img src="{source}" alt="{alt}" width="{page.size[0]:.0f}" height="{page.size[1]:.0f}">'
    return paper(page, f"{image}{marks}", tabs(page, here, open_number, words, message_id))


def paper(page: ShownPage, inside: str, tabs_html: str, *, below: str = "") -> str:
    """A sheet of paper with something on it, cut to its text until all of it is wanted.

    Args:
        page: Its size, and where its text is.
        inside: Markup whose places are in per cent of the page.
        tabs_html: From `tabs`.
        below: Markup that stands under the sheet.
    """
    width, height = page.size
    left, top, right, bottom = page.crop
    across, down = right - left, bottom - top
    legible = f";--legible:{page.legible:.0f}px" if page.legible else ""
    place = f"left:{-left / across:.4%};top:{-top / down:.4%};width:{width / across:.4%}"
    return (
        f'<div class="p-desk" tabindex="0" role="region" aria-label="{escaped(page.document)}">'
        f'<div class="p-page" style="--crop:{across:.1f}/{down:.1f};--full:{width:.1f}/{height:.1f}{legible}">'
        f'<div class="p-paper"><div class="p-sheet" style="{place}">{inside}</div></div>'
        f'<div class="p-tabs">{tabs_html}</div></div>{below}</div>'
    )


def _marks(page: ShownPage, rectangles: Sequence[Sequence[float]], state: str) -> str:
    """The marker's strokes, in per cent of the page."""
    width, height = page.size
    return "".join(
        f'<span class="p-hl{state}" style="left:{x0 / width:.3%};top:{y0 / height:.3%};'
        f'width:{(x1 - x0) / width:.3%};height:{(y1 - y0) / height:.3%}"></span>'
        for x0, y0, x1, y1 in rectangles
    )


def tabs(
    page: ShownPage, here: Sequence[Mapping[str, Any]], open_number: int | None, words: Words, message_id: str
) -> str:
    """The numbers of the passages, on the edge of the page at the height of each; arguments as in `picture`."""
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
    """Tabs from the top down, pushed apart so that each can be hit."""
    gap = _TAB / (_WIDTH * height / max(width, 1.0))
    places: list[float] = []
    for top in tops:
        place = min(max(top, 0.0), 1.0)
        places.append(max(place, places[-1] + gap) if places else place)
    return places
