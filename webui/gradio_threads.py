"""What Gradio shall not change threads for: work of microseconds, which it hands to a thread each time.

A frame of a tab has nine parts, and each of them went through a thread; a request of the page's script went through one
before anything of it began. Handing over costs more than the work, and while the loop is busy a thread that wants the
interpreter's lock waits milliseconds for it: fifty questions at once waited for threads.
"""

from __future__ import annotations

from functools import cache, wraps
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

from anyio import to_thread

if TYPE_CHECKING:
    from collections.abc import Callable

_LETTERS: Final = 20_000  # of a value; what Gradio makes of a longer one may take milliseconds, and stays in a thread
_CHECK: Final = "login_check"


def stay_on_loop() -> None:
    """Let Gradio do small things on the loop; to be called before its app is made, and once is enough.

    These are what components make of small values, the check whether somebody is signed in (who it is is known by
    then), and statistics that are not kept. A function of the page that is not asynchronous gets its thread as before.
    """
    blocks: Any = import_module("gradio.blocks")
    queueing: Any = import_module("gradio.queueing")
    routes: Any = import_module("gradio.routes")
    blocks.anyio = SimpleNamespace(to_thread=SimpleNamespace(run_sync=_run))
    queueing.run_sync = _run
    if not hasattr(routes.Depends, "__wrapped__"):
        routes.Depends = _asking_on_loop(routes.Depends)


async def _run(work: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """As `anyio.to_thread.run_sync`, but on the loop where the work is small."""
    if _is_small(work, args):
        return work(*args)
    return await to_thread.run_sync(work, *args, **options)


def _is_small(work: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """Whether it is what a component makes of a small value, or Gradio's look at its statistics."""
    name = getattr(work, "__name__", "")
    if name not in {"preprocess", "postprocess"}:
        return name == "compute_analytics_summary"
    return getattr(work, "__self__", None) is not None and all(letters(value) <= _LETTERS for value in args)


def letters(value: Any) -> int:
    """How many letters stand in a value of a component, about; so many that it is not small, where that is unknown."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, (list, tuple)):
        return sum(map(letters, cast("list[Any]", value))) + len(cast("list[Any]", value))
    if isinstance(value, dict):
        return letters([*cast("dict[str, Any]", value).values()])
    if value is None or isinstance(value, (bool, int, float)):
        return 1
    fields = getattr(value, "__dict__", None)  # a message, a file
    return _LETTERS + 1 if fields is None else letters(fields)


def _asking_on_loop(depends: Callable[..., Any]) -> Callable[..., Any]:
    """FastAPI's `Depends`, for which Gradio's check is asynchronous: what is not gets a thread for each request."""

    @cache
    def on_loop(check: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(check)
        async def checking(*args: Any, **kwargs: Any) -> Any:
            return check(*args, **kwargs)

        return checking

    @wraps(depends)
    def depending(dependency: Callable[..., Any] | None = None, **options: Any) -> Any:
        if dependency is not None and getattr(dependency, "__name__", "") == _CHECK:
            dependency = on_loop(dependency)
        return depends(dependency, **options)

    return depending
