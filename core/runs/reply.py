"""What a reader sees of a reply: a pure fold of its events into blocks, the same live and from the table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, assert_never

from core.messages.events import (
    CallDelta,
    CallStarted,
    ItemAdded,
    MessageFinished,
    MessageStarted,
    ReasoningDelta,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from core.runs.log import ClaimsChecked, LoggedEvent, RunFinished

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.messages.content import ContentItem
    from core.messages.message import Message, Usage
    from core.runs.log import Checked
    from core.storage.base import RunStatus

CallState: TypeAlias = Literal["waiting", "running", "done", "failed"]


@dataclass(slots=True)
class _Growing:
    """Text that grows: pieces are joined only when somebody reads."""

    pieces: list[str] = field(default_factory=list[str], kw_only=True, repr=False)

    def joined(self) -> str:
        if len(self.pieces) > 1:
            self.pieces[:] = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""


@dataclass(slots=True)
class TextBlock(_Growing):
    """Text of the reply (Markdown); `name` is the speaker where there are several."""

    name: str | None = None
    kind: Literal["text"] = "text"

    @property
    def text(self) -> str:
        """All of it so far."""
        return self.joined()


@dataclass(slots=True)
class ReasoningBlock(_Growing):
    """What the model thought; `seconds` is None while it still thinks."""

    started_at: float
    seconds: float | None = None
    kind: Literal["reasoning"] = "reasoning"

    @property
    def text(self) -> str:
        """All of it so far."""
        return self.joined()


@dataclass(slots=True)
class CallBlock(_Growing):
    """A tool call.

    Args:
        state: `waiting` (arguments still arrive, or its turn has not come), `running`, `done` or `failed`;
            a call that was cut off is `failed` without a result.
        result: The tool's message; `extra["failed"]` names the error of a failed one.
        started_at: Seconds since the run began; `None` before the tool starts.
        seconds: How long the tool worked; `None` until it is done.
    """

    call_id: str
    name: str
    state: CallState = "waiting"
    result: Message | None = None
    started_at: float | None = None
    seconds: float | None = None
    kind: Literal["call"] = "call"

    @property
    def arguments(self) -> str:
        """The arguments so far: JSON text, perhaps not whole yet."""
        return self.joined()


@dataclass(slots=True)
class ItemBlock:
    """A picture, file or sound of the reply."""

    item: ContentItem
    kind: Literal["item"] = "item"


Block: TypeAlias = TextBlock | ReasoningBlock | CallBlock | ItemBlock


class Reply:
    """A reply as blocks in order of appearance.

    `apply` takes constant time. `passages` holds every retrieved passage in order of appearance, each with its
    `"number"` from 1: what `[n]` in the text points to. The same passage found twice keeps both numbers.
    `model` is what the page calls the model that wrote it, where that is known. `claims` is what the passages say to
    its sentences, once it is whole and was checked.
    """

    def __init__(self, events: Iterable[LoggedEvent] = (), *, status: RunStatus = "running") -> None:
        self.blocks: list[Block] = []
        self.passages: list[dict[str, Any]] = []
        self.status: RunStatus = status
        self.error: dict[str, Any] | None = None
        self.usage: Usage | None = None
        self.model = ""
        self.claims: tuple[Checked, ...] = ()
        self.seen = 0
        self._calls: dict[str, CallBlock] = {}
        self._speaker: str | None = None
        self._fresh = True
        for logged in events:
            self.apply(logged)

    @property
    def text(self) -> str:
        """The text blocks alone, parted by blank lines: what is copied, or read aloud."""
        return "\n\n".join(block.text for block in self.blocks if isinstance(block, TextBlock))

    def apply(self, logged: LoggedEvent) -> None:
        """Take one event in; one that was seen before is passed over."""
        if logged.seq <= self.seen:
            return
        self.seen = logged.seq
        event, at = logged.event, logged.at
        if isinstance(event, ReasoningDelta):
            self._add_reasoning(event.text, at)
            return
        self._end_thinking(at)
        match event:
            case MessageStarted():
                self._speaker, self._fresh = event.name, True
            case TextDelta():
                self._add_text(event.text)
            case ItemAdded():
                self.blocks.append(ItemBlock(event.item))
            case CallStarted() | CallDelta() | ToolStarted() | ToolFinished():
                self._move_call(event, at)
            case MessageFinished():
                self._count(event.usage)
            case ClaimsChecked():
                self.claims = event.claims
            case RunFinished():
                self._finish(event)
            case _:
                assert_never(event)

    def _add_text(self, text: str) -> None:
        last = self.blocks[-1] if self.blocks else None
        if self._fresh or not isinstance(last, TextBlock):
            last = TextBlock(self._speaker)
            self.blocks.append(last)
            self._fresh = False
        last.pieces.append(text)

    def _add_reasoning(self, text: str, at: float) -> None:
        last = self.blocks[-1] if self.blocks else None
        if not isinstance(last, ReasoningBlock) or last.seconds is not None:
            last = ReasoningBlock(at)
            self.blocks.append(last)
        last.pieces.append(text)

    def _end_thinking(self, at: float) -> None:
        last = self.blocks[-1] if self.blocks else None
        if isinstance(last, ReasoningBlock) and last.seconds is None:
            last.seconds = at - last.started_at

    def _move_call(self, event: CallStarted | CallDelta | ToolStarted | ToolFinished, at: float) -> None:
        if isinstance(event, CallStarted):
            self._calls[event.call_id] = CallBlock(event.call_id, event.name)
            self.blocks.append(self._calls[event.call_id])
            return
        block = self._calls.get(event.call_id)
        if block is None:
            return
        match event:
            case CallDelta():
                block.pieces.append(event.arguments)
            case ToolStarted():
                block.state, block.started_at = "running", at
            case ToolFinished():
                failed = bool((event.message.extra or {}).get("failed"))
                block.state, block.result = ("failed" if failed else "done"), event.message
                block.seconds = at - (block.started_at if block.started_at is not None else at)
                self._number(event.message)

    def _count(self, usage: Usage | None) -> None:
        if usage is not None:
            self.usage = usage if self.usage is None else self.usage + usage

    def _number(self, result: Message) -> None:
        for passage in (result.extra or {}).get("passages") or ():
            if not self._is_known(passage):
                self.passages.append({**passage, "number": len(self.passages) + 1})

    def _is_known(self, passage: dict[str, Any]) -> bool:
        """Whether it stands under its number already: a continued reply searches again, and counts from 1 again."""
        number = passage.get("number") or 0
        if not 0 < number <= len(self.passages):
            return False
        there = self.passages[number - 1]
        return all(there.get(name) == passage.get(name) for name in ("document_id", "chunk_id", "text"))

    def _finish(self, event: RunFinished) -> None:
        self.status, self.error = event.status, event.error
        for call in self._calls.values():
            if call.state in {"waiting", "running"}:
                call.state = "failed"
