"""Replies of the one agent that is served."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from core.agents.conversation import language_of
from core.doors.asked import Asked
from core.doors.guard import DoorGuard
from core.errors import LimitReachedError
from core.llm.ledger import recorded_by
from core.messages.events import MessageFinished, TextDelta
from core.messages.marks import appended
from core.messages.transcript import Transcript
from core.runs.account import Account

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from core.agents.base import Agent
    from core.doors.door import Sink
    from core.languages import Lang
    from core.messages.events import Event
    from core.messages.message import Message
    from core.tools.approval import Policy

AT_ONCE: Final = 8
REPLY_SECONDS: Final = 600.0
_MOST_LETTERS: Final = 2_000_000


@dataclass(slots=True)
class Host:
    """The agent, and how it is served.

    Args:
        agent: It.
        policy: Decides about its calls; what it would ask about is refused, for nobody is there.
        at_once: How many replies are made at the same time; others wait.
        seconds: How long one may take.
    """

    agent: Agent
    policy: Policy
    at_once: int = AT_ONCE
    seconds: float = REPLY_SECONDS
    _places: asyncio.Semaphore | None = field(default=None, init=False)

    @property
    def name(self) -> str:
        """What other programs call it."""
        return self.agent.name or type(self.agent).__name__

    @property
    def about(self) -> str:
        """What it is good at."""
        return self.agent.description or f"Answers questions as {self.name}."

    @property
    def places(self) -> asyncio.Semaphore:
        """Held by each reply that is made."""
        if self._places is None:
            self._places = asyncio.Semaphore(self.at_once)
        return self._places


class AgentAnswer:
    """A reply of the agent, in the shape that the forms of `core.doors` write down.

    Args:
        host: Whose agent it is.
        asked: The question.

    Attributes:
        events: What happened.
        account: What its model calls took.
        reason: Why it ended.
        earlier: Nothing: each question brings its whole conversation.
        guard: Has what was not run.
    """

    def __init__(self, host: Host, asked: Asked) -> None:
        self.asked = asked
        self.events: list[Event] = []
        self.account = Account()
        self.reason = "stop"
        self.lang: Lang = language_of(list(asked.messages))
        self.earlier: tuple[Message, ...] = ()
        self.guard: DoorGuard | None = DoorGuard(host.policy, None, parked=lambda: None)
        self._host = host
        self._letters = 0

    def messages(self) -> list[Message]:
        """The reply so far."""
        return Transcript(self.events).messages()

    async def run(self, sink: Sink) -> None:
        """Make the reply; its events go to `sink`. Being cancelled ends the model and the tools.

        Raises:
            LimitReachedError: It took too long, or became too long.
            ParlourError: The reply failed.
        """
        try:
            with recorded_by(self.account):
                async with asyncio.timeout(self._host.seconds), self._host.places:
                    await self._pump(sink)
        except TimeoutError as error:
            text = f"The reply has taken {round(self._host.seconds / 60)} minutes and was ended."
            raise LimitReachedError(text, hint="Ask for less.", key="time_limit") from error

    async def _pump(self, sink: Sink) -> None:
        agent = copy(self._host.agent)
        agent.extra_generate_cfg = {**agent.extra_generate_cfg, **self.asked.generate}
        stream = agent.stream(list(self.asked.messages), approval=self.guard, lang=self.lang)
        async with aclosing(stream) as events:
            async for event in events:
                self.events.append(event)
                if isinstance(event, TextDelta):
                    self._letters += len(event.text)
                elif isinstance(event, MessageFinished):
                    self.reason = event.reason
                sink.take(appended(event))
                if sink.full:
                    await sink.drained()
                if self._letters > _MOST_LETTERS:
                    raise LimitReachedError("The reply became too long.", hint="Ask for less.", key="length_limit")


class _Told:
    """Takes in a reply of which nothing is sent before its end, and tells of each event.

    Args:
        tell: Is told.
    """

    def __init__(self, tell: Callable[[Event], Awaitable[None]]) -> None:
        self._tell = tell
        self._left: list[Event] = []

    @property
    def full(self) -> bool:
        """Whether there is anything to tell of."""
        return bool(self._left)

    def take(self, event: Event) -> None:
        """The answer keeps its events; this one is told of by `drained`."""
        self._left.append(event)

    async def drained(self) -> None:
        """Tell of what came."""
        for event in self._left:
            await self._tell(event)
        self._left.clear()


async def answered(host: Host, messages: Sequence[Message], tell: Callable[[Event], Awaitable[None]]) -> str:
    """The text of a whole reply, with a sentence on what was not run. Raises as `AgentAnswer.run`.

    Args:
        tell: Is told of each event on the way to it.
    """
    answer = AgentAnswer(host, Asked(host.name, messages))
    await answer.run(_Told(tell))
    return with_note(answer)


def with_note(answer: AgentAnswer) -> str:
    """What the agent said last, and what was not run."""
    from core.agents.reply import last_text

    note = answer.guard.told(answer.lang) if answer.guard is not None else ""
    return "\n\n".join(text for text in (last_text(answer.messages()), note) if text)


def as_any(answer: AgentAnswer) -> Any:
    """For the forms of `core.doors`, which ask nothing of an answer that this one has not."""
    return answer
