"""Choosing a model on the page: tested, used at once, kept, and with a key that shows nowhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from bench.kills.forked_page import ForkedApp, Origin
from core.testing.behaviour import behave
from core.testing.model_server import ModelServer
from core.testing.script import Reply, Request
from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask, ask_and_wait, button, chat, focus, until, wait_for_state, words_of

KEY = "sk-CANARY-0123456789abcdef"
PHONE = {"width": 360, "height": 740}


def _answer(request: Request) -> Reply:
    return Reply(text=f"This is {request['model']}.")


@pytest.fixture
def service() -> Iterator[ModelServer]:
    """A service that wants a key, and offers three models."""
    with ModelServer(_answer, api_key=KEY, models=["alpha", "beta", "gamma"]) as server:
        yield server


@pytest.fixture(scope="module")
def choosing(tmp_path_factory: pytest.TempPathFactory, origin: Origin) -> Iterator[AppProcess]:
    """An app for tests in which another model is chosen; those that keep nothing use that of all tests."""
    with ModelServer(behave) as model:
        home = tmp_path_factory.mktemp("choosing") / "home"
        app = ForkedApp(home, model, {"RETRIEVAL": "keyword"}, origin=origin).start()
        yield app
        app.stop()


@pytest.fixture
def app(choosing: AppProcess) -> Iterator[AppProcess]:
    """At the end its own model answers again."""
    yield choosing
    with closing(choosing.client()) as client:
        assert client.post("/models/use", json={"service": ""}).json()["used"] == ""


def opened(page: Page) -> Locator:
    page.locator("#top").get_by_role("button", name="Model settings").click()
    dialog = page.get_by_role("dialog", name="Model settings")
    expect(dialog.get_by_label("Service")).to_be_focused()
    return dialog


def fill(dialog: Locator, service: ModelServer, model: str, key: str = KEY) -> None:
    dialog.get_by_label("Service").select_option("compatible")
    dialog.get_by_label("Address").fill(service.base_url)
    dialog.get_by_label("Model").fill(model)
    if key:
        dialog.get_by_label("API key").fill(key)


def press(dialog: Locator, name: str) -> None:
    dialog.get_by_role("button", name=name, exact=True).click()


def test_a_model_is_chosen_tested_and_answers_the_next_question(
    app: AppProcess, open_page: Callable[..., Page], service: ModelServer
) -> None:
    page = open_page(app)
    ask_and_wait(page, "Who are you?", "You said: Who are you?")
    dialog = opened(page)
    fill(dialog, service, "beta", "sk-wrong-0123456789")
    press(dialog, "Test")
    expect(dialog.get_by_role("status")).to_contain_text("does not accept the API key. Check the key")
    dialog.get_by_label("API key").fill(KEY)
    expect(dialog.get_by_role("status")).to_have_text("")
    press(dialog, "Test")
    expect(dialog.get_by_role("status")).to_contain_text("beta · 127.0.0.1 began to answer after")
    expect(dialog).to_contain_text("3 models offered")
    press(dialog, "Use")
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("button", name="Model settings")).to_be_focused()
    expect(page.locator("#top .p-model")).to_have_text("beta · 127.0.0.1")
    expect(page.locator("#talk .p-hint")).to_have_text("beta · 127.0.0.1 answers from the next question on.")
    ask_and_wait(page, "And now?", "This is beta.")
    expect(page.locator("#chat .p-by")).to_contain_text(["scripted · 127.0.0.1", "beta · 127.0.0.1"])
    assert KEY not in page.content()
    assert KEY not in app.log.read_text("utf-8")


def test_two_servers_of_one_kind_are_kept_side_by_side_and_one_is_removed(
    app: AppProcess, open_page: Callable[..., Page], service: ModelServer
) -> None:
    page = open_page(app)
    dialog = opened(page)
    fill(dialog, service, "alpha")
    press(dialog, "Use")
    expect(dialog).to_be_hidden()
    with ModelServer(_answer) as other:
        dialog = opened(page)
        dialog.get_by_label("Service").select_option(label="Another OpenAI-compatible server")
        dialog.get_by_label("Address").fill(other.base_url)
        dialog.get_by_label("Model").fill("delta")
        press(dialog, "Use")
        expect(dialog).to_be_hidden()
        ask_and_wait(page, "Who are you?", "This is delta.")
    dialog = opened(page)
    dialog.get_by_label("Service").select_option("compatible")
    expect(dialog.get_by_label("API key")).to_have_attribute("placeholder", "saved: ••••cdef")
    press(dialog, "Use")
    expect(dialog).to_be_hidden()
    ask_and_wait(page, "And now?", "This is alpha.")
    dialog = opened(page)
    dialog.get_by_label("Service").select_option("compatible~2")
    press(dialog, "Remove")
    press(page.get_by_role("dialog", name="Remove", exact=True), "Remove")
    expect(dialog.get_by_role("status")).to_have_text("Removed.")
    expect(dialog.locator("option[value='compatible~2']")).to_have_text("Another OpenAI-compatible server")


def test_a_kept_key_shows_its_last_four_and_can_be_removed(
    app: AppProcess, open_page: Callable[..., Page], service: ModelServer
) -> None:
    page = open_page(app)
    dialog = opened(page)
    fill(dialog, service, "alpha")
    press(dialog, "Save")
    expect(dialog.get_by_role("status")).to_have_text("Saved. It answers once you press Use.")
    key = dialog.get_by_label("API key")
    expect(key).to_have_value("")
    expect(key).to_have_attribute("placeholder", "saved: ••••cdef")
    expect(page.locator("#top .p-model")).to_have_text("scripted · 127.0.0.1")
    dialog.get_by_label("Address").fill("http://127.0.0.1:9/v1")  # the key was given for another server
    expect(key).to_have_attribute("placeholder", "usually not needed")
    dialog.get_by_label("Address").fill(service.base_url.replace("http:", "https:"))  # so is this
    expect(key).to_have_attribute("placeholder", "usually not needed")
    dialog.get_by_label("Address").fill(service.base_url.removeprefix("http://"))
    expect(key).to_have_attribute("placeholder", "saved: ••••cdef")
    dialog.get_by_label("Address").fill(service.base_url)
    expect(key).to_have_attribute("placeholder", "saved: ••••cdef")
    press(dialog, "Test")
    expect(dialog.get_by_role("status")).to_contain_text("alpha · 127.0.0.1 began to answer")
    press(dialog, "Remove key")
    expect(key).to_be_focused()
    press(dialog, "Test")
    expect(dialog.get_by_role("status")).to_contain_text("wants an API key. Type its key.")
    press(dialog, "Save")
    expect(dialog.get_by_role("button", name="Remove key")).to_be_hidden()
    expect(key).to_have_attribute("placeholder", "usually not needed")


def test_an_answer_about_what_stands_there_no_more_is_not_told(
    server: AppProcess, open_page: Callable[..., Page], service: ModelServer
) -> None:
    page = open_page(server)
    dialog = opened(page)
    fill(dialog, service, "alpha")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/models/test", hold)
    press(dialog, "Test")
    expect(dialog.get_by_role("status")).to_have_text("Asking one small question …")
    dialog.get_by_label("Model").fill("beta")
    expect(dialog.get_by_role("status")).to_have_text("")
    held[0].continue_()
    expect(dialog.get_by_role("button", name="Test")).not_to_have_attribute("aria-disabled", "true")
    expect(dialog.get_by_role("status")).to_have_text("")


def test_a_key_goes_nowhere_unasked_but_where_it_was_typed_for(
    server: AppProcess, open_page: Callable[..., Page], service: ModelServer
) -> None:
    page = open_page(server)
    dialog = opened(page)
    fill(dialog, service, "alpha")
    dialog.get_by_label("API key").blur()
    expect(dialog).to_contain_text("3 models offered")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(f"{request.url} {request.post_data or ''}"))
    with ModelServer(_answer) as other:
        dialog.get_by_label("Address").fill(other.base_url)
        dialog.get_by_label("Address").blur()
        press(dialog, "Test")  # this asks
        expect(dialog.get_by_role("status")).to_contain_text("began to answer")
        assert [request.split()[0].rpartition("/")[2] for request in sent if KEY in request] == ["test"]


def test_each_service_proposes_an_address_of_its_own_and_an_empty_one_is_asked_for(
    server: AppProcess, open_page: Callable[..., Page]
) -> None:
    dialog = opened(open_page(server))
    address, note = dialog.get_by_label("Address"), dialog.locator("#p-models-note")
    for service, port in (("ollama", 11434), ("lm_studio", 1234), ("vllm", 8000), ("llama_server", 8080)):
        dialog.get_by_label("Service").select_option(service)
        address.fill("")
        expect(address).to_have_attribute("placeholder", f"http://127.0.0.1:{port}/v1")
        expect(note).to_contain_text(f"is sent to 127.0.0.1:{port}.")  # where it goes when none is typed
    dialog.get_by_label("Service").select_option("azure")
    expect(address).to_have_attribute("placeholder", "https://NAME.openai.azure.com")
    expect(note).not_to_contain_text("is sent to")
    dialog.get_by_label("Deployment").fill("mine")
    press(dialog, "Test")
    expect(dialog.get_by_role("status")).to_have_text("Enter the server’s address.")


def test_a_model_of_this_machine_that_is_not_there_is_not_used(
    server: AppProcess, open_page: Callable[..., Page]
) -> None:
    dialog = opened(open_page(server))
    dialog.get_by_label("Service").select_option("llama_cpp")
    dialog.get_by_label("Model").fill("/nowhere/my.gguf")
    for name in ("Test", "Use"):
        press(dialog, name)
        expect(dialog.get_by_role("status")).to_have_text(
            "There is no model at /nowhere/my.gguf that can be read. Check the path."
        )
    expect(dialog).to_be_visible()


def test_on_a_shared_page_nothing_of_this_machine_is_proposed(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page]
) -> None:
    page = open_page(start_app(behave, OWNERS="cookie"))
    dialog = opened(page)
    dialog.get_by_label("Service").select_option("compatible")
    address = dialog.get_by_label("Address")
    expect(address).to_have_attribute("placeholder", "https://api.example.com/v1")
    expect(dialog.get_by_label("Service").locator("optgroup")).to_have_count(1)
    address.fill("https://localhost/v1")
    dialog.get_by_label("Model").fill("m")
    press(dialog, "Test")
    expect(dialog.get_by_role("status")).to_contain_text("localhost cannot be used on a shared page")


def test_a_choice_shows_in_the_other_tab_and_after_a_restart(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page], service: ModelServer
) -> None:
    app = start_app(behave)
    page = open_page(app)
    other = open_page(app, context=page.context)
    dialog = opened(page)
    fill(dialog, service, "gamma")
    press(dialog, "Use")
    expect(page.locator("#top .p-model")).to_have_text("gamma · 127.0.0.1")
    expect(other.locator("#top .p-model")).to_have_text("gamma · 127.0.0.1")
    page.close()
    other.close()
    app.stop()
    again = open_page(app.start())
    expect(again.locator("#top .p-model")).to_have_text("gamma · 127.0.0.1")
    ask_and_wait(again, "Still there?", "This is gamma.")
    dialog = opened(again)
    dialog.get_by_label("Service").select_option("")
    press(dialog, "Use")
    expect(again.locator("#top .p-model")).to_have_text("scripted · 127.0.0.1")


def test_a_reply_that_is_being_written_keeps_its_model(
    app: AppProcess, open_page: Callable[..., Page], service: ModelServer
) -> None:
    page = open_page(app)
    ask(page, "count at leisure")
    expect(chat(page)).to_contain_text("word5 ")
    dialog = opened(page)
    fill(dialog, service, "beta")
    press(dialog, "Use")
    expect(page.locator("#top .p-model")).to_have_text("beta · 127.0.0.1")
    seen = len(words_of(page))
    until(lambda: len(words_of(page)) > seen)
    button(page, "Stop").click()
    wait_for_state(page, "idle")
    expect(page.locator("#chat .p-by")).to_contain_text("scripted · 127.0.0.1")


def test_a_model_that_fails_says_so_at_the_top_and_the_settings_mend_it(
    app: AppProcess, open_page: Callable[..., Page], service: ModelServer
) -> None:
    page = open_page(app)
    dialog = opened(page)
    fill(dialog, service, "beta", "sk-wrong-0123456789")
    press(dialog, "Use")
    expect(dialog.get_by_role("status")).to_contain_text("does not accept the API key. Check the key")
    expect(page.locator("#top .p-model")).to_have_text("scripted · 127.0.0.1")
    dialog.get_by_label("API key").fill(KEY)
    press(dialog, "Use")
    expect(dialog).to_be_hidden()
    service.api_key = KEY[::-1]
    ask(page, "Hello?")
    expect(page.locator("#chat .p-error")).to_contain_text("Check the key in the model settings")
    expect(page.locator("#top .p-said")).to_have_text("Error")
    page.locator("#chat .p-error").get_by_role("button", name="Model settings").click()
    dialog = page.get_by_role("dialog", name="Model settings")
    press(dialog, "Close")
    page.locator("#top .p-ready > button").click()
    expect(page.locator(".p-choose .p-what")).to_contain_text("API key")
    page.get_by_role("menuitem", name="Services …").click()
    expect(page.locator(".p-choose")).to_have_count(0)
    row = page.locator("#p-settings .p-service-row", has_text=service.base_url)
    expect(row).to_contain_text("needs key")
    row.get_by_role("button").click()
    page.get_by_role("menuitem", name="Edit…").click()
    dialog.get_by_label("API key").fill(KEY[::-1])
    press(dialog, "Use")
    expect(dialog).to_be_hidden()
    expect(row).to_contain_text("ready")
    page.keyboard.press("Escape")
    ask_and_wait(page, "And now?", "This is beta.")


def test_nothing_can_be_typed_before_the_choices_are_there_to_be_written_over_by_them(
    app: AppProcess, open_page: Callable[..., Page], service: ModelServer
) -> None:
    page = open_page(app)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/models/menu", hold)
    page.locator("#top").get_by_role("button", name="Model settings").click()
    dialog = page.get_by_role("dialog", name="Model settings")
    expect(dialog.get_by_label("API key")).to_be_disabled()
    expect(dialog.get_by_role("button", name="Use", exact=True)).to_be_disabled()
    held.pop().continue_()
    fill(dialog, service, "beta")
    expect(dialog.get_by_label("API key")).to_have_value(KEY)
    press(dialog, "Use")
    expect(dialog).to_be_hidden()
    ask_and_wait(page, "Who are you?", "This is beta.")


def test_the_dialog_is_worked_with_the_keyboard_alone(
    server: AppProcess, open_page: Callable[..., Page], service: ModelServer
) -> None:
    page = open_page(server)
    focus(page.get_by_role("button", name="Model settings"))
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Model settings")
    expect(dialog.get_by_label("Service")).to_be_focused()
    page.keyboard.type("Another")
    page.keyboard.press("Tab")
    expect(dialog.get_by_label("Address")).to_be_focused()
    page.keyboard.type(service.base_url)
    page.keyboard.press("Tab")
    page.keyboard.type("alpha")
    page.keyboard.press("Tab")
    page.keyboard.type(KEY)
    page.keyboard.press("Tab")
    expect(dialog.get_by_text("What this model can do")).to_be_focused()
    page.keyboard.press("Tab")
    expect(dialog.get_by_role("button", name="Test")).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("status")).to_contain_text("alpha · 127.0.0.1 began to answer")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("button", name="Model settings")).to_be_focused()


@pytest.mark.parametrize(("locale", "title"), [("en-US", "Model settings"), ("zh-CN", "模型设置")])
def test_on_a_phone_it_fits_and_nothing_moves_when_the_service_changes(
    server: AppProcess, open_page: Callable[..., Page], locale: str, title: str
) -> None:
    page = open_page(server, viewport=PHONE, locale=locale, has_touch=True)
    page.locator("#top .p-open-models").click()
    dialog = page.get_by_role("dialog", name=title)
    service = dialog.locator("#p-models-service")
    expect(service.locator("option")).not_to_have_count(0)
    places = []
    for name in ("", "openai", "ollama", "llama_cpp"):
        service.select_option(name)
        expect(dialog.locator("#p-models-address")).to_be_visible(visible=name == "ollama")
        places.append((dialog.bounding_box(), dialog.locator(".p-main").bounding_box()))
    assert len({str(place) for place in places}) == 1
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    box, button = places[0]
    assert box
    assert button
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE["width"]
    assert button["y"] + button["height"] <= PHONE["height"]
    assert button["height"] >= 44
