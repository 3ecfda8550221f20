"""A browser, and the page on a stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.e2e.chat_steps import wait_for_script
from tests.e2e.chromium import chromium
from tests.e2e.kept_pages import KEPT, KeptPages
from tests.e2e.watched_page import Watch
from tests.webui.screen.stage import SERVICES, Stage
from tests.webui.screen.steering_scenes import PROMPTS

WAIT = 60_000  # milliseconds; a machine that does other things as well takes its time
_SCREEN = "tests/webui/screen"
expect.set_options(timeout=WAIT)


def _as_long_as_may_be(fixture_name: str, config: pytest.Config) -> Literal["session", "module"]:
    """Of the session where only the screen is tested; else of a module.

    While Playwright's synchronous form is open, no asynchronous test can run, and other folders have such.
    """
    return "session" if all(_SCREEN in arg for arg in config.args) else "module"


@pytest.fixture(scope=_as_long_as_may_be)
def screen_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """The machine's own Chromium."""
    with chromium(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture(scope=_as_long_as_may_be)
def kept_pages(screen_browser: Browser) -> KeptPages:
    """Tabs of the stage's page."""
    return KeptPages(screen_browser, WAIT)


@pytest.fixture(scope="session")
def _served() -> Iterator[Stage]:
    stage = Stage().start()
    yield stage
    stage.stop()


@pytest.fixture
def stage(_served: Stage) -> Stage:
    """The page's server; what it heard before is forgotten."""
    _served.asked.clear()
    _served.sent.clear()
    _served.preferred.clear()
    _served.stops = 0
    _served.refusal = {}
    _served.evidence = None
    _served.models = {"favourites": [], "lately": [], "groups": []}
    _served.meter = {}
    _served.prompts = PROMPTS
    _served.dictation = {"browser": True, "longest": 300}
    _served.heard = {}
    _served.recordings.clear()
    _served.services = SERVICES
    _served.answers = {}
    _served.searching.set()
    _served.inside = lambda _: {}
    return _served


@pytest.fixture
def show(kept_pages: KeptPages, stage: Stage) -> Iterator[Callable[..., Page]]:
    """Open a scene: `show("answered", locale="zh-CN", width=390, height=780)`; errors in the page fail the test.

    `path` opens another address of the page instead: a place in the settings, or a copy of a conversation.
    """
    contexts: list[BrowserContext] = []
    lent: list[Page] = []
    watches: list[Watch] = []

    def open_(
        scene: str = "",
        *,
        path: str = "",
        width: int = 1440,
        height: int = 900,
        provokes: Sequence[str] = (),  # parts of what the console says that a test brings about on purpose
        **options: Any,
    ) -> Page:
        given = {"viewport": {"width": width, "height": height}, "locale": "en-US", **options}
        if given.keys() <= KEPT:
            page = kept_pages.take(stage.url, **given)
            lent.append(page)
        else:
            contexts.append(kept_pages.new_context(**given))
            page = contexts[-1].new_page()
        watches.append(Watch(page, expected=[*provokes]))
        page.goto(stage.url + (path or f"/?scene={scene}"), wait_until="domcontentloaded")
        expect(page.locator("#status [data-state]:not([data-lang=''])")).to_be_attached(timeout=60_000)
        composer = expect(page.locator("#composer textarea"))
        composer.to_be_attached() if path else composer.to_be_visible()  # the settings hide it
        wait_for_script(page)
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
