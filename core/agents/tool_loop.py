"""The one loop: ask the model, run the tools it calls, ask again, until it answers."""

from __future__ import annotations

import json
from contextlib import aclosing
from dataclasses import dataclass, field
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Protocol

from core.agents.citing import cited
from core.agents.prompts import CANNOT_BE_READ, LAST_CALL, NO_NAME, NOT_RUN, STOPPED_AT_LIMIT, STOPPED_UNREADABLE
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
from core.messages.transcript import Transcript, call_message
from core.tools.arguments import read_arguments
from core.tools.runner import ToolRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from core.rag.document import Passage
    from core.tools.base import BaseTool

MOST_MODEL_CALLS = 20
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
    evidence: list[Passage] = field(default_factory=list[Any])
    called: bool = False  # whether the model has called a tool
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
        most_calls: Model calls in one reply; the last one is asked to answer without tools.
    """

    model: Asked
    tools: Mapping[str, BaseTool]
    offered: Sequence[str] | None = None
    speaker: str | None = None
    generate: Mapping[str, Any] = field(default_factory=dict[str, Any])
    most_calls: int = MOST_MODEL_CALLS

    async def reply(
        self, messages: Iterable[Message], *, lang: Lang, opening: Opening | None = None, **context: Any
    ) -> Stream:
        """The whole reply as events; leaving early stops the model and the tools.

        Args:
            messages: The conversation, system message included; not changed.
            lang: The language of what Parlour itself says.
            opening: A call to make first.
            context: Handed to the tools that take it.

        Raises:
            ModelServiceError: The model failed.
        """
        state = _State(list(messages), lang, context)
        runner = ToolRunner(self.tools)
        if opening is not None:
            async with aclosing(self._open(opening, runner, state)) as events:
                async for event in events:
                    yield event
        for asked in range(1, self.most_calls + 1):
            turn = Transcript()
            async with aclosing(self._asked(state, last=asked == self.most_calls)) as events:
                async for event in events:
                    kind = type(event)
                    if kind is MessageStarted or kind is CallStarted:
                        event = self._named(event)  # noqa: PLW2901 - the same event, with a name
                    turn.apply(event)
                    yield event
            calls = turn.unanswered()
            if not calls:
                return
            state.called = True
            async with aclosing(self._answered(calls, turn, runner, state, last=asked == self.most_calls)) as events:
                async for event in events:
                    yield event
            if state.over:
                return

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
        readable = [call for call in calls if call not in lost]
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
        return cited(events, state.evidence) if state.evidence else events

    async def _open(self, opening: Opening, runner: ToolRunner, state: _State) -> Stream:
        """Make the first call as if the model had made it."""
        call_id, arguments = f"call_{token_hex(8)}", json.dumps(dict(opening.arguments), ensure_ascii=False)
        turn = Transcript()
        held: list[Event] = [
            MessageStarted(self.speaker),
            CallStarted(call_id, opening.name),
            CallDelta(call_id, arguments),
            MessageFinished("calls"),
        ]
        for event in held:
            turn.apply(event)
            if not opening.quiet:
                yield event
        call = call_message(call_id, opening.name, arguments, self.speaker)
        async with aclosing(runner.run([call], **_context(state))) as events:
            async for event in events:
                turn.apply(event)
                held.append(event)
                if not opening.quiet:
                    yield event
        if opening.quiet and state.evidence:
            for event in held:
                yield event
        if state.evidence or (opening.told_if_empty and not opening.quiet):
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


def _context(state: _State) -> dict[str, Any]:
    return {**state.context, "lang": state.lang, "messages": state.history, "evidence": state.evidence}


def _answers(calls: Iterable[Message], text: Callable[[Message], str], failed: str) -> Iterator[Event]:
    """Results for calls that are not run."""
    for call in calls:
        call_id = str((call.extra or {})["function_id"])
        name = call.function_call.name if call.function_call else UNREADABLE
        extra = {"function_id": call_id, "failed": failed}
        yield ToolStarted(call_id)
        yield ToolFinished(call_id, Message(FUNCTION, text(call), name=name, extra=extra))


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
