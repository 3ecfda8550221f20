"""The usage of a call, estimated where the service sends none, and its price."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

from core.messages.events import CallDelta, ReasoningDelta, TextDelta
from core.messages.message import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from core.llm.request import ChatRequest
    from core.llm.service import Service
    from core.messages.events import Event
    from core.messages.message import Message

_PER_MESSAGE: Final = 4
_HEARD_PER_SECOND: Final = 10
_SAID_PER_SECOND: Final = 3.5
"""Tokens of speech, and of what is said in that time, where nobody counted them: fast speech."""
_ASKED: Final = ("prompt_tokens", "input_tokens")
_ANSWERED: Final = ("completion_tokens", "output_tokens")
_ASKED_DETAILS: Final = ("prompt_tokens_details", "input_tokens_details")
_ANSWERED_DETAILS: Final = ("completion_tokens_details", "output_tokens_details")


def usage_from(reported: object) -> Usage | None:
    """The usage that a service reports; `None` if it has no numbers.

    Accepts the forms of OpenAI (chat and responses), DashScope, vLLM and their kin; missing, `null` and invalid
    numbers are ignored.
    """
    counts = _mapping(reported)
    asked, answered = _number(counts, *_ASKED), _number(counts, *_ANSWERED)
    if asked is None and answered is None:
        return None
    total = _number(counts, "total_tokens")
    both = (asked or 0) + (answered or 0)
    return Usage(
        prompt_tokens=asked or 0,
        completion_tokens=answered or 0,
        total_tokens=both if total is None else total,
        reasoning_tokens=_detail(counts, _ANSWERED_DETAILS, "reasoning_tokens"),
        cached_tokens=_detail(counts, _ASKED_DETAILS, "cached_tokens", "prompt_cache_hit_tokens"),
    )


def estimated_usage(asked: int, answered: int) -> Usage:
    """Usage by our own count."""
    return Usage(prompt_tokens=asked, completion_tokens=answered, total_tokens=asked + answered, estimated=True)


def estimated_for(request: ChatRequest, reported: Iterable[str], count: Callable[[str], int]) -> Usage:
    """Usage by our own count, of a call whose service reports none.

    Args:
        reported: The reply's text, reasoning and arguments.
        count: Counts the tokens of a text.
    """
    asked = sum(_PER_MESSAGE + count(_text_of(message)) for message in request.messages)
    asked += sum(count(json.dumps(function, ensure_ascii=False)) for function in request.functions)
    return estimated_usage(asked, count("".join(reported)))


def written(events: Iterable[Event]) -> list[str]:
    """What a model wrote: the pieces of its text, its thoughts and its arguments."""
    said: list[str] = []
    for event in events:
        match event:
            case TextDelta(text) | ReasoningDelta(text) | CallDelta(_, text):
                said.append(text)
            case _:
                pass
    return said


def _text_of(message: Message) -> str:
    call = message.function_call
    text = message.get_text_content()
    return f"{text}{call.name}{call.arguments}" if call else text


def _detail(counts: Mapping[str, Any], places: tuple[str, ...], *names: str) -> int:
    """A number that most services nest, and a few do not."""
    for place in places:
        found = _number(_mapping(counts.get(place)), *names)
        if found is not None:
            return found
    return _number(counts, *names) or 0


def _number(counts: Mapping[str, Any], *names: str) -> int | None:
    return next((counts[name] for name in names if type(counts.get(name)) is int and counts[name] >= 0), None)


def _mapping(reported: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", reported) if isinstance(reported, dict) else {}


def has_price(service: Service) -> bool:
    """Whether the price list may know the service: not one of the user's own."""
    return not service.here and "." in service.host and not service.host.endswith((".local", ".lan", ".internal"))


def fetch_list() -> None:
    """Begin to load the price list in a thread, so that it is there when the reply ends."""
    if not _list.cache_info().currsize:
        asyncio.get_running_loop().run_in_executor(None, _list)


async def cost_of(usage: Usage, model: str, service: Service) -> float | None:
    """The cost in US dollars; `None` if the list does not know the service or the model.

    Args:
        model: The model's name, as the service has it.
    """
    if not has_price(service):
        return None
    if not _list.cache_info().currsize:
        await asyncio.to_thread(_list)
    return _cost(usage, model, service.address)


def is_priced(model: str, service: Service) -> bool:
    """Whether the list knows what the model costs. It may have to be loaded, which takes some hundred milliseconds.

    Args:
        model: The model's name, as the service has it.
        service: Where it is.
    """
    return has_price(service) and _cost(Usage(prompt_tokens=1, completion_tokens=1), model, service.address) is not None


async def cost_of_sound(seconds: float, usage: Usage | None, model: str, service: Service) -> float | None:
    """What it costs in US dollars to turn a recording into text; `None` if the list does not know it.

    Args:
        seconds: How long the recording is.
        usage: The tokens that were counted, for a model that is paid by those; `None` where they must be estimated.
        model: The model's name, as the service has it.
    """
    return await asyncio.to_thread(_sound_cost, seconds, usage, model, service.address) if has_price(service) else None


def _sound_cost(seconds: float, usage: Usage | None, model: str, address: str) -> float | None:
    prices = _list()
    if prices is None:
        return None
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, known = get_snapshot().find_provider_model(model, None, None, address)
        listed: Any = known.get_prices(datetime.now(UTC))
    except (LookupError, ValueError):
        return None
    by_hour = getattr(listed, "input_audio_hours", None) or getattr(listed, "audio_hours", None)
    if by_hour is not None:
        return cast("float", _base(by_hour)) * seconds / 3600
    asked = usage.prompt_tokens if usage is not None else round(seconds * _HEARD_PER_SECOND)
    answered = usage.completion_tokens if usage is not None else round(seconds * _SAID_PER_SECOND)
    counted = prices.Usage(input_tokens=asked, input_audio_tokens=asked, output_tokens=answered)
    return _calculated(prices, counted, model, address) or None  # nothing where it has no price for sound


@dataclass(frozen=True, slots=True)
class Listed:
    """What the price list knows of a model.

    Args:
        asked: US dollars for a million tokens of a question; `None` where it is not told.
        answered: The same for a reply.
        context: How many tokens it takes.
    """

    asked: float | None = None
    answered: float | None = None
    context: int | None = None


async def listed(models: Iterable[str], address: str) -> dict[str, Listed]:
    """What the price list knows of a service's models; one that it does not know is left out.

    Args:
        models: Their names, as the service has them.
        address: The service's, on the open internet.
    """
    return await asyncio.to_thread(lambda: {name: found for name in models if (found := _listed(name, address))})


@lru_cache(8_192)
def _listed(model: str, address: str) -> Listed | None:
    if _list() is None:
        return None
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, known = get_snapshot().find_provider_model(model, None, None, address)
        prices = known.get_prices(datetime.now(UTC))
    except (LookupError, ValueError):
        return None
    return Listed(_base(prices.input_mtok), _base(prices.output_mtok), known.context_window)


def _base(price: Any) -> float | None:
    """The price of the first tokens, where more of them cost more."""
    return None if price is None else float(getattr(price, "base", price))


@cache
def _list() -> Any:
    """The package `genai-prices`, its tables loaded; `None` if it is not installed."""
    try:
        import genai_prices
    except ImportError:
        return None
    _calculated(genai_prices, genai_prices.Usage(input_tokens=1), "gpt-4o", "https://api.openai.com")
    return genai_prices


def _cost(usage: Usage, model: str, address: str) -> float | None:
    prices = _list()
    if prices is None:
        return None
    cached = min(usage.cached_tokens, usage.prompt_tokens)
    counted = prices.Usage(
        input_tokens=usage.prompt_tokens,
        cache_read_tokens=cached,
        cache_write_tokens=min(usage.kept_tokens, usage.prompt_tokens - cached),
        output_tokens=usage.completion_tokens,
    )
    return _calculated(prices, counted, model, address)


def _calculated(prices: Any, counted: Any, model: str, address: str) -> float | None:
    try:
        return float(prices.calc_price(counted, model, provider_api_url=address).total_price)
    except (LookupError, ValueError):  # an unknown service or model; a count that its price does not cover
        return None
