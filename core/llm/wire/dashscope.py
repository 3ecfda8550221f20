"""A request as the JSON of DashScope's own protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from core.llm.wire.openai import settings_json
from core.llm.wire.tool_names import ToolNames
from core.llm.wire.turns import Turn, continued, is_partial, nothing, turns

if TYPE_CHECKING:
    from core.llm.request import ChatRequest
    from core.llm.wire.turns import Takes
    from core.messages.content import ContentItem

Json: TypeAlias = dict[str, Any]

_OTHER_NAMES: Final = {"max_new_tokens": "max_tokens", "max_completion_tokens": "max_tokens"}
_NOT_HERE: Final = ("stream", "stream_options", "user")


def body_json(
    model: str,
    request: ChatRequest,
    takes: Takes | None = None,
    names: ToolNames | None = None,
    *,
    partial: bool = True,
) -> Json:
    """The whole body.

    Args:
        model: The model's name.
        request: What is asked; `request.generate` becomes `parameters`.
        takes: What a model of the multimodal service takes beside text; `None` asks the text service.
        names: Names of tools as the service takes them; each goes as it is where they are left out.
        partial: Whether the model continues a text of its own; models that think are asked to in words.

    Raises:
        ModelRefusedError: A tool cannot be sent as it is, or `function_choice` names none of them.
    """
    told = turns(request.messages, takes or nothing, request.lang)
    told = told if partial else continued(told, request.lang)
    return {
        "model": model,
        "input": {"messages": messages_json(told, names, listed=takes is not None)},
        "parameters": parameters_json(request, names),
    }


def parameters_json(request: ChatRequest, names: ToolNames | None = None) -> Json:
    """`generate_cfg` and tools; every chunk brings only what is new, whatever the settings say."""
    given = settings_json(request, names)
    named = {_OTHER_NAMES.get(key, key): value for key, value in given.items() if key not in _NOT_HERE}
    return {**named, "result_format": "message", "incremental_output": True}


def messages_json(told: list[Turn], names: ToolNames | None = None, *, listed: bool = False) -> list[Json]:
    """The messages; where the last is the assistant's text, it is one to be continued.

    Args:
        told: The conversation.
        names: As for `body_json`.
        listed: Whether contents are lists of parts, as the multimodal service has them.
    """
    names = names or ToolNames()
    written = [_turn_json(turn, names, listed=listed) for turn in told]
    if is_partial(told):
        written[-1]["partial"] = True
    return written


def _turn_json(turn: Turn, names: ToolNames, *, listed: bool) -> Json:
    content = [item_json(item) for item in turn.items if item.value] if listed else turn.text
    written: Json = {"role": turn.role, "content": content}
    if turn.calls:
        written["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "index": index,
                "function": {"name": names.sent(call.name), "arguments": call.arguments},
            }
            for index, call in enumerate(turn.calls)
        ]
    if turn.role == "tool":
        written |= {"tool_call_id": turn.call_id, "name": names.sent(turn.name)}
    return written


def item_json(item: ContentItem) -> Json:
    """Text, or an address under the name of its kind."""
    return {item.type: item.value}
