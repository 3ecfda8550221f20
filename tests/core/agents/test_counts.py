"""How many rows or pages there are, and what a column adds up to, is told by program: a small model answers from it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from core.agents.assistant import Assistant
from core.errors import DocumentError
from core.messages.events import ToolFinished
from core.messages.message import Message
from core.rag.library import Library
from core.rag.tables.tables import Tables
from core.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio

ORDERS = [
    ["Order ID", "Customer", "Amount"],
    *([f"A-{n}", f"Customer {n % 37}", n] for n in range(1204)),
    ["Total", "", 5],
]
CUSTOMERS = [["Name", "City"], *([f"Customer {n}", "Rome"] for n in range(40))]
MONTHS = [["Month", "Visitors"], *([f"2024-{n:02}", 100 * n] for n in range(1, 13))]


def workbook(path: Path, **sheets: Sequence[Sequence[Any]]) -> Path:
    with xlsxwriter.Workbook(str(path)) as book:
        for title, rows in sheets.items():
            sheet = book.add_worksheet(title)
            for at, row in enumerate(rows):
                sheet.write_row(at, 0, row)
    return path


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path / "library", {"retrieval_type": "keyword"}) as opened:
        yield opened


async def told(library: Library, question: str, *, small: bool = True) -> tuple[list[dict[str, Any]], str]:
    """The passages of the search, and all that the model was told of them."""
    model = ScriptedModel("ok")
    model.small = small
    events = [one async for one in Assistant(llm=model, library=library).stream([Message("user", question)])]
    found = next((one.message for one in events if isinstance(one, ToolFinished)), Message("function", "", name="none"))
    return (found.extra or {}).get("passages", []), found.get_text_content()


async def test_which_row_has_the_latest_date_is_told_to_a_small_model_too(library: Library, tmp_path: Path) -> None:
    rows = [["Bill", "Day"], ["a", "2024-03-01"], ["b", "2025-02-01"], ["c", "2024-05-04"]]
    library.add(workbook(tmp_path / "bills.xlsx", Bills=rows))
    passages, _ = await told(library, "Which bill has the latest day?")
    assert [one["text"] for one in passages] == [
        "Sheet Bills: the highest value of Day is 2025-02-01, in row 3: Bill: b, Day: 2025-02-01."
    ]


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("How many orders are there?", "Sheet Orders has 1,204 rows, and 1 more row with totals."),
        ("Count the orders", "Sheet Orders has 1,204 rows, and 1 more row with totals."),
        ("How many customers are there?", "Sheet Customers has 40 rows."),
        ("How many customers are in Orders?", "Sheet Orders has 37 different values of Customer in 1,204 rows."),
        ("How many cities are there?", "Sheet Customers has 1 value of City in 40 rows."),
        ("How many rows are in the sheet Customers?", "Sheet Customers has 40 rows."),
        ("How many columns does Orders have?", "Sheet Orders has 3 columns."),
        ("How many rows are there?", "shop.xlsx has 1,244 rows in 2 tables: Orders 1,204, Customers 40."),
        ("How many sheets are in the workbook?", "shop.xlsx has 2 sheets: Orders, Customers."),
        ("这个表格一共有几个工作表？", "shop.xlsx 有 2 个工作表：Orders，Customers。"),
        ("Orders 里有多少行？", "工作表 Orders 有 1,204 行数据，另有 1 行合计。"),
    ],
)
async def test_a_small_model_is_told_the_count_and_nothing_else(
    library: Library, tmp_path: Path, question: str, says: str
) -> None:
    library.add(workbook(tmp_path / "shop.xlsx", Orders=ORDERS, Customers=CUSTOMERS))
    passages, text = await told(library, question)
    assert [one["text"] for one in passages] == [says]
    assert "[1] (shop.xlsx" in text


async def test_a_count_is_cited_to_its_sheet(library: Library, tmp_path: Path) -> None:
    library.add(workbook(tmp_path / "shop.xlsx", Customers=CUSTOMERS, Orders=ORDERS))
    model = ScriptedModel("There are 1,204 orders.")
    model.small = True
    agent = Assistant(llm=model, library=library)
    events = [one async for one in agent.stream([Message("user", "How many orders are there?")])]
    (passage,) = next((one.message.extra or {})["passages"] for one in events if isinstance(one, ToolFinished))
    assert (passage["document"], passage["page"], passage["heading"]) == ("shop.xlsx", 2, "Orders")
    assert "".join(getattr(one, "text", "") for one in events) == "There are 1,204 orders. [1]"


async def test_a_question_that_goes_on_is_counted_as_the_one_before(library: Library, tmp_path: Path) -> None:
    rows = [["Bill", "City"], ["a", "Rome"], ["b", "Rome"], ["c", "Oslo"]]
    library.add(workbook(tmp_path / "bills.xlsx", Bills=rows))
    agent = Assistant(llm=ScriptedModel("ok"), library=library)
    said = [Message("user", "How many bills are from Oslo?"), Message("assistant", "1"), Message("user", "and Rome?")]
    events = [one async for one in agent.stream(said)]
    found = next(one.message for one in events if isinstance(one, ToolFinished))
    assert (found.extra or {})["passages"][0]["text"] == "Sheet Bills: 2 of 3 rows fulfil City = Rome."


@pytest.mark.parametrize(
    "question",
    [
        "How many orders are over 100 €?",
        "How many open orders are there?",
        "How many rows have an amount?",
        "有多少笔超过15元的订单？",
        "How many visitors are there?",
        "How many months are bad?",
    ],
)
async def test_nothing_is_counted_where_there_is_a_condition_or_a_row_is_not_one_of_them(
    library: Library, tmp_path: Path, question: str
) -> None:
    library.add(workbook(tmp_path / "shop.xlsx", Orders=ORDERS, Visitors=MONTHS))
    passages, _ = await told(library, question)
    assert not any(" rows" in one["text"] or "行数据" in one["text"] for one in passages)


async def test_a_small_model_is_told_the_count_under_a_clear_condition_and_nothing_else(
    library: Library, tmp_path: Path
) -> None:
    library.add(workbook(tmp_path / "shop.xlsx", Orders=ORDERS, Visitors=MONTHS))
    (passage,), text = await told(library, "How many orders are from Customer 3?")
    assert passage["text"] == "Sheet Orders: 33 of 1,204 rows fulfil Customer = Customer 3."
    assert passage["rows"].startswith("5, 42, 79")
    assert "[1] (shop.xlsx" in text


async def test_a_sheet_of_sums_by_region_counts_no_sales(library: Library, tmp_path: Path) -> None:
    library.add(workbook(tmp_path / "sales.xlsx", Sales=[["Region", "Amount"], ["North", 10], ["South", 20]]))
    assert not any("has 2 rows" in one["text"] for one in (await told(library, "How many sales are there?"))[0])
    assert (await told(library, "How many regions are there?"))[0][0]["text"] == "Sheet Sales has 2 rows."


async def test_of_two_tables_on_a_sheet_nothing_is_said_to_be_what_the_sheet_is_called(
    library: Library, tmp_path: Path
) -> None:
    twice = [["Order ID", "Amount"], ["A-1", 10], ["A-2", 20], [], ["Order ID", "Amount"], ["B-1", 10], ["B-2", 5]]
    library.add(workbook(tmp_path / "shop.xlsx", Orders=twice))
    assert len(library.tables.of([one.id for one in library.documents()])) == 2
    assert not any("has 2 rows" in one["text"] for one in (await told(library, "How many orders are there?"))[0])
    assert (await told(library, "How many rows are there?"))[0][0]["text"].startswith(
        "shop.xlsx has 4 rows in 2 tables"
    )


async def test_rows_of_a_chinese_list_are_counted(library: Library, tmp_path: Path) -> None:
    out = io.StringIO()
    csv.writer(out).writerows([["订单号", "客户"], ["A1", "张三"], ["A2", "李四"], ["A3", "张三"]])
    (tmp_path / "订单表.csv").write_text(out.getvalue(), encoding="utf-8")
    library.add(tmp_path / "订单表.csv")
    for question in ("一共有多少订单？", "订单总数是多少？", "表里有几条记录？"):
        assert [one["text"] for one in (await told(library, question))[0]] == ["订单表.csv 中的表格有 3 行数据。"]
    assert (await told(library, "有几个不同的客户？"))[0][0]["text"].endswith("其中 客户 有 2 个不同的值。")


async def test_pages_are_counted_of_the_document_that_is_meant(library: Library, tmp_path: Path) -> None:
    import pymupdf

    for name, pages in (("Annual-Report_2023.pdf", 7), ("letter.pdf", 1)):
        document = pymupdf.open()
        for _ in range(pages):
            document.new_page().insert_text((50, 60), "It rained.")
        document.save(tmp_path / name)
        library.add(tmp_path / name)
    passages, _ = await told(library, "How many pages does the annual report have?")
    assert [(one["text"], one["document"]) for one in passages] == [
        ("Annual-Report_2023.pdf has 7 pages.", "Annual-Report_2023.pdf")
    ]
    passages, _ = await told(library, "一共有几页？")
    assert [one["text"] for one in passages] == ["Annual-Report_2023.pdf 有 7 页。", "letter.pdf 有 1 页。"]


async def test_another_model_gets_the_count_before_what_words_find(library: Library, tmp_path: Path) -> None:
    library.add(workbook(tmp_path / "shop.xlsx", Orders=ORDERS))
    library.add_text("Orders are shipped on Mondays.", name="notes.txt")
    passages, _ = await told(library, "How many orders are there?", small=False)
    assert passages[0]["text"].startswith("Sheet Orders has 1,204 rows")
    assert len(passages) > 1


async def test_for_a_count_of_all_rows_no_model_reads_all_of_them(library: Library, tmp_path: Path) -> None:
    many = [["Order ID", "Remark"], *([f"A-{n}", f"It was sent to street {n}, as ever. " * 4] for n in range(3000))]
    library.add(workbook(tmp_path / "shop.xlsx", Orders=many))
    model = ScriptedModel("There are 3,000 rows.")
    agent = Assistant(llm=model, library=library)
    question = [Message("user", "How many rows are there in all the sheets?")]
    called = [one.message.name async for one in agent.stream(question) if isinstance(one, ToolFinished)]
    assert called == ["ask_documents"]
    assert "Sheet Orders has 3,000 rows." in "".join(one.get_text_content() for one in model.requests[0].messages)


async def test_beside_prose_that_may_say_another_number_a_small_model_gets_both(
    library: Library, tmp_path: Path
) -> None:
    library.add(workbook(tmp_path / "shop.xlsx", Orders=ORDERS))
    library.add_text("In all there were 9,000 orders, most of them by post.", name="notes.txt")
    passages, _ = await told(library, "How many orders are there?")
    assert passages[0]["text"].startswith("Sheet Orders has 1,204 rows")
    assert any("9,000 orders" in one["text"] for one in passages)


async def test_where_tables_cannot_be_read_words_are_searched(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise DocumentError("No.")

    library.add(workbook(tmp_path / "shop.xlsx", Orders=ORDERS[:5]))
    monkeypatch.setattr(Tables, "of", broken)
    passages, _ = await told(library, "How many orders are there?")
    assert "Order ID" in passages[0]["text"]


async def test_a_small_model_is_told_how_many_files_there_are(library: Library) -> None:
    for name in ("one.txt", "two.txt"):
        library.add_text(f"The sky is green in {name}.", name=name)
    model = ScriptedModel("ok")
    model.small = True
    agent = Assistant(llm=model, library=library)
    for question, said in (
        ("How many files are there?", "The user's 2 files: "),
        ("一共有几个文件？", "用户的 2 个文件："),
    ):
        async for _ in agent.stream([Message("user", question)]):
            pass
        assert said in model.requests[-1].messages[0].get_text_content()


BILLS = [
    ["Bill", "Amount", "Share", "Paid", "Hours"],
    ["B-1", 10.1, 0.25, "yes", 3],
    ["B-2", 20.2, 0.5, "no", ""],
    ["B-3", 1000.4, 0.25, "yes", 5],
    ["Total", 1030.7, 1, "", 8],
]


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("What is the sum of the amounts?", "Sheet Bills: the sum of Amount is 1,030.7 (3 rows)."),
        ("What's the total amount in Bills?", "Sheet Bills: the sum of Amount is 1,030.7 (3 rows)."),
        ("Add up column B in Bills", "Sheet Bills: the sum of Amount is 1,030.7 (3 rows)."),
        ("What is the average amount?", "Sheet Bills: the average of Amount is 343.5667 (3 rows)."),
        ("What is the median amount?", "Sheet Bills: the median of Amount is 20.2 (3 rows)."),
        ("How high is the highest amount?", "Sheet Bills: the highest value of Amount is 1,000.4 (3 rows)."),
        ("What is the lowest share?", "Sheet Bills: the lowest value of Share is 0.25 (3 rows)."),
        (
            "What is the sum of the hours?",
            "Sheet Bills: the sum of Hours is 8 (2 of 3 rows, as the others have no number).",
        ),
        ("Amount 的总和是多少？", "工作表 Bills：Amount 的总和是 1,030.7（3 行数据）。"),
        ("Hours 的平均值是多少？", "工作表 Bills：Hours 的平均值是 4（3 行数据中的 2 行，其余没有数字）。"),
    ],
)
async def test_a_small_model_is_told_the_sum_of_a_column_without_its_row_of_totals(
    library: Library, tmp_path: Path, question: str, says: str
) -> None:
    library.add(workbook(tmp_path / "shop.xlsx", Bills=BILLS, Months=MONTHS))
    passages, _ = await told(library, question)
    assert [one["text"] for one in passages] == [says]
    assert (passages[0]["page"], passages[0]["heading"]) == (1, "Bills")


@pytest.mark.parametrize(
    "question",
    [
        "What is the sum of the amounts over 100?",
        "What is the average amount that was paid late?",
        "What is the sum of the bills?",
        "What is the sum of the deductibles?",
        "已付的总金额是多少？",
    ],
)
async def test_no_figure_is_told_under_a_condition_or_of_a_column_that_is_not_there_or_has_no_numbers(
    library: Library, tmp_path: Path, question: str
) -> None:
    library.add(workbook(tmp_path / "shop.xlsx", Bills=BILLS))
    passages, _ = await told(library, question)
    assert not any(one["text"].startswith(("Sheet Bills: the", "工作表 Bills：")) for one in passages)


async def test_a_column_that_holds_the_figure_already_is_summed_and_not_averaged(
    library: Library, tmp_path: Path
) -> None:
    rows = [["City", "Amount", "Total amount", "Average amount"], ["Rome", 1, 10, 5], ["Oslo", 2, 20, 8]]
    library.add(workbook(tmp_path / "cities.xlsx", Cities=rows))
    (passage,), _ = await told(library, "What is the total amount?")
    assert passage["text"] == "Sheet Cities: the sum of Total amount is 30 (2 rows)."
    passages, _ = await told(library, "What is the average amount?")
    assert not any(one["text"].startswith("Sheet Cities: the") for one in passages)


async def test_each_sheet_that_has_the_column_says_its_sum_and_two_on_one_sheet_say_none(
    library: Library, tmp_path: Path
) -> None:
    twice = [["Bill", "Fee"], ["A-1", 10], ["A-2", 20], [], ["Bill", "Fee"], ["B-1", 10], ["B-2", 5]]
    library.add(workbook(tmp_path / "a.xlsx", May=[["Bill", "Amount"], ["A", 1], ["B", 2]], Twice=twice))
    library.add(workbook(tmp_path / "b.xlsx", June=[["Bill", "Amount"], ["A", 5], ["B", 6]]))
    passages, _ = await told(library, "What is the sum of the amounts?")
    assert [one["text"] for one in passages] == [
        "Sheet May: the sum of Amount is 3 (2 rows).",
        "Sheet June: the sum of Amount is 11 (2 rows).",
    ]
    passages, _ = await told(library, "What is the sum of the amounts in June?")
    assert [one["text"] for one in passages] == ["Sheet June: the sum of Amount is 11 (2 rows)."]
    passages, _ = await told(library, "What is the sum of the fees?")
    assert not any("the sum of Fee" in one["text"] for one in passages)


async def test_shares_are_not_added_up_and_money_has_its_currency(library: Library, tmp_path: Path) -> None:
    (tmp_path / "rates.csv").write_text("Name,Rate,Cost\nA,5%,€ 10.50\nB,7%,€ 20.25\n", encoding="utf-8")
    library.add(tmp_path / "rates.csv")
    (passage,), _ = await told(library, "What is the sum of the costs?")
    assert passage["text"] == "The table in rates.csv: the sum of Cost is 30.75 € (2 rows)."
    passages, _ = await told(library, "What is the sum of the rates?")
    assert not any("the sum of Rate" in one["text"] for one in passages)


async def test_beside_prose_a_small_model_gets_the_sum_and_what_words_find(library: Library, tmp_path: Path) -> None:
    library.add(workbook(tmp_path / "shop.xlsx", Bills=BILLS))
    library.add_text("The total amount that may be claimed is 9,000 euros.", name="policy.txt")
    passages, _ = await told(library, "What is the total amount?")
    assert passages[0]["text"] == "Sheet Bills: the sum of Amount is 1,030.7 (3 rows)."
    assert any("9,000 euros" in one["text"] for one in passages)
