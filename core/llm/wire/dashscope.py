"""A request as the JSON of DashScope's own protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from core.llm.wire.openai import settings_json
from core.llm.wire.turns import Turn, nothing, turns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.llm.request import ChatRequest, Lang
    from core.llm.wire.turns import Takes
    from core.messages.content import ContentItem
    from core.messages.message import Message

Json: TypeAlias = dict[str, Any]

_OTHER_NAMES: Final = {"max_new_tokens": "max_tokens", "max_completion_tokens": "max_tokens"}
_NOT_HERE: Final = ("stream", "stream_options", "user")


def body_json(model: str, request: ChatRequest, takes: Takes | None = None) -> Json:
    """The whole body.

    Args:
        model: The model's name.
        request: What is asked; `request.generate` becomes `parameters`.
        takes: What a model of the multimodal service takes beside text; `None` asks the text service.
    """
    return {
        "model": model,
        "input": {"messages": messages_json(request.messages, takes, request.lang)},
        "parameters": parameters_json(request),
    }


def parameters_json(request: ChatRequest) -> Json:
    """`generate_cfg` and tools; every chunk brings only what is new, whatever the settings say."""
    given = settings_json(request)
    named = {_OTHER_NAMES.get(key, key): value for key, value in given.items() if key not in _NOT_HERE}
    return {**named, "result_format": "message", "incremental_output": True}


def messages_json(messages: Iterable[Message], takes: Takes | None, lang: Lang = "en") -> list[Json]:
    """The messages; a history that ends with the assistant's text is one to be continued (`partial`)."""
    listed = takes is not None
    told = turns(messages, takes or nothing, lang)
    written = [_turn_json(turn, listed=listed) for turn in told]
    if told and told[-1].role == "assistant" and not told[-1].calls:
        written[-1]["partial"] = True
    return written


def _turn_json(turn: Turn, *, listed: bool) -> Json:
    content = [item_json(item) for item in turn.items if item.value] if listed else turn.text
    written: Json = {"role": turn.role, "content": content}
    if turn.calls:
        written["tool_calls"] = [
            {"id": call_id, "type": "function", "index": index, "function": {"name": name, "arguments": arguments}}
            for index, (call_id, name, arguments) in enumerate(turn.calls)
        ]
    if turn.role == "tool":
        written |= {"tool_call_id": turn.call_id, "name": turn.name}
    return written


def item_json(item: ContentItem) -> Json:
    """Text, or an address under the name of its kind."""
    return {item.type: item.value}
