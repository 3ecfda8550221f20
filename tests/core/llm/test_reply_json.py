"""What the cache keeps of a reply."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.llm.reply_store import packed, unpacked
from core.messages.content import ContentItem
from core.messages.events import (
    CallDelta,
    CallStarted,
    Event,
    ItemAdded,
    MessageFinished,
    MessageStarted,
    ReasoningDelta,
    TextDelta,
)
from core.messages.message import Usage
from core.messages.transcript import Transcript

WHOLE: list[Event] = [
    MessageStarted(),
    ReasoningDelta("Hm."),
    TextDelta("One 😀 "),
    TextDelta("two"),
    ItemAdded(ContentItem(image="data:image/png;base64,AAAA")),
    CallStarted("1", "f"),
    CallStarted("2", "g"),
    CallDelta("1", '{"a":'),
    CallDelta("2", "{}"),
    CallDelta("1", " 1}"),
    MessageFinished("calls", Usage(prompt_tokens=1, completion_tokens=2, total_tokens=3, reasoning_tokens=1)),
]


def test_a_reply_comes_back_as_it_was():
    back = unpacked(json.loads(json.dumps(packed(WHOLE))))
    assert Transcript(back).messages() == Transcript(WHOLE).messages()
    assert back[-1] == WHOLE[-1]


SAID = st.one_of(
    st.builds(TextDelta, st.text(min_size=1)),
    st.builds(ReasoningDelta, st.text(min_size=1)),
    st.builds(lambda call: CallDelta(call, " "), st.sampled_from("ab")),
    st.builds(lambda url: ItemAdded(ContentItem(image=f"https://x/{url}")), st.text(alphabet="abc", min_size=1)),
)


@given(st.lists(SAID, max_size=30))
def test_any_reply_comes_back_as_it_was(said: list[Event]):
    whole = [MessageStarted(), CallStarted("a", "f"), CallStarted("b", "g"), *said, MessageFinished("calls")]
    back = unpacked(json.loads(json.dumps(packed(whole))))
    assert Transcript(back).messages() == Transcript(whole).messages()


@pytest.mark.parametrize(
    "broken",
    [
        None,
        [],
        "text",
        {},
        {"form": 0, "parts": [], "reason": "stop", "usage": None},
        {"form": 1, "parts": [["text"]], "reason": "stop", "usage": None},
        {"form": 1, "parts": [["text", 7]], "reason": "stop", "usage": None},
        {"form": 1, "parts": [["item", {"image": ""}]], "reason": "stop", "usage": None},
        {"form": 1, "parts": [["item", []]], "reason": "stop", "usage": None},
        {"form": 1, "parts": 7, "reason": "stop", "usage": None},
        {"form": 1, "parts": [], "reason": "because", "usage": None},
        {"form": 1, "parts": [], "reason": "stop", "usage": {"prompt_tokens": "many"}},
        {"form": 1, "parts": [], "reason": "stop", "usage": 7},
    ],
)
def test_a_broken_reply_is_none(broken: Any):
    with pytest.raises(ValueError):
        unpacked(broken)
