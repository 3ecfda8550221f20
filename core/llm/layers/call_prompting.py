"""Tools for models that a service offers none for: they go into the prompt, and calls are read from the text."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from core.llm.calling.catalog import TEMPLATES
from core.llm.calling.flat import flattened, has_calls
from core.llm.request import is_native
from core.messages.events import MessageFinished, TextDelta

if TYPE_CHECKING:
    from core.llm.calling.base import CallTemplate
    from core.llm.request import ChatRequest, Layer, ModelFacts, Source, Stream


def call_prompting(model: ModelFacts) -> Layer:
    """The layer for one model; it adds nothing where the service has calls of its own or nothing is on offer."""

    def layer(request: ChatRequest, below: Source) -> Stream:
        if is_native(model, request):
            return below(request)
        offered = request.functions and str(request.generate.get("function_choice") or "auto") != "none"
        if offered or (model.small and has_calls(request.messages)):
            default = "json_schema" if model.small else "nous"
            name = str(request.generate.get("fncall_prompt_type") or default)
            return _prompted(TEMPLATES[name](), request, below)
        if has_calls(request.messages):
            request = replace(request, messages=tuple(flattened(request.messages, request.lang)))
        return below(replace(request, functions=()) if request.functions else request)

    return layer


async def _prompted(template: CallTemplate, request: ChatRequest, below: Source) -> Stream:
    reader = template.reader(request)
    async with aclosing(below(template.prepare(request))) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                for found in reader.feed(event.text):
                    yield found
            elif isinstance(event, MessageFinished):
                cut = event.reason == "length"
                for found in reader.close(cut=cut):
                    yield found
                yield MessageFinished("calls" if reader.calls and not cut else event.reason, event.usage)
            else:
                yield event
