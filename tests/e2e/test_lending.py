"""What is shared in a thing's own dialog stands on the open page of whoever gets it until it is taken back."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from core.testing.behaviour import behave
from core.testing.model_server import ModelServer
from tests.e2e.app_process import AppProcess
from tests.e2e.axe import findings_everywhere

GOOD = "a sentence that nobody guesses"
SERVER = Path(__file__).parents[1] / "core" / "toolbox" / "shared_server.py"
TOOLS = "#history .p-open-tools, #history [data-do=tools]"
KEY = "CANARY-key-0123456789"


class House:
    """The app with two people in a group, each at a page of their own."""

    def __init__(self, app: AppProcess, browser: Browser) -> None:
        self._app = app
        self._browser = browser
        found = re.search(r"/link/(\S+)", app.log.read_text("utf-8"))
        assert found is not None
        self.mara = self.person(found[1], "Mara")
        invited = self.sent(self.mara, "/people/invite", role="member")
        token = re.search(r"/link/([\w-]+)</code>", invited)
        assert token is not None
        self.jan = self.person(token[1], "Jan")
        self.sent(self.mara, "/people/group-make", name="Research")
        page = self.mara.request.get(f"{app.url}/people").text()
        (group,) = set(re.findall(r'name="group" value="([\w-]+)"', page))
        for one in set(re.findall(r'value="(p-[\w-]+)"', page)):
            self.sent(self.mara, "/people/group-add", group=group, person=one)

    def person(self, token: str, name: str) -> Page:
        context = self._browser.new_context(locale="en-GB", viewport={"width": 1280, "height": 800})
        page = context.new_page()
        page.goto(f"{self._app.url}/link/{token}")
        page.get_by_label("Name").fill(name)
        page.get_by_label("Password").fill(GOOD)
        page.locator("form button").first.click()
        page.wait_for_url(f"{self._app.url}/")
        return page

    def sent(self, page: Page, path: str, **form: str | float | bool) -> str:
        return page.request.post(self._app.url + path, form=form, headers={"origin": self._app.url}).text()

    def server(self, folder: Path) -> None:
        """Mara's, which she has not confirmed yet."""
        settings = {"command": sys.executable, "args": [str(SERVER), str(folder)], "env": {"API_KEY": KEY}}
        body = {"name": "notes", "settings": settings}
        asked = self.mara.request.post(f"{self._app.url}/tools/save", data=body, headers={"origin": self._app.url})
        assert asked.json()["added"]


def test_a_server_is_shared_by_keyboard_and_stands_on_the_borrowers_open_page_until_it_is_taken_back(
    tmp_path: Path, browser: Browser
) -> None:
    with ModelServer(behave) as model:
        app = AppProcess(tmp_path / "home", model, {"ACCOUNTS": "accounts", "CODE": "off"}).start()
        try:
            house = House(app, browser)
            house.server(tmp_path)
            mara, jan = house.mara, house.jan
            jan.locator(TOOLS).first.click()
            parts = jan.locator(".p-tools [data-part]")
            expect(parts.first).to_be_visible()
            expect(jan.locator(".p-tools [data-part=lent]")).to_have_count(0)
            mara.reload()
            mara.locator(TOOLS).first.click()
            mara.locator(".p-tools [data-part]", has_text="notes").click()
            seen = mara.get_by_role("group", name="This will be started on Parlour's machine")
            expect(seen).to_contain_text("It runs with Parlour's rights")
            seen.get_by_role("button", name="Start it").click()
            expect(seen).to_be_hidden()
            share = mara.locator(".p-tools .p-share:visible")
            share.focus()
            mara.keyboard.press("Enter")
            choice = mara.get_by_role("combobox", name="Share “notes” with Research")
            expect(choice).to_be_focused()
            box = choice.bounding_box()
            assert box is not None
            assert box["height"] >= 40
            assert findings_everywhere(mara) == []
            choice.select_option("to use")
            expect(mara.locator("dialog.p-lend .p-lent")).to_have_text("Shared with Research.")
            expect(mara.locator("dialog.p-lend .p-who")).to_have_text("Jan")
            mara.keyboard.press("Escape")
            expect(share).to_be_focused()

            lent = jan.locator(".p-tools [data-part=lent]")  # without a reload
            lent.click()
            row = jan.locator(".p-lent-tool")
            expect(row).to_contain_text("of Mara, to use")
            row.get_by_role("switch", name="Use notes · of Mara, to use").click()
            expect(row.locator(".p-state").first).to_have_text("MCP server · ready, 7 tools")
            assert KEY not in jan.content()

            share.click()
            choice.select_option("not shared")
            expect(row).to_have_count(0)
            expect(jan.get_by_text("Nobody shares a tool with you.")).to_be_visible()

            people = mara.request.get(f"{app.url}/people").text()
            (who,) = re.findall(r'<td>Jan</td><td>.*?value="(p-[\w-]+)"', people)
            expect(jan.locator("#status [data-state]")).to_have_attribute("data-role", "member")
            house.sent(mara, "/people/role", person=who, role="administrator")
            expect(jan.locator("#status [data-state]")).to_have_attribute("data-role", "administrator")
        finally:
            app.stop()
