"""The layers around every model, from the outside in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.llm.layers.cache import cache
from core.llm.layers.call_prompting import call_prompting
from core.llm.layers.fit_context import fit_context
from core.llm.layers.longest import longest
from core.llm.layers.moderation import moderation
from core.llm.layers.record import record, stages
from core.llm.layers.retry import retry
from core.llm.layers.stop_words import stop_words
from core.llm.layers.thoughts import thoughts
from core.llm.layers.uploads import uploads
from core.llm.layers.visible import visible

if TYPE_CHECKING:
    from core.llm.base import BaseChatModel
    from core.llm.request import Layer, Source


def layers(model: BaseChatModel) -> list[Layer]:
    """What a question passes on its way down, the outermost first."""
    return [
        visible,
        moderation(model),
        record(model),
        uploads(model),
        fit_context(model),
        call_prompting(model),
        stop_words,
        thoughts,
        stages,
        cache(model),
        retry(model),
        longest(model),
    ]


def stacked(model: BaseChatModel, source: Source) -> Source:
    """`source` with all layers around it."""
    for layer in reversed(layers(model)):
        source = _around(source, layer)
    return source


def _around(below: Source, layer: Layer) -> Source:
    return lambda request: layer(request, below)
