"""A model is asked for something small beside the replies: titles, and questions to go on with.

A service is asked at once, a model of this process when it is idle.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar

from core.agents.follow_ups import make_follow_ups
from core.agents.title import make_title
from core.errors import NotFoundError, ParlourError
from core.llm.ledger import recorded_by
from core.messages.message import USER
from core.storage.conversations import TEMPORARY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from core.languages import Lang
    from core.llm.base import BaseChatModel
    from core.messages.message import Message
    from core.runs.manager import Runs
    from core.runs.run import Run
    from core.storage.base import StoredMessage
    from core.storage.stores import OwnerStores

T = TypeVar("T")
_LOG = logging.getLogger(__name__)

IDLE: Final = 5.0
"""Seconds without a reply, after which a model of this process is asked."""
_TRIES: Final = 3  # a model of this process is asked again after each reply that came between


class AnsweringModel(Protocol):
    """The model that answered, as what gets it ready holds it."""

    @property
    def label(self) -> str:
        """What the page calls it."""
        ...

    @property
    def is_retired(self) -> bool:
        """Whether its owner chose another since."""
        ...

    def in_use(self) -> AbstractContextManager[None]:
        """Keeps it from being closed while somebody works with it."""
        ...

    async def ready(self) -> BaseChatModel:
        """The model, ready to be asked. Raises ParlourError."""
        ...


class Beside:
    """Asks models beside all that goes on; an async context manager, whose end gives up what is being made.

    A model of this process has one pair of hands: it is asked when no reply was being written for some seconds, and
    given up when one begins.

    Args:
        runs: All replies of the process.
        idle: Seconds without a reply.
    """

    def __init__(self, runs: Runs, idle: float = IDLE) -> None:
        self._runs = runs
        self._idle = idle
        self._tasks: dict[asyncio.Task[None], str] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Give up what is being made."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def begin(self, stores: OwnerStores, work: Coroutine[Any, Any, None], name: str) -> None:
        """Do some work for an owner in a task of its own."""
        task = asyncio.create_task(work, name=name)
        self._tasks[task] = stores.owner
        task.add_done_callback(self._tasks.pop)

    def is_busy(self, stores: OwnerStores) -> bool:
        """Whether something may still come to an owner's conversations by itself."""
        return stores.owner in self._tasks.values()

    async def made(self, make: Callable[[BaseChatModel], Awaitable[T]], loader: AnsweringModel) -> T | None:
        """What `make` gives; `None` where nobody was asked. Raises ParlourError, and what `make` raises."""
        for _ in range(_TRIES):
            if loader.is_retired:
                return None
            with loader.in_use():
                model = await loader.ready()
                if not model.in_process:
                    return await make(model)
            await self._quiet()
            if loader.is_retired:
                return None
            with loader.in_use():
                made = await self._unless_busy(make(await loader.ready()))
            if made is not None:
                return made
        return None

    async def _quiet(self) -> None:
        """Wait until no reply has been written in this process for some seconds."""
        with self._moves() as moved:
            while True:
                moved.clear()
                try:
                    async with asyncio.timeout(None if self._runs.table.live else self._idle):
                        await moved.wait()
                except TimeoutError:
                    return

    async def _unless_busy(self, making: Awaitable[T]) -> T | None:
        """What is made, or `None` where a reply began meanwhile: who waits for one must not wait for this."""
        with self._moves() as moved:
            task = asyncio.ensure_future(making)
            begins = asyncio.ensure_future(moved.wait())
            try:
                await asyncio.wait({task, begins}, return_when=asyncio.FIRST_COMPLETED)
                return task.result() if task.done() else None
            finally:
                for one in (task, begins):
                    one.cancel()
                await asyncio.gather(task, begins, return_exceptions=True)

    @contextmanager
    def _moves(self) -> Generator[asyncio.Event]:
        """Set when a reply begins or ends."""
        moved = asyncio.Event()

        def moves(_of: str, _which: str) -> None:
            moved.set()

        leave = self._runs.on_change(moves)
        try:
            yield moved
        finally:
            leave()


def exchange_of(thread: Sequence[StoredMessage]) -> tuple[str, str]:
    """The question before a reply, with the names of its files, and the reply."""
    asked = [message for turn in thread if turn.role == USER for message in turn.parts][-1:]
    files = [str(about["name"]) for message in asked for about in (message.extra or {}).get("files") or ()]
    question = "\n".join([*(message.get_text_content() for message in asked), *files])
    return question, "\n\n".join(_said(thread[-1].parts))


def _said(parts: Sequence[Message]) -> list[str]:
    return [text for one in parts if one.role == "assistant" and (text := one.get_text_content().strip())]


_KEPT: Final = "follow_ups"
"""In a conversation's settings: the reply, and what was proposed after it. Of each conversation the newest is kept."""


class Titles:
    """Asks for titles beside all that goes on.

    A conversation has a title at once, made of its question's first words. The model is asked for a better one after
    the first whole reply, and never once a person has named it. What fails leaves the first words.

    Args:
        beside: Asks.
        on: Whether models are asked at all.
    """

    def __init__(self, beside: Beside, *, on: bool = True) -> None:
        self._beside = beside
        self._on = on

    def begin(
        self, stores: OwnerStores, run: Run, model: AnsweringModel, lang: Lang, changed: Callable[[str], None]
    ) -> None:
        """Name the conversation of a reply that has just begun, once it is whole; returns at once.

        Args:
            stores: What is kept of the owner.
            run: The reply.
            model: The one that answers.
            lang: The language of what it is told.
            changed: Called with the conversation when it has its title.
        """
        if self._on:
            self._beside.begin(stores, self._named(stores, run, model, lang, changed), "title")

    async def _named(
        self, stores: OwnerStores, run: Run, model: AnsweringModel, lang: Lang, changed: Callable[[str], None]
    ) -> None:
        try:
            if await run.wait() != "complete" or not run.stored:
                return
            if not (await stores.preferences.get()).titles:
                return
            if (await stores.conversations.settings(run.conversation_id)).get(TEMPORARY):
                return
            known = await stores.conversations.get(run.conversation_id)
            thread = await stores.conversations.thread(run.conversation_id, run.message_id)
            whole = [turn for turn in thread if turn.role == "assistant" and turn.status == "complete"]
            if known.titled_by != "question" or len(whole) != 1:
                return
            with recorded_by(run.ledger):
                exchange = exchange_of(thread)
                made = await self._beside.made(lambda asked: make_title(*exchange, asked, lang), model)
            await run.ledger.settled()
            if made is None:
                return
            if made.title and await stores.conversations.name(run.conversation_id, made.title, instead_of=known.title):
                changed(run.conversation_id)
        except NotFoundError:
            _LOG.debug("A conversation was deleted before it had its title.")
        except ParlourError as error:
            _LOG.info("A conversation keeps the title that its question gave it: %s", error)
        except Exception:  # noqa: BLE001 - logged below; the title of a question stays
            _LOG.exception("A conversation could not be named.")


class FollowUps:
    """Asks for follow-up questions beside all that goes on, where their owner wants them. What fails leaves none.

    Args:
        beside: Asks.
        on: Whether models are asked at all.
    """

    def __init__(self, beside: Beside, *, on: bool = True) -> None:
        self._beside = beside
        self._on = on

    def begin(
        self, stores: OwnerStores, run: Run, model: AnsweringModel, lang: Lang, changed: Callable[[str], None]
    ) -> None:
        """Propose questions once a reply that has just begun is whole; arguments as of `Titles.begin`."""
        if self._on:
            self._beside.begin(stores, self._proposed(stores, run, model, lang, changed), "follow-ups")

    async def _proposed(
        self, stores: OwnerStores, run: Run, model: AnsweringModel, lang: Lang, changed: Callable[[str], None]
    ) -> None:
        try:
            if await run.wait() != "complete" or not run.stored or not (await stores.preferences.get()).follow_ups:
                return
            thread = await stores.conversations.thread(run.conversation_id, run.message_id)
            exchange = exchange_of(thread)
            with recorded_by(run.ledger):
                made = await self._beside.made(lambda asked: make_follow_ups(*exchange, asked, lang), model)
            await run.ledger.settled()
            if made:
                kept = {"message": run.message_id, "questions": list(made)}
                await stores.conversations.configure(run.conversation_id, lambda chosen: {**chosen, _KEPT: kept})
                changed(run.conversation_id)
        except NotFoundError:
            _LOG.debug("A conversation was deleted before questions were proposed in it.")
        except ParlourError as error:
            _LOG.info("No questions are proposed: %s", error)
        except Exception:  # noqa: BLE001 - logged below; nothing is proposed
            _LOG.exception("No questions could be proposed.")


def proposed(settings: Mapping[str, Any], message_id: str) -> tuple[str, ...]:
    """What was proposed after a reply, if it is the newest with any.

    Args:
        settings: What was chosen for its conversation.
    """
    kept: Any = settings.get(_KEPT)
    return tuple(kept["questions"]) if kept and kept["message"] == message_id else ()
