"""PDF, through PyMuPDF: text blocks in the order in which the file draws them, never sorted (that breaks columns)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from core.errors import BrokenDocumentError
from core.rag.document import About, Block, PageShape, union
from core.rag.parsers import pdf_blocks
from core.rag.parsers.base import PLAIN, Found, Wishes, clean, is_ideograph
from core.rag.parsers.pdf_columns import in_columns
from core.rag.parsers.pdf_headings import Headings, Line
from core.rag.parsers.pdf_margins import Margins
from core.rag.parsers.pdf_tables import outside, tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from core.rag.document import Rectangle
    from core.rag.parsers.pdf_margins import Runs
    from core.rag.parsers.pdf_page import Source

_PAGES = 5_000
_FEWEST_DRAWN = 4  # lines or rectangles: fewer make no table
_LEARNT_FROM, _FIRST = 40, 8  # pages
_NO_TITLES = frozenset({"anonymous", "untitled", "unknown", "title"})
_LEADER = re.compile(r"\s*(?:[.·…]\s?){4,}\s*(\w{0,6})\s*$")


class PdfParser:
    """Reads text with the place of every line."""

    _source = staticmethod(pdf_blocks.source)

    def accepts(self, name: str, head: bytes) -> str:  # noqa: ARG002 - the bytes say it all
        """The mark `%PDF-` stands in the first kilobyte; mail programs put things before it."""
        return "application/pdf" if b"%PDF-" in head[:1024] else ""

    def parse(self, path: Path, name: str, wishes: Wishes = PLAIN) -> Iterator[Found]:  # noqa: ARG002 - all are asked alike
        """Every page's shape, then its blocks. A page that cannot be read counts, but has no text.

        Page numbers, and running heads after their first, are no text. A file that had to be mended is `damaged`.

        Raises:
            LockedDocumentError: It asks for a password, or for another one (key `document_password_wrong`).
            BrokenDocumentError: Nothing in it can be read, or it has more than 5,000 pages.
        """
        with self._source(path, wishes.password) as source:
            if source.count > _PAGES:
                raise BrokenDocumentError(
                    f"The document has {source.count} pages.",
                    key="document_too_large",
                    hint="Split it into smaller ones.",
                    pages=source.count,
                )
            about = About(pages=source.count, title=_title(source.title))
            yield about
            headings = Headings(source.outline())
            known = {number: _page(source, number, headings) for number in _sample(source.count)}
            margins = Margins([(page.shape, page.runs) for page in known.values()])
            pages = (known.pop(number, None) or _page(source, number, headings) for number in _numbers(source))
            any_page, any_text, whole = False, False, True
            for page in pages:
                whole, any_page = whole and not page.is_lost, any_page or not page.is_lost
                any_text = any_text or bool(page.runs)
                yield page.shape
                kept = margins.without(page.shape, page.runs)
                blocks = (block for lines in kept for block in _block(lines, headings, page.shape.page))
                yield from _whole_headings(blocks)
            if not any_page or (source.is_mended() and not any_text and not source.has_pictures()):
                raise BrokenDocumentError("The PDF is damaged: no page of it can be read.")
            # Only now is it known: pages are mended as they are opened.
            if source.is_mended() or not whole:
                yield replace(about, damaged=True)


@dataclass(frozen=True, slots=True)
class _Page:
    shape: PageShape
    runs: Runs
    is_lost: bool = False


def _numbers(source: Source) -> range:
    return range(1, source.count + 1)


def _page(source: Source, number: int, headings: Headings) -> _Page:
    raw = source.page(number)
    if raw is None:
        return _Page(PageShape(number, 0.0, 0.0), [], is_lost=True)
    here = tables(raw.drawn, raw.words, number) if len(raw.drawn) >= _FEWEST_DRAWN else []
    places = [place for place, _ in here]
    runs: Runs = []
    for run in raw.runs:
        lines = run
        if places:
            inside = [line for line in lines if not outside(places, line.rectangle)]
            runs.extend(_taken(here, inside))
            lines = [line for line in lines if line not in inside]
        if lines:
            headings.learn(lines)
            runs.append(lines)
    runs = in_columns(runs, raw.width)
    box = union(tuple(line.rectangle for lines in runs for line in lines))
    return _Page(PageShape(number, raw.width, raw.height, box), runs)


def _sample(count: int) -> list[int]:
    """The pages from which letters and margins are learnt; few of many, so that reading can begin at once.

    The first ones, then left and right pages in turn.
    """
    if count <= 2 * _LEARNT_FROM:
        return list(range(1, count + 1))
    step = (count - _FIRST) / (_LEARNT_FROM - _FIRST)
    spread = (_FIRST + 1 + round(step * at) for at in range(_LEARNT_FROM - _FIRST))
    return [*range(1, _FIRST + 1), *(min(count, number + (number + at) % 2) for at, number in enumerate(spread))]


def _title(given: str) -> str:
    """The title in the file's properties, unless a program put a placeholder there."""
    title = " ".join(clean(given).split())
    return "" if title.casefold().strip("()") in _NO_TITLES else title


def _taken(here: list[tuple[Rectangle, Block]], lines: list[Line]) -> Iterator[list[Line]]:
    """The tables to which lines belong, each where its first line stands; they are taken out of the list."""
    for line in lines:
        for one in [one for one in here if not outside([one[0]], line.rectangle)]:
            here.remove(one)
            yield [Line("", one[0], 0.0, bold=False, table=one[1])]


def _block(lines: list[Line], headings: Headings, page: int) -> Iterator[Block]:
    """One or more blocks: a heading may be glued to its paragraph."""
    if lines[0].table:
        yield lines[0].table
        return
    for run, level in headings.parted(lines, page):
        texts = [line.text for line in run]
        text, starts = (
            listed(texts) if sum(bool(_LEADER.search(one)) for one in texts) * 2 > len(texts) else joined(texts)
        )
        places = tuple(zip(starts, (line.rectangle for line in run), strict=True))
        if text.strip():
            yield Block("heading" if level else "paragraph", text, page, places, level)


def _whole_headings(blocks: Iterable[Block]) -> Iterator[Block]:
    """The lines of a long title are often drawn one by one: they are one heading."""
    before: Block | None = None
    for block in blocks:
        if before and _continues(before, block):
            text, (_, start) = joined([before.text, block.text])
            lines = (*before.lines, *((start + at, place) for at, place in block.lines))
            before = replace(before, text=text, lines=lines)
            continue
        if before:
            yield before
        before = block
    if before:
        yield before


def _continues(before: Block, block: Block) -> bool:
    """Whether a heading goes on in the next block: same letters, close below."""
    above, below = before.rectangle, block.rectangle
    if before.kind != "heading" or block.kind != "heading" or before.level != block.level or not above or not below:
        return False
    height = before.lines[-1][1][3] - before.lines[-1][1][1]
    goes_on = below[1] >= above[1] and below[1] - above[3] < 0.4 * height
    return goes_on and len(before.text) + len(block.text) <= 200


def listed(lines: list[str]) -> tuple[str, list[int]]:
    """Printed lines that stay lines, as in a table of contents, without the dots that lead to its numbers."""
    text = ""
    starts: list[int] = []
    for line in lines:
        text += "\n" if text else ""
        starts.append(len(text))
        text += " ".join(_LEADER.sub(r" \1", line).split())
    return text, starts


def joined(lines: list[str]) -> tuple[str, list[int]]:
    """Printed lines as running text, and where each starts in it.

    A word parted at a line's end is put together again; Chinese needs no space between lines.
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
