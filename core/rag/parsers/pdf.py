"""PDF, through PyMuPDF: text blocks in the order in which the file draws them, never sorted (that breaks columns)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from core.errors import BrokenDocumentError
from core.rag.document import About, Block, PageShape, union
from core.rag.parsers import ocr, pdf_blocks, scans
from core.rag.parsers.base import PLAIN, Found, Scanned, Wishes, clean
from core.rag.parsers.pdf_columns import in_columns
from core.rag.parsers.pdf_headings import Headings, Line
from core.rag.parsers.pdf_margins import Margins
from core.rag.parsers.pdf_order import top_down
from core.rag.parsers.pdf_rows import with_rows
from core.rag.parsers.pdf_tables import outside, tables
from core.rag.parsers.pdf_turn import Turn
from core.rag.parsers.text_lines import is_list, joined, listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from core.rag.document import Rectangle
    from core.rag.parsers.pdf_margins import Runs
    from core.rag.parsers.pdf_page import RawPage, Source

_PAGES = 5_000
_FEWEST_DRAWN = 4  # lines or rectangles: fewer make no table
_LEARNT_FROM, _FIRST = 40, 8  # pages
_UPRIGHT = Turn(0, 0.0, 0.0)
_NO_TITLES = frozenset({"anonymous", "untitled", "unknown", "title"})


class PdfParser:
    """Reads text with the place of every line."""

    _source = staticmethod(pdf_blocks.source)

    def accepts(self, name: str, head: bytes) -> str:  # noqa: ARG002 - the bytes say it all
        """The mark `%PDF-` stands in the first kilobyte; mail programs put things before it."""
        return "application/pdf" if b"%PDF-" in head[:1024] else ""

    def parse(self, path: Path, name: str, wishes: Wishes = PLAIN) -> Iterator[Found]:  # noqa: ARG002 - all are asked alike
        """Every page's shape, then its blocks. A page that cannot be read counts, but has no text.

        Page numbers, and running heads after their first, are no text. A file of which something was lost is `damaged`.

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
            recognising = scans.MOST if wishes.pictures and ocr.is_here() else 0
            known = {number: _page(source, number, headings) for number in _sample(source.count)}
            margins = Margins([(page.shape, page.runs) for page in known.values()])
            for number in range(1, wishes.first_page):  # heads that stood there are no first ones any more
                if page := known.pop(number, None):
                    margins.without(page.shape, page.runs)
            # What was read before speaks for the file.
            any_page = any_text = wishes.first_page > 1
            whole = True
            for number in range(wishes.first_page, source.count + 1):
                page = known.pop(number, None) or _page(source, number, headings)
                if page.scan and recognising:
                    recognising -= 1
                    yield Scanned(number)
                    page = _recognised(page, page.scan)
                whole, any_page = whole and not page.is_lost, any_page or not page.is_lost
                any_text = any_text or bool(page.runs)
                yield page.shape
                kept = page.turn.read(margins.without(page.shape, page.runs))
                blocks = _whole_headings(block for lines in kept for block in _block(lines, headings, number))
                yield from map(page.turn.shown_block, blocks)
            if not any_page or (source.is_mended() and not any_text and not source.has_pictures()):
                raise BrokenDocumentError("The PDF is damaged: no page of it can be read.")
            # Only now is it known: pages are mended as they are opened.
            if source.has_lost() or not whole:
                yield replace(about, damaged=True)


@dataclass(frozen=True, slots=True)
class _Page:
    shape: PageShape
    runs: Runs
    turn: Turn = _UPRIGHT
    is_lost: bool = False
    scan: RawPage | None = None


def _page(source: Source, number: int, headings: Headings) -> _Page:
    raw = source.page(number)
    if raw is None:
        return _Page(PageShape(number, 0.0, 0.0), [], is_lost=True)
    turn = Turn(raw.turn, raw.width, raw.height)
    runs = turn.shown(_in_order(turn.upright(raw), number, headings))
    return _Page(_shape(raw, number, runs), runs, turn, scan=raw if scans.is_scan(raw) else None)


def _in_order(raw: RawPage, number: int, headings: Headings) -> Runs:
    """The lines of a page whose text stands upright as they are read, tables in place of theirs."""
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
    return top_down(with_rows(in_columns(runs, raw.width), raw.drawn, number))


def _recognised(page: _Page, scan: RawPage) -> _Page:
    runs = [*page.runs, *scans.recognised(scan)]
    return _Page(_shape(scan, page.shape.page, runs), runs, page.turn)


def _shape(raw: RawPage, number: int, runs: Runs) -> PageShape:
    box = union(tuple(line.rectangle for lines in runs for line in lines))
    return PageShape(number, raw.width, raw.height, box)


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
    if scans.is_recognised(lines):
        yield scans.block(lines, page)
        return
    for run, level in headings.parted(lines, page):
        texts = [line.text for line in run]
        text, starts = listed(texts) if is_list(texts) else joined(texts)
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
    if before.kind != "heading" or block.kind != "heading" or before.level != block.level:
        return False
    above, below = before.rectangle, block.rectangle
    if not above or not below:
        return False
    height = before.lines[-1][1][3] - before.lines[-1][1][1]
    goes_on = below[1] >= above[1] and below[1] - above[3] < 0.4 * height
    return goes_on and len(before.text) + len(block.text) <= 200
