"""The composition root: builds stores, model and what answers, and hands them out."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Self

from core.bridge.pool import Listeners
from core.doors.door import Doors
from core.mcp_endpoint import McpAccess
from core.models.pool import ActiveModel, ModelLoader
from core.people.groups import Groups
from core.people.people import People
from core.people.shared_tries import tries_of
from core.readiness import Readiness
from core.resources import descriptors_check, disk_check
from core.shared_limits import beating, limits_of
from core.storage.database import Database, count_opening
from core.storage.installation import check_secret, files_are_here
from core.storage.opening import opened_blobs
from core.storage.ping import DatabaseCheck
from core.storage.sealing import Sealer
from core.storage.stores import Stores
from core.storage.use import Limits, UsualLimits
from core.tools.owner_notes import take_in_notes
from core.workspace.answering import Answering
from core.workspace.chores import Chores
from core.workspace.demonstrations import Demonstrations
from core.workspace.joining import Belongings

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from core.llm.base import BaseChatModel
    from core.settings import Settings
    from core.storage.blobs import Blobs
    from core.workspace.program import Program

_MIB = 1024 * 1024


class Engine:
    """Everything behind the page, on one event loop; an async context manager.

    Args:
        settings: Where things live and which model answers.
        model: A model to use instead of the one that the settings name.
        program: A program's own agents, who answer in place of Parlour's assistant, with the model of the first.
        waits: The weights of a built-in model are fetched and loaded once somebody asks, not at the start.
    """

    stores: Stores
    outward: McpAccess
    doors: Doors
    people: People
    groups: Groups
    belongings: Belongings
    chores: Chores
    demonstrations: Demonstrations

    def __init__(
        self,
        settings: Settings,
        *,
        model: BaseChatModel | None = None,
        program: Program | None = None,
        waits: bool = False,
    ) -> None:
        self.settings = settings
        self.program = program
        self._changes = Listeners[str | None, str | None]()
        self.readiness = Readiness(changed=partial(self._changes, None, None))
        self.readiness.checks["descriptors"] = descriptors_check
        self.readiness.checks["disk"] = partial(disk_check, settings.home)
        model = model if program is None else program.model
        self._loader = ModelLoader(
            (lambda: model) if model is not None else self._make_model, self.readiness, waits=waits
        )
        self._open = AsyncExitStack()
        self.limits = limits_of(settings.redis_address)

    async def __aenter__(self) -> Self:
        """Open the data folder, pick up what a crash left behind, begin to get the model ready.

        Raises:
            SettingsError: The data folder cannot be made, or the secret is not the one of the other Parlours.
            StorageError: The database is damaged, newer than this program, or cannot be used.
        """
        home = self.settings.make_home()
        async with AsyncExitStack() as opening:
            if self.program is not None:
                await opening.enter_async_context(self.program)
            database = await Database.open(self.settings.database_in(home))
            opening.push_async_callback(database.aclose)
            await check_secret(database, self.settings.signing_secret())
            if self.settings.shares_rows_alone and not await files_are_here(database, home / "files"):
                self.readiness.note("files_elsewhere", {"folder": str(home / "files")})
            await opening.enter_async_context(beating(self.limits))
            blobs = await opening.enter_async_context(opened_blobs(self.settings))
            answering = self._build(database, blobs)
            await self.stores.people.list()  # whose machine it is, is asked without asking the database
            await opening.enter_async_context(answering)
            await opening.enter_async_context(self.outward)
            await opening.enter_async_context(self.doors)
            if behind := await count_opening(database, home):
                self.intake.keeps_unneeded = True
                self.readiness.note("database_behind", asdict(behind))
            else:
                await take_in_notes(database, home / "notes")
            await opening.enter_async_context(self.chores)
            if self.settings.has_accounts:
                await opening.enter_async_context(self.belongings)
            self._open = opening.pop_all()
        self.readiness.mark("database", "ready")
        self.readiness.checks["database_there"] = DatabaseCheck(database)
        self._loader.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End runs as interrupted, their partial replies kept; stop reading; close the model and the database."""
        await self._open.aclose()

    @property
    def model(self) -> BaseChatModel | None:
        """The installation's model, once it is made; whether it can answer yet is in `readiness`."""
        return self._loader.model

    @property
    def default_label(self) -> str:
        """What the page calls the installation's model; empty before it is made."""
        return self._loader.label

    def on_change(self, callback: Callable[[str | None, str | None], None]) -> Callable[[], None]:
        """Call back with (owner, conversation) when a run or document of it changes; returns what ends this.

        It is (None, None) when the readiness changes.
        """
        return self._changes.add(callback)

    def _build(self, database: Database, blobs: Blobs) -> Answering:
        """Everything by its parts; nothing of it is begun yet."""
        settings, sealer = self.settings, Sealer(self.settings.signing_secret())
        room = settings.files_mb * _MIB or None
        self.stores = Stores(database, blobs, sealer, quota=room, limits=_limits(settings))
        self.people = People(self.stores.people, tries_of(self.limits))
        self.groups = Groups(self.stores.groups, self.people)
        model = ActiveModel(self._loader, self.readiness)
        answering = Answering(settings, self.stores, sealer, model, program=self.program, changed=self._changes)
        self.services, self.workspaces = answering.services, answering.workspaces
        self.intake, self.runs, self.toolbox = self.services.intake, self.services.runs, self.services.toolbox
        agent = self.services.agents.outside
        self.outward = McpAccess(
            self.stores,
            self.workspaces,
            agent=agent,
            seconds=settings.reply_seconds,
            people=self.people,
            root=settings.root_path,
            secret=settings.signing_secret(),
        )
        self.doors = Doors(self.services, self.workspaces, self.program, self.people)
        self.chores = Chores(self.services, self.workspaces)
        self.demonstrations = Demonstrations(self.workspaces)
        self.belongings = Belongings(self.stores, self.workspaces, self.intake, settings.home, self._changes)
        return answering

    def _make_model(self) -> BaseChatModel:
        from core.models.default_model import default_model

        return default_model(self.settings)


def _limits(settings: Settings) -> UsualLimits:
    each = zip(settings.messages_per_day, settings.tokens_per_month, settings.cost_per_month, strict=True)
    guest, member = (Limits(*most) for most in each)
    return UsualLimits(guest, member)
