"""Prices as the page says them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webui.words import Words


def money(cost: float | None, words: Words, *, free: bool = False) -> str:
    """A price in dollars; "free" on this machine, and never $0 where it is not known."""
    if free:
        return words("price.free")
    if cost is None:
        return words("price.unknown")
    if cost == 0:
        return "$0"
    if cost < 0.0001:
        return "< $0.0001"
    return f"${cost:.4f}" if cost < 0.01 else f"${cost:.3f}" if cost < 1 else f"${cost:.2f}"
