"""A question that names files is about those alone; what may be about others, or is no name, is about all."""

from __future__ import annotations

import pytest

from core.rag.named_files import files_named

FILES = (
    *("report.pdf", "notes.txt", "invoice-1041.pdf", "annual_report_2023.xlsx", "model X200.pdf"),
    *("报告.pdf", "年度预算.xlsx", "water.pdf", "insurance.pdf", "March 2024.pdf", "lease.pdf", "lease.docx"),
)


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("What does report.pdf say about hail?", {"report.pdf"}),
        ("what is the total in REPORT.PDF?", {"report.pdf"}),
        ("And in “report.pdf”?", {"report.pdf"}),
        ("What is the total of report.pdf and notes.txt?", {"report.pdf", "notes.txt"}),
        ("Compare report.pdf with notes.txt.", {"report.pdf", "notes.txt"}),
        ("How do report.pdf and notes.txt differ?", {"report.pdf", "notes.txt"}),
        ("Is the price in report.pdf higher than in notes.txt?", {"report.pdf", "notes.txt"}),
        ("Compare 2022 and 2023 in report.pdf.", {"report.pdf"}),
        ("What is the difference between plan A and plan B in report.pdf?", {"report.pdf"}),
        ("Read report.pdf and tell me the deductible.", {"report.pdf"}),
        ("Does report.pdf mention other costs?", {"report.pdf"}),
        ("What does report say about hail?", {"report.pdf"}),
        ("According to report, who won?", {"report.pdf"}),
        ('What is the deductible in "report"?', {"report.pdf"}),
        ("Look into the report file: who won?", {"report.pdf"}),
        ("Summarise report and notes.", {"report.pdf", "notes.txt"}),
        ("What is the total in invoice 1041?", {"invoice-1041.pdf"}),
        ("What does the annual report 2023 say about staff?", {"annual_report_2023.xlsx"}),
        ("annual_report_2023: how many employees?", {"annual_report_2023.xlsx"}),
        ("What does model X200 say about batteries?", {"model X200.pdf"}),
        ("What is in lease.docx about pets?", {"lease.docx"}),
        ("Was steht in report.pdf über Hagel?", {"report.pdf"}),
        ("Wie hoch ist die Selbstbeteiligung laut report?", {"report.pdf"}),
        ("Que dit report.pdf sur la grêle ?", {"report.pdf"}),
        ("¿Qué dice report.pdf sobre el granizo?", {"report.pdf"}),
        ("报告.pdf里怎么说冰雹？", {"报告.pdf"}),
        ("《报告》里写了什么？", {"报告.pdf"}),
        ("report里说了什么？", {"report.pdf"}),
        ("年度预算里写了多少？", {"年度预算.xlsx"}),
        ("比较report.pdf和notes.txt。", {"report.pdf", "notes.txt"}),
    ],
)
def test_files_that_are_named_with_their_ending_or_clearly_without_it_are_meant(question: str, named: set[str]) -> None:
    assert files_named(question, FILES) == named


@pytest.mark.parametrize(
    "question",
    [
        "What is the deductible for water damage?",
        "How much is the invoice?",
        "What does the report say about hail?",
        "Does insurance cover hail?",
        "What is the price of model X200?",
        "What was paid in March 2024?",
        "What does lease say about pets?",
        "报告里怎么说冰雹？",
        "水灾的免赔额是多少？",
    ],
)
def test_a_word_that_is_also_the_name_of_a_file_narrows_nothing(question: str) -> None:
    assert files_named(question, FILES) == frozenset()


@pytest.mark.parametrize(
    "question",
    [
        "Compare report.pdf with the others.",
        "Compare report.pdf with the contract.",
        "Compare the budget with report.pdf.",
        "How does report.pdf differ from the contract?",
        "Is the price in report.pdf the same as in the contract?",
        "What does report.pdf say that the other files do not?",
        "Which documents contradict report.pdf?",
        "Who is named in all documents, report.pdf among them?",
        "What do the contract and report.pdf say about hail?",
        "What do report.pdf and the contract say about hail?",
        "Summarise everything except report.pdf.",
        "Worin unterscheidet sich report.pdf von den anderen Dateien?",
        "En quoi report.pdf diffère-t-il des autres fichiers ?",
        "¿En qué se diferencia report.pdf de los otros archivos?",
        "report.pdf和其他文件有什么不同？",
        "除了report.pdf，还有哪里提到冰雹？",
        "report.pdf和合同里的价格分别是多少？",
    ],
)
def test_a_question_that_asks_of_others_too_is_about_all(question: str) -> None:
    assert files_named(question, FILES) == frozenset()


@pytest.mark.parametrize(
    "question", ["What is in my-report.pdf?", "What is in report.pdfx?", "What does report.docx say?", "reports.pdf?"]
)
def test_a_name_within_another_one_is_none(question: str) -> None:
    assert files_named(question, FILES) == frozenset()


def test_of_names_within_one_another_the_longest_is_meant() -> None:
    files = ("report.pdf", "annual report.pdf", "annual report.pdf.bak.pdf")
    assert files_named("What does annual report.pdf say?", files) == {"annual report.pdf"}
    assert files_named("What does report.pdf say?", files) == {"report.pdf"}


def test_files_that_are_called_the_same_but_for_case_are_all_meant() -> None:
    assert files_named("What does report.pdf say?", ("report.pdf", "Report.PDF", "b.md")) == {
        "report.pdf",
        "Report.PDF",
    }


def test_what_stands_in_the_middle_of_a_long_pasted_text_names_nothing() -> None:
    assert files_named(f"What is this? {'word ' * 300} report.pdf {'word ' * 300}", FILES) == frozenset()
