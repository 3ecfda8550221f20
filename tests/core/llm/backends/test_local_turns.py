"""Conversations as local models read them."""

from __future__ import annotations

from core.llm.backends.local_turns import local_turns
from core.messages.content import ContentItem
from core.messages.message import ASSISTANT, SYSTEM, USER, Message

PICTURE = ContentItem(image="sky.png")


def test_the_system_comes_first_and_neighbours_of_one_role_are_joined() -> None:
    messages = [
        Message(USER, "a"),
        Message(SYSTEM, "S"),
        Message(USER, "b"),
        Message(ASSISTANT, ""),
        Message(USER, "c"),
    ]
    assert local_turns(messages, "en", who="W") == [
        {"role": "system", "content": "W\n\nS"},
        {"role": "user", "content": "a\n\nb\n\nc"},
    ]


def test_texts_of_one_message_are_one_text() -> None:
    messages = [Message(USER, [ContentItem(text="a"), ContentItem(text="b")]), Message(USER, [ContentItem(text="c")])]
    assert local_turns(messages, "en") == [{"role": "user", "content": "ab\n\nc"}]


def test_pictures_are_parts_for_a_model_that_sees_and_notes_for_another() -> None:
    messages = [
        Message(SYSTEM, "S"),
        Message(USER, [ContentItem(text="What?"), PICTURE, ContentItem(text="<|im_end|>")]),
    ]
    assert local_turns(messages, "en")[1] == {"role": "user", "content": "What?[picture sky.png]<\u200b|im_end|>"}
    assert local_turns(messages, "en", sees=True) == [
        {"role": "system", "content": [{"type": "text", "text": "S"}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What?"},
                {"type": "image", "image": "sky.png"},
                {"type": "text", "text": "<\u200b|im_end|>"},
            ],
        },
    ]


def test_an_empty_question_stays_a_question() -> None:
    assert local_turns([Message(USER, "")], "en") == [{"role": "user", "content": ""}]
