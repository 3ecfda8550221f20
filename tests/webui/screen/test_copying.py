"""A reply is copied as its model wrote it: citations as numbers in brackets, and no sign of the page's own."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from tests.e2e.chat_steps import until
from tests.webui.screen.page_scenes import english_with_marks
from tests.webui.screen.stage import ANSWER

Show = Callable[..., Page]


def copied(page: Page) -> str:
    """What the first reply's button puts onto the clipboard."""
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.locator("#chat .bot-row a.p-copy").first.click()
    until(lambda: page.evaluate("window.copied"))
    return page.evaluate("window.copied")


def test_a_copied_reply_is_the_text_that_its_model_wrote_with_its_citations(show: Show) -> None:
    said = copied(show("answered"))
    assert re.sub(r"\n{3,}", "\n\n", said) == ANSWER.strip()  # below a formula there may be one more empty line


@pytest.mark.parametrize("scene", ["marks", "web_marks"])
def test_signs_at_sentences_that_no_passage_supports_are_not_copied(show: Show, scene: str) -> None:
    english, chinese = copied(show(scene)).split("\n\n")
    assert english == english_with_marks(40)
    assert "<" not in chinese
