"""PDF, through PyMuPDF: text blocks in the order in which the file draws them, never sorted (that breaks columns)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from core.errors import BrokenDocumentError
from core.rag.document import About, Block, PageShape, union
from core.rag.parsers.base import PLAIN, Found, Wishes, clean, is_ideograph
from core.rag.parsers.pdf_blocks import Blocks
from core.rag.parsers.pdf_columns import in_columns
from core.rag.parsers.pdf_file import View, damage_told, opened, page_of
from core.rag.parsers.pdf_headings import Headings, Line
from core.rag.parsers.pdf_margins import Margins
from core.rag.parsers.pdf_tables import outside, tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from core.rag.document import Rectangle

_PAGES = 5_000
_FEWEST_DRAWN = 4  # lines or rectangles: fewer make no table
_LEARNT_FROM, _FIRST = 40, 8  # pages
_BOLD = 1 << 4
_NO_TITLES = frozenset({"anonymous", "untitled", "unknown", "title"})
_LEADER = re.compile(r"\s*(?:[.·…]\s?){4,}\s*(\w{0,6})\s*$")
_GARBLED = "\ufffd"


class PdfParser:
    """Reads text with the place of every line."""

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
        with opened(path, wishes.password) as document:
            count = len(document)
            if count > _PAGES:
                raise BrokenDocumentError(
                    f"The document has {count} pages.",
                    key="document_too_large",
                    hint="Split it into smaller ones.",
                    pages=count,
                )
            about = About(pages=count, title=_title(document))
            yield about
            headings = Headings(_outline(document))
            known = {number: self._page(document, number, headings) for number in _sample(count)}
            margins = Margins(list(known.values()))
            any_page, any_text, whole = False, False, True
            for number in range(1, count + 1):
                shape, runs = known.pop(number, None) or self._page(document, number, headings)
                any_page, any_text, whole = (
                    any_page or shape.width > 0,
                    any_text or bool(runs),
                    whole and shape.width > 0,
                )
                yield shape
                kept = margins.without(shape, runs)
                yield from _whole_headings(block for lines in kept for block in _block(lines, headings, number))
            if not any_page or (document.is_repaired and not any_text and not _has_pictures(document)):
                raise BrokenDocumentError("The PDF is damaged: no page of it can be read.")
            # Only now is it known: pages are mended as they are opened.
            if document.is_repaired or not whole:
                yield replace(about, damaged=True)

    def _page(self, document: Any, number: int, headings: Headings) -> tuple[PageShape, list[list[Line]]]:
        page = page_of(document, number)
        if page is None:
            return PageShape(number, 0.0, 0.0), []
        view = View(page)
        blocks = Blocks(page, view)
        here = tables(blocks.drawn, blocks.words, number) if len(blocks.drawn) >= _FEWEST_DRAWN else []
        places = [place for place, _ in here]
        runs: list[list[Line]] = []
        for raw in blocks.texts:
            lines = [line for line in (_line(one, view) for one in raw["lines"]) if line]
            if places and lines:
                inside = [line for line in lines if not outside(places, line.rectangle)]
                runs.extend(_taken(here, inside))
                lines = [line for line in lines if line not in inside]
            if lines and not _is_garbled(lines):
                headings.learn(lines)
                runs.append(lines)
        runs = in_columns(runs, view.width)
        box = union(tuple(line.rectangle for lines in runs for line in lines))
        return PageShape(number, round(view.width, 2), round(view.height, 2), box), runs


def _sample(count: int) -> list[int]:
    """The pages from which letters and margins are learnt; few of many, so that reading can begin at once.

    The first ones, then left and right pages in turn.
    """
    if count <= 2 * _LEARNT_FROM:
        return list(range(1, count + 1))
    step = (count - _FIRST) / (_LEARNT_FROM - _FIRST)
    spread = (_FIRST + 1 + round(step * at) for at in range(_LEARNT_FROM - _FIRST))
    return [*range(1, _FIRST + 1), *(min(count, number + (number + at) % 2) for at, number in enumerate(spread))]


def _title(document: Any) -> str:
    """The title in the file's properties, unless a program put a placeholder there."""
    properties: dict[str, Any] = document.metadata or {}
    title = " ".join(clean(str(properties.get("title") or "")).split())
    return "" if title.casefold().strip("()") in _NO_TITLES else title


def _has_pictures(document: Any) -> bool:
    """Whether any of the first pages shows a picture, as a scan does."""
    try:
        with damage_told("The list of pictures is damaged."):
            return any(document.get_page_images(index) for index in range(min(20, len(document))))
    except BrokenDocumentError:
        return False


def _outline(document: Any) -> list[tuple[int, str, int]]:
    """The bookmarks: level, title, page. A broken tree of them is no reason to refuse the document."""
    try:
        with damage_told("The bookmarks are damaged."):
            return [(int(level), clean(title), int(page)) for level, title, page in document.get_toc(simple=True)]
    except (BrokenDocumentError, TypeError, KeyError):
        return []


def _taken(here: list[tuple[Rectangle, Block]], lines: list[Line]) -> Iterator[list[Line]]:
    """The tables to which lines belong, each where its first line stands; they are taken out of the list."""
    for line in lines:
        for one in [one for one in here if not outside([one[0]], line.rectangle)]:
            here.remove(one)
            yield [Line("", one[0], 0.0, bold=False, table=one[1])]


def _line(raw: dict[str, Any], view: View) -> Line | None:
    """A printed line with its place on the page as displayed; what lies outside the page is invisible, so left out."""
    spans: list[dict[str, Any]] = raw["spans"]
    text = clean("".join([span["text"] for span in spans])).replace("\t", " ")
    if not text or text.isspace():
        return None
    rectangle = view.shown(raw["bbox"])
    if rectangle is None:
        return None
    size, longest, bold = 0.0, -1, True
    for span in spans:
        letters = len(span["text"].strip())
        if letters > longest:
            size, longest = span["size"], letters
        bold = bold and (not letters or bool(span["flags"] & _BOLD) or "bold" in span["font"].lower())
    return Line(text, rectangle, round(size * 2) / 2, bold)


def _is_garbled(lines: list[Line]) -> bool:
    """Fonts without a table of letters give replacement characters only: as good as a picture."""
    text = "".join(line.text for line in lines)
    return text.count(_GARBLED) * 2 > len(text)


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
