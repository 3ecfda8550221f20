"""A question to a model in this process: answered in a thread, heard on the event loop, given up at any moment."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

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
        if not loop.is_closed():
            loop.call_soon_threadsafe(heard.put_nowait, piece)

    question = Question[Asked, Said](body, hear)
    ask(question)
    try:
        while (piece := await heard.get()) is not None:
            yield piece
    finally:
        question.unwanted.set()
