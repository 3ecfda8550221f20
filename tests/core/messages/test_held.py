"""What is held without validation is what validation would leave."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from core.messages.content import ContentItem
from core.messages.message import FunctionCall, Message

ITEMS = st.lists(st.text(max_size=5).map(lambda text: ContentItem(text=text)), max_size=3)
FIELDS = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "system", "function", "tool", "", 1, None]),
        "content": st.text(max_size=5) | ITEMS | st.just([{"text": "a"}]) | st.just([{"image": ""}]) | st.integers(),
        "name": st.sampled_from([None, "", "f", 1]),
        "function_call": st.sampled_from([None, FunctionCall("f", "{}"), {"name": "f", "arguments": "{}"}, "x"]),
        "reasoning_content": st.sampled_from([None, "", "hm", 1, [ContentItem(text="a")]]),
        "extra": st.sampled_from([None, {}, {"function_id": "1"}, {1: 2}, []]),
    }
)


def validated(kind: type[BaseModel], fields: dict[str, Any]) -> Any:
    """A message as pydantic makes it, the long way."""
    made = kind.__new__(kind)
    BaseModel.__init__(made, **fields)
    return made


@given(FIELDS)
def test_a_message_is_the_same_or_refused_the_same(fields: dict[str, Any]) -> None:
    try:
        expected = validated(Message, fields)
    except ValidationError:
        with pytest.raises(ValidationError):
            Message(**fields)
        return
    made = Message(**fields)
    assert made == expected
    assert made.model_dump() == expected.model_dump()
    assert made.model_dump_json() == expected.model_dump_json()
    assert made.model_fields_set == expected.model_fields_set
    assert Message.model_validate_json(made.model_dump_json()) == made or made.content == ""


@given(st.text(max_size=5))
def test_a_text_is_the_same(text: str) -> None:
    made, expected = ContentItem(text=text), validated(ContentItem, {"text": text, "image": None})
    assert made == expected
    assert (made.type, made.value, made.model_dump_json()) == ("text", text, expected.model_dump_json())


def test_lists_and_dicts_are_the_messages_own() -> None:
    content, extra = [ContentItem(text="a")], {"function_id": "1"}
    message = Message("user", content, extra=extra)
    content.append(ContentItem(text="b"))
    extra["function_id"] = "2"
    assert len(message.content) == 1
    assert message.extra == {"function_id": "1"}


def test_what_is_held_can_be_copied_and_changed() -> None:
    message = Message("user", "a").model_copy(update={"content": "b"})
    message["name"] = "n"
    assert message == Message("user", "b", name="n")
    item = ContentItem(text="a")
    item.text = "c"
    assert item == ContentItem(text="c")
