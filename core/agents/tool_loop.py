"""The tool loop of every agent: ask the model, run the tools it calls, ask again, until it answers."""

from __future__ import annotations

import json
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import count, takewhile
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Protocol

from core.agents.arguments import checked_int
from core.agents.conversation import call_id, has_called, passages_found, this_turn, unanswered_calls
from core.agents.going_on import has_acted
from core.agents.handoff import HandBack, Handoff
from core.agents.limits import Budget, Repeats
from core.agents.marks import TurnMarks
from core.errors import BadArgumentsError
from core.llm.calling.call_text import is_marked, without_mark
from core.llm.calling.reply_reader import UNREADABLE
from core.llm.request import ChatRequest, Stream, named_choice
from core.messages.events import (
    CallDelta,
    CallStarted,
    Event,
    MessageFinished,
    MessageStarted,
    SourceCited,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from core.messages.message import FUNCTION, USER, Message
from core.messages.transcript import Transcript, call_message, edited_call, spent
from core.rag.citations import CitingStream
from core.tools.approval import Guard, Policy, guard_for
from core.tools.arguments import read_arguments
from core.tools.run_state import state_of
from core.tools.runner import ToolRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from core.agents.going_on import Begun
    from core.languages import Lang
    from core.rag.document import Passage
    from core.tools.approval import Ask
    from core.tools.base import BaseTool
    from core.tools.run_state import RunState

LAST_CALL: Mapping[Lang, str] = {
    "en": "You have used all the tool calls of this reply. Answer now with what you have found, "
    "and say what is still open.",
    "zh": "本次回复的工具调用次数已用完。请根据已有结果直接作答，并说明还有哪些没有查清。",
}
NOT_RUN: Mapping[Lang, str] = {
    "en": "This call was not run: the reply has used all its model calls.",
    "zh": "该调用未执行：本次回复的模型调用次数已用完。",
}
STOPPED_AT_LIMIT: Mapping[Lang, str] = {
    "en": "I stopped here: after {calls} model calls there was still no answer. "
    "Ask me to go on, or make the question smaller.",
    "zh": "我在这里停下了：调用模型 {calls} 次后仍没有得出答案。可以让我继续，或者把问题缩小一些。",
}
STOPPED_UNREADABLE: Mapping[Lang, str] = {
    "en": "I stopped here: the model wrote tool calls that cannot be read, also after it was told twice. "
    "Try again, or choose another model.",
    "zh": "我在这里停下了：模型写出的工具调用无法解析，提醒两次后仍然如此。请重试，或换一个模型。",
}
CANNOT_BE_READ: Mapping[Lang, str] = {
    "en": "This call cannot be read, so nothing was run ({why}). "
    "Write it once more: the tool's name, and its arguments as one JSON object.",
    "zh": "无法解析该调用，因此没有执行（{why}）。请重新写一次：工具名称，以及一个 JSON 对象形式的参数。",
}
NO_NAME: Mapping[Lang, str] = {
    "en": "This call names no tool, so nothing was run. "
    "Write it once more: the tool's name, and its arguments as one JSON object.",
    "zh": "该调用没有给出工具名称，因此没有执行。请重新写一次：工具名称，以及一个 JSON 对象形式的参数。",
}
REPEATED: Mapping[Lang, str] = {
    "en": "This call was not run: you have made the same call with the same arguments twice already, and its result is "
    "above. Use that, call with other arguments, or answer now.",
    "zh": "该调用未执行：你已用相同的参数调用过两次，结果就在上文。请直接使用该结果、换用其他参数，或现在作答。",
}
CUT_OFF: Mapping[Lang, str] = {
    "en": "The call was cut off: it may or may not have been carried out, and was not run a second time. "
    "Find out what is so, or ask the user, before you call it again.",
    "zh": "该调用被中断：可能已执行，也可能没有，因此未再次执行。再次调用之前，请先查明情况或询问用户。",
}


MOST_MODEL_CALLS = 20
_MOST_ITERATIONS = 99
_MOST_UNREADABLE = 2


class LoopModel(Protocol):
    """What the loop needs of a model."""

    @property
    def generate_cfg(self) -> Mapping[str, Any]:
        """Its own settings."""
        ...

    def stream(self, request: ChatRequest) -> Stream:
        """The next turn."""
        ...


@dataclass(frozen=True, slots=True)
class OpeningCall:
    """A call that the agent makes before the model is asked.

    Args:
        quiet: Whether the call is shown only if it found passages.
        told_if_empty: Whether the model sees a call that found nothing; it distracts a small model.
        asks: Whether the user may be asked about it, as about a call of the model.
        otherwise: The call to make where this one fails or is not allowed.
    """

    name: str
    arguments: Mapping[str, Any]
    quiet: bool = False
    told_if_empty: bool = True
    asks: bool = False
    otherwise: OpeningCall | None = None


@dataclass(slots=True)
class _State:
    """The state of one reply."""

    history: list[Message]
    lang: Lang
    context: dict[str, Any]
    budget: Budget
    evidence: list[Passage] = field(default_factory=list[Any])
    called: bool = False  # whether the model has called a tool
    repeats: Repeats = field(default_factory=Repeats)
    unreadable: int = 0  # turns with a call that could not be read even leniently
    over: bool = False
    guard: Guard | None = None
    sent_back: str = ""  # what the model is told of an answer that does not fit


@dataclass(frozen=True, slots=True)
class ToolLoop:
    """A model, its tools, and how often it may be asked.

    Args:
        model: The model, or a wrapper of one.
        tools: The tools that may run, by name.
        offered: The names of those that the model may call; all by default.
        speaker: The agent's name, for its messages.
        generate: Overrides the model's `generate_cfg`.
        most_calls: The most model calls in one reply. The last one must answer without tools; with a budget, the reply
            pauses after it instead.
    """

    model: LoopModel
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
        opening: OpeningCall | None = None,
        approval: Guard | Policy | Ask | None = None,
        budget: Budget | None = None,
        may_have_run: Collection[str] | None = None,
        evidence: list[Passage] | None = None,
        **context: Any,
    ) -> Stream:
        """The whole reply as events; closing the stream stops the model and the tools.

        Args:
            messages: The conversation, system message included; not changed.
            lang: The language of Parlour's own sentences.
            opening: A call to make before the model is asked.
            approval: Decides about every call; without it the tools run as they are called. Within a guarded reply its
                guard decides as well.
            budget: Lets the reply pause where it would otherwise end.
            may_have_run: Given where an interrupted reply is resumed: calls without a result are run first. Those with
                these ids may have run before the interruption; they run again only if their tool is idempotent, or
                tells its service a key.
            evidence: Passages that other agents found in the same reply: numbering continues, and this reply's are
                added.
            context: For the tools that take it; `progress` follows their progress.

        Raises:
            ModelServiceError: The model failed.
            LimitReachedError: The budget is used up.
        """
        state = _State(list(messages), lang, context, budget or Budget(), [] if evidence is None else evidence)
        guard = state.guard = guard_for(approval)
        runner = ToolRunner(self.tools, guard=guard)
        async with aclosing(self._before_model(opening, may_have_run, runner, guard, state)) as events:
            async for event in events:
                yield event
        for asked in () if state.over else count(1):  # over, where one who took over went on to the end
            _check(budget, asked - 1, self.most_calls)
            last = budget is None and asked == self.most_calls
            turn, marks = Transcript(), TurnMarks()
            async with aclosing(self._model_turn(state, last=last)) as events:
                async for event in events:
                    kind = type(event)
                    if kind is MessageStarted or kind is CallStarted or kind is SourceCited:
                        for own in self._own(event, state, turn, marks):
                            turn.apply(own)
                            yield own
                        continue
                    turn.apply(event)
                    yield event
            if calls := await self._ended(turn, state):
                async with aclosing(self._run_calls(calls, turn, runner, state, last=last)) as events:
                    async for event in events:
                        yield event
            state.budget.pay(turn.usage)
            if state.over or not (calls or state.sent_back):
                return

    async def _before_model(
        self,
        opening: OpeningCall | None,
        may_have_run: Collection[str] | None,
        runner: ToolRunner,
        guard: Guard | None,
        state: _State,
    ) -> Stream:
        """Resumed calls and the opening call."""
        if may_have_run is not None:
            taker = self._took_over(state.history)
            resumed = self._resume_calls(may_have_run, runner, state)
            if taker is not None:
                resumed = self._taken(taker, state, may_have_run=may_have_run)
            async with aclosing(resumed) as events:
                async for event in events:
                    _pay(event, state)
                    yield event
        while opening is not None:
            decides = guard if opening.asks else _without_asking(guard)
            made, opening, failed = opening, opening.otherwise, False
            async with aclosing(self._make_opening_call(made, ToolRunner(self.tools, guard=decides), state)) as events:
                async for event in events:
                    failed = failed or (isinstance(event, ToolFinished) and _has_failed(event.message))
                    _pay(event, state)
                    yield event
            if not failed:
                return

    async def _resume_calls(self, may_have_run: Collection[str], runner: ToolRunner, state: _State) -> Stream:
        """Run the unanswered calls of an interrupted reply."""
        state.evidence += passages_found(state.history)
        calls = unanswered_calls(state.history)
        state.called = has_called(state.history)
        state.repeats.take(calls)
        begun: Mapping[str, Begun] = state.context.get("begun") or {}
        spent = [call for call in calls if self._is_spent(call, begun, may_have_run)]
        results: list[Message] = []
        for event in _failed_results(spent, lambda _: CUT_OFF[state.lang], "interrupted"):
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

    def _is_spent(self, call: Message, begun: Mapping[str, Begun], may_have_run: Collection[str]) -> bool:
        """Whether a call may have been made, must not be made again, and does not go on where it was."""
        tool = self.tools.get(call.function_call.name) if call.function_call is not None else None
        before = begun.get(call_id(call))
        if tool is None or tool.idempotent or tool.takes_key or (tool.goes_on and before is not None):
            return False
        return call_id(call) in may_have_run or has_acted(tool, before)

    async def _run_calls(
        self, calls: Sequence[Message], turn: Transcript, runner: ToolRunner, state: _State, *, last: bool
    ) -> Stream:
        """Run the calls of a turn, or end the reply with a sentence that says why."""
        if last:
            state.over = True
            for event in self._refuse_calls(calls, state):
                yield event
            return
        cut_off = turn.reason == "length"
        lost = [call for call in calls if _is_lost(call, cut_off=cut_off)]
        for event in _failed_results(lost, lambda call: _why_unreadable(call, state.lang), "bad_arguments"):
            turn.apply(event)
            yield event
        repeated = [call for call in state.repeats.take(calls) if call not in lost]
        for event in _failed_results(repeated, lambda _: REPEATED[state.lang], "repeated"):
            turn.apply(event)
            yield event
        readable = [call for call in calls if call not in lost and call not in repeated]
        async with aclosing(runner.run(readable, cut_off=cut_off, **_context(state))) as events:
            async for event in events:
                turn.apply(event)
                yield event
        state.history += turn.messages()
        async with aclosing(self._handed_over(readable, turn, state)) as events:
            async for event in events:
                yield event
        state.unreadable += bool(lost) or any(_is_unreadable(call) for call in calls)
        if state.unreadable > _MOST_UNREADABLE:
            state.over = True
            for event in self._sentence(STOPPED_UNREADABLE[state.lang]):
                yield event

    async def _handed_over(self, calls: Sequence[Message], turn: Transcript, state: _State) -> Stream:
        """The reply of an agent to whom a call hands over; unless that one gives it back, the reply is over with it."""
        given = {call_id(one) for one in turn.messages() if "handoff" in (one.extra or {})}
        made = [one for one in calls if call_id(one) in given and one.function_call is not None]
        tools = [self.tools.get(one.function_call.name) for one in made if one.function_call is not None]
        if any(isinstance(one, HandBack) for one in tools):
            state.over = True
            return
        taker = next((one for one in tools if isinstance(one, Handoff)), None)
        if taker is None:
            return
        async with aclosing(self._taken(taker, state)) as events:
            async for event in events:
                yield event

    def _took_over(self, history: Sequence[Message]) -> Handoff | None:
        """Who had the reply when it was interrupted, where that was somebody else."""
        said = this_turn(history)
        marks = {call_id(one): str((one.extra or {})["handoff"]) for one in said if "handoff" in (one.extra or {})}
        held: list[str] = []
        for name in marks.values():
            held = [*held, name] if name else held[:-1]
        made = [one for one in said if one.function_call is not None]
        if not held or (made and made[-1].name == self.speaker and call_id(made[-1]) not in marks):
            return None
        takers = [one for one in self.tools.values() if isinstance(one, Handoff)]
        return next((one for name in held for one in takers if str(one.agent.name) == name), None)

    async def _taken(self, taker: Handoff, state: _State, **more: Any) -> Stream:
        """The reply of who takes over."""
        given = {key: value for key, value in state.context.items() if key != "run_state"}
        reply, context = Transcript(), {**given, **more}
        events = taker.take_over(
            state.history, state_of(state.context), lang=state.lang, approval=state.guard, **context
        )
        async with aclosing(events) as source:
            async for event in source:
                reply.apply(event)
                yield event
        said = reply.messages()
        last = takewhile(lambda one: one.role == FUNCTION, reversed(said))
        is_back = any((one.extra or {}).get("handoff") == "" for one in last)
        state.history, state.over = [*state.history, *said], not is_back

    def _model_turn(self, state: _State, *, last: bool) -> Stream:
        """The model's next turn."""
        names = self.tools if self.offered is None else self.offered
        # An answer that is sent back needs no tools: it is to be written otherwise, in the form that is wanted.
        functions = () if state.sent_back else tuple(self.tools[name].function for name in names)
        generate, messages = self.generate, state.history
        run = state_of(state.context)
        if run is not None:
            run.meter.check()
            run.messages = state.history
        if run is not None and run.output is not None:
            generate = {**generate, **run.output.generate(self.model, offers_tools=bool(functions))}
        if state.called and named_choice(ChatRequest((), generate={**self.model.generate_cfg, **generate})):
            generate = {**generate, "function_choice": "auto"}  # the forced call was made; now the model may answer
        if last and functions:
            generate = {**generate, "function_choice": "none"}
            messages = [*messages, Message(USER, LAST_CALL[state.lang])]
        request = ChatRequest(tuple(messages), functions, generate, state.lang, answers_calls=True)
        events = self.model.stream(request) if run is None or not run.hooks.before_model else self._hooked(request, run)
        if not state.evidence or (run is not None and run.output is not None and run.output.is_data):
            return events
        question = next((one.get_text_content() for one in reversed(state.history) if one.role == USER), "")
        return with_citations(events, state.evidence, question)

    @staticmethod
    async def _ended(turn: Transcript, state: _State) -> list[Message]:
        """The calls of a turn that is over; an answer that does not fit is sent back."""
        run, calls = state_of(state.context), turn.unanswered()
        state.called = state.called or bool(calls)
        if run is None:
            return calls
        run.meter.pay(turn.usage)
        await run.after_model(turn)
        if calls:
            run.meter.check_used()
        if not calls and run.output is not None:
            if not state.sent_back:
                run.evidence = state.evidence or passages_found(state.history)
            state.sent_back = await run.output.sent_back(run.output.guarded(_text(turn)), run)
            state.history += [*turn.messages(), Message(USER, state.sent_back)] if state.sent_back else []
        return calls

    async def _hooked(self, request: ChatRequest, run: RunState) -> Stream:
        """The turn for a request that the program's functions have seen."""
        async with aclosing(self.model.stream(await run.before_model(request))) as events:
            async for event in events:
                yield event

    async def _make_opening_call(self, opening: OpeningCall, runner: ToolRunner, state: _State) -> Stream:
        """Make the opening call as if the model had made it."""
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

    def _own(self, event: Event, state: _State, turn: Transcript, marks: TurnMarks) -> Iterator[Event]:
        """The event with a name, or with the numbers of what is cited."""
        if isinstance(event, SourceCited):
            # What a program's own tools found has numbers, too.
            state.evidence += passages_found(state.history)[len(state.evidence) :]
            run = state_of(state.context)
            is_data = run is not None and run.output is not None and run.output.is_data
            yield from marks.marked(event, state.evidence, None if is_data else _text(turn))
        elif isinstance(event, CallStarted) and not event.name.strip():
            yield CallStarted(event.call_id, UNREADABLE, event.proof)
        elif isinstance(event, MessageStarted) and event.name is None:
            yield MessageStarted(self.speaker)
        else:
            yield event

    def _refuse_calls(self, calls: Sequence[Message], state: _State) -> Iterator[Event]:
        """Answer calls beyond the limit with a refusal, and tell the user."""
        yield from _failed_results(calls, lambda _: NOT_RUN[state.lang], "call_limit")
        yield from self._sentence(STOPPED_AT_LIMIT[state.lang].format(calls=self.most_calls))

    def _sentence(self, text: str) -> Iterator[Event]:
        yield MessageStarted(self.speaker)
        yield TextDelta(text)
        yield MessageFinished("stop")


def checked_model_calls(wanted: int) -> int:
    """The most model calls of a reply, as an agent is given it. Raises SettingsError."""
    return checked_int("max_iteration", wanted, 1, _MOST_ITERATIONS)


def _without_asking(guard: Guard | None) -> Guard | None:
    """The guard of the opening call: denied tools stay denied, but nobody is asked."""
    if guard is None:
        return None
    free = Guard(Policy("never", deny=guard.policy.deny))
    free.outer = guard
    return free


def _check(budget: Budget | None, calls: int, most_calls: int) -> None:
    """Raises LimitReachedError: the budget is used up."""
    if budget is not None and calls:
        budget.check(calls=calls, most_calls=most_calls)


def _pay(event: Event, state: _State) -> None:
    """What models cost that a tool has asked."""
    if isinstance(event, ToolFinished):
        state.budget.pay(spent(event.message))


def _text(turn: Transcript) -> str:
    return "".join(one.get_text_content() for one in turn.messages() if one.function_call is None)


def _has_failed(result: Message) -> bool:
    return bool((result.extra or {}).get("failed"))


def _context(state: _State) -> dict[str, Any]:
    told = {"lang": state.lang, "messages": state.history, "evidence": state.evidence, "reply_budget": state.budget}
    return {**state.context, **told}


def _failed_results(calls: Iterable[Message], text: Callable[[Message], str], failed: str) -> Iterator[Event]:
    """Results, as failures, for calls that are not run."""
    for call in calls:
        name = call.function_call.name if call.function_call else UNREADABLE
        extra = {"function_id": call_id(call), "failed": failed}
        yield ToolStarted(call_id(call))
        yield ToolFinished(call_id(call), Message(FUNCTION, text(call), name=name, extra=extra))


def _is_lost(call: Message, *, cut_off: bool) -> bool:
    """Whether a call cannot be run even after repair; the runner reports one that was cut off."""
    requested = call.function_call
    if requested is None or requested.name == UNREADABLE:
        return True
    return is_marked(requested.arguments) and not cut_off


def _why_unreadable(call: Message, lang: Lang) -> str:
    """The result of a call that cannot be read."""
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


async def with_citations(events: Stream, passages: Sequence[Passage], question: str = "") -> Stream:
    """The events with citation marks in their text; held back text is flushed before any other event."""
    citing = CitingStream(passages, question)
    speaking = False
    async with aclosing(events) as source:
        async for event in source:
            if isinstance(event, TextDelta):
                speaking = True
                if text := citing.feed(event.text):
                    yield TextDelta(text)
                continue
            if speaking:
                if rest := citing.close():
                    yield TextDelta(rest)
                citing, speaking = CitingStream(passages, question), False
            yield event
