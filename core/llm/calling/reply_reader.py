"""Reads one reply in the format of a template: text, thought and calls as events."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Protocol

from core.llm.calling.call_text import CallText, call_events, unreadable
from core.llm.calling.neutral import Restored, restored
from core.llm.calling.tag_scanner import Piece, TagScanner
from core.llm.calling.untagged import Untagged
from core.llm.request import call_ids, is_off
from core.messages.events import Event, ReasoningDelta, TextDelta

if TYPE_CHECKING:
    from core.llm.calling.tags import Tags
    from core.llm.request import ChatRequest

UNREADABLE = "unreadable_call"
"""The name of a call whose own cannot be read, where who asks answers every call."""


class Body(Protocol):
    """How a format writes one call: read it, and say it as it was written."""

    def read(self, piece: Piece, request: ChatRequest, *, cut: bool) -> tuple[list[CallText], str]:
        """The calls in a piece, and text that follows them in it."""
        ...

    def written(self, piece: Piece) -> str:
        """The piece with its tags."""
        ...


class ReplyReader:
    """Turns the text of one reply into events. Any split of the text gives the same messages.

    A call that cannot be read stays text, but where `request.answers_calls`: then it is a call whose arguments are
    what the model wrote. An empty one is such a call where the reply says nothing else, and nothing at all beside
    other words.

    Args:
        request: What was asked, before the template prepared it.
        tags: The format's.
        body: How it writes a call.
        after_tag: Whether the prompt ended with a tag: a colon that the reply begins with belongs to it.
    """

    def __init__(self, request: ChatRequest, tags: Tags, body: Body, *, after_tag: bool = False) -> None:
        self.calls = 0
        self._request = request
        self._body = body
        taken = call_ids(request.messages)
        self._ids = (str(number) for number in count(1) if str(number) not in taken)
        self._scanner = TagScanner(tags, after_tag=after_tag)
        self._untagged: Untagged | None = Untagged(request.functions)
        self._only_one = is_off(request.generate.get("parallel_function_calls"))
        self._restored = Restored()
        self._said = False  # whether the last thing of the reply is text
        self._apart = False  # whether text that comes next stands on a line of its own
        self._spoke = False  # whether there is a word in the reply
        self._empty = ""  # a call without anything in it, as it was written

    def feed(self, text: str) -> list[Event]:
        """What is certain after more text."""
        if self._untagged is not None:
            held = self._untagged.feed(text)
            if held is None:
                return []
            text, self._untagged = held, None
        return self._events(self._scanner.feed(text), cut=False)

    def close(self, *, cut: bool = False) -> list[Event]:
        """The rest, when no more text comes."""
        events: list[Event] = []
        if self._untagged is not None:
            calls = self._untagged.calls(cut=cut)
            if calls and (self._request.answers_calls or all(call.readable for call in calls)):
                return self._called(calls)
            events, self._untagged = self._events(self._scanner.feed(self._untagged.held()), cut=False), None
        events += self._events(self._scanner.close(cut=cut), cut=cut)
        if self._empty and not (self._spoke or self.calls or cut):
            events += self._called([unreadable("")]) if self._request.answers_calls else [self._say(self._empty)]
        return events

    def _events(self, pieces: list[Piece], *, cut: bool) -> list[Event]:
        events: list[Event] = []
        for piece in pieces:
            if piece.mode == "text":
                if text := self._restored.feed(piece.text):
                    events.append(self._say(text))
            elif piece.mode == "thought":
                self._said = self._apart = False
                events.append(ReasoningDelta(piece.text))
            else:
                events += self._call(piece, cut=cut)
        return events

    def _call(self, piece: Piece, *, cut: bool) -> list[Event]:
        calls, after = self._body.read(piece, self._request, cut=cut)
        if not calls and not after.strip():
            self._empty = self._body.written(piece)
        readable = all(call.readable for call in calls)
        if not readable and not self._request.answers_calls:
            self._apart = True
            events: list[Event] = [self._say(self._body.written(piece))]
            self._apart = True
            return events
        events = self._called(calls)
        if after:
            self._apart = self._said
            events.append(self._say(after))
        self._apart = self._said
        return events

    def _called(self, calls: list[CallText]) -> list[Event]:
        """The calls as events; only the first of all where one at a time was asked for."""
        if self._only_one:
            calls = calls[: 0 if self.calls else 1]
        if not calls:
            return []
        self.calls += len(calls)
        self._said = self._apart = False
        named = [CallText(call.name or UNREADABLE, restored(call.arguments), call.readable) for call in calls]
        return call_events(named, self._ids)

    def _say(self, text: str) -> TextDelta:
        if self._apart and self._said:
            text = "\n" + text
        self._said, self._apart = True, False
        self._spoke = self._spoke or not text.isspace()
        return TextDelta(text)
