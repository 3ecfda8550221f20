"""Of several parts that a question names none is left out, however they are named."""

from __future__ import annotations

import pytest

from core.rag.document import Passage
from core.rag.scope import scope_of
from core.rag.scope_part import Part, passages_in


@pytest.mark.parametrize(
    ("question", "part"),
    [
        ("Compare the first and second chapter", Part("chapter", 1, 2)),
        ("summarise the first and the third chapter", Part("chapter", 1, 3)),
        ("From the first to the third chapter, what happens?", Part("chapter", 1, 3)),
        ("chapter 1 vs the second chapter", Part("chapter", 1, 2)),
        ("what do the second and third page say", Part("page", 2, 3)),
        ("Sum up the first, second and fourth section", Part("chapter", 1, 4)),
        ("Translate the 2nd and 3rd slide", Part("slide", 2, 3)),
        ("Summarise pages 1, 2 and 4", Part("page", 1, 4)),
        ("Compare slide 2 and slide 5", Part("slide", 2, 5)),
        ("What is on pages 10-20?", Part("page", 10, 20)),
        ("第一和第三章讲了什么？", Part("chapter", 1, 3)),
        ("总结第一、二、四页", Part("page", 1, 4)),
        ("第2页和第3页有什么区别？", Part("page", 2, 3)),
        ("第二到四章讲了什么？", Part("chapter", 2, 4)),
        ("总结第二三页", Part("page", 2, 3)),
    ],
)
def test_all_that_are_named_by_ordinals_or_in_a_list_are_meant(question: str, part: Part) -> None:
    assert scope_of(question).part == part


@pytest.mark.parametrize(
    ("question", "part"),
    [
        ("Summarise the first two chapters", Part("chapter", 1, 2)),
        ("Summarise the last two chapters", Part("chapter", -2, -1)),
        ("What is on the second to last page?", Part("page", -2, -2)),
        ("What happens in the penultimate chapter?", Part("chapter", -2, -2)),
        ("前三章讲了什么？", Part("chapter", 1, 3)),
        ("最后两章讲了什么？", Part("chapter", -2, -1)),
        ("倒数第二页写了什么？", Part("page", -2, -2)),
        ("最后一条写了什么？", Part("chapter", -1, -1)),
    ],
)
def test_the_first_and_the_last_few_are_counted_from_their_end(question: str, part: Part) -> None:
    assert scope_of(question).part == part


@pytest.mark.parametrize(
    "question",
    [
        "Compare the first chapter and the last one",
        "Compare the first and the last page",
        "Summarise pages 3 and 40",
        "Compare page 3 and chapter 2",
        "比较第一章和第十章",
        "第三页和第二章有什么关系？",
    ],
)
def test_those_that_lie_too_far_apart_are_read_with_all_between_them(question: str) -> None:
    assert scope_of(question).need == "whole"


@pytest.mark.parametrize(
    ("question", "part"),
    [
        ("Summarise page 3 and 5 bullet points", Part("page", 3, 3)),
        ("Shorten page 4 to 50 words", Part("page", 4, 4)),
        ("What is on page 3, chapter 2?", Part("page", 3, 3)),
        ("第3页和5个要点", Part("page", 3, 3)),
        ("第三章第5页写了什么？", Part("page", 5, 5)),
        ("第一个问题和第三章有关系吗？", Part("chapter", 3, 3)),
    ],
)
def test_another_number_beside_one_page_is_no_further_page(question: str, part: Part) -> None:
    assert scope_of(question).part == part


@pytest.mark.parametrize(
    "question", ["What did the chapter before say?", "前一章说了什么？", "第一和第二个问题是什么？"]
)
def test_what_is_no_number_of_a_part_names_none(question: str) -> None:
    assert scope_of(question).part is None


def test_the_last_two_chapters_are_the_last_two_top_headings() -> None:
    headed = [
        Passage(name, 0.0, "a.pdf", "a.pdf", page, heading=name)
        for page, name in enumerate(["One", "Two > A", "Two > B", "Three"], 1)
    ]
    assert [one.page for one in passages_in(Part("chapter", -2, -1), headed)] == [2, 3, 4]
    assert [one.page for one in passages_in(Part("chapter", -2, -2), headed)] == [2, 3]
