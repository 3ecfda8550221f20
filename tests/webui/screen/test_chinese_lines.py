"""What a printed page breaks between two Chinese characters is shown whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webui.panels.evidence import quotes
from webui.render.citations import one_line, passage_lines
from webui.words import Words

PASSAGE = {"text": "今夜偏知春气暖，虫声新透\n绿窗纱。\nBy Liu\nFangping", "document": "诗.pdf", "page": 1, "number": 1}


@pytest.mark.parametrize(
    ("text", "lines", "line"),
    [
        ("虫声新透\n绿窗纱", ["虫声新透绿窗纱"], "虫声新透绿窗纱"),
        ("更深月色半人家，\n北斗阑干", ["更深月色半人家，", "北斗阑干"], "更深月色半人家，北斗阑干"),
        ("some words\nand more", ["some words", "and more"], "some words and more"),
        ("用 Python\n写代码", ["用 Python", "写代码"], "用 Python 写代码"),
        ("今\x03\n\x02天", ["今\x03\x02天"], "今\x03\x02天"),
        ("\n \n", [], ""),
    ],
)
def test_a_line_end_between_two_chinese_characters_vanishes(text: str, lines: list[str], line: str) -> None:
    assert passage_lines(text) == lines
    assert one_line(passage_lines(text)) == line


@given(st.text(alphabet="今天ab，。 \n\x02\x03|", max_size=60))
def test_no_letter_is_lost_and_none_is_added(text: str) -> None:
    def letters(said: str) -> str:
        return "".join(one for one in said if one.isalnum())

    assert letters("".join(passage_lines(text))) == letters(one_line(passage_lines(text))) == letters(text)


@pytest.mark.parametrize("number", [1, 2])
def test_a_passage_of_the_evidence_is_quoted_without_the_printed_line_end(number: int) -> None:
    shown = quotes([PASSAGE], number, Words("zh"), "m")
    assert "虫声新透绿窗纱" in shown
