"""The one loop: ask the model, run the tools it calls, ask again, until it answers."""

from __future__ import annotations

import json
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import count
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Protocol

from core.agents.bounds import whole
from core.agents.budget import Budget
from core.agents.citing import cited
from core.agents.pending import call_id, found_before, has_called, without_result
from core.agents.prompts import (
    CANNOT_BE_READ,
    CUT_OFF,
    LAST_CALL,
    NO_NAME,
    NOT_RUN,
    REPEATED,
    STOPPED_AT_LIMIT,
    STOPPED_UNREADABLE,
)
from core.agents.repeats import Repeats
from core.errors import BadArgumentsError
from core.llm.calling.call_text import is_marked, without_mark
from core.llm.calling.reply_reader import UNREADABLE
from core.llm.request import ChatRequest, Lang, Stream, named_choice
from core.messages.events import (
    CallDelta,
    CallStarted,
    Event,
    MessageFinished,
    MessageStarted,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from core.messages.message import FUNCTION, USER, Message
from core.messages.transcript import Transcript, call_message, edited_call, spent
from core.tools.approval import Guard, Policy
from core.tools.arguments import read_arguments
from core.tools.guarded import guard_for
from core.tools.runner import ToolRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from core.rag.document import Passage
    from core.tools.approval import Ask
    from core.tools.base import BaseTool

MOST_MODEL_CALLS = 20
_MOST_ITERATIONS = 99
_MOST_UNREADABLE = 2


class Asked(Protocol):
    """What the loop needs of a model."""

    @property
    def generate_cfg(self) -> Mapping[str, Any]:
        """Its own settings."""
        ...

    def stream(self, request: ChatRequest) -> Stream:
        """The next turn."""
        ...


@dataclass(frozen=True, slots=True)
class Opening:
    """A call that the agent makes before the model is asked.

    Args:
        name: The tool.
        arguments: For it.
        quiet: Whether the call is shown only if it found passages.
        told_if_empty: Whether the model is told of a call that found nothing; a small one then loses sight of the
            question and its tools.
    """

    name: str
    arguments: Mapping[str, Any]
    quiet: bool = False
    told_if_empty: bool = True


@dataclass(slots=True)
class _State:
    """What one reply has gathered."""

    history: list[Message]
    lang: Lang
    context: dict[str, Any]
    budget: Budget
    evidence: list[Passage] = field(default_factory=list[Any])
    called: bool = False  # whether the model has called a tool
    repeats: Repeats = field(default_factory=Repeats)
    unreadable: int = 0  # turns with a call that could not be read even leniently
    over: bool = False


@dataclass(frozen=True, slots=True)
class ToolLoop:
    """A model, its tools, and how often it may be asked.

    Args:
        model: Who answers.
        tools: What may be run, by name.
        offered: The tools the model is told of; all of them by default.
        speaker: The agent's name, put on its messages.
        generate: Over the model's `generate_cfg`.
        most_calls: Model calls in one reply; the last one is asked to answer without tools, or, within a budget, the
            reply pauses after it.
    """

    model: Asked
    tools: Mapping[str, BaseTool]
    offered: Sequence[str] | None = None
    speaker: str | None = None
    generate: Mapping[str, Any] = field(default_factory=dict[str, Any])
    most_calls: int = MOST_MODEL_CALLS

    async def reply(  # noqa: PLR0913 - the conversation, and by name what not every caller has
        self,
        messages: Iterable[Message],
        *,
        lang: Lang,
        opening: Opening | None = None,
        approval: Guard | Policy | Ask | None = None,
        budget: Budget | None = None,
        begun: Collection[str] | None = None,
        evidence: list[Passage] | None = None,
        **context: Any,
    ) -> Stream:
        """The whole reply as events; leaving early stops the model and the tools.

        Args:
            messages: The conversation, system message included; not changed.
            lang: The language of what Parlour itself says.
            opening: A call to make first.
            approval: Decides about every call; without it the tools run as they are called. Within a guarded reply its
                guard decides as well.
            budget: Lets the reply pause where it would be ended else.
            begun: Set where the reply goes on in the middle of its calls: those without a result are made first. The
                calls named here may have begun before: of these, what cannot be done twice is not.
            evidence: What other agents have found in the same reply; numbers go on from there, and what is found here
                is added.
            context: Handed to the tools that take it; `progress` follows their progress.

        Raises:
            ModelServiceError: The model failed.
            LimitReachedError: The budget is used up.
        """
        state = _State(list(messages), lang, context, budget or Budget(), [] if evidence is None else evidence)
        guard = guard_for(approval)
        runner = ToolRunner(self.tools, guard=guard)
        async with aclosing(self._before(opening, begun, runner, guard, state)) as events:
            async for event in events:
                if isinstance(event, ToolFinished):
                    state.budget.pay(spent(event.message))
                yield event
        for asked in count(1):
            if budget is not None and asked > 1:
                budget.check(calls=asked - 1, most_calls=self.most_calls)
            last = budget is None and asked == self.most_calls
            turn = Transcript()
            async with aclosing(self._asked(state, last=last)) as events:
                async for event in events:
                    kind = type(event)
                    if kind is MessageStarted or kind is CallStarted:
                        event = self._named(event)  # noqa: PLW2901 - the same event, with a name
                    turn.apply(event)
                    yield event
            if calls := turn.unanswered():
                state.called = True
                async with aclosing(self._answered(calls, turn, runner, state, last=last)) as events:
                    async for event in events:
                        yield event
            state.budget.pay(turn.usage)
            if state.over or not calls:
                return

    async def _before(
        self,
        opening: Opening | None,
        begun: Collection[str] | None,
        runner: ToolRunner,
        guard: Guard | None,
        state: _State,
    ) -> Stream:
        """What comes before the model is asked."""
        if begun is not None:
            async with aclosing(self._caught_up(begun, runner, state)) as events:
                async for event in events:
                    yield event
        if opening is not None:
            async with aclosing(self._open(opening, ToolRunner(self.tools, guard=_unasked(guard)), state)) as events:
                async for event in events:
                    yield event

    async def _caught_up(self, begun: Collection[str], runner: ToolRunner, state: _State) -> Stream:
        """Make the calls that a broken off reply was in the middle of."""
        state.evidence += found_before(state.history)
        calls = without_result(state.history)
        state.called = has_called(state.history)
        state.repeats.take(calls)
        spent = [call for call in calls if call_id(call) in begun and not self._may_run_twice(call)]
        results: list[Message] = []
        for event in _answers(spent, lambda _: CUT_OFF[state.lang], "interrupted"):
            results += [event.message] if isinstance(event, ToolFinished) else []
            yield event
        again = [call for call in calls if call not in spent]
        async with aclosing(runner.run(again, **_context(state))) as events:
            async for event in events:
                results += [event.message] if isinstance(event, ToolFinished) else []
                yield event
        edited = {call_id(result): (result.extra or {}).get("arguments") for result in results}
        said = [edited_call(one, edited.get(call_id(one))) for one in state.history]
        state.history = [*said, *results]

    def _may_run_twice(self, call: Message) -> bool:
        tool = self.tools.get(call.function_call.name) if call.function_call is not None else None
        return tool is None or tool.idempotent

    async def _answered(
        self, calls: Sequence[Message], turn: Transcript, runner: ToolRunner, state: _State, *, last: bool
    ) -> Stream:
        """Run the calls of a turn, or say why the reply ends here."""
        if last:
            state.over = True
            for event in self._refused(calls, state):
                yield event
            return
        cut_off = turn.reason == "length"
        lost = [call for call in calls if _is_lost(call, cut_off=cut_off)]
        for event in _answers(lost, lambda call: _what_is_wrong(call, state.lang), "bad_arguments"):
            turn.apply(event)
            yield event
        repeated = [call for call in state.repeats.take(calls) if call not in lost]
        for event in _answers(repeated, lambda _: REPEATED[state.lang], "repeated"):
            turn.apply(event)
            yield event
        readable = [call for call in calls if call not in lost and call not in repeated]
        async with aclosing(runner.run(readable, cut_off=cut_off, **_context(state))) as events:
            async for event in events:
                turn.apply(event)
                yield event
        state.history += turn.messages()
        state.unreadable += bool(lost) or any(_is_unreadable(call) for call in calls)
        if state.unreadable > _MOST_UNREADABLE:
            state.over = True
            for event in self._said(STOPPED_UNREADABLE[state.lang]):
                yield event

    def _asked(self, state: _State, *, last: bool) -> Stream:
        """The model's next turn."""
        names = self.tools if self.offered is None else self.offered
        functions = tuple(self.tools[name].function for name in names)
        generate, messages = self.generate, state.history
        if state.called and named_choice(ChatRequest((), generate={**self.model.generate_cfg, **generate})):
            generate = {**generate, "function_choice": "auto"}  # it was called; now the model may answer
        if last and functions:
            generate = {**generate, "function_choice": "none"}
            messages = [*messages, Message(USER, LAST_CALL[state.lang])]
        events = self.model.stream(ChatRequest(tuple(messages), functions, generate, state.lang, answers_calls=True))
        if not state.evidence:
            return events
        question = next((one.get_text_content() for one in reversed(state.history) if one.role == USER), "")
        return cited(events, state.evidence, question)

    async def _open(self, opening: Opening, runner: ToolRunner, state: _State) -> Stream:
        """Make the first call as if the model had made it."""
        new_id, arguments = f"call_{token_hex(8)}", json.dumps(dict(opening.arguments), ensure_ascii=False)
        turn = Transcript()
        held: list[Event] = [
            MessageStarted(self.speaker),
            CallStarted(new_id, opening.name),
            CallDelta(new_id, arguments),
            MessageFinished("calls"),
        ]
        for event in held:
            turn.apply(event)
            if not opening.quiet:
                yield event
        call, before = call_message(new_id, opening.name, arguments, self.speaker), len(state.evidence)
        async with aclosing(runner.run([call], **_context(state))) as events:
            async for event in events:
                turn.apply(event)
                held.append(event)
                if not opening.quiet:
                    yield event
        found = len(state.evidence) > before
        if opening.quiet and found:
            for event in held:
                yield event
        if found or (opening.told_if_empty and not opening.quiet):
            state.history += turn.messages()

    def _named(self, event: Event) -> Event:
        if isinstance(event, CallStarted) and not event.name.strip():
            return CallStarted(event.call_id, UNREADABLE)
        if isinstance(event, MessageStarted) and event.name is None:
            return MessageStarted(self.speaker)
        return event

    def _refused(self, calls: Sequence[Message], state: _State) -> Iterator[Event]:
        """Calls that come when no more may: none stays unanswered, and the user is told."""
        yield from _answers(calls, lambda _: NOT_RUN[state.lang], "call_limit")
        yield from self._said(STOPPED_AT_LIMIT[state.lang].format(calls=self.most_calls))

    def _said(self, text: str) -> Iterator[Event]:
        yield MessageStarted(self.speaker)
        yield TextDelta(text)
        yield MessageFinished("stop")


def most_model_calls(wanted: int) -> int:
    """How often a model may be asked for one reply. Raises SettingsError."""
    return whole("max_iteration", wanted, 1, _MOST_ITERATIONS)


def _unasked(guard: Guard | None) -> Guard | None:
    """For what the agent does of itself to answer at all: what is forbidden stays so, but nobody is asked."""
    if guard is None:
        return None
    free = Guard(Policy("never", deny=guard.policy.deny))
    free.outer = guard
    return free


def _context(state: _State) -> dict[str, Any]:
    return {**state.context, "lang": state.lang, "messages": state.history, "evidence": state.evidence}


def _answers(calls: Iterable[Message], text: Callable[[Message], str], failed: str) -> Iterator[Event]:
    """Results for calls that are not run."""
    for call in calls:
        name = call.function_call.name if call.function_call else UNREADABLE
        extra = {"function_id": call_id(call), "failed": failed}
        yield ToolStarted(call_id(call))
        yield ToolFinished(call_id(call), Message(FUNCTION, text(call), name=name, extra=extra))


def _is_lost(call: Message, *, cut_off: bool) -> bool:
    """Whether nobody can run a call: what might have been mended in it was. Of one cut off the runner tells."""
    requested = call.function_call
    if requested is None or requested.name == UNREADABLE:
        return True
    return is_marked(requested.arguments) and not cut_off


def _what_is_wrong(call: Message, lang: Lang) -> str:
    """What a model is told of a call that cannot be read."""
    written = json.loads(call.function_call.arguments) if call.function_call else ""
    if isinstance(written, str):
        try:
            json.loads(without_mark(written))
        except ValueError as error:
            return CANNOT_BE_READ[lang].format(why=error)
    return NO_NAME[lang]


def _is_unreadable(call: Message) -> bool:
    if call.function_call is None or call.function_call.name == UNREADABLE:
        return True
    if not (call.extra or {}).get("unreadable"):
        return False
    try:
        read_arguments(call.function_call.arguments)
    except BadArgumentsError:
        return True
    return False
