"""Layers that act on the reply: tagged thoughts become reasoning, stop words end it, and its size is limited."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from core.errors import ModelMisbehavedError, ModelServiceError
from core.llm.calling.tag_scanner import END_THINK, ONLY_THOUGHTS, THINK, Piece, TagScanner
from core.llm.request import is_on
from core.messages.events import CallDelta, CallStarted, Event, ItemAdded, MessageFinished, ReasoningDelta, TextDelta
from core.messages.message import ASSISTANT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.llm.request import ChatRequest, Layer, Source, Stream
    from core.llm.service import Served


@dataclass(slots=True)
class StopScanner:
    """Passes text on up to the first of `words`, wherever chunks were cut.

    What may begin a word is held back until that is decided; at the end of a reply it is text.
    """

    words: Sequence[str]
    stopped: bool = False
    _held: str = field(default="")

    def feed(self, text: str) -> str:
        """The text that is certain after more of it."""
        if self.stopped:
            return ""
        text = self._held + text
        places = [place for word in self.words if (place := text.find(word)) >= 0]
        if places:
            self.stopped, self._held = True, ""
            return text[: min(places)]
        keep = max((_begun(text, word) for word in self.words), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def close(self) -> str:
        """The text held back."""
        held, self._held = self._held, ""
        return held


def _begun(text: str, word: str) -> int:
    """How many characters at the end of `text` are the beginning of `word`."""
    return next((size for size in range(min(len(word) - 1, len(text)), 0, -1) if text.endswith(word[:size])), 0)


async def thoughts(request: ChatRequest, below: Source) -> Stream:
    """The layer that takes a `<think>` block at the start of a reply out of the text, as reasoning.

    With `generate_cfg["thought_in_content"]` the reply begins inside a thought, as some services drop the opening tag.
    So does the continuation of a message that stops inside a thought. A reply that neither opens nor closes the
    thought, and was not cut off, was no thought: all of it becomes the answer.
    """
    begun = _is_begun(request)
    scanner = thought_scanner(inside=begun or is_on(request.generate.get("thought_in_content")))
    said: list[str] = []
    async with aclosing(below(request)) as events:
        try:
            async for event in events:
                if isinstance(event, TextDelta) and not scanner.settled:
                    said.append(event.text)
                    for piece in scanner.feed(event.text):
                        yield _event(piece)
                    continue
                if isinstance(event, MessageFinished):
                    unclosed = scanner.mode == "thought" and event.reason == "stop" and not begun
                    for piece in scanner.close():
                        yield _event(piece)
                    if unclosed and (answer := _answer(said)):
                        yield TextDelta(answer)
                        event = replace(event, unthought=True)  # noqa: PLW2901 - marked as such
                yield event
        except ModelServiceError:
            for piece in scanner.close(cut=True):  # what had come is kept
                yield _event(piece)
            raise


def thought_scanner(*, inside: bool) -> TagScanner:
    """Separates the thought at the start of a reply from its text; tags further on are text.

    Args:
        inside: Whether the reply begins inside the thought; an opening tag may still come.
    """
    return TagScanner(ONLY_THOUGHTS, "thought" if inside else "text")


def _is_begun(request: ChatRequest) -> bool:
    """Whether the last message stops inside a thought that the model is to continue."""
    last = request.messages[-1]
    begun = last.get_text_content() if last.role == ASSISTANT else ""
    return begun.lstrip().startswith(THINK) and END_THINK not in begun


def _answer(said: list[str]) -> str:
    """The reply that was taken for a thought; empty if it opened one itself."""
    whole = "".join(said)
    return "" if whole.lstrip().startswith(THINK) else whole.lstrip("\n")


def _event(piece: Piece) -> Event:
    return ReasoningDelta(piece.text) if piece.mode == "thought" else TextDelta(piece.text)


def stop_words(request: ChatRequest, below: Source) -> Stream:
    """The layer that ends a reply before a word of `generate_cfg["stop"]`, unless `skip_stopword_postproc` is set."""
    given = request.generate.get("stop")
    words = [given] if isinstance(given, str) else [str(word) for word in given or ()]
    words = [word for word in words if word]
    if not words or request.generate.get("skip_stopword_postproc"):
        return below(request)
    return _stopped(StopScanner(words), request, below)


async def _stopped(scanner: StopScanner, request: ChatRequest, below: Source) -> Stream:
    async with aclosing(below(request)) as events:
        try:
            async for event in events:
                if isinstance(event, TextDelta):
                    if text := scanner.feed(event.text):
                        yield TextDelta(text)
                    if scanner.stopped:
                        yield MessageFinished("stop")
                        return
                    continue
                if rest := scanner.close():
                    yield TextDelta(rest)
                yield event
        except ModelServiceError:
            if rest := scanner.close():  # what had come is kept
                yield TextDelta(rest)
            raise


LONGEST_ANSWER: Final = 1_000_000
"""Characters of text, reasoning and arguments together: twice the longest output of any model."""
MOST_CALLS: Final = 128
"""Calls in one answer."""
MOST_ITEMS: Final = 64
"""Pictures and recordings in one answer."""


def longest(model: Served) -> Layer:
    """The layer that ends an endless reply with an error; what came before the limit is kept."""

    def layer(request: ChatRequest, below: Source) -> Stream:
        return _counted(model, request, below)

    return layer


@dataclass(slots=True)
class _Room:
    """What is left of the limits."""

    characters: int = LONGEST_ANSWER
    calls: int = MOST_CALLS
    items: int = MOST_ITEMS

    def fitting(self, event: Event) -> Event | None:
        """The event, or as much of it as fits; `None` for nothing."""
        match event:
            case TextDelta(text):
                return event if self._take(text) else TextDelta(text[: self.characters])
            case ReasoningDelta(text):
                return event if self._take(text) else ReasoningDelta(text[: self.characters])
            case CallDelta(_, arguments):
                return event if self._take(arguments) else None
            case CallStarted():
                self.calls -= 1
                return event if self.calls >= 0 else None
            case ItemAdded():
                self.items -= 1
                return event if self.items >= 0 else None
            case _:
                return event

    def _take(self, text: str) -> bool:
        if len(text) > self.characters:
            return False
        self.characters -= len(text)
        return True


async def _counted(model: Served, request: ChatRequest, below: Source) -> Stream:
    room = _Room()
    async with aclosing(below(request)) as events:
        async for event in events:
            fits = room.fitting(event)
            if fits is not event:
                if fits is not None:
                    yield fits
                raise _endless(model)
            yield event


def _endless(model: Served) -> ModelMisbehavedError:
    name = model.service.name
    said = f"{name} wrote more than {LONGEST_ANSWER:,} characters, {MOST_CALLS} calls or {MOST_ITEMS} pictures at once."
    hint = "What had come is kept: ask for less at a time, or choose another model."
    error = ModelMisbehavedError(None, None, said, hint=hint, key="model_endless")
    error.details |= {"host": name, "model": model.model}
    return error
