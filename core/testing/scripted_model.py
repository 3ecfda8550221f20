"""A model that plays a script in this process: no socket, no weights."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from core.errors import ModelServiceError
from core.llm.base import BaseChatModel
from core.messages.events import (
    CallDelta,
    CallStarted,
    Event,
    MessageFinished,
    MessageStarted,
    ReasoningDelta,
    TextDelta,
)
from core.messages.message import Usage
from core.testing.script import Reply, arguments_text, pieces

if TYPE_CHECKING:
    from core.llm.request import ChatRequest, Stream

Turn: TypeAlias = "str | Reply | Sequence[Event] | ModelServiceError | Callable[[ChatRequest], Turn]"


class ScriptedModel(BaseChatModel):
    """Answers each question with the next turn of its script; the last one is repeated.

        model = ScriptedModel("Hello!", Reply(calls=[("calculator", {"expression": "1+1"})]), "2")

    Args:
        turns: A text, a `Reply`, events as they are, an error to raise, or a function of the request that returns one.
        cfg: As for any model. A model made from a dict finds its turns under `script`; without any it repeats the
            question.
        native: Whether tools reach it as functions (else in the prompt, as its `calling` template writes them).

    Attributes:
        requests: What it was asked, after all layers.
        closed: How many replies were left before their end.
    """

    model_type = "scripted"
    default_model = "scripted"

    def __init__(
        self, *turns: Turn | Mapping[str, Any], cfg: Mapping[str, Any] | None = None, native: bool = True
    ) -> None:
        given = list(turns)
        if len(given) == 1 and isinstance(given[0], Mapping):  # from a registry, with the settings alone
            cfg = given.pop()  # pyright: ignore[reportAssignmentType]
        super().__init__(cfg)
        self.native_calls = native
        self.requests: list[ChatRequest] = []
        self.closed = 0
        self._turns: list[Turn] = [*(cfg or {}).get("script", ()), *given] or [_repeated]

    async def _stream(self, request: ChatRequest) -> Stream:
        self.requests.append(request)
        turn = self._turns.pop(0) if len(self._turns) > 1 else self._turns[0]
        if callable(turn):
            turn = turn(request)
        if isinstance(turn, ModelServiceError):
            raise turn
        reply = Reply(text=turn) if isinstance(turn, str) else turn
        finished = False
        try:
            if isinstance(reply, Reply):
                async for event in _played(reply, len(self.requests)):
                    yield event
            else:
                for event in reply:  # pyright: ignore[reportUnknownVariableType]
                    yield event  # pyright: ignore[reportReturnType]
            finished = True
        finally:
            self.closed += not finished


async def _played(reply: Reply, number: int) -> Stream:
    events: list[Event] = [MessageStarted()]
    events += [ReasoningDelta(piece) for piece in pieces(reply.reasoning)]
    events += [TextDelta(piece) for piece in pieces(reply.text)]
    for index, (name, arguments) in enumerate(reply.calls):
        call_id = f"call_{number}_{index}"
        events += [CallStarted(call_id, name), CallDelta(call_id, arguments_text(arguments))]
    usage = (
        Usage(prompt_tokens=reply.usage[0], completion_tokens=reply.usage[1], total_tokens=sum(reply.usage))
        if reply.usage
        else None
    )
    events.append(MessageFinished("calls" if reply.calls else "stop", usage))
    await asyncio.sleep(reply.delay)
    for event in events:
        yield event
        await asyncio.sleep(reply.pace)


def _repeated(request: ChatRequest) -> str:
    return f"You said: {request.messages[-1].get_text_content()}"
