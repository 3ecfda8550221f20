"""Tables wider than the paper: smaller letters, words that break in their columns, or a list of their cells."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_TABLE: Final = re.compile(r"<table>.*?</table>", re.DOTALL)
_TAG: Final = re.compile(r"<(/?)([a-z][a-z0-9]*)([^>]*)>")
_ROW: Final = re.compile(r"<tr>(.*?)</tr>", re.DOTALL)
_CELL: Final = re.compile(r"<t([hd])([^>]*)>(.*?)</t\1>", re.DOTALL)
_MARKUP: Final = re.compile(r"<[^>]*>")
_NARROWS: Final = frozenset({"ul", "ol", "li", "blockquote", "div", "article", "section", "aside", "main"})
_WIDTHS: Final = (480, 430, 380, 330, 270, 210)  # points that a table may have, in the text and within lists and quotes
_AROUND: Final = 10.0  # points of a cell that its text does not have
_SIZES: Final = (("small", 8.0, 8), ("tiny", 6.5, 5))  # a class, its points, and the letters a line needs at least


@dataclass(frozen=True, slots=True)
class _Cell:
    kind: str
    attributes: str
    html: str

    @property
    def text(self) -> str:
        return unescape(_MARKUP.sub("", self.html))


def fitted(html: str, overflows: Callable[[str], bool], *, lists: bool = False) -> str:
    """The page with tables that fit on its paper.

    Args:
        html: A page as exports make it, in which each `<` of its text is escaped.
        overflows: Whether a piece of the page is wider than the paper, or a row of it higher.
        lists: Have each table as a list of its cells, which fits wherever text does.
    """
    made: list[str] = []
    within: list[str] = []  # the tags that are open before the table, which make it narrower
    at = 0
    for found in _TABLE.finditer(html):
        before = html[at : found.start()]
        _follow(before, within)
        forms = [_listed(_rows(found[0]))] if lists else _forms(found[0])
        opened = "".join(within)
        *tried, last = forms
        made += [before, next((one for one in tried if not overflows(opened + one)), last)]
        at = found.end()
    return "".join([*made, html[at:]])


def _follow(html: str, within: list[str]) -> None:
    """Keep the tags that are open after this piece."""
    for ends, name, rest in _TAG.findall(html):
        if name not in _NARROWS:
            continue
        if not ends:
            within.append(f"<{name}{rest}>")
        elif within:
            within.pop()


def _forms(table: str) -> list[str]:
    """As what a table may stand on the paper, the best first; the last one always fits."""
    rows = _rows(table)
    forms = [table]
    for name, size, fewest in _SIZES:
        forms.append(table.replace("<table>", f'<table class="{name}">', 1))
        forms += _narrow(rows, name, size, fewest)
    return [*forms, _listed(rows)]


def _rows(table: str) -> list[list[_Cell]]:
    return [[_Cell(*one) for one in _CELL.findall(row)] for row in _ROW.findall(table)]


def _narrow(rows: list[list[_Cell]], name: str, size: float, fewest: int) -> Iterator[str]:
    """With columns of a fixed width, in which words break; not where a line of them would have too few letters."""
    columns = max(map(len, rows), default=0)
    if not columns:
        return
    letter = size * 0.6
    needs = [
        max(fewest * letter, *(_longest(row[at].text, size) for row in rows if at < len(row))) for at in range(columns)
    ]
    for width in _WIDTHS:
        room = width - columns * _AROUND
        if room < fewest * letter * columns:
            return
        yield _with_widths(rows, name, _shared(needs, room))


def _longest(text: str, size: float) -> float:
    """About how wide the longest word is, in points; Chinese breaks after every sign."""
    words = re.findall(r"[\u0000-\u2e7f\uac00-\ud7af\uf900-\U0010ffff]+", text)
    letters = max((len(word) for one in words for word in one.split()), default=0)
    return max(letters * size * 0.6, min(6, len(text)) * size)


def _shared(needs: list[float], room: float) -> list[float]:
    """What each column gets: what it needs where that is less than an equal share, and the others what is left."""
    given = [0.0] * len(needs)
    waiting = sorted(range(len(needs)), key=needs.__getitem__)
    while waiting:
        share = room / len(waiting)
        at = waiting.pop(0)
        given[at] = min(needs[at], share)
        room -= given[at]
    return given


def _with_widths(rows: list[list[_Cell]], name: str, widths: list[float]) -> str:
    def cell(one: _Cell, width: float) -> str:
        styled, own = f' style="width:{width:.1f}pt', ' style="'
        # MuPDF reads one `style` of an element.
        attributes = (
            one.attributes.replace(own, f"{styled};", 1) if own in one.attributes else f'{one.attributes}{styled}"'
        )
        return f"<t{one.kind}{attributes}>{one.html}</t{one.kind}>"

    lines = (f"<tr>{''.join(map(cell, row, widths))}</tr>" for row in rows)
    return f'<table class="{name}">{"".join(lines)}</table>'


def _listed(rows: list[list[_Cell]]) -> str:
    """Each row as a paragraph in which each cell stands behind the heading of its column."""
    head, *others = rows or [[]]
    if not others:
        return f"<p>{'<br>'.join(f'<b>{one.html}</b>' for one in head)}</p>"

    def said(heading: _Cell, value: _Cell) -> str:
        named = f"<b>{heading.html}:</b> " if heading.text.strip() else ""
        return named + value.html

    return "".join(f'<p class="row">{"<br>".join(map(said, head, row))}</p>' for row in others)
