"""All runs of the process: starts, finds and stops them, and picks up what a crash left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.messages.message import Message
    from core.runs.log import LoggedEvent
    from core.runs.reply import Reply
    from core.runs.run import Answerer, Run
    from core.storage.base import StoredMessage
    from core.storage.runs import RunStore


class Runs:
    """One live run per conversation."""

    def __init__(self, store: RunStore) -> None:
        raise NotImplementedError

    async def start(
        self,
        owner: str,
        conversation_id: str,
        agent: Answerer,
        *,
        user: Message | None,
        parent_id: str | None,
        history: Sequence[Message],
        model: str = "",
        earlier: Sequence[LoggedEvent] = (),
    ) -> Run:
        """Commit the user's message and the reply's place, then start to answer.

        Raises:
            ConflictError: key "busy": the conversation has a live run.
            NotFoundError: The conversation or parent is not the owner's.
        """
        raise NotImplementedError

    def live(self, conversation_id: str) -> Run | None:
        """The conversation's live run."""
        raise NotImplementedError

    def get(self, owner: str, run_id: str) -> Run:
        """A live run by its id; NotFoundError otherwise."""
        raise NotImplementedError

    async def stop(self, owner: str, conversation_id: str) -> None:
        """Stop the live run and wait until its end is stored."""
        raise NotImplementedError

    async def reply(self, owner: str, message: StoredMessage) -> Reply:
        """What there is of a reply: live, or from the table."""
        raise NotImplementedError

    async def recover(self) -> int:
        """Mark as interrupted what a crash left running; how many there were."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """End all runs as interrupted, their partial replies kept."""
        raise NotImplementedError

    def on_change(self, callback: Callable[[str, str], None]) -> Callable[[], None]:
        """Call back with (owner, conversation) when a run starts or ends; returns what ends this."""
        raise NotImplementedError
