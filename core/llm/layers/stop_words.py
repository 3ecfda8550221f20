"""Ends a reply before the first stop word, for services and models that write it all the same."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from core.errors import ModelServiceError
from core.llm.stop_scanner import StopScanner
from core.messages.events import MessageFinished, TextDelta

if TYPE_CHECKING:
    from core.llm.request import ChatRequest, Source, Stream


def stop_words(request: ChatRequest, below: Source) -> Stream:
    """The layer: acts on `generate_cfg["stop"]` unless `skip_stopword_postproc` is set."""
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
