"""What a call costs, by the price list of the package `genai-prices`, loaded when first asked for."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.llm.service import Service
    from core.messages.message import Usage


def has_price(service: Service) -> bool:
    """Whether a price list may know the service: it is none of the user's own."""
    return not service.here and "." in service.host and not service.host.endswith((".local", ".lan", ".internal"))


def fetch_list() -> None:
    """Begin to load the price list in another thread, so that it is at hand when the reply is over."""
    if not _list.cache_info().currsize:
        asyncio.get_running_loop().run_in_executor(None, _list)


async def cost_of(usage: Usage, model: str, service: Service) -> float | None:
    """US dollars; `None` where the list does not know the service or the model.

    Args:
        usage: Its tokens.
        model: The model's name, as the service knows it.
        service: Who is paid.
    """
    if not has_price(service):
        return None
    if not _list.cache_info().currsize:
        await asyncio.to_thread(_list)
    return _cost(usage, model, service.address)


@cache
def _list() -> Any:
    """The package, its tables read; `None` where it is not installed."""
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
    counted = prices.Usage(
        input_tokens=usage.prompt_tokens,
        cache_read_tokens=min(usage.cached_tokens, usage.prompt_tokens),
        output_tokens=usage.completion_tokens,
    )
    return _calculated(prices, counted, model, address)


def _calculated(prices: Any, counted: Any, model: str, address: str) -> float | None:
    try:
        return float(prices.calc_price(counted, model, provider_api_url=address).total_price)
    except (LookupError, ValueError):  # an unknown service or model; a count that its price does not cover
        return None
