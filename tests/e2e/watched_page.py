"""Keeps an eye on a page of the browser: what goes wrong in it fails the test."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from playwright.sync_api import ConsoleMessage, Error, Page, Request

_OWN = ("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:", "about:")
# A reload ends the requests of the page before it, and Gradio says so.
_EXCUSED_AFTER_RELOAD = ("AbortError", "Connection errored out")
_EXCUSED_SECONDS = 60  # before and after; a busy machine hears of it late


@dataclass
class Watch:
    """Collects page errors, console errors and requests to other hosts in `bad`.

    A test that provokes an error on purpose names a part of its text in `expected`.
    """

    page: Page
    bad: list[str] = field(default_factory=list[str])
    expected: list[str] = field(default_factory=list[str])
    _loads: list[float] = field(default_factory=list[float])
    _ended: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])

    def __post_init__(self) -> None:
        self.page.on("pageerror", self._on_page_error)
        self.page.on("console", self._on_console)
        self.page.on("request", self._on_request)
        self.page.on("domcontentloaded", self._on_load)

    def end(self) -> None:
        """See no more of the page."""
        self.page.remove_listener("pageerror", self._on_page_error)
        self.page.remove_listener("console", self._on_console)
        self.page.remove_listener("request", self._on_request)
        self.page.remove_listener("domcontentloaded", self._on_load)

    def verdict(self) -> list[str]:
        """What nobody expected."""
        reloads = self._loads[1:]  # the first is the page's coming
        lost = [line for at, line in self._ended if not any(abs(at - one) < _EXCUSED_SECONDS for one in reloads)]
        return [line for line in [*self.bad, *lost] if not any(part in line for part in self.expected)]

    def _on_page_error(self, error: Error) -> None:
        self._note(f"page error: {error}")

    def _on_load(self, _: Page) -> None:
        self._loads.append(time.monotonic())

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._note(f"console error: {message.text} ({message.location.get('url', '')})")

    def _on_request(self, request: Request) -> None:
        if not request.url.startswith(_OWN):
            self._note(f"request to another host: {request.url}")

    def _note(self, line: str) -> None:
        if any(part in line for part in _EXCUSED_AFTER_RELOAD):
            self._ended.append((time.monotonic(), line))
        else:
            self.bad.append(line)
