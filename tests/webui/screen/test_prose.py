"""How a reply reads: in scripts that run either way, on a phone, and to somebody who hears it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

Show = Callable[..., Page]

PHONE = {"width": 390, "height": 2400, "is_mobile": True, "has_touch": True}
# Where the first letter of an element's text stands in it: 0 at its left edge, 1 at its right.
BEGINS = """e => { const range = document.createRange();
    const text = document.createTreeWalker(e, NodeFilter.SHOW_TEXT).nextNode();
    range.setStart(text, 0); range.setEnd(text, 1);
    const letter = range.getBoundingClientRect(), box = e.getBoundingClientRect();
    return ((letter.left + letter.right) / 2 - box.left) / box.width; }"""
# Whatever can be pressed and is smaller than a fingertip, with the room around it that answers too.
TOO_SMALL = """() => [...document.querySelectorAll('button, summary, [role="button"], #chat .p-chip')]
    .filter((e) => e.tabIndex >= 0 && !e.closest('[inert]') && e.checkVisibility({ visibilityProperty: true }))
    .filter((e) => !e.matches('#composer *, .cite'))
    .map((e) => { const box = e.getBoundingClientRect(), sizes = [[box.width, box.height]];
        for (const part of ['::before', '::after']) {
            const { content, position, width, height } = getComputedStyle(e, part);
            if (content !== 'none' && position === 'absolute') sizes.push([parseFloat(width), parseFloat(height)]);
        }
        return [e.className, ...[0, 1].map((at) => Math.round(Math.max(...sizes.map((size) => size[at] || 0))))]; })
    .filter(([, width, height]) => Math.min(width, height) < 40)"""


def side(element: Locator) -> str:
    """The side from which an element's text runs."""
    return "left" if float(element.evaluate(BEGINS)) < 0.5 else "right"


def test_every_paragraph_list_and_table_runs_as_its_own_letters_do(show: Show) -> None:
    page = show("arabic")
    answer = page.locator("#chat .bot-row .prose").first
    expect(answer.locator("table")).to_have_attribute("dir", "auto")
    assert side(page.locator("#chat .user-row .p-asked").first) == "right"
    assert side(answer.locator("p").first) == "right"
    assert side(answer.locator("li").first) == "right"
    assert side(answer.get_by_text("In English again.")) == "left"
    name, value = answer.locator("th").all()
    name_box, value_box = name.bounding_box(), value.bounding_box()
    assert name_box is not None
    assert value_box is not None
    assert name_box["x"] > value_box["x"]
    expect(page.locator("#chat .bot-row").first).to_have_attribute("lang", "ar")


def test_a_question_is_written_from_the_side_of_its_letters(show: Show) -> None:
    page = show()
    field = page.locator("#composer textarea")
    assert field.evaluate("e => getComputedStyle(e).unicodeBidi") == "plaintext"
    assert field.evaluate("e => getComputedStyle(e).textAlign") == "start"


def test_the_side_of_a_very_long_question_is_not_looked_for_in_each_of_its_lines(show: Show) -> None:
    field = show().locator("#composer textarea")
    field.fill("heron " * 4_000)
    assert field.evaluate("e => getComputedStyle(e).unicodeBidi") == "normal"
    field.fill("heron")
    assert field.evaluate("e => getComputedStyle(e).unicodeBidi") == "plaintext"


@pytest.mark.parametrize(("locale", "said"), [("en-US", "Copy"), ("zh-CN", "复制")])
def test_the_button_that_copies_code_has_a_name(show: Show, locale: str, said: str) -> None:
    page = show("prose", locale=locale)
    button = page.locator("#chat .copy_code_button").first
    expect(button).to_have_accessible_name(said)


def test_lists_within_lists_are_no_smaller(show: Show) -> None:
    page = show("prose")
    items = page.locator("#chat .bot-row li li")
    items.first.wait_for()
    sizes = page.locator("#chat .bot-row li").evaluate_all("all => all.map((e) => getComputedStyle(e).fontSize)")
    assert set(sizes) == {"16px"}


def test_the_page_is_never_wider_than_a_phone_and_what_is_wide_scrolls_alone(show: Show) -> None:
    page = show("prose", **PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    for wide in ("table", "pre", "span.katex-display"):
        part = page.locator(f"#chat .bot-row {wide}").first
        assert part.evaluate("e => e.scrollWidth > e.clientWidth && e.getBoundingClientRect().right <= innerWidth")


@pytest.mark.parametrize("scene", ["prose", "versions", "traced", "nested_done"])
def test_everything_on_a_phone_is_large_enough_for_a_finger(show: Show, scene: str) -> None:
    page = show(scene, **PHONE)
    page.evaluate("document.querySelectorAll('#chat .thought-group > .title:not(.expanded)').forEach((e) => e.click())")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.evaluate(TOO_SMALL) == []


# Marks that are cut in two, or stand on another line than the word before them.
BROKEN = r"""() => [...document.querySelectorAll('#chat .bot-row sup > a')].filter((mark) => {
    const pieces = [...mark.getClientRects()].filter((box) => box.width > 0);
    const words = document.createTreeWalker(mark.closest('p'), NodeFilter.SHOW_TEXT);
    let before = null, line = null;
    for (let text; (text = words.nextNode()) && !mark.contains(text);) before = text;
    if (before && !before.parentElement.closest('sup')) {
        const range = document.createRange(), end = before.data.replace(/[\u2060\s]+$/, '').length;
        range.setStart(before, end - 1);
        range.setEnd(before, end);
        line = range.getBoundingClientRect();
    }
    return pieces.length > 1 || (line && Math.abs(line.top - pieces[0].top) > 14);
}).map((mark) => mark.textContent)"""


def test_a_mark_never_breaks_over_two_lines_nor_leaves_its_word(show: Show) -> None:
    page = show("marks", width=400, height=800, locale="zh-CN")
    expect(page.locator("#chat sup > a.cite").nth(99)).to_be_attached()
    for width in range(330, 440, 6):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate(BROKEN) == []


@pytest.mark.parametrize("scene", ["versions", "answered"])
def test_an_icons_label_is_cut_away_in_every_browser(show: Show, scene: str) -> None:
    page = show(scene)
    icons = page.locator("#chat .p-acts a.p-do:not(.p-word)")
    expect(icons).not_to_have_count(0)
    for icon in icons.all():
        assert icon.evaluate("e => e.innerText.trim() === e.querySelector('.p-sr').innerText.trim()")
        assert icon.evaluate("e => getComputedStyle(e.querySelector('.p-sr')).clipPath") == "inset(50%)"
        assert icon.evaluate("e => getComputedStyle(e).textIndent") == "0px"


@pytest.mark.parametrize("width", [1280, 390])
def test_the_number_of_what_stands_below_a_reply_is_at_its_end(show: Show, width: int) -> None:
    page = show("answered", width=width)
    line = (
        '<p class="p-beyond"><span class="p-beyond-head">Counted by program:</span> <a class="p-do p-beside" '
        f'href="#cite-r-1.computed-1">{"In orders.csv, 10 of 40 rows have status open. " * 3}'
        '<b class="p-at">1</b></a></p>'
    )
    page.locator("#chat .prose p").last.evaluate("(p, line) => p.insertAdjacentHTML('afterend', line)", line)
    around, number = (page.locator(f"#chat {one}").bounding_box() for one in ("a.p-beside", "a.p-beside .p-at"))
    assert around is not None
    assert number is not None
    assert around["x"] < number["x"] < number["x"] + number["width"] <= around["x"] + around["width"]
    assert around["y"] + around["height"] / 2 < number["y"] + number["height"] <= around["y"] + around["height"] + 1
