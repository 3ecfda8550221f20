"""Follows what a tab shows and paints it: at most 15 frames a second, one at least each second.

A frame is plain values for the same five components each time; what did not change costs next to nothing. (A
component update would cost five times as much, and so would an empty one.)
"""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from core.errors import NotFoundError
from core.models.own_models import is_local
from core.readiness import Readiness
from webui.histories import Histories
from webui.hosted import speakers
from webui.panels.approval import ask_html, heard
from webui.panels.history import history_html
from webui.panels.top import top_html
from webui.render.conversation import Rendered, letters, shown
from webui.render.status import status_html

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Sequence

    from core.engine import Engine
    from core.rag.progress import ReadingProgress
    from core.runs.reply import Reply
    from core.runs.run import Run
    from core.storage.base import Conversation, DocumentRecord, NamedLibrary, StoredMessage
    from webui.panels.top import Speakers
    from webui.render.status import State
    from webui.views import View, Views

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


class Frame(NamedTuple):
    """What the page shows: values of `chat`, `status`, `history`, `top` and `ask`."""

    chat: list[Any]
    status: str
    history: str
    top: str
    ask: str


@dataclass(slots=True)
class _Scene:
    """What a tab shows, as read from the stores; read again only when something changed."""

    conversation_id: str = ""
    conversations: Sequence[Conversation] = ()
    current: Conversation | None = None
    thread: list[StoredMessage] = field(default_factory=list["StoredMessage"])
    replies: dict[str, Reply] = field(default_factory=dict[str, "Reply"])
    documents: list[DocumentRecord] = field(default_factory=list["DocumentRecord"])
    libraries: Sequence[NamedLibrary] = ()  # that it uses
    versions: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])  # of turns that have any
    readiness: Readiness = field(default_factory=Readiness)  # of the model that answers this owner
    speakers: Speakers | None = None  # of a program
    fresh: bool = True  # not painted yet
    seconds: float = 0.0  # of CPU, for the entries of the last frame
    hears: bool = False  # whether the model takes recordings


class _Drawn(NamedTuple):
    """A list of conversations as a tab has it: what it was made from, and its markup."""

    listed: Sequence[Conversation]
    marks: tuple[Any, ...]
    markup: str


class Frames:
    """Paints tabs.

    Args:
        engine: Where conversations and replies come from.
        views: All tabs.
    """

    def __init__(self, engine: Engine, views: Views) -> None:
        self._engine = engine
        self._views = views
        self._rendered = Rendered(_KEPT)
        self._histories = Histories(engine.conversations)
        self._drawn: WeakKeyDictionary[View, _Drawn] = WeakKeyDictionary()
        self._followers = 0
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
        view.poke(stale=True)  # an older follower wakes, sees that it is old, and leaves
        view.followers += 1
        self._followers += 1
        watched, scene, painted = _Watched(view), _Scene(), False
        try:
            async with view.painting:  # the last frame of an older follower was handed over
                while mine == view.generation:
                    view.wake.clear()
                    view.urgent.clear()
                    if view.stale:
                        scene = await self._read(view)
                    await self._read_around(view, scene)
                    if scene.conversation_id != view.conversation_id:  # the tab turned to another one meanwhile
                        continue
                    run = self._engine.runs.live(view.conversation_id)
                    watched.turn_to(run)
                    frame = await self._frame(view, scene, run, mine)
                    if frame is None:
                        continue
                    painted = True
                    yield frame
                    if not view.wake.is_set() and not self._waits(view, scene):
                        return
                    news = _WHILE_READING if self._readings(scene) else _KEEP_ALIVE
                    await _until_next(view, apart(self._followers), news)
                if painted:
                    yield None
        finally:
            watched.turn_to(None)
            view.followers -= 1
            self._followers -= 1

    async def _read_around(self, view: View, scene: _Scene) -> None:
        """What stands around the conversation, from memory: the others, and the model."""
        listed = view.listed + 1  # one more tells whether there are more
        scene.conversations = await self._histories.of(view.owner, listed)
        scene.readiness = (await self._engine.chosen(view.owner)).readiness
        scene.hears = await self._engine.hears(view.owner)

    async def _read(self, view: View) -> _Scene:
        """What stands in the tables: read when it may have changed, not for each frame."""
        scene = await self._opened(view)
        scene.speakers = await speakers(self._engine, view.owner, scene.conversation_id)
        return scene

    async def _opened(self, view: View) -> _Scene:
        view.stale = False
        engine, owner, wanted = self._engine, view.owner, view.conversation_id
        scene = _Scene(wanted)
        if not wanted:
            if view.libraries:  # chosen before the first question
                scene.libraries = [one for one in await engine.libraries.list(owner) if one.id in view.libraries]
            return scene
        try:
            opened = await engine.documents.opened(owner, wanted)
            scene.current, scene.thread, scene.documents = opened.conversation, opened.thread, opened.documents
            scene.libraries, scene.versions = opened.libraries, opened.versions
            for message in scene.thread[_anchor(view, scene.thread) :]:
                if message.role == "assistant":
                    scene.replies[message.id] = await engine.runs.reply(owner, message)
        except NotFoundError:  # deleted meanwhile, or an address from somewhere else
            _log.debug("A tab shows a conversation that is not there.")
            if self._views.is_coming(owner, wanted):
                return scene
            if view.conversation_id == wanted:
                view.show("")
            return _Scene()
        return scene

    async def _frame(self, view: View, scene: _Scene, run: Run | None, mine: int) -> Frame | None:
        """The next frame, or `None` where the follower is relieved or the tab turned to another conversation."""
        if mine != view.generation:  # reading took a while
            return None
        chat = await self._chat(view, scene, run)
        if mine != view.generation or scene.conversation_id != view.conversation_id:
            return None
        return self._paint(view, scene, run, chat)

    async def _chat(self, view: View, scene: _Scene, run: Run | None) -> list[Any]:
        """The entries of the conversation, made in a thread where that takes so long that others would wait."""
        if run is not None:
            scene.replies[run.message_id] = run.reply()
        heavy = scene.seconds > _ON_LOOP or (scene.fresh and letters(scene.thread, scene.replies) > _LETTERS)
        scene.fresh = False
        replies = {one: reply.snapshot() if heavy else reply for one, reply in scene.replies.items()}
        make = partial(
            shown,
            scene.thread,
            replies,
            words=view.words,
            window=view.window,
            anchor=view.anchor,
            documents=scene.documents,
            readings=self._readings(scene),
            preparing=dict(self._engine.intake.preparing(view.owner)),
            versions=scene.versions,
            free=run is None,
            cast=scene.speakers.cast if scene.speakers is not None else (),
            rendered=self._rendered,
        )
        make_timed = partial(_timed, make)
        (chat, _), scene.seconds = (
            await asyncio.get_running_loop().run_in_executor(self._threads, make_timed) if heavy else make_timed()
        )
        return chat

    def _paint(self, view: View, scene: _Scene, run: Run | None, chat: list[Any]) -> Frame:
        words, current = view.words, view.conversation_id
        state, asking = self._state(view, scene, run), scene.replies[run.message_id].asking if run is not None else []
        said = words("reply.queued") if run is not None and run.reply().queued else heard(asking, words)
        live = self._engine.runs.live_conversations(view.owner)
        unread = self._views.unread(view.owner, current)
        return Frame(
            chat,
            status_html(
                state,
                current,
                lang=words.lang,
                empty=not scene.thread,
                ended=_ended(scene),
                asks=said,
                hears=scene.hears,
            ),
            self._history(view, scene, live, unread),
            top_html(
                scene.current.title if scene.current else "", scene.readiness, words, scene.libraries, scene.speakers
            ),
            ask_html(asking, words),
        )

    def _history(self, view: View, scene: _Scene, live: Collection[str], unread: Collection[str]) -> str:
        """The list of conversations, rendered anew only where something of it changed: it is in every frame."""
        listed, asking = scene.conversations, self._asking(live)
        trouble = self._engine.toolbox.servers.trouble(view.owner)
        day = int(time.time() // _SLIDES)
        marks = (
            view.conversation_id,
            frozenset(live),
            frozenset(unread),
            frozenset(asking),
            trouble,
            day,
            view.words.lang,
        )
        known = self._drawn.get(view)
        # The same list is the same object until a conversation changes.
        if known is not None and known.listed is listed and known.marks == marks:
            return known.markup
        markup = history_html(
            listed[: view.listed],
            view.conversation_id,
            live,
            unread,
            view.words,
            asking=asking,
            trouble=trouble,
            more=len(listed) > view.listed,
            warned=self._warned(view),
        )
        self._drawn[view] = _Drawn(listed, marks, markup)
        return markup

    def _warned(self, view: View) -> str:
        """Why conversations may be missing, for whoever runs Parlour: it names a place of the machine."""
        behind = self._engine.readiness.notes.get("database_behind") if is_local(view.owner) else None
        return view.words("ready.behind", **behind) if behind else ""

    def _asking(self, live: Collection[str]) -> list[str]:
        """The conversations in which a tool waits to be allowed."""
        runs = ((one, self._engine.runs.live(one)) for one in live)
        return [one for one, run in runs if run is not None and run.reply().asking]

    def _readings(self, scene: _Scene) -> dict[str, ReadingProgress]:
        """How far the documents are that are being read now."""
        reading = (document.id for document in scene.documents if document.status == "reading")
        found = ((one, self._engine.intake.progress(one)) for one in reading)
        return {one: progress for one, progress in found if progress is not None}

    def _state(self, view: View, scene: _Scene, run: Run | None) -> State:
        if run is not None:
            return "stopping" if view.stopping else "running"
        view.stopping = False
        return "error" if _ended(scene) == "error" else "idle"

    def _waits(self, view: View, scene: _Scene) -> bool:
        """Whether anything may still change by itself that this tab shows."""
        preparing = self._engine.intake.preparing(view.owner)
        return (
            bool(self._engine.runs.live_conversations(view.owner))
            or scene.readiness["model"].state == "loading"
            or self._views.is_coming(view.owner, view.conversation_id)
            or any(document.status == "reading" or document.id in preparing for document in scene.documents)
        )


def _timed(make: Callable[[], _Made]) -> tuple[_Made, float]:
    """What is made, and the seconds of CPU that this took."""
    began = time.thread_time()
    return make(), time.thread_time() - began


class _Watched:
    """The run that wakes the tab, if any."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._run: Run | None = None
        self._leave: Callable[[], None] | None = None

    def turn_to(self, run: Run | None) -> None:
        """Watch this run, and no other."""
        if run is self._run:
            return
        if self._leave is not None:
            self._leave()
        self._run = run
        self._leave = run.watch(self._wake) if run is not None else None

    def _wake(self, urgent: bool) -> None:  # noqa: FBT001 - the signature that runs call
        self._view.poke(urgent=urgent)


def _ended(scene: _Scene) -> str:
    """The status of the last reply; `complete` where there is none."""
    last = scene.replies.get(scene.thread[-1].id) if scene.thread else None
    return last.status if last is not None else "complete"


def _anchor(view: View, thread: Sequence[StoredMessage]) -> int:
    """Where the window begins.

    It begins with the same turn while the conversation grows, for a sliding one would change every entry in each
    frame; only when it has grown to twice its size does it move.
    """
    start = next((index for index, message in enumerate(thread) if message.id == view.anchor), -1)
    if start < 0 or len(thread) - start >= 2 * view.window:
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
    try:
        await asyncio.wait_for(view.wake.wait(), latest)
    except TimeoutError:
        return
    rest = apart - (time.monotonic() - began)
    if rest > 0:
        with suppress(TimeoutError):
            await asyncio.wait_for(view.urgent.wait(), rest)
