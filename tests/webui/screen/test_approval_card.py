"""The question before a tool acts: what it says, what it offers, and that what is sent is what was shown."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Page, expect

from core.errors import ParlourError
from core.runs.log import ApprovalAsked
from core.runs.reply import CallBlock
from tests.e2e.chat_steps import focus
from tests.webui.screen.stage import Stage
from webui.panels.approval import announced, argument_fields, ask_html, edited_arguments
from webui.panels.top import status_html
from webui.words import Words

EN, ZH = Words("en"), Words("zh")
WANTS = {"en": "write a file", "zh": "写入文件"}


def waiting(reason: str = "writes", addresses: tuple[str, ...] = (), **arguments: Any) -> CallBlock:
    asked = ApprovalAsked("call-1", "write_file", arguments, reason, WANTS, list(addresses), 1_800_000_000.4)
    return CallBlock("call-1", "write_file", "asked", asked=asked)


def plain(markup: str) -> str:
    return unescape(re.sub(r"<[^>]*>", " ", markup))


def test_where_nobody_waits_there_is_no_card() -> None:
    assert ask_html([], EN) == ""
    assert announced([], EN) == ""


def test_the_card_says_what_is_wanted_with_what_and_why() -> None:
    card = ask_html([waiting(path="a.csv", rows=4)], EN)
    said = plain(card)
    assert "Parlour wants to write a file" in said
    assert "write_file" in said
    assert "It can make or change something outside this conversation." in said
    assert re.findall(r'data-name="([^"]*)" data-kind="([^"]*)"', card) == [("path", "text"), ("rows", "number")]
    assert 'data-until="1800000000"' in card
    assert re.findall(r'data-do="(\w+)"', card) == ["refuse", "always", "allow"]
    assert "autofocus" not in card
    assert "Parlour 想写入文件" in plain(ask_html([waiting()], ZH))


def test_the_card_is_one_line_of_markup_whatever_is_in_it() -> None:
    evil = "</textarea><img src=x onerror=alert(1)>\n\n$x$ `a`\n"
    given: Any = {"content": evil, evil: evil}
    card = ask_html([waiting(**given)], EN)
    assert "\n" not in card
    assert "<img" not in card
    assert card.count("</textarea>") == 2


@given(st.text())
def test_a_field_holds_every_sign_of_an_argument(text: str) -> None:
    card = ask_html([waiting(content=text)], EN)
    inside = card.partition("<textarea")[2].partition(">")[2].partition("</textarea>")[0]
    assert inside.startswith("&#10;")  # a browser leaves out a break at the very beginning
    found = re.sub(r"&#(\d+);", lambda entity: chr(int(entity[1])), inside.removeprefix("&#10;"))
    assert found == text


@pytest.mark.parametrize("hidden", ["a\u202eb", "a\u200bb", "\x1b[2J", "\U000e0041", {"deep": "a\u2066"}])
def test_what_cannot_be_seen_in_an_argument_is_told(hidden: Any) -> None:
    assert "are invisible" in plain(ask_html([waiting(command=hidden)], EN))
    for seen in ("line\n\tline", "👩\u200d🔬 ❤\ufe0f", "خطّ\u200cها", "中文，“引号”"):
        assert "are invisible" not in plain(ask_html([waiting(command=seen)], EN))


def test_a_long_argument_says_how_long_it_is() -> None:
    assert "900 lines" in plain(ask_html([waiting(content="\n" * 899)], EN))
    assert "600,000 lines" in plain(ask_html([waiting(content="\n" * 599_999)], EN))
    assert "lines" not in plain(ask_html([waiting(content="\n" * 5)], EN))


def test_one_question_stands_there_at_a_time_and_the_others_are_counted() -> None:
    other = CallBlock("call-2", "other", "asked", asked=ApprovalAsked("call-2", "other", {}, "always", {}, [], 0.0))
    card = ask_html([waiting(), other], EN)
    assert "1 of 2" in plain(card)
    assert "call&#45;2" not in card
    assert "1 of" not in plain(ask_html([waiting()], EN))


@pytest.mark.parametrize("reason", ["destructive", "unknown_address", "changed"])
def test_what_must_be_asked_each_time_offers_no_permission_for_the_whole_chat(reason: str) -> None:
    assert 'data-do="always"' not in ask_html([waiting(reason)], EN)
    assert f"ask.why.{reason}" in EN


def test_an_address_that_nobody_gave_is_shown_whole() -> None:
    url = "https://evil.example/?q=secret"
    card = plain(ask_html([waiting("unknown_address", (url,), query="short")], EN))
    assert url in card
    assert "neither from you nor from a search" in card
    assert plain(ask_html([waiting("unknown_address", (url,), url=url)], EN)).count(url) == 1


def test_a_screen_reader_is_told_once_what_waits() -> None:
    said = status_html("running", "c", lang="en", asks=announced([waiting()], EN))
    assert "Parlour wants to write a file. It waits for your answer" in unescape(said)
    assert 'data-state="running"' in said


def test_only_what_was_changed_is_changed_and_keeps_its_kind() -> None:
    given: dict[str, Any] = {"path": "a.csv", "rows": 4, "deep": {"a": [1]}, "all": True, "none": None}
    assert [field.kind for field in argument_fields(given)] == ["text", "number", "object", "truth", "json"]
    assert edited_arguments(given, {"path": "b.csv", "deep": '{"a": []}'}) == {
        **given,
        "path": "b.csv",
        "deep": {"a": []},
    }
    assert edited_arguments(given, {"rows": "4"}) is None
    assert edited_arguments(given, None) is None
    assert edited_arguments(given, {"unknown": "x"}) is None


@pytest.mark.parametrize(
    "edits", [{"rows": "four"}, {"rows": '"4"'}, {"deep": "[]"}, {"rows": "NaN"}, {"path": 4}, {"deep": "[" * 9000}]
)
def test_what_is_not_of_the_kind_that_stood_there_is_refused(edits: dict[str, Any]) -> None:
    with pytest.raises(ParlourError) as refused:
        edited_arguments({"path": "a.csv", "rows": 4, "deep": {}}, edits)
    assert refused.value.words_key == "wrong_arguments"


def test_on_a_phone_the_card_is_edited_and_answered(show: Callable[..., Page], stage: Stage) -> None:
    page = show("asking_address", width=390, height=780, has_touch=True)
    card: Any = page.locator(".p-asks")
    box: Any = card.bounding_box()
    below: Any = page.locator("#composer").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert box["y"] + box["height"] <= below["y"]
    for name in ("Don't allow", "Allow once"):
        assert card.get_by_role("button", name=name).bounding_box()["height"] >= 44
    assert page.evaluate("document.activeElement === document.body")
    expect(page).to_have_title(re.compile("^Asks you · "))
    expect(card.locator(".p-until")).to_have_text(re.compile(r"Waits until \d"))
    expect(page.locator(".p-asks[data-fresh]")).to_have_count(0)  # one that just came takes no answer yet
    headers = card.get_by_role("textbox", name="headers")
    headers.fill("{oops")
    expect(card).to_have_attribute("data-call", "a")
    card.get_by_role("button", name="Allow once").click()
    expect(card.get_by_role("alert").filter(has_text="JSON")).to_be_visible()
    expect(headers).to_be_focused()
    assert stage.asked == []
    # A frame that draws the card anew must not take away what was typed, nor the place of the keyboard.
    headers.fill('{"Accept": "*/*"}')
    page.evaluate("(card) => { card.outerHTML = card.outerHTML; }", card.element_handle())
    expect(headers).to_have_value('{"Accept": "*/*"}')
    expect(headers).to_be_focused()
    # A frame that says that it does not fit the tool says so at its field, until something else stands there.
    unfit = "(at) => { at.dataset.refused = at.value; at.dataset.unfit = 'It must be a list.'; }"
    headers.evaluate(unfit)
    page.evaluate("(card) => { card.outerHTML = card.outerHTML; }", card.element_handle())
    expect(card.get_by_role("alert").filter(has_text="It must be a list.")).to_be_visible()
    expect(headers).to_be_focused()
    card.get_by_role("button", name="Allow once").click()
    assert stage.asked == []
    headers.fill('{"Accept": "text/html"}')
    expect(card.get_by_role("alert").filter(has_text="It must be a list.")).to_have_count(0)
    headers.fill('{"Accept": "*/*"}')
    expect(card.get_by_role("alert").filter(has_text="It must be a list.")).to_be_visible()
    headers.fill('{"Accept": "image/png"}')
    # What was typed is for this question alone: another chat may ask about a call of the same id.
    page.evaluate("(card) => { card.dataset.asked += '1'; card.outerHTML = card.outerHTML; }", card.element_handle())
    expect(headers).not_to_have_value('{"Accept": "image/png"}')
    page.evaluate(
        "(card) => { card.dataset.asked = card.dataset.asked.slice(0, -1); card.outerHTML = card.outerHTML; }",
        card.element_handle(),
    )
    expect(headers).to_have_value('{"Accept": "image/png"}')
    expect(page.locator(".p-asks[data-fresh]")).to_have_count(0)
    which = card.get_attribute("data-asked")
    card.get_by_role("button", name="Allow once").click()
    stage.until(lambda: stage.asked)
    edited = {"headers": '{"Accept": "image/png"}'}
    assert which
    assert stage.asked == [{"do": "allow", "call": "a", "asked": which, "arguments": edited}]


def test_enter_decides_nothing_and_begins_no_line_where_one_is_expected(
    show: Callable[..., Page], stage: Stage
) -> None:
    page = show("asking_address")
    card: Any = page.locator(".p-asks")
    expect(page.locator(".p-asks[data-fresh]")).to_have_count(0)  # one that just came takes no answer yet
    url, depth, headers = (card.get_by_role("textbox", name=name) for name in ("url", "depth", "headers"))
    for field, begins, asked in ((url, False, True), (depth, False, False), (headers, True, True)):
        before = field.input_value()
        field.press("End")
        field.press("Enter")
        assert (field.input_value() != before) == begins
        field.fill(before)
        field.press("Shift+Enter")
        assert ("\n" in field.input_value()[len(before) :]) == asked
        field.fill(before)
    expect(card).to_be_visible()
    assert stage.asked == []


def test_a_field_expects_one_line_where_one_stands_there_and_for_numbers() -> None:
    card = ask_html([waiting(path="a.csv", text="a\nb", rows=4, deep={}, all=True)], EN)
    lines = re.findall(r'data-name="(\w+)" data-kind="\w+"( data-one-line)?', card)
    assert lines == [
        ("path", " data-one-line"),
        ("text", ""),
        ("rows", " data-one-line"),
        ("deep", ""),
        ("all", " data-one-line"),
    ]


# One question comes after another, and each is answered as soon as it is there: in one task, in which no timer fires.
ANSWERED_AT_ONCE = """async ([card, acts]) => {
    const place = card.parentElement, now = performance.now();
    const noticed = async () => { for (let step = 0; step < 9; step++) await null; };
    let seen = [];
    performance.now = () => now;
    for (const act of acts) {
        const after = card.nextSibling;
        card.remove();
        await noticed();
        delete card.dataset.fresh;
        delete card.dataset.decided;
        card.dataset.asked += '1';
        place.insertBefore(card, after);
        await noticed();
        if (!('fresh' in card.dataset)) throw new Error('It takes answers at once.');
        const buttons = [...card.querySelectorAll('.p-row [data-do]')];
        seen = buttons.map((one) => [one.dataset.do, getComputedStyle(one).opacity]);
        card.querySelector(`[data-do="${act}"]`).click();
    }
    delete performance.now;
    return Object.fromEntries(seen);
}"""


def test_a_question_that_just_came_can_be_refused_at_once_and_is_seen_to_take_no_other_answer(
    show: Callable[..., Page], stage: Stage
) -> None:
    page = show("asking_address")
    card: Any = page.locator(".p-asks")
    expect(card.locator(".p-until")).to_have_text(re.compile(r"Waits until \d"))  # its script has seen it
    seen = page.evaluate(ANSWERED_AT_ONCE, [card.element_handle(), ["allow"]])
    assert (seen["refuse"], seen["allow"]) == ("1", "0.5")
    expect(page.locator(".p-asks[data-fresh]")).to_have_count(0)
    assert stage.asked == []
    # What may be the second click on the question before refuses no other.
    page.evaluate(ANSWERED_AT_ONCE, [card.element_handle(), ["refuse", "refuse"]])
    stage.until(lambda: stage.asked)
    expect(page.locator(".p-asks[data-fresh]")).to_have_count(0)
    assert [one["do"] for one in stage.asked] == ["refuse"]


@pytest.mark.parametrize("width", [1280, 390])
def test_that_arguments_can_be_changed_is_seen_and_no_edge_is_cut_off(show: Callable[..., Page], width: int) -> None:
    page = show("asking", width=width, height=820)
    first = page.locator("#ask .p-arg textarea").first
    expect(first).to_be_visible()
    pencil = first.evaluate("(e) => getComputedStyle(e.parentElement, '::after').maskImage")
    assert "svg" in pencil
    assert first.evaluate("(e) => getComputedStyle(e).borderBottomStyle") == "dotted"
    focus(first)
    above = "(e) => e.getBoundingClientRect().top - e.closest('.p-args').getBoundingClientRect().top"
    assert first.evaluate(above) >= 1  # as wide as the ring around it
    assert first.evaluate("(e) => getComputedStyle(e).borderBottomStyle") == "solid"


@pytest.mark.parametrize(
    ("text", "rows", "told"),
    [
        ("ls", 1, ""),
        ("x" * 200, 3, ""),
        ("好" * 72, 2, ""),
        ("x" * 5_000 + "; rm -r ~", 12, "5,009 characters"),
        ("x" * 400 + "\n" * 8 + "rm -r ~", 12, "415 characters"),
        ("x\n" * 40, 12, "41 lines"),
    ],
)
def test_a_long_line_has_as_many_rows_as_it_takes_and_what_is_not_seen_is_told(text: str, rows: int, told: str) -> None:
    card = ask_html([waiting(content=text)], EN)
    assert f'rows="{rows}" data-name="content"' in card
    assert (f'<span class="p-count-lines">{told}</span>' in card) == bool(told)
    assert ("p-count-lines" in card) == bool(told)
