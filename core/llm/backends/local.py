"""What models in this process share: turns for their chat templates, and a queue of questions that threads answer."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast

from core.llm.calling.neutral import without_tokens
from core.llm.wire.turns import note
from core.messages.content import ContentItem
from core.messages.message import ASSISTANT, SYSTEM, USER, Message

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Iterator

    from core.languages import Lang


Json: TypeAlias = dict[str, Any]


def local_turns(messages: Iterable[Message], lang: Lang, *, who: str = "", sees: bool = False) -> list[Json]:
    """The conversation as chat templates want it: the system first, then user and assistant alternating.

    Neighbours of one role are joined; special tokens that somebody typed are broken apart.

    Args:
        messages: Without tool calls and results: the calling templates have turned them into text.
        lang: The language of notes in place of what the model cannot take.
        who: Put at the front of the system message.
        sees: Whether the model takes pictures. Contents are then lists of `{"type": "text"}` and `{"type": "image"}`
            parts, the picture's address under `image`; else they are text.
    """
    system: list[ContentItem] = [ContentItem(text=who)] if who else []
    turns: list[tuple[str, list[ContentItem]]] = []
    for message in messages:
        role = message.role if message.role in {SYSTEM, ASSISTANT} else USER
        items = [item if sees and item.type == "image" else _as_text(item, lang) for item in message.items]
        if role == SYSTEM:
            _append(system, items)
        elif turns and turns[-1][0] == role:
            _append(turns[-1][1], items)
        elif items or role != ASSISTANT:
            turns.append((role, _append([], items)))
    spoken = [(SYSTEM, system), *turns] if system else turns
    return [{"role": role, "content": _parts(items) if sees else _text(items)} for role, items in spoken]


def _as_text(item: ContentItem, lang: Lang) -> ContentItem:
    return ContentItem(text=without_tokens(note(item, lang)))


def _append(items: list[ContentItem], more: list[ContentItem]) -> list[ContentItem]:
    """Append one more message after an empty line; texts of one message are joined."""
    fresh = bool(items)
    for item in more:
        text = item.text or ""
        if item.type != "text" or not items or items[-1].type != "text":
            items.append(item)
        elif text:
            items[-1] = ContentItem(text=f"{items[-1].text}\n\n{text}" if fresh else f"{items[-1].text}{text}")
        fresh = fresh and not text
    return items


def _text(items: list[ContentItem]) -> str:
    return "".join(item.text or "" for item in items)


def _parts(items: list[ContentItem]) -> list[Json]:
    return [
        {"type": "text", "text": item.text or ""} if item.type == "text" else {"type": "image", "image": item.image}
        for item in items
    ]


Body = TypeVar("Body")
Piece = TypeVar("Piece")


@dataclass(slots=True)
class Question(Generic[Body, Piece]):
    """One request to a model's threads, and the callback for its answer.

    Args:
        emit: Called in another thread with each piece of the answer, with an exception if it fails, and last with
            `None`.
        unwanted: Set it to stop the answer.
    """

    body: Body
    emit: Callable[[Piece | Exception | None], None]
    unwanted: threading.Event = field(default_factory=threading.Event)


class QuestionQueue(Generic[Body, Piece]):
    """A queue of questions for a model's threads; each question gets its final `None`.

    Args:
        threads: How many consume it, each by iterating.
    """

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads
        self._queue: SimpleQueue[Question[Body, Piece] | None] = SimpleQueue()
        self._guard = threading.Lock()
        self._closed = threading.Event()

    @property
    def closed(self) -> bool:
        """Whether the queue is closed."""
        return self._closed.is_set()

    def put(self, question: Question[Body, Piece]) -> None:
        """Queue a question; it ends at once if the queue is closed."""
        with self._guard:
            if not self.closed:
                self._queue.put(question)
                return
        question.emit(None)

    def close(self) -> bool:
        """Take no more questions; each thread's iteration ends after those queued. False if it was closed before."""
        with self._guard:
            if self.closed:
                return False
            self._closed.set()
            for _ in range(self._threads):
                self._queue.put(None)
            return True

    def __iter__(self) -> Iterator[Question[Body, Piece]]:
        # Not a generator: that would keep the last question alive while it waits for the next.
        return iter(cast("Callable[[], Question[Body, Piece]]", self._queue.get), cast("Any", None))


async def answers(ask: Callable[[Question[Body, Piece]], None], body: Body) -> AsyncGenerator[Piece | Exception, None]:
    """The pieces of an answer as they come; leaving early stops the answer without waiting for it.

    Args:
        ask: Queues the question.
    """
    loop = asyncio.get_running_loop()
    heard: asyncio.Queue[Piece | Exception | None] = asyncio.Queue()

    def hear(piece: Piece | Exception | None) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody listens
            loop.call_soon_threadsafe(heard.put_nowait, piece)

    question = Question[Body, Piece](body, hear)
    ask(question)
    try:
        while (piece := await heard.get()) is not None:
            yield piece
    finally:
        question.unwanted.set()
