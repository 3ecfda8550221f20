"""Files on their way into a library: they wait where as many are to be read as may, and none is lost without a word."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Dialog, FilePayload, Locator, Page, Route, expect

OPENED: dict[str, Any] = {"id": "one", "name": "Papers", "documents": [], "own": True, "shared": ""}
STATE: dict[str, Any] = {"libraries": [], "opened": OPENED, "limit": 50}
FULL = "2,000 of your documents are still waiting to be read."


def lamps(count: int) -> list[FilePayload]:
    """So many files with a line each."""
    return [{"name": f"{n}.md", "mimeType": "text/markdown", "buffer": f"Lamp {n}.".encode()} for n in range(count)]


def test_a_file_that_has_to_wait_is_sent_again_when_there_is_room_and_what_it_waits_for_is_said(
    show: Callable[..., Page],
) -> None:
    tries: list[str] = []
    looks: list[str] = []

    def take(route: Route) -> None:
        tries.append(route.request.post_data or "")
        if len(tries) == 2:
            route.fulfill(status=429, json={"failed": FULL, "again": 0.4})
        else:
            route.fulfill(json={**STATE, "fresh": 1, "known": 0})

    def look(route: Route) -> None:
        looks.append(route.request.post_data or "")
        if len(looks) < 3:
            route.fulfill(status=429, json={"failed": FULL, "again": 0.4})
        else:
            route.fulfill(json={})

    page = show("answered", provokes=["429 (Too Many Requests)"])
    page.route("**/libraries/state*", lambda route: route.fulfill(json=STATE))
    page.route("**/libraries/one/files", take)
    page.route("**/libraries/one/room", look)
    page.locator("#history [data-do=libraries]").click()
    dialog = page.locator(".p-libraries")
    expect(dialog).to_be_visible()
    given = lamps(3)
    dialog.locator("input[type=file]").first.set_input_files(given)
    told = dialog.get_by_role("status").last
    expect(told).to_have_text(FULL)
    expect(told).to_contain_text("3 ")
    assert [next(n for n in "012" if f"Lamp {n}." in one) for one in tries] == ["0", "1", "1", "2"]
    assert looks == ["", "", ""], "without the file's bytes"


def test_a_file_whose_library_is_gone_while_it_waits_is_named_as_refused_and_the_next_goes_on(
    show: Callable[..., Page],
) -> None:
    tries: list[str] = []

    def take(route: Route) -> None:
        tries.append(route.request.post_data or "")
        if len(tries) == 1:
            route.fulfill(status=429, json={"failed": FULL, "again": 0.1})
        else:
            route.fulfill(json={**STATE, "fresh": 1, "known": 0})

    page = show("answered", provokes=["429 (Too Many Requests)"])
    page.route("**/libraries/state*", lambda route: route.fulfill(json=STATE))
    page.route("**/libraries/one/files", take)
    page.route("**/libraries/one/room", lambda route: route.fulfill(json={"failed": "It is gone."}))
    page.locator("#history [data-do=libraries]").click()
    dialog = page.locator(".p-libraries")
    given = lamps(2)
    dialog.locator("input[type=file]").first.set_input_files(given)
    expect(dialog.get_by_role("status").last).to_contain_text("It is gone.")
    expect(dialog.get_by_role("status").last).to_contain_text("1 ")
    assert [next(n for n in "01" if f"Lamp {n}." in one) for one in tries] == ["0", "1"]


LISTED: dict[str, Any] = {"libraries": [{"id": "one", "name": "Papers", "said": "empty", "reading": False}]}


def opened(page: Page) -> Locator:
    """The dialog, with the library in it."""
    page.route("**/libraries/state*", lambda route: route.fulfill(json={**STATE, **LISTED}))
    page.locator("#history [data-do=libraries]").click()
    dialog = page.locator(".p-libraries")
    expect(dialog.get_by_role("heading", name="Papers")).to_be_visible()
    return dialog


def add(dialog: Locator, *names: str) -> None:
    given: list[FilePayload] = [{"name": name, "mimeType": "text/plain", "buffer": name.encode()} for name in names]
    dialog.locator("input[type=file]").first.set_input_files(given)


def test_a_page_that_is_left_while_files_are_sent_is_asked_about_and_says_afterwards_how_many_were_not(
    show: Callable[..., Page],
) -> None:
    asked: list[str] = []

    def leave(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.accept()

    def take(route: Route) -> None:  # the others are on their way for ever
        if "0.md" in (route.request.post_data or ""):
            route.fulfill(json={**STATE, **LISTED, "fresh": 1, "known": 0})

    page = show("answered")
    page.on("dialog", leave)
    page.route("**/libraries/one/files", take)
    dialog = opened(page)
    add(dialog, "0.md", "1.md", "2.md", "3.md")
    told = dialog.locator(".p-told")
    expect(told).to_contain_text("1.md")
    page.reload()
    assert asked == ["beforeunload"]
    dialog = opened(page)
    expect(told).to_contain_text("3 files were not sent to “Papers” before the page was left. Add them again")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    opened(page)
    expect(told).to_contain_text("3 files were not sent")
    told.get_by_role("button", name="Close").click()
    expect(told).to_be_empty()
    page.reload()
    dialog = opened(page)
    expect(told).to_be_empty()
    assert asked == ["beforeunload"], "nothing was on its way any more"


def test_a_library_that_gets_files_again_says_no_more_that_some_were_not_sent(show: Callable[..., Page]) -> None:
    page = show("answered")
    page.route("**/libraries/one/files", lambda route: route.fulfill(json={**STATE, **LISTED, "fresh": 1, "known": 0}))
    page.evaluate("sessionStorage.setItem('p-left-libraries', JSON.stringify([['one', 1], ['gone', 4]]))")
    dialog = opened(page)
    expect(dialog.locator(".p-told")).to_have_text(
        "1 file was not sent to “Papers” before the page was left. Add it again."
    )
    add(dialog, "a.md")
    expect(dialog.locator(".p-told")).to_contain_text("1 file added")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    opened(page)
    expect(dialog.locator(".p-told")).to_be_empty()


def test_what_is_sent_goes_on_where_the_dialog_is_closed_and_opened_again(show: Callable[..., Page]) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page = show("answered")
    page.route("**/libraries/one/files", hold)
    dialog = opened(page)
    told = dialog.locator(".p-told")
    with page.expect_request("**/libraries/one/files"):
        add(dialog, "a.md", "b.md")
    expect(told).to_contain_text("a.md")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    opened(page)
    add(dialog, "c.md")
    answer = {**STATE, **LISTED, "fresh": 1, "known": 0}
    for number, name in enumerate(("b.md", "c.md")):
        with page.expect_request("**/libraries/one/files"):
            held[number].fulfill(json=answer)
        expect(told).to_contain_text(name)
    held[2].fulfill(json=answer)
    expect(told).to_contain_text("3 files added")
    assert len(held) == 3


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (["a.md"], "“a.md” is here already."),
        (["a.md", "b.md"], "2 files are here already: a.md, b.md"),
        (
            [f"{number:02}.md" for number in range(12)],
            "12 files are here already: 00.md, 01.md, 02.md, 03.md, 04.md, and 7 more",
        ),
    ],
)
def test_files_that_are_there_already_are_named(show: Callable[..., Page], known: list[str], said: str) -> None:
    def take(route: Route) -> None:
        fresh = "new.md" in (route.request.post_data or "")
        route.fulfill(json={**STATE, "fresh": int(fresh), "known": int(not fresh)})

    page = show("answered")
    page.route("**/libraries/one/files", take)
    dialog = opened(page)
    add(dialog, *known, "new.md")
    told = dialog.locator(".p-told")
    expect(told).to_contain_text("1 file added")
    expect(told).to_contain_text(said)


def test_files_that_are_refused_are_told_of_together_and_leave_the_fields_to_be_used(show: Callable[..., Page]) -> None:
    asked: list[Any] = []

    refused: list[Route] = []

    def refuse(route: Route) -> None:
        number = len(refused)
        refused.append(route)
        why = {"key": "document_unsupported", "details": {"name": f"{number}.bin"}}
        route.fulfill(json={"failed": f"Parlour cannot read {number}.bin. It reads PDF.", "why": why})

    def check(route: Route) -> None:
        asked.append(json.loads(route.request.post_data or ""))
        route.fulfill(json={"refused": [], "said": "Parlour cannot read 0.bin and others. " + "It reads PDF. " * 300})

    page = show("answered", width=1280, height=800)
    page.route("**/libraries/one/files", refuse)
    page.route("**/uploads/check", check)
    dialog = opened(page)
    add(dialog, *(f"{number}.bin" for number in range(20)))
    told = dialog.locator(".p-told")
    expect(told).to_contain_text("Parlour cannot read 0.bin and others.")
    assert [one["details"]["name"] for one in asked[0]["also"]] == [f"{number}.bin" for number in range(20)]
    assert len(asked) == 1
    dialog.locator("#p-libraries-new").fill("Another")
    dialog.get_by_role("button", name="Create").click(trial=True)
    told.get_by_role("button", name="Close").click()
    expect(told).to_be_empty()


def test_a_library_that_could_not_be_switched_on_is_off_again_and_that_is_said_in_front_of_the_reader(
    show: Callable[..., Page],
) -> None:
    page = show("answered")
    page.clock.install()
    dialog = opened(page)
    switch = dialog.get_by_role("switch", name="Use in this conversation")
    switch.set_checked(True, force=True)
    expect(switch).to_be_checked()
    page.clock.run_for(3_001)  # no chip of the conversation has said that it is on
    expect(switch).not_to_be_checked()
    expect(dialog.locator(".p-told")).to_have_text("This was not switched; the conversation is as it was before.")
