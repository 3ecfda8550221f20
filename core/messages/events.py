"""What happens while a reply comes into being: ten events, each carrying only what is new.

Models, agents and runs all speak them. A failure is an exception, never an event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from core.messages.content import ContentItem
    from core.messages.message import Message, Usage

FinishReason: TypeAlias = Literal["stop", "length", "calls", "content_filter"]


@dataclass(frozen=True, slots=True)
class MessageStarted:
    """A model begins a reply; `name` is the speaker where there are several."""

    name: str | None = None
    kind: Literal["message_started"] = "message_started"


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of the reply."""

    text: str
    kind: Literal["text_delta"] = "text_delta"


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More of what the model thinks before it replies.

    With `proof` the thought ends here: it is what its service wants back with it, as it is, and nobody else reads it.
    """

    text: str
    proof: str = ""
    kind: Literal["reasoning_delta"] = "reasoning_delta"


@dataclass(frozen=True, slots=True)
class ItemAdded:
    """A picture, file or sound became part of the reply."""

    item: ContentItem
    kind: Literal["item_added"] = "item_added"


@dataclass(frozen=True, slots=True)
class SourceCited:
    """The model's service names what the text before this event comes from.

    `passages` have the form of those of a result (`extra["passages"]`). An agent numbers them, as `number`, and puts
    the marks into the text; what it numbered before it does not name again. Where they belong further up, `back` is how
    many characters of the text come after their place, and `marks` what an agent puts there: `core.messages.marks`.
    """

    passages: tuple[dict[str, Any], ...]
    back: int = 0
    marks: str = ""
    kind: Literal["source_cited"] = "source_cited"


@dataclass(frozen=True, slots=True)
class CallStarted:
    """The model begins to call a tool; `call_id` is unique within the reply, `proof` is as of a thought."""

    call_id: str
    name: str
    proof: str = ""
    kind: Literal["call_started"] = "call_started"


@dataclass(frozen=True, slots=True)
class CallDelta:
    """More of a call's arguments, as text that becomes JSON when all of it is there."""

    call_id: str
    arguments: str
    kind: Literal["call_delta"] = "call_delta"


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool begins to work on a call."""

    call_id: str
    kind: Literal["tool_started"] = "tool_started"


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A tool is done; `message` is its result, with `extra["failed"]` where it failed."""

    call_id: str
    message: Message
    kind: Literal["tool_finished"] = "tool_finished"


@dataclass(frozen=True, slots=True)
class MessageFinished:
    """A model ended its reply, or its turn of one.

    With `unthought` what was told as its thought turned out to be its answer: the text before this event is all of it.
    `model` names the one of a chain that answered; `proof` is what its service wants back with the text.
    """

    reason: FinishReason
    usage: Usage | None = None
    unthought: bool = False
    model: str = ""
    proof: str = ""
    kind: Literal["message_finished"] = "message_finished"


Event: TypeAlias = (
    MessageStarted
    | TextDelta
    | ReasoningDelta
    | ItemAdded
    | SourceCited
    | CallStarted
    | CallDelta
    | ToolStarted
    | ToolFinished
    | MessageFinished
)
