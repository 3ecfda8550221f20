"""What a model writes of a longer text, ended where the model would not end by itself."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from core.llm.prices import cost_of
from core.llm.usage import estimated_usage
from core.messages.events import MessageFinished, ReasoningDelta, TextDelta

if TYPE_CHECKING:
    from core.llm.base import BaseChatModel
    from core.llm.request import Stream

LONGEST_CHAPTER: Final = 16_000  # letters: some 2,500 words
LONGEST_THOUGHT: Final = 80_000  # letters: models that think do so at length


async def ended(events: Stream, model: BaseChatModel, asked: str) -> Stream:
    """The events of one step; a model that runs away is stopped, and the last event then has the reason `length`.

    Args:
        events: What is written.
        model: Who writes.
        asked: What it read: nobody tells the tokens of a reply that was left, so they are counted here.
    """
    said, text, thought = list[str](), 0, 0
    async with aclosing(events) as stream:
        async for event in stream:
            yield event
            if not isinstance(event, TextDelta | ReasoningDelta):
                continue
            said.append(event.text)
            text += len(event.text) if isinstance(event, TextDelta) else 0
            thought += len(event.text) if isinstance(event, ReasoningDelta) else 0
            if text > LONGEST_CHAPTER or thought > LONGEST_THOUGHT:
                break
        else:
            return
    usage = estimated_usage(model.count_tokens(asked), model.count_tokens("".join(said)))
    cost = await cost_of(usage, model.model, model.service)
    yield MessageFinished("length", usage.model_copy(update={"cost": cost}))
