"""The panels that every frame of a tab paints. A panel is a function that makes markup of a scene, and a line here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from core.models.model_name import INSTALLED, ModelName
from webui.panels.approval import announced, ask_html
from webui.panels.demo import demo_html
from webui.panels.queue import queue_html
from webui.panels.toolbar import starters_html, temporary_html, toolbar_html
from webui.panels.top import status_html, top_html

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.readiness import Readiness
    from core.runs.reply import CallBlock
    from core.storage.base import NamedLibrary
    from core.workspace.queue import Waiting
    from webui.panels.toolbar import Switched
    from webui.panels.top import Speakers, State
    from webui.views import Unfit, Watched
    from webui.words import Words


@dataclass(frozen=True, slots=True)
class Scene:
    """What a tab shows besides the conversation, at the moment of a frame.

    Args:
        readiness: Of the model that answers the reader.
        conversation_id: Empty for a new conversation.
        title: The conversation's; empty for a new one.
        empty: Nothing was said yet.
        ended: The status of the last reply.
        waits_for: The key of the sentence that says what the run waits for that nobody writes.
        asking: The calls that wait for the reader.
        waiting: Messages that wait for the end of the reply.
        coming: Whether these are sent by themselves.
        model: Which one the next question will be answered by.
        second: The label of the model that answers beside it, if one does.
        speakers: The agents of a program's page.
        history: Markup of the list of conversations, which is rendered only where it changed.
        follow_ups: Questions that were proposed after the last reply.
        switched: What the chips of the composer show; `None` on the page of a program, whose agents bring their own.
        demo: The demonstration that is played in place of a conversation.
        role: Of the reader; "" without an account.
        may_add: Whether the reader may add services.
        chosen: What is chosen for a new conversation, for the page to keep; "" where that is not known.
        unfit: What was typed into the card of a call and does not fit.
    """

    words: Words
    readiness: Readiness
    conversation_id: str = ""
    title: str = ""
    empty: bool = True
    state: State = "idle"
    ended: str = "complete"
    waits_for: str = ""
    asking: Sequence[CallBlock] = field(default_factory=tuple)
    hears: bool = False
    model: ModelName = INSTALLED
    second: str = ""
    libraries: Sequence[NamedLibrary] = ()
    waiting: Sequence[Waiting] = ()
    coming: bool = False
    speakers: Speakers | None = None
    history: str = ""
    follow_ups: Sequence[str] = ()
    switched: Switched | None = None
    demo: Watched | None = None
    role: str = ""
    may_add: bool = True
    chosen: str = ""
    unfit: Unfit | None = None


class Panel(NamedTuple):
    """A place of the page.

    Args:
        name: The id of its element.
        place: In the side column, above or below the conversation, or in the composer's second line; panels of one
            place stand in this order.
        draw: Makes the markup. What comes from outside is escaped there.
        first: The markup before the first frame.
    """

    name: str
    place: Literal["side", "above", "below", "line"]
    draw: Callable[[Scene], str]
    first: str = ""


def _status(scene: Scene) -> str:
    words = scene.words
    return status_html(
        scene.state,
        scene.conversation_id,
        lang=words.lang,
        empty=scene.empty,
        ended=scene.ended,
        asks=words(scene.waits_for) if scene.waits_for else announced(scene.asking, words),
        hears=scene.hears,
        model=scene.model,
        second=scene.second,
        demo=scene.demo.demonstration.name if scene.demo is not None else "",
        role=scene.role,
        chosen=scene.chosen,
    )


def _top(scene: Scene) -> str:
    steered = scene.switched is not None and scene.demo is None
    return top_html(
        scene.title,
        scene.readiness,
        scene.words,
        scene.libraries,
        scene.speakers,
        steered=steered,
        second=scene.second,
        temporary=scene.switched.temporary if scene.switched and steered and not scene.conversation_id else None,
        demo=scene.demo is not None,
        may_add=scene.may_add,
        called=dict(scene.switched.shelves) if scene.switched is not None else None,
    )


def _history(scene: Scene) -> str:
    return scene.history


def _ask(scene: Scene) -> str:
    return ask_html(scene.asking, scene.words, scene.unfit)


def _queue(scene: Scene) -> str:
    return queue_html(scene.waiting, scene.words, coming=scene.coming)


def _demo(scene: Scene) -> str:
    return demo_html(scene.demo, scene.words)


def _temporary(scene: Scene) -> str:
    if scene.switched is None or not scene.switched.temporary:
        return ""
    return temporary_html(scene.words, empty=not scene.conversation_id)


def _toolbar(scene: Scene) -> str:
    return toolbar_html(scene.switched, scene.libraries, scene.words) if scene.switched is not None else ""


def _starters(scene: Scene) -> str:
    if scene.empty:
        return starters_html(scene.switched.starters) if scene.switched is not None else ""
    return starters_html(scene.follow_ups, "p-follow-ups") if scene.state == "idle" else ""


PANELS: Final[tuple[Panel, ...]] = (
    Panel("top", "above", _top),
    Panel("status", "above", _status, first=status_html("idle")),
    Panel("history", "side", _history),
    Panel("starters", "below", _starters),
    Panel("ask", "below", _ask),
    Panel("queue", "below", _queue),
    Panel("temporary", "below", _temporary),
    Panel("demo", "below", _demo),
    Panel("toolbar", "line", _toolbar),
)
