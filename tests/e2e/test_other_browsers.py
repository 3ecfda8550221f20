"""The main way through the page in Firefox and WebKitGTK: a question, a reload, Stop, a file, a citation, the keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.e2e.app_process import AppProcess
from tests.e2e.https_sites import LOCAL, HttpsSites
from tests.e2e.webdriver import ENTER, Driver, firefox, webkit

SAMPLES = Path(__file__).resolve().parents[2] / "assets" / "samples"
USABLE = """return Boolean(document.documentElement.dataset.hour
    && document.querySelector('#status [data-lang]')?.dataset.lang)"""
SAYS = "return document.querySelector(arguments[0])?.innerText.includes(arguments[1])"
STATE = "return Boolean(document.querySelector(`#status [data-state=${arguments[0]}]`))"
COUNTED = "return (document.querySelector('#chat').innerText.match(/word\\d+/g) ?? []).length"
LABELS = "return document.querySelectorAll('#chat .p-acts .p-sr').length"
HIDDEN_LABELS = """return [...document.querySelectorAll('#chat .p-acts .p-sr')].map((label) => {
    const box = label.getBoundingClientRect();
    return box.width <= 1 && box.height <= 1 && getComputedStyle(label).clipPath === 'inset(50%)'; })"""
COMPOSER = "#composer textarea"


@pytest.fixture(params=[firefox, webkit], ids=["firefox", "webkit"])
def driver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Driver]:
    """Each browser, with a home of its own."""
    browser: Callable[[Path], AbstractContextManager[Driver]] = request.param
    with browser(tmp_path / "browser") as driver:
        yield driver


@pytest.mark.slow
def test_the_main_way_works_in_other_browsers(driver: Driver, server: AppProcess) -> None:
    driver.go(server.at("/"))
    driver.until(USABLE)
    driver.until("return document.activeElement === document.querySelector(arguments[0])", COMPOSER)
    driver.write(COMPOSER, f"count at leisure{ENTER}")
    driver.until(f"{COUNTED} > 5")
    driver.go(driver.run("return location.href"))
    driver.until(USABLE)
    driver.until(f"{COUNTED} > 10")
    driver.click("#composer .input-row > .stop-button")
    driver.until(STATE, "idle")
    assert 10 < driver.run(COUNTED) < 2_000
    driver.until(SAYS, "#chat", "You stopped this reply.")
    # WebKit painted labels over icons as long as they were hidden by their indent.
    assert driver.run(HIDDEN_LABELS) == [True] * driver.run(LABELS) != []
    driver.write("#composer input[type=file]", str(SAMPLES / "policy.pdf"))
    driver.until(SAYS, "#composer .p-chips .p-chip:not(.p-sending)", "policy.pdf")
    driver.write(COMPOSER, f"How soon must damage be reported?{ENTER}")
    driver.until("return document.querySelectorAll('#chat sup > a.cite').length")
    driver.until(STATE, "idle")
    driver.click("#chat sup > a.cite")
    driver.until("return document.querySelector('#page .p-hl.p-on')?.getBoundingClientRect().height > 2")
    driver.run("window.dispatchEvent(new KeyboardEvent('keydown', { key: '/', ctrlKey: true, bubbles: true }))")
    driver.until("return document.querySelector('dialog.p-keys[open]')?.innerText.includes('Ctrl')")


@pytest.mark.slow
def test_in_a_frame_of_another_site_it_answers_shows_evidence_and_finds_its_place_again(
    driver: Driver, start_app: Callable[..., AppProcess], tmp_path: Path
) -> None:
    outer, inner = LOCAL
    app = start_app(
        TRUSTED_PROXIES="127.0.0.1",
        RETRIEVAL="keyword",
        ALLOWED_HOSTS=inner,
        FRAMES=f"https://{outer}:*",
        OWNERS="cookie",
        CODE="off",
    )
    with HttpsSites(app.port, tmp_path, query="?__theme=dark", names=LOCAL) as sites:
        driver.go(sites.outer)
        driver.enter("iframe")
        driver.until(USABLE)
        assert driver.run("return self !== top && isSecureContext")
        driver.write("#composer input[type=file]", str(SAMPLES / "policy.pdf"))
        driver.until(SAYS, "#composer .p-chips .p-chip:not(.p-sending)", "policy.pdf")
        driver.click(COMPOSER)
        driver.write(COMPOSER, f"How soon must damage be reported?{ENTER}")
        driver.until("return document.querySelectorAll('#chat sup > a.cite').length")
        driver.until(STATE, "idle")
        driver.click("#chat sup > a.cite")
        driver.until("return document.querySelector('#page .p-hl.p-on')?.getBoundingClientRect().height > 2")
        driver.go(sites.outer)
        driver.enter("iframe")
        driver.until(USABLE)
        driver.until("return document.querySelectorAll('#chat sup > a.cite').length")
