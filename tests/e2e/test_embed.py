"""Another site's page shows the small chat by one line, in Chromium: an answer, its source, Escape, and a reload."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, expect

from core.testing.script import Reply
from tests.doors.house import house_in
from tests.doors.test_embed import with_vault
from tests.e2e.chat_steps import until


@contextmanager
def site(head: str) -> Iterator[str]:
    """Another site, whose page has this in its head; gives its address."""

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = f"<!doctype html><html lang=en><title>A blog</title>{head}<h1>A blog</h1><div id=here></div>"
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def test_one_line_on_another_site_shows_a_chat_whose_marks_open_the_page(browser: Browser, tmp_path: Path) -> None:
    with house_in(tmp_path / "home", embed_sites=("http://127.0.0.1:*",)) as house:
        house.do(with_vault)
        key = house.key("blog", scopes=["embed"], models=["parlour"])
        line = f'<script src="{house.address}/embed.js" data-key="{key}" defer></script>'
        with site(line) as address:
            page = browser.new_page(viewport={"width": 1000, "height": 760})
            said: list[str] = []
            page.on("console", lambda one: said.append(one.text) if one.type == "error" else None)
            page.goto(address)
            button = page.get_by_role("button", name="Ask", exact=True)
            button.click()
            frame = page.frame_locator("iframe")
            expect(frame.locator("#name")).to_have_text("Parlour")
            question = "With which word does the vault open?"
            house.says(Reply(text="With **heliotrope** [1].", pace=0.01))
            frame.locator("textarea").fill(question)
            frame.locator("textarea").press("Enter")
            expect(frame.locator("#talk strong")).to_have_text("heliotrope")
            frame.locator("button.mark").click()
            expect(frame.locator("#source")).to_contain_text("vault.pdf")
            picture = frame.locator("#source img")
            until(lambda: picture.evaluate("(one) => one.naturalWidth") > 0)
            frame.locator("#source .close").press("Escape")
            expect(frame.locator("#source")).to_be_hidden()
            expect(frame.locator("button.mark")).to_be_focused()
            page.reload()
            button.click()
            expect(frame.locator("#talk")).to_contain_text(question)
            expect(frame.locator("#talk strong")).to_have_text("heliotrope")
            frame.locator("textarea").press("Escape")
            expect(page.locator("iframe")).to_be_hidden()
            expect(button).to_be_focused()
            assert said == []
            page.close()
