"""Tools for models that a service offers none for: they go into the prompt, and calls are read from the text."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from core.errors import ModelServiceError, UnknownNameError
from core.llm.calling.catalog import TEMPLATES
from core.llm.calling.flat import flattened, has_calls
from core.llm.calling.native_text import with_written_call
from core.llm.calling.neutral import harmless_results
from core.llm.request import is_native, named_choice
from core.messages.events import MessageFinished, TextDelta

if TYPE_CHECKING:
    from core.llm.calling.base import CallTemplate
    from core.llm.request import ChatRequest, Layer, ModelFacts, Source, Stream


def call_prompting(model: ModelFacts) -> Layer:
    """The layer for one model; it adds nothing where the service has calls of its own or nothing is on offer.

    Raises:
        UnknownNameError: `function_choice` names a tool that is not on offer, or `fncall_prompt_type` no template.
    """

    def layer(request: ChatRequest, below: Source) -> Stream:
        _check_choice(request)
        offered = bool(request.functions) and request.generate.get("function_choice") != "none"
        if is_native(model, request):
            safe = harmless_results(request.messages)
            request = request if safe is request.messages else replace(request, messages=safe)
            return with_written_call(request, below) if offered else below(request)
        if not offered:
            request = replace(request, functions=())
        if offered or (model.small and has_calls(request.messages)):
            default = "json_schema" if model.small else "nous"
            name = str(request.generate.get("fncall_prompt_type") or default)
            return _prompted(TEMPLATES[name](), request, below)
        if has_calls(request.messages):
            request = replace(request, messages=tuple(flattened(request.messages, request.lang)))
        return below(request)

    return layer


def _check_choice(request: ChatRequest) -> None:
    names = [str(function.get("name")) for function in request.functions]
    if names and (choice := named_choice(request)) and choice not in names:
        raise UnknownNameError("tool", choice, names)


async def _prompted(template: CallTemplate, request: ChatRequest, below: Source) -> Stream:
    reader = template.reader(request)
    async with aclosing(below(template.prepare(request))) as events:
        try:
            async for event in events:
                if isinstance(event, TextDelta):
                    for found in reader.feed(event.text):
                        yield found
                elif isinstance(event, MessageFinished):
                    cut = event.reason == "length"
                    for found in reader.close(cut=cut):
                        yield found
                    yield replace(event, reason="calls" if reader.calls and not cut else event.reason)
                else:
                    yield event
        except ModelServiceError:
            for found in reader.close(cut=True):
                if isinstance(found, TextDelta):  # what had been said is kept; no call of it will be answered
                    yield found
            raise
