"""Names that people choose run nothing in a browser: of people, groups, libraries, keys and conversations."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from core.testing.behaviour import behave
from core.testing.model_server import ModelServer
from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask, chat

GOOD = "a sentence that nobody guesses"
PWNED = "document.title='pwned'"
MARA = f"<img id=pwned src=x onerror={PWNED}>"
JAN = f'"><b id=pwned autofocus onfocus={PWNED}>'
GROUP = f"</select></title><svg id=pwned onload={PWNED}>"
SIGNS = "[id=pwned], [onerror], [onfocus], [onload]"


class Room:
    """What two people see, each in a browser of their own; what runs or is stopped from running is noted."""

    def __init__(self, app: AppProcess, browser: Browser) -> None:
        self.app, self.browser = app, browser
        self.noted: list[str] = []

    def person(self, token: str, name: str) -> Page:
        page = self.browser.new_context(locale="en-GB", viewport={"width": 1280, "height": 860}).new_page()
        page.on("dialog", lambda dialog: self.noted.append(dialog.message))
        page.on("console", lambda one: self.noted.append(one.text) if "Content Security" in one.text else None)
        page.goto(f"{self.app.url}/link/{token}")
        page.get_by_label("Name").fill(name)
        page.get_by_label("Password").fill("short")
        page.locator("form button").first.evaluate("(one) => { one.form.noValidate = true; one.click(); }")
        expect(page.get_by_role("alert")).to_be_visible()
        self.harmless(page)
        expect(page.get_by_label("Name")).to_have_value(name)
        page.get_by_label("Password").fill(GOOD)
        page.locator("form button").first.click()
        page.wait_for_url(f"{self.app.url}/")
        return page

    def sent(self, page: Page, path: str, **form: str) -> str:
        answer = page.request.post(self.app.url + path, form={**form}, headers={"origin": self.app.url})
        assert answer.ok, answer.text()
        return answer.text()

    def told(self, page: Page, path: str, **body: object) -> None:
        ours = {"origin": self.app.url, "x-parlour": "1"}
        answer = page.request.post(self.app.url + path, data=body, headers=ours)
        assert answer.ok, answer.text()

    def harmless(self, page: Page) -> None:
        assert page.locator(SIGNS).count() == 0
        assert page.title() != "pwned"
        assert self.noted == []

    def shows(self, page: Page, path: str, *names: str) -> None:
        page.goto(self.app.url + path)
        for name in names:
            assert name in (page.locator("body").text_content() or ""), (path, name)
        self.harmless(page)


def test_names_of_people_groups_and_what_is_theirs_run_nothing(tmp_path: Path, browser: Browser) -> None:
    with ModelServer(behave) as model:
        app = AppProcess(tmp_path / "home", model, {"ACCOUNTS": "accounts", "CODE": "off"}).start()
        try:
            room = Room(app, browser)
            found = re.search(r"/link/(\S+)", app.log.read_text("utf-8"))
            assert found is not None
            mara = room.person(found[1], MARA)
            token = re.search(r"/link/([\w-]+)</code>", room.sent(mara, "/people/invite", role="member"))
            assert token is not None
            jan = room.person(token[1], JAN)
            page = room.sent(mara, "/people/group-make", name=GROUP)
            (group,) = set(re.findall(r'name="group" value="([\w-]+)"', page))
            for one in set(re.findall(r'value="(p-[\w-]+)"', page)):
                room.sent(mara, "/people/group-add", group=group, person=one)
            room.told(mara, "/libraries/create", name=MARA)
            libraries = mara.request.get(f"{app.url}/libraries/state").json()["libraries"]
            (library,) = [one["id"] for one in libraries if one["name"] == MARA]
            room.sent(mara, "/lending/set", kind="library", thing=library, group=group, how="read")
            room.told(mara, "/keys/make", name=MARA, scopes=["chat"])

            room.shows(mara, "/people", MARA, JAN, GROUP)
            room.shows(mara, "/account", MARA)
            room.shows(jan, "/account", JAN)
            room.shows(mara, "/lending", MARA, GROUP)
            room.shows(jan, "/lending", MARA)
            mara.goto(f"{app.url}/settings/programs")
            expect(mara.locator(".p-api-keys-here").get_by_text(MARA).first).to_be_visible()
            room.harmless(mara)
            for page in (mara, jan):
                page.goto(app.url)
                ask(page, MARA)
                expect(chat(page)).to_contain_text("You said: <img")
                expect(page.locator("#history")).to_contain_text("<img id=pwned")
                page.locator("#history [data-do=libraries]").first.click()
                expect(page.locator("dialog[open]")).to_contain_text("<img id=pwned")
                room.harmless(page)
        finally:
            app.stop()
