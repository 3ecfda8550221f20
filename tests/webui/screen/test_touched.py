"""Where a finger points: nothing is dragged, and there is room for one name of a tool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

Show = Callable[..., Page]
PHONE: dict[str, Any] = {"width": 390, "height": 844, "has_touch": True, "is_mobile": True}


@pytest.mark.parametrize(("locale", "said"), [("en-US", "Ask, or add a file"), ("zh-CN", "提问，或添加文件")])
def test_nobody_is_told_to_drag_a_file_with_a_finger(show: Show, locale: str, said: str) -> None:
    expect(show(locale=locale, **PHONE).locator("#composer textarea")).to_have_attribute("placeholder", said)


def test_with_a_mouse_files_can_be_dropped(show: Show) -> None:
    field = show().locator("#composer textarea")
    expect(field).to_have_attribute("placeholder", "Ask, or drop a file here")


def test_on_a_phone_a_tool_is_told_by_what_it_does(show: Show) -> None:
    title = show("long", locale="zh-CN", **PHONE).locator("#chat .title:has(.p-lab)").first
    expect(title.locator(".p-lab")).to_be_visible()
    expect(title.locator(".p-tool")).to_be_hidden()


def test_the_time_that_is_waited_until_is_told_as_the_reader_writes_it(show: Show) -> None:
    for locale, twelve in (("en-US", True), ("en-GB", False), ("zh-CN", False)):
        until = show("asking", locale=locale).locator("#ask .p-until")
        expect(until).not_to_be_empty()
        assert (until.inner_text()[-1] == "M") is twelve


def test_each_number_in_a_text_is_large_enough_for_a_finger_and_none_covers_its_neighbour(show: Show) -> None:
    page = show("answered", **PHONE)
    mark = page.locator("#chat sup > a.cite").first
    expect(mark).to_be_visible()
    found = mark.evaluate(
        """(mark) => {
            const text = mark.closest('p, td, li');
            const foot = (next) => `<sup><a class="p-do p-foot${next}" role="button" href="#do-foot-1-a">1</a></sup>`;
            const one = mark.parentElement.outerHTML;
            const lines = [`Some words ${one}`, `stand ${one}\u2060${one}`, `and${foot('')}`];
            text.innerHTML = [...lines, `stand${foot('')}${foot(' p-next')}`].join('<br><br><br>');
            text.scrollIntoView({ block: 'center' });
            const reaches = (link, step) => {
                const { left, right, top, bottom } = link.getBoundingClientRect();
                const [x, y] = [(left + right) / 2, (top + bottom) / 2];
                const hit = (dx, dy) => document.elementFromPoint(x + dx, y + dy)?.closest('a') === link;
                return [[-step, 0], [step, 0], [0, -step], [0, step]].every(([dx, dy]) => hit(dx, dy));
            };
            const [alone, second, third, foot1, foot2, foot3] = text.querySelectorAll('a');
            const beside = [second, third, foot2, foot3];
            return [...[alone, foot1].map((one) => reaches(one, 21)), ...beside.map((one) => reaches(one, 11))];
        }"""
    )
    assert found == [True] * 6
