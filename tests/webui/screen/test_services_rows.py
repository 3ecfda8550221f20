"""The services in the settings: one row each, and what can be done with it from there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.e2e.axe import findings_everywhere
from tests.webui.screen.stage import SERVICES, Stage, service

Show = Callable[..., Page]
PHONE = {"width": 390, "height": 844}


def opened(show: Show, stage: Stage, **options: Any) -> Page:
    page = show(path="/settings/models", **options)
    expect(page.locator("#p-settings .p-service-row").first).to_be_visible()
    return page


def menu_of(page: Page, name: str) -> Locator:
    page.get_by_role("button", name=f"What can be done with {name}", exact=True).click()
    return page.get_by_role("menu", name=name)


def heard(stage: Stage, do: str) -> dict[str, Any]:
    stage.until(lambda: any(one["do"] == do for one in stage.asked))
    return next(one for one in stage.asked if one["do"] == do)


def test_each_service_has_a_row_with_its_place_models_and_state_in_words(show: Show, stage: Stage) -> None:
    rows = opened(show, stage).locator("#p-settings .p-service-row")
    expect(rows).to_have_count(5)
    expect(rows.nth(1)).to_contain_text("OpenAIhttps://api.openai.com/v1, key …x4Qd, 41 modelsready")
    for place, said in enumerate(("ready", "ready", "needs key", "no answer", "not tried yet")):
        expect(rows.nth(place).locator(".p-state")).to_have_text(said)
    expect(rows.nth(4)).to_contain_text("OpenAI-compatible: <b>")


def test_what_is_there_by_itself_can_be_tested_and_nothing_else(show: Show, stage: Stage) -> None:
    page = opened(show, stage)
    expect(menu_of(page, "Parlour's default").get_by_role("menuitem")).to_have_text(["Test"])
    page.keyboard.press("Escape")
    items = menu_of(page, "OpenAI").get_by_role("menuitem")
    expect(items).to_have_text(["Edit…", "Test", "Use for all new conversations", "Remove"])
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="What can be done with OpenAI", exact=True)).to_be_focused()
    expect(page.locator("#p-settings")).to_have_count(1)


def test_what_a_test_finds_stands_in_the_row(show: Show, stage: Stage) -> None:
    page = opened(show, stage)
    stage.answers = {"test": {"said": "m began to answer after 0.3 s."}}
    row = page.locator("#p-settings .p-service-row").nth(3)
    menu_of(page, "OpenAI-compatible: a:81").get_by_role("menuitem", name="Test").click()
    expect(row.get_by_role("status")).to_have_text("m began to answer after 0.3 s.")
    expect(row.locator(".p-state")).to_have_text("ready")
    assert heard(stage, "test") == {"do": "test", "service": "compatible", "address": "http://a:81/v1", "model": "m"}
    stage.answers = {"test": {"failed": "<i>a:81</i> cannot be reached."}}
    menu_of(page, "OpenAI-compatible: a:81").get_by_role("menuitem", name="Test").click()
    expect(row.get_by_role("status")).to_have_text("<i>a:81</i> cannot be reached.")
    expect(row.locator(".p-state")).to_have_text("test failed")
    expect(row.get_by_role("button")).to_be_focused()


def test_it_is_removed_only_after_a_question_and_its_row_goes(show: Show, stage: Stage) -> None:
    page = opened(show, stage)
    menu_of(page, "OpenAI").get_by_role("menuitem", name="Remove").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Remove OpenAI? Its address and its key are deleted.")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    dialog.get_by_role("button", name="Cancel").click()
    expect(page.locator("#p-settings .p-service-row")).to_have_count(5)
    assert not any(one["do"] == "remove" for one in stage.asked)
    menu_of(page, "OpenAI").get_by_role("menuitem", name="Remove").click()
    stage.services = {**SERVICES, "services": [one for one in SERVICES["services"] if one["service"] != "openai"]}
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    assert heard(stage, "remove")["service"] == "openai"
    expect(page.locator("#p-settings .p-service-row")).to_have_count(4)
    expect(page.locator("#p-settings .p-told")).to_have_text("Removed.")


def test_what_cannot_be_removed_or_used_says_so_and_stays(show: Show, stage: Stage) -> None:
    page = opened(show, stage)
    stage.answers = {"remove": {"failed": "The disk is full."}, "use": {"failed": "It wants an API key."}}
    menu_of(page, "OpenAI").get_by_role("menuitem", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.locator("#p-settings .p-service-row").nth(1).get_by_role("status")).to_have_text("The disk is full.")
    menu_of(page, "Anthropic").get_by_role("menuitem", name="Use for all new conversations").click()
    expect(page.locator("#p-settings .p-service-row").nth(2).get_by_role("status")).to_have_text("It wants an API key.")


def test_one_is_used_for_all_new_conversations(show: Show, stage: Stage) -> None:
    page = opened(show, stage)
    stage.answers = {"use": {"model": "m · a"}}
    menu_of(page, "OpenAI-compatible: <b>").get_by_role("menuitem", name="Use for all new conversations").click()
    assert heard(stage, "use")["service"] == "compatible~2"
    expect(page.locator("#p-settings .p-told")).to_have_text("m · a answers from the next question on.")


def test_edit_and_add_open_the_dialog_and_the_rows_are_drawn_anew_after_it(show: Show, stage: Stage) -> None:
    page = opened(show, stage)
    menu_of(page, "Anthropic").get_by_role("menuitem", name="Edit…").click()
    dialog = page.get_by_role("dialog", name="Model settings")
    expect(dialog.get_by_label("Service", exact=True)).to_have_value("anthropic")
    more = service("groq", "Groq", "https://api.groq.com/openai/v1")
    stage.services = {**SERVICES, "services": [*SERVICES["services"], more]}
    dialog.get_by_role("button", name="Close").click()
    expect(page.locator("#p-settings .p-service-row")).to_have_count(6)
    expect(page.get_by_role("button", name="What can be done with Anthropic")).to_be_focused()
    page.get_by_role("button", name="Add a service").click()
    expect(dialog.get_by_label("Service", exact=True)).to_have_value("dashscope")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Add a service")).to_be_focused()


def test_the_form_removes_a_service_only_after_a_question(show: Show, stage: Stage) -> None:
    page = opened(show, stage)

    def kept(route: Route) -> None:
        menu = route.fetch().json()
        for one in menu["services"]:
            one["kept"] = True
        route.fulfill(json=menu)

    page.route("**/models/menu", kept)
    menu_of(page, "OpenAI").get_by_role("menuitem", name="Edit…").click()
    form = page.get_by_role("dialog", name="Model settings")
    form.get_by_role("button", name="Remove", exact=True).click()
    asked = page.get_by_role("dialog", name="Remove", exact=True)
    expect(asked).to_contain_text("Remove OpenAI? Its address and its key are deleted.")
    asked.get_by_role("button", name="Cancel").click()
    expect(form.get_by_role("button", name="Remove", exact=True)).to_be_focused()
    assert not any(one["do"] == "remove" for one in stage.asked)
    form.get_by_role("button", name="Remove", exact=True).click()
    asked.get_by_role("button", name="Remove").click()
    assert heard(stage, "remove")["service"] == "openai"


def test_the_form_says_where_questions_go_only_where_an_address_is_one(show: Show, stage: Stage) -> None:
    page = opened(show, stage)
    page.get_by_role("button", name="Add a service").click()
    dialog = page.get_by_role("dialog", name="Model settings")
    dialog.get_by_label("Service", exact=True).select_option("compatible")
    address, note = dialog.get_by_label("Address"), dialog.locator("#p-models-note")
    address.fill("127.0.0.1:8000/v1")
    expect(note).to_contain_text("is sent to 127.0.0.1:8000.")
    for none in ("hello world", "hello%20world", "ftp://example.com", "http://"):
        address.fill(none)
        expect(note).not_to_contain_text("is sent to")
        address.fill("example.com")
        expect(note).to_contain_text("is sent to example.com.")


def test_the_menu_of_models_leads_here(show: Show, stage: Stage) -> None:
    page = show("answered")
    page.locator("#top .p-ready button").click()
    page.get_by_role("menuitem", name="Services …").click()
    expect(page.locator("#p-settings .p-service-row").first).to_be_in_viewport()
    assert page.url == f"{stage.url}/settings/models?c=conv"


def test_a_service_is_found_among_the_settings(show: Show, stage: Stage) -> None:
    page = opened(show, stage)
    page.get_by_role("searchbox", name="Find a setting").fill("anthropic")
    expect(page.locator("#p-settings .p-service-row:visible")).to_have_count(1)


def test_where_a_program_brings_its_model_there_are_no_services(show: Show, stage: Stage) -> None:
    stage.services = None
    page = show(path="/settings/models")
    expect(page.locator("#p-settings .p-set").first).to_be_visible()
    expect(page.locator("#p-settings .p-service-row, #p-settings .p-add-service:not(.p-add-key)")).to_have_count(0)


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
@pytest.mark.parametrize("width", [390, 1280])
def test_very_long_names_and_very_many_services_leave_the_page_as_wide_as_it_is(
    show: Show, stage: Stage, width: int, locale: str
) -> None:
    long = [service(f"compatible~{n}", "模型" * 100, "http://" + "a" * 480, ", 1,000 models") for n in range(2, 100)]
    stage.services = {"services": long, "add": "openai"}
    stage.answers = {"test": {"failed": "x" * 300}}
    page = opened(show, stage, width=width, height=844, locale=locale)
    page.locator("#p-settings .p-more").first.click()
    page.get_by_role("menuitem").nth(1).click()
    expect(page.locator("#p-settings .p-found").first).to_contain_text("xxx")
    scroll = page.locator("#p-settings .p-scroll")
    assert scroll.evaluate("one => one.scrollWidth <= one.clientWidth")
    box = page.locator("#p-settings .p-more").first.bounding_box()
    assert box is not None
    assert 0 <= box["x"] <= width - box["width"]


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)])
def test_of_axe(show: Show, stage: Stage, width: int, height: int) -> None:
    page = opened(show, stage, width=width, height=height)
    stage.answers = {"test": {"failed": "It cannot be reached."}}
    menu_of(page, "OpenAI").get_by_role("menuitem", name="Test").click()
    expect(page.locator("#p-settings .p-found.p-is-bad").first).to_have_text("It cannot be reached.")
    assert findings_everywhere(page, "#p-settings") == []
