"""A question to a model in this process: answered in a thread, heard on the event loop, given up at any moment."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator

Asked = TypeVar("Asked")
Said = TypeVar("Said")


@dataclass(slots=True)
class Question(Generic[Asked, Said]):
    """One request, and who hears the answer.

    Args:
        body: The request.
        heard: Called in another thread with each piece of the answer; with `None` when it is over, or with what went
            wrong.
    """

    body: Asked
    heard: Callable[[Said | Exception | None], None]
    unwanted: threading.Event = field(default_factory=threading.Event)


class Waiting(Generic[Asked, Said]):
    """Questions in the order in which they came, for the threads of a model; none is left without an end.

    Args:
        threads: How many take questions out of it, each by iterating over it.
    """

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads
        self._queue: SimpleQueue[Question[Asked, Said] | None] = SimpleQueue()
        self._guard = threading.Lock()
        self._closed = threading.Event()

    @property
    def closed(self) -> bool:
        """Whether nothing is answered any more."""
        return self._closed.is_set()

    def put(self, question: Question[Asked, Said]) -> None:
        """One more; it is over at once where nothing is answered any more."""
        with self._guard:
            if not self.closed:
                self._queue.put(question)
                return
        question.heard(None)

    def close(self) -> bool:
        """Take no more, and let each thread's iteration end after what is there; whether this was the first time."""
        with self._guard:
            if self.closed:
                return False
            self._closed.set()
            for _ in range(self._threads):
                self._queue.put(None)
            return True

    def __iter__(self) -> Iterator[Question[Asked, Said]]:
        # No generator: it would hold on to the last question while it waits for the next.
        return iter(cast("Callable[[], Question[Asked, Said]]", self._queue.get), cast("Any", None))


async def answers(ask: Callable[[Question[Asked, Said]], None], body: Asked) -> AsyncGenerator[Said | Exception, None]:
    """The pieces of an answer as they come.

    Leaving early marks the question as unwanted and waits for nobody.

    Args:
        ask: Hands the question to the model's threads, without waiting for the answer.
        body: What is asked.
    """
    loop = asyncio.get_running_loop()
    heard: asyncio.Queue[Said | Exception | None] = asyncio.Queue()

    def hear(piece: Said | Exception | None) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody is there to hear it
            loop.call_soon_threadsafe(heard.put_nowait, piece)

    question = Question[Asked, Said](body, hear)
    ask(question)
    try:
        while (piece := await heard.get()) is not None:
            yield piece
    finally:
        question.unwanted.set()
