"""What a question needs of documents: seen by its words, before anything is searched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.scopes import LEAST, ONCE, PLAIN, accuracy, listed, questions
from core.rag.document import Passage
from core.rag.scope import is_of_topic, scope_of, understood
from core.rag.scope_part import Part, passages_in


def passage(page: int | None, heading: str = "", document: str = "a.pdf") -> Passage:
    return Passage(f"{document} {page} {heading}", 0.0, document, document, page, heading=heading)


def test_of_the_questions_held_out_nearly_all_are_understood() -> None:
    held_out = questions(1)
    assert len(held_out) + len(questions(0)) >= 300
    assert accuracy(held_out) >= LEAST


def test_plain_questions_are_understood_as_they_were_when_the_rules_for_them_were_ready() -> None:
    assert len(listed(ONCE)) >= 120
    assert accuracy(listed(ONCE)) >= 0.82
    assert accuracy(listed(PLAIN)) >= 0.98


@pytest.mark.parametrize("need", ["passage", "part", "whole", "files"])
@pytest.mark.parametrize("chinese", [False, True])
def test_each_kind_is_understood_in_both_languages(need: str, chinese: bool) -> None:
    rows = [row for row in questions(1) if row[0] == need and (max(row[1]) > "\u3400") is chinese]
    assert len(rows) >= 5
    assert accuracy(rows) >= 0.8


@pytest.mark.parametrize(
    "question",
    [
        "What does the summary say about staffing?",
        "List price of the router?",
        "摘要里怎么说人员编制的？",
        "How does the summarise button work?",
        "Thanks!",
        "And the second one?",
        "Can you help me?",
    ],
)
def test_a_word_that_often_asks_for_all_does_not_always(question: str) -> None:
    assert scope_of(question).need == "passage"


@pytest.mark.parametrize(
    ("question", "part"),
    [
        ("Summarise chapter 3.", Part("chapter", 3, 3)),
        ("Give me an overview of pages 10 to 20.", Part("page", 10, 20)),
        ("Sum up the first ten pages.", Part("page", 1, 10)),
        ("Read the last two pages and tell me what they say.", Part("page", -2, -1)),
        ("What does the second sheet contain?", Part("sheet", 2, 2)),
        ("What is shown on slides 4-6?", Part("slide", 4, 6)),
        ("What topics does part II cover?", Part("chapter", 2, 2)),
        ("What happens in the last chapter?", Part("chapter", -1, -1)),
        ("Summarise the introduction.", Part("chapter", words="introduction")),
        ("归纳一下第33～40页。", Part("page", 33, 40)),
        ("第二个工作表里有什么？", Part("sheet", 2, 2)),
        ("第十二章是关于什么的？", Part("chapter", 12, 12)),
        ("前十页讲了什么？", Part("page", 1, 10)),
        ("总结最后两页。", Part("page", -2, -1)),
        ("附录包含哪些内容？", Part("chapter", words="附录")),
        ("What is the difference between chapter 1 and chapter 2?", Part("chapter", 1, 2)),
        ("What happens in chapters 5 to 7?", Part("chapter", 5, 7)),
        ("第一章和第二章有什么区别？", Part("chapter", 1, 2)),
    ],
)
def test_the_part_that_is_meant_is_known(question: str, part: Part) -> None:
    assert scope_of(question).part == part


@pytest.mark.parametrize(
    ("question", "number"),
    [
        ("Summarise chapter 2 with 5 bullet points", 2),
        ("Summarise chapter 2, 100 words please", 2),
        ("Shorten clause 4 to 50 words", 4),
        ("Shorten clause 4 to 50%.", 4),
        ("Translate section 2 to 3 languages", 2),
        ("Summarise chapter 4 and I need it short", 4),
        ("Explain clause 7, I don't understand it", 7),
        ("Explain chapter 7 and 3 reasons for it", 7),
    ],
)
def test_how_an_answer_is_wished_is_no_further_chapter(question: str, number: int) -> None:
    assert scope_of(question).part == Part("chapter", number, number)


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("Translate chapter 5, 6 and 9", 5, 9),
        ("Summarise chapter 2 and 3.", 2, 3),
        ("Summarise chapter 2 to 5 for me", 2, 5),
        ("Summarise chapters 2 to 15", 2, 15),
        ("What do sections 3 and 5 regulate?", 3, 5),
        ("Summarise chapters 2 and 3 with 5 bullet points", 2, 3),
        ("Compare chapter 5 with chapter 4", 4, 5),
        ("Compare part I and part II", 1, 2),
        ("Compare appendix A and B", 101, 102),
        ("第一章、第二章和第三章讲了什么？", 1, 3),
    ],
)
def test_of_several_chapters_that_are_named_none_is_left_out(question: str, first: int, last: int) -> None:
    assert scope_of(question).part == Part("chapter", first, last)


@pytest.mark.parametrize(
    "question",
    [
        "Compare chapters 3 and 12",
        "Compare the last chapter and chapter 2",
        "Translate chapter 5, 9 and 30",
        "Summarise the articles I uploaded",
        "Compare the articles I published",
        "Summarise the units I have to study",
    ],
)
def test_what_no_range_of_chapters_tells_is_read_whole(question: str) -> None:
    assert scope_of(question).need == "whole"


@pytest.mark.parametrize("question", ["How many articles a day may I borrow?", "Is there a chapter I should read?"])
def test_a_word_of_one_letter_is_no_number_of_a_chapter(question: str) -> None:
    assert scope_of(question).part is None


def test_a_plain_summary_is_told_from_one_with_a_wish() -> None:
    assert all(scope_of(one).plain for one in ("Summarise this document.", "tl;dr", "总结这份文档。", "请总结一下。"))
    assert not scope_of("Summarise what the witnesses said about the harbour.").plain
    assert not scope_of("用五句话概括一下证人对港口的说法。").plain


def test_pages_are_found_from_the_beginning_and_from_the_end_of_each_document() -> None:
    pages = [passage(page) for page in range(1, 21)]
    assert [one.page for one in passages_in(Part("page", 4, 6), pages)] == [4, 5, 6]
    assert [one.page for one in passages_in(Part("page", -2, -1), pages)] == [19, 20]
    assert passages_in(Part("page", 40, 50), pages) == []
    assert passages_in(Part("sheet", 1, 2), pages) == []
    deck = [passage(page, document="b.pptx") for page in (1, 2, 3)]
    assert [one.document for one in passages_in(Part("slide", 2, 2), [*pages, *deck])] == ["b.pptx"]


def test_a_chapter_is_found_by_its_number_or_its_words() -> None:
    headed = [
        passage(1, "Preface"),
        passage(2, "1. Tides"),
        passage(3, "2 Winds > 2.1 Storms"),
        passage(4, "Chapter 3: Ropes"),
        passage(5, "第四章 锚"),
        passage(6, "Appendix B"),
    ]
    assert [one.page for one in passages_in(Part("chapter", 1, 1), headed)] == [2]
    assert [one.page for one in passages_in(Part("chapter", 2, 2), headed)] == [3]
    assert [one.page for one in passages_in(Part("chapter", 3, 3), headed)] == [4]
    assert [one.page for one in passages_in(Part("chapter", 4, 4), headed)] == [5]
    assert [one.page for one in passages_in(scope_of("What is in appendix B?").part or Part("page"), headed)] == [6]
    assert [one.page for one in passages_in(Part("chapter", -1, -1), headed)] == [6]
    assert [one.page for one in passages_in(Part("chapter", words="preface"), headed)] == [1]
    assert passages_in(Part("chapter", 9, 9), headed) == []
    assert [one.page for one in passages_in(Part("chapter", 2, 4), headed)] == [3, 4, 5]


@given(st.text(max_size=300))
def test_whatever_is_asked_it_needs_something(question: str) -> None:
    scope = scope_of(question)
    assert (scope.need == "part") == (scope.part is not None)


def test_a_question_is_looked_at_once_for_one_reply() -> None:
    understood.cache_clear()
    assert scope_of("Summarise chapter 3.") is scope_of("Summarise  chapter 3.")
    assert understood.cache_info().misses == 1


def test_what_is_pasted_into_a_question_does_not_hide_what_is_asked() -> None:
    assert scope_of(f"Summarise this document.\n\n{'The tide rises. ' * 40_000}").need == "whole"
    assert scope_of(f"{'The tide rises. ' * 40_000}\n\nList every deadline in the contract.").need == "whole"
    assert scope_of(f"Summarise this letter.\n{'The tide rises. ' * 40}\nDo you agree?").need == "whole"
    assert scope_of(f"I pasted our minutes. List every decision in them.\n{'The tide rises. ' * 60}").lists
    assert scope_of(f"Here are our minutes.\nList every decision in them.\n\n{'The tide rises. ' * 60}").lists


@pytest.mark.parametrize(
    "question",
    [
        "Hi,\n\nplease summarise all documents in this manner:\n\n{pasted}",
        "Hello there!\nSummarise all documents.\n{pasted}",
        "{pasted}\n\nSummarise all documents.\n\nThank you!",
        "{pasted}\n\nSummarise all documents.\n\nBest regards,\nTom",
        "你好，\n\n请总结全部文件，写成下面的样子：\n\n{pasted}",
    ],
)
def test_a_greeting_and_thanks_do_not_hide_what_is_asked_beside_pasted_text(question: str) -> None:
    assert scope_of(question.format(pasted="The tide rises. " * 60)).need == "whole"


def test_a_letter_that_is_pasted_says_nothing_of_what_is_asked_about_it() -> None:
    letter = f"Dear Tom,\n\nplease list all contracts.\n\n{'The tide rises. ' * 60}\n\nBest regards,\nAnn"
    assert scope_of(f"{letter}\n\nWhere does she live?").need == "passage"


@pytest.mark.parametrize(
    "question",
    [
        "Where does the heron nest?\n{pasted}\nThe heron nests in the alder.",
        "Where does the heron nest?\n{pasted}",
        "{pasted}\n\nWhere does the heron nest?",
        "Where does the heron nest? {pasted} The heron nests in the alder.",
        "{pasted}",
        f"{' ' * 900}{{pasted}}",
        f"{' ' * 900}",
        "苍鹭在哪里筑巢？\n{pasted}",
    ],
)
@pytest.mark.parametrize("pasted", ["The wind blows over the lake. ", "风吹过湖面。"])
@pytest.mark.parametrize("times", [150, 35_000])
def test_what_is_pasted_into_a_question_does_not_make_it_one_about_the_whole(
    question: str, pasted: str, times: int
) -> None:
    assert scope_of(question.format(pasted=pasted * times)).need == "passage"


@pytest.mark.parametrize(
    "question",
    [
        "What is the main topic of these documents?",
        "worum geht es in diesen Dateien",
        "Was ist das Hauptthema dieser Dokumente?",
        "De quoi parlent ces documents ?",
        "¿De qué tratan estos archivos?",
        "这些文件的主题是什么",
        "这几份文件主要讲的是什么？",
    ],
)
def test_what_documents_are_about_altogether_needs_all_of_them(question: str) -> None:
    assert scope_of(question).need == "whole"
    assert is_of_topic(question)


@pytest.mark.parametrize(
    "question",
    ["What is the main topic of the meeting on May 3?", "Worum geht es in Klausel 4?", "会议的主题是什么？"],
)
def test_what_something_in_them_is_about_does_not(question: str) -> None:
    assert scope_of(question).need == "passage"
    assert not is_of_topic(question)
