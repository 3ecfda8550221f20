"""What axe-core finds on a page: the rules of WCAG 2 at A and AA, and its best practices."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import axe_playwright_python
from playwright.sync_api import Page, expect

_SCRIPT = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")
_RUN = """async ([within, rules]) => (await axe.run(within || document, { resultTypes: ['violations'], ...rules }))
    .violations.flatMap(({ id, nodes }) => nodes.map((one) => `${id}: ${one.target} ${one.failureSummary}`))"""
_COLOURS: dict[str, Any] = {"runOnly": ["color-contrast", "link-in-text-block"]}
_DARK = re.compile(r"\bdark\b")
DESK = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 844}


def findings(page: Page, within: str = "", **rules: Any) -> list[str]:
    """Each rule that is broken, and where.

    Args:
        page: What is looked at, as it is.
        within: A selector, where only a part of it is new.
        rules: Options of `axe.run`.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(_SCRIPT)
    return page.evaluate(_RUN, [within, rules])


def findings_everywhere(page: Page, within: str = "") -> list[str]:
    """The same at both widths and in both themes; what a rule says of anything but colours is the same in both."""
    found: list[str] = []
    page.emulate_media(reduced_motion="reduce")  # before the width changes: a drawer half-way out counts as a skip link
    for size in (PHONE, DESK):
        page.set_viewport_size(size)  # pyright: ignore[reportArgumentType]
        found += findings_in_both_themes(page, within)
    return found


def findings_in_both_themes(page: Page, within: str = "") -> list[str]:
    """The same in both themes, at the width that the page has."""
    page.emulate_media(color_scheme="light", reduced_motion="reduce")  # nothing is caught half-way to its colour
    expect(page.locator("html")).not_to_have_class(_DARK)
    found = findings(page, within)
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_class(_DARK)
    return found + findings(page, within, **_COLOURS)
