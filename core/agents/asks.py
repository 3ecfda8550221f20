"""Asking for a `Reply`: `ask`, `aask`, `events` and `partials`, of an agent and of a session with one."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from core.bridge.cancellation import released
from core.bridge.closing import closed_within
from core.bridge.sync import run
from core.messages.marks import set_marks
from core.tools.run_context import RETRIES

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
    from os import PathLike

    from typing_extensions import TypeForm

    from core.agents.asking import History
    from core.agents.mapping import Question
    from core.agents.reply import Reply
    from core.messages.events import Event
    from core.tools.approval import Ask, Guard, Policy
    from core.tools.run_state import Limits

Output = TypeVar("Output")
_PAUSE = 0.05  # seconds between two partial values: what is still written is read again from its beginning


@dataclass(frozen=True, slots=True)
class Partial(Generic[Output]):
    """An output that is still being written.

    Args:
        value: What there is of it, as JSON values; `None` before anything is.
        output: The same as the type that was asked for, once it fits; a later one may have more in it.
        done: Whether it is whole, and checked.
    """

    value: Any
    output: Output | None = None
    done: bool = False


class Asks:
    """Answers questions with replies. What `ask` is told, `aask`, `events` and `partials` take as well.

    `question` is a text, a message, or a list of messages. By keyword: `output_type` (what `Reply.output` shall be: a
    pydantic model, a dataclass, a TypedDict, `Literal`, `list[...]`, a union, or a function that is called with what
    the model writes), `output_retries` (how often an answer that does not fit goes back to the model, 2 by default),
    `deps` (for the program's own tools, instructions and checks, in their `RunContext`), `limits` (a `Limits`),
    `history` (an earlier `Reply`, or messages), `files` (paths and addresses that belong to the question), and
    `approval`, `lang`, `progress` and what tools take, as of `Agent.stream`.
    """

    @overload
    def ask(
        self,
        question: Question,
        *,
        output_type: TypeForm[Output],
        output_retries: int = RETRIES,
        deps: object = None,
        limits: Limits | None = None,
        history: History | None = None,
        files: Sequence[str | PathLike[str]] | None = None,
        approval: Guard | Policy | Ask | None = None,
        **kwargs: Any,
    ) -> Reply[Output]: ...
    @overload
    def ask(
        self,
        question: Question,
        *,
        output_type: Callable[..., Awaitable[Output]],
        output_retries: int = RETRIES,
        deps: object = None,
        limits: Limits | None = None,
        history: History | None = None,
        files: Sequence[str | PathLike[str]] | None = None,
        approval: Guard | Policy | Ask | None = None,
        **kwargs: Any,
    ) -> Reply[Output]: ...
    @overload
    def ask(
        self,
        question: Question,
        *,
        output_type: Callable[..., Output],
        output_retries: int = RETRIES,
        deps: object = None,
        limits: Limits | None = None,
        history: History | None = None,
        files: Sequence[str | PathLike[str]] | None = None,
        approval: Guard | Policy | Ask | None = None,
        **kwargs: Any,
    ) -> Reply[Output]: ...
    @overload
    def ask(
        self,
        question: Question,
        *,
        output_type: None = None,
        output_retries: int = RETRIES,
        deps: object = None,
        limits: Limits | None = None,
        history: History | None = None,
        files: Sequence[str | PathLike[str]] | None = None,
        approval: Guard | Policy | Ask | None = None,
        **kwargs: Any,
    ) -> Reply[str]: ...
    def ask(self, question: Question, **options: Any) -> Reply[Any]:
        """Ask, and wait for the reply. Inside of `async def` that holds up the loop: `await aask(...)` does not.

        Raises:
            OutputError: The answer is not of the type that was asked for, also after it was sent back.
            LimitReachedError: The reply would have used more than `limits` say; its `reply` is what there is.
            SettingsError: An argument is misspelt, or makes no sense.
            BadMessagesError: The question is none.
            ParlourError: The reply cannot be made.
        """
        return run(self._answered(question, options))

    @overload
    async def aask(
        self,
        question: Question,
        *,
        output_type: TypeForm[Output],
        output_retries: int = RETRIES,
        deps: object = None,
        limits: Limits | None = None,
        history: History | None = None,
        files: Sequence[str | PathLike[str]] | None = None,
        approval: Guard | Policy | Ask | None = None,
        **kwargs: Any,
    ) -> Reply[Output]: ...
    @overload
    async def aask(
        self,
        question: Question,
        *,
        output_type: Callable[..., Awaitable[Output]],
        output_retries: int = RETRIES,
        deps: object = None,
        limits: Limits | None = None,
        history: History | None = None,
        files: Sequence[str | PathLike[str]] | None = None,
        approval: Guard | Policy | Ask | None = None,
        **kwargs: Any,
    ) -> Reply[Output]: ...
    @overload
    async def aask(
        self,
        question: Question,
        *,
        output_type: Callable[..., Output],
        output_retries: int = RETRIES,
        deps: object = None,
        limits: Limits | None = None,
        history: History | None = None,
        files: Sequence[str | PathLike[str]] | None = None,
        approval: Guard | Policy | Ask | None = None,
        **kwargs: Any,
    ) -> Reply[Output]: ...
    @overload
    async def aask(
        self,
        question: Question,
        *,
        output_type: None = None,
        output_retries: int = RETRIES,
        deps: object = None,
        limits: Limits | None = None,
        history: History | None = None,
        files: Sequence[str | PathLike[str]] | None = None,
        approval: Guard | Policy | Ask | None = None,
        **kwargs: Any,
    ) -> Reply[str]: ...
    async def aask(self, question: Question, **options: Any) -> Reply[Any]:
        """As `ask`, for asynchronous code; cancelling it stops the reply."""
        with released():
            return await self._answered(question, options)

    def events(self, question: Question, **options: Any) -> AsyncGenerator[Event, None]:
        """The events of the reply as they come; `fold` makes a `Reply` of them. Closing it stops the reply.

        Args:
            question: As of `ask`.
            options: As of `ask`.

        Raises:
            SettingsError: An argument is misspelt, or makes no sense.
            ParlourError: As of `ask`, while the events are read.
        """
        return self._event_stream(question, options)

    def partials(
        self, question: Question, output_type: TypeForm[Output], **options: Any
    ) -> AsyncGenerator[Partial[Output], None]:
        """An output while it is written: at most 20 times a second what there is, at last the whole, checked.

        Args:
            question: As of `ask`.
            output_type: As of `ask`.
            options: The other keywords of `ask`.

        Raises:
            ParlourError: As of `ask`, while they are read.
        """
        return closed_within(self._partials(question, output_type, options))

    # -- what is behind it ------------------------------------------------------------------------------------------

    async def _answered(self, question: Question, options: Mapping[str, Any]) -> Reply[Any]:
        """The reply."""
        raise NotImplementedError(f"{type(self).__name__} must define _answered.")

    def _event_stream(
        self, question: Question, options: Mapping[str, Any], whole: list[Any] | None = None
    ) -> AsyncGenerator[Event, None]:
        """The events; the reply that they make is put into `whole` at their end."""
        raise NotImplementedError(f"{type(self).__name__} must define _event_stream.")

    async def _partials(
        self, question: Question, output_type: Any, options: Mapping[str, Any]
    ) -> AsyncGenerator[Partial[Any], None]:
        from core.agents.output import OutputType

        kind, whole = OutputType.of(output_type), list[Any]()
        pieces: list[str] = []
        told, due = None, 0.0
        events = self._event_stream(question, {**options, "output_type": output_type}, whole)
        async with aclosing(events) as source:
            async for event in source:
                text = _growing(pieces, event)
                if text is None or monotonic() < due:
                    continue
                value, output = (text, text) if kind is None else kind.partial(text)
                if value is not None and value != told:
                    told, due = value, monotonic() + _PAUSE
                    yield Partial(value, output)
        if whole:
            output = whole[0].output
            text = "".join(pieces)
            yield Partial(text if kind is None else kind.partial(text)[0], output, done=True)


def _growing(pieces: list[str], event: Event) -> str | None:
    """The text of the open message, where the event adds to it."""
    if event.kind == "message_started":
        pieces.clear()
    if event.kind == "source_cited" and event.marks:
        set_marks([pieces], event)
    elif event.kind != "text_delta":
        return None
    else:
        pieces[:] = ["".join((*pieces, event.text))]
    return pieces[0]
