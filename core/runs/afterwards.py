"""What the model that answered is asked after its reply: a title for the conversation, and questions to go on with."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from core.agents.follow_ups import make_follow_ups
from core.agents.title import make_title
from core.errors import NotFoundError, ParlourError
from core.llm.ledger import recorded_by
from core.runs.beside import exchange_of
from core.storage.conversations import TEMPORARY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from core.languages import Lang
    from core.runs.beside import AnsweringModel, Beside
    from core.runs.run import Run
    from core.storage.stores import OwnerStores

_LOG = logging.getLogger(__name__)
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
