"""Two models side by side: a second one answers the question of a conversation at the same time, until one is chosen.

Each writes a reply of its own, and asks nobody: what would have to be allowed is refused, so that nothing happens
twice. When both are over, the second reply is a version of the first.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from core.errors import ConflictError, NotFoundError, ParlourError
from core.models.model_name import ModelName
from core.storage.second_replies import COMPARED
from core.workspace.steering import SECOND_MODEL

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from core.messages.message import Message
    from core.models.pool import ModelLoader
    from core.runs.run import Run, RunOptions
    from core.storage.base import StoredMessage
    from core.workspace.services import OwnerServices
    from core.workspace.turn import Turn

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is compared in a conversation.

    Args:
        model: The second model, which answers the next question too.
        question: The question that two replies answer; "" before there is any.
        second: The reply beside the one that is shown; it is in a place of its own while it is being written.
    """

    model: ModelName
    question: str = ""
    second: StoredMessage | None = None


def _noted(settings: Mapping[str, Any]) -> dict[str, str]:
    """The question that is answered twice, and where the second reply is: `question`, and `place` or `reply`."""
    compared = settings.get(COMPARED)
    noted = cast("dict[str, Any]", compared) if isinstance(compared, dict) else {}
    return {name: str(value) for name, value in noted.items()} if "question" in noted else {}


def second_model(settings: Mapping[str, Any]) -> ModelName | None:
    """The model that answers beside a conversation's own, by what was chosen for the conversation."""
    return ModelName.read(settings.get(SECOND_MODEL))


def with_second_model(settings: Mapping[str, Any], model: ModelName | None) -> dict[str, Any]:
    """What is chosen for a conversation, with another second model, or with none and nothing to compare any more."""
    others = {name: value for name, value in settings.items() if name not in {SECOND_MODEL, COMPARED}}
    return {**others, SECOND_MODEL: model.as_json()} if model is not None else others


def asking_nobody(terms: RunOptions) -> RunOptions:
    """What each of two replies may do: what the owner let run unasked in this conversation is asked about again.

    Nobody is there to be asked, for two questions about one thing would be a trap: what asks is refused.
    """
    rules = terms.rules

    async def unasked() -> Any:
        return replace(await rules(), lasting=()) if rules is not None else policy

    policy = replace(terms.policy, lasting=())
    return replace(terms, policy=policy, rules=unasked, attended=False)


class Comparing:
    """The comparison of one conversation.

    Args:
        services: What it works with, of its owner.
        conversation_id: Which it is.
    """

    def __init__(self, services: OwnerServices, conversation_id: str) -> None:
        self._services = services
        self._runs = services.runs
        self._store = services.stores.second_replies
        self._conversations = services.stores.conversations
        self._id = conversation_id

    async def now(self) -> Comparison | None:
        """What is compared; `None` where one model answers. Raises NotFoundError."""
        settings = await self._conversations.settings(self._id)
        model, noted = second_model(settings), _noted(settings)
        if model is None:
            return None
        try:
            if noted.get("place") and self._runs.live(noted["place"]) is None:  # over, but not moved
                await self.close(noted["place"])
                noted = _noted(await self._conversations.settings(self._id))
            if "place" in noted:
                return Comparison(model, noted["question"], (await self._conversations.thread(noted["place"]))[-1])
            if "reply" in noted:
                return Comparison(model, noted["question"], await self._conversations.message(noted["reply"]))
        except (NotFoundError, IndexError):  # deleted, or not begun
            pass
        return Comparison(model)

    def begin(
        self,
        first: Run,
        turn: Callable[[], Awaitable[Turn]],
        history: Sequence[Message],
        second: tuple[ModelName, ModelLoader],
        terms: RunOptions,
    ) -> None:
        """Let a second model answer the question of a run, too, from a moment on.

        Args:
            turn: Makes who answers.
            history: What is said before, and the question.
            second: The model.
            terms: Of the conversation.
        """
        name, loader = second
        alone = replace(asking_nobody(terms), shown_in=self._id)

        async def start(place: str) -> Run:
            run = await self._runs.start(
                place, await turn(), user=None, parent_id=None, history=history, model=loader.label, terms=alone
            )
            self._services.note_model(run, name, self._id)
            return run

        self._services.later(self.answer(first, start), "second reply")

    async def answer(self, first: Run, start: Callable[[str], Awaitable[Run]]) -> None:
        """Let a second reply be written to the question of a run, to its end; what goes wrong with it leaves the first.

        Args:
            start: Starts the second run in the place of this id.
        """
        try:
            question = (await self._conversations.message(first.message_id)).parent_id
            if question is None or _is_stopped(first):
                return
            place = await self._store.open(self._id, question)
        except ParlourError as error:
            _LOG.info("A second model does not answer: %s", error)
            return
        try:
            run = await start(place)
        except ParlourError as error:
            _LOG.warning("A second model cannot answer: %s", error)
            with suppress(ParlourError):
                await self._conversations.delete(place)
            return
        self._services.changed(self._id)
        if _is_stopped(first):  # before this one could be stopped with it
            await run.stop()
        if await run.wait() != "interrupted":  # by the end of the process: it is moved when it is looked at
            with suppress(ParlourError):
                await run.settle()
                await self.close(place)

    async def close(self, place: str) -> None:
        """Move a second reply that is over to its question. Where it goes on, or cannot be moved, nothing happens."""
        try:
            if await self._store.close(place) is not None:
                self._services.changed(self._id)
        except NotFoundError:
            _LOG.debug("A second reply was moved already.")
        except ParlourError as error:
            _LOG.warning("A second reply stays where it is until it is looked at again: %s", error)

    async def stop(self) -> None:
        """Stop the second reply, if one is being written; what there is of it stays. Raises as `OwnerRuns.stop`."""
        with suppress(NotFoundError):
            place = _noted(await self._conversations.settings(self._id)).get("place")
            if place:
                await self._runs.stop(place)
                await self.close(place)

    async def delete(self) -> None:
        """Stop the second reply; its place goes too, where the reply could not be moved out of it."""
        with suppress(NotFoundError):
            place = _noted(await self._conversations.settings(self._id)).get("place")
            if place:
                with suppress(NotFoundError, ConflictError):  # not running, or written elsewhere: it ends as it is gone
                    await self.stop()
                await self._conversations.delete(place)


def _is_stopped(run: Run) -> bool:
    """Whether its reader has stopped it by now."""
    return run.status == "stopped"
