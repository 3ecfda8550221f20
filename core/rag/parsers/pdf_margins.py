"""What stands in the margins of a PDF's pages and says nothing: page numbers, and heads that run from page to page."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from core.rag.document import union

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from core.rag.document import PageShape
    from core.rag.parsers.pdf_headings import Line

_MARGIN = 0.1  # of the page's height, above and below
_FEWEST = 3  # pages on which a head must stand to be one that runs
_SHARE = 0.25  # of all pages: left and right pages have their own, and chapters begin without
_LONGEST = 150
_NUMBER = re.compile(
    r"[-–—·|\s]*(?:(?:page|seite|p\.?|第)\s*)?(?:\d{1,4}|[ivxl]{2,7})\s*页?"
    r"(?:\s*(?:/|of|von|[，,]?\s*共)\s*\d{1,4}\s*页?)?[-–—·|\s]*",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d+|\b[ivxlc]+\b")
# Such as "12 A Long Title", "A Long Title | 13"; "Chapter 4" may be all that says so.
_NUMBERED = re.compile(r"(?=.*[^\W#]{2}.*\W[^\W#]{2})(?:#\W|.*\W#\W*\Z)")
_FEWEST_NUMBERED = 2  # pages

Runs = list[list["Line"]]


class Margins:
    """Learns what stands in the margins, then takes out what is no text.

    Args:
        pages: The shapes and runs of lines of all pages, or of enough to learn from.
    """

    def __init__(self, pages: Sequence[tuple[PageShape, Runs]]) -> None:
        self._count = len(pages)
        self._heads: Counter[str] = Counter()
        self._numbered: defaultdict[str, set[int]] = defaultdict(set)
        self._seen = set[str]()
        for shape, runs in pages:
            margin = [lines for lines in runs if _in_margin(lines, shape)]
            self._heads.update({_key(lines) for lines in margin})
            for lines in margin:
                if _is_outermost(lines, margin, shape):
                    self._numbered[_key(lines)].add(shape.page)

    def without(self, shape: PageShape, runs: Runs) -> Runs:
        """The page's runs of lines, without its number, running heads and feet.

        The first of each head stays, as it may be the only place that says it; feet say nothing. Pages are asked for
        in their order. Several numbers in one margin are a table's or a plot's, and stay.
        """
        numbers = Counter(_at_top(lines, shape) for lines in runs if _is_number(lines) and _in_margin(lines, shape))
        kept: Runs = []
        for lines in runs:
            if _in_margin(lines, shape):
                if _is_number(lines) and numbers[_at_top(lines, shape)] == 1:
                    continue
                key = _key(lines)
                says_nothing = key in self._seen or not _at_top(lines, shape)
                if key and says_nothing and not _is_number(lines) and self._runs_on(key):
                    continue
                self._seen.add(key)
            kept.append(lines)
        return kept

    def _runs_on(self, key: str) -> bool:
        return self._is_numbered(key) or self._heads[key] >= max(_FEWEST, _SHARE * self._count)

    def _is_numbered(self, key: str) -> bool:
        """Whether it goes with a page's number: the same words beside other numbers, at the very edge of pages."""
        return len(self._numbered[key]) >= _FEWEST_NUMBERED and bool(_NUMBERED.match(key))


def _is_outermost(lines: Sequence[Line], margin: Sequence[Sequence[Line]], shape: PageShape) -> bool:
    """Whether nothing stands nearer to the upper or the lower edge."""
    top = _at_top(lines, shape)
    edge = _edge(lines, top=top)
    return all(edge <= _edge(other, top=top) for other in margin if _at_top(other, shape) == top)


def _edge(lines: Sequence[Line], *, top: bool) -> float:
    return min(line.rectangle[1] for line in lines) if top else -max(line.rectangle[3] for line in lines)


def _in_margin(lines: Iterable[Line], shape: PageShape) -> bool:
    box = union(tuple(line.rectangle for line in lines))
    return box is not None and (box[3] <= shape.height * _MARGIN or box[1] >= shape.height * (1 - _MARGIN))


def _at_top(lines: Sequence[Line], shape: PageShape) -> bool:
    return lines[0].rectangle[1] < shape.height / 2


def is_page_number(text: str) -> bool:
    """Whether a line says nothing but which page it stands on."""
    return len(text) <= _LONGEST and bool(_NUMBER.fullmatch(text))


def _is_number(lines: Sequence[Line]) -> bool:
    return len(lines) == 1 and is_page_number(lines[0].text)


def _key(lines: Sequence[Line]) -> str:
    """A head compares by its words, as the number in it changes from page to page; "" for what is none."""
    text = " ".join(" ".join(line.text for line in lines).split())[: _LONGEST + 1]
    is_head = len(text) <= _LONGEST and any(letter.isalpha() for letter in text)
    return _DIGITS.sub("#", text.casefold()) if is_head else ""
