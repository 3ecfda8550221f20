"""Keeps an eye on a page of the browser: what goes wrong in it fails the test."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from playwright.sync_api import ConsoleMessage, Frame, Page, Request

_OWN = ("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:", "about:")
# A reload ends the requests of the page before it, and Gradio says so.
_EXCUSED_AFTER_RELOAD = ("AbortError", "Connection errored out")
_EXCUSED_SECONDS = 5


@dataclass
class Watch:
    """Collects page errors, console errors and requests to other hosts in `bad`.

    A test that provokes an error on purpose names a part of its text in `expected`.
    """

    page: Page
    bad: list[str] = field(default_factory=list[str])
    expected: list[str] = field(default_factory=list[str])
    _loaded_at: float = 0.0

    def __post_init__(self) -> None:
        self.page.on("pageerror", lambda error: self._note(f"page error: {error}"))
        self.page.on("console", self._on_console)
        self.page.on("request", self._on_request)
        self.page.on("framenavigated", self._on_navigation)

    def verdict(self) -> list[str]:
        """What nobody expected."""
        return [line for line in self.bad if not any(part in line for part in self.expected)]

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._note(f"console error: {message.text} ({message.location.get('url', '')})")

    def _on_request(self, request: Request) -> None:
        if not request.url.startswith(_OWN):
            self._note(f"request to another host: {request.url}")

    def _on_navigation(self, frame: Frame) -> None:
        if frame == self.page.main_frame:
            self._loaded_at = time.monotonic()

    def _note(self, line: str) -> None:
        just_loaded = time.monotonic() - self._loaded_at < _EXCUSED_SECONDS
        if not (just_loaded and any(part in line for part in _EXCUSED_AFTER_RELOAD)):
            self.bad.append(line)
