"""Turns events into messages: text is joined only when read, finished messages are shared and never copied."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Never, TypeAlias

from core.messages.content import ContentItem
from core.messages.events import (
    CallDelta,
    CallStarted,
    Event,
    ItemAdded,
    MessageFinished,
    MessageStarted,
    ReasoningDelta,
    SourceCited,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from core.messages.json_text import compact, read_object
from core.messages.marks import set_marks
from core.messages.message import ASSISTANT, PASSAGES, PROOF, FunctionCall, Message, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(slots=True)
class _Open:
    """A message that may still grow."""

    kind: Literal["text", "reasoning"]
    speaker: str | None
    pieces: list[str] = field(default_factory=list[str])
    items: list[ContentItem] = field(default_factory=list[ContentItem])
    proof: str = ""
    passages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    _built: Message | None = None

    def message(self) -> Message | None:
        # What was joined once is kept as one piece: a message that has not grown since is the same object.
        if self._built is not None and len(self.pieces) <= 1:
            return self._built
        text = "".join(self.pieces)
        self.pieces[:] = [text]
        self._built = self._build(text)
        return self._built

    def changed(self) -> list[str]:
        """Its pieces, for whoever changes them."""
        self._built = None
        return self.pieces

    def add(self, event: ItemAdded | SourceCited | MessageFinished) -> None:
        """A picture, what the text comes from, or what its service wants back with it."""
        self._built = None
        match event:
            case ItemAdded():
                self.items.append(event.item)
            case SourceCited():
                self.passages.extend(event.passages)
            case MessageFinished():
                self.proof = event.proof

    def _build(self, text: str) -> Message | None:
        if self.kind == "reasoning":
            extra = {PROOF: self.proof} if self.proof else None
            return Message(ASSISTANT, "", name=self.speaker, reasoning_content=text, extra=extra)
        kept = {PROOF: self.proof} if self.proof else {}
        extra = {**kept, **({PASSAGES: list(self.passages)} if self.passages else {})} or None
        if not self.items:
            return Message(ASSISTANT, text, name=self.speaker, extra=extra) if text else None
        content = ([ContentItem(text=text)] if text else []) + self.items
        return Message(ASSISTANT, content, name=self.speaker, extra=extra)


@dataclass(slots=True)
class _Call:
    """A call whose arguments may still arrive."""

    call_id: str
    name: str
    speaker: str | None
    proof: str = ""
    pieces: list[str] = field(default_factory=list[str])
    done: Message | None = None

    def message(self) -> Message | None:
        return self.done

    def finish(self, *, mend: bool = False) -> None:
        if self.done is None:
            arguments = "".join(self.pieces)
            self.done = call_message(self.call_id, self.name, arguments, self.speaker, mend=mend, proof=self.proof)


@dataclass(slots=True)
class _Result:
    """The place of a tool's result, kept in the order of the calls."""

    call_id: str
    done: Message | None = None

    def message(self) -> Message | None:
        return self.done


_Entry: TypeAlias = _Open | _Call | _Result


def call_message(
    call_id: str, name: str, arguments: str, speaker: str | None = None, *, mend: bool = False, proof: str = ""
) -> Message:
    """The assistant message of one call; arguments that are not JSON are kept whole, as a JSON string.

    Args:
        call_id: Ties it to its result.
        speaker: Who calls.
        mend: Whether arguments that are nearly JSON become JSON.
        proof: What the model's service wants back with the call.
    """
    extra: dict[str, object] = {"function_id": call_id, **({PROOF: proof} if proof else {})}
    text = arguments.strip() or "{}"
    try:
        json.loads(text)
    except (ValueError, RecursionError):  # no JSON, a number too long to read, or brackets without an end
        mended = _mended(text) if mend else None
        text = mended or json.dumps(arguments, ensure_ascii=False)
        if mended is None:
            extra["unreadable"] = True
    return Message(ASSISTANT, "", name=speaker, function_call=FunctionCall(name, text), extra=extra)


def _mended(text: str) -> str | None:
    try:
        return compact(read_object(text))
    except (ValueError, RecursionError):
        return None


def _refuse(event: Never) -> Never:
    """Raises TypeError: what should be an event is none."""
    raise TypeError(
        f"A model or an agent gave {type(event).__name__} instead of an event: "
        "`_stream` and `_stream_reply` yield events (core.messages.events), `_chat_stream` and `_run` lists."
    )


def edited_call(message: Message, arguments: object) -> Message:
    """The call with the arguments that a person put in place of the model's; the same message where there are none."""
    if not isinstance(arguments, dict) or message.function_call is None:
        return message
    call = FunctionCall(message.function_call.name, json.dumps(arguments, ensure_ascii=False))
    return message.model_copy(update={"function_call": call})


def spent(result: Message) -> Usage | None:
    """What the models cost that a tool has asked, from its result's `extra["spent"]`; None where there is none."""
    given = (result.extra or {}).get("spent")
    try:
        return Usage.model_validate(given) if isinstance(given, dict) else None
    except ValueError:
        return None


class Transcript:
    """The reply so far. `apply` takes constant time; `messages` joins only what is still open.

    Reasoning, text and each call are separate messages in the order in which they appeared;
    a call appears once its arguments are whole, results follow in the order of their calls. Where a result's
    `extra["arguments"]` says that a person changed the arguments, the call has those.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.usage: Usage | None = None
        self.reason: str | None = None
        self._done: list[Message] = []
        self._open: list[_Entry] = []
        self._speaker: str | None = None
        for event in events:
            self.apply(event)

    def apply(self, event: Event) -> None:
        """Take one event in."""
        match event:
            case MessageStarted():
                self._settle()
                self._speaker = event.name
            case TextDelta():
                self._tail("text").pieces.append(event.text)
            case ReasoningDelta():
                self._think(event)
            case ItemAdded() | SourceCited():
                self._tail("text").add(event)
                self._mark(event)
            case CallStarted():
                self._open.append(_Call(event.call_id, event.name, self._speaker, event.proof))
            case CallDelta():
                self._call(event.call_id).pieces.append(event.arguments)
            case ToolStarted():
                self._open_results()
            case ToolFinished():
                self._open_results()
                self._result(event.call_id).done = event.message
                self._count(spent(event.message))
                self._edit(event.call_id, (event.message.extra or {}).get("arguments"))
            case MessageFinished():
                self._finish(event)
            case _:
                _refuse(event)

    def messages(self) -> list[Message]:
        """The reply as Qwen-Agent's messages. What was finished before is the same object each time."""
        still_open = (entry.message() for entry in self._open)
        return [*self._done, *(message for message in still_open if message is not None)]

    def unanswered(self) -> list[Message]:
        """The calls that are whole and have no result yet, in order."""
        answered = {e.call_id for e in self._open if isinstance(e, _Result) and e.done is not None}
        calls = (e for e in self._open if isinstance(e, _Call))
        return [call.done for call in calls if call.done is not None and call.call_id not in answered]

    def _think(self, event: ReasoningDelta) -> None:
        thought = self._tail("reasoning")
        thought.pieces.append(event.text)
        thought.proof = event.proof

    def _mark(self, event: ItemAdded | SourceCited) -> None:
        if isinstance(event, SourceCited) and event.marks:
            texts = [one for one in reversed(self._open) if isinstance(one, _Open) and one.kind == "text"]
            set_marks((one.changed() for one in texts), event)

    def _tail(self, kind: Literal["text", "reasoning"]) -> _Open:
        last = self._open[-1] if self._open else None
        if isinstance(last, _Open) and last.kind == kind and not last.proof:
            return last
        fresh = _Open(kind, self._speaker)
        self._open.append(fresh)
        return fresh

    def _call(self, call_id: str) -> _Call:
        for entry in reversed(self._open):
            if isinstance(entry, _Call) and entry.call_id == call_id:
                return entry
        raise ValueError(f"There is no call {call_id!r} in this reply.")

    def _edit(self, call_id: str, arguments: object) -> None:
        """What really ran is what the call says from now on."""
        for entry in self._open if arguments is not None else ():
            if isinstance(entry, _Call) and entry.call_id == call_id and entry.done is not None:
                entry.done = edited_call(entry.done, arguments)

    def _result(self, call_id: str) -> _Result:
        for entry in reversed(self._open):
            if isinstance(entry, _Result) and entry.call_id == call_id:
                return entry
        fresh = _Result(call_id)
        self._open.append(fresh)
        return fresh

    def _open_results(self) -> None:
        """Give each call of this turn a place for its result, in order."""
        placed = {entry.call_id for entry in self._open if isinstance(entry, _Result)}
        calls = [entry for entry in self._open if isinstance(entry, _Call) and entry.call_id not in placed]
        for call in calls:
            call.finish()
        self._open.extend(_Result(call.call_id) for call in calls)

    def _finish(self, event: MessageFinished) -> None:
        for entry in self._open:
            if isinstance(entry, _Call):
                entry.finish(mend=event.reason == "calls")  # of a reply that was cut off nothing is mended
        self.reason = event.reason
        self._count(event.usage)
        if event.proof:
            self._sign(event)
        if event.unthought:
            self._open = [one for one in self._open if not isinstance(one, _Open) or one.kind != "reasoning"]
        if not any(isinstance(entry, _Call) for entry in self._open):
            self._settle()

    def _sign(self, event: MessageFinished) -> None:
        """The proof goes with the turn's last text."""
        text = next((one for one in reversed(self._open) if isinstance(one, _Open) and one.kind == "text"), None)
        if text is not None:
            text.add(event)

    def _count(self, usage: Usage | None) -> None:
        if usage is not None:
            self.usage = usage if self.usage is None else self.usage + usage

    def _settle(self) -> None:
        """Close what is open: from here on it is shared, not built again."""
        self._done = self.messages()
        self._open = []
