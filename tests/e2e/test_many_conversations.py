"""Two thousand conversations in a list: scrolled, walked by keyboard, chosen from, dragged; few rows in the page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import Locator, Page, expect

from bench.kills.forked_page import ForkedApp, Origin
from bench.many_conversations import keep
from core.testing.behaviour import behave
from core.testing.model_server import ModelServer
from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import focus, until

MANY = 2_000
MOST_ROWS = 400
ROWS = "#history nav a[data-open]"
LAST = MANY - 1  # it is neither pinned nor archived, and in no folder


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory, origin: Origin) -> Iterator[AppProcess]:
    """An app whose owner has many conversations: pinned, in folders, archived, and none of these."""
    home = tmp_path_factory.mktemp("crowded")
    with ThreadPoolExecutor(1) as thread:  # in this one Playwright has a loop of its own
        thread.submit(lambda: asyncio.run(keep(home / "parlour.db", MANY))).result()
    with ModelServer(behave) as model:
        app = ForkedApp(home, model, {"RETRIEVAL": "keyword"}, origin=origin).start()
        yield app
        app.stop()


@pytest.fixture
def page(crowded: AppProcess, open_page: Callable[..., Page]) -> Page:
    page = open_page(crowded)
    expect(page.locator(ROWS).first).to_be_visible()
    return page


def row(page: Page, number: int) -> Locator:
    return page.locator(ROWS, has_text=f"matter {number},")


def scroll(page: Page, to: float) -> None:
    """Scroll the list to a share of its height, as far as it is known."""
    page.locator("#history nav").evaluate(
        "(list, to) => { list.scrollTop = (list.scrollHeight - list.clientHeight) * to; }", to
    )


def first_seen(page: Page) -> tuple[str, float]:
    """The first conversation that is wholly in sight, and where."""
    found = page.locator("#history nav").evaluate(
        """(list) => [...list.querySelectorAll('a[data-open]')]
            .map((one) => [one.textContent, one.getBoundingClientRect().top])
            .find(([, top]) => top >= list.getBoundingClientRect().top)"""
    )
    return str(found[0]), float(found[1])


def is_filled(page: Page) -> bool:
    """Whether there are rows wherever one looks."""
    return bool(
        page.locator("#history nav").evaluate(
            """(list) => { const box = list.getBoundingClientRect();
            return [...list.querySelectorAll('.p-part')].every((part) => {
                const { top, bottom } = part.getBoundingClientRect();
                return bottom < box.top || top > box.bottom || part.childElementCount; }); }"""
        )
    )


def unrolled(page: Page) -> None:
    """Scroll a little down, so that all of the list has its height."""
    scroll(page, 1)
    until(lambda: page.locator(".p-part").count() > 10)
    until(lambda: is_filled(page))


def drag_from_one_folder_to_another(page: Page) -> None:
    """Out of an open folder further down into the first one that is shut, which counts it."""
    folder = page.locator(".p-part a[data-folder]").nth(1)
    folder.scroll_into_view_if_needed()
    until(lambda: is_filled(page))
    inside = page.locator(".p-part .p-folder li a[data-open]").first
    dragged = inside.text_content() or ""
    target = page.locator("#history a[data-folder][aria-expanded=false]").first
    many = target.locator("xpath=..").locator(".p-many")
    before = int(many.text_content() or "0")
    inside.drag_to(target)
    expect(many).to_have_text(str(before + 1))
    expect(page.locator(ROWS, has_text=dragged)).to_have_count(0)


def test_the_list_is_scrolled_to_its_end_and_back_with_few_rows_at_any_time(page: Page) -> None:
    assert page.locator(ROWS).count() <= 50
    unrolled(page)
    seen: set[str] = set()
    for to in (0.02, 0.3, 0.6, 0.97, 1.0, 0.5, 0.1, 1.0):
        scroll(page, to)
        until(lambda: is_filled(page))
        seen.add(first_seen(page)[0])
        assert page.locator(ROWS).count() <= MOST_ROWS
    assert len(seen) >= 6
    expect(row(page, LAST)).to_be_in_viewport()
    scroll(page, 0)
    until(lambda: is_filled(page))
    expect(page.get_by_role("heading", name="Pinned")).to_be_in_viewport()


def test_the_keyboard_leads_through_all_of_it(page: Page) -> None:
    focus(page.locator(ROWS).first)
    page.keyboard.press("End")
    expect(row(page, LAST)).to_be_focused()
    expect(row(page, LAST)).to_be_in_viewport()
    walked: list[str] = []

    def here() -> str:
        return str(page.evaluate("document.activeElement.closest('#history nav a')?.textContent ?? ''"))

    def step(key: str) -> None:
        """To the next one: while a part of the list is on its way, a key that is pressed again counts once."""
        last = here()
        page.keyboard.press(key)
        until(lambda: here() not in {"", last})
        walked.append(here())

    for _ in range(70):  # more than a part
        step("ArrowUp")
        expect(page.locator("#history nav a:focus")).to_be_in_viewport()
    assert len(set(walked)) == 70
    page.keyboard.press("Home")
    expect(page.locator(ROWS).first).to_be_focused()
    for _ in range(60):
        step("ArrowDown")
    expect(page.locator("#history nav a:focus")).to_be_in_viewport()
    names = page.locator("#history nav a[data-open], #history nav a[data-folder]").all_text_contents()
    until(lambda: here() == names[60])


def test_alt_and_an_arrow_go_on_from_the_open_conversation_wherever_it_stands(
    crowded: AppProcess, page: Page, open_page: Callable[..., Page]
) -> None:
    focus(page.locator(ROWS).first)
    page.keyboard.press("End")
    expect(row(page, LAST)).to_be_focused()
    opened = row(page, LAST).get_attribute("data-open")
    other = open_page(crowded, f"/?c={opened}")
    expect(other.locator("#top")).to_contain_text(f"matter {LAST},")
    other.keyboard.press("Alt+ArrowUp")
    expect(other.locator("#top")).not_to_contain_text(f"matter {LAST},")
    here = other.locator(f"{ROWS}[aria-current=page]")
    expect(here).to_have_count(1)
    expect(here).to_be_in_viewport()
    other.keyboard.press("Alt+ArrowDown")
    expect(row(other, LAST)).to_have_attribute("aria-current", "page")


def test_nothing_jumps_when_the_list_changes_while_one_reads_in_the_middle(page: Page) -> None:
    unrolled(page)
    scroll(page, 0.6)
    until(lambda: is_filled(page))
    name, top = first_seen(page)
    version = page.locator("#history nav").get_attribute("data-version")
    titles = page.locator(ROWS).all_text_contents()
    third = page.locator(ROWS).nth(titles.index(name) + 3)
    said = third.text_content() or ""
    third.evaluate("(row) => row.focus({ preventScroll: true })")
    page.keyboard.press("e")
    expect(page.locator(ROWS, has_text=said)).to_have_count(0)
    expect(page.locator(f"#history nav[data-version='{version}']")).to_have_count(0)
    assert first_seen(page) == (name, pytest.approx(top, abs=1))
    page.locator(ROWS).nth(page.locator(ROWS).all_text_contents().index(name) + 4).click()
    here = page.locator(f"{ROWS}[aria-current=page]")
    expect(here).to_have_count(1)
    expect(page.locator("#top")).to_contain_text(here.text_content() or "")
    assert first_seen(page) == (name, pytest.approx(top, abs=1))
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(ROWS, has_text=said)).to_have_count(1)
    assert first_seen(page) == (name, pytest.approx(top, abs=1))


def test_in_the_middle_of_the_list_nothing_jumps_a_row_is_dragged_to_a_folder_and_alt_walks(page: Page) -> None:
    unrolled(page)
    scroll(page, 0.6)
    until(lambda: is_filled(page))
    name, top = first_seen(page)
    titles = page.locator(ROWS).all_text_contents()
    leaving = titles[titles.index(name) + 3]
    page.locator(ROWS, has_text=leaving).evaluate("(row) => row.focus({ preventScroll: true })")
    page.keyboard.press("e")
    expect(page.locator(ROWS, has_text=leaving)).to_have_count(0)
    assert first_seen(page) == (name, pytest.approx(top, abs=1))

    page.locator(ROWS).nth(page.locator(ROWS).all_text_contents().index(name) + 4).click()
    here = page.locator(f"{ROWS}[aria-current=page]")
    expect(page.locator("#top")).to_contain_text(here.text_content() or "")
    assert first_seen(page) == (name, pytest.approx(top, abs=1))
    opened = here.text_content() or ""
    page.keyboard.press("Alt+ArrowUp")
    expect(page.locator("#top")).not_to_contain_text(opened)
    expect(here).not_to_have_text(opened)
    expect(here).to_be_in_viewport()
    page.keyboard.press("Alt+ArrowDown")
    expect(here).to_have_text(opened)

    def folders_are_there() -> bool:
        scroll(page, 0.05)
        return is_filled(page) and page.locator(".p-part a[data-folder]").count() > 1

    until(folders_are_there)
    drag_from_one_folder_to_another(page)


def test_all_are_chosen_moved_into_a_folder_and_brought_back(page: Page) -> None:
    focus(page.locator(ROWS).first)
    page.keyboard.press("End")
    expect(row(page, LAST)).to_be_focused()
    page.keyboard.press("x")
    expect(page.locator(".p-chosen-head .p-said")).to_have_text("1 selected")
    fifth = page.locator(ROWS).all_text_contents()[-5]  # parts of the list above may still come or go
    page.locator(ROWS, has_text=fifth).click(modifiers=["Shift"])
    expect(page.locator(".p-chosen-head .p-said")).to_have_text("5 selected")
    page.keyboard.press("Escape")
    row(page, LAST).click(modifiers=["Control"])
    page.locator(ROWS).first.click(modifiers=["Shift"])
    count = int((page.locator("[data-choose=all]").text_content() or "").split()[-1])
    assert 1_000 < count < MANY
    expect(page.locator(".p-chosen-head .p-said")).to_have_text(f"{count} selected")
    page.locator(".p-chosen-bar").get_by_role("button", name="Move to…").click()
    page.get_by_role("menuitem", name="Folder 19", exact=True).click()
    scroll(page, 0)
    expect(page.locator(".p-undo.p-there:not(.p-bringing)")).to_contain_text(f"{count} moved")
    page.get_by_role("button", name="Undo").click()
    first = page.locator(ROWS).first

    def at_the_end() -> bool:
        first.evaluate("(row) => row.focus()")  # the list may be drawn meanwhile, and take it away again
        page.keyboard.press("End")
        return page.evaluate("document.activeElement.textContent").startswith(f"What was said about matter {LAST},")

    until(at_the_end)


def test_one_is_dragged_from_the_rest_onto_a_folder(page: Page) -> None:
    unrolled(page)
    until(lambda: page.locator(".p-part a[data-folder]").count() > 1)
    drag_from_one_folder_to_another(page)


def test_a_part_that_could_not_be_fetched_is_asked_for_again(
    crowded: AppProcess, open_page: Callable[..., Page]
) -> None:
    page = open_page(crowded, expected=("503",))
    page.route("**/conversations/list/**", lambda route: route.fulfill(status=503, json={"failed": "Not now."}))
    scroll(page, 1)
    again = page.get_by_role("button", name="Show older conversations")
    expect(again).to_be_visible()
    page.unroute("**/conversations/list/**")
    again.click()
    until(lambda: page.locator(".p-part").count() > 10)
    scroll(page, 1)
    expect(row(page, LAST)).to_be_in_viewport()
