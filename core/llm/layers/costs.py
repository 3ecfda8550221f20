"""What each message of a conversation takes of the model's room, in tokens."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from core.llm.calling.catalog import TEMPLATES
from core.llm.picture_tokens import item_tokens
from core.llm.request import is_native
from core.llm.wire.notes import note
from core.messages.message import USER, Message

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.llm.request import ChatRequest, ModelFacts
    from core.messages.content import ContentItem


_ASKED = Message(USER, "?")


class Costs:
    """Counts messages for one model. Texts that were counted before are not counted again."""

    def __init__(self, model: ModelFacts) -> None:
        self._model = model
        self._overhead = model.tokens_per_message

    def of(self, message: Message) -> int:
        """The tokens of a message's content, and of its call."""
        return self._sum(message, self._model.counter.count)

    def fit(self, messages: Sequence[Message], room: int) -> bool:
        """Whether the messages take at most `room` tokens; only as many are counted as it takes to know."""
        most = self._model.counter.at_most
        bounds = [self._sum(message, most) for message in messages]
        total = sum(bounds)
        for index in sorted(range(len(bounds)), key=bounds.__getitem__, reverse=True):
            if total <= room:
                return True
            total += self.of(messages[index]) - bounds[index]
        return total <= room

    def items(self, items: Sequence[ContentItem]) -> int:
        """The tokens of what is not text among `items`."""
        return sum(self._item(item) for item in items if item.type != "text")

    def tools(self, request: ChatRequest) -> int:
        """The tokens of the tools on offer, in the form in which this model will be told about them."""
        return sum(map(self._model.counter.count, self._told(request)))

    def surely_fit(self, request: ChatRequest, room: int) -> bool:
        """Whether messages and tools take at most `room` tokens for certain, found without counting."""
        most = self._model.counter.at_most
        for message in request.messages:
            room -= self._sum(message, most)
            if room < 0:
                return False
        return sum(map(most, self._told(request))) <= room

    def _told(self, request: ChatRequest) -> list[str]:
        """What is said about the tools."""
        generate = request.generate
        if not request.functions or str(generate.get("function_choice") or "auto") == "none":
            return []
        if is_native(self._model, request):
            return [json.dumps(function, ensure_ascii=False) for function in request.functions]
        default = "json_schema" if self._model.small else "nous"
        template = TEMPLATES[str(generate.get("fncall_prompt_type") or default)]()
        told = template.prepare(replace(request, messages=(_ASKED,)))
        return [item.text or "" for message in told.messages for item in message.items if item.text != _ASKED.content]

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
        return facts.counter.count(note(item))
