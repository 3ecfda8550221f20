"""On a Space the page stands in a frame of another site, whatever cookies the browser keeps there."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserType, Frame, Page, expect

from set_up import find_browser
from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import until

# Chromium's own settings: it keeps cookies in frames of other sites, or apart for each outer site, or none at all.
COOKIES: dict[str, dict[str, Any]] = {
    "allowed": {"profile": {"cookie_controls_mode": 0, "block_third_party_cookies": False}},
    "partitioned": {"profile": {"cookie_controls_mode": 1, "block_third_party_cookies": True}},
    "blocked": {"profile": {"default_content_setting_values": {"cookies": 2}}},
}
SANDBOX = "allow-scripts allow-same-origin allow-forms allow-popups allow-downloads allow-modals"


@contextmanager
def outer_site(inner: str) -> Iterator[str]:
    """Another site, whose page shows Parlour's in a frame as Hugging Face does; gives its address."""

    class Outer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = f'<!doctype html><iframe src="{inner}" sandbox="{SANDBOX}" width=1200 height=800></iframe>'
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    site = ThreadingHTTPServer(("127.0.0.1", 0), Outer)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    yield f"http://outer.localhost:{site.server_port}/"
    site.shutdown()
    site.server_close()


@contextmanager
def browser_with(kind: BrowserType, folder: Path, preferences: dict[str, Any]) -> Iterator[Page]:
    """A page of a browser with these settings: they are those of a whole profile."""
    profile = folder / "profile" / "Default"
    profile.mkdir(parents=True)
    (profile / "Preferences").write_text(json.dumps(preferences), encoding="utf-8")
    context = kind.launch_persistent_context(
        str(profile.parent),
        executable_path=find_browser(),
        args=["--headless", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP *.localhost 127.0.0.1"],
        locale="en-US",
        viewport={"width": 1240, "height": 860},
    )
    context.set_default_timeout(60_000)
    yield context.pages[0]
    context.close()


def parlour(page: Page) -> Frame:
    """Parlour's page, once it can be used."""
    frame = page.frame_locator("iframe")
    expect(frame.locator("html[data-hour]")).to_be_attached()
    found = next(one for one in page.frames if "space.localhost" in one.url)
    expect(found.locator("#status [data-lang='en']")).to_be_attached()
    return found


@pytest.mark.parametrize("cookies", COOKIES)
def test_in_a_frame_it_answers_shows_evidence_and_finds_its_place_when_the_outer_page_is_loaded_again(
    cookies: str, start_app: Callable[..., AppProcess], browser: Browser, tmp_path: Path
) -> None:
    app = start_app(name=cookies, ALLOWED_HOSTS="space.localhost", FRAMES="http://outer.localhost:*", OWNERS="cookie")
    inner = f"http://space.localhost:{app.port}/?__theme=dark"
    with (
        outer_site(inner) as address,
        browser_with(browser.browser_type, tmp_path, COOKIES[cookies]) as page,
    ):
        page.goto(address)
        frame = parlour(page)
        expect(frame.locator("html")).to_have_class("dark")
        frame.locator("#composer textarea").fill("Is anybody there?")
        frame.locator("#composer textarea").press("Enter")
        expect(frame.locator("#chat")).to_contain_text("You said: Is anybody there?")
        frame.locator("#house .p-new").click()
        frame.locator("#hello .p-watch").first.click()
        frame.locator("#demo .p-demo-on").click()
        frame.locator("#demo .p-marks button").nth(2).click()
        frame.locator("#chat a.cite").first.click()
        picture = frame.locator("#page .p-evidence img").first
        expect(picture).to_be_visible()
        until(lambda: picture.evaluate("(one) => one.naturalWidth") > 0)
        note = frame.locator(".p-framed")
        expect(note).to_have_count(1 if cookies == "blocked" else 0)
        frame.locator("#side .p-unfold-side").click()  # the history made room for the page
        frame.locator("#history").get_by_text("Is anybody there?").first.click()
        expect(frame.locator("#chat")).to_contain_text("You said: Is anybody there?")
        page.reload()
        again = parlour(page)
        if cookies == "blocked":
            expect(again.locator(".p-framed a")).to_have_attribute("target", "_blank")
        else:
            expect(again.locator("#chat")).to_contain_text("You said: Is anybody there?")
