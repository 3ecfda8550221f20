"""Beside an answer: what its passages say more, and a model that judges it after its price was shown."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from core.testing.script import Reply
from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask, chat, wait_for_script, wait_for_state
from tests.e2e.test_documents import add

POLICY = Path("assets/samples/policy.pdf")
SAID = (
    "The deductible is 300 dollars for each claim. [1] The deductible is the part of every claim that you pay yourself."
)
STORM = "For damage by storm or hail the deductible is 750 dollars."


class Judge:
    """Answers, and judges when it may."""

    def __init__(self) -> None:
        self.may = threading.Event()
        self.asked: list[str] = []
        self.reply = Reply('{"1": "yes", "2": "no"}', usage=(1200, 12))

    def __call__(self, request: dict[str, Any]) -> Reply:
        told = str(request["messages"][0]["content"])
        if "You check sentences" not in told and "你负责对照段落" not in told:
            return Reply(SAID)
        self.asked.append(told)
        self.may.wait(60)
        return self.reply


@pytest.fixture
def judge() -> Iterator[Judge]:
    made = Judge()
    yield made
    made.may.set()  # a server cannot end while somebody waits in it


def answered(app: AppProcess, open_page: Callable[..., Page], **options: Any) -> Page:
    page = open_page(app, **options)
    add(page, POLICY)
    ask(page, "What is the deductible?")
    wait_for_state(page, "idle")
    return page


def photographed(page: Page, name: str) -> None:
    """Keep a picture where somebody wants to look at it."""
    if folder := os.environ.get("PICTURES"):
        page.screenshot(path=f"{folder}/{name}.png")


def test_what_the_passage_says_more_stands_below_and_opens_at_its_place(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page], judge: Judge
) -> None:
    page = answered(start_app(judge, RETRIEVAL="keyword"), open_page)
    line = chat(page).locator(".p-beyond")
    expect(line).to_contain_text("The passage says more:")
    line.get_by_role("button", name=STORM).click()
    evidence = page.locator("#evidence")
    expect(evidence).to_contain_text("Page 2 of 3")
    expect(evidence.locator(".p-hl.p-on").first).to_be_visible()
    expect(evidence.locator(".p-quotes mark").first).to_contain_text("750 dollars")
    photographed(page, "beside")


def test_a_model_judges_after_its_price_and_what_it_said_survives_a_reload(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page], judge: Judge
) -> None:
    page = answered(start_app(judge, RETRIEVAL="keyword"), open_page)
    line = chat(page).locator(".p-judging")
    expect(line).to_contain_text("Checked without a model.")
    line.get_by_role("button", name="Let the model judge it…").click()
    expect(line).to_contain_text("tokens (")
    assert not judge.asked
    photographed(page, "offer")
    line.get_by_role("button", name="Judge", exact=True).click()
    expect(line).to_contain_text("judges the sentences…")
    line.get_by_role("button", name="Stop").click()
    expect(line).to_contain_text("Checked without a model.")
    judge.may.set()
    line.get_by_role("button", name="Let the model judge it…").click()
    line.get_by_role("button", name="Judge", exact=True).click()
    expect(line).to_contain_text("support 1 of the 2 sentences")
    sign = chat(page).get_by_role(
        "button", name="The model that was asked finds that the passages do not support this."
    )
    expect(sign).to_contain_text("?")
    photographed(page, "judged")
    page.reload(wait_until="domcontentloaded")
    wait_for_script(page)
    expect(line).to_contain_text("support 1 of the 2 sentences")
    chat(page).locator("a.p-inspect").last.click()
    expect(page.locator("#evidence, #page").filter(has_text="Check of sentences").first).to_be_visible()


def test_a_service_that_fails_says_so_in_a_sentence_on_a_telephone(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page], judge: Judge
) -> None:
    judge.may.set()
    judge.reply = Reply(status=401, error={"error": {"message": "no such key"}})
    app = start_app(judge, RETRIEVAL="keyword")
    page = answered(app, open_page, viewport={"width": 390, "height": 844}, has_touch=True, color_scheme="dark")
    line = chat(page).locator(".p-judging")
    line.get_by_role("button", name="Let the model judge it…").click()
    photographed(page, "telephone")
    line.get_by_role("button", name="Judge", exact=True).click()
    expect(line).to_contain_text("The rules’ verdict stays.")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    photographed(page, "failed")
