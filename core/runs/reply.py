"""What a reader sees of a reply: a pure fold of its events into blocks, the same live and from the table."""

from __future__ import annotations

import json
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, assert_never

from core.messages.events import (
    CallDelta,
    CallStarted,
    ItemAdded,
    MessageFinished,
    MessageStarted,
    ReasoningDelta,
    SourceCited,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from core.messages.marks import set_marks
from core.messages.transcript import spent
from core.runs.judgement import still_judged, with_judgement
from core.runs.log import (
    ApprovalAsked,
    ApprovalGiven,
    AskedFor,
    CallStages,
    ClaimsChecked,
    ClaimsJudged,
    Edited,
    InputAsked,
    InputGiven,
    LoggedEvent,
    ModelAsked,
    ModelCalled,
    MoreSaid,
    NestedEvent,
    Outdated,
    Queued,
    Rated,
    RunFinished,
    StepRecorded,
    TakenOver,
    ToolProgress,
    TracedWithin,
    TurnsSummarised,
    Uncounted,
    Unwritten,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from core.messages.content import ContentItem
    from core.messages.message import Message, Usage
    from core.rag.claims.omission import LeftOut
    from core.runs.log import Checked, Hurried, Rating
    from core.storage.base import RunStatus

_SPEED_EVERY = 1.0
_WRITING = frozenset({"answer", "step"})  # what a model call is for whose text stands in the reply itself
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
    is_whole: bool = field(default=False, kw_only=True, repr=False)  # its last thought is over: another is a paragraph

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


@dataclass(slots=True)
class _Pace:
    """About how fast a model writes: four letters of an alphabet make a token, a character of Chinese most of one."""

    began: float | None = None
    told: float = 0.0
    tokens: float = 0.0
    speed: int = 0

    def after(self, text: str, at: float) -> int:
        """Tokens a second, from a second on; it changes at most once a second, so that it can be read."""
        if self.began is None:
            self.began = self.told = at
        self.tokens += len(text) / 4 if text.isascii() else len(text) * 0.7
        if at - self.told >= _SPEED_EVERY:
            self.told, self.speed = at, round(self.tokens / (at - self.began))
        return self.speed


Block: TypeAlias = TextBlock | ReasoningBlock | CallBlock | ItemBlock


__all__ = ["Block", "CallBlock", "CallState", "ItemBlock", "ReasoningBlock", "Reply", "TextBlock"]

_OfAMadeCall: TypeAlias = CallDelta | ApprovalAsked | ApprovalGiven | ToolStarted | ToolProgress | ToolFinished
_OfACall: TypeAlias = CallStarted | _OfAMadeCall
_Note: TypeAlias = (
    ClaimsChecked
    | ClaimsJudged
    | MoreSaid
    | Rated
    | Edited
    | StepRecorded
    | TurnsSummarised
    | Queued
    | Unwritten
    | Outdated
    | InputAsked
    | InputGiven
    | SourceCited
)
_OfTheAccount: TypeAlias = ModelAsked | ModelCalled | CallStages | AskedFor | TracedWithin | TakenOver


class Reply:
    """A reply as blocks in order of appearance.

    `apply` takes constant time. `passages` holds every retrieved passage in order of appearance, each with its
    `"number"` from 1: what `[n]` in the text points to. The same passage found twice keeps both numbers.
    `model` is what the page calls the model that wrote it, where that is known, and `writers` the models of those who
    spoke, by their names ("" for none), as far as its log still tells. `claims` is what the passages say to
    its sentences, once it is whole and was checked, by rules and by the model that `judged` names; `hurried` what the
    check had no time for; `uncounted` the sentences that tell figures of several rows which no program counted;
    `left_out` what they say beside these and it does not mention. `rating` is what its reader
    thinks of it, `rated_for` why. `edited` says that its answer was written by its reader. `cut_short` says that its
    model reached its longest reply: it would have gone on. `is_said` says that the text so far is whole, though more
    may follow. `summary` is what its model was given in place of the oldest turns, where that was made for it.
    `model_calls` are the model calls for it and beside it that are over, `under_way` those that are not, each with the
    seconds at which it began. `speed` is about how many tokens a second are being written,
    told anew once a second. `speakers` are the names of those who have spoken in it, in order. `queued` says that it
    has not begun: other replies of its owner are being written. `unwritten` says that no process writes it at present:
    `nobody` is there, or all are `busy`. `outdated` says that its last text is of a process that is gone: another one
    writes it anew, and has said nothing yet.
    """

    def __init__(self, events: Iterable[LoggedEvent] = (), *, status: RunStatus = "running", within: str = "") -> None:
        self.blocks: list[Block] = []
        self.passages: list[dict[str, Any]] = []
        self.status: RunStatus = status
        self.error: dict[str, Any] | None = None
        self.usage: Usage | None = None
        self.model = ""
        self.writers: dict[str, str] = {}
        self.claims: tuple[Checked, ...] = ()
        self.hurried: Literal["", Hurried] = ""
        self.uncounted: tuple[Uncounted, ...] = ()
        self.judged: ClaimsJudged | None = None
        self.left_out: tuple[LeftOut, ...] = ()
        self.rating: Rating = ""
        self.rated_for = ""
        self.edited = self.cut_short = self.is_said = False
        self.summary = ""
        self.model_calls: list[ModelCalled] = []
        self.under_way: dict[str, tuple[float, ModelAsked]] = {}
        self.queued = False
        self.unwritten: Literal["", "nobody", "busy"] = ""
        self.outdated = False
        self.speed = 0
        self.speakers: dict[str, None] = {}
        self.seen = 0
        self._by_rules: tuple[Checked, ...] = ()
        self._within = within
        self._calls: dict[str, CallBlock] = {}
        self._speaker: str | None = None
        self._fresh = True
        self._pace = _Pace()
        for logged in events:
            self.apply(logged)

    @property
    def text(self) -> str:
        """The text blocks alone, parted by blank lines: what is copied, or read aloud."""
        return "\n\n".join(block.text for block in self.blocks if isinstance(block, TextBlock))

    @property
    def asking(self) -> list[CallBlock]:
        """The calls that wait for the user, in order."""
        return [call for call in self._calls.values() if call.state == "asked"]

    def snapshot(self) -> Reply:
        """The reply as it is now: what other threads may read while this one goes on."""
        taken = copy(self)
        taken.blocks = [_as_it_is(block) for block in self.blocks]
        taken._calls = {block.call_id: block for block in taken.blocks if isinstance(block, CallBlock)}  # noqa: SLF001 - its own kind
        taken.passages, taken.speakers, taken.writers = list(self.passages), dict(self.speakers), dict(self.writers)
        taken.model_calls, taken.under_way = list(self.model_calls), dict(self.under_way)
        return taken

    def apply(self, logged: LoggedEvent) -> None:
        """Take one event in; one that was seen before is passed over."""
        if logged.seq <= self.seen:
            return
        self.seen = logged.seq
        event, at = logged.event, logged.at
        if isinstance(event, ReasoningDelta | _OfTheAccount):
            self._go_on_thinking(event, at)
            return
        self._end_thinking(at)
        if isinstance(event, _Note):
            self._note(event)
            return
        match event:
            case MessageStarted():
                self._speaker, self._fresh, self._pace, self.speed = event.name, True, _Pace(), 0
                self.is_said = False
            case TextDelta():
                self._add_text(event.text)
                self.speed = self._pace.after(event.text, at)
            case ItemAdded():
                self.blocks.append(ItemBlock(event.item, self._spoke()))
            case MessageFinished():
                self._count(event.usage)
                self.cut_short, self.is_said = event.reason == "length", event.reason != "calls"
            case NestedEvent():
                self._inside(event, logged)
            case RunFinished():
                self._finish(event)
            case _:
                self._move_call(event, at)

    def _add_text(self, text: str) -> None:
        last = self.blocks[-1] if self.blocks else None
        if self._fresh or not isinstance(last, TextBlock):
            last = TextBlock(self._spoke())
            self.blocks.append(last)
            self._fresh = False
            asked = [one for _, one in self.under_way.values() if one.purpose in _WRITING]
            if asked:
                self.writers[self._speaker or ""] = asked[-1].model
        last.pieces.append(text)

    def _add_reasoning(self, event: ReasoningDelta, at: float) -> None:
        last = self.blocks[-1] if self.blocks else None
        goes_on = isinstance(last, ReasoningBlock) and last.seconds is None
        if event.text:
            if not isinstance(last, ReasoningBlock) or not goes_on:
                last = ReasoningBlock(at, speaker=self._spoke())
                self.blocks.append(last)
            last.pieces.append(f"\n\n{event.text}" if last.is_whole else event.text)
            last.is_whole = bool(event.proof)
        elif goes_on and event.proof and isinstance(last, ReasoningBlock):
            last.is_whole = True  # the proof itself nobody reads

    def _end_thinking(self, at: float) -> None:
        last = self.blocks[-1] if self.blocks else None
        if isinstance(last, ReasoningBlock) and last.seconds is None:
            last.seconds = at - last.started_at

    def _move_call(self, event: _OfACall, at: float) -> None:
        block = self._calls.get(event.call_id)
        if isinstance(event, CallStarted):
            self._begin_call(CallBlock(event.call_id, event.name, speaker=self._spoke(), within=self._within))
            return
        if block is None and isinstance(event, ApprovalAsked):
            pieces = [json.dumps(event.arguments, ensure_ascii=False)]
            block = self._begin_call(CallBlock(event.call_id, event.name, shown=False, pieces=pieces))
        if block is not None:
            self._go_on(block, event, at)

    def _begin_call(self, block: CallBlock) -> CallBlock:
        self._calls[block.call_id] = block
        self.blocks.append(block)
        return block

    def _go_on(self, block: CallBlock, event: _OfAMadeCall, at: float) -> None:
        match event:
            case CallDelta():
                block.pieces.append(event.arguments)
            case ApprovalAsked():
                for one in [block, *_down_to(block, event.within)]:
                    one.state, one.asked = "asked", event
                block.waits = [*block.forms, event]
                block.wait_on()
            case ApprovalGiven():
                _answered(block, event)
                block.waits = [*block.forms]
                block.wait_on()
            case ToolStarted():
                block.anew = block.started_at is not None
                block.state, block.started_at, block.waits = "running", at, []
            case ToolProgress():
                block.progress = event
            case ToolFinished():
                self._end_call(block, event.message, at)
            case _:
                assert_never(event)

    def _end_call(self, block: CallBlock, result: Message, at: float) -> None:
        block.state, block.result, block.input, block.waits = _ended(result), result, None, []
        block.seconds = at - (block.started_at if block.started_at is not None else at)
        block.edited = block.edited or (result.extra or {}).get("arguments")
        self._number((result.extra or {}).get("passages") or ())
        self._count(spent(result))
        if block.inner is not None:
            status = "stopped" if block.state == "stopped" else "complete" if block.state == "done" else "error"
            block.inner._finish(RunFinished(status))  # noqa: SLF001 - a reply of its own kind

    def _inside(self, event: NestedEvent, logged: LoggedEvent) -> None:
        """Take in what an agent does that is called as a tool."""
        call, further = self._calls.get(event.calls[0]), event.calls[1:]
        if call is None:
            return
        if call.inner is None or (call.anew and not further and call.inner.begins_anew(event.event)):
            call.inner = Reply(within=call.address)
        call.anew = False
        inner = replace(event, calls=further) if further else event.event
        call.inner.apply(LoggedEvent(logged.seq, logged.at, inner))
        # Its words may point there before the call is over.
        if isinstance(event.event, ToolFinished):
            self._number((event.event.message.extra or {}).get("passages") or (), early=True)
        elif isinstance(event.event, SourceCited):
            self._number(event.event.passages, early=True)

    def begins_anew(self, event: object) -> bool:
        """Whether an agent that is called once more begins from its beginning with an event: else it goes on."""
        open_states = {"waiting", "asked", "running"}
        is_open = any(one.state in open_states for one in self._calls.values())
        return isinstance(event, MessageStarted) and (is_open or self.status != "running")

    def call(self, address: str) -> CallBlock | None:
        """The call of this address, also one that an agent has made which is called as a tool; `None` for none."""
        if address in self._calls:
            return self._calls[address]
        insides = ((one, call.inner) for one, call in self._calls.items() if call.inner is not None)
        found = (inner.call(address[len(one) + 1 :]) for one, inner in insides if address.startswith(f"{one}/"))
        return next((call for call in found if call is not None), None)

    def _spoke(self) -> str | None:
        if self._speaker:
            self.speakers[self._speaker] = None
        return self._speaker

    def _ask(self, event: InputAsked | InputGiven) -> None:
        block = self._calls.get(event.call_id)
        if isinstance(event, InputAsked):
            block = block or self._begin_call(CallBlock(event.call_id, event.server, shown=False))
            block.waits.append(event)
            block.wait_on()
        elif block is not None:
            block.end_form(event)

    def _claim(self, event: ClaimsChecked | ClaimsJudged) -> None:
        if isinstance(event, ClaimsChecked):
            self.hurried, self.uncounted = event.hurried, event.uncounted
            self.judged = still_judged(self.judged, self._by_rules, event.claims)
            self._by_rules = event.claims
            self.claims = with_judgement(event.claims, self.judged)
        else:
            self.judged = event
            self.claims = with_judgement(self._by_rules, event)

    def _note(self, event: _Note) -> None:
        if isinstance(event, InputAsked | InputGiven):
            self._ask(event)
        elif isinstance(event, SourceCited):
            self._number(event.passages)
            set_marks((one.pieces for one in reversed(self.blocks) if isinstance(one, TextBlock)), event)
        elif isinstance(event, ClaimsChecked | ClaimsJudged):
            self._claim(event)
        elif isinstance(event, MoreSaid):
            self.left_out = event.left_out
        elif isinstance(event, Rated):
            self.rating, self.rated_for = event.mark, event.reason
        elif isinstance(event, Edited):
            self.edited = True
        elif isinstance(event, TurnsSummarised):
            self.summary = event.text
        elif isinstance(event, Queued | Unwritten | Outdated):
            self._wait(event)
        elif event.call_id in self._calls:
            self._calls[event.call_id].position = event.position

    def _wait(self, event: Queued | Unwritten | Outdated) -> None:
        if isinstance(event, Queued):
            self.queued = event.waiting
        elif isinstance(event, Outdated):
            self.outdated = True
        else:
            self.unwritten = event.why

    def _go_on_thinking(self, event: ReasoningDelta | _OfTheAccount, at: float) -> None:
        """Take in what does not end a thought."""
        if isinstance(event, ReasoningDelta):
            self._add_reasoning(event, at)
            self.speed = self._pace.after(event.text, at)
        elif isinstance(event, ModelAsked):
            began, _ = self.under_way.get(event.call_id, (at, event))
            self.under_way[event.call_id] = began, event
        elif isinstance(event, ModelCalled):
            self.under_way.pop(event.call_id, None)
            self.model_calls.append(event)

    def _count(self, usage: Usage | None) -> None:
        if usage is not None:
            self.usage = usage if self.usage is None else self.usage + usage

    def _number(self, passages: Iterable[dict[str, Any]], *, early: bool = False) -> None:
        for passage in passages:
            if early and passage.get("number") != len(self.passages) + 1:
                continue  # it has its number when the call is over that it was found in
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
        self.queued, self.unwritten, self.outdated = False, "", False
        for call in self._calls.values():
            if call.state in {"waiting", "asked", "running"}:
                call.state = "stopped" if event.status in {"stopped", "paused"} else "failed"
            if call.inner is not None and call.inner.status == "running":
                call.inner._finish(event)  # noqa: SLF001 - a reply of its own kind


def _as_it_is(block: Block) -> Block:
    if isinstance(block, ItemBlock):
        return block
    taken = replace(block, pieces=[block.text if not isinstance(block, CallBlock) else block.arguments])
    if isinstance(taken, CallBlock):
        taken.waits = list(taken.waits)
        taken.inner = taken.inner.snapshot() if taken.inner is not None else None
    return taken


def _down_to(call: CallBlock, within: Sequence[str]) -> list[CallBlock]:
    """The calls inside of a call on the way to one of them, as far as they are known."""
    found: list[CallBlock] = []
    for call_id in within:
        inner = call.inner.call(call_id) if call.inner is not None else None
        if inner is None:
            break
        found.append(inner)
        call = inner
    return found


def _answered(call: CallBlock, event: ApprovalGiven) -> None:
    """What the user decided, where it was asked: in the call itself, or in one that its agent makes."""
    way = [call, *_down_to(call, call.asked.within if call.asked is not None else ())]
    for one in way[:-1]:
        one.state, one.asked = "running", None
    last, allowed = way[-1], "waiting" if way[-1].shown else "done"
    last.state, last.edited = (allowed if event.allowed else "refused"), event.arguments


def _ended(result: Message) -> CallState:
    failed = str((result.extra or {}).get("failed") or "")
    if failed == "stopped":
        return "stopped"
    return "done" if not failed else "refused" if failed.startswith("refused") else "failed"
