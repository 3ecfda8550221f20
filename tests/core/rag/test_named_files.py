"""A question that names files is about those alone; what may be about others, or is no name, is about all."""

from __future__ import annotations

import pytest

from core.rag.named_files import files_named

FILES = (
    *("report.pdf", "notes.txt", "invoice-1041.pdf", "annual_report_2023.xlsx", "model X200.pdf"),
    *("报告.pdf", "年度预算.xlsx", "water.pdf", "insurance.pdf", "March 2024.pdf", "lease.pdf", "lease.docx"),
    *(
        "contracts.pdf",
        "Berlin.pdf",
        "Jane Doe.pdf",
        "Vertrag.pdf",
        "law.pdf",
        "data.csv",
        "it.txt",
        "house insurance.pdf",
    ),
    *(
        "Windows 11.pdf",
        "section 4.pdf",
        "plan b.pdf",
        "user_id.csv",
        "minutes",
        "договор.pdf",
        "عقد.pdf",
        "契約書.pdf",
    ),
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
        ("Wie hoch ist die Selbstbeteiligung gemäß report?", {"report.pdf"}),
        ("What is report.pdf about?", {"report.pdf"}),
        ("Summarise everything in report.pdf.", {"report.pdf"}),
        ("Write a summary of report.pdf.", {"report.pdf"}),
        ("Here is report.pdf. What does it say about hail?", {"report.pdf"}),
        ("Use only report.pdf. What is the deductible?", {"report.pdf"}),
        ("Who pays for hail? See report.pdf.", {"report.pdf"}),
        ("What is the deductible? (report.pdf)", {"report.pdf"}),
        ("Who signed report.pdf? And when?", {"report.pdf"}),
        ("@report.pdf hail?", {"report.pdf"}),
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
        "What do contracts say about pets?",
        "What does Berlin say about pets?",
        "What does Jane Doe say about hail?",
        "According to Berlin, who pays?",
        "Laut Vertrag, wer zahlt?",
        "根据报告，谁付款？",
        "According to law, who pays?",
        "What does data say about growth?",
        "Please summarise data.",
        "Please read it.",
        "Is hail covered in house insurance?",
        "In Windows 11, how do I print?",
        "What is in section 4?",
        "What does plan B say?",
        'What is "data"?',
        'Who wrote "report"?',
        'Is the word "insurance" in it?',
        "Which user_id has the most orders?",
        "What was decided in the minutes, and who spoke?",
        "See https://example.org/report.pdf for hail.",
        "Write to jane@report.pdf about hail.",
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
        "Ignore report.pdf. Who pays for hail?",
        "Don't use report.pdf: who pays for hail?",
        "Leave report.pdf out. Who pays?",
        "Apart from what report.pdf says, what is covered?",
        "This is not about report.pdf.",
        "What is the sum of everything minus report.pdf?",
        "Use report.pdf, too. Who pays?",
        "I also uploaded report.pdf. What is the total?",
        "I have added report.pdf. Now what is the deductible?",
        "In addition to report.pdf, who pays?",
        "What do report.pdf etc. say?",
        "Is it in report.pdf or in the lease?",
        "Is it in report.pdf or somewhere else?",
        "Who refers to report.pdf?",
        "Where is report.pdf mentioned?",
        "What supersedes report.pdf?",
        "Is report.pdf still valid?",
        "Is report.pdf right about hail?",
        "report.pdf says 12%. Is that true?",
        "Why does report.pdf say 12% if the bank says 13%?",
        "You answered from report.pdf, but I meant the lease.",
        "You answered from report.pdf; what do the contracts say?",
        "When was report.pdf signed and who pays the rent?",
        "Check the invoice against report.pdf.",
        "Does the invoice comply with report.pdf?",
        "Is the lease in line with report.pdf?",
        "Find papers similar to report.pdf.",
        "Save all totals in report.pdf.",
        "Create report.pdf with all totals.",
        "Was steht außerhalb von report.pdf?",
        "Was steht nicht in report.pdf?",
        "Lass report.pdf weg. Was kostet es?",
        "Was steht zusätzlich zu report.pdf drin?",
        "Que dit-on en dehors de report.pdf ?",
        "¿Qué hay además de report.pdf?",
        "不要看report.pdf，谁付款？",
        "report.pdf以外的内容是什么？",
        "哪些地方引用了report.pdf？",
        "Кроме договор.pdf, кто платит?",
        "契約書.pdf以外では？",
        "ماذا يقول غير عقد.pdf",
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


def test_a_file_without_an_ending_is_no_word_of_a_question() -> None:
    files = ("insurance", "lease", "Annual Report 2023")
    assert files_named("What does the insurance cover, and the lease?", files) == frozenset()
    assert files_named("What does the annual report 2023 say about staff?", files) == {"Annual Report 2023"}
    assert files_named("What is in the file lease?", files) == {"lease"}


def test_a_word_right_behind_a_name_is_no_other_file() -> None:
    assert files_named("What does report.pdf hail clause say?", ("report.pdf", "hail.txt", "b.md")) == {"report.pdf"}


def test_what_stands_in_the_middle_of_a_long_pasted_text_names_nothing() -> None:
    assert files_named(f"What is this? {'word ' * 300} report.pdf {'word ' * 300}", FILES) == frozenset()
