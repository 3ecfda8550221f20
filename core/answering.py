"""Who answers in a conversation: waits for the model and the documents, then lets the assistant speak."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from core.attachments import for_model
from core.errors import ModelServiceError, NotFoundError
from core.made_items import kept
from core.storage.base import file_ids

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
    from pathlib import Path

    from core.agents.assistant import Assistant
    from core.attachments import Lang
    from core.intake import Intake
    from core.llm.base import BaseChatModel
    from core.messages.events import Event
    from core.messages.message import Message
    from core.models.loading import ModelLoader
    from core.storage.base import FileRecord
    from core.storage.files import FileStore

_DOCUMENTS_WITHIN = 300.0


class Answering:
    """The answerer of one turn. All waiting is inside the run, where it can be seen and stopped.

    Args:
        owner: Whose conversation it is.
        agent: Makes the assistant with a model, once that and the documents are there.
        loader: The model of this turn to its end, whatever is chosen meanwhile; it is told how the model did.
        intake: Where documents are being read.
        files: Where attachments are.
        needed: The documents that came with the question: it waits for these, and fails if one cannot be read.
        lang: The page's language.
    """

    def __init__(  # noqa: PLR0913 - what a turn needs
        self,
        owner: str,
        *,
        agent: Callable[[BaseChatModel], Awaitable[Assistant]],
        loader: ModelLoader,
        intake: Intake,
        files: FileStore,
        needed: Sequence[str],
        lang: Lang,
    ) -> None:
        self._owner = owner
        self._agent = agent
        self._loader = loader
        self._intake = intake
        self._files = files
        self._needed = needed
        self._lang: Lang = lang

    async def stream(self, messages: list[Message], **kwargs: Any) -> AsyncGenerator[Event, None]:
        """The reply as events.

        Raises:
            ParlourError: The model or a document cannot be had, or the reply failed.
        """
        with self._loader.in_use():
            async with aclosing(self._answer(messages, **kwargs)) as events:
                async for event in events:
                    yield event

    async def _answer(self, messages: list[Message], **kwargs: Any) -> AsyncGenerator[Event, None]:
        # The document first: what is wrong with it is known sooner than a model is fetched.
        await self._intake.wait(self._owner, self._needed, _DOCUMENTS_WITHIN)
        model = await self._loader.ready()
        agent = await self._agent(model)
        given = for_model(messages, model, await self._here(messages), self._lang)
        try:
            async with aclosing(agent.stream(given, **kwargs)) as events:
                async for event in events:
                    yield await kept(event, self._owner, self._files)
        except ModelServiceError as error:
            self._loader.failed(error)
            raise
        self._loader.answered()

    async def _here(self, messages: Sequence[Message]) -> dict[str, tuple[FileRecord, Path]]:
        found: dict[str, tuple[FileRecord, Path]] = {}
        for file_id in file_ids(messages):
            try:
                found[file_id] = await self._files.get(self._owner, file_id)
            except NotFoundError:
                continue
        return found
