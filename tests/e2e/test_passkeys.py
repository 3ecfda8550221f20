"""A device of a person's signs them in, where the browser has one: here Chromium's own made-up authenticator."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Browser, expect

from core.testing.behaviour import behave
from core.testing.model_server import ModelServer
from tests.e2e.app_process import AppProcess

GOOD = "a sentence that nobody guesses"


def test_a_passkey_is_added_and_signs_in_without_a_password(tmp_path: Path, browser: Browser) -> None:
    with ModelServer(behave) as model:
        app = AppProcess(tmp_path / "home", model, {"ACCOUNTS": "accounts", "CODE": "off"}).start()
        try:
            found = re.search(r"/link/(\S+)", app.log.read_text("utf-8"))
            assert found is not None
            here = f"http://localhost:{app.port}"  # an address in figures has no passkeys
            context = browser.new_context(locale="en-GB")
            page = context.new_page()
            device = context.new_cdp_session(page)
            device.send("WebAuthn.enable")
            options = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True}
            options |= {"hasUserVerification": True, "isUserVerified": True, "automaticPresenceSimulation": True}
            device.send("WebAuthn.addVirtualAuthenticator", {"options": options})
            page.goto(f"{here}/link/{found[1]}")
            page.get_by_label("Name").fill("Jan")
            page.get_by_label("Password").fill(GOOD)
            page.get_by_role("button", name="Create the owner's account").click()
            page.wait_for_url(f"{here}/")
            page.goto(f"{here}/account")
            page.locator("#passkey-password").fill(GOOD)
            asked: list[str] = []
            page.on("request", lambda request: asked.append(request.url))
            page.get_by_role("button", name="Add a passkey").dblclick()
            expect(page.get_by_role("button", name="Remove", exact=True)).to_be_visible()
            assert asked.count(f"{here}/account/passkey/begin") == 1, "once for both clicks"
            page.get_by_role("button", name="Sign out").click()
            page.wait_for_url(f"{here}/sign-in")
            page.get_by_role("button", name="Sign in with a passkey").click()
            page.wait_for_url(f"{here}/")
            page.goto(f"{here}/account")
            expect(page.get_by_text("Signed in as Jan, Owner.")).to_be_visible()
            page.get_by_role("button", name="Remove", exact=True).click()
            expect(page.get_by_role("button", name="Remove", exact=True)).to_have_count(0)
            page.get_by_role("button", name="Sign out").click()
            page.get_by_role("button", name="Sign in with a passkey").click()
            expect(page.get_by_role("alert")).to_contain_text("did not prove who you are")
            context.close()
        finally:
            app.stop()
