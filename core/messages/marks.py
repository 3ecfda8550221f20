"""Marks that cite, put into a text that has been told already."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from core.messages.events import Event, SourceCited, TextDelta

if TYPE_CHECKING:
    from collections.abc import Iterable

E = TypeVar("E")


def set_marks(texts: Iterable[list[str]], event: SourceCited) -> None:
    """Put the marks of an event behind their place.

    Args:
        texts: The texts of the message so far as pieces, the last one first; that in which the place lies is changed.
        event: Its marks, and how many characters come after them.
    """
    back = event.back
    for pieces in texts if event.marks else ():
        text = "".join(pieces)
        if back < len(text):
            at = len(text) - back
            pieces[:] = [f"{text[:at]}{event.marks}{text[at:]}"]
            return
        back -= len(text)


def text_of(events: Iterable[object]) -> str:
    """The text that events tell, with the marks at their places."""
    pieces: list[str] = []
    for event in events:
        if isinstance(event, TextDelta):
            pieces.append(event.text)
        elif isinstance(event, SourceCited):
            set_marks([pieces], event)
    return "".join(pieces)


def without_marks(event: E) -> E | SourceCited:
    """The event beside another text than the one in which its marks have a place."""
    return SourceCited(event.passages) if isinstance(event, SourceCited) else event


def appended(event: Event) -> Event:
    """The event for whoever can only write on: marks that belong further up come behind what has been told."""
    return TextDelta(event.marks) if isinstance(event, SourceCited) and event.marks else event
