"""Fits a conversation into the model's context: long results are shortened first, then the oldest turns dropped."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from core.errors import ContextTooLongError
from core.llm.calling.catalog import TEMPLATES
from core.llm.media import is_document
from core.llm.picture_tokens import document_tokens, item_tokens
from core.llm.request import is_native
from core.llm.wire.turns import note
from core.messages.content import ContentItem
from core.messages.message import ASSISTANT, FUNCTION, SYSTEM, USER, Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from core.llm.request import ChatRequest, Layer, ModelFacts, Source, Stream
    from core.llm.tokens import Counter

DEFAULT_MAX_INPUT_TOKENS: Final = 58_000
OMITTED: Final = "omit"
"""Replaces a text of which nothing fits; its one token is not counted, as in Qwen-Agent."""

_SHORT_RESULT: Final = 200
_SHORTEST: Final = 8


def fit_context(model: ModelFacts) -> Layer:
    """The layer for one model: the limit is `generate_cfg["max_input_tokens"]`, 58,000 by default, 0 for none.

    A request that fits is passed on as the same object.
    """

    def layer(request: ChatRequest, below: Source) -> Stream:
        room = max_input_of(request.generate)
        if room <= 0 or (request.must_fit and request.generate.get("max_input_tokens") is None):
            return below(request)  # the service knows better than our default what its model takes
        counter = model.counter
        unread = not counter.is_ready and not Costs(model).surely_fit(request, room)
        if unread or is_heavy(request.messages, counter):
            return _fitted_in_thread(request, room, model, below)
        return below(fitted(request, room, model))

    return layer


def max_input_of(generate: Mapping[str, Any]) -> int:
    """The tokens that a request may have, by its settings; 0 or less for no limit."""
    given = generate.get("max_input_tokens")
    return DEFAULT_MAX_INPUT_TOKENS if given is None else int(float(given))  # a setting may be a string


async def _fitted_in_thread(request: ChatRequest, room: int, model: ModelFacts, below: Source) -> Stream:
    """Fit a large request in a thread."""
    smaller = await asyncio.to_thread(fitted, request, room, model)
    async with aclosing(below(smaller)) as events:
        async for event in events:
            yield event


def fitted(request: ChatRequest, room: int, model: ModelFacts) -> ChatRequest:
    """The request shortened to at most `room` tokens, tools included.

    The system message and the newest turn stay; calls and their results stay together, with names and ids.

    Raises:
        ContextTooLongError: The system message and the tools leave no room, or the question has none; or the request is
            not to be shortened.
    """
    costs = Costs(model)
    if costs.surely_fit(request, room):
        return request
    tools = costs.tools(request)
    if costs.fit(request.messages, room - tools):
        return request
    if request.must_fit:
        raise _too_long("The messages and the tools do not fit into the model's context", room)
    return replace(request, messages=tuple(_Fitting(room, tools, model, costs).fit(request.messages)))


@dataclass(slots=True)
class _Fitting:
    limit: int
    tools: int
    model: ModelFacts
    costs: Costs
    # By id; holding the messages keeps their ids from being reused.
    _known: dict[int, tuple[Message, int]] = field(default_factory=dict[int, "tuple[Message, int]"])

    def fit(self, messages: Sequence[Message]) -> list[Message]:
        """The messages that fit."""
        self._known = {id(message): (message, self.costs.of(message)) for message in messages}
        system = [message for message in messages if message.role == SYSTEM]
        room = self.limit - self.tools - self._total(system)
        turns = _turns([message for message in messages if message.role != SYSTEM])
        over = sum(map(self._total, turns)) - room
        if room <= 0:
            raise _too_long("The system message and the tools leave no room for the question", self.limit)
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
        """The last turn, smaller by `over` tokens; its question may be cut but is never dropped."""
        if over <= 0:
            return turn
        smaller = self._smaller(turn, over, is_newest=True)
        if smaller is None:
            raise _too_long("The question does not fit into the model's context", self.limit, what="it")
        return smaller

    def _smaller(self, turn: list[Message], over: int, *, is_newest: bool = False) -> list[Message] | None:
        """The turn, smaller by `over` tokens; `None` if that is impossible.

        Results are shortened, then the first steps dropped; then results of the last step, text beside calls, the
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
        """Shorten results to `limit` tokens, the oldest first, until `over` tokens are saved; returns those saved."""
        saved = 0
        for index, message in enumerate(turn[:spare]):
            cost = self._cost(message)
            if saved < over and message.role == FUNCTION and cost > max(limit, 1):
                enough = cost - (over - saved)
                saved += self._cut(turn, index, max(limit, enough if enough >= _SHORTEST else 0))
        return saved

    def _share(self, turn: list[Message], over: int) -> int:
        """Shorten the remaining results to an equal share each; returns the tokens saved."""
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
        """Replace a message by a smaller one; returns the tokens saved. Pictures stay if they fit."""
        message = turn[index]
        before = self._cost(message)
        bare = self.costs.of(message.model_copy(update={"content": ""}))  # its call and the overhead of a message
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


def _too_long(said: str, most: int, *, what: str = "them") -> ContextTooLongError:
    hint = f"Make {what} shorter, or raise max_input_tokens."
    return ContextTooLongError(code="400", message=f"{said} ({most} tokens at most).", hint=hint, sent=False)


def _content(text: str, items: list[ContentItem], before: Message) -> str | list[ContentItem]:
    """The shortened content; text after the pictures stays after them."""
    if not items:
        return text
    texts = [ContentItem(text=text)] if text else []
    return [*texts, *items] if before.items[0].type == "text" else [*items, *texts]


def _turns(messages: Sequence[Message]) -> list[list[Message]]:
    """Turns: a user's message and all up to the next one."""
    turns: list[list[Message]] = []
    for message in messages:
        if not turns or message.role == USER:
            turns.append([])
        turns[-1].append(message)
    return turns


def _steps(turn: Sequence[Message]) -> list[slice]:
    """The steps of a turn: text, calls and their results."""
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


_ASKED = Message(USER, "?")


class Costs:
    """Counts the tokens of messages for one model; the counter caches texts."""

    def __init__(self, model: ModelFacts) -> None:
        self._model = model
        self._overhead = model.tokens_per_message

    def of(self, message: Message) -> int:
        """The tokens of a message's content, and of its call."""
        return self._sum(message, self._model.counter.count)

    def fit(self, messages: Sequence[Message], room: int) -> bool:
        """Whether the messages take at most `room` tokens; counts only as many as needed to decide."""
        most = self._model.counter.at_most
        bounds = [self._sum(message, most) for message in messages]
        total = sum(bounds)
        for index in sorted(range(len(bounds)), key=bounds.__getitem__, reverse=True):
            if total <= room:
                return True
            total += self.of(messages[index]) - bounds[index]
        return total <= room

    def items(self, items: Sequence[ContentItem]) -> int:
        """The tokens of the items that are not text."""
        return sum(self._item(item) for item in items if item.type != "text")

    def tools(self, request: ChatRequest) -> int:
        """The tokens of the tools on offer, in the form that this model gets."""
        return sum(map(self._model.counter.count, self._tool_texts(request)))

    def surely_fit(self, request: ChatRequest, room: int) -> bool:
        """Whether messages and tools certainly take at most `room` tokens, by an upper bound without counting."""
        most = self._model.counter.at_most
        for message in request.messages:
            room -= self._sum(message, most)
            if room < 0:
                return False
        return sum(map(most, self._tool_texts(request))) <= room

    def _tool_texts(self, request: ChatRequest) -> list[str]:
        """The texts that describe the tools."""
        generate = request.generate
        if not request.functions or str(generate.get("function_choice") or "auto") == "none":
            return []
        if is_native(self._model, request):
            return [json.dumps(function, ensure_ascii=False) for function in request.functions]
        default = "json_schema" if self._model.small else "nous"
        template = TEMPLATES[str(generate.get("fncall_prompt_type") or default)]()
        prepared = template.prepare(replace(request, messages=(_ASKED,)))
        return [
            item.text or "" for message in prepared.messages for item in message.items if item.text != _ASKED.content
        ]

    def _sum(self, message: Message, count: Callable[[str], int]) -> int:
        content, call = message.content, message.function_call
        total = count(content) if isinstance(content, str) else 0
        if not isinstance(content, str):
            total = sum(count(item.text or "") if item.type == "text" else self._item(item) for item in content)
        if call is not None:
            total += count(f"{{'name': '{call.name}', 'arguments': '{call.arguments}'}}")
        return total + self._overhead

    def _item(self, item: ContentItem) -> int:
        facts = self._model
        seen = item.type in {"image", "video"} and facts.support_multimodal_input
        if seen or (item.type == "audio" and facts.support_audio_input):
            return item_tokens(item, facts.model)
        if item.type == "file" and facts.support_document_input and is_document(item):
            return document_tokens(item)
        return facts.counter.count(note(item))


HEAVY: Final = 50_000
"""Uncounted characters above which counting moves to a thread; fewer take about ten milliseconds."""


def is_heavy(messages: Iterable[Message], counter: Counter | None = None) -> bool:
    """Whether counting these messages would block the loop: they are large, and not in the counter's cache."""
    texts = [text for message in messages for text in _texts(message)]
    if sum(map(len, texts)) <= HEAVY:
        return False
    return counter is None or sum(len(text) for text in texts if not counter.knows(text)) > HEAVY


def _texts(message: Message) -> list[str]:
    content, call = message.content, message.function_call
    texts = [content] if isinstance(content, str) else [item.text for item in content if item.text]
    return texts if call is None else [*texts, call.arguments]
