"""Old calls and results as plain text, for a model that is offered no tools this time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.llm.calling.neutral import neutral_items, neutral_json
from core.messages.content import ContentItem
from core.messages.message import ASSISTANT, FUNCTION, USER, Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.llm.request import Lang

_CALLED = {
    "en": '\n\nThe tool "{name}" was called with these arguments: \n{arguments}',
    "zh": '\n\n工具"{name}"被调用时使用了以下参数：\n{arguments}',
}
_RETURNED = {
    "en": "\n\nThe tool has returned the following result: \n",
    "zh": "\n\n该工具返回了以下结果：\n",
}
_NOTHING = {"en": "No result.", "zh": "没有结果。"}


def has_calls(messages: Sequence[Message]) -> bool:
    """Whether the conversation holds a call or a result."""
    return any(message.function_call is not None or message.role == FUNCTION for message in messages)


def flattened(messages: Sequence[Message], lang: Lang) -> list[Message]:
    """The conversation without calls and results: they become part of the question before them."""
    flat: list[Message] = []
    for message in messages:
        if message.role == FUNCTION:
            items = neutral_items(message.items) or [ContentItem(text=_NOTHING[lang])]
            _add_to_question(flat, [ContentItem(text=_RETURNED[lang]), *items])
        elif message.function_call is not None:
            if message.items:
                flat.append(Message(ASSISTANT, message.content, name=message.name))
            call = message.function_call
            text = _CALLED[lang].format(name=call.name, arguments=neutral_json(call.arguments))
            _add_to_question(flat, [ContentItem(text=text)])
        elif message.role != ASSISTANT or message.items:
            flat.append(message)
    return flat


def _add_to_question(flat: list[Message], items: list[ContentItem]) -> None:
    if flat and flat[-1].role == USER:
        flat[-1] = Message(USER, [*flat[-1].items, *items], name=flat[-1].name)
    else:
        flat.append(Message(USER, items))
