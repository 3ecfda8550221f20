"""Long conversations: what a model cannot read any more it is given as a summary; the turns themselves stay."""

from __future__ import annotations

import asyncio
import logging
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from core.agents.summing_up import as_a_turn, summed_up
from core.errors import StorageError
from core.llm.layers.costs import Costs
from core.llm.layers.fit_context import DEFAULT_MAX_INPUT_TOKENS
from core.messages.message import USER
from core.runs.log import TurnsSummarised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.llm.base import BaseChatModel
    from core.llm.request import Lang
    from core.messages.message import Message
    from core.storage.base import StoredMessage
    from core.storage.summaries import SummaryStore

_LOG = logging.getLogger(__name__)
_FULL: Final = 0.8  # of the room; the rest is for the system message, the tools and what they give
_STAYS: Final = 0.4  # of the room, for the newest turns: the next summary is not due at once


class Remembering:
    """Puts a summary in the place of the oldest turns before they would be cut.

    Each is made once, by the model that is about to answer, and kept; the next one is made of it and what came since.
    A model on this machine that is small makes none, and neither does one that fails: then the turns are cut.

    Args:
        store: Where summaries are kept.
        on: Whether there are any.
    """

    def __init__(self, store: SummaryStore, *, on: bool = True) -> None:
        self._store = store
        self._on = on

    async def fitted(
        self, owner: str, thread: Sequence[StoredMessage], messages: list[Message], model: BaseChatModel, lang: Lang
    ) -> tuple[list[Message], TurnsSummarised | None]:
        """The conversation as the model is given it, and the summary where one was made for this.

        Args:
            owner: Whose conversation it is.
            thread: The turns that are stored, the oldest first.
            messages: Their messages, and what comes after them.
            model: Who answers.
            lang: The language of what the model is told.
        """
        room = _room(model)
        if not self._on or model.small or not thread or room <= 0:
            return messages, None
        if await asyncio.to_thread(Costs(model).fit, messages, int(room * _FULL)):
            return messages, None
        known = await self._known(owner, thread[0].conversation_id)
        begins = [0, *accumulate(len(turn.parts) for turn in thread)]  # where a turn's messages begin
        done = next((at for at in range(len(thread), 0, -1) if thread[at - 1].id in known), 0)
        earlier = known[thread[done - 1].id] if done else ""
        short = [*as_a_turn(earlier, messages[: begins[done]], lang), *messages[begins[done] :]] if done else messages
        if done and await asyncio.to_thread(Costs(model).fit, short, int(room * _FULL)):
            return short, None
        cut = await asyncio.to_thread(_cut, messages, begins, done, Costs(model), int(room * _STAYS))
        if cut <= done:
            return short, None
        text = await summed_up(messages[begins[done] : begins[cut]], model, lang, room, earlier)
        if not text:
            return short, None
        await self._keep(owner, thread[cut - 1], text)
        made = [*as_a_turn(text, messages[: begins[cut]], lang), *messages[begins[cut] :]]
        return made, TurnsSummarised(text, cut)

    async def _known(self, owner: str, conversation_id: str) -> dict[str, str]:
        try:
            return await self._store.list(owner, conversation_id)
        except StorageError as error:
            _LOG.warning("The summaries of a conversation cannot be read: %s", error)
            return {}

    async def _keep(self, owner: str, last: StoredMessage, text: str) -> None:
        try:
            await self._store.keep(owner, last.conversation_id, last.id, text)
        except StorageError as error:  # it is made again, when it is needed again
            _LOG.warning("A summary could not be kept: %s", error)


def _room(model: BaseChatModel) -> int:
    given = model.generate_cfg.get("max_input_tokens")
    return DEFAULT_MAX_INPUT_TOKENS if given is None else int(float(given))


def _cut(messages: Sequence[Message], begins: Sequence[int], done: int, costs: Costs, stays: int) -> int:
    """How many turns a new summary is of: as few as leave what stays, and never the newest question."""
    asked = [at for at in range(done + 1, len(begins)) if _asks(messages, begins[at])]
    enough = (at for at in asked if sum(map(costs.of, messages[begins[at] :])) <= stays)
    return next(enough, asked[-1] if asked else done)


def _asks(messages: Sequence[Message], at: int) -> bool:
    return at < len(messages) and messages[at].role == USER
