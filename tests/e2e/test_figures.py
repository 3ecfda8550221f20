"""A figure that an answer speaks of is marked on the picture of its page, with its caption."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymupdf
from PIL import Image, ImageDraw
from playwright.sync_api import Page, expect

from core.testing.behaviour import text_of
from core.testing.script import Reply, Request
from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask, chat, wait_for_state

FIGURE = (90.0, 150.0, 330.0, 330.0)  # points
CAPTION = (98.0, 341.0, 280.0, 347.0)  # its letters
SAID = "Figure 3 shows the ships that called at the harbour by year"
PLACES = """marks => { const sheet = document.querySelector('.p-sheet img').getBoundingClientRect();
  return marks.map(one => one.getBoundingClientRect()).map(box => [
    (box.left - sheet.left) / sheet.width * 420, (box.top - sheet.top) / sheet.height * 595,
    (box.right - sheet.left) / sheet.width * 420, (box.bottom - sheet.top) / sheet.height * 595]); }"""


def report(path: Path) -> Path:
    """A page of words with a chart and its caption among them, behind a page without."""
    chart = Image.new("RGB", (480, 360), "white")
    pen = ImageDraw.Draw(chart)
    for at, high in enumerate((120, 200, 290)):
        pen.rectangle((60 + 140 * at, 340 - high, 140 + 140 * at, 340), fill="navy")
    picture = io.BytesIO()
    chart.save(picture, "PNG")
    document: Any = pymupdf.open()
    document.new_page(width=420, height=595).insert_text((60, 80), "The harbour and what is told of it.", fontsize=11)
    page = document.new_page(width=420, height=595)
    page.insert_text((60, 80), "Trade went on in the years after the flood, as every year.", fontsize=10)
    page.insert_image(FIGURE, stream=picture.getvalue())
    page.insert_text((95, 347), "Figure 3: Ships that called at the harbour by year", fontsize=9)
    page.insert_text((60, 420), "The customs house was painted twice and burnt down once.", fontsize=10)
    document.save(path)
    return path


def answered(request: Request) -> Reply:
    told = "\n".join(text_of(message) for message in request["messages"])
    found = re.findall(r"\[(\d+)\] \(harbour\.pdf[^)]*\)\n(?:(?!\[\d+\] \().)*Figure 3: Ships", told, re.DOTALL)
    return Reply(text=f"{SAID} [{found[-1] if found else 0}].")


def inside(inner: tuple[float, ...], outer: list[float]) -> bool:
    return all(a >= b - 4 if at < 2 else a <= b + 4 for at, (a, b) in enumerate(zip(inner, outer, strict=True)))


def test_the_figure_and_its_caption_are_marked_on_the_picture_of_the_page(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page], tmp_path: Path
) -> None:
    page = open_page(start_app(answered, RETRIEVAL="keyword"))
    with page.expect_response(lambda response: "/gradio_api/upload?" in response.url):
        page.locator("#composer input[type=file]").first.set_input_files(report(tmp_path / "harbour.pdf"))
    ask(page, "What does figure 3 show?")
    expect(chat(page)).to_contain_text(SAID, timeout=90_000)
    wait_for_state(page, "idle")
    chat(page).locator("a.cite").last.click()
    expect(page.locator(".p-sheet.p-there img")).to_be_visible()
    expect(page.locator(".p-turner span").first).to_contain_text("2")
    assert page.locator(".p-sheet img").evaluate("one => one.naturalWidth") > 0
    frame = page.locator(".p-hl.p-on.p-framed")
    expect(frame).to_have_count(1)
    expect(frame).to_have_css("background-color", "rgba(0, 0, 0, 0)")  # the colours of the figure stay as they are
    expect(frame).to_have_css("outline-style", "solid")
    strong = page.locator(".p-hl.p-strong").evaluate_all(PLACES)
    opened = page.locator(".p-hl.p-on").evaluate_all(PLACES)
    assert any(inside(FIGURE, mark) for mark in opened), opened
    for marks in (opened, strong):
        assert any(inside(CAPTION, mark) for mark in marks), marks
    below = FIGURE[3] - 4
    assert all(mark[1] >= below and mark[3] <= 365 for mark in strong), "what is cited stands in the caption alone"
