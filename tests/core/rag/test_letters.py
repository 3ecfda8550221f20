"""How large letters are printed is known from where the lines stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pymupdf
import pytest

from core.rag.document import Block
from core.rag.letters import letters_of
from core.rag.library import Library

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
