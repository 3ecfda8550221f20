"""Text of users, documents and tools made safe for prompts: no forged tags or special tokens; past calls as text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from core.messages.content import ContentItem
from core.messages.message import ASSISTANT, FUNCTION, USER, Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from core.languages import Lang


# Special tokens such as `<|im_start|>` in any vendor's spelling, and those of Llama, Mistral, Gemma and GLM.
_TOKENS = (
    r"<(?=[|｜])|<(?=/?(?:s|start_of_turn|end_of_turn|bos|eos|pad|unk|sop|unused\d+)>)|<(?=<?/?SYS>>)"
    r"|\[(?=/?(?:INST|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS|SYSTEM_PROMPT|gMASK)\])"
)
_TAGS = (
    r"<(?=\s*+(?:/\s*+)?(?:tool_call|tool_response|tools|think|system)\b)|✿(?=\s*+(?:FUNCTION|ARGS|RESULT|RETURN)\s*+✿)"
)
_TOKEN = re.compile(_TOKENS, re.IGNORECASE)
_TOKEN_OR_TAG = re.compile(f"{_TOKENS}|{_TAGS}", re.IGNORECASE)

_BREAK = "\u200b"  # zero-width space: looks the same, but is no token
_BROKEN = re.compile(f"([<✿\\[]){_BREAK}")


def without_tokens(text: str) -> str:
    """`text` with the special tokens of chat models broken apart."""
    return _TOKEN.sub(_broken, text)


def neutral(text: str) -> str:
    """`text` with special tokens and our own tags broken apart."""
    return _TOKEN_OR_TAG.sub(_broken, text)


def neutral_json(text: str) -> str:
    """Equivalent JSON text, with the first character of each token or tag in a string escaped."""
    return _TOKEN_OR_TAG.sub(_escaped, text)


class Restored:
    """Removes from a growing reply the break characters that the model repeats from its prompt."""

    def __init__(self) -> None:
        self._last = ""

    def feed(self, text: str) -> str:
        """The next part of the text, without breaks."""
        if not text:
            return text
        before, self._last = self._last, text[-1]
        if _BREAK not in text:
            return text
        return _BROKEN.sub(r"\1", before + text)[len(before) :]


def restored(text: str) -> str:
    """A complete text without breaks."""
    return _BROKEN.sub(r"\1", text) if _BREAK in text else text


def neutral_items(items: Iterable[ContentItem]) -> list[ContentItem]:
    """The items with their texts neutral; unaffected ones stay the same objects."""
    return [_neutral_item(item) for item in items]


def harmless_results(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages with special tokens in tool results broken apart; unaffected ones stay the same objects."""
    made = tuple(_harmless(message) if message.role == FUNCTION else message for message in messages)
    return messages if all(new is old for new, old in zip(made, messages, strict=True)) else made


def _harmless(message: Message) -> Message:
    if not any(_TOKEN.search(item.text or "") for item in message.items):
        return message
    items = [ContentItem(text=without_tokens(item.text)) if item.text else item for item in message.items]
    whole = items[0].text if isinstance(message.content, str) else items
    return message.model_copy(update={"content": whole})


def _neutral_item(item: ContentItem) -> ContentItem:
    if item.type != "text":
        return item
    text = neutral(item.text or "")
    return item if text == item.text else ContentItem(text=text)


def _broken(match: re.Match[str]) -> str:
    return match.group() + _BREAK


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"


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
    """Whether the conversation contains a call or a result."""
    return any(message.function_call is not None or message.role == FUNCTION for message in messages)


def flattened(messages: Sequence[Message], lang: Lang) -> list[Message]:
    """The conversation with calls and results as text in the question before them, for a model without tools."""
    flat: list[Message] = []
    added: list[ContentItem] = []  # to the question before it
    for message in messages:
        if message.role == FUNCTION:
            items = neutral_items(message.items) or [ContentItem(text=_NOTHING[lang])]
            added += [ContentItem(text=_RETURNED[lang]), *items]
        elif message.function_call is not None:
            if message.items:
                _add_to_question(flat, added)
                flat.append(Message(ASSISTANT, message.content, name=message.name))
            call = message.function_call
            text = _CALLED[lang].format(name=call.name, arguments=neutral_json(call.arguments))
            added.append(ContentItem(text=text))
        elif message.role != ASSISTANT or message.items:
            _add_to_question(flat, added)
            flat.append(message)
    _add_to_question(flat, added)
    return flat


def _add_to_question(flat: list[Message], items: list[ContentItem]) -> None:
    """Put items into the last message where that is a question, else into one of their own; then there are none."""
    if items and flat and flat[-1].role == USER:
        flat[-1] = Message(USER, [*flat[-1].items, *items], name=flat[-1].name)
    elif items:
        flat.append(Message(USER, items))
    items.clear()
