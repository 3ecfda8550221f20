"""Asks one agent many questions, a limited number at a time; the answers come in order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from core.agents.arguments import check_keywords, check_taken
from core.agents.question_files import check_files
from core.bridge.cancellation import released
from core.bridge.snapshots import as_messages, dumped
from core.errors import BadMessagesError, ParlourError, shown
from core.llm.concurrency import in_order
from core.messages.message import ASSISTANT, USER, Message, Usage
from core.messages.transcript import Transcript
from core.tools.approval import Guard

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.agents.protocol import AgentProtocol
    from core.tools.approval import Ask, Policy

_OF_MAP = ("concurrency", "keep_errors")
_log = logging.getLogger(__name__)

Question: TypeAlias = "str | Mapping[str, Any] | Message | Sequence[Message | dict[str, Any]]"


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply.

    Args:
        messages: All of it: thoughts, calls, results and text.
        usage: Tokens and cost of all its model calls, where they are known.
        seconds: How long it took.
    """

    messages: list[Message]
    usage: Usage | None = None
    seconds: float = 0.0

    @property
    def text(self) -> str:
        """What the agent says at the end, without its calls and thoughts."""
        said = (
            one.get_text_content() for one in reversed(self.messages) if one.role == ASSISTANT and not one.function_call
        )
        return next((text for text in said if text.strip()), "")

    def as_dicts(self) -> list[dict[str, Any]]:
        """The messages as dicts."""
        return dumped(self.messages)


@dataclass(frozen=True, slots=True)
class MapProgress:
    """Progress of `Agent.map`, reported after each question.

    Args:
        place: The index of the question that has just ended, from 0.
        done: How many questions have ended.
        total: How many there are.
        result: Its answer, or the error.
    """

    place: int
    done: int
    total: int
    result: Answer | ParlourError


class AgentFailedError(ParlourError):
    """An agent's own code raised an unexpected exception; the log has the traceback."""


async def map_questions(
    agent: AgentProtocol,
    questions: Sequence[Question],
    *,
    concurrency: int,
    keep_errors: bool = False,
    progress: Callable[[MapProgress], None] | None = None,
    approval: Guard | Policy | Ask | None = None,
    **kwargs: Any,
) -> list[Answer | ParlourError]:
    """The answers, in the order of the questions; `Agent.amap` says what the arguments are."""
    check_keywords(agent, agent.function_map.values(), kwargs, _OF_MAP)
    check_taken(agent, kwargs, _OF_MAP)
    asked = [_read(question, keep_errors=keep_errors) for question in _question_list(questions)]
    guard = Guard.of(approval)
    over = 0

    async def ask(place: int) -> Answer:
        nonlocal over
        result: Answer | ParlourError
        try:
            conversation = asked[place]
            if isinstance(conversation, ParlourError):
                raise conversation
            check_files(conversation)
            result = await ask_agent(agent, conversation, approval=guard, **kwargs)
        except ParlourError as error:
            result = error
        over += 1
        if progress is not None:
            progress(MapProgress(place, over, len(asked), result))
        if isinstance(result, ParlourError):
            raise result
        return result

    with released():
        return await in_order(ask, range(len(asked)), concurrency, keep_errors=keep_errors)


async def ask_agent(agent: AgentProtocol, messages: list[Message], **kwargs: Any) -> Answer:
    """One reply of the agent.

    Raises:
        ParlourError: The reply failed; any other exception of the agent's comes as `AgentFailedError`.
    """
    start, transcript = monotonic(), Transcript()
    try:
        async with aclosing(agent.stream(messages, **kwargs)) as events:
            async for event in events:
                transcript.apply(event)
    except (ParlourError, asyncio.CancelledError):
        raise
    except (Exception, SystemExit) as error:  # an agent's own code: it must not end the other questions
        _log.warning("An agent failed.", exc_info=True)
        raise AgentFailedError(f"The agent failed: {type(error).__name__}: {error}") from error
    return Answer(transcript.messages(), transcript.usage, monotonic() - start)


def _read(question: Question, *, keep_errors: bool) -> list[Message] | BadMessagesError:
    """A question as a conversation, or why it is none. Raises BadMessagesError where errors are not kept."""
    try:
        return conversation_of(question)
    except BadMessagesError as error:
        if not keep_errors:
            raise
        return error


def _question_list(questions: Sequence[Question]) -> list[Question]:
    given: Any = questions
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping | Message):
        return list(cast("Iterable[Question]", given))
    kind = "None" if given is None else type(cast("object", given)).__name__
    hint = 'Give a list, such as ["What is tea?", "And coffee?"].'
    raise BadMessagesError(code="400", message=f"Questions cannot be given as {kind}.", hint=hint)


def conversation_of(question: Question) -> list[Message]:
    """A question as a conversation: it may be a text, a message, or a list of messages.

    Raises:
        BadMessagesError: It is none of these.
    """
    if isinstance(question, str):
        return [Message(USER, question)]
    given: Any = question
    if isinstance(given, Message | Mapping):
        return messages_named("question", cast("list[object]", [given]))
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        said = f"question must be a text, a message or a list of messages, not {shown(given)}."
        raise BadMessagesError(code="400", message=said, hint='Write ask("What is tea?").')
    return messages_named("question", cast("Iterable[object]", given))


def messages_named(name: str, given: Any) -> list[Message]:
    """The messages of an argument of that name.

    Raises:
        BadMessagesError: One of them is none; the error names the argument.
    """
    try:
        return as_messages(given)[0]
    except BadMessagesError as error:
        raise BadMessagesError(code=error.code, message=f"{name}: {error.message}", hint=error.hint) from error
