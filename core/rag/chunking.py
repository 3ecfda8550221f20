"""Chunking: whole paragraphs where they fit, whole sentences where not.

A chunk never crosses a heading, a page or a table, so that it has one address. Nothing is lost: what a chunk holds
after its `overlap` follows what the chunk before it holds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from core.rag.document import Block, Chunk, Rectangle, row_text
from core.rag.prose import count_tokens, ideographs, sentence_spans

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_CHINESE_SHARE = 0.7  # a mostly Chinese chunk is this much smaller: 180 tokens for 256
_TABLE_SIZE = 2  # times a chunk's; a table is worth more whole
_MOST_TOKENS = count_tokens("中")  # of a letter
_LONGEST_OVERLAP = 0.25  # of a chunk; a longer sentence is not repeated


@dataclass(frozen=True, slots=True)
class _Piece:
    """A sentence, or a part of a long one, with the place that it came from."""

    block: Block
    start: int
    end: int
    size: float
    ends_paragraph: bool

    @property
    def text(self) -> str:
        return self.block.text[self.start : self.end]


def chunks_of(blocks: Iterable[Block], size: int = 256, overlap: int = 1) -> Iterator[Chunk]:
    """The chunks of a document.

    Args:
        size: Tokens in a chunk, by estimate; a table may have twice as many.
        overlap: How many sentences a chunk repeats from the one before it.
    """
    cutter = Cutter(size, overlap)
    for block in blocks:
        yield from cutter.take(block)
    yield from cutter.end()


class Cutter:
    """Cuts a document while it is read: each chunk comes as soon as nothing can be added to it.

    Args:
        size: As in `chunks_of`.
        overlap: As in `chunks_of`.
    """

    def __init__(self, size: int = 256, overlap: int = 1) -> None:
        self._size, self._overlap = size, overlap
        self._outline = _Outline()
        self._section: list[Block] = []

    def take(self, block: Block) -> Iterator[Chunk]:
        """The next block; the chunks that are whole by it."""
        if self._section and block.kind in {"heading", "table"}:
            yield from self._packed()
        yield from self.turn(block.page)
        if block.kind == "heading":
            yield from self._outline.enter(block)
        elif block.kind == "figure":  # the text around it goes on behind it
            self._outline.used()
            yield from _packed([block] if block.text else [], self._outline.path, self._size, 0)
        elif block.kind == "table" and block.cells:
            self._outline.used()
            yield from _table_chunks(block, self._outline.path, self._size * _TABLE_SIZE)
        else:
            self._outline.used()
            self._section.append(block)

    def turn(self, page: int | None) -> Iterator[Chunk]:
        """What follows stands on this page; the chunks of text of the page before."""
        if self._section and self._section[-1].page != page:
            yield from self._packed()

    def end(self) -> Iterator[Chunk]:
        """Nothing follows; the chunks that are left."""
        yield from self._packed()
        yield from self._outline.left_over()

    def _packed(self) -> Iterator[Chunk]:
        section, self._section = self._section, []
        yield from _packed(section, self._outline.path, self._size, self._overlap)


@dataclass(slots=True)
class _Outline:
    """The headings above the present place."""

    open: list[Block] = field(default_factory=list[Block])
    unused: list[Block] = field(default_factory=list[Block])

    @property
    def path(self) -> str:
        return " > ".join(heading.text for heading in self.open)

    def enter(self, heading: Block) -> Iterator[Chunk]:
        """A heading with nothing under it would be lost: it becomes a chunk."""
        deeper = self.unused and heading.level > self.unused[-1].level
        if not deeper:
            yield from self.left_over()
        while self.open and self.open[-1].level >= heading.level:
            self.open.pop()
        self.open.append(heading)
        self.unused.append(heading)

    def used(self) -> None:
        """Text stands under the open headings: their words go with it."""
        self.unused = []

    def left_over(self) -> Iterator[Chunk]:
        for heading in self.unused:
            above = [one.text for one in self.open[: self.open.index(heading)]] if heading in self.open else []
            places = heading.rectangles_of(0, len(heading.text))
            yield Chunk(heading.text, heading.page, " > ".join(above), places)
        self.unused = []


def _packed(section: list[Block], heading: str, size: int, overlap: int) -> Iterator[Chunk]:
    """The chunks of text under one heading on one page."""
    limit = size * _CHINESE_SHARE if _is_chinese(section) else float(size)
    pieces = [piece for block in section for piece in _pieces(block, limit)]
    held: list[_Piece] = []
    repeated, filled = 0, 0.0
    for at, piece in enumerate(pieces):
        if len(held) > repeated and filled + _wanted(pieces, at, limit, filled) > limit:
            yield _chunk(held, repeated, heading)
            tail = held[-overlap:] if overlap else []
            fits = sum(one.size for one in tail) <= limit * _LONGEST_OVERLAP
            held = list(tail) if fits and sum(one.size for one in tail) + piece.size <= limit else []
            repeated, filled = len(held), sum(one.size for one in held)
        held.append(piece)
        filled += piece.size
    if held:
        yield _chunk(held, repeated, heading)


def _wanted(pieces: list[_Piece], at: int, limit: float, filled: float) -> float:
    """The room that a piece asks for: a paragraph that begins wants to stay whole if the chunk is half full already."""
    if (at and not pieces[at - 1].ends_paragraph) or filled < limit / 2:
        return pieces[at].size
    total = 0.0
    for number in range(at, len(pieces)):  # no slice: there may be many pieces behind it
        total += pieces[number].size
        if pieces[number].ends_paragraph or total > limit:
            break
    return total if total <= limit else pieces[at].size


def _pieces(block: Block, limit: float) -> Iterator[_Piece]:
    """A block's sentences; one that is too long for a chunk is cut between words."""
    spans = [part for span in sentence_spans(block.text) for part in _short_spans(block.text, span, limit)]
    for number, (start, end) in enumerate(spans, 1):
        yield _Piece(block, start, end, count_tokens(block.text[start:end]), number == len(spans))


def _short_spans(text: str, span: tuple[int, int], limit: float) -> Iterator[tuple[int, int]]:
    """A sentence, or pieces of one that is longer than a chunk, cut at a space where there is one."""
    start, end = span
    if (end - start) * _MOST_TOKENS <= limit:  # as most are
        yield span
        return
    most = max(1, int(limit / count_tokens("a")))  # letters, if all of them were Latin
    while start < end:
        cut = min(end, start + most)
        while cut > start + 1 and (size := count_tokens(text[start:cut])) > limit:
            cut = start + max(1, min(cut - start - 1, int((cut - start) * limit / size)))
        if cut < end:
            space = text.rfind(" ", start + (cut - start) // 2, cut)
            cut = space + 1 if space > start else cut
        yield start, cut
        start = cut


def _chunk(pieces: list[_Piece], repeated: int, heading: str) -> Chunk:
    text = ""
    overlap = 0
    for number, piece in enumerate(pieces):
        text += piece.text
        if piece.ends_paragraph and number + 1 < len(pieces):
            text = text.rstrip() + "\n"
        if number + 1 == repeated:
            overlap = len(text)
    return Chunk(text.rstrip(), pieces[0].block.page, heading, _rectangles(pieces), overlap)


def _rectangles(pieces: list[_Piece]) -> tuple[Rectangle, ...]:
    """Around the printed lines that were taken from each block."""
    taken: dict[int, tuple[Block, int, int]] = {}
    for piece in pieces:
        block, start, end = taken.get(id(piece.block), (piece.block, piece.start, piece.end))
        taken[id(piece.block)] = (block, min(start, piece.start), max(end, piece.end))
    return tuple(place for block, start, end in taken.values() for place in block.rectangles_of(start, end))


def _is_chinese(section: list[Block]) -> bool:
    letters = sum(len(block.text) for block in section)
    return sum(ideographs(block.text) for block in section) * 2 > letters


def _table_chunks(block: Block, heading: str, limit: int) -> Iterator[Chunk]:
    """A table whole, or by rows with its header repeated."""
    place = (block.rectangle,) if block.rectangle else ()
    if count_tokens(block.text) <= limit:
        yield Chunk(block.text, block.page, heading, place)
        return
    header = row_text(block.cells[0])
    repeats_header = count_tokens(header) <= limit / 4
    rows = [row_text(row) for row in block.cells]
    held: list[str] = []
    repeated, filled = 0, 0.0
    for row in (part for one in rows for part in _row_parts(one, limit * 0.7)):
        size = count_tokens(f"{row}\n")
        if len(held) > repeated and filled + size > limit:
            yield Chunk("\n".join(held), block.page, heading, place, len(header) + 1 if repeated else 0)
            held = [header] if repeats_header else []
            repeated, filled = len(held), count_tokens(f"{header}\n") if repeats_header else 0.0
        held.append(row)
        filled += size
    if held:
        yield Chunk("\n".join(held), block.page, heading, place, len(header) + 1 if repeated else 0)


def _row_parts(row: str, limit: float) -> Iterator[str]:
    """A row, or pieces of one that is longer than a chunk."""
    for start, end in _short_spans(row, (0, len(row)), limit):
        yield row[start:end]
