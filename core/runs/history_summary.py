"""Long conversations: what no longer fits the model's context is given as a summary; the turns themselves stay."""

from __future__ import annotations

import asyncio
import logging
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Self

from core.agents.summarize import summarize, summary_turn, transcript_pieces
from core.errors import StorageError
from core.llm.layers.fit_context import DEFAULT_MAX_INPUT_TOKENS, Costs
from core.messages.message import USER
from core.runs.log import TurnsSummarised

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from contextlib import AbstractContextManager

    from core.languages import Lang
    from core.llm.base import BaseChatModel
    from core.messages.message import Message
    from core.storage.base import StoredMessage
    from core.storage.summaries import SummaryStore


_LOG = logging.getLogger(__name__)
_FULL: Final = 0.8  # of the room; the rest is for the system message, the tools and what they give
_WAITED_FOR: Final = 2  # calls of the model; a summary that takes more is made beside the reply
_STAYS: Final = 0.4  # of the room, for the newest turns: the next summary is not due at once


@dataclass(frozen=True, slots=True)
class Shortened:
    """How the beginning of a conversation is given, by its owner's choice, though all of it would fit.

    Args:
        last: The id of the last turn of that beginning.
        summed_up: Whether a summary takes its place; else nothing does.
    """

    last: str
    summed_up: bool = True

    def turns(self, thread: Sequence[StoredMessage]) -> int:
        """How many turns of a thread that is; 0 where it is another branch."""
        return next((at for at, turn in enumerate(thread, 1) if turn.id == self.last), 0)


class HistorySummarizer:
    """Puts a summary in the place of the oldest turns before they would be cut.

    Each is made once, by the model that is about to answer, and kept; the next one is made of it and what came since.
    One that takes many calls is made while the model answers, which is then given the newest turns alone.
    A model on this machine that is small makes none, and neither does one that fails: then the turns are cut.

    Args:
        on: Whether there are any.
    """

    def __init__(self, *, on: bool = True) -> None:
        self._on = on
        self._beside: dict[str, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Give up the summaries that are being made beside replies."""
        tasks = list(self._beside.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def sums_up(self, model: BaseChatModel) -> bool:
        """Whether this model is asked for summaries."""
        return self._on and not model.small

    async def fit(  # noqa: PLR0913 - who asks, what, and two that can be left out
        self,
        summaries: SummaryStore,
        thread: Sequence[StoredMessage],
        messages: list[Message],
        model: BaseChatModel,
        lang: Lang,
        *,
        holding: Callable[[], AbstractContextManager[object]] = nullcontext,
        shortened: Shortened | None = None,
    ) -> tuple[list[Message], TurnsSummarised | None]:
        """The conversation as the model is given it, and the summary where one was made for this.

        Args:
            summaries: Those of the conversation's owner.
            thread: The turns that are stored, the oldest first.
            messages: Their messages, and what comes after them.
            model: Who answers.
            lang: The language of what the model is told.
            holding: Keeps the model from being closed while it is used.
            shortened: How its owner wants its beginning to be given.
        """
        chosen = shortened.turns(thread) if shortened is not None else 0
        if shortened is not None and chosen and not shortened.summed_up:
            messages, thread = messages[sum(len(turn.parts) for turn in thread[:chosen]) :], thread[chosen:]
            chosen = 0
        room = _room(model)
        if not thread or not self.sums_up(model):
            return messages, None
        if room <= 0 or await asyncio.to_thread(Costs(model).fit, messages, int(room * _FULL)):
            return await self._wanted(summaries, thread, messages, model, lang, chosen) if chosen else (messages, None)
        known = await self._known(summaries, thread[0].conversation_id)
        begins = [0, *accumulate(len(turn.parts) for turn in thread)]  # where a turn's messages begin
        done = next((at for at in range(len(thread), 0, -1) if thread[at - 1].id in known), 0)
        earlier = known[thread[done - 1].id] if done else ""
        short = (
            [*summary_turn(earlier, messages[: begins[done]], lang), *messages[begins[done] :]] if done else messages
        )
        if done and await asyncio.to_thread(Costs(model).fit, short, int(room * _FULL)):
            return short, None
        cut = await asyncio.to_thread(_cut, messages, begins, done, Costs(model), int(room * _STAYS))
        if cut <= done:
            return short, None
        old = messages[begins[done] : begins[cut]]
        if len(await asyncio.to_thread(transcript_pieces, old, model, room)) > _WAITED_FOR:

            async def make() -> None:
                with holding():
                    if text := await summarize(old, model, lang, room, earlier):
                        await self._keep(summaries, thread[cut - 1], text)

            self._begin(thread[0].conversation_id, make)
            return short, None
        text = await summarize(old, model, lang, room, earlier)
        if not text:
            return short, None
        await self._keep(summaries, thread[cut - 1], text)
        made = [*summary_turn(text, messages[: begins[cut]], lang), *messages[begins[cut] :]]
        return made, TurnsSummarised(text, cut)

    async def _wanted(
        self,
        summaries: SummaryStore,
        thread: Sequence[StoredMessage],
        messages: list[Message],
        model: BaseChatModel,
        lang: Lang,
        chosen: int,
    ) -> tuple[list[Message], TurnsSummarised | None]:
        """The first turns as a summary though all would fit; unchanged where the model makes none."""
        known = await self._known(summaries, thread[0].conversation_id)
        begins = [0, *accumulate(len(turn.parts) for turn in thread)]
        text, made = known.get(thread[chosen - 1].id, ""), None
        if not text:
            done = next((at for at in range(chosen, 0, -1) if thread[at - 1].id in known), 0)
            earlier = known[thread[done - 1].id] if done else ""
            old = messages[begins[done] : begins[chosen]]
            text = await summarize(old, model, lang, max(_room(model), 0) or DEFAULT_MAX_INPUT_TOKENS, earlier)
            if not text:
                return messages, None
            await self._keep(summaries, thread[chosen - 1], text)
            made = TurnsSummarised(text, chosen)
        return [*summary_turn(text, messages[: begins[chosen]], lang), *messages[begins[chosen] :]], made

    def _begin(self, conversation_id: str, make: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Make a summary beside the reply: the next question has it. One at a time for each conversation."""
        if conversation_id not in self._beside:
            task = self._beside[conversation_id] = asyncio.create_task(make(), name="summary")
            task.add_done_callback(lambda _: self._beside.pop(conversation_id, None))

    async def _known(self, summaries: SummaryStore, conversation_id: str) -> dict[str, str]:
        try:
            return await summaries.list(conversation_id)
        except StorageError as error:
            _LOG.warning("The summaries of a conversation cannot be read: %s", error)
            return {}

    async def _keep(self, summaries: SummaryStore, last: StoredMessage, text: str) -> None:
        try:
            await summaries.keep(last.conversation_id, last.id, text)
        except StorageError as error:  # it is made again, when it is needed again
            _LOG.warning("A summary could not be kept: %s", error)


def _room(model: BaseChatModel) -> int:
    given = model.generate_cfg.get("max_input_tokens")
    return DEFAULT_MAX_INPUT_TOKENS if given is None else int(float(given))


def _cut(messages: Sequence[Message], begins: Sequence[int], done: int, costs: Costs, stays: int) -> int:
    """How many turns a new summary is of: as few as leave what stays, and never the newest question."""
    asked = [at for at in range(done + 1, len(begins)) if _asks(messages, begins[at])]
    cut, tokens, end = asked[-1] if asked else done, 0, len(messages)
    for at in reversed(asked):  # each message is counted once, however many turns there are
        tokens += sum(map(costs.of, messages[begins[at] : end]))
        if tokens > stays:
            break
        cut, end = at, begins[at]
    return cut


def _asks(messages: Sequence[Message], at: int) -> bool:
    return at < len(messages) and messages[at].role == USER
