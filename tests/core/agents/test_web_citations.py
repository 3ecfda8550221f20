"""What an assistant finds on the web is cited as documents are, and numbers of earlier turns are not taken for new."""

from __future__ import annotations

from typing import Any

import pytest

from core.agents.assistant import Assistant, without_old_numbers
from core.messages.content import ContentItem
from core.messages.events import ToolFinished
from core.messages.message import ASSISTANT, FUNCTION, USER, FunctionCall, Message
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.builtin.web_search import WebSearch
from core.tools.web.base import SearchHit, SearchService
from core.tools.web.serper import Serper

pytestmark = pytest.mark.anyio

SODIUM = "Sodium boils at 883 degrees."


@pytest.fixture
def search(monkeypatch: pytest.MonkeyPatch) -> WebSearch:
    async def pages(_self: SearchService, _wanted: Any) -> list[SearchHit]:
        return [
            SearchHit("Water", "https://a.example/", "Water boils at 100 degrees."),
            SearchHit("", "https://b.example/", SODIUM),
        ]

    monkeypatch.setattr(Serper, "pages", pages)
    return WebSearch({"provider": "serper", "api_key": "k"})


async def test_an_answer_from_the_web_carries_marks(search: WebSearch) -> None:
    model = ScriptedModel(Reply(calls=(("web_search", {"query": "sodium"}),)), Reply(text=SODIUM))
    events = [event async for event in Assistant([search], model).stream([Message(USER, "When does sodium boil?")])]
    text = "".join(event.text for event in events if event.kind == "text_delta")
    assert text == f"{SODIUM} [2]"
    (finished,) = [event for event in events if isinstance(event, ToolFinished)]
    assert [row["url"] for row in finished.message.extra["passages"]] == ["https://a.example/", "https://b.example/"]  # type: ignore[index]


async def test_two_searches_of_one_reply_number_on(search: WebSearch) -> None:
    calls = (("web_search", {"query": "sodium"}), ("web_search", {"query": "water"}))
    model = ScriptedModel(Reply(calls=calls), Reply(text="Done."))
    events = [event async for event in Assistant([search], model).stream([Message(USER, "Both?")])]
    rows = [row for one in events if isinstance(one, ToolFinished) for row in one.message.extra["passages"]]  # type: ignore[index]
    assert sorted(row["number"] for row in rows) == [1, 2, 3, 4]


def found(text: str | list[ContentItem]) -> Message:
    return Message(FUNCTION, text, name="web_search", extra={"function_id": "1", "passages": [{"number": 1}]})


def test_numbers_of_earlier_turns_are_taken_off_what_was_found() -> None:
    call = Message(ASSISTANT, "", function_call=FunctionCall("web_search", "{}"), extra={"function_id": "1"})
    told = "<passages>\n[1] (Water)\nhttps://a.example/\nIt boils [1] (often).\n\n[12] (Sodium)\nx\n</passages>"
    before = [Message(USER, "a"), call, found(told), Message(ASSISTANT, "b [1]"), Message(USER, "c"), call, found(told)]
    after = without_old_numbers(before)
    assert after[2].content == told.replace("\n[1] (", "\n(").replace("\n[12] (", "\n(")
    assert after[6] is before[6]
    assert before[2].content == told
    mixed = [Message(USER, "a"), found([ContentItem(text=told), ContentItem(file="x.md")]), Message(USER, "c")]
    assert [item.type for item in without_old_numbers(mixed)[1].items] == ["text", "file"]
