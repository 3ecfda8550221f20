"""What a part of the page holds is told by attributes: at once, and no longer than it is so."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page

from webui.bundles import STYLES, assets_folder

Show = Callable[..., Page]
# What is put somewhere, and how the part around it looks in the next frame and in the one after it went again.
SEEN = """async ([place, markup, part, property]) => {
    const frame = () => new Promise((tell) => requestAnimationFrame(() =>
        tell(getComputedStyle(document.querySelector(part))[property])));
    const came = document.createElement('div');
    came.innerHTML = markup;
    document.querySelector(place).append(came);
    const held = await frame();
    came.remove();
    return [held, await frame()];
}"""


def seen(page: Page, *given: str) -> list[str]:
    found: list[str] = page.evaluate(SEEN, list(given))
    return found


def test_what_comes_is_told_in_the_same_frame_and_what_went_as_well(show: Show) -> None:
    page = show("answered")
    row = "#chat .user-row"
    assert seen(page, f"{row} .prose", '<span class="p-versus"></span>', row, "display") == ["none", "block"]
    panel = '<div class="p-evidence"></div>'
    assert seen(page, "#page .prose", panel, "#evidence", "display") == ["block", "none"]


def test_the_state_of_a_reply_and_of_the_room_is_told_in_the_same_frame(show: Show) -> None:
    page = show("answered")
    stop = "#composer .input-row > .stop-button"
    running = '<i data-state="running"></i>'
    assert seen(page, "#status .prose", running, stop, "display") == ["grid", "none"]
    empty = '<i data-room="empty"></i>'
    assert seen(page, "#status .prose", empty, "#chat", "display") == ["none", "flex"]


def test_a_part_within_a_part_of_its_kind_is_told_too(show: Show) -> None:
    page = show("nested")
    told = page.evaluate("""async () => {
        const parts = [...document.querySelectorAll('#chat .content .content')];
        const [inner] = parts;
        const came = Object.assign(document.createElement('i'), { className: 'p-thoughts' });
        inner.append(came);
        await new Promise(requestAnimationFrame);
        const both = [inner, inner.parentElement.closest('.content')].map((one) => one.hasAttribute('data-thoughts'));
        came.remove();
        await new Promise(requestAnimationFrame);
        return [...both, inner.hasAttribute('data-thoughts')];
    }""")
    assert told == [True, True, False]


def test_each_attribute_that_the_script_sets_is_read_by_a_style() -> None:
    script = (assets_folder() / "js" / "holding.js").read_text("utf-8")
    styles = "".join((assets_folder() / "css" / f"{name}.css").read_text("utf-8") for name in STYLES)
    told = set(re.findall(r"'(data-[a-z-]+)'", script))
    assert len(told) > 20
    assert {one for one in told if f"[{one}]" not in styles} == set()
