"""The page a claim came from: its picture with the passages marked, tabs on its edge, and the words themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from webui.render.evidence import rows, where
from webui.render.html import escaped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webui.words import Words

Box: TypeAlias = tuple[float, float, float, float]

_MARGIN = 22.0  # points around the text, where the page is zoomed to it
_TAB = 34.0  # pixels that a tab needs
_WIDTH = 350.0  # pixels that the page has, more or less
_LONGEST = 700


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
    """

    document_id: str
    document: str
    page: int
    pages: int | None
    size: tuple[float, float]
    text_box: Box | None = None

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


def evidence_html(
    passages: Sequence[Mapping[str, Any]],
    open_number: int | None,
    words: Words,
    *,
    message_id: str,
    page: ShownPage | None,
) -> str:
    """Markup for `#page`.

    Args:
        passages: The reply's, each with its `number`.
        open_number: The one that is open; `None` where the reader turned to another page.
        words: The reader's.
        message_id: The reply's, for the links.
        page: What is shown of the document; `None` for one without pages.
    """
    opened = next((one for one in passages if one["number"] == open_number), None)
    document = escaped(page.document if page else str((opened or {}).get("document") or ""))
    here = [one for one in passages if page and _is_on(one, page)]
    picture = _picture(page, here, open_number, words, message_id) if page else _no_picture(words)
    quotes = "".join(_quote(one, words, message_id, is_open=one["number"] == open_number) for one in passages)
    return (
        f'<div class="p-evidence" data-open="{escaped(message_id)}"><header>'
        f'<h2>{escaped(words("evidence.title"))}</h2><span class="p-file" title="{document}">{document}</span>'
        f'<button type="button" class="p-icon p-close" data-do="close" '
        f'aria-label="{escaped(words("evidence.close"))}"></button></header>'
        f'{picture}<ol class="p-quotes" role="list">{quotes}</ol></div>'
    )


def _is_on(passage: Mapping[str, Any], page: ShownPage) -> bool:
    return passage.get("document_id") == page.document_id and passage.get("page") == page.page


def _no_picture(words: Words) -> str:
    return f'<p class="p-none">{escaped(words("evidence.no_picture"))}</p>'


def _picture(
    page: ShownPage, here: Sequence[Mapping[str, Any]], open_number: int | None, words: Words, message_id: str
) -> str:
    width, height = page.size
    left, top, right, bottom = page.crop
    across, down = right - left, bottom - top
    place = f"left:{-left / across:.4%};top:{-top / down:.4%};width:{width / across:.4%}"
    marks = "".join(_marks(one, page, is_open=one["number"] == open_number) for one in here)
    alt = escaped(words("evidence.picture", n=page.page, document=page.document))
    source = f"./pages/{escaped(page.document_id)}/{page.page}.png"
    tabs = _tabs(page, here, open_number, words, message_id)
    return (
        f'<div class="p-desk">'
        f'<div class="p-page" style="--crop:{across:.1f}/{down:.1f};--full:{width:.1f}/{height:.1f}">'
        f'<div class="p-paper"><div class="p-sheet" style="{place}"><img src="{source}" alt="{alt}" '
        f'width="{width:.0f}" height="{height:.0f}">{marks}</div></div>{tabs}</div></div>{_turner(page, words)}'
    )


def _marks(passage: Mapping[str, Any], page: ShownPage, *, is_open: bool) -> str:
    """The marker's strokes, in per cent of the page."""
    width, height = page.size
    state = " p-on" if is_open else ""
    return "".join(
        f'<span class="p-hl{state}" style="left:{x0 / width:.3%};top:{y0 / height:.3%};'
        f'width:{(x1 - x0) / width:.3%};height:{(y1 - y0) / height:.3%}"></span>'
        for x0, y0, x1, y1 in passage.get("rectangles") or ()
    )


def _tabs(
    page: ShownPage, here: Sequence[Mapping[str, Any]], open_number: int | None, words: Words, message_id: str
) -> str:
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


def _turner(page: ShownPage, words: Words) -> str:
    said = (
        words("evidence.page_of", n=page.page, total=page.pages) if page.pages else words("evidence.page", n=page.page)
    )
    before = _turn("before", page, page.page - 1, words, off=page.page <= 1)
    after = _turn("after", page, page.page + 1, words, off=page.pages is not None and page.page >= page.pages)
    whole = escaped(words("evidence.whole"))
    return (
        f'<div class="p-turner">{before}<span>{escaped(said)}</span>{after}'
        f'<button type="button" class="p-icon p-whole" data-do="whole" aria-label="{whole}" '
        f'title="{whole}"></button></div>'
    )


def _turn(way: str, page: ShownPage, number: int, words: Words, *, off: bool) -> str:
    disabled = " disabled" if off else ""
    return (
        f'<button type="button" class="p-icon p-{way}" data-do="page" data-document="{escaped(page.document_id)}" '
        f'data-n="{number}" aria-label="{escaped(words(f"evidence.{way}"))}"{disabled}></button>'
    )


def _quote(passage: Mapping[str, Any], words: Words, message_id: str, *, is_open: bool) -> str:
    text = "\n".join(rows(str(passage.get("text") or "")))
    text = text if len(text) <= _LONGEST else text[: _LONGEST - 1].rstrip() + "…"
    quoted = " <br>".join(map(escaped, text.splitlines()))
    number = passage["number"]
    here = ' class="p-here" aria-current="true"' if is_open else ""
    return (
        f'<li{here}><a class="cite" href="#cite-{escaped(message_id)}-{number}"><span class="p-n">{number}</span>'
        f'<span class="p-quote" dir="auto">{quoted}</span>'
        f'<span class="p-where">{escaped(where(passage, words))}</span>'
        "</a></li>"
    )
