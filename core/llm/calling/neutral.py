"""Text from documents, tools and people is data: it cannot forge our tags or a model's special tokens."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from core.messages.content import ContentItem
from core.messages.message import FUNCTION, Message

if TYPE_CHECKING:
    from collections.abc import Iterable

# `<|im_start|>` and its kin in any vendor's spelling, and the marks of Llama, Mistral, Gemma and GLM.
_TOKENS = (
    r"<(?=[|｜])|<(?=/?(?:s|start_of_turn|end_of_turn|bos|eos|pad|unk|sop|unused\d+)>)|<(?=<?/?SYS>>)"
    r"|\[(?=/?(?:INST|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS|SYSTEM_PROMPT|gMASK)\])"
)
_TAGS = (
    r"<(?=\s*+(?:/\s*+)?(?:tool_call|tool_response|tools|think|system)\b)|✿(?=\s*+(?:FUNCTION|ARGS|RESULT|RETURN)\s*+✿)"
)
_TOKEN = re.compile(_TOKENS, re.IGNORECASE)
_TOKEN_OR_TAG = re.compile(f"{_TOKENS}|{_TAGS}", re.IGNORECASE)

_BREAK = "\u200b"  # zero-width space: the text still reads the same, but is no token any more
_BROKEN = re.compile(f"([<✿\\[]){_BREAK}")


def without_tokens(text: str) -> str:
    """`text` with the special tokens of chat models broken apart."""
    return _TOKEN.sub(_broken, text)


def neutral(text: str) -> str:
    """`text` with special tokens and our own tags broken apart."""
    return _TOKEN_OR_TAG.sub(_broken, text)


def neutral_json(text: str) -> str:
    """JSON text that says the same, with what begins a token or a tag in one of its strings as an escape."""
    return _TOKEN_OR_TAG.sub(_escaped, text)


class Restored:
    """Takes out of a growing reply the breaks that a model repeats: what it says and calls is no prompt of ours."""

    def __init__(self) -> None:
        self._last = ""

    def feed(self, text: str) -> str:
        """The text as it was before it was made neutral."""
        if not text:
            return text
        before, self._last = self._last, text[-1]
        if _BREAK not in text:
            return text
        return _BROKEN.sub(r"\1", before + text)[len(before) :]


def restored(text: str) -> str:
    """A whole text as it was before it was made neutral."""
    return _BROKEN.sub(r"\1", text) if _BREAK in text else text


def neutral_items(items: Iterable[ContentItem]) -> list[ContentItem]:
    """Content whose texts are neutral; what is no text stays the same object."""
    return [_neutral_item(item) for item in items]


def harmless_results(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages, special tokens in the results of tools broken apart; what has none stays the same object."""
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
