"""The log of a run in memory: everything that happened, numbered, for any number of followers."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from core.messages.events import Event

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence

    from core.languages import Lang
    from core.messages.message import Usage
    from core.rag.claims.omission import LeftOut
    from core.rag.claims.rules import Reason
    from core.rag.claims.weighing import Verdict
    from core.storage.base import RunStatus

Rating: TypeAlias = Literal["", "up", "down"]

# What a reader must see at once; the rest may wait for the next frame.
_URGENT = {"call_started", "tool_started", "tool_finished", "message_finished", "item_added"} | {
    "approval_asked",
    "approval_given",
    "input_asked",
    "input_given",
    "turns_summarised",
    "queued",
    "unwritten",
    "claims_checked",
    "more_said",
    "run_finished",
}


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The run is over, and how; `error` is `{"key", "message", "hint", "details"}`."""

    status: RunStatus
    error: dict[str, Any] | None = None
    kind: Literal["run_finished"] = "run_finished"


class Checked(NamedTuple):
    """What the passages of a reply say to one of its sentences.

    Args:
        block: The index of its text among the blocks of the reply.
        end: Where it ends in that text.
        verdict: `supported`, `weak` or `unsupported`.
        numbers: The passages that bear it out.
        reasons: What the rules found against it.
    """

    block: int
    end: int
    verdict: Verdict
    numbers: tuple[int, ...]
    reasons: tuple[Reason, ...] = ()

    @property
    def reason(self) -> Reason | None:
        """The one that is told: the first for which a passage says something else, where there is one."""
        if not self.reasons:
            return None
        return next((one for one in self.reasons if one.rival), self.reasons[0])


Hurried: TypeAlias = Literal["words", "searches", "none"]
"""What a check had no time for: meaning, the search of all documents for what is doubtful, or any of it (`none`)."""


class Hurry(NamedTuple):
    """A check had no time for all that it does.

    Args:
        over: What was passed over.
    """

    over: Hurried


class Uncounted(NamedTuple):
    """A sentence tells figures of several rows of a table that no program counted or computed.

    Args:
        block: As of `Checked`; -1 where it is not known which sentence it is.
        end: Likewise; 0 for a row of a table.
    """

    block: int = -1
    end: int = 0


Found: TypeAlias = "Checked | LeftOut | Hurry | Uncounted"
"""What a check finds."""


@dataclass(frozen=True, slots=True)
class ClaimsChecked:
    """The sentences of a whole reply were held against its passages.

    Args:
        hurried: What there was no time for; "" where there was time for all.
        uncounted: The sentences that tell figures of several rows that no program counted.
    """

    claims: tuple[Checked, ...]
    hurried: Literal["", Hurried] = ""
    uncounted: tuple[Uncounted, ...] = ()
    kind: Literal["claims_checked"] = "claims_checked"


class Judged(NamedTuple):
    """What a model says of one of the sentences.

    Args:
        block: As of `Checked`.
        end: Likewise.
        borne_out: Whether the passages bear it out.
    """

    block: int
    end: int
    borne_out: bool


@dataclass(frozen=True, slots=True)
class ClaimsJudged:
    """A model was asked about the sentences of a whole reply that the rules find nothing against.

    Args:
        model: What the page calls it.
        said: What it decided, without what was proved since; of other sentences it said neither yes nor no.
        decided: Of how many places it decided.
    """

    model: str
    said: tuple[Judged, ...]
    decided: int = 0
    kind: Literal["claims_judged"] = "claims_judged"


@dataclass(frozen=True, slots=True)
class MoreSaid:
    """Passages of a whole reply limit what it says, in sentences that it does not mention."""

    left_out: tuple[LeftOut, ...]
    kind: Literal["more_said"] = "more_said"


@dataclass(frozen=True, slots=True)
class Rated:
    """What its reader thinks of a whole reply; the last one counts, and "" takes it back."""

    mark: Rating
    reason: str = ""
    kind: Literal["rated"] = "rated"


@dataclass(frozen=True, slots=True)
class Edited:
    """The reader has written the answer that stands in the reply; its model wrote another one."""

    kind: Literal["edited"] = "edited"


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """A call waits for the user.

    Args:
        name: The tool's full name, by which rules and allowances know it.
        arguments: What the model wants to call it with; the user may change them.
        reason: Why it is asked, as `core.tools.approval.Reason` names it.
        wants: What the call would do, in words, by language.
        addresses: What it would reach on the web.
        until: When silence counts as a refusal, in Unix seconds.
        within: Where an agent that is called as a tool wants it: its calls down to the one that is asked about.
    """

    call_id: str
    name: str
    arguments: dict[str, Any]
    reason: str
    wants: dict[str, str]
    addresses: list[str]
    until: float
    within: list[str] = field(default_factory=list[str])
    kind: Literal["approval_asked"] = "approval_asked"

    @property
    def may_be_always(self) -> bool:
        """Whether the tool can be let run unasked from now on.

        What may destroy or carry away is asked each time, and so is what a rule of the user's wants asked.
        """
        return self.reason in {"writes", "runs_code", "always", "expensive"}


@dataclass(frozen=True, slots=True)
class ApprovalGiven:
    """A call may run, or may not.

    Args:
        allowed: Which of the two.
        arguments: Those that the user put in place of the model's, if any.
        why: `user`, or `timeout` …, as `core.tools.approval.Decision` names it.
        always: Whether the tool runs unasked in this conversation from now on.
    """

    call_id: str
    allowed: bool
    arguments: dict[str, Any] | None
    why: str
    always: bool = False
    kind: Literal["approval_given"] = "approval_given"


CallOutcome: TypeAlias = Literal["finished", "failed", "stopped", "interrupted"]
InputWhy: TypeAlias = Literal["answered", "declined", "timeout", "over"]


@dataclass(frozen=True, slots=True)
class InputAsked:
    """A server wants to know something from the user while one of its tools runs.

    Args:
        input_id: Names the question: a call may ask more than once.
        question: What the server says; not Parlour's words.
        schema: What it wants to know, as `core.mcp.forms` reads it.
        until: When silence counts as a no, in Unix seconds.
    """

    call_id: str
    input_id: str
    server: str
    question: str
    schema: dict[str, Any]
    until: float
    kind: Literal["input_asked"] = "input_asked"


@dataclass(frozen=True, slots=True)
class InputGiven:
    """The question of a server waits no more; what was answered is the server's alone."""

    call_id: str
    input_id: str
    why: InputWhy
    kind: Literal["input_given"] = "input_given"


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """How far a tool has come: in words, and as `done` of `total` where it knows."""

    call_id: str
    text: str
    done: float | None = None
    total: float | None = None
    kind: Literal["tool_progress"] = "tool_progress"


@dataclass(frozen=True, slots=True)
class StepRecorded:
    """A step of thought is over: a call has its result, or a message without a call has ended.

    Args:
        position: From 1, without a gap in one reply.
        call_id: The call; `None` in a step without one.
    """

    position: int
    call_id: str | None = None
    kind: Literal["step_recorded"] = "step_recorded"


@dataclass(frozen=True, slots=True)
class TurnsSummarised:
    """The model is given a summary in place of the oldest turns of the conversation.

    Args:
        turns: How many questions and replies it is of.
    """

    text: str
    turns: int
    kind: Literal["turns_summarised"] = "turns_summarised"


@dataclass(frozen=True, slots=True)
class ModelAsked:
    """A model call begins, for the reply or beside it.

    Args:
        purpose: What for.
        model: What the page calls the model.
        tokens: How many it has to read, by our count or its own; 0 while that is not counted: only a longer wait is.
        done: How many of them it has read; 0 where it does not tell.
        speed: How many it reads a second; 0 where that is not known.
    """

    call_id: str
    purpose: str
    model: str
    tokens: int = 0
    done: int = 0
    speed: int = 0
    kind: Literal["model_asked"] = "model_asked"


@dataclass(frozen=True, slots=True)
class ModelCalled:
    """A model call is over: its line in the account of the reply.

    Args:
        purpose: What for: `answer`, `step` (it ended in calls of tools), `agent`, `search`, `summary`, `title` …
        model: What the page calls the model.
        usage: The tokens that it took and what they cost, as the service says, else by our count; `None` where the
            model failed before it said anything.
        seconds: How long it took.
        call_id: Our id of the call.
        first: Seconds to its first word; `None` where none came.
        retries: Attempts after the first.
        requests: How many requests went to a service for it.
        cached: Whether the reply came from the cache.
        outcome: How it ended; `interrupted` where the process died meanwhile.
        here: Whether the model runs on this machine, where nothing is paid.
        agent: The agent that made it, where that was called as a tool.
        said: What went wrong.
        within: The calls that this agent answers, from the outermost.
    """

    purpose: str
    model: str
    usage: Usage | None
    seconds: float
    call_id: str = ""
    first: float | None = None
    retries: int = 0
    requests: int = 0
    cached: bool = False
    outcome: CallOutcome = "finished"
    here: bool = False
    agent: str = ""
    said: str = ""
    within: tuple[str, ...] = ()
    kind: Literal["model_called"] = "model_called"


@dataclass(frozen=True, slots=True)
class CallStages:
    """What a model call was given, sent, received and made of it, packed (`call_stages.py`). Pruned with the events.

    Args:
        call_id: The call's.
    """

    call_id: str
    packed: str
    kind: Literal["call_stages"] = "call_stages"


@dataclass(frozen=True, slots=True)
class Queued:
    """The run waits until other replies of its owner are finished; `waiting` is false once its turn has come."""

    waiting: bool = True
    kind: Literal["queued"] = "queued"


@dataclass(frozen=True, slots=True)
class AskedFor:
    """How a reply was asked for: what whoever writes it must know, be it another process.

    Args:
        lang: The language of the page.
        model: The name of the model that writes it, as JSON.
        beside: That of a second one that answers the question as well.
        goes_on: Whether its calls without a result are made before the model is asked.
    """

    lang: Lang
    model: dict[str, Any]
    beside: dict[str, Any] | None = None
    goes_on: bool = False
    kind: Literal["asked_for"] = "asked_for"


@dataclass(frozen=True, slots=True)
class TracedWithin:
    """Which trace the reply belongs to, for whoever writes it; an event of its own, as earlier versions read the rows.

    Args:
        context: The request that asked for it, as `core.observing.context_now` tells it.
    """

    context: str
    kind: Literal["traced_within"] = "traced_within"


@dataclass(frozen=True, slots=True)
class Unwritten:
    """Nobody writes the reply at present, as a process sees it that shows it: never in a table.

    Args:
        why: `nobody` where no process is there that could, `busy` where all have enough to do, "" where it is written.
    """

    why: Literal["", "nobody", "busy"]
    kind: Literal["unwritten"] = "unwritten"


@dataclass(frozen=True, slots=True)
class Outdated:
    """What stands after the last result of a call was written by a process that is gone: never in a table.

    It is shown until the one that goes on says something, which takes its place.
    """

    kind: Literal["outdated"] = "outdated"


@dataclass(frozen=True, slots=True)
class TakenOver:
    """The process that wrote the run died at work, and another one goes on with it."""

    kind: Literal["taken_over"] = "taken_over"


@dataclass(frozen=True, slots=True)
class NestedEvent:
    """What an agent says and does that another agent has called as a tool.

    Args:
        calls: The call that it answers; before it, the calls that this one was made in, from the outermost.
        event: What happened in its reply.
    """

    calls: tuple[str, ...]
    event: Event
    kind: Literal["within"] = "within"


RunOwn: TypeAlias = (
    ApprovalAsked
    | ApprovalGiven
    | InputAsked
    | InputGiven
    | ToolProgress
    | StepRecorded
    | TurnsSummarised
    | ModelAsked
    | ModelCalled
    | CallStages
    | Queued
    | AskedFor
    | TracedWithin
    | Unwritten
    | Outdated
    | TakenOver
    | NestedEvent
    | ClaimsChecked
    | ClaimsJudged
    | MoreSaid
    | Rated
    | Edited
    | RunFinished
)
RunEvent: TypeAlias = Event | RunOwn


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event with its number (from 1, without gaps while the run lives) and its time.

    Args:
        seq: The number. In the table, where neighbouring pieces of text are one row, that of the last piece.
        at: Seconds since the run began.
    """

    seq: int
    at: float
    event: RunEvent


class RunLog:
    """Events of one run, appended by it alone and followed by any number of readers on the same loop.

    Args:
        earlier: What a continued reply begins with; the clock goes on from its last event.
    """

    def __init__(self, earlier: Sequence[LoggedEvent] = ()) -> None:
        self._events = [LoggedEvent(seq, old.at, old.event) for seq, old in enumerate(earlier, start=1)]
        self._began = time.monotonic() - (self._events[-1].at if self._events else 0.0)
        self._grown = asyncio.Event()
        self._watchers: list[Callable[[bool], None]] = []
        self.closed = False

    def __len__(self) -> int:
        return len(self._events)

    def append(self, event: RunEvent, at: float | None = None) -> None:
        """Add an event and wake who follows; after the last one (`RunFinished`) nothing is taken in any more.

        Args:
            at: Its time, where it happened in another process; now, if left out.
        """
        if self.closed:
            return
        at = time.monotonic() - self._began if at is None else at
        self._events.append(LoggedEvent(len(self._events) + 1, at, event))
        self.closed = isinstance(event, RunFinished)
        self._grown.set()
        urgent = is_urgent(event)
        for callback in tuple(self._watchers):
            callback(urgent)

    def leave_off(self) -> None:
        """End without an end: what follows is told elsewhere. Who watches is woken, and who follows comes to an end."""
        self.closed = True
        self._grown.set()
        for callback in tuple(self._watchers):
            callback(True)  # noqa: FBT003 - that it must be seen at once

    def since(self, after: int = 0) -> list[LoggedEvent]:
        """What has happened after number `after`."""
        return self._events[after:]

    async def follow(self, after: int = 0) -> AsyncGenerator[LoggedEvent, None]:
        """Everything after number `after`, then what happens, until the run is over."""
        seen = after
        while True:
            while seen < len(self._events):
                seen += 1
                yield self._events[seen - 1]
            if self.closed:
                return
            # Nothing can be appended between this check and the wait: both are on one loop.
            if self._grown.is_set():
                self._grown = asyncio.Event()
            await self._grown.wait()

    def watch(self, callback: Callable[[bool], None]) -> Callable[[], None]:
        """Call back at each event, with whether it must be shown at once; returns what ends this."""
        self._watchers.append(callback)

        def unwatch() -> None:
            if callback in self._watchers:
                self._watchers.remove(callback)

        return unwatch


def message_events(logged: Iterable[LoggedEvent]) -> Iterator[Event]:
    """The events of models and tools, without what the run itself noted beside them."""
    for one in logged:
        if not isinstance(one.event, RunOwn):
            yield one.event


def is_urgent(event: RunEvent) -> bool:
    """Whether the event changes more than the text: a call, a question to the user, a tool, an item, the end."""
    return (event.event if isinstance(event, NestedEvent) else event).kind in _URGENT
