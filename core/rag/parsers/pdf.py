"""PDF: headings, paragraphs and tables in reading order, with the place of every line.

Blocks stay in the order in which the file draws them wherever that can be; sorting them would break columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from core.errors import BrokenDocumentError
from core.rag.document import About, Block, PageShape, union
from core.rag.page_letters import packed, pieces_of
from core.rag.parsers import ocr, pdf_figures, pdf_mupdf, pdf_xfa
from core.rag.parsers.base import PLAIN, Found, ParseOptions, Scanned, clean, is_pdf
from core.rag.parsers.figure_pictures import MOST_READ
from core.rag.parsers.pdf_forms import with_fields
from core.rag.parsers.pdf_layout import in_columns, top_down
from core.rag.parsers.pdf_page import Line, Rotation, is_contents_list, joined, joined_as_list
from core.rag.parsers.pdf_structure import Headings, Margins
from core.rag.parsers.pdf_tables import is_outside, ruled_tables, with_unruled_tables
from core.rag.parsers.scans_ahead import scans_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping
    from pathlib import Path

    from core.rag.document import Rectangle
    from core.rag.parsers.pdf_page import RawPage, Runs, Source, Word

_PAGES = 5_000
_FEWEST_DRAWN = 4  # lines or rectangles: fewer make no table
_MOST_NOTICES = 2  # pages of a PDF that only says to wait for another program
_LEARNT_FROM, _FIRST = 40, 8  # pages
_FEWEST_ORNAMENTS = 3  # pages with the same picture at the same place
_NO_ROTATION = Rotation(0, 0.0, 0.0)
_NO_TITLES = frozenset({"anonymous", "untitled", "unknown", "title"})


class PdfParser:
    """Reads text with the place of every line."""

    _source = staticmethod(pdf_mupdf.source)

    def accepts(self, name: str, head: bytes) -> str:  # noqa: ARG002 - the bytes say it all
        """The signature `%PDF-` is in the first kilobyte; mail programs put things before it."""
        return "application/pdf" if is_pdf(head) else ""

    def parse(self, path: Path, name: str, options: ParseOptions = PLAIN) -> Iterator[Found]:  # noqa: ARG002 - all are asked alike
        """Every page's shape, then its blocks. A page that cannot be read counts, but has no text.

        Page numbers, and running heads after their first, are no text. A file of which something was lost is `damaged`.

        Raises:
            LockedDocumentError: It asks for a password, or for another one (key `document_password_wrong`).
            BrokenDocumentError: Nothing in it can be read, or it has more than 5,000 pages.
        """
        with self._source(path, options.password) as source, scans_of(source) as scans:
            about = _about(source)
            yield about
            headings = Headings(source.outline())
            scans_left = ocr.MOST_PAGES if options.pictures and ocr.is_here() else 0
            figures_left = MOST_READ if scans_left else 0
            known = {number: _page(source.page(number), number, headings) for number in _sample(source.count)}
            is_ornament = pdf_figures.ornaments((page.runs for page in known.values()), _FEWEST_ORNAMENTS)
            margins = Margins([(page.shape, page.runs) for page in known.values()])
            for number in range(1, options.first_page):  # the first of each running head may have stood there
                if page := known.pop(number, None):
                    margins.without(page.shape, page.runs)
            # Pages that were read before prove that the file can be read.
            has_page = has_text = options.first_page > 1
            is_whole = is_scan = True
            if options.first_page == 1 and (form := _xml_form(source, known)):
                yield from form
                return
            for number in range(options.first_page, source.count + 1):
                page = known.pop(number, None) or _page(scans.page(number), number, headings)
                if scan := page.scan if scans_left else None:
                    yield Scanned(number)
                    page = _with_ocr(page, scan, scans.runs(number, scan, scans_left, lambda at: _raw(known, at)))
                    scans_left -= 1
                page = replace(page, runs=[run for run in page.runs if not is_ornament(run[0])])
                # The words of figures on a scan are among those of the page.
                seen: list[Word] = []  # what was recognised in them
                figures_left -= yield from _figures_read(page, 0 if scan else figures_left, seen)
                is_whole, has_page = is_whole and not page.is_lost, has_page or not page.is_lost
                has_text = has_text or bool(page.runs)
                is_scan = is_scan and (page.is_lost or page.is_scanned)
                yield replace(page.shape, letters=packed([*_words(page), *seen]))
                if page.is_picture and page.raw:
                    yield pdf_figures.page_as_figure(page.raw, number)
                body = page.rotation.upright(margins.without(page.shape, page.runs))
                blocks = _joined_headings(block for lines in body for block in _block(lines, headings, number))
                yield from map(page.rotation.displayed_block, blocks)
            if _has_lost_content(source, has_page=has_page, has_text=has_text or is_scan) or not is_whole:
                yield replace(about, damaged=True)


def _has_lost_content(source: Source, *, has_page: bool, has_text: bool) -> bool:
    """Whether some of the file is lost: known when all pages were read, since they are repaired as they are opened.

    Args:
        has_text: Or every page is one picture, whose words may not be recognised here: such a file had no text to lose.

    Raises:
        BrokenDocumentError: Nothing of it can be read, and that is because it is damaged.
    """
    has_lost = source.has_lost_content()
    is_bare = source.was_repaired() and not has_text and (has_lost or not source.has_images())
    if not has_page or is_bare:
        raise BrokenDocumentError("The PDF is damaged: no page of it can be read.")
    return has_lost


def _raw(pages: Mapping[int, _Page], number: int) -> RawPage | None:
    return pages[number].raw if number in pages else None


@dataclass(frozen=True, slots=True)
class _Page:
    shape: PageShape
    runs: Runs
    rotation: Rotation = _NO_ROTATION
    is_lost: bool = False
    scan: RawPage | None = None
    raw: RawPage | None = None
    is_picture: bool = False

    @property
    def is_scanned(self) -> bool:
        """Whether one picture covers the page, and its words can only be recognised."""
        return self.scan is not None and pdf_figures.is_covered(self.scan, self.scan.pictures())


def _about(source: Source) -> About:
    """What is known before any page is read.

    Raises:
        BrokenDocumentError: It has too many pages.
    """
    if source.count > _PAGES:
        raise BrokenDocumentError(
            f"The document has {source.count} pages.",
            key="document_too_large",
            hint="Split it into smaller ones.",
            pages=source.count,
        )
    return About(pages=source.count, title=_title(source.title))


def _xml_form(source: Source, pages: Mapping[int, _Page]) -> list[Found]:
    """The pages and fields of a form that is kept as XML, whose pages only say to wait; none of any other document.

    Raises:
        BrokenDocumentError: There is such a form, and it cannot be read (key `document_form_hidden`).
    """
    if source.count > _MOST_NOTICES or not (packets := source.form_packets()):
        return []
    told = "\n".join(line.text for page in pages.values() for run in page.runs for line in run)
    if any(page.raw is not None and page.raw.fields() for page in pages.values()) or not pdf_xfa.is_notice(told):
        return []
    if found := pdf_xfa.blocks(packets, 1):
        return [pages[1].shape, *found, *(pages[number].shape for number in range(2, source.count + 1))]
    raise BrokenDocumentError(
        "The form in this PDF is drawn by Adobe's programs alone (XFA), and nothing of it can be read.",
        key="document_form_hidden",
        hint="Open it in Adobe Acrobat, print it as a PDF, and use that.",
    )


def _page(raw: RawPage | None, number: int, headings: Headings) -> _Page:
    if raw is None:
        return _Page(PageShape(number, 0.0, 0.0), [], is_lost=True)
    rotation = Rotation(raw.rotation, raw.width, raw.height)
    runs = rotation.displayed(_in_order(rotation.upright_page(raw), number, headings))
    scan = raw if ocr.is_scan(raw) else None
    is_picture = scan is not None or pdf_figures.is_covered(raw, raw.pictures())
    return _Page(_shape(raw, number, runs), runs, rotation, scan=scan, raw=raw, is_picture=is_picture)


def _in_order(raw: RawPage, number: int, headings: Headings) -> Runs:
    """The lines of an upright page in reading order, with tables in place of the lines inside them."""
    here = ruled_tables(raw.drawn, raw.words, number) if len(raw.drawn) >= _FEWEST_DRAWN else []
    places = [place for place, _ in here]
    runs: Runs = []
    for run in pdf_figures.with_figures(raw.runs, raw, places, number):
        if run[0].table:
            runs.append(run)
            continue
        lines = run
        if places:
            inside = [line for line in lines if not is_outside(places, line.rectangle)]
            runs.extend(_taken(here, inside))
            lines = [line for line in lines if line not in inside]
        if lines:
            headings.learn(lines)
            runs.append(lines)
    ordered = top_down(with_unruled_tables(in_columns(runs, raw.width), raw.drawn, number))
    fields = raw.fields()
    return with_fields(ordered, fields, raw.words(), number) if fields else ordered


def _with_ocr(page: _Page, scan: RawPage, recognised: Runs) -> _Page:
    runs = [*page.runs, *recognised]
    return replace(page, shape=_shape(scan, page.shape.page, runs), runs=runs)


def _figures_read(page: _Page, most: int, seen: list[Word]) -> Generator[Found, None, int]:
    """Recognise the words in figures that have none yet, in `most` of them at most; gives in how many it did.

    Args:
        seen: Takes the lines that were recognised; each stands somewhere in its figure.
    """
    done = 0
    for at, run in enumerate(page.runs):
        if page.raw and done < most and (place := pdf_figures.wordless(run[0])):
            done += 1
            yield Scanned(page.shape.page, figure=True)
            words = ocr.words_in(page.raw, place)
            seen += [(*place, text) for text in words]
            page.runs[at] = [pdf_figures.with_words(run[0], words)]
    return done


def _words(page: _Page) -> Iterator[Word]:
    """What proves marks on a page: its words, the lines that were recognised on it, and the fields of a form."""
    yield from (page.raw.letters or page.raw.words)() if page.raw else ()
    for run in page.runs:
        block = run[0].table
        if block is None and ocr.is_recognised(run):
            yield from ((*line.rectangle, line.text) for line in run)
        elif block and (page.scan or block.kind == "paragraph"):
            yield from pieces_of(block)


def _shape(raw: RawPage, number: int, runs: Runs) -> PageShape:
    box = union(tuple(line.rectangle for lines in runs for line in lines))
    return PageShape(number, raw.width, raw.height, box)


def _sample(count: int) -> list[int]:
    """The pages from which font sizes and margins are learnt; few of many, so that reading can begin at once.

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
    """The tables that these lines belong to, each at the place of its first line; they are removed from `here`."""
    for line in lines:
        for one in [one for one in here if not is_outside([one[0]], line.rectangle)]:
            here.remove(one)
            yield [Line("", one[0], 0.0, bold=False, table=one[1])]


def _block(lines: list[Line], headings: Headings, page: int) -> Iterator[Block]:
    """One or more blocks: a heading may be drawn in one run with its paragraph."""
    if lines[0].table:
        yield lines[0].table
        return
    if ocr.is_recognised(lines):
        yield ocr.block(lines, page)
        return
    for run, level in headings.parted(lines, page):
        texts = [line.text for line in run]
        text, starts = joined_as_list(texts) if is_contents_list(texts) else joined(texts)
        places = tuple(zip(starts, (line.rectangle for line in run), strict=True))
        if text.strip():
            yield Block("heading" if level else "paragraph", text, page, places, level)


def _joined_headings(blocks: Iterable[Block]) -> Iterator[Block]:
    """Joins headings that continue each other: the lines of a long title are often drawn one by one."""
    before: Block | None = None
    for block in blocks:
        if before and _is_continued(before, block):
            text, (_, start) = joined([before.text, block.text])
            lines = (*before.lines, *((start + at, place) for at, place in block.lines))
            before = replace(before, text=text, lines=lines)
            continue
        if before:
            yield before
        before = block
    if before:
        yield before


def _is_continued(before: Block, block: Block) -> bool:
    """Whether the next block continues a heading: the same level, close below."""
    if before.kind != "heading" or block.kind != "heading" or before.level != block.level:
        return False
    above, below = before.rectangle, block.rectangle
    if not above or not below:
        return False
    height = before.lines[-1][1][3] - before.lines[-1][1][1]
    goes_on = below[1] >= above[1] and below[1] - above[3] < 0.4 * height
    return goes_on and len(before.text) + len(block.text) <= 200
