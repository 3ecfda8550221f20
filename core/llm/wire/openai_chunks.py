"""The OpenAI protocol's chunks to events."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from pydantic_core import from_json

from core.errors import ModelMisbehavedError
from core.llm.usage import usage_from
from core.llm.wire.calls import CallPieces
from core.llm.wire.halves import Halves
from core.llm.wire.openai_audio import Speech
from core.llm.wire.sse import EventLines
from core.llm.wire.tool_names import ToolNames
from core.messages.content import ContentItem
from core.messages.events import (
    Event,
    FinishReason,
    ItemAdded,
    MessageFinished,
    ReasoningDelta,
    TextDelta,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.messages.message import Usage

Json: TypeAlias = dict[str, Any]

_REASONS: Final[Mapping[str, FinishReason]] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "calls",
    "function_call": "calls",
    "content_filter": "content_filter",
}


@dataclass(slots=True)
class ChunkReader:
    """Reads one streamed reply.

    What one piece of bytes brings is joined: neighbouring texts become one event. Nothing is held back for more.

    Args:
        taken: Call ids of the conversation so far; a service that uses one again gets a new one.
        names: Gives tools their own names back.
    """

    taken: set[str] = field(default_factory=set[str])
    names: ToolNames = field(default_factory=ToolNames)
    done: bool = False
    reason: FinishReason | None = None
    usage: Usage | None = None
    spoke: bool = False
    error: Json | None = None
    empty: bool = True
    _lines: EventLines = field(default_factory=EventLines)
    _halves: Halves = field(default_factory=Halves)
    _calls: CallPieces = field(init=False)
    _speech: Speech = field(default_factory=Speech)

    def __post_init__(self) -> None:
        self._calls = CallPieces(self.taken, self.names, self._halves)

    @property
    def over(self) -> bool:
        """Whether nothing more is expected: the service said it is done, or reported an error."""
        return self.done or self.error is not None

    def feed(self, piece: bytes) -> list[Event]:
        """The events that this piece completes.

        Raises:
            ModelMisbehavedError: A chunk is not JSON, or not of the protocol's form.
        """
        self.empty = self.empty and not piece
        try:
            return self._read(self._lines.feed(piece))
        except (AttributeError, IndexError, KeyError, TypeError) as error:  # asked once a piece, not once a field
            raise _misread("of an unknown form") from error

    def close(self) -> list[Event]:
        """What is left when the bytes end; `done` tells whether the reply was whole.

        Raises:
            ModelMisbehavedError: A chunk is not JSON.
        """
        try:
            events = self._read(self._lines.close())
        except ModelMisbehavedError:  # a line that was cut off in the middle
            events = []
        self.done = self.done or self.reason is not None
        if not self.done:
            return events
        events += self._calls.close()
        if spoken := self._speech.item():
            events.append(ItemAdded(spoken))
        events.append(MessageFinished("calls" if self._calls else self.reason or "stop", self.usage))
        return events

    def _read(self, found: list[bytes]) -> list[Event]:
        events: list[Event] = []
        text: list[str] = []
        for data in found:
            chunk = self._chunk(data)
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

    def _chunk(self, data: bytes) -> Json | None:
        try:
            chunk = from_json(data)
        except ValueError:
            chunk = self._odd_chunk(data.strip())
        return cast("Json", chunk) if isinstance(chunk, dict) else None

    def _odd_chunk(self, data: bytes) -> Any:
        """`[DONE]`, and JSON that only the lenient parser of the standard library reads."""
        if data == b"[DONE]":
            self.done = True
            return None
        try:
            chunk = json.loads(data.decode("utf-8", "replace")) if data else None
        except ValueError:
            start = data[:80].decode("utf-8", "replace")
            raise _misread(f"that is not JSON: {start!r}") from None
        self._halves.odd = True
        return chunk

    def _say(self, text: list[str], events: list[Event]) -> None:
        if text:
            joined = self._halves.whole("text", "".join(text))
            if joined:
                events.append(TextDelta(joined))
                self.spoke = True
            text.clear()

    def _delta(self, choice: Json, text: list[str], events: list[Event]) -> None:
        # A service that does not stream sends one `message` in place of deltas.
        delta = cast("Json", choice.get("delta") or choice.get("message") or {})
        if reasoning := _thought_of(delta):
            self._say(text, events)
            self._think(self._halves.whole("reasoning", reasoning), events)
        if content := delta.get("content") or delta.get("refusal"):
            self._content(content, text, events)
        if audio := delta.get("audio"):
            self._speak(audio, text)
        for picture in cast("Sequence[Any]", delta.get("images") or ()):
            self._show(picture, text, events)
        old = delta.get("function_call")  # what calls were before there could be several
        for call in cast("Sequence[Json]", delta.get("tool_calls") or ([{"index": 0, "function": old}] if old else ())):
            self._say(text, events)
            events += self._calls.feed(call)
            self.spoke = True
        if reason := choice.get("finish_reason"):
            self.reason = _REASONS.get(str(reason), "stop")

    def _content(self, content: object, text: list[str], events: list[Event]) -> None:
        """Text, or the parts that a few services send: text, thoughts and pictures."""
        if isinstance(content, str):
            text.append(content)
            return
        for part in cast("Sequence[Json]", content):
            if part.get("type") == "image_url":
                self._show(part, text, events)
            elif thought := part.get("thinking"):
                self._say(text, events)
                self._think(self._halves.whole("reasoning", _joined(thought)), events)
            else:
                text.append(str(part.get("text") or ""))

    def _show(self, part: Any, text: list[str], events: list[Event]) -> None:
        """A picture that the model drew: an address, or the picture itself as a `data:` URI."""
        address: Any = cast("Json", part).get("image_url") if isinstance(part, dict) else part
        address = cast("Json", address).get("url") if isinstance(address, dict) else address
        if isinstance(address, str) and address:
            self._say(text, events)
            events.append(ItemAdded(ContentItem(image=address)))
            self.spoke = True

    def _speak(self, audio: Json, text: list[str]) -> None:
        """A piece of what the model says aloud, and of its wording."""
        self._speech.feed(str(audio.get("data") or ""))
        if words := audio.get("transcript"):
            text.append(str(words))
        self.spoke = True

    def _think(self, reasoning: str, events: list[Event]) -> None:
        last = events[-1] if events else None
        if isinstance(last, ReasoningDelta):
            events[-1] = ReasoningDelta(last.text + reasoning)
        elif reasoning:
            events.append(ReasoningDelta(reasoning))
        self.spoke = True


def _misread(how: str) -> ModelMisbehavedError:
    said = f"The service sent a chunk {how}."
    return ModelMisbehavedError(message=said, hint="Ask again; if it stays so, check the service's address.")


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
