"""The composition root: builds stores, model, documents, agents and runs, and hands them out."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

from core import descriptors, disk
from core.limits import Slots
from core.models.choosing import Choosing
from core.models.loading import ModelLoader
from core.models.own_models import Chosen, OwnModels
from core.outward import Outward
from core.readiness import Readiness
from core.reading.attachments import not_taken, takes
from core.reading.indices import Indices
from core.reading.intake import Intake
from core.reading.libraries import Libraries
from core.runs.checking import Checking
from core.runs.manager import Runs
from core.runs.remembering import Remembering
from core.runs.run import as_dict
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from core.storage.documents import DocumentStore
from core.storage.files import FileStore
from core.storage.generations import count_opening
from core.storage.libraries import LibraryStore
from core.storage.model_services import ModelServiceStore
from core.storage.runs import RunStore
from core.storage.sealing import Sealer
from core.storage.summaries import SummaryStore
from core.toolbox.approving import Approving
from core.toolbox.given_files import GivenFiles
from core.toolbox.interpreting import Interpreting
from core.toolbox.toolbox import Toolbox
from core.turns import Turns

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path
    from types import TracebackType

    from core.agents.assistant import Assistant
    from core.errors import ParlourError
    from core.llm.base import BaseChatModel
    from core.rag.attached import Attached
    from core.rag.document import Passage
    from core.rag.library import Library
    from core.reading.attachments import Lang, Named
    from core.runs.run import Run
    from core.settings import Settings
    from core.storage.base import DocumentRecord, FileRecord
    from core.tools.approval import Policy
    from core.tools.base import BaseTool

_MIB = 1024 * 1024
_UNUSED_FILES_STAY = 24 * 3600.0


class Engine:
    """Everything behind the page, on one event loop; an async context manager.

    Args:
        settings: Where things live and which model answers.
        model: A model to use instead of the one that the settings name.
    """

    conversations: ConversationStore
    files: FileStore
    documents: DocumentStore
    runs: Runs
    choosing: Choosing
    intake: Intake
    libraries: Libraries
    toolbox: Toolbox
    outward: Outward

    def __init__(self, settings: Settings, *, model: BaseChatModel | None = None) -> None:
        self.settings = settings
        self.readiness = Readiness(changed=partial(self._changed, None, None))
        self.readiness.checks["descriptors"] = descriptors.told
        self.readiness.checks["disk"] = partial(disk.told, self.settings.home)
        self._callbacks: list[Callable[[str | None, str | None], None]] = []
        self._loader = ModelLoader((lambda: model) if model is not None else self._make_model, self.readiness)
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Open the data folder, pick up what a crash left behind, begin to get the model ready.

        Raises:
            SettingsError: The data folder cannot be made.
            StorageError: The database is damaged, newer than this program, or cannot be used.
        """
        home = self.settings.make_home()
        database = await Database.open(home / "parlour.db")
        async with AsyncExitStack() as opening:
            opening.push_async_callback(database.aclose)
            self.conversations, self.documents = ConversationStore(database), DocumentStore(database)
            self.files = FileStore(database, home / "files", quota=self.settings.files_mb * _MIB or None)
            self._indices = await opening.enter_async_context(self._indices_in(home / "libraries"))
            opening.push_async_callback(self._loader.aclose)
            sealer = Sealer(self.settings.signing_secret())
            services = ModelServiceStore(database, sealer)
            self._models = OwnModels(self.settings, services, Chosen(self._loader, self.readiness), self._told)
            opening.push_async_callback(self._models.aclose)
            self.choosing = Choosing(services, self._models)
            given = GivenFiles(self.conversations, self.documents, self.files)
            self._code = await opening.enter_async_context(Interpreting(self.settings, given, self._sandbox_known))
            self.toolbox = Toolbox.over(database, sealer, self.settings, self._code.interpreter, given)
            opening.push_async_callback(self.toolbox.aclose)
            self.intake = Intake(self.files, self.documents, self.index, self._changed)
            opening.push_async_callback(self.intake.aclose)
            self.libraries = Libraries(
                LibraryStore(database),
                self.documents,
                self.files,
                intake=self.intake,
                index=self.index,
                changed=self._changed,
            )
            self.checking = Checking(by_meaning=self.settings.retrieval == "hybrid", find=self.find)
            check = self.checking if self.settings.check_claims else None
            self.runs = Runs(
                RunStore(database),
                check=check,
                at_once=Slots(self.settings.replies_at_once),
                keep_events=self.settings.keep_events_days * 86_400.0 or None,
            )
            opening.push_async_callback(self.runs.aclose)
            self.runs.on_change(self._changed)
            self.approving = Approving(self.settings, database, self.runs)
            self._turns = Turns(
                self.conversations,
                self.files,
                self.runs,
                intake=self.intake,
                loader=self._models.loader,
                agent=self.agent,
                terms=self.approving.terms,
                remembering=await opening.enter_async_context(
                    Remembering(SummaryStore(database), on=self.settings.summarise)
                ),
            )
            self.outward = await opening.enter_async_context(self._outward(database))
            await self._pick_up(database)
            self._open = opening.pop_all()
        self.readiness.mark("database", "ready")
        self._loader.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End runs as interrupted, their partial replies kept; stop reading; close the model and the database."""
        await self._open.aclose()

    # ---- what there is

    @property
    def model(self) -> BaseChatModel | None:
        """The installation's model, once it is made; whether it can answer yet is in `readiness`."""
        return self._loader.model

    @property
    def default_label(self) -> str:
        """What the page calls the installation's model; empty before it is made."""
        return self._loader.label

    async def chosen(self, owner: str) -> Chosen:
        """The model that answers an owner, with its own readiness. Raises StorageError."""
        return await self._models.of(owner)

    async def warm_up(self) -> None:
        """Load what the first question would wait for otherwise, about half a second of work. It can be left out."""
        await self.toolbox.servers.wake()
        await asyncio.to_thread(_warm_up)

    async def retry_model(self, owner: str) -> None:
        """Try again to fetch and load the model of an owner, after a failure. Raises StorageError."""
        (await self._models.loader(owner)).retry()

    def on_change(self, callback: Callable[[str | None, str | None], None]) -> Callable[[], None]:
        """Call back with (owner, conversation) when a run or document of it changes; returns what ends this.

        It is (None, None) when the readiness changes.
        """
        self._callbacks.append(callback)

        def leave() -> None:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

        return leave

    def index(self, owner: str) -> AbstractAsyncContextManager[Library]:
        """The index of all the owner's documents, open to the end of an `async with` block.

        Raises:
            StorageError: Its folder cannot be used.
        """
        return self._indices.use(owner)

    async def find(self, owner: str, conversation_id: str, sentence: str) -> Sequence[Passage]:
        """What the documents within a conversation's reach say to a sentence. Raises StorageError."""
        documents = await self.documents.within_reach(owner, conversation_id)
        async with self.index(owner) as library:
            return await library.afind(sentence, documents=tuple(documents))

    @asynccontextmanager
    async def agent(
        self, owner: str, conversation_id: str, model: BaseChatModel | None = None
    ) -> AsyncGenerator[Assistant]:
        """Who answers in a conversation: a model with its tools, the conversation's documents and libraries.

        Args:
            owner: Whose conversation it is.
            conversation_id: The conversation.
            model: The owner's model if left out.

        Raises:
            NotFoundError: The conversation is not the owner's.
            ParlourError: The model cannot be had.
        """
        model = model or await (await self._models.loader(owner)).ready()
        tools = await self.toolbox.tools(owner, conversation_id, small=model.small)
        attached = partial(self.intake.attached, owner, conversation_id)
        async with self._within_reach(owner, conversation_id) as (library, documents):
            yield self._assistant(tools, model, library, documents, attached)

    # ---- documents and attachments

    async def check_attachments(self, owner: str, file_ids: Sequence[str]) -> list[dict[str, Any]]:
        """What the model cannot take, to be said before sending.

        Returns:
            Errors as dicts: `key` is `picture_not_taken`, `sound_not_taken` or `video_not_taken`,
            `details` has the file's `name` and the `model`.

        Raises:
            NotFoundError: A file is not the owner's.
        """
        records = [await self.files.record(owner, file_id) for file_id in file_ids]
        return [as_dict(error) for error in await self.not_taken(owner, records)]

    async def not_taken(self, owner: str, files: Sequence[Named]) -> list[ParlourError]:
        """What the owner's model cannot take, one error for each such file; none while no model is loaded."""
        return not_taken(files, (await self._models.loader(owner)).model)

    async def hears(self, owner: str) -> bool:
        """Whether the owner's model takes recordings; false while no model is loaded."""
        model = (await self._models.loader(owner)).model
        return model is not None and takes(model, "sound")

    async def add_document(self, owner: str, conversation_id: str, file: FileRecord) -> DocumentRecord:
        """Take a file into the conversation; it is read in the background.

        Raises:
            NotFoundError: The conversation or file is not the owner's.
        """
        return await self.intake.add(owner, conversation_id, file)

    async def read_again(
        self, owner: str, document_id: str, lang: Lang = "en", *, password: str = ""
    ) -> DocumentRecord:
        """Read a document that failed or was called off once more.

        The question that could not be answered because of it is answered then. With a password it returns once that
        has proved right or wrong.

        Raises:
            NotFoundError: There is none such of this owner.
        """
        return await self._turns.read_again(owner, document_id, lang, password)

    # ---- questions and replies

    async def send(
        self, owner: str, conversation_id: str, text: str, file_ids: Sequence[str] = (), lang: Lang = "en"
    ) -> Run:
        """A user's message, and the run that answers it. What it waits for (model, documents) it waits for inside.

        Raises:
            ParlourError: key `empty_message` or `message_too_long`.
            ConflictError: key `busy`: the conversation is being answered.
            NotFoundError: The conversation or a file is not the owner's.
            NoSpaceError: The disk is full; nothing was stored.
        """
        return await self._turns.send(owner, conversation_id, text, file_ids, lang)

    async def edit(self, owner: str, message_id: str, text: str, lang: Lang = "en") -> Run:
        """A changed question beside the old one, with its files, and the run that answers it. Raises as `send`."""
        return await self._turns.edit(owner, message_id, text, lang)

    async def regenerate(self, owner: str, message_id: str, lang: Lang = "en") -> Run:
        """Another reply beside `message_id` (or to it, where it is a question).

        Raises:
            ConflictError: key `busy`.
            NotFoundError: The message is not the owner's.
        """
        return await self._turns.regenerate(owner, message_id, lang)

    async def continue_(self, owner: str, message_id: str, lang: Lang = "en") -> Run:
        """A reply beside `message_id` that begins with all there is of it and goes on. Raises as `regenerate`."""
        return await self._turns.continue_(owner, message_id, lang)

    async def run_again(
        self, owner: str, message_id: str, call_id: str, arguments: Mapping[str, Any], lang: Lang = "en"
    ) -> Run:
        """A reply beside `message_id` that makes one of its calls with other arguments, and goes on from there.

        What came before that call, and what the other calls of its turn gave, is taken over. Raises as `regenerate`.
        """
        return await self._turns.run_again(owner, message_id, call_id, arguments, lang)

    async def decide(
        self,
        owner: str,
        conversation_id: str,
        call_id: str,
        allowed: bool,  # noqa: FBT001 - the answer
        arguments: Mapping[str, Any] | None = None,
        *,
        always: bool = False,
    ) -> None:
        """Answer the question whether a call may run, as `Approving.decide` does."""
        await self.approving.decide(owner, conversation_id, call_id, allowed, arguments, always=always)

    async def policy(self, owner: str, conversation_id: str | None = None) -> Policy:
        """What runs unasked, what asks, and what never runs. Raises NotFoundError."""
        return await self.approving.policy(owner, conversation_id)

    async def stop(self, owner: str, conversation_id: str) -> None:
        """Stop the conversation's run, if one lives; what there is of the reply stays. Raises NotFoundError."""
        await self.runs.stop(owner, conversation_id)

    async def delete_conversation(self, owner: str, conversation_id: str) -> None:
        """Stop its run and delete it with its messages, runs, documents and the files that nothing else needs.

        Raises:
            NotFoundError: There is none such of this owner.
        """
        await self.stop(owner, conversation_id)
        await self.intake.leave(owner, conversation_id)
        await self._code.forget(owner, conversation_id)
        freed, unread = await self.conversations.delete(owner, conversation_id)
        await self.libraries.put_out(owner, freed, unread)
        self._changed(owner, conversation_id)

    # ---- inside

    def _outward(self, database: Database) -> Outward:
        return Outward(
            database,
            libraries=self.libraries,
            index=self.index,
            agent=self._agent_outside,
            policy=self.policy,
            seconds=self.settings.reply_seconds,
        )

    @asynccontextmanager
    async def _agent_outside(self, owner: str, documents: list[str]) -> AsyncGenerator[Assistant]:
        """Who answers an owner's other programs; without a conversation there is nothing to run code in."""
        model = await (await self._models.loader(owner)).ready()
        tools = [tool for tool in await self.toolbox.tools(owner, "", small=model.small) if not tool.runs_code]
        async with self._with_index(owner, documents) as library:
            yield self._assistant(tools, model, library, documents)

    def _assistant(
        self,
        tools: Sequence[BaseTool],
        model: BaseChatModel,
        library: Library | None,
        documents: Sequence[str],
        attached: Callable[[], Awaitable[Sequence[Attached]]] | None = None,
    ) -> Assistant:
        from core.agents.assistant import Assistant  # brings the document readers with it

        most = self.settings.max_iteration
        return Assistant(tools, model, library=library, documents=documents, attached=attached, max_iteration=most)

    @asynccontextmanager
    async def _within_reach(
        self, owner: str, conversation_id: str
    ) -> AsyncGenerator[tuple[Library | None, Sequence[str]]]:
        """The ids of the documents that a conversation is answered from, and the index that they are in."""
        documents = await self.documents.within_reach(owner, conversation_id)
        async with self._with_index(owner, documents) as library:
            if await self.intake.restored(owner, conversation_id, documents):
                documents = await self.documents.within_reach(owner, conversation_id)
            yield library, documents

    @asynccontextmanager
    async def _with_index(self, owner: str, documents: Sequence[str]) -> AsyncGenerator[Library | None]:
        """The owner's index; `None` where there are no documents to look into, so that nothing is opened for them."""
        if not documents:
            yield None
            return
        async with self.index(owner) as library:
            yield library

    def _make_model(self) -> BaseChatModel:
        from core.llm.open_model import get_chat_model

        return get_chat_model(self.settings.model_cfg())

    def _sandbox_known(self) -> None:
        self.readiness.note("code_interpreter", self._code.as_dict())

    async def _pick_up(self, database: Database) -> None:
        """Look at what is there from before: whether it is the newest, and what a crash left behind."""
        if behind := await count_opening(database, self.settings.home):
            self.intake.keeps_unneeded = True
            self.readiness.note("database_behind", asdict(behind))
        await self.files.delete_unused(time.time() - _UNUSED_FILES_STAY)
        await self.intake.resume()
        await self.runs.watch(self._turns.resume)

    def _told(self, owner: str) -> None:
        self._changed(owner, None)

    def _changed(self, owner: str | None, conversation_id: str | None) -> None:
        for callback in tuple(self._callbacks):
            callback(owner, conversation_id)

    def _indices_in(self, folder: Path) -> Indices:
        async def opened(owner: str, library: Library) -> None:
            await self.intake.opened(owner, library)  # which is made after this

        return Indices(folder, self.settings, opened)


def _warm_up() -> None:
    import_module("core.agents.assistant")  # brings the document readers with it
    import_module("core.llm.tokens").vocabulary_at_hand()
