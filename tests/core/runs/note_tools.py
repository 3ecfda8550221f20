"""Tools that change something, and an agent that calls them."""

from __future__ import annotations

import asyncio
from typing import Any

from core.agents.basic import FnCallAgent
from core.testing.script import Reply as Say
from core.testing.scripted_model import ScriptedModel
from core.tools.base import BaseTool

_TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


class Note(BaseTool):
    """Writes notes into a list."""

    name = "write_note"
    description = "Writes a note."
    parameters = _TEXT
    writes = True
    idempotent = False

    def __init__(self, *, destructive: bool = False) -> None:
        super().__init__()
        self.destructive = destructive
        self.written: list[str] = []

    async def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
        self.written.append(self._verify_json_format_args(params)["text"])
        return f"written: {self.written[-1]}"


class Changing(Note):
    """Says of itself what it is now, and tells when it was looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.looked_at = asyncio.Event()

    def wants(self, arguments: Any, lang: Any = "en") -> str:
        self.looked_at.set()
        return "send it away" if self.changed else super().wants(arguments, lang)


class Held(Note):
    """Writes, and then works until it is released."""

    name = "hold_note"

    def __init__(self) -> None:
        super().__init__()
        self.began, self.released = asyncio.Event(), asyncio.Event()

    async def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
        await super().call(params)
        self.began.set()
        await self.released.wait()
        return "held"


def writes(*texts: str, tool: str = "write_note") -> Say:
    """A turn that writes notes, all at once."""
    return Say(calls=[(tool, f'{{"text": "{text}"}}') for text in texts])


def agent_of(tool: BaseTool, *turns: Any, **options: Any) -> FnCallAgent:
    """An agent with one tool and a scripted model."""
    return FnCallAgent([tool], ScriptedModel(*turns), **options)
