"""Blocks of code in a reply: their head, and what can be done with them; drawn anew they are as they were."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.axe import findings_everywhere
from tests.e2e.chat_steps import until

Show = Callable[..., Page]


def blocks(page: Page) -> Locator:
    found = page.locator("#chat .code_wrap")
    expect(found.locator(".p-code-head")).to_have_count(4)
    return found


def test_each_block_says_its_language_and_its_lines(show: Show) -> None:
    heads = blocks(show("coded")).locator(".p-code-head")
    said = [(head.locator(".p-code-name").inner_text(), head.locator(".p-count").inner_text()) for head in heads.all()]
    assert said == [("Python", "29 lines"), ("Diff", "6 lines"), ("Text", "1 line"), ("HTML", "86 lines")]


def test_a_block_folds_and_wraps_and_stays_so_when_it_is_drawn_anew(show: Show) -> None:
    page = show("coded")
    first = blocks(page).first
    pre = first.locator("pre")
    assert pre.evaluate("e => e.scrollWidth > e.clientWidth")
    first.get_by_role("button", name="Wrap long lines").click()
    assert pre.evaluate("e => e.scrollWidth <= e.clientWidth")
    first.get_by_role("button", name="Python").click()
    expect(pre).to_be_hidden()
    again = """() => { const old = document.querySelector('#chat .code_wrap'), now = document.createElement('div');
        now.className = 'code_wrap';
        now.append(old.querySelector('.copy_code_button').cloneNode(true), old.querySelector('pre').cloneNode(true));
        old.replaceWith(now); }"""
    page.evaluate(again)
    expect(blocks(page).first.locator("pre")).to_be_hidden()
    blocks(page).first.get_by_role("button", name="Python").click()
    assert pre.evaluate("e => e.scrollWidth <= e.clientWidth")


def test_a_long_block_shows_how_it_begins_and_opens(show: Show) -> None:
    long = blocks(show("coded")).last
    more = long.get_by_role("button", name="83 more lines")
    assert long.locator("pre").evaluate("e => e.clientHeight") < 90
    more.click()
    expect(more).to_be_hidden()
    assert long.locator("pre").evaluate("e => e.clientHeight") > 1000
    expect(long.get_by_role("button", name="HTML")).to_have_attribute("aria-expanded", "true")


def test_lines_of_a_diff_have_the_colour_of_what_they_do(show: Show) -> None:
    diff = blocks(show("coded")).nth(1)
    assert diff.locator(".p-added").all_inner_texts() == ["+new = 2"]
    assert diff.locator(".p-left").all_inner_texts() == ["-old = <1>"]
    assert diff.locator("code").inner_text().rstrip("\n").count("\n") == 5


def test_numbers_are_there_on_wish_in_every_block_and_are_not_copied(show: Show) -> None:
    page = show("coded")
    blocks(page).first.get_by_role("button", name="Line numbers").click()
    expect(page.locator("#chat .p-gutter")).to_have_count(4)
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    blocks(page).nth(1).locator(".copy_code_button").click()
    until(lambda: page.evaluate("window.copied"))
    assert page.evaluate("window.copied").strip().splitlines()[-2:] == ["+new = 2", " same"]
    blocks(page).nth(1).get_by_role("button", name="Line numbers").click()
    expect(page.locator("#chat .p-gutter")).to_have_count(0)


def test_a_block_is_saved_as_a_file_of_its_kind(show: Show) -> None:
    page = show("coded")
    with page.expect_download() as saved:
        blocks(page).first.get_by_role("button", name="Download").click()
    assert saved.value.suggested_filename == "code.py"
    assert saved.value.path().read_text("utf-8").startswith("print(0)")


def test_the_head_stays_in_sight_as_long_as_its_block_and_the_block_is_wider_than_the_text(show: Show) -> None:
    page = show("coded", height=420)
    first = blocks(page).first
    text = page.locator("#chat .bot-row .prose > p").first.bounding_box()
    box = first.bounding_box()
    assert text is not None
    assert box is not None
    assert 740 < box["width"] <= 761
    assert box["x"] < text["x"] - 90
    log = page.locator("#chat [role=log]")
    log.evaluate("e => { e.scrollTop = e.querySelector('.code_wrap').offsetTop + 200; }")
    offset = "e => e.querySelector('.p-code-head').getBoundingClientRect().top - e.getBoundingClientRect().top"
    until(lambda: abs(log.evaluate(offset)) < 2)


@pytest.mark.parametrize("options", [{}, {"locale": "zh-CN", "width": 390, "has_touch": True}], ids=["wide", "phone"])
def test_axe_finds_nothing_to_mend_in_blocks_of_code(options: dict[str, object], show: Show) -> None:
    page = show("coded", **options)
    blocks(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert findings_everywhere(page, "#chat") == []


def test_only_a_block_of_what_is_said_is_wider_than_the_text(show: Show) -> None:
    page = show("answered", width=1440)
    page.locator("#chat .title", has_text="4 tools").click()
    page.locator("#chat .children .title").first.click()
    block = page.locator("#chat .content .code_wrap").first
    expect(block).to_be_visible()
    within = """e => {
        const [inner, outer] = [e, e.closest('.content')].map((one) => one.getBoundingClientRect());
        return inner.left >= outer.left && inner.right <= outer.right + 1;
    }"""
    assert block.evaluate(within)
