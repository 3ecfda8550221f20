"""A mark is shown only where the letters of the page have what it quotes: else its line, its block, or nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pymupdf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.rag.document import Block, PageShape, Rectangle
from core.rag.library import Library
from core.rag.page_letters import Letters, packed, pieces_of
from core.rag.parsers.catalog import PDF_READERS
from core.rag.places import proof_on_page
from core.rag.prose import sentence_spans
from webui.handlers.evidence_drawn import Known, panel_of
from webui.views import Place, ShownReply
from webui.words import Words

NARROW, WIDE = "Till all is lit, it is still ill.", "WOMEN AND MEN WHO WORKED HERE WERE WARM."
LINE: Rectangle = (50.0, 100.0, 450.0, 114.0)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the marks that were dropped were of."""
    told: list[str] = []
    for module in ("core.rag.places", "webui.handlers.evidence_drawn"):
        monkeypatch.setattr(f"{module}.count", lambda name, attributes: told.append(f"{name} of {attributes['of']}"))
    return told


def typed(path: Path) -> Path:
    """Pages in letters that are all of the same width, as a typewriter has them."""
    document: Any = pymupdf.open()
    for at in range(3):
        page = document.new_page()
        page.insert_text((50, 100), f"{NARROW} {WIDE}", fontsize=11, fontname="cour")
        page.insert_text((50, 300), f"That is all that page {at + 1} of the report says.", fontsize=11, fontname="cour")
    document.save(path)
    return path


def words_under(path: Path, page: int, marks: tuple[Rectangle, ...]) -> str:
    """The words of a page that lie in marks with all of their width, as PyMuPDF alone has them."""
    opened: Any = pymupdf.open(path)
    with opened as document:
        return " ".join(
            word
            for x0, y0, x1, y1, word, *_ in document[page - 1].get_text("words")
            if any(a - 3 <= x0 and x1 <= c + 3 and b <= (y0 + y1) / 2 <= d for a, b, c, d in marks)
        )


@pytest.mark.parametrize("reader", PDF_READERS)
@pytest.mark.parametrize("said", [NARROW, WIDE])
def test_where_the_estimate_cuts_words_all_of_the_line_is_marked(said: str, reader: str, tmp_path: Path) -> None:
    path = typed(tmp_path / "a.pdf")
    with Library.open(tmp_path / "library", {"pdf_reader": reader}) as library:
        document = library.add(path)
        content = library.pages.content(document.id, 2)
        passage = next(one for one in library.pages.chunks(document.id) if one.page == 2)
        marks = proof_on_page([said], passage.text, content.blocks, content.letters)
    assert said in words_under(path, 2, marks)
    assert "all that page" not in words_under(path, 2, marks)


def line(text: str, place: Rectangle = LINE) -> Block:
    return Block("paragraph", text, 1, ((0, place),))


def letters(*words: tuple[float, float, float, float, str]) -> Letters:
    return Letters(packed(words) or ())


def test_a_part_of_a_line_that_holds_its_words_is_marked_as_it_is() -> None:
    block = line("The red door. The blue door is shut.")
    ((_, _, right, _),) = proof_on_page(["The red door."], block.text, [block], Letters(packed(pieces_of(block)) or ()))
    assert right < 230


def test_what_only_all_of_the_block_holds_is_marked_with_the_block() -> None:
    below: Rectangle = (50.0, 120.0, 450.0, 134.0)
    block = Block("paragraph", "The red door is shut. The blue one is open.", 1, ((0, LINE), (22, below)))
    swapped = letters((*below, "The red door is shut."), (*LINE, "The blue one is open."))
    assert proof_on_page(["The red door is shut."], block.text, [block], swapped) == ((50.0, 100.0, 450.0, 134.0),)


def test_a_mark_whose_words_are_nowhere_in_its_block_is_dropped_and_counted(counted: list[str]) -> None:
    block = line("The red door is shut.")
    elsewhere = letters((50.0, 400.0, 450.0, 414.0, "The red door is shut."))
    assert proof_on_page(["The red door is shut."], block.text, [block], elsewhere) == ()
    assert counted == ["parlour.marks.dropped of sentence"]


def test_a_mark_that_is_right_is_not_counted(counted: list[str]) -> None:
    block = line("The red door is shut.")
    there = Letters(packed(pieces_of(block)) or ())
    assert proof_on_page(["The red door is shut."], block.text, [block], there) == (LINE,)
    assert counted == []


def test_where_the_letters_of_a_page_were_not_kept_no_line_is_marked_in_part() -> None:
    block = line("The red door. The blue door is shut.")
    assert proof_on_page(["The red door."], block.text, [block]) == (LINE,)


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("a ﬁne oﬃce", "A fine office"),
        ("infor- mation for all", "information for all"),
        ("今夜偏知春气暖，虫声新透绿窗纱。", "虫声新透绿窗纱"),
        ("1,200.50 €", "1,200.50 €"),
        ("— * —", "— —"),
    ],
)
def test_words_are_compared_without_signs_and_ligatures(printed: str, said: str) -> None:
    assert letters((*LINE, printed)).hold(said, [LINE])


@pytest.mark.parametrize("edge", [-60.0, 60.0])
def test_a_word_that_the_edge_of_a_mark_cuts_is_not_in_it(edge: float) -> None:
    x0, y0, x1, y1 = LINE
    cut = (x0 + max(edge, 0), y0, x1 + min(edge, 0), y1)
    words = letters((x0, y0, 170.0, y1, "Securing"), (175.0, y0, 320.0, y1, "the"), (330.0, y0, x1, y1, "ledgers"))
    assert not words.hold("Securing the ledgers", [cut])
    assert words.hold("the", [cut])


@given(st.lists(st.tuples(st.text("abc1 é中", min_size=1), st.integers(0, 50)), max_size=12), st.data())
def test_packed_words_are_found_in_their_places_and_in_no_others(
    given_words: list[tuple[str, int]], data: st.DataObject
) -> None:
    words = [(float(x), 20.0 * at, float(x + 60), 20.0 * at + 12, text) for at, (text, x) in enumerate(given_words)]
    page = Letters(packed(words) or ())
    assert page.hold(" ".join(text for text, _ in given_words), [(0.0, 0.0, 200.0, 20.0 * len(words))])
    if words:
        x0, y0, x1, y1, text = data.draw(st.sampled_from(words))
        assert page.hold(text, [(x0, y0, x1, y1)])
        assert page.hold(text, [(x0 + 500, y0, x1 + 500, y1)]) == (not any(map(str.isalnum, text)))


def test_of_a_sentence_only_what_is_whole_is_held() -> None:
    page = letters((*LINE, "One sentence stands here. Another one goes on behind it."))
    text = "One sentence stands here. Another one goes on behind it."
    for start, end in sentence_spans(text):
        assert page.hold(text[start:end], [LINE])
    assert not page.hold("Another one goes on elsewhere.", [LINE])


# --------------------------------------------------------------------------------------------------- the panel


def panel(library: Library, passage: dict[str, Any]) -> str:
    text = f"{NARROW} [1]"
    place = Place("m", passage["document_id"], 1, number=1)
    return panel_of(library, ShownReply(text, [passage]), place, Words("en"), Known({}, None, True, {})).markup


def test_a_passage_whose_places_do_not_hold_its_words_is_not_marked_and_counted(
    tmp_path: Path, counted: list[str]
) -> None:
    with Library.open(tmp_path / "library") as library:
        document = library.add(typed(tmp_path / "a.pdf"))
        found = next(one for one in library.pages.chunks(document.id) if one.page == 1)
        right = {"number": 1, **found.as_dict()}
        assert panel(library, right).count('"p-hl p-on"') == len(found.rectangles)
        assert counted == []
        wrong = {**right, "rectangles": [[50.0, 700.0, 450.0, 714.0]]}
        assert '"p-hl p-on"' not in panel(library, wrong)
        assert counted == ["parlour.marks.dropped of passage"]
        assert "p-strong" in panel(library, wrong)  # where the sentence stands is known all the same


@pytest.mark.parametrize("reader", PDF_READERS)
def test_the_letters_of_each_page_are_kept_with_its_content(reader: str, tmp_path: Path) -> None:
    path = typed(tmp_path / "a.pdf")
    with Library.open(tmp_path / "library", {"pdf_reader": reader}) as library:
        document = library.add(path)
        for page in range(1, 4):
            content = library.pages.content(document.id, page)
            assert content.letters
            x0, y0, x1, y1 = content.shape.text_box if content.shape and content.shape.text_box else LINE
            assert content.letters.hold(f"{NARROW} {WIDE} page {page} of the report", [(x0, y0, x1, y1)])
            assert not content.letters.hold(f"page {page % 3 + 1} of the report says", [(x0, y0, x1, y1)])
        kept = library.pages.before(document.id, 3)
    assert [bool(one.letters) for one in kept if isinstance(one, PageShape)] == [True, True]


def test_of_a_page_of_more_words_than_are_kept_nothing_is_disproved() -> None:
    words = [(0.0, 0.0, 10.0, 10.0, "word")] * 20_001
    assert packed(words) is None
    assert packed(words[1:])
