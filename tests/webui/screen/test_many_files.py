"""Many files of one question are one group: the first are in sight, the others unfold, and nothing jumps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from html import unescape
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from core.messages.content import ContentItem
from core.reading.senses import stead_of
from core.storage.base import DocumentRecord
from tests.webui.screen.many_files_scenes import COUNT, name_of
from webui.render.documents import DocumentState
from webui.render.many_files import MOST, files_html
from webui.words import Words

Show = Callable[..., Page]


def markup(
    count: int, words: Words | None = None, *, kind: str = "file", documents: Mapping[str, DocumentState] | None = None
) -> str:
    items = [ContentItem(**{kind: f"/files/f{number}"}) for number in range(1, count + 1)]
    about: dict[str, dict[str, Any]] = {f"f{number}": {"name": f"a{number}.pdf"} for number in range(1, count + 1)}
    return unescape(files_html(items, about, "q1", words or Words("en"), documents or {}))


def state(number: int, status: Any) -> DocumentState:
    return DocumentState(
        DocumentRecord(f"d{number}", "o", "c", f"f{number}", f"a{number}.pdf", None, status, None, None, 0.0)
    )


def test_up_to_six_files_are_cards_and_seven_a_group_that_says_how_many_there_are() -> None:
    assert "p-many" not in markup(MOST)
    text = markup(MOST + 1)
    assert "<span>7 files</span>" in text
    assert ">Show 4 more</a>" in text
    assert text.count("p-chip") == 7
    chinese = markup(MOST + 1, Words("zh"))
    assert "<span>7 个文件</span>" in chinese
    assert ">再显示 4 个</a>" in chinese


def test_a_group_says_how_many_are_still_being_read_or_were_not() -> None:
    states = {f"f{number}": state(number, "reading" if number < 3 else "ready") for number in range(1, 8)}
    text = markup(7, documents={**states, "f7": state(7, "failed"), "f6": state(6, "cancelled")})
    assert all(said in text for said in ("2 still being read", "1 not read", "1 stopped"))
    assert "still being read" not in markup(7, documents={name: state(1, "ready") for name in states})


def test_many_pictures_are_small_and_their_cards_are_in_the_group() -> None:
    states = {f"f{number}": state(number, "ready") for number in range(1, 10)}
    text = markup(9, kind="image", documents=states)
    assert text.count('<a class="p-pic"') == 9
    assert "p-small-pics" in text
    assert "<span>9 files</span>" in text
    assert "p-small-pics" not in markup(3, kind="image")


def test_of_many_pictures_a_few_cards_are_in_sight_and_none_where_there_is_nothing_to_say() -> None:
    text = markup(8, kind="image", documents={"f2": state(2, "failed"), "f5": state(5, "reading")})
    assert text.count('<a class="p-pic"') == 8
    assert [text.count(f"p-doc-{how}") for how in ("failed", "reading")] == [1, 1]
    record = replace(state(1, "failed").record, error={"key": "document_no_text", "details": {}})
    assert stead_of(record) == "nothing"
    assert "p-doc" not in markup(8, kind="image", documents={f"f{n}": DocumentState(record) for n in range(1, 9)})


@pytest.mark.parametrize("count", [1, 9])
@pytest.mark.parametrize("key", ["document_broken", "document_empty", "document_not_what_it_says"])
def test_a_picture_that_is_none_is_shown_once_as_what_is_wrong_with_it(key: str, count: int) -> None:
    error = {"key": key, "details": {"name": "a1.pdf"}}
    broken = DocumentState(replace(state(1, "failed").record, error=error))
    text = markup(count, kind="image", documents={"f1": broken})
    assert text.count('<a class="p-pic"') == count - 1
    assert text.count("p-doc-failed") == 1
    assert 'src="./files/f1"' not in text


def test_a_picture_whose_words_could_not_be_read_is_shown_all_the_same() -> None:
    error = {"key": "document_crashed", "details": {"name": "a1.pdf"}}
    text = markup(1, kind="image", documents={"f1": DocumentState(replace(state(1, "failed").record, error=error))})
    assert (text.count('<a class="p-pic"'), text.count("p-doc-failed")) == (1, 1)


@pytest.mark.parametrize("name", ["Pasted text, 40 lines.txt", "粘贴的文本，324,000 个字符.txt"])
def test_a_pasted_text_among_many_files_opens_where_it_stands(name: str) -> None:
    items = [ContentItem(file=f"/files/f{number}") for number in range(1, 9)]
    about = {"f1": {"name": name}}
    text = files_html(items, about, "q1", Words("en"), {"f1": state(1, "ready")})
    assert 'href="#do-pasted-f1"' in text


def group(page: Page) -> tuple[Locator, Locator, Locator]:
    many = page.locator("#chat .p-many")
    return many, many.locator("a.p-many-fold"), many.locator(".p-doc")


@pytest.mark.parametrize("options", [{}, {"width": 390, "height": 844, "has_touch": True}])
def test_the_first_are_in_sight_and_the_others_unfold_where_they_are(show: Show, options: dict[str, Any]) -> None:
    page = show("many-files", **options)
    many, head, rows = group(page)
    many.scroll_into_view_if_needed()
    expect(head).to_have_text(f"{COUNT} files")
    assert [row.is_visible() for row in rows.all()].count(True) == 3
    assert "2 still being read" in many.inner_text()
    before = head.bounding_box()
    head.click()
    expect(head).to_have_attribute("aria-expanded", "true")
    expect(rows.nth(COUNT - 1)).to_be_visible()
    assert head.bounding_box() == before, "what was pressed stays where it was"
    expect(many.get_by_role("button", name=f"Show {COUNT - 3} more")).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing stands out at the side"
    head.click()
    expect(rows.nth(COUNT - 1)).to_be_hidden()
    assert head.bounding_box() == before


def test_with_the_keyboard_more_are_shown_and_the_keys_go_on_at_the_head(show: Show) -> None:
    page = show("many-files")
    many, head, rows = group(page)
    more = many.get_by_role("button", name=f"Show {COUNT - 3} more")
    more.focus()
    page.keyboard.press("Enter")
    expect(rows.nth(COUNT - 1)).to_be_visible()
    expect(head).to_be_focused()
    page.keyboard.press("Tab")
    expect(rows.nth(0).locator("a.p-chip")).to_be_focused()
    expect(rows.nth(0)).to_contain_text(name_of(1))


def test_what_was_unfolded_stays_so_when_the_question_is_drawn_anew(show: Show) -> None:
    page = show("many-files")
    many, head, rows = group(page)
    head.click()
    expect(rows.nth(COUNT - 1)).to_be_visible()
    many.evaluate(
        """(old) => {
            const fresh = old.cloneNode(true);
            fresh.classList.remove('p-open');
            fresh.querySelector('a.p-many-fold').setAttribute('aria-expanded', 'false');
            old.replaceWith(fresh);
        }"""
    )
    expect(head).to_have_attribute("aria-expanded", "true")
    expect(rows.nth(COUNT - 1)).to_be_visible()
    expect(head).to_be_focused()
