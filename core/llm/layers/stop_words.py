"""Ends a reply before the first stop word, for services and models that write it all the same."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from core.messages.events import MessageFinished, TextDelta

if TYPE_CHECKING:
    from collections.abc import Sequence

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


@dataclass(slots=True)
class StopScanner:
    """Passes text on up to the first of `words`, wherever the chunks were cut.

    The beginning of a word is held back until it is clear whether the word follows; at the end of a reply it is text.
    """

    words: Sequence[str]
    stopped: bool = False
    _held: str = field(default="")

    def feed(self, text: str) -> str:
        """What is certain after more text."""
        if self.stopped:
            return ""
        text = self._held + text
        places = [place for word in self.words if (place := text.find(word)) >= 0]
        if places:
            self.stopped, self._held = True, ""
            return text[: min(places)]
        keep = max(_begun(text, word) for word in self.words)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def close(self) -> str:
        """What was held back."""
        held, self._held = self._held, ""
        return held


def _begun(text: str, word: str) -> int:
    """How many characters at the end of `text` are the beginning of `word`."""
    return next((size for size in range(min(len(word) - 1, len(text)), 0, -1) if text.endswith(word[:size])), 0)
