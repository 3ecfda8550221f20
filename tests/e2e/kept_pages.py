"""Pages that one test after another is given: a tab whose browser has read the page's script before shows it sooner.

What a test left in such a tab is gone before the next has it: cookies, storage, permissions, routes, further tabs.
Tests of a page that nobody has opened before make a context of their own, as `test_page_weight.py` does.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, Route
from playwright.sync_api import Error as BrowserError

_QUIET = "/nothing-is-here"
_CLEAR = """async () => {
  localStorage.clear();
  sessionStorage.clear();
  return [(await indexedDB.databases()).length, (await caches.keys()).length];
}"""
# A sign that turns without end has the browser draw sixty pictures a second for as long as a test looks at its page.
_TURNS_ONCE = """{
  const sheet = new CSSStyleSheet();
  sheet.replaceSync('*, ::before, ::after { animation-iteration-count: 1 !important; }');
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}"""
# The same as the page's: another would make the browser begin a new process, and read everything again.
_ISOLATED = {"cross-origin-opener-policy": "same-origin"}


KEPT = frozenset({"viewport", "locale", "has_touch", "is_mobile"})
"""The options of tabs that are kept; whoever wants more gets a window for one test alone."""


class KeptPages:
    """The free tabs of a browser, by whose page, for which reader and for which hands.

    Args:
        browser: Outlives them.
        wait: Milliseconds that a tab waits for anything.
    """

    def __init__(self, browser: Browser, wait: int) -> None:
        self._browser = browser
        self._wait = wait
        self._free: dict[tuple[str, str, bool, bool], list[Page]] = {}
        self._kinds: dict[Page, tuple[str, str, bool, bool]] = {}

    def take(self, url: str, locale: str, viewport: Any, *, has_touch: bool = False, is_mobile: bool = False) -> Page:
        """A tab as if it were new; `give_back` it.

        Args:
            url: The site's, without a path.
            locale: The reader's language.
            viewport: Width and height.
            has_touch: Whether fingers are used on it.
            is_mobile: Whether it is a telephone's, which shows a wide page from afar.
        """
        kind = (url, locale, has_touch, is_mobile)
        free = self._free.setdefault(kind, [])
        if free:
            page = free.pop()
            page.set_viewport_size(viewport)
            return page
        options = {"locale": locale, "viewport": viewport, "has_touch": has_touch, "is_mobile": is_mobile}
        page = self.new_context(base_url=url, **options).new_page()
        self._kinds[page] = kind
        return page

    def new_context(self, **options: Any) -> BrowserContext:
        """A window for one test alone, which the test closes.

        It has no worker, which would go between the page and its server, unless `options` allow that. What moves on
        the page moves, but nothing without end.
        """
        context = self._browser.new_context(**{"service_workers": "block", **options})
        context.set_default_timeout(self._wait)
        context.add_init_script(_TURNS_ONCE)
        return context

    def give_back(self, page: Page) -> None:
        """Clear a tab for the next test; one that cannot be cleared is closed."""
        kind = self._kinds[page]
        try:
            clear(page, kind[0])
        except BrowserError:
            del self._kinds[page]
            with suppress(BrowserError):  # the test closed it itself
                page.context.close()
        else:
            self._free[kind].append(page)


def clear(page: Page, url: str) -> None:
    """Leave nothing of a test in its tab or in the tab's window.

    Raises:
        playwright.sync_api.Error: It is closed, or holds what this does not know how to clear.
    """
    context = page.context
    for other in context.pages:
        if other is not page:
            other.close()
    page.unroute_all(behavior="ignoreErrors")
    context.unroute_all(behavior="ignoreErrors")
    page.route(f"**{_QUIET}", _empty)
    page.goto(url + _QUIET)  # what the page waited for ends
    page.unroute_all()
    page.emulate_media(media="null", color_scheme="null", reduced_motion="null", forced_colors="null")
    if any(page.evaluate(_CLEAR)):
        raise BrowserError("The page keeps things where nobody looked.")
    page.mouse.move(-1, -1)  # out of it; it would point at something of the next page
    page.set_extra_http_headers({})
    context.set_offline(False)
    context.clear_permissions()
    context.clear_cookies()


def _empty(route: Route) -> None:
    route.fulfill(body="<title>.</title>", content_type="text/html", headers=_ISOLATED)
