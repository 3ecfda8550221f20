"""Files on their way into a library wait by themselves where as many are to be read as may, and no one is left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, Route, expect

OPENED: dict[str, Any] = {"id": "one", "name": "Papers", "documents": [], "own": True, "shared": ""}
STATE: dict[str, Any] = {"libraries": [], "opened": OPENED, "limit": 50}
FULL = "2,000 of your documents are still waiting to be read."


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
    given = [{"name": f"{n}.md", "mimeType": "text/markdown", "buffer": f"Lamp {n}.".encode()} for n in range(3)]
    dialog.locator("input[type=file]").first.set_input_files(given)  # type: ignore[arg-type] - plain dicts are taken
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
    given = [{"name": f"{n}.md", "mimeType": "text/markdown", "buffer": f"Lamp {n}.".encode()} for n in range(2)]
    dialog.locator("input[type=file]").first.set_input_files(given)  # type: ignore[arg-type] - plain dicts are taken
    expect(dialog.get_by_role("status").last).to_contain_text("It is gone.")
    expect(dialog.get_by_role("status").last).to_contain_text("1 ")
    assert [next(n for n in "01" if f"Lamp {n}." in one) for one in tries] == ["0", "1"]
