"""The OpenAI protocol's chunks to events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from core.llm.usage import usage_from
from core.llm.wire.openai_audio import Speech
from core.llm.wire.reading import REASONS, ReplyReader
from core.messages.events import Event, ItemAdded, MessageFinished

if TYPE_CHECKING:
    from collections.abc import Sequence

Json: TypeAlias = dict[str, Any]


@dataclass(slots=True)
class ChunkReader(ReplyReader):
    """Reads one streamed reply of the OpenAI protocol."""

    _speech: Speech = field(default_factory=Speech)

    @property
    def over(self) -> bool:
        """Whether nothing more is expected: the service said it is done, or reported an error."""
        return self.done or self.error is not None

    def close(self) -> list[Event]:
        """What is left when the bytes end; `done` tells whether the reply was whole."""
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
                # The hot path: a word more of the text and nothing else.
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
        for picture in cast("Sequence[Any]", delta.get("images") or ()):
            self._show(picture, text, events)
        old = delta.get("function_call")  # what calls were before there could be several
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
        """A picture that the model drew: an address, or the picture itself as a `data:` URI."""
        address: Any = cast("Json", part).get("image_url") if isinstance(part, dict) else part
        address = cast("Json", address).get("url") if isinstance(address, dict) else address
        if isinstance(address, str) and address:
            self._picture(address, text, events)

    def _speak(self, audio: Json, text: list[str]) -> None:
        """A piece of what the model says aloud, and of its wording."""
        self._speech.feed(str(audio.get("data") or ""))
        if words := audio.get("transcript"):
            text.append(str(words))
        self.spoke = True


def _thought_of(delta: Json) -> str:
    """What the model thinks, in whichever field a service puts it: the first that has text counts."""
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
