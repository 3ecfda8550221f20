"""The page is light: what a browser that has never been here loads until it can be used."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.app_process import AppProcess
from tests.e2e.conftest import DESK, wait_until_usable

MOST_BYTES, MOST_REQUESTS = 600_000, 80


class Scales:
    """Weighs what a page transfers, headers included.

    Args:
        page: A page that has loaded nothing yet.
    """

    def __init__(self, page: Page) -> None:
        self.asked: dict[str, str] = {}
        self.weights: dict[str, int] = {}
        session = page.context.new_cdp_session(page)
        session.on("Network.requestWillBeSent", self._ask)
        session.on("Network.dataReceived", self._grow)
        session.on("Network.loadingFinished", self._end)
        session.send("Network.enable")
        session.send("Network.setCacheDisabled", {"cacheDisabled": True})

    def _ask(self, event: dict[str, Any]) -> None:
        if not event["request"]["url"].startswith("data:"):
            self.asked[event["requestId"]] = event["request"]["url"]

    def _grow(self, event: dict[str, Any]) -> None:  # a stream that stays open has no end to weigh it by
        self.weights[event["requestId"]] = self.weights.get(event["requestId"], 0) + event["encodedDataLength"]

    def _end(self, event: dict[str, Any]) -> None:
        self.weights[event["requestId"]] = event["encodedDataLength"]

    def heaviest(self) -> str:
        """The ten heaviest, for the message of a failure."""
        rows = sorted(((self.weights.get(name, 0), url) for name, url in self.asked.items()), reverse=True)
        return "\n".join(f"{weight:8} {url}" for weight, url in rows[:10])


@pytest.mark.parametrize(("locale", "said", "other"), [("en-US", "Dark", "深色"), ("zh-CN", "深色", "Dark")])
def test_a_cold_page_takes_at_most_six_hundred_kilobytes_and_eighty_requests(
    server: AppProcess, browser: Browser, locale: str, said: str, other: str
) -> None:
    context = browser.new_context(viewport=DESK, locale=locale, service_workers="block")  # pyright: ignore[reportArgumentType]
    page = context.new_page()
    context.request.get(server.at("/"))  # the token's cookie, so that the page itself is all that is weighed
    scales = Scales(page)
    page.goto(server.url, wait_until="load")
    wait_until_usable(page)
    page.wait_for_load_state("load")
    total = sum(scales.weights.get(name, 0) for name in scales.asked)
    # One of two tables of words: that of the reader's language.
    expect(page.locator("#history .p-open-settings")).to_be_visible()
    table = page.locator("#p-words").text_content() or ""
    assert f'"dark": "{said}"' in table
    assert f'"{other}"' not in table
    context.close()
    assert 100_000 < total <= MOST_BYTES, scales.heaviest()
    assert 20 < len(scales.asked) <= MOST_REQUESTS, "\n".join(scales.asked.values())
