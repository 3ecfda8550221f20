"""A question that only goes on from one that names files is about those, unless a word of it may mean others."""

from __future__ import annotations

import pytest

from core.rag.named_before import files_meant

FILES = (
    *("report.pdf", "notes.txt", "invoice-1041.pdf", "annual_report_2023.xlsx", "water.pdf", "lease.pdf"),
    *("报告.pdf", "年度预算.xlsx"),
)


@pytest.mark.parametrize(
    "question",
    [
        "And about hail?",
        "And for how long?",
        "Are there any exclusions?",
        "And in this document, who signs?",
        "那冰雹呢？",
        "它怎么说？",
    ],
)
def test_what_goes_on_from_a_question_that_names_a_file_is_about_the_same(question: str) -> None:
    assert files_meant([question, "What does report.pdf say about fire?"], FILES) == {"report.pdf"}
    assert files_meant([question, "And then?", "Compare report.pdf with notes.txt."], FILES) == {
        "report.pdf",
        "notes.txt",
    }


@pytest.mark.parametrize(
    "question",
    [
        "And the others?",
        "And in another one?",
        "Do all of them say so?",
        "And both together?",
        "And elsewhere?",
        "What else is there?",
        "How does it compare?",
        "Is it more than last year?",
        "And the second document?",
        "And in which of them?",
        "And the contract?",
        "And about water?",  # there is a file that is called so
        "And the notes?",
        "And the invoice?",
        "And in 2023?",
        "其他的呢？",
        "它们都这样说吗？",
        "预算呢？",
    ],
)
def test_what_may_be_about_others_is_asked_of_all_though_it_goes_on(question: str) -> None:
    assert not files_meant([question, "What does report.pdf say about fire?"], FILES)
    assert not files_meant(["And then?", question, "What does report.pdf say about fire?"], FILES)


def test_another_name_counts_before_those_that_were_named_earlier() -> None:
    assert files_meant(["And notes.txt?", "What does report.pdf say?"], FILES) == {"notes.txt"}
    assert not files_meant(["And about hail?", "What is said of fire?"], FILES)
