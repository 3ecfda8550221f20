"""The OpenAI protocol: requests to JSON, and chunks to events."""

from __future__ import annotations

from base64 import b64encode
from binascii import a2b_base64
from dataclasses import dataclass, field
from struct import pack
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from core.llm.request import OUR_KEYS, ChatRequest, is_on
from core.llm.usage import usage_from
from core.llm.wire.cited import of_openai
from core.llm.wire.reading import REASONS, ReplyReader
from core.llm.wire.tools import ToolNames, checked_functions
from core.llm.wire.turns import Turn, continued, turns
from core.messages.content import ContentItem
from core.messages.events import Event, ItemAdded, MessageFinished

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from core.languages import Lang
    from core.messages.message import Message

Json: TypeAlias = dict[str, Any]

_FORMATS: Final = {"mpeg": "mp3", "wave": "wav", "mp4": "m4a"}
_CHOICES: Final = frozenset({"auto", "none"})


@dataclass(frozen=True, slots=True)
class Senses:
    """What the model takes beside text."""

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
    """`generate_cfg` and tools as the service's fields; our own keys are dropped, unknown ones pass.

    Args:
        request: With the merged `generate_cfg`.
        names: Tools' names on the wire; unchanged by default.

    Raises:
        ModelRefusedError: A tool cannot be sent as it is.
    """
    generate = request.generate
    settings: Json = {key: value for key, value in generate.items() if key not in OUR_KEYS and value is not None}
    settings.update(cast("Json", settings.pop("extra_body", None) or {}))
    if not request.functions:
        return settings
    functions = checked_functions(request.functions)
    choice = str(generate.get("function_choice") or "auto")
    sent = names.wire_name if names else str
    settings["tools"] = [{"type": "function", "function": {**each, "name": sent(each["name"])}} for each in functions]
    named = {"type": "function", "function": {"name": sent(choice)}}
    settings["tool_choice"] = choice if choice in _CHOICES else named
    if "parallel_function_calls" in generate:
        settings["parallel_tool_calls"] = is_on(generate["parallel_function_calls"])
    return settings


def messages_json(
    messages: Iterable[Message], senses: Senses, lang: Lang = "en", names: ToolNames | None = None
) -> list[Json]:
    """The messages in the form of strict services: see `turns`.

    A history that ends with the assistant is to be continued.
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
                "function": {"name": names.wire_name(call.name), "arguments": call.arguments},
            }
            for call in turn.calls
        ]
    return written


def item_json(item: ContentItem) -> Json:
    """An item as the service's part."""
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
    """A recording as base64 with its format; an address stays one, as some services fetch it."""
    if not isinstance(item.audio, str):
        return item.audio
    head, _, data = item.audio.partition(",")
    if not head.startswith("data:"):
        return {"data": item.audio, "format": item.get_file_extension() or "wav"}
    subtype = head.partition(";")[0].rpartition("/")[2].removeprefix("x-")
    return {"data": data, "format": _FORMATS.get(subtype, subtype)}


_RATE: Final = 24_000  # samples a second: services send raw PCM as 16-bit mono
_KINDS: Final = {
    b"RIFF": "wav",
    b"ID3": "mpeg",
    b"\xff\xfb": "mpeg",
    b"\xff\xf3": "mpeg",
    b"\xff\xf2": "mpeg",
    b"OggS": "ogg",
    b"fLaC": "flac",
    b"\xff\xf1": "aac",
}


@dataclass(slots=True)
class Speech:
    """Decodes speech from base64 that may be cut anywhere; each piece may also be encoded by itself."""

    _decoded: list[bytes] = field(default_factory=list[bytes])
    _rest: str = ""

    def feed(self, data: str) -> None:
        """One piece; what is not base64 is dropped."""
        text = self._rest + data
        # A piece that ends in padding is complete; any other may go on in the next.
        whole = len(text) if text.endswith("=") else len(text) - len(text) % 4
        text, self._rest = text[:whole], text[whole:]
        try:
            self._decoded.append(a2b_base64(text))
        except ValueError:  # not base64, or not even ASCII
            self._rest = ""

    def item(self) -> ContentItem | None:
        """The recording so far, raw PCM with a WAV header; `None` if nothing came."""
        raw = b"".join(self._decoded)
        if not raw:
            return None
        kind = next((kind for start, kind in _KINDS.items() if raw.startswith(start)), "")
        if not kind:
            kind, raw = "wav", _wav_header(len(raw)) + raw
        return ContentItem(audio=f"data:audio/{kind};base64,{b64encode(raw).decode('ascii')}")


def _wav_header(size: int) -> bytes:
    layout = pack("<4sI4s4sIHHIIHH", b"RIFF", 36 + size, b"WAVE", b"fmt ", 16, 1, 1, _RATE, 2 * _RATE, 2, 16)
    return layout + pack("<4sI", b"data", size)


@dataclass(slots=True)
class ChunkReader(ReplyReader):
    """Parses one streamed reply of the OpenAI protocol."""

    _speech: Speech = field(default_factory=Speech)

    @property
    def over(self) -> bool:
        """Whether the service sent the end mark or an error."""
        return self.done or self.error is not None

    def close(self) -> list[Event]:
        """The last events; `done` says whether the reply was complete."""
        events = self._rest()
        self.done = self.done or self.reason is not None
        if not self.done:
            return events
        events += self._calls.close()
        if spoken := self._speech.item():
            events.append(ItemAdded(spoken))
        events.append(MessageFinished(self._why(), self.usage))
        return events

    def _read(self, found: list[bytes]) -> list[Event]:
        events: list[Event] = []
        text: list[str] = []
        for data in found:
            chunk = self._json(data)
            if chunk is None:
                continue
            choices = chunk.get("choices")
            if choices:
                choice = choices[0]
                delta = choice.get("delta") or choice.get("message")
                # The hot path: more text and nothing else.
                more = delta.get("content") if delta and len(delta) == 1 else None
                if type(more) is str and not choice.get("finish_reason"):
                    text.append(more)
                else:
                    self._delta(choice, text, events)
            elif chunk.get("object") == "error":  # older servers, in place of `error`
                self.error = chunk
            if chunk.get("usage"):
                self.usage = usage_from(chunk["usage"]) or self.usage
            if chunk.get("error"):
                self.error = chunk["error"] if isinstance(chunk["error"], dict) else {"message": str(chunk["error"])}
        self._say(text, events)
        return events

    def _delta(self, choice: Json, text: list[str], events: list[Event]) -> None:
        self.begun = True
        # A service that does not stream sends one `message` in place of deltas.
        delta = cast("Json", choice.get("delta") or choice.get("message") or {})
        if reasoning := _thought_of(delta):
            self._think(reasoning, text, events)
        if content := delta.get("content") or delta.get("refusal"):
            self._content(content, text, events)
        if audio := delta.get("audio"):
            self._speak(audio, text)
        for note in cast("Sequence[Json]", delta.get("annotations") or ()):
            self._cite(of_openai(note), text, events)
        for picture in cast("Sequence[Any]", delta.get("images") or ()):
            self._show(picture, text, events)
        old = delta.get("function_call")  # the older form, of a single call
        for call in cast("Sequence[Json]", delta.get("tool_calls") or ([{"index": 0, "function": old}] if old else ())):
            self._call(call, text, events)
        if reason := choice.get("finish_reason"):
            self.reason = REASONS.get(str(reason), "stop")

    def _content(self, content: object, text: list[str], events: list[Event]) -> None:
        """Text, or the parts that a few services send: text, thoughts and pictures."""
        if isinstance(content, str):
            text.append(content)
            return
        for part in cast("Sequence[Json]", content):
            if part.get("type") == "image_url":
                self._show(part, text, events)
            elif thought := part.get("thinking"):
                self._think(_joined(thought), text, events)
            else:
                text.append(str(part.get("text") or ""))

    def _show(self, part: Any, text: list[str], events: list[Event]) -> None:
        """A generated picture: an address or a `data:` URI."""
        address: Any = cast("Json", part).get("image_url") if isinstance(part, dict) else part
        address = cast("Json", address).get("url") if isinstance(address, dict) else address
        if isinstance(address, str) and address:
            self._picture(address, text, events)

    def _speak(self, audio: Json, text: list[str]) -> None:
        """A piece of speech and of its transcript."""
        self._speech.feed(str(audio.get("data") or ""))
        if words := audio.get("transcript"):
            text.append(str(words))
        self.spoke = True


def _thought_of(delta: Json) -> str:
    """The reasoning, in whichever field the service puts it."""
    for name in ("reasoning_content", "reasoning", "thinking"):
        if isinstance(found := delta.get(name), str) and found:
            return found
    details = delta.get("reasoning_details")
    return _joined(details) if details else ""


def _joined(parts: object) -> str:
    """The text of parts such as `{"text": …}` or `{"summary": …}`."""
    if isinstance(parts, str):
        return parts
    found = (cast("Json", part) for part in cast("Sequence[Any]", parts) if isinstance(part, dict))
    return "".join(str(part.get("text") or part.get("summary") or "") for part in found)
