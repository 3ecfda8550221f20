"""DashScope's chunks to events."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from pydantic_core import from_json

from core.errors import ModelMisbehavedError
from core.llm.usage import usage_from
from core.llm.wire.calls import CallPieces
from core.llm.wire.halves import Halves
from core.llm.wire.sse import EventLines
from core.llm.wire.tool_names import ToolNames
from core.messages.content import ContentItem
from core.messages.events import Event, FinishReason, ItemAdded, MessageFinished, ReasoningDelta, TextDelta

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.messages.message import Usage

Json: TypeAlias = dict[str, Any]

_REASONS: Final[Mapping[str, FinishReason]] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "calls",
    "content_filter": "content_filter",
}
_STATUS: Final = re.compile(rb"^(?::HTTP_STATUS/|status:\s*)(\d{3})", re.MULTILINE)
_NEAR: Final = 4096  # the status of an event stands on a line before its data


@dataclass(slots=True)
class DashScopeReader:
    """Reads one streamed reply.

    What one piece of bytes brings is joined: neighbouring texts become one event. Nothing is held back for more.

    Args:
        taken: Call ids of the conversation so far; a service that uses one again gets a new one.
        names: Gives tools their own names back.
    """

    taken: set[str] = field(default_factory=set[str])
    names: ToolNames = field(default_factory=ToolNames)
    reason: FinishReason | None = None
    spoke: bool = False
    error: Json | None = None
    request_id: str = ""
    _said_usage: Json | None = None
    _lines: EventLines = field(default_factory=EventLines)
    _recent: bytes = b""
    _halves: Halves = field(default_factory=Halves)
    _calls: CallPieces = field(init=False)

    def __post_init__(self) -> None:
        self._calls = CallPieces(self.taken, self.names, self._halves)

    @property
    def usage(self) -> Usage | None:
        """Tokens as the newest chunk counts them."""
        return usage_from(self._said_usage)

    def feed(self, piece: bytes) -> list[Event]:
        """The events that this piece completes.

        Raises:
            ModelMisbehavedError: A chunk is not JSON, or not of the protocol's form.
        """
        self._recent = (self._recent + piece)[-_NEAR:]
        return self._read(self._lines.feed(piece))

    def close(self) -> list[Event]:
        """What is left when the bytes end; the last event is `MessageFinished` if the reply was whole.

        Raises:
            ModelMisbehavedError: A chunk is not of the protocol's form.
        """
        try:
            events = self._read(self._lines.close())
        except ModelMisbehavedError:  # a line that was cut off in the middle
            events = []
        if self.reason is None or self.error is not None:
            return events
        reason = "calls" if self._calls else self.reason
        return [*events, *self._calls.close(), MessageFinished(reason, self.usage)]

    def _read(self, found: list[bytes]) -> list[Event]:
        events: list[Event] = []
        text: list[str] = []
        try:
            for data in found:
                self._chunk(data, text, events)
        except (AttributeError, IndexError, KeyError, TypeError) as error:  # asked once a piece, not once a field
            raise _misread("of an unknown form") from error
        self._say(text, events)
        return events

    def _chunk(self, data: bytes, text: list[str], events: list[Event]) -> None:
        chunk = self._json(data)
        if chunk is None:
            return
        output = chunk.get("output")
        if not output:
            self._aside(chunk)
            return
        choices = output.get("choices")
        # A service that ignores `result_format` has text and reason in the output itself.
        choice = choices[0] if choices else {"message": {"content": output.get("text")}, **output}
        message = choice.get("message") or {}
        content = message.get("content")
        reason = choice.get("finish_reason")
        # The hot path: a word more of the text and nothing else.
        if type(content) is str and not message.get("reasoning_content") and not message.get("tool_calls"):
            text.append(content)
        else:
            self._message(message, text, events)
        if reason and reason != "null":
            self.reason = _REASONS.get(str(reason), "stop")
        if usage := chunk.get("usage"):
            self._said_usage = usage
        if not self.request_id:
            self.request_id = str(chunk.get("request_id") or "")

    def _aside(self, chunk: Json) -> None:
        """A chunk without output: an error, or a late word about tokens."""
        self._said_usage = chunk.get("usage") or self._said_usage
        self.request_id = str(chunk.get("request_id") or self.request_id)
        said = chunk.get("error") or chunk
        said = cast("Json", said if isinstance(said, dict) else {"message": str(said)})
        if said.get("code") or chunk.get("error"):
            statuses = _STATUS.findall(self._recent)
            told = int(statuses[-1]) if statuses else int(chunk.get("status_code") or 0)
            self.error = {"status": told if told >= 400 else 0, **said}
        elif not chunk.get("usage") and "output" not in chunk:
            raise _misread("of an unknown form")

    def _json(self, data: bytes) -> Json | None:
        try:
            chunk: Any = from_json(data)
        except ValueError:
            chunk = self._odd_json(data.strip())
        return cast("Json", chunk) if isinstance(chunk, dict) else None

    def _odd_json(self, data: bytes) -> Any:
        """What only the lenient parser of the standard library reads: halves of a character."""
        if not data or data == b"[DONE]":
            return None
        try:
            chunk = json.loads(data.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            raise _misread(f"that is not JSON: {data[:80].decode('utf-8', 'replace')!r}") from None
        self._halves.odd = True
        return chunk

    def _message(self, message: Json, text: list[str], events: list[Event]) -> None:
        if reasoning := message.get("reasoning_content"):
            self._say(text, events)
            self._think(self._halves.whole("reasoning", str(reasoning)), events)
        content = message.get("content") or ()
        for part in [content] if isinstance(content, str) else cast("Sequence[Any]", content):
            self._part(part, text, events)
        for call in cast("Sequence[Json]", message.get("tool_calls") or ()):
            self._say(text, events)
            self.spoke = True
            events.extend(self._calls.feed(call))

    def _part(self, part: Any, text: list[str], events: list[Event]) -> None:
        """A part of the content: the multimodal service sends lists of them."""
        if isinstance(part, str):
            text.append(part)
        elif more := part.get("text"):
            text.append(str(more))
        elif picture := part.get("image"):
            self._say(text, events)
            self.spoke = True
            events.append(ItemAdded(ContentItem(image=str(picture))))

    def _say(self, text: list[str], events: list[Event]) -> None:
        if text:
            joined = self._halves.whole("text", "".join(text))
            if joined:
                events.append(TextDelta(joined))
                self.spoke = True
            text.clear()

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
