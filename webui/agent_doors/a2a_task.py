"""Tasks of the A2A protocol: what one message to the agent began, and how far it is."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from core.doors.asked import Asked
from core.errors import ParlourError
from core.messages.events import MessageStarted, TextDelta
from core.messages.message import ASSISTANT, USER, Message
from webui.agent_doors.answering import AgentAnswer, with_note

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from core.messages.events import Event
    from webui.agent_doors.answering import Host

_log = logging.getLogger(__name__)
State: TypeAlias = Literal["submitted", "working", "completed", "failed", "canceled"]
OVER: Final = frozenset({"completed", "failed", "canceled"})
_MOST_TASKS: Final = 500
_MOST_CONVERSATIONS: Final = 200
_MOST_MESSAGES: Final = 200
_UNFORESEEN: Final = "Something unexpected went wrong; the log has the details."


def now() -> str:
    """The time, as the protocol writes it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(slots=True, eq=False)
class Task:
    """One of them.

    Args:
        context: The conversation that it belongs to.
        question: What was asked.
        message: The message as it came, for its history.
    """

    context: str
    question: Message
    message: dict[str, Any]
    id: str = field(default_factory=lambda: token_hex(16))
    artifact: str = field(default_factory=lambda: token_hex(8))
    state: State = "submitted"
    said: str = ""  # why it failed
    text: str = ""
    changed: str = field(default_factory=now)
    work: asyncio.Task[None] | None = None
    _grew: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, state: State | None = None, text: str = "") -> None:
        """Note a new state, or more of the answer; whoever follows is woken."""
        self.state = state or self.state
        self.text += text
        self.changed = now()
        self._grew.set()
        self._grew = asyncio.Event()

    async def follow(self) -> AsyncGenerator[str, None]:
        """More and more of the answer, until it is over."""
        told = 0
        while True:
            grew = self._grew
            if len(self.text) > told:
                more, told = self.text[told:], len(self.text)
                yield more
                continue
            if self.state in OVER:
                return
            await grew.wait()


class Tasks:
    """All of them, the latest kept in memory.

    Args:
        host: Whose agent answers.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._tasks: OrderedDict[str, Task] = OrderedDict()
        self._talks: OrderedDict[str, list[Message]] = OrderedDict()

    @property
    def full(self) -> bool:
        """Whether so many are under way that none more is begun."""
        return sum(one.state not in OVER for one in self._tasks.values()) >= _MOST_TASKS

    def find(self, name: str) -> Task | None:
        """One by its id."""
        return self._tasks.get(name)

    def begin(self, question: Message, message: dict[str, Any], context: str) -> Task:
        """Ask the agent; the reply is made whoever follows it."""
        task = Task(context or token_hex(16), question, message)
        self._tasks[task.id] = task
        while len(self._tasks) > _MOST_TASKS:
            old = next((one for one in self._tasks.values() if one.state in OVER), None)
            if old is None:
                break
            del self._tasks[old.id]
        task.work = asyncio.create_task(self._made(task), name="an A2A task")
        return task

    async def aclose(self) -> None:
        """End what is still asked."""
        working = [one.work for one in self._tasks.values() if one.work is not None and not one.work.done()]
        for one in working:
            one.cancel()
        if working:
            await asyncio.wait(working, timeout=5.0)

    async def _made(self, task: Task) -> None:
        talk = self._talks.get(task.context, [])
        answer = AgentAnswer(self._host, Asked(self._host.name, [*talk, task.question]))
        task.tell("working")
        try:
            await answer.run(_Told(task))
        except asyncio.CancelledError:
            task.tell("canceled")
            raise
        except ParlourError as error:
            task.said = str(error)
            task.tell("failed")
            return
        except Exception:  # noqa: BLE001 - an agent's own code
            _log.exception("An A2A task failed.")
            task.said = _UNFORESEEN
            task.tell("failed")
            return
        whole = with_note(answer)
        if not task.text.strip():
            task.tell(text=whole)
        elif answer.guard is not None and (note := answer.guard.told(answer.lang)):
            task.tell(text=f"\n\n{note}")
        self._keep(task.context, [*talk, task.question, Message(ASSISTANT, whole)])
        task.tell("completed")

    def _keep(self, context: str, talk: list[Message]) -> None:
        self._talks[context] = talk[-_MOST_MESSAGES:]
        self._talks.move_to_end(context)
        while len(self._talks) > _MOST_CONVERSATIONS:
            self._talks.popitem(last=False)


class _Told:
    """Passes the words of a reply on to its task."""

    full = False

    def __init__(self, task: Task) -> None:
        self._task = task
        self._apart = False

    def take(self, event: Event) -> None:
        """Take in an event."""
        if isinstance(event, MessageStarted):
            self._apart = bool(self._task.text)
        elif isinstance(event, TextDelta) and event.text:
            text = f"\n\n{event.text.lstrip()}" if self._apart else event.text
            self._apart = False
            self._task.tell(text=text)

    async def drained(self) -> None:
        """There is always room: a reply has its limit."""


def question_of(texts: list[str]) -> Message:
    """What is asked."""
    return Message(USER, "\n\n".join(texts))
