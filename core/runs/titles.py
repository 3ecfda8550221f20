"""Conversations are named by the model that answered their first question, once its reply is whole."""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from core.agents.title import TitleMade, make_title
from core.errors import NotFoundError, ParlourError
from core.llm.ledger import recorded_by
from core.messages.message import USER

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Sequence
    from contextlib import AbstractContextManager

    from core.languages import Lang
    from core.llm.base import BaseChatModel
    from core.messages.message import Message
    from core.runs.manager import Runs
    from core.runs.run import Run
    from core.storage.base import StoredMessage
    from core.storage.stores import OwnerStores

_LOG = logging.getLogger(__name__)
_IDLE: Final = 5.0
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


class Titles:
    """Asks for titles beside all that goes on; an async context manager, whose end gives up those being made.

    A conversation has a title at once, made of its question's first words. The model is asked for a better one after
    the first whole reply, and never once a person has named it. A service is asked at once; a model of this process
    when no reply was being written for some seconds, for it has one pair of hands. What fails leaves the first words.

    Args:
        runs: All replies of the process.
        on: Whether models are asked at all.
        idle: Seconds without a reply, after which a model of this process is asked.
    """

    def __init__(self, runs: Runs, *, on: bool = True, idle: float = _IDLE) -> None:
        self._runs = runs
        self._on = on
        self._idle = idle
        self._tasks: dict[asyncio.Task[None], str] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Give up the titles that are being made: their conversations keep the words of their questions."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def of(self, stores: OwnerStores) -> OwnerTitles:
        """Those of one owner, by what is kept of them."""
        return OwnerTitles(self, stores)

    def tasks(self, stores: OwnerStores) -> list[asyncio.Task[None]]:
        """The titles of an owner that may still come."""
        return [task for task, whose in self._tasks.items() if whose == stores.owner]

    def begin(
        self, stores: OwnerStores, run: Run, model: AnsweringModel, lang: Lang, changed: Callable[[str], None]
    ) -> None:
        """As `OwnerTitles.begin`."""
        if self._on:
            task = asyncio.create_task(self._named(stores, run, model, lang, changed), name="title")
            self._tasks[task] = stores.owner
            task.add_done_callback(self._tasks.pop)

    async def _named(
        self, stores: OwnerStores, run: Run, model: AnsweringModel, lang: Lang, changed: Callable[[str], None]
    ) -> None:
        try:
            if await run.wait() != "complete" or not run.stored:
                return
            if not (await stores.preferences.get()).titles:
                return
            known = await stores.conversations.get(run.conversation_id)
            thread = await stores.conversations.thread(run.conversation_id, run.message_id)
            whole = [turn for turn in thread if turn.role == "assistant" and turn.status == "complete"]
            if known.titled_by != "question" or len(whole) != 1:
                return
            with recorded_by(run.ledger):
                made = await self._made(_texts(thread), model, lang)
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

    async def _made(self, exchange: tuple[str, str], loader: AnsweringModel, lang: Lang) -> TitleMade | None:
        """The title; `None` where nobody was asked. Raises ParlourError."""
        for _ in range(_TRIES):
            if loader.is_retired:
                return None
            with loader.in_use():
                model = await loader.ready()
                if not model.in_process:
                    return await make_title(*exchange, model, lang)
            await self._quiet()
            if loader.is_retired:
                return None
            with loader.in_use():
                made = await self._unless_busy(make_title(*exchange, await loader.ready(), lang))
            if made is not None:
                return made
        return None

    async def _quiet(self) -> None:
        """Wait until no reply has been written in this process for some seconds."""
        with self._moves() as moved:
            while True:
                moved.clear()
                try:
                    await asyncio.wait_for(moved.wait(), None if self._runs.table.live else self._idle)
                except TimeoutError:
                    return

    async def _unless_busy(self, making: Coroutine[Any, Any, TitleMade]) -> TitleMade | None:
        """What is made, or `None` where a reply began meanwhile: who waits for one must not wait for a title."""
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


class OwnerTitles:
    """The titles of one owner's conversations.

    Args:
        every: Those of all owners.
        stores: What is kept of the owner.
    """

    def __init__(self, every: Titles, stores: OwnerStores) -> None:
        self._every = every
        self._stores = stores

    @property
    def is_making(self) -> bool:
        """Whether a conversation may get another title by itself."""
        return bool(self._every.tasks(self._stores))

    def begin(self, run: Run, model: AnsweringModel, lang: Lang, changed: Callable[[str], None]) -> None:
        """Name the conversation of a reply that has just begun, once it is whole; returns at once.

        Args:
            run: The reply.
            model: The one that answers.
            lang: The language of what it is told.
            changed: Called with the conversation when it has its title.
        """
        self._every.begin(self._stores, run, model, lang, changed)


def _texts(thread: Sequence[StoredMessage]) -> tuple[str, str]:
    """The question before a reply, with the names of its files, and the reply."""
    asked = [message for turn in thread if turn.role == USER for message in turn.parts][-1:]
    files = [str(about["name"]) for message in asked for about in (message.extra or {}).get("files") or ()]
    question = "\n".join([*(message.get_text_content() for message in asked), *files])
    return question, "\n\n".join(_said(thread[-1].parts))


def _said(parts: Sequence[Message]) -> list[str]:
    return [text for one in parts if one.role == "assistant" and (text := one.get_text_content().strip())]
