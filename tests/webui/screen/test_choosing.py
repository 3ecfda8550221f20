"""The menu under the model's name: opened at once, by keyboard and by finger, and what it asks of the server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.axe import findings_in_both_themes
from tests.webui.screen.stage import Stage

Show = Callable[..., Page]
PHONE = {"width": 390, "height": 844}


def row(service: str, model: str, label: str = "", **more: Any) -> dict[str, Any]:
    base = {
        "can": f"{service} · tools, 128k",
        "price": "free",
        "state": "ready",
        "shape": "ok",
        "said": "ready",
        "room": 0,
    }
    return {"service": service, "model": model, "label": label or model, "star": 0, **base, **more}


QWEN = row("groq", "qwen3", "Qwen3 30B", price="$0.29 / $0.59", star=1)
CLAUDE = row("anthropic", "claude", "Claude <b>", state="no_key", shape="ask", said="needs key", price="price unknown")
VL = row("ollama", "qwen3-vl", state="no_answer", shape="bad", said="no answer")
GEMMA = row("llama_cpp", "gemma", state="untried", shape="off", said="not tried yet")
DEFAULT = row("", "", "Small 0.5B")
MODELS = {
    "favourites": [QWEN],
    "lately": [],
    "groups": [
        {"label": "Parlour's default", "models": [DEFAULT]},
        {"label": "Groq", "models": [QWEN, row("groq", "llama")]},
        {"label": "Built in", "models": [GEMMA]},
        {"label": "Ollama", "models": [VL]},
        {"label": "Anthropic", "models": [CLAUDE]},
    ],
}


@pytest.fixture(autouse=True)
def _models(stage: Stage) -> None:
    stage.models = MODELS


def opened(page: Page) -> Locator:
    page.locator("#top .p-ready button").click()
    menu = page.get_by_role("menu", name="Models")
    expect(menu.get_by_role("menuitemradio", name="Qwen3 30B").first).to_be_visible()
    return menu


def at(page: Page) -> str:
    return str(
        page.evaluate(
            "document.activeElement.querySelector('.p-name')?.textContent ?? document.activeElement.textContent"
        )
    )


def heard(stage: Stage, do: str) -> dict[str, Any]:
    stage.until(lambda: any(one["do"] == do for one in stage.asked))
    return next(one for one in stage.asked if one["do"] == do)


def test_favourites_stand_first_and_each_model_says_what_it_can_and_costs(show: Show) -> None:
    menu = opened(show("answered"))
    expect(menu.get_by_role("group").nth(0)).to_have_attribute("aria-label", "Favourites")
    expect(menu.locator(".p-pick").nth(0)).to_contain_text("Qwen3 30Bgroq · tools, 128k$0.29 / $0.59ready")
    expect(menu.get_by_role("menuitemradio", name="Claude <b>")).to_contain_text("needs key")
    expect(menu.locator(".p-pick[aria-checked=true]")).to_have_count(1)
    expect(menu.locator(".p-pick[aria-checked=true]")).to_contain_text("Small 0.5B")
    assert "$0.00" not in menu.inner_text()


def test_a_choice_counts_for_this_conversation_and_at_a_wish_for_all_new_ones(show: Show, stage: Stage) -> None:
    page = show("answered")
    opened(page).get_by_role("menuitemradio", name="llama groq").click()
    assert heard(stage, "model") == {"do": "model", "service": "groq", "model": "llama", "all": False}
    expect(page.get_by_role("menu", name="Models")).to_have_count(0)
    expect(page.locator("#top .p-ready button")).to_be_focused()
    stage.asked.clear()
    menu = opened(page)
    expect(menu.get_by_role("menuitemradio", name="this conversation")).to_have_attribute("aria-checked", "true")
    menu.get_by_role("menuitemradio", name="all new ones").click()
    menu.get_by_role("menuitemradio", name="Qwen3 30B").first.click()
    assert heard(stage, "model") == {"do": "model", "service": "groq", "model": "qwen3", "all": True}
    expect(page.get_by_text("Qwen3 30B answers new conversations; this one keeps its model.")).to_be_visible()


def test_the_installation_s_model_is_marked_also_where_it_was_chosen_by_its_own_name(show: Show, stage: Stage) -> None:
    absent = row("llama_cpp", "larger", "Large 1.5B", state="absent", shape="ask", said="about 1.1 GB to download")
    groups = [
        {"label": "Parlour's default", "models": [row("", "", "Small", twin={"service": "groq", "model": "llama"})]},
        {"label": "Built in", "models": [absent]},
    ]
    stage.models = {"favourites": [], "lately": [], "groups": groups}
    page = show("answered")
    chosen = "{service: 'groq', model: 'llama'}"
    page.evaluate(f"Object.assign(document.querySelector('#status .p-status').dataset, {chosen})")
    page.locator("#top .p-ready button").click()
    menu = page.get_by_role("menu", name="Models")
    expect(menu.locator(".p-pick[aria-checked=true] .p-name")).to_have_text("Small")
    said = menu.get_by_role("menuitemradio", name="Large 1.5B").locator(".p-state")
    expect(said).to_have_text("about 1.1 GB to download")
    assert said.evaluate("one => one.scrollWidth <= one.clientWidth")  # nothing of the size is cut off


def test_a_second_model_is_chosen_from_the_same_menu_and_taken_back_there(show: Show, stage: Stage) -> None:
    page = show("answered")
    menu = opened(page)
    menu.get_by_role("menuitem", name="Two models side by side").click()
    expect(menu).to_contain_text("Choose the second model.")
    menu.get_by_role("menuitemradio", name="llama groq").click()
    assert heard(stage, "compare") == {"do": "compare", "on": True, "service": "groq", "model": "llama"}
    assert not any(one["do"] == "model" for one in stage.asked)
    stage.asked.clear()
    page = show("compared")
    opened(page).get_by_role("menuitem", name="One model again").click()
    assert heard(stage, "compare") == {"do": "compare", "on": False}


def test_by_keyboard(show: Show, stage: Stage) -> None:
    page = show("answered")
    menu = opened(page)
    press = page.keyboard.press
    assert at(page) == "Small 0.5B"
    for key, there in (
        ("Home", "Qwen3 30B"),
        ("ArrowUp", "Qwen3 30B"),
        ("ArrowDown", "Small 0.5B"),
        ("c", "Claude <b>"),
        ("End", "Services …prices: per million tokens, in / out"),
        ("q", "Qwen3 30B"),
    ):
        press(key)
        assert at(page) == there, key
    press("ArrowRight")
    expect(menu.get_by_role("menuitemcheckbox", name="Favourite: Qwen3 30B").first).to_be_focused()
    press("Enter")
    assert heard(stage, "unstar") == {"do": "unstar", "service": "groq", "model": "qwen3"}
    press("ArrowLeft")
    press("Escape")
    expect(menu).to_have_count(0)
    expect(page.locator("#top .p-ready button")).to_be_focused()
    press("Alt+1")
    assert heard(stage, "model") == {"do": "model", "service": "groq", "model": "qwen3", "all": False}


def test_models_that_were_used_lately_stand_below_the_favourites(show: Show, stage: Stage) -> None:
    stage.models = {**MODELS, "lately": [VL, row("groq", "llama")]}
    page = show("answered")
    menu = opened(page)
    lately = menu.get_by_role("group", name="Used lately", exact=True)
    expect(menu.get_by_role("group").nth(1)).to_have_attribute("aria-label", "Used lately")
    expect(lately.locator(".p-name")).to_have_text(["qwen3-vl", "llama"])
    expect(lately.locator(".p-pick").first).to_contain_text("no answer")
    lately.locator(".p-pick").nth(1).click()
    assert heard(stage, "model") == {"do": "model", "service": "groq", "model": "llama", "all": False}


def test_without_any_that_was_used_there_is_no_such_group(show: Show) -> None:
    expect(opened(show("answered")).get_by_role("group", name="Used lately")).to_have_count(0)


@pytest.mark.parametrize(
    ("locale", "said"),
    [
        ("en-US", "too small for this conversation: 12,400 tokens, room for 8,192"),
        ("zh-CN", "装不下本次对话：12,400 词元，仅容 8,192"),
    ],
)
def test_a_model_that_cannot_hold_the_conversation_says_so_and_can_be_chosen(
    show: Show, stage: Stage, locale: str, said: str
) -> None:
    stage.meter = {
        "room": 58_000,
        "reserved": 0,
        "taken": 12_400,
        "exact": True,
        "parts": [{"name": "history", "tokens": 12_400, "note": ""}],
    }
    tight = row("groq", "tight", room=8_192)
    fits, unknown = row("groq", "fits", room=12_400), row("groq", "unknown")
    stage.models = {**MODELS, "favourites": [], "groups": [{"label": "Groq", "models": [tight, fits, unknown]}]}
    page = show("answered", locale=locale)
    expect(page.locator("#composer .p-ring")).to_be_visible()
    page.locator("#top .p-ready button").click()
    picks = page.locator(".p-choose .p-pick")
    expect(picks.nth(0).locator(".p-small")).to_have_text(said)
    expect(picks.nth(0)).to_contain_text("ready")
    expect(page.locator(".p-choose .p-small")).to_have_count(1)
    picks.nth(0).click()
    assert heard(stage, "model")["model"] == "tight"


def test_as_long_as_nobody_knows_what_the_conversation_takes_no_model_is_too_small(show: Show, stage: Stage) -> None:
    stage.models = {**MODELS, "favourites": [row("groq", "qwen3", "Qwen3 30B", room=1)]}
    opened(show("answered"))
    expect(show("answered").locator(".p-small")).to_have_count(0)


def test_to_write_again_by_a_model_that_is_too_small_says_so(show: Show, stage: Stage) -> None:
    stage.meter = {
        "room": 58_000,
        "reserved": 0,
        "taken": 12_400,
        "exact": True,
        "parts": [{"name": "history", "tokens": 12_400, "note": ""}],
    }
    stage.models = {**MODELS, "favourites": [{**QWEN, "room": 8_192}]}
    page = show("answered")
    expect(page.locator("#composer .p-ring")).to_be_visible()
    opened(page)
    page.keyboard.press("Escape")
    page.locator("#chat .p-regenerate").last.click()
    items = page.get_by_role("menu", name="Again with").get_by_role("menuitem")
    expect(items).to_have_text(["Same model", "Qwen3 30B, too small for this conversation", "Side by side…"])


def test_a_very_long_name_leaves_the_menu_as_wide_as_it_is(show: Show, stage: Stage) -> None:
    long = row("groq", "m" * 200, "模型" * 100, can="c" * 300, room=1)
    stage.meter = {
        "room": 58_000,
        "reserved": 0,
        "taken": 2,
        "exact": True,
        "parts": [{"name": "draft", "tokens": 2, "note": ""}],
    }
    stage.models = {"favourites": [long], "lately": [long], "groups": [{"label": "Groq", "models": [long]}]}
    for size in ({"width": 1440, "height": 900}, PHONE):
        page = show("answered", **size)
        expect(page.locator("#composer .p-ring")).to_be_visible()
        page.locator("#top .p-ready button").click()
        sheet = page.locator(".p-choose")
        expect(sheet.locator(".p-small").first).to_be_visible()
        assert sheet.evaluate(
            "one => one.scrollWidth <= one.clientWidth && one.querySelector('.p-picks').scrollWidth <= one.clientWidth"
        )


def test_many_models_are_found_by_what_is_typed(show: Show, stage: Stage) -> None:
    many = [row("openrouter", f"maker/model-{number}") for number in range(200)]
    stage.models = {"favourites": [], "lately": [], "groups": [{"label": "OpenRouter", "models": [*many, QWEN]}]}
    page = show("answered")
    page.locator("#top .p-ready button").click()
    field = page.get_by_role("searchbox", name="Models")
    expect(field).to_be_focused()
    expect(field).to_have_attribute("placeholder", "Find among 201 models")
    expect(page.locator(".p-pick")).to_have_count(12)
    page.keyboard.type("model-17")
    expect(page.locator(".p-pick")).to_have_count(11)
    page.keyboard.type("7")
    expect(page.locator(".p-pick")).to_have_count(1)
    page.keyboard.press("Enter")
    assert heard(stage, "model")["model"] == "maker/model-177"


def test_a_reply_is_written_again_by_the_same_model_or_by_a_favourite(show: Show, stage: Stage) -> None:
    page = show("answered")
    opened(page)
    page.keyboard.press("Escape")
    page.locator("#chat .p-regenerate").last.click()
    menu = page.get_by_role("menu", name="Again with")
    expect(menu.get_by_role("menuitem")).to_have_text(["Same model", "Qwen3 30B", "Side by side…"])
    menu.get_by_role("menuitem", name="Qwen3 30B").click()
    asked = heard(stage, "regenerate")
    assert (asked["service"], asked["model"]) == ("groq", "qwen3")
    stage.asked.clear()
    page.locator("#chat .p-regenerate").last.click()
    menu.get_by_role("menuitem", name="Same model").click()
    assert "service" not in heard(stage, "regenerate")


def test_a_reply_is_written_again_by_two_models_side_by_side(show: Show, stage: Stage) -> None:
    page = show("answered")
    opened(page)
    page.keyboard.press("Escape")
    link = page.locator("#chat .p-regenerate").last
    link.click()
    page.get_by_role("menuitem", name="Side by side…").click()
    menu = page.get_by_role("menu", name="Models")
    expect(menu.get_by_role("status")).to_contain_text("Choose the second model.")
    menu.get_by_role("menuitemradio", name="Qwen3 30B").first.click()
    asked = heard(stage, "regenerate")
    assert (asked["service"], asked["model"], asked["beside"]) == ("groq", "qwen3", True)
    assert all(one["do"] != "compare" for one in stage.asked)


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_on_a_phone_it_is_a_sheet_from_below(show: Show, locale: str) -> None:
    page = show("answered", **PHONE, locale=locale)
    page.locator("#top .p-ready button").click()
    sheet = page.locator(".p-choose")
    expect(sheet.locator(".p-pick").first).to_be_visible()
    box = sheet.bounding_box()
    assert box is not None
    assert (box["x"], round(box["y"] + box["height"])) == (0, 844)
    assert box["width"] == 390
    assert sheet.evaluate("one => one.scrollWidth <= one.clientWidth")


def test_of_axe(show: Show) -> None:
    page = show("answered")
    opened(page)
    assert findings_in_both_themes(page, ".p-choose") == []
