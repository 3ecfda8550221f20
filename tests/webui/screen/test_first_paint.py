"""The page is never blank: its outline is there from the first bytes, in the right colours."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.e2e.chat_steps import switch_theme, until, wait_for_script
from tests.webui.screen.stage import Stage
from webui.bundles import assets_folder
from webui.page_head import DARK, LIGHT, Colours, with_first_paint

Show = Callable[..., Page]
NAMES = {"desk": "desk", "paper": "paper", "sheet": "sheet", "rule": "rule", "edge": "rule-strong", "ink": "ink"}
GROUND = "getComputedStyle(document.documentElement).backgroundColor"


def rgb(colour: str) -> str:
    """As a browser says it."""
    return f"rgb({', '.join(str(int(colour[at : at + 2], 16)) for at in (1, 3, 5))})"


@pytest.mark.parametrize(("colours", "start"), [(LIGHT, ":root {"), (DARK, ".dark {")])
def test_its_colours_are_the_pages_own(colours: Colours, start: str) -> None:
    tokens = Path(assets_folder() / "css" / "tokens.css").read_text("utf-8")
    block = tokens[tokens.index(start) :]
    for name, token in NAMES.items():
        found = re.search(rf"--p-{token}: (#[0-9a-f]+);", block)
        assert found is not None
        assert getattr(colours, name) == found[1]


def test_other_documents_stay_as_they_are() -> None:
    page = b"<html><head></head><body>Parlour is opening</body></html>"
    assert with_first_paint(page) == page


@pytest.mark.parametrize(
    ("scheme", "chosen", "ground"),
    [("light", "", LIGHT), ("dark", "", DARK), ("dark", "light", LIGHT), ("light", "dark", DARK)],
)
def test_before_anything_is_loaded_the_outline_stands_in_the_readers_colours(
    screen_browser: Browser, stage: Stage, scheme: str, chosen: str, ground: Colours
) -> None:
    context = screen_browser.new_context(color_scheme=scheme, service_workers="block")  # pyright: ignore[reportArgumentType]
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    context.route(re.compile(r"\.(js|css)(\?|$)"), hold)  # nothing but the first bytes comes
    context.add_init_script(f"if ('{chosen}') localStorage.setItem('p-theme', '{chosen}')")
    page = context.new_page()
    page.goto(stage.url, wait_until="commit")
    until(lambda: page.evaluate("performance.getEntriesByType('paint').length"))
    expect(page.locator("#p-first")).to_be_visible()
    assert page.evaluate(GROUND) == rgb(ground.desk)
    talk = "getComputedStyle(document.querySelector('.p-first-talk')).backgroundColor"
    assert page.evaluate(talk) == rgb(ground.paper)
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == (
        "dark" if ground is DARK else "light"
    )
    context.close()


def test_the_outline_goes_when_the_page_is_there_and_the_canvas_keeps_its_colour(show: Show) -> None:
    page = show(color_scheme="dark")
    expect(page.locator("#p-first")).to_be_hidden()
    assert page.evaluate(GROUND) == rgb(DARK.desk)
    switch_theme(page)
    expect(page.locator("html")).not_to_have_class("dark")
    assert page.evaluate(GROUND) == rgb(LIGHT.desk)
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"


@pytest.mark.parametrize(("width", "height"), [(1360, 860), (1000, 800), (390, 844)])
def test_the_outline_stands_where_the_page_will_stand(show: Show, width: int, height: int) -> None:
    page = show(width=width, height=height)
    page.add_style_tag(content="body #p-first.p-first-shown { display: flex !important; }")
    page.evaluate("document.querySelector('#p-first').classList.add('p-first-shown')")
    outline, composer = page.locator(".p-first-talk div").bounding_box(), page.locator("#composer").bounding_box()
    assert outline is not None
    assert composer is not None
    for side in ("x", "y", "width", "height"):
        assert outline[side] == pytest.approx(composer[side], abs=6)  # pyright: ignore[reportGeneralTypeIssues]


def test_where_the_browser_keeps_nothing_the_page_works_all_the_same(screen_browser: Browser, stage: Stage) -> None:
    context = screen_browser.new_context(locale="en-US", service_workers="block")
    refuse = """for (const kind of ['localStorage', 'sessionStorage']) Object.defineProperty(window, kind, {
        get() { throw new DOMException('Access is denied for this document.', 'SecurityError'); } });
        window.BroadcastChannel = class { constructor() { throw new DOMException('Access is denied here.'); } };"""
    context.add_init_script(refuse)
    page = context.new_page()
    bad: list[str] = []
    page.on("pageerror", lambda error: bad.append(str(error)))
    page.goto(f"{stage.url}/?scene=answered", wait_until="domcontentloaded")
    wait_for_script(page)
    expect(page).to_have_url(re.compile(r"\?c=conv"))
    switch_theme(page)
    page.locator("#chat sup > a.cite").first.click()
    expect(page.locator("#page .p-hl.p-on")).to_be_visible()
    page.locator("#composer textarea").fill("Still here")
    page.locator("#composer textarea").press("Enter")
    stage.until(lambda: stage.sent)
    assert not [line for line in bad if "Access is denied" in line]
    context.close()
