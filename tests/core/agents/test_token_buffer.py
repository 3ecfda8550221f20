"""As much of the newest as fits, without a hole, and no call without its result."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import FunctionCall, Message, TokenBufferMemory
from core.errors import SettingsError
from core.llm.layers.costs import Costs
from core.testing.scripted_model import ScriptedModel

MODEL = ScriptedModel("ok")


def said(text: str, role: str = "user") -> Message:
    return Message(role, text)


def call(name: str) -> Message:
    return Message("assistant", "", function_call=FunctionCall(name, "{}"), extra={"function_id": name})


def result(name: str) -> Message:
    return Message("function", "it gave " * 5, name=name, extra={"function_id": name})


def memory(max_tokens: int, *messages: Message) -> TokenBufferMemory:
    made = TokenBufferMemory(MODEL, max_tokens)
    for message in messages:
        made.add_message(message)
    return made


def cost(*messages: Message) -> int:
    return sum(map(Costs(MODEL).of, messages))


def test_the_newest_that_fit_come_back_the_oldest_first() -> None:
    one, two, three = said("one " * 20), said("two", "assistant"), said("three")
    assert memory(10_000, one, two, three).get_history_messages() == [one, two, three]
    assert memory(cost(two, three), one, two, three).get_history_messages() == [two, three]
    assert memory(cost(two, three) - 1, one, two, three).get_history_messages() == [three]


def test_there_is_no_hole_in_what_comes_back() -> None:
    small, long, last = said("small"), said("long " * 200), said("last")
    assert memory(cost(small, last), small, long, last).get_history_messages() == [last]
    assert memory(50, said("long " * 200)).get_history_messages() == []


def test_calls_and_their_results_are_both_there_or_neither() -> None:
    turn = [call("a"), call("b"), result("a"), result("b")]
    question, answer = said("question"), said("answer", "assistant")
    whole = memory(cost(*turn, answer), question, *turn, answer)
    assert whole.get_history_messages() == [*turn, answer]
    whole.max_tokens -= 1
    assert whole.get_history_messages() == [answer]


def test_dicts_are_messages_too_and_clear_forgets() -> None:
    buffer = TokenBufferMemory(MODEL)
    buffer.add_message({"role": "user", "content": "hello"})
    assert [one.content for one in buffer.get_history_messages()] == ["hello"]
    buffer.clear()
    assert buffer.get_history_messages() == buffer.history_messages == []


@pytest.mark.parametrize("most", [0, -5])
def test_no_room_at_all_is_an_error(most: int) -> None:
    with pytest.raises(SettingsError, match="max_tokens"):
        TokenBufferMemory(MODEL, most)


@given(st.lists(st.sampled_from(["said", "call", "result"]), max_size=12), st.integers(1, 200))
def test_what_comes_back_is_the_end_and_fits(kinds: list[str], most: int) -> None:
    made = {"said": lambda: said("a b c"), "call": lambda: call("f"), "result": lambda: result("f")}
    messages = [made[kind]() for kind in kinds]
    kept = memory(most, *messages).get_history_messages()
    assert kept == messages[len(messages) - len(kept) :]
    assert cost(*kept) <= most
    if 0 < len(kept) < len(messages):
        assert kept[0].role != "function", "its call would be missing"
