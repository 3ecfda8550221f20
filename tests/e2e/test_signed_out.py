"""All sessions of somebody are ended while she reads a reply: her page says it, and leads back."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Browser, expect

from core.testing.behaviour import behave
from core.testing.model_server import ModelServer
from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask, chat
from tests.e2e.test_lending import GOOD, House


def test_who_is_signed_out_in_mid_reply_reads_so_and_comes_back_to_the_conversation_by_signing_in(
    tmp_path: Path, browser: Browser
) -> None:
    with ModelServer(behave) as model:
        app = AppProcess(tmp_path / "home", model, {"ACCOUNTS": "accounts", "CODE": "off"}).start()
        try:
            house = House(app, browser)
            jan = house.jan
            jan.set_viewport_size({"width": 390, "height": 844})
            ask(jan, "count at leisure")
            expect(chat(jan)).to_contain_text("word10 ")
            expect(jan).to_have_url(re.compile(r"\?c="))
            talk = jan.url
            people = house.mara.request.get(f"{app.url}/people").text()
            (who,) = re.findall(r'<td>Jan</td><td>.*?value="(p-[\w-]+)"', people)
            house.sent(house.mara, "/people/end", person=who)
            dialog = jan.get_by_role("dialog", name="You are signed out.")
            expect(dialog).to_be_visible()
            expect(jan.locator(".toast-body, .error").locator("visible=true")).to_have_count(0)
            dialog.get_by_role("button", name="Sign in").click()
            jan.get_by_label("Name").fill("Jan")
            jan.get_by_label("Password").fill(GOOD)
            jan.locator("form button").first.click()
            expect(chat(jan)).to_contain_text("word10 ")
            assert jan.url == talk
        finally:
            app.stop()
