"""Makes a conversation fit what the model can read: long results are shortened first, then old turns go."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from core.errors import ContextTooLongError
from core.llm.shorten import shortened
from core.messages.content import ContentItem
from core.messages.message import FUNCTION, SYSTEM, USER, Message

if TYPE_CHECKING:
    from core.llm.request import ChatRequest, Layer, ModelFacts, Source, Stream

DEFAULT_MAX_INPUT_TOKENS: Final = 58_000
_PER_MESSAGE: Final = 4
_PER_PICTURE: Final = 1_000
_PER_NOTE: Final = 8
_SHORT_RESULT: Final = 200
_SHORTEST: Final = 8

Count: TypeAlias = Callable[[str], int]


def fit_context(model: ModelFacts) -> Layer:
    """The layer for one model: `generate_cfg["max_input_tokens"]` is the room, 58,000 where it is left out.

    A value of zero or less turns it off. What fits already is passed on as the same request.
    """

    def layer(request: ChatRequest, below: Source) -> Stream:
        given = request.generate.get("max_input_tokens")
        room = DEFAULT_MAX_INPUT_TOKENS if given is None else int(given)
        return below(fitted(request, room, model) if room > 0 else request)

    return layer


def fitted(request: ChatRequest, room: int, model: ModelFacts) -> ChatRequest:
    """The request with messages of at most `room` tokens, tools included.

    System messages and the newest turn stay; calls and their results stay together, names and ids included.

    Raises:
        ContextTooLongError: The system messages leave no room for the question.
    """
    tools = sum(model.count_tokens(json.dumps(each, ensure_ascii=False)) for each in request.functions)
    fitting = _Fitting(room - tools, model)
    messages = fitting.fit(request.messages)
    return request if messages is None else replace(request, messages=tuple(messages))


@dataclass(slots=True)
class _Fitting:
    room: int
    model: ModelFacts
    _costs: dict[int, int] = field(default_factory=dict[int, int])  # of the caller's own messages, which live on

    def fit(self, messages: Sequence[Message]) -> list[Message] | None:
        """The messages that fit, or `None` where all of them do."""
        self._costs = {id(message): self._count(message) for message in messages}
        if self._total(messages) <= self.room:
            return None
        system = [message for message in messages if message.role == SYSTEM]
        self.room -= self._total(system)
        if self.room < _PER_MESSAGE + _SHORTEST:
            raise ContextTooLongError(
                code="400",
                message="The system message and the tools leave no room for the question.",
                hint="Make them shorter, or raise max_input_tokens.",
            )
        turns = _turns([message for message in messages if message.role != SYSTEM])
        return [*system, *self._conversation(turns)]

    def _conversation(self, turns: list[list[Message]]) -> list[Message]:
        for turn in turns[:-1]:
            self._shorten_results(turn, _SHORT_RESULT, over=sum(map(self._total, turns)) - self.room)
        newest = turns.pop() if turns else []
        used = self._total(newest)
        kept: list[list[Message]] = []
        while turns and used + self._total(turns[-1]) <= self.room:
            used += self._total(turns[-1])
            kept.insert(0, turns.pop())
        return [*(message for turn in kept for message in turn), *self._newest(newest)]

    def _newest(self, turn: list[Message]) -> list[Message]:
        """The last turn: its results get shorter, then its first steps go, then its question is cut in the middle."""
        self._shorten_results(turn, _SHORT_RESULT, over=self._total(turn) - self.room, spare=_last_step(turn))
        while self._total(turn) > self.room and (middle := _first_step(turn)):
            del turn[middle]
        over = self._total(turn) - self.room
        if over > 0:
            results = [index for index, message in enumerate(turn) if message.role == FUNCTION]
            share = sum(self._cost(turn[index]) for index in results) - over
            self._shorten_results(turn, max(_SHORTEST, share // max(1, len(results))), over=over)
        for index in sorted(range(len(turn)), key=lambda index: -self._cost(turn[index])):
            over = self._total(turn) - self.room
            if over > 0:
                turn[index] = self._cut(turn[index], self._cost(turn[index]) - over)
        if self._total(turn) > self.room:
            raise ContextTooLongError(code="400", message="The question does not fit into the model's context.")
        return turn

    def _shorten_results(self, turn: list[Message], limit: int, *, over: int, spare: int | None = None) -> None:
        """Shorten results to `limit` tokens, the oldest first, until `over` tokens are saved."""
        for index, message in enumerate(turn[:spare]):
            if over > 0 and message.role == FUNCTION and self._cost(message) > limit:
                turn[index] = self._cut(message, limit)
                over -= self._cost(message) - self._cost(turn[index])

    def _cut(self, message: Message, limit: int) -> Message:
        """The message with its text at most about `limit` tokens; pictures stay where they fit."""
        kept = [item for item in message.items if item.type != "text"]
        fixed = self._cost(message) - sum(self.model.count_tokens(item.text or "") for item in message.items)
        while kept and fixed + _SHORTEST > limit:
            fixed -= self._item(kept.pop(0))
        text = shortened(message.get_text_content(), max(_SHORTEST, limit - fixed), self.model.count_tokens)
        content = [ContentItem(text=text), *kept] if kept else text
        return message.model_copy(update={"content": content})

    # -- counting -----------------------------------------------------------------------------------------------------

    def _total(self, messages: Sequence[Message]) -> int:
        return sum(map(self._cost, messages))

    def _cost(self, message: Message) -> int:
        known = self._costs.get(id(message))
        return self._count(message) if known is None else known

    def _count(self, message: Message) -> int:
        call = message.function_call
        written = self.model.count_tokens(call.name + call.arguments) + _PER_NOTE if call else 0
        return _PER_MESSAGE + written + sum(map(self._item, message.items))

    def _item(self, item: ContentItem) -> int:
        if item.type == "text":
            return self.model.count_tokens(item.text or "")
        seen = item.type in {"image", "video"} and self.model.support_multimodal_input
        return _PER_PICTURE if seen or (item.type == "audio" and self.model.support_audio_input) else _PER_NOTE


def _turns(messages: Sequence[Message]) -> list[list[Message]]:
    """A turn begins with a user's message that follows something else, and holds all up to the next one."""
    turns: list[list[Message]] = []
    for message in messages:
        if not turns or (message.role == USER and turns[-1][-1].role != USER):
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
