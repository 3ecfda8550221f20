"""Text that a program draws too late is read where it stands."""

from __future__ import annotations

from core.rag.parsers.pdf_headings import Line
from core.rag.parsers.pdf_margins import Runs
from core.rag.parsers.pdf_order import top_down


def run(text: str, x0: float, y0: float, x1: float, y1: float) -> list[Line]:
    return [Line(text, (x0, y0, x1, y1), 10.0, bold=False)]


def order(runs: Runs) -> str:
    return " ".join(one[0].text for one in top_down(runs))


LEFT, RIGHT, BOTH = (50.0, 290.0), (310.0, 550.0), (50.0, 550.0)


def block(text: str, column: tuple[float, float], top: float, high: float = 100.0) -> list[Line]:
    return run(text, column[0], top, column[1], top + high)


def test_a_head_that_is_drawn_last_comes_first() -> None:
    assert order([block("text", BOTH, 200), block("head", BOTH, 50)]) == "head text"


def test_a_table_that_is_drawn_after_the_text_below_it_goes_before_it() -> None:
    runs = [block("above", BOTH, 50), block("below", BOTH, 400), block("table", LEFT, 200), block("last", BOTH, 600)]
    assert order(runs) == "above table below last"


def test_a_foot_that_is_drawn_first_comes_last_and_columns_stay() -> None:
    columns = [
        block(f"{side}{at}", place, 50 + 110 * at) for side, place in (("l", LEFT), ("r", RIGHT)) for at in (0, 1)
    ]
    assert order([block("foot", BOTH, 780, 20), *columns]) == "l0 l1 r0 r1 foot"


def test_columns_that_are_drawn_one_after_the_other_stay_so() -> None:
    columns = [
        block(f"{side}{at}", place, 50 + 110 * at) for side, place in (("l", LEFT), ("r", RIGHT)) for at in (0, 1)
    ]
    assert order(columns) == "l0 l1 r0 r1"


def test_a_head_over_both_columns_goes_before_both() -> None:
    runs = [block("l", LEFT, 200), block("r", RIGHT, 200), block("head", BOTH, 50)]
    assert order(runs) == "head l r"


def test_text_that_lies_on_its_side_stays_as_it_is_drawn() -> None:
    runs = [run(f"{at} lies", 100 + 20 * at, 700 - 300 * at, 112 + 20 * at, 900 - 300 * at) for at in range(3)]
    assert top_down(runs) == runs


def test_text_that_stands_on_its_head_stays_as_it_is_drawn() -> None:
    paragraphs = [
        [*block(f"{at} first", BOTH, 700 - 100 * at, 12), *block(f"{at} second", BOTH, 680 - 100 * at, 12)]
        for at in range(3)
    ]
    assert top_down(paragraphs) == paragraphs


def test_nothing_is_lost_on_a_page_of_thousands_of_pieces() -> None:
    runs = [run(str(at), 10, 800 - at / 10, 30, 801 - at / 10) for at in range(5_000)]
    assert top_down(runs) == runs
