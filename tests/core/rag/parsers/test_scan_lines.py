"""Lines in a scan: looked for in a small copy of what is printed, and placed and read in the picture itself."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from core.rag.parsers.scan_lines import LOOKED_AT, ink_in, lines_in, near, scale_of

WIDE, HIGH = 1240, 1754  # pixels: a sheet of A4 at 150 pixels an inch
BARS = [(200, 150, 900, 172), (700, 1500, 1000, 1522)]  # left, top, right, bottom


def sheet(bars: list[tuple[int, int, int, int]], paper: tuple[int, int, int] = (255, 255, 255)) -> Any:
    """A page with bars where lines stand."""
    image = numpy.full((HIGH, WIDE, 3), paper, numpy.uint8)
    for left, top, right, bottom in bars:
        image[top:bottom, left:right] = 0
    return image


class Finder:
    """Finds the dark bars of a picture as the package finds lines, and tells how high what it reads is.

    Args:
        least: How high a bar has to be.
    """

    def __init__(self, sure: float = 0.9, least: int = 0) -> None:
        self.sure, self.least = sure, least
        self.looked_at: list[tuple[int, int]] = []

    def __call__(self, image: Any, **_: bool) -> Any:
        import cv2

        self.looked_at.append(image.shape[:2])
        dark = (image.max(axis=2) < 128).astype(numpy.uint8)
        _, _, stats, _ = cv2.connectedComponentsWithStats(dark)
        bars = [(x, y, w, h) for x, y, w, h, _ in stats[1:].tolist() if h >= self.least]
        boxes = [[(x, y), (x + w, y), (x + w, y + h), (x, y + h)] for x, y, w, h in bars]
        return type("Found", (), {"boxes": numpy.array(boxes) if boxes else None})

    def crop_text_regions(self, image: Any, corners: Any) -> list[Any]:
        assert image.shape[:2] == (HIGH, WIDE)
        return [image[round(y0) : round(y1), round(x0) : round(x1)] for (x0, y0), _, (x1, y1), _ in corners.tolist()]

    def recognize_txt(self, cut: list[Any]) -> Any:
        texts = [f"{len(one)} high" for one in cut]
        return type("Read", (), {"txts": texts, "scores": [self.sure] * len(cut)})


def test_lines_are_looked_for_in_a_small_copy_of_what_is_printed_and_placed_in_the_picture() -> None:
    finder = Finder()
    found = lines_in(finder, sheet(BARS))
    assert len(found) == len(BARS)
    for (_, _, corners), bar in zip(found, BARS, strict=True):
        assert numpy.abs(corners[[0, 2]].ravel() - numpy.array(bar)).max() <= 2
    ((high, wide),) = finder.looked_at
    assert high * wide < 0.15 * HIGH * WIDE


def test_what_is_read_is_cut_from_the_picture_as_large_as_it_is() -> None:
    heights = [int(text.split()[0]) for text, _, _ in lines_in(Finder(), sheet(BARS))]
    assert all(abs(height - 22) <= 2 for height in heights)


def test_a_bare_sheet_of_grainy_paper_is_not_looked_at() -> None:
    grain = numpy.random.default_rng(1).integers(-12, 13, (HIGH, WIDE, 1))
    finder = Finder()
    assert lines_in(finder, (sheet([], (220, 225, 230)) + grain).astype(numpy.uint8)) == []
    assert finder.looked_at == []


def test_a_sheet_on_which_nothing_is_found_has_no_lines() -> None:
    image = sheet([])
    image[400:420, 300:500] = 190
    assert lines_in(Finder(), image) == []


def test_a_line_that_is_hardly_read_is_left_out() -> None:
    assert lines_in(Finder(sure=0.4), sheet(BARS)) == []


SMALL = [(200 + 60 * number, 1000, 240 + 60 * number, 1008) for number in range(3)]


def test_small_print_that_is_lost_in_the_small_copy_is_looked_for_in_all_its_pixels() -> None:
    finder = Finder(least=8)
    found = lines_in(finder, sheet([*BARS, *SMALL]))
    assert [round(float(box[0][0])) for _, _, box in found] == [bar[0] for bar in (*BARS, *SMALL)]
    assert len(finder.looked_at) == 2
    high, wide = finder.looked_at[1]
    assert high * wide < 0.02 * HIGH * WIDE


def test_a_line_that_was_found_is_not_read_a_second_time_where_small_print_stands_near() -> None:
    beside = [(left, 156, right, 164) for left, right in ((920, 960), (970, 1010), (1020, 1060))]
    assert len(lines_in(Finder(least=8), sheet([*BARS, *beside]))) == len(BARS) + len(beside)


@pytest.mark.parametrize(
    "bars",
    [
        pytest.param([(100, 600, 1100, 603), (100, 700, 1100, 703), (600, 600, 603, 703)], id="ruled lines"),
        pytest.param([(100 + 9 * n, 600, 102 + 9 * n, 602) for n in range(90)], id="a row of dots"),
        pytest.param(SMALL[:2], id="two specks"),
    ],
)
def test_what_is_no_small_print_is_not_looked_at_twice(bars: list[tuple[int, int, int, int]]) -> None:
    finder = Finder(least=12)
    lines_in(finder, sheet([*BARS, *bars]))
    assert len(finder.looked_at) == 1


@pytest.mark.parametrize("grain", [0, 3])
def test_faint_print_is_seen_on_paper_that_is_no_grainier(grain: int) -> None:
    image = sheet([], (235, 235, 235)).astype(int)
    image[800:820, 500:502] -= 21
    image += numpy.random.default_rng(2).integers(-grain, grain + 1, (HIGH, WIDE, 1))
    rows, columns = near(ink_in(image.astype(numpy.uint8)))
    assert set(range(770, 850)) <= set(rows.tolist())
    assert max(len(rows), len(columns)) < 150


@pytest.mark.parametrize(
    ("paper", "ink"),
    [
        pytest.param((255, 255, 255), (0, 255, 255), id="yellow on white"),
        pytest.param((255, 255, 255), (190, 190, 190), id="pale on white"),
        pytest.param((200, 0, 0), (0, 0, 200), id="red on blue"),
        pytest.param((90, 90, 90), (255, 255, 255), id="white on grey"),
    ],
)
def test_print_is_seen_in_any_colour_on_any_paper(paper: tuple[int, int, int], ink: tuple[int, int, int]) -> None:
    image = sheet([], paper)
    image[800:820, 500:501] = ink  # a thin stroke
    rows, columns = near(ink_in(image))
    assert set(range(770, 850)) <= set(rows.tolist())
    assert set(range(470, 531)) <= set(columns.tolist())
    assert max(len(rows), len(columns)) < 150


def test_small_pictures_are_looked_at_larger_but_neither_they_nor_strips_without_end() -> None:
    assert scale_of(HIGH, WIDE) == LOOKED_AT
    assert scale_of(640, 900) == 1.15
    assert scale_of(368, 500) == 1.5
    assert scale_of(10, 4000) < 1.0
    assert scale_of(1, 1) == 1.5
