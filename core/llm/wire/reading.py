"""What reading a streamed reply is in every protocol: events out of lines, text in one, thought in another."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from pydantic_core import from_json

from core.errors import ModelMisbehavedError
from core.llm.wire.calls import CallPieces
from core.llm.wire.halves import Halves
from core.llm.wire.sse import EventLines
from core.llm.wire.tool_names import ToolNames
from core.messages.content import ContentItem
from core.messages.events import Event, FinishReason, ItemAdded, ReasoningDelta, TextDelta

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.messages.message import Usage

Json: TypeAlias = dict[str, Any]

REASONS: Final[Mapping[str, FinishReason]] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "calls",
    "function_call": "calls",
    "content_filter": "content_filter",
}
"""Why a reply ended, in a service's words and ours; any other is `stop`."""
MOST_SILENT: Final = 64 << 20
"""Bytes that may come without any of the reply in them: a picture is one line, and comes whole."""


@dataclass(slots=True)
class ReplyReader:
    """Reads one streamed reply; a protocol adds `_read`.

    What one piece of bytes brings is joined: neighbouring texts become one event. Nothing is held back for more.

    Args:
        taken: Call ids of the conversation so far; a service that uses one again gets a new one.
        names: Gives tools their own names back.
        done: Whether the service marked the end.
        reason: Why the reply ended, once it is known.
        usage: Tokens, once they are known.
        spoke: Whether anything of the reply has come.
        error: What the service reported in place of more.
        empty: Whether no byte has come.
        begun: Whether a chunk of the protocol has come.
    """

    taken: set[str] = field(default_factory=set[str])
    names: ToolNames = field(default_factory=ToolNames)
    done: bool = False
    reason: FinishReason | None = None
    usage: Usage | None = None
    spoke: bool = False
    error: Json | None = None
    empty: bool = True
    begun: bool = False
    _silent: int = 0
    _lines: EventLines = field(default_factory=EventLines)
    _halves: Halves = field(default_factory=Halves)
    _calls: CallPieces = field(init=False)

    def __post_init__(self) -> None:
        self._calls = CallPieces(self.taken, self.names, self._halves)

    @property
    def foreign(self) -> bool:
        """Whether what came is nothing of the protocol."""
        return not (self.empty or self.begun)

    def feed(self, piece: bytes) -> list[Event]:
        """The events that this piece completes.

        Raises:
            ModelMisbehavedError: A chunk is not JSON, or not of the protocol's form; or nothing but silence comes.
        """
        self.empty = self.empty and not piece
        self._silent += len(piece)
        if self._silent > MOST_SILENT:
            raise misread("that has no end")
        try:
            events = self._read(self._lines.feed(piece))
            if events:
                self._silent = 0
            return events
        except (AttributeError, IndexError, KeyError, TypeError) as error:  # asked once a piece, not once a field
            raise misread("of an unknown form") from error

    def _read(self, found: list[bytes]) -> list[Event]:
        """The events of these chunks."""
        raise NotImplementedError

    def _rest(self) -> list[Event]:
        """The events of what is left when the bytes end."""
        try:
            return self._read(self._lines.close())
        except ModelMisbehavedError:  # a line that was cut off in the middle
            return []

    def _json(self, data: bytes) -> Json | None:
        try:
            chunk: Any = from_json(data)
        except ValueError:
            chunk = self._odd_json(data.strip())
        return cast("Json", chunk) if isinstance(chunk, dict) else None

    def _odd_json(self, data: bytes) -> Any:
        """`[DONE]`, and JSON that only the lenient parser of the standard library reads: halves of a character."""
        if data == b"[DONE]":
            self.done = True
            return None
        try:
            chunk = json.loads(data.decode("utf-8")) if data else None
        except UnicodeDecodeError:  # what was meant cannot be known: no letter is put in its place in silence
            raise misread("that is not UTF-8") from None
        except (ValueError, RecursionError):
            raise misread(f"that is not JSON: {data[:80].decode('utf-8', 'replace')!r}") from None
        self._halves.odd = True
        return chunk

    def _say(self, text: list[str], events: list[Event]) -> None:
        """The text so far as one event; `text` is empty afterwards."""
        if text:
            self.begun = True
            joined = self._halves.whole("text", "".join(text))
            if joined:
                events.append(TextDelta(joined))
                self.spoke = True
            text.clear()

    def _think(self, reasoning: str, text: list[str], events: list[Event]) -> None:
        self._say(text, events)
        reasoning = self._halves.whole("reasoning", reasoning)
        last = events[-1] if events else None
        if isinstance(last, ReasoningDelta):
            events[-1] = ReasoningDelta(last.text + reasoning)
        elif reasoning:
            events.append(ReasoningDelta(reasoning))
        self.spoke = True

    def _call(self, piece: Json, text: list[str], events: list[Event]) -> None:
        self._say(text, events)
        events.extend(self._calls.feed(piece))
        self.spoke = True

    def _why(self) -> FinishReason:
        """Why the reply ended. One that was cut off says so, also with calls in it: half a call must not be run."""
        if self._calls and self.reason != "length":
            return "calls"
        return self.reason or "stop"

    def _picture(self, address: str, text: list[str], events: list[Event]) -> None:
        """A picture that the model drew: an address, or the picture itself as a `data:` URI."""
        self._say(text, events)
        events.append(ItemAdded(ContentItem(image=address)))
        self.spoke = True


def misread(how: str) -> ModelMisbehavedError:
    """The error for a chunk that cannot be read."""
    said = f"The service sent a chunk {how}."
    return ModelMisbehavedError(message=said, hint="Ask again; if it stays so, check the service's address.")
