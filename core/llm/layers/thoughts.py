"""Takes a thought in `<think>` tags at the start of a reply out of the text, for services that leave it there."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from core.errors import ModelServiceError
from core.llm.calling.tag_scanner import Piece, TagScanner
from core.llm.calling.tags import END_THINK, ONLY_THOUGHTS, THINK
from core.llm.request import is_on
from core.messages.events import Event, MessageFinished, ReasoningDelta, TextDelta
from core.messages.message import ASSISTANT

if TYPE_CHECKING:
    from core.llm.request import ChatRequest, Source, Stream


async def thoughts(request: ChatRequest, below: Source) -> Stream:
    """The reply, its tagged thought as reasoning.

    With `generate_cfg["thought_in_content"]` the reply begins inside a thought, whose opening tag some services drop.
    So does one that goes on with an answer of the assistant's which stops in the middle of a thought. A reply whose
    thought was neither opened nor closed, and which was not cut off, was no thought: all of it is said as the answer.
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
                        event = replace(event, unthought=True)  # noqa: PLW2901 - the same event, which says so
                yield event
        except ModelServiceError:
            for piece in scanner.close(cut=True):  # what had come is kept
                yield _event(piece)
            raise


def thought_scanner(*, inside: bool) -> TagScanner:
    """Tells the thought at the start of a reply from its text; a tag further on in the text is text.

    Args:
        inside: Whether the reply begins inside the thought. An opening tag may stand there all the same.
    """
    return TagScanner(ONLY_THOUGHTS, "thought" if inside else "text")


def _is_begun(request: ChatRequest) -> bool:
    """Whether the asker began a thought for the model to go on with."""
    last = request.messages[-1]
    begun = last.get_text_content() if last.role == ASSISTANT else ""
    return begun.lstrip().startswith(THINK) and END_THINK not in begun


def _answer(said: list[str]) -> str:
    """A reply that was taken for a thought; nothing where it opened one itself."""
    whole = "".join(said)
    return "" if whole.lstrip().startswith(THINK) else whole.lstrip("\n")


def _event(piece: Piece) -> Event:
    return ReasoningDelta(piece.text) if piece.mode == "thought" else TextDelta(piece.text)
