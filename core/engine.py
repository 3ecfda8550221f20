"""The composition root: builds stores, model, documents, agents and runs, and hands them out."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from dataclasses import asdict
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Self

from core.limits import Slots
from core.mcp_endpoint import McpAccess
from core.models.loading import ModelLoader
from core.models.own_models import AllModels
from core.models.pool import ActiveModel
from core.readiness import Readiness
from core.reading.intake import Intake
from core.resources import descriptors_check, disk_check
from core.runs.afterwards import FollowUps, Titles
from core.runs.beside import Beside
from core.runs.claim_check import ClaimChecker
from core.runs.history_summary import HistorySummarizer
from core.runs.manager import Runs
from core.storage.database import Database, count_opening
from core.storage.sealing import Sealer
from core.storage.stores import Stores
from core.toolbox.code_interpreter import CodeInterpreters
from core.toolbox.toolbox import Toolbox
from core.workspace.assistants import Assistants
from core.workspace.sending import Sending
from core.workspace.services import Services
from core.workspace.temporary import TemporaryConversations
from core.workspace.workspaces import Workspaces

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path
    from types import TracebackType

    from core.llm.base import BaseChatModel
    from core.messages.message import Message
    from core.rag.document import Passage
    from core.rag.library import Library
    from core.runs.log import Checked
    from core.runs.reply import Reply
    from core.runs.resumable import ResumableRun
    from core.runs.run import Run
    from core.settings import Settings
    from core.storage.base import RunRecord
    from core.workspace.program import Program
    from core.workspace.workspace import Workspace

_MIB = 1024 * 1024
_UNUSED_FILES_STAY = 24 * 3600.0


class Engine:
    """Everything behind the page, on one event loop; an async context manager.

    Args:
        settings: Where things live and which model answers.
        model: A model to use instead of the one that the settings name.
        program: A program's own agents, who answer in place of Parlour's assistant, with the model of the first.
    """

    stores: Stores
    runs: Runs
    intake: Intake
    toolbox: Toolbox
    outward: McpAccess
    services: Services
    workspaces: Workspaces
    sending: Sending
    temporary: TemporaryConversations

    def __init__(
        self, settings: Settings, *, model: BaseChatModel | None = None, program: Program | None = None
    ) -> None:
        self.settings = settings
        self.program = program
        self.readiness = Readiness(changed=partial(self._changed, None, None))
        self.readiness.checks["descriptors"] = descriptors_check
        self.readiness.checks["disk"] = partial(disk_check, self.settings.home)
        self._callbacks: list[Callable[[str | None, str | None], None]] = []
        model = model if program is None else program.model
        self._loader = ModelLoader((lambda: model) if model is not None else self._make_model, self.readiness)
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Open the data folder, pick up what a crash left behind, begin to get the model ready.

        Raises:
            SettingsError: The data folder cannot be made.
            StorageError: The database is damaged, newer than this program, or cannot be used.
        """
        home = self.settings.make_home()
        async with AsyncExitStack() as opening:
            if self.program is not None:
                await opening.enter_async_context(self.program)
            database = await Database.open(home / "parlour.db")
            opening.push_async_callback(database.aclose)
            self._build(database, home)
            for service in (self.workspaces, self._loader, self.services.models):
                opening.push_async_callback(service.aclose)
            await opening.enter_async_context(self.services.code)
            for service in (self.toolbox, self.intake, self.runs):
                opening.push_async_callback(service.aclose)
            await opening.enter_async_context(self.services.remembering)
            await opening.enter_async_context(self.services.beside)
            await opening.enter_async_context(self.outward)
            await self._pick_up(database)
            await opening.enter_async_context(self.sending)
            await opening.enter_async_context(self.temporary)
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

    async def warm_up(self) -> None:
        """Load what the first question would wait for otherwise, about half a second of work. It can be left out."""
        await self.toolbox.wake()
        await asyncio.to_thread(_warm_up)

    def on_change(self, callback: Callable[[str | None, str | None], None]) -> Callable[[], None]:
        """Call back with (owner, conversation) when a run or document of it changes; returns what ends this.

        It is (None, None) when the readiness changes.
        """
        self._callbacks.append(callback)

        def leave() -> None:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

        return leave

    # ---- inside

    def _build(self, database: Database, home: Path) -> None:
        """Everything by its parts; nothing of it is begun yet."""
        settings, sealer = self.settings, Sealer(self.settings.signing_secret())
        stores = self.stores = Stores(database, home / "files", sealer, quota=settings.files_mb * _MIB or None)
        models = AllModels(
            settings,
            stores,
            ActiveModel(self._loader, self.readiness),
            self._told,
            fixed=self.program is not None and self.program.brings_model,
        )
        code = CodeInterpreters(settings, stores, self._sandbox_known)
        self.toolbox = Toolbox(stores, sealer, settings, code.of)
        self.intake = Intake(stores, self._index, self._changed)
        self.checking = ClaimChecker(by_meaning=settings.retrieval == "hybrid", find=self._find)
        self.runs = Runs(
            stores,
            check=self._checked if settings.check_claims else None,
            at_once=Slots(settings.replies_at_once),
            keep_events=settings.keep_events_days * 86_400.0 or None,
        )
        self.runs.on_change(self._changed)
        beside = Beside(self.runs)
        self.services = Services(
            settings=settings,
            stores=stores,
            intake=self.intake,
            models=models,
            toolbox=self.toolbox,
            code=code,
            runs=self.runs,
            remembering=HistorySummarizer(on=settings.summarise),
            # A program's own agents are asked nothing but the reader's questions.
            beside=beside,
            titles=Titles(beside, on=settings.titles and self.program is None),
            follow_ups=FollowUps(beside, on=self.program is None),
            agents=self.program or Assistants(settings.max_iteration),
            index=self._index,
            changed=self._changed,
        )
        self.workspaces = Workspaces(self.services, home / "libraries", _indexed)
        self.sending = Sending(self.runs, stores.queued, self.workspaces.open)
        self.temporary = TemporaryConversations(stores.conversations, self.runs, self.workspaces.open)
        self.outward = McpAccess(
            stores,
            self.workspaces,
            agent=self.services.agents.outside,
            seconds=settings.reply_seconds,
        )

    def _index(self, owner: str) -> AbstractAsyncContextManager[Library]:
        return self.workspaces.index(owner)

    async def _find(self, run: RunRecord, sentence: str) -> Sequence[Passage]:
        async with self.workspaces.open(run.owner_id) as workspace:
            return await workspace.conversation(run.conversation_id).find(sentence)

    async def _checked(self, reply: Reply, history: Sequence[Message], record: RunRecord) -> Sequence[Checked]:
        """The sentences of a reply, checked; none where its owner does without."""
        if not (await self.stores.of(record.owner_id).preferences.get()).check_claims:
            return ()
        return await self.checking(reply, history, record)

    async def _resume(self, resumable: ResumableRun) -> Run:
        async with self.workspaces.open(resumable.record.owner_id) as workspace:
            return await workspace.conversation(resumable.record.conversation_id).resume(resumable)

    def _make_model(self) -> BaseChatModel:
        from core.llm.open_model import get_chat_model

        return get_chat_model(self.settings.model_cfg())

    def _sandbox_known(self) -> None:
        self.readiness.note("code_interpreter", self.services.code.as_dict())

    async def _pick_up(self, database: Database) -> None:
        """Look at what is there from before: whether it is the newest, and what a crash left behind."""
        if behind := await count_opening(database, self.settings.home):
            self.intake.keeps_unneeded = True
            self.readiness.note("database_behind", asdict(behind))
        await self.stores.files.delete_unused(time.time() - _UNUSED_FILES_STAY)
        await self.intake.resume()
        await self.runs.watch(self._resume)

    def _told(self, owner: str) -> None:
        self._changed(owner, None)

    def _changed(self, owner: str | None, conversation_id: str | None) -> None:
        for callback in tuple(self._callbacks):
            callback(owner, conversation_id)


async def _indexed(workspace: Workspace, index: Library) -> None:
    await workspace.intake.opened(index)


def _warm_up() -> None:
    import_module("core.agents.assistant")  # brings the document readers with it
    import_module("core.llm.tokens").qwen_encoding()
