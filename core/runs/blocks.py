"""What a reply is made of: text, thoughts, calls of tools and of agents, pictures and files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from core.runs.log import InputAsked

if TYPE_CHECKING:
    from core.messages.content import ContentItem
    from core.messages.message import Message
    from core.runs.log import ApprovalAsked, InputGiven, ToolProgress
    from core.runs.reply import Reply

CallState: TypeAlias = Literal["waiting", "asked", "running", "done", "failed", "refused", "stopped"]


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

    @property
    def speaker(self) -> str | None:
        """The same as `name`: every block has this."""
        return self.name


@dataclass(slots=True)
class ReasoningBlock(_Growing):
    """What the model thought; `seconds` is None while it still thinks."""

    started_at: float
    seconds: float | None = None
    speaker: str | None = None
    kind: Literal["reasoning"] = "reasoning"

    @property
    def text(self) -> str:
        """All of it so far."""
        return self.joined()


@dataclass(slots=True)
class CallBlock(_Growing):
    """A tool call.

    Args:
        state: `waiting` (arguments still arrive, or its turn has not come), `asked` (it waits for the user),
            `running`, `done`, `failed`, `refused` (by the user, a rule, or silence) or `stopped`;
            a call that was cut off is `failed` without a result.
        result: The tool's message; `extra["failed"]` names the error of a failed one.
        asked: The question to the user, also when it is answered.
        progress: How far the tool has come.
        input: What a server wants to know from the user now; in a call that was cut off, what it wanted last.
        waits: What waits for the user, in order: agents that are called may ask for several things at once.
        edited: The arguments that the user put in place of the model's.
        started_at: Seconds since the run began; `None` before the tool starts.
        seconds: How long the tool worked; `None` until it is done.
        position: Which step of the reply it is, once it is over.
        shown: Whether the reply itself tells of it; else it is only known because the user was asked about it.
        speaker: Who calls, where there are several.
        inner: The reply of the agent that is called, where it is one; as far as it has come.
        within: Where an agent that was called makes it: the address of that call.
        anew: Whether its agent has begun once more: what it did before goes when it does something.
    """

    call_id: str
    name: str
    state: CallState = "waiting"
    result: Message | None = None
    started_at: float | None = None
    seconds: float | None = None
    asked: ApprovalAsked | None = None
    input: InputAsked | None = None
    waits: list[ApprovalAsked | InputAsked] = field(default_factory=list["ApprovalAsked | InputAsked"])
    progress: ToolProgress | None = None
    edited: dict[str, Any] | None = None
    position: int | None = None
    shown: bool = True
    speaker: str | None = None
    inner: Reply | None = None
    within: str = ""
    anew: bool = False
    kind: Literal["call"] = "call"

    @property
    def address(self) -> str:
        """What it is known by in the whole reply: its own id behind those of the calls that it was made in."""
        return f"{self.within}/{self.call_id}" if self.within else self.call_id

    @property
    def arguments(self) -> str:
        """The arguments so far: JSON text, perhaps not whole yet."""
        return self.joined()

    @property
    def forms(self) -> list[InputAsked]:
        """What servers want to know now."""
        return [one for one in self.waits if isinstance(one, InputAsked)]

    def wait_on(self) -> None:
        """Show what still waits for the user, if anything does: a form first, for it goes with a call that works."""
        if self.waits:
            self.state = "asked"
            self.input = next(iter(self.forms), None)

    def end_form(self, event: InputGiven) -> None:
        """What a server wanted to know is answered, or given up."""
        gone = next((one for one in self.forms if one.input_id == event.input_id), None)
        if gone is not None:
            self.waits.remove(gone)
            self.state, self.input = "running" if self.shown else "done", gone if event.why == "over" else None
            self.wait_on()


@dataclass(slots=True)
class ItemBlock:
    """A picture, file or sound of the reply."""

    item: ContentItem
    speaker: str | None = None
    kind: Literal["item"] = "item"


Block: TypeAlias = TextBlock | ReasoningBlock | CallBlock | ItemBlock
