"""Makes a conversation fit what the model can read: long results are shortened first, then the oldest turns go."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from core.errors import ContextTooLongError
from core.llm.layers.costs import Costs
from core.llm.layers.counting import is_heavy
from core.messages.content import ContentItem
from core.messages.message import ASSISTANT, FUNCTION, SYSTEM, USER, Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.llm.request import ChatRequest, Layer, ModelFacts, Source, Stream

DEFAULT_MAX_INPUT_TOKENS: Final = 58_000
OMITTED: Final = "omit"
"""Stands for a text of which nothing could be kept; as in the peer, the one token of it is not counted."""

_SHORT_RESULT: Final = 200
_SHORTEST: Final = 8


def fit_context(model: ModelFacts) -> Layer:
    """The layer for one model: `generate_cfg["max_input_tokens"]` is the room, 58,000 where it is left out.

    Zero turns it off. What fits already is passed on as the same request.
    """

    def layer(request: ChatRequest, below: Source) -> Stream:
        given = request.generate.get("max_input_tokens")
        room = DEFAULT_MAX_INPUT_TOKENS if given is None else int(float(given))  # a setting may be text
        if room <= 0:
            return below(request)
        counter = model.counter
        unread = not counter.is_ready and not Costs(model).surely_fit(request, room)
        if unread or is_heavy(request.messages, counter):
            return _fitted_beside(request, room, model, below)
        return below(fitted(request, room, model))

    return layer


async def _fitted_beside(request: ChatRequest, room: int, model: ModelFacts, below: Source) -> Stream:
    """As the layer itself, with a request that takes long to count: the loop goes on meanwhile."""
    smaller = await asyncio.to_thread(fitted, request, room, model)
    async with aclosing(below(smaller)) as events:
        async for event in events:
            yield event


def fitted(request: ChatRequest, room: int, model: ModelFacts) -> ChatRequest:
    """The request with the contents of its messages in at most `room` tokens, tools included.

    The system message and the newest turn stay; calls and their results stay together, names and ids included.

    Raises:
        ContextTooLongError: The system message and the tools leave no room, or the question has none.
    """
    costs = Costs(model)
    if costs.surely_fit(request, room):
        return request
    tools = costs.tools(request)
    if costs.fit(request.messages, room - tools):
        return request
    return replace(request, messages=tuple(_Fitting(room, tools, model, costs).fit(request.messages)))


@dataclass(slots=True)
class _Fitting:
    limit: int
    tools: int
    model: ModelFacts
    costs: Costs
    # By identity; holding the messages keeps their identities theirs.
    _known: dict[int, tuple[Message, int]] = field(default_factory=dict[int, "tuple[Message, int]"])

    def fit(self, messages: Sequence[Message]) -> list[Message]:
        """The messages that fit."""
        self._known = {id(message): (message, self.costs.of(message)) for message in messages}
        system = [message for message in messages if message.role == SYSTEM]
        room = self.limit - self.tools - self._total(system)
        turns = _turns([message for message in messages if message.role != SYSTEM])
        over = sum(map(self._total, turns)) - room
        if room <= 0:
            raise self._too_long("The system message and the tools leave no room for the question", tools=True)
        for turn in turns[:-1]:
            over -= self._shorten_results(turn, _SHORT_RESULT, over)
        kept: list[Message] = []
        for turn in turns[:-1]:
            whole = self._total(turn)
            if 0 < over < whole and (smaller := self._smaller(list(turn), over)) is not None:
                kept += smaller
                over = 0
            elif over <= 0:
                kept += turn
            else:
                over -= whole
        return [*system, *kept, *self._newest(turns[-1], over)]

    # -- one turn -----------------------------------------------------------------------------------------------------

    def _newest(self, turn: list[Message], over: int) -> list[Message]:
        """The last turn, smaller by `over`; its question may be cut but never goes."""
        if over <= 0:
            return turn
        smaller = self._smaller(turn, over, is_newest=True)
        if smaller is None:
            raise self._too_long("The question does not fit into the model's context")
        return smaller

    def _smaller(self, turn: list[Message], over: int, *, is_newest: bool = False) -> list[Message] | None:
        """The turn without `over` tokens of it; `None` where that cannot be.

        Results get shorter, then the first steps go, then results of the last step, what is said beside calls, the
        question and the rest are cut in the middle.
        """
        spare = _last_step(turn)
        over -= self._shorten_results(turn, _SHORT_RESULT, over, spare=spare)
        over -= self._shorten_results(turn, 0, over, spare=spare)
        while over > 0 and (step := _first_step(turn)):
            over -= self._total(turn[step])
            del turn[step]
        over -= self._share(turn, over)
        beside = [n for n, message in enumerate(turn) if message.function_call and message.items]
        asked = [n for n, message in enumerate(turn) if message.role == USER]
        said = [n for n, message in enumerate(turn) if message.role == ASSISTANT and not message.function_call]
        for index in [*beside, *asked, *said]:
            if over > 0:
                over -= self._cut(
                    turn, index, self._cost(turn[index]) - over, may_go=not (is_newest and index in asked)
                )
        return turn if over <= 0 else None

    def _shorten_results(self, turn: list[Message], limit: int, over: int, *, spare: int | None = None) -> int:
        """Shorten results to `limit` tokens, the oldest first, until `over` tokens are saved; returns what was."""
        saved = 0
        for index, message in enumerate(turn[:spare]):
            cost = self._cost(message)
            if saved < over and message.role == FUNCTION and cost > max(limit, 1):
                enough = cost - (over - saved)
                saved += self._cut(turn, index, max(limit, enough if enough >= _SHORTEST else 0))
        return saved

    def _share(self, turn: list[Message], over: int) -> int:
        """Shorten what results are left, the largest most: all of them are given the same room."""
        results = [index for index, message in enumerate(turn) if message.role == FUNCTION]
        results.sort(key=lambda index: self._cost(turn[index]))
        room = sum(self._cost(turn[index]) for index in results) - over
        saved = 0
        for place, index in enumerate(results):
            share = max(0, room) // (len(results) - place)
            if over > 0 and self._cost(turn[index]) > max(share, 1):
                saved += self._cut(turn, index, share)
            room -= self._cost(turn[index])
        return saved

    def _cut(self, turn: list[Message], index: int, limit: int, *, may_go: bool = True) -> int:
        """Put a smaller message in its place; returns how many tokens that saves. Pictures stay where they fit."""
        message = turn[index]
        before = self._cost(message)
        bare = self.costs.of(message.model_copy(update={"content": ""}))  # its call, and what every message takes
        text = message.get_text_content()
        items = [item for item in message.items if item.type != "text"]
        least = min(_SHORTEST, before - bare - self.costs.items(items))
        while items and self.costs.items(items) + least > limit - bare:
            items.pop(0)
        text = self.model.counter.shortened(text, limit - bare - self.costs.items(items))
        if text or items:
            turn[index] = message.model_copy(update={"content": _content(text, items, message)})
            return before - self._cost(turn[index])
        if not may_go:
            return 0
        turn[index] = message.model_copy(update={"content": "" if message.function_call else OMITTED})
        self._known[id(turn[index])] = (turn[index], bare)
        return before - bare

    # -- counting -----------------------------------------------------------------------------------------------------

    def _total(self, messages: Sequence[Message]) -> int:
        return sum(map(self._cost, messages))

    def _cost(self, message: Message) -> int:
        known = self._known.get(id(message))
        return self.costs.of(message) if known is None else known[1]

    def _too_long(self, what: str, *, tools: bool = False) -> ContextTooLongError:
        hint = (
            "Make them shorter, or raise max_input_tokens." if tools else "Make it shorter, or raise max_input_tokens."
        )
        return ContextTooLongError(code="400", message=f"{what} ({self.limit} tokens at most).", hint=hint, sent=False)


def _content(text: str, items: list[ContentItem], before: Message) -> str | list[ContentItem]:
    """What is left of a content; text that came after the pictures stays after them."""
    if not items:
        return text
    texts = [ContentItem(text=text)] if text else []
    return [*texts, *items] if before.items[0].type == "text" else [*items, *texts]


def _turns(messages: Sequence[Message]) -> list[list[Message]]:
    """A turn begins with a user's message, and holds all up to the next one."""
    turns: list[list[Message]] = []
    for message in messages:
        if not turns or message.role == USER:
            turns.append([])
        turns[-1].append(message)
    return turns


def _steps(turn: Sequence[Message]) -> list[slice]:
    """What the model did in a turn: each step is what it said and called, with the results."""
    steps: list[slice] = []
    start = next((index for index, message in enumerate(turn) if message.role != USER), len(turn))
    for index in range(start, len(turn)):
        is_last = index + 1 == len(turn)
        if is_last or (turn[index].role == FUNCTION and turn[index + 1].role != FUNCTION):
            steps.append(slice(start, index + 1))
            start = index + 1
    return steps


def _first_step(turn: Sequence[Message]) -> slice | None:
    """The step to drop next; never the last one."""
    steps = _steps(turn)
    return steps[0] if len(steps) > 1 else None


def _last_step(turn: Sequence[Message]) -> int | None:
    steps = _steps(turn)
    return steps[-1].start if steps else None
