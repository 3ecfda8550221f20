"""A persona that is shared to be changed shows on its owner's open panel what its borrower made of it."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from core.testing.behaviour import behave
from core.testing.model_server import ModelServer
from tests.e2e.app_process import AppProcess
from tests.e2e.test_lending import House


def _panel(page: Page) -> None:
    page.locator("#top .p-open-steer").click()
    expect(page.locator("#page .p-told")).to_be_visible()


def test_the_panel_of_a_persona_shows_what_its_borrower_changed_and_keeps_what_is_half_typed(
    tmp_path: Path, browser: Browser
) -> None:
    with ModelServer(behave) as model:
        app = AppProcess(tmp_path / "home", model, {"ACCOUNTS": "accounts", "CODE": "off"}).start()
        try:
            house = House(app, browser)
            mara, jan = house.mara, house.jan
            mara.reload()
            _panel(mara)
            told = mara.locator("#page .p-told")
            told.fill("Speak like a pirate.")
            told.blur()
            mara.locator("[data-do=persona-name]").click()
            mara.locator(".p-name-form input").fill("Pirate")
            mara.keyboard.press("Enter")
            expect(mara.locator("#page [data-do=lend]")).to_be_visible()
            row = mara.locator("#page .p-files .p-quiet")
            tops = row.evaluate_all("row => row.map((one) => one.getBoundingClientRect().top)")
            assert len(set(tops)) == 1, "the four stand on one line"
            mara.locator("#page [data-do=lend]").click()
            mara.get_by_role("combobox", name="Share “Pirate” with Research").select_option("write")
            mara.keyboard.press("Escape")

            jan.reload()
            _panel(jan)
            jan.locator("#page .p-persona").select_option(label="Pirate · Mara")
            theirs = jan.locator("#page .p-told")
            expect(theirs).to_have_value("Speak like a pirate.")

            def changed(text: str) -> None:
                theirs.fill(text)
                theirs.blur()
                jan.locator("[data-do=persona-name]").click()
                jan.keyboard.press("Enter")

            changed("Speak like a sailor.")
            expect(told).to_have_value("Speak like a sailor.")

            mara.locator("#page details", has=mara.locator(".p-about-persona")).locator("summary").click()
            starters = mara.locator(".p-about-persona textarea")
            starters.fill("Where is the treasure?")
            changed("Speak like a captain.")
            mara.wait_for_function("() => document.querySelector('#page .p-told').value !== ''")
            expect(starters).to_have_value("Where is the treasure?")
            mara.locator(".p-about-persona button").click()
            expect(told).to_have_value("Speak like a captain.")
        finally:
            app.stop()
