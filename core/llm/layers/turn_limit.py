"""The end of a turn's time, watched by one timer a call, whatever the reply waits for."""

from __future__ import annotations

import asyncio
import weakref
from typing import TYPE_CHECKING, Final

from core.bridge.awake import AwakeTimer
from core.errors import ModelMisbehavedError, ModelServiceError, ModelUnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from core.llm.request import Stream
    from core.llm.service import Served

DEFAULT_TURN_SECONDS: Final = 600.0


def turn_seconds(generate: Mapping[str, Any], model: Served) -> float | None:
    """`generate_cfg["turn_timeout"]`, where 0 is no limit; ten minutes for a service, none for a model on this machine.

    A model here may be slow and is nobody's bill.
    """
    given = generate.get("turn_timeout")
    if given is None:
        return None if model.service.here else DEFAULT_TURN_SECONDS
    return float(given) or None


class TurnLimit:
    """Stops the task that reads a reply when its time is over. It costs nothing while the reply comes.

    The task is the one that asked for the first of the reply; one that reads on for it is stopped at the next event.

    Args:
        seconds: Awake, from now on; `None` sets no limit.
        reading: The stream to watch: whoever reads is only stopped while waiting for it.
    """

    __slots__ = ("_reading", "_task", "_timer", "deadline", "over", "seconds")

    def __init__(self, seconds: float | None, reading: Stream) -> None:
        self.over = False
        self.seconds = seconds
        self.deadline: float | None = None
        # Weakly: a stream that nobody holds any more is closed at once, not when the garbage collector comes by.
        self._reading: weakref.ref[Any] = weakref.ref(reading)
        self._task: asyncio.Task[Any] | None = None
        self._timer: AwakeTimer | None = None

    def begin(self) -> None:
        """The time runs, for the task that calls this."""
        if self.seconds is not None:
            loop = asyncio.get_running_loop()
            self._task = asyncio.current_task()
            self.deadline = loop.time() + self.seconds
            self._timer = AwakeTimer(self._end, loop=loop)
            self._timer.start(self.seconds)

    def close(self) -> None:
        """The turn is over before its time."""
        if self._timer is not None:
            self._timer.cancel()

    def was_it(self) -> bool:
        """Whether a cancellation that arrived came from here alone; it then counts as dealt with."""
        return self.over and self._task is not None and self._task.uncancel() == 0

    def error(self, model: Served, *, told: bool) -> ModelServiceError:
        """What to raise.

        Args:
            model: Who took too long.
            told: Whether part of the reply had come.
        """
        name = model.service.name
        kind = ModelMisbehavedError if told else ModelUnavailableError
        said = f"{name} was not done after {self.seconds:g} s."
        hint = "What had come is kept: continue it, or ask again." if told else "Ask again, or set turn_timeout higher."
        error = kind(None, None, said, hint=hint, key="model_cut_off" if told else "model_slow")
        error.details |= {"host": name, "model": model.model}
        return error

    def _end(self) -> None:
        self.over = True
        reading = self._reading()
        if self._task is not None and reading is not None and reading.ag_running:
            self._task.cancel()
