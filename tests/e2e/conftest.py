"""The app in a process of its own, Chromium, and pages that fail their test when anything goes wrong in them.

A test asks for `page`: English, a desk's size, opened and ready. For more it asks for `open_page` (further
pages, languages, sizes) and `start_app` (an app of its own, with other settings or another script).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from bench.kills.forked_page import ForkedApp, Origin
from core.testing.behaviour import behave
from core.testing.model_server import ModelServer
from core.testing.script import Script
from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import wait_for_script
from tests.e2e.chromium import chromium
from tests.e2e.kept_pages import KEPT, KeptPages
from tests.e2e.watched_page import Watch

DESK = {"width": 1280, "height": 860}
WAIT = 60_000  # milliseconds; a machine that does other things as well takes its time

expect.set_options(timeout=WAIT)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """The machine's own Chromium."""
    with chromium(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, origin: Origin) -> Iterator[AppProcess]:
    """One app for all tests that need nothing special. Its model chooses the reply by the question's words.

    It searches by words alone, so that no worker makes vectors beside the browser; apps of a test's own do as users'.
    """
    with ModelServer(behave) as model:
        home = tmp_path_factory.mktemp("parlour") / "home"
        app = ForkedApp(home, model, {"RETRIEVAL": "keyword"}, origin=origin).start()
        yield app
        app.stop()


@pytest.fixture(scope="session")
def origin() -> Iterator[Origin]:
    """What apps are forked from, all of which import the same."""
    origin = Origin()
    yield origin
    origin.close()


@pytest.fixture
def start_app(tmp_path: Path, origin: Origin) -> Iterator[Callable[..., AppProcess]]:
    """Start apps of this test's own: `start_app(script, name="…", PORT="…")`; the same name keeps its data folder.

    `as_users_do=True` starts a program of its own instead of a fork, where the subject is how it starts or ends.
    """
    apps: list[AppProcess] = []
    models: list[ModelServer] = []

    def start(
        script: Script | None = behave, *, name: str = "home", as_users_do: bool = False, **settings: str
    ) -> AppProcess:
        model = ModelServer(script).start() if script is not None else None
        if model is not None:
            models.append(model)
        home = tmp_path / name
        apps.append(
            AppProcess(home, model, settings) if as_users_do else ForkedApp(home, model, settings, origin=origin)
        )
        return apps[-1].start()

    yield start
    for app in apps:
        app.stop()
    for model in models:
        model.stop()


@pytest.fixture(scope="session")
def kept_pages(browser: Browser) -> KeptPages:
    """Tabs of the shared app's page."""
    return KeptPages(browser, WAIT)


@pytest.fixture
def open_page(request: pytest.FixtureRequest, kept_pages: KeptPages) -> Iterator[Callable[..., Page]]:
    """Open a page and wait until it can be used: `open_page(app, locale="zh-CN", viewport=…)`.

    `context=` puts a second tab beside the first; `expected` names parts of
    errors that this test provokes.
    """
    contexts: list[BrowserContext] = []
    lent: list[Page] = []
    watches: list[Watch] = []
    shared = request.getfixturevalue("server") if "server" in request.fixturenames else None

    def open_(
        app: AppProcess,
        path: str = "/",
        *,
        context: BrowserContext | None = None,
        expected: tuple[str, ...] = (),
        **options: Any,
    ) -> Page:
        given = {"viewport": DESK, "locale": "en-US", **options}
        if context is not None:
            page = context.new_page()
        elif given.keys() <= KEPT and app is shared:
            page = kept_pages.take(app.url, **given)
            lent.append(page)
        else:
            contexts.append(kept_pages.new_context(base_url=app.url, **given))
            page = contexts[-1].new_page()
        watches.append(Watch(page, expected=list(expected)))
        page.goto(app.at(path), wait_until="domcontentloaded")
        wait_until_usable(page)
        return page

    yield open_
    for watch in watches:
        watch.end()
    for context in contexts:
        context.close()
    for page in lent:
        kept_pages.give_back(page)
    bad = [line for watch in watches for line in watch.verdict()]
    assert not bad, "\n".join(bad)


@pytest.fixture
def page(server: AppProcess, open_page: Callable[..., Page]) -> Page:
    """The shared app's page in a new browser window."""
    return open_page(server)


def wait_until_usable(page: Page) -> None:
    """Wait until the composer is there and the first frame has come: before it, the page does not know its language."""
    page.wait_for_selector("#composer textarea")
    expect(page.locator("#status [data-state]:not([data-lang=''])")).to_be_attached()
    wait_for_script(page)
