"""What all workspaces work with: stores, and what reads, answers and runs tools for everybody."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from core.errors import NotFoundError, ParlourError
from core.reading.libraries import Libraries
from core.reading.owner_intake import OwnerIntake
from core.storage.conversations import TEMPORARY
from core.storage.preferences import DICTATED
from core.workspace.dictation import OwnerDictation
from core.workspace.judging import OwnerJudging
from core.workspace.lent import Lenders, LentIndices
from core.workspace.steering import OwnerSteering

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from core.languages import Lang
    from core.llm.base import BaseChatModel
    from core.messages.message import Message
    from core.models.model_name import ModelName
    from core.models.own_models import AllModels, OwnerModels
    from core.rag.library import Library
    from core.reading.intake import Intake
    from core.runs.beside import AnsweringModel, Beside, FollowUps, Titles
    from core.runs.claim_check import ClaimChecker
    from core.runs.history_summary import HistorySummarizer
    from core.runs.manager import OwnerRuns, Runs
    from core.runs.run import Run
    from core.settings import Settings
    from core.storage.base import StoredMessage
    from core.storage.documents import DocumentStore
    from core.storage.stores import Stores
    from core.toolbox.code_interpreter import CodeInterpreters, OwnerInterpreter
    from core.toolbox.toolbox import OwnerTools, Toolbox
    from core.workspace.dictation import Dictation
    from core.workspace.judging import Judgings

_LOG = logging.getLogger(__name__)


class Agents(Protocol):
    """Who answers: Parlour's assistant, or a program's own agents. What they give has a method `stream`."""

    @property
    def goes_on(self) -> bool:
        """Whether a reply can be taken up after the results of its calls, and nothing of it is done twice."""
        ...

    @property
    def says_once(self) -> bool:
        """Whether a reply is over with its first message that calls nothing."""
        ...

    def inside(
        self, services: OwnerServices, conversation_id: str, model: BaseChatModel
    ) -> AbstractAsyncContextManager[Any]:
        """Who answers in a conversation, open to the end of an `async with` block."""
        ...

    async def label(
        self,
        services: OwnerServices,
        conversation_id: str,
        thread: Sequence[StoredMessage],
        asked: Sequence[Message],
        model: str,
    ) -> str:
        """What the model is called that answers a question after these turns; `model` is the conversation's."""
        ...

    async def secrets(self) -> list[str]:
        """Every key that they brought with them, for whoever must not repeat it."""
        ...

    async def read_ahead(self, model: BaseChatModel) -> None:
        """Let a model of this process read what first questions begin with."""
        ...

    def outside(
        self, services: OwnerServices, documents: Mapping[str, Sequence[str]]
    ) -> AbstractAsyncContextManager[Any]:
        """Who answers an owner's other programs from these documents, without a conversation.

        Args:
            documents: What each is called, by its id in the index.
        """
        ...


@dataclass(frozen=True, slots=True)
class Services:
    """Built once, by the engine.

    Args:
        settings: What a reply may take.
        stores: What is kept of owners.
        code: Runs the code of conversations.
        checking: Tells whether passages bear a sentence out.
        remembering: Sums up what a model cannot read any more.
        beside: Asks models for what is small, beside the replies.
        titles: Names conversations after their first exchange.
        follow_ups: Proposes questions after a reply.
        dictation: Turns recordings into text.
        judging: Has models judge the sentences of replies.
        agents: Who answers.
        index: Opens the index of an owner's documents, for an `async with` block.
        changed: Called with (owner, conversation) when something of it changes.
    """

    settings: Settings
    stores: Stores
    intake: Intake
    models: AllModels
    toolbox: Toolbox
    code: CodeInterpreters
    runs: Runs
    checking: ClaimChecker
    remembering: HistorySummarizer
    beside: Beside
    titles: Titles
    follow_ups: FollowUps
    dictation: Dictation
    judging: Judgings
    agents: Agents
    index: Callable[[str], AbstractAsyncContextManager[Library]]
    changed: Callable[[str, str | None], None]

    def of(self, owner: str) -> OwnerServices:
        """What one owner's workspace works with."""
        return OwnerServices(self, owner)

    def shelves(self, whose: str) -> tuple[Libraries, DocumentStore]:
        """The libraries and documents of somebody, for what lends them to others."""
        services = self.of(whose)
        return services.libraries, services.stores.documents

    async def warm_up(self) -> None:
        """Load what the first question would wait for otherwise, about half a second of work. It can be left out."""
        await self.toolbox.wake()
        await asyncio.to_thread(_load)

    async def read_ahead(self) -> None:
        """As soon as the installation's model is there, let a small one of this process read what questions begin with.

        The first word of a first question comes sooner then. It can be left out, and cancelled at any moment.
        """
        try:
            loader = self.models.pool.default.loader
            await loader.wanted.wait()  # nothing is fetched for this alone
            model = await loader.ready()
            if model.in_process and model.small:
                await self.agents.read_ahead(model)
        except ParlourError as error:
            _LOG.info("Nothing was read ahead: %s", error)


class OwnerServices:
    """What one owner's workspace and conversations work with; nothing of it can name another owner's.

    It holds nothing open.

    Attributes:
        installation: What a reply may take, and what else the installation is set to.
        stores: What is kept of the owner.
        remembering: Sums up what a model cannot read any more.
        agents: Who answers.
    """

    def __init__(self, every: Services, owner: str) -> None:
        self._every = every
        self.owner = owner
        self.installation = every.settings
        self.stores = every.stores.of(owner)
        self.remembering = every.remembering
        self.agents = every.agents

    # Each is made when it is asked for: a program's question to a model needs few of them.

    @cached_property
    def intake(self) -> OwnerIntake:
        """The owner's documents, on their way into the index."""
        return OwnerIntake(self._every.intake, self.stores)

    @cached_property
    def runs(self) -> OwnerRuns:
        """The owner's replies, as they are made."""
        return self._every.runs.of(self.owner)

    @cached_property
    def models(self) -> OwnerModels:
        """Which model answers the owner."""
        return self._every.models.of(self.owner)

    @cached_property
    def tools(self) -> OwnerTools:
        """The owner's tools, and what was chosen about them."""
        return self._every.toolbox.of(self.owner)

    @cached_property
    def code(self) -> OwnerInterpreter:
        """Runs the code of the owner's conversations."""
        return self._every.code.of(self.owner)

    @cached_property
    def steering(self) -> OwnerSteering:
        """Instructions, parameters and tools of the owner's conversations."""
        return OwnerSteering(self.stores)

    @cached_property
    def dictation(self) -> OwnerDictation:
        """Turns the owner's recordings into text."""
        return OwnerDictation(self._every.dictation, self.stores, self.models)

    @cached_property
    def judging(self) -> OwnerJudging:
        """Has models judge the sentences of the owner's replies."""
        return OwnerJudging(self._every.judging, self._every.beside, self.stores, self.runs, self.changed)

    def after(self, run: Run, model: AnsweringModel, lang: Lang, name: ModelName) -> Run:
        """The reply, after whose end its model is asked for a title and for questions, where they are wanted.

        Args:
            name: The model's: it was used, once it has written the reply.
        """
        for asked in (self._every.titles, self._every.follow_ups):
            asked.begin(self.stores, run, model, lang, self.changed)
        self.later(self._judged(run, model), "judging")
        self.note_model(run, name, run.conversation_id)
        self.later(self._dictated(run), "the account of what was dictated")
        return run

    async def _judged(self, run: Run, model: AnsweringModel) -> None:
        """A whole reply is judged by its model, where its owner wants that for all of them."""
        if await run.wait() == "complete" and run.stored:
            await self.judging.after(run, model)

    async def _dictated(self, run: Run) -> None:
        """What was dictated for the question stands in the account of its reply."""
        try:
            if await self.stores.settings.get(DICTATED):
                await self.dictation.note_in(run)
        except ParlourError as error:
            _LOG.info("Calls for dictation are not noted in a reply: %s", error)

    def note_model(self, run: Run, name: ModelName, conversation_id: str) -> None:
        """After the end of a run, remember its model as one that was used.

        Args:
            conversation_id: Where its reply is shown.
        """
        self.later(self._noted(run, name, conversation_id), "a model that was used")

    async def _noted(self, run: Run, name: ModelName, conversation_id: str) -> None:
        """Remember the model of a reply that did not fail; a temporary conversation leaves no trace here either."""
        try:
            if await run.wait() == "error" or not run.stored:
                return
            if not (await self.stores.conversations.settings(conversation_id)).get(TEMPORARY):
                await self.models.notes.note_used(name)
        except NotFoundError:
            _LOG.debug("A conversation was deleted before its model was noted.")
        except ParlourError as error:
            _LOG.info("It is not remembered which model wrote a reply: %s", error)

    def later(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Let something go on beside all else, until the process ends; a page that waits for more waits for it too."""
        self._every.beside.begin(self.stores, work, name)

    @property
    def is_adding(self) -> bool:
        """Whether a title or a question may still come to a conversation by itself."""
        return self._every.beside.is_busy(self.stores)

    def changed(self, conversation_id: str | None = None) -> None:
        """Tell whoever shows it that something of a conversation changed, or of all that the owner has."""
        self._every.changed(self.owner, conversation_id)

    @cached_property
    def lent(self) -> LentIndices:
        """What others share with the owner."""
        return LentIndices(self.stores, Lenders(self._every.index, self._every.shelves))

    @property
    def libraries(self) -> Libraries:
        """The owner's named libraries."""
        return Libraries(self.stores, intake=self.intake, index=self.index, changed=self.changed)

    def index(self) -> AbstractAsyncContextManager[Library]:
        """The index of the owner's documents, open to the end of an `async with` block. Raises StorageError."""
        return self._every.index(self.owner)

    @asynccontextmanager
    async def index_for(
        self, documents: Collection[str], names: Mapping[str, Sequence[str]] | None = None
    ) -> AsyncGenerator[Library | None]:
        """The index; `None` where there are no documents to look into, so that nothing is opened for them.

        Args:
            names: What these documents are called, by id, where that may be something else than in the index.
        """
        if not documents:
            yield None
            return
        async with self.index() as library:
            yield _called(library, names or {})

    @asynccontextmanager
    async def within_reach(self, conversation_id: str) -> AsyncGenerator[tuple[Library | None, Sequence[str]]]:
        """The index that a conversation is answered from, and the ids of its documents that are within reach.

        Raises:
            StorageError: The index cannot be opened.
        """
        reach = await self.stores.documents.reach(conversation_id)
        async with self.lent.joined(reach) if reach.lent else self.index_for(reach.own) as library:
            if await self.intake.restored(conversation_id, reach.own):
                again = await self.stores.documents.reach(conversation_id)
                reach = replace(reach, own=again.own, names=again.names)
            yield _called(library, reach.names), reach.documents


def _called(library: Library | None, names: Mapping[str, Sequence[str]]) -> Library | None:
    """The index, to be read alone, with these names of documents, whatever others call the same bytes."""
    if library is None or not names:
        return library
    from core.rag.joined import JoinedLibrary  # brings the document readers with it

    return JoinedLibrary(library, names=names)


def _load() -> None:
    """In a thread: of the event loop each of these would take a tenth of a second, or several on a busy machine."""
    import_module("core.agents.assistant")  # brings the document readers with it
    from core.rag import scope
    from core.tools import arguments

    scope.make_ready()
    arguments.make_ready()
    import_module("core.llm.tokens").qwen_encoding()
