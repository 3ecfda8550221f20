"""A document that grows while it is read: piece by piece the same as all at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import BrokenDocumentError, DocumentError
from core.rag.chunking import Cutter, chunks_of
from core.rag.config import RAGConfig
from core.rag.document import About, Block, Chunk, PageShape, table
from core.rag.draft import Draft, Piece
from core.rag.parsers.base import Found, Scanned
from core.rag.parsers.process import cancelled

CONFIG = RAGConfig.of({"chunk_size": 32})
WORDS = st.lists(st.sampled_from(["lamp", "green.", "灯是绿色的。", "river", "Yes!"]), min_size=1, max_size=40).map(
    " ".join
)
BLOCKS = st.lists(
    st.one_of(
        st.builds(lambda text, level: Block("heading", text[:60], level=level), WORDS, st.integers(1, 3)),
        st.builds(lambda text: Block("paragraph", text), WORDS),
        st.builds(lambda text: table([("a", "b"), (text, "1")]), WORDS),
    ),
    max_size=12,
)


def draft(media_type: str = "application/pdf") -> Draft:
    return Draft("id", "a.pdf", media_type, 5, CONFIG)


def on_pages(blocks: list[list[Block]]) -> list[Found]:
    found: list[Found] = [About(pages=len(blocks))]
    for page, here in enumerate(blocks, 1):
        found.append(PageShape(page, 100.0, 100.0))
        found += [Block(one.kind, one.text, page, one.lines, one.level, one.cells) for one in here]
    return found


def pieces(found: list[Found], every: int) -> list[Piece]:
    """Handed out after every so many steps."""
    growing = draft()
    handed = [growing.piece() for number, _ in enumerate(growing.steps(found), 1) if number % every == 0]
    return [*handed, growing.last()]


@given(pages=st.lists(BLOCKS, max_size=5), every=st.integers(1, 9))
def test_what_is_handed_out_in_pieces_is_what_would_be_cut_at_once(pages: list[list[Block]], every: int) -> None:
    found = on_pages(pages)
    handed = pieces(found, every)
    whole = [one for one in chunks_of((one for one in found if isinstance(one, Block)), 32) if one.text.strip()]
    assert [chunk for piece in handed for chunk in piece.chunks] == whole
    assert [shape.page for piece in handed for shape in piece.shapes] == list(range(1, len(pages) + 1))
    assert handed[-1].document.chunks == len(whole)
    counted = 0
    for piece in handed:
        counted += len(piece.chunks)
        assert piece.document.chunks == counted


@given(pages=st.lists(BLOCKS, min_size=1, max_size=5))
def test_a_page_that_is_turned_is_cut_but_for_headings_without_text(pages: list[list[Block]]) -> None:
    cutter, chunks = Cutter(32), list[Chunk]()
    for number, blocks in enumerate(pages, 1):
        for one in blocks:
            chunks += cutter.take(Block(one.kind, one.text, number, one.lines, one.level, one.cells))
        chunks += cutter.turn(number + 1)
        last = next((one for one in reversed(blocks) if one.text.strip()), None)
        if last and last.kind != "heading":
            assert chunks[-1].page == number


def test_the_first_piece_is_due_after_the_first_pages_and_a_short_document_is_one_piece() -> None:
    text = [Block("paragraph", "The lamp is green.")]
    for count, due in ((8, False), (30, True)):
        growing = draft()
        asked = [growing.is_due() for _ in growing.steps(on_pages([text] * count))]
        assert any(asked) is due
    first = draft()
    for _ in first.steps(on_pages([text] * 30)):
        if first.is_due():
            break
    assert first.progress().pages == 8
    assert len(first.piece().chunks) == 8


def test_pages_without_words_do_not_hold_up_the_first_that_have_some() -> None:
    growing = draft()
    found = on_pages([[]] * 20 + [[Block("paragraph", "The lamp is green.")]] * 3)
    steps = growing.steps(found)
    for _ in range(12):
        next(steps)
    growing.piece()  # pages alone, for they took long
    assert not growing.is_searchable()
    assert [growing.is_due() for _ in steps].count(True) > 0
    growing.piece()
    assert growing.is_searchable()


def test_facts_are_counted() -> None:
    growing = draft()
    found = [About(pages=2, title="Lamps"), PageShape(1, 9, 9), Scanned(1), Block("paragraph", "Green.", 1)]
    for _ in growing.steps([*found, PageShape(2, 9, 9), table([("a",), ("b",)], 2), About(2, "Late", damaged=True)]):
        pass
    known = growing.last().document
    assert (known.pages, known.scanned, known.tables, known.chunks, known.size) == (2, 1, 1, 2, 5)
    assert (known.status, known.note) == ("ready", "document_damaged")
    said = growing.progress()
    assert (said.pages, said.total, said.scanned, said.tables, said.chunks) == (2, 2, 1, 1, 2)


def test_a_long_table_that_comes_in_parts_is_one() -> None:
    growing = draft("text/csv")
    parts = [table([("n", "square"), (str(n), str(n * n))]) for n in range(5)]
    for _ in growing.steps([About(), *parts, Block("paragraph", "Next."), parts[0], table([("other",), ("1",)])]):
        pass
    assert growing.last().document.tables == 3


def test_a_title_that_comes_late_is_not_taken_when_chunks_were_found_without_it() -> None:
    growing = draft()
    steps = growing.steps([Block("paragraph", "Green.", 1), About(1, "Late"), Block("paragraph", "Red.", 2)])
    next(steps)
    growing.piece()
    assert list(steps)
    assert growing.last().document.title == ""


def test_a_text_without_words_is_empty_and_a_page_without_words_is_not() -> None:
    with pytest.raises(BrokenDocumentError):
        draft("text/plain").last()
    assert draft().last().document.note == "document_scanned"


def test_a_scan_that_is_stopped_counts_the_pages_that_were_recognised_to_their_end() -> None:
    growing = draft()

    def found() -> Iterator[Found]:
        yield About(5, "")
        for page in (1, 2, 3):
            yield from (Scanned(page), PageShape(page, 400, 500), Block("paragraph", f"The lamp on page {page}.", page))
        yield Scanned(4)
        raise cancelled()

    with pytest.raises(DocumentError):
        list(growing.steps(found()))
    piece = growing.stopped()
    told = growing.progress()
    assert [chunk.page for chunk in piece.chunks] == [1, 2, 3]
    assert (told.pages, told.total, told.scanned, told.chunks) == (3, 5, 3, 3)
    assert (piece.document.status, piece.document.scanned) == ("stopped", 2)  # the last page is read once more


def test_figures_are_no_scanned_pages_and_a_page_counts_once() -> None:
    growing, blocks = draft(), [PageShape(1, 9, 9), Block("paragraph", "Green.", 1)]
    list(growing.steps([About(2), Scanned(1), Scanned(1), Scanned(1, figure=True), *blocks, Scanned(2, figure=True)]))
    assert growing.last().document.scanned == 1


def test_a_page_that_was_lost_before_reading_was_stopped_is_told_of_after_the_rest() -> None:
    growing, lost = draft(), [PageShape(1, 0.0, 0.0), PageShape(2, 400, 500), Block("paragraph", "The lamp.", 2)]
    list(growing.steps([About(3), *lost]))
    before = growing.stopped().document
    rest = Draft("id", "a.pdf", "application/pdf", 5, CONFIG, before=before)
    list(rest.steps([*lost, About(3), PageShape(3, 400, 500), Block("paragraph", "The oil.", 3)]))
    document = rest.last().document
    assert (document.status, document.note, document.chunks) == ("ready", "document_damaged", 2)
