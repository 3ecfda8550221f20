"""Two services, a conversation each: whatever the other is answered by, and after a reload too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from bench.kills.forked_page import ForkedApp, Origin
from core.testing.behaviour import behave
from core.testing.model_server import ModelServer
from core.testing.script import Reply, Request
from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask, ask_and_wait, wait_for_state

KEY = "sk-CANARY-0123456789abcdef"


def _answer(request: Request) -> Reply:
    return Reply(text=f"This is {request['model']}.")


@pytest.fixture
def app(tmp_path: Path, origin: Origin) -> Iterator[AppProcess]:
    """An app with two services that were set up, neither of which answers yet."""
    with (
        ModelServer(behave) as model,
        ModelServer(_answer, api_key=KEY, models=["alpha"]) as first,
        ModelServer(_answer, models=["beta", "gamma"]) as second,
    ):
        running = ForkedApp(tmp_path / "home", model, {"RETRIEVAL": "keyword"}, origin=origin).start()
        with closing(running.client()) as client:
            for given in (
                {"service": "compatible", "address": first.base_url, "model": "alpha", "key": KEY},
                {"service": "compatible~2", "address": second.base_url, "model": "beta"},
            ):
                assert "failed" not in client.post("/models/save", json=given).json()
        yield running
        running.stop()


def choose(page: Page, model: str) -> None:
    page.locator("#top .p-ready button").click()
    page.get_by_role("menuitemradio", name=model).first.click()
    expect(page.locator("#top .p-model")).to_contain_text(model)


def test_each_conversation_is_answered_by_its_own_model_after_a_reload_too(
    app: AppProcess, open_page: Callable[..., Page]
) -> None:
    page = open_page(app)
    choose(page, "alpha")  # of a conversation that is not there yet
    ask_and_wait(page, "Who are you?", "This is alpha.")
    first = page.url
    page.locator("#house .p-new").click()
    expect(page.locator("#top .p-model")).to_contain_text("scripted")
    ask_and_wait(page, "Hello?", "You said: Hello?")
    choose(page, "gamma")
    ask_and_wait(page, "Who are you?", "This is gamma.")
    second = page.url
    for address, model in ((first, "alpha"), (second, "gamma")):
        page.goto(address)
        expect(page.locator("#top .p-model")).to_contain_text(model)
        ask_and_wait(page, f"Still {model}?", f"This is {model}.")
    expect(page.locator("#chat .p-by")).to_contain_text(["scripted", "gamma", "gamma"])


def test_two_models_answer_side_by_side_until_one_goes_on(app: AppProcess, open_page: Callable[..., Page]) -> None:
    page = open_page(app)
    choose(page, "alpha")
    page.locator("#top .p-ready button").click()
    page.get_by_role("menuitem", name="Two models side by side").click()
    page.get_by_role("menuitemradio", name="gamma").first.click()
    expect(page.locator("#top .p-model")).to_contain_text("gamma")
    ask(page, "Who are you?")
    first, second = (page.locator(f"#chat .message-row:has(.p-column-{side})") for side in (1, 2))
    expect(first).to_contain_text("This is alpha.")
    expect(second).to_contain_text("This is gamma.")
    page.reload()
    expect(second).to_contain_text("This is gamma.")
    wait_for_state(page, "idle")
    before = second.locator(".p-prefer").get_attribute("href")
    ask(page, "And now?")
    expect(page.locator("#chat .p-asked")).to_have_text(["Who are you?", "And now?"])
    expect(second).to_have_count(1)
    fresh = second.locator(f".p-prefer:not([href='{before}'])")  # of the question that was asked just now
    expect(fresh).to_be_visible()
    wait_for_state(page, "idle")
    fresh.click()
    expect(page.locator("#chat .p-column")).to_have_count(0)
    expect(page.locator("#top .p-model")).not_to_contain_text("alpha")
    expect(page.locator("#chat .p-number")).to_contain_text(["Version 1 of 2", "Version 2 of 2"])
    ask_and_wait(page, "Still there?", "This is gamma.")
