"""What `ask` was told, checked, and the reply that an agent makes of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from core.agents.arguments import check_taken
from core.agents.conduct import guarded
from core.agents.conversation import append_system
from core.agents.limits import check_prices
from core.agents.mapping import conversation_of, messages_named
from core.agents.output import OutputType, TypedOutput, checked_retries
from core.agents.question_files import with_files
from core.agents.reply import Reply, ReplyFold, passages_in
from core.bridge.cancellation import released_events
from core.errors import BadMessagesError, LimitReachedError, ModelMisbehavedError, SettingsError, shown
from core.llm.request import ChatRequest
from core.llm.validation import is_wordless
from core.messages.message import ASSISTANT, USER, Message, Usage
from core.messages.transcript import Transcript
from core.tools.approval import Guard
from core.tools.run_context import called
from core.tools.run_state import Limits, Meter, RunState, out_of_time

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from core.agents.mapping import Question
    from core.agents.protocol import ExtensibleAgent
    from core.languages import Lang
    from core.messages.events import Event

History: TypeAlias = "Reply[Any] | Sequence[Message | dict[str, Any]]"
KEYWORDS: Final = ("output_type", "output_retries", "deps", "limits", "history", "files")
_NO_JSON: Final[Mapping[Lang, str]] = {
    "en": "Give the answer that you have reached as it is wanted.",
    "zh": "请把已得出的答案按要求的形式给出。",
}


@dataclass(slots=True, eq=False)
class Asking:
    """One question to an agent.

    Args:
        agent: Who answers.
        asked: The conversation, the question last.
        state: Of the reply.
        output: What the answer must be.
        approval: As of `Agent.stream`.
        options: The other keywords of `Agent.stream`.
        folded: What has come of the reply.
    """

    agent: ExtensibleAgent
    asked: list[Message]
    state: RunState
    output: TypedOutput
    approval: Any
    options: dict[str, Any]
    folded: ReplyFold

    @classmethod
    def of(cls, agent: ExtensibleAgent, question: Question, given: Mapping[str, Any]) -> Asking:
        """The question, checked.

        Raises:
            SettingsError: An argument is misspelt, or makes no sense.
            BadMessagesError: The question or the history is none.
        """
        options = {name: value for name, value in given.items() if name not in {*KEYWORDS, "approval"}}
        agent.check_options(options, KEYWORDS)
        if "run_state" in options:
            said = "run_state is Parlour's own, and no argument of ask."
            raise SettingsError(said, hint="Write deps=... for what your functions need.", name="run_state")
        check_taken(agent, options, KEYWORDS)
        limits = _limits(given.get("limits"))
        if limits.cost is not None:
            check_prices(agent)
        Guard.of(given.get("approval"))
        new, fates = with_files(conversation_of(question), given.get("files"))
        _check_said(new)
        asked = [*_history(given.get("history")), *new]
        kind = OutputType.of(given.get("output_type", str))
        output = TypedOutput(kind, checked_retries(given.get("output_retries", TypedOutput().retries)))
        has_checks = agent.extras is not None and bool(agent.extras.hooks.check)
        wanted = output if kind is not None or has_checks else None
        state = RunState(given.get("deps"), Meter(limits), output=wanted, messages=asked, files=fates)
        return cls(agent, asked, state, output, given.get("approval"), options, ReplyFold(asked))

    async def events(self) -> AsyncGenerator[Event, None]:
        """The reply as events, which are folded as they pass.

        Raises:
            LimitReachedError: Its `reply` is what there is.
            OutputError: The answer does not fit.
        """
        limit = self.state.meter.limits.seconds
        deadline = None if limit is None else asyncio.get_running_loop().time() + limit
        source = self._whole()
        try:
            async with aclosing(source):
                while True:
                    try:
                        event = await _within(anext(source), deadline)
                    except StopAsyncIteration:
                        return
                    except _LateError:
                        raise out_of_time(limit or 0.0) from None
                    self.folded.apply(event)
                    yield event
        except LimitReachedError as error:
            error.reply = self.reply()
            raise

    async def _whole(self) -> AsyncGenerator[Event, None]:
        """The agent's reply; where it is not what was asked for and nobody has looked yet, the model writes it anew."""
        stream = self.agent.stream(self.asked, approval=self.approval, run_state=self.state, **self.options)
        async with aclosing(stream) as events:
            async for event in events:
                yield event
        output = self.state.output
        if output is None or output.settled or self.state.stopped:
            return
        extras = self.agent.extras
        state = self.state if extras is None else self.state.with_hooks(extras.hooks)
        state.evidence = passages_in(self.folded.reply().messages)
        while said := await output.sent_back(self.folded.reply().text or _NO_JSON[state.lang], state):
            events = self._again(said, state)
            if extras is not None and extras.output_guards:
                events = guarded(events, extras, state, self.state, Guard.of(self.approval))
            async with aclosing(events) as source:
                async for event in source:
                    yield event
            if self.state.stopped:
                return

    async def _again(self, said: str, state: RunState) -> AsyncGenerator[Event, None]:
        """The model's answer, for an agent that does not ask it through the loop of tools."""
        model = self.agent.llm
        if model is None:
            raise ModelMisbehavedError(message=f"The answer does not fit: {said}", hint="Pass llm=... to the agent.")
        state.meter.check()
        answer = self.folded.reply().text
        messages = [*self.asked, Message(ASSISTANT, answer), Message(USER, said)]
        if self.output.kind is not None:
            messages = append_system(messages, self.output.kind.instruction(state.lang))
        generate = dict(self.output.generate(model, offers_tools=False))
        turn = Transcript()
        request = await state.before_model(ChatRequest(tuple(messages), (), generate, state.lang))
        async with aclosing(model.stream(request)) as events:
            async for event in events:
                turn.apply(event)
                yield event
        state.meter.pay(turn.usage)
        await state.after_model(turn)

    def reply(self) -> Reply[Any]:
        """The reply so far, with its output if that is known."""
        made: Reply[Any] = self.folded.reply()
        state = self.state
        settled = self.output.settled
        return replace(
            made,
            output=self.output.value if settled else made.text if self.output.kind is None else None,
            usage=made.usage if made.usage != Usage() else state.meter.usage or Usage(),
            stop_reason="guard" if state.stopped else made.stop_reason,
            given=state.data,
        )

    async def finished(self) -> Reply[Any]:
        """The whole reply, as the program's functions leave it."""
        made = self.reply()
        if self.output.kind is not None and not self.output.settled and not self.state.stopped:
            raise ModelMisbehavedError(message="The agent ended its reply without an answer.", hint="Ask again.")
        extras = self.agent.extras
        for hook in extras.hooks.after_reply if extras is not None else ():
            found: object = await called(hook, self.state.context(), made)
            if found is not None and not isinstance(found, Reply):
                name = getattr(hook, "__name__", type(hook).__name__)
                said = (
                    f"after_reply: {name!r} returned {type(found).__name__}, and a Reply takes the place of the reply."
                )
                raise SettingsError(said, hint="Return dataclasses.replace(reply, output=...), or None.")
            made = made if found is None else cast("Reply[Any]", found)
        return made


class _LateError(Exception):
    """The time of a reply is over."""


async def _within(waited: Awaitable[Event], deadline: float | None) -> Event:
    """What is waited for. Raises _LateError where it does not come in time; what itself times out is another thing."""
    if deadline is None:
        return await waited
    clock = asyncio.timeout_at(deadline)
    try:
        async with clock:
            return await waited
    except TimeoutError:
        if clock.expired():
            raise _LateError from None
        raise


async def answered(agent: ExtensibleAgent, question: Question, given: Mapping[str, Any]) -> Reply[Any]:
    """The reply of an agent to one question. Raises as `Asks.ask`."""
    asking = Asking.of(agent, question, given)
    async with aclosing(asking.events()) as events:
        async for _ in events:
            pass
    return await asking.finished()


def event_stream(
    agent: ExtensibleAgent, question: Question, given: Mapping[str, Any], whole: list[Any] | None = None
) -> AsyncGenerator[Event, None]:
    """The events of the same; the reply is put into `whole` at their end. Raises as `Asks.events`."""
    asking = Asking.of(agent, question, given)

    async def events() -> AsyncGenerator[Event, None]:
        async with aclosing(asking.events()) as source:
            async for event in source:
                yield event
        made = await asking.finished()
        if whole is not None:
            whole.append(made)

    return released_events(events())


def _limits(given: object) -> Limits:
    """What the reply may use. Raises SettingsError."""
    if given is None or isinstance(given, Limits):
        return given or Limits()
    said = f"limits must be a Limits, not {shown(given)}."
    raise SettingsError(said, hint="Write limits=Limits(calls=5).", name="limits")


def _history(given: object) -> list[Message]:
    """The earlier conversation. Raises BadMessagesError."""
    if isinstance(given, Reply):
        return cast("Reply[Any]", given).history
    if given is None:
        return []
    if isinstance(given, str | bytes | Mapping | Message) or not isinstance(given, Iterable):
        said = f"history must be an earlier Reply or a list of messages, not {shown(given)}."
        hint = "Write history=reply, or history=reply.history."
        raise BadMessagesError(code="400", message=said, hint=hint)
    return messages_named("history", cast("Iterable[object]", given))


def _check_said(new: Sequence[Message]) -> None:
    """Raises BadMessagesError: the question has neither words nor files."""
    last = new[-1] if new else None
    if last is None or last.role != USER or not is_wordless(last):
        return
    words = "".join(item.text or "" for item in last.items)
    said = f"question must have words or files, and {shown(words)} has none."
    raise BadMessagesError(code="400", message=said, hint='Write ask("What is tea?").')
