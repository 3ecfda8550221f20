"""Takes a thought in `<think>` tags at the start of a reply out of the text, for services that leave it there."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from core.messages.events import Event, MessageFinished, ReasoningDelta, TextDelta

if TYPE_CHECKING:
    from core.llm.request import ChatRequest, Source, Stream

_OPEN: Final = "<think>"
_CLOSE: Final = "</think>"


async def thoughts(request: ChatRequest, below: Source) -> Stream:
    """The reply, its tagged thought as reasoning.

    With `generate_cfg["thought_in_content"]` the reply begins inside a thought, whose opening tag some services drop.
    """
    splitter = ThoughtSplitter("thought" if request.generate.get("thought_in_content") else "start")
    async with aclosing(below(request)) as events:
        async for event in events:
            if isinstance(event, TextDelta) and splitter.place != "text":
                for found in splitter.feed(event.text):
                    yield found
                continue
            if isinstance(event, MessageFinished):
                for found in splitter.close():
                    yield found
            yield event


@dataclass(slots=True)
class ThoughtSplitter:
    """Tells thought from text, wherever the chunks were cut. A tag further on in the text is text."""

    place: Literal["start", "thought", "gap", "text"] = "start"
    _held: str = ""
    _begun: bool = False

    def feed(self, text: str) -> list[Event]:
        """What is certain after more text."""
        self._held += text
        events: list[Event] = []
        if self.place == "start":
            self._begin()
        if self.place == "thought":
            self._think(events)
        if self.place == "gap" and (rest := self._held.lstrip()):
            self._held, self.place = rest, "text"
        if self.place == "text" and self._held:
            events.append(TextDelta(self._held))
            self._held = ""
        return events

    def close(self) -> list[Event]:
        """The rest: what was held back, or a thought that never ended."""
        held, self._held = self._held, ""
        if not held or self.place == "gap":
            return []
        return [ReasoningDelta(held) if self.place == "thought" else TextDelta(held)]

    def _begin(self) -> None:
        start = self._held.lstrip()
        if start.startswith(_OPEN):
            self._held, self.place = start[len(_OPEN) :], "thought"
        elif not _OPEN.startswith(start):
            self.place = "text"

    def _think(self, events: list[Event]) -> None:
        if not self._begun:  # the line break after the opening tag
            self._held = self._held.lstrip("\n")
            self._begun = bool(self._held)
        thought, closed, rest = self._held.partition(_CLOSE)
        if not closed:
            keep = next((size for size in range(len(_CLOSE) - 1, 0, -1) if thought.endswith(_CLOSE[:size])), 0)
            thought, rest = thought[: len(thought) - keep], thought[len(thought) - keep :]
        if thought:
            events.append(ReasoningDelta(thought))
        self._held = rest
        if closed:
            self.place = "gap"
