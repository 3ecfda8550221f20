"""The layers around every model, from the outside in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from core.llm.layers.cache import cache
from core.llm.layers.call_prompting import call_prompting
from core.llm.layers.fit_context import fit_context
from core.llm.layers.messages import KeepingModel, documents_first, uploads, visible
from core.llm.layers.moderation import moderation
from core.llm.layers.record import Recorded, record, stages
from core.llm.layers.reply import longest, stop_words, thoughts
from core.llm.layers.retry import retry

if TYPE_CHECKING:
    from core.llm.request import Layer, Source


class Layered(Recorded, KeepingModel, Protocol):
    """A model as the layers see it."""


def layers(model: Layered) -> list[Layer]:
    """All layers, the outermost first."""
    return [
        visible,
        moderation(model),
        record(model),
        uploads(model),
        fit_context(model),
        documents_first(model),
        call_prompting(model),
        stop_words,
        thoughts,
        stages,
        cache(model),
        retry(model),
        longest(model),
    ]


def stacked(model: Layered, source: Source) -> Source:
    """`source` with all layers around it."""
    for layer in reversed(layers(model)):
        source = _around(source, layer)
    return source


def _around(below: Source, layer: Layer) -> Source:
    return lambda request: layer(request, below)
