"""The values of documents."""

from __future__ import annotations

from core.rag.document import Block, Passage, strokes, table


def test_a_passage_survives_its_way_through_a_message() -> None:
    passage = Passage("Text", 1.5, "a.pdf", "abc", 3, ((1.0, 2.0, 3.0, 4.0),), "Chapter > Part", 7)
    assert Passage.from_dict(passage.as_dict()) == passage


def test_a_passage_reads_what_an_older_version_wrote() -> None:
    assert Passage.from_dict({"text": "T", "score": 1, "document": "a", "document_id": "b"}).rectangles == ()


def test_only_the_printed_lines_that_hold_the_words_are_marked() -> None:
    block = Block("paragraph", "first second third", 1, ((0, (0, 0, 9, 9)), (6, (0, 10, 9, 19)), (13, (0, 20, 9, 29))))
    assert block.rectangle == (0, 0, 9, 29)
    assert block.rectangles_of(6, 12) == ((0, 10, 9, 19),)
    assert block.rectangles_of(4, 7) == ((0, 0, 9, 19),)
    assert Block("paragraph", "no place").rectangles_of(0, 2) == ()


def test_a_mark_follows_the_lines_and_paints_nothing_between_or_twice() -> None:
    axes = [(50.0, 300.0, 60.0, 310.0), (200.0, 300.0, 210.0, 310.0), (50.0, 100.0, 60.0, 110.0)]
    assert strokes(axes) == tuple(axes)
    paragraph = [(60.0, 10.0, 200.0, 22.0), (50.0, 20.0, 200.0, 32.0), (50.0, 30.0, 201.0, 42.0), (50, 40, 90, 52)]
    assert strokes(paragraph) == ((60, 10, 200, 21), (50, 21, 201, 41), (50, 41, 90, 52))


def test_a_row_of_a_table_stays_a_line() -> None:
    assert table([("a", "b\nc"), ("1", "2")]).text == "a | b c\n1 | 2"
