"""The protocol of calling templates, and their table by the names that `fncall_prompt_type` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from core.registry import Entry, Registry

if TYPE_CHECKING:
    from core.llm.request import ChatRequest
    from core.messages.events import Event


class CallReader(Protocol):
    """Parses one reply as it streams; the result does not depend on where chunks are cut."""

    calls: int
    """Calls found so far."""

    def feed(self, text: str) -> list[Event]:
        """The events that more text makes certain."""
        ...

    def close(self, *, cut: bool = False) -> list[Event]:
        """The remaining events; an incomplete call of a reply that was `cut` off is never repaired."""
        ...


class CallTemplate(Protocol):
    """One format of tool calling through the prompt."""

    def prepare(self, request: ChatRequest) -> ChatRequest:
        """The request without functions: tools, past calls and their results as text."""
        ...

    def reader(self, request: ChatRequest) -> CallReader:
        """A reader for the reply to `request` (the one before `prepare`)."""
        ...


TEMPLATES: Registry[type[CallTemplate]] = Registry(
    "calling template",
    {
        "nous": Entry("core.llm.calling.nous:NousTemplate"),
        "qwen": Entry("core.llm.calling.qwen:QwenTemplate"),
        "json_schema": Entry("core.llm.calling.json_schema:JsonSchemaTemplate"),
    },
)
