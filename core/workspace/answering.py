"""Puts together what answers owners: what reads, runs tools and writes replies, and the workspaces that use it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Final, Self

from core.limits import Arrivals, Slots
from core.models.own_models import AllModels
from core.rag.grown import shelves_at
from core.reading.indexing import maker_in
from core.reading.intake import Intake
from core.reading.senses import AGREED
from core.runs.beside import Beside, FollowUps, Titles
from core.runs.claim_check import ClaimChecker
from core.runs.history_summary import HistorySummarizer
from core.runs.lease import BEAT, Sharing, this_worker
from core.runs.manager import Runs
from core.runs.redis_feed import feed_at
from core.runs.shared_slots import SharedSlots
from core.storage.places import Places
from core.storage.reading_rows import reader_named
from core.storage.runs import LEASE_SECONDS
from core.toolbox.code_interpreter import CodeInterpreters
from core.toolbox.toolbox import Toolbox
from core.workspace.assistants import Assistants
from core.workspace.dictation import Dictation
from core.workspace.judging import Judgings
from core.workspace.services import Services
from core.workspace.workspaces import Workspaces

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from core.limits import ConcurrencyLimiter
    from core.messages.message import Message
    from core.models.pool import ActiveModel
    from core.rag.document import Passage
    from core.rag.library import Library
    from core.runs.followed import FollowedRun
    from core.runs.log import Found
    from core.runs.reply import Reply
    from core.settings import Settings
    from core.storage.base import DocumentRecord, FileRecord, RunRecord
    from core.storage.sealing import Sealer
    from core.storage.stores import Stores
    from core.workspace.program import Program
    from core.workspace.workspace import Workspace


_RESTS_AFTER: Final = 60.0
"""Seconds for which one of several Parlours keeps a reply at hand that waits for its owner's word."""


class Answering:
    """All that answers owners, over what is stored; an async context manager.

    Its parts need each other in a circle: documents are read into the index of a workspace, a reply is checked against
    it, and a workspace works with what reads and replies. Here is the one place that closes it.

    Args:
        sealer: Seals the keys that owners typed.
        model: The installation's; it is closed with the others at the end.
        program: A program's own agents, who answer in place of Parlour's assistant.
        changed: Called with (owner, conversation) when something of it changes.

    Attributes:
        services: What every workspace works with.
        workspaces: The pool of them.
    """

    def __init__(
        self,
        settings: Settings,
        stores: Stores,
        sealer: Sealer,
        model: ActiveModel,
        *,
        program: Program | None,
        changed: Callable[[str, str | None], None],
    ) -> None:
        self._installed = model
        self._stores = stores
        self._code = CodeInterpreters(settings, stores, self._sandbox_known)
        self._check = ClaimChecker(by_meaning=settings.retrieval == "hybrid", find=self._find)
        worker = this_worker()
        maker = maker_in(settings, worker, makes=settings.role != "web")
        shelves = shelves_at(settings.database_in(settings.home), reader_named(worker), maker)
        runs = Runs(
            stores,
            worker=worker,
            check=self._checked if settings.check_claims else None,
            at_once=_at_once(settings, stores),
            arrivals=Arrivals(settings.replies_at_once),
            keep_events=settings.keep_events_days * 86_400.0 or None,
            feed=feed_at(settings.redis_address, stores),
            rests_after=_RESTS_AFTER if settings.database is not None or settings.redis_address else None,
            sharing=_sharing(settings) if settings.database is not None else None,
        )
        runs.on_change(changed)
        beside = Beside(runs)
        brings_model = program is not None and program.brings_model
        self.services = Services(
            settings=settings,
            stores=stores,
            intake=Intake(
                stores,
                self._index,
                changed,
                sharing=runs.sharing,
                worker=worker,
                jobs=shelves.jobs if shelves is not None else None,
                most_waiting=settings.documents_waiting,
            ),
            models=AllModels(settings, stores, model, lambda owner: changed(owner, None), fixed=brings_model),
            toolbox=Toolbox(stores, sealer, settings, self._code.of),
            code=self._code,
            runs=runs,
            checking=self._check,
            remembering=HistorySummarizer(on=settings.summarise),
            # A program's own agents are asked nothing but the reader's questions.
            beside=beside,
            titles=Titles(beside, on=settings.titles and program is None),
            follow_ups=FollowUps(beside, on=program is None),
            judging=Judgings(on=settings.check_claims and program is None),
            dictation=Dictation(settings.weights_dir),
            agents=program or Assistants(settings.max_iteration),
            index=self._index,
            changed=changed,
        )
        self.workspaces = Workspaces(
            self.services,
            settings.home / "libraries",
            _indexed,
            shelves=shelves,
        )
        self.services.intake.hear = self._hear
        runs.heard.add(self._heard)
        runs.elsewhere.ended.add(self._ended_elsewhere)
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Begin what goes on in the background: to look for a sandbox, and to sum up."""
        services = self.services
        async with AsyncExitStack() as opening:
            for part in (self.workspaces, self._installed.loader, services.models):
                opening.push_async_callback(part.aclose)
            await opening.enter_async_context(services.code)
            for part in (services.toolbox, services.intake, services.runs):
                opening.push_async_callback(part.aclose)
            await opening.enter_async_context(services.remembering)
            await opening.enter_async_context(services.beside)
            self._open = opening.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        """End runs as interrupted, their partial replies kept; stop reading; close tools, models and workspaces."""
        await self._open.aclose()

    def _heard(self, said: str) -> None:
        if said == "document":
            self.services.intake.shared.room()

    def _ended_elsewhere(self, run: FollowedRun) -> None:
        """What wrote a reply in another process is no longer untried here; what failed here has to answer here."""
        loader, state = self._installed.loader, self._installed.readiness["model"].state
        if run.status == "complete" and run.record.model == loader.label and state != "failed":
            loader.answered()

    def _index(self, owner: str) -> AbstractAsyncContextManager[Library]:
        return self.workspaces.index(owner)

    async def _hear(
        self, record: DocumentRecord, file: FileRecord, path: Path, moved: Callable[[float, float], None]
    ) -> tuple[bytes, str]:
        dictation = self.services.of(record.owner_id).dictation
        agreed = bool((record.facts or {}).get(AGREED))
        return await dictation.hear(file, path, record.conversation_id or "", moved, agreed=agreed)

    async def _find(self, run: RunRecord, sentence: str) -> Sequence[Passage]:
        async with self.workspaces.open(run.owner_id) as workspace:
            return await workspace.conversation(run.conversation_id).find(sentence)

    async def _checked(self, reply: Reply, history: Sequence[Message], record: RunRecord) -> Sequence[Found]:
        """The sentences of a reply, checked, and what is said beside them; none where its owner does without."""
        if not (await self._stores.of(record.owner_id).preferences.get()).check_claims:
            return ()
        return await self._check(reply, history, record)

    def _sandbox_known(self) -> None:
        self._installed.readiness.note("code_interpreter", self._code.as_dict())


def _at_once(settings: Settings, stores: Stores) -> ConcurrencyLimiter:
    """How many replies of an owner are written at the same time: here, or in all processes together."""
    if settings.database is None and not settings.redis_address:
        return Slots(settings.replies_at_once)
    lease, beat = (Sharing().lease, Sharing().beat) if settings.database is not None else (LEASE_SECONDS, BEAT)
    return SharedSlots(partial(Places, stores.database, lasts=lease), settings.replies_at_once, beat=beat)


def _sharing(settings: Settings) -> Sharing:
    writes = settings.role != "web"
    return Sharing(writes=writes, most=settings.replies_per_worker, each=settings.replies_at_once)


async def _indexed(workspace: Workspace, index: Library) -> None:
    await workspace.intake.opened(index)
