"""A request as the JSON of the OpenAI protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from core.llm.request import OUR_KEYS, ChatRequest, Lang, is_on
from core.llm.wire.functions import checked
from core.llm.wire.tool_names import ToolNames
from core.llm.wire.turns import Turn, continued, turns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.messages.content import ContentItem
    from core.messages.message import Message

Json: TypeAlias = dict[str, Any]

_FORMATS: Final = {"mpeg": "mp3", "wave": "wav", "mp4": "m4a"}
_CHOICES: Final = frozenset({"auto", "none"})


@dataclass(frozen=True, slots=True)
class Senses:
    """What the model takes beyond text."""

    pictures: bool = False
    audio: bool = False
    video: bool = False

    def takes(self, item: ContentItem) -> bool:
        """Whether the item goes to the model as it is."""
        match item.type:
            case "image":
                return self.pictures
            case "audio":
                return self.audio
            case "video":
                return self.video
            case _:
                return False


def settings_json(request: ChatRequest, names: ToolNames | None = None) -> Json:
    """`generate_cfg` and tools as the service's fields. Keys of our own are left out, unknown ones go as they are.

    Args:
        request: With the merged `generate_cfg`.
        names: Names of tools as the service takes them; each goes as it is where they are left out.

    Raises:
        ModelRefusedError: A tool cannot be sent as it is.
    """
    generate = request.generate
    settings: Json = {key: value for key, value in generate.items() if key not in OUR_KEYS and value is not None}
    settings.update(cast("Json", settings.pop("extra_body", None) or {}))
    if not request.functions:
        return settings
    functions = checked(request.functions)
    choice = str(generate.get("function_choice") or "auto")
    sent = names.sent if names else str
    settings["tools"] = [{"type": "function", "function": {**each, "name": sent(each["name"])}} for each in functions]
    named = {"type": "function", "function": {"name": sent(choice)}}
    settings["tool_choice"] = choice if choice in _CHOICES else named
    if "parallel_function_calls" in generate:
        settings["parallel_tool_calls"] = is_on(generate["parallel_function_calls"])
    return settings


def messages_json(
    messages: Iterable[Message], senses: Senses, lang: Lang = "en", names: ToolNames | None = None
) -> list[Json]:
    """The messages as a strict service wants them: see `turns`.

    A history that ends with the assistant is one to be continued.
    """
    names = names or ToolNames()
    return [_turn_json(turn, names) for turn in continued(turns(messages, senses.takes, lang), lang)]


def _turn_json(turn: Turn, names: ToolNames) -> Json:
    if turn.role == "tool":
        return {"role": "tool", "tool_call_id": turn.call_id, "content": turn.text}
    only_text = all(item.type == "text" for item in turn.items)
    content = turn.text if only_text else [item_json(item) for item in turn.items]
    written: Json = {"role": turn.role, "content": content}
    if turn.calls:
        written["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": names.sent(call.name), "arguments": call.arguments},
            }
            for call in turn.calls
        ]
    return written


def item_json(item: ContentItem) -> Json:
    """Text, a picture, recording or video as the service's part."""
    match item.type:
        case "text":
            return {"type": "text", "text": item.text or ""}
        case "image":
            return {"type": "image_url", "image_url": {"url": str(item.image)}}
        case "video" if isinstance(item.video, list):
            return {"type": "video", "video": [str(frame) for frame in item.video]}
        case "video":
            return {"type": "video_url", "video_url": {"url": str(item.video)}}
        case _:
            return {"type": "input_audio", "input_audio": _audio(item)}


def _audio(item: ContentItem) -> Any:
    """A recording as base64 and the name of its format; an address stays one, as some services fetch it."""
    if not isinstance(item.audio, str):
        return item.audio
    head, _, data = item.audio.partition(",")
    if not head.startswith("data:"):
        return {"data": item.audio, "format": item.get_file_extension() or "wav"}
    subtype = head.partition(";")[0].rpartition("/")[2].removeprefix("x-")
    return {"data": data, "format": _FORMATS.get(subtype, subtype)}
