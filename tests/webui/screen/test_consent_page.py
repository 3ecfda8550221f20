"""The page where somebody lets a program in, in Chromium: it fits, leads to the program alone, and into no frame."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser

from tests.doors.house import House, house_in
from tests.webui.server.consent_pages import BACK, Program


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house_in(tmp_path_factory.mktemp("consent") / "home") as house:
        yield house


def asked_at(house: House, name: str) -> str:
    """The address of the page, for a program that calls itself so."""

    async def introduced() -> str:
        async with httpx.AsyncClient() as http:
            program = await Program(http, house.address).introduce(client_name=name)
            return f"{house.address}/oauth/authorize?{program.asking()}"

    return house.do(lambda _: introduced())


@pytest.mark.parametrize(("lang", "scheme", "width"), [("en", "light", 1280), ("zh", "dark", 360)])
def test_whoever_agrees_is_led_back_and_the_page_fits(
    screen_browser: Browser, house: House, lang: str, scheme: str, width: int
) -> None:
    address = asked_at(house, "A program with a name as long as names of programs may be.")
    context = screen_browser.new_context(
        locale=lang,
        color_scheme=scheme,  # type: ignore[arg-type]
        viewport={"width": width, "height": 800},
    )
    with context:
        page, said = context.new_page(), list[str]()
        page.on("console", lambda message: said.append(message.text))
        page.route(f"{BACK}?*", lambda route: route.fulfill(body="back"))
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for button in page.locator("button").all():
            box = button.bounding_box()
            assert box is not None
            assert box["height"] >= 44
        page.get_by_role("button", name="Allow" if lang == "en" else "允许").click()
        page.wait_for_url(f"{BACK}?code=*")
        assert said == []


def test_no_other_page_shows_it_in_a_frame(screen_browser: Browser, house: House, tmp_path: Path) -> None:
    outer = tmp_path / "outer.html"
    address = asked_at(house, "Editor")
    outer.write_text(f"<iframe src='{address}'></iframe>", encoding="utf-8")
    page = screen_browser.new_page()
    try:
        page.goto(outer.as_uri())
        page.wait_for_function("document.querySelector('iframe') !== null")
        (_, frame) = page.frames
        frame.wait_for_load_state()
        assert frame.locator("button").count() == 0
    finally:
        page.close()
