"""Headings, running heads and page numbers of a PDF, learnt from a sample of its pages."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from core.rag.document import union

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from core.rag.document import PageShape
    from core.rag.parsers.pdf_page import Line, Runs

_LONGEST_HEADING = 200
_HEADING_SIZE = 1.15  # times the font size of most of the text
_NUMBERED_HEADING = re.compile(
    r"(\d+(\.\d+)*\.?|[A-Z]\.|chapter|section|appendix|第.{1,4}[章节節篇部]|[一二三四五六七八九十]+、)\s*\S",
    re.IGNORECASE,
)
_ROMAN = re.compile(r"[IVX]{1,5}\.\s+[A-Z][A-Z\s,:&-]{3,}")  # "II. RELATED WORK", as papers have it in plain letters
_SENTENCE_END = tuple(".,;:。，；：！？!?")


class Headings:
    """Which lines are headings: by the bookmarks, else by font sizes learnt from some pages.

    Args:
        outline: The bookmarks: level, title, page.
    """

    def __init__(self, outline: Sequence[tuple[int, str, int]]) -> None:
        self._letters_by_size: Counter[float] = Counter()
        self._blocks_by_size: Counter[float] = Counter()
        self._sizes: list[float] | None = None
        self._body_size = 0.0
        self._bookmarks: dict[int, dict[str, int]] = defaultdict(dict)
        for level, title, page in outline:
            if key := _title_key(title):
                self._bookmarks[page][key] = min(level, 6)

    def learn(self, lines: Sequence[Line]) -> None:
        """Count the font sizes of a run of lines."""
        for line in lines:
            self._letters_by_size[line.size] += len(line.text)
        self._blocks_by_size[lines[0].size] += 1

    def parted(self, lines: Sequence[Line], page: int) -> Iterator[tuple[list[Line], int]]:
        """The lines in groups, each with its heading level, 0 for ordinary text."""
        if page in self._bookmarks and (level := self._bookmark(" ".join(line.text for line in lines), page)):
            yield list(lines), level
            return
        run: list[Line] = []
        run_level = 0
        for line in lines:
            level = self._level(line, page)
            if run and (level != run_level or (level and len(run) >= 3)):
                yield run, self._plausible(run, run_level)
                run = []
            run_level = level
            run.append(line)
        if run:
            yield run, self._plausible(run, run_level)

    def _bookmark(self, text: str, page: int) -> int:
        here = self._bookmarks.get(page)
        return here.get(_title_key(text), 0) if here else 0

    def _level(self, line: Line, page: int) -> int:
        if level := self._bookmark(line.text, page):
            return level
        sizes = self._heading_sizes()
        if sizes and line.size >= self._body_size * _HEADING_SIZE:
            return min(6, 1 + sum(size > line.size for size in sizes))
        text = line.text.strip()
        in_bold = line.bold and line.size >= self._body_size and _NUMBERED_HEADING.match(text)
        is_numbered = in_bold or _ROMAN.fullmatch(text)
        return min(6, len(sizes) + 1) if is_numbered and not line.text.rstrip().endswith(_SENTENCE_END) else 0

    @staticmethod
    def _plausible(run: Sequence[Line], level: int) -> int:
        """The level, or 0 for what is large but no heading: a number, or a whole page of text."""
        if not level:
            return 0
        text = " ".join(line.text for line in run)
        return level if len(text) <= _LONGEST_HEADING and sum(letter.isalpha() for letter in text) >= 2 else 0

    def _heading_sizes(self) -> list[float]:
        """The font sizes of headings; empty where large text is too common to mean anything, as on slides."""
        if self._sizes is None:
            self._body_size = self._letters_by_size.most_common(1)[0][0] if self._letters_by_size else 0.0
            large = {
                size: count for size, count in self._blocks_by_size.items() if size >= self._body_size * _HEADING_SIZE
            }
            few = sum(large.values()) <= 0.35 * max(1, self._blocks_by_size.total())
            self._sizes = (
                [size for size in self._letters_by_size if size >= self._body_size * _HEADING_SIZE] if few else []
            )
        return self._sizes


def _title_key(title: str) -> str:
    """Titles compare by letters and digits: bookmarks and pages differ in spaces and punctuation."""
    return "".join(filter(str.isalnum, title.casefold()))


# --------------------------------------------------------------------------------------------------------- margins

_MARGIN = 0.1  # of the page's height, above and below
_FEWEST_PAGES = 3  # on which a running head must stand
_SHARE_OF_PAGES = 0.25  # of all pages: left and right pages have their own, and chapters begin without
_LONGEST_HEAD = 150
_PAGE_NUMBER = re.compile(
    r"[-–—·|\s]*(?:(?:page|seite|p\.?|第)\s*)?(?:\d{1,4}|[ivxl]{2,7})\s*页?"
    r"(?:\s*(?:/|of|von|[，,]?\s*共)\s*\d{1,4}\s*页?)?[-–—·|\s]*",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d+|\b[ivxlc]+\b")
# Such as "12 A Long Title", "A Long Title | 13"; not "Chapter 4", which may stand nowhere else.
_NUMBERED_HEAD = re.compile(r"(?=.*[^\W#]{2}.*\W[^\W#]{2})(?:#\W|.*\W#\W*\Z)")
_FEWEST_NUMBERED = 2  # pages


class Margins:
    """Removes page numbers, running heads and feet, learnt from some pages.

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
            self._heads.update({_head_key(lines) for lines in margin})
            for lines in margin:
                if _is_outermost(lines, margin, shape):
                    self._numbered[_head_key(lines)].add(shape.page)

    def without(self, shape: PageShape, runs: Runs) -> Runs:
        """The page's runs of lines without its number, running heads and feet; call it page by page, in order.

        The first of each head stays, as it may stand nowhere else. Several numbers in one margin belong to a table or a
        plot, and stay.
        """
        numbers = Counter(
            _at_top(lines, shape) for lines in runs if _is_page_number(lines) and _in_margin(lines, shape)
        )
        kept: Runs = []
        for lines in runs:
            if _in_margin(lines, shape):
                if _is_page_number(lines) and numbers[_at_top(lines, shape)] == 1:
                    continue
                key = _head_key(lines)
                says_nothing = key in self._seen or not _at_top(lines, shape)
                if key and says_nothing and not _is_page_number(lines) and self._is_running(key):
                    continue
                self._seen.add(key)
            kept.append(lines)
        return kept

    def _is_running(self, key: str) -> bool:
        return self._is_numbered(key) or self._heads[key] >= max(_FEWEST_PAGES, _SHARE_OF_PAGES * self._count)

    def _is_numbered(self, key: str) -> bool:
        """Whether it goes with a page number: the same words beside different numbers, at the very edge of pages."""
        return len(self._numbered[key]) >= _FEWEST_NUMBERED and bool(_NUMBERED_HEAD.match(key))


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
    """Whether a line is a page number."""
    return len(text) <= _LONGEST_HEAD and bool(_PAGE_NUMBER.fullmatch(text))


def _is_page_number(lines: Sequence[Line]) -> bool:
    return len(lines) == 1 and is_page_number(lines[0].text)


def _head_key(lines: Sequence[Line]) -> str:
    """What two running heads have in common: their words without numbers; "" for what cannot be a head."""
    text = " ".join(" ".join(line.text for line in lines).split())[: _LONGEST_HEAD + 1]
    is_head = len(text) <= _LONGEST_HEAD and any(letter.isalpha() for letter in text)
    return _DIGITS.sub("#", text.casefold()) if is_head else ""
