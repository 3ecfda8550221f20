"""What each open tab looks at: kept on the server, by Gradio's session, for the owner of the tab alone."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs, urlsplit

from core.errors import NotFoundError
from core.rag.citations import cited_numbers
from core.runs.playing import Player
from webui.unread import Unread

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    import gradio as gr

    from core.models.model_name import ModelName
    from core.workspace.demonstrations import Demonstration
    from core.workspace.personas import Persona
    from webui.words import Words

WINDOW = 40
EVIDENCE = "evidence"
INSPECT = "inspect"
PLACE_HEADER = "x-parlour-place"
"""The query of the page's address, from a frame of another site: WebKit leaves it out of the referer there."""
_BEFORE = 4  # turns before one that is turned to
_AGE = 12 * 3600.0
_MOST = 5_000
_token = partial(secrets.token_urlsafe, 9)


@dataclass(frozen=True, slots=True)
class ShownReply:
    """A reply, or the result of a search, whose passages the panel of sources shows.

    Args:
        text: With its marks.
        passages: With their numbers.
        sought: The sentence that was searched for again; "" for a reply itself.
        among: The documents that were searched then.
        doubted: Unsupported sentences: nothing is marked as their evidence.
    """

    text: str
    passages: list[dict[str, Any]]
    sought: str = ""
    among: tuple[str, ...] = ()
    doubted: tuple[str, ...] = ()

    @property
    def uncited(self) -> frozenset[int]:
        """Numbers of passages without a mark; none where the reply sets no marks at all."""
        named = set(cited_numbers(self.text))
        return frozenset(one["number"] for one in self.passages if one["number"] not in named) if named else frozenset()


@dataclass(frozen=True, slots=True)
class Place:
    """What the panel of sources of a tab shows.

    Args:
        message_id: The reply that it belongs to.
        page: From 1; `None` where it has none.
        part: Of a long page; `None` for the part with the open passage.
        number: The open passage of the reply; `None` where the reader turned to another page.
        occurrence: Which of the reply's marks with this number was clicked, from 0.
        chunk: The chunk that was chosen from the list of all.
        listing: The first chunk that is listed; `None` where the list is folded.
        found: The result of a search for one sentence of the reply, where that is shown.
    """

    message_id: str
    document_id: str = ""
    page: int | None = None
    part: int | None = None
    number: int | None = None
    occurrence: int = 0
    chunk: int | None = None
    listing: int | None = None
    found: ShownReply | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel at the right that another one stands over.

    Args:
        kind: `evidence`, `inspect`, `steering` or `folder:<id>`.
        markup: As it was shown last.
        place: What the evidence shows.
    """

    kind: str
    markup: str
    place: Place | None = None

    @property
    def side(self) -> str:
        """As `View.side`."""
        return "" if self.kind in {EVIDENCE, INSPECT} else self.kind


@dataclass(frozen=True, slots=True)
class Unfit:
    """What was typed into the card of a call, and does not fit its tool.

    Args:
        asked: Which question it was, as `approval_mark` names it.
        call_id: The call.
        field: The argument.
        text: What stood in its field.
        said: What is wrong with it, in the reader's words.
    """

    asked: str
    call_id: str
    field: str
    text: str
    said: str


@dataclass(frozen=True, slots=True)
class Watched:
    """A demonstration that a tab plays."""

    demonstration: Demonstration
    player: Player


@dataclass(eq=False, slots=True, weakref_slot=True)
class View:
    """One tab.

    Args:
        conversation_id: What it shows; empty for a new conversation.
        address: The conversation that its address names: for a new one, the name that the page wishes for it.
        demo: The demonstration that it plays in place of a conversation.
        wanted_demo: The one that its address names, until it is opened.
        window: How many entries of the conversation it shows at least.
        archived: Whether it lists the archived ones.
        anchor: The message that the window begins with, so that it does not slide while a reply grows.
        generation: Counts followers; an older one sees that it is not the last any more, and leaves.
        resting: Nobody looks; it is not painted until somebody does.
        followers: How many paint it: none where the tab was closed, two for a moment where one takes over.
        stopping: Stop was pressed, and the run has not ended yet.
        evidence: The markup of the evidence panel, as it was shown last.
        place: What the evidence panel shows.
        under: The panels that came before it, the last one on top: closing it brings that one back.
        looks: Counts what the evidence panel was asked for; what was asked for earlier comes too late.
        libraries: What a new conversation will be answered from, besides what comes with its questions.
        model: Which model will answer a new conversation; `None` for the owner's usual one.
        draft: What a new conversation will be steered by: its settings, before it is there.
        folder: The folder that a new conversation begins in; "" for none.
        begun: Names what is chosen for a new conversation, which the page keeps: another one where nothing is any more.
        forgotten: The persona that was deleted last, while that can be taken back.
        unfit: What was typed into the card of a call last, where it did not fit.
        side: What stands in the evidence's place: `steering`, `folder:<id>`, or "" for the evidence itself.
        opened: Whether the page was loaded here: else, at another Parlour or before a restart.
        stale: What it shows must be read from the store again.
        urgent: What changed does not wait for the next frame.
        wake: Something changed.
        painting: Held by the follower that paints.
        choosing: Held while something is chosen that holds for the next question.
    """

    owner: str
    words: Words
    conversation_id: str = ""
    address: str = ""
    demo: Watched | None = None
    wanted_demo: str = ""
    window: int = WINDOW
    archived: bool = False
    anchor: str | None = None
    generation: int = 0
    resting: bool = False
    followers: int = 0
    stopping: bool = False
    evidence: str = ""
    place: Place | None = None
    under: tuple[Panel, ...] = ()
    looks: int = 0
    libraries: tuple[str, ...] = ()
    model: ModelName | None = None
    draft: dict[str, Any] = field(default_factory=dict[str, Any])
    folder: str = ""
    begun: str = field(default_factory=_token)
    forgotten: Persona | None = None
    unfit: Unfit | None = None
    side: str = ""
    opened: bool = False
    stale: bool = True
    urgent: asyncio.Event = field(default_factory=asyncio.Event)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    # A lock, for one follower paints to its end, across awaits, before the next may begin.
    painting: asyncio.Lock = field(default_factory=asyncio.Lock)  # noqa: TID251
    # As above: what is chosen is stored to its end before a question reads it.
    choosing: asyncio.Lock = field(default_factory=asyncio.Lock)  # noqa: TID251
    used: float = field(default_factory=time.monotonic)

    def wake_up(self, *, urgent: bool = True, stale: bool = False) -> None:
        """Something changed that this tab shows; `urgent` does not wait for the next frame."""
        if urgent:
            self.urgent.set()
        self.stale = self.stale or stale
        self.wake.set()

    @property
    def shown_id(self) -> str:
        """The conversation whose turns are in sight, also where they are those of a demonstration."""
        return self.demo.demonstration.conversation_id if self.demo is not None else self.conversation_id

    def watch(self, demonstration: Demonstration) -> None:
        """Turn to a demonstration, at its beginning."""
        self.show("")
        self.demo = Watched(demonstration, Player(demonstration.tape))

    def show(self, conversation_id: str) -> None:
        """Turn to another conversation."""
        self.conversation_id = conversation_id
        self.demo, self.wanted_demo = None, ""
        self.window, self.anchor = WINDOW, None
        self.stopping, self.libraries, self.model, self.draft, self.folder = False, (), None, {}, ""
        self.begun = _token()
        side = self.side
        self.close_evidence()
        self.side = side  # it is drawn anew, of this conversation
        self.wake_up(stale=True)

    def begin_before(self, message: str, thread: Sequence[str]) -> None:
        """Let the window reach back to a message and a few before it.

        Args:
            thread: The ids of the turns that are shown, from the first to the last.
        """
        if message in thread:
            begin = max(0, thread.index(message) - _BEFORE)
            self.window = max(self.window, len(thread) - begin)
            self.anchor = thread[max(0, len(thread) - self.window)]
        self.wake_up(stale=True)

    def close_evidence(self) -> None:
        """Show no evidence, nor any that was asked for before."""
        self.evidence, self.place, self.side, self.under = "", None, "", ()
        self.looks += 1

    @property
    def panel(self) -> Panel | None:
        """What stands at the right now."""
        if not self.evidence:
            return None
        return Panel(self.side or (EVIDENCE if self.place is not None else INSPECT), self.evidence, self.place)

    def cover(self, over: Panel | None, kind: str) -> None:
        """A panel of a kind stands over another one, each kind once; one of the same kind takes its place."""
        kinds = {kind} if over is None else {kind, over.kind}
        others = tuple(one for one in self.under if one.kind not in kinds)
        self.under = others if over is None or over.kind == kind else (*others, over)

    def uncover(self) -> None:
        """Close the panel, and bring back the one that it stands over; what is steered is to be drawn anew then."""
        under = self.under
        self.close_evidence()
        if under:
            former = under[-1]
            self.under, self.place, self.side = under[:-1], former.place, former.side
            self.evidence = "" if former.side else former.markup


class Views:
    """All tabs of the process.

    Args:
        words: Gives the words for an `Accept-Language` header.
        unread: Which conversations have a reply that nobody saw; left out, only this process knows it.
    """

    def __init__(self, words: Callable[[str], Words], unread: Unread | None = None) -> None:
        self._words = words
        self._views: OrderedDict[str, View] = OrderedDict()
        self.replies_unread = unread or Unread()
        self._coming: set[tuple[str, str]] = set()
        self._listeners: list[Callable[[str], None]] = []

    def of(self, request: gr.Request) -> View:
        """The tab that a request comes from; a new one shows the conversation that its address names.

        Raises:
            NotFoundError: The session is somebody else's.
        """
        session, owner = str(request.session_hash), str(request.username)
        view = self._views.get(session)
        headers = cast("Mapping[str, str]", cast("Any", request).headers)
        place = headers.get(PLACE_HEADER) or headers.get("referer", "")
        address = _named(place)
        if view is None:
            view = View(owner, self._words(headers.get("accept-language", "")), address)
            view.wanted_demo = _named(place, "demo")
            self._views[session] = view
        elif view.owner != owner:
            raise NotFoundError("There is no such tab.")
        view.used, view.address = time.monotonic(), address
        self._views.move_to_end(session)
        self._forget()
        return view

    @contextmanager
    def creating(self, owner: str, conversation_id: str) -> Generator[None]:
        """A conversation is being made: a tab whose address names it waits for it."""
        named = (owner, conversation_id)
        self._coming.add(named)
        try:
            yield
        finally:
            self._coming.discard(named)
            self.changed(owner, conversation_id)

    def is_being_created(self, owner: str, conversation_id: str) -> bool:
        """Whether a conversation is being made that is not there yet."""
        return (owner, conversation_id) in self._coming

    def on_change(self, callback: Callable[[str], None]) -> None:
        """Call back with an owner whose conversations changed."""
        self._listeners.append(callback)

    def changed(self, owner: str | None, conversation_id: str | None) -> None:
        """Wake every tab that shows what changed; `None` is everybody's, or no conversation: the model, the history.

        Another conversation of the owner is but a line of the history: that can wait for a tab's next frame, else
        each of many tabs would be painted for all the others.
        """
        if owner is None:
            for view in self._views.values():
                view.wake_up(urgent=False)
            return
        for callback in self._listeners:
            callback(owner)
        for view in self._views.values():
            mine = view.owner == owner and conversation_id in {None, view.conversation_id}
            if mine or (view.demo is not None and conversation_id == view.shown_id):  # whose documents are being read
                view.wake_up(urgent=conversation_id is not None, stale=conversation_id is not None)

    def deleted(self, owner: str, conversation_id: str) -> None:
        """A conversation is gone: tabs that showed it turn to a new one, the others to a shorter history."""
        for view in self._views.values():
            if view.owner == owner and view.conversation_id == conversation_id:
                view.show("")
        self.replies_unread.read(owner, conversation_id)
        self.changed(owner, None)

    def ended(self, owner: str, conversation_id: str) -> None:
        """A reply ended; if nobody looks at it, the history says so until somebody does."""
        seen = any(
            view.conversation_id == conversation_id and view.owner == owner and view.followers and not view.resting
            for view in self._views.values()
        )
        if not seen:
            self.replies_unread.add(owner, conversation_id)

    def unread(self, owner: str, current: str = "") -> frozenset[str]:
        """Conversations of an owner with a reply that nobody saw; looking at `current` reads it."""
        self.replies_unread.read(owner, current)
        return self.replies_unread.of(owner)

    def _forget(self) -> None:
        oldest = time.monotonic() - _AGE
        while self._views:
            session, view = next(iter(self._views.items()))
            if len(self._views) <= _MOST and view.used >= oldest:
                return
            del self._views[session]


def _named(address: str, what: str = "c") -> str:
    """The conversation (or `demo`) that the page's address names, or the query of it."""
    found = parse_qs(urlsplit(address).query).get(what, [])
    return found[0][:64] if found else ""
