"""Which lines of a PDF are headings: by its bookmarks, else by the size of the letters."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from core.rag.document import Block, Rectangle

_LONGEST = 200
_LARGER = 1.15  # than the letters that most of the text is set in
_NUMBERED = re.compile(
    r"(\d+(\.\d+)*\.?|[A-Z]\.|chapter|section|appendix|第.{1,4}[章节節篇部]|[一二三四五六七八九十]+、)\s*\S",
    re.IGNORECASE,
)
_ROMAN = re.compile(r"[IVX]{1,5}\.\s+[A-Z][A-Z\s,:&-]{3,}")  # "II. RELATED WORK", as papers have it in plain letters
_SENTENCE_END = tuple(".,;:。，；：！？!?")


@dataclass(frozen=True, slots=True)
class Line:
    """A printed line: its words, its place on the page as displayed, the size of its letters in points.

    One without words stands for a whole table.
    """

    text: str
    rectangle: Rectangle
    size: float
    bold: bool
    table: Block | None = None


class Headings:
    """Learns a document's letter sizes from some pages, then says which lines are headings.

    Args:
        outline: The bookmarks: level, title, page.
    """

    def __init__(self, outline: Sequence[tuple[int, str, int]]) -> None:
        self._letters: Counter[float] = Counter()
        self._large_blocks: Counter[float] = Counter()
        self._sizes: list[float] | None = None
        self._body = 0.0
        self._bookmarks: dict[int, dict[str, int]] = defaultdict(dict)
        for level, title, page in outline:
            if key := _key(title):
                self._bookmarks[page][key] = min(level, 6)

    def learn(self, lines: Sequence[Line]) -> None:
        """Count the letters of a block."""
        for line in lines:
            self._letters[line.size] += len(line.text)
        self._large_blocks[lines[0].size] += 1

    def parted(self, lines: Sequence[Line], page: int) -> Iterator[tuple[list[Line], int]]:
        """The lines in runs, each with its heading level, 0 for ordinary text."""
        if page in self._bookmarks and (level := self._bookmark(" ".join(line.text for line in lines), page)):
            yield list(lines), level
            return
        run: list[Line] = []
        run_level = 0
        for line in lines:
            level = self._level(line, page)
            if run and (level != run_level or (level and len(run) >= 3)):
                yield run, self._sure(run, run_level)
                run = []
            run_level = level
            run.append(line)
        if run:
            yield run, self._sure(run, run_level)

    def _bookmark(self, text: str, page: int) -> int:
        here = self._bookmarks.get(page)
        return here.get(_key(text), 0) if here else 0

    def _level(self, line: Line, page: int) -> int:
        if level := self._bookmark(line.text, page):
            return level
        sizes = self._large_sizes()
        if sizes and line.size >= self._body * _LARGER:
            return min(6, 1 + sum(size > line.size for size in sizes))
        text = line.text.strip()
        in_bold = line.bold and line.size >= self._body and _NUMBERED.match(text)
        is_numbered = in_bold or _ROMAN.fullmatch(text)
        return min(6, len(sizes) + 1) if is_numbered and not line.text.rstrip().endswith(_SENTENCE_END) else 0

    @staticmethod
    def _sure(run: Sequence[Line], level: int) -> int:
        """Large letters alone are no heading: a number, or a whole page of them, is not."""
        if not level:
            return 0
        text = " ".join(line.text for line in run)
        return level if len(text) <= _LONGEST and sum(letter.isalpha() for letter in text) >= 2 else 0

    def _large_sizes(self) -> list[float]:
        """The sizes of headings; empty where large letters are too common to mean anything, as on slides."""
        if self._sizes is None:
            self._body = self._letters.most_common(1)[0][0] if self._letters else 0.0
            large = {size: count for size, count in self._large_blocks.items() if size >= self._body * _LARGER}
            few = sum(large.values()) <= 0.35 * max(1, self._large_blocks.total())
            self._sizes = [size for size in self._letters if size >= self._body * _LARGER] if few else []
        return self._sizes


def _key(title: str) -> str:
    """Titles compare by their letters: bookmarks and pages part words and numbers differently."""
    return "".join(filter(str.isalnum, title.casefold()))
