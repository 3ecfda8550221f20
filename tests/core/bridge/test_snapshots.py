"""Snapshots: few, whole, and never changed."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from core.bridge.snapshots import as_messages, deltas, dumped, snapshots
from core.errors import BadMessagesError
from core.messages.events import CallDelta, CallStarted, MessageFinished, MessageStarted, ReasoningDelta, TextDelta
from core.messages.message import Message


class Events:
    """Plays events, with a pause after each."""

    def __init__(self, *events, pause: float = 0.0, hang: bool = False) -> None:
        self.events, self.pause, self.hang = events, pause, hang
        self.closed = threading.Event()

    async def __call__(self):
        try:
            for event in self.events:
                yield event
                await asyncio.sleep(self.pause)
            if self.hang:
                await asyncio.Event().wait()
        finally:
            self.closed.set()


def texts(count: int):
    return [MessageStarted(), *(TextDelta(f"{number} ") for number in range(count)), MessageFinished("stop")]


def test_a_flood_of_events_becomes_few_snapshots_and_the_last_is_whole():
    shown = list(snapshots(Events(*texts(5000))))
    assert len(shown) < 100
    assert shown[-1][0].content == "".join(f"{number} " for number in range(5000))


def test_snapshots_grow_and_earlier_ones_stay_as_they_were():
    shown = [(snapshot, snapshot[0].content) for snapshot in snapshots(Events(*texts(30), pause=0.01))]
    assert len(shown) > 2
    assert all(snapshot[0].content == content for snapshot, content in shown)
    contents = [content for _, content in shown]
    assert contents == sorted(contents, key=len)


def test_the_first_word_is_shown_at_once_and_the_last_before_a_silence_too():
    events = Events(TextDelta("first"), TextDelta(" second"), hang=True)
    items = snapshots(events)
    start = time.monotonic()
    seen = next(items)
    while seen[0].content != "first second":
        seen = next(items)
    assert time.monotonic() - start < 30
    items.close()
    assert events.closed.is_set()


def test_the_start_of_a_reply_holds_its_first_word_back_no_longer_than_any(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("core.bridge.snapshots._PAUSE", 30.0)
    start = time.monotonic()
    items = snapshots(Events(MessageStarted(), TextDelta("first"), hang=True))
    assert next(items)[0].content == "first"
    items.close()
    assert time.monotonic() - start < 20


def test_an_empty_reply_gives_no_snapshot():
    assert list(snapshots(Events(MessageStarted(), MessageFinished("stop")))) == []


def test_an_error_comes_after_what_was_said():
    async def broken():
        yield TextDelta("one")
        yield TextDelta(" half")
        raise ValueError("broken")

    items, seen = snapshots(broken), []
    with pytest.raises(ValueError, match="broken"):
        seen.extend(items)
    assert seen[-1][0].content == "one half"


def test_deltas_carry_only_what_is_new():
    events = Events(
        MessageStarted(),
        ReasoningDelta("hm"),
        TextDelta("a"),
        TextDelta("b"),
        CallStarted("1", "f"),
        CallDelta("1", "{}"),
    )
    assert [dumped(messages) for messages in deltas(events)] == [
        [{"role": "assistant", "content": "", "reasoning_content": "hm"}],
        [{"role": "assistant", "content": "a"}],
        [{"role": "assistant", "content": "b"}],
    ]


def test_dicts_in_dicts_out_and_any_message_makes_messages():
    message = Message("user", "x")
    raw = {"role": "user", "content": None, "unknown": 1}
    assert as_messages([raw]) == ([Message("user", "")], True)
    assert as_messages([raw, message]) == ([Message("user", ""), message], False)
    assert as_messages([]) == ([], False)
    assert raw == {"role": "user", "content": None, "unknown": 1}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([{"content": "x"}], "Message 1 cannot be read: role"),
        ([Message("user", "x"), {"role": "user", "content": [{"picture": "x"}]}], "Message 2 cannot be read: content"),
        ([{"role": "user"}], "Message 1 cannot be read: it is a user's and has no content"),
        ([{"role": "user", "text": "x"}], "has no content. Write what is asked as its content, such as"),
        ([{"role": "user", "content": 7}], "Message 1 cannot be read: content"),
        ([{"role": "user", "content": "x"}, "x"], "Message 2 is a text. Give a Message, or a dict"),
        ([None], "Message 1 is None. Give a Message, or a dict"),
        ("x", "Messages cannot be given as str"),
        (b"x", "Messages cannot be given as bytes"),
        (None, "Messages cannot be given as None"),
        ({"role": "user"}, "Messages cannot be given as dict"),
        (Message("user", "x"), "Messages cannot be given as Message"),
        (7, "Messages cannot be given as int"),
    ],
)
def test_what_is_no_list_of_messages_is_refused_with_a_hint(given: Any, said: str):
    with pytest.raises(BadMessagesError, match=said) as caught:
        as_messages(given)
    assert caught.value.hint
    assert caught.value.code == "400"
