"""`Reply`: what a question to an agent gives, made of the events of the reply and of nothing else."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeAlias, TypeVar, cast

from core.bridge.snapshots import dumped
from core.errors import WrongParametersError, shown
from core.messages.events import Event
from core.messages.message import ASSISTANT, FUNCTION, USER, Message, Usage
from core.messages.transcript import Transcript

if TYPE_CHECKING:
    from core.rag.claims.weighing import Claim
    from core.rag.document import Passage, Rectangle
    from core.tools.approval import ApprovalRequest

_FOLDED: Final = 'Write fold(reply.log), or await afold(agent.events("…")).'
Output_co = TypeVar("Output_co", covariant=True)
StopReason: TypeAlias = Literal[
    "stop", "length", "content_filter", "calls", "guard", "approval", "stopped", "interrupted"
]


@dataclass(frozen=True, slots=True)
class Logged:
    """An event of a reply.

    Args:
        seq: Its number, from 1.
        at: Seconds since the question.
        event: What happened; replies of a session in a file also have the events of runs (`core.runs.log`).
    """

    seq: int
    at: float
    event: Any


@dataclass(frozen=True, slots=True)
class Citation:
    """A mark such as `[2]` in an answer, and where it leads.

    Args:
        mark: The number.
        passage: What was found.
        sentence: That which the mark stands behind.
    """

    mark: int
    passage: Passage
    sentence: str = ""

    @property
    def document(self) -> str:
        """The name of the passage's document."""
        return self.passage.document

    @property
    def page(self) -> int | None:
        """The page it is on, from 1; `None` where there are no pages."""
        return self.passage.page

    @property
    def rectangles(self) -> tuple[Rectangle, ...]:
        """Where on the page, `(x0, y0, x1, y1)` in points from the top left."""
        return self.passage.rectangles


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool.

    Args:
        id: Ties it to its result.
        name: The tool's.
        arguments: What it was called with, as a person or a hook may have changed it.
        result: What the model was told; `None` while it waits or where it was cut off.
        data: What the tool gave the program (`ToolResult(data=...)`).
        failed: Why it failed, as a key such as `tool_failed`; "" where it did not.
    """

    id: str
    name: str
    arguments: Mapping[str, Any]
    result: str | None = None
    data: Any = None
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Reply(Generic[Output_co]):
    """A reply to one question. Nothing in it changes any more.

    Args:
        output: The answer as data, of the type that was asked for; else its text.
        messages: All that was said in it: thoughts, calls, results and text.
        asked: The conversation that it answers, the question last.
        usage: Tokens and cost of all its model calls; zeros where nothing is known.
        stop_reason: Why it ended: `stop` (the model was done), `length` (it reached its longest answer),
            `content_filter`, `calls` (the model's last word was a call), `guard` (a guard of the program's ended it),
            `approval` (calls wait for a person: `waiting`), `stopped` or `interrupted` (a run of a session that was).
        log: Every event, with its time.
        seconds: How long it took.
        waiting: The calls that wait for a decision.
        given: What tools gave the program, by call.
    """

    output: Output_co
    messages: Sequence[Message]
    asked: Sequence[Message] = ()
    usage: Usage = field(default_factory=Usage)
    stop_reason: StopReason = "stop"
    log: Sequence[Logged] = field(default=(), repr=False)
    seconds: float = 0.0
    waiting: Sequence[ApprovalRequest] = ()
    given: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    def __str__(self) -> str:
        """The text."""
        return self.text

    @property
    def text(self) -> str:
        """What the agent says at the end, without its calls and thoughts."""
        return last_text(self.messages)

    @property
    def reasoning(self) -> str:
        """What it thought."""
        thoughts = (one.reasoning_content for one in self.messages)
        return "\n\n".join(one for one in thoughts if isinstance(one, str) and one)

    @property
    def cost(self) -> float | None:
        """What it cost, in the currency of the price list; `None` where no price is known."""
        return self.usage.cost

    @property
    def models(self) -> list[str]:
        """Which models of a chain (`llm=[a, b]`) answered, one for each turn; empty where there is no chain."""
        ended = (
            getattr(one.event, "model", "") for one in self.log if getattr(one.event, "kind", "") == "message_finished"
        )
        return [str(model) for model in ended if model]

    @property
    def history(self) -> list[Message]:
        """The conversation with this reply: what `ask(..., history=reply.history)` goes on from."""
        return [*self.asked, *self.messages]

    @property
    def question(self) -> str:
        """The text of the question."""
        return next((one.get_text_content() for one in reversed(self.asked) if one.role == USER), "")

    @property
    def passages(self) -> list[Passage]:
        """What was found in documents and on the web; the mark `[n]` means the n-th of them."""
        return passages_in(self.messages)

    @property
    def unread(self) -> list[str]:
        """Documents that it could not answer from because they hold no text, such as a scan: a sentence for each."""
        said = (line for one in self.messages for line in (one.extra or {}).get("unread") or ())
        return list(dict.fromkeys(map(str, said)))

    @property
    def citations(self) -> list[Citation]:
        """The marks of the answer in order, each once, with the passages they lead to.

        What the model's service cites by itself (documents it was given, pages that it searched) is among them.
        """
        from core.rag.citations import cited_numbers, sentence_of

        text, passages = self.text, self.passages
        rows = [row for one in self.messages for row in (one.extra or {}).get("passages") or ()]
        told = {int(row.get("number") or 0): str(row.get("said") or "") for row in rows}
        marks = [one for one in dict.fromkeys(cited_numbers(text)) if 0 < one <= len(passages)]
        return [Citation(one, passages[one - 1], told.get(one) or sentence_of(text, one)) for one in marks]

    @property
    def claims(self) -> list[Claim]:
        """The sentences of the answer that claim something, and what the passages say to each, by rules alone.

        `check_claims(reply.text, reply.passages, reply.question, judge=...)` asks a model as well.
        """
        from core.rag.claims.check import check_claims

        passages = self.passages
        known = any(one.text for one in passages)  # a service names pages by their titles alone
        return check_claims(self.text, passages, self.question) if known else []

    @property
    def calls(self) -> list[ToolCall]:
        """The calls of tools, in order."""
        results = {str((one.extra or {}).get("function_id")): one for one in self.messages if one.role == FUNCTION}
        return [_call(one, results, self.given) for one in self.messages if one.function_call is not None]

    def as_dicts(self) -> list[dict[str, Any]]:
        """The messages as dicts, as `run_nonstream` gives them."""
        return dumped(self.messages)


def _call(message: Message, results: Mapping[str, Message], given: Mapping[str, Any]) -> ToolCall:
    call_id = str((message.extra or {}).get("function_id") or "")
    result, call = results.get(call_id), message.function_call
    extra = (result.extra or {}) if result is not None else {}
    read: object = json.loads(call.arguments) if call is not None else {}
    arguments = cast("dict[str, Any]", read) if isinstance(read, dict) else {"text": read}
    data = given[call_id] if call_id in given else extra.get("data")
    text = None if result is None else result.get_text_content()
    return ToolCall(call_id, call.name if call is not None else "", arguments, text, data, str(extra.get("failed", "")))


def last_text(messages: Sequence[Message]) -> str:
    """The text of the last message of the agent's that has some and is no call."""
    said = (one.get_text_content() for one in reversed(messages) if one.role == ASSISTANT and not one.function_call)
    return next((text for text in said if text.strip()), "")


def passages_in(messages: Sequence[Message]) -> list[Passage]:
    """The passages of a reply's results, in the order of their numbers."""
    from core.agents.conversation import passages_found

    return passages_found(messages) if any((one.extra or {}).get("passages") for one in messages) else []


class ReplyFold:
    """Events to a `Reply`, one after the other; `apply` takes constant time.

    Args:
        asked: The conversation that is answered.
    """

    def __init__(self, asked: Sequence[Message] = ()) -> None:
        self.asked = tuple(asked)
        self.transcript = Transcript()
        self.log: list[Logged] = []
        self._began = monotonic()

    def apply(self, event: Event | Logged) -> None:
        """Take one event in. Raises WrongParametersError where it is none."""
        logged = event if isinstance(event, Logged) else Logged(len(self.log) + 1, monotonic() - self._began, event)
        self.log.append(logged)
        if not isinstance(logged.event, Event):  # of the run that made it, not of the reply
            if not hasattr(logged.event, "kind"):
                said = f"events[{len(self.log) - 1}] must be an event, not {shown(logged.event)}."
                raise WrongParametersError(said, hint=_FOLDED, name="events")
            return
        self.transcript.apply(logged.event)

    def reply(self) -> Reply[str]:
        """The reply so far."""
        messages, reason = tuple(self.transcript.messages()), self.transcript.reason
        seconds = self.log[-1].at if self.log else 0.0
        return Reply(
            last_text(messages),
            messages,
            self.asked,
            self.transcript.usage or Usage(),
            cast("StopReason", reason or "interrupted"),
            tuple(self.log),
            seconds,
        )


def fold(events: Iterable[Event | Logged], asked: Sequence[Message] = ()) -> Reply[str]:
    """The reply that events make: those of `agent.events`, of `agent.stream`, or of a `Reply.log`.

    Args:
        events: From the beginning of the reply on.
        asked: The conversation that it answers.

    Raises:
        WrongParametersError: They are none, or what should be an event is none.
    """
    folded = _folding("fold", events, asked)
    for event in events:
        folded.apply(event)
    return folded.reply()


def _folding(name: str, events: object, asked: object) -> ReplyFold:
    """What takes the events in. Raises WrongParametersError where an argument is of the wrong kind."""
    is_async = name == "afold"
    if isinstance(asked, str | bytes) or not isinstance(asked, Sequence):
        said = f"asked must be a list of messages, not {shown(asked)}."
        raise WrongParametersError(said, hint=f"Write {name}(events, reply.asked).", name="asked")
    if isinstance(events, str | bytes | Mapping) or not isinstance(events, AsyncIterable if is_async else Iterable):
        other = AsyncIterable if not is_async else Iterable
        hint = f"Write {'fold(...)' if is_async else 'await afold(...)'}." if isinstance(events, other) else _FOLDED
        kind = "an asynchronous stream of events" if is_async else "a list of events"
        raise WrongParametersError(f"events must be {kind}, not {shown(events)}.", hint=hint, name="events")
    return ReplyFold(cast("Sequence[Message]", asked))


async def afold(events: AsyncIterable[Event | Logged], asked: Sequence[Message] = ()) -> Reply[str]:
    """As `fold`, of an asynchronous stream.

    Raises:
        WrongParametersError: It is no stream of events, or what should be an event is none.
    """
    folded = _folding("afold", events, asked)
    async for event in events:
        folded.apply(event)
    return folded.reply()
