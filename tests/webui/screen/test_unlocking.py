"""What the dialog for a password says once a file is open."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

Show = Callable[..., Page]

LINK = """() => { const link = document.createElement('a');
    link.href = '#do-unlock-d1';
    link.className = 'p-do';
    document.querySelector('#chat').append(link);
    link.click();
    link.remove(); }"""


def opened(page: Page, answer: dict[str, object]) -> Locator:
    """The dialog after a password that was right."""
    page.route("**/documents/unlock", lambda route: route.fulfill(json=answer))
    page.evaluate(LINK)
    dialog = page.locator("dialog.p-unlock")
    dialog.locator("input").fill("heron")
    dialog.locator("input").press("Enter")
    return dialog


@pytest.mark.parametrize(
    ("locale", "said", "again"),
    [
        ("en-US", "Your last question was answered without it.", "Ask it again"),
        ("zh-CN", "上一个问题已在没有它的情况下得到回答。", "再问一次"),
    ],
)
def test_a_question_that_was_answered_without_the_file_is_asked_again_by_its_reader_alone(
    show: Show, locale: str, said: str, again: str
) -> None:
    page = show("answered", locale=locale)
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.post_data or ""))
    dialog = opened(page, {"answers": False, "reply": "r-7"})
    expect(dialog.get_by_role("status")).to_contain_text(said)
    expect(dialog.locator("input")).to_have_count(0)
    assert not any("regenerate" in one for one in asked)
    with page.expect_request(lambda one: "regenerate" in (one.post_data or "")) as sent:
        dialog.get_by_role("button", name=again).click()
    assert "r-7" in json.dumps(sent.value.post_data)
    expect(dialog).to_have_count(0)


def test_a_file_that_no_question_waited_for_can_be_asked_about_and_nothing_is_offered(show: Show) -> None:
    dialog = opened(show("answered"), {"answers": False, "reply": ""})
    expect(dialog.get_by_role("status")).to_contain_text("You can ask about it now.")
    expect(dialog.get_by_role("button")).to_have_text(["Close"])
    dialog.get_by_role("button").click()
    expect(dialog).to_have_count(0)


def test_a_question_that_waited_for_the_file_is_being_answered_so_the_dialog_is_gone(show: Show) -> None:
    expect(opened(show("answered"), {"answers": True, "reply": ""})).to_have_count(0)
