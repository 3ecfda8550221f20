"""Conversations from elsewhere: what came in is in the list at once, here and in other tabs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.e2e.chat_steps import until
from tests.webui.screen.stage import Stage

Show = Callable[..., Page]
OTHER_TAB = """() => {
    window.told = [];
    new BroadcastChannel('parlour').onmessage = ({ data }) => window.told.push(data);
}"""
CAME = {"done": "2 conversations came in from ChatGPT: 4 messages.", "left": [], "open": "c9"}


@pytest.mark.parametrize(
    ("end", "looks"), [(CAME, True), ({"failed": "That is no export."}, False)], ids=["came in", "refused"]
)
def test_what_came_in_is_looked_at_here_and_in_other_tabs(
    show: Show, stage: Stage, tmp_path: Path, end: dict[str, Any], looks: bool
) -> None:
    page = show("running")
    page.evaluate(OTHER_TAB)
    said = "\n".join(json.dumps(line) for line in ({"share": 0.5}, end))

    def answer(route: Route) -> None:
        route.fulfill(body=said, content_type="application/json")

    page.route("**/conversations/import", answer)
    (tmp_path / "export.json").write_text("[]")
    stage.asked.clear()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("import conv")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("option", name="Import conversations…").click()
    chooser.value.set_files(tmp_path / "export.json")
    expect(page.locator(".p-bringing")).to_contain_text(end.get("done") or end["failed"])
    page.unroute("**/conversations/import")
    assert [one.inner_text() for one in page.locator(".p-bringing button").all()] == (
        ["Open", "Close"] if looks else ["Close"]
    )
    if looks:
        page.keyboard.press("Escape")
    else:
        page.locator(".p-bringing").get_by_role("button", name="Close").click()
    expect(page.locator(".p-bringing")).to_be_hidden()
    assert not [one for one in stage.asked if one["do"] == "stop"], "the reply goes on"
    if looks:
        until(lambda: {"do": "look"} in stage.asked)
        until(lambda: page.evaluate("window.told") == ["look"])
    else:
        assert {"do": "look"} not in stage.asked
        assert page.evaluate("window.told") == []


def test_the_settings_count_what_came_in_and_nothing_that_is_typed_there_is_lost(show: Show, tmp_path: Path) -> None:
    page = show(path="/settings/privacy")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/conversations/import", hold)
    (tmp_path / "export.json").write_text("[]")
    with page.expect_file_chooser() as chooser:
        page.locator("#p-settings").get_by_role("button", name="Choose a file…").click()
    chooser.value.set_files(tmp_path / "export.json")
    about, count = page.locator("#p-v-about_me"), page.locator("#p-n-delete")
    said = count.inner_text()
    count.evaluate("one => { one.textContent = 'what was there before'; }")
    about.fill("I write short sent")
    until(lambda: bool(held))
    held.pop().fulfill(body=json.dumps(CAME))
    expect(count).to_have_text(said)
    expect(about).to_be_focused()
    expect(about).to_have_value("I write short sent")


def test_on_a_phone_the_notice_is_as_wide_as_the_page_and_its_text_as_wide_as_the_notice(
    show: Show, tmp_path: Path
) -> None:
    page = show("running", width=390, height=780, has_touch=True)
    left = ["Left out: 3 files that are not in the export.", "Left out: 12 results and calls of tools."]
    said = json.dumps({**CAME, "left": left})
    page.route("**/conversations/import", lambda route: route.fulfill(body=said, content_type="application/json"))
    (tmp_path / "export.json").write_text("[]")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("import conv")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("option", name="Import conversations…").click()
    chooser.value.set_files(tmp_path / "export.json")
    notice = page.locator(".p-bringing")
    expect(notice).to_contain_text("2 conversations came in")
    box, text = notice.bounding_box(), notice.locator(".p-told").bounding_box()
    assert box is not None
    assert text is not None
    assert (box["x"], box["width"]) == (12, 366)
    assert text["width"] > 330
    for button in notice.locator("button").all():
        at = button.bounding_box()
        assert at is not None
        assert at["y"] >= text["y"] + text["height"]
        assert at["height"] >= 40
        assert at["x"] + at["width"] <= 378
