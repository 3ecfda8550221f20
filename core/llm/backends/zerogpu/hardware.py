"""What is asked of the package `spaces`, which borrows GPUs from ZeroGPU: functions, their callers, and its refusals.

A function that was handed to it runs in a process of its own, forked from this one, with a GPU; before that it asks the
platform for one, for so many seconds of the visitor's time. Outside of such functions, torch has no GPU but makes as if
it had: a model is put on `cuda` at the start, and its weights are brought to the real one in the new process.
"""

from __future__ import annotations

import logging
import re
import threading
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import psutil

from core.errors import ModelRefusedError, ModelServiceError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from core.llm.backends.transformers.writing import Task
    from core.messages.events import Event

Piece: TypeAlias = "Event | Exception | None"
"""What comes out of the process: an event, an error, or a sign of life."""
Writes: TypeAlias = "Callable[[Task, float], Iterator[Piece]]"

_log = logging.getLogger(__name__)
_EVENT: Final = "parlour"
_STARTING = threading.Lock()
_started: list[bool] = []


def in_emulation(work: Callable[[], Any]) -> Any:
    """What `work` gives, done in a thread of its own in which torch makes as if it had a GPU. Blocks.

    The package switches that on for the thread that imports it, and for no other.
    """
    found: list[Any] = []
    failed: list[BaseException] = []

    def begin() -> None:
        try:
            import_module("gradio")  # in whole before: the package refuses to be imported in the middle of it
            import_module("spaces")
        except BaseException as error:  # noqa: BLE001 - raised below, where it was asked for
            failed.append(error)

    def do() -> None:
        try:
            import_module("spaces.zero.torch").enter_mode()
            found.append(work())
        except BaseException as error:  # noqa: BLE001 - likewise
            failed.append(error)

    for step in (begin, do):
        thread = threading.Thread(target=step, name="parlour-zerogpu-load", daemon=True)
        thread.start()
        thread.join()
        if failed:
            raise failed[0]
    return found[0]


def on_gpu(write: Callable[[Task, float], Generator[Piece]], size: str | None) -> Writes:
    """The same function, run in a process that has a GPU for as many seconds as its second argument says."""

    def seconds_of(task: Task, seconds: float) -> int:
        del task
        return round(seconds)

    return import_module("spaces").GPU(duration=seconds_of, size=size)(write)


def report_start() -> None:
    """Tell the platform, once, that there is a function for it; weights go from memory to the disk meanwhile. Blocks.

    Gradio's own way to start, `launch`, would do it; Parlour does not start so.

    Raises:
        ModelServiceError: The platform did not take it.
    """
    with _STARTING:
        if _started:
            return
        try:
            import_module("spaces.zero").startup()
        except Exception as error:
            said = f"ZeroGPU did not take the report that Parlour has started: {type(error).__name__}."
            raise ModelServiceError(error, message=said, key="model_not_loaded") from error
        _started.append(True)


@contextmanager
def asking_for(token: str, unwanted: Callable[[], bool]) -> Generator[None]:
    """Inside, the package takes this thread for a visitor's event on a Gradio page.

    Args:
        token: The visitor's, whose time it takes.
        unwanted: Whether the visitor has left: a GPU that comes then is given back.
    """
    context: Any = import_module("spaces.zero.gradio").LocalContext
    given = (
        (context.request, _Request(token) if token else None),
        (context.blocks, _Blocks(unwanted)),
        (context.event_id, _EVENT),
    )
    before = [(variable, variable.set(value)) for variable, value in given]
    try:
        yield
    finally:
        for variable, was in before:
            variable.reset(was)


class _Headers(dict[str, str]):
    """The package wants headers to have attributes."""


class _Request:
    """The request of an event, as far as it is read."""

    def __init__(self, token: str) -> None:
        self.headers = _Headers({"x-ip-token": token, "x-gradio-user": "app"})


class _Waiting:
    """The event, while it waits for a GPU."""

    _id = _EVENT

    def __init__(self, unwanted: Callable[[], bool]) -> None:
        self._unwanted = unwanted

    @property
    def alive(self) -> bool:
        """Whether somebody waits for it."""
        return not self._unwanted()


class _Queue:
    """The queue of a page, with one event in it."""

    def __init__(self, unwanted: Callable[[], bool]) -> None:
        self.active_jobs = [[_Waiting(unwanted)]]

    def log_message(self, *_: Any, **said: Any) -> None:
        """What the package would tell the visitor."""
        _log.debug("ZeroGPU: %s", said.get("log"))

    def set_progress(self, *_: Any, **__: Any) -> None:
        """How far the weights have come; nobody is told."""


class _Config:
    @property
    def port(self) -> int:
        """Where this process listens: the new process closes the connections that it inherits."""
        connections = psutil.Process().net_connections("inet")
        return min((one.laddr.port for one in connections if one.status == psutil.CONN_LISTEN), default=-1)


class _Server:
    config = _Config()


class _Blocks:
    server = _Server()

    def __init__(self, unwanted: Callable[[], bool]) -> None:
        self._queue = _Queue(unwanted)


# -- refusals ---------------------------------------------------------------------------------------------------------

_QUOTA: Final = re.compile(r"\((\d+)s requested vs\. (-?\d+)s left\)(?:\. Try again in ([^.]+?)\.)?")
_SIGN_IN: Final = "Sign in to Hugging Face, so that your own time is used."


def refusal(error: Exception, seconds: float, *, known: bool) -> ModelServiceError:
    """What an error of the package means: its titles say what happened, its sentences are for its own page.

    Args:
        seconds: For how long a GPU was asked for.
        known: Whether the visitor's token was shown.
    """
    title, said = str(getattr(error, "title", "")), str(getattr(error, "message", error))
    asked = round(seconds)
    if said.startswith("No GPU was available"):
        return _busy(error)
    if title == "ZeroGPU illegal duration":
        message = f"ZeroGPU gives no GPU for {asked} seconds at once."
        return _refused(error, message, "Set gpu_seconds lower.", "gpu_too_long", asked=asked)
    if title == "ZeroGPU quota exceeded" and not known:
        return _refused(
            error, "This Space has no ZeroGPU time for visitors who are not known.", _SIGN_IN, "gpu_unknown"
        )
    if title == "ZeroGPU quota exceeded" and (found := _QUOTA.search(said)):
        left, wait = max(0, int(found[2])), found[3] or ""
        message = f"Your ZeroGPU time is used up: {found[1]} s were asked for, {left} s are left."
        hint = f"Try again in {wait}." if wait else "Try again tomorrow."
        return _refused(error, message, hint, "gpu_quota", asked=int(found[1]), left=left, wait=wait or "24:00:00")
    if title == "ZeroGPU quota exceeded":
        return _refused(error, "Your ZeroGPU runs of today are used up.", "Try again tomorrow.", "gpu_runs")
    if title == "ZeroGPU pending credits exceeded":
        return _busy(error)
    if "Expired ZeroGPU proxy token" in said:
        return _refused(error, "The sign that Hugging Face gave you is too old.", "Send it again.", "gpu_expired")
    if title == "ZeroGPU worker error" and said == "GPU task aborted":
        message = f"ZeroGPU took the GPU away; it was asked for {asked} seconds."
        return ModelServiceError(error, message=message, hint="Let it continue.", key="gpu_gone")
    return ModelServiceError(error, message=f"ZeroGPU failed: {said or type(error).__name__}")


def _busy(error: Exception) -> ModelServiceError:
    # Not one that is tried again by itself: it has waited in the platform's queue for a minute.
    message = "All GPUs of ZeroGPU are taken."
    return ModelServiceError(error, message=message, hint="Try again in a minute.", key="gpu_busy")


def _refused(error: Exception, message: str, hint: str, key: str, **details: Any) -> ModelRefusedError:
    made = ModelRefusedError(error, message=message, hint=hint, key=key)
    made.details.update(details)
    return made
