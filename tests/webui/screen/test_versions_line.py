"""The way from one version of a turn to the next: quiet, there without a mouse, and dead while it cannot be gone."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape

import pytest
from playwright.sync_api import Page, expect

from core.runs.log import LoggedEvent, RunFinished
from core.runs.reply import Reply
from tests.e2e.chat_steps import focus
from tests.webui.screen.stage import SCENES, Stage
from webui.render.conversation import Rendered, conversation_entries
from webui.words import Words

Show = Callable[..., Page]


def lines(
    versions: dict[str, tuple[str, ...]], *, lang: str = "en", rendered: Rendered | None = None, free: bool = True
):
    """What is shown of each turn, as text with its links."""
    thread, replies = SCENES["answered"]()
    words = Words("zh" if lang == "zh" else "en")
    entries, owners = conversation_entries(
        thread, replies, words=words, versions=versions, free=free, rendered=rendered
    )
    return {owner: unescape(one["content"][0]["text"]) for one, owner in zip(entries, owners, strict=True)}


def heard(text: str) -> str:
    """The words of a turn without its markup."""
    return re.sub(r"<[^>]*>", "", text)


def steps(text: str) -> list[str]:
    return re.findall(r"#do-version-([\w-]+)", text)


@pytest.mark.parametrize(("at", "ways"), [("a", ["b"]), ("b", ["a", "c"]), ("c", ["b"])])
def test_the_line_says_which_version_it_is_and_leads_to_its_neighbours(at: str, ways: list[str]) -> None:
    versions = {"r2": tuple("r2" if one == at else one for one in "abc")}
    line = lines(versions)["r2"]
    assert f"Version {'abc'.index(at) + 1} of 3" in heard(line)
    assert steps(line) == ways
    assert f"第 {'abc'.index(at) + 1} 个版本，共 3 个" in heard(lines(versions, lang="zh")["r2"])


def test_a_turn_without_versions_has_no_such_line() -> None:
    assert not any("p-versions" in text for text in lines({}).values())
    assert "p-versions" not in lines({"r2": ("r2",)})["r2"]


def test_while_a_reply_is_written_the_line_leads_nowhere_and_does_again_once_it_is_over() -> None:
    kept, versions = Rendered(), {"q2": ("q2", "other"), "r2": ("older", "r2")}
    assert steps(lines(versions, rendered=kept)["q2"]) == ["other"]
    busy = lines(versions, rendered=kept, free=False)
    assert steps(busy["q2"] + busy["r2"]) == []
    assert "Version 1 of 2" in heard(busy["q2"])
    assert steps(lines(versions, rendered=kept)["r2"]) == ["older"]


def test_a_version_that_comes_to_be_is_told_of_a_turn_that_was_rendered_before() -> None:
    kept = Rendered()
    assert "p-versions" not in lines({}, rendered=kept)["r2"]
    assert "Version 1 of 2" in heard(lines({"r2": ("r2", "newer")}, rendered=kept)["r2"])


def test_a_reply_that_failed_for_good_leads_to_its_other_versions() -> None:
    thread, _ = SCENES["answered"]()
    error = {"key": "document_empty", "message": "", "hint": "", "details": {}}
    reply = Reply([LoggedEvent(1, 0.0, RunFinished("error", error))])
    entries, _ = conversation_entries(thread[:2], {"r-1": reply}, words=Words("en"), versions={"r-1": ("first", "r-1")})
    assert steps(unescape(str(entries[-1]))) == ["first"]


@pytest.mark.parametrize("width", [1280, 390])
def test_versions_are_in_sight_are_reached_by_keyboard_and_asked_for(show: Show, stage: Stage, width: int) -> None:
    page = show("versions", width=width, height=800)
    reply, question = page.locator("#chat .bot-row .p-versions"), page.locator("#chat .user-row .p-versions")
    expect(reply).to_contain_text("Version 2 of 3")
    expect(question.locator(".p-number")).to_be_in_viewport()
    for link in reply.get_by_role("button").all():
        box = link.bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) >= 40
    expect(question.get_by_role("button")).to_have_count(1)
    focus(reply.get_by_role("button", name="Next version"))
    page.keyboard.press("Shift+Tab")
    expect(reply.get_by_role("button", name="Previous version")).to_be_focused()
    page.keyboard.press("Enter")
    question.locator(".p-newer").click()
    question.get_by_role("button", name="Previous version").click()
    stage.until(lambda: len(stage.asked) > 1)
    assert stage.asked == [{"do": "version", "id": "r2-old"}, {"do": "version", "id": "q2-old"}]
