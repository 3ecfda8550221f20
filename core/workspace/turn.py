"""One turn of a conversation: waits for the model and the documents, then lets the agent speak."""

from __future__ import annotations

from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from core.agents.conversation import append_system
from core.errors import DocumentError, LimitReachedError, ModelServiceError, NotFoundError
from core.generated_files import store_generated
from core.messages.events import ReasoningDelta, TextDelta, ToolFinished
from core.messages.message import USER
from core.reading.attachments import for_model, kind_of, takes
from core.reading.senses import can_be_read, is_heard, stead_of, told_in_stead
from core.runs.log import AskedFor
from core.storage.base import file_ids
from core.workspace.steering import Saved

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence
    from pathlib import Path

    from core.languages import Lang
    from core.llm.base import BaseChatModel
    from core.messages.events import Event
    from core.messages.message import Message
    from core.models.model_name import ModelName
    from core.models.pool import ModelLoader
    from core.reading.senses import Stead
    from core.runs.log import TurnsSummarised
    from core.storage.base import DocumentRecord, FileRecord, StoredMessage
    from core.workspace.services import OwnerServices

_DOCUMENTS_WITHIN = 300.0
_LOOKED_UP = "ask_documents"


@dataclass(frozen=True, slots=True)
class Who:
    """Which models answer a question, each by its name and by what gets it ready.

    Args:
        second: One that answers beside it.
    """

    name: ModelName
    loader: ModelLoader
    second: tuple[ModelName, ModelLoader] | None = None

    def asked(self, lang: Lang, *, goes_on: bool = False) -> AskedFor:
        """What another process would have to know to write the reply; arguments as of `AskedFor`."""
        beside = self.second[0].as_json() if self.second is not None else None
        return AskedFor(lang, self.name.as_json(), beside, goes_on)


class Turn:
    """The answerer of one turn. All waiting is inside the run, where it can be seen and stopped.

    Args:
        loader: The model of this turn to its end, whatever is chosen meanwhile; it is told how the model did.
        thread: The turns that the conversation begins with, as they are stored.
        needed: The documents that came with the question: it waits for these, and fails if none of them can be read.
    """

    def __init__(
        self,
        services: OwnerServices,
        conversation_id: str,
        *,
        loader: ModelLoader,
        thread: Sequence[StoredMessage],
        needed: Sequence[str],
        lang: Lang,
    ) -> None:
        self._services = services
        self._conversation_id = conversation_id
        self._intake = services.intake
        self._loader = loader
        self._thread = thread
        self._needed = needed
        self._lang: Lang = lang

    async def stream(self, messages: list[Message], **kwargs: Any) -> AsyncGenerator[Event | TurnsSummarised, None]:
        """The reply as events.

        Raises:
            ParlourError: The model or a document cannot be had, or the reply failed.
        """
        services, loader = self._services, self._loader
        async with AsyncExitStack() as held:
            held.enter_context(loader.in_use())
            # The document first: what is wrong with it is known sooner than a model is fetched.
            await self._read()
            model = await loader.ready()
            steads = await self._read_for(model, messages)
            missing = await self._missing()
            saved = Saved.of(await services.stores.conversations.settings(self._conversation_id))
            short, made = await services.remembering.fit(
                services.stores.summaries,
                self._thread,
                messages,
                model,
                self._lang,
                holding=loader.in_use,
                shortened=saved.history,
            )
            if made is not None:
                yield made
            here = await self._here(short, held)
            given = for_model(short, model, here, self._lang, steads)
            if steads and (told := self._told(here, steads)):
                given = append_system(given, told)
            try:
                async with (
                    services.agents.inside(services, self._conversation_id, model) as agent,
                    aclosing(agent.stream(given, **kwargs)) as events,
                ):
                    async for event in events:
                        if not loader.has_answered and isinstance(event, (TextDelta, ReasoningDelta)):
                            loader.answered()
                        yield await store_generated(_telling(event, missing), services.stores.files)
            except ModelServiceError as error:
                loader.failed(error)
                raise
            except LimitReachedError as error:
                if error.words_key == "call_limit":
                    loader.answered()  # each of those calls
                raise
            loader.answered()

    async def _read(self) -> None:
        """Wait for the documents of the question. What cannot be read does not hold up the others."""
        records = await self._intake.wait(self._conversation_id, self._needed, _DOCUMENTS_WITHIN)
        if records and not any(record.library_id for record in records):
            raise _troubles(records)

    async def _read_for(self, model: BaseChatModel, messages: Sequence[Message]) -> dict[str, Stead]:
        """Read what the conversation has for senses that the model lacks; what stands for each file, by its id."""
        here = await self._records([message for message in messages if message.role == USER])
        lacked = {
            key: file for key, file in here.items() if (kind := kind_of(file)) != "document" and not takes(model, kind)
        }
        if not lacked:
            return {}
        hears = any(map(is_heard, lacked.values())) and await self._services.dictation.file_way() is not None
        documents = self._services.stores.documents
        known = {record.file_id for record in await documents.list(self._conversation_id)}
        for key, file in lacked.items():
            # What failed or was called off is read again where its owner asks for it.
            if key not in known and can_be_read(file, hears=hears):
                await self._intake.add(self._conversation_id, file, is_let_in=True)
        mine = [one for one in await documents.list(self._conversation_id) if one.file_id in lacked]
        read = await self._intake.wait(self._conversation_id, [one.id for one in mine], _DOCUMENTS_WITHIN)
        return {one.file_id: stead for one in read if (stead := stead_of(one)) is not None}

    def _told(self, here: Mapping[str, tuple[FileRecord, Path]], steads: Mapping[str, Stead]) -> str:
        """What the model is told of files whose text it gets in their stead."""
        read = (file for key, (file, _) in here.items() if steads.get(key) == "text")
        return told_in_stead([(file.name, kind) for file in read if (kind := kind_of(file)) != "document"], self._lang)

    async def _missing(self) -> list[dict[str, Any]]:
        """What the answer does not know: the question's documents that failed, and the rest of what is read in part."""
        reading = self._intake.being_read(self._conversation_id)
        records = await self._intake.records(self._needed)
        unread = [record for record in records if record.status in {"failed", "cancelled"}]
        in_part = await self._intake.known_in_part(self._conversation_id)
        each = {record.id: record for record in [*unread, *reading, *in_part]}
        return [self._told_of(record) for record in each.values()]

    def _told_of(self, record: DocumentRecord) -> dict[str, Any]:
        progress = self._intake.progress(record.id)
        pages, total = (progress.pages, progress.total) if progress is not None else (0, None)
        if record.status == "cancelled" and record.library_id is not None:
            known = {name: (record.facts or {}).get(name) for name in ("pages", "total")}
            return {"name": record.name, "status": record.status, "found": True, **known}
        return {"name": record.name, "status": record.status, "pages": pages, "total": total}

    async def _here(self, messages: Sequence[Message], held: AsyncExitStack) -> dict[str, tuple[FileRecord, Path]]:
        """The files that messages name, as files of this machine for as long as they are `held`."""
        found: dict[str, tuple[FileRecord, Path]] = {}
        for file_id in file_ids(messages):
            with suppress(NotFoundError):
                found[file_id] = await held.enter_async_context(self._services.stores.files.local(file_id))
        return found

    async def _records(self, messages: Sequence[Message]) -> dict[str, FileRecord]:
        """What is known of the files that messages name."""
        found: dict[str, FileRecord] = {}
        for file_id in file_ids(messages):
            with suppress(NotFoundError):
                found[file_id] = await self._services.stores.files.record(file_id)
        return found


def _troubles(records: Sequence[DocumentRecord]) -> DocumentError:
    """Why a question cannot be answered from its documents: an error, those of the others beside it."""
    first, *others = map(_trouble, records)
    if others:
        first.details["beside"] = [{"key": one.words_key, "details": one.details} for one in others]
    return first


def _trouble(record: DocumentRecord) -> DocumentError:
    """Why a question cannot be answered from a document: the error that its row keeps, to be raised again."""
    if record.status == "reading":
        hint = "Ask again in a while."
        return DocumentError(f"{record.name} is still being read.", hint=hint, key="document_reading", name=record.name)
    if record.status == "cancelled":
        text = f"Reading {record.name} was called off."
        return DocumentError(text, hint="Try again.", key="document_cancelled", name=record.name)
    error = record.error or {}
    again = DocumentError(str(error.get("message", "")), hint=str(error.get("hint", "")), key=str(error.get("key", "")))
    again.details = dict(error.get("details") or {})
    return again


def _telling(event: Event, missing: list[dict[str, Any]]) -> Event:
    """What was found in documents, with what could not be looked into: the page says so beside it."""
    if not isinstance(event, ToolFinished) or event.message.name != _LOOKED_UP:
        return event
    known = {one["name"] for one in missing}
    unsearched = (event.message.extra or {}).get("unsearched") or ()  # where nothing was found, of all files
    missing = [*missing, *(one for one in unsearched if one["name"] not in known)]
    if not missing:
        return event
    extra = {**(event.message.extra or {}), "left_out": missing}
    return replace(event, message=event.message.model_copy(update={"extra": extra}))
