"""Named libraries on the page: filled by hand and by drop, tried, used in a conversation, worked with the keyboard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Locator, Page, Route, expect

from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask, chat, focus, until, wait_for_state

SAMPLES = Path(__file__).resolve().parents[2] / "assets" / "samples"
PHONE = {"width": 360, "height": 740}
DROP = """(element, name) => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File(['# Tower\\n\\nThe tower of Brenn is 321 metres tall.'], name));
    const around = { bubbles: true, cancelable: true, dataTransfer };
    element.dispatchEvent(new DragEvent('dragover', around));
    element.dispatchEvent(new DragEvent('drop', around));
}"""


def test_a_library_is_filled_tried_used_and_deleted_and_the_keyboard_never_gets_lost(
    server: AppProcess, open_page: Callable[..., Page], tmp_path: Path
) -> None:
    (tmp_path / "notes" / "of May").mkdir(parents=True)
    (tmp_path / "notes" / "of May" / "oak.md").write_text(
        "# Oak\n\nThe oak of Brenn is 400 years old.", encoding="utf-8"
    )
    (tmp_path / "notes" / ".hidden.md").write_text("# Hidden", encoding="utf-8")
    page = open_page(server)
    focus(page.locator("#history").get_by_role("button", name="Libraries"))
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Libraries")
    expect(dialog.get_by_label("New library")).to_be_focused()
    page.keyboard.type("Policies")
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("button", name="Add files")).to_be_focused()
    dialog.locator("input[type=file]").set_input_files(SAMPLES / "policy.pdf")
    dialog.locator(".p-one section").evaluate(DROP, "tower.md")
    expect(dialog.get_by_role("status").last).to_contain_text("added")
    with page.expect_file_chooser() as chosen:
        dialog.get_by_role("button", name="Add a folder").click()
    chosen.value.set_files(tmp_path / "notes")
    ready = dialog.locator(".p-docs li[data-state=ready]")
    expect(ready).to_have_count(3)
    dialog.get_by_label("Try a question").fill("How tall is the tower of Brenn?")
    dialog.get_by_label("Try a question").press("Enter")
    expect(dialog.locator(".p-found li").first).to_contain_text("321 metres")
    dialog.locator(".p-found").get_by_role("button", name="tower.md").first.press("Enter")
    expect(dialog).to_be_hidden()
    expect(page.locator("#page .p-sought")).to_have_text("Tried in a library: How tall is the tower of Brenn?")
    expect(page.locator("#page .p-desk")).to_contain_text("321 metres")
    page.locator("#history").get_by_role("button", name="Libraries").click()
    focus(dialog.get_by_label("Use in this conversation"))
    page.keyboard.press("Space")
    expect(page.locator("#top .p-uses")).to_have_text("Policies1")
    expect(dialog.get_by_role("button", name="3 documents used in this conversation")).to_be_attached()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.locator("#history").get_by_role("button", name="Libraries")).to_be_focused()
    ask(page, "How tall is the tower of Brenn?")
    expect(chat(page).locator("a.cite").first).to_be_attached()
    wait_for_state(page, "idle")
    other = open_page(server, page.url.removeprefix(server.url), context=page.context)
    expect(other.locator("#top .p-uses")).to_have_text("Policies1")
    page.locator("#top .p-uses").click()
    expect(dialog.get_by_label("Use in this conversation")).to_be_checked()
    dialog.get_by_role("button", name="Remove policy.pdf").click()
    question = page.get_by_role("dialog", name="policy.pdf")
    expect(question.get_by_role("button", name="Cancel")).to_be_focused()
    question.get_by_role("button", name="Remove").click()
    expect(dialog.locator(".p-docs li")).to_have_count(2)
    expect(dialog.get_by_role("button", name="Read tower.md again")).to_be_focused()
    dialog.get_by_role("button", name="Delete library").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(dialog.get_by_label("New library")).to_be_focused()
    page.keyboard.press("Escape")
    for tab in (page, other):
        expect(tab.locator("#top .p-uses")).to_have_count(0)


def held(page: Page, address: str) -> list[Route]:
    """Requests to this address wait from now on, until a test lets them go."""
    routes: list[Route] = []

    def hold(route: Route) -> None:
        routes.append(route)

    page.route(address, hold)
    return routes


def come(page: Page, routes: list[Route]) -> None:
    """Wait until the first of such requests is held; they are told of while the page is looked at."""
    until(lambda: page.evaluate("true") and routes)


def shelf(dialog: Locator, name: str) -> Locator:
    return dialog.locator(".p-shelf-list li button", has_text=name)


def test_what_is_pressed_while_an_answer_is_on_its_way_goes_to_the_library_that_is_shown(
    server: AppProcess, open_page: Callable[..., Page]
) -> None:
    page = open_page(server, expected=("429",))
    page.locator("#history").get_by_role("button", name="Libraries").click()
    dialog = page.get_by_role("dialog", name="Libraries")
    fresh, told = dialog.get_by_label("New library"), dialog.locator(".p-told")
    section = dialog.locator(".p-one section")
    creates = held(page, "**/libraries/create")
    fresh.fill("Acts")
    for _ in range(2):
        page.keyboard.press("Enter")
    fresh.fill("Bills")
    come(page, creates)
    assert len(creates) == 1
    creates[0].continue_()
    expect(shelf(dialog, "Acts")).to_have_attribute("aria-current", "true")
    expect(fresh).to_be_focused()
    expect(fresh).to_have_value("Bills")
    expect(told).to_have_text("")
    page.unroute("**/libraries/create")
    page.keyboard.press("Enter")
    expect(shelf(dialog, "Bills")).to_have_attribute("aria-current", "true")

    files = held(page, "**/libraries/*/files")
    section.evaluate(DROP, "tower.md")
    shelf(dialog, "Acts").click()
    expect(dialog.get_by_role("heading", name="Acts")).to_be_visible()
    section.evaluate(DROP, "acts.md")
    come(page, files)
    files[0].continue_()
    page.unroute("**/libraries/*/files")
    expect(told).to_contain_text("2 files added")
    for name in ("Acts", "Bills"):
        expect(shelf(dialog, name)).to_contain_text("1 document")

    removes = held(page, "**/libraries/remove")
    dialog.get_by_role("button", name="Remove acts.md").click()
    page.get_by_role("dialog", name="acts.md").get_by_role("button", name="Remove").click()
    for name in ("Bills", "Acts"):
        shelf(dialog, name).click()
        expect(dialog.get_by_role("heading", name=name)).to_be_visible()
    come(page, removes)
    removes[0].continue_()
    expect(dialog.locator(".p-docs li")).to_have_count(0)

    looks = held(page, "**/libraries/state*")
    shelf(dialog, "Bills").click()
    expect(section).to_have_attribute("inert", "")
    come(page, looks)
    looks[0].fulfill(json={"failed": "Gone astray."})
    expect(told).to_have_text("Gone astray.")
    page.unroute("**/libraries/state*")

    too_many = held(page, "**/libraries/*/files")
    section.evaluate(DROP, "again.md")
    come(page, too_many)
    too_many[0].fulfill(status=429, headers={"retry-after": "60"}, json={"failed": "Add more in a minute."})
    expect(told).to_have_text("Add more in a minute.")
    page.unroute("**/libraries/*/files")
    dialog.get_by_role("button", name="Delete library").click()
    expect(page.get_by_role("dialog", name="“Acts” will be deleted")).to_be_visible()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(shelf(dialog, "Acts")).to_have_count(0)
    expect(shelf(dialog, "Bills")).to_have_count(1)
    shelf(dialog, "Bills").click()
    expect(dialog.get_by_role("heading", name="Bills")).to_be_visible()
    dialog.get_by_role("button", name="Delete library").click()  # other tests begin without one
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(shelf(dialog, "Bills")).to_have_count(0)


def test_on_a_phone_it_is_one_thing_at_a_time_and_fits(server: AppProcess, open_page: Callable[..., Page]) -> None:
    page = open_page(server, viewport=PHONE, locale="zh-CN", has_touch=True)
    page.locator(".p-open-menu").click()
    page.locator("#history").get_by_role("button", name="文档库").click()
    dialog = page.get_by_role("dialog", name="文档库")
    expect(dialog.get_by_role("status").last).to_be_empty()  # it has been told what there is
    expect(dialog).to_be_focused()  # and no field, which would raise a keyboard
    dialog.get_by_label("新文档库").fill("一个名称相当长的文档库，长到在手机屏幕上放不下一整行为止")
    dialog.get_by_label("新文档库").press("Enter")
    use = dialog.get_by_label("在当前对话中使用")
    use.check()
    expect(page.locator("#top .p-uses .p-many")).to_have_text("1")
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    assert dialog.evaluate(
        "(d) => [...d.querySelectorAll('*')].every((e) => e.getBoundingClientRect().right <= innerWidth)"
    )
    dialog.get_by_role("button", name="全部文档库").click()
    expect(use).to_be_hidden()
    row = dialog.get_by_role("button", name="一个名称相当长")
    expect(row).to_be_focused()
    row.click()
    dialog.get_by_role("button", name="删除文档库").click()
    page.get_by_role("button", name="删除", exact=True).click()
    expect(row).to_have_count(0)
    dialog.get_by_role("button", name="关闭").click()
    expect(page.locator("#top .p-uses")).to_have_count(0)
    expect(page.locator("#top .p-open-menu")).to_be_focused()
