"""A figure of a table on the page: the query and what it read are shown, and the mark opens the rows that went in."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import xlsxwriter
from playwright.sync_api import Page, expect

from core.testing.behaviour import text_of
from core.testing.script import Reply, Request
from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask, chat, wait_for_state

QUERY = "SELECT Region, sum(Amount) AS total\nFROM sales\nWHERE NOT _total\nGROUP BY Region"


def answered(request: Request) -> Reply:
    messages = request["messages"]
    if messages[-1]["role"] == "tool" and "Region: North" in text_of(messages[-1]):
        found = re.search(r"\[(\d+)\] [^\n]*\nRegion: North", text_of(messages[-1]))
        return Reply(text=f"North sold 40 in all [{found[1] if found else 0}].")
    return Reply(calls=[("ask_tables", {"query": QUERY})])


def test_the_rows_of_a_sum_are_one_press_away(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page], tmp_path: Path
) -> None:
    path = tmp_path / "sales.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet("Sales")
        for at, row in enumerate(
            [["Region", "Amount"], ["North", 10], ["South", 20.5], ["North", 30], ["Total", 60.5]]
        ):
            sheet.write_row(at, 0, row)
    page = open_page(start_app(answered, RETRIEVAL="keyword"))
    with page.expect_response(lambda response: "/gradio_api/upload?" in response.url):
        page.locator("#composer input[type=file]").first.set_input_files(path)
    ask(page, "How much did each region sell?")
    expect(chat(page)).to_contain_text("North sold 40 in all", timeout=90_000)
    wait_for_state(page, "idle")
    chat(page).get_by_text("Used 2 tools").click()
    chat(page).locator(".p-sum", has_text="SELECT Region").click()
    bubble = page.locator("#chat .p-found", has_text="Region: North | total: 40")
    expect(bubble).to_contain_text("sales.xlsx, sheet 1, rows 2, 4")
    expect(bubble).to_contain_text("Read for this: 4 rows of sales, columns Region, Amount")
    expect(page.locator("#chat pre", has_text="WHERE NOT _total")).to_be_visible()
    chat(page).locator("a.cite").last.click()
    rows = page.locator("#side table.p-grid tr.p-m3 th, .p-grid tr.p-m3 th")
    expect(rows).to_have_count(2)
    assert [text[0] for text in rows.all_inner_texts()] == ["2", "4"]
