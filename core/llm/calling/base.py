"""What a calling template promises: tools into a prompt, a reply back into calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from core.llm.request import ChatRequest
    from core.messages.events import Event


class CallReader(Protocol):
    """Reads one reply as it arrives. Any split of the text gives the same reply."""

    calls: int
    """How many calls were found so far."""

    def feed(self, text: str) -> list[Event]:
        """What is certain after more text."""
        ...

    def close(self, *, cut: bool = False) -> list[Event]:
        """The rest, when no more text comes. Where the reply was `cut` off, half a call is never mended."""
        ...


class CallTemplate(Protocol):
    """One way of telling a model about tools."""

    def prepare(self, request: ChatRequest) -> ChatRequest:
        """The request without functions: tools, old calls and their results have become text."""
        ...

    def reader(self, request: ChatRequest) -> CallReader:
        """A reader for the reply to `request` (the one before `prepare`)."""
        ...
