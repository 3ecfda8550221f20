"""Steering: what was chosen for a conversation reaches the service's own wire, and is there after a reload."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from core.testing.model_server import ModelServer
from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import NAMED, ask, until, wait_for_state


def request(model: ModelServer | None, number: int) -> dict[str, Any]:
    """A request as it came over the wire, once so many have."""
    assert model is not None
    until(lambda: len(model.requests) >= number)
    return model.requests[number - 1].body


def test_instructions_temperature_and_a_tool_that_is_off_reach_the_service_and_outlive_a_reload(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page]
) -> None:
    app = start_app(RETRIEVAL="keyword", TITLES="0")
    page = open_page(app)
    page.get_by_role("button", name="Steering", exact=True).click()
    panel = page.locator("#page .p-steer")
    panel.get_by_role("textbox", name="Instructions").fill("Answer in rhymes.")
    slider = panel.locator("[data-name=temperature]").get_by_role("slider")
    slider.focus()
    slider.press("ArrowRight")
    panel.get_by_role("switch", name="Calculator").uncheck()
    chip = page.get_by_role("toolbar").get_by_role("button", name="Web")
    chip.click()
    expect(chip).to_have_attribute("aria-pressed", "true")
    ask(page, "hello")
    sent = request(app.model, 1)
    names = {tool["function"]["name"] for tool in sent["tools"]}
    assert "Answer in rhymes." in str(sent["messages"][0]["content"])
    assert sent["temperature"] == 1.1
    assert ("calculator" in names, "web_search" in names, "current_time" in names) == (False, True, True)
    assert "if_taken" not in sent
    page.wait_for_url(NAMED)
    wait_for_state(page, "idle")
    page.reload(wait_until="domcontentloaded")
    expect(chip).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Steering", exact=True).click()
    expect(panel.get_by_role("textbox", name="Instructions")).to_have_value("Answer in rhymes.")
    expect(panel.locator("[data-name=temperature] output")).to_have_text("1.1")
    expect(panel.get_by_role("switch", name="Calculator")).not_to_be_checked()
    ask(page, "hello again")
    assert request(app.model, 2)["temperature"] == 1.1
    wait_for_state(page, "idle")
