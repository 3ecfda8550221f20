"""One reply being made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from core.messages.events import Event
    from core.messages.message import Message
    from core.runs.log import LoggedEvent, RunLog
    from core.storage.base import RunStatus


class Answerer(Protocol):
    """Whoever answers: an agent, or something that waits for one first."""

    def stream(self, messages: list[Message], **kwargs: Any) -> AsyncGenerator[Event, None]:
        """The reply as events."""
        ...


class Run:
    """A reply as a task; whoever reads it follows its log."""

    id: str
    owner: str
    conversation_id: str
    message_id: str
    status: RunStatus
    log: RunLog

    def follow(self, after: int = 0) -> AsyncGenerator[LoggedEvent, None]:
        """Everything after number `after`, then what happens, until the end."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Stop; returns when the end is stored."""
        raise NotImplementedError

    def watch(self, callback: Callable[[bool], None]) -> Callable[[], None]:
        """Call back at each event with whether it is urgent; returns what ends this."""
        raise NotImplementedError

    async def wait(self) -> RunStatus:
        """Wait for the end."""
        raise NotImplementedError
