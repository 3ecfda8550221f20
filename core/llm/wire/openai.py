"""A request as the JSON of the OpenAI protocol."""

from __future__ import annotations

from dataclasses import dataclass, field
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from core.llm.request import OUR_KEYS, ChatRequest, Lang, is_on
from core.llm.wire.functions import check_choice, checked
from core.llm.wire.notes import note
from core.llm.wire.tool_names import ToolNames
from core.messages.message import ASSISTANT, FUNCTION, SYSTEM, Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from core.messages.content import ContentItem

Json: TypeAlias = dict[str, Any]

_FORMATS: Final = {"mpeg": "mp3", "wave": "wav", "mp4": "m4a"}
_CHOICES: Final = frozenset({"auto", "none"})

_WORDS: Final = {
    "en": {
        "unanswered": "No result.",
        "orphan": 'The tool "{name}" returned:\n',
        "brought": 'From the tool "{name}":',
        "go_on": "Go on exactly where you stopped, without repeating anything.",
    },
    "zh": {
        "unanswered": "没有结果。",
        "orphan": "工具“{name}”返回了：\n",
        "brought": "工具“{name}”给出的内容：",
        "go_on": "请从中断的地方接着说，不要重复。",
    },
}


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
        ModelRefusedError: A tool cannot be sent as it is, or `function_choice` names none of them.
    """
    generate = request.generate
    settings: Json = {key: value for key, value in generate.items() if key not in OUR_KEYS and value is not None}
    settings.update(cast("Json", settings.pop("extra_body", None) or {}))
    if not request.functions:
        return settings
    functions = checked(request.functions)
    choice = str(generate.get("function_choice") or "auto")
    if choice not in _CHOICES:
        check_choice(choice, functions)
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
    """The messages as a strict service wants them.

    What systems say comes first, in one message. Text and calls of one turn become one assistant message; every call
    gets its result under its own id, and a result without a call becomes a user's text. A history that ends with the
    assistant is one to be continued.
    """
    writer = _Writer(senses, lang, names or ToolNames())
    for message in messages:
        writer.add(message)
    writer.settle()
    systems = [f"{message['content']}" for message in writer.written if message["role"] == SYSTEM]
    if len(systems) < 2 and (not systems or writer.written[0]["role"] == SYSTEM):
        return _continued(writer.written, lang)
    others = [message for message in writer.written if message["role"] != SYSTEM]
    return _continued([{"role": SYSTEM, "content": "\n\n".join(filter(None, systems))}, *others], lang)


@dataclass(slots=True)
class _Writer:
    senses: Senses
    lang: Lang
    names: ToolNames
    written: list[Json] = field(default_factory=list[Json])
    _waiting: dict[str, str] = field(default_factory=dict[str, str])  # calls without a result yet: id to name
    _brought: list[Json] = field(default_factory=list[Json])

    def add(self, message: Message) -> None:
        if message.role == FUNCTION:
            self._result(message)
        elif message.role == ASSISTANT:
            self._assistant(message)
        else:
            self.settle()
            senses = self.senses if message.role != SYSTEM else Senses()
            self.written.append({"role": message.role, "content": content_json(message, senses, self.lang)})

    def settle(self) -> None:
        """End a turn of calls: what has no result gets one that says so, and what results brought follows."""
        for call_id in self._waiting:
            self._tool(call_id, self._words("unanswered"))
        self._waiting.clear()
        self.written.extend(self._brought)
        self._brought.clear()

    def _assistant(self, message: Message) -> None:
        # What it drew or spoke is told by its text; it would only learn to write notes in place of pictures.
        text = "".join(item.text or "" for item in message.items) or plain_text(message, self.lang)
        call = message.function_call
        if not text and not call:
            return  # nothing but reasoning, which services do not want back
        if not self.written or self.written[-1]["role"] != "assistant":
            self.settle()
            self.written.append({"role": "assistant", "content": ""})
        turn = self.written[-1]
        if text:
            before = str(turn["content"])
            turn["content"] = f"{before}\n{text}" if before and not before.endswith("\n") else before + text
        if call:
            said = str((message.extra or {}).get("function_id") or "")
            call_id = said if said and said not in self._waiting else f"call_{token_hex(8)}"
            function = {"name": self.names.sent(call.name), "arguments": call.arguments}
            calls = cast("list[Json]", turn.setdefault("tool_calls", []))
            calls.append({"id": call_id, "type": "function", "function": function})
            self._waiting[call_id] = call.name

    def _result(self, message: Message) -> None:
        name = str(message.name)
        call_id = self._answered(str((message.extra or {}).get("function_id") or ""), name)
        text = plain_text(message, self.lang, self.senses)
        if call_id is None:
            self.settle()
            self.written.append({"role": "user", "content": self._words("orphan", name) + text})
        else:
            self._tool(call_id, text)
        brought = [item_json(item) for item in message.items if self.senses.takes(item)]
        if brought:
            title = {"type": "text", "text": self._words("brought", name)}
            self._brought.append({"role": "user", "content": [title, *brought]})

    def _answered(self, call_id: str, name: str) -> str | None:
        """The call that a result belongs to: by the result's own id, else the first open call of that name."""
        same_name = (key for key, called in self._waiting.items() if called == name)
        key = call_id if call_id in self._waiting else next(same_name, None)
        if key is not None:
            del self._waiting[key]
        return key

    def _tool(self, call_id: str, text: str) -> None:
        self.written.append({"role": "tool", "tool_call_id": call_id, "content": text})

    def _words(self, key: str, name: str = "") -> str:
        return _WORDS[self.lang][key].format(name=name)


def content_json(message: Message, senses: Senses, lang: Lang = "en") -> str | list[Json]:
    """Text, or parts where the model takes what the message brings."""
    if not any(senses.takes(item) for item in message.items):
        return plain_text(message, lang)
    return [
        item_json(item) if senses.takes(item) else {"type": "text", "text": note(item, lang)} for item in message.items
    ]


def plain_text(message: Message, lang: Lang = "en", senses: Senses | None = None) -> str:
    """All items as one text, notes in place of what is not text; what `senses` take is left out."""
    if isinstance(message.content, str):
        return message.content
    text = ""
    for item in message.content:
        if item.type == "text":
            text += item.text or ""
        elif senses is None or not senses.takes(item):
            text += f"{note(item, lang)}\n" if not text or text.endswith("\n") else f"\n{note(item, lang)}\n"
    return text


def item_json(item: ContentItem) -> Json:
    """A picture, recording or video as the service's part."""
    match item.type:
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


def _continued(written: list[Json], lang: Lang) -> list[Json]:
    """A history that ends with the assistant's text asks for its continuation, in a form every service takes."""
    if not written or written[-1]["role"] != "assistant":
        return written
    partial = str(written[-1]["content"])
    if len(written) == 1:
        return [{"role": "user", "content": partial}]
    before = written[-2]
    if before["role"] != "user":
        return [*written, {"role": "user", "content": _WORDS[lang]["go_on"]}]
    asked: str | Sequence[Json] = before["content"]
    if isinstance(asked, str):
        content: str | list[Json] = f"{asked}\n\n{partial}"
    else:
        content = [*asked, {"type": "text", "text": f"\n\n{partial}"}]
    return [*written[:-2], {"role": "user", "content": content}]
