"""Tool calling through the prompt, for models whose service has no calling of its own: tools in, calls parsed out."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from core.errors import ModelRefusedError, ModelServiceError, UnknownNameError
from core.llm.calling.catalog import TEMPLATES
from core.llm.calling.neutral import flattened, harmless_results, has_calls
from core.llm.calling.reply_reader import with_written_call
from core.llm.request import is_native, named_choice
from core.messages.events import MessageFinished, MessageStarted, TextDelta

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    from core.llm.calling.catalog import CallTemplate
    from core.llm.request import ChatRequest, Layer, ModelFacts, Source, Stream


def call_prompting(model: ModelFacts) -> Layer:
    """The layer for one model; inactive if the service has tool calling or no tools are on offer.

    Raises:
        UnknownNameError: `function_choice` is not a tool on offer, or `fncall_prompt_type` not a template.
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
                if isinstance(found, TextDelta):  # text so far is kept; its calls will not be answered
                    yield found
            raise


async def native_first(model: ModelFacts, ask: Callable[[], Stream], no_calls: re.Pattern[str]) -> Stream:
    """The reply to `ask`, asked once more with the tools in the prompt if the service turns out to have no calling.

    Args:
        model: Its `native_calls` becomes false then, so that the layers put the tools into the prompt.
        ask: Sends the request.
        no_calls: Finds that refusal by its words.
    """
    started = False
    try:
        async with aclosing(ask()) as events:
            async for event in events:
                started = started or not isinstance(event, MessageStarted)
                yield event
        return
    except ModelRefusedError as error:
        if started or not no_calls.search(error.message):
            raise
    model.native_calls = False
    async with aclosing(ask()) as events:
        async for event in events:
            if not isinstance(event, MessageStarted):  # the first attempt announced it
                yield event
