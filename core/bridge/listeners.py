"""Those who want to hear of changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, ParamSpec

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")


class Listeners(Generic[P]):
    """Callbacks that are told of each change, in the order they came; calling this tells them."""

    def __init__(self) -> None:
        self._callbacks: list[Callable[P, object]] = []

    def add(self, callback: Callable[P, object]) -> Callable[[], None]:
        """Tell one more from now on; returns what ends this."""
        self._callbacks.append(callback)

        def leave() -> None:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

        return leave

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Tell all of them; who leaves meanwhile may be told once more."""
        for callback in tuple(self._callbacks):
            callback(*args, **kwargs)
