"""Tables of documents asked with a SELECT: all rows count, each once, and it is known which went in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from core.errors import BadArgumentsError, DocumentError
from core.rag.library import Library
from core.rag.tables.query import Answer

Workbook = Callable[..., Path]
SALES = [
    ["Region", "Day", "Amount"],
    ["North", date(2024, 1, 5), 10],
    ["South", date(2024, 1, 6), 20.5],
    ["North", date(2024, 2, 7), 30],
    ["Total", "", 60.5],
]


def asked(library: Library, path: Path, query: str) -> Answer:
    return library.tables.ask([library.add(path).id], query)


def rows_of(answer: Answer) -> list[list[tuple[str, tuple[tuple[int, int], ...]]]]:
    return [[(one.table.name, one.runs) for one in each] for each in answer.sources]


def test_a_sum_knows_the_rows_that_went_in_by_their_numbers_in_the_sheet(library: Library, workbook: Workbook) -> None:
    query = "SELECT Region, sum(Amount) AS total FROM sales WHERE NOT _total GROUP BY Region ORDER BY total DESC"
    answer = asked(library, workbook(Sales=SALES), query)
    assert answer.rows == (("North", 40), ("South", 20.5))
    assert rows_of(answer) == [[("sales", ((2, 2), (4, 4)))], [("sales", ((3, 3),))]]
    assert (answer.read, answer.used) == ((4,), (("Region", "Amount"),))
    assert [one.text for one in answer.sources[0][0].rows] == ["North | 2024-01-05 | 10", "North | 2024-02-07 | 30"]


def test_a_row_that_adds_up_others_is_marked_and_told_where_it_was_counted_too(
    library: Library, workbook: Workbook
) -> None:
    path = workbook(Sales=SALES)
    document = library.add(path).id
    assert library.tables.ask([document], "SELECT sum(Amount) FROM sales").in_totals == (5,)
    assert library.tables.ask([document], "SELECT sum(Amount) FROM sales WHERE NOT _total").in_totals == ()
    assert library.tables.ask([document], "SELECT Amount FROM sales WHERE _total").rows == ((60.5,),)


@pytest.mark.parametrize(
    "label", ["Total", "Grand total", "Subtotal", "Summe", "Zwischensumme", "合计", "小计", "Total of all", "TOTAL:"]
)
def test_rows_that_are_totals_are_known_in_three_languages(library: Library, workbook: Workbook, label: str) -> None:
    path = workbook(Sales=[["Item", "Amount"], ["Tea", 1], ["Totality Ltd", 2], ["Sumatra", 3], [label, 6]])
    assert asked(library, path, "SELECT sum(Amount) FROM sales WHERE NOT _total").rows == ((6,),)


def test_what_stands_above_below_and_beside_a_table_is_no_part_of_it(library: Library, workbook: Workbook) -> None:
    rows = [["Sales of the year"], [], ["Item", "Price", "", "City", "People"], ["Tea", 2, "", "Ulm", 126_000]]
    rows += [["Rice", 3, "", "Bonn", 330_000], ["Salt", 1, "", "", ""]]
    document = library.add(workbook(Sheet=rows)).id
    names = {one.name: [column.name for column in one.table.columns] for one in library.tables.of([document])}
    assert list(names.values()) == [["Item", "Price"], ["City", "People"]]
    first, second = names
    assert library.tables.ask([document], f"SELECT sum(Price), min(_row), max(_row) FROM {first}").rows == ((6, 4, 6),)
    assert library.tables.ask([document], f"SELECT max(People) FROM {second}").rows == ((330_000,),)


def test_headers_in_two_levels_are_one_name_for_each_column(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "levels.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet("Levels")
        sheet.merge_range(0, 1, 0, 2, "2023")
        sheet.merge_range(0, 3, 0, 4, "2024")
        sheet.write_row(1, 0, ["City", "in", "out", "in", "out"])
        sheet.write_row(2, 0, ["Ulm", 1, 2, 3, 4])
        sheet.write_row(3, 0, ["Bonn", 5, 6, 7, 8])
    (table,) = library.tables.of([library.add(path).id])
    names = [one.name for one in table.table.columns]
    assert names == ["City", "2023 / in", "2023 / out", "2024 / in", "2024 / out"]
    assert asked(library, path, 'SELECT sum("2024 / out") FROM levels').rows == ((12,),)


def test_equal_and_missing_names_and_empty_columns_are_no_trouble(library: Library, workbook: Workbook) -> None:
    path = workbook(Odd=[["Name", "Value", "value", "", "Empty", "_row"], ["a", 1, 2, 3, "", 4], ["b", 5, 6, 7, "", 8]])
    (table,) = library.tables.of([library.add(path).id])
    assert [one.name for one in table.table.columns] == ["Name", "Value", "value_2", "column_D", "_row_2"]
    assert asked(library, path, "SELECT sum(Value), sum(value_2), sum(column_D) FROM sales").rows == ((6, 8, 10),)


def test_a_merged_number_is_counted_once_and_a_merged_name_stands_in_each_row(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "merged.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet("Merged")
        sheet.write_row(0, 0, ["Region", "City", "Budget"])
        sheet.merge_range(1, 0, 2, 0, "North")
        sheet.merge_range(1, 2, 2, 2, 100)
        sheet.write_column(1, 1, ["Kiel", "Bremen", "Ulm"])
        sheet.write(3, 0, "South")
        sheet.write(3, 2, 50)
    answer = asked(library, path, "SELECT Region, count(*), sum(Budget) FROM merged GROUP BY 1 ORDER BY 1")
    assert answer.rows == (("North", 2, 100), ("South", 1, 50))


def test_a_german_csv_with_semicolons_and_words_above_it_is_asked(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "umsatz.csv"
    path.write_text(
        "Umsätze 2024;;\n\nDatum;Ort;Betrag\n01.02.2024;Ulm;1.234,50 €\n15.02.2024;Bonn;-34,50 €\n"
        "\n03.03.2024;Ulm;100,00 €\nSumme;;1.300,00 €\n",
        encoding="utf-8",
    )
    query = "SELECT substr(Datum, 1, 7), sum(Betrag) FROM umsatz WHERE NOT _total GROUP BY 1 ORDER BY 1"
    answer = asked(library, path, query)
    assert answer.rows == (("2024-02", 1200), ("2024-03", 100))
    assert rows_of(answer) == [[("umsatz", ((4, 5),))], [("umsatz", ((7, 7),))]]


def test_names_that_a_query_gives_may_stand_in_quotation_marks(library: Library, workbook: Workbook) -> None:
    query = (
        'SELECT "Region" AS "where", sum("Amount") "in all" FROM "sales" AS "s" WHERE NOT "s"."_total" GROUP BY "where"'
    )
    query += ' ORDER BY "in all"'
    answer = asked(library, workbook(Sales=SALES), query)
    assert (answer.columns, answer.rows) == (("where", "in all"), (("South", 20.5), ("North", 40)))
    assert rows_of(answer) == [[("sales", ((3, 3),))], [("sales", ((2, 2), (4, 4)))]]


def test_a_line_above_the_header_of_a_csv_and_decimal_commas_are_no_trouble(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "kurse.csv"
    path.write_text("# Quelle: Börse\nTag;A;B\n19-Sep-03;1,5;2,5\n18-Sep-03;3,25;4,0\n", encoding="utf-8")
    answer = asked(library, path, "SELECT min(Tag), sum(A), sum(B) FROM kurse")
    assert answer.rows == (("2003-09-18", 4.75, 6.5),)


def test_labels_of_totals_are_neither_numbers_nor_dates(library: Library, workbook: Workbook) -> None:
    rows = [["Year", "Day", "Amount"], [2023, date(2023, 1, 1), 5], [2024, date(2024, 1, 1), 6], ["Total", "–", 11]]
    answer = asked(library, workbook(S=rows), "SELECT max(Year), max(Day), sum(Year) FROM sales")
    assert answer.rows == ((2024, "2024-01-01", 4047),)


def test_text_among_numbers_counts_as_nothing_and_is_told(library: Library, workbook: Workbook) -> None:
    rows: list[list[Any]] = [["Item", "Price"], *([f"item {at}", at] for at in range(20)), ["late", "to follow"]]
    document = library.add(workbook(Prices=rows)).id
    (table,) = library.tables.of([document])
    assert [(one.kind, one.strays) for one in table.table.columns] == [("text", 0), ("number", 1)]
    assert library.tables.ask([document], "SELECT avg(Price), count(Price), count(*) FROM sales").rows == (
        (9.5, 20, 21),
    )


def ruled(path: Path, pages: list[list[tuple[str, ...]]]) -> Path:
    """A PDF with a ruled table on each page."""
    import pymupdf

    document = pymupdf.open()
    for rows in pages:
        page = document.new_page(width=500, height=700)
        for row, texts in enumerate(rows):
            for column, text in enumerate(texts):
                x, y = 60 + column * 120, 150 + row * 24
                page.draw_rect((x, y, x + 120, y + 24), width=0.5)
                page.insert_text((x + 4, y + 16), text, fontsize=10)
    document.save(path)
    return path


def test_tables_on_pages_are_asked_and_their_rows_have_places_on_the_page(library: Library, tmp_path: Path) -> None:
    path = ruled(tmp_path / "towns.pdf", [[("City", "People"), ("Ulm", "130,000"), ("Bonn", "330,000")]])
    answer = asked(library, path, "SELECT City, People FROM towns ORDER BY 2 DESC LIMIT 1")
    assert answer.rows == (("Bonn", 330_000),)
    ((source,),) = answer.sources
    (row,) = source.rows
    assert (row.number, row.page) == (2, 1)
    ((left, top, right, bottom),) = row.places
    assert 59 <= left < right <= 301
    assert 197 <= top < bottom <= 223


def test_a_table_that_goes_on_with_its_header_on_the_next_page_is_one(library: Library, tmp_path: Path) -> None:
    pages = [
        [("City", "People"), ("Ulm", "130,000"), ("Bonn", "330,000")],
        [("City", "People"), ("Kiel", "250,000"), ("Jena", "110,000")],
    ]
    path = ruled(tmp_path / "towns.pdf", pages)
    answer = asked(library, path, "SELECT sum(People), count(*) FROM towns")
    assert answer.rows == ((820_000, 4),)
    assert [row.page for row in answer.sources[0][0].rows] == [1, 1, 2, 2]


@pytest.mark.parametrize("name", ["towns.html", "towns.md"])
def test_tables_of_pages_of_the_web_and_of_markdown_are_asked(library: Library, tmp_path: Path, name: str) -> None:
    rows = [("City", "People"), *((f"Town {at}", str(at)) for at in range(250))]
    path = tmp_path / name
    if name.endswith("md"):
        lines = [f"| {city} | {people} |" for city, people in rows]
        path.write_text("# Towns\n\n" + "\n".join([lines[0], "| --- | --- |", *lines[1:]]), encoding="utf-8")
    else:
        cells = "".join(f"<tr><td>{city}</td><td>{people}</td></tr>" for city, people in rows)
        path.write_text(f"<html><body><h1>Towns</h1><p>All of them.</p><table>{cells}</table></body></html>")
    answer = asked(library, path, "SELECT sum(People), count(*), max(City) FROM towns")
    assert answer.rows == ((sum(range(250)), 250, "Town 99"),)


def test_a_file_that_holds_no_table_has_none(library: Library) -> None:
    assert library.tables.of([library.add_text("Only words here.", name="a.txt").id]) == []


def test_tables_of_a_document_are_read_once_and_go_with_it(
    library: Library, workbook: Workbook, tmp_path: Path
) -> None:
    document = library.add(workbook(Sales=SALES)).id
    library.tables.of([document])
    (kept,) = (tmp_path / "library").rglob("tables-*.sqlite")
    made = kept.stat().st_mtime_ns
    library.tables.ask([document], "SELECT count(*) FROM sales")
    assert kept.stat().st_mtime_ns == made
    library.remove(document)
    assert not kept.exists()
    assert library.tables.of([document]) == []


def test_a_library_in_a_folder_below_the_current_one_is_asked(
    workbook: Workbook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Library.open("here", {"retrieval_type": "keyword"}) as library:
        assert asked(library, workbook(Sales=SALES), "SELECT count(*) FROM sales").rows == ((4,),)


def test_what_was_kept_of_tables_is_made_again_where_it_is_damaged_or_gone(
    library: Library, workbook: Workbook, tmp_path: Path
) -> None:
    document = library.add(workbook(Sales=SALES)).id
    library.tables.of([document])
    (kept,) = (tmp_path / "library").rglob("tables-*.sqlite")
    kept.unlink()
    assert library.tables.ask([document], "SELECT count(*) FROM sales").rows == ((4,),)
    kept.write_bytes(b"no database")
    with Library.open(tmp_path / "library", {"retrieval_type": "keyword"}) as again:
        assert again.tables.ask([document], "SELECT count(*) FROM sales").rows == ((4,),)


def test_tables_of_two_documents_are_joined_and_both_are_sources(library: Library, workbook: Workbook) -> None:
    prices = library.add(workbook("prices.xlsx", P=[["Item", "Price"], ["Tea", 2], ["Rice", 3]])).id
    stock = library.add(workbook("stock.xlsx", S=[["Item", "Pieces"], ["Rice", 10], ["Tea", 4]])).id
    query = "SELECT sum(p.Price * s.Pieces) AS worth FROM prices p JOIN stock AS s ON p.Item = s.Item"
    answer = library.tables.ask([prices, stock], query)
    assert answer.rows == ((38,),)
    assert rows_of(answer) == [[("prices", ((2, 3),)), ("stock", ((2, 3),))]]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT max(Amount) FROM sales WHERE NOT _total", [((4, 4),)]),
        ("SELECT DISTINCT Region FROM sales WHERE NOT _total ORDER BY Region", [((2, 2), (4, 4)), ((3, 3),)]),
        ("SELECT Region FROM sales ORDER BY Amount DESC LIMIT 2", [((5, 5),), ((4, 4),)]),
        ("SELECT count(*) FROM sales WHERE Amount > 1000", []),
        ("SELECT Region, count(*) FROM sales GROUP BY Region HAVING count(*) > 1", [((2, 2), (4, 4))]),
        ("select max(Amount, 25) from sales where Region = 'South'", [((3, 3),)]),
    ],
)
def test_each_row_of_a_result_knows_what_it_rests_on(
    library: Library, workbook: Workbook, query: str, rows: list[tuple[tuple[int, int], ...]]
) -> None:
    answer = asked(library, workbook(Sales=SALES), query)
    assert [runs for each in rows_of(answer) for _, runs in each] == rows


@pytest.mark.parametrize(
    "query",
    [
        "WITH n AS (SELECT * FROM sales WHERE NOT _total) SELECT sum(Amount) FROM n",
        "SELECT sum(Amount) FROM (SELECT * FROM sales WHERE NOT _total)",
        "SELECT sum(a) FROM (SELECT Amount AS a FROM sales WHERE Region='North' UNION ALL SELECT 20.5)",
    ],
)
def test_other_queries_are_answered_and_do_not_claim_to_know_their_rows(
    library: Library, workbook: Workbook, query: str
) -> None:
    answer = asked(library, workbook(Sales=SALES), query)
    assert answer.rows == ((60.5,),)
    assert answer.sources == ()
    assert [one.name for one in answer.tables] == ["sales"]


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("SELECT Amont FROM sales", '"Amount"'),
        ('SELECT sum("Amont") FROM sales', 'no column "amont".*"Amount"'),
        ('SELECT Amount FROM sales WHERE Region = "North"', "single quotation marks"),
        ("SELECT 1 FROM sails", "sales"),
        ("SELECT FROM sales", "SQL of SQLite"),
    ],
)
def test_a_wrong_query_is_told_what_there_is(library: Library, workbook: Workbook, query: str, hint: str) -> None:
    with pytest.raises(BadArgumentsError, match=hint):
        asked(library, workbook(Sales=SALES), query)


def test_a_result_is_given_up_to_its_limit_and_counted_to_its_end(library: Library, workbook: Workbook) -> None:
    path = workbook(Long=[["Number"], *([at] for at in range(3_000))])
    answer = asked(library, path, "SELECT Number FROM sales")
    assert (len(answer.rows), answer.total) == (50, 3_000)
    assert asked(library, path, "SELECT sum(Number), median(Number) FROM sales").rows == ((4_498_500, 1499.5),)


def test_rows_that_went_in_are_counted_to_the_last_also_where_they_are_too_many_to_be_named(
    library: Library, tmp_path: Path
) -> None:
    path = tmp_path / "long.csv"
    lines = [f"{'NS'[at % 2]},{at}" for at in range(24_000)]
    path.write_text("\n".join(["Side,Number", *lines]), encoding="utf-8")
    answer = asked(library, path, "SELECT Side, count(*) FROM long GROUP BY Side")
    assert [one.count for each in answer.sources for one in each] == [12_000, 12_000]
    assert len(answer.sources[0][0].runs) == 5_000


def test_a_reading_of_tables_that_nobody_waits_for_ends_and_is_begun_anew_when_it_is_asked_for(
    library: Library, tmp_path: Path
) -> None:
    path = tmp_path / "long.csv"
    path.write_text("Ship,Tons\n" + "".join(f"Heron {at},{at}\n" for at in range(60_000)), encoding="utf-8")
    document = library.add(path).id
    with pytest.raises(DocumentError) as raised:
        library.tables.of([document], lambda: True)
    assert raised.value.words_key == "document_cancelled"
    assert library.tables.ask([document], "SELECT count(*) FROM long").rows == ((60_000,),)
