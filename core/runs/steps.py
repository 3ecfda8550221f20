"""The steps of a reply: what was thought, what was called, what came of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from core.messages.message import FUNCTION
from core.runs.log import LoggedEvent, StepRecorded
from core.storage.base import AgentThought, new_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from core.messages.message import Message
    from core.storage.base import RunRecord


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Args:
        thought: What was said before the call; without one, what was thought, or else what was answered.
        call: What was called; `None` in the last step, and in what another speaker said in between.
        result: What it gave; `None` while it has not.
    """

    thought: str
    call: Message | None = None
    result: Message | None = None

    @property
    def call_id(self) -> str | None:
        """What ties the call to its result."""
        return _call_id(self.call) if self.call is not None else None


class _Said:
    """What was said since the last step."""

    def __init__(self) -> None:
        self.reasoning: list[str] = []
        self.text: list[str] = []

    def take(self, *, alone: bool) -> str:
        """All of it, and begin anew; the answer of a step without a call counts only where nothing was thought."""
        said = self.reasoning or self.text if alone else self.reasoning + self.text
        self.__init__()
        return "\n\n".join(said)

    def __bool__(self) -> bool:
        return bool(self.reasoning or self.text)


def steps_of(messages: Iterable[Message]) -> list[Step]:
    """The steps of a reply, in order.

    Calls that a model made at the same time are a step each, all with the thought that led to them.
    """
    messages = list(messages)
    results = {_call_id(message): message for message in messages if message.role == FUNCTION}
    steps: list[Step] = []
    said, led_here, beside = _Said(), "", False
    for message in messages:
        if message.role == FUNCTION:
            beside = False
        elif message.function_call is not None:
            led_here = said.take(alone=False) or (led_here if beside else "")
            steps.append(Step(led_here, message, results.get(_call_id(message))))
            beside = True
        else:
            if said.text:  # a message that is followed by another one, not by a call
                steps.append(Step(said.take(alone=True)))
            _note(message, said)
    return [*steps, Step(said.take(alone=True))] if said else steps


class Steps:
    """Says of each step of a growing reply when it is over: each once, in order, without a gap.

    Args:
        recorded: How many were said to be over before, by whoever began the reply.
    """

    def __init__(self, recorded: int = 0) -> None:
        self._recorded = recorded

    def take(self, messages: Iterable[Message], *, ended: bool = False) -> list[StepRecorded]:
        """The steps that are over and were not before; with `ended`, all that are left."""
        steps = steps_of(messages)
        fresh: list[StepRecorded] = []
        for position, step in enumerate(steps[self._recorded :], start=self._recorded + 1):
            over = step.result is not None if step.call is not None else position < len(steps)
            if not (over or ended):
                break
            fresh.append(StepRecorded(position, step.call_id))
        self._recorded += len(fresh)
        return fresh


def ended_steps(messages: Iterable[Message], logged: Sequence[LoggedEvent]) -> list[LoggedEvent]:
    """The steps of a reply that broke off which its events do not say to be over, to come after these events."""
    seq, at = (logged[-1].seq, logged[-1].at) if logged else (0, 0.0)
    fresh = Steps(sum(isinstance(one.event, StepRecorded) for one in logged)).take(messages, ended=True)
    return [LoggedEvent(number, at, step) for number, step in enumerate(fresh, start=seq + 1)]


def thoughts_of(record: RunRecord, messages: Iterable[Message], logged: Sequence[LoggedEvent]) -> list[AgentThought]:
    """The steps of a whole reply as rows.

    Args:
        record: The run that made it.
        logged: Its events, which say when each step was over.
    """
    now = time.time()
    at = {one.event.position: one.at for one in logged if isinstance(one.event, StepRecorded)}
    rows: list[AgentThought] = []
    for position, step in enumerate(steps_of(messages), start=1):
        when = min(record.started_at + at[position], now) if position in at else now
        call = step.call.function_call if step.call is not None else None
        rows.append(
            AgentThought(
                id=new_id(),
                message_id=record.message_id,
                thought=step.thought,
                tool_name=call.name if call is not None else None,
                tool_input=call.arguments if call is not None else None,
                observation=_shown(step.result) if step.result is not None else None,
                position=position,
                created_at=datetime.fromtimestamp(when, UTC),
            )
        )
    return rows


def _note(message: Message, said: _Said) -> None:
    reasoning, text = message.reasoning_content, _shown(message)
    if isinstance(reasoning, str) and reasoning.strip():
        said.reasoning.append(reasoning.strip())
    if text:
        said.text.append(text)


def _shown(message: Message) -> str:
    """The text of a message; what is no text is named by its kind."""
    return "\n".join(item.text or f"[{item.type}]" for item in message.items).strip()


def _call_id(message: Message) -> str:
    return str((message.extra or {}).get("function_id"))
