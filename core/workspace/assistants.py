"""Parlour's own answer to who answers: an assistant with the owner's tools, documents and libraries."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from core.agents.assistant import Assistant
    from core.llm.base import BaseChatModel
    from core.workspace.services import OwnerServices


class Assistants:
    """One assistant for each reply.

    Args:
        max_iteration: How often it may ask the model for one reply.
    """

    def __init__(self, max_iteration: int) -> None:
        self._max_iteration = max_iteration

    @asynccontextmanager
    async def inside(
        self, services: OwnerServices, conversation_id: str, model: BaseChatModel
    ) -> AsyncGenerator[Assistant]:
        """With the tools of a conversation, and all documents within its reach. Raises ParlourError."""
        from core.agents.assistant import Assistant  # brings the document readers with it

        tools = await services.tools.for_model(conversation_id, small=model.small)
        async with services.within_reach(conversation_id) as (library, documents):
            yield Assistant(
                tools,
                model,
                library=library,
                documents=documents,
                attached=partial(services.intake.attached, conversation_id),
                max_iteration=self._max_iteration,
            )

    async def secrets(self) -> list[str]:
        """None: what the assistant is used with, its owner or the installation has."""
        return []

    @asynccontextmanager
    async def outside(self, services: OwnerServices, documents: Sequence[str]) -> AsyncGenerator[Assistant]:
        """With the owner's tools but those that run code: without a conversation there is nothing to run it in."""
        from core.agents.assistant import Assistant

        model = await (await services.models.loader()).ready()
        offered = await services.tools.for_model("", small=model.small)
        tools = [tool for tool in offered if not tool.runs_code]
        async with services.index_for(documents) as library:
            yield Assistant(tools, model, library=library, documents=documents, max_iteration=self._max_iteration)
