"""Parsing a streamed reply, in any protocol: bytes to server-sent events to our events."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from dataclasses import dataclass, field
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast

from pydantic_core import from_json

from core.errors import ModelMisbehavedError
from core.llm.wire.cited import MOST_CITED
from core.llm.wire.tools import ToolNames
from core.messages.content import ContentItem
from core.messages.events import (
    CallDelta,
    CallStarted,
    Event,
    FinishReason,
    ItemAdded,
    MessageFinished,
    ReasoningDelta,
    SourceCited,
    TextDelta,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from core.messages.message import Usage

Json: TypeAlias = dict[str, Any]


@dataclass(slots=True)
class _Call:
    call_id: str
    said_id: str
    name: str = ""
    proof: str = ""
    announced: bool = False


@dataclass(slots=True)
class CallPieces:
    """Assembles the tool calls of one reply; a call is announced once its name is complete.

    Args:
        taken: Call ids of the conversation so far; a repeated one is replaced.
        names: Restores tools' own names.
    """

    taken: set[str]
    names: ToolNames
    surrogates: Surrogates
    _calls: dict[int, _Call] = field(default_factory=dict[int, _Call])

    def __bool__(self) -> bool:
        return bool(self._calls)

    def feed(self, said: Json) -> list[Event]:
        """The events of one piece: `{"index", "id", "function": {"name", "arguments"}}`, each of them optional.

        With `proof`, which comes before the arguments, it is what the service wants back with the call.
        """
        function = cast("Json", said.get("function") or {})
        call = self._calls[self._place(said)]
        call.proof = str(said.get("proof") or "") or call.proof
        name = str(function.get("name") or "")
        if name and not call.announced and name != call.name:
            call.name += name
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments, ensure_ascii=False)
        if not arguments:
            return []
        return [*self._announced(call), CallDelta(call.call_id, self.surrogates.join(call.call_id, str(arguments)))]

    def close(self) -> list[Event]:
        """The events of calls without arguments, at the end."""
        return [event for call in self._calls.values() for event in self._announced(call)]

    def _place(self, said: Json) -> int:
        """The index of the call that a piece belongs to: given, else by its id, else the last."""
        said_id = str(said.get("id") or "")
        index = said.get("index")
        if not isinstance(index, int):
            last = max(self._calls, default=-1)
            fresh = last < 0 or (said_id and all(call.said_id != said_id for call in self._calls.values()))
            known = (place for place, call in self._calls.items() if said_id and call.said_id == said_id)
            index = last + 1 if fresh else next(known, last)
        if index not in self._calls:
            call_id = said_id if said_id and said_id not in self.taken else f"call_{token_hex(8)}"
            self.taken.add(call_id)
            self._calls[index] = _Call(call_id, said_id)
        return index

    def _announced(self, call: _Call) -> list[Event]:
        if call.announced:
            return []
        call.announced = True
        return [CallStarted(call.call_id, self.names.tool_name(call.name), call.proof)]


@dataclass(slots=True)
class Surrogates:
    """Rejoins surrogate pairs that a service split across chunks, per channel of a reply.

    Args:
        found: Whether lone surrogates may come: set once lenient JSON parsing was needed. Until then texts pass as is.
    """

    found: bool = False
    _kept: dict[str, str] = field(default_factory=dict[str, str])

    def join(self, channel: str, text: str) -> str:
        """The text with the pending half in front; a half at its end is kept for the next."""
        if not self.found:
            return text
        text = self._kept.pop(channel, "") + text
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._kept[channel] = text[:-1], text[-1]
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class EventLines:
    """Splits bytes into server-sent events and gives the `data` of each; comments and other fields are dropped.

    Lines end in LF or CRLF. Bytes are cut at line ends only, so no character is torn. A byte order mark is dropped.
    """

    def __init__(self) -> None:
        self._is_first = True
        self._rest: list[bytes] = []  # of an unfinished line: a picture in one line is joined once
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of the events that this piece completes."""
        lines = piece.split(b"\n")
        if len(lines) == 1:
            self._rest.append(piece)
            return []
        if self._rest:
            self._rest.append(lines[0])
            lines[0] = b"".join(self._rest)
        self._rest = [last] if (last := lines.pop()) else []
        found: list[bytes] = []
        if self._is_first:
            self._is_first = False
            lines[0] = lines[0].removeprefix(BOM_UTF8)
        data = self._data
        for line in lines:
            if line[:5] == b"data:":
                data.append(line[5:])
            elif data and line.strip() == b"":
                found.append(data[0] if len(data) == 1 else b"\n".join(data))
                data = []
        self._data = data
        return found

    def close(self) -> list[bytes]:
        """The data of an unterminated last event."""
        return self.feed(b"\n\n")


async def one_event(raw: bytes) -> AsyncGenerator[bytes, None]:
    """A whole JSON body as one server-sent event."""
    yield b"data: " + raw.replace(b"\n", b" ") + b"\n\n"


REASONS: Final[Mapping[str, FinishReason]] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "calls",
    "function_call": "calls",
    "content_filter": "content_filter",
}
"""Finish reasons of services to ours; any other is `stop`."""


MOST_SILENT: Final = 64 << 20
"""Bytes that may come without an event of the reply: a picture is a single line."""


@dataclass(slots=True)
class ReplyReader:
    """Parses one streamed reply; a protocol adds `_read`.

    Neighbouring texts in one piece of bytes become one event. Nothing is held back for the next piece.

    Args:
        taken: Call ids of the conversation so far; a repeated one is replaced.
        names: Restores tools' own names.
        done: Whether the service sent the end mark.
        reason: The finish reason, once it is known.
        usage: The usage, once it is known.
        spoke: Whether anything of the reply has come.
        error: An error that came in the stream.
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
    _cited: int = 0
    _lines: EventLines = field(default_factory=EventLines)
    _surrogates: Surrogates = field(default_factory=Surrogates)
    _calls: CallPieces = field(init=False)

    def __post_init__(self) -> None:
        self._calls = CallPieces(self.taken, self.names, self._surrogates)

    @property
    def foreign(self) -> bool:
        """Whether something came, but nothing of the protocol."""
        return not (self.empty or self.begun)

    def feed(self, piece: bytes) -> list[Event]:
        """The events that this piece completes.

        Raises:
            ModelMisbehavedError: A chunk is not JSON, or not of the protocol's form; or too much came without an event.
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
        except (AttributeError, IndexError, KeyError, TypeError) as error:  # checked once per piece, not per field
            raise misread("of an unknown form") from error

    def _read(self, found: list[bytes]) -> list[Event]:
        """The events of these chunks."""
        raise NotImplementedError

    def _rest(self) -> list[Event]:
        """The events of an unterminated last line."""
        try:
            return self._read(self._lines.close())
        except ModelMisbehavedError:  # cut off in the middle
            return []

    def _json(self, data: bytes) -> Json | None:
        try:
            chunk: Any = from_json(data)
        except ValueError:
            chunk = self._lenient_json(data.strip())
        return cast("Json", chunk) if isinstance(chunk, dict) else None

    def _lenient_json(self, data: bytes) -> Any:
        """`[DONE]`, or JSON that only the standard library parses: with lone surrogates."""
        if data == b"[DONE]":
            self.done = True
            return None
        try:
            chunk = json.loads(data.decode("utf-8")) if data else None
        except UnicodeDecodeError:  # an error rather than silent replacement characters
            raise misread("that is not UTF-8") from None
        except (ValueError, RecursionError):
            raise misread(f"that is not JSON: {data[:80].decode('utf-8', 'replace')!r}") from None
        self._surrogates.found = True
        return chunk

    def _say(self, text: list[str], events: list[Event]) -> None:
        """Flush `text` into one event."""
        if text:
            self.begun = True
            joined = self._surrogates.join("text", "".join(text))
            if joined:
                events.append(TextDelta(joined))
                self.spoke = True
            text.clear()

    def _think(self, reasoning: str, text: list[str], events: list[Event]) -> None:
        self._say(text, events)
        reasoning = self._surrogates.join("reasoning", reasoning)
        last = events[-1] if events else None
        if isinstance(last, ReasoningDelta) and not last.proof:
            events[-1] = ReasoningDelta(last.text + reasoning)
        elif reasoning:
            events.append(ReasoningDelta(reasoning))
        self.spoke = True

    def _prove(self, proof: str, text: list[str], events: list[Event]) -> None:
        """The thought is over; its service wants this back with it."""
        self._say(text, events)
        last = events[-1] if events else None
        if isinstance(last, ReasoningDelta) and not last.proof:
            events[-1] = ReasoningDelta(last.text, proof)
        else:
            events.append(ReasoningDelta("", proof))
        self.spoke = True

    def _call(self, piece: Json, text: list[str], events: list[Event]) -> None:
        self._say(text, events)
        events.extend(self._calls.feed(piece))
        self.spoke = True

    def _why(self) -> FinishReason:
        """The finish reason; `length` also with calls, as half a call must not be run."""
        if self._calls and self.reason != "length":
            return "calls"
        return self.reason or "stop"

    def _cite(self, passages: list[Json], text: list[str], events: list[Event], back: int = 0) -> None:
        """The service names what the text so far comes from, or that of it which ends `back` characters before."""
        kept = passages[: max(0, MOST_CITED - self._cited)]
        self._cited += len(kept)
        if kept:
            self._say(text, events)
            events.append(SourceCited(tuple(kept), back))

    def _picture(self, address: str, text: list[str], events: list[Event]) -> None:
        """A generated picture: an address or a `data:` URI."""
        self._say(text, events)
        events.append(ItemAdded(ContentItem(image=address)))
        self.spoke = True


@dataclass(slots=True)
class WholeReader(ReplyReader):
    """Parses a reply of a protocol that marks its end, or tells a reason for it.

    Args:
        model: Which model answers; proofs are those of that one.
        response_id: The service's id of the reply.
    """

    model: str = ""
    response_id: str = ""

    @property
    def over(self) -> bool:
        """Whether the service sent the end mark or an error."""
        return self.done or self.error is not None

    def close(self) -> list[Event]:
        """The last events; `done` says whether the reply was complete."""
        events = self._rest()
        self.done = self.error is None and (self.done or self.reason is not None)
        if not self.done:
            return events
        return [*events, *self._calls.close(), MessageFinished(self._why(), self.usage)]

    def _read(self, found: list[bytes]) -> list[Event]:
        events: list[Event] = []
        text: list[str] = []
        for data in found:
            chunk = self._json(data)
            if chunk is not None:
                self._chunk(chunk, text, events)
        self._say(text, events)
        return events

    def _chunk(self, chunk: Json, text: list[str], events: list[Event]) -> None:
        """Take one event of the protocol in: text goes into `text`, all else into `events`."""
        raise NotImplementedError


class EndingReader(Protocol):
    """A reader as back ends see it that share a loop: see `WholeReader`."""

    done: bool
    spoke: bool
    response_id: str

    @property
    def error(self) -> Json | None:
        """An error that came in the stream."""
        ...

    @property
    def over(self) -> bool:
        """Whether the service sent the end mark or an error."""
        ...

    @property
    def foreign(self) -> bool:
        """Whether something came, but nothing of the protocol."""
        ...

    def feed(self, piece: bytes) -> list[Event]:
        """The events that this piece completes."""
        ...

    def close(self) -> list[Event]:
        """The last events."""
        ...


def misread(how: str) -> ModelMisbehavedError:
    """The error for a chunk that cannot be parsed."""
    said = f"The service sent a chunk {how}."
    return ModelMisbehavedError(message=said, hint="Ask again; if it stays so, check the service's address.")
