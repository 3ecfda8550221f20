"""What a server asks, as a form above the message field: its words are its own, and what is typed stays typed."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Page, expect

from core.runs.log import InputAsked
from core.runs.reply import CallBlock
from tests.e2e.chat_steps import focus
from tests.webui.screen.stage import Stage
from webui.panels.approval import announced, ask_html
from webui.words import Words

EN, ZH = Words("en"), Words("zh")


def waiting(question: str = "Who are you?", server: str = "s", **properties: Any) -> CallBlock:
    schema = {"type": "object", "properties": properties, "required": ["name"] if "name" in properties else []}
    asked = InputAsked("call-1", "input-1", server, question, schema, 1_800_000_000.4)
    return CallBlock("call-1", "s-act", "asked", input=asked)


def plain(markup: str) -> str:
    return unescape(re.sub(r"<[^>]*>", " ", markup))


def test_the_form_says_who_asks_what_and_until_when() -> None:
    card = ask_html([waiting(name={"type": "string"}, age={"type": "integer", "minimum": 1})], EN)
    said = plain(card)
    assert "The server “s” asks you something" in said
    assert "Who are you?" in said
    assert "1 or more." in said
    assert 'data-until="1800000000"' in card
    assert re.findall(r'data-do="(\w+)"', card) == ["decline", "answer"]
    assert card.count("data-needed") == 1
    assert "autofocus" not in card
    assert "服务器“s”有问题要问你" in plain(ask_html([waiting()], ZH))
    assert announced([waiting()], EN).startswith("The server “s” asks you something. It waits")


@given(st.text(max_size=40), st.text(min_size=1, max_size=20))
def test_nothing_that_a_server_says_becomes_markup(text: str, name: str) -> None:
    evil = f"</textarea></select><img src=x onerror=alert(1)>\n{text}"
    about = {"type": "string", "title": evil, "description": evil, "default": evil}
    choice = {"type": "string", "enum": [evil, "b"], "default": evil}
    card = ask_html([waiting(evil, evil, **{name: about, "choice": choice})], EN)
    assert "\n" not in card
    assert "<img" not in card
    assert card.count("</select>") == 1
    assert card.count("</textarea>") == (0 if name == "choice" else 1)


def test_boxes_to_tick_are_a_group_with_a_name_and_its_bounds() -> None:
    evil = '"><script>x</script>'
    days = {
        "type": "array",
        "title": "Days",
        "items": {"enum": ["a", evil]},
        "default": [evil],
        "minItems": 1,
        "maxItems": 2,
    }
    card = ask_html([waiting(days=days)], EN)
    assert "<script" not in card
    assert re.search(
        r'<fieldset class="p-many" id="p-arg-0" [^>]*aria-labelledby="p-arg-0-label" data-least="1" data-most="2">',
        card,
    )
    assert re.findall(r'type="checkbox" value="[^"]*"( checked)?>', card) == ["", " checked"]
    assert "Tick 1 or more. Tick 2 or fewer." in plain(card)
    assert "至少选 1 项。" in plain(ask_html([waiting(days=days)], ZH))


def test_on_a_phone_a_form_is_filled_in_and_sent(show: Callable[..., Page], stage: Stage) -> None:
    page = show("asking_form", width=390, height=780, has_touch=True)
    card: Any = page.locator(".p-asks")
    box: Any = card.bounding_box()
    below: Any = page.locator("#composer").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert box["y"] + box["height"] <= below["y"]
    assert card.locator("a, b").count() == 0
    expect(card).to_contain_text("<b>Parlour</b> asks you for your **password**")
    expect(card.locator(".p-until")).to_have_text(re.compile(r"Waits until \d"))
    expect(page.locator(".p-asks[data-fresh]")).to_have_count(0)  # one that just came takes no answer yet
    send = card.get_by_role("button", name="Answer", exact=True)
    title = card.get_by_role("textbox", name=re.compile("Title of the event"))
    guests = card.get_by_role("textbox", name=re.compile("Guests"))
    send.click()
    expect(title).to_be_focused()
    expect(card.get_by_role("alert").filter(has_text="This field is required.")).to_have_count(2)
    assert stage.asked == []
    for field in (title, guests):
        field.press("Enter")
        expect(field).to_have_value("")
    assert stage.asked == []
    title.fill("Reading")
    guests.fill("many")
    send.click()
    expect(card.get_by_role("alert").filter(has_text="Enter a number.")).to_be_visible()
    guests.fill("12")
    send.click()
    friday, saturday, sunday = (
        card.get_by_role("group", name=re.compile("Days")).get_by_role("checkbox").nth(at) for at in range(3)
    )
    expect(friday).to_be_focused()
    expect(card.get_by_role("alert").filter(has_text="Tick 1 or more.")).to_be_visible()
    for day in (friday, saturday, sunday):
        focus(day)
        page.keyboard.press("Space")
        expect(day).to_be_checked()
    send.click()
    expect(card.get_by_role("alert").filter(has_text="Tick 2 or fewer.")).to_be_visible()
    saturday.tap()
    expect(card.get_by_role("alert").filter(has_text="Tick")).to_have_count(0)
    card.get_by_role("combobox", name=re.compile("Room")).select_option("n")
    # A frame that draws the card anew must not take away what was typed and chosen.
    page.evaluate("(card) => { card.outerHTML = card.outerHTML; }", card.element_handle())
    expect(title).to_have_value("Reading")
    for day, ticked in ((friday, True), (saturday, False), (sunday, True)):
        expect(day).to_be_checked(checked=ticked)
    expect(card.get_by_role("combobox", name=re.compile("Room"))).to_have_value("n")
    send.click()
    stage.until(lambda: stage.asked)
    typed = {"title": "Reading", "guests": "12", "room": "n", "public": "", "days": '["f","Sunday"]'}
    assert stage.asked == [{"do": "answer", "call": "q-1", "arguments": typed}]
