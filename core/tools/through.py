"""What the uses of a tool pass that somebody else shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")


class Through(Protocol):
    """May refuse a use, end it, and change what comes of it.

    Attributes:
        rules: What stands for who brings the tool in the names that rules know.
    """

    rules: str

    async def __call__(self, use: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What comes of a use, which is begun by calling it."""
        ...
