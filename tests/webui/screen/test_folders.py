"""Folders dropped onto the page or chosen: what lies in them is added, hidden files are not, and one note says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from playwright.sync_api import Page, Route, expect

from tests.webui.screen.stage import Stage

Show: TypeAlias = Callable[..., Page]

# A drop as a browser makes it of what stands in `tree`: texts are files, objects are folders. Only a real hand can drop
# a real folder.
DROP = """(element, tree) => {
    const fileOf = (name, text) => ({
        name, isFile: true, isDirectory: false, file: (done) => done(new File([text], name, { lastModified: 1 })),
    });
    const folderOf = (name, inside) => ({
        name, isFile: false, isDirectory: true,
        createReader() {
            const members = Object.entries(inside).map(entryOf);
            return { readEntries: (done) => done(members.splice(0, 100)) };
        },
    });
    function entryOf([name, inside]) {
        return typeof inside === 'string' ? fileOf(name, inside) : folderOf(name, inside);
    }
    const items = Object.entries(tree).map((one) => ({ kind: 'file', webkitGetAsEntry: () => entryOf(one) }));
    const event = new Event('drop', { bubbles: true, cancelable: true });
    Object.defineProperty(event, 'dataTransfer', { value: { items, files: [], types: ['Files'] } });
    element.dispatchEvent(event);
}"""


@pytest.fixture
def page(show: Show) -> Page:
    page = show()

    def checked(route: Route) -> None:
        route.fulfill(json={"refused": [], "said": ""})

    page.route("**/uploads/check", checked)
    return page


def drop(page: Page, tree: dict[str, Any]) -> None:
    page.locator("#composer").evaluate(DROP, tree)


def test_a_folder_adds_its_files_and_says_that_hidden_ones_were_left_out(page: Page) -> None:
    drop(page, {"notes": {"b.txt": "two", ".git": {"config": "x"}, ".env": "x", "a": {"c.txt": "one"}}})
    expect(page.locator("#composer .p-chip")).to_have_text(["c.txtTXT", "b.txtTXT"])
    expect(page.locator(".p-left-out")).to_have_text("Hidden files in the folder were left out.")


def test_files_of_one_name_are_told_apart_by_their_folders(page: Page) -> None:
    drop(
        page,
        {"houses": {"north": {"readme.md": "1"}, "south": {"cellar": {"readme.md": "2", "plan": "3"}}, "plan": "4"}},
    )
    names = page.locator("#composer .p-chip .p-name")
    expect(names).to_have_text(["readme (north).md", "plan", "plan (south-cellar)", "readme (south-cellar).md"])


def test_a_name_of_two_lines_keeps_no_other_file_away(page: Page) -> None:
    drop(page, {"houses": {"north": {"to\ndo.md": "1"}, "south": {"to\ndo.md": "2", "plan.md": "3"}}})
    names = page.locator("#composer .p-chip .p-name")
    expect(names).to_have_text(["to do (north).md", "plan.md", "to do (south).md"])


def test_a_hidden_file_that_was_meant_is_added_without_a_word(page: Page) -> None:
    drop(page, {".zshrc.txt": "alias", "folder": {"a.txt": "one"}})
    expect(page.locator("#composer .p-chip")).to_have_text([".zshrc.txtTXT", "a.txtTXT"])
    expect(page.locator(".p-left-out")).to_have_count(0)


def test_of_a_folder_with_very_many_files_only_so_many_are_added(page: Page) -> None:
    drop(page, {"many": {f"{number:03}.txt": "x" for number in range(250)}})
    expect(page.locator("#composer .p-chip")).to_have_count(40)
    names = ", ".join(f"{number:03}.txt" for number in range(40, 45))
    said = f"Up to 40 files can be added at once; add the other 210 after these: {names}, and 205 more"
    expect(page.locator(".p-left-out")).to_have_text(said)


def test_of_ten_files_that_are_left_out_each_is_named(page: Page) -> None:
    drop(page, {"many": {f"{number:03}.txt": "x" for number in range(50)}})
    names = ", ".join(f"{number:03}.txt" for number in range(40, 50))
    said = f"Up to 40 files can be added at once; add the other 10 after these: {names}"
    expect(page.locator(".p-left-out")).to_have_text(said)


def test_what_was_left_out_of_a_folder_is_told_to_the_conversation_unless_all_of_it_is_taken_back(
    page: Page, stage: Stage
) -> None:
    drop(page, {"many": {f"{number:03}.txt": "x" for number in range(42)}})
    expect(page.locator("#composer .p-chip .p-icon")).to_have_count(40)
    stage.until(lambda: stage.asked)
    assert stage.asked == [{"do": "untaken", "names": ["040.txt", "041.txt"], "more": 0}]
    for number in range(40, 0, -1):
        page.locator("#composer .p-chip .p-icon").first.click()
        expect(page.locator("#composer .p-chip")).to_have_count(number - 1)
    stage.until(lambda: len(stage.asked) > 1)
    assert stage.asked[1:] == [{"do": "untaken", "names": []}]


def test_a_file_that_gets_the_name_of_what_is_in_it_is_told_to_the_conversation_under_both(
    page: Page, stage: Stage
) -> None:
    said = {"refused": [], "said": "", "renamed": {"0": ["041.docx", ""]}, "noted": "Read as DOCX."}
    page.route("**/uploads/check", lambda route: route.fulfill(json=said))
    drop(page, {"many": {"a.txt": "1", "041.txt": "2"}})
    expect(page.locator("#composer .p-chip")).to_have_text(["041.docxDOCX", "a.txtTXT"])
    stage.until(lambda: stage.asked)
    assert stage.asked == [{"do": "untaken", "called": {"041.txt": "041.docx"}}]


def test_folders_in_each_other_without_an_end_end(page: Page) -> None:
    tree: dict[str, Any] = {"a.txt": "deep"}
    for _ in range(60):
        tree = {"in": tree}
    drop(page, {"outside": tree})
    expect(page.locator("#composer .p-chip")).to_have_text(["a.txtTXT"])


def test_a_folder_is_chosen_from_the_palette_too(page: Page, tmp_path: Path) -> None:
    for name in ("notes/b.txt", "notes/a/c.txt", "notes/.git/config", "notes/.env"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x", encoding="utf-8")
    page.keyboard.press("Control+k")
    page.locator(".p-palette input").fill(">folder")
    with page.expect_file_chooser() as chosen:
        page.keyboard.press("Enter")
    assert chosen.value.element.evaluate("(element) => element.webkitdirectory")
    chosen.value.set_files(tmp_path / "notes")
    expect(page.locator("#composer .p-chip")).to_have_text(["c.txtTXT", "b.txtTXT"])
    expect(page.locator(".p-left-out")).to_have_text("Hidden files in the folder were left out.")


def test_a_folder_that_is_chosen_again_adds_its_next_files_and_none_twice(page: Page) -> None:
    for many in (40, 50, 50):
        drop(page, {"many": {f"{number:03}.txt": "x" for number in range(50)}})
        expect(page.locator("#composer .p-chip .p-icon")).to_have_count(many)
    expect(page.locator(".p-left-out")).to_have_text("These files are attached already.")
    names = page.locator("#composer .p-chip .p-name").all_text_contents()
    assert sorted(names) == [f"{number:03}.txt" for number in range(50)]


def test_a_file_that_was_given_another_name_is_not_added_twice(page: Page, tmp_path: Path) -> None:
    renamed = {"refused": [], "said": "", "renamed": {"0": ["a.docx", ""]}, "noted": "Read as DOCX."}
    page.route("**/uploads/check", lambda route: route.fulfill(json=renamed), times=1)
    (tmp_path / "a.txt").write_text("x", encoding="utf-8")
    for _ in range(2):
        page.locator("#composer input[type=file]").first.set_input_files(tmp_path / "a.txt")
        expect(page.locator("#composer .p-chip .p-icon")).to_have_count(1)
    expect(page.locator(".p-left-out")).to_have_text("These files are attached already.")


def test_files_that_cannot_be_read_take_the_place_of_none_that_can(page: Page) -> None:
    told: list[dict[str, Any]] = []

    def checked(route: Route) -> None:
        asked = json.loads(route.request.post_data or "")
        names = [one["name"] for one in asked["files"]]
        refused = [index for index, name in enumerate(names) if name.endswith(".bin")]
        why = [{"key": "document_unsupported", "details": {"name": names[index]}} for index in refused]
        told.append({"names": names, "also": asked.get("also"), "alone": asked.get("alone")})
        many = len(refused) + len(asked.get("also", []))
        route.fulfill(json={"refused": refused, "why": why, "said": f"{many} cannot be read." if many else ""})

    page.route("**/uploads/check", checked)
    unread = {f"a{number:02}.bin": "x" for number in range(60)}
    drop(page, {"many": {**unread, **{f"b{number:02}.txt": "x" for number in range(50)}}})
    expect(page.locator("#composer .p-chip")).to_have_count(40)
    names = ", ".join(f"b{number:02}.txt" for number in range(40, 50))
    more = f"Up to 40 files can be added at once; add the other 10 after these: {names}"
    expect(page.locator(".p-left-out")).to_have_text(f"60 cannot be read.{more}")
    assert [(len(one["names"]), one["alone"]) for one in told] == [(40, True), (40, True), (30, True), (40, None)]
    assert told[-1]["names"] == [f"b{number:02}.txt" for number in range(40)]
    assert [one["details"]["name"] for one in told[-1]["also"]] == sorted(unread)


def test_of_a_folder_without_files_a_line_says_so(page: Page) -> None:
    drop(page, {"nothing": {"inside": {}}})
    expect(page.locator(".p-left-out")).to_have_text("There are no files in this folder.")
