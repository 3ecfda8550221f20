"""Quotations are found again where they stand, whatever spaces and line ends came between."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import pymupdf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.rag.document import Block, table
from core.rag.library import Library
from core.rag.places import Places, Span, Unit, letters_of, proof_on_page, rectangles, units_of

_LETTERS = "abc押金 。.|\n"


def paragraph(*lines: tuple[str, tuple[float, float, float, float]]) -> Block:
    text, places = "", []
    for words, rectangle in lines:
        text += " " if text else ""
        places.append((len(text), rectangle))
        text += words
    return Block("paragraph", text, 1, tuple(places))


def words_of(units: list[Unit], spans: list[Span]) -> list[str]:
    return [units[one.unit].text[one.start : one.end] for one in spans]


def test_a_quotation_is_found_across_paragraphs_and_other_spaces() -> None:
    units = units_of([Block("paragraph", "One  two"), Block("code", "three\n    four"), Block("paragraph", "five")])
    assert words_of(units, Places(units).find("two\nthree four fi")) == ["two", "three\n    four", "fi"]


def test_rows_are_found_by_their_cells() -> None:
    units = units_of([table([("Cause", "Deductible"), ("Fire", "300"), ("Water", "420")])])
    spans = Places(units).find("Cause | Deductible\nWater | 420")
    assert [one.unit for one in spans] == [0, 2]


def test_the_number_of_a_row_is_no_part_of_its_words() -> None:
    units = units_of([Block("table", "", cells=(("", "A", "B"), ("7", "Fire", "300")))], numbered=True)
    assert [unit.text for unit in units] == ["A | B", "Fire | 300"]
    assert words_of(units, Places(units).find("Fire|300")) == ["Fire | 300"]


def test_of_equal_sentences_the_one_in_the_passage_is_meant() -> None:
    units = units_of([Block("paragraph", "It is red."), Block("paragraph", "A door. It is red.")])
    places = Places(units)
    assert places.find("It is red.", places.find("A door. It is red.")) == [Span(1, 8, 18)]


def test_what_is_not_there_is_not_found() -> None:
    places = Places(units_of([Block("paragraph", "One two three")]))
    assert places.find("four five") == places.find("") == places.find(" | ") == []
    assert places.share("One four", places.find("One\nfour")) < 0.5


@given(st.lists(st.text(_LETTERS, min_size=1, max_size=12), min_size=1, max_size=5), st.data())
def test_whatever_is_cut_out_is_found_again(texts: list[str], data: st.DataObject) -> None:
    units = units_of([Block("paragraph", text) for text in texts])
    whole = "\n".join(texts)
    start = data.draw(st.integers(0, len(whole)))
    quote = whole[start : data.draw(st.integers(start, len(whole)))]
    places = Places(units)
    spans = places.find(quote)
    bare = re.sub(r"[\s|]", "", quote)
    if len(bare) >= 2:
        assert re.sub(r"[\s|]", "", "".join(words_of(units, spans))) == bare
        assert places.share(quote, spans) == 1.0


def test_a_part_of_a_line_is_marked_where_it_stands() -> None:
    block = paragraph(("aaaa bbbb", (0, 0, 90, 10)), ("cccc dddd", (0, 12, 90, 22)))
    units = units_of([block])
    marked = rectangles([block], units, Places(units).find("bbbb cccc"))
    (x0, _, x1, _), (left, top, right, _) = marked
    assert (x1, left, top) == (90, 0, 12)
    assert 45 < x0 < 55
    assert 35 < right < 45


def test_on_a_page_that_stands_on_its_head_lines_begin_at_the_right() -> None:
    block = paragraph(("aaaa bbbb", (10, 30, 100, 40)), ("cccc dddd", (10, 18, 100, 28)))
    units = units_of([block])
    ((x0, _, x1, _),) = rectangles([block], units, Places(units).find("aaaa"))
    assert x1 == 100
    assert 55 < x0 < 65


def test_where_a_row_stands_in_a_table_is_not_guessed() -> None:
    rows = table([("Fire", "300"), ("Water", "420")], 1)
    block = Block("table", rows.text, 1, ((0, (10, 10, 200, 60)),), cells=rows.cells)
    units = units_of([block])
    assert rectangles([block], units, Places(units).find("Water | 420")) == [(10, 10, 200, 60)]


def test_a_line_on_its_side_is_marked_whole_where_nothing_tells_which_way_it_runs() -> None:
    block = paragraph(("aaaa bbbb", (10, 10, 20, 100)))
    units = units_of([block])
    assert rectangles([block], units, Places(units).find("aaaa")) == [(10, 10, 20, 100)]


@pytest.mark.parametrize(("second", "is_above"), [((30.0, 10.0, 40.0, 100.0), False), ((0.0, 10.0, 8.0, 100.0), True)])
def test_of_lines_on_their_side_a_part_is_marked_at_the_end_where_it_stands(
    second: tuple[float, float, float, float], is_above: bool
) -> None:
    block = paragraph(("aaaa bbbb", (10, 10, 20, 100)), ("cccc dddd", second))
    units = units_of([block])
    ((left, top, right, bottom),) = rectangles([block], units, Places(units).find("aaaa"))
    assert (left, right) == (10, 20)
    assert (top == 10) == is_above
    assert (bottom == 100) != is_above
    assert 35 < bottom - top < 45


def in_cells(*rows: tuple[str, ...]) -> Block:
    """A table whose columns are 100 points wide and whose rows are 20 high."""
    made = table(list(rows), 1)
    lines: list[tuple[int, tuple[float, float, float, float]]] = []
    start = 0
    for at, cells in enumerate(rows):
        lines.append((start, (0.0, 20.0 * at, 100.0 * len(cells), 20.0 * at + 20.0)))
        start += len(" | ".join(cells)) + 1
    columns = tuple((100.0 * at, 100.0 * at + 100.0) for at in range(len(rows[0])))
    return Block("table", made.text, 1, tuple(lines), cells=made.cells, columns=columns)


def test_of_a_row_the_cells_are_marked_that_a_sentence_speaks_of_after_the_first_one() -> None:
    block = in_cells(("Damage", "Deductible", "Limit"), ("Water", "420", "9,000"), ("Fire", "300", "5,000"))
    proof = proof_on_page(["The deductible for water damage is 420."], block.text, [block])
    assert set(proof) == {(0, 20, 100, 40), (100, 20, 200, 40), (0, 0, 100, 20), (100, 0, 200, 20)}
    units = units_of([block])
    assert rectangles([block], units, Places(units).find("Water | 420 | 9,000")) == [(0, 20, 300, 40)]


def test_figures_that_share_their_first_digits_are_not_the_same_cell() -> None:
    block = in_cells(("Layers", "Simple", "Complex", "All"), ("4", "0.938", "0.904", "0.927"), ("6", "1", "2", "3"))
    proof = proof_on_page(["With 4 layers it is 0.927 for all."], block.text, [block])
    assert [one for one in proof if one[1] == 20] == [(0, 20, 100, 40), (300, 20, 400, 40)]


def test_a_cell_is_not_marked_for_digits_inside_of_other_figures() -> None:
    block = in_cells(("Name", "Score", "Rank", "Age"), ("Alpha", "0.959", "5", "9"))
    proof = proof_on_page(["Alpha reached a score of 0.959 in 2015."], block.text, [block])
    assert [one for one in proof if one[1] == 20] == [(0, 20, 100, 40), (100, 20, 200, 40)]


def test_words_that_reach_over_the_empty_cells_beside_them_are_marked_as_far() -> None:
    block = in_cells(("Both kinds of damage together", "", "Limit"), ("Water", "420", "9,000"))
    units = units_of([block])
    assert rectangles([block], units, Places(units).find("kinds of damage")) == [(0, 0, 200, 20)]


def test_what_is_no_longer_on_the_page_is_marked_nowhere() -> None:
    block = paragraph(("The fee was raised to 12 euros in May.", (0, 0, 90, 10)))
    passage = "The deductible is 300 dollars for each claim."
    assert proof_on_page(["The deductible is 300 dollars."], passage, [block]) == ()


ENGLISH = "The deductible is 300 dollars for each claim, and no more than that is ever asked of anybody."
CHINESE = "虫声新透绿窗纱，今夜偏知春气暖，更深月色半人家，北斗阑干南斗斜。"


@pytest.mark.parametrize("size", [6.0, 10.0, 14.0])
@pytest.mark.parametrize(("text", "font"), [(ENGLISH, "helv"), (ENGLISH, "tiro"), (CHINESE, "china-s")])
def test_the_size_of_printed_letters_is_told_from_their_places(
    tmp_path: Path, text: str, font: str, size: float
) -> None:
    document = cast("Any", pymupdf.open())
    page = document.new_page(width=700, height=842)
    page.insert_text((20, 60), "Title", fontsize=30, fontname=font)
    for line in range(4):
        page.insert_text((20, 120 + 2 * size * line), text, fontsize=size, fontname=font)
    document.save(tmp_path / "a.pdf")
    with Library.open(tmp_path / "library") as library:
        known = library.add(tmp_path / "a.pdf")
        letters = letters_of(library.pages.content(known.id, 1).blocks)
    assert 0.8 * size < letters < 1.1 * size


def test_where_no_line_has_a_place_nothing_is_known() -> None:
    assert letters_of([Block("paragraph", "Words"), Block("paragraph", "", 1, ((0, (1.0, 1.0, 1.0, 1.0)),))]) == 0
