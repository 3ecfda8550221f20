"""A model that plays a script in this process: no socket, no weights."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from core.llm.base import BaseChatModel
from core.messages.content import ContentItem
from core.messages.events import (
    CallDelta,
    CallStarted,
    Event,
    ItemAdded,
    MessageFinished,
    MessageStarted,
    ReasoningDelta,
    TextDelta,
)
from core.messages.message import Usage
from core.testing.script import Reply, arguments_text, picture_address, pieces, recording_address

if TYPE_CHECKING:
    from core.llm.request import ChatRequest, Stream

Turn: TypeAlias = "str | Reply | Sequence[Event] | Exception | Callable[[ChatRequest], Turn]"


class ScriptedModel(BaseChatModel):
    """Answers each question with the next turn of its script; the last one is repeated.

        model = ScriptedModel("Hello!", Reply(calls=[("calculator", {"expression": "1+1"})]), "2")

    Args:
        turns: A text, a `Reply`, events as they are, an error to raise, or a function of the request that returns one.
            A model made from settings finds them under `script`; without any it repeats the question.
        native: Whether tools reach it as functions (else in the prompt, as its `calling` template writes them).

    Attributes:
        requests: What it was asked, after all layers.
        closed: How many replies were left before their end.
    """

    model_type = "scripted"
    in_process = True
    default_model = "scripted"

    def __init__(self, *turns: Turn | Mapping[str, Any], native: bool = True) -> None:
        cfg = _settings(turns)
        super().__init__(cfg)
        self.native_calls = native
        self.requests: list[ChatRequest] = []
        self.closed = 0
        given = cast("Sequence[Turn]", cfg.get("script", ()) if cfg else turns)
        self._turns: list[Turn] = list(given) or [_repeated]

    async def _stream(self, request: ChatRequest) -> Stream:
        self.requests.append(request)
        turn = self._turns.pop(0) if len(self._turns) > 1 else self._turns[0]
        while callable(turn):
            turn = turn(request)
        if isinstance(turn, Exception):
            raise turn
        reply = Reply(text=turn) if isinstance(turn, str) else turn
        events = _events(reply, len(self.requests)) if isinstance(reply, Reply) else reply
        delay, pace = (reply.delay, reply.pace) if isinstance(reply, Reply) else (0.0, 0.0)
        finished = False
        try:
            await asyncio.sleep(delay)
            if isinstance(reply, Reply) and reply.hang:
                await asyncio.Event().wait()
            for event in events:
                yield event
                await asyncio.sleep(pace)
            finished = True
        finally:
            self.closed += not finished


def _settings(turns: Sequence[object]) -> Mapping[str, Any]:
    """A registry makes a model from one thing alone: the settings."""
    given = turns[0] if len(turns) == 1 else None
    return cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}


def _events(reply: Reply, number: int) -> list[Event]:
    events: list[Event] = [MessageStarted()]
    events += [ReasoningDelta(piece) for piece in pieces(reply.reasoning)]
    events += [TextDelta(piece) for piece in pieces(reply.text)]
    events += [ItemAdded(ContentItem(image=picture_address(picture))) for picture in reply.images]
    if reply.audio:
        events.append(ItemAdded(ContentItem(audio=recording_address(reply.audio))))
    for index, (name, arguments) in enumerate(reply.calls):
        call_id = f"call_{number}_{index}"
        events += [CallStarted(call_id, name), CallDelta(call_id, arguments_text(arguments))]
    usage = None
    if reply.usage:
        asked, answered = reply.usage
        usage = Usage(
            prompt_tokens=asked,
            completion_tokens=answered,
            total_tokens=asked + answered,
            reasoning_tokens=reply.reasoning_tokens,
            cached_tokens=reply.cached_tokens,
        )
    reason = "length" if reply.finish == "length" else "calls" if reply.calls else "stop"
    return [*events, MessageFinished(reason, usage)]


def _repeated(request: ChatRequest) -> str:
    return f"You said: {request.messages[-1].get_text_content()}"
