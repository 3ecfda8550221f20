"""Follows what a tab shows and paints it: at most 15 frames a second, one at least each second.

A frame is plain values for the same components each time; what did not change costs next to nothing. (A
component update would cost five times as much, and so would an empty one.)
"""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from core.errors import NotFoundError, ParlourError
from core.models.model_name import INSTALLED, MODEL, ModelName
from core.readiness import Readiness
from core.runs.beside import proposed
from core.storage.base import History
from core.storage.preferences import FORMATTED
from core.workspace.comparing import Comparison, second_model
from core.workspace.steering import SECOND_MODEL
from webui.histories import REFRESH, Histories
from webui.panels.catalog import PANELS, Scene
from webui.panels.chosen import chosen_before
from webui.panels.history import history_html, states_of
from webui.panels.toolbar import Switched, switched
from webui.panels.top import speakers
from webui.render.comparing import Compared
from webui.render.conversation import Rendered, conversation_entries, text_length
from webui.render.documents import held_as
from webui.render.reply import waits_for

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence

    from core.engine import Engine
    from core.rag.document import ReadingProgress
    from core.runs.manager import Live
    from core.runs.reply import Reply
    from core.storage.base import ConversationRecord, DocumentRecord, NamedLibrary, StoredMessage
    from core.workspace.judging import JudgingState
    from core.workspace.queue import Waiting
    from core.workspace.workspace import Workspace
    from webui.panels.top import Speakers, State
    from webui.views import View, Views, Watched

_log = logging.getLogger(__name__)
_Made = TypeVar("_Made")

_APART = 1 / 15
# A frame is the unit of cost: from the fifth tab on that is painted, each gets fewer. Tools and ends do not wait.
_EACH = 0.014
_LONGEST_APART = 0.6
_KEEP_ALIVE = 1.0
_WHILE_READING = 0.3  # how far a document has come is news of its own, a few times a second
_KEPT = 4_000  # rendered turns, for all tabs
_SLIDES = 60.0  # seconds after which "today" may mean others
# What takes longer is made in a thread: everybody else's page waits for the loop.
_ON_LOOP = 0.05
_LETTERS = 50_000  # of a conversation that was read anew: at worst a microsecond each
_THREADS = 2
_WARNED = {"database_behind": "ready.behind", "files_elsewhere": "ready.files_elsewhere"}
"""What an engine noted at its start and whoever runs it should read."""


class Frame(NamedTuple):
    """What the page shows: the entries of the conversation, and the markup of each panel by its name."""

    chat: list[Any]
    panels: dict[str, str]


@dataclass(slots=True)
class _Shown:
    """What a tab shows, as read from the stores; read again only when something changed."""

    conversation_id: str = ""
    history: History = field(default_factory=History)
    current: ConversationRecord | None = None
    thread: Sequence[StoredMessage] = ()
    replies: dict[str, Reply] = field(default_factory=dict[str, "Reply"])
    documents: list[DocumentRecord] = field(default_factory=list["DocumentRecord"])
    libraries: Sequence[NamedLibrary] = ()  # that it uses
    lost: Sequence[str] = ()  # ids of those that it is to use and that are not shared any more
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])  # of this conversation alone
    versions: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])  # of turns that have any
    waiting: Sequence[Waiting] = ()  # for the end of the reply
    model: ModelName | None = None  # of this conversation alone
    comparison: Comparison | None = None
    second_label: str = ""  # of the model that answers beside it
    answers: ModelName = INSTALLED
    readiness: Readiness = field(default_factory=Readiness)  # of the model that answers
    speakers: Speakers | None = None  # of a program
    # How far the judgements of replies have come; `None` where models judge none.
    judging: dict[str, JudgingState | None] | None = None
    formatted: bool = False  # whether questions are shown as Markdown
    follow_ups: tuple[str, ...] = ()  # questions proposed after the last reply
    switched: Switched | None = None  # what the chips of the composer show
    fresh: bool = True  # not painted yet
    seconds: float = 0.0  # of CPU, for the entries of the last frame
    hears: bool = False  # whether the model takes recordings
    moved: int = 0  # how often another Parlour had changed something when it was read

    def play(self, demo: Watched | None) -> None:
        """What a demonstration has come to."""
        if demo is not None:
            self.thread = demo.player.thread()
            told = ((turn, one.id) for turn, one in enumerate(self.thread) if one.role == "assistant")
            self.replies = {one: demo.player.reply(turn) for turn, one in told}

    @property
    def second(self) -> StoredMessage | None:
        """The reply beside the one that is shown, if any."""
        return self.comparison.second if self.comparison is not None else None


class _Drawn(NamedTuple):
    """A list of conversations as a tab has it: what it was made from, and its markup."""

    listed: History
    marks: tuple[Any, ...]
    markup: str


class Frames:
    """Paints tabs.

    Args:
        engine: Where conversations and replies come from.
        hidden: As of `Histories`.
    """

    def __init__(self, engine: Engine, views: Views, hidden: Callable[[str], Collection[str]] = lambda _: ()) -> None:
        self._engine = engine
        self._views = views
        self._rendered = Rendered(_KEPT)
        self._histories = Histories(others=engine.stores.database.others, hidden=hidden)
        self._drawn: WeakKeyDictionary[View, _Drawn] = WeakKeyDictionary()
        self._followers = 0
        self._versions = count(time.time_ns())  # none is like one of an earlier process
        # Of its own: the threads that everything shares may all be busy with documents.
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="parlour-frames")
        views.on_change(self._histories.changed)

    async def follow(self, view: View) -> AsyncGenerator[Frame | None, None]:
        """The frames of a tab, until there is nothing more to come or a newer follower takes over.

        A follower that is relieved ends with `None`, nothing to paint: Gradio repeats what a generator yielded last
        when it ends, and an old frame would cover the newer follower's.
        """
        if view.resting:
            return
        view.generation += 1
        mine = view.generation
        view.wake_up(stale=True)  # an older follower wakes, sees that it is old, and leaves
        view.followers += 1
        self._followers += 1
        watched, shown, painted = _Watched(view), _Shown(), False
        try:
            # Open as long as it is painted, so that a frame need not open it.
            async with (
                self._engine.workspaces.open(view.owner) as workspace,
                view.painting,
            ):  # the last frame of an older follower was handed over
                while mine == view.generation:
                    view.wake.clear()
                    view.urgent.clear()
                    shown = await self._now(workspace, view, shown)
                    if shown.conversation_id != view.conversation_id:  # the tab turned to another one meanwhile
                        continue
                    run = _follow_live(workspace, view, shown, watched)
                    frame = await self._frame(workspace, view, shown, run, mine)
                    if frame is None:
                        continue
                    painted = True
                    self._engine.runs.arrivals.shown(view.owner, view)
                    yield frame
                    if not view.wake.is_set() and not self._waits(workspace, view, shown):
                        return
                    news = _WHILE_READING if _readings(workspace, shown) else _KEEP_ALIVE
                    await _until_next(view, apart(self._followers), _news_of(view.demo, news, apart(self._followers)))
                if painted:
                    yield None
        finally:
            watched.turn_to()
            view.followers -= 1
            self._followers -= 1

    async def _now(self, workspace: Workspace, view: View, shown: _Shown) -> _Shown:
        """What the tab shows, read again where it may have changed."""
        if view.wanted_demo:
            await self._watch(view)
        moved = self._histories.moved(view.owner)
        if view.stale or moved != shown.moved:
            shown = await self._read(workspace, view)
            shown.moved = moved
        await self._read_around(workspace, view, shown)
        shown.play(view.demo)
        return shown

    async def _watch(self, view: View) -> None:
        """Turn to the demonstration that the tab's address names; to none where it is not there."""
        wanted, view.wanted_demo = view.wanted_demo, ""
        if self._engine.program is not None or view.conversation_id:
            return
        try:
            view.watch(await self._engine.demonstrations.opened(wanted))
        except ParlourError as error:
            _log.info("A demonstration cannot be played: %s", error)

    async def _read_around(self, workspace: Workspace, view: View, shown: _Shown) -> None:
        """What stands around the conversation, from memory: the others, and the model."""
        shown.history = await self._histories.of(workspace, archived=view.archived)
        await self._views.replies_unread.refresh(view.owner, REFRESH)
        name = shown.model if shown.conversation_id else view.model
        shown.readiness = (await workspace.models.chosen(name)).readiness
        shown.hears = await workspace.accepts_audio(name)
        if shown.comparison is not None:
            shown.second_label = (await workspace.models.chosen(shown.comparison.model)).loader.label
        shown.answers = name if name is not None else await workspace.models.usual()

    async def _read(self, workspace: Workspace, view: View) -> _Shown:
        """What stands in the tables: read when it may have changed, not for each frame."""
        shown = await (self._opened(workspace, view) if view.demo is None else self._watched(view))
        program = self._engine.program
        shown.speakers = await speakers(program, workspace.conversation(shown.conversation_id), shown.thread)
        if program is not None:
            return shown
        if shown.current is not None:
            folder = shown.current.folder_id
            shown.switched = await switched(workspace, shown.settings, folder, shown.documents, shown.lost)
        elif not shown.conversation_id:
            shown.switched = await switched(workspace, view.draft, view.folder or None, (), shown.lost)
        else:  # it is being made
            shown.switched = Switched()
        return shown

    async def _watched(self, view: View) -> _Shown:
        """What stands around a demonstration; its turns come with each frame."""
        view.stale = False
        async with self._engine.demonstrations.workspace() as kept:
            documents = await kept.documents.list(view.shown_id)
        # They were read when it was recorded: that they are read once more here is nobody's concern.
        return _Shown(documents=[one for one in documents if one.status == "ready"])

    async def _opened(self, workspace: Workspace, view: View) -> _Shown:
        view.stale = False
        wanted = view.conversation_id
        shown = _Shown(wanted)
        if not wanted:
            return await self._chosen_before(workspace, view, shown)
        try:
            opened = await workspace.documents.opened(wanted)
            shown.current, shown.thread, shown.documents = opened.conversation, opened.thread, opened.documents
            shown.libraries, shown.versions = opened.libraries, opened.versions
            shown.lost = await workspace.libraries.lost_by(wanted)
            shown.waiting = await workspace.queue(wanted).list()
            conversation = workspace.conversation(wanted)
            shown.settings = opened.settings
            shown.model = ModelName.read(shown.settings.get(MODEL))
            if SECOND_MODEL in shown.settings:
                shown.comparison = await conversation.comparing.now()
            if shown.thread:
                shown.follow_ups = proposed(shown.settings, shown.thread[-1].id)
            for message in shown.thread[_anchor(view, shown.thread) :]:
                if message.role == "assistant":
                    shown.replies[message.id] = await workspace.runs.reply(message)
            if shown.second is not None:
                shown.replies[shown.second.id] = await workspace.runs.reply(shown.second)
            shown.formatted = bool(await workspace.stores.settings.get(FORMATTED, default=False))
            shown.judging = await workspace.judging.states(shown.replies)
        except NotFoundError:  # deleted meanwhile, or an address from somewhere else
            _log.debug("A tab shows a conversation that is not there.")
            if self._views.is_being_created(view.owner, wanted):
                return shown
            if view.conversation_id == wanted:
                view.show("")
            return _Shown()
        return shown

    async def _chosen_before(self, workspace: Workspace, view: View, shown: _Shown) -> _Shown:
        """What was chosen before the first question."""
        second = second_model(view.draft) if SECOND_MODEL in view.draft else None
        shown.comparison = Comparison(second) if second is not None else None
        if view.libraries:
            known = [*await workspace.libraries.list(), *(one.library for one in await workspace.libraries.lent())]
            shown.libraries = [one for one in known if one.id in view.libraries]
            shown.lost = await workspace.libraries.lost_among(view.libraries)
        return shown

    async def _frame(
        self, workspace: Workspace, view: View, shown: _Shown, run: Live | None, mine: int
    ) -> Frame | None:
        """The next frame, or `None` where the follower is relieved or the tab turned to another conversation."""
        if mine != view.generation:  # reading took a while
            return None
        chat = await self._chat(workspace, view, shown, run)
        if mine != view.generation or shown.conversation_id != view.conversation_id:
            return None
        return self._paint(workspace, view, shown, run, chat)

    async def _chat(self, workspace: Workspace, view: View, shown: _Shown, run: Live | None) -> list[Any]:
        """The entries of the conversation, made in a thread where that takes so long that others would wait."""
        heavy = shown.seconds > _ON_LOOP or (
            shown.fresh and text_length(shown.thread[_anchor(view, shown.thread) :], shown.replies) > _LETTERS
        )
        shown.fresh = False
        replies = {one: reply.snapshot() if heavy else reply for one, reply in shown.replies.items()}
        second, question = shown.second, shown.comparison.question if shown.comparison is not None else ""
        make = partial(
            conversation_entries,
            shown.thread,
            replies,
            words=view.words,
            window=view.window,
            anchor=view.anchor,
            documents=shown.documents,
            readings=_readings(workspace, shown),
            preparing=dict(workspace.intake.preparing()),
            held_up=held_as(workspace.intake.held_up(), keeps=self._keeps(view)),
            versions=shown.versions,
            free=run is None,
            cast=shown.speakers.cast if shown.speakers is not None else (),
            mentions=[name for name, _ in shown.speakers.mentions] if shown.speakers is not None else (),
            rendered=self._rendered,
            judging=shown.judging,
            formatted=shown.formatted,
            model=shown.readiness["model"],
            compared=Compared(question, second, replies[second.id]) if second is not None else None,
        )
        make_timed = partial(_timed, make)
        (chat, _), shown.seconds = (
            await asyncio.get_running_loop().run_in_executor(self._threads, make_timed) if heavy else make_timed()
        )
        return chat

    def _paint(self, workspace: Workspace, view: View, shown: _Shown, run: Live | None, chat: list[Any]) -> Frame:
        current, live = view.conversation_id, workspace.runs.live_conversations()
        unread = self._views.unread(view.owner, current)
        scene = Scene(
            view.words,
            shown.readiness,
            current,
            _title(view, shown),
            empty=not shown.thread,
            state=self._state(view, shown, run),
            ended=_ended(shown),
            waits_for=waits_for(run.reply()) if run is not None else "",
            asking=shown.replies[run.message_id].asking if run is not None else (),
            hears=shown.hears,
            model=shown.answers,
            second=shown.second_label,
            libraries=shown.libraries,
            waiting=shown.waiting,
            coming=run is not None or self._engine.chores.sending.is_sending(view.owner),
            speakers=shown.speakers,
            history=self._history(workspace, view, shown, live, unread),
            follow_ups=shown.follow_ups,
            switched=shown.switched,
            demo=view.demo,
            role=workspace.role or "",
            may_add=self._engine.people.may(workspace.owner, "own"),
            chosen=chosen_before(view),
            unfit=view.unfit,
        )
        return Frame(chat, {panel.name: panel.draw(scene) for panel in PANELS})

    def _history(
        self, workspace: Workspace, view: View, shown: _Shown, live: Collection[str], unread: Collection[str]
    ) -> str:
        """The list of conversations, rendered anew only where something of it changed: it is in every frame."""
        listed, asking, trouble = shown.history, asking_of(workspace, live), workspace.tools.servers.trouble
        day, warned = int(time.time() // _SLIDES), self._warned(view)
        marks = (
            view.conversation_id,
            frozenset(live),
            frozenset(unread),
            frozenset(asking),
            trouble,
            day,
            view.words.lang,
            warned,
        )
        known = self._drawn.get(view)
        # The same list is the same object until a conversation changes.
        if known is not None and known.listed is listed and known.marks == marks:
            return known.markup
        markup = history_html(
            listed,
            view.conversation_id,
            states_of(live, unread, asking),
            view.words,
            trouble=trouble,
            warned=warned,
            version=str(next(self._versions)),
            signs_in=workspace.role is None and self._engine.settings.has_accounts,
        )
        self._drawn[view] = _Drawn(listed, marks, markup)
        return markup

    def _warned(self, view: View) -> str:
        """Why conversations, files or search by meaning may be missing, for whoever runs Parlour: it names places."""
        if not self._keeps(view):
            return ""
        notes = self._engine.readiness.notes
        told = [view.words(said, **notes[name]) for name, said in _WARNED.items() if name in notes]
        here, others = self._engine.intake.differing
        if others:
            told.append(view.words("ready.models_differ", here=here, others=", ".join(others)))
        return reduce(view.words.line, told) if told else ""

    def _keeps(self, view: View) -> bool:
        return view.owner in self._engine.stores.people.keepers

    def _state(self, view: View, shown: _Shown, run: Live | None) -> State:
        if run is not None:
            return "stopping" if view.stopping else "running"
        view.stopping = False
        return "error" if _ended(shown) == "error" else "idle"

    def _waits(self, workspace: Workspace, view: View, shown: _Shown) -> bool:
        """Whether anything may still change by itself that this tab shows."""
        preparing = workspace.intake.preparing()
        return (
            bool(workspace.runs.live_conversations())
            or (view.demo is not None and view.demo.player.is_playing)
            or workspace.services.is_adding
            or self._engine.chores.sending.is_sending(view.owner)
            or shown.readiness["model"].state == "loading"
            or self._views.is_being_created(view.owner, view.conversation_id)
            or any(document.status == "reading" or document.id in preparing for document in shown.documents)
        )


def _title(view: View, shown: _Shown) -> str:
    if view.demo is not None:
        return view.demo.demonstration.about.title
    if view.conversation_id or not view.folder:
        return shown.current.title if shown.current else ""
    folder = next((one.name for one in shown.history.folders if one.id == view.folder), "")
    return view.words("top.untitled_in", folder=folder) if folder else ""


def _news_of(demo: Watched | None, latest: float, apart: float) -> float:
    """Seconds until there is something to paint: a demonstration that is played knows when."""
    then = demo.player.wait() if demo is not None else None
    return latest if then is None else min(latest, max(apart, then))


def _follow_live(workspace: Workspace, view: View, shown: _Shown, watched: _Watched) -> Live | None:
    """Take in what is being written, and be woken by it; gives the run of the conversation itself."""
    run = workspace.runs.live(view.conversation_id)
    beside = workspace.runs.live(shown.second.conversation_id) if shown.second is not None else None
    watched.turn_to(run, beside)
    shown.replies.update({one.message_id: one.reply() for one in (run, beside) if one is not None})
    return run


def asking_of(workspace: Workspace, live: Collection[str]) -> list[str]:
    """The conversations in which a tool waits to be allowed."""
    runs = ((one, workspace.runs.live(one)) for one in live)
    return [one for one, run in runs if run is not None and run.reply().asking]


def _readings(workspace: Workspace, shown: _Shown) -> dict[str, ReadingProgress]:
    """How far the documents are that are being read now."""
    reading = (document.id for document in shown.documents if document.status == "reading")
    found = ((one, workspace.intake.progress(one)) for one in reading)
    return {one: progress for one, progress in found if progress is not None}


def _timed(make: Callable[[], _Made]) -> tuple[_Made, float]:
    """What is made, and the seconds of CPU that this took."""
    began = time.thread_time()
    return make(), time.thread_time() - began


class _Watched:
    """The runs that wake the tab: none, one, or two that are compared."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._runs: tuple[Live, ...] = ()
        self._leave: list[Callable[[], None]] = []

    def turn_to(self, *runs: Live | None) -> None:
        """Watch these runs, and no others."""
        wanted = tuple(run for run in runs if run is not None)
        if wanted == self._runs:
            return
        for leave in self._leave:
            leave()
        self._runs, self._leave = wanted, [run.log.watch(self._wake) for run in wanted]

    def _wake(self, urgent: bool) -> None:  # noqa: FBT001 - the signature that runs call
        self._view.wake_up(urgent=urgent)


def _ended(shown: _Shown) -> str:
    """The status of the last reply; `complete` where there is none."""
    last = shown.replies.get(shown.thread[-1].id) if shown.thread else None
    return last.status if last is not None else "complete"


def _anchor(view: View, thread: Sequence[StoredMessage]) -> int:
    """Where the window begins.

    It begins with the same turn while the conversation grows, for a sliding one would change every entry in each
    frame; only when it has grown to twice its size does it move.
    """
    farthest = max(0, len(thread) - 2 * view.window + 1)
    start = next((at for at in range(len(thread) - 1, farthest - 1, -1) if thread[at].id == view.anchor), -1)
    if start < 0:
        start = max(0, len(thread) - view.window)
        view.anchor = thread[start].id if thread else None
    return start


def apart(followers: int) -> float:
    """Seconds between two frames of a tab, by how many tabs are painted."""
    return min(max(_APART, followers * _EACH), _LONGEST_APART)


async def _until_next(view: View, apart: float, latest: float) -> None:
    """Wait until there is something new, and then for more of it until `apart` seconds are over, unless it is urgent.

    Ends after `latest` seconds, a second or less: Gradio notices that a page is gone only when it is given a frame.
    """
    began = time.monotonic()
    with suppress(TimeoutError):
        async with asyncio.timeout(latest):
            await view.wake.wait()
        async with asyncio.timeout(apart - (time.monotonic() - began)):
            await view.urgent.wait()
